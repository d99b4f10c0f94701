//! Headers that were looked at and stay as they are: the same ones come with every request.

/// So many are kept, each in the slot that its look gives it.
const SLOTS: usize = 64;

/// Longer names and values are looked at each time.
const LONGEST: usize = 256;

/// What holds no secret, as far as secrets were known when it was looked at.
#[derive(Clone, Debug, Default)]
pub(super) struct Clean {
    slots: Vec<Slot>,
}

#[derive(Clone, Debug, Default)]
struct Slot {
    name: String,
    value: String,
    /// How many values had been met when it was looked at, and one.
    met: u64,
}

impl Clean {
    /// Whether it was looked at since the last of so many values was met.
    pub(super) fn has(&self, name: &[u8], value: &[u8], met: u64) -> bool {
        let slot = self.slots.get(slot(name, value));
        slot.is_some_and(|slot| {
            slot.met == met + 1 && slot.value.as_bytes() == value && slot.name.as_bytes() == name
        })
    }

    /// It was looked at, and is clean.
    pub(super) fn add(&mut self, name: &str, value: &str, met: u64) {
        if name.len() > LONGEST || value.len() > LONGEST {
            return;
        }
        if self.slots.is_empty() {
            self.slots.resize_with(SLOTS, Slot::default);
        }
        let slot = &mut self.slots[slot(name.as_bytes(), value.as_bytes())];
        name.clone_into(&mut slot.name);
        value.clone_into(&mut slot.value);
        slot.met = met + 1;
    }
}

/// Told apart by what costs nothing to look at; of two in one slot the later one is kept.
fn slot(name: &[u8], value: &[u8]) -> usize {
    let first = usize::from(name.first().copied().unwrap_or_default());
    let last = usize::from(value.last().copied().unwrap_or_default());
    (first + 7 * name.len() + 3 * value.len() + last) % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_clean_is_so_until_another_value_is_met() {
        let mut clean = Clean::default();
        assert!(!clean.has(b"accept", b"*/*", 0));
        clean.add("accept", "*/*", 0);
        assert!(clean.has(b"accept", b"*/*", 0));
        assert!(
            !clean.has(b"accept", b"*/*", 1)
                && !clean.has(b"accepu", b"*/*", 0)
                && !clean.has(b"accept", b"a/*", 0)
        );
        clean.add("accept", "*/*", 1);
        assert!(clean.has(b"accept", b"*/*", 1) && !clean.has(b"accept", b"*/*", 0));
    }

    #[test]
    fn what_is_long_or_in_the_way_is_looked_at_again() {
        let mut clean = Clean::default();
        let long = "a".repeat(LONGEST + 1);
        clean.add("x", &long, 0);
        assert!(!clean.has(b"x", long.as_bytes(), 0));
        clean.add("x", "abc", 0);
        clean.add("x", "acc", 0);
        assert!(!clean.has(b"x", b"abc", 0) && clean.has(b"x", b"acc", 0));
    }
}
