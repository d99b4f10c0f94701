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
pub(super) const CASSETTE: &str = r#"{
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

const PLAN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/cassettes/plans/faults.json");

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
    let options: Vec<&str> = faults.iter().flat_map(|fault| ["--fault", *fault]).collect();
    for client in CLIENTS.map(|client| client()) {
        let ways = if over_http { &[Over::Http][..] } else { &[Over::Stdio, Over::Live] };
        for over in ways {
            told_by(&client, *over, &options, &[steps]).iter().for_each(&check);
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Over {
    Stdio,
    Http,
    /// On stdio, in front of a replay that has no faults.
    Live,
}

/// What a client tells of its jobs, one after the other, while a replay acts as these options say.
fn told_by(client: &Client, over: Over, options: &[&str], jobs: &[&Value]) -> Option<Told> {
    told_of(CASSETTE, client, over, options, jobs)
}

/// The same of a replay of this cassette.
fn told_of(text: &str, client: &Client, over: Over, options: &[&str], jobs: &[&Value]) -> Option<Told> {
    let folder = tempfile::tempdir().expect("a folder");
    let (cassette, report) = (folder.path().join("c.json"), folder.path().join("report.json"));
    fs::write(&cassette, text).expect("it is written");
    let (cassette, report) = (shown(&cassette), shown(&report));
    let arguments = match over {
        Over::Live => {
            [&["proxy", "--report", &report], options, &["--", TAPEDECK, "replay", &cassette]].concat()
        }
        Over::Stdio | Over::Http => [&["replay", "--report", &report, &cassette], options].concat(),
    };
    let front = (over == Over::Http).then(|| Front::start(&arguments, folder.path()));
    let mut calls = Vec::new();
    for steps in jobs {
        let plan = json!({"steps": steps, "elicit": {}});
        let run = match &front {
            Some(front) => client.run_at(&front.url, "http", &plan, &[]),
            None => {
                let command: Vec<String> =
                    [TAPEDECK].iter().chain(&arguments).map(ToString::to_string).collect();
                client.run(&command, &plan, &[])
            }
        }?;
        calls.extend(run.transcript["calls"].as_array().cloned().unwrap_or_default());
    }
    if let Some(front) = front {
        front.stop();
    }
    let report = fs::read(&report).expect("a report");
    Some(Told { client: client.name, calls, report: serde_json::from_slice(&report).expect("JSON") })
}

/// What a client tells of its jobs while a scenario acts of those that are ready.
fn ready(scenario: &str, client: &Client, jobs: &[&Value]) -> Option<Told> {
    told_by(client, Over::Http, &["--faults", PLAN, "--scenario", scenario], jobs)
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

/// The Rust SDK repairs a lost session by itself, so its user's one job is two handshakes; the others need another job.
#[test]
fn a_lost_session_is_had_back_by_another_handshake() {
    let job = json!([{"do": "call", "tool": "search"}]);
    for client in [client::rust(), client::python_legacy(), client::typescript_1(), client::typescript_2()] {
        let repairs = client.name == "rust";
        let jobs = if repairs { vec![&job] } else { vec![&job, &job] };
        let Some(told) = ready("session-lost", &client, &jobs) else { continue };
        let name = client.name;
        assert_eq!(told.of(0) == "found", repairs, "{name}: {}", told.of(0));
        assert_eq!(told.of(jobs.len() - 1), "found", "{name}");
        assert_eq!(told.fired(), [1], "{name}");
        assert_eq!(told.report["sessions"], 2, "{name}: {}", told.report);
        let of_jobs = ["initialize", "notifications/initialized", "tools/call"];
        let methods = told.report["sequence"].as_array().expect("a list").iter().filter_map(Value::as_str);
        let methods: Vec<&str> = methods.filter(|method| of_jobs.contains(method)).collect();
        assert_eq!(methods, [of_jobs, of_jobs].concat(), "{name}");
        assert_eq!(told.report["verdict"], "good", "{name}: {}", told.report);
    }
}

#[test]
fn a_session_that_each_call_loses_is_given_up() {
    let job = json!([{"do": "call", "tool": "search"}]);
    for client in [client::rust(), client::python_legacy(), client::typescript_1(), client::typescript_2()] {
        let Some(told) = ready("session-lost-for-good", &client, &[&job, &job]) else { continue };
        let name = client.name;
        assert!(told.calls.iter().all(|call| call["result"].is_null()), "{name}: {:?}", told.calls);
        assert_eq!(told.calls.len(), 2, "{name}: {:?}", told.calls);
        assert!(told.fired()[0] >= 2, "{name}: {}", told.report);
        assert_eq!(told.report["misses"], json!([]), "{name}");
    }
}

/// Lets each client do these steps while a scenario acts of those that are ready.
fn ready_for_each(scenario: &str, steps: &Value, check: impl Fn(&Told)) {
    for client in CLIENTS.map(|client| client()) {
        ready(scenario, &client, &[steps]).iter().for_each(&check);
    }
}

#[test]
fn a_client_goes_on_with_a_stream_that_was_cut() {
    let steps = json!([{"do": "call", "tool": "report", "progress": true}]);
    ready_for_each("stream-cut", &steps, |told| {
        assert_eq!(told.of(0), "done", "{}", told.client);
        assert_eq!(told.fired(), [1], "{}", told.client);
        assert_eq!(told.report["verdict"], "good", "{}: {}", told.client, told.report);
    });
}

/// The cassette as a server of 2026-07-28 has it.
fn modern() -> String {
    let modern = CASSETTE
        .replace("\"protocol\": \"2025-11-25\"", "\"protocol\": \"2026-07-28\"")
        .replace("\"result\": {", "\"result\": {\"resultType\": \"complete\", ")
        .replace("\"tools\": [", "\"ttlMs\": 0, \"cacheScope\": \"private\", \"tools\": [");
    let meta = ["protocolVersion", "clientInfo", "clientCapabilities", "logLevel"]
        .map(|name| format!("\"io.modelcontextprotocol/{name}\": \"debug\""))
        .join(", ");
    let modern = modern.replace("\"_meta\": {", &format!("\"_meta\": {{{meta}, ")).replace(
        "\"method\": \"tools/list\"",
        &format!("\"method\": \"tools/list\", \"params\": {{\"_meta\": {{{meta}}}}}"),
    );
    // Such a server gives its events no ids.
    let modern = ["e1", "e2", "e3"]
        .iter()
        .fold(modern, |text, id| text.replace(&format!("\"sse\": {{\"id\": \"{id}\"}}, "), ""));
    let begins = modern.find("{\"key\": \"initialize @1\"").expect("a handshake");
    let ends = modern.find("{\"key\": \"tools/list @1\"").expect("what comes behind it");
    [&modern[..begins], &modern[ends..]].concat()
}

/// Since 2026-07-28 nothing can be gone on with: the call fails, and its user makes it again.
#[test]
fn a_modern_client_makes_a_call_again_whose_stream_was_cut() {
    let job = json!([{"do": "call", "tool": "report", "progress": true}]);
    let modern = modern();
    let options = ["--faults", PLAN, "--scenario", "stream-cut"];
    let Some(told) = told_of(&modern, &client::python_modern(), Over::Http, &options, &[&job, &job]) else {
        return;
    };
    assert!(told.calls[0].get("result").is_none(), "{:?}", told.calls);
    assert_eq!(told.of(1), "done");
    assert_eq!(told.fired(), [1]);
    assert_eq!(told.report["calls"]["tools/call"], 2);
}

#[test]
fn a_tool_that_fails_is_heard_of_in_each_revision() {
    let steps = json!([{"do": "call", "tool": "report", "progress": true}]);
    let faults = ["--fault", "tools/call report: tool_error text=\"no such file\""];
    let cassette = modern();
    for over in [Over::Stdio, Over::Http, Over::Live] {
        let Some(told) = told_of(&cassette, &client::python_modern(), over, &faults, &[&steps]) else {
            return;
        };
        assert_eq!(told.of(0), "no such file", "{:?}", told.calls);
        assert_eq!(told.calls[0].pointer("/result/isError"), Some(&json!(true)), "{:?}", told.calls);
        assert_eq!(told.fired(), [1]);
    }
}

#[test]
fn a_client_that_is_refused_once_tells_its_user_and_works_again() {
    let steps = json!([{"do": "call", "tool": "search"}, {"do": "call", "tool": "search"}]);
    for scenario in ["rate-limited", "unauthorized-once", "garbage"] {
        ready_for_each(scenario, &steps, |told| {
            assert_ne!(told.of(0), "found", "{scenario}: {}", told.client);
            assert_eq!(told.of(1), "found", "{scenario}: {}", told.client);
            assert_eq!(told.fired(), [1], "{scenario}: {}", told.client);
        });
    }
}

#[test]
fn a_retry_that_fails_too_fails() {
    let steps = json!([{"do": "call", "tool": "search"}, {"do": "call", "tool": "search"}]);
    ready_for_each("session-expired-for-good", &steps, |told| {
        for at in 0..2 {
            assert!(
                told.of(at).contains("Session expired, please reinitialize"),
                "{}: {}",
                told.client,
                told.of(at)
            );
        }
        assert_eq!(told.fired(), [2], "{}", told.client);
    });
}

#[test]
fn a_large_answer_is_taken() {
    let steps = json!([{"do": "call", "tool": "search"}]);
    ready_for_each("oversized", &steps, |told| {
        assert_eq!(told.of(0), "found", "{}", told.client);
        assert_eq!(told.fired(), [1], "{}", told.client);
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
