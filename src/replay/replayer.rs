//! The replayer: one take, its sessions, and what it tells of itself.
//!
//! - `incoming`: messages of the client, whatever carried them
//! - `http`: HTTP requests, `gets` and `sse`, those that open streams, `lines`, those that are no messages, and `facts`,
//!   what they tell beside a message, `bodies`, which of several bodies is meant
//! - `heads`, `streams`: the responses to them, and `items`, what goes on which
//! - `at_once`: requests whose answers need nobody to find out what goes next
//! - `ids`: which ids a client has used
//! - `parts`: requests that are answered before they are whole
//! - `lives`: the live sessions, and `agenda`, which of them has something to do
//! - `faulty`: what goes wrong on purpose
//! - `pipes`: clients that speak in lines
//! - `events`: what became of each message
//! - `unused`: what was recorded and nobody asked for
//! - `verdict`: the report, and whether it is good
//! - `tending`: what is told and done while it runs
//! - `resume`: streams that a client fetches the rest of
//! - `upstream`: requests that go on to the real server
//! - `handshake`, `outgoing`, `unmatched`: how a session begins, what is sent, what has no answer; `untold`, how a
//!   response ended, where that is to be said in a message

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

/// What a play needs for deciding, borrowed so that the play itself can change.
macro_rules! scene {
    ($self:ident, $play:expr, $now:expr) => {
        $crate::replay::play::Scene {
            cassette: &$self.cassette,
            script: &$self.scripts[$self.plays[$play].script],
            options: &$self.options,
            now: $now,
            pipes: &$self.pipes,
            pipe: $self.owners[$play].and_then(|live| $self.lives[live].pipe),
            hears: $self.lives[$self.owners[$play].unwrap_or($self.pool_live)].pipe,
        }
    };
}

mod agenda;
mod at_once;
mod batches;
mod blanks;
mod bodies;
mod conduct;
mod ending;
mod events;
mod facts;
mod faulty;
mod gets;
mod handshake;
mod heads;
mod http;
mod ids;
mod incoming;
mod items;
mod lines;
mod lives;
mod outgoing;
mod parts;
mod paths;
mod pipes;
mod resume;
mod secrets;
mod sse;
mod streams;
mod tending;
mod unmatched;
mod untold;
mod unused;
mod upstream;
mod verdict;

pub(super) use self::pipes::Pipes;
use self::{
    agenda::Agenda, faulty::Faults, lives::Live, paths::Paths, secrets::Numbered, streams::Stream,
    upstream::Upstreams,
};
use super::{
    choice::{chosen_sessions, divide, gaps, is_modern, passed_over},
    clear,
    clock::{Due, Now},
    exchange::{Input, Output},
    matcher::{Matcher, RuleError, canonical::Digest},
    numbers::ByNumber,
    options::Options,
    play::Play,
    script::Script,
};
use crate::{
    cassette::{blob::BlobSource, model::Cassette},
    fault::{Acting, Stranger},
    redact::{Pairing, Redactor},
    report::{Report, ledger::Ledger},
    traffic::{Lane, Micros},
    wire::http::path_of,
};

/// A cassette that cannot be replayed as asked.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// A `match` rule that cannot be used.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// The cassette holds no recording of this number.
    #[error("the cassette has no recording {wanted}; it has {}", list(.known))]
    NoRecording {
        /// The number asked for.
        wanted: u32,
        /// The numbers there are.
        known: Vec<u32>,
    },
    /// A fault rule that fits nothing.
    #[error("{0}")]
    Fault(Stranger),
    /// The cassette holds no session of this number.
    #[error("the recording has no session {wanted}; it has {}", list(.known))]
    NoSession {
        /// The number asked for.
        wanted: u32,
        /// The numbers there are.
        known: Vec<u32>,
    },
}

