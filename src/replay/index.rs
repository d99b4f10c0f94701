//! Which steps of a script a message asks for.
//!
//! Messages are read by method, when the first live one of that method comes: a big cassette's first answer need not
//! wait until everything in it has been read.

use std::{collections::hash_map::Entry, slice};

use super::{
    matcher::{Matcher, RuleError, canonical::Digest},
    methods::Methods,
    numbers::ByNumber,
    script::{Step, look},
    spellings::Spellings,
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
    /// Steps with equal client messages, in file order, where that is more than one.
    lists: Lists,
    by_digest: ByNumber<Digest, Queue>,
    /// The same by how their messages are spelled: those that stand in the file as JSON.
    by_spelling: Spellings,
    /// Steps with match rules of their own, with their tables and digests.
    own_rules: Vec<(u32, usize, Digest)>,
    /// Steps that are in no queue yet, by the numbers of their methods.
    unread: Vec<Vec<u32>>,
    /// How many of these lists are not empty.
    unread_methods: usize,
}

/// Steps with equal client messages: the number of a list, or the only one. Nearly every step is that, and is found
/// with one look.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue(pub(super) u32);

impl Queue {
    const ONLY: u32 = 1 << 31;

    const fn only(step: u32) -> Self {
        Self(step | Self::ONLY)
    }

    /// The step, where there is only one.
    pub(super) const fn step(self) -> Option<u32> {
        if self.0 & Self::ONLY == 0 { None } else { Some(self.0 & !Self::ONLY) }
    }

    /// The number of the list, where there is one.
    pub(super) const fn list(self) -> Option<u32> {
        if self.0 & Self::ONLY == 0 { Some(self.0) } else { None }
    }
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
        method: u32,
    ) -> Result<(), RuleError> {
        let own = message.map(|message| matcher.own_digest(entry, message)).transpose()?.flatten();
        if let Some((table, digest)) = own {
            self.own_rules.push((step, table, digest));
            return Ok(());
        }
        if self.unread.len() <= method as usize {
            self.unread.resize_with(method as usize + 1, Vec::new);
        }
        let unread = &mut self.unread[method as usize];
        self.unread_methods += usize::from(unread.is_empty());
        unread.push(step);
        Ok(())
    }

    /// Begins to fetch where a live message that is spelled so is found.
    pub(super) fn fetch_ahead(&self, spelling: Digest) {
        self.by_spelling.fetch_ahead(spelling);
    }

    /// Which queue a live message draws from, and the steps with rules of their own that equal it.
    pub(super) fn find(
        &mut self,
        recorded: Recorded<'_>,
        matcher: &mut Matcher,
        message: &Message<'_>,
        spelling: Option<Digest>,
    ) -> (Option<Queue>, Vec<u32>) {
        if self.unread_methods > 0
            && let Some(method) = recorded.methods.find(&message.method())
            && let Some(steps) = self.unread.get_mut(method as usize).filter(|steps| !steps.is_empty())
        {
            let steps = std::mem::take(steps);
            self.unread_methods -= 1;
            self.read(recorded, matcher, &steps);
        }
        // The pool of a recording with sessions is mostly empty, and asked first.
        let queue = match self.by_digest.is_empty() {
            true => None,
            false => self.spelled(matcher, message, spelling).or_else(|| {
                let queue = self.by_digest.get(&matcher.digest(message));
                queue.copied()
            }),
        };
        let mut own = Vec::new();
        for &(step, table, digest) in &self.own_rules {
            if matcher.digest_with(message, table) == digest {
                own.push(step);
            }
        }
        (queue, own)
    }

    /// For each of so many steps, a number that it has in common with those that equal it.
    pub(super) fn classes(&self, steps: usize) -> Vec<u32> {
        let mut classes: Vec<u32> = (0..steps as u32).collect();
        for list in (0..self.lists.len() as u32).map(|list| self.lists.get(list)) {
            list.iter().for_each(|&step| classes[step as usize] = list[0]);
        }
        classes
    }

    /// The table of a step with match rules of its own.
    pub(super) fn own_table(&self, step: u32) -> Option<usize> {
        self.own_rules.iter().find(|(own, ..)| *own == step).map(|(_, table, _)| *table)
    }

    fn spelled(
        &self,
        matcher: &mut Matcher,
        message: &Message<'_>,
        spelling: Option<Digest>,
    ) -> Option<Queue> {
        self.by_spelling.get(spelling.or_else(|| matcher.spelled(message))?)
    }

    /// Puts steps into queues.
    fn read(&mut self, recorded: Recorded<'_>, matcher: &mut Matcher, steps: &[u32]) {
        let Recorded { cassette, blobs, steps: all, .. } = recorded;
        let (before, mut lists, mut members, mut bytes) =
            (self.lists.len() as u32, 0, Vec::new(), Vec::new());
        // What is written in another way may be no JSON.
        let peek = |step: u32| {
            let entry = &cassette.exchanges[all[step as usize].exchange as usize];
            entry.client.as_ref().and_then(|client| cassette.peek(client))
        };
        self.by_digest.reserve(steps.len());
        self.by_spelling.reserve(steps.len());
        for &step in steps {
            let entry = &cassette.exchanges[all[step as usize].exchange as usize];
            // A message whose blob has gone since it was entered is found by nobody.
            let peeked = peek(step);
            let Some(message) = peeked.or_else(|| look(cassette, blobs, entry, &mut bytes)) else { continue };
            let mut queue = Queue::only(step);
            let mut first = None;
            match self.by_digest.entry(matcher.digest(&message)) {
                Entry::Vacant(vacant) => {
                    vacant.insert(queue);
                }
                Entry::Occupied(mut known) => {
                    let list = known.get().list().unwrap_or_else(|| {
                        let only = known.get().0 & !Queue::ONLY;
                        first = Some(only);
                        members.push((lists, only));
                        lists += 1;
                        before + lists - 1
                    });
                    queue = Queue(list);
                    known.insert(queue);
                    members.push((list - before, step));
                }
            }
            for message in first.and_then(peek).into_iter().chain(peeked) {
                if let Some(spelling) = matcher.spelled(&message) {
                    self.by_spelling.insert(spelling, queue);
                }
            }
        }
        self.lists.append(lists as usize, &members);
    }

    /// The steps of a queue, in file order; `only` is room for the only one.
    pub(super) fn steps<'a>(&'a self, queue: Queue, only: &'a mut u32) -> &'a [u32] {
        if let Some(list) = queue.list() {
            return self.lists.get(list);
        }
        *only = queue.0 & !Queue::ONLY;
        slice::from_ref(only)
    }

    /// How many queues have a list.
    pub(super) fn lists(&self) -> usize {
        self.lists.len()
    }
}

