//! A run is tended: what it tells over HTTP, and what it is told.

mod clock;
mod refused;
mod steps;
mod stories;

use std::{fs, process::Command};

use serde_json::{Value, json};

use crate::{
    schema,
    support::{
        program::TAPEDECK,
        run::Run,
        tend::{Asked, Tend},
    },
};

/// What the servers of these tests can be asked. The recorded answer to `report` took its time.
const CASSETTE: &str = r#"{
  "cassette": 1,
  "sessions": [{"session": 1, "recording": 1, "transport": "http", "path": "/mcp", "protocol": "2025-11-25"}],
  "exchanges": [
    {"key": "initialize @1", "client": {"request": {"method": "initialize", "params": {"protocolVersion": "2025-11-25"}}},
      "http": {"headers": {"mcp-session-id": "<session-1>"}},
      "server": [{"result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}}]},
    {"key": "notifications/initialized @1", "client": {"notification": {"method": "notifications/initialized"}}, "server": []},
    {"key": "tools/list @1", "client": {"request": {"method": "tools/list"}},
      "server": [{"result": {"tools": [{"name": "search", "inputSchema": {"type": "object"}}, {"name": "report", "inputSchema": {"type": "object"}}, {"name": "watch", "inputSchema": {"type": "object"}}]}}]},
    {"key": "tools/call search @1", "client": {"request": {"method": "tools/call", "params": {"name": "search", "arguments": {}}}},
      "server": [{"result": {"content": [{"type": "text", "text": "found"}]}}]},
    {"key": "tools/call search @2", "client": {"request": {"method": "tools/call", "params": {"name": "search", "arguments": {}}}},
      "server": [{"result": {"content": [{"type": "text", "text": "found again"}]}}]},
    {"key": "tools/call report @1", "client": {"request": {"method": "tools/call", "params": {"name": "report", "arguments": {}}}},
      "server": [{"after_ms": 250, "result": {"content": [{"type": "text", "text": "done"}]}}]},
    {"key": "tools/call watch @1", "client": {"request": {"method": "tools/call", "params": {"name": "watch", "arguments": {}, "_meta": {"progressToken": 1}}}},
      "http": {"stream": true},
      "server": [
        {"after_ms": 100, "notification": {"method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}}},
        {"after_ms": 100, "notification": {"method": "notifications/progress", "params": {"progressToken": 1, "progress": 2}}},
        {"after_ms": 100, "result": {"content": [{"type": "text", "text": "seen"}]}}]}
  ]
}"#;

const PLAN: &str = r#"{"faults": 1, "scenarios": {
  "slow": [{"name": "slow", "when": {"tool": "search"}, "do": "latency", "ms": 30000}],
  "flaky": [{"name": "flaky", "when": {"tool": "search"}, "script": [{"do": "error", "code": -32603, "message": "busy"}, "ok"]}],
  "elsewhere": [{"when": {"tool": "nobody"}, "do": "timeout"}],
  "foreign": [{"when": {"server": "d"}, "do": "timeout"}],
  "own": [{"name": "own", "when": {"server": "c", "tool": "search"}, "do": "tool_error", "text": "of c", "optional": true}]
}}"#;

/// Two sessions that differ in what a tool said.
const TWO: &str = r#"{
  "cassette": 1,
  "sessions": [
    {"session": 1, "recording": 1, "transport": "http", "path": "/mcp", "protocol": "2025-11-25"},
    {"session": 2, "recording": 1, "transport": "http", "path": "/mcp", "protocol": "2025-11-25"}],
  "exchanges": [
    {"key": "initialize @1", "session": 1, "client": {"request": {"method": "initialize", "params": {"protocolVersion": "2025-11-25"}}},
      "http": {"headers": {"mcp-session-id": "<session-1>"}}, "server": [{"result": {"protocolVersion": "2025-11-25", "capabilities": {}}}]},
    {"key": "tools/call search @1", "session": 1, "client": {"request": {"method": "tools/call", "params": {"name": "search", "arguments": {}}}},
      "server": [{"result": {"content": [{"type": "text", "text": "first"}]}}]},
    {"key": "initialize @2", "session": 2, "client": {"request": {"method": "initialize", "params": {"protocolVersion": "2025-11-25"}}},
      "http": {"headers": {"mcp-session-id": "<session-2>"}}, "server": [{"result": {"protocolVersion": "2025-11-25", "capabilities": {}}}]},
    {"key": "tools/call search @2", "session": 2, "client": {"request": {"method": "tools/call", "params": {"name": "search", "arguments": {}}}},
      "server": [{"result": {"content": [{"type": "text", "text": "second"}]}}]}
  ]
}"#;

/// A run with these files in a folder.
struct Stand {
    folder: tempfile::TempDir,
    run: Run,
    tend: Tend,
}

impl Stand {
    /// `c.json`, `two.json`, `plan.json` and `events.jsonl` in the arguments are files in the stand's folder.
    fn new(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let write =
            |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("it is written");
        write("c.json", CASSETTE);
        write("two.json", TWO);
        write("plan.json", PLAN);
        let path = |name: &str| folder.path().join(name).display().to_string();
        let arguments: Vec<String> = arguments
            .iter()
            .map(|argument| {
                ["c.json", "two.json", "plan.json", "events.jsonl"]
                    .iter()
                    .fold((*argument).to_owned(), |all, name| all.replace(name, &path(name)))
            })
            .collect();
        let mut all = vec!["--admin", "127.0.0.1:0"];
        all.extend(arguments.iter().map(String::as_str));
        let run = Run::start(&all);
        let tend = Tend::at(&run.environment["TAPEDECK_ADMIN"]);
        Self { folder, run, tend }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Posts a message to an endpoint of the run.
    fn send(&self, path: &str, headers: &[&str], message: &Value) -> Asked {
        let origin = &self.run.environment["TAPEDECK_ORIGIN"];
        let mut all = vec!["Accept: application/json, text/event-stream", "Content-Type: application/json"];
        all.extend(headers);
        Asked::send(origin, "POST", path, &all, &message.to_string())
    }

    /// Begins a session; the header that names it.
    fn begin(&self, path: &str) -> String {
        let (status, head, _) = self.send(path, &[], &initialize()).answer();
        assert_eq!(status, 200, "{head}");
        let line = head.lines().find(|line| line.starts_with("mcp-session-id:"));
        line.expect("a session").to_owned()
    }

    /// Calls a tool in a session.
    fn call(&self, path: &str, session: &str, id: u64, tool: &str) -> Asked {
        self.send(path, &[session, &format!("x-correlation-id: c{id}")], &call(id, tool))
    }
}

fn initialize() -> Value {
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
}

fn call(id: u64, tool: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": {}}})
}

/// The text of an answer's first content, or of its error.
fn said(asked: Asked) -> String {
    let (_, _, body) = asked.answer();
    let body: Value = serde_json::from_str(&body).unwrap_or_else(|_| panic!("no answer: {body}"));
    let text = body.pointer("/result/content/0/text").or_else(|| body.pointer("/error/message"));
    text.and_then(Value::as_str).expect("a text").to_owned()
}

/// The member of this name of each.
fn each<'a>(list: &'a Value, name: &str) -> Vec<&'a Value> {
    list.as_array().expect("a list").iter().map(|one| &one[name]).collect()
}

