//! The replayer: one take, its sessions, and what it tells of itself.

use std::{
    borrow::Cow,
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use super::{
    matcher::{Matcher, RuleError},
    miss::{self, Candidate},
    options::Options,
    own::{self, Declared, OwnAnswer},
    play::{Action, Gate, Play, Run, Scene},
    rewrite::{self, Correlators},
    script::{Script, StepKind, client_message, client_name, stays_silent},
};
use crate::{
    cassette::{
        blob::BlobSource,
        model::{Cassette, End, Form, Unanswered},
    },
    redact::{Pairing, Redactor},
    report::{AnswerReport, Miss, Reason, Repeat, Report, RuleReport, Verdict, Wait},
    traffic::{Direction, Lane, Micros},
    wire::{
        jsonrpc::{Kind, Message, id_key},
        revision::revision,
        scan,
    },
};

/// How many distinct misses are explained in full; equal ones are counted, further ones too.
const MOST_MISSES: usize = 1_000;

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

    /// Begins a session: the first recorded one not yet played of a client of this name, else the first not yet
    /// played, else the last again.
    fn initialize(&mut self, now: Micros, lane: Lane, message: &Message<'_>) {
        self.report.sessions += 1;
        let name = client_name(message);
        let fresh = |script: &usize| !self.played[*script];
        let same_client = |script: &usize| {
            let session = self.scripts[*script].session.map(|at| &self.cassette.sessions[at as usize]);
            session.is_some_and(|session| {
                session.client.is_some() && session.client.as_deref() == name.as_deref()
            })
        };
        let all = 1..self.scripts.len();
        let chosen =
            all.clone().filter(fresh).find(same_client).or_else(|| all.clone().find(fresh)).or(all.last());
        let Some(chosen) = chosen else {
            if let Some(found) = self.find(message) {
                return self.play(now, lane, message, found);
            }
            let reason = if self.legacy_recording { Reason::NeverRecorded } else { Reason::OtherEra };
            return self.miss(lane, message, reason, None);
        };
        self.played[chosen] = true;
        self.plays.push(Play::new(chosen, &self.scripts[chosen]));
        self.pairings.push(Pairing::new());
        self.live_capabilities = message.param("/capabilities").map(<[u8]>::to_vec);
        self.learn(chosen, message);
        match self.find(message) {
            Some(found) => self.play(now, lane, message, found),
            None => self.unmatched(lane, message, "initialize"),
        }
    }

    /// Reads what the recorded server declared, and tells where the live client offers less than the recorded one.
    fn learn(&mut self, script: usize, live: &Message<'_>) {
        let (mut request, mut answer) = (Vec::new(), Vec::new());
        let step = self.scripts[script].steps.iter().find(|step| &*step.method == "initialize");
        let Some(step) = step else { return };
        let entry = &self.cassette.exchanges[step.exchange as usize];
        client_message(&self.cassette, &*self.blobs, entry, &mut request);
        let result = entry.server.iter().find(|item| item.message.form == Form::Result);
        let read = result.map(|item| {
            self.cassette.wire(entry.session, false, &item.message, None, &*self.blobs, &mut answer)
        });
        let message = Message::read(&answer);
        if let (Some(Ok(())), Some(outcome)) = (read, message.outcome_span()) {
            let at = |name| scan::member(&answer, outcome.start, name).map(|span| span.of(&answer));
            self.declared = Declared {
                capabilities: at("capabilities").map(<[u8]>::to_vec),
                protocol: at("protocolVersion")
                    .map(|raw| crate::wire::jsonrpc::text(raw).into_owned())
                    .unwrap_or_default(),
            };
            let offered = live.param("/protocolVersion").map(crate::wire::jsonrpc::text);
            if let Some(offered) = offered.filter(|offered| **offered != *self.declared.protocol) {
                self.warn(format!(
                    "the client offered protocol {offered}; the recorded server answers {}",
                    self.declared.protocol
                ));
            }
        }
        let recorded = Message::read(&request);
        let missing: Vec<String> = capability_names(&recorded)
            .filter(|name| !capability_names(live).any(|live| live == *name))
            .map(|name| format!("`{name}`"))
            .collect();
        if !missing.is_empty() {
            self.warn(format!(
                "the recorded client declared {}, the live one does not: server requests of that kind are left out",
                missing.join(", ")
            ));
        }
    }

    /// Where the exchange a live message asks for stands: in the current session, or in the pool.
    fn find(&mut self, message: &Message<'_>) -> Option<Found> {
        let current = self.plays.len() - 1;
        let plays = if message.is_modern() { [0, current] } else { [current, 0] };
        for play in plays.into_iter().take(if current == 0 { 1 } else { 2 }) {
            let script = &self.scripts[self.plays[play].script];
            let (queue, own) = script.find(&mut self.matcher, message);
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
        if memchr::memmem::find(message.bytes, b"<redacted:").is_none() {
            return true;
        }
        let mut recorded = Vec::new();
        let entry = &self.cassette.exchanges[exchange as usize];
        client_message(&self.cassette, &*self.blobs, entry, &mut recorded);
        self.pairings[play].pair(message.bytes, &recorded).is_ok()
    }

    fn start(&mut self, now: Micros, found: Found, run: Run, id: Option<Vec<u8>>) {
        let play = &mut self.plays[found.play];
        let scene = Scene {
            cassette: &self.cassette,
            script: &self.scripts[play.script],
            options: &self.options,
            now,
            closed: self.closed,
        };
        let run = play.start(scene, found.step, found.repeat, run);
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
        run.log_level = message.param("/_meta/io.modelcontextprotocol~1logLevel").is_some();
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
            let read =
                super::matcher::canonical::canonical(b"", message.outcome(), &Default::default(), &mut form);
            read.map(|()| form).ok()
        };
        recorded.kind == live.kind && form(&recorded) == form(live)
    }

    fn cancel(&mut self, now: Micros, id: &[u8]) {
        let Some((play, run)) = self.in_flight.remove(&*id_key(id)) else { return };
        let play = &mut self.plays[play];
        let scene = Scene {
            cassette: &self.cassette,
            script: &self.scripts[play.script],
            options: &self.options,
            now,
            closed: self.closed,
        };
        play.cancel(scene, run);
    }

    /// A request nothing recorded equals: one of those we answer ourselves, or a miss.
    fn unmatched(&mut self, lane: Lane, message: &Message<'_>, method: &str) {
        let modern = message.is_modern();
        match own::answer(method, modern, &self.declared, self.legacy_recording) {
            Some(answer) => {
                *self.report.self_answered.entry(method.to_owned()).or_default() += 1;
                let id = message.id().unwrap_or(b"null");
                let bytes = match answer {
                    OwnAnswer::Empty => [b"{\"jsonrpc\":\"2.0\",\"id\":", id, b",\"result\":{}}"].concat(),
                    OwnAnswer::MethodNotFound => {
                        miss::error(id, -32601, &format!("Method not found: {method}"), None)
                    }
                };
                self.outputs.push_back(Output::Send { lane, bytes, apart: false });
            }
            None => {
                let (reason, nearest) = self.explain(message, modern);
                self.miss(lane, message, reason, nearest);
            }
        }
    }

    /// Why nothing equals this request, and what comes nearest.
    fn explain(&mut self, message: &Message<'_>, modern: bool) -> (Reason, Option<u32>) {
        let current = self.plays.last().map_or(0, |play| play.script);
        for script in (0..self.scripts.len()).filter(|&script| script != current) {
            let (queue, own) = self.scripts[script].find(&mut self.matcher, message);
            let script = &self.scripts[script];
            let queued = queue.and_then(|queue| script.queues[queue as usize].first());
            if let Some(&step) = queued.or(own.first()) {
                return (Reason::OtherSession, Some(script.steps[step as usize].exchange));
            }
        }
        if modern && self.legacy_recording && self.scripts[0].steps.is_empty() {
            return (Reason::OtherEra, None);
        }
        let nearest = self.nearest(message, current);
        match nearest {
            Some((exchange, true)) => (Reason::ParamsDiffer, Some(exchange)),
            Some((exchange, false)) => (Reason::NeverRecorded, Some(exchange)),
            None => (Reason::NeverRecorded, None),
        }
    }

    /// The exchange that differs least among those of the same method, and whether it has the same name.
    fn nearest(&self, message: &Message<'_>, script: usize) -> Option<(u32, bool)> {
        let method = message.method();
        let name = message.name();
        let mut bytes = Vec::new();
        let mut best: Option<(bool, usize, u32)> = None;
        let scripts = [script, 0];
        let scripts = if script == 0 { &scripts[..1] } else { &scripts };
        let steps = scripts.iter().flat_map(|&script| &self.scripts[script].steps);
        for step in steps.filter(|step| step.kind == StepKind::Request && *step.method == *method).take(1_000)
        {
            let entry = &self.cassette.exchanges[step.exchange as usize];
            if !client_message(&self.cassette, &*self.blobs, entry, &mut bytes) {
                continue;
            }
            let other_name = Message::read(&bytes).name() != name;
            let rank = (other_name, miss::distance(&bytes, message.bytes), step.exchange);
            best = Some(best.map_or(rank, |best| best.min(rank)));
        }
        best.map(|(other_name, _, exchange)| (exchange, !other_name))
    }

    fn miss(&mut self, lane: Lane, message: &Message<'_>, reason: Reason, nearest: Option<u32>) {
        let mut bytes = Vec::new();
        let key = nearest.map(|exchange| {
            let entry = &self.cassette.exchanges[exchange as usize];
            client_message(&self.cassette, &*self.blobs, entry, &mut bytes);
            entry.key.to_string()
        });
        let era = self.era();
        let key = key.or((reason == Reason::OtherEra).then_some(era));
        let candidate = key.as_deref().map(|key| Candidate { key, message: &bytes });
        let miss = miss::describe(message, reason, candidate.as_ref());
        let bytes = miss::response(message.id().unwrap_or(b"null"), &miss);
        self.outputs.push_back(Output::Send { lane, bytes, apart: false });
        self.remember(miss);
    }

    /// The revision of the recording, for a client of the other era.
    fn era(&self) -> String {
        let protocols = self.scripts.iter().flat_map(|script| &script.steps).filter_map(|step| {
            let session = self.cassette.exchanges[step.exchange as usize].session;
            self.cassette.sessions[session as usize].protocol.clone()
        });
        protocols
            .max()
            .map_or_else(|| "an unknown revision".to_owned(), |protocol| format!("revision {protocol}"))
    }

    fn remember(&mut self, miss: Miss) {
        let misses = &mut self.report.misses;
        let full = misses.len() >= MOST_MISSES;
        match misses.iter_mut().rev().find(|known| full || known.message == miss.message) {
            Some(known) => known.count += 1,
            None => misses.push(miss),
        }
    }

    fn repeated(&mut self, exchange: u32) {
        let key = self.key(exchange);
        match self.report.repeats.iter_mut().find(|repeat| repeat.key == key) {
            Some(repeat) => repeat.count += 1,
            None => self.report.repeats.push(Repeat { key, count: 1 }),
        }
    }

    fn warn(&mut self, text: String) {
        if !self.report.warnings.contains(&text) {
            self.report.warnings.push(text);
        }
    }

    // What goes to the client.

    /// Performs everything that can go now, in every session of the take.
    fn advance(&mut self, now: Micros) {
        self.deadline = None;
        for at in 0..self.plays.len() {
            while !self.ended {
                let scene = Scene {
                    cassette: &self.cassette,
                    script: &self.scripts[self.plays[at].script],
                    options: &self.options,
                    now,
                    closed: self.closed,
                };
                match self.plays[at].step(scene) {
                    Action::Idle { until } => {
                        self.deadline = self.deadline.into_iter().chain(until).min();
                        break;
                    }
                    action => self.perform(now, at, action),
                }
            }
        }
    }

    fn perform(&mut self, now: Micros, play: usize, action: Action) {
        let script = self.plays[play].script;
        match action {
            Action::Item { run, item } => self.item(play, run, item),
            Action::Push { step } => {
                let exchange = self.scripts[script].steps[step as usize].exchange;
                for item in 0..self.cassette.exchanges[exchange as usize].server.len() as u32 {
                    self.send(Sending {
                        play,
                        run: None,
                        exchange,
                        item,
                        lane: Lane(0),
                        to: &Correlators::default(),
                    });
                }
            }
            Action::Finished { run } => self.finished(now, play, run),
            Action::End { session } => {
                self.ended = true;
                let end = self.cassette.sessions[session as usize].end.clone().unwrap_or_default();
                self.outputs.push_back(Output::End(end));
            }
            Action::GraceOver { run, missing } => {
                let missing = self.scripts[script].steps[missing as usize].exchange;
                self.waited(play, run, format!("`{}` to come first", self.key(missing)), false);
            }
            Action::GateOpened { run, gate, why } => {
                let what = match gate {
                    Gate::Cancel => format!("the client to cancel it: {why}"),
                    Gate::Answer(item) => {
                        self.pending.retain(|pending| {
                            (pending.play, pending.run, pending.item) != (play, Some(run), item)
                        });
                        format!("the client's answer to item {}: {why}", item + 1)
                    }
                };
                self.waited(play, run, what, true);
            }
            Action::Idle { .. } => {}
        }
    }

    fn waited(&mut self, play: usize, run: u32, waited_for: String, bad: bool) {
        let Some(run) = self.plays[play].run(run) else { return };
        let step = &self.scripts[self.plays[play].script].steps[run.step as usize];
        let key = self.key(step.exchange);
        self.report.waits.push(Wait { key, waited_for, bad });
    }

    /// Sends one item of a run's exchange.
    fn item(&mut self, play: usize, at: u32, item: u32) {
        let Some(run) = self.plays[play].run(at) else { return };
        let step = &self.scripts[self.plays[play].script].steps[run.step as usize];
        let (exchange, lane) = (step.exchange, run.lane);
        // Modern servers log only to requests that ask for it (specification 2026-07-28, server/utilities/logging).
        let unasked_log = step.log_level && !run.log_level;
        let (to, batch) = (run.to.clone(), run.batch.clone());
        if unasked_log && self.is_log(exchange, item) {
            return;
        }
        let message = &self.cassette.exchanges[exchange as usize].server[item as usize].message;
        if message.form == Form::Omitted {
            return self.incomplete(lane, &to.live_id, exchange);
        }
        if !batch.is_empty() {
            let mut bytes = self.recorded(exchange, item);
            rewrite::rewrite_batch(&mut bytes, &batch);
            return self.recorded_output(lane, bytes, false);
        }
        self.send(Sending { play, run: Some(at), exchange, item, lane, to: &to });
    }

    fn is_log(&self, exchange: u32, item: u32) -> bool {
        Message::read(&self.recorded(exchange, item)).method() == "notifications/message"
    }

    /// A recorded server message as it stood on the wire; empty where its blob has gone since the cassette was
    /// loaded.
    fn recorded(&self, exchange: u32, item: u32) -> Vec<u8> {
        let entry = &self.cassette.exchanges[exchange as usize];
        let mut bytes = Vec::new();
        let message = &entry.server[item as usize].message;
        if self.cassette.wire(entry.session, false, message, None, &*self.blobs, &mut bytes).is_err() {
            bytes.clear();
        }
        bytes
    }

    fn send(&mut self, sending: Sending<'_>) {
        let Sending { play, run, exchange, item, lane, to } = sending;
        let mut bytes = self.recorded(exchange, item);
        let entry = &self.cassette.exchanges[exchange as usize];
        let asks_client = entry.server[item as usize].answer.is_some()
            || entry.server[item as usize].message.form == Form::Request;
        if asks_client {
            let message = Message::read(&bytes);
            let method = message.method().into_owned();
            if message.kind == Kind::Request {
                if !self.client_can(&method) {
                    let waited_for = format!(
                        "the client's answer to `{method}`: the client did not declare that capability"
                    );
                    self.report.waits.push(Wait { key: entry.key.to_string(), waited_for, bad: true });
                    return;
                }
                let id = self.live_server_id(&mut bytes);
                let answered = entry.server[item as usize].answer.is_some();
                if let Some(run) = run.filter(|_| answered) {
                    self.plays[play].await_answer(run, item);
                }
                self.pending.push(Pending {
                    id,
                    play,
                    run: run.filter(|_| answered),
                    exchange,
                    item,
                    method,
                });
            }
        } else if !rewrite::rewrite(&mut bytes, to) {
            return;
        }
        let apart = item > 0 && self.follows_notification(exchange, item);
        self.recorded_output(lane, bytes, apart);
    }

    /// Sends recorded bytes, with the values of variables in their places.
    fn recorded_output(&mut self, lane: Lane, bytes: Vec<u8>, apart: bool) {
        let shown = match self.options.vars.show(&bytes) {
            Cow::Borrowed(_) => None,
            Cow::Owned(shown) => Some(shown),
        };
        self.outputs.push_back(Output::Send { lane, bytes: shown.unwrap_or(bytes), apart });
    }

    fn follows_notification(&self, exchange: u32, item: u32) -> bool {
        let server = &self.cassette.exchanges[exchange as usize].server;
        let form = |item: u32| server[item as usize].message.form;
        matches!(form(item), Form::Result | Form::Error) && form(item - 1) == Form::Notification
    }

    /// Whether the live client can answer this server request, as far as the recorded one could.
    fn client_can(&self, method: &str) -> bool {
        let Some(capability) = own::client_capability(method) else { return true };
        let Some(live) = &self.live_capabilities else { return true };
        let declared = |object: &[u8]| scan::member(object, 0, capability).is_some();
        declared(live) || !self.recorded_client_declared(capability)
    }

    fn recorded_client_declared(&self, capability: &str) -> bool {
        let script = self.plays.last().map_or(0, |play| play.script);
        let step = self.scripts[script].steps.iter().find(|step| &*step.method == "initialize");
        let mut bytes = Vec::new();
        step.is_some_and(|step| {
            let entry = &self.cassette.exchanges[step.exchange as usize];
            client_message(&self.cassette, &*self.blobs, entry, &mut bytes)
                && Message::read(&bytes)
                    .param("/capabilities")
                    .is_some_and(|object| scan::member(object, 0, capability).is_some())
        })
    }

    /// The id a server request carries live: the recorded one, unless one with that id is still unanswered.
    fn live_server_id(&self, bytes: &mut Vec<u8>) -> Vec<u8> {
        let recorded = Message::read(bytes).id().unwrap_or(b"null").to_vec();
        let taken = |id: &[u8]| self.pending.iter().any(|pending| pending.id == *id_key(id));
        if !taken(&recorded) {
            return id_key(&recorded).into_owned();
        }
        let fresh = (1_000_000u64..).map(|number| number.to_string().into_bytes()).find(|id| !taken(id));
        let fresh = fresh.unwrap_or(recorded);
        rewrite::set_id(bytes, &fresh);
        id_key(&fresh).into_owned()
    }

    /// All of an exchange has been sent.
    fn finished(&mut self, now: Micros, play: usize, at: u32) {
        let Some(run) = self.plays[play].run(at) else { return };
        let step = &self.scripts[self.plays[play].script].steps[run.step as usize];
        let exchange = step.exchange;
        let entry = &self.cassette.exchanges[exchange as usize];
        if step.is_asked() && stays_silent(entry) && !self.closed {
            self.plays[play].silence(at);
            return;
        }
        let (lane, live_id) = (run.lane, run.to.live_id.clone());
        let lost = step.is_asked() && entry.unanswered == Some(Unanswered::Lost);
        self.in_flight.remove(&*id_key(&live_id));
        let scene = Scene {
            cassette: &self.cassette,
            script: &self.scripts[self.plays[play].script],
            options: &self.options,
            now,
            closed: self.closed,
        };
        self.plays[play].remove(scene, at);
        if lost {
            self.incomplete(lane, &live_id, exchange);
        }
    }

    /// The recording has no whole answer: a miss, told with the live id.
    fn incomplete(&mut self, lane: Lane, live_id: &[u8], exchange: u32) {
        let entry = &self.cassette.exchanges[exchange as usize];
        let mut bytes = Vec::new();
        client_message(&self.cassette, &*self.blobs, entry, &mut bytes);
        let key = entry.key.to_string();
        let message = Message::read(&bytes);
        let candidate = Candidate { key: &key, message: &bytes };
        let miss = miss::describe(&message, Reason::Incomplete, Some(&candidate));
        let bytes = miss::response(live_id, &miss);
        self.outputs.push_back(Output::Send { lane, bytes, apart: false });
        self.remember(miss);
    }
}

