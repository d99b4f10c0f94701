//! Responses made of [`Output`]s, by replays and by faults: what goes to a client over HTTP, and when.
//!
//! - `body`: a response's body on its way
//! - `plain`: responses that are whole, for a client that is answered directly

mod body;
pub(super) mod plain;

use std::{
    borrow::Cow,
    collections::VecDeque,
    future::poll_fn,
    ops::ControlFlow,
    sync::Arc,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use hyper::{
    HeaderMap, Response, StatusCode,
    body::Bytes,
    ext::ReasonPhrase,
    header::{CONTENT_TYPE, HeaderName, HeaderValue},
    http::response,
};
use tokio::{
    sync::{Notify, mpsc},
    time::{sleep_until, timeout_at},
};

pub(super) use self::body::{Cut, Flow, ResponseBody};
use crate::{
    cassette::model::StreamEnd,
    fault::step::{Output, ResponseHead},
    traffic::Lane,
    transport::http::socket::Control,
    wire::sse,
};

/// A part of a response.
pub(super) enum Piece {
    Head {
        head: response::Parts,
        /// Events follow.
        stream: bool,
    },
    /// `goes_on`: more of the same message follows.
    Data {
        bytes: Bytes,
        goes_on: bool,
    },
    /// What stands behind the last byte; only the end follows.
    Trailers(HeaderMap),
    /// With the end of the response our side of the connection ends.
    HalfClose,
    End {
        end: Option<StreamEnd>,
        partial: Vec<u8>,
    },
}

impl Piece {
    pub(super) const fn whole(bytes: Bytes) -> Self {
        Self::Data { bytes, goes_on: false }
    }

    /// Whether a message is not whole with it: more of it follows, or all.
    pub(super) const fn goes_on(&self) -> bool {
        matches!(self, Self::Data { goes_on: true, .. } | Self::Head { stream: false, .. })
    }

    /// What an output is over HTTP, and on which lane; those of stdio come back.
    pub(super) fn of(output: Output) -> Result<(Lane, Self), Output> {
        Ok(match output {
            Output::Head { lane, head } => (lane, Self::Head { stream: head.stream, head: parts(head) }),
            Output::Raw { lane, bytes, goes_on } => (lane, Self::Data { bytes: bytes.into(), goes_on }),
            Output::Event { lane, event } => (lane, Self::whole(sse::encode(&event).into())),
            Output::Body { lane, bytes } => (lane, Self::whole(bytes.into())),
            Output::HalfClose { lane } => (lane, Self::HalfClose),
            Output::EndLane { lane, partial, end } => (lane, Self::End { end, partial }),
            output => return Err(output),
        })
    }
}

/// The head of a response. What cannot stand in one is left out; the loaders let nothing of that kind pass.
fn parts(head: ResponseHead) -> response::Parts {
    let (mut parts, ()) = Response::new(()).into_parts();
    parts.status = StatusCode::from_u16(head.status).unwrap_or(StatusCode::OK);
    if parts.status.canonical_reason().is_none() {
        // hyper would make one up.
        parts.extensions.insert(ReasonPhrase::from_static(b""));
    }
    for (name, value) in head.headers {
        let value = HeaderValue::from_maybe_shared(match value {
            Cow::Borrowed(value) => Bytes::from_static(value),
            Cow::Owned(value) => Bytes::from(value),
        });
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name.as_bytes()), value) {
            parts.headers.append(name, value);
        }
    }
    parts
}

/// What comes of a request.
pub(super) enum Reply {
    /// A response that is whole already.
    Whole(response::Parts, Bytes),
    /// One that is under way.
    Passing(Passing),
}

/// A response that is under way.
pub(super) struct Passing {
    /// What has come already.
    pub(super) ahead: VecDeque<Piece>,
    /// What is still to come; none where all has come.
    pub(super) pieces: Option<mpsc::UnboundedReceiver<Piece>>,
    /// Tells when the client leaves.
    pub(super) place: Place,
    /// What is told of what has gone, where somebody wants to know.
    pub(super) flow: Option<Arc<Flow>>,
    /// A stream that waits says so with comments.
    pub(super) keeps_alive: bool,
}

impl Passing {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Piece>> {
        match (self.ahead.pop_front(), &mut self.pieces) {
            (None, Some(pieces)) => pieces.poll_recv(cx),
            (piece, _) => Poll::Ready(piece),
        }
    }
}

/// Who is told that a client has left.
pub(super) trait Leaves: Send + Sync {
    /// The client of a lane has left before its response had ended.
    fn left(&self, lane: Lane);

