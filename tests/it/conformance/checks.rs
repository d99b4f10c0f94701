//! What the suite says of a scenario, as far as two runs of it can be equal.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

/// The checks of a server's scenario without what differs between any two runs; the client does one thing after the
/// other, so their order is the same. `urls` are where this run's server was.
pub(super) fn of_server(mut checks: Value, urls: &[&str]) -> Value {
    let hosts: Vec<&str> =
        urls.iter().map(|url| url.trim_start_matches("http://").trim_end_matches("/mcp")).collect();
    level(&mut checks, &|text| {
        let text = hosts.iter().fold(text.to_owned(), |text, host| text.replace(host, "<host>"));
        SESSION.replace_all(&text, "<session>").into_owned()
    });
    // A web page whose name was made to lead here is refused by our front itself, in its own words.
    remove(&mut checks, "localhost-host-rebinding-rejected", "/details/body");
    // Which of three equal calls that are made at once the server takes first.
    for call in 0..3 {
        remove(&mut checks, "server-sse-streams-functional", &format!("/details/results/{call}/event/id"));
    }
    checks
}

/// The checks of a client's scenario without what differs between any two runs, in an order of ours: the client does
/// several things at once.
pub(super) fn of_client(mut checks: Value) -> Value {
    level(&mut checks, &|text| {
        let text = HOST.replace_all(text, "<host>");
        let text = SESSION.replace_all(&text, "<session>");
        let text = JWT.replace_all(&text, "<jwt>");
        TIME.replace_all(&text, "<time>").into_owned()
    });
    // Whether the client came back at the right moment: on a busy machine the suite itself says no.
    for member in ["/details", "/errorMessage", "/status"] {
        remove(&mut checks, "client-sse-retry-timing", member);
    }
    let list = checks.as_array_mut().expect("a list of checks");
    list.sort_by_cached_key(Value::to_string);
    checks
}

/// The checks that did not pass.
pub(super) fn failed(checks: &Value) -> Vec<&Value> {
    let is_bad = |check: &&Value| matches!(check["status"].as_str(), Some("FAILURE" | "WARNING"));
    checks.as_array().expect("a list of checks").iter().filter(is_bad).collect()
}

/// Takes what a JSON Pointer leads to out of the checks of one id.
fn remove(checks: &mut Value, id: &str, pointer: &str) {
    let (parent, name) = pointer.rsplit_once('/').expect("a JSON Pointer");
    for check in checks.as_array_mut().expect("a list of checks").iter_mut().filter(|check| check["id"] == id)
    {
        if let Some(Value::Object(members)) = check.pointer_mut(parent) {
            members.remove(name);
        }
    }
}

/// The ids of the SDK's sessions and of ours.
static SESSION: LazyLock<Regex> = LazyLock::new(|| regex("[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}"));

/// Where the suite's servers are, and the recorder.
static HOST: LazyLock<Regex> = LazyLock::new(|| regex(r"(localhost|127\.0\.0\.1):[0-9]{4,5}"));

static JWT: LazyLock<Regex> = LazyLock::new(|| regex(r"eyJ[\w-]+\.[\w-]+\.[\w-]+"));

/// What the suite makes tokens, clients and sessions of; a token is also shown cut short.
static TIME: LazyLock<Regex> = LazyLock::new(|| regex(r"[0-9]{13}|[0-9]+\.\.\."));

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a regular expression")
}

/// Members of one connection, one moment or one login; and the one header of a request that a recorder changes.
const OF_A_MOMENT: [&str; 13] = [
    "accept-encoding",
    "actualDelayMs",
    "code_challenge",
    "code_verifier",
    "computedChallenge",
    "connection",
    "content-length",
    "date",
    "etag",
    "keep-alive",
    "storedChallenge",
    "timestamp",
    "transfer-encoding",
];

fn level(value: &mut Value, text_of: &dyn Fn(&str) -> String) {
    match value {
        Value::String(text) => *text = text_of(text),
        Value::Array(items) => items.iter_mut().for_each(|item| level(item, text_of)),
        Value::Object(members) => {
            members.retain(|name, _| !OF_A_MOMENT.contains(&name.as_str()));
            members.values_mut().for_each(|item| level(item, text_of));
        }
        _ => {}
    }
}
