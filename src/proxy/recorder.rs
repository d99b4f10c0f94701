//! What every recording front writes with: events are cleaned, written before they are passed on, and counted where
//! they could not be.

use std::{
    borrow::Cow,
    io, mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use super::lock;
use crate::{
    redact::Redactor,
    store::Journal,
    traffic::{Direction, Event, Headers, Lane, Micros, Payload},
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

impl<S: Sink + ?Sized> Sink for Box<S> {
    fn write(&mut self, events: &[Event<'_>]) -> io::Result<()> {
        (**self).write(events)
    }
}

impl Sink for Journal {
    fn write(&mut self, events: &[Event<'_>]) -> io::Result<()> {
        Self::write(self, events)
    }
}

/// What is taken out of what passed before it is written; the traffic itself stays as it is. What comes back borrowed
/// has nothing in it that is taken out.
pub trait Hide: Send {
    /// The message as it may be written.
    fn message<'a>(&mut self, direction: Direction, bytes: &'a [u8]) -> Cow<'a, [u8]>;

    /// The value of a header as it may be written; the name is in lower case.
    fn header<'a>(&mut self, _name: &[u8], value: &'a [u8]) -> Cow<'a, [u8]> {
        self.message(Direction::ToServer, value)
    }

    /// The target of a request, path and query, as it may be written.
    fn target<'a>(&mut self, target: &'a [u8]) -> Cow<'a, [u8]> {
        self.message(Direction::ToServer, target)
    }

    /// Takes out of an event, wherever in it it stands.
    fn event(&mut self, event: &mut Event<'_>) {
        let direction = event.direction;
        match &mut event.payload {
            Payload::Message(bytes) | Payload::Partial(bytes) | Payload::Body(bytes) => {
                renew(bytes, |bytes| self.message(direction, bytes));
            }
            Payload::SseEvent(sent) => renew(&mut sent.data, |bytes| self.message(direction, bytes)),
            Payload::Oversize(measured) => {
                for end in [&mut measured.head, &mut measured.tail] {
                    if let Cow::Owned(hidden) = self.message(direction, end) {
                        *end = hidden;
                    }
                }
            }
            Payload::Request(head) => {
                renew(&mut head.target, |target| self.target(target));
                hide_headers(self, &mut head.headers);
            }
            Payload::Response(head) => hide_headers(self, &mut head.headers),
            Payload::Closed | Payload::Broken { .. } | Payload::Exit(_) | Payload::Gap { .. } => {}
        }
    }
}

fn hide_headers<H: Hide + ?Sized>(hide: &mut H, headers: &mut Headers<'_>) {
    for (name, value) in headers {
        let lower = match name.iter().any(u8::is_ascii_uppercase) {
            true => Cow::Owned(name.to_ascii_lowercase()),
            false => Cow::Borrowed(&**name),
        };
        renew(value, |value| hide.header(&lower, value));
    }
}

/// Replaces bytes that `hide` changes.
fn renew(bytes: &mut Cow<'_, [u8]>, hide: impl for<'a> FnOnce(&'a [u8]) -> Cow<'a, [u8]>) {
    if let Cow::Owned(hidden) = hide(bytes) {
        *bytes = Cow::Owned(hidden);
    }
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

    fn header<'a>(&mut self, name: &[u8], value: &'a [u8]) -> Cow<'a, [u8]> {
        match self.is_clean_header(name, value) {
            true => Cow::Borrowed(value),
            false => {
                let name = String::from_utf8_lossy(name);
                as_text(value, |text| self.header_value(&name, text))
            }
        }
    }

    fn target<'a>(&mut self, target: &'a [u8]) -> Cow<'a, [u8]> {
        match self.is_clean_url(target) {
            true => Cow::Borrowed(target),
            false => as_text(target, |text| self.url(text)),
        }
    }
}

/// Bytes of a head as the text that they are in ISO-8859-1, and back.
fn as_text<'a>(bytes: &'a [u8], hide: impl FnOnce(&str) -> Cow<'_, str>) -> Cow<'a, [u8]> {
    // Nearly all of them are ASCII, which is the same in UTF-8.
    let ascii = std::str::from_utf8(bytes).ok().filter(|text| text.is_ascii());
    let text = match ascii {
        Some(text) => Cow::Borrowed(text),
        None => Cow::Owned(bytes.iter().copied().map(char::from).collect()),
    };
    match hide(&text) {
        Cow::Owned(hidden) if hidden != text => {
            Cow::Owned(hidden.chars().map(|char| u8::try_from(char).unwrap_or(b'?')).collect())
        }
        _ => Cow::Borrowed(bytes),
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
/// What passes at one time is made events of side by side. To hide and to write are two locks, so that one's message is
/// looked at while another's is written. Nothing goes on before it is written, so no peer can react to what is not in
/// the sink, whose order is that of writing.
pub(super) struct Recorder<S> {
    start: Instant,
    hide: Mutex<Box<dyn Hide>>,
    /// None once it is finished.
    writer: Mutex<Option<Writer<S>>>,
    /// What was tapped could not even be looked at: from there on messages are counted and nothing more.
    is_broken: AtomicBool,
}

struct Writer<S> {
    sink: S,
    is_fatal: bool,
    has_failed: bool,
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
        let writer = Writer { sink, is_fatal, has_failed: false, missed: 0, lost: 0 };
        Self {
            start: Instant::now(),
            hide: Mutex::new(hide),
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
    /// these and all later messages, of which there are so many, and not the session.
    pub(super) fn record<'a>(
        &self,
        room: &mut Room,
        messages: impl Fn() -> u64,
        fill: impl FnOnce(&mut Vec<Event<'a>>),
    ) -> Tapped {
        let mut events: Vec<Event<'a>> = mem::take(&mut room.0);
        let is_whole = !self.is_broken.load(Ordering::Relaxed)
            && self.survives(|| {
                fill(&mut events);
                let mut hide = lock(&self.hide);
                events.iter_mut().for_each(|event| hide.event(event));
            });
        let mut writer = lock(&self.writer);
        let Some(writer) = &mut *writer else { return Tapped::Over };
        let mut tapped = None;
        let is_tried = is_whole && self.survives(|| tapped = Some(writer.write(self.now(), &mut events)));
        match tapped {
            Some(tapped) if is_tried => {
                room.give_back(events);
                tapped
            }
            _ => writer.miss(messages(), io::Error::other("a fault in tapedeck itself")),
        }
    }

    /// Whether it can be done. After a panic what cuts the stream may have lost its place, so no later message can be
    /// trusted.
    fn survives(&self, what: impl FnOnce()) -> bool {
        let is_done = catch_unwind(AssertUnwindSafe(what)).is_ok();
        if !is_done {
            self.is_broken.store(true, Ordering::Relaxed);
        }
        is_done
    }
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
                self.miss(messages, error)
            }
        }
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

#[cfg(test)]
mod tests {
    use super::*;

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