#[test]
fn takes_misses_and_the_report_tell_what_has_happened() {
    let stand = Stand::new(&["--server", "primary=c.json", "--server", "backup=c.json"]);
    let session = stand.begin("/primary/mcp");
    assert_eq!(said(stand.call("/primary/mcp", &session, 1, "search")), "found");
    stand.begin("/take/t/backup/mcp");
    let lost = said(stand.call("/primary/mcp", &session, 2, "lost"));
    let takes = stand.tend.get("/takes")["takes"].clone();
    let names: Vec<_> = each(&takes, "server").into_iter().zip(each(&takes, "take")).collect();
    let expected = [("primary", ""), ("backup", ""), ("backup", "t")].map(|(a, b)| (json!(a), json!(b)));
    assert_eq!(names, expected.each_ref().map(|(server, take)| (server, take)));
    assert_eq!(takes[0]["played"], json!(["initialize @1", "tools/call search @1"]));
    assert_eq!(takes[0]["calls"], json!({"initialize": 1, "tools/call": 2}));
    let sessions = json!([{"session": 1, "transport": "http", "plays": 1, "is_over": false}]);
    assert_eq!((&takes[2]["sessions"], &takes[0]["misses"]), (&sessions, &json!(1)));
    let misses = stand.tend.get("/misses")["misses"].clone();
    assert_eq!((&misses[0]["message"], &misses[0]["server"]), (&json!(lost), &json!("primary")));
    let report = stand.tend.get("/report");
    assert_eq!(schema::faults("report", report.to_string().as_bytes()), [""; 0]);
    assert_eq!((&report["verdict"], &report["sessions"]), (&json!("open"), &json!(2)));
    assert_eq!(stand.run.end().status.code(), Some(1));
}

