//! From events to exchanges: folding a journal.
//!
//! Folding takes two passes over a journal. The first ([`Fold`]) files each message to its exchange and keeps only
//! skeletons: which message belongs where, and where it stands in the journal. The second reads the messages of one
//! exchange at a time and has them printed. So a recording of any length is folded in little memory.
//!
//! Which exchange a message belongs to:
//!
//! - A response answers the oldest unanswered request of its direction and id, by value and type (`7` is `7.0` and not
//!   `"7"`), one that was not cancelled first. Where no id is equal but one of another type is, it answers that.
//!   A second response to one id joins the first. With an id that nobody used, or none, it answers the last client
//!   message if that has no answer and nothing else is in flight; else it is a push.
//! - A progress notification belongs to the request with its token, also after the answer; one that names a
//!   `subscriptions/listen` request, to that; a cancel notification of the server's, to what it cancels.
//! - Anything else from the server belongs to the latest client request still in flight (a guess where there are
//!   several; cancelled and listening ones do not count); with none in flight it is a push.
//! - A client's response is the answer of its server request's item; anything else from the client begins an
//!   exchange.
//!
//! A second `initialize` in one journal begins a new session.
//!
//! Behind a gap the message that another one refers to may be missing, and one that is missing may have used an id or a
//! progress token again. So no response, of the client neither, and no notification belongs by its id to what came before
//! the gap, and one that names nothing that came behind is a push, or an exchange of the client's. Where each request has
//! a response of its own (over HTTP), that still tells whose it is; what comes as the response to a request that is
//! missing is a push. A response without its head answers nothing: neither its status is known nor what else it was. A
//! damaged place that was skipped is a gap of at least one message.
//!
//! A journal can go on with a session that the cassette has already, with what was asked of the real server in a replay:
//! its exchanges go behind that session's, but for the handshake, which stands there, and what was not answered, or only
//! by an error of ours.
//!
//! Over HTTP a lane says more than a message: see [`http`]. Where a client on stdio has a server on HTTP, what came as
//! the response to a line is filed with that, as there, and all else as on stdio.

mod behind;
mod carry;
mod compose;
mod drafts;
mod ends;
mod facts;
mod filing;
mod fold;
#[doc(hidden)]
pub mod fuzz;
mod http;
mod plan;
mod recorder;
mod requests;
mod splice;
mod state;
mod together;

pub use carry::Changes;
pub use drafts::Frames;
pub use facts::Facts;
pub use fold::{Fold, fold};
pub use plan::{Addition, Joined, Plan};
pub use recorder::Recorder;
pub use splice::{EMPTY, with_members};
pub use together::{PAUSE_MS, goes_on};

use crate::{
    cassette::{
        journal::{FramePlace, JournalHeader},
        model::{End, On, StreamEnd, Unanswered},
        spelling::Spelling,
    },
    traffic::Micros,
};

/// A folded journal: its sessions as skeletons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tape {
    /// Who recorded it.
    pub header: JournalHeader,
    /// Its sessions, in order; those in which nothing happened are left out.
    pub sessions: Vec<Session>,
    /// Whether the recorder ended in good order.
    pub is_whole: bool,
    /// Whether the recorder still runs. Folding does not know that: who opened the journal does.
    pub is_alive: bool,
    /// When the last thing happened in it, in milliseconds since 1970 UTC.
    pub ended_ms: u64,
}

impl Tape {
    /// Of a recorder that still runs only what the recordings of others depend on: it adds no session.
    pub fn of_alive(header: JournalHeader) -> Self {
        let ended_ms = header.started_ms;
        Self { header, sessions: Vec::new(), is_whole: false, is_alive: true, ended_ms }
    }
}

/// One session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Session {
    /// When it began, in milliseconds since 1970 UTC.
    pub at_ms: u64,
    /// Path and query of its endpoint, over HTTP; over HTTP+SSE, of its event stream.
    pub path: Option<Box<str>>,
    /// Whether it was held over HTTP+SSE.
    pub is_sse: bool,
    /// What its server called it: the value of its `mcp-session-id`, or the part of its endpoint's address that tells
    /// it from others.
    pub live_id: Option<Box<[u8]>>,
    /// What its messages say of the two sides.
    pub facts: Facts,
    /// How most of its messages are spelled.
    pub spelling: Spelling,
    /// How the server ended by itself.
    pub end: Option<End>,
    /// How many messages passed unrecorded.
    pub gap: u64,
    /// Its exchanges, in order of their first message.
    pub exchanges: Vec<Exchange>,
    /// How many messages it has.
    pub moments: u32,
}

/// One exchange, its messages left in the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Its key but for the number.
    pub prefix: Box<str>,
    /// The client's message, or the head of its HTTP request where that holds none; none for a push.
    pub client: Option<Moment>,
    /// The HTTP request and response that carried it.
    pub http: Option<Box<Carrier>>,
    /// What the server sent, in order.
    pub server: Vec<Item>,
    /// Why it has no answer.
    pub unanswered: Option<Unanswered>,
}

/// A server message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The message.
    pub moment: Moment,
    /// Whether it was filed here although several exchanges were open.
    pub guess: bool,
    /// Where it did not travel on its exchange's own stream.
    pub on: Option<On>,
    /// The client's answer to a server request.
    pub answer: Option<Moment>,
    /// The HTTP request and response that carried the answer.
    pub answer_http: Option<Box<Carrier>>,
}

/// An HTTP request and its response, left in the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carrier {
    /// The request's head.
    pub request: FramePlace,
    /// The request's body, where that is no message.
    pub body: Option<FramePlace>,
    /// The response's head.
    pub response: Option<FramePlace>,
    /// What the response consisted of.
    pub content: Content,
    /// What it had sent of a message or event when it ended.
    pub partial: Option<FramePlace>,
    /// The ids of its events that had come elsewhere before.
    pub again: Vec<Box<str>>,
    /// The server ended it once `DELETE` had come, before it answered that.
    pub until_delete: bool,
    /// How it ended, where not in good order.
    pub end: Option<StreamEnd>,
}

/// What a response consisted of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Content {
    /// Nothing.
    #[default]
    Empty,
    /// One message.
    Message,
    /// Events, or a body that is no message.
    Other,
}

/// A message where it stands in time and in the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Its number among the session's messages, from 0.
    pub order: u32,
    /// When it passed, since the journal began.
    pub at: Micros,
    /// Its frame.
    pub place: FramePlace,
}
