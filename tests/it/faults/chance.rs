//! Chance that is none: whoever asks in whatever order, the same requests meet the same faults.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use mcp_tapedeck::report::Report;

use super::stage::INITIALIZE;
use crate::support::front::Front;

const REQUESTS: usize = 1_000;
const THREADS: usize = 16;

const PLAN: &str = r#"{"faults": 1, "seed": 11, "rules": [
  {"name": "busy", "when": {"tool": "search"}, "do": "error", "code": -32000, "message": "busy", "probability": 0.2},
  {"name": "limited", "when": {"tool": "search"}, "do": "status", "status": 429, "probability": 0.1},
  {"name": "slow", "when": {"tool": "search"}, "do": "latency", "uniform": {"min_ms": 1, "max_ms": 5}, "probability": 0.1}
]}"#;

fn cassette() -> String {
    let mut text = String::from(
        r#"{"cassette": 1,
  "sessions": [{"session": 1, "transport": "http", "path": "/mcp", "protocol": "2025-11-25", "client": "c"}],
  "exchanges": [
    {"key": "initialize @1", "client": {"request": {"method": "initialize", "params": {"protocolVersion": "2025-11-25", "clientInfo": {"name": "c"}}}},
      "http": {"headers": {"mcp-session-id": "<session-1>"}},
      "server": [{"result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}}]}"#,
    );
    for at in 0..REQUESTS {
        let _ = write!(
            text,
            ",\n    {{\"key\": \"tools/call search @{}\", \"client\": {{\"request\": {{\"method\": \"tools/call\", \"params\": {{\"name\": \"search\", \"arguments\": {{\"q\": {at}}}}}}}}}, \"server\": [{{\"result\": {{\"found\": {at}}}}}]}}",
            at + 1
        );
    }
    text + "\n  ]\n}\n"
}

/// A connection that is kept.
struct Client {
    stream: BufReader<TcpStream>,
    host: String,
}

impl Client {
    fn new(host: &str) -> Self {
        let stream = TcpStream::connect(host).expect("it listens");
        Self { stream: BufReader::new(stream), host: host.to_owned() }
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes).expect("so many bytes");
        bytes
    }

    fn chunks(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let mut length = String::new();
            self.stream.read_line(&mut length).expect("a chunk");
            let length = usize::from_str_radix(length.trim_end(), 16).expect("a length");
            let chunk = self.bytes(length + 2);
            body.extend_from_slice(&chunk[..length]);
            if length == 0 {
                return body;
            }
        }
    }

    /// The lines of the response's head, and its body.
    fn post(&mut self, session: &str, body: &str) -> (Vec<String>, String) {
        let session =
            if session.is_empty() { String::new() } else { format!("Mcp-Session-Id: {session}\r\n") };
        let request = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nAccept: application/json, text/event-stream\r\n{session}Content-Length: {}\r\n\r\n{body}",
            self.host,
            body.len()
        );
        self.stream.get_mut().write_all(request.as_bytes()).expect("it reads");
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            assert!(self.stream.read_line(&mut line).expect("a head") > 0, "{head:?}");
            if line == "\r\n" {
                break;
            }
            head.push(line.trim_end().to_ascii_lowercase());
        }
        let length = head.iter().find_map(|line| line.strip_prefix("content-length: "));
        let body = match length.map(|length| length.parse().expect("a number")) {
            Some(length) => self.bytes(length),
            None => self.chunks(),
        };
        // How a body is framed depends on how much of it is there when the head goes.
        let framing = ["date: ", "content-length: ", "transfer-encoding: "];
        head.retain(|line| !framing.iter().any(|name| line.starts_with(name)));
        (head, String::from_utf8(body).expect("text"))
    }
}

/// Each number once, in an order that looks like none.
fn shuffled(mut seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..REQUESTS).collect();
    for at in (1..REQUESTS).rev() {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        order.swap(at, (seed >> 33) as usize % (at + 1));
    }
    order
}

/// What each request was answered, which event it became, and the report.
type Ran = (BTreeMap<usize, (Vec<String>, String)>, BTreeMap<String, String>, Report);

fn run(folder: &Path, seed: u64) -> Ran {
    let path = |name: &str| folder.join(name).display().to_string();
    let (log, report) = (path(&format!("{seed}.jsonl")), path(&format!("{seed}.json")));
    let (cassette, plan) = (path("c.json"), path("p.json"));
    let front = Front::start(
        &["replay", &cassette, "--faults", &plan, "--order", "free", "--events", &log, "--report", &report],
        folder,
    );
    let host = front.origin["http://".len()..].to_owned();
    let (head, _) = Client::new(&host).post("", INITIALIZE);
    let session = head.iter().find_map(|line| line.strip_prefix("mcp-session-id: ")).expect("a session");
    let (order, next, answers) = (shuffled(seed), AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                let mut client = Client::new(&host);
                while let Some(at) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let call = format!(
                        r#"{{"jsonrpc":"2.0","id":{at},"method":"tools/call","params":{{"name":"search","arguments":{{"q":{at}}}}}}}"#
                    );
                    let answer = client.post(session, &call);
                    answers.lock().expect("no panic").insert(*at, answer);
                }
            });
        }
    });
    front.end();
    let events = fs::read_to_string(log).expect("a log");
    let events = events.lines().map(|line| {
        let event: serde_json::Value = serde_json::from_str(line).expect("an event");
        let id = format!("{} {}", event["method"], event["request_id"]);
        (id, format!("{} {} {}", event["outcome"], event["fault"], event["key"]))
    });
    let report = fs::read(report).expect("a report");
    let answers = answers.into_inner().expect("no panic");
    (answers, events.collect(), serde_json::from_slice(&report).expect("a report"))
}

#[test]
fn a_thousand_requests_from_many_threads_meet_the_same_faults_each_time() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("c.json"), cassette()).expect("it is written");
    fs::write(folder.path().join("p.json"), PLAN).expect("it is written");
    let (first, first_events, first_report) = run(folder.path(), 1);
    let (second, second_events, second_report) = run(folder.path(), 2);
    assert_eq!(first.len(), REQUESTS);
    let busy = first.values().filter(|(_, body)| body.contains("busy")).count();
    assert!((120..280).contains(&busy), "{busy}");
    assert_eq!(first, second);
    assert_eq!(first_events.len(), REQUESTS + 1);
    assert_eq!(first_events, second_events);
    assert_eq!(first_report.faults, second_report.faults);
    assert!(first_report.faults.iter().all(|fault| fault.fired > 20), "{:?}", first_report.faults);
}
