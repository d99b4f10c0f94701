//! What the bridge records: the client's lines, each with what came as its response on a lane of its own.

use std::{sync::Mutex, time::Instant};

use super::super::{
    lock,
    recorder::{Hide, Recorder, Sink, Tapped, hidden},
};
use crate::{
    traffic::{Direction, Event, Lane, Micros, Payload},
    wire::lines::Oversize,
};

/// What came on no line's own response.
pub(super) const COMMON: Lane = Lane(0);

/// How much is kept of an unfinished line over the limit.
const EDGE: usize = 4 << 10;

/// A line, and the lane it belongs to.
pub(super) type Said = (Lane, Vec<u8>);

/// The recording.
pub(super) struct Tape<S> {
    start: Instant,
    max_message: usize,
    recorder: Mutex<Option<Recorder<S>>>,
}

impl<S: Sink> Tape<S> {
    pub(super) fn new(sink: S, hide: Box<dyn Hide>, max_message: usize, is_fatal: bool) -> Self {
        let recorder = Mutex::new(Some(Recorder::new(sink, hide, is_fatal)));
        Self { start: Instant::now(), max_message, recorder }
    }

    /// Writes lines, which have no line ends any more, before they go on.
    pub(super) fn lines<'a>(
        &self,
        direction: Direction,
        lines: impl ExactSizeIterator<Item = (Lane, &'a [u8])>,
    ) -> Tapped {
        let count = lines.len() as u64;
        self.write(count, |at, hide, events| {
            events.extend(lines.map(|(lane, line)| {
                let payload = if line.len() <= self.max_message {
                    Payload::Message(hide.message(direction, line))
                } else {
                    Payload::Oversize(hidden(hide, direction, &Oversize::measure(line)))
                };
                Event { at, direction, lane, payload }
            }));
        })
    }

    /// Writes that a side closed its stream, and what stood there behind the last line end.
    pub(super) fn closed(&self, direction: Direction, rest: Option<&Said>) -> Tapped {
        self.write(0, |at, hide, events| {
            if let Some((lane, rest)) = rest {
                let rest = if rest.len() <= self.max_message { rest } else { &rest[..EDGE.min(rest.len())] };
                let payload = Payload::Partial(hide.message(direction, rest));
                events.push(Event { at, direction, lane: *lane, payload });
            }
            events.push(Event { at, direction, lane: COMMON, payload: Payload::Closed });
        })
    }

    /// Writes the last event and gives the sink back with the number of messages it did not take. From now on
    /// nothing passes.
    pub(super) fn finish(&self, last: Payload<'static>) -> Option<(S, u64)> {
        let recorder = lock(&self.recorder).take()?;
        Some(recorder.finish(self.now(), Some(last)))
    }

    fn now(&self) -> Micros {
        u64::try_from(self.start.elapsed().as_micros()).unwrap_or(Micros::MAX)
    }

    fn write<'a>(
        &self,
        messages: u64,
        fill: impl FnOnce(Micros, &mut dyn Hide, &mut Vec<Event<'a>>),
    ) -> Tapped {
        let mut recorder = lock(&self.recorder);
        let Some(recorder) = &mut *recorder else { return Tapped::Over };
        let at = self.now();
        recorder.record(at, || messages, |hide, events| fill(at, hide, events))
    }
}
