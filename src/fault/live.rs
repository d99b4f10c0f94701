//! Faults on live traffic: between a client and a server that is really there.
//!
//! [`Live`] stands between the client and whoever passes its messages on (and records them: what is recorded is what
//! the peers really said). It is told of everything and decides; it owns no socket, no pipe and no clock:
//!
//! 1. What a client sends goes to [`Live::client`], which says what is to become of it: pass it on now, later (when
//!    [`Live::poll`] says so), or never, because a fault answers in the server's place.
//! 2. What the server says goes to [`Live::server`], in the vocabulary of [`Output`].
//! 3. What [`Live::poll`] gives is done, until it gives nothing; and again at [`Live::deadline`].
//!
//! On stdio both pipes are lane 0, and each line is a [`Output::Send`]; when the server's stdout ends, that and a last
//! line without an end go to [`Live::server_ended`], and ours ends as soon as nothing is owed any more
//! ([`Live::owes`]). Over HTTP each request has a lane of its own, from 1: a [`Output::Head`], then one
//! [`Output::Body`] or any number of [`Output::Event`]s, then [`Output::EndLane`]. What comes out for a lane is such a
//! sequence too; behind its `EndLane` nothing more comes for it.
//!
//! Recorded exchanges have keys, live requests have not: here a key is that which a first recording would give the
//! request, `tools/call search @2` for the second `tools/call` of that tool.

mod asked;
mod came;
mod check;
mod client;
mod ending;

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    fmt,
    sync::Arc,
};

use self::asked::{Asked, Whose};
pub use self::came::{Came, Do, Http, Look, Options, Passing};
use super::{Engine, Plan, Stage, step::Output};
use crate::{
    cassette::model::StreamEnd,
    report::{FaultReport, Report, Verdict, events::Event, ledger::Ledger},
    traffic::{Lane, Micros},
};

/// The state of a plan on live traffic: one take.
pub struct Live {
    plan: Arc<Plan>,
    engine: Engine,
    stage: Stage,
    look: Box<dyn Look>,
    ledger: Option<Ledger>,
    report: Report,
    /// How many requests of each method and name have come.
    counts: HashMap<String, u64>,
    /// Affected requests whose answers come on a stream that they share.
    asked: Asked,
    /// What is held back on its way to the server, by when it goes and in order.
    held: BTreeMap<(Micros, u64), Held>,
    holds: u64,
    /// HTTP responses that have not ended.
    lanes: HashMap<u32, Response>,
    /// Sessions by what clients name them by, and their numbers; and those that a fault has ended.
    sessions: HashMap<Box<str>, u64>,
    lost: HashSet<Box<str>>,
    outputs: VecDeque<Output>,
    lingers: Micros,
    has_come: bool,
    /// On stdio: a fault has closed what the client reads.
    is_shut: bool,
}

/// What is on its way to the server.
#[derive(Debug)]
struct Held {
    lane: Lane,
    bytes: Vec<u8>,
}

/// An HTTP response that has not ended.
#[derive(Debug, Default)]
struct Response {
    /// The number of its session; 0: none.
    session: u64,
    /// Its request begins that session.
    begins: bool,
    /// What the server says on it is not heard: it was answered in its place.
    is_deaf: bool,
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live").field("engine", &self.engine).finish_non_exhaustive()
    }
}

impl Live {
    /// The beginning of live traffic under a plan that [`Plan::check_live`] has nothing against.
    pub fn new(plan: Arc<Plan>, options: Options) -> Self {
        let mut report = Report::open(&options.name);
        report.seed = plan.seed_in_use();
        Self {
            engine: Engine::new(Arc::clone(&plan)),
            plan,
            stage: Stage::default(),
            look: options.look,
            ledger: options.events.map(Ledger::new),
            report,
            counts: HashMap::new(),
            asked: Asked::default(),
            held: BTreeMap::new(),
            holds: 0,
            lanes: HashMap::new(),
            sessions: HashMap::new(),
            lost: HashSet::new(),
            outputs: VecDeque::new(),
            lingers: 0,
            has_come: false,
            is_shut: false,
        }
    }

    /// Whether anything is to act; else it looks on.
    pub fn acts(&self) -> bool {
        self.plan.has_rules()
    }

    /// The server says something. On an HTTP lane that has ended, or that its client has left, nobody hears it.
    pub fn server(&mut self, now: Micros, output: Output) {
        let lane = output.lane();
        if lane.0 > 0 {
            let Some(response) = self.lanes.get(&lane.0).filter(|response| !response.is_deaf) else { return };
            if let (Output::Head { head, .. }, true) = (&output, response.begins) {
                let named = head.headers.iter().find(|(name, _)| &**name == "mcp-session-id");
                let named = named.and_then(|(_, value)| std::str::from_utf8(value).ok());
                self.sessions.extend(named.map(|named| (named.into(), response.session)));
            }
        }
        match self.stage.on_lane(&output) {
            Some(acting) => self.stage.pass(now, acting, output, &mut self.outputs),
            None => match self.asked.whose(&output) {
                Whose::Nobodys => self.stage.go(now, None, output, &mut self.outputs),
                Whose::Affected { acting: None, .. } => {}
                Whose::Affected { acting: Some(acting), is_last } => {
                    self.stage.pass(now, acting, output, &mut self.outputs);
                    if is_last {
                        self.stage.close(acting);
                    }
                }
            },
        }
        self.take_back_idle();
    }

