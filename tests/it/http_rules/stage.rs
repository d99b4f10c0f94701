//! A replayer on a stage, and what its cassettes are made of.

use std::sync::Arc;

use mcp_tapedeck::{
    cassette::{blob::NoBlobs, model::Cassette},
    replay::{HttpRequest, Input, Options, Output, Replayer, Timing},
    report::{Report, Verdict},
    traffic::Lane,
};

/// A replayer on a stage: time stands still unless the test moves it, and requests are lanes from 1 on.
pub(super) struct Stage {
    pub(super) replayer: Replayer,
    now: u64,
    lanes: u32,
    pub(super) origin: &'static str,
}

impl Stage {
    pub(super) fn new(sessions: &str, exchanges: &str) -> Self {
        Self::with(sessions, exchanges, Options::default())
    }

    pub(super) fn with(sessions: &str, exchanges: &str, options: Options) -> Self {
        let text = format!(r#"{{"cassette": 1, "sessions": [{sessions}], "exchanges": [{exchanges}]}}"#);
        Self::play(Cassette::load(text.into_bytes(), &NoBlobs).expect("the cassette loads"), options)
    }

    pub(super) fn of(cassette: Cassette) -> Self {
        Self::play(cassette, Options::default())
    }

    fn play(cassette: Cassette, options: Options) -> Self {
        let replayer = Replayer::new(Arc::new(cassette), Arc::new(NoBlobs), "test.json", options);
        Self { replayer: replayer.expect("a replayer"), now: 0, lanes: 0, origin: "http://h" }
    }

    /// A request; `headers` are `name: value`.
    pub(super) fn ask(&mut self, method: &str, target: &str, headers: &[&str], body: &str) -> Vec<String> {
        self.lanes += 1;
        let headers: Vec<(&str, &[u8])> = headers
            .iter()
            .filter_map(|header| header.split_once(": "))
            .map(|(name, value)| (name, value.as_bytes()))
            .collect();
        let request = HttpRequest {
            method,
            target,
            origin: self.origin,
            headers: &headers,
            body: body.as_bytes(),
            is_whole: true,
            opens_connection: true,
        };
        self.replayer.handle(self.now, Input::Request { lane: Lane(self.lanes), request: &request });
        self.outputs()
    }

    pub(super) fn post(&mut self, headers: &[&str], body: &str) -> Vec<String> {
        let usual = ["accept: application/json, text/event-stream", "content-type: application/json"];
        self.ask("POST", "/mcp", &[&usual, headers].concat(), body)
    }

    pub(super) fn get(&mut self, target: &str, headers: &[&str]) -> Vec<String> {
        self.ask("GET", target, &[&["accept: text/event-stream"], headers].concat(), "")
    }

    /// Begins a session; its id as a header.
    pub(super) fn begin(&mut self) -> String {
        let heard = self.post(&[], &initialize());
        let id = heard[0].split("mcp-session-id=").nth(1).unwrap_or_else(|| panic!("{heard:?}"));
        format!("mcp-session-id: {}", id.split(' ').next().unwrap_or_default())
    }

    pub(super) fn leave(&mut self, lane: u32) -> Vec<String> {
        self.replayer.handle(self.now, Input::Left { lane: Lane(lane) });
        self.outputs()
    }

    /// A line of a client on a pipe.
    pub(super) fn line(&mut self, pipe: u32, line: &str) -> Vec<String> {
        self.replayer.handle(self.now, Input::Message { lane: Lane(pipe), bytes: line.as_bytes() });
        self.outputs()
    }

    pub(super) fn close(&mut self, pipe: u32) -> Vec<String> {
        self.replayer.handle(self.now, Input::Closed { lane: Lane(pipe) });
        self.outputs()
    }

    pub(super) fn is_done(&self, pipe: u32) -> bool {
        self.replayer.is_done(Lane(pipe))
    }

    pub(super) fn wait(&mut self, ms: u64) -> Vec<String> {
        self.now += ms * 1000;
        self.outputs()
    }

    pub(super) fn outputs(&mut self) -> Vec<String> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
        let mut seen = Vec::new();
        while let Some(output) = self.replayer.poll(self.now) {
            seen.push(match output {
                Output::Raw { .. } | Output::HalfClose { .. } => panic!("no fault acts here: {output:?}"),
                Output::Upstream { .. } | Output::EndUpstream { .. } => panic!("there is no real server"),
                Output::Head { lane, head } => {
                    let headers = head.headers.iter().filter(|(name, _)| &**name != "content-type");
                    let headers: String =
                        headers.map(|(name, value)| format!(" {name}={}", text(value))).collect();
                    let stream = if head.stream { " stream" } else { "" };
                    format!("{} {}{stream}{headers}", lane.0, head.status)
                }
                Output::Event { lane, event } => {
                    let id = event.id.map(|id| format!(" id={}", text(&id))).unwrap_or_default();
                    format!("{} event{id} {}", lane.0, text(&event.data))
                }
                Output::Body { lane, bytes } => format!("{} body {}", lane.0, text(&bytes)),
                Output::EndLane { lane, partial, end } => {
                    let end = end.map(|end| format!(" {}", end.word())).unwrap_or_default();
                    let partial =
                        if partial.is_empty() { String::new() } else { format!(" {}", text(&partial)) };
                    format!("{} end{end}{partial}", lane.0)
                }
                Output::Send { lane, bytes, .. } => format!("{} line {}", lane.0, text(&bytes)),
                Output::End { lane, end } => {
                    let last = end.partial.map(|last| format!(" {}", text(&last))).unwrap_or_default();
                    format!("{} END exit={:?}{last}", lane.0, end.exit)
                }
            });
        }
        seen
    }

