//! What a replay tells while it runs, to whoever tends it.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;

/// Something that is said later: the next of a request that a fault delays, of an exchange that is sent as it was
/// timed, or of what the server says by itself.
#[derive(Clone, Debug, Serialize)]
pub struct Waiting {
    /// Where several servers are replayed, which one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The take's name; empty for the default one.
    pub take: String,
    /// Why it waits.
    pub waits_for: WaitsFor,
    /// The method of the request that it is said because of; none for what the server says by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// What that request is about: tool, prompt or URI; where a fault delays it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The recorded exchange.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The request's id, as it stood in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Box<RawValue>>,
    /// The fault that delays it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<&'static str>,
    /// When it is due: microseconds on the clock of what is played.
    #[serde(skip)]
    pub due: u64,
    /// The same in milliseconds, rounded up: once the clock has come to it, it is said.
    pub due_ms: u64,
}

/// Why something waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitsFor {
    /// A fault delays it.
    Fault,
    /// `--timing`.
    Timing,
}

/// A take, as it stands.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TakeState {
    /// Where several servers are replayed, which one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Its name; empty for the default one.
    pub take: String,
    /// Connections that carried a request.
    pub connections: u64,
    /// How often each method was called.
    pub calls: BTreeMap<String, u64>,
    /// Misses, equal ones counted.
    pub misses: u64,
    /// Its live sessions, in the order in which they began.
    pub sessions: Vec<SessionState>,
    /// The recorded exchanges that were asked for, in their recorded order.
    pub played: Vec<String>,
}

/// A live session.
#[derive(Clone, Debug, Serialize)]
pub struct SessionState {
    /// Its number, as events have it.
    pub session: u64,
    /// How its client speaks: `stdio`, `http`, or `sse`.
    pub transport: &'static str,
    /// The recorded session that it plays.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plays: Option<u32>,
    /// It has ended.
    pub is_over: bool,
}

/// The plan of a take, as it stands.
#[derive(Clone, Debug, Default, Serialize)]
pub struct PlanState {
    /// Where several servers are replayed, which one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// The take's name; empty for the default one.
    pub take: String,
    /// What decides what happens by chance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Those that can be switched.
    pub scenarios: Vec<ScenarioState>,
    /// All rules, in their order of precedence.
    pub rules: Vec<RuleState>,
}

/// A scenario that can be switched.
#[derive(Clone, Debug, Serialize)]
pub struct ScenarioState {
    /// Its name.
    pub name: String,
    /// Its rules act.
    pub on: bool,
}

/// A rule and what it has done since the take began, or was last reset.
#[derive(Clone, Debug, Serialize)]
pub struct RuleState {
    /// Its name or text.
    pub rule: String,
    /// The scenario that switches it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scenario: Option<String>,
    /// It acts.
    pub on: bool,
    /// It stands in the cassette.
    pub in_cassette: bool,
    /// How many requests fitted.
    pub seen: u64,
    /// How often it fired.
    pub fired: u64,
    /// Of a script, how many actions are left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<usize>,
}
