//! What a replay, or live traffic under faults, reports: one JSON object, written at the start, at each miss and at
//! the end.

pub mod events;
pub(crate) mod ledger;
pub mod live;

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};

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
    /// Keys of recorded exchanges nobody asked for; where there are several servers, each as `SERVER: KEY`.
    pub unused: Vec<String>,
    /// Requests that the cassette has no answer for, and that went to the real server.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub passed_on: Vec<PassedOn>,
    /// Why processes could not join the run, or broke off.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub not_joined: Vec<NotJoined>,
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

/// A live request for which the cassette holds no answer.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Miss {
    /// Where several servers are replayed, which one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub server: Option<String>,
    /// Its method.
    pub method: String,
    /// What it was about: tool, prompt or URI.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    /// Why nothing fits.
    pub reason: Reason,
    /// The sentence the client was told.
    pub message: String,
    /// The nearest recorded exchange.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub nearest: Option<String>,
    /// Where the two differ.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub differences: Vec<Difference>,
    /// A `match` rule that would make them equal, to paste into the cassette.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rule: Option<SuggestedRule>,
    /// How often this very miss came.
    pub count: u64,
}

/// A `match` rule to paste into a cassette.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct SuggestedRule {
    /// Which requests: one of `tool`, `prompt`, `method`, and its value.
    pub when: BTreeMap<String, String>,
    /// The places that differ, as JSON Pointers.
    pub ignore: Vec<String>,
}

/// A fault rule and what it did.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct FaultReport {
    /// The rule's name or text.
    pub rule: String,
    /// Its text, where that is not what it is called by; of an exchange's own fault, that fault's.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub text: Option<String>,
    /// It stands in the cassette.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub in_cassette: bool,
    /// How often it fired.
    pub fired: u64,
    /// On which exchanges.
    pub keys: Vec<String>,
    /// Nobody minds that it never fires.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub optional: bool,
    /// Where chance decides whether it fires: on which requests it did.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub firings: Vec<Firing>,
}

/// Requests for one exchange, or for none, on which a fault rule fired.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Firing {
    /// The server, where several were served.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub server: Option<String>,
    /// The recorded exchange they asked for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub key: Option<String>,
    /// Where they asked for none: their method.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub method: Option<String>,
    /// And the tool, prompt or URI that they named.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub name: Option<String>,
    /// Which of the requests that the rule is for, counted among those for the same exchange, or of the same method
    /// and name.
    pub nth: Vec<u64>,
}

/// Something that had to be so, and whether it was.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct AssertReport {
    /// Where several servers are replayed and it is said of one of them, which one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub server: Option<String>,
    /// What had to be so.
    pub assert: String,
    /// Whether it was.
    pub holds: bool,
    /// What was found.
    pub found: String,
}

/// Something a client did that the protocol does not allow.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct ProtocolReport {
    /// Where several servers are replayed, which one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub server: Option<String>,
    /// The rule, as `tapedeck lint` names it.
    pub rule: String,
    /// The method of the message that showed it.
    pub method: String,
    /// What was found, and what to do about it.
    pub text: String,
    /// Revision and page of the specification.
    pub source: String,
    /// In how many messages of that method.
    pub count: u64,
}

/// Why a request is a miss.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// Nothing with this method and name was recorded.
    NeverRecorded,
    /// It was recorded with other params.
    ParamsDiffer,
    /// All its recorded answers are used up.
    Consumed,
    /// It came before an answer that had come before it when recorded.
    OutOfOrder,
    /// The recording of its answer is incomplete.
    Incomplete,
    /// A redacted value is not the one it stood for before.
    RedactionDiffers,
    /// Another session holds its answer.
    OtherSession,
    /// The recording is of the other era.
    OtherEra,
}

/// One place at which a live request differs from the nearest recorded one.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// JSON Pointer into the message.
    pub at: String,
    /// The recorded value, cut to 120 characters; none where there was none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub recorded: Option<String>,
    /// The live value, cut likewise.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub live: Option<String>,
}

/// A recorded answer that was repeated.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Repeat {
    /// Where several servers are replayed, which one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub server: Option<String>,
    /// The exchange.
    pub key: String,
    /// How often beyond its recordings.
    pub count: u64,
}

/// Requests that went to the real server.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct PassedOn {
    /// Where several servers are replayed, which one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub server: Option<String>,
    /// What they asked for, as a key begins: method and name.
    pub request: String,
    /// Why the cassette has no answer.
    pub reason: Reason,
    /// The nearest recorded exchange.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub nearest: Option<String>,
    /// How many there were.
    pub count: u64,
    /// How many of them the real server did not answer.
    #[serde(skip_serializing_if = "is_zero", default)]
    pub failed: u64,
    /// Why it did not answer the first of those.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub why: Option<String>,
}

