//! What happens on a lane, held until it is written.

use std::borrow::Cow;

use hyper::{
    Method, StatusCode,
    body::Bytes,
    header::{HeaderName, HeaderValue},
};

use super::super::recorder::{Hide, hidden};
use crate::{
    traffic::{Direction, Headers, Payload, RequestHead, ResponseHead},
    wire::{
        jsonrpc::{Kind, Message},
        lines::Oversize,
        sse::SseEvent,
    },
};

/// Headers as they are recorded.
pub(super) type Heads = Vec<(HeaderName, HeaderValue)>;

/// Something that happened.
pub(super) enum Item {
    Request(Method, Bytes, Heads),
    /// A message, or once that is known [`OtherBody`](Self::OtherBody).
    RequestBody(Vec<u8>),
    /// A request's body that is no message.
    OtherBody(Vec<u8>),
    Response(StatusCode, Heads),
    ResponseBody(Vec<u8>),
    Event(SseEvent<'static>),
    Oversize(Direction, Oversize),
    /// A body or an event that had begun when its stream ended.
    Partial(Direction, Vec<u8>),
    /// The client's connection ended before the response did.
    ClientClosed,
    /// The response is whole.
    End,
    /// The server cut the response off, or never began it.
    Broken {
        reset: bool,
    },
}

impl Item {
    /// A body that cannot be read: its size and hash, and none of its bytes, for there may be secrets in them.
    pub(super) fn unreadable(direction: Direction, measured: Oversize) -> Self {
        Self::Oversize(direction, Oversize { head: Vec::new(), tail: Vec::new(), ..measured })
    }

    pub(super) const fn is_message(&self) -> bool {
        matches!(
            self,
            Self::RequestBody(_)
                | Self::OtherBody(_)
                | Self::ResponseBody(_)
                | Self::Event(_)
                | Self::Oversize(..)
        )
    }

    /// Which way it went, and what it is, as it may be written.
    pub(super) fn payload(&self, hide: &mut dyn Hide) -> (Direction, Payload<'_>) {
        match self {
            Self::Request(method, target, head) => {
                let request = RequestHead {
                    method: Cow::Borrowed(method.as_str().as_bytes()),
                    target: hide.target(target),
                    headers: headers(hide, head),
                };
                (Direction::ToServer, Payload::Request(request))
            }
            Self::RequestBody(body) => {
                (Direction::ToServer, Payload::Message(hide.message(Direction::ToServer, body)))
            }
            Self::OtherBody(body) => {
                (Direction::ToServer, Payload::Body(hide.message(Direction::ToServer, body)))
            }
            Self::Response(status, head) => {
                let response = ResponseHead { status: status.as_u16(), headers: headers(hide, head) };
                (Direction::ToClient, Payload::Response(response))
            }
            Self::ResponseBody(body) => (Direction::ToClient, whole(hide, body)),
            Self::Event(event) => {
                let event = SseEvent {
                    id: event.id.as_deref().map(Cow::Borrowed),
                    event: event.event.as_deref().map(Cow::Borrowed),
                    retry: event.retry,
                    data: hide.message(Direction::ToClient, &event.data),
                };
                (Direction::ToClient, Payload::SseEvent(event))
            }
            Self::Oversize(direction, measured) => {
                (*direction, Payload::Oversize(hidden(hide, *direction, measured)))
            }
            Self::Partial(direction, bytes) => {
                (*direction, Payload::Partial(hide.message(*direction, bytes)))
            }
            Self::ClientClosed => (Direction::ToServer, Payload::Closed),
            Self::End => (Direction::ToClient, Payload::Closed),
            Self::Broken { reset } => (Direction::ToClient, Payload::Broken { reset: *reset }),
        }
    }
}

/// A response's body that came whole: a message, or anything else.
fn whole<'a>(hide: &mut dyn Hide, body: &'a [u8]) -> Payload<'a> {
    let is_message = Message::read(body).kind != Kind::Noise;
    let body = hide.message(Direction::ToClient, body);
    if is_message { Payload::Message(body) } else { Payload::Body(body) }
}

fn headers<'a>(hide: &mut dyn Hide, headers: &'a Heads) -> Headers<'a> {
    let each = headers.iter().map(|(name, value)| {
        (Cow::Borrowed(name.as_str().as_bytes()), hide.header(name.as_str(), value.as_bytes()))
    });
    each.collect()
}
