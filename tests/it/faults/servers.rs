//! Two servers in one run, and an agent that turns to the second where the first fails it.

use std::{fs, path::Path, process::Command};

use serde_json::{Value, json};

use super::stories::CASSETTE;
use crate::support::{
    client::{self, Client},
    front::Front,
    program::TAPEDECK,
};

const PLAN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/cassettes/plans/faults.json");

/// What the agent is to do, and by which server it is done in the end.
const TASKS: [(&str, Option<&str>); 7] = [
    ("call", Some("backup")),
    ("call", None),
    ("read", None),
    ("call", Some("primary")),
    ("read", Some("primary")),
    ("read", Some("backup")),
    ("call", Some("backup")),
];

/// What each server saw of it: task, method, outcome and fault, in order of arrival.
const PRIMARY: [&str; 12] = [
    "task-1 initialize fault timeout",
    "task-2 initialize answered",
    "task-2 tools/call fault error",
    "task-3 initialize fault error",
    "task-4 initialize answered",
    "task-4 tools/call answered",
    "task-5 initialize answered",
    "task-5 resources/read answered",
    "task-6 initialize answered",
    "task-6 resources/read fault error",
    "task-7 initialize answered",
    "task-7 tools/call fault timeout",
];
const BACKUP: [&str; 10] = [
    "task-1 initialize answered",
    "task-1 tools/call answered",
    "task-2 initialize answered",
    "task-2 tools/call fault timeout",
    "task-3 initialize answered",
    "task-3 resources/read fault timeout",
    "task-6 initialize answered",
    "task-6 resources/read answered",
    "task-7 initialize answered",
    "task-7 tools/call answered",
];

/// Lets the client do one task at one server; whether it was done.
fn attempt(client: &Client, url: &str, task: usize, what: &str) -> Option<bool> {
    let step = match what {
        "call" => json!({"do": "call", "tool": "search"}),
        _ => json!({"do": "read", "uri": "demo:a"}),
    };
    // Long enough for an answer on a machine that has other things to do.
    let headers = json!({"x-correlation-id": format!("task-{task}")});
    let plan = json!({"steps": [step], "elicit": {}, "patience": 3_000, "headers": headers});
    let run = client.run_at(url, "http", &plan, &[])?;
    Some(run.transcript["calls"][0].get("result").is_some())
}

/// What `tapedeck events` finds with these filters, in short.
fn events(path: &Path, filters: &[&str]) -> Vec<String> {
    let output =
        Command::new(TAPEDECK).arg("events").arg(path).arg("--json").args(filters).output().expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).expect("text");
    let mut events: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    events.sort_by_key(|event| event["seq"].as_u64());
    let text = |event: &Value, name: &str| event[name].as_str().map(str::to_owned);
    let short = |event: &Value| {
        let parts = ["correlation_id", "method", "outcome", "fault"].map(|name| text(event, name));
        parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
    };
    let asked = ["initialize", "tools/call", "resources/read"];
    events
        .iter()
        .filter(|event| event["method"].as_str().is_some_and(|method| asked.contains(&method)))
        .map(short)
        .collect()
}

#[test]
fn each_server_plays_its_own_queues_and_events_tell_the_attempts() {
    let client = client::typescript_2();
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    fs::write(path("deck.json"), CASSETTE).expect("it is written");
    let deck = path("deck.json").display().to_string();
    let (primary, backup) = (format!("primary={deck}"), format!("backup={deck}"));
    let (log, report) = (path("events.jsonl"), path("report.json"));
    let (events_to, report_to) = (log.display().to_string(), report.display().to_string());
    let front = Front::start(
        &[
            "replay",
            "--server",
            &primary,
            "--server",
            &backup,
            "--faults",
            PLAN,
            "--scenario",
            "failover",
            "--events",
            &events_to,
            "--report",
            &report_to,
        ],
        folder.path(),
    );
    for (task, (what, by)) in (1..).zip(TASKS) {
        let mut done = None;
        for server in ["primary", "backup"] {
            let url = format!("{}/{server}/mcp", front.origin);
            let Some(is_done) = attempt(&client, &url, task, what) else { return };
            if is_done {
                done = Some(server);
                break;
            }
        }
        assert_eq!(done, by, "task {task}");
    }
    front.end();
    let [.., last] = BACKUP;
    assert_eq!(events(&log, &["--server", "primary"]), PRIMARY);
    assert_eq!(events(&log, &["--server", "backup"]), BACKUP);
    assert_eq!(
        events(&log, &["--correlation-id", "task-6"]),
        [PRIMARY[8], PRIMARY[9], BACKUP[6], BACKUP[7]],
        "one task's attempts, in order of arrival",
    );
    assert_eq!(events(&log, &["--server", "backup", "--method", "tools/call", "--limit", "1"]), [last]);
    let of_task = events(&log, &["--server", "primary", "--correlation-id", "task-2", "--request-id", "1"]);
    assert_eq!(of_task, [PRIMARY[2]], "its first request is the handshake, its second the call");
    let report: Value = serde_json::from_slice(&fs::read(report).expect("a report")).expect("JSON");
    assert_eq!(report["verdict"], "good", "{report}");
}