    /// Whether what was recorded with a wait between may come at one and the same real time.
    fn may_crowd(&self) -> bool {
        false
    }
}

/// A lane, until its response has ended or its client has left.
pub(super) struct Place {
    of: Arc<dyn Leaves>,
    lane: Lane,
    has_ended: bool,
}

impl Place {
    pub(super) fn new(of: Arc<dyn Leaves>, lane: Lane) -> Self {
        Self { of, lane, has_ended: false }
    }

    pub(super) const fn lane(&self) -> Lane {
        self.lane
    }

    /// See [`Leaves::may_crowd`].
    pub(super) fn may_crowd(&self) -> bool {
        self.of.may_crowd()
    }

    /// The response is whole: that its client leaves tells nothing any more.
    pub(super) const fn ends(&mut self) {
        self.has_ended = true;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.has_ended {
            self.of.left(self.lane);
        }
    }
}

/// Gives the client its response, as soon as that begins.
///
/// # Errors
/// When it ends before it begins: the connection is to be cut off.
pub(super) async fn respond(reply: Reply, control: &Arc<Control>) -> Result<Response<ResponseBody>, Cut> {
    let mut passing = match reply {
        Reply::Whole(head, body) => return Ok(Response::from_parts(head, ResponseBody::Whole(Some(body)))),
        Reply::Passing(passing) => passing,
    };
    match poll_fn(|cx| passing.poll_next(cx)).await {
        Some(Piece::Head { head, stream }) => {
            // What is whole by now has a length.
            passing.ahead.push_front(Piece::Head { head, stream });
            while let Some(Ok(piece)) = passing.pieces.as_mut().map(mpsc::UnboundedReceiver::try_recv) {
                passing.ahead.push_back(piece);
            }
            let ahead = match whole(std::mem::take(&mut passing.ahead)) {
                Ok((head, body)) => {
                    passing.place.ends();
                    return Ok(Response::from_parts(head, ResponseBody::Whole(Some(body))));
                }
                Err(ahead) => ahead,
            };
            passing.ahead = ahead;
            let Some(Piece::Head { head, .. }) = passing.ahead.pop_front() else {
                unreachable!("it was put there")
            };
            let body = ResponseBody::passing(passing, Arc::clone(control), stream);
            Ok(Response::from_parts(head, body))
        }
        other => {
            passing.place.ends();
            let reset = matches!(other, Some(Piece::End { end: Some(StreamEnd::Reset), .. }));
            poll_fn(|cx| control.poll_written(cx)).await;
            if reset {
                control.reset_at_end();
            }
            Err(Cut)
        }
    }
}

/// Head and body of a response that has ended in good order already and is no stream; else the pieces again.
pub(super) fn whole(mut pieces: VecDeque<Piece>) -> Result<(response::Parts, Bytes), VecDeque<Piece>> {
    let is_end = |piece: &Piece| matches!(piece, Piece::End { end: None, partial } if partial.is_empty());
    let is_whole = match pieces.make_contiguous() {
        [Piece::Head { stream: false, .. }, last] => is_end(last),
        [Piece::Head { stream: false, .. }, Piece::Data { .. }, last] => is_end(last),
        _ => false,
    };
    match pieces.pop_front() {
        Some(Piece::Head { head, .. }) if is_whole => match pieces.pop_front() {
            Some(Piece::Data { bytes, .. }) => Ok((head, bytes)),
            _ => Ok((head, Bytes::new())),
        },
        first => {
            pieces.extend(first);
            pieces.rotate_right(1.min(pieces.len()));
            Err(pieces)
        }
    }
}

/// A response of our own.
pub(super) fn own(status: StatusCode, text: String) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::Whole(Some(Bytes::from(text))));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// Keeps the time of somebody who tells when something is due, until it says that nothing is any more; `changed` is told
/// when that may be another time.
pub(super) async fn keep_time(
    changed: &Notify,
    mut wakes: impl FnMut() -> ControlFlow<(), Option<Instant>>,
    mut is_due: impl FnMut(),
) {
    while let ControlFlow::Continue(due) = wakes() {
        let changed = changed.notified();
        match due {
            None => changed.await,
            Some(due) => {
                if timeout_at(due.into(), changed).await.is_err() {
                    // Timers have a millisecond's grain; what is kept time for has not.
                    sleep_until((due + Duration::from_micros(1)).into()).await;
                    is_due();
                }
            }
        }
    }
}
