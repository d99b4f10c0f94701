//! What the faults share that break a connection off in the answer's place.

use super::framing::framed;
use crate::{
    cassette::model::StreamEnd,
    fault::{
        Effect,
        step::{Output, Step},
    },
    traffic::Lane,
};

/// Breaks off where the answer would come.
#[derive(Debug)]
pub(super) struct Breaking {
    pub lane: Lane,
    /// How much of the answer comes; none: not even the head of a response.
    pub bytes: Option<usize>,
    pub end: StreamEnd,
    is_broken: bool,
}

impl Breaking {
    pub(super) const fn new(lane: Lane, bytes: Option<usize>, end: StreamEnd) -> Self {
        Self { lane, bytes, end, is_broken: false }
    }
}

impl Effect for Breaking {
    fn pass(&mut self, output: Output, out: &mut Vec<Step>) {
        if output.lane() != self.lane {
            return out.push(Step::Do(output));
        }
        if self.is_broken {
            return;
        }
        let is_head = self.bytes.is_none() && matches!(output, Output::Head { .. });
        let is_end = matches!(output, Output::EndLane { .. });
        if !is_head && !is_end && !output.is_response() {
            return out.push(Step::Do(output));
        }
        self.is_broken = true;
        let mut partial = framed(&output).unwrap_or_default();
        partial.truncate(self.bytes.unwrap_or_default());
        out.push(Step::Do(Output::EndLane { lane: self.lane, partial, end: Some(self.end) }));
    }
}
