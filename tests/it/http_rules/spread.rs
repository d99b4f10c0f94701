//! Messages that were recorded over HTTP with white space and line ends between their tokens: whatever serves them,
//! they are the same JSON, and a client that speaks in lines reads each on one line.

use mcp_tapedeck::{
    Recorder,
    cassette::{
        blob::{MemoryBlobs, NoBlobs},
        journal::JournalHeader,
        model::Cassette,
    },
    traffic::{Direction, Event, Lane, Payload, RequestHead, ResponseHead, SseEvent},
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::stage::*;

/// What may stand between two tokens.
const GAPS: [&str; 7] = ["", "\n", "\r\n", " ", "\n  ", "\r", "\t\n\n"];

const SESSION: &str = "mcp-session-id";

/// A message with gaps between its tokens, and around it; a byte order mark where one of them says so.
fn spread(message: &Value, gaps: &[u8]) -> String {
    let text = message.to_string();
    let mut gaps = gaps.iter().cycle();
    let mut out = String::new();
    if gaps.next().is_some_and(|gap| gap % 5 == 4) {
        out.push('\u{feff}');
    }
    let mut gap = |out: &mut String| out.push_str(GAPS[usize::from(*gaps.next().unwrap()) % GAPS.len()]);
    gap(&mut out);
    let (mut inside, mut escaped) = (false, false);
    for c in text.chars() {
        let is_token = !inside && "{}[],:".contains(c);
        if is_token {
            gap(&mut out);
        }
        out.push(c);
        if is_token {
            gap(&mut out);
        }
        inside ^= c == '"' && !escaped;
        escaped = inside && c == '\\' && !escaped;
    }
    gap(&mut out);
    out
}

/// A recording over HTTP in the making.
struct Tape<'g> {
    recorder: Recorder,
    lane: u32,
    at: u64,
    gaps: &'g [u8],
    /// Answers come as events.
    events: bool,
}

impl Tape<'_> {
    fn event(&mut self, lane: u32, direction: Direction, payload: Payload<'_>) {
        self.at += 1000;
        self.recorder.event(&Event { at: self.at, direction, lane: Lane(lane), payload });
    }

    /// Each message begins at another gap.
    fn spread(&self, message: &Value) -> Vec<u8> {
        let (length, from) = (self.gaps.len(), self.at as usize / 1000);
        let gaps: Vec<u8> = self.gaps.iter().copied().cycle().skip(from % length).take(length).collect();
        spread(message, &gaps).into_bytes()
    }

    fn request(&mut self, method: &str) -> u32 {
        self.lane += 1;
        let accept = (b"accept"[..].into(), b"application/json, text/event-stream"[..].into());
        let session = (SESSION.as_bytes().into(), b"s1"[..].into());
        let headers = [accept, session].into_iter().take(if self.lane == 1 { 1 } else { 2 }).collect();
        let (method, target) = (method.as_bytes().into(), b"/mcp"[..].into());
        self.event(self.lane, Direction::ToServer, Payload::Request(RequestHead { method, target, headers }));
        self.lane
    }

    fn post(&mut self, message: &Value) -> u32 {
        let (lane, bytes) = (self.request("POST"), self.spread(message));
        self.event(lane, Direction::ToServer, Payload::Message(bytes.into()));
        lane
    }

    fn head(&mut self, lane: u32, status: u16, content_type: &'static str) {
        let content_type = (b"content-type"[..].into(), content_type.as_bytes().into());
        let session = (SESSION.as_bytes().into(), b"s1"[..].into());
        let headers = [content_type, session].into_iter().take(if lane == 1 { 2 } else { 1 }).collect();
        self.event(lane, Direction::ToClient, Payload::Response(ResponseHead { status, headers }));
    }

    /// A message of the server on a stream.
    fn says(&mut self, lane: u32, message: &Value) {
        // An event's data has its line ends as LF.
        let data = String::from_utf8(self.spread(message)).unwrap().replace("\r\n", "\n").replace('\r', "\n");
        let event = SseEvent {
            event: Some(b"message"[..].into()),
            data: data.into_bytes().into(),
            ..SseEvent::default()
        };
        self.event(lane, Direction::ToClient, Payload::SseEvent(event));
    }

    fn closes(&mut self, lane: u32) {
        self.event(lane, Direction::ToClient, Payload::Closed);
    }

    fn accepts(&mut self, message: &Value) {
        let lane = self.post(message);
        self.event(
            lane,
            Direction::ToClient,
            Payload::Response(ResponseHead { status: 202, headers: vec![] }),
        );
        self.closes(lane);
    }

    /// A request, and its answer behind other messages, which only events can carry.
    fn exchange(&mut self, request: &Value, before: &[Value], answer: &Value) {
        let lane = self.post(request);
        self.head(lane, 200, if self.events { "text/event-stream" } else { "application/json" });
        for message in before.iter().take(if self.events { before.len() } else { 0 }) {
            self.says(lane, message);
            if message["id"].is_number() {
                self.accepts(&json!({"jsonrpc": "2.0", "id": message["id"], "result": {}}));
            }
        }
        if self.events {
            self.says(lane, answer);
        } else {
            let bytes = self.spread(answer);
            self.event(lane, Direction::ToClient, Payload::Message(bytes.into()));
        }
        self.closes(lane);
    }

    fn cassette(self) -> String {
        let text = self.recorder.finish(None, &mut MemoryBlobs::default()).unwrap();
        String::from_utf8(text).unwrap()
    }
}

