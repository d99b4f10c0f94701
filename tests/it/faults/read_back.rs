//! A real SDK client over HTTP, and what the event log tells of it.

use std::fs;

use serde_json::{Value, json};

use super::stage::CASSETTE;
use crate::support::{
    client::{Client, typescript_1, typescript_2},
    front::Front,
    program::tapedeck,
    scene::Scene,
    server::text,
};

const PLAN: &str = r#"{"faults": 1, "rules": [
  {"when": {"method": "tools/call", "tool": "search"}, "script": ["ok", {"do": "error", "code": -32603, "message": "busy"}, "ok"]}
]}"#;

/// A session that any client takes for its own.
fn cassette_of_anybody() -> String {
    let tools = r#""capabilities": {"tools": {}}"#;
    let server = format!(r#"{tools}, "serverInfo": {{"name": "s", "version": "1"}}"#);
    CASSETTE.replace(", \"client\": \"c\"", "").replace(tools, &server)
}

fn calls(client: Client) {
    let scene = Scene::new();
    let (cassette, plan, log) = (scene.path("c.json"), scene.path("p.json"), scene.path("e.jsonl"));
    fs::write(&cassette, cassette_of_anybody()).expect("it is written");
    fs::write(&plan, PLAN).expect("it is written");
    let front = Front::start(
        &["replay", &text(&cassette), "--faults", &text(&plan), "--events", &text(&log)],
        &scene.path(""),
    );
    let call = json!({"do": "call", "tool": "search", "arguments": {"q": "a"}});
    let of = |correlation: &str| {
        let headers = json!({"X-Correlation-Id": correlation, "X-Request-Id": "not this"});
        let job = json!({"headers": headers, "steps": [call, call]});
        client.run_at(&front.url, "http", &job, &[])
    };
    let (Some(first), Some(second)) = (of("first try"), of("second try")) else { return };
    for run in [&first, &second] {
        assert!(run.transcript.get("failed").is_none(), "{}\n{:#}", run.stderr, run.transcript);
    }
    assert_eq!(first.transcript.to_string().matches("busy").count(), 1, "{:#}", first.transcript);
    front.end();

    let events = |filters: &[&str]| -> Vec<Value> {
        let ran = tapedeck(&[&["events", &text(&log), "--json"], filters].concat());
        assert!(ran.status.success() && ran.stderr.is_empty(), "{ran:?}");
        let lines = String::from_utf8(ran.stdout).expect("text");
        lines.lines().map(|line| serde_json::from_str(line).expect("an event")).collect()
    };
    let outcomes = |correlation: &str| -> Vec<String> {
        let found = events(&["--correlation-id", correlation, "--method", "tools/call"]);
        found.iter().map(|event| event["outcome"].as_str().expect("a word").to_owned()).collect()
    };
    assert_eq!(outcomes("first try"), ["answered", "fault"]);
    assert_eq!(outcomes("second try"), ["answered", "answered"]);
    assert_eq!(outcomes("not this"), [""; 0]);
    let faulty = events(&["--outcome", "fault"]);
    assert_eq!((faulty.len(), &faulty[0]["fault"], &faulty[0]["session"]), (1, &json!("error"), &json!(1)));
    let id = faulty[0]["request_id"].to_string();
    let by_id = events(&["--request-id", &id, "--correlation-id", "first try"]);
    assert_eq!(by_id, faulty);
    let numbers =
        events(&[]).iter().map(|event| event["seq"].as_u64().expect("a number")).collect::<Vec<_>>();
    let mut sorted = numbers.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted, (1..=numbers.len() as u64).collect::<Vec<_>>());
}

#[test]
fn the_typescript_client_finds_its_calls_by_correlation_id() {
    calls(typescript_1());
}

#[test]
fn the_second_typescript_client_finds_its_calls_by_correlation_id() {
    calls(typescript_2());
}
