//! What every recording front writes with: events are cleaned, written before they are passed on, and counted where
//! they could not be.

use std::{
    borrow::Cow,
    io, mem,
    panic::{AssertUnwindSafe, catch_unwind},
};

use crate::{
    redact::Redactor,
    store::Journal,
    traffic::{Direction, Event, Lane, Micros, Payload},
    wire::lines::Oversize,
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

/// What is taken out of messages before they are written; the traffic itself stays as it is.
pub trait Hide: Send {
    /// The message as it may be written.
    fn message<'a>(&mut self, direction: Direction, bytes: &'a [u8]) -> Cow<'a, [u8]>;

    /// The value of a header as it may be written; the name is in lower case.
    fn header<'a>(&mut self, _name: &str, value: &'a [u8]) -> Cow<'a, [u8]> {
        self.message(Direction::ToServer, value)
    }

    /// The target of a request, path and query, as it may be written.
    fn target<'a>(&mut self, target: &'a [u8]) -> Cow<'a, [u8]> {
        self.message(Direction::ToServer, target)
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

    fn header<'a>(&mut self, name: &str, value: &'a [u8]) -> Cow<'a, [u8]> {
        match self.is_clean_header(name, value) {
            true => Cow::Borrowed(value),
            false => as_text(value, |text| self.header_value(name, text)),
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

/// What is known of a message over the limit, as it may be written.
pub(super) fn hidden(hide: &mut dyn Hide, direction: Direction, measured: &Oversize) -> Oversize {
    Oversize {
        head: hide.message(direction, &measured.head).into_owned(),
        tail: hide.message(direction, &measured.tail).into_owned(),
        ..*measured
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

/// Hides, writes, and counts what could not be written.
pub(super) struct Recorder<S> {
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
    /// Room for events, used again.
    room: Vec<Event<'static>>,
}

impl<S: Sink> Recorder<S> {
    pub(super) const fn new(sink: S, hide: Box<dyn Hide>, is_fatal: bool) -> Self {
        Self {
            sink,
            hide,
            is_fatal,
            has_failed: false,
            is_broken: false,
            missed: 0,
            lost: 0,
            room: Vec::new(),
        }
    }

    /// Writes the last event, and the gap before it. Gives the sink, and the number of messages it did not take.
    pub(super) fn finish(mut self, at: Micros, last: Option<Payload<'static>>) -> (S, u64) {
        if last.is_some() || self.missed > 0 {
            let last =
                last.map(|payload| Event { at, direction: Direction::ToClient, lane: Lane(0), payload });
            // Whether it can be told or not, what is missing is counted.
            let _ = self.write(at, |_, events| events.extend(last));
        }
        (self.sink, self.lost)
    }

    /// One write of all events that `fill` adds. A fault of ours costs the recording of these and all later messages,
    /// of which there are so many, and not the session.
    pub(super) fn record<'a>(
        &mut self,
        at: Micros,
        messages: impl Fn() -> u64,
        fill: impl FnOnce(&mut dyn Hide, &mut Vec<Event<'a>>),
    ) -> Tapped {
        if self.is_broken {
            return self.break_off(messages());
        }
        let write = AssertUnwindSafe(|| self.write(at, fill));
        catch_unwind(write).unwrap_or_else(|_| self.break_off(messages()))
    }

    fn write<'a>(&mut self, at: Micros, fill: impl FnOnce(&mut dyn Hide, &mut Vec<Event<'a>>)) -> Tapped {
        let mut events: Vec<Event<'a>> = mem::take(&mut self.room);
        if self.missed > 0 {
            let payload = Payload::Gap { messages: self.missed };
            events.push(Event { at, direction: Direction::ToClient, lane: Lane(0), payload });
        }
        fill(&mut *self.hide, &mut events);
        let outcome = self.sink.write(&events);
        let messages = || events.iter().filter(|event| is_message(&event.payload)).count() as u64;
        let missed = outcome.map_err(|error| (messages(), error));
        self.room = recycle(events);
        match missed {
            Ok(()) => {
                self.missed = 0;
                Tapped::Pass
            }
            Err((messages, error)) => self.miss(messages, error),
        }
    }

    /// After a panic. What cuts the stream may have lost its place, so no later message can be trusted.
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
    matches!(payload, Payload::Message(_) | Payload::Oversize(_) | Payload::SseEvent(_) | Payload::Body(_))
}

/// The same room for events that borrow from elsewhere; a very large one is given back.
fn recycle<'b>(mut events: Vec<Event<'_>>) -> Vec<Event<'b>> {
    events.clear();
    if events.capacity() > 4096 {
        return Vec::new();
    }
    events.into_iter().map(|_| -> Event<'b> { unreachable!("cleared") }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_for_events_is_used_again() {
        let text = b"a line".to_vec();
        let mut room: Vec<Event<'static>> = Vec::with_capacity(10);
        let at = room.as_ptr().cast::<u8>();
        {
            let mut events = recycle(mem::take(&mut room));
            let payload = Payload::Message(Cow::Borrowed(&text));
            events.push(Event { at: 0, direction: Direction::ToServer, lane: Lane(0), payload });
            assert_eq!(events.as_ptr().cast(), at);
            room = recycle(events);
        }
        assert_eq!((room.len(), room.as_ptr().cast(), room.capacity()), (0, at, 10));
        assert_eq!(recycle(Vec::with_capacity(5000)).capacity(), 0);
    }
}
