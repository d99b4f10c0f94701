//! Faults on live traffic: what the client gets, what is recorded, and how it ends.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    process::Child,
};

use mcp_tapedeck::exit_code::ExitCode;
use serde_json::Value;

use super::deck::{Deck, Ran};
use crate::support::{front::Front, http::Peer, program::TAPEDECK};

/// What the real server, a replay, answers from.
const SERVER: &str = r#"{
  "cassette": 1,
  "sessions": [{"session": 1, "recording": 1, "transport": "stdio", "protocol": "2025-11-25"}],
  "exchanges": [
    {"key": "initialize @1", "client": {"request": {"method": "initialize", "params": {"protocolVersion": "2025-11-25"}}},
      "server": [{"result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}}]},
    {"key": "first", "client": {"request": {"method": "tools/call", "params": {"name": "search", "arguments": {}}}},
      "server": [{"result": {"content": [{"type": "text", "text": "first"}]}}]},
    {"key": "second", "client": {"request": {"method": "tools/call", "params": {"name": "search", "arguments": {}}}},
      "server": [{"result": {"content": [{"type": "text", "text": "second"}]}}]},
    {"key": "report", "client": {"request": {"method": "tools/call", "params": {"name": "report", "_meta": {"progressToken": "t"}}}},
      "server": [
        {"notification": {"method": "notifications/progress", "params": {"progressToken": "t", "progress": 1}}},
        {"result": {"content": []}}]}
  ]
}
"#;

const INITIALIZE: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;

fn search(id: u32) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"search","arguments":{{}}}}}}"#
    )
}

fn report(id: u32) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"report","_meta":{{"progressToken":"t"}}}}}}"#
    )
}

fn found(id: u32, text: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#)
}

fn deck() -> Deck {
    Deck::new().with("server.json", SERVER)
}

/// A command of ours with these faults, in front of the server.
fn words(command: &[&str], faults: &[&str]) -> Vec<String> {
    let faults = faults.iter().flat_map(|fault| ["--fault", fault]);
    let server = ["--", TAPEDECK, "replay", "server.json"];
    command.iter().copied().chain(faults).chain(server).map(str::to_owned).collect()
}

/// A client that says one thing after the other.
struct Talk {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Talk {
    fn new(deck: &Deck, words: &[String]) -> Self {
        let mut child = deck.spawn_words(words);
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { child, output }
    }

    fn says(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().expect("it is open");
        input.write_all(format!("{line}\n").as_bytes()).expect("it is heard");
    }

    fn hears(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a pipe");
        line.trim_end().to_owned()
    }

    /// Says this and hears so many lines.
    fn asks(&mut self, line: &str, answers: usize) -> Vec<String> {
        self.says(line);
        (0..answers).map(|_| self.hears()).collect()
    }

