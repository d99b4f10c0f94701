//! What sessions tell each other: the values that they met as secrets.

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use super::secrets::MOST;

/// The secrets that some sessions have met, for others that pass on what the same client says. Its clones are one.
#[derive(Clone, Default)]
pub struct Met(Arc<Mutex<List>>);

#[derive(Default)]
struct List {
    /// The last ones, in the order in which they were met, with their kinds.
    values: VecDeque<(&'static str, Box<[u8]>)>,
    /// How many were forgotten before those.
    forgotten: u64,
}

impl Met {
    /// Adds a value.
    pub(crate) fn tell(&self, kind: &'static str, value: &[u8]) {
        let mut list = self.list();
        if list.values.len() == MOST {
            list.values.pop_front();
            list.forgotten += 1;
        }
        list.values.push_back((kind, value.into()));
    }

    /// Gives those that came behind so many, in order; how many there are by now.
    pub(crate) fn behind(&self, heard: u64, mut each: impl FnMut(&'static str, &[u8])) -> u64 {
        let list = self.list();
        let skipped = usize::try_from(heard.saturating_sub(list.forgotten)).unwrap_or(usize::MAX);
        list.values.iter().skip(skipped).for_each(|(kind, value)| each(kind, value));
        list.forgotten + list.values.len() as u64
    }

    fn list(&self) -> MutexGuard<'_, List> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Without the values.
impl fmt::Debug for Met {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Met").field("values", &self.list().values.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hears_what_it_has_not_heard_and_no_more_is_kept_than_is_looked_for() {
        let met = Met::default();
        let heard = |from: u64| {
            let mut heard = Vec::new();
            let now = met.behind(from, |kind, value| {
                heard.push(format!("{kind} {}", String::from_utf8_lossy(value)));
            });
            (now, heard)
        };
        met.tell("token", b"a");
        met.clone().tell("password", b"b");
        assert_eq!(heard(0), (2, vec!["token a".into(), "password b".into()]));
        assert_eq!(heard(1), (2, vec!["password b".into()]));
        assert_eq!(heard(2), (2, vec![]));
        (0..MOST).for_each(|number| met.tell("jwt", number.to_string().as_bytes()));
        let (now, all) = heard(1);
        assert_eq!((now, all.len(), &*all[0]), (MOST as u64 + 2, MOST, "jwt 0"));
        assert_eq!(heard(now - 1).1, [format!("jwt {}", MOST - 1)]);
        assert_eq!(format!("{met:?}"), format!("Met {{ values: {MOST} }}"));
    }
}
