//! The tap between two pipes: what passes is cut into messages, cleaned, and written before it goes on.
//!
//! Both directions share one [`Recorder`] behind a lock, so the sink's order is the order of tapping, and no peer can
//! react to a message that is not yet written. A chunk that ends no line needs no lock.

use std::{
    borrow::Cow,
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    io, mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use memchr::{memchr, memchr_iter};

use crate::{
    redact::Redactor,
    store::Journal,
    traffic::{Direction, Event, Lane, Micros, Payload},
    wire::{
        jsonrpc::{Kind, Message},
        lines::{Line, LineSplitter, Oversize},
    },
};

/// Where a recording goes.
pub trait Sink: Send {
    /// Writes all of these, in order and at once.
    ///
    /// # Errors
    /// When one of them is not written. The session goes on, what is missing is counted, and the next call tells how
    /// much it was with an event of its own.
    fn write(&mut self, events: &[Event<'_>]) -> io::Result<()>;
}

impl Sink for Journal {
    fn write(&mut self, events: &[Event<'_>]) -> io::Result<()> {
        Self::write(self, events)
    }
}

/// What is taken out of messages before they are written; the traffic itself stays as it is.
pub trait Hide: Send {
    /// The message as it may be written.
    fn message<'a>(&mut self, direction: Direction, bytes: &'a [u8]) -> Cow<'a, [u8]>;
}

/// Nothing is hidden.
impl Hide for () {
    fn message<'a>(&mut self, _: Direction, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        Cow::Borrowed(bytes)
    }
}

impl Hide for Redactor {
    fn message<'a>(&mut self, direction: Direction, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        Self::message(self, direction, bytes)
    }
}

/// What is to become of a chunk.
#[derive(Debug)]
pub(super) enum Tapped {
    /// It goes on.
    Pass,
    /// It goes on; the sink has failed for the first time.
    PassUnwritten(io::Error),
    /// It does not: what happened before could not be written, and that is fatal here.
    Refuse(io::Error),
    /// It does not: the session is over.
    Over,
}

/// Both directions' taps.
pub(super) struct Tap<S> {
    start: Instant,
    to_server: Mutex<LineSplitter>,
    to_client: Mutex<LineSplitter>,
    recorder: Mutex<Option<Recorder<S>>>,
    /// How many requests of the client are unanswered.
    owed: AtomicUsize,
    /// When the last of them was answered.
    settled: AtomicU64,
}

impl<S: Sink> Tap<S> {
    pub(super) fn new(sink: S, hide: Box<dyn Hide>, max_message: usize, is_fatal: bool) -> Self {
        let recorder = Recorder {
            sink,
            hide,
            is_fatal,
            has_failed: false,
            is_broken: false,
            missed: 0,
            lost: 0,
            unanswered: Unanswered::default(),
            room: Vec::new(),
        };
        Self {
            start: Instant::now(),
            to_server: Mutex::new(LineSplitter::new(max_message)),
            to_client: Mutex::new(LineSplitter::new(max_message)),
            recorder: Mutex::new(Some(recorder)),
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
        let missed = || memchr_iter(b'\n', chunk).count() as u64;
        let tapped = if recorder.is_broken {
            recorder.break_off(missed())
        } else {
            let write = || {
                recorder.record(at, |hide, unanswered, events| {
                    splitter.feed(chunk, |line| {
                        unanswered.line(direction, &line);
                        events.push(event(at, direction, payload(hide, direction, line)));
                    });
                })
            };
            // A fault of ours costs the recording, not the session.
            catch_unwind(AssertUnwindSafe(write)).unwrap_or_else(|_| recorder.break_off(missed()))
        };
        let owed = recorder.unanswered.requests.len();
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
        if recorder.is_broken || (partial.is_none() && !is_closed) {
            return Tapped::Pass;
        }
        recorder.record(at, |hide, _, events| {
            if let Some(partial) = &partial {
                events.push(event(at, direction, Payload::Partial(hide.message(direction, partial))));
            }
            if is_closed {
                events.push(event(at, direction, Payload::Closed));
            }
        })
    }

    /// Writes the last event and gives the sink back with the number of messages it did not take. From now on
    /// nothing passes.
    pub(super) fn finish(&self, last: Payload<'static>) -> Option<(S, u64)> {
        let mut recorder = lock(&self.recorder).take()?;
        let at = self.now();
        recorder.record(at, |_, _, events| events.push(event(at, Direction::ToClient, last)));
        Some((recorder.sink, recorder.lost))
    }

    const fn splitter(&self, direction: Direction) -> &Mutex<LineSplitter> {
        match direction {
            Direction::ToServer => &self.to_server,
            Direction::ToClient => &self.to_client,
        }
    }
}

/// What both directions share.
struct Recorder<S> {
    sink: S,
    hide: Box<dyn Hide>,
    is_fatal: bool,
    has_failed: bool,
    /// What was tapped could not even be looked at: from there on messages are counted and nothing more.
    is_broken: bool,
    /// Messages that are not written, and of which the sink does not know yet.
    missed: u64,
    /// Messages that are not written.
    lost: u64,
    unanswered: Unanswered,
    /// Room for events, used again.
    room: Vec<Event<'static>>,
}

impl<S: Sink> Recorder<S> {
    /// One write of all events that `fill` adds.
    fn record<'a>(
        &'a mut self,
        at: Micros,
        fill: impl FnOnce(&mut dyn Hide, &mut Unanswered, &mut Vec<Event<'a>>),
    ) -> Tapped {
        let mut events = recycle(mem::take(&mut self.room));
        if self.missed > 0 {
            events.push(event(at, Direction::ToClient, Payload::Gap { messages: self.missed }));
        }
        fill(&mut *self.hide, &mut self.unanswered, &mut events);
        let outcome = self.sink.write(&events);
        let messages = events.iter().filter(|event| is_message(&event.payload)).count() as u64;
        self.room = recycle(events);
        match outcome {
            Ok(()) => {
                self.missed = 0;
                Tapped::Pass
            }
            Err(error) => self.miss(messages, error),
        }
    }

    /// After a panic. The splitter may have lost its place, so no later line can be trusted.
    fn break_off(&mut self, messages: u64) -> Tapped {
        self.is_broken = true;
        self.miss(messages, io::Error::other("a fault in tapedeck itself"))
    }

    fn miss(&mut self, messages: u64, error: io::Error) -> Tapped {
        self.missed += messages;
        self.lost += messages;
        match (self.is_fatal, mem::replace(&mut self.has_failed, true)) {
            (true, _) => Tapped::Refuse(error),
            (false, false) => Tapped::PassUnwritten(error),
            (false, true) => Tapped::Pass,
        }
    }
}

const fn is_message(payload: &Payload<'_>) -> bool {
    matches!(payload, Payload::Message(_) | Payload::Oversize(_))
}

const fn event(at: Micros, direction: Direction, payload: Payload<'_>) -> Event<'_> {
    Event { at, direction, lane: Lane(0), payload }
}

fn payload<'a>(hide: &mut dyn Hide, direction: Direction, line: Line<'a>) -> Payload<'a> {
    match line {
        Line::Whole(bytes) => Payload::Message(hide.message(direction, bytes)),
        Line::Oversize(line) => Payload::Oversize(Oversize {
            head: hide.message(direction, &line.head).into_owned(),
            tail: hide.message(direction, &line.tail).into_owned(),
            ..line
        }),
    }
}

/// The same room for events that borrow from elsewhere; a very large one is given back.
fn recycle<'b>(mut events: Vec<Event<'_>>) -> Vec<Event<'b>> {
    events.clear();
    if events.capacity() > 4096 {
        return Vec::new();
    }
    events.into_iter().map(|_| -> Event<'b> { unreachable!("cleared") }).collect()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The client's requests that have no answer yet. Of each id a hash is kept: if two are ever equal, a session ends a
/// little earlier or later than it might.
#[derive(Default)]
struct Unanswered {
    hasher: RandomState,
    requests: HashMap<u64, u32>,
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
        let id = self.hasher.hash_one(crate::wire::jsonrpc::id_key(id));
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

    #[test]
    fn room_for_events_is_used_again() {
        let text = b"a line".to_vec();
        let mut room: Vec<Event<'static>> = Vec::with_capacity(10);
        let at = room.as_ptr().cast::<u8>();
        {
            let mut events = recycle(mem::take(&mut room));
            events.push(event(0, Direction::ToServer, Payload::Message(Cow::Borrowed(&text))));
            assert_eq!(events.as_ptr().cast(), at);
            room = recycle(events);
        }
        assert_eq!((room.len(), room.as_ptr().cast(), room.capacity()), (0, at, 10));
        assert_eq!(recycle(Vec::with_capacity(5000)).capacity(), 0);
    }
}
