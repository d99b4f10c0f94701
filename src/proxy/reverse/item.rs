//! What happens on a lane, held until it is written.

use std::{borrow::Cow, sync::Arc};

use hyper::Method;

use crate::{
    traffic::{Direction, Headers, Payload, RequestHead, ResponseHead},
    wire::{
        jsonrpc::{Kind, Message},
        lines::Oversize,
        sse::SseEvent,
    },
};

/// Headers as they are recorded: names in lower case, and values.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Heads {
    /// Each name and its value.
    bytes: Vec<u8>,
    /// Their lengths.
    lengths: Vec<(usize, usize)>,
}

impl Heads {
    pub(super) fn push(&mut self, name: &str, value: &[u8]) {
        if self.lengths.is_empty() {
            // What most of them need.
            self.lengths.reserve(8);
            self.bytes.reserve(256);
        }
        self.lengths.push((name.len(), value.len()));
        self.bytes.extend_from_slice(name.as_bytes());
        self.bytes.extend_from_slice(value);
    }

    /// The value of the first header with this name.
    pub(super) fn get(&self, name: &str) -> Option<&[u8]> {
        self.iter().find(|(known, _)| *known == name.as_bytes()).map(|(_, value)| value)
    }

    pub(super) fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], &[u8])> {
        let mut rest = &*self.bytes;
        self.lengths.iter().map(move |&(name_length, value_length)| {
            let (name, value);
            (name, rest) = rest.split_at(name_length);
            (value, rest) = rest.split_at(value_length);
            (name, value)
        })
    }
}

/// Something that happened.
pub(super) enum Item {
    Request(Method, Vec<u8>, Arc<Heads>),
    /// A message, or once that is known [`OtherBody`](Self::OtherBody).
    RequestBody(Vec<u8>),
    /// A request's body that is no message.
    OtherBody(Vec<u8>),
    Response(u16, Arc<Heads>),
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

    /// Which way it went, and what it is.
    pub(super) fn payload(&self) -> (Direction, Payload<'_>) {
        match self {
            Self::Request(method, target, head) => {
                let request = RequestHead {
                    method: Cow::Borrowed(method.as_str().as_bytes()),
                    target: Cow::Borrowed(target),
                    headers: headers(head),
                };
                (Direction::ToServer, Payload::Request(request))
            }
            Self::RequestBody(body) => (Direction::ToServer, Payload::Message(Cow::Borrowed(body))),
            Self::OtherBody(body) => (Direction::ToServer, Payload::Body(Cow::Borrowed(body))),
            Self::Response(status, head) => {
                let response = ResponseHead { status: *status, headers: headers(head) };
                (Direction::ToClient, Payload::Response(response))
            }
            Self::ResponseBody(body) => (Direction::ToClient, whole(body)),
            Self::Event(event) => {
                let event = SseEvent {
                    id: event.id.as_deref().map(Cow::Borrowed),
                    event: event.event.as_deref().map(Cow::Borrowed),
                    retry: event.retry,
                    data: Cow::Borrowed(&event.data),
                    no_data: event.no_data,
                };
                (Direction::ToClient, Payload::SseEvent(event))
            }
            Self::Oversize(direction, measured) => (*direction, Payload::Oversize(measured.clone())),
            Self::Partial(direction, bytes) => (*direction, Payload::Partial(Cow::Borrowed(bytes))),
            Self::ClientClosed => (Direction::ToServer, Payload::Closed),
            Self::End => (Direction::ToClient, Payload::Closed),
            Self::Broken { reset } => (Direction::ToClient, Payload::Broken { reset: *reset }),
        }
    }
}

/// A response's body that came whole: a message, or anything else.
fn whole(body: &[u8]) -> Payload<'_> {
    let is_message = Message::read(body).kind != Kind::Noise;
    let body = Cow::Borrowed(body);
    if is_message { Payload::Message(body) } else { Payload::Body(body) }
}

fn headers(heads: &Heads) -> Headers<'_> {
    heads.iter().map(|(name, value)| (Cow::Borrowed(name), Cow::Borrowed(value))).collect()
}