    /// Faults that could change nothing have not acted.
    fn take_back_idle(&mut self) {
        self.stage.take_back_idle(&mut self.engine, self.ledger.as_mut());
    }

    /// The client has left a lane: it closed the connection before the response had ended.
    pub fn left(&mut self, lane: Lane) {
        self.stage.left(lane);
        self.lanes.remove(&lane.0);
        self.held.retain(|_, held| held.lane != lane);
        self.asked.left(lane).for_each(|acting| self.stage.close(acting));
        self.take_back_idle();
        if let Some(ledger) = &mut self.ledger {
            ledger.left(lane);
        }
    }

    /// The next thing to do now.
    pub fn poll(&mut self, now: Micros) -> Option<Do> {
        if let Some(first) = self.held.first_entry().filter(|first| first.key().0 <= now) {
            let Held { lane, bytes } = first.remove();
            return Some(Do::Pass { lane, bytes });
        }
        loop {
            if self.outputs.is_empty() {
                self.stage.release(now, &mut self.outputs);
            }
            let output = self.outputs.pop_front()?;
            let goes = self.goes(&output);
            self.take_back_idle();
            if goes {
                self.note_told(now, &output);
                return Some(Do::Say(output));
            }
        }
    }

    /// Whether an output goes out; what it ends is taken in.
    fn goes(&mut self, output: &Output) -> bool {
        let lane = output.lane();
        match output {
            _ if lane.0 == 0 => {
                let was_shut = self.is_shut;
                self.is_shut |= matches!(output, Output::EndLane { .. });
                !was_shut || matches!(output, Output::End { .. })
            }
            Output::End { .. } => {
                self.server_died();
                false
            }
            Output::EndLane { .. } => {
                self.asked.left(lane).for_each(|acting| self.stage.close(acting));
                self.lanes.remove(&lane.0).is_some()
            }
            _ => self.lanes.contains_key(&lane.0),
        }
    }

    /// A fault has ended the server, as far as clients over HTTP know, and with it all that they had open.
    fn server_died(&mut self) {
        let mut lanes: Vec<u32> = self.lanes.keys().copied().collect();
        lanes.sort_unstable();
        for lane in lanes.into_iter().map(Lane) {
            self.stage.left(lane);
            self.asked.left(lane).for_each(|acting| self.stage.close(acting));
            let end = Some(StreamEnd::Cut);
            self.outputs.push_back(Output::EndLane { lane, partial: Vec::new(), end });
        }
        self.lost.extend(std::mem::take(&mut self.sessions).into_keys());
    }

    fn note_told(&mut self, now: Micros, output: &Output) {
        let Some(ledger) = &mut self.ledger else { return };
        let session = self.lanes.get(&output.lane().0).map(|response| response.session);
        let session = session.filter(|session| *session > 0);
        let live = || usize::try_from(session?).ok();
        match output {
            Output::Head { lane, head } => ledger.head(*lane, head.status, head.stream),
            Output::EndLane { lane, .. } => ledger.ended(now, *lane),
            Output::Raw { lane, bytes, goes_on } => ledger.piece(now, *lane, (bytes, *goes_on), live),
            _ => {
                let Some(text) = output.text() else { return };
                ledger.told(now, output.lane(), text, live);
            }
        }
    }

    /// Whether a fault acts on what is said on this lane because of the request that opened it.
    pub fn is_affected(&self, lane: Lane) -> bool {
        self.stage.acts_on(lane) || self.is_unheard(lane)
    }

    /// Whether the server is asked although it was answered in its place.
    pub fn is_unheard(&self, lane: Lane) -> bool {
        self.lanes.get(&lane.0).is_some_and(|response| response.is_deaf)
    }

    /// When to poll again although nothing came.
    pub fn deadline(&self) -> Option<Micros> {
        let held = self.held.first_key_value().map(|((due, _), _)| *due);
        held.into_iter().chain(self.stage.deadline()).min()
    }

    /// Whether something waits that is for the client on this lane.
    pub fn owes(&self, lane: Lane) -> bool {
        self.stage.owes(lane) || self.outputs.iter().any(|output| output.lane() == lane)
    }

    /// Whether something waits that is for the server.
    pub fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    /// How long a server on stdio stays although it is told to end.
    pub const fn lingers(&self) -> Micros {
        self.lingers
    }

    /// Events of messages whose outcome is known by now. After the last one (`is_last`), nothing is answered any more.
    pub fn take_events(&mut self, is_last: bool) -> Vec<Event> {
        if is_last {
            self.stage.is_over();
            self.take_back_idle();
        }
        self.ledger.as_mut().map(|ledger| ledger.take(is_last)).unwrap_or_default()
    }

    /// The report as it stands, with verdict `open`.
    pub fn report(&self) -> Report {
        let mut report = self.report.clone();
        report.faults = self.engine.report(self.stage.not_acted());
        report.warnings.extend(report.faults.iter().filter_map(FaultReport::untold));
        report
    }

    /// The report at the end, with its verdict: bad where a rule that should have acted did not, or something is not as
    /// the plan asserts.
    pub fn finish(&self) -> Report {
        let mut report = self.report();
        report.asserts = [self.plan.judge(&report), self.plan.judge_all(&report)].concat();
        report.verdict = if report.is_bad() { Verdict::Bad } else { Verdict::Good };
        report
    }
}

#[cfg(test)]
mod acted;
#[cfg(test)]
mod tests;
