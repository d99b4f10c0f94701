//! A replayer with a plan, on stdio and over HTTP; time stands still unless the test moves it.

use std::sync::Arc;

use mcp_tapedeck::{
    cassette::{blob::NoBlobs, model::Cassette},
    fault::{Plan, Plans},
    replay::{HttpRequest, Input, Options, Output, Replayer},
    report::Report,
    traffic::Lane,
};

/// A session of `initialize`, three searches and a report with progress.
pub(super) const CASSETTE: &str = r#"{
  "cassette": 1,
  "sessions": [{"session": 1, "recording": 1, "transport": "http", "path": "/mcp", "protocol": "2025-11-25", "client": "c"}],
  "exchanges": [
    {"key": "initialize @1", "client": {"request": {"method": "initialize", "params": {"protocolVersion": "2025-11-25", "clientInfo": {"name": "c"}}}},
      "http": {"headers": {"mcp-session-id": "<session-1>"}},
      "server": [{"result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}}]},
    {"key": "notifications/initialized @1", "client": {"notification": {"method": "notifications/initialized"}}, "server": []},
    {"key": "tools/call search @1", "client": {"request": {"method": "tools/call", "params": {"name": "search", "arguments": {"q": "a"}}}},
      "server": [{"result": {"content": [{"type": "text", "text": "first"}]}}]},
    {"key": "tools/call search @2", "client": {"request": {"method": "tools/call", "params": {"name": "search", "arguments": {"q": "a"}}}},
      "server": [{"result": {"content": [{"type": "text", "text": "second"}]}}]},
    {"key": "tools/call report @1", "client": {"request": {"method": "tools/call", "params": {"name": "report", "_meta": {"progressToken": 5}}}},
      "http": {"stream": true},
      "server": [
        {"notification": {"method": "notifications/progress", "params": {"progressToken": 5, "progress": 1}}},
        {"notification": {"method": "notifications/progress", "params": {"progressToken": 5, "progress": 2}}},
        {"result": {"content": []}}]}
  ]
}"#;

pub(super) const SEARCH: &str =
    r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"search","arguments":{"q":"a"}}}"#;
pub(super) const REPORT: &str = r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"report","_meta":{"progressToken":"t"}}}"#;
pub(super) const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"c"}}}"#;

pub(super) struct Stage {
    pub(super) replayer: Replayer,
    now: u64,
    lanes: u32,
    session: Option<String>,
    /// Headers beside those that every client sends.
    pub(super) headers: Vec<(&'static str, String)>,
}

/// The rules of a scenario.
pub(super) fn plan(rules: &str) -> Plan {
    let text = format!(r#"{{"faults": 1, "seed": 7, "rules": {rules}}}"#);
    let mut plan = Plan::default();
    let plans = Plans::read(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"));
    plan.add(plans, None, true).expect("no scenario");
    plan
}

impl Stage {
    pub(super) fn new(rules: &str) -> Self {
        Self::with(plan(rules), CASSETTE)
    }

    pub(super) fn with(plan: Plan, cassette: &str) -> Self {
        Self::played(plan, cassette, Options::default())
    }

    pub(super) fn played(plan: Plan, cassette: &str, options: Options) -> Self {
        let cassette = Cassette::load(cassette.as_bytes().to_vec(), &NoBlobs).expect("the cassette loads");
        let options = Options { faults: Some(Arc::new(plan)), events: Some(Arc::default()), ..options };
        let replayer = Replayer::new(Arc::new(cassette), Arc::new(NoBlobs), "test.json", options);
        Self { replayer: replayer.expect("a replayer"), now: 0, lanes: 0, session: None, headers: Vec::new() }
    }

    /// The client sends a line.
    pub(super) fn send(&mut self, line: &str) -> String {
        self.replayer.handle(self.now, Input::Message { lane: Lane(0), bytes: line.as_bytes() });
        self.seen()
    }

    /// The client posts a message, in the session that it has.
    pub(super) fn post(&mut self, body: &str) -> String {
        self.ask("POST", "/mcp", body)
    }

    /// The client sends an HTTP request, in the session that it has.
    pub(super) fn ask(&mut self, method: &str, target: &str, body: &str) -> String {
        self.lanes += 1;
        let more = self.headers.clone();
        let session = self.session.clone().unwrap_or_default();
        let mut headers: Vec<(&str, &[u8])> =
            vec![("accept", b"application/json, text/event-stream"), ("content-type", b"application/json")];
        if !session.is_empty() {
            headers.push(("mcp-session-id", session.as_bytes()));
        }
        headers.extend(more.iter().map(|(name, value)| (*name, value.as_bytes())));
        let request = HttpRequest {
            method,
            target,
            origin: "http://h",
            headers: &headers,
            body: body.as_bytes(),
            is_whole: true,
            opens_connection: true,
        };
        self.replayer.handle(self.now, Input::Request { lane: Lane(self.lanes), request: &request });
        self.seen()
    }

    /// The client forgets the session that it has.
    pub(super) fn forget(&mut self) {
        self.session = None;
    }

    /// Begins a session.
    pub(super) fn initialize(&mut self) -> String {
        self.session = None;
        self.post(INITIALIZE)
    }

    /// Time goes on.
    pub(super) fn wait(&mut self, ms: u64) -> String {
        self.now += ms * 1000;
        self.seen()
    }

    pub(super) fn finish(&self) -> Report {
        self.replayer.finish()
    }

    fn seen(&mut self) -> String {
        let mut seen = String::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        while let Some(output) = self.replayer.poll(self.now) {
            let own = |lane: Lane, text: String| match lane.0 == self.lanes {
                true => text,
                false => format!("({}) {text}", lane.0),
            };
            let line = match output {
                Output::Send { bytes, .. } => text(&bytes),
                Output::HalfClose { lane } => own(lane, "half close".to_owned()),
                Output::Raw { lane, bytes, .. } => own(lane, format!("raw {:?}", text(&bytes))),
                Output::Head { lane, head } => {
                    for (_, value) in head.headers.iter().filter(|(name, _)| &**name == "mcp-session-id") {
                        self.session = Some(text(value));
                    }
                    own(lane, head.status.to_string())
                }
                Output::Body { lane, bytes } => own(lane, text(&bytes)),
                Output::Event { lane, event } => own(lane, format!("event {}", text(&event.data))),
                Output::EndLane { lane, partial, end } => {
                    own(lane, format!("end {end:?} {:?}", text(&partial)).replace(" \"\"", ""))
                }
                Output::End { end, .. } => {
                    let last = end.partial.map(|last| format!(" {:?}", text(&last))).unwrap_or_default();
                    format!("server ends {:?}{last}", end.exit)
                }
                Output::Upstream { .. } | Output::EndUpstream { .. } => panic!("there is no real server"),
            };
            seen.push_str(&line);
            seen.push('\n');
        }
        seen
    }
}
