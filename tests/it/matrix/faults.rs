//! Faults between real clients and real servers over HTTP: what the client makes of them, and what is recorded.

use std::fs;

use serde_json::{Value, json};

use super::http;
use crate::support::{client, client::Client, front::Front, scene::Scene, server::text};

/// What came of a client's calls, one of each run; what was told of them, and what was recorded.
struct Told {
    calls: Vec<String>,
    report: Value,
    recorded: String,
}

/// Lets a client call a tool, once in each of so many sessions, while a fault acts.
fn tell(command: &str, client: Client, fault: &str, step: &Value, sessions: usize) -> Option<Told> {
    let scene = Scene::new();
    let server = http::everything().start(&scene)?;
    let (cassette, report) = (text(&scene.path("c.json")), text(&scene.path("report.json")));
    let mut arguments = vec![command];
    if command == "record" {
        arguments.push(&cassette);
    }
    arguments.extend(["--url", &server.url, "--fault", fault, "--report", &report]);
    let front = Front::start(&arguments, scene.path("").as_path());
    let plan = json!({"steps": [step], "elicit": {}});
    let mut calls = Vec::new();
    for _ in 0..sessions {
        let run = client.run_at(&front.url, "http", &plan, &[])?;
        let call = &run.transcript["calls"][0];
        let text = call.pointer("/result/content/0/text").and_then(Value::as_str);
        calls.push(text.map_or_else(|| call["error"].to_string(), str::to_owned));
    }
    front.end();
    let report = serde_json::from_slice(&fs::read(report).expect("a report")).expect("JSON");
    Some(Told { calls, report, recorded: fs::read_to_string(cassette).unwrap_or_default() })
}

#[test]
fn a_client_whose_session_is_lost_begins_another_with_the_real_server() {
    for client in [client::typescript_1(), client::python_legacy()] {
        let name = client.name;
        let step = json!({"do": "call", "tool": "echo", "arguments": {"message": "hi"}});
        let fault = "tools/call echo: session_expired nth=1";
        let Some(told) = tell("record", client, fault, &step, 2) else { continue };
        assert!(!told.calls[0].contains("Echo: hi"), "{name}: {:?}", told.calls);
        assert_eq!(told.calls[1], "Echo: hi", "{name}");
        assert_eq!(told.report["faults"][0]["fired"], 1, "{name}: {}", told.report);
        assert_eq!(told.report["sessions"], 2, "{name}: {}", told.report);
        // The server never heard of the call that was answered in its place.
        let calls = told.recorded.matches("\"key\": \"tools/call echo").count();
        let begun = told.recorded.matches("\"key\": \"initialize").count();
        assert_eq!((calls, begun), (1, 2), "{name}: {}", told.recorded);
    }
}

#[test]
fn a_client_goes_on_with_a_stream_of_a_real_server_that_was_cut() {
    for command in ["record", "proxy"] {
        let tool = "trigger-long-running-operation";
        let arguments = json!({"duration": 0.4, "steps": 4});
        let step = json!({"do": "call", "tool": tool, "arguments": arguments, "progress": true});
        let fault = format!("tools/call {tool}: cut_after events=2");
        let Some(told) = tell(command, client::typescript_1(), &fault, &step, 1) else { continue };
        assert!(told.calls[0].starts_with("Long running operation completed"), "{command}: {:?}", told.calls);
        assert_eq!(told.report["faults"][0]["fired"], 1, "{command}: {}", told.report);
        assert_eq!(told.report["verdict"], "good", "{command}: {}", told.report);
    }
}
