//! Which ids a session's client has given its requests.

use std::ops::Range;

use crate::{
    cassette::model::Id,
    replay::{
        matcher::canonical::{Digest, digest},
        numbers::ByNumber,
    },
    wire::jsonrpc::id_key,
};

/// So many ids are remembered of a session that are no count; ones beyond are not compared.
const MOST_IDS: usize = 100_000;

/// The ids of a session's requests.
#[derive(Debug, Default)]
pub(super) struct Ids {
    /// Nearly all clients count their requests: all these numbers have come.
    counted: Range<u64>,
    /// Of those, the ones that may come again.
    again: ByNumber<Digest, ()>,
    /// What stands for all others ([`known_by`]).
    others: ByNumber<Digest, ()>,
}

impl Ids {
    /// Takes in an id: whether it is new, as far as that is known.
    pub(super) fn insert(&mut self, id: &[u8]) -> bool {
        if let Some(number) = number(id) {
            if self.counted.contains(&number) {
                return !self.again.is_empty() && self.again.remove(&known_by(id)).is_some();
            }
            if self.counted.is_empty() {
                self.counted = number..number;
            }
            if number == self.counted.end && number < u64::MAX {
                self.counted.end += 1;
                return self.others.is_empty() || self.others.remove(&known_by(id)).is_none();
            }
        }
        self.others.len() >= MOST_IDS || self.others.insert(known_by(id), ()).is_none()
    }

    /// An id may come again.
    pub(super) fn forget(&mut self, id: &[u8]) {
        if number(id).is_none_or(|number| !self.counted.contains(&number)) {
            self.others.remove(&known_by(id));
        } else if self.again.len() < MOST_IDS {
            self.again.insert(known_by(id), ());
        } else {
            // Rather all may come again than that one is told which should not be.
            *self = Self { others: std::mem::take(&mut self.others), ..Self::default() };
        }
    }
}

/// What stands for an id.
fn known_by(id: &[u8]) -> Digest {
    digest(&id_key(id))
}

/// The number that an id is.
fn number(id: &[u8]) -> Option<u64> {
    match id.first()? {
        b'0'..=b'9' => match Id::of(Some(&id_key(id))) {
            Id::Number(number) => Some(number),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn news(ids: &mut Ids, of: &[&str]) -> Vec<bool> {
        of.iter().map(|id| ids.insert(id.as_bytes())).collect()
    }

    #[test]
    fn an_id_is_new_once_whether_it_counts_or_not() {
        let mut ids = Ids::default();
        let found =
            news(&mut ids, &["3", "4", "6", "\"4\"", "4", "5", "6", "5.0", "3", "2", "2", "\"4\"", "04"]);
        let [new, old] = [true, false];
        assert_eq!(found, [new, new, new, new, old, new, old, old, old, new, old, old, new]);
        // The count has gone on behind a number that came too early.
        assert_eq!((ids.counted.clone(), news(&mut ids, &["6", "7", "6"])), (3..7, vec![old, new, old]));
        let last = u64::MAX.to_string();
        assert_eq!(news(&mut ids, &[&last, &last, "18446744073709551616"]), [new, old, new]);
    }

    #[test]
    fn what_may_come_again_may_do_so_once() {
        let mut ids = Ids::default();
        assert_eq!(news(&mut ids, &["1", "2", "\"a\""]), [true; 3]);
        ids.forget(b"1");
        ids.forget(b"\"a\"");
        ids.forget(b"9");
        assert_eq!(
            news(&mut ids, &["1", "1", "\"a\"", "\"a\"", "9", "3"]),
            [true, false, true, false, true, true]
        );
    }
}