    /// Closes its side.
    fn leaves(mut self) -> Ran {
        self.child.stdin = None;
        let mut rest = Vec::new();
        self.output.read_to_end(&mut rest).expect("a pipe");
        let mut output = self.child.wait_with_output().expect("it ends");
        output.stdout = rest;
        Ran::of(&output)
    }
}

#[test]
fn a_request_that_a_fault_answers_does_not_reach_the_server() {
    let deck = deck();
    let fault = "tools/call search @1: error code=-5 message=busy";
    let mut talk =
        Talk::new(&deck, &words(&["proxy", "--report", "r.json", "--events", "e.jsonl"], &[fault]));
    talk.asks(INITIALIZE, 1);
    let busy = r#"{"jsonrpc":"2.0","id":2,"error":{"code":-5,"message":"busy"}}"#;
    assert_eq!(talk.asks(&search(2), 1), [busy]);
    // What the client asks again is the first thing that the server hears of it.
    assert_eq!(talk.asks(&search(3), 1), [found(3, "first")]);
    talk.leaves().status(ExitCode::Good).silent();
    let told: Value = serde_json::from_str(&deck.read("r.json")).expect("JSON");
    assert_eq!(told["verdict"], "good");
    assert_eq!((&told["calls"]["tools/call"], &told["sessions"]), (&2.into(), &1.into()));
    assert_eq!(told["faults"][0]["keys"], serde_json::json!(["tools/call search @1"]));
    deck.run("verdict r.json").status(ExitCode::Good);
    deck.run("events e.jsonl --outcome fault").status(ExitCode::Good).stdout("tools/call search @1");
}

#[test]
fn an_answer_that_is_late_keeps_no_other_back() {
    let fault = "tools/call search @1: latency ms=2000";
    let deck = deck();
    let mut talk = Talk::new(&deck, &words(&["proxy"], &[fault]));
    talk.asks(INITIALIZE, 1);
    talk.says(&search(2));
    assert_eq!(talk.asks(&search(3), 2), [found(3, "second"), found(2, "first")]);
    talk.leaves().status(ExitCode::Good);
    // On its way to the server the request is late, and the other one is served first.
    let plan = r#"{"faults": 1, "rules": [{"when": {"direction": "to_server", "key": "tools/call search @1"}, "do": "latency", "ms": 2000}]}"#;
    let deck = deck.with("plan.json", plan);
    let mut talk = Talk::new(&deck, &words(&["proxy", "--faults", "plan.json"], &[]));
    talk.asks(INITIALIZE, 1);
    talk.says(&search(2));
    assert_eq!(talk.asks(&search(3), 2), [found(3, "first"), found(2, "second")]);
    talk.leaves().status(ExitCode::Good);
}

#[test]
fn what_is_owed_to_a_client_that_has_closed_its_side_still_comes() {
    let lines = format!("{INITIALIZE}\n{}\n", search(2));
    let ran = deck().run_words(words(&["proxy"], &["tools/call: latency ms=300"]), &lines);
    ran.status(ExitCode::Good).stdout(&found(2, "first"));
}

/// A cassette without what differs from one recording to the next.
fn timeless(cassette: &str) -> Value {
    let mut read: Value = serde_json::from_str(cassette).expect("it is JSON");
    let mut open = vec![&mut read];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(members) => {
                members.retain(|name, _| !["after_ms", "journal", "at", "by"].contains(&&**name));
                open.extend(members.values_mut());
            }
            Value::Array(elements) => open.extend(elements),
            _ => {}
        }
    }
    read
}

#[test]
fn what_is_recorded_is_what_the_peers_really_said() {
    let recorded = |faults: &[&str], lines: [usize; 4]| {
        let deck = deck();
        let mut talk = Talk::new(&deck, &words(&["record", "c.json"], faults));
        let asked = [INITIALIZE.to_owned(), search(2), search(3), report(4)];
        let heard =
            asked.iter().zip(lines).flat_map(|(line, count)| talk.asks(line, count)).collect::<Vec<_>>();
        talk.leaves().status(ExitCode::Good).silent();
        (timeless(&deck.read("c.json")), heard)
    };
    let faults = [
        "initialize: list_changed",
        "initialize: server_request",
        "tools/call search @1: truncate bytes=20",
        "tools/call search @2: noise_line",
        "tools/call search @2: tool_error text=no",
        "tools/call report: duplicate",
    ];
    let (plain, all) = recorded(&[], [1, 1, 1, 2]);
    let (faulty, heard) = recorded(&faults, [3, 1, 2, 3]);
    assert_ne!(all, heard);
    assert_eq!(plain, faulty);
    let said = plain.to_string();
    assert!(said.contains("\"first\"") && said.contains("\"second\""), "{said}");
}

#[test]
fn a_server_that_a_fault_ends_is_recorded_up_to_its_real_answer() {
    let deck = deck();
    let lines = format!("{INITIALIZE}\n{}\n", search(2));
    let ran =
        deck.run_words(words(&["record", "c.json"], &["tools/call: exit status=3 partial=Oops"]), &lines);
    assert_eq!((ran.code, ran.signal), (Some(3), None));
    assert!(ran.stdout.ends_with("}\nOops"), "{ran:#?}");
    let cassette = deck.read("c.json");
    assert!(cassette.contains("\"first\"") && !cassette.contains("\"end\""), "{cassette}");
    assert!(deck.names().iter().all(|name| !name.ends_with(".journal")), "{:?}", deck.names());
    // One that ends well by a fault has no other status than ours.
    let ran = deck.run_words(words(&["proxy"], &["tools/call: exit status=0", "ping: drop"]), &lines);
    ran.status(ExitCode::Bad);
}

