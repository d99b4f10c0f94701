//! Real clients meet faults: what they make of them.

use std::{fs, path::Path};

use serde_json::{Value, json};

use crate::support::{
    client::{self, Client},
    front::Front,
    program::TAPEDECK,
    scene::Scene,
    server,
};

/// What the clients' scripts can ask for, with event ids to go on from.
const CASSETTE: &str = r#"{
  "cassette": 1,
  "sessions": [{"session": 1, "recording": 1, "transport": "http", "path": "/mcp", "protocol": "2025-11-25"}],
  "exchanges": [
    {"key": "initialize @1", "client": {"request": {"method": "initialize", "params": {"protocolVersion": "2025-11-25"}}},
      "http": {"headers": {"mcp-session-id": "<session-1>"}},
      "server": [{"result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "resources": {}, "prompts": {}}, "serverInfo": {"name": "s", "version": "1"}}}]},
    {"key": "notifications/initialized @1", "client": {"notification": {"method": "notifications/initialized"}}, "server": []},
    {"key": "tools/list @1", "client": {"request": {"method": "tools/list"}},
      "server": [{"result": {"tools": [
        {"name": "search", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]}},
        {"name": "report", "inputSchema": {"type": "object"}}]}}]},
    {"key": "resources/list @1", "client": {"request": {"method": "resources/list"}}, "server": [{"result": {"resources": []}}]},
    {"key": "resources/templates/list @1", "client": {"request": {"method": "resources/templates/list"}}, "server": [{"result": {"resourceTemplates": []}}]},
    {"key": "prompts/list @1", "client": {"request": {"method": "prompts/list"}}, "server": [{"result": {"prompts": []}}]},
    {"key": "resources/read demo:a @1", "client": {"request": {"method": "resources/read", "params": {"uri": "demo:a"}}},
      "server": [{"result": {"contents": [{"uri": "demo:a", "text": "a"}]}}]},
    {"key": "prompts/get p @1", "client": {"request": {"method": "prompts/get", "params": {"name": "p"}}}, "server": [{"result": {"messages": []}}]},
    {"key": "tools/call search @1", "client": {"request": {"method": "tools/call", "params": {"name": "search", "arguments": {}}}},
      "server": [{"result": {"content": [{"type": "text", "text": "found"}], "structuredContent": {"n": 1}}}]},
    {"key": "tools/call report @1", "client": {"request": {"method": "tools/call", "params": {"name": "report", "arguments": {}, "_meta": {"progressToken": 5}}}},
      "http": {"stream": true},
      "server": [
        {"sse": {"id": "e1"}, "notification": {"method": "notifications/progress", "params": {"progressToken": 5, "progress": 1}}},
        {"sse": {"id": "e2"}, "notification": {"method": "notifications/progress", "params": {"progressToken": 5, "progress": 2}}},
        {"sse": {"id": "e3"}, "result": {"content": [{"type": "text", "text": "done"}]}}]}
  ]
}"#;

const CLIENTS: [fn() -> Client; 3] = [client::python_legacy, client::typescript_1, client::typescript_2];

/// What came of a client's calls.
struct Told {
    client: &'static str,
    calls: Vec<Value>,
    report: Value,
}

impl Told {
    /// What came of the call with this number: its error's message, the text of its result, or all there is.
    fn of(&self, at: usize) -> String {
        let Some(call) = self.calls.get(at) else { return format!("no call {at}: {:?}", self.calls) };
        let text = |pointer: &str| call.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        text("/error/message")
            .or_else(|| text("/result/content/0/text"))
            .or_else(|| call.get("error").map(Value::to_string))
            .unwrap_or_else(|| call.to_string())
    }

    fn fired(&self) -> Vec<u64> {
        let faults = self.report["faults"].as_array().expect("a list");
        faults.iter().filter_map(|fault| fault["fired"].as_u64()).collect()
    }
}