    pub(super) fn report(&self) -> Report {
        self.replayer.finish()
    }

    #[track_caller]
    pub(super) fn good(&self) {
        assert_eq!(self.report().verdict, Verdict::Good, "{:#?}", self.report());
    }
}

/// With the recorded waits.
pub(super) fn recorded() -> Options {
    Options { timing: Timing::Recorded { speed: 1.0 }, ..Options::default() }
}

pub(super) const HTTP: &str = r#"{"session": 1, "recording": 1, "transport": "http", "path": "/mcp", "protocol": "2025-06-18", "client": "c"}"#;
pub(super) const SSE: &str =
    r#"{"session": 1, "recording": 1, "transport": "sse", "path": "/sse", "protocol": "2024-11-05"}"#;
pub(super) const STDIO: &str =
    r#"{"session": 1, "recording": 1, "transport": "stdio", "protocol": "2025-06-18"}"#;
pub(super) const MODERN: &str =
    r#"{"session": 1, "recording": 1, "transport": "http", "path": "/mcp", "protocol": "2026-07-28"}"#;

/// The head of a stream that was not recorded as one.
pub(super) const OPENED: &str = "N 200 stream cache-control=no-cache";

pub(super) fn initialize() -> String {
    ask(
        0,
        "initialize",
        r#"{"protocolVersion":"2025-06-18","capabilities":{"elicitation":{}},"clientInfo":{"name":"c"}}"#,
    )
}

pub(super) fn ask(id: u32, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

pub(super) fn call(id: u32, tool: &str) -> String {
    ask(id, "tools/call", &format!(r#"{{"name":"{tool}"}}"#))
}

pub(super) fn result(id: u32, text: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{text}}}"#)
}

pub(super) fn note(method: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#)
}

/// An `initialize` that begins session `n`; `http` are further members.
pub(super) fn begun(n: u32, http: &str) -> String {
    format!(
        r#"{{"key": "initialize @{n}", "session": {n},
          "client": {{"request": {{"method": "initialize", "params": {{"protocolVersion": "2025-06-18", "capabilities": {{"elicitation": {{}}}}, "clientInfo": {{"name": "c"}}}}}}}},
          {http} "server": [{{"result": {{"protocolVersion": "2025-06-18", "capabilities": {{"tools": {{}}}}}}}}]}}"#
    )
}

pub(super) fn with_id(n: u32) -> String {
    begun(n, &format!(r#""http": {{"headers": {{"mcp-session-id": "<session-{n}>"}}}},"#))
}

/// A call of a tool; `rest` are the members behind the client's.
pub(super) fn tool(key: &str, name: &str, rest: &str) -> String {
    format!(
        r#", {{"key": "{key}", "client": {{"request": {{"method": "tools/call", "params": {{"name": "{name}"}}}}}}, {rest}}}"#
    )
}