#[test]
fn a_session_that_expired_on_a_pipe_is_told_once() {
    let deck = deck();
    let mut talk = Talk::new(&deck, &words(&["proxy"], &["tools/call search @1: session_expired"]));
    talk.asks(INITIALIZE, 1);
    let gone = r#"{"jsonrpc":"2.0","id":2,"error":{"code":-32001,"message":"Session not found"}}"#;
    assert_eq!(talk.asks(&search(2), 1), [gone]);
    assert!(talk.asks(INITIALIZE, 1)[0].contains("\"result\""));
    assert_eq!(talk.asks(&search(3), 1), [found(3, "first")]);
    talk.leaves().status(ExitCode::Good);
}

#[test]
fn a_rule_that_never_acted_is_bad_unless_the_server_ended_worse() {
    let bad = ["proxy", "--fault", "ping: drop", "--report", "r.json"];
    let with = |command: &str| {
        let deck = deck();
        let ran = deck.run_words(bad.iter().copied().chain(["--", "sh", "-c", command]), "");
        assert!(ran.stderr.contains("the fault `ping: drop` never acted"), "{ran:#?}");
        deck.run("verdict r.json").status(ExitCode::Bad);
        ran
    };
    with("cat").status(ExitCode::Bad);
    assert_eq!(with("exit 7").code, Some(7));
    let signalled = with("kill -9 $$");
    assert_eq!(signalled.signal, Some(9));
    let plan = r#"{"faults": 1, "rules": [{"do": "drop", "optional": true}], "assert": {"sessions": 1}}"#;
    let deck = deck().with("plan.json", plan);
    let ran = deck.run_words(["proxy", "--faults", "plan.json", "--", "cat"], "");
    ran.status(ExitCode::Bad).stderr("asserted");
}