/// An exchange found for a live message.
#[derive(Clone, Copy, Debug)]
struct Found {
    play: usize,
    step: u32,
    repeat: bool,
}

/// One recorded server message on its way.
struct Sending<'a> {
    play: usize,
    /// The run it belongs to; none for a push.
    run: Option<u32>,
    exchange: u32,
    item: u32,
    lane: Lane,
    to: &'a Correlators,
}

/// The sessions of the recording asked for, as indexes.
fn chosen_sessions(cassette: &Cassette, options: &Options) -> Result<Vec<u32>, ReplayError> {
    let newest = cassette.sessions.iter().map(|session| session.recording).max().unwrap_or(1);
    let wanted =
        match options.session.map(|number| cassette.sessions.iter().find(|session| session.number == number))
        {
            Some(Some(session)) => session.recording,
            _ => options.recording.unwrap_or(newest),
        };
    let of_recording = |session: &&(u32, u32, u32)| session.1 == wanted;
    let all: Vec<(u32, u32, u32)> =
        (0..).zip(&cassette.sessions).map(|(at, session)| (at, session.recording, session.number)).collect();
    if options.recording.is_some() && !all.iter().any(|session| session.1 == wanted) {
        let mut known: Vec<u32> = all.iter().map(|session| session.1).collect();
        known.dedup();
        return Err(ReplayError::NoRecording { wanted, known });
    }
    let recording: Vec<_> = all.iter().filter(of_recording).copied().collect();
    match options.session {
        None => Ok(recording.into_iter().map(|session| session.0).collect()),
        Some(wanted) => match recording.iter().find(|session| session.2 == wanted) {
            Some(session) => Ok(vec![session.0]),
            None => Err(ReplayError::NoSession {
                wanted,
                known: recording.into_iter().map(|session| session.2).collect(),
            }),
        },
    }
}

