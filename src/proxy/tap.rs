//! The tap between two pipes: what passes is cut into messages, cleaned, and written before it goes on.
//!
//! Both directions share one [`Recorder`] behind a lock, so the sink's order is the order of tapping, and no peer can
//! react to a message that is not yet written. A chunk that ends no line needs no lock.

use std::{
    collections::HashMap,
    hash::{BuildHasherDefault, Hasher},
    mem,
    sync::{
        Mutex,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use memchr::{memchr, memchr_iter};

use super::{
    lock,
    recorder::{Hide, Recorder, Sink, Tapped, hidden},
};
use crate::{
    traffic::{Direction, Event, Lane, Micros, Payload},
    wire::{
        jsonrpc::{Kind, Message},
        lines::{Line, LineSplitter},
    },
};

/// Both directions' taps.
pub(super) struct Tap<S> {
    start: Instant,
    to_server: Mutex<LineSplitter>,
    to_client: Mutex<LineSplitter>,
    recorder: Mutex<Option<Recorder<S>>>,
    /// Locked only while the recorder is.
    unanswered: Mutex<Unanswered>,
    /// How many requests of the client are unanswered.
    owed: AtomicUsize,
    /// When the last of them was answered.
    settled: AtomicU64,
}

impl<S: Sink> Tap<S> {
    pub(super) fn new(sink: S, hide: Box<dyn Hide>, max_message: usize, is_fatal: bool) -> Self {
        Self {
            start: Instant::now(),
            to_server: Mutex::new(LineSplitter::new(max_message)),
            to_client: Mutex::new(LineSplitter::new(max_message)),
            recorder: Mutex::new(Some(Recorder::new(sink, hide, is_fatal))),
            unanswered: Mutex::new(Unanswered::default()),
            owed: AtomicUsize::new(0),
            settled: AtomicU64::new(0),
        }
    }

    /// Microseconds since the session began.
    pub(super) fn now(&self) -> Micros {
        u64::try_from(self.start.elapsed().as_micros()).unwrap_or(Micros::MAX)
    }

    /// The instant of a moment of [`Self::now`].
    pub(super) fn instant(&self, at: Micros) -> Instant {
        self.start + Duration::from_micros(at)
    }

    /// Whether a request of the client is unanswered, and when the last one was answered.
    pub(super) fn owing(&self) -> (bool, Option<Instant>) {
        let settled = self.settled.load(Ordering::Relaxed);
        (self.owed.load(Ordering::Relaxed) > 0, (settled > 0).then(|| self.instant(settled)))
    }

    /// Writes what `chunk` ends.
    pub(super) fn chunk(&self, direction: Direction, chunk: &[u8]) -> Tapped {
        let mut splitter = lock(self.splitter(direction));
        if memchr(b'\n', chunk).is_none() {
            splitter.feed(chunk, |_| ());
            return Tapped::Pass;
        }
        let mut recorder = lock(&self.recorder);
        let Some(recorder) = &mut *recorder else { return Tapped::Over };
        let at = self.now();
        let mut unanswered = lock(&self.unanswered);
        let missed = || memchr_iter(b'\n', chunk).count() as u64;
        let tapped = recorder.record(at, missed, |hide, events| {
            splitter.feed(chunk, |line| {
                unanswered.line(direction, &line);
                events.push(event(at, direction, payload(hide, direction, line)));
            });
        });
        let owed = unanswered.requests.len();
        if self.owed.swap(owed, Ordering::Relaxed) > 0 && owed == 0 {
            self.settled.store(at, Ordering::Relaxed);
        }
        tapped
    }

    /// Writes what stood behind the last line end, and that the sender closed this direction if it did.
    pub(super) fn close(&self, direction: Direction, is_closed: bool) -> Tapped {
        let splitter = {
            let mut splitter = lock(self.splitter(direction));
            mem::replace(&mut *splitter, LineSplitter::new(0))
        };
        let mut recorder = lock(&self.recorder);
        let Some(recorder) = &mut *recorder else { return Tapped::Over };
        let at = self.now();
        let partial = splitter.finish();
        if partial.is_none() && !is_closed {
            return Tapped::Pass;
        }
        recorder.record(
            at,
            || 0,
            |hide, events| {
                if let Some(partial) = &partial {
                    events.push(event(at, direction, Payload::Partial(hide.message(direction, partial))));
                }
                if is_closed {
                    events.push(event(at, direction, Payload::Closed));
                }
            },
        )
    }

    /// Writes the last event and gives the sink back with the number of messages it did not take. From now on
    /// nothing passes.
    pub(super) fn finish(&self, last: Payload<'static>) -> Option<(S, u64)> {
        let recorder = lock(&self.recorder).take()?;
        Some(recorder.finish(self.now(), Some(last)))
    }

    const fn splitter(&self, direction: Direction) -> &Mutex<LineSplitter> {
        match direction {
            Direction::ToServer => &self.to_server,
            Direction::ToClient => &self.to_client,
        }
    }
}

const fn event(at: Micros, direction: Direction, payload: Payload<'_>) -> Event<'_> {
    Event { at, direction, lane: Lane(0), payload }
}

fn payload<'a>(hide: &mut dyn Hide, direction: Direction, line: Line<'a>) -> Payload<'a> {
    match line {
        Line::Whole(bytes) => Payload::Message(hide.message(direction, bytes)),
        Line::Oversize(line) => Payload::Oversize(hidden(hide, direction, &line)),
    }
}

/// The client's requests that have no answer yet. Of each id a hash is kept: if two are ever equal, a session ends a
/// little earlier or later than it might.
#[derive(Default)]
struct Unanswered {
    requests: HashMap<u64, u32, BuildHasherDefault<Hashed>>,
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
    fn line(&mut self, direction: Direction, line: &Line<'_>) {
        if let Line::Whole(bytes) = line {
            let message = Message::read(bytes);
            self.message(direction, &message);
            message.members().for_each(|member| self.message(direction, &member));
        }
    }

    fn message(&mut self, direction: Direction, message: &Message<'_>) {
        let id = match (direction, message.kind) {
            (Direction::ToServer, Kind::Request) | (Direction::ToClient, Kind::Result | Kind::Error) => {
                message.id()
            }
            (Direction::ToServer, Kind::Notification) => message.cancelled_id(),
            _ => None,
        };
        let Some(id) = id else { return };
        let id = Hashed::of(&crate::wire::jsonrpc::id_key(id));
        if message.kind == Kind::Request {
            *self.requests.entry(id).or_insert(0) += 1;
        } else if let Some(count) = self.requests.get_mut(&id) {
            *count -= 1;
            if *count == 0 {
                self.requests.remove(&id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

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
