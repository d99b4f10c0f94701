//! Requests that wait for their answers, by id.

use std::{
    borrow::Cow,
    collections::{HashMap, VecDeque},
};

use crate::wire::jsonrpc::{id_key, number_key};

/// An exchange: its session and its number in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Owner {
    pub(super) session: usize,
    pub(super) exchange: usize,
}

/// The requests of one direction.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// Those that have no answer, oldest first, by an id in which spelling and type do not count.
    open: HashMap<Box<[u8]>, VecDeque<Request>>,
    /// The last one of each id that has one.
    answered: HashMap<Box<[u8]>, Owner>,
    /// The ids, type and spelling left out, of those that had no answer when messages went missing: one with the same id
    /// may have been among these, so a response is theirs only where something else than its id says so.
    before_gap: HashMap<Owner, Vec<Box<[u8]>>>,
}

#[derive(Debug)]
struct Request {
    key: Box<[u8]>,
    owner: Owner,
    /// Of a server request: the number of its item.
    item: usize,
    is_cancelled: bool,
}

impl Requests {
    /// Notes a request; `id` is the raw token, `null` included.
    pub(super) fn open(&mut self, id: &[u8], owner: Owner, item: usize) {
        let request = Request { key: id_key(id).into(), owner, item, is_cancelled: false };
        self.open.entry(loose_key(id).into()).or_default().push_back(request);
    }

    /// Whether a request with this id, whatever its type, has no answer.
    pub(super) fn is_open(&self, id: &[u8]) -> bool {
        self.open.contains_key(&*loose_key(id))
    }

    /// The request that a response with this id answers, with its item's number; from now on it is answered.
    pub(super) fn answer(&mut self, id: &[u8], session: usize) -> Option<(Owner, usize)> {
        let (loose, key) = (loose_key(id), id_key(id));
        let requests = self.open.get_mut(&*loose)?;
        let rank = |request: &Request| {
            (*request.key != *key, request.owner.session != session, request.is_cancelled)
        };
        let best = requests.iter().position(|request| rank(request) == (false, false, false));
        let at = match best {
            Some(at) => at,
            None => (0..requests.len()).min_by_key(|&at| rank(&requests[at]))?,
        };
        let request = self.take(&loose, at)?;
        Some((request.owner, request.item))
    }

    /// Answers a request of this exchange: the one with this id, else its oldest. Whether there was one.
    pub(super) fn answer_of(&mut self, id: Option<&[u8]>, owner: Owner) -> bool {
        let loose = id.map(|id| loose_key(id).into_owned());
        let is_own = |request: &Request| request.owner == owner;
        let named =
            loose.filter(|loose| self.open.get(&**loose).is_some_and(|requests| requests.iter().any(is_own)));
        // Few are open at any time.
        let found = named.or_else(|| {
            let mut open = self.open.iter();
            open.find(|(_, requests)| requests.iter().any(is_own)).map(|(loose, _)| loose.to_vec())
        });
        let Some(loose) = found else { return self.answer_before_gap(id, owner) };
        let at = self.open.get(&*loose).and_then(|requests| requests.iter().position(is_own));
        at.and_then(|at| self.take(&loose, at)).is_some()
    }

    /// The exchange of the oldest request with exactly this id; from now on it is answered.
    pub(super) fn answer_exactly(&mut self, id: &[u8]) -> Option<Owner> {
        let (loose, key) = (loose_key(id), id_key(id));
        let at = self.open.get(&*loose)?.iter().position(|request| *request.key == *key)?;
        self.take(&loose, at).map(|request| request.owner)
    }

    fn take(&mut self, loose: &[u8], at: usize) -> Option<Request> {
        let requests = self.open.get_mut(loose)?;
        let request = requests.remove(at)?;
        if requests.is_empty() {
            self.open.remove(loose);
        }
        self.answered.insert(request.key.clone(), request.owner);
        Some(request)
    }

    /// The exchange of the answered request with exactly this id.
    pub(super) fn answered(&self, id: &[u8]) -> Option<Owner> {
        self.answered.get(&*id_key(id)).copied()
    }

    /// Answers a request of this exchange that waits since before a gap. Whether there was one.
    fn answer_before_gap(&mut self, id: Option<&[u8]>, owner: Owner) -> bool {
        let Some(waiting) = self.before_gap.get_mut(&owner) else { return false };
        let loose = id.map(loose_key);
        let named = waiting.iter().position(|own| loose.as_deref() == Some(&**own));
        waiting.swap_remove(named.unwrap_or(0));
        if waiting.is_empty() {
            self.before_gap.remove(&owner);
        }
        true
    }

    /// Whether a request of this exchange with this id, whatever its type, has no answer, or one that is still known.
    pub(super) fn is_of(&self, id: &[u8], owner: Owner) -> bool {
        let loose = loose_key(id);
        let is_open = self.open.get(&*loose).is_some_and(|open| open.iter().any(|open| open.owner == owner));
        let is_before =
            || self.before_gap.get(&owner).is_some_and(|ids| ids.iter().any(|own| **own == *loose));
        is_open || is_before() || self.answered(id) == Some(owner)
    }

    /// Messages are missing: no id says any more that a response belongs to what came before.
    pub(super) fn forget(&mut self) {
        self.answered.clear();
        for (loose, requests) in self.open.drain() {
            for request in requests {
                self.before_gap.entry(request.owner).or_default().push(loose.clone());
            }
        }
    }

    /// The unanswered request with this id that was not cancelled before; from now on it is.
    pub(super) fn cancel(&mut self, id: &[u8], session: usize) -> Option<Owner> {
        let requests = self.open.get_mut(&*loose_key(id))?;
        let key = id_key(id);
        let rank = |request: &Request| (request.owner.session != session, *request.key != *key);
        let living = requests.iter_mut().filter(|request| !request.is_cancelled);
        let request = living.min_by_key(|request| rank(request))?;
        request.is_cancelled = true;
        Some(request.owner)
    }
}

/// An id in a form in which `7`, `"7"` and `7.0` are equal.
fn loose_key(id: &[u8]) -> Cow<'_, [u8]> {
    match id_key(id) {
        Cow::Borrowed(key) => number_key(key.strip_prefix(b"\"").unwrap_or(key)),
        Cow::Owned(key) => Cow::Owned(number_key(key.strip_prefix(b"\"").unwrap_or(&key)).into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_loosely_equal_whatever_their_type_and_fraction() {
        let key = |id: &str| String::from_utf8(loose_key(id.as_bytes()).into_owned()).unwrap();
        for id in ["7", "\"7\"", "7.0", "7.00", "70e-1", "\"7.0\"", "\"\\u0037\"", "\"\\u0037.0\""] {
            assert_eq!(key(id), "7", "{id}");
        }
        for (id, expected) in [
            ("0.0", "0"),
            ("100", "100"),
            ("\"100.50\"", "1005e-1"),
            ("1e2", "100"),
            ("\"a.0\"", "a.0"),
            ("\"\"", ""),
        ] {
            assert_eq!(key(id), expected, "{id}");
        }
    }
}