/// Exchanges by who may play them: the pool, and each session that begins with `initialize`.
fn divide(cassette: &Cassette, blobs: &dyn BlobSource, sessions: &[u32]) -> (Vec<u32>, Vec<(u32, Vec<u32>)>) {
    let handshakes: Vec<bool> = {
        let mut has = vec![false; cassette.sessions.len()];
        for exchange in &cassette.exchanges {
            has[exchange.session as usize] |=
                exchange.key.starts_with("initialize ") || is_initialize(cassette, blobs, exchange);
        }
        has
    };
    let mut pool = Vec::new();
    let mut own: Vec<(u32, Vec<u32>)> =
        sessions.iter().filter(|&&at| handshakes[at as usize]).map(|&at| (at, Vec::new())).collect();
    let mut bytes = Vec::new();
    for (at, exchange) in (0..).zip(&cassette.exchanges) {
        if !sessions.contains(&exchange.session) {
            continue;
        }
        let script = own.iter_mut().find(|(session, _)| *session == exchange.session);
        match script {
            // In a session of the legacy era only a probe can be modern, and only where it says so.
            Some((_, list)) => {
                let text = cassette.at(exchange.place);
                let probe = memchr::memmem::find(text, b"io.modelcontextprotocol/protocolVersion").is_some()
                    && client_message(cassette, blobs, exchange, &mut bytes)
                    && Message::read(&bytes).is_modern();
                if probe { pool.push(at) } else { list.push(at) }
            }
            None => pool.push(at),
        }
    }
    (pool, own)
}

