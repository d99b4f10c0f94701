//! The replayer: one take, its sessions, and what it tells of itself.

use std::{
    borrow::Cow,
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
            closed: $self.closed,
        }
    };
}

mod handshake;
mod outgoing;
mod unmatched;

use super::{
    choice::{chosen_sessions, divide, gaps, is_modern},
    matcher::{
        Matcher, RuleError,
        canonical::{PLACEHOLDER, canonical},
    },
    options::Options,
    own::{self, Declared},
    play::{Play, Run},
    rewrite::Correlators,
    script::{Script, client_message},
};
use crate::{
    cassette::{
        blob::BlobSource,
        model::{Cassette, End},
    },
    redact::{Pairing, Redactor},
    report::{AnswerReport, Reason, Report, RuleReport, Verdict},
    traffic::{Direction, Lane, Micros},
    wire::jsonrpc::{Kind, Message, id_key},
};

/// How many methods the report's sequence holds.
const SEQUENCE: usize = 1_000;

/// What the replayer is told.
#[derive(Clone, Copy, Debug)]
pub enum Input<'a> {
    /// One message or line from the client, without its line end.
    Message {
        /// The stream it came on.
        lane: Lane,
        /// Its bytes.
        bytes: &'a [u8],
    },
    /// The client closed its side.
    Closed,
}

/// What the replayer wants done.
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
    /// End as the recorded server ended.
    End(End),
}

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
/// that does not go back.
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
    /// For each play, which live secret stands for which recorded one.
    pairings: Vec<Pairing>,
    /// Id and progress token of the message at hand, before redaction.
    live: (Vec<u8>, Option<Box<[u8]>>),
    declared: Declared,
    /// The live client's capabilities, raw.
    live_capabilities: Option<Vec<u8>>,
    legacy_recording: bool,
    /// Live requests in flight, by id.
    in_flight: HashMap<Vec<u8>, (usize, u32)>,
    pending: Vec<Pending>,
    outputs: VecDeque<Output>,
    deadline: Option<Micros>,
    closed: bool,
    ended: bool,
    report: Report,
    /// Where in the report's repeats each exchange stands that was repeated.
    repeat_of: HashMap<u32, usize>,
}

