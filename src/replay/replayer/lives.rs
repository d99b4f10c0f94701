//! Live sessions: those of a client on stdio one after the other, over HTTP side by side.

use std::{collections::VecDeque, sync::Arc};

use sha2::{Digest as _, Sha256};

use super::{Replayer, conduct::Conduct, items::Way, resume::Sent, upstream::Asked};
use crate::{
    cassette::model::{Session, StreamEnd},
    replay::{own::Declared, play::Play, rewrite::Correlators, script::Rank},
    traffic::Lane,
    wire::jsonrpc::id_key,
};

/// A live session, or what has none.
#[derive(Debug, Default)]
pub(super) struct Live {
    /// Index of its play; none before `initialize`, and for what has no session.
    pub play: Option<usize>,
    /// Where its client speaks in lines; none over HTTP.
    pub pipe: Option<Lane>,
    /// Which of the take's sessions it is, from 1; 0 before `initialize`.
    pub ordinal: u64,
    /// The id that it was given.
    pub id: Option<Box<str>>,
    pub declared: Declared,
    /// The client's `initialize`, where a real server may have to hear it.
    pub greeting: Option<Vec<u8>>,
    /// Before `initialize`, on stdio: the recorded session that it last asked for something of, and the first step of
    /// the pool that may be left of it.
    pub drawn_from: Option<(u32, u32)>,
    /// The client's capabilities, raw.
    pub capabilities: Option<Vec<u8>>,
    pub pending: Vec<Pending>,
    /// Its open `GET` stream.
    pub get: Option<Lane>,
    /// Those in whose place it was opened.
    pub older_gets: Vec<Lane>,
    /// Where the recorded server ended that stream, or that of HTTP+SSE.
    pub get_until: Option<GetEnd>,
    /// Its event stream, over HTTP+SSE, and where its messages are posted.
    pub sse: Option<(Lane, String)>,
    /// What waits for a stream that is not open.
    pub held: VecDeque<Held>,
    /// Events that had an id, for a client that asks for the rest.
    pub sent: VecDeque<Sent>,
    /// Streams of calls that a client went on with.
    pub resumed: Vec<(Arc<Correlators>, Lane)>,
    /// `GET` streams that the recorded server left open when it answered a `DELETE`.
    pub stay_open: Vec<Lane>,
    /// It was ended, by a DELETE or by its server.
    pub is_over: bool,
    /// Where in its script the DELETE stood that ended it: what was answered behind that still is.
    pub ended_at: Option<Rank>,
    pub conduct: Conduct,
}

/// A server request the client has not answered yet.
#[derive(Debug)]
pub(super) struct Pending {
    pub id: Vec<u8>,
    pub play: usize,
    /// The run it gates; none for a push.
    pub run: Option<u32>,
    pub exchange: u32,
    pub item: u32,
    pub method: String,
    /// A real server asked it, and none of the recording.
    pub upstream: Option<Asked>,
}

/// How the recorded server ended a stream of a session's.
#[derive(Debug)]
pub(super) struct GetEnd {
    /// The exchange, and the item of it, that was the last of the session's on it; none once that was sent. Where there
    /// is neither from the start, it ends with the session.
    pub behind: Option<(u32, u32)>,
    /// The same of its own exchange: what it carried beside messages.
    pub own: Option<(u32, u32)>,
    pub end: Option<StreamEnd>,
    pub partial: Box<[u8]>,
}

impl GetEnd {
    /// Whether the stream was open until `DELETE`.
    pub(super) const fn is_delete(&self) -> bool {
        self.behind.is_none() && self.own.is_none()
    }
}

/// A message that waits for a stream.
#[derive(Debug)]
pub(super) struct Held {
    pub way: Way,
    pub exchange: u32,
    pub item: u32,
    pub bytes: Vec<u8>,
    pub to: Arc<Correlators>,
}

impl Session {
    /// Whether it was recorded over HTTP+SSE.
    pub(in crate::replay) fn is_sse(&self) -> bool {
        self.transport.as_deref() == Some("sse")
    }
}

impl Replayer {
    /// The live session with this id.
    pub(super) fn live_of(&self, id: &[u8]) -> Option<usize> {
        self.by_id.get(std::str::from_utf8(id).ok()?).copied()
    }

    /// The live session that a message belongs to: one with a play, for what came without a session too.
    pub(super) fn playing(&self, live: usize) -> Option<usize> {
        let last = || self.lives.iter().rev().filter(|live| live.pipe.is_none()).find_map(|live| live.play);
        self.lives[live].play.or_else(|| if live == 0 { last() } else { None })
    }

    /// The request with this id that is played for the client of a live session: its play and its run. Of several, that
    /// of the latest session.
    pub(super) fn in_flight(&self, live: usize, id: &[u8]) -> Option<(usize, u32)> {
        let (id, pipe) = (id_key(id), self.lives[live].pipe);
        let is_its = |of: usize| of == live || (pipe.is_some() && self.lives[of].pipe == pipe);
        let plays = self.plays.iter().enumerate();
        let runs = plays.flat_map(|(at, play)| play.numbered_runs().map(move |(run, of)| (at, run, of)));
        let asked = runs.filter(|(.., run)| is_its(run.live) && id_key(&run.to.live_id) == id);
        let (play, run, _) = asked.max_by_key(|(.., run)| run.live)?;
        Some((play, run))
    }

    /// The live session that this is the play of.
    pub(super) fn live_with(&self, play: usize) -> Option<usize> {
        self.owners.get(play).copied().flatten()
    }

    /// Begins a live session.
    pub(super) fn begin_live(&mut self, live: Live) -> usize {
        let at = self.lives.len();
        self.by_id.extend(live.id.clone().map(|id| (id, at)));
        self.lives.push(live);
        at
    }

    /// Begins a play of a script, for a live session.
    pub(super) fn begin_play(&mut self, script: usize, live: usize) -> usize {
        self.plays.push(Play::new(script, &self.scripts[script]));
        self.owners.push(Some(live));
        self.plays.len() - 1
    }

    /// A session id that nobody else has.
    pub(super) fn mint(&mut self) -> Box<str> {
        self.minted += 1;
        let hash = Sha256::new().chain_update(self.options.seed).chain_update(self.minted.to_le_bytes());
        hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect::<String>().into()
    }

    /// The id of a live session, minted when it is first needed.
    pub(super) fn id_of(&mut self, live: usize) -> Box<str> {
        if let Some(id) = &self.lives[live].id {
            return id.clone();
        }
        let id = self.mint();
        // What has no session gets an id in a header only where a person wrote that into the cassette.
        if live > 0 {
            self.lives[live].id = Some(id.clone());
            self.by_id.insert(id.clone(), live);
        }
        id
    }
}