fn list(numbers: &[u32]) -> String {
    if numbers.is_empty() {
        return "none".to_owned();
    }
    numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

/// Plays a cassette to one client.
///
/// Feed it with [`handle`](Self::handle), take what it wants done from [`poll`](Self::poll) until there is nothing,
/// and call both again when something comes or at [`deadline`](Self::deadline). Time is microseconds on any clock
/// that does not go back, or on two of them ([`Now`]), where what is played has one of its own.
pub struct Replayer {
    cassette: Arc<Cassette>,
    blobs: Arc<dyn BlobSource + Send + Sync>,
    options: Options,
    matcher: Matcher,
    /// The pool first, then each recorded session that begins with `initialize`.
    scripts: Vec<Script>,
    /// Which scripts a session of this take has played.
    played: Vec<bool>,
    /// The pool's play first, then one for each live session.
    plays: Vec<Play>,
    redactor: Redactor,
    /// For each play, and whoever numbered the secrets of what it plays: which live secret stands for which recorded
    /// one.
    pairings: HashMap<(usize, Numbered), Pairing>,
    /// What has no session first, then each live session.
    lives: Vec<Live>,
    /// Live sessions by their ids, and by where their messages are posted over HTTP+SSE.
    by_id: HashMap<Box<str>, usize>,
    by_endpoint: HashMap<String, usize>,
    /// For each play, the live session that it is of.
    owners: Vec<Option<usize>>,
    /// Paths at which messages are taken.
    endpoints: Vec<Box<str>>,
    paths: Paths,
    /// The message that has just come.
    at_hand: AtHand,
    legacy_recording: bool,
    /// Whether any of what is played was recorded over HTTP.
    is_http: bool,
    /// HTTP responses that have not ended.
    streams: ByNumber<u32, Stream>,
    /// The origin by which the last client over HTTP called us: nearly always that of the next one.
    origin: Arc<str>,
    heard: Heard,
    /// Paths at which messages were taken although none was recorded there.
    further: Vec<Box<str>>,
    /// Clients that speak in lines.
    pipes: Pipes,
    /// Index of the live session that last asked for something of the pool.
    pool_live: usize,
    minted: u64,
    outputs: VecDeque<Output>,
    agenda: Agenda,
    faults: Option<Faults>,
    events: Option<Ledger>,
    upstreams: Upstreams,
    /// Which recording is played.
    recording: u32,
    /// When the latest of what was taken in came, or the outputs were asked for.
    now: Now,
    report: Report,
    /// How many misses there are so far, equal ones counted.
    missed: u64,
    repeats: Repeats,
    /// For steps that are batches, by their plays: the places in them of what is played of them one by one.
    members: HashMap<(usize, u32), Vec<usize>>,
    /// Requests without an end are among what is played, and what counts of them, by their exchanges.
    has_parts: bool,
    parts: HashMap<u32, Arc<parts::Part>>,
    /// Room for the next message that is sent.
    room: Vec<u8>,
}

/// How clients have spoken.
#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    lines: bool,
    /// Streamable HTTP.
    http: bool,
    /// HTTP+SSE.
    sse: bool,
}

/// Which exchanges were repeated.
#[derive(Debug, Default)]
struct Repeats {
    /// In the order of their first repeats.
    exchanges: Vec<u32>,
    /// How often each exchange of the cassette was; nothing before the first repeat.
    counts: Vec<u32>,
}

/// What is known of the message that has just come, or of the request that carried it.
#[derive(Debug, Default)]
struct AtHand {
    /// Index of its live session.
    live: usize,
    /// It as it came, where a request may be passed on.
    line: Vec<u8>,
    /// How it is spelled, until it is looked for.
    spelling: Option<Digest>,
    /// It before redaction, where that changed it: it is compared with recordings, and goes nowhere.
    plain: Vec<u8>,
    /// Its id and progress token, before redaction.
    id: Vec<u8>,
    token: Option<Box<[u8]>>,
    /// Of an HTTP request, what its answer can depend on.
    facts: Option<facts::Facts>,
    /// It named a live session of this take.
    is_known: bool,
    /// Over HTTP+SSE, the response to the request that carried it.
    post: Option<Lane>,
    /// Faults act on it, and nothing is played for it yet.
    acting: Option<Acting>,
    /// The numbers of its events, and what its request's headers call it.
    events: Vec<u64>,
    correlation: Option<String>,
    /// It goes on with a session that a fault has ended.
    goes_on: bool,
    /// Of what was found for it, which secrets it pairs.
    paired: Option<secrets::Paired>,
    /// Nothing was found for it, and this exchange equals it but for which secrets it pairs.
    unpaired: Option<u32>,
    /// Of an HTTP request that is no message, its body.
    body: Option<bodies::LiveBody>,
    /// Where requests in part were recorded, what they are known by.
    announced: Option<parts::Announced>,
}

