//! Queues by how messages are spelled, each in one place of memory.
//!
//! In a big cassette that place is in no cache of the processor's, and a request waits for it: a map that looks in two
//! places waits twice.

use super::{index::Queue, matcher::canonical::Digest, script::Maybe};
use crate::ahead;

/// A table with open addressing: a digest stands where its bits say, or in the first free slot behind that.
#[derive(Debug, Default)]
pub(super) struct Spellings {
    /// A power of two of them, or none.
    slots: Vec<Slot>,
    taken: usize,
}

/// Four to a line of the caches.
#[derive(Clone, Copy, Debug)]
struct Slot {
    digest: [u32; 3],
    /// None in a free one.
    queue: Maybe,
}

impl Slot {
    const FREE: Self = Self { digest: [0; 3], queue: Maybe::NONE };

    const fn is_free(&self) -> bool {
        self.queue.get().is_none()
    }
}

impl Spellings {
    /// Makes room for so many more.
    pub(super) fn reserve(&mut self, more: usize) {
        // A quarter stays free: the way to a slot is short, and ends.
        let slots = (self.taken + more).div_ceil(3) * 4;
        if slots <= self.slots.len() {
            return;
        }
        let old = std::mem::replace(&mut self.slots, vec![Slot::FREE; slots.next_power_of_two()]);
        for slot in old.into_iter().filter(|slot| !slot.is_free()) {
            let at = self.place(slot.digest);
            self.slots[at] = slot;
        }
    }

    /// Enters a queue, for which [`Self::reserve`] has made room, or replaces the one that is there.
    pub(super) fn insert(&mut self, digest: Digest, queue: Queue) {
        let digest = digest.most();
        let at = self.place(digest);
        self.taken += usize::from(self.slots[at].is_free());
        self.slots[at] = Slot { digest, queue: Maybe(queue.0) };
    }

    /// Begins to fetch what [`Self::get`] looks at.
    pub(super) fn fetch_ahead(&self, digest: Digest) {
        if !self.slots.is_empty() {
            ahead::fetch(&self.slots[self.first_place(digest.most())]);
        }
    }

    /// The queue of a message that is spelled so.
    pub(super) fn get(&self, digest: Digest) -> Option<Queue> {
        if self.slots.is_empty() {
            return None;
        }
        self.slots[self.place(digest.most())].queue.get().map(Queue)
    }

    /// The slot that has this digest, or where it goes.
    fn place(&self, digest: [u32; 3]) -> usize {
        let mut at = self.first_place(digest);
        while !self.slots[at].is_free() && self.slots[at].digest != digest {
            at = (at + 1) & (self.slots.len() - 1);
        }
        at
    }

    const fn first_place(&self, digest: [u32; 3]) -> usize {
        digest[0] as usize & (self.slots.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replay::matcher::canonical::digest;

    fn of(number: u32) -> Digest {
        digest(&number.to_le_bytes())
    }

    #[test]
    fn what_was_entered_is_found_through_every_growth_and_nothing_else() {
        let mut spellings = Spellings::default();
        assert!(spellings.get(of(0)).is_none());
        for many in 1..200 {
            spellings.reserve(1);
            spellings.insert(of(many), Queue(many));
            for number in 1..=many {
                assert_eq!(spellings.get(of(number)).map(|queue| queue.0), Some(number));
            }
            assert!(spellings.get(of(0)).is_none() && spellings.get(of(many + 1)).is_none());
        }
        spellings.insert(of(7), Queue(1000));
        assert_eq!(spellings.get(of(7)).map(|queue| queue.0), Some(1000));
        assert_eq!(spellings.taken, 199);
    }

    #[test]
    fn a_slot_is_small() {
        assert_eq!(size_of::<Slot>(), 16);
    }
}