/// A server request the client has not answered yet.
#[derive(Debug)]
struct Pending {
    id: Vec<u8>,
    play: usize,
    /// The run it gates; none for a push.
    run: Option<u32>,
    exchange: u32,
    item: u32,
    method: String,
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
        options: Options,
    ) -> Result<Self, ReplayError> {
        let sessions = chosen_sessions(&cassette, &options)?;
        let mut matcher = Matcher::new(&cassette)?;
        let (pool, own) = divide(&cassette, &*blobs, &sessions);
        let mut scripts = vec![Script::new(&cassette, &*blobs, &mut matcher, None, &pool)?];
        for (session, exchanges) in own {
            scripts.push(Script::new(&cassette, &*blobs, &mut matcher, Some(session), &exchanges)?);
        }
        let plays = vec![Play::new(0, &scripts[0])];
        let mut report = Report::open(name);
        report.warnings.extend(gaps(&cassette, &sessions));
        let legacy_recording = scripts.len() > 1 || !sessions.iter().any(|&at| is_modern(&cassette, at));
        Ok(Self {
            played: vec![false; scripts.len()],
            declared: Declared::default(),
            live_capabilities: None,
            legacy_recording,
            redactor: Redactor::new(&options.redact),
            pairings: vec![Pairing::new()],
            live: (Vec::new(), None),
            in_flight: HashMap::new(),
            pending: Vec::new(),
            outputs: VecDeque::new(),
            deadline: None,
            closed: false,
            ended: false,
            cassette,
            blobs,
            options,
            matcher,
            scripts,
            plays,
            report,
            repeat_of: HashMap::new(),
        })
    }

    /// Takes in one thing the client did.
    pub fn handle(&mut self, now: Micros, input: Input<'_>) {
        match input {
            Input::Message { lane, bytes } => self.message(now, lane, bytes),
            Input::Closed => self.closed = true,
        }
        self.advance(now);
    }

    /// The next thing to do now.
    pub fn poll(&mut self, now: Micros) -> Option<Output> {
        if self.outputs.is_empty() && self.deadline.is_some_and(|deadline| deadline <= now) {
            self.advance(now);
        }
        self.outputs.pop_front()
    }

    /// When to poll again although nothing came.
    pub const fn deadline(&self) -> Option<Micros> {
        self.deadline
    }

    /// Whether anything is still to be sent to a client that has closed its side.
    pub fn is_done(&self) -> bool {
        self.ended || (self.closed && self.outputs.is_empty() && !self.plays.iter().any(Play::owes))
    }

    /// How many misses there are so far, equal ones counted.
    pub fn misses(&self) -> u64 {
        self.report.misses.iter().map(|miss| miss.count).sum()
    }

    /// The report as it stands, with verdict `open`.
    pub fn report(&self) -> Report {
        let mut report = self.report.clone();
        report.unused = self.unused();
        let rules = self.cassette.rules.iter().zip(&self.matcher.used);
        report.rules = rules
            .map(|(rule, &used)| RuleReport {
                rule: String::from_utf8_lossy(self.cassette.at(rule.place)).into_owned(),
                used,
            })
            .collect();
        report
    }

    /// The report at the end, with its verdict.
    pub fn finish(&self) -> Report {
        let mut report = self.report();
        let left_over = self.options.strict && report.unused.iter().any(|key| !self.may_be_unused(key));
        report.verdict = if report.is_bad() || left_over { Verdict::Bad } else { Verdict::Good };
        report
    }

    fn may_be_unused(&self, key: &str) -> bool {
        own::may_be_left_over(key.split(' ').next().unwrap_or(key))
    }

    fn unused(&self) -> Vec<String> {
        let mut keys = Vec::new();
        for (at, script) in self.scripts.iter().enumerate() {
            let plays: Vec<&Play> = self.plays.iter().filter(|play| play.script == at).collect();
            let unasked = |step: &u32| plays.iter().all(|play| play.is_unused(*step));
            let steps = (0..script.steps.len() as u32).filter(|&step| script.steps[step as usize].is_asked());
            keys.extend(steps.filter(unasked).map(|step| self.key(script.steps[step as usize].exchange)));
        }
        keys
    }

    fn key(&self, exchange: u32) -> String {
        self.cassette.exchanges[exchange as usize].key.to_string()
    }

    // What comes from the client.

    fn message(&mut self, now: Micros, lane: Lane, bytes: &[u8]) {
        let original = Message::read(bytes);
        self.live.0.clear();
        self.live.0.extend_from_slice(original.id().unwrap_or_default());
        self.live.1 = original.progress_token().map(Box::from);
        let named = self.options.vars.hide(bytes);
        let redacted = self.redactor.message(Direction::ToServer, &named);
        let changed = matches!((&named, &redacted), (Cow::Owned(_), _) | (_, Cow::Owned(_)));
        let message = if changed { Message::read(&redacted) } else { original };
        match message.kind {
            Kind::Result | Kind::Error => self.response(now, &message),
            Kind::Request => {
                self.count(&message);
                self.matcher.note_use(&message);
                self.request(now, lane, &message);
            }
            Kind::Notification => {
                self.count(&message);
                if let Some(id) = message.cancelled_id() {
                    self.cancel(now, id);
                }
                self.silent(now, lane, &message);
            }
            Kind::Batch => {
                message
                    .members()
                    .filter(|member| !member.method().is_empty())
                    .for_each(|member| self.count(&member));
                self.batch(now, lane, &message);
            }
            Kind::Noise => self.silent(now, lane, &message),
        }
    }

    fn count(&mut self, message: &Message<'_>) {
        let method = message.method();
        match self.report.calls.get_mut(&*method) {
            Some(count) => *count += 1,
            None => {
                self.report.calls.insert(method.clone().into_owned(), 1);
            }
        }
        if self.report.sequence.len() < SEQUENCE {
            self.report.sequence.push(method.into_owned());
        }
        self.report.connections = 1;
    }

    fn request(&mut self, now: Micros, lane: Lane, message: &Message<'_>) {
        let method = message.method();
        if method == "initialize" {
            return self.initialize(now, lane, message);
        }
        match self.find(message) {
            Some(found) => self.play(now, lane, message, found),
            None => self.unmatched(lane, message, &method),
        }
    }

    /// Where the exchange a live message asks for stands: in the current session, or in the pool.
    fn find(&mut self, message: &Message<'_>) -> Option<Found> {
        let current = self.plays.len() - 1;
        let plays = if message.is_modern() { [0, current] } else { [current, 0] };
        for play in plays.into_iter().take(if current == 0 { 1 } else { 2 }) {
            let script = &mut self.scripts[self.plays[play].script];
            let (queue, own) = script.find(&self.cassette, &*self.blobs, &mut self.matcher, message);
            if let Some((step, repeat)) = self.plays[play].choose(script, queue, &own) {
                return Some(Found { play, step, repeat });
            }
        }
        None
    }

    /// Plays an exchange for a live request, unless the options make a repeat or an early request a miss.
    fn play(&mut self, now: Micros, lane: Lane, message: &Message<'_>, found: Found) {
        let script = &self.scripts[self.plays[found.play].script];
        let step = &script.steps[found.step as usize];
        let exchange = step.exchange;
        if found.repeat {
            if self.options.repeat_is_miss() && !own::may_be_left_over(&step.method) {
                return self.miss(lane, message, Reason::Consumed, Some(exchange));
            }
            if !own::repeats_silently(&step.method) {
                self.repeated(exchange);
            }
        } else if self.options.strict
            && let Some(early) = self.plays[found.play].too_early(script, found.step)
        {
            let early = script.steps[early as usize].exchange;
            return self.miss(lane, message, Reason::OutOfOrder, Some(early));
        }
        if !self.pairs(found.play, message, exchange) {
            return self.miss(lane, message, Reason::RedactionDiffers, Some(exchange));
        }
        let run = self.begin(lane, message, exchange);
        self.start(now, found, run, message.id_key().map(|id| id.into_owned()));
    }

    /// Whether the secrets in a live request are those the recorded ones stood for so far.
    fn pairs(&mut self, play: usize, message: &Message<'_>, exchange: u32) -> bool {
        if PLACEHOLDER.find(message.bytes).is_none() {
            return true;
        }
        let mut recorded = Vec::new();
        let entry = &self.cassette.exchanges[exchange as usize];
        client_message(&self.cassette, &*self.blobs, entry, &mut recorded);
        self.pairings[play].pair(message.bytes, &recorded).is_ok()
    }

    fn start(&mut self, now: Micros, found: Found, run: Run, id: Option<Vec<u8>>) {
        let scene = scene!(self, found.play, now);
        let run = self.plays[found.play].start(scene, found.step, found.repeat, run);
        if let Some(id) = id {
            self.in_flight.insert(id, (found.play, run));
        }
    }

    fn begin(&self, lane: Lane, message: &Message<'_>, exchange: u32) -> Run {
        let entry = &self.cassette.exchanges[exchange as usize];
        let mut recorded_id = Vec::new();
        if let Some(client) = &entry.client {
            client.id.push(&mut recorded_id);
        }
        let mut to = Correlators {
            recorded_id,
            live_id: self.live.0.clone(),
            recorded_token: None,
            live_token: self.live.1.clone(),
        };
        let mut bytes = Vec::new();
        let speaks_of_tokens = entry.server.len() > 1;
        if speaks_of_tokens && client_message(&self.cassette, &*self.blobs, entry, &mut bytes) {
            to.recorded_token = Message::read(&bytes).progress_token().map(Box::from);
        }
        let mut run = Run::new(lane, to);
        run.log_level = message.meta("io.modelcontextprotocol/logLevel").is_some();
        run
    }

    /// A notification or line of noise: what the server sent because of it is sent again; nothing is missed.
    fn silent(&mut self, now: Micros, lane: Lane, message: &Message<'_>) {
        let Some(found) = self.find(message).filter(|found| !found.repeat) else { return };
        let exchange = self.scripts[self.plays[found.play].script].steps[found.step as usize].exchange;
        let run = self.begin(lane, message, exchange);
        self.start(now, found, run, None);
    }

    fn batch(&mut self, now: Micros, lane: Lane, message: &Message<'_>) {
        let asks = message.members().any(|member| member.kind == Kind::Request);
        for member in message.members().filter(|member| member.kind.is_response()) {
            self.response(now, &member);
        }
        match self.find(message) {
            Some(found) if asks || !found.repeat => {
                let exchange =
                    self.scripts[self.plays[found.play].script].steps[found.step as usize].exchange;
                let mut run = self.begin(lane, message, exchange);
                let mut bytes = Vec::new();
                let entry = &self.cassette.exchanges[exchange as usize];
                if client_message(&self.cassette, &*self.blobs, entry, &mut bytes) {
                    let recorded = Message::read(&bytes);
                    let ids = |message: Message<'_>| -> Vec<Vec<u8>> {
                        message.members().map(|member| member.id().unwrap_or_default().to_vec()).collect()
                    };
                    run.batch = ids(recorded).into_iter().zip(ids(*message)).collect();
                }
                self.start(now, found, run, None);
            }
            None if asks => {
                for member in message.members().filter(|member| member.kind == Kind::Request) {
                    self.miss(lane, &member, Reason::NeverRecorded, None);
                }
            }
            _ => {}
        }
    }

    /// The client answers a server request.
    fn response(&mut self, now: Micros, message: &Message<'_>) {
        let Some(id) = message.id_key() else { return };
        let Some(at) = self.pending.iter().position(|pending| pending.id == *id) else { return };
        let pending = self.pending.remove(at);
        if let Some(run) = pending.run {
            self.plays[pending.play].answered(run, pending.item, now);
        }
        let same = self.same_answer(&pending, message);
        self.report.answers.push(AnswerReport {
            key: self.key(pending.exchange),
            method: pending.method,
            answer: if same { "as_recorded" } else { "differs" }.to_owned(),
        });
    }

    fn same_answer(&self, pending: &Pending, live: &Message<'_>) -> bool {
        let entry = &self.cassette.exchanges[pending.exchange as usize];
        let Some(answer) = &entry.server[pending.item as usize].answer else { return false };
        let mut bytes = Vec::new();
        if self.cassette.wire(entry.session, true, &answer.message, None, &*self.blobs, &mut bytes).is_err() {
            return false;
        }
        let recorded = Message::read(&bytes);
        let form = |message: &Message<'_>| {
            let mut form = Vec::new();
            let read = canonical(b"", message.outcome(), &Default::default(), &mut form);
            read.map(|()| form).ok()
        };
        recorded.kind == live.kind && form(&recorded) == form(live)
    }

    fn cancel(&mut self, now: Micros, id: &[u8]) {
        let Some((play, run)) = self.in_flight.remove(&*id_key(id)) else { return };
        let scene = scene!(self, play, now);
        self.plays[play].cancel(scene, run);
    }
}

/// An exchange found for a live message.
#[derive(Clone, Copy, Debug)]
struct Found {
    play: usize,
    step: u32,
    repeat: bool,
}