#[test]
fn a_take_ends_with_its_verdict_and_counts_in_that_of_the_run() {
    let stand = Stand::new(&["c.json", "--strict"]);
    let session = stand.begin("/take/a/mcp");
    assert_eq!(said(stand.call("/take/a/mcp", &session, 1, "search")), "found");
    let ended = stand.tend.post("/takes/end", &json!({"take": "a"}));
    assert_eq!((&ended["verdict"], &ended["sessions"]), (&json!("bad"), &json!(1)), "{ended}");
    let (status, answer) = stand.tend.ask("POST", "/takes/end", r#"{"take": "a"}"#);
    assert_eq!(status, 404);
    assert!(answer["error"].as_str().expect("a sentence").contains("the default one"), "{answer}");
    // Its clients are told that their sessions are over; another take of its name begins at the beginning.
    let (status, _, answer) = stand.call("/take/a/mcp", &session, 2, "search").answer();
    assert!(status == 404 && answer.contains("Session not found"), "{status} {answer}");
    let session = stand.begin("/take/a/mcp");
    assert_eq!(said(stand.call("/take/a/mcp", &session, 1, "search")), "found");
    assert_eq!(stand.tend.post("/takes/end", &json!({}))["connections"], 0);
    assert_eq!(stand.tend.get("/report")["sessions"], 2);
    assert_eq!(stand.run.end().status.code(), Some(1));
}

#[test]
fn what_is_under_way_in_a_take_ends_with_it() {
    let stand = Stand::new(&["c.json", "--clock", "manual", "--fault", "tools/call search: latency ms=1000"]);
    let session = stand.begin("/mcp");
    let asked = stand.call("/mcp", &session, 1, "search");
    stand.tend.advance(0, 1);
    stand.tend.post("/takes/end", &json!({}));
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut { asked.into_stream() }, &mut rest).expect("it is closed");
    assert_eq!(rest, "", "nothing is answered");
    let events = stand.tend.get("/events?method=tools/call")["events"].clone();
    assert_eq!(each(&events, "outcome"), ["unanswered"]);
    assert_eq!(stand.tend.get("/waiting")["waiting"], json!([]));
}

