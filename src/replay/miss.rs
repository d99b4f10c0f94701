//! A miss explains itself: why nothing fits, what is nearest, where the two differ, which rule would make them equal.

use std::collections::BTreeMap;

use serde::Serialize;

use super::matcher::{bodies::Body, canonical::holds_placeholder, is_volatile};
use crate::{
    report::{Difference, Miss, Reason, SuggestedRule},
    wire::{
        jsonrpc::{self, Message},
        pointer,
        scan::{Lexer, Token, unescape},
    },
};

/// The code of a miss, outside the ranges JSON-RPC and MCP have reserved (specification 2026-07-28, basic/index).
const CODE: i32 = -33000;

/// How many characters of a differing value are shown.
const SHOWN: usize = 120;

/// More values than this are not compared.
const MOST_VALUES: usize = 10_000;

/// A recorded exchange that could have been meant.
pub(super) struct Candidate<'a> {
    pub key: &'a str,
    /// Its client message as it stood on the wire.
    pub message: &'a [u8],
    /// The same was asked there, but in other company.
    pub company: Option<Company>,
}

/// How what is asked was recorded in other company than it comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Company {
    /// In a batch, and it comes alone.
    Batch,
    /// Alone, and it comes in a batch.
    Alone,
    /// In a batch of other messages than those that it comes with.
    OtherBatch,
    /// At another path.
    OtherPath,
}

/// Describes a miss.
pub(super) fn describe(live: &Message<'_>, reason: Reason, nearest: Option<&Candidate<'_>>) -> Miss {
    let method = live.method().into_owned();
    let name = live.name().map(|name| name.into_owned());
    let differences = match (reason, nearest) {
        (Reason::ParamsDiffer | Reason::RedactionDiffers, Some(nearest)) => {
            differences(nearest.message, live.bytes)
        }
        _ => Vec::new(),
    };
    let asked = name.as_ref().map_or_else(|| method.clone(), |name| format!("{method} {name}"));
    let company = nearest.and_then(|nearest| nearest.company);
    let nearest = nearest.map(|nearest| nearest.key.to_owned());
    let message = match (company, &nearest) {
        (Some(company), Some(key)) => in_company(&asked, company, key),
        _ => sentence(&asked, reason, nearest.as_deref(), &differences),
    };
    let rule = (!differences.is_empty()).then(|| {
        let (selector, value) = match (&*method, &name) {
            ("tools/call", Some(name)) => ("tool", name),
            ("prompts/get", Some(name)) => ("prompt", name),
            _ => ("method", &method),
        };
        SuggestedRule {
            when: BTreeMap::from([(selector.to_owned(), value.clone())]),
            ignore: differences.iter().map(|difference| difference.at.clone()).collect(),
        }
    });
    Miss { server: None, method, name, reason, message, nearest, differences, rule, count: 1 }
}

fn in_company(asked: &str, company: Company, key: &str) -> String {
    let differs = match company {
        Company::Batch => "in a batch, and comes alone",
        Company::Alone => "alone, and comes in a batch",
        Company::OtherBatch => "in a batch of other messages",
        Company::OtherPath => "at another path",
    };
    format!(
        "tapedeck: `{asked}` was recorded {differs} (`{key}`); send it as it was recorded, or record it so"
    )
}

