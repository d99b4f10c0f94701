//! What is done towards a client: the vocabulary of replays and faults.

use std::borrow::Cow;

use crate::{
    cassette::model::{End, StreamEnd},
    traffic::{Lane, Micros, SseEvent},
    wire::jsonrpc::{Kind, Message},
};

/// One thing that is done towards a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send one message.
    Send {
        /// The stream it goes on.
        lane: Lane,
        /// Its bytes, without a line end.
        bytes: Vec<u8>,
        /// It must not share a write with what was sent before it.
        apart: bool,
    },
    /// Begin an HTTP response.
    Head {
        /// The request's lane.
        lane: Lane,
        /// Its head.
        head: ResponseHead,
    },
    /// Send an event of an event stream.
    Event {
        /// The request's lane.
        lane: Lane,
        /// The event.
        event: SseEvent<'static>,
    },
    /// Send a body, whole.
    Body {
        /// The request's lane.
        lane: Lane,
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Send bytes that are neither line nor event nor whole body, as they stand.
    Raw {
        /// The stream they go on.
        lane: Lane,
        /// The bytes.
        bytes: Vec<u8>,
        /// More of the same message follows: nothing else may come between.
        goes_on: bool,
    },
    /// With the end of a response, end our side of its connection in good order; the client is still heard.
    HalfClose {
        /// The request's lane.
        lane: Lane,
    },
    /// End an HTTP response; on stdio, close the stream of lines.
    EndLane {
        /// The request's lane.
        lane: Lane,
        /// What is sent before that of a message or event that does not end.
        partial: Vec<u8>,
        /// How it ends where that is not in good order.
        end: Option<StreamEnd>,
    },
    /// End as a server ended.
    End {
        /// The pipe of the client that it served, or the request's lane.
        lane: Lane,
        /// How.
        end: End,
    },
    /// Say a line to the real server of a session, which begins with the first one.
    Upstream {
        /// Whom it is said for.
        lane: Lane,
        /// Which real server of the take.
        upstream: u32,
        /// The line, without its end.
        line: Vec<u8>,
    },
    /// Nothing more is said to a real server.
    EndUpstream {
        /// Whom it was there for.
        lane: Lane,
        /// Which.
        upstream: u32,
    },
}

/// Names in lower case and values, in order. Most are always the same.
pub type Headers = Vec<(Cow<'static, str>, Cow<'static, [u8]>)>;

/// The head of an HTTP response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResponseHead {
    /// The status.
    pub status: u16,
    /// Names in lower case and values, in order; those of framing are not among them.
    pub headers: Headers,
    /// Whether events follow; else one body at most.
    pub stream: bool,
}

impl ResponseHead {
    /// Says that a JSON-RPC message follows.
    pub(crate) fn is_json(&mut self) {
        self.headers.insert(0, ("content-type".into(), b"application/json".into()));
    }

    /// Says that events follow.
    pub(crate) fn is_events(&mut self) {
        self.headers.insert(0, ("content-type".into(), b"text/event-stream".into()));
    }
}

impl Output {
    /// Whom it is for.
    pub const fn lane(&self) -> Lane {
        match self {
            Self::Send { lane, .. }
            | Self::Head { lane, .. }
            | Self::Event { lane, .. }
            | Self::Body { lane, .. }
            | Self::Raw { lane, .. }
            | Self::HalfClose { lane }
            | Self::EndLane { lane, .. }
            | Self::End { lane, .. }
            | Self::Upstream { lane, .. }
            | Self::EndUpstream { lane, .. } => *lane,
        }
    }

    /// The text of the message it sends.
    pub fn text(&self) -> Option<&[u8]> {
        match self {
            Self::Send { bytes, .. } | Self::Body { bytes, .. } => Some(bytes),
            Self::Event { event, .. } => Some(&event.data),
            _ => None,
        }
    }

    /// The same with another text.
    #[must_use]
    pub fn with_text(self, text: Vec<u8>) -> Self {
        match self {
            Self::Send { lane, apart, .. } => Self::Send { lane, bytes: text, apart },
            Self::Body { lane, .. } => Self::Body { lane, bytes: text },
            Self::Event { lane, event } => {
                Self::Event { lane, event: SseEvent { data: Cow::Owned(text), ..event } }
            }
            other => other,
        }
    }

    /// What kind of message it sends.
    pub fn kind(&self) -> Option<Kind> {
        self.text().map(|text| Message::read(text).kind)
    }

    /// Whether it sends the response to a request.
    pub fn is_response(&self) -> bool {
        self.kind().is_some_and(Kind::is_response)
    }
}

/// Whether steps in a server's place say nothing, but that the request has come.
pub fn are_silent(steps: &[Step]) -> bool {
    steps.iter().all(|step| match step {
        Step::Do(Output::Head { head, .. }) => head.status == 202,
        Step::Do(Output::Body { .. } | Output::EndLane { end: None, .. }) => true,
        _ => false,
    })
}

/// One step of what becomes of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Do this.
    Do(Output),
    /// Nothing that follows is done before this time has passed.
    Wait(Micros),
    /// Nothing that follows is done before another answer has been sent to the client, or this time has passed.
    Yield(Micros),
}