#[test]
fn events_are_those_that_the_command_finds() {
    let stand = Stand::new(&[
        "--server",
        "primary=c.json",
        "--server",
        "backup=c.json",
        "--events",
        "events.jsonl",
        "--fault",
        "tools/call search @2: error code=-32603 message=busy",
    ]);
    for path in ["/primary/mcp", "/take/a/backup/mcp"] {
        let session = stand.begin(path);
        for (id, tool) in [(1, "search"), (2, "search"), (3, "lost")] {
            said(stand.call(path, &session, id, tool));
        }
    }
    let log = stand.path("events.jsonl");
    for (query, options) in [
        ("", &[][..]),
        ("server=backup", &["--server", "backup"]),
        ("method=initialize", &["--method", "initialize"]),
        ("key=tools%2Fcall+search%20%402", &["--key", "tools/call search @2"]),
        ("request_id=2", &["--request-id", "2"]),
        ("correlation_id=c3&server=primary", &["--correlation-id", "c3", "--server", "primary"]),
        ("outcome=fault", &["--outcome", "fault"]),
        ("outcome=miss&limit=1", &["--outcome", "miss", "--limit", "1"]),
        ("limit=0", &["--limit", "0"]),
    ] {
        let told = stand.tend.get(&format!("/events?{query}"))["events"].clone();
        let output = Command::new(TAPEDECK).args(["events", &log, "--json"]).args(options).output();
        let output = output.expect("the program can be started").stdout;
        let found: Vec<Value> = serde_json::Deserializer::from_slice(&output)
            .into_iter()
            .collect::<Result<_, _>>()
            .expect("lines of JSON");
        assert_eq!(told, json!(found), "{query}");
        assert_eq!(found.is_empty(), query.contains("limit=0"), "{query}");
        for event in found {
            assert_eq!(schema::faults("events", event.to_string().as_bytes()), [""; 0]);
        }
    }
}

/// As the rules of a plan know it.
#[test]
fn the_only_server_has_its_name_in_events() {
    let stand = Stand::new(&["c.json", "--events", "events.jsonl"]);
    stand.begin("/mcp");
    let told = stand.tend.get("/events?server=c")["events"].clone();
    assert_eq!(
        (each(&told, "server"), each(&told, "method")),
        (vec![&json!("c")], vec![&json!("initialize")])
    );
    let log = fs::read_to_string(stand.path("events.jsonl")).expect("a log");
    assert_eq!(serde_json::from_str::<Value>(log.trim()).expect("one line"), told[0]);
}

#[test]
fn scenarios_are_switched_and_none_of_several_is_on_unless_one_is_named() {
    let stand = Stand::new(&["c.json", "--faults", "plan.json"]);
    let session = stand.begin("/mcp");
    let on = |stand: &Stand| {
        let plan = stand.tend.get("/plan")["plans"][0].clone();
        assert_eq!(each(&plan["scenarios"], "name"), ["slow", "flaky", "elsewhere", "foreign", "own"]);
        each(&plan["scenarios"], "on").into_iter().map(|on| on == true).collect::<Vec<bool>>()
    };
    assert_eq!(on(&stand), [false; 5]);
    assert_eq!(said(stand.call("/mcp", &session, 1, "search")), "found");
    let switch = |name: &str, on: bool| stand.tend.post("/plan/scenario", &json!({"name": name, "on": on}));
    switch("flaky", true);
    assert_eq!(on(&stand), [false, true, false, false, false]);
    // Takes that begin later too.
    let later = stand.begin("/take/later/mcp");
    assert_eq!(said(stand.call("/take/later/mcp", &later, 2, "search")), "busy");
    assert_eq!(said(stand.call("/mcp", &session, 2, "search")), "busy");
    assert_eq!(said(stand.call("/mcp", &session, 3, "search")), "found again");
    let rule = |at: usize| stand.tend.get("/plan")["plans"][at]["rules"][1].clone();
    assert_eq!(
        rule(0),
        json!({"rule": "flaky", "scenario": "flaky", "on": true, "in_cassette": false, "seen": 2, "fired": 1, "left": 0})
    );
    assert_eq!((&rule(1)["seen"], &rule(1)["left"]), (&json!(1), &json!(1)));
    switch("flaky", false);
    assert_eq!(said(stand.call("/take/later/mcp", &later, 3, "search")), "found");
    let ask =
        |name: &str| stand.tend.ask("POST", "/plan/scenario", &json!({"name": name, "on": true}).to_string());
    let (status, answer) = ask("floky");
    assert_eq!(status, 404);
    assert_eq!(
        answer["error"],
        "there is no scenario `floky`; there is elsewhere, flaky, foreign, own, slow"
    );
    let (status, answer) = ask("elsewhere");
    assert_eq!(status, 409);
    assert!(
        answer["error"].as_str().expect("a sentence").contains("fits nothing that was recorded"),
        "{answer}"
    );
    // The only server has a name too, for rules and for whoever asks for its events.
    switch("own", true);
    assert_eq!(said(stand.call("/mcp", &session, 9, "search")), "of c");
    switch("own", false);
    let of_c = stand.tend.get("/events?server=c&request_id=9")["events"].clone();
    assert_eq!(each(&of_c, "fault"), ["tool_error"]);
    let (status, answer) = ask("foreign");
    assert_eq!(status, 409);
    let told = answer["error"].as_str().expect("a sentence");
    assert!(told.ends_with("plan.json:5:15): no server is called `d`; there is c"), "{told}");
    // A scenario that was never on need not have fired.
    assert_eq!(each(&stand.tend.get("/report")["faults"], "rule"), ["flaky", "own"]);
    assert_eq!(stand.run.end().status.code(), Some(0));
}

