//! Which steps of a script a message asks for.
//!
//! Messages are read by method, when the first live one of that method comes: a big cassette's first answer need not
//! wait until everything in it has been read.

use std::{collections::HashMap, sync::Arc};

use super::{
    matcher::{Matcher, RuleError, canonical::Digest},
    numbers::ByNumber,
    script::{Step, look},
};
use crate::{
    cassette::{
        blob::BlobSource,
        model::{Cassette, Exchange},
    },
    wire::jsonrpc::Message,
};

/// Finds steps by what their client messages ask.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// Steps with equal client messages, in file order.
    pub queues: Lists,
    by_digest: ByNumber<Digest, u32>,
    /// Steps with match rules of their own, with their tables and digests.
    own_rules: Vec<(u32, usize, Digest)>,
    /// Steps that are in no queue yet, by method; what has none stands under the empty one.
    unread: HashMap<Arc<str>, Vec<u32>>,
}

/// Lists of steps, one behind the other: a big cassette has as many of them as it has steps.
#[derive(Debug, Default)]
pub(super) struct Lists {
    steps: Vec<u32>,
    /// Where each list begins.
    starts: Vec<u32>,
}

impl Index {
    /// Takes in a step and its client message; none where that has no rules of its own.
    ///
    /// # Errors
    /// When a rule of its own cannot be used.
    pub(super) fn enter(
        &mut self,
        matcher: &mut Matcher,
        entry: &Exchange,
        message: Option<&Message<'_>>,
        step: u32,
        method: &Arc<str>,
    ) -> Result<(), RuleError> {
        let own = message.map(|message| matcher.own_digest(entry, message)).transpose()?.flatten();
        match own {
            Some((table, digest)) => self.own_rules.push((step, table, digest)),
            None => match self.unread.get_mut(method) {
                Some(steps) => steps.push(step),
                None => drop(self.unread.insert(Arc::clone(method), vec![step])),
            },
        }
        Ok(())
    }

    /// Which queue a live message draws from, and the steps with rules of their own that equal it.
    pub(super) fn find(
        &mut self,
        recorded: Recorded<'_>,
        matcher: &mut Matcher,
        message: &Message<'_>,
    ) -> (Option<u32>, Vec<u32>) {
        if !self.unread.is_empty()
            && let Some(steps) = self.unread.remove(&*message.method())
        {
            self.read(recorded, matcher, &steps);
        }
        // The pool of a recording with sessions is mostly empty, and asked first.
        let queue = match self.by_digest.is_empty() {
            true => None,
            false => self.by_digest.get(&matcher.digest(message)).copied(),
        };
        let mut own = Vec::new();
        for &(step, table, digest) in &self.own_rules {
            if matcher.digest_with(message, table) == digest {
                own.push(step);
            }
        }
        (queue, own)
    }

    /// Puts steps into queues.
    fn read(&mut self, recorded: Recorded<'_>, matcher: &mut Matcher, steps: &[u32]) {
        let Recorded { cassette, blobs, steps: all } = recorded;
        let (before, mut bytes) = (self.by_digest.len(), Vec::new());
        let mut members = Vec::with_capacity(steps.len());
        self.by_digest.reserve(steps.len());
        for &step in steps {
            let entry = &cassette.exchanges[all[step as usize].exchange as usize];
            // A message whose blob has gone since it was entered is found by nobody.
            let Some(message) = look(cassette, blobs, entry, &mut bytes) else { continue };
            let next = self.by_digest.len() as u32;
            let queue = *self.by_digest.entry(matcher.digest(&message)).or_insert(next);
            members.push((queue - before as u32, step));
        }
        self.queues.append(self.by_digest.len() - before, &members);
    }
}

/// What an index is read from.
#[derive(Clone, Copy)]
pub(super) struct Recorded<'a> {
    pub cassette: &'a Cassette,
    pub blobs: &'a dyn BlobSource,
    /// The script's steps.
    pub steps: &'a [Step],
}

impl Lists {
    /// Begins the next list.
    pub(super) fn begin(&mut self) {
        self.starts.push(self.steps.len() as u32);
    }

    /// Appends a step to the last list.
    pub(super) fn push(&mut self, step: u32) {
        self.steps.push(step);
    }

    /// Takes back the last list if one step is all it has.
    pub(super) fn take_back_single(&mut self) -> Option<u32> {
        self.starts.pop_if(|start| *start as usize + 1 == self.steps.len())?;
        self.steps.pop()
    }

    /// Appends lists, given as which step stands in which of them; steps keep their order.
    fn append(&mut self, lists: usize, members: &[(u32, u32)]) {
        let mut next = vec![0; lists];
        for &(list, _) in members {
            next[list as usize] += 1;
        }
        let mut start = self.steps.len() as u32;
        for next in &mut next {
            (*next, start) = (start, start + *next);
            self.starts.push(*next);
        }
        self.steps.resize(start as usize, 0);
        for &(list, step) in members {
            let next = &mut next[list as usize];
            self.steps[*next as usize] = step;
            *next += 1;
        }
    }

    /// How many lists there are.
    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    /// One list.
    pub(super) fn get(&self, list: u32) -> &[u32] {
        let list = list as usize;
        let end = self.starts.get(list + 1).map_or(self.steps.len(), |&end| end as usize);
        &self.steps[self.starts[list] as usize..end]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_appended_in_order_or_grow_at_their_end() {
        let mut lists = Lists::default();
        lists.append(3, &[(1, 0), (0, 2), (1, 3)]);
        lists.append(1, &[(0, 4)]);
        assert_eq!([lists.get(0), lists.get(1), lists.get(2), lists.get(3)], [&[2][..], &[0, 3], &[], &[4]]);
        lists.begin();
        lists.push(5);
        lists.push(7);
        assert_eq!((lists.take_back_single(), lists.get(4)), (None, &[5, 7][..]));
        lists.begin();
        lists.push(8);
        assert_eq!((lists.take_back_single(), lists.get(4)), (Some(8), &[5, 7][..]));
        assert_eq!(lists.len(), 5);
    }
}
