//! The tap between two pipes: what passes is cut into messages, cleaned, and written before it goes on.
//!
//! Both directions share one [`Recorder`], and nothing else but what is owed. A chunk that ends no line is only kept.

use std::{
    borrow::Cow,
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
    iter, mem,
    sync::Mutex,
    time::Instant,
};

use memchr::{memchr, memchr_iter};

use super::{
    hide::Hide,
    lock,
    recorder::{Recorder, Room, Sink, Tapped, event},
};
use crate::{
    traffic::{Direction, Lane, Micros, Payload},
    wire::{
        jsonrpc::{Kind, Message, id_key},
        lines::{Line, LineSplitter},
    },
};

/// Both directions' taps.
pub(super) struct Tap<S> {
    to_server: Mutex<Side>,
    to_client: Mutex<Side>,
    recorder: Recorder<S>,
    unanswered: Mutex<Unanswered>,
}

/// What one direction's tap has for itself.
struct Side {
    splitter: LineSplitter,
    room: Room,
    /// Of the messages of one chunk, what they begin and end.
    owed: Vec<Owed>,
}

impl<S: Sink> Tap<S> {
    pub(super) fn new(sink: S, hide: Box<dyn Hide>, max_message: usize, is_fatal: bool) -> Self {
        let side = || {
            let splitter = LineSplitter::new(max_message);
            Mutex::new(Side { splitter, room: Room::default(), owed: Vec::new() })
        };
        Self {
            to_server: side(),
            to_client: side(),
            recorder: Recorder::new(sink, hide, is_fatal),
            unanswered: Mutex::default(),
        }
    }

    /// Microseconds since the session began.
    pub(super) fn now(&self) -> Micros {
        self.recorder.now()
    }

    /// The instant of a moment of [`Self::now`].
    pub(super) fn instant(&self, at: Micros) -> Instant {
        self.recorder.instant(at)
    }

    /// Whether a request of the client is unanswered, and when the last one was answered.
    pub(super) fn owing(&self) -> (bool, Option<Instant>) {
        let unanswered = lock(&self.unanswered);
        (!unanswered.requests.is_empty(), unanswered.settled.map(|at| self.instant(at)))
    }

    /// Writes what `chunk` ends.
    pub(super) fn chunk(&self, direction: Direction, chunk: &[u8]) -> Tapped {
        let mut side = lock(self.side(direction));
        let Side { splitter, room, owed } = &mut *side;
        if memchr(b'\n', chunk).is_none() {
            splitter.feed(chunk, |_| ());
            return Tapped::Pass;
        }
        let missed = || memchr_iter(b'\n', chunk).count() as u64;
        self.recorder.record(room, missed, |events| {
            splitter.feed(chunk, |line| {
                let payload = match line {
                    Line::Whole(bytes) => {
                        note(direction, bytes, owed);
                        Payload::Message(Cow::Borrowed(bytes))
                    }
                    Line::Oversize(line) => Payload::Oversize(line),
                };
                events.push(event(direction, Lane(0), payload));
            });
            // Before any of it goes on.
            if !owed.is_empty() {
                lock(&self.unanswered).change(owed.drain(..), || self.now());
            }
        })
    }

    /// Writes what stood behind the last line end, and that the sender closed this direction if it did.
    pub(super) fn close(&self, direction: Direction, is_closed: bool) -> Tapped {
        let mut side = lock(self.side(direction));
        let Side { splitter, room, .. } = &mut *side;
        let partial = mem::replace(splitter, LineSplitter::new(0)).finish();
        if partial.is_none() && !is_closed {
            return Tapped::Pass;
        }
        let partial = partial.map(|partial| Payload::Partial(Cow::Owned(partial)));
        let said = partial.into_iter().chain(is_closed.then_some(Payload::Closed));
        let events = said.map(|payload| event(direction, Lane(0), payload));
        self.recorder.record(room, || 0, |room| room.extend(events))
    }

    /// Writes the last event and gives the sink back with the number of messages it did not take. From now on
    /// nothing passes.
    pub(super) fn finish(&self, last: Payload<'static>) -> Option<(S, u64)> {
        self.recorder.finish(Some(last))
    }

    const fn side(&self, direction: Direction) -> &Mutex<Side> {
        match direction {
            Direction::ToServer => &self.to_server,
            Direction::ToClient => &self.to_client,
        }
    }
}

/// A request of the client that a message begins, or ends.
struct Owed {
    begins: bool,
    /// The hash of its id.
    id: u64,
}

/// Notes what a line begins and ends: most lines tell it with their first members.
fn note(direction: Direction, line: &[u8], owed: &mut Vec<Owed>) {
    let mut change = |kind, id| {
        let id = Hashed::of(&id_key(id));
        owed.push(Owed { begins: kind == Kind::Request, id });
    };
    if let Some((kind, id)) = Message::first_look(line) {
        if is_owed(direction, kind) {
            change(kind, id);
        }
        return;
    }
    let message = Message::read(line);
    for message in iter::once(message).chain(message.members()) {
        let id = match (direction, message.kind) {
            (Direction::ToServer, Kind::Notification) => message.cancelled_id(),
            (_, kind) => message.id().filter(|_| is_owed(direction, kind)),
        };
        if let Some(id) = id {
            change(message.kind, id);
        }
    }
}

/// Whether a message of this kind is a request of the client, or answers one.
const fn is_owed(direction: Direction, kind: Kind) -> bool {
    match direction {
        Direction::ToServer => matches!(kind, Kind::Request),
        Direction::ToClient => kind.is_response(),
    }
}

