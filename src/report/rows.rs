//! What stands in the lists of a report.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

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

impl Miss {
    /// Of a request that is no message; `line` is its method and target.
    pub(crate) const fn of_line(line: String, message: String) -> Self {
        Self {
            server: None,
            method: line,
            name: None,
            reason: Reason::NeverRecorded,
            message,
            nearest: None,
            differences: Vec::new(),
            rule: None,
            count: 1,
        }
    }
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
    /// It came before an answer that had come before it when recorded, or in another place, and was answered all the same.
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

/// Requests over HTTP that were refused before anybody asked what was recorded.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// Why, in the sentence that their client was told, if it was told any.
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
}
