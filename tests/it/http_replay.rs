//! `replay --listen` at the socket: heads, bodies and ends as they were recorded.

mod left;
mod parts;

use std::{fs, io::Read, net::TcpStream, path::PathBuf};

use tempfile::TempDir;

use crate::support::{
    front::Front,
    http::{Peer, chunk},
    program::TAPEDECK,
};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}"#;

/// A cassette with one session over HTTP that begins with `initialize`, and these exchanges.
fn cassette(exchanges: &str) -> String {
    format!(
        r#"{{"cassette": 1,
          "sessions": [{{"session": 1, "transport": "http", "path": "/mcp", "protocol": "2025-11-25", "client": "a"}}],
          "exchanges": [
            {{"key": "initialize @1",
              "client": {{"request": {{"method": "initialize", "params": {{"protocolVersion": "2025-11-25", "capabilities": {{}}}}}}}},
              "http": {{"headers": {{"mcp-session-id": "<session-1>"}}}},
              "server": [{{"result": {{"protocolVersion": "2025-11-25", "capabilities": {{"tools": {{}}}}}}}}]}},
            {exchanges}
          ]}}"#
    )
}

struct Deck {
    folder: TempDir,
    front: Option<Front>,
}

impl Deck {
    fn new(text: &str, options: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path: PathBuf = folder.path().join("c.json");
        fs::write(&path, text).expect("it is written");
        let mut arguments = vec!["replay", path.to_str().expect("text")];
        arguments.extend(options);
        let front = Front::start(&arguments, folder.path());
        Self { folder, front: Some(front) }
    }

    fn host(&self) -> String {
        self.front.as_ref().expect("it runs").origin["http://".len()..].to_owned()
    }

    fn connect(&self) -> Peer {
        Peer::new(TcpStream::connect(self.host()).expect("it listens"))
    }

    /// A request on a connection of its own; head and rest of the response, and whether it ended by a reset.
    fn asks(&self, line: &str, headers: &str, body: &str) -> (String, String, bool) {
        let mut peer = self.connect();
        let length = body.len();
        peer.say(format!(
            "{line} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nAccept: application/json, text/event-stream\r\n\
             Content-Length: {length}\r\n{headers}\r\n{body}",
            self.host()
        ));
        let head = peer.head();
        let (rest, reset) = peer.rest();
        (head, rest, reset)
    }

    fn call(&self, session: &str, name: &str) -> (String, String, bool) {
        self.asks("POST /mcp", &format!("Mcp-Session-Id: {session}\r\n"), &call(name))
    }

    /// Begins a session; its id.
    fn initialize(&self) -> String {
        let (head, body, _) = self.asks("POST /mcp", "", INITIALIZE);
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && body.contains("\"id\":0"), "{head}{body}");
        let id = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).expect("a session id");
        assert_eq!(head.matches("mcp-session-id").count(), 1, "{head}");
        id.to_owned()
    }

    fn ends_well(mut self) {
        self.front.take().expect("it runs").end();
        drop(self.folder);
    }
}

/// A connection that broke before the server said anything breaks again, and that is no miss.
#[test]
fn what_broke_before_its_response_began_breaks_there() {
    let broke = |name: &str, end: &str| {
        format!(
            r#"{{"key": "{name}", "client": {{"request": {{"method": "tools/call", "params": {{"name": "{name}"}}}}}}, "http": {{"end": "{end}"}}, "server": [], "unanswered": "lost"}}"#
        )
    };
    let text = cassette(&[broke("reset", "reset"), broke("cut", "cut")].join(","));
    let deck = Deck::new(&text, &["--strict"]);
    let session = deck.initialize();
    for (name, is_reset) in [("reset", true), ("cut", false)] {
        let mut peer = deck.connect();
        let body = call(name);
        peer.say(format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nAccept: application/json, text/event-stream\r\nMcp-Session-Id: {session}\r\nContent-Length: {}\r\n\r\n{body}",
            deck.host(),
            body.len()
        ));
        assert_eq!(peer.rest(), (String::new(), is_reset), "{name}");
    }
    deck.ends_well();
}

/// Nothing stands in for another protocol, which is said; what a server wants instead of HTTP/1.1 is.
#[test]
fn a_change_of_protocols_is_refused_with_a_sentence() {
    let text = cassette(
        r#"{"key": "ws", "client": {"http": "GET /ws"}, "http": {"status": 101}, "unanswered": "open"},
           {"key": "other", "client": {"http": "GET /other"}, "http": {"status": 426, "headers": {"upgrade": "websocket"}}},
           {"key": "odd", "client": {"http": "GET /odd"}, "http": {"status": 599}}"#,
    );
    let deck = Deck::new(&text, &[]);
    let session = format!("Mcp-Session-Id: {}\r\n", deck.initialize());
    let upgrade = format!("{session}Upgrade: websocket\r\n");
    let (head, body, _) = deck.asks("GET /ws", &upgrade, "");
    assert!(head.starts_with("HTTP/1.1 501 Not Implemented\r\n"), "{head}");
    assert!(
        body.starts_with("tapedeck: behind `GET /ws` another protocol was spoken (`ws`, status 101)"),
        "{body}"
    );
    let (head, ..) = deck.asks("GET /other", &upgrade, "");
    assert!(head.starts_with("HTTP/1.1 426 Upgrade Required\r\n"), "{head}");
    assert!(
        head.contains("\r\nupgrade: websocket\r\n") && head.contains("\r\nconnection: upgrade"),
        "{head}"
    );
    let (head, ..) = deck.asks("GET /odd", &session, "");
    assert!(head.starts_with("HTTP/1.1 599 \r\n"), "{head}");
    let said = deck.front.expect("it runs").end_with(1);
    assert!(said.contains("another protocol"), "{said}");
}

