//! What goes into a replayer, and what comes out.

use crate::traffic::{Lane, Micros};

pub use crate::fault::step::{Headers, Output, ResponseHead};

/// What the replayer is told.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// A client that speaks in lines is there, and has said nothing yet: what a server says unasked goes to it. Where
    /// this is left out, its first line tells it.
    Opened {
        /// Its pipe.
        lane: Lane,
    },
    /// One message or line from a client that speaks in lines, without its line end.
    Message {
        /// The pipe it came on: one that was not heard of before is that of a further client.
        lane: Lane,
        /// Its bytes.
        bytes: &'a [u8],
    },
    /// One HTTP request: whole, or as much of it as the recorded server waited for, or as its client sends.
    Request {
        /// The lane of its response; no other request or pipe has it.
        lane: Lane,
        /// The request.
        request: &'a HttpRequest<'a>,
    },
    /// The client closed the connection before this response had ended, or no longer reads from its pipe.
    Left {
        /// The response's lane, or the pipe's.
        lane: Lane,
    },
    /// A client that speaks in lines closed its side of its pipe.
    Closed {
        /// The pipe.
        lane: Lane,
    },
    /// A real server said a line.
    Upstream {
        /// Which one.
        upstream: u32,
        /// The line, without its end.
        line: &'a [u8],
    },
    /// A real server says nothing more: it could not be reached, or has ended.
    UpstreamEnded {
        /// Which one.
        upstream: u32,
        /// Why requests are not answered, a sentence.
        why: &'a str,
    },
}

/// An HTTP request.
#[derive(Clone, Copy, Debug)]
pub struct HttpRequest<'a> {
    /// The method, `POST` say.
    pub method: &'a str,
    /// Path and query, without what named the take.
    pub target: &'a str,
    /// The origin by which the client calls us, such as `http://127.0.0.1:8000`, and the take behind it.
    pub origin: &'a str,
    /// Header names in lower case, and values, in order.
    pub headers: &'a [(&'a str, &'a [u8])],
    /// The body, as far as it has come.
    pub body: &'a [u8],
    /// Whether that is all of it.
    pub is_whole: bool,
    /// Whether it is the first one on its connection.
    pub opens_connection: bool,
}

impl<'a> HttpRequest<'a> {
    /// The first value of a header.
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        self.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }
}

/// What a request waits for that has come in part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wants {
    /// It can be answered.
    Nothing,
    /// So many bytes at least, before it can be answered or has to come whole.
    More(usize),
    /// All of it.
    All,
}

/// How the client goes on with a request that has come in part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Pace {
    /// Something of it has just come.
    Comes,
    /// Nothing more comes for a moment, or before something is said to it.
    Pauses,
    /// Nothing more comes for longer than a client takes from one piece to the next.
    Stops,
}

/// What makes session ids that nobody else has.
pub type Seed = [u8; 16];

/// How long nothing has to be sent on an event stream before a comment keeps it alive, for whoever serves it.
pub const KEEP_ALIVE: Micros = 15_000_000;
