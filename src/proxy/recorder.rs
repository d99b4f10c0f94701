//! What every recording front writes with: events are cleaned, written before they are passed on, and counted where
//! they could not be.

use std::{
    io, mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Mutex, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use super::{hide::Hide, lock};
use crate::{
    store::Journal,
    traffic::{Direction, Event, Lane, Micros, Payload},
};

/// Where a recording goes.
pub trait Sink: Send {
    /// Writes all of these, in order and at once.
    ///
    /// # Errors
    /// When one of them is not written. The session goes on, what is missing is counted, and the next call tells how
    /// much it was with an event of its own.
    fn write(&mut self, events: &[Event<'_>]) -> io::Result<()>;

    /// So many messages in all are not in it. Told each time that there are more, since no later write may succeed.
    fn missed(&mut self, messages: u64) {
        let _ = messages;
    }
}

impl<S: Sink + ?Sized> Sink for Box<S> {
    fn write(&mut self, events: &[Event<'_>]) -> io::Result<()> {
        (**self).write(events)
    }

    fn missed(&mut self, messages: u64) {
        (**self).missed(messages);
    }
}

impl Sink for Journal {
    fn write(&mut self, events: &[Event<'_>]) -> io::Result<()> {
        Self::write(self, events)
    }

    fn missed(&mut self, messages: u64) {
        // That the disk takes nothing is told already.
        let _ = Self::missed(self, messages);
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

/// Hides, writes, and counts what could not be written, for all whose traffic passes.
///
/// What passes at one time is made events of, and looked at, side by side; only what has to be changed, and writing, is
/// done by one at a time, with a lock for each. Nothing goes on before it is written, so no peer can react to what is not
/// in the sink, whose order is that of writing.
pub(super) struct Recorder<S> {
    start: Instant,
    hide: RwLock<Box<dyn Hide>>,
    /// None once it is finished.
    writer: Mutex<Option<Writer<S>>>,
    /// What was tapped could not even be looked at: from there on messages are counted and nothing more.
    is_broken: AtomicBool,
}

struct Writer<S> {
    sink: S,
    is_fatal: bool,
    has_failed: bool,
    /// Why nothing passes any more, where that is fatal.
    refused: Option<io::Error>,
    /// Messages that are not written, and of which the sink does not know yet.
    missed: u64,
    /// Messages that are not written.
    lost: u64,
}

/// Room for events, used again.
#[derive(Default)]
pub(super) struct Room(Vec<Event<'static>>);

impl<S: Sink> Recorder<S> {
    pub(super) fn new(sink: S, hide: Box<dyn Hide>, is_fatal: bool) -> Self {
        let writer = Writer { sink, is_fatal, has_failed: false, refused: None, missed: 0, lost: 0 };
        Self {
            start: Instant::now(),
            hide: RwLock::new(hide),
            writer: Mutex::new(Some(writer)),
            is_broken: AtomicBool::new(false),
        }
    }

    /// Microseconds since the recording began.
    pub(super) fn now(&self) -> Micros {
        u64::try_from(self.start.elapsed().as_micros()).unwrap_or(Micros::MAX)
    }

    /// The instant of a moment of [`Self::now`].
    pub(super) fn instant(&self, at: Micros) -> Instant {
        self.start + Duration::from_micros(at)
    }

    /// Writes the last event, and the gap before it. Gives the sink, and the number of messages it did not take. From
    /// now on nothing passes.
    pub(super) fn finish(&self, last: Option<Payload<'static>>) -> Option<(S, u64)> {
        let mut writer = lock(&self.writer).take()?;
        if last.is_some() || writer.missed > 0 {
            let mut events = last.map(|last| event(Direction::ToClient, Lane(0), last)).into_iter().collect();
            // Whether it can be told or not, what is missing is counted.
            let _ = writer.write(self.now(), &mut events);
        }
        Some((writer.sink, writer.lost))
    }

    /// One write of all events that `fill` adds; they get their moment here. A fault of ours costs the recording of
    /// these, of which there are so many, and not the session; one in `fill` that of all later ones too, since what cuts
    /// the stream may have lost its place.
    pub(super) fn record<'a>(
        &self,
        room: &mut Room,
        messages: impl Fn() -> u64,
        fill: impl FnOnce(&mut Vec<Event<'a>>),
    ) -> Tapped {
        let mut events: Vec<Event<'a>> = mem::take(&mut room.0);
        let is_filled = !self.is_broken.load(Ordering::Relaxed) && survives(|| fill(&mut events));
        if !is_filled {
            self.is_broken.store(true, Ordering::Relaxed);
        }
        let is_hidden = is_filled && survives(|| self.hide(&mut events));
        let mut writer = lock(&self.writer);
        let Some(writer) = &mut *writer else { return Tapped::Over };
        if let Some(refused) = &writer.refused {
            return Tapped::Refuse(again(refused));
        }
        let mut tapped = None;
        if is_hidden && !survives(|| tapped = Some(writer.write(self.now(), &mut events))) {
            self.is_broken.store(true, Ordering::Relaxed);
        }
        match tapped {
            Some(tapped) => {
                room.give_back(events);
                tapped
            }
            None => writer.miss(messages(), io::Error::other("a fault in tapedeck itself")),
        }
    }

    /// Takes out what must not be written. Only from the first event on that has such a thing does anybody wait.
    fn hide(&self, events: &mut [Event<'_>]) {
        let hide = self.hide.read().unwrap_or_else(PoisonError::into_inner);
        let unclean = events.iter().position(|event| !hide.is_clean(event));
        drop(hide);
        if let Some(first) = unclean {
            let mut hide = self.hide.write().unwrap_or_else(PoisonError::into_inner);
            events[first..].iter_mut().for_each(|event| hide.event(event));
        }
    }
}

/// Whether it can be done.
fn survives(what: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(what)).is_ok()
}

impl<S: Sink> Writer<S> {
    fn write(&mut self, at: Micros, events: &mut Vec<Event<'_>>) -> Tapped {
        if self.missed > 0 {
            let gap = Payload::Gap { messages: self.missed };
            events.insert(0, event(Direction::ToClient, Lane(0), gap));
        }
        events.iter_mut().for_each(|event| event.at = at);
        match self.sink.write(events) {
            Ok(()) => {
                self.missed = 0;
                Tapped::Pass
            }
            Err(error) => {
                let messages = events.iter().filter(|event| is_message(&event.payload)).count() as u64;
                let has_part = events.iter().any(|event| is_part(&event.payload));
                self.miss(messages.max(has_part.into()), error)
            }
        }
    }

    fn miss(&mut self, messages: u64, error: io::Error) -> Tapped {
        if self.is_fatal {
            // What does not go on is missing nowhere.
            self.refused = Some(again(&error));
            return Tapped::Refuse(error);
        }
        self.missed += messages;
        self.lost += messages;
        if messages > 0 {
            self.sink.missed(self.lost);
        }
        match mem::replace(&mut self.has_failed, true) {
            false => Tapped::PassUnwritten(error),
            true => Tapped::Pass,
        }
    }
}

/// The same error once more.
fn again(error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), error.to_string())
}

/// An event that gets its moment when it is written.
pub(super) const fn event(direction: Direction, lane: Lane, payload: Payload<'_>) -> Event<'_> {
    Event { at: 0, direction, lane, payload }
}

impl Room {
    /// A very large one is not kept.
    fn give_back(&mut self, mut events: Vec<Event<'_>>) {
        events.clear();
        if events.capacity() <= 4096 {
            self.0 = events.into_iter().map(|_| -> Event<'static> { unreachable!("cleared") }).collect();
        }
    }
}

const fn is_message(payload: &Payload<'_>) -> bool {
    matches!(payload, Payload::Message(_) | Payload::Oversize(_) | Payload::SseEvent(_) | Payload::Body(_))
}

/// Whether it is some of a message, or of a request that carries one; a response without a message carries none.
const fn is_part(payload: &Payload<'_>) -> bool {
    !matches!(payload, Payload::Response(_) | Payload::Closed | Payload::Exit(_) | Payload::Gap { .. })
}

#[cfg(test)]
mod tests {
    use std::{borrow::Cow, sync::Condvar, thread};

    use super::*;
    use crate::{
        redact::{Redactor, Rules},
        traffic::{RequestHead, ResponseHead},
    };

    /// Waits, when it looks at a message, until somebody else looks at one as well.
    struct Looks {
        looking: Mutex<u32>,
        more: Condvar,
    }

    impl Hide for Looks {
        fn is_clean(&self, _: &Event<'_>) -> bool {
            *lock(&self.looking) += 1;
            self.more.notify_all();
            let alone = |looking: &mut u32| *looking < 2;
            let wait = self.more.wait_timeout_while(lock(&self.looking), Duration::from_secs(20), alone);
            !wait.unwrap().1.timed_out()
        }

        fn message<'a>(&mut self, _: Direction, _: &'a [u8]) -> Cow<'a, [u8]> {
            panic!("one waited for the other")
        }
    }

    #[derive(Default)]
    struct Nowhere;

    impl Sink for Nowhere {
        fn write(&mut self, _: &[Event<'_>]) -> io::Result<()> {
            Ok(())
        }
    }

    fn message(text: &'static str) -> Event<'static> {
        event(Direction::ToServer, Lane(0), Payload::Message(Cow::Borrowed(text.as_bytes())))
    }

    #[test]
    fn clean_messages_do_not_wait_for_each_other() {
        let looks = Looks { looking: Mutex::new(0), more: Condvar::new() };
        let recorder = Recorder::new(Nowhere, Box::new(looks), false);
        thread::scope(|scope| {
            let recorded = [(); 2].map(|()| {
                scope.spawn(|| {
                    recorder.record(&mut Room::default(), || 1, |events| events.push(message("clean")))
                })
            });
            for recorded in recorded {
                assert!(matches!(recorded.join().unwrap(), Tapped::Pass));
            }
        });
    }

    #[test]
    fn what_is_unclean_is_changed_and_what_follows_it_is_looked_at_again() {
        let hide = Box::new(Redactor::new(&Rules::default()));
        let recorder = Recorder::new(Nowhere, hide, false);
        let mut events = vec![
            message(r#"{"note":"hunter2hunter2"}"#),
            message(r#"{"password":"hunter2hunter2"}"#),
            message(r#"{"note":"hunter2hunter2"}"#),
        ];
        recorder.hide(&mut events);
        let texts = events.iter().map(|event| match &event.payload {
            Payload::Message(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            payload => panic!("{payload:?}"),
        });
        let redacted = "<redacted:password-1>";
        assert_eq!(
            texts.collect::<Vec<_>>(),
            [
                r#"{"note":"hunter2hunter2"}"#.to_owned(),
                format!("{{\"password\":\"{redacted}\"}}"),
                format!("{{\"note\":\"{redacted}\"}}"),
            ]
        );
    }

    #[test]
    fn what_carries_messages_is_missing_as_well_and_ends_are_not() {
        struct Full;
        impl Sink for Full {
            fn write(&mut self, _: &[Event<'_>]) -> io::Result<()> {
                Err(io::ErrorKind::StorageFull.into())
            }
        }
        let recorder = Recorder::new(Full, Box::new(()), false);
        let write = |payloads: Vec<Payload<'static>>| {
            let fill = |events: &mut Vec<Event<'_>>| {
                events
                    .extend(payloads.into_iter().map(|payload| event(Direction::ToServer, Lane(1), payload)));
            };
            recorder.record(&mut Room::default(), || 0, fill);
            lock(&recorder.writer).as_ref().unwrap().lost
        };
        let head = || {
            let (method, target, headers) = (b"GET"[..].into(), b"/mcp"[..].into(), Vec::new());
            Payload::Request(RequestHead { method, target, headers })
        };
        assert_eq!(write(vec![Payload::Closed]), 0);
        assert_eq!(write(vec![head()]), 1);
        assert_eq!(write(vec![head(), message("asked").payload]), 2);
        let accepted = Payload::Response(ResponseHead { status: 202, headers: Vec::new() });
        assert_eq!(write(vec![accepted]), 2);
        assert_eq!(write(vec![message("a").payload, message("b").payload, Payload::Closed]), 4);
    }

    #[test]
    fn what_comes_behind_a_fault_in_cutting_the_stream_is_missing_as_well() {
        let recorder = Recorder::new(Nowhere, Box::new(()), false);
        let tapped = recorder.record(
            &mut Room::default(),
            || 2,
            |_| assert!(recorder.now() > Micros::MAX - 1, "a test's own"),
        );
        assert!(matches!(tapped, Tapped::PassUnwritten(_)));
        let tapped = recorder.record(&mut Room::default(), || 1, |events| events.push(message("clean")));
        assert!(matches!(tapped, Tapped::Pass));
        assert_eq!(lock(&recorder.writer).as_ref().unwrap().lost, 3);
    }

    #[test]
    fn room_for_events_is_used_again() {
        let text = b"a line".to_vec();
        let mut room = Room(Vec::with_capacity(10));
        let at = room.0.as_ptr().cast::<u8>();
        {
            let mut events: Vec<Event<'_>> = mem::take(&mut room.0);
            events.push(event(Direction::ToServer, Lane(0), Payload::Message(Cow::Borrowed(&text))));
            assert_eq!(events.as_ptr().cast(), at);
            room.give_back(events);
        }
        assert_eq!((room.0.len(), room.0.as_ptr().cast(), room.0.capacity()), (0, at, 10));
        let mut large = Room::default();
        large.give_back(Vec::with_capacity(5000));
        assert_eq!(large.0.capacity(), 0);
    }
}