impl std::fmt::Debug for Replayer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replayer")
            .field("scripts", &self.scripts.len())
            .field("plays", &self.plays.len())
            .finish()
    }
}

impl Replayer {
    /// Prepares a cassette for replay; `name` is what the report calls it.
    ///
    /// # Errors
    /// When a rule cannot be used, or the recording or session asked for is not there.
    pub fn new(
        cassette: Arc<Cassette>,
        blobs: Arc<dyn BlobSource + Send + Sync>,
        name: &str,
        mut options: Options,
    ) -> Result<Self, ReplayError> {
        let cassette = clear::seen_by(&mut options, cassette, &*blobs);
        let sessions = chosen_sessions(&cassette, &options)?;
        let mut matcher = Matcher::new(&cassette)?;
        let (pool, own) = divide(&cassette, &*blobs, &sessions);
        let mut scripts = vec![Script::new(&cassette, &*blobs, &mut matcher, None, &pool)?];
        for (session, exchanges) in own {
            scripts.push(Script::new(&cassette, &*blobs, &mut matcher, Some(session), &exchanges)?);
        }
        let plays = vec![Play::new(0, &scripts[0])];
        let mut report = Report::open(name);
        report.warnings.extend(passed_over(&cassette, &options));
        report.warnings.extend(gaps(&cassette, &sessions));
        report.seed = options.faults.as_ref().and_then(|plan| plan.seed_in_use());
        let legacy_recording = scripts.len() > 1 || !sessions.iter().any(|&at| is_modern(&cassette, at));
        let replayer = Self {
            faults: options.faults.clone().map(Faults::new),
            events: options.events.clone().map(Ledger::new),
            now: Now::default(),
            upstreams: Upstreams::default(),
            recording: sessions.first().map_or(1, |&at| cassette.sessions[at as usize].recording),
            played: vec![false; scripts.len()],
            has_parts: scripts.iter().any(|script| !script.parts.is_empty()),
            parts: HashMap::new(),
            lives: vec![Live::default()],
            by_id: HashMap::new(),
            by_endpoint: HashMap::new(),
            owners: vec![None],
            endpoints: endpoints(&cassette, &sessions),
            paths: Paths::of(&cassette, &scripts),
            at_hand: AtHand::default(),
            is_http: sessions.iter().any(|&at| cassette.sessions[at as usize].is_http()),
            legacy_recording,
            redactor: Redactor::for_replay(&options.redact)
                .knowing(options.shown.as_ref())
                .telling(options.met.clone()),
            pairings: HashMap::new(),
            streams: ByNumber::default(),
            origin: Arc::default(),
            heard: Heard::default(),
            further: Vec::new(),
            pipes: Pipes::default(),
            pool_live: 0,
            minted: 0,
            outputs: VecDeque::new(),
            agenda: Agenda::default(),
            cassette,
            blobs,
            options,
            matcher,
            scripts,
            plays,
            report,
            missed: 0,
            repeats: Repeats::default(),
            members: HashMap::new(),
            room: Vec::new(),
        };
        replayer.check_plan(None)?;
        Ok(replayer)
    }

