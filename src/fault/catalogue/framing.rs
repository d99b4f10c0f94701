//! Messages as the bytes that carry them.

use crate::{
    fault::step::{Output, Step},
    traffic::Lane,
    wire::sse,
};

/// What a message is on the wire: a line, an event, a body; none of what is no message.
pub(in crate::fault) fn framed(output: &Output) -> Option<Vec<u8>> {
    match output {
        Output::Send { bytes, .. } => Some([bytes, &b"\n"[..]].concat()),
        Output::Event { event, .. } => Some(sse::encode(event)),
        Output::Body { bytes, .. } => Some(bytes.clone()),
        _ => None,
    }
}

/// A part of a message; `goes_on`: more of it follows.
pub(super) fn piece(lane: Lane, bytes: &[u8], goes_on: bool) -> Step {
    Step::Do(Output::Raw { lane, bytes: bytes.to_vec(), goes_on })
}
