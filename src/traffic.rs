//! The one vocabulary all else speaks: what happened on the wire, in order.
//!
//! A recorder's tap turns reads into [`Event`]s, the journal stores them, folding turns them into exchanges. Bytes
//! are the peers' own (after redaction); time is microseconds since the recording began.

use std::borrow::Cow;

use crate::wire::lines::Oversize;

pub use crate::wire::sse::SseEvent;

/// Microseconds since some start that the context names.
pub type Micros = u64;

/// Which way something travelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the client to the server.
    ToServer,
    /// From the server to the client.
    ToClient,
}

impl Direction {
    /// The other way.
    pub const fn reverse(self) -> Self {
        match self {
            Self::ToServer => Self::ToClient,
            Self::ToClient => Self::ToServer,
        }
    }
}

/// One ordered stream. On stdio there are two, one each way, and both are lane 0; on HTTP a request and its response
/// are one, numbered from 1. Of a client on stdio whose server is on HTTP ([`STDIO_TO_HTTP`]), each line and what came
/// as its response are one, numbered from 1, and what came on other streams is lane 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Lane(pub u32);

/// The transport of a session whose client is on stdio and whose server is on HTTP: what is recorded are the client's
/// lines.
pub const STDIO_TO_HTTP: &str = "stdio-http";

/// Something that happened, once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// When, in microseconds since the recording began.
    pub at: Micros,
    /// Which way.
    pub direction: Direction,
    /// On which stream.
    pub lane: Lane,
    /// What.
    pub payload: Payload<'a>,
}

/// What an [`Event`] tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload<'a> {
    /// A message or a line of noise, whole: a stdio line without its `\n` (a `\r` before it is part of it).
    Message(Cow<'a, [u8]>),
    /// What stood behind the last line end when the stream ended; what there was of a body, or of the lines of an event.
    Partial(Cow<'a, [u8]>),
    /// A message over `--max-message`: passed on, and recorded as what is known of it.
    Oversize(Oversize),
    /// The head of an HTTP request, which opens its lane.
    Request(RequestHead<'a>),
    /// The head of an HTTP response.
    Response(ResponseHead<'a>),
    /// One event of an event stream, also one without data.
    SseEvent(SseEvent<'a>),
    /// An HTTP body that is no JSON-RPC message: text, HTML, a metadata document.
    Body(Cow<'a, [u8]>),
    /// The sender closed this stream in good order.
    Closed,
    /// The sender cut this stream off before its end.
    Broken {
        /// By a reset of the connection; else by closing it.
        reset: bool,
    },
    /// The server's process ended.
    Exit(Exit),
    /// Recording failed here (disk full, say); so many messages are not in the journal.
    Gap {
        /// How many messages passed unrecorded.
        messages: u64,
    },
}

impl Event<'_> {
    /// The same, which borrows nothing.
    pub fn into_owned(self) -> Event<'static> {
        let Self { at, direction, lane, payload } = self;
        Event { at, direction, lane, payload: payload.into_owned() }
    }
}

impl Payload<'_> {
    fn into_owned(self) -> Payload<'static> {
        let owned = |bytes: Cow<'_, [u8]>| Cow::Owned(bytes.into_owned());
        let headers = |headers: Headers<'_>| -> Headers<'static> {
            headers.into_iter().map(|(name, value)| (owned(name), owned(value))).collect()
        };
        match self {
            Self::Message(bytes) => Payload::Message(owned(bytes)),
            Self::Partial(bytes) => Payload::Partial(owned(bytes)),
            Self::Body(bytes) => Payload::Body(owned(bytes)),
            Self::Oversize(measured) => Payload::Oversize(measured),
            Self::Request(head) => Payload::Request(RequestHead {
                method: owned(head.method),
                target: owned(head.target),
                headers: headers(head.headers),
            }),
            Self::Response(head) => {
                Payload::Response(ResponseHead { status: head.status, headers: headers(head.headers) })
            }
            Self::SseEvent(event) => Payload::SseEvent(event.into_owned()),
            Self::Closed => Payload::Closed,
            Self::Broken { reset } => Payload::Broken { reset },
            Self::Exit(exit) => Payload::Exit(exit),
            Self::Gap { messages } => Payload::Gap { messages },
        }
    }
}

/// Header names and values in order, as they were spelled; hop-by-hop ones are not among them.
pub type Headers<'a> = Vec<(Cow<'a, [u8]>, Cow<'a, [u8]>)>;

/// The head of an HTTP request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHead<'a> {
    /// The method, `POST` say.
    pub method: Cow<'a, [u8]>,
    /// Path and query, as sent.
    pub target: Cow<'a, [u8]>,
    /// The headers.
    pub headers: Headers<'a>,
}

/// The head of an HTTP response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseHead<'a> {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: Headers<'a>,
}

/// How a server's process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Exit status, or none where a signal ended it.
    pub status: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Whether it ended by itself: before its input was closed and not by a signal of ours.
    pub by_itself: bool,
}