/// What an index is read from.
#[derive(Clone, Copy)]
pub(super) struct Recorded<'a> {
    pub cassette: &'a Cassette,
    pub blobs: &'a dyn BlobSource,
    /// The script's steps, and their methods.
    pub steps: &'a [Step],
    pub methods: &'a Methods,
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
    use std::sync::Arc;

    use super::*;
    use crate::{
        cassette::blob::NoBlobs,
        replay::{Input, Options, Output, Replayer},
        traffic::Lane,
    };

    #[test]
    fn equal_messages_share_a_queue_however_they_are_spelled() {
        let exchange = |key: &str, params: &str, result: u32| {
            format!(
                r#"{{"key": "{key}", "client": {{"request": {{"method": "m", "params": {params}}}}}, "server": [{{"result": {result}}}]}}"#
            )
        };
        let (one, other) = (r#"{"x": 1, "y": [2, 3]}"#, r#"{"y":[2,3],"x":1.0}"#);
        let exchanges = [
            exchange("a", one, 1),
            exchange("b", r#"{"x": 7}"#, 9),
            exchange("c", other, 2),
            exchange("d", one, 3),
            exchange("e", other, 4),
        ];
        let text = format!(r#"{{"cassette": 1, "exchanges": [{}]}}"#, exchanges.join(", "));
        let cassette = Cassette::load(text.into(), &NoBlobs).unwrap();
        let mut replayer =
            Replayer::new(Arc::new(cassette), Arc::new(NoBlobs), "c", Options::default()).unwrap();
        let mut ask = |params: &str| {
            let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{params}}}"#);
            replayer.handle(0, Input::Message { lane: Lane(0), bytes: line.as_bytes() });
            let said = replayer.poll(0).expect("an answer");
            let Output::Send { bytes, .. } = &said else { panic!("{said:?}") };
            let answer = std::str::from_utf8(bytes).unwrap();
            let result = answer.strip_prefix(r#"{"jsonrpc":"2.0","id":1,"result":"#).unwrap();
            let result = result.trim_end_matches('}').to_owned();
            // Nothing of it is in the next one.
            replayer.take_back(said);
            result
        };
        let asked = [other, r#"{"x":7}"#, r#"{"x":1,"y":[2,3]}"#, r#"{"x":1e0,"y":[2,3]}"#, one, other];
        assert_eq!(asked.map(&mut ask), ["1", "9", "2", "3", "4", "4"]);
    }

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