/// The client's requests that have no answer yet. Of each id a hash is kept: if two are ever equal, a session ends a
/// little earlier or later than it might.
#[derive(Default)]
struct Unanswered {
    requests: HashMap<u64, u32, BuildHasherDefault<Hashed>>,
    /// When the last of them was answered.
    settled: Option<Micros>,
}

/// Hashes ids, and hashes no hash again. Whoever makes ids collide slows down nobody but themselves, so it need not
/// withstand that, which would cost several times as much.
#[derive(Default)]
struct Hashed(u64);

impl Hashed {
    fn of(id: &[u8]) -> u64 {
        let mut hash = id.len() as u64;
        for part in id.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            hash = (hash.rotate_left(23) ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        hash ^ hash >> 32
    }
}

impl Hasher for Hashed {
    fn write(&mut self, id: &[u8]) {
        self.0 = Self::of(id);
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl Unanswered {
    fn change(&mut self, changes: impl Iterator<Item = Owed>, now: impl Fn() -> Micros) {
        for Owed { begins, id } in changes {
            if begins {
                *self.requests.entry(id).or_insert(0) += 1;
            } else if let Some(count) = self.requests.get_mut(&id) {
                *count -= 1;
                if *count == 0 {
                    self.requests.remove(&id);
                }
                if self.requests.is_empty() {
                    self.settled = Some(now());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use crate::traffic::Event;

    /// Keeps how many events each write had.
    #[derive(Default)]
    struct Writes(Vec<Vec<String>>);

    impl Sink for Writes {
        fn write(&mut self, events: &[Event<'_>]) -> io::Result<()> {
            let texts = events.iter().map(|event| match &event.payload {
                Payload::Message(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                payload => format!("{payload:?}"),
            });
            self.0.push(texts.collect());
            Ok(())
        }
    }

    fn tap(max_message: usize) -> Tap<Writes> {
        Tap::new(Writes::default(), Box::new(()), max_message, false)
    }

    fn writes(tap: &Tap<Writes>) -> Vec<Vec<String>> {
        tap.finish(Payload::Closed).unwrap().0.0
    }

    #[test]
    fn what_one_read_ends_is_one_write_and_a_read_that_ends_nothing_is_none() {
        let tap = tap(100);
        for chunk in [&b"be"[..], b"gun", b"\none\ntwo\nth", b"ree", b"\n"] {
            assert!(matches!(tap.chunk(Direction::ToServer, chunk), Tapped::Pass));
        }
        let written = writes(&tap);
        assert_eq!(written[..2], [vec!["begun", "one", "two"], vec!["three"]]);
        assert_eq!(written.len(), 3);
        assert!(matches!(tap.chunk(Direction::ToServer, b"late\n"), Tapped::Over));
    }

    #[test]
    fn the_same_events_are_written_wherever_the_stream_is_cut() {
        let text = "{\"é\":1}\r\n\nlonger than the limit allows\n\u{feff}x\nrest".as_bytes();
        let written = |chunks: &[&[u8]]| {
            let tap = tap(12);
            for chunk in chunks {
                tap.chunk(Direction::ToClient, chunk);
            }
            tap.close(Direction::ToClient, true);
            writes(&tap).concat()
        };
        let whole = written(&[text]);
        assert_eq!(whole.len(), 7);
        for cut in 0..=text.len() {
            assert_eq!(written(&[&text[..cut], &text[cut..]]), whole, "cut at {cut}");
        }
        assert_eq!(written(&text.chunks(1).collect::<Vec<_>>()), whole);
    }

    #[test]
    fn a_request_is_owed_until_it_is_answered_or_cancelled() {
        let tap = tap(1000);
        let mut owing = Vec::new();
        let mut say = |direction, line: &str| {
            tap.chunk(direction, format!("{line}\n").as_bytes());
            owing.push(tap.owing().0);
        };
        let (client, server) = (Direction::ToServer, Direction::ToClient);
        say(client, r#"{"jsonrpc":"2.0","id":1,"method":"a"}"#);
        say(server, r#"{"jsonrpc":"2.0","id":"1","result":{}}"#);
        say(server, r#"{"jsonrpc":"2.0","id":1,"method":"the server's own"}"#);
        say(client, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        say(server, r#"{"jsonrpc":"2.0","id":1,"error":{}}"#);
        say(client, r#"{"jsonrpc":"2.0","id":"\u0061","method":"a"}"#);
        say(client, r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}"#);
        say(client, r#"[{"jsonrpc":"2.0","id":2,"method":"a"},{"jsonrpc":"2.0","id":3,"method":"a"}]"#);
        say(server, r#"{"jsonrpc":"2.0","id":2,"result":{}}"#);
        say(server, r#"[{"jsonrpc":"2.0","id":3,"result":{}}]"#);
        // Reused while it is open: two answers are owed.
        say(client, r#"{"jsonrpc":"2.0","id":4,"method":"a"}"#);
        say(client, r#"{"jsonrpc":"2.0","id":4,"method":"a"}"#);
        say(server, r#"{"jsonrpc":"2.0","id":4,"result":{}}"#);
        say(server, r#"{"jsonrpc":"2.0","id":4,"result":{}}"#);
        let [t, f] = [true, false];
        assert_eq!(owing, [t, t, t, t, f, t, f, t, t, f, t, t, t, f]);
        assert!(tap.owing().1.is_some());
    }
}
