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
    /// How much of the answer comes; none: not even the head of a response that is nothing but the answer.
    pub bytes: Option<usize>,
    pub end: StreamEnd,
    /// A head that is held back.
    head: Option<Output>,
    is_broken: bool,
}

impl Breaking {
    pub(super) const fn new(lane: Lane, bytes: Option<usize>, end: StreamEnd) -> Self {
        Self { lane, bytes, end, head: None, is_broken: false }
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
        if self.bytes.is_none() && matches!(&output, Output::Head { head, .. } if !head.stream) {
            self.head = Some(output);
            return;
        }
        let is_end = matches!(output, Output::EndLane { .. });
        if !is_end && !output.is_response() {
            out.extend(self.head.take().map(Step::Do));
            return out.push(Step::Do(output));
        }
        self.is_broken = true;
        let mut partial = framed(&output).unwrap_or_default();
        partial.truncate(self.bytes.unwrap_or_default());
        out.push(Step::Do(Output::EndLane { lane: self.lane, partial, end: Some(self.end) }));
    }
}