    /// Takes in one thing the client did.
    pub fn handle(&mut self, now: impl Into<Now>, input: Input<'_>) {
        let now = now.into();
        self.now = now;
        match input {
            Input::Opened { lane } => self.opened(lane),
            Input::Message { lane, bytes } => self.line_on(now, lane, bytes),
            Input::Request { lane, request } => self.http(now, lane, request),
            Input::Left { lane } if self.pipes.has(lane) => self.gone(now, lane),
            Input::Left { lane } => self.left(now, lane),
            Input::Closed { lane } => self.closed(lane),
            Input::Upstream { upstream, line } => self.upstream_said(upstream as usize, line),
            Input::UpstreamEnded { upstream, why } => self.upstream_ended(upstream as usize, why),
        }
        self.advance(now);
    }

    /// Takes back what was [polled](Self::poll) and is done: the room of its bytes serves again. Nobody has to give
    /// anything back.
    pub fn take_back(&mut self, done: Output) {
        /// More is not kept.
        const MOST: usize = 16 << 10;
        let bytes = match done {
            Output::Send { bytes, .. } | Output::Body { bytes, .. } => bytes,
            Output::Event { event, .. } => event.data.into_owned(),
            _ => return,
        };
        if (self.room.capacity()..=MOST).contains(&bytes.capacity()) {
            self.room = bytes;
            self.room.clear();
        }
    }

    /// The next thing to do now.
    pub fn poll(&mut self, now: impl Into<Now>) -> Option<Output> {
        let now = now.into();
        self.now = now;
        if self.outputs.is_empty() && self.due().has_come(now) {
            self.advance(now);
        }
        loop {
            let output = self.outputs.pop_front()?;
            if self.is_told(now, &output) {
                self.note_told(now, &output);
                return Some(output);
            }
        }
    }

    /// When to poll again although nothing came, where both clocks are one.
    pub fn deadline(&self) -> Option<Micros> {
        self.due().first()
    }

    /// When to poll again although nothing came.
    pub fn due(&self) -> Due {
        let faults = self.faults.as_ref().and_then(Faults::deadline);
        self.agenda.due().or(Due { real: None, played: faults })
    }

    /// How long a server on stdio stays although it is told to end, because of a fault.
    pub fn lingers(&self) -> Micros {
        self.faults.as_ref().map_or(0, Faults::lingers)
    }

    /// The path at which clients reach the server: that of the first session that is played, or `/mcp`.
    pub fn endpoint(&self) -> &str {
        // What belongs to no session stands first, and counts last.
        let (pool, sessions) = self.scripts.split_at(1);
        let mut recorded = sessions.iter().chain(pool).filter_map(|script| {
            let exchange = script.steps.first()?.exchange;
            let session =
                &self.cassette.sessions[self.cassette.exchanges[exchange as usize].session as usize];
            session.path.as_deref().filter(|_| session.is_http()).map(path_of)
        });
        recorded.next().unwrap_or("/mcp")
    }

    /// How many misses there are so far, equal ones counted.
    pub fn misses(&self) -> u64 {
        self.missed
    }

    /// What there is to say of the recording and of what was asked of it so far.
    pub fn warnings(&self) -> &[String] {
        &self.report.warnings
    }

    fn key(&self, exchange: u32) -> String {
        String::from(&*self.cassette.exchanges[exchange as usize].key)
    }
}

/// Where messages were posted when recorded; `/mcp` where that was no matter of paths.
fn endpoints(cassette: &Cassette, sessions: &[u32]) -> Vec<Box<str>> {
    let recorded = sessions.iter().map(|&at| &cassette.sessions[at as usize]);
    let paths = recorded.filter(|session| session.is_http() && !session.is_sse());
    let paths = paths.filter_map(|session| session.path.as_deref().map(path_of));
    let mut endpoints: Vec<Box<str>> = paths.map(Box::from).collect();
    endpoints.sort_unstable();
    endpoints.dedup();
    if endpoints.is_empty() { vec!["/mcp".into()] } else { endpoints }
}

/// An exchange found for a live message.
#[derive(Clone, Copy, Debug)]
struct Found {
    play: usize,
    step: u32,
    repeat: bool,
}
