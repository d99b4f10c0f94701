//! From events to exchanges: folding a journal.
//!
//! Folding takes two passes over a journal. The first ([`Fold`]) files each message to its exchange and keeps only
//! skeletons: which message belongs where, and where it stands in the journal. The second reads the messages of one
//! exchange at a time and has them printed. So a recording of any length is folded in little memory.
//!
//! Which exchange a message belongs to:
//!
//! - A response answers the oldest unanswered request of its direction and id, type included (`7` is not `"7"`),
//!   one that was not cancelled first. Where no id is equal but one is in another spelling or type, it answers that.
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

mod carry;
mod compose;
mod drafts;
mod ends;
mod facts;
mod fold;
#[doc(hidden)]
pub mod fuzz;
mod plan;
mod recorder;
mod requests;
mod splice;

pub use carry::Changes;
pub use drafts::Frames;
pub use facts::Facts;
pub use fold::{Fold, fold};
pub use plan::{Addition, Plan};
pub use recorder::Recorder;
pub use splice::{EMPTY, with_members};

use crate::{
    cassette::{
        journal::{FramePlace, JournalHeader},
        model::{End, Unanswered},
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
}

/// One session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Session {
    /// When it began, in milliseconds since 1970 UTC.
    pub at_ms: u64,
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
    /// The client's message; none for a push.
    pub client: Option<Moment>,
    /// What the server sent, in order.
    pub server: Vec<Item>,
    /// Why it has no answer.
    pub unanswered: Option<Unanswered>,
}

/// A server message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// The message.
    pub moment: Moment,
    /// Whether it was filed here although several exchanges were open.
    pub guess: bool,
    /// The client's answer to a server request.
    pub answer: Option<Moment>,
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
