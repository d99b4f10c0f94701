//! What the bridge records: the client's lines, each with what came as its response on a lane of its own.

use std::borrow::Cow;

use super::super::{
    hide::Hide,
    recorder::{Recorder, Room, Sink, Tapped, event},
};
use crate::{
    traffic::{Direction, Event, Lane, Payload},
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
    max_message: usize,
    recorder: Recorder<S>,
}

impl<S: Sink> Tape<S> {
    pub(super) fn new(sink: S, hide: Box<dyn Hide>, max_message: usize, is_fatal: bool) -> Self {
        Self { max_message, recorder: Recorder::new(sink, hide, is_fatal) }
    }

    /// Writes lines, which have no line ends any more, before they go on.
    pub(super) fn lines<'a>(
        &self,
        direction: Direction,
        lines: impl ExactSizeIterator<Item = (Lane, &'a [u8])>,
    ) -> Tapped {
        let payload = |line| match line {
            line if <[u8]>::len(line) <= self.max_message => Payload::Message(Cow::Borrowed(line)),
            line => Payload::Oversize(Oversize::measure(line)),
        };
        self.write(lines.len() as u64, lines.map(|(lane, line)| event(direction, lane, payload(line))))
    }

    /// Writes that a side closed its stream, and what stood there behind the last line end.
    pub(super) fn closed(&self, direction: Direction, rest: Option<&Said>) -> Tapped {
        let rest = rest.map(|(lane, rest)| {
            let kept = if rest.len() <= self.max_message { rest.len() } else { EDGE.min(rest.len()) };
            event(direction, *lane, Payload::Partial(Cow::Borrowed(&rest[..kept])))
        });
        self.write(0, rest.into_iter().chain([event(direction, COMMON, Payload::Closed)]))
    }

    /// Writes the last event and gives the sink back with the number of messages it did not take. From now on
    /// nothing passes.
    pub(super) fn finish(&self, last: Payload<'static>) -> Option<(S, u64)> {
        self.recorder.finish(Some(last))
    }

    fn write<'a>(&self, messages: u64, events: impl Iterator<Item = Event<'a>>) -> Tapped {
        self.recorder.record(&mut Room::default(), || messages, |room| room.extend(events))
    }
}