/// Processes that a client started as its server, and that could not join the run, or broke off.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct NotJoined {
    /// Why, in the sentence that they or their users were told.
    pub why: String,
    /// How many there were.
    pub count: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A wait that ran out.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Wait {
    /// Where several servers are replayed, which one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub server: Option<String>,
    /// The exchange that waited.
    pub key: String,
    /// What for.
    pub waited_for: String,
    /// Whether this makes the run bad.
    pub bad: bool,
}

/// A server request and what the client said.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct AnswerReport {
    /// Where several servers are replayed, which one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub server: Option<String>,
    /// The exchange it belongs to.
    pub key: String,
    /// The server request's method.
    pub method: String,
    /// `as_recorded`, `differs` or `none`.
    pub answer: String,
}

/// A match rule and its use.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct RuleReport {
    /// Where several servers are replayed, which one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub server: Option<String>,
    /// The rule's text.
    pub rule: String,
    /// How many live requests it was applied to.
    pub used: u64,
}

impl FaultReport {
    /// Whether it should have fired and did not.
    pub const fn is_missing(&self) -> bool {
        self.fired == 0 && !self.optional
    }

    /// That not all of its firings are told, in a sentence.
    pub fn untold(&self) -> Option<String> {
        let told = self.firings.iter().map(|firing| firing.nth.len() as u64).sum::<u64>();
        (told > 0 && told < self.fired).then(|| {
            format!("the fault `{}` acted {} times; the report tells of {told}", self.rule, self.fired)
        })
    }

    fn add(&mut self, other: Self) {
        self.fired += other.fired;
        self.keys.extend(other.keys);
        self.keys.sort_unstable();
        self.keys.dedup();
        for firing in other.firings {
            let is_alike = |known: &&mut Firing| {
                (&known.key, &known.method, &known.name) == (&firing.key, &firing.method, &firing.name)
            };
            match self.firings.iter_mut().find(is_alike) {
                Some(known) => {
                    known.nth.extend(firing.nth);
                    known.nth.sort_unstable();
                    known.nth.dedup();
                }
                None => self.firings.push(firing),
            }
        }
    }
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
            passed_on: Vec::new(),
            not_joined: Vec::new(),
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

    /// Takes another take of the same run in: what was counted is added up, and unused is what no take has used.
    pub fn merge(&mut self, mut other: Self) {
        let unused: HashSet<String> = std::mem::take(&mut other.unused).into_iter().collect();
        self.unused.retain(|key| unused.contains(key));
        for (rule, other) in self.rules.iter_mut().zip(std::mem::take(&mut other.rules)) {
            rule.used += other.used;
        }
        self.add(other);
    }