/// Lets each client do these steps while these faults act: on a replay, and on stdio on live traffic with one too.
fn tell(over_http: bool, faults: &[&str], steps: &Value, check: impl Fn(&Told)) {
    let plan = json!({"steps": steps, "elicit": {}});
    let ways = if over_http { &[false][..] } else { &[false, true] };
    let all = CLIENTS
        .map(|client| client())
        .into_iter()
        .flat_map(|client| ways.iter().map(move |way| (client, *way)));
    for (client, is_live) in all {
        let folder = tempfile::tempdir().expect("a folder");
        let (cassette, report) = (folder.path().join("c.json"), folder.path().join("report.json"));
        fs::write(&cassette, CASSETTE).expect("it is written");
        let command = if is_live { "proxy" } else { "replay" };
        let mut arguments: Vec<String> = [command, "--report"].map(str::to_owned).to_vec();
        arguments.push(shown(&report));
        arguments.extend(faults.iter().flat_map(|fault| ["--fault".to_owned(), (*fault).to_owned()]));
        if is_live {
            arguments.extend(["--", TAPEDECK, "replay"].map(str::to_owned));
        }
        arguments.push(shown(&cassette));
        let run = if over_http {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            let front = Front::start(&arguments, folder.path());
            let run = client.run_at(&front.url, "http", &plan, &[]);
            front.stop();
            run
        } else {
            arguments.insert(0, TAPEDECK.to_owned());
            client.run(&arguments, &plan, &[])
        };
        let Some(run) = run else { continue };
        let report = fs::read(&report).expect("a report");
        let calls = run.transcript["calls"].as_array().cloned().unwrap_or_default();
        let report = serde_json::from_slice(&report).expect("JSON");
        check(&Told { client: client.name, calls, report });
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// Each wording that real servers use for a lost session in an error, on each method that can meet it.
#[test]
fn a_session_that_expired_is_told_in_an_error() {
    let steps = json!([
        {"do": "call", "tool": "search"}, {"do": "lists"}, {"do": "read", "uri": "demo:a"}, {"do": "get", "prompt": "p"},
        {"do": "call", "tool": "search"},
    ]);
    for wording in
        ["Session not found", "Session expired", "Invalid or expired session ID", "Session terminated"]
    {
        let fault = |method: &str| {
            format!(
                r#"{method}: {{"do": "session_expired", "style": "error", "message": "{wording}", "nth": 1}}"#
            )
        };
        let faults =
            ["tools/call", "resources/list", "prompts/list", "resources/read", "prompts/get"].map(fault);
        let faults: Vec<&str> = faults.iter().map(String::as_str).collect();
        tell(false, &faults, &steps, |told| {
            let names: Vec<String> = told
                .calls
                .iter()
                .enumerate()
                .filter(|(at, _)| told.of(*at).contains(wording))
                .map(|(_, call)| call["call"].as_str().unwrap_or_default().to_owned())
                .collect();
            let expected = [
                "tools/call search",
                "resources/list",
                "prompts/list",
                "resources/read demo:a",
                "prompts/get p",
            ];
            assert_eq!(names, expected, "{}: {wording}", told.client);
            assert!(told.of(told.calls.len() - 1).contains("found"), "{}: it goes on", told.client);
            assert_eq!(told.fired(), [1, 1, 1, 1, 1], "{}", told.client);
        });
    }
}

#[test]
fn a_tool_that_fails_does_not_look_like_a_lost_session() {
    let fault = [r#"tools/call: {"do": "tool_error", "text": "the cookie of the site has expired"}"#];
    tell(false, &fault, &json!([{"do": "call", "tool": "search"}]), |told| {
        assert_eq!(told.of(0), "the cookie of the site has expired", "{}", told.client);
        assert_eq!(told.calls[0]["error"], Value::Null, "{}: {}", told.client, told.calls[0]);
    });
}

#[test]
fn a_lost_session_fails_the_call_over_http() {
    let steps = json!([{"do": "call", "tool": "search"}, {"do": "call", "tool": "search"}]);
    tell(true, &["tools/call: session_expired nth=1"], &steps, |told| {
        assert_ne!(told.of(0), "found", "{}", told.client);
        assert_eq!(told.fired(), [1], "{}", told.client);
        assert_eq!(told.report["misses"], json!([]), "{}", told.client);
    });
}

#[test]
fn a_client_goes_on_with_a_stream_that_was_cut() {
    let steps = json!([{"do": "call", "tool": "report", "progress": true}]);
    tell(true, &["tools/call report: cut_after events=1"], &steps, |told| {
        assert_eq!(told.of(0), "done", "{}", told.client);
        assert_eq!(told.fired(), [1], "{}", told.client);
        assert_eq!(told.report["verdict"], "good", "{}: {}", told.client, told.report);
    });
}

#[test]
fn a_client_that_is_told_to_wait_tells_its_user() {
    let steps = json!([{"do": "call", "tool": "search"}, {"do": "call", "tool": "search"}]);
    tell(true, &["tools/call: status status=429 retry_after=1 nth=1"], &steps, |told| {
        assert_ne!(told.of(0), "found", "{}", told.client);
        assert_eq!(told.of(1), "found", "{}", told.client);
    });
}

#[test]
fn a_result_that_breaks_its_schema_is_refused() {
    let steps = json!([{"do": "lists"}, {"do": "call", "tool": "search"}]);
    tell(false, &["tools/call: schema_violation"], &steps, |told| {
        let call = told.calls.iter().find(|call| call["call"] == "tools/call search");
        let refused = call.is_none_or(|call| call["result"] == Value::Null);
        assert!(refused, "{}: {:?}", told.client, told.calls);
    });
}

#[test]
fn a_server_that_ends_in_mid_call_fails_it() {
    tell(false, &["tools/call: exit status=7"], &json!([{"do": "call", "tool": "search"}]), |told| {
        assert_ne!(told.of(0), "found", "{}", told.client);
        assert_eq!(told.fired(), [1], "{}", told.client);
    });
}

/// A real server, an error that it never sent, and a client that asks again; and the same again from the recording.
#[test]
fn a_call_that_fails_on_purpose_works_when_it_is_repeated_and_is_recorded_as_it_was() {
    let call = json!({"do": "call", "tool": "echo", "arguments": {"value": "once"}});
    let plan = json!({"steps": [call, call], "elicit": {}});
    for client in [client::python_legacy(), client::typescript_2()] {
        let scene = Scene::new();
        let Some(server) = server::fast().command(&scene) else { continue };
        let (cassette, report) = (scene.path("c.json"), scene.path("report.json"));
        let fault = r#"tools/call echo @1: error code=-32050 message="try later""#;
        let options = ["record", &shown(&cassette), "--report", &shown(&report), "--fault", fault, "--"];
        let record: Vec<String> =
            [TAPEDECK].into_iter().chain(options).map(str::to_owned).chain(server).collect();
        let Some(run) = client.run(&record, &plan, &[]) else { continue };
        let calls = run.transcript["calls"].as_array().expect("calls");
        assert!(
            calls[0]["error"]["message"].as_str().is_some_and(|text| text.contains("try later")),
            "{calls:?}"
        );
        assert!(calls[1]["result"].to_string().contains("once"), "{calls:?}");
        let told: Value = serde_json::from_slice(&fs::read(&report).expect("a report")).expect("JSON");
        assert_eq!(told["verdict"], "good", "{told}");
        let recorded = fs::read_to_string(&cassette).expect("a recording");
        assert!(!recorded.contains("try later") && recorded.contains("tools/call echo @1"), "{recorded}");
        assert!(!recorded.contains("tools/call echo @2"), "{recorded}");
        let replay = [TAPEDECK, "replay", &shown(&cassette)].map(str::to_owned);
        let once = json!({"steps": [call], "elicit": {}});
        let run = client.run(&replay, &once, &[]).expect("it was there before");
        assert_eq!(run.transcript["calls"][0]["result"], calls[1]["result"], "{}", client.name);
    }
}