/// Whether an exchange is a handshake although a person has given it a key of their own.
fn is_initialize(
    cassette: &Cassette,
    blobs: &dyn BlobSource,
    exchange: &crate::cassette::model::Exchange,
) -> bool {
    let mut bytes = Vec::new();
    memchr::memmem::find(cassette.at(exchange.place), b"\"initialize\"").is_some()
        && client_message(cassette, blobs, exchange, &mut bytes)
        && Message::read(&bytes).method() == "initialize"
}

fn is_modern(cassette: &Cassette, session: u32) -> bool {
    let protocol = cassette.sessions[session as usize].protocol.as_deref();
    protocol.is_some_and(|protocol| !revision(protocol).handshake)
}

fn gaps(cassette: &Cassette, sessions: &[u32]) -> Vec<String> {
    let sessions =
        sessions.iter().map(|&at| &cassette.sessions[at as usize]).filter(|session| session.gap > 0);
    sessions
        .map(|session| {
            format!(
                "session {}: {} messages passed unrecorded, because recording failed",
                session.number, session.gap
            )
        })
        .collect()
}

/// The names of the capabilities an `initialize` request declares.
fn capability_names<'a>(initialize: &Message<'a>) -> impl Iterator<Item = String> + use<'a> {
    let capabilities = initialize.param("/capabilities").unwrap_or(b"{}");
    scan::members(capabilities, 0)
        .map_while(Result::ok)
        .map(|member| crate::wire::jsonrpc::text(member.name.of(capabilities)).into_owned())
}
