//! What only folding needs to know of sessions and exchanges.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{
    Session,
    requests::{Owner, Requests},
};
use crate::cassette::{model::Unanswered, spelling::SpellingGuess};

/// What later messages of a session can refer to.
#[derive(Debug, Default)]
pub(super) struct Lookup {
    pub(super) from_client: Requests,
    pub(super) from_server: Requests,
    /// The last client request with each progress token.
    pub(super) tokens: HashMap<Box<[u8]>, Owner>,
    /// The last `subscriptions/listen` request with each id.
    pub(super) listens: HashMap<Box<[u8]>, Owner>,
    /// How many requests of each exchange of the last session are in flight.
    pub(super) in_flight: BTreeMap<usize, u32>,
}

impl Lookup {
    /// Messages are missing: what is under way may be over, and whatever comes next another's.
    pub(super) fn forget(&mut self) {
        self.in_flight.clear();
        self.tokens.clear();
        self.listens.clear();
        self.from_client.forget();
        self.from_server.forget();
    }
}

/// A session and what only folding needs to know of it.
#[derive(Debug, Default)]
pub(super) struct Open {
    pub(super) session: Session,
    pub(super) states: Vec<State>,
    /// Its place among the lookups.
    pub(super) lookup: usize,
    pub(super) initialize: Option<usize>,
    pub(super) last_client: Option<usize>,
    pub(super) spelling: SpellingGuess,
    /// How many moments there were when recording last failed.
    pub(super) gap_at: Option<u32>,
    /// Of a session that an `initialize` over HTTP may have begun: where its exchanges belong if it has not.
    pub(super) instead: Option<usize>,
    /// Over HTTP: how far its `DELETE` has come.
    pub(super) delete: Delete,
    /// Over HTTP: hashes of the ids and data of its events, those that have ids.
    pub(super) events: HashSet<u64>,
    /// Over HTTP+SSE: the server has ended its event stream.
    pub(super) stream_is_over: bool,
    /// Events of streams that ended without their answer, by id: a `GET` may go on behind one (F10.4).
    pub(super) resumable: HashMap<Box<[u8]>, usize>,
}

/// What only folding needs to know of an exchange.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct State {
    pub(super) is_request: bool,
    /// How many requests of it have no answer: a batch can have several.
    pub(super) waits: u32,
    pub(super) is_answered: bool,
    /// What it was answered with is an error of ours: the server gave no answer.
    pub(super) has_failed: bool,
    pub(super) is_cancelled: bool,
    /// The server asked or told something because of it.
    pub(super) has_told: bool,
    pub(super) http: Option<Fate>,
    /// It is an HTTP request that is no message.
    pub(super) is_plain: bool,
    /// Over HTTP: the head of its response is among what was not recorded, or all that was behind it.
    pub(super) lacks_response: bool,
}

/// How far a session's `DELETE` has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Delete {
    /// There is none, or it was refused.
    #[default]
    No,
    /// The client has asked for it.
    Asked,
    /// The server has said yes.
    Done,
}

/// What became of the response that carries an exchange over HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is not over.
    #[default]
    Pending,
    /// It ended, in good order or not.
    Ended,
    /// It ended before its head.
    NoHead,
    /// The client left, or ended the session, while it was still open.
    Left,
}

impl State {
    /// Why an exchange over HTTP has no answer, as far as its response tells that.
    pub(super) const fn over_http(&self, stream_is_over: bool) -> Option<Option<Unanswered>> {
        let Some(fate) = self.http else { return None };
        match fate {
            _ if !self.is_plain && (!self.is_request || self.is_answered && !self.lacks_response) => {
                Some(None)
            }
            _ if self.is_cancelled => Some(Some(Unanswered::Cancelled)),
            // Its status is not known, nor what else came with it.
            _ if self.lacks_response => Some(Some(Unanswered::Lost)),
            Fate::Pending if self.is_plain => None,
            Fate::Ended if self.is_plain => Some(None),
            Fate::Left if self.is_plain => Some(Some(Unanswered::Open)),
            Fate::NoHead => Some(Some(Unanswered::Lost)),
            Fate::Ended => Some(Some(Unanswered::Ended)),
            Fate::Pending | Fate::Left if stream_is_over => Some(Some(Unanswered::Ended)),
            Fate::Pending | Fate::Left => None,
        }
    }
}