fn sentence(asked: &str, reason: Reason, nearest: Option<&str>, differences: &[Difference]) -> String {
    let near = nearest.map(|key| format!(" (nearest: `{key}`)")).unwrap_or_default();
    let key = nearest.unwrap_or("another exchange");
    match reason {
        Reason::NeverRecorded => {
            format!(
                "tapedeck: `{asked}` was never recorded in this cassette{near}; record it, or add it by hand"
            )
        }
        Reason::ParamsDiffer if differences.is_empty() => format!(
            "tapedeck: `{asked}` differs from the recorded `{key}` in a place that cannot be named (a member that stands \
             twice, or one behind the first {MOST_VALUES} values); record it again"
        ),
        Reason::ParamsDiffer => {
            let places: Vec<String> = differences.iter().take(3).map(spell).collect();
            let more = differences.len().saturating_sub(3);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let is_secret = |value: &Option<String>| {
                value.as_ref().is_some_and(|value| holds_placeholder(value.as_bytes()))
            };
            let was_redacted = differences
                .iter()
                .any(|difference| is_secret(&difference.recorded) && !is_secret(&difference.live));
            let next = match was_redacted {
                true => "name the variable that holds the live secret with --redact-env",
                false => "record it again",
            };
            format!(
                "tapedeck: `{asked}` differs from the recorded `{key}` at {}{more}; \
                 {next}, or add a match rule that ignores the place",
                places.join(", ")
            )
        }
        Reason::Consumed => format!(
            "tapedeck: all recorded answers to `{asked}` are used up, the last was `{key}`; \
             record more, or replay with --repeat last and without --strict"
        ),
        Reason::OutOfOrder => format!(
            "tapedeck: `{asked}` came before the answer of `{key}`, which had come before it when recorded; \
             wait for that answer, or replay without --strict"
        ),
        Reason::Incomplete => format!(
            "tapedeck: the recording of `{key}` has no whole answer to `{asked}`: the recorder was cut off, or what it \
             wrote got lost; record it again"
        ),
        Reason::RedactionDiffers => format!(
            "tapedeck: `{asked}` equals `{key}` but for a redacted value that is not the one it was before; \
             send the same secret as in the request before"
        ),
        Reason::OtherSession => format!(
            "tapedeck: this session has no answer to `{asked}`, but another recorded session has: `{key}`; \
             have clients begin their sessions in the recorded order, such that run side by side each in a take of its \
             own (`/take/NAME/…`, or `join --take NAME`), or replay that session alone with --session"
        ),
        Reason::OtherEra => format!(
            "tapedeck: `{asked}` is of another protocol era than this recording ({key}); \
             connect with a client of that revision, or record again"
        ),
    }
}

fn spell(difference: &Difference) -> String {
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
    format!("{} (recorded {}, live {})", difference.at, value(&difference.recorded), value(&difference.live))
}

/// Describes a request that came in another place than recorded, under this key behind that of `behind`: where `expected`
/// was.
pub(super) fn of_moved(
    request: &Message<'_>,
    key: String,
    behind: Option<String>,
    expected: Option<String>,
) -> Miss {
    let candidate = Candidate { key: &key, message: &[], company: None };
    let miss = describe(request, Reason::OutOfOrder, Some(&candidate));
    let expected = expected.map_or_else(|| "nothing more".to_owned(), |expected| format!("`{expected}`"));
    let behind = behind.map_or_else(|| "as the first".to_owned(), |behind| format!("behind `{behind}`"));
    let message = format!(
        "tapedeck: `{key}` came where {expected} was expected, and was recorded {behind}; ask in that order, or replay \
         without --strict"
    );
    Miss { message, ..miss }
}

/// What an error response of ours carries beside its message.
#[derive(Serialize)]
struct Data<'a> {
    source: &'static str,
    reason: Reason,
    #[serde(skip_serializing_if = "Option::is_none")]
    nearest: &'a Option<String>,
    #[serde(skip_serializing_if = "<[Difference]>::is_empty")]
    differences: &'a [Difference],
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: &'a Option<SuggestedRule>,
}

/// The same where the recording lacks a message only because that could not be kept.
pub(super) fn of_too_long(miss: Miss, what: &str) -> Miss {
    let asked =
        miss.name.as_ref().map_or_else(|| miss.method.clone(), |name| format!("{} {name}", miss.method));
    let key = miss.nearest.as_deref().unwrap_or("another exchange");
    let message = format!(
        "tapedeck: `{asked}` cannot be answered from `{key}`, whose {what} was longer than the recorder kept, or \
         compressed so that it could not be read; record it again with a larger --max-message, or without compression"
    );
    Miss { message, ..miss }
}