/// Of several servers a rule may be for any, and has to fit something that one of them has.
#[test]
fn a_scenario_that_fits_nothing_of_any_server_cannot_be_switched_on() {
    let servers = ["--server", "one=c.json", "--server", "two=two.json"];
    let stand = Stand::new(&[&servers[..], &["--faults", "plan.json"]].concat());
    let ask =
        |name: &str| stand.tend.ask("POST", "/plan/scenario", &json!({"name": name, "on": true}).to_string());
    assert_eq!(ask("slow").0, 200);
    let (status, answer) = ask("elsewhere");
    assert_eq!(status, 409, "{answer}");
    let told = "fits nothing that was recorded; its tool can be report, search and watch";
    assert!(answer["error"].as_str().expect("a sentence").ends_with(told), "{answer}");
}

#[test]
fn what_was_counted_and_played_begins_anew() {
    let stand = Stand::new(&["c.json", "--faults", "plan.json", "--scenario", "flaky", "--repeat", "error"]);
    let session = stand.begin("/mcp");
    let search = |id| said(stand.call("/mcp", &session, id, "search"));
    assert_eq!([search(1), search(2)], ["busy", "found"]);
    let reset = stand.tend.post("/reset", &json!({"what": "faults", "take": ""}));
    assert_eq!(reset["reset"], json!([{"take": ""}]));
    assert_eq!([search(3), search(4)], ["busy", "found again"]);
    let report = stand.tend.get("/report");
    // What came before is still told.
    assert_eq!((&report["faults"][0]["fired"], &report["sessions"]), (&json!(2), &json!(1)));
    assert_eq!(stand.tend.ask("POST", "/reset", r#"{"take": "b"}"#).0, 404);
    assert_eq!(stand.tend.ask("POST", "/reset", r#"{"server": "b"}"#).0, 404);
}

#[test]
fn a_replay_tells_where_it_is_tended() {
    let folder = tempfile::tempdir().expect("a folder");
    let cassette = folder.path().join("c.json");
    fs::write(&cassette, CASSETTE).expect("it is written");
    let cassette = cassette.display().to_string();
    let front =
        crate::support::front::Front::start(&["replay", &cassette, "--admin", "127.0.0.1:0"], folder.path());
    let ready = fs::read(folder.path().join("replay.ready")).expect("it is written");
    let ready: Value = serde_json::from_slice(&ready).expect("JSON");
    let origin = ready["admin"].as_str().expect("an origin");
    assert_eq!(Tend::at(origin).get("/waiting")["clock"], "real");
    let said = front.end_with(0);
    assert!(said.contains(&format!("whoever tends the run uses {origin}")), "{said}");
}

#[test]
fn recorded_sessions_can_be_played_again() {
    let stand = Stand::new(&["two.json"]);
    let next = || {
        let session = stand.begin("/mcp");
        said(stand.call("/mcp", &session, 1, "search"))
    };
    assert_eq!([next(), next(), next()], ["first", "second", "second"]);
    stand.tend.post("/reset", &json!({"what": "played"}));
    assert_eq!([next(), next()], ["first", "second"]);
    assert_eq!(stand.tend.get("/report")["sessions"], 5);
    assert_eq!(stand.run.end().status.code(), Some(0));
}
