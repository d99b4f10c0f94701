//! Cassettes compared: a recording of a replay is the replayed recording.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::difference::assert_same;

/// What servers send when they please. On stdio nothing says which call it belongs to, so it is filed to whichever is
/// in flight when it comes; and a client that is answered sooner has made its next call sooner.
const UNASKED: [&str; 6] = [
    "notifications/message",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
    "notifications/resources/updated",
    "notifications/tools/list_changed",
    "roots/list",
];

/// A cassette file as JSON, without what belongs to the moment of recording.
pub(super) struct Cassette {
    sessions: Vec<Value>,
    /// By session, in an order of their own: overlapping exchanges stand in the file in the order they began.
    exchanges: BTreeMap<u64, Vec<Value>>,
    /// What came unasked, by session.
    unasked: BTreeMap<u64, Vec<Value>>,
    blobs: Vec<(String, Vec<u8>)>,
}

impl Cassette {
    pub(super) fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut file: Value = serde_json::from_str(&uncounted(&text)).expect("a cassette is JSON");
        let mut list = |name: &str| match file[name].take() {
            Value::Array(list) => list,
            other => panic!("`{name}` is no list in {}: {other}", path.display()),
        };
        let (mut sessions, list) = (list("sessions"), list("exchanges"));
        for session in &mut sessions {
            // Who recorded when; and the spelling says no more than the messages that came.
            without(session, &["at", "journal", "lasted_s", "parent", "spelling"]);
        }
        let (mut exchanges, mut unasked) =
            (BTreeMap::<u64, Vec<Value>>::new(), BTreeMap::<u64, Vec<Value>>::new());
        for mut exchange in list {
            let session = exchange.get("session").and_then(Value::as_u64).unwrap_or(1);
            timeless(&mut exchange);
            unasked.entry(session).or_default().extend(take_unasked(&mut exchange));
            let is_empty_push =
                exchange.get("client").is_none() && exchange["server"] == Value::Array(Vec::new());
            if !is_empty_push {
                exchanges.entry(session).or_default().push(exchange);
            }
        }
        for list in exchanges.values_mut().chain(unasked.values_mut()) {
            list.sort_by_key(Value::to_string);
        }
        Self { sessions, exchanges, unasked, blobs: blobs(path) }
    }

    /// Asserts that `again`, recorded from a replay of this cassette, holds the same.
    pub(super) fn assert_same(&self, again: &Self) {
        assert_same(
            "the sessions, recorded again",
            &self.sessions.clone().into(),
            &again.sessions.clone().into(),
        );
        let both = [
            ("exchanges", &self.exchanges, &again.exchanges),
            ("messages that came unasked", &self.unasked, &again.unasked),
        ];
        for (what, expected, found) in both {
            assert!(expected.keys().eq(found.keys()), "{what} are in {:?}, recorded again", found.keys());
            for (session, expected) in expected {
                let what = format!("the {what} of session {session}, recorded again");
                assert_same(&what, &expected.clone().into(), &found[session].clone().into());
            }
        }
        assert!(self.blobs == again.blobs, "the blobs, recorded again");
    }
}

/// Drops when things happened and what else was going on then; what happened and its order in the exchange stay.
fn timeless(exchange: &mut Value) {
    without(exchange, &["after"]);
    // Calls that are made at once over HTTP overtake each other, so that their ids are not always one more.
    if let Some(request) = exchange.pointer_mut("/client/request") {
        without(request, &["id"]);
    }
    if let Some(Value::String(key)) = exchange.get_mut("key")
        && let Some(at) = key.rfind(" @")
    {
        key.truncate(at);
    }
    // Over HTTP+SSE, whether the answer or the word that the request was accepted comes first is chance.
    if let Some(items) = exchange.get_mut("server").and_then(Value::as_array_mut) {
        items.retain(|item| item["on"] != "post" || item["body"] != "Accepted");
    }
    for item in exchange.get_mut("server").and_then(Value::as_array_mut).into_iter().flatten() {
        without(item, &["after", "after_ms", "guess"]);
        if let Some(answer) = item.get_mut("answer") {
            without(answer, &["after", "after_ms"]);
        }
    }
}

/// Takes out of an exchange what came unasked.
fn take_unasked(exchange: &mut Value) -> Vec<Value> {
    let Some(items) = exchange.get_mut("server").and_then(Value::as_array_mut) else { return Vec::new() };
    let method = |item: &Value| {
        let message = item.get("request").or_else(|| item.get("notification"))?;
        message["method"].as_str().map(str::to_owned)
    };
    let (mut unasked, kept): (Vec<Value>, Vec<Value>) = items
        .drain(..)
        .partition(|item| method(item).is_some_and(|method| UNASKED.contains(&method.as_str())));
    *items = kept;
    // Whether a client still answers on its way out is a race.
    unasked.iter_mut().for_each(|item| without(item, &["answer"]));
    unasked
}

/// The text without a number that the Python SDK counts up over the life of a process.
fn uncounted(text: &str) -> String {
    const LISTEN: &str = "\"listen-";
    let mut pieces = text.split(LISTEN);
    let mut uncounted = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        uncounted.push_str(LISTEN);
        uncounted.push_str(piece.trim_start_matches(|digit: char| digit.is_ascii_digit()));
    }
    uncounted
}

fn without(object: &mut Value, members: &[&str]) {
    if let Some(object) = object.as_object_mut() {
        for member in members {
            object.remove(*member);
        }
    }
}

fn blobs(cassette: &Path) -> Vec<(String, Vec<u8>)> {
    let mut folder = cassette.as_os_str().to_owned();
    folder.push(".blobs");
    let Ok(entries) = fs::read_dir(PathBuf::from(folder)) else { return Vec::new() };
    let file = |entry: fs::DirEntry| {
        (
            entry.file_name().to_string_lossy().into_owned(),
            fs::read(entry.path()).expect("a blob is readable"),
        )
    };
    let mut blobs: Vec<_> = entries.map(|entry| file(entry.expect("an entry is readable"))).collect();
    blobs.sort();
    blobs
}