/// The same where what was recorded is a refusal for want of credentials, or because of them, with this status, and such
/// are left out (`is_skipped`), or the credentials are the other way round: there then, or missing (`had`).
pub(super) fn of_challenge(miss: Miss, status: u16, is_skipped: bool, had: bool) -> Miss {
    let asked =
        miss.name.as_ref().map_or_else(|| miss.method.clone(), |name| format!("{} {name}", miss.method));
    let key = miss.nearest.as_deref().unwrap_or("another exchange");
    let message = match (is_skipped, had) {
        (true, _) => format!(
            "tapedeck: `{asked}` was recorded as refused alone (`{key}`, status {status}), which --auth skip leaves out; \
             record it with credentials that the server takes, or replay without --auth skip"
        ),
        (false, true) => format!(
            "tapedeck: `{asked}` was recorded with credentials, which the server refused (`{key}`, status {status}), and \
             comes without; send some, or record it without"
        ),
        (false, false) => format!(
            "tapedeck: `{asked}` was recorded without credentials, which the server refused (`{key}`, status {status}), \
             and comes with some; record it with credentials, or replay with --auth skip"
        ),
    };
    Miss { message, ..miss }
}

/// Describes a miss of an HTTP request that is no message; `line` is its method and target, `endpoint` where messages go.
pub(super) fn describe_line(line: &str, reason: Reason, nearest: Option<String>, endpoint: &str) -> Miss {
    let message = match (reason, &nearest) {
        (Reason::ParamsDiffer, Some(key)) => format!(
            "tapedeck: `{line}` was recorded with other credentials, or behind another event or the session's end \
             (`{key}`); send it as it was recorded, or record it so"
        ),
        (Reason::NeverRecorded, _) if line.strip_prefix("POST ") == Some(endpoint) => format!(
            "tapedeck: `{line}` came with a body that is no JSON-RPC message, and none such was recorded; send a \
             message, or record it so"
        ),
        (Reason::NeverRecorded, _) if line.starts_with("OPTIONS ") => format!(
            "tapedeck: `{line}` was never recorded in this cassette; record it, or replay with --cors, which answers \
             what browsers ask"
        ),
        (_, Some(_)) => sentence(line, reason, nearest.as_deref(), &[]),
        _ => format!(
            "tapedeck: `{line}` was never recorded in this cassette, which has messages at `{endpoint}` alone; \
             record it, or add it by hand"
        ),
    };
    Miss { reason, nearest, ..Miss::of_line(line.to_owned(), message) }
}

/// Describes a request that was recorded with other bodies only, of which the nearest and the live one are given.
pub(super) fn of_body(line: &str, key: String, recorded: &Body, live: &Body) -> Miss {
    let differences = match (recorded.members(), live.members()) {
        (Some(recorded), Some(live)) => differing(values_of(recorded, "/body"), values_of(live, "/body")),
        _ => Vec::new(),
    };
    let places: Vec<String> = differences.iter().take(1).map(spell).collect();
    let place = match differences.len() {
        0 => format!("from byte {} on", recorded.shared(live) + 1),
        1 => format!("at {}", places[0]),
        count => format!("at {} and {} more", places[0], count - 1),
    };
    let message = format!(
        "tapedeck: `{line}` was recorded, but with another body (nearest: `{key}`, which differs {place}); send it as it \
         was recorded, or record it so"
    );
    let miss = Miss::of_line(line.to_owned(), message);
    Miss { reason: Reason::ParamsDiffer, nearest: Some(key), differences, ..miss }
}

/// Describes a request whose body does not go on: so many bytes came, of so many where it told that.
pub(super) fn of_stopped(line: &str, came: usize, announced: Option<u64>, nearest: Option<String>) -> Miss {
    let of = announced.map(|length| format!(" of {length}")).unwrap_or_default();
    let near = nearest.as_ref().map(|key| format!(" (nearest: `{key}`)")).unwrap_or_default();
    let message = format!(
        "tapedeck: `{line}` stopped within its body, of which {came}{of} bytes came, and nothing was recorded that \
         ends so{near}; have the client send all of it, or record a server that does not wait for that"
    );
    Miss { reason: Reason::Incomplete, nearest, ..Miss::of_line(line.to_owned(), message) }
}

/// Describes a request that was answered with another protocol.
pub(super) fn of_upgrade(line: &str, key: &str) -> Miss {
    let message = format!(
        "tapedeck: behind `{line}` another protocol was spoken (`{key}`, status 101), of which nothing is recorded, so \
         no replay serves it; have the client do without it, or ask the real server"
    );
    let nearest = Some(key.to_owned());
    Miss { reason: Reason::Incomplete, nearest, ..Miss::of_line(line.to_owned(), message) }
}