fn call(name: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"{name}"}}}}"#)
}

fn recorded_call(name: &str, rest: &str) -> String {
    format!(
        r#"{{"key": "{name}", "client": {{"request": {{"method": "tools/call", "params": {{"name": "{name}"}}}}}}, {rest}}}"#
    )
}

#[test]
fn streams_end_as_they_ended() {
    let item = r#""server": [{"notification": {"method": "notifications/message", "params": {"data": 1}}}]"#;
    let ended = |name: &str, http: &str| {
        recorded_call(name, &format!(r#""http": {{"stream": true{http}}}, {item}, "unanswered": "ended""#))
    };
    let exchanges = [
        ended("clean", ""),
        ended("cut", r#", "end": "cut", "partial": "id: 8\ndata: {\"js""#),
        ended("reset", r#", "end": "reset""#),
        recorded_call("empty", r#""http": {"stream": true}, "unanswered": "ended""#),
    ];
    let deck = Deck::new(&cassette(&exchanges.join(",")), &[]);
    let session = deck.initialize();
    let event = chunk(
        "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"data\":1}}\n\n",
    );
    let is_stream = |head: &str| head.contains("content-type: text/event-stream\r\n");
    let (head, body, reset) = deck.call(&session, "clean");
    assert!(is_stream(&head) && !reset);
    assert_eq!(body, format!("{event}0\r\n\r\n"));
    let (_, body, reset) = deck.call(&session, "cut");
    assert_eq!((body, reset), (format!("{event}{}", chunk("id: 8\ndata: {\"js")), false));
    let (head, body, _) = deck.call(&session, "empty");
    assert!(is_stream(&head));
    assert_eq!(body, "0\r\n\r\n");
    // What was read before a reset is told by the reader's own buffer, so only the end is looked at.
    let (head, _, reset) = deck.call(&session, "reset");
    assert!(is_stream(&head) && reset);
    deck.ends_well();
}

#[test]
fn heads_are_as_recorded() {
    let notification = r#"{"key": "n", "client": {"notification": {"method": "notifications/x"}},
        "http": {"status": 400, "headers": {"content-type": "text/plain"}}, "server": [{"body": "no"}]}"#;
    let exchanges = [
        recorded_call(
            "odd",
            r#""http": {"status": 418, "headers": {"content-type": [], "set-cookie": ["a=1", "b=2"], "x-none": "",
               "x-byte": "\u00e9"}}, "server": [{"error": {"code": 1, "message": "m"}}]"#,
        ),
        notification.to_owned(),
    ];
    let deck = Deck::new(&cassette(&exchanges.join(",")), &[]);
    let session = deck.initialize();
    let (head, body, _) = deck.call(&session, "odd");
    assert!(head.starts_with("HTTP/1.1 418 "), "{head}");
    assert!(
        head.contains("set-cookie: a=1\r\nset-cookie: b=2\r\n") && head.contains("x-none: \r\n"),
        "{head}"
    );
    assert!(head.contains("x-byte: \u{fffd}\r\n") && !head.contains("content-type"), "{head}");
    assert_eq!(body, r#"{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"m"}}"#);
    let session = format!("Mcp-Session-Id: {session}\r\n");
    let (head, body, _) = deck.asks("POST /mcp", &session, r#"{"jsonrpc":"2.0","method":"notifications/x"}"#);
    assert!(head.starts_with("HTTP/1.1 400 ") && head.contains("content-type: text/plain"), "{head}");
    assert_eq!(body, "no");
    // What nobody recorded is taken in.
    let (head, body, _) = deck.asks("POST /mcp", &session, r#"{"jsonrpc":"2.0","method":"notifications/y"}"#);
    assert!(head.starts_with("HTTP/1.1 202 ") && head.contains("content-length: 0"), "{head}");
    assert_eq!(body, "");
    deck.ends_well();
}

/// Reads a response whose body has a length, or is chunked; its head without what the connection is told, and its body.
fn response(peer: &mut Peer) -> (String, String) {
    let head = peer.head();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = Vec::new();
    let is_whole = |body: &[u8]| match length {
        Some(length) => body.len() == length.parse::<usize>().expect("a number"),
        None => body.ends_with(b"0\r\n\r\n"),
    };
    while !is_whole(&body) {
        let mut byte = [0];
        peer.0.read_exact(&mut byte).expect("the response goes on");
        body.push(byte[0]);
    }
    (head.replace("connection: close\r\n", ""), String::from_utf8(body).expect("text"))
}

#[test]
fn requests_are_answered_alike_however_they_are_sent() {
    let item = r#"{"notification": {"method": "notifications/message", "params": {"data": 1}}}"#;
    let exchanges = [
        recorded_call("plain", r#""server": [{"result": {"content": []}}]"#),
        recorded_call(
            "events",
            &format!(r#""http": {{"stream": true}}, "server": [{item}, {{"result": 1}}]"#),
        ),
        recorded_call(
            "odd",
            r#""http": {"status": 418, "headers": {"set-cookie": ["a=1", "b=2"], "x-byte": "\u00e9"}},
               "server": [{"error": {"code": 1, "message": "m"}}]"#,
        ),
        r#"{"key": "n", "client": {"notification": {"method": "notifications/x"}}}"#.to_owned(),
    ];
    let mut deck = Deck::new(&cassette(&exchanges.join(",")), &[]);
    let session = deck.initialize();
    let bodies = ["plain", "events", "odd", "unknown"]
        .map(call)
        .into_iter()
        .chain([r#"{"jsonrpc":"2.0","method":"notifications/x"}"#.to_owned(), "no message".to_owned()]);
    let post = |headers: &str, body: &str| {
        format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nAccept: application/json, text/event-stream\r\n\
             Mcp-Session-Id: {session}\r\n{headers}\r\n{body}",
            deck.host()
        )
    };
    let mut kept = deck.connect();
    for body in bodies {
        // hyper alone deals with what ends its connection.
        let closing = post(&format!("Connection: close\r\nContent-Length: {}\r\n", body.len()), &body);
        let mut peer = deck.connect();
        peer.say(&closing);
        let expected = response(&mut peer);
        let whole = post(&format!("Content-Length: {}\r\n", body.len()), &body);
        let other = format!("PUT /mcp HTTP/1.1\r\nHost: {}\r\n\r\n", deck.host());
        // In one piece, several at once with one that hyper gets in between, and in two.
        kept.say(&whole);
        assert_eq!(response(&mut kept), expected);
        kept.say([&*whole, &whole, &other, &whole].concat());
        for is_other in [false, false, true, false] {
            match is_other {
                true => assert!(response(&mut kept).0.starts_with("HTTP/1.1 405 ")),
                false => assert_eq!(response(&mut kept), expected),
            }
        }
        for cut in [30, whole.len() - 5] {
            kept.say(&whole[..cut]);
            // Somebody else is answered meanwhile.
            let mut peer = deck.connect();
            peer.say(&whole);
            assert_eq!(response(&mut peer), expected);
            kept.say(&whole[cut..]);
            assert_eq!(response(&mut kept), expected);
        }
        let mut chunked = deck.connect();
        chunked.say(post("Transfer-Encoding: chunked\r\n", &format!("{}0\r\n\r\n", chunk(&body))));
        assert_eq!(response(&mut chunked), expected);
        chunked.say(&whole);
        assert_eq!(response(&mut chunked), expected);
    }
    // What stands behind the last request is no whole one.
    kept.say("POST /mcp HTTP/1.1\r\nHost");
    kept.0.shutdown(std::net::Shutdown::Write).expect("it is open");
    assert_eq!(kept.rest(), (String::new(), false));
    // It had misses.
    deck.front.take().expect("it runs").stop();
}

#[test]
fn a_lost_session_stays_lost_and_sessions_do_not_mix() {
    let second = r#"{"key": "initialize @2", "session": 2,
        "client": {"request": {"method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}}}},
        "http": {"headers": {"mcp-session-id": "<session-2>"}},
        "server": [{"result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}}]}"#;
    let lost = recorded_call(
        "lost",
        r#""http": {"status": 404}, "server": [{"error": {"code": -32001, "message": "Session not found"}}]"#,
    );
    let works = recorded_call("lost", r#""session": 2, "server": [{"result": {"in": 2}}]"#)
        .replacen("lost", "works", 1);
    let delete =
        r#"{"key": "delete", "session": 2, "client": {"http": "DELETE /mcp"}, "http": {"status": 204}}"#;
    let exchanges = [&*lost, second, &*works, delete].join(",");
    let session = r#", {"session": 2, "transport": "http", "path": "/mcp", "client": "a"}]"#;
    let text =
        cassette(&exchanges).replacen(r#""client": "a"}]"#, &format!("\"client\": \"a\"}}{session}"), 1);
    let deck = Deck::new(&text, &[]);
    let (one, two) = (deck.initialize(), deck.initialize());
    assert_ne!(one, two);
    assert!(deck.call(&two, "lost").1.contains("\"in\":2"));
    assert!(deck.call(&one, "lost").0.starts_with("HTTP/1.1 404 "));
    assert!(deck.call(&one, "lost").0.starts_with("HTTP/1.1 404 "), "it stays dead");
    let (head, ..) = deck.asks("DELETE /mcp", &format!("Mcp-Session-Id: {two}\r\n"), "");
    assert!(head.starts_with("HTTP/1.1 204 ") && !head.contains("content-length"), "{head}");
    let (head, body, _) = deck.call(&two, "lost");
    assert!(head.starts_with("HTTP/1.1 404 ") && body.contains("-32001"), "{head}{body}");
    deck.ends_well();
}

/// The report tells what the client did that the protocol does not allow, and a client that does nothing of that is
/// told of nothing.
#[test]
fn a_client_that_drops_its_headers_is_told_of_in_the_report() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("report.json");
    let report = path.to_str().expect("text");
    let told = |deck: Deck| {
        deck.ends_well();
        let report: serde_json::Value =
            serde_json::from_slice(&fs::read(&path).expect("a report")).expect("JSON");
        let told = report["protocol"].as_array().cloned().unwrap_or_default();
        told.iter()
            .map(|told| format!("{} {} {}", told["rule"], told["method"], told["count"]))
            .collect::<Vec<_>>()
    };
    let text = cassette(&recorded_call("a", r#""server": [{"result": {}}]"#));
    let deck = Deck::new(&text, &["--report", report]);
    let session = deck.initialize();
    let named = format!("Mcp-Session-Id: {session}\r\n");
    let full = format!("{named}MCP-Protocol-Version: 2025-11-25\r\n");
    deck.asks("POST /mcp", &full, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    assert!(deck.asks("POST /mcp", &full, &call("a")).1.contains("result"));
    assert_eq!(told(deck), [""; 0]);
    let deck = Deck::new(&text, &["--report", report]);
    let session = deck.initialize();
    let named = format!("Mcp-Session-Id: {session}\r\n");
    deck.asks("POST /mcp", &named, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    deck.asks("POST /mcp", &named, &call("a"));
    deck.asks("POST /mcp", "", &call("a"));
    deck.asks("POST /mcp", "", &call("a"));
    assert_eq!(
        told(deck),
        [
            r#""version-header" "notifications/initialized" 1"#,
            r#""version-header" "tools/call" 1"#,
            r#""session-header" "tools/call" 2"#,
        ]
    );
}

#[test]
fn the_rest_of_a_stream_is_fetched_from_an_event_on() {
    let progress = |n: u32, rest: &str| {
        format!(
            r#"{{{rest}"sse": {{"id": "e{n}"}}, "notification": {{"method": "notifications/x", "params": {{"n": {n}}}}}}}"#
        )
    };
    let server = [
        progress(1, ""),
        progress(2, ""),
        progress(3, r#""on": "resume", "#),
        r#"{"on": "resume", "sse": {"id": "e4"}, "result": {}}"#.to_owned(),
    ];
    let exchange =
        recorded_call("long", &format!(r#""http": {{"stream": true}}, "server": [{}]"#, server.join(",")));
    let deck = Deck::new(&cassette(&exchange), &[]);
    let session = deck.initialize();
    let (_, body, _) = deck.call(&session, "long");
    assert!(body.contains("id: e1") && body.contains("id: e2") && !body.contains("id: e3"), "{body}");
    assert!(body.ends_with("0\r\n\r\n"), "it ends without the answer: {body}");
    let headers = format!("Mcp-Session-Id: {session}\r\nLast-Event-ID: e1\r\n");
    let (_, body, _) = deck.asks("GET /mcp", &headers, "");
    assert!(!body.contains("id: e1"), "{body}");
    let at = |id: &str| body.find(&format!("id: {id}\n")).unwrap_or_else(|| panic!("no {id} in {body}"));
    assert!(at("e2") < at("e3") && at("e3") < at("e4"), "{body}");
    assert!(body.contains("\"id\":7,\"result\":{}") && body.ends_with("0\r\n\r\n"), "{body}");
    deck.ends_well();
}

/// The official TypeScript client ends its stream as soon as `DELETE` is answered, and calls that an error.
#[test]
fn a_stream_that_ended_before_delete_was_answered_has_its_end_first() {
    let get = r#"{"key": "g", "client": {"http": "GET /mcp"}, "http": {"status": 200, "stream": true, "until_delete": true}},
        {"key": "d", "client": {"http": "DELETE /mcp"}, "http": {"status": 200}}"#;
    let deck = Deck::new(&cassette(get), &["--strict"]);
    let session = format!("Mcp-Session-Id: {}\r\n", deck.initialize());
    let ask = |method: &str| {
        let mut peer = deck.connect();
        peer.say(format!("{method} /mcp HTTP/1.1\r\nHost: {}\r\n{session}\r\n", deck.host()));
        peer
    };
    let mut stream = ask("GET");
    assert!(stream.head().starts_with("HTTP/1.1 200 OK\r\n"));
    let mut delete = ask("DELETE");
    assert!(delete.head().starts_with("HTTP/1.1 200 OK\r\n"));
    stream.0.set_nonblocking(true).expect("a socket");
    let mut end = [0; 5];
    stream.0.read_exact(&mut end).expect("it is there");
    assert_eq!(&end, b"0\r\n\r\n");
    deck.ends_well();
}

#[test]
fn takes_are_apart_and_strangers_are_refused() {
    let answers = [r#""server": [{"result": {"n": 1}}]"#, r#""server": [{"result": {"n": 2}}]"#];
    let exchanges = answers.map(|answer| recorded_call("count", answer));
    let exchanges = format!("{},{}", exchanges[0], exchanges[1].replacen("count", "count @2", 1));
    let deck = Deck::new(&cassette(&exchanges), &[]);
    for take in ["", "/take/a", "/take/b%20c"] {
        let (head, ..) = deck.asks(&format!("POST {take}/mcp"), "", INITIALIZE);
        let id = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).expect("a session id");
        let session = format!("Mcp-Session-Id: {id}\r\n");
        for n in 1..=2 {
            let (_, body, _) = deck.asks(&format!("POST {take}/mcp"), &session, &call("count"));
            assert!(body.contains(&format!("\"n\":{n}")), "{take}: {body}");
        }
    }
    let (head, body, _) = deck.asks("POST /mcp", "Origin: https://evil.example\r\n", INITIALIZE);
    assert!(head.starts_with("HTTP/1.1 403 ") && body.contains("--allow-origin"), "{head}{body}");
    let (head, ..) = deck.asks("GET /mcp", "", "");
    assert!(head.starts_with("HTTP/1.1 405 ") && head.contains("allow: POST"), "none was recorded: {head}");
    deck.ends_well();
}

#[test]
fn old_clients_are_served_over_two_endpoints() {
    let text = cassette(&recorded_call("a", r#""server": [{"result": {"it": 1}}]"#));
    let deck = Deck::new(&text.replace("\"http\", \"path\": \"/mcp\"", "\"stdio\""), &[]);
    let mut stream = deck.connect();
    stream.say(format!("GET /sse HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\n\r\n", deck.host()));
    assert!(stream.head().contains("text/event-stream"));
    // The length of a chunk, whatever it is, ends in a line end.
    let mut text = String::new();
    while !text.ends_with("\n\n") {
        let mut byte = [0];
        std::io::Read::read_exact(&mut stream.0, &mut byte).expect("an event");
        text.push(char::from(byte[0]));
    }
    let endpoint = text.split("data: ").nth(1).expect("an endpoint").trim().to_owned();
    assert!(text.contains("event: endpoint\n") && endpoint.starts_with("/messages?sessionId="), "{text}");
    for (body, answer) in
        [(INITIALIZE, "\"id\":0,\"result\""), (&*call("a"), "\"id\":7,\"result\":{\"it\":1}")]
    {
        let (head, said, _) = deck.asks(&format!("POST {endpoint}"), "", body);
        assert!(head.starts_with("HTTP/1.1 202 ") && said == "Accepted", "{head}{said}");
        let mut event = String::new();
        while !event.contains(answer) {
            let mut byte = [0];
            std::io::Read::read_exact(&mut stream.0, &mut byte).expect("an answer");
            event.push(char::from(byte[0]));
        }
    }
    drop(stream);
    deck.ends_well();
}

#[test]
fn a_front_that_is_told_to_end_ends_its_streams_in_good_order() {
    let exchanges = [
        r#"{"key": "get", "client": {"http": "GET /mcp"}, "http": {"status": 200, "stream": true}, "unanswered": "open"}"#.to_owned(),
        recorded_call("open", r#""http": {"stream": true}, "unanswered": "open""#),
        recorded_call("silent", r#""unanswered": "open""#),
    ];
    let mut deck = Deck::new(&cassette(&exchanges.join(",")), &[]);
    let session = deck.initialize();
    let host = deck.host();
    let open = |line: &str, body: &str| {
        let mut peer = deck.connect();
        let length = body.len();
        peer.say(format!(
            "{line} HTTP/1.1\r\nHost: {host}\r\nAccept: application/json, text/event-stream\r\n\
             Content-Length: {length}\r\nMcp-Session-Id: {session}\r\n\r\n{body}"
        ));
        peer
    };
    let mut streams = [open("GET /mcp", ""), open("POST /mcp", &call("open"))];
    let mut silent = open("POST /mcp", &call("silent"));
    for stream in &mut streams {
        assert!(stream.head().contains("text/event-stream"));
    }
    // It has taken in what it is silent about.
    assert!(deck.call(&session, "unknown").0.starts_with("HTTP/1.1 200 "));
    let front = deck.front.take().expect("it runs");
    let ended = std::thread::spawn(move || front.end_with(1));
    for mut stream in streams {
        assert_eq!(stream.rest(), ("0\r\n\r\n".to_owned(), false));
    }
    assert_eq!(silent.rest(), (String::new(), false));
    let said = ended.join().expect("it ends");
    assert!(said.contains("no recorded answer for 1 request, first tools/call unknown"), "{said}");
}

/// The part of a response that has gone must not look whole.
#[test]
fn a_front_that_is_told_to_end_in_the_middle_of_an_answer_cuts_it() {
    let exchanges = recorded_call("slow", r#""server": [{"result": {"a": 1}}]"#);
    let mut deck =
        Deck::new(&cassette(&exchanges), &["--fault", "tools/call slow: dribble chunks=4 ms=600000"]);
    let session = deck.initialize();
    let (host, body) = (deck.host(), call("slow"));
    let mut peer = deck.connect();
    peer.say(format!(
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\nAccept: application/json, text/event-stream\r\n\
         Content-Length: {}\r\nMcp-Session-Id: {session}\r\n\r\n{body}",
        body.len()
    ));
    assert!(peer.head().contains("transfer-encoding: chunked"));
    let front = deck.front.take().expect("it runs");
    let ended = std::thread::spawn(move || front.end());
    assert_eq!(peer.rest().0, "");
    ended.join().expect("it ends");
}

#[test]
fn a_method_of_all_signs_is_found_again() {
    let signs = "X!#$%&'*+-.^_`|~9";
    let line = |key: &str, method: &str, status: u16| {
        format!(
            r#"{{"key": "{key}", "client": {{"http": "{method} /mcp"}}, "http": {{"status": {status}}}}}"#
        )
    };
    let exchanges = [line("short", "X", 205), line("signs", signs, 206), line("lower", "x", 207)].join(", ");
    let deck = Deck::new(&cassette(&exchanges), &[]);
    let session = format!("Mcp-Session-Id: {}\r\n", deck.initialize());
    for (method, status) in [(signs, 206), ("X", 205), ("x", 207)] {
        let (head, ..) = deck.asks(&format!("{method} /mcp"), &session, "");
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{method}: {head}");
    }
    deck.ends_well();
}

#[test]
fn pages_are_told_what_they_may_send() {
    let deck = Deck::new(&cassette(&recorded_call("a", r#""server": [{"result": {}}]"#)), &["--cors"]);
    let asked = "Origin: https://page.example\r\nAccess-Control-Request-Method: POST\r\n\
                 Access-Control-Request-Headers: content-type, mcp-param-Region, x-other\r\n";
    let (head, body, _) = deck.asks("OPTIONS /mcp", asked, "");
    assert!(head.starts_with("HTTP/1.1 204 ") && body.is_empty(), "{head}{body}");
    let names = head.lines().find(|line| line.starts_with("access-control-allow-headers: ")).expect("names");
    assert!(names.contains("mcp-session-id") && names.ends_with(", mcp-param-Region"), "{names}");
    let (head, ..) = deck.asks("POST /mcp", "Origin: http://localhost:6274\r\n", INITIALIZE);
    assert!(head.contains("access-control-allow-origin: *\r\n"), "{head}");
    assert!(head.contains("access-control-expose-headers: mcp-session-id, "), "{head}");
    let (head, ..) = deck.asks("OPTIONS /mcp", "", "");
    assert!(head.starts_with("HTTP/1.1 204 "), "{head}");
    deck.ends_well();
}

#[test]
fn what_is_too_long_is_refused_and_missed() {
    let deck =
        Deck::new(&cassette(&recorded_call("a", r#""server": [{"result": {}}]"#)), &["--max-message", "1kB"]);
    let (head, body, _) = deck.asks("POST /mcp", "", &"x".repeat(2_000));
    assert!(head.starts_with("HTTP/1.1 413 ") && body.contains("1000 bytes"), "{head}{body}");
    let said = deck.front.expect("it runs").end_with(1);
    assert!(said.contains("`POST /mcp` came with a body of more than 1000 bytes"), "{said}");
}

/// What is not read cannot be told from a request behind it: the connection ends, and a client that waits to be asked
/// for the rest, or sends it for ever, hears why.
#[test]
fn what_is_too_long_is_answered_as_soon_as_that_is_known_and_nothing_behind_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let report = folder.path().join("report.json");
    let options = ["--max-message", "1kB", "--report", report.to_str().expect("text")];
    let deck = Deck::new(&cassette(&recorded_call("a", r#""server": [{"result": {}}]"#)), &options);
    let head = format!("POST /mcp HTTP/1.1\r\nHost: {}\r\n", deck.host());
    let long = chunk(&"x".repeat(1_000));
    let behind = format!("{head}Content-Length: {}\r\n\r\n{INITIALIZE}", INITIALIZE.len());
    for request in [
        format!("{head}Content-Length: 2000\r\n\r\n"),
        format!("{head}Content-Length: 2000\r\n\r\nxxx"),
        format!("{head}Content-Length: 2000\r\nExpect: 100-continue\r\n\r\n"),
        format!("{head}Content-Length: 2000\r\n\r\n{}{behind}", "x".repeat(2_000)),
        format!("{head}Transfer-Encoding: chunked\r\n\r\n{long}1\r\nx"),
        format!("{head}Transfer-Encoding: chunked\r\n\r\n{long}1\r\nx\r\n0\r\n\r\n{behind}"),
    ] {
        let mut peer = deck.connect();
        peer.say(&request);
        let (heard, was_reset) = peer.rest();
        assert!(heard.starts_with("HTTP/1.1 413 ") && !was_reset, "{request}: {heard}");
        assert!(
            heard.contains("connection: close\r\n") && heard.matches("HTTP/1.1 ").count() == 1,
            "{heard}"
        );
    }
    let said = deck.front.expect("it runs").end_with(1);
    assert!(said.contains("`POST /mcp` came with a body of more than 1000 bytes"), "{said}");
    let report: serde_json::Value =
        serde_json::from_slice(&fs::read(&report).expect("it is written")).expect("JSON");
    assert_eq!(report["calls"], serde_json::json!({}), "{report}");
}

#[test]
fn chunks_that_are_none_are_refused_and_told_and_a_client_that_left_is_not() {
    let deck = Deck::new(&cassette(&recorded_call("a", r#""server": [{"result": {}}]"#)), &[]);
    let head = format!("POST /mcp HTTP/1.1\r\nHost: {}\r\nTransfer-Encoding: chunked\r\n\r\n", deck.host());
    for broken in ["zz\r\n", "2\r\nabcd\r\n", "2\r\nab\r\n-1\r\n"] {
        let mut peer = deck.connect();
        peer.say(format!("{head}{broken}"));
        let (heard, _) = peer.rest();
        assert!(heard.starts_with("HTTP/1.1 400 ") && heard.contains("chunks that are none"), "{heard}");
    }
    let mut left = deck.connect();
    left.say(format!("{head}2\r\na"));
    left.0.shutdown(std::net::Shutdown::Write).expect("it is open");
    drop(left.rest());
    deck.call(&deck.initialize(), "a");
    let said = deck.front.expect("it runs").end_with(0);
    assert!(said.contains("3 requests were refused") && said.contains("(3 times)"), "{said}");
}

/// Whoever is refused may be a stranger, who fails no run; but it may be the client that the run is for, too.
#[test]
fn what_is_refused_is_told_and_no_miss() {
    let folder = tempfile::tempdir().expect("a folder");
    let report = folder.path().join("report.json");
    let report_option = report.to_str().expect("text");
    let deck = Deck::new(
        &cassette(&recorded_call("a", r#""server": [{"result": {}}]"#)),
        &["--report", report_option],
    );
    let host = format!("Host: {}\r\n", deck.host());
    for (head, status) in [
        ("POST /mcp HTTP/1.1\r\nHost: evil.example\r\n", 403),
        (&*format!("POST /mcp HTTP/1.1\r\n{host}Origin: http://evil.example\r\n"), 403),
        ("POST /mcp HTTP/1.1\r\n", 400),
        (&*format!("POST /mcp HTTP/1.1\r\n{host}{host}"), 400),
        (&*format!("POST /mcp HTTP/1.1\r\n{host}no name: 1\r\n"), 400),
        (&*format!("GET /{} HTTP/1.1\r\n{host}", "a".repeat(70_000)), 414),
        (&*format!("POST /mcp HTTP/1.1\r\n{host}Origin: http://127.0.0.1:9000, http://evil\r\n"), 403),
        ("POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:evil\r\n", 400),
        (&*format!("CONNECT evil.example:443 HTTP/1.1\r\n{host}"), 405),
        (&*format!("POST mcp HTTP/1.1\r\n{host}"), 400),
        (&*format!("POST /mcp<x> HTTP/1.1\r\n{host}"), 400),
    ] {
        let mut peer = deck.connect();
        peer.say(format!("{head}Connection: close\r\nContent-Length: 0\r\n\r\n"));
        let answer = peer.head();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{head}: {answer}");
        drop(peer.rest());
    }
    deck.call(&deck.initialize(), "a");
    let said = deck.front.expect("it runs").end_with(0);
    assert!(
        said.contains("11 requests were refused") && said.contains("--allow-host evil.example"),
        "{said}"
    );
    let text = fs::read(&report).expect("it is written");
    assert_eq!(crate::schema::faults("report", &text), [""; 0]);
    let report: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
    let whys: Vec<_> = report["refused"].as_array().expect("a list").iter().map(|one| &one["why"]).collect();
    for (why, part) in whys.iter().zip([
        "--allow-host evil.example",
        "--allow-origin http://evil.example",
        "names no host",
        "names two hosts",
        "no request of HTTP/1.1",
        "target of this request is too long",
        "is a scheme, a host and a port",
        "host `127.0.0.1:evil` is none",
        "opens no tunnels",
        "target is none",
    ]) {
        assert!(why.as_str().expect("text").contains(part), "{part}: {whys:?}");
    }
    assert_eq!(
        (whys.len(), &report["verdict"], &report["misses"]),
        (10, &"good".into(), &serde_json::json!([]))
    );
}

#[test]
fn a_client_that_changes_to_http2_is_told_at_the_end() {
    let deck = Deck::new(&cassette(&recorded_call("a", r#""server": [{"result": {}}]"#)), &[]);
    let mut peer = deck.connect();
    let head = format!("POST /mcp HTTP/1.1\r\nHost: {}\r\n", deck.host());
    peer.say(format!("{head}Content-Length: {}\r\n\r\n{INITIALIZE}", INITIALIZE.len()));
    assert!(peer.head().starts_with("HTTP/1.1 200 "));
    peer.say("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    drop(peer.rest());
    let said = deck.front.expect("it runs").end_with(0);
    assert!(said.contains("1 request was refused") && said.contains("went on with HTTP/2"), "{said}");
}

#[test]
fn an_address_that_is_taken_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("it has one").to_string();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("c.json");
    fs::write(&path, cassette(&recorded_call("a", r#""server": []"#))).expect("it is written");
    let ended = std::process::Command::new(TAPEDECK)
        .args(["replay", path.to_str().expect("text"), "--listen", &address])
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(4), "{said}");
    assert!(said.contains(&address) && said.contains("port 0 pick a free one"), "{said}");
}

#[test]
fn the_ready_file_names_the_recorded_endpoint() {
    let text =
        cassette(&recorded_call("a", r#""server": [{"result": {}}]"#)).replace("/mcp", "/base/rpc?k=1");
    let deck = Deck::new(&text, &[]);
    let url = deck.front.as_ref().expect("it runs").url.clone();
    assert_eq!(url, format!("http://{}/base/rpc", deck.host()));
    // It is there as long as it is true.
    let ready = deck.folder.path().join("replay.ready");
    assert!(ready.exists());
    let Deck { folder: _folder, front } = deck;
    front.expect("it runs").end();
    assert!(!ready.exists());
    // Of several, that of the first session.
    let two = cassette(&recorded_call("a", r#""server": [{"result": {}}]"#));
    let begin = two.find("{\"key\": \"initialize @1\"").expect("an exchange");
    let second = two[begin..two.rfind(']').expect("an end")].replace("initialize @1", "initialize @2");
    let second = second
        .replace("{\"key\": \"a\"", "{\"key\": \"b\"")
        .replace("\"client\":", "\"session\": 2, \"client\":");
    let two = two.replace(
        "\"client\": \"a\"}]",
        "\"client\": \"a\"}, {\"session\": 2, \"transport\": \"http\", \"path\": \"/second\"}]",
    );
    let end = two.rfind(']').expect("an end");
    let deck = Deck::new(&format!("{},{second}{}", &two[..end], &two[end..]), &[]);
    assert_eq!(deck.front.as_ref().expect("it runs").url, format!("http://{}/mcp", deck.host()));
    deck.ends_well();
}

/// A client that asks for what nobody recorded is told so, and so is whoever reads the verdict.
#[test]
fn a_request_without_a_message_that_nobody_recorded_is_told_on_standard_error_and_in_the_report() {
    let recorded = r#"{"key": "http PUT /config @1", "client": {"http": "PUT /config", "body": "x"}, "http": {"status": 204}, "server": []}"#;
    for (asked, status, miss) in [
        ("GET /.well-known/oauth-protected-resource", "404", false),
        ("GET /mcp", "405", false),
        ("PUT /config", "204", false),
        ("GET /nowhere", "404", true),
        ("PUT /nowhere", "405", true),
        ("OPTIONS /mcp", "405", true),
        ("DELETE /mcp", "200", false),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let report = folder.path().join("r.json");
        let deck = Deck::new(&cassette(recorded), &["--report", report.to_str().expect("text")]);
        let session = format!("Mcp-Session-Id: {}\r\n", deck.initialize());
        let (head, body, _) = deck.asks(asked, &session, "x");
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{asked}: {head}");
        let mut sentence = format!("`{asked}` was never recorded in this cassette");
        if !asked.starts_with("OPTIONS") {
            sentence.push_str(" (nearest: `http PUT /config @1`)");
        }
        assert_eq!(body.contains(&sentence), miss, "{asked}: {body}");
        let Deck { folder: _folder, front } = deck;
        let said = front.expect("it runs").end_with(i32::from(miss));
        let warned =
            said.lines().filter(|line| line.contains("warning: ") && line.contains(&sentence)).count();
        assert_eq!(warned, usize::from(miss), "{asked}: {said}");
        let report: serde_json::Value =
            serde_json::from_slice(&fs::read(report).expect("a report")).expect("JSON");
        assert_eq!(report["verdict"], if miss { "bad" } else { "good" });
        assert_eq!(report["misses"].as_array().expect("misses").len(), usize::from(miss));
    }
}

#[test]
fn what_is_left_over_under_strict_is_named_on_standard_error() {
    let exchanges = r#"{"key": "n @1", "client": {"notification": {"method": "n"}}},
        {"key": "http DELETE /mcp @1", "client": {"http": "DELETE /mcp"}, "http": {"status": 204}, "server": []}"#;
    let deck = Deck::new(&cassette(exchanges), &["--strict"]);
    deck.initialize();
    let Deck { folder: _folder, front } = deck;
    let said = front.expect("it runs").end_with(1);
    assert!(said.contains("--strict, and 2 recorded exchanges were not asked for, first `n @1`"), "{said}");
}