fn calls(id: &Value, tool: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": {"a": [1, {}]}}})
}

fn answered(id: &Value, what: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": format!("{what}\n\\\"{{\r")}]}})
}

fn failed(id: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32602, "message": "no\nsuch", "data": [[], {}]}})
}

fn begins(id: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "initialize", "params": {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}})
}

fn welcome(id: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {"protocolVersion": "2025-03-26", "capabilities": {"logging": {}, "tools": {}}, "serverInfo": {"name": "s", "version": "1"}}})
}

fn logs(what: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": what}})
}

fn asks(id: u32) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "ping"})
}

/// The requests of the script, with what is said to each before its answer, and that; ids as the caller gives them.
fn script(id: impl Fn(u32) -> Value) -> Vec<(Value, Vec<Value>, Value)> {
    let batch = json!([calls(&id(4), "c"), calls(&id(5), "d")]);
    let answers = json!([answered(&id(4), "c"), failed(&id(5))]);
    vec![
        (begins(&id(1)), vec![], welcome(&id(1))),
        (calls(&id(2), "a"), vec![logs("a"), asks(70)], answered(&id(2), "a")),
        (calls(&id(3), "b"), vec![], failed(&id(3))),
        (batch, vec![logs("batch")], answers),
    ]
}

fn initialized() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/initialized"})
}

fn recorded(gaps: &[u8], events: bool) -> String {
    let header = JournalHeader { transport: "http".to_owned(), ..JournalHeader::default() };
    let mut tape = Tape { recorder: Recorder::new(header), lane: 0, at: 0, gaps, events };
    for (at, (request, before, answer)) in script(|id| json!(id)).iter().enumerate() {
        tape.exchange(request, before, answer);
        if at == 0 {
            tape.accepts(&initialized());
        }
    }
    if events {
        let lane = tape.request("GET");
        tape.head(lane, 200, "text/event-stream");
        tape.says(lane, &logs("pushed"));
        tape.closes(lane);
    }
    tape.cassette()
}

