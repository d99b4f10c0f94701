//! What a replay, or live traffic under faults, reports: one JSON object, written at the start, while misses come, and
//! at the end.

pub mod events;
pub(crate) mod ledger;
pub mod live;
mod merge;
mod rows;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use rows::{
    AnswerReport, AssertReport, Difference, FaultReport, Firing, Miss, NotJoined, PassedOn, ProtocolReport,
    Reason, Refused, Repeat, RuleReport, SuggestedRule, Wait,
};

/// How many methods [`Report::sequence`] holds.
const SEQUENCE: usize = 1_000;

/// The report of one replay process.
///
/// `verdict` is `open` while the process lives, so a file that still says so tells of a process that was killed.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Version of this form, 1.
    pub report: u32,
    /// The whole in one word.
    pub verdict: Verdict,
    /// The cassette that was replayed; where those of several servers were, each as `SERVER=CASSETTE`. Of live traffic,
    /// the cassette that it was recorded into, else the server's program or URL.
    pub cassette: String,
    /// How many calls of each method came.
    pub calls: BTreeMap<String, u64>,
    /// The methods in order of arrival, the first 1,000; take by take, and server by server.
    pub sequence: Vec<String>,
    /// How many sessions the client began.
    pub sessions: u64,
    /// How many connections carried a request.
    pub connections: u64,
    /// Requests the cassette has no answer for.
    pub misses: Vec<Miss>,
    /// Recorded answers that were given more often than they were recorded.
    pub repeats: Vec<Repeat>,
    /// Waits for order that ran out, and answers to server requests that did not come.
    pub waits: Vec<Wait>,
    /// Keys of recorded exchanges that nobody asked for, and that a client of those that came can ask for; of a batch
    /// of which others were, `KEY METHOD NAME`; where there are several servers, each as `SERVER: KEY`.
    pub unused: Vec<String>,
    /// Those of them that make the verdict bad, which is judged at the end, under `--strict` alone.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub left_over: Vec<String>,
    /// Requests that the cassette has no answer for, and that went to the real server.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub passed_on: Vec<PassedOn>,
    /// Why processes could not join the run, or broke off.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub not_joined: Vec<NotJoined>,
    /// Requests over HTTP that were refused: of strangers as a rule, so that they make nothing bad.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub refused: Vec<Refused>,
    /// What was answered without a recording, by method.
    pub self_answered: BTreeMap<String, u64>,
    /// What decided what happened by chance, where fault rules were to act.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub seed: Option<u64>,
    /// Fault rules and what they did.
    pub faults: Vec<FaultReport>,
    /// Server requests, and what the client said.
    pub answers: Vec<AnswerReport>,
    /// Match rules and how many requests each fitted.
    pub rules: Vec<RuleReport>,
    /// What clients did that the protocol does not allow.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub protocol: Vec<ProtocolReport>,
    /// What the plan and the cassette assert, judged at the end.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub asserts: Vec<AssertReport>,
    /// Everything else a reader should know: differing capabilities, a torn journal.
    pub warnings: Vec<String>,
}

/// A report's whole in one word.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The process has not ended, or was killed.
    Open,
    /// All is well.
    Good,
    /// A miss, a gate that had to be opened, or under `--strict` something left over.
    Bad,
}

impl Report {
    /// A report at its start.
    pub fn open(cassette: &str) -> Self {
        Self {
            report: 1,
            verdict: Verdict::Open,
            cassette: cassette.to_owned(),
            calls: BTreeMap::new(),
            sequence: Vec::new(),
            sessions: 0,
            connections: 0,
            misses: Vec::new(),
            repeats: Vec::new(),
            waits: Vec::new(),
            unused: Vec::new(),
            left_over: Vec::new(),
            passed_on: Vec::new(),
            not_joined: Vec::new(),
            refused: Vec::new(),
            self_answered: BTreeMap::new(),
            seed: None,
            faults: Vec::new(),
            answers: Vec::new(),
            rules: Vec::new(),
            protocol: Vec::new(),
            asserts: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// A request or notification has come.
    pub(crate) fn came(&mut self, method: &str) {
        match self.calls.get_mut(method) {
            Some(count) => *count += 1,
            None => {
                self.calls.insert(method.to_owned(), 1);
            }
        }
        if self.sequence.len() < SEQUENCE {
            self.sequence.push(method.to_owned());
        }
    }

    /// A process could not join the run, or broke off, which makes that bad: its client had no server.
    pub fn could_not_join(&mut self, why: String) {
        match self.not_joined.iter_mut().find(|known| known.why == why) {
            Some(known) => known.count += 1,
            None => self.not_joined.push(NotJoined { why, count: 1 }),
        }
    }

    /// Gives each text in which something of what clients said stands.
    pub(crate) fn each_said(&mut self, mut each: impl FnMut(&mut String)) {
        for miss in &mut self.misses {
            each(&mut miss.method);
            miss.name.iter_mut().for_each(&mut each);
            each(&mut miss.message);
            miss.differences.iter_mut().flat_map(|differs| &mut differs.live).for_each(&mut each);
            miss.rule.iter_mut().flat_map(|rule| rule.when.values_mut()).for_each(&mut each);
        }
        for passed in &mut self.passed_on {
            each(&mut passed.request);
            passed.why.iter_mut().for_each(&mut each);
        }
        let firings = self.faults.iter_mut().flat_map(|fault| &mut fault.firings);
        firings.flat_map(|firing| &mut firing.name).for_each(&mut each);
        self.protocol.iter_mut().for_each(|told| each(&mut told.text));
        self.warnings.iter_mut().for_each(each);
    }

    /// Whether something in it makes the run bad.
    pub fn is_bad(&self) -> bool {
        self.is_bad_for_itself() || self.lacks_faults()
    }

    /// Whether a fault that should have acted did not.
    pub fn lacks_faults(&self) -> bool {
        self.faults.iter().any(FaultReport::is_missing)
    }

    /// Whether something in it makes the run bad, but for faults, which may have acted at another server.
    pub fn is_bad_for_itself(&self) -> bool {
        !self.misses.is_empty()
            || !self.not_joined.is_empty()
            || self.waits.iter().any(|wait| wait.bad)
            || self.passed_on.iter().any(|passed| passed.failed > 0)
            || self.asserts.iter().any(|assert| !assert.holds)
    }
}