/// What an error of ours says of an HTTP response that held no message.
pub(super) fn http_data(status: &str, body: &str) -> String {
    let shown: String = body.chars().take(1000).collect();
    let shown = serde_json::to_string(&shown).expect("a string");
    format!("{{\"source\":\"tapedeck\",\"status\":{status},\"body\":{shown}}}")
}

/// The error response that tells the client of a miss.
pub(super) fn response(id: &[u8], miss: &Miss) -> Vec<u8> {
    let data = Data {
        source: "tapedeck",
        reason: miss.reason,
        nearest: &miss.nearest,
        differences: &miss.differences,
        rule: &miss.rule,
    };
    jsonrpc::error(
        id,
        CODE,
        &miss.message,
        Some(&serde_json::to_string(&data).expect("strings and lists of strings")),
    )
}

/// How far a recorded message is from a live one: how many of their values differ.
pub(super) fn distance(recorded: &[u8], live: &[u8]) -> usize {
    let (recorded, live) = (values(recorded), values(live));
    let changed = recorded.iter().filter(|(at, value)| live.get(*at) != Some(value)).count();
    changed + live.keys().filter(|at| !recorded.contains_key(*at)).count()
}

/// In a report, for a live value that may be a secret.
const NOT_SHOWN: &str = "\"<not shown>\"";

/// Where two messages' params differ.
fn differences(recorded: &[u8], live: &[u8]) -> Vec<Difference> {
    differing(values(recorded), values(live))
}

/// Where values differ, by their places.
fn differing(recorded: BTreeMap<String, String>, live: BTreeMap<String, String>) -> Vec<Difference> {
    let is_redacted = |value: &String| holds_placeholder(value.as_bytes());
    let mut places: Vec<&String> = recorded.keys().chain(live.keys()).collect();
    places.sort_unstable();
    places.dedup();
    let mut found = Vec::new();
    for at in places {
        let (old, new) = (recorded.get(at), live.get(at));
        if old != new {
            let from = old.zip(new).map_or(0, |(old, new)| common_prefix(old, new));
            let cut = |value: &String| cut(value, from);
            // What stands where a secret stood may be one, though nothing else says so.
            let is_secret = old.is_some_and(is_redacted) && !new.is_some_and(is_redacted);
            let live = new.map(|new| if is_secret { NOT_SHOWN.to_owned() } else { cut(new) });
            found.push(Difference { at: at.clone(), recorded: old.map(cut), live });
        }
    }
    found
}

/// The simple values of a message's params by JSON Pointer; empty containers count as values.
fn values(message: &[u8]) -> BTreeMap<String, String> {
    Message::read(message).params().map(|params| values_of(params, "/params")).unwrap_or_default()
}

/// The simple values of a JSON text that stands at `root`.
fn values_of(params: &[u8], root: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut lexer = Lexer::new(params, 0);
    // Each open container with its pointer and, for an array, the next index.
    let mut open: Vec<(String, Option<usize>)> = Vec::new();
    let mut here = root.to_owned();
    while let Ok(Some((token, span))) = lexer.next() {
        if found.len() >= MOST_VALUES {
            break;
        }
        match token {
            Token::ObjectEnd | Token::ArrayEnd => {
                open.pop();
                continue;
            }
            Token::Name => {
                let name = String::from_utf8_lossy(&unescape(span.of(params))).into_owned();
                let outer = open.last().map_or("", |(outer, _)| outer);
                here = format!("{outer}/{}", pointer::escaped(&name));
                continue;
            }
            _ => {}
        }
        if let Some((outer, Some(index))) = open.last_mut() {
            here = format!("{outer}/{index}");
            *index += 1;
        }
        match token {
            Token::ObjectStart | Token::ArrayStart => {
                open.push((here.clone(), (token == Token::ArrayStart).then_some(0)));
            }
            _ if is_volatile(&here) => {}
            _ => {
                found.insert(here.clone(), String::from_utf8_lossy(span.of(params)).into_owned());
            }
        }
    }
    found
}

fn common_prefix(a: &str, b: &str) -> usize {
    a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count()
}