/// What a stage has said: each message, and whether it came as a line.
fn messages(heard: &[String]) -> Vec<Value> {
    let mut found = Vec::new();
    for said in heard {
        let (_, said) = said.split_once(' ').unwrap();
        let Some((word, text)) = said.split_once(' ') else { continue };
        match word {
            "line" => {
                assert!(!text.contains(['\n', '\r']), "one line: {text:?}");
                assert!(text.starts_with(['{', '[']) && text.ends_with(['}', ']']), "nothing else: {text:?}");
            }
            "event" | "body" if !text.starts_with('/') && text != "Accepted" => {}
            _ => continue,
        }
        found.push(serde_json::from_str(text.trim_start_matches('\u{feff}')).expect(text));
    }
    found
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Served {
    Stdio,
    Http,
    Sse,
}

/// Says the script to a replay; what it heard in the end.
fn hears(stage: &mut Stage, served: Served) -> Vec<Value> {
    let (mut header, mut address, mut heard) = (String::new(), String::new(), Vec::new());
    if served == Served::Sse {
        address = stage.get("/sse", &[])[1].strip_prefix("1 event ").unwrap().to_owned();
    }
    let say = |stage: &mut Stage, message: &Value, header: &str| match served {
        Served::Stdio => stage.line(1, &message.to_string()),
        Served::Http => stage.post(&[header], &message.to_string()),
        Served::Sse => stage.ask("POST", &address, &[], &message.to_string()),
    };
    for (at, (request, ..)) in script(|id| json!(format!("live {id}"))).iter().enumerate() {
        let mut said = say(stage, request, &header);
        while let Some(asked) = messages(&said).iter().find(|message| message["method"] == "ping") {
            heard.extend(messages(&said));
            said = say(stage, &json!({"jsonrpc": "2.0", "id": asked["id"], "result": {}}), &header);
        }
        said.extend(stage.wait(5));
        if let Some((_, id)) = said[0].split_once(&format!("{SESSION}=")) {
            header = format!("{SESSION}: {id}");
        }
        heard.extend(messages(&said));
        if at == 0 {
            heard.extend(messages(&say(stage, &initialized(), &header)));
        }
    }
    if served == Served::Http {
        heard.extend(messages(&stage.get("/mcp", &[&header])));
    }
    heard.extend(messages(&stage.wait(100)));
    heard
}

#[track_caller]
fn check(gaps: &[u8], events: bool) {
    let text = recorded(gaps, events);
    let cassette = || Cassette::load(text.clone().into_bytes(), &NoBlobs).expect(&text);
    assert_eq!(String::from_utf8(mcp_tapedeck::cassette::format(&cassette())).unwrap(), text);
    let mut expected = Vec::new();
    for (_, before, answer) in script(|id| json!(format!("live {id}"))) {
        expected.extend(before.into_iter().filter(|_| events));
        expected.push(answer);
    }
    expected.extend(events.then(|| logs("pushed")));
    for served in [Served::Stdio, Served::Http, Served::Sse] {
        let mut stage = Stage::of(cassette());
        assert_eq!(hears(&mut stage, served), expected, "{served:?}\n{text}");
        stage.good();
    }
}

#[test]
fn each_kind_of_gap_is_none_of_the_message() {
    for gap in 0..GAPS.len() as u8 {
        for mark in [0, 4] {
            for events in [false, true] {
                check(&[mark, gap], events);
            }
        }
    }
}

#[test]
fn each_answer_of_a_batch_that_is_taken_apart_is_one_line() {
    for gap in 0..GAPS.len() as u8 {
        let cassette = Cassette::load(recorded(&[0, gap], false).into_bytes(), &NoBlobs).unwrap();
        let mut stage = Stage::of(cassette);
        stage.line(1, &begins(&json!(1)).to_string());
        let (x, y, z) = (json!("x"), json!("y"), json!("z"));
        let batch = json!([calls(&x, "d"), calls(&y, "a"), calls(&z, "c")]);
        let answers = [failed(&x), answered(&y, "a"), answered(&z, "c")];
        assert_eq!(messages(&stage.line(1, &batch.to_string())), answers);
    }
}

#[test]
fn a_fault_can_stand_at_a_request_of_several_lines() {
    let exchange = r#"{"key": "a", "fault": "timeout", "client": {"raw": MESSAGE}, "server": []}"#;
    for (message, is_request) in [(calls(&json!(1), "a"), true), (logs("no request"), false)] {
        let text = exchange.replace("MESSAGE", &json!(spread(&message, &[0, 1])).to_string());
        let text = format!(r#"{{"cassette": 1, "sessions": [{HTTP}], "exchanges": [{text}]}}"#);
        let cassette = Cassette::load(text.into_bytes(), &NoBlobs).unwrap();
        assert_eq!(mcp_tapedeck::fault::of_cassette(&cassette).is_ok(), is_request, "{message}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]
    #[test]
    fn gaps_of_all_kinds_are_none_of_the_messages(gaps in proptest::collection::vec(any::<u8>(), 40..120), events: bool) {
        check(&gaps, events);
    }
}