    /// The report of several servers: what was counted is added up, all else says whose it is. It is as bad as the
    /// worst of them.
    pub fn of_servers<'a>(servers: impl IntoIterator<Item = (&'a str, Self)>) -> Self {
        let mut whole = Self { verdict: Verdict::Good, ..Self::open("") };
        let mut cassettes = Vec::new();
        for (name, mut report) in servers {
            cassettes.push(format!("{name}={}", report.cassette));
            whole.verdict = match (whole.verdict, report.verdict) {
                (Verdict::Bad, _) | (_, Verdict::Bad) => Verdict::Bad,
                (Verdict::Open, _) | (_, Verdict::Open) => Verdict::Open,
                (Verdict::Good, Verdict::Good) => Verdict::Good,
            };
            report.is_of(name);
            whole.unused.append(&mut report.unused);
            whole.rules.append(&mut report.rules);
            whole.add(report);
        }
        if whole.verdict == Verdict::Good && whole.lacks_faults() {
            whole.verdict = Verdict::Bad;
        }
        whole.cassette = cassettes.join(", ");
        whole
    }

    /// Writes down everywhere which server it is of.
    fn is_of(&mut self, name: &str) {
        let servers = self.misses.iter_mut().map(|miss| &mut miss.server);
        let servers = servers.chain(self.repeats.iter_mut().map(|repeat| &mut repeat.server));
        let servers = servers.chain(self.passed_on.iter_mut().map(|passed| &mut passed.server));
        let servers = servers.chain(self.waits.iter_mut().map(|wait| &mut wait.server));
        let servers = servers.chain(self.answers.iter_mut().map(|answer| &mut answer.server));
        let servers = servers.chain(self.asserts.iter_mut().map(|assert| &mut assert.server));
        let servers = servers.chain(self.protocol.iter_mut().map(|told| &mut told.server));
        for server in servers.chain(self.rules.iter_mut().map(|rule| &mut rule.server)) {
            *server = Some(name.to_owned());
        }
        for firing in self.faults.iter_mut().flat_map(|fault| &mut fault.firings) {
            firing.server = Some(name.to_owned());
        }
        for text in self.unused.iter_mut().chain(&mut self.warnings) {
            *text = format!("{name}: {text}");
        }
    }

    fn add(&mut self, other: Self) {
        for (method, count) in other.calls {
            *self.calls.entry(method).or_default() += count;
        }
        for (what, count) in other.self_answered {
            *self.self_answered.entry(what).or_default() += count;
        }
        let room = SEQUENCE.saturating_sub(self.sequence.len());
        self.sequence.extend(other.sequence.into_iter().take(room));
        self.sessions += other.sessions;
        self.connections += other.connections;
        for miss in other.misses {
            let is_same = |known: &&mut Miss| known.message == miss.message && known.server == miss.server;
            match self.misses.iter_mut().find(is_same) {
                Some(known) => known.count += miss.count,
                None => self.misses.push(miss),
            }
        }
        for repeat in other.repeats {
            let is_same = |known: &&mut Repeat| known.key == repeat.key && known.server == repeat.server;
            match self.repeats.iter_mut().find(is_same) {
                Some(known) => known.count += repeat.count,
                None => self.repeats.push(repeat),
            }
        }
        for passed in other.passed_on {
            let is_same = |known: &&mut PassedOn| {
                (&known.request, known.reason, &known.nearest, &known.server)
                    == (&passed.request, passed.reason, &passed.nearest, &passed.server)
            };
            match self.passed_on.iter_mut().find(is_same) {
                Some(known) => {
                    known.count += passed.count;
                    known.failed += passed.failed;
                    known.why = known.why.take().or(passed.why);
                }
                None => self.passed_on.push(passed),
            }
        }
        self.waits.extend(other.waits);
        self.not_joined.extend(other.not_joined);
        for fault in other.faults {
            match self.faults.iter_mut().find(|known| known.rule == fault.rule) {
                Some(known) => known.add(fault),
                None => self.faults.push(fault),
            }
        }
        self.answers.extend(other.answers);
        for told in other.protocol {
            let is_same = |known: &&mut ProtocolReport| {
                (&known.rule, &known.method, &known.server) == (&told.rule, &told.method, &told.server)
            };
            match self.protocol.iter_mut().find(is_same) {
                Some(known) => known.count += told.count,
                None => self.protocol.push(told),
            }
        }
        self.asserts.extend(other.asserts);
        for warning in other.warnings {
            if !self.warnings.contains(&warning) {
                self.warnings.push(warning);
            }
        }
    }

    /// A process could not join the run, or broke off, which makes that bad: its client had no server.
    pub fn could_not_join(&mut self, why: String) {
        match self.not_joined.iter_mut().find(|known| known.why == why) {
            Some(known) => known.count += 1,
            None => self.not_joined.push(NotJoined { why, count: 1 }),
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_of_several_servers_adds_up_and_says_whose_it_is() {
        let report = |verdict| {
            let wait = Wait { server: None, key: "a @1".into(), waited_for: "b".into(), bad: true };
            Report {
                verdict,
                calls: BTreeMap::from([("ping".into(), 2)]),
                sessions: 1,
                unused: vec!["ping @2".into()],
                waits: vec![wait],
                repeats: vec![Repeat { server: None, key: "ping @1".into(), count: 1 }],
                ..Report::open("c.json")
            }
        };
        let of =
            |verdicts: [Verdict; 2]| Report::of_servers(["a", "b"].into_iter().zip(verdicts.map(report)));
        let whole = of([Verdict::Good, Verdict::Bad]);
        assert_eq!((whole.verdict, whole.sessions, whole.calls["ping"]), (Verdict::Bad, 2, 4));
        assert_eq!(whole.cassette, "a=c.json, b=c.json");
        assert_eq!(whole.unused, ["a: ping @2", "b: ping @2"]);
        assert_eq!(whole.waits[1].server.as_deref(), Some("b"));
        // Equal keys of two servers are not one exchange.
        assert_eq!(whole.repeats.len(), 2);
        assert_eq!(of([Verdict::Open, Verdict::Good]).verdict, Verdict::Open);
        assert_eq!(of([Verdict::Good, Verdict::Good]).verdict, Verdict::Good);
    }

    #[test]
    fn a_fault_of_several_servers_has_to_act_at_one_of_them() {
        let report = |fired| {
            let fault = FaultReport { rule: "slow".into(), fired, ..FaultReport::default() };
            Report { verdict: Verdict::Good, faults: vec![fault], ..Report::open("c.json") }
        };
        let verdict =
            |fired: [u64; 2]| Report::of_servers(["a", "b"].into_iter().zip(fired.map(report))).verdict;
        assert_eq!(verdict([0, 1]), Verdict::Good);
        assert_eq!(verdict([0, 0]), Verdict::Bad);
    }

    #[test]
    fn the_sequence_of_several_takes_ends_where_that_of_one_ends() {
        let of = |method: &str, count: usize| Report {
            sequence: vec![method.to_owned(); count],
            ..Report::open("c")
        };
        let mut merged = of("a", SEQUENCE - 1);
        merged.merge(of("b", 5));
        merged.merge(of("c", 5));
        assert_eq!((merged.sequence.len(), &*merged.sequence[SEQUENCE - 1]), (SEQUENCE, "b"));
    }
}