/// At most 120 characters of a value, around its first difference.
fn cut(value: &str, difference: usize) -> String {
    let length = value.chars().count();
    if length <= SHOWN {
        return value.to_owned();
    }
    let from = difference.saturating_sub(SHOWN / 3).min(length - SHOWN + 2);
    let shown: String = value.chars().skip(from).take(SHOWN - 2).collect();
    let before = if from > 0 { "…" } else { "" };
    let after = if from + SHOWN - 2 < length { "…" } else { "" };
    format!("{before}{shown}{after}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORDED: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"greet","arguments":{"name":"ann","n":1}}}"#;

    #[test]
    fn a_miss_names_what_was_asked_the_nearest_and_where_they_differ() {
        let live = RECORDED.replace("ann", "bob").replace("\"n\":1", "\"n\":[2]");
        let candidate = Candidate { key: "tools/call greet @1", message: RECORDED.as_bytes(), company: None };
        let miss = describe(&Message::read(live.as_bytes()), Reason::ParamsDiffer, Some(&candidate));
        let places: Vec<_> = miss.differences.iter().map(|difference| &*difference.at).collect();
        assert_eq!(places, ["/params/arguments/n", "/params/arguments/n/0", "/params/arguments/name"]);
        assert!(
            miss.message.contains("`tools/call greet` differs from the recorded `tools/call greet @1`"),
            "{}",
            miss.message
        );
        assert_eq!(miss.rule.unwrap().when["tool"], "greet");
    }

    /// What counts for the match is told, and what does not is not.
    #[test]
    fn a_miss_names_what_differs_in_the_metadata_too() {
        let with = |level: &str, client: &str| {
            let meta = format!(
                r#"{{"name":"greet","_meta":{{"io.modelcontextprotocol/logLevel":"{level}","io.modelcontextprotocol/clientInfo":{{"name":"{client}"}},"progressToken":"{client}"}},"#
            );
            RECORDED.replace(r#"{"name":"greet","#, &meta)
        };
        let recorded = with("info", "a");
        let candidate = Candidate { key: "tools/call greet @1", message: recorded.as_bytes(), company: None };
        let live = with("debug", "b");
        let miss = describe(&Message::read(live.as_bytes()), Reason::ParamsDiffer, Some(&candidate));
        let places: Vec<_> = miss.differences.iter().map(|difference| &*difference.at).collect();
        assert_eq!(places, ["/params/_meta/io.modelcontextprotocol~1logLevel"]);
    }

    #[test]
    fn a_live_value_in_a_secrets_place_is_not_shown() {
        let recorded = RECORDED.replace("ann", "<redacted:token-1>");
        let candidate = Candidate { key: "tools/call greet @1", message: recorded.as_bytes(), company: None };
        let live = RECORDED.replace("ann", "mine1234").replace("\"n\":1", "\"n\":2");
        let miss = describe(&Message::read(live.as_bytes()), Reason::ParamsDiffer, Some(&candidate));
        let shown: Vec<_> =
            miss.differences.iter().map(|difference| difference.live.clone().unwrap_or_default()).collect();
        assert_eq!(shown, ["2", NOT_SHOWN]);
        assert!(!miss.message.contains("mine1234") && miss.message.contains("--redact-env"));
    }

    #[test]
    fn long_values_are_cut_around_their_first_difference() {
        let (a, b) = ("x".repeat(500) + "A" + &"y".repeat(500), "x".repeat(500) + "B" + &"y".repeat(500));
        let shown = cut(&a, common_prefix(&a, &b));
        assert!(
            shown.chars().count() <= SHOWN
                && shown.contains('A')
                && shown.starts_with('…')
                && shown.ends_with('…')
        );
        assert_eq!(cut("short", 3), "short");
    }

    #[test]
    fn the_error_is_one_message_with_the_live_id() {
        let live = RECORDED.replace("ann", "bob");
        let miss = describe(&Message::read(live.as_bytes()), Reason::NeverRecorded, None);
        let line = response(b"\"a\"", &miss);
        let message = Message::read(&line);
        assert_eq!((message.kind, message.id()), (crate::wire::jsonrpc::Kind::Error, Some(&b"\"a\""[..])));
        assert!(crate::wire::scan::is_json(&line));
    }
}