#[test]
fn a_plan_that_is_wrong_is_told_in_the_protocol_and_starts_no_server() {
    let deck = deck().with("plan.json", r#"{"faults": 1, "scenarios": {"a": [], "b": []}}"#);
    let ping = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
    for (words, code, told) in [
        (&["--faults", "plan.json"][..], ExitCode::Usage, "choose one by `--scenario`"),
        (
            &["--faults", "plan.json", "--scenario", "c"],
            ExitCode::Usage,
            "there is no scenario `c`; there is a, b",
        ),
        (&["--faults", "none.json"], ExitCode::File, "none.json"),
        (&["--fault", "ping: tiemout"], ExitCode::Usage, "ping: tiemout"),
        (&["--fault", "ping: refuse"], ExitCode::Usage, "`refuse` cannot exist here"),
        (&["--fault", "tools/call @2: drop"], ExitCode::Usage, "is no key of live traffic"),
        (&["--unknown"], ExitCode::Usage, "--unknown"),
    ] {
        for command in [&["proxy"][..], &["record", "c.json"]] {
            let report = ["--report", "r.json"];
            let line = command.iter().chain(&report).chain(words).chain(&["--", "touch", "started"]);
            let ran = deck.run_words(line, ping).status(code).stderr(told);
            assert!(ran.stdout.contains("\"code\":-33001") && ran.stdout.contains("\"id\":1"), "{ran:#?}");
        }
        if words[0] != "--unknown" {
            deck.run("verdict r.json").status(ExitCode::Bad);
        }
    }
    assert!(deck.names().iter().all(|name| name != "started" && name != "c.json"), "{:?}", deck.names());
}

#[test]
fn what_no_fault_is_about_passes_as_it_is() {
    // Noise, line ends of others, a line over the limit, and a last one without an end.
    let lines = format!("no message\r\n\n{{\"a\":\"é\"}}\n{}\n{}\nlast", "x".repeat(3 << 20), search(2));
    let deck = deck();
    for options in [&["--events", "e.jsonl", "--max-message", "1MiB"][..], &[]] {
        let words = ["proxy"].iter().chain(options).chain(&["--", "cat"]);
        let mut talk = Talk::new(&deck, &words.map(ToString::to_string).collect::<Vec<_>>());
        let mut input = talk.child.stdin.take().expect("it is open");
        let ran = std::thread::scope(|scope| {
            scope.spawn(|| {
                input.write_all(lines.as_bytes()).expect("it is heard");
                drop(input);
            });
            talk.leaves()
        });
        assert!(ran.stdout == lines, "{} bytes of {}", ran.stdout.len(), lines.len());
        ran.status(ExitCode::Good).silent();
    }
}

#[test]
fn secrets_reach_no_report_of_live_traffic() {
    let token = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    let deck = deck();
    let line = search(2).replace("\"search\"", &format!("\"{token}\""));
    let words =
        ["proxy", "--events", "e.jsonl", "--report", "r.json", "--fault", "tools/call: drop", "--", "cat"];
    let ran = deck.run_words(words, &format!("{line}\n"));
    // The answer that would be dropped never came.
    let ran = ran.status(ExitCode::Bad);
    assert!(ran.stdout.contains(token), "{ran:#?}");
    let told = deck.read("e.jsonl") + &deck.read("r.json");
    assert!(told.contains("tools/call") && !told.contains(token), "{told}");
}

/// Whoever is refused may be the client that is to be recorded.
#[test]
fn what_a_recording_front_refuses_is_told_at_its_end() {
    let deck = deck();
    let server = deck.path("server.json");
    let real = Front::start(&["replay", server.to_str().expect("text")], &deck.path("."));
    let (cassette, report) = (deck.path("c.json"), deck.path("r.json"));
    let (cassette, report) = (cassette.to_str().expect("text"), report.to_str().expect("text"));
    for (command, so, reports) in [
        (&["record", cassette][..], "which no recording has", false),
        (&["record", cassette, "--report", report], "which no recording has", true),
        (
            &["record", cassette, "--fault", r#"x: {"do": "drop", "optional": true}"#, "--report", report],
            "which no recording has",
            true,
        ),
        (&["proxy", "--report", report], "and went no further", true),
    ] {
        let words: Vec<&str> = command.iter().copied().chain(["--url", &real.url]).collect();
        let front = Front::start(&words, &deck.path("."));
        let host = &front.origin["http://".len()..];
        for (head, status) in [
            ("POST /mcp HTTP/1.1\r\nHost: evil.example\r\n".to_owned(), 403),
            ("POST /mcp HTTP/1.1\r\nHost: evil.example\r\n".to_owned(), 403),
            (format!("POST /mcp HTTP/1.1\r\nHost: {host}\r\nOrigin: https://evil.example\r\n"), 403),
            (format!("POST /mcp HTTP/1.1\r\nHost: {host}\r\nno name: 1\r\n"), 400),
            (format!("GET / HTTP/1.1\r\nHost: {host}\r\n{}", "X: y\r\n".repeat(400)), 431),
        ] {
            let mut peer = Peer::new(TcpStream::connect(host).expect("it listens"));
            peer.say(format!("{head}Connection: close\r\nContent-Length: 0\r\n\r\n"));
            let answer = peer.head();
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
            drop(peer.rest());
        }
        let said = front.end_with(0);
        assert!(said.contains(&format!("5 requests were refused, {so}:")), "{said}");
        for part in [
            "--allow-host evil.example` allows it (2 times)",
            "--allow-origin",
            "no request of HTTP/1.1",
            "lines",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        if reports {
            let told: serde_json::Value = serde_json::from_str(&deck.read("r.json")).expect("JSON");
            assert_eq!(
                (told["refused"].as_array().map(Vec::len), &told["verdict"]),
                (Some(4), &"good".into())
            );
        }
    }
    real.end();
}

#[test]
fn a_server_over_http_has_faults_as_well() {
    let deck = deck();
    let server = deck.path("server.json");
    let front = Front::start(&["replay", server.to_str().expect("text")], &deck.path("."));
    let fault = ["--fault", "tools/call search @1: error message=busy"];
    let words = ["record", "c.json", "--url", &front.url].into_iter().chain(fault).map(str::to_owned);
    let mut talk = Talk::new(&deck, &words.collect::<Vec<_>>());
    talk.asks(INITIALIZE, 1);
    assert!(talk.asks(&search(2), 1)[0].contains("busy"));
    assert_eq!(talk.asks(&search(3), 1), [found(3, "first")]);
    talk.leaves().status(ExitCode::Good).silent();
    assert!(!deck.read("c.json").contains("busy"));
    let words = ["record", "d.json", "--url", &front.url, "--fault", "tools/call: exit status=4"];
    let ran = deck.run_words(words, &format!("{INITIALIZE}\n{}\n", search(2)));
    assert_eq!(ran.code, Some(4), "{ran:#?}");
    front.end();
}
