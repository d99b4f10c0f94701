//! Speaking in the server's place, on whatever transport.

use std::borrow::Cow;

use crate::{
    fault::{
        Target,
        step::{Headers, Output, ResponseHead, Step},
    },
    traffic::{Lane, SseEvent},
};

/// A JSON-RPC message as the whole answer; over HTTP with this status.
pub(super) fn message(of: &Target<'_>, status: u16, bytes: Vec<u8>) -> Vec<Step> {
    if !of.is_http {
        return vec![Step::Do(Output::Send { lane: of.lane, bytes, apart: false })];
    }
    if of.post.is_none() {
        return response(of, status, typed("application/json"), bytes);
    }
    [accepted(of), vec![Step::Do(Output::Event { lane: of.lane, event: event(bytes) })]].concat()
}

/// Over HTTP+SSE what carried a request is accepted, whatever comes of it; elsewhere nothing is said.
pub(super) fn accepted(of: &Target<'_>) -> Vec<Step> {
    let accept = |post| response_on(post, 202, Headers::new(), b"Accepted".into());
    of.post.map(accept).unwrap_or_default()
}

/// A message as an event.
pub(super) fn event(bytes: Vec<u8>) -> SseEvent<'static> {
    SseEvent { event: Some(Cow::Borrowed(b"message")), data: Cow::Owned(bytes), ..SseEvent::default() }
}

/// An HTTP response with a body that is no message.
pub(super) fn response(of: &Target<'_>, status: u16, headers: Headers, body: Vec<u8>) -> Vec<Step> {
    response_on(of.post.unwrap_or(of.lane), status, headers, body)
}

/// The same on a lane.
pub(in crate::fault) fn response_on(lane: Lane, status: u16, headers: Headers, body: Vec<u8>) -> Vec<Step> {
    let mut steps =
        vec![Step::Do(Output::Head { lane, head: ResponseHead { status, headers, stream: false } })];
    if !body.is_empty() {
        steps.push(Step::Do(Output::Body { lane, bytes: body }));
    }
    steps.push(Step::Do(Output::EndLane { lane, partial: Vec::new(), end: None }));
    steps
}

/// A content type.
pub(in crate::fault) fn typed(content_type: &'static str) -> Headers {
    vec![("content-type".into(), Cow::Borrowed(content_type.as_bytes()))]
}
