//! A client on stdio and a raw server on HTTP: what each of them sees, and what was recorded.

use std::{
    io::{BufRead as _, BufReader, PipeReader, PipeWriter, Read as _, Write as _},
    net::TcpListener,
    thread::JoinHandle,
};

use mcp_tapedeck::{
    proxy::bridge::{Bridge, BridgeEnded, BridgeOptions},
    traffic::STDIO_TO_HTTP,
    transport::{http::connect::ConnectOptions, stdio::Client},
};

use crate::support::http::{Lines, Peer};

const INITIALIZE: &str =
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const WELCOME: &str =
    r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}"#;
const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}"#;
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
const EVENTS: &str = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";

struct Scene {
    server: TcpListener,
    input: Option<PipeWriter>,
    output: BufReader<PipeReader>,
    lines: Lines,
    bridge: JoinHandle<BridgeEnded<Lines>>,
}

/// A request that the server has read.
struct Asked {
    peer: Peer,
    head: String,
    body: String,
}

impl Scene {
    fn new() -> Self {
        Self::with(ConnectOptions::default())
    }

    fn with(connect: ConnectOptions) -> Self {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", server.local_addr().unwrap());
        let (input, writer) = std::io::pipe().unwrap();
        let (reader, output) = std::io::pipe().unwrap();
        let lines = Lines::new(STDIO_TO_HTTP);
        let sink = lines.clone();
        let options = BridgeOptions {
            signals: false,
            max_message: 64 << 10,
            headers: vec![("authorization".parse().unwrap(), "Bearer hidden-token".parse().unwrap())],
            ..BridgeOptions::default()
        };
        let bridge = Bridge::to(&url, connect).unwrap();
        let client = Client { input: input.into(), output: output.into() };
        let bridge = std::thread::spawn(move || bridge.record(client, sink, options).unwrap());
        Self { server, input: Some(writer), output: BufReader::new(reader), lines, bridge }
    }

    /// A session that has begun, with an id.
    fn begun() -> Self {
        let mut scene = Self::new();
        scene.say(INITIALIZE);
        scene.asked().answers("Content-Type: application/json\r\nMcp-Session-Id: s1\r\n", WELCOME);
        assert_eq!(scene.hears(), WELCOME);
        scene
    }

    fn say(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    fn hears(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end_matches('\n').to_owned()
    }

    /// The next request, on a connection of its own.
    fn asked(&self) -> Asked {
        let mut peer = Peer::new(self.server.accept().unwrap().0);
        let head = peer.head();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
        let mut body = vec![0; length.parse().unwrap()];
        peer.0.read_exact(&mut body).unwrap();
        Asked { peer, head, body: String::from_utf8(body).unwrap() }
    }

    /// The client closes its side, and all ends. Gives what was recorded.
    fn end(self, deletes: bool) -> Vec<String> {
        self.ended(deletes).0.lock().unwrap().clone()
    }

    /// The same as a cassette.
    fn cassette(self, deletes: bool) -> String {
        self.ended(deletes).cassette()
    }

    fn ended(mut self, deletes: bool) -> Lines {
        drop(self.input.take());
        if deletes {
            let mut asked = self.asked();
            assert!(asked.head.starts_with("DELETE /mcp HTTP/1.1\r\n"), "{}", asked.head);
            assert!(asked.head.contains("\r\nmcp-session-id: s1\r\n"), "{}", asked.head);
            asked.peer.say("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
        }
        self.bridge.join().unwrap();
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "");
        self.server.set_nonblocking(true).unwrap();
        assert!(self.server.accept().is_err(), "nothing more is asked");
        self.lines
    }
}

impl Asked {
    fn answers(mut self, headers: &str, body: &str) {
        self.peer.say(format!(
            "HTTP/1.1 200 OK\r\n{headers}Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ));
    }

    fn answers_json(self, body: &str) {
        self.answers("Content-Type: application/json\r\n", body);
    }

    fn refuses(mut self, status: &str, headers: &str, body: &str) {
        self.peer.say(format!("HTTP/1.1 {status}\r\n{headers}Connection: close\r\n\r\n{body}"));
    }

    fn accepts(mut self) {
        self.peer.say("HTTP/1.1 202 Accepted\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    }

    #[track_caller]
    fn has(&self, lines: &[&str]) {
        for line in lines {
            assert!(self.head.contains(&format!("\r\n{line}\r\n")), "{line} in {}", self.head);
        }
    }

    #[track_caller]
    fn lacks(&self, words: &[&str]) {
        words.iter().for_each(|word| assert!(!self.head.contains(word), "{word} in {}", self.head));
    }
}

#[test]
fn a_legacy_session_from_its_beginning_to_its_end() {
    let mut scene = Scene::new();
    // All at once, as a script would: what follows waits for what it depends on.
    scene.say(&format!("{INITIALIZE}\n{INITIALIZED}\n{CALL}"));
    let asked = scene.asked();
    assert!(asked.head.starts_with("POST /mcp HTTP/1.1\r\n"), "{}", asked.head);
    asked.has(&[
        "content-type: application/json",
        "accept: application/json, text/event-stream",
        "authorization: Bearer hidden-token",
        &format!("host: {}", scene.server.local_addr().unwrap()),
    ]);
    asked.lacks(&["\r\nmcp-"]);
    assert_eq!(asked.body, INITIALIZE);
    let pretty = WELCOME.replace(",\"result\"", ",\r\n  \"result\"");
    asked.answers("Content-Type: application/json; charset=utf-8\r\nMcp-Session-Id: s1\r\n", &pretty);
    assert_eq!(scene.hears(), WELCOME.replace(",\"result\"", ",    \"result\""));

    let asked = scene.asked();
    assert_eq!(asked.body, INITIALIZED);
    asked.has(&["mcp-session-id: s1", "mcp-protocol-version: 2025-06-18"]);
    asked.lacks(&["mcp-method"]);
    asked.accepts();
    let mut stream = scene.asked();
    assert!(stream.head.starts_with("GET /mcp HTTP/1.1\r\n"), "{}", stream.head);
    stream.has(&["accept: text/event-stream", "mcp-session-id: s1", "authorization: Bearer hidden-token"]);
    stream.peer.say(EVENTS);
    let mut call = scene.asked();
    assert_eq!(call.body, CALL);
    call.has(&["mcp-session-id: s1", "mcp-protocol-version: 2025-06-18"]);
    let push = r#"{"jsonrpc":"2.0","method":"notifications/x"}"#;
    stream.peer.say(format!("event: message\ndata: {push}\n\n"));
    assert_eq!(scene.hears(), push);

    // The server asks in the middle of the call, and the answer is a message of its own.
    let question = r#"{"jsonrpc":"2.0","id":9,"method":"roots/list"}"#;
    let reply = r#"{"jsonrpc":"2.0","id":9,"result":{"roots":[]}}"#;
    call.peer.say(EVENTS);
    call.peer.say(format!(": hi\n\ndata: {question}\n\n"));
    assert_eq!(scene.hears(), question);
    scene.say(reply);
    let asked = scene.asked();
    assert_eq!(asked.body, reply);
    asked.accepts();
    call.peer.say(format!("event: other\ndata: no\n\ndata: {ANSWER}\n\n"));
    drop(call);
    assert_eq!(scene.hears(), ANSWER);
    let lines = scene.end(true);
    let expected = [
        format!("1 > message {INITIALIZE}"),
        format!("2 > message {INITIALIZED}"),
        format!("3 > message {CALL}"),
    ];
    assert_eq!(lines[..3], expected);
    assert!(
        lines.contains(&format!("4 > message {reply}")) && lines.contains(&format!("3 < message {ANSWER}"))
    );
    assert!(lines.contains(&format!("0 < message {push}")), "{lines:#?}");
    assert!(lines.contains(&"0 > closed".to_owned()) && lines.contains(&"0 < closed".to_owned()));
    assert!(lines.last().unwrap().contains("Exit"), "{lines:#?}");
    assert!(!lines.concat().contains("hidden-token"), "{lines:#?}");
}

#[test]
fn a_modern_message_names_itself_in_headers_and_a_cancel_closes_its_connection() {
    let mut scene = Scene::new();
    let modern = |id: u32, method: &str, params: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}}}}"#
        )
    };
    scene.say(&modern(1, "tools/list", ""));
    let asked = scene.asked();
    asked.has(&["mcp-protocol-version: 2026-07-28", "mcp-method: tools/list"]);
    asked.lacks(&["mcp-name", "mcp-session-id"]);
    let list = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"far","inputSchema":{"properties":{"where":{"type":"string","x-mcp-header":"Region"}}}}]}}"#;
    asked.answers("Content-Type: application/json\r\nMcp-Session-Id: stray\r\n", list);
    assert_eq!(scene.hears(), list);
    scene.say(&modern(2, "tools/call", r#""name":"far","arguments":{"where":"Köln"},"#));
    let mut call = scene.asked();
    call.has(&["mcp-method: tools/call", "mcp-name: far", "mcp-param-region: =?base64?S8O2bG4=?="]);
    call.lacks(&["mcp-session-id"]);
    call.peer.say(EVENTS);
    scene.say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#);
    assert_eq!(call.peer.rest().0, "");
    // No session, so nothing is ended.
    let lines = scene.end(false);
    assert!(lines.iter().any(|line| line.contains("cancelled")), "{lines:#?}");
}

#[test]
fn a_legacy_cancel_is_a_message() {
    let mut scene = Scene::begun();
    scene.say(CALL);
    let mut call = scene.asked();
    call.peer.say(EVENTS);
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    scene.say(cancel);
    let asked = scene.asked();
    assert_eq!(asked.body, cancel);
    asked.accepts();
    // The server may answer all the same, and nobody waits for that.
    let late = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32800,"message":"cancelled"}}"#;
    call.peer.say(format!("data: {late}\n\n"));
    assert_eq!(scene.hears(), late);
    drop(scene.end(true));
}

#[test]
fn a_stream_that_ends_too_early_goes_on_where_it_was() {
    let mut scene = Scene::begun();
    scene.say(CALL);
    let mut call = scene.asked();
    call.peer.say(EVENTS);
    call.peer.say("id: 7\nretry: 1\ndata: \n\n");
    drop(call);
    for _ in 0..3 {
        // Polled: each time something comes, and not yet the answer.
        let mut asked = scene.asked();
        assert!(asked.head.starts_with("GET /mcp"), "{}", asked.head);
        asked.has(&["last-event-id: 7", "mcp-session-id: s1"]);
        asked.peer.say(EVENTS.to_owned() + "id: 7\ndata:\n\n");
    }
    let mut asked = scene.asked();
    asked.peer.say(format!("{EVENTS}id: 8\ndata: {ANSWER}\n\n"));
    drop(asked);
    assert_eq!(scene.hears(), ANSWER);
    drop(scene.end(true));
}

#[test]
fn a_stream_that_cannot_go_on_is_an_error_and_nothing_is_sent_again() {
    let mut scene = Scene::begun();
    let start = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-33001,"message":"the server at http://"#;
    // Without an id, cut off, and with an id but nothing that follows.
    scene.say(CALL);
    scene.asked().peer.say(EVENTS.to_owned() + "data: {\"half");
    let heard = scene.hears();
    assert!(heard.starts_with(start) && heard.contains("ended its stream"), "{heard}");
    scene.say(CALL);
    drop(scene.asked());
    let heard = scene.hears();
    assert!(heard.contains("broke before the answer came"), "{heard}");
    scene.say(CALL);
    scene.asked().peer.say(EVENTS.to_owned() + "id: 1\nretry: 0\ndata:\n\n");
    for _ in 0..2 {
        scene.asked().refuses("405 Method Not Allowed", "", "");
    }
    let heard = scene.hears();
    assert!(heard.starts_with(start), "{heard}");
    drop(scene.end(true));
}

#[test]
fn an_error_of_http_is_an_error_for_the_client() {
    let mut scene = Scene::begun();
    scene.say(CALL);
    scene.asked().refuses("401 Unauthorized", "Content-Type: text/plain\r\n", "who are you?");
    let heard = scene.hears();
    assert!(heard.starts_with(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-33001,"#), "{heard}");
    assert!(heard.contains(r#""status":401,"contentType":"text/plain","body":"who are you?""#), "{heard}");
    // A lost session is told in the server's words, under the id that waits for them, and begun by nobody anew.
    scene.say(CALL);
    let lost =
        r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Session not found"}}"#;
    scene.asked().refuses("404 Not Found", "Content-Type: application/json\r\n", lost);
    assert_eq!(scene.hears(), lost.replace("\"server-error\"", "1"));
    scene.say(CALL);
    scene.asked().answers("Content-Type: text/html\r\n", "<p>hello");
    let heard = scene.hears();
    assert!(heard.contains("no JSON-RPC message (`text/html`)") && heard.contains("<p>hello"), "{heard}");
    scene.say(CALL);
    scene.asked().refuses("204 No Content", "", "");
    let heard = scene.hears();
    assert!(heard.contains("HTTP 204 No Content and no JSON-RPC message"), "{heard}");
    assert!(heard.contains(r#""status":204"#), "{heard}");
    // A redirect on the same origin is followed as it is; one to elsewhere is not.
    scene.say(CALL);
    scene.asked().refuses("307 Temporary Redirect", "Location: /mcp/\r\nContent-Length: 0\r\n", "");
    let asked = scene.asked();
    assert!(asked.head.starts_with("POST /mcp/ HTTP/1.1\r\n") && asked.body == CALL, "{}", asked.head);
    asked.answers_json(ANSWER);
    assert_eq!(scene.hears(), ANSWER);
    scene.say(CALL);
    scene.asked().refuses("307 Temporary Redirect", "Location: https://elsewhere.example/\r\n", "");
    let heard = scene.hears();
    assert!(heard.contains(r#""location":"https://elsewhere.example/""#), "{heard}");
    drop(scene.end(true));
}

/// It is in the recording, as the client heard it, and says nothing of how the server spells.
#[test]
fn what_the_bridge_says_itself_tells_nothing_of_the_server() {
    let mut scene = Scene::new();
    let welcome = r#"{"result":{"protocolVersion":"2025-06-18","capabilities":{}},"jsonrpc":"2.0","id":0}"#;
    scene.say(INITIALIZE);
    scene.asked().answers("Content-Type: application/json\r\nMcp-Session-Id: s1\r\n", welcome);
    assert_eq!(scene.hears(), welcome);
    for _ in 0..2 {
        scene.say(CALL);
        scene.asked().refuses("503 Service Unavailable", "", "");
        assert!(scene.hears().contains("\"status\":503"));
    }
    let cassette = scene.cassette(true);
    assert!(cassette.contains(r#""spelling": {"server": {"order": "#), "{cassette}");
    assert!(
        cassette.contains(r#""result": {"protocolVersion": "2025-06-18", "capabilities": {}}"#),
        "{cassette}"
    );
    assert_eq!(cassette.matches(r#"\"code\":-33001"#).count(), 2, "{cassette}");
    assert_eq!(cassette.matches(r#"\"source\":\"tapedeck\""#).count(), 2, "{cassette}");
}

#[test]
fn an_answer_may_come_on_the_servers_own_stream() {
    let mut scene = Scene::begun();
    scene.say(INITIALIZED);
    scene.asked().accepts();
    let mut stream = scene.asked();
    stream.peer.say(EVENTS.to_owned() + "id: a\nretry: 1\ndata:\n\n");
    scene.say(CALL);
    scene.asked().accepts();
    // Cut off, it is asked for again from where it was.
    drop(stream);
    let mut stream = scene.asked();
    assert!(stream.head.starts_with("GET /mcp"), "{}", stream.head);
    stream.has(&["last-event-id: a"]);
    stream.peer.say(format!("{EVENTS}data: {ANSWER}\n\n"));
    assert_eq!(scene.hears(), ANSWER);
    drop(scene.end(true));
}

/// Nothing comes of it any more, so the client is told.
#[test]
fn an_answer_that_can_come_nowhere_is_an_error() {
    let mut scene = Scene::begun();
    scene.say(CALL);
    scene.asked().accepts();
    let heard = scene.hears();
    assert!(heard.contains("HTTP 202 Accepted and no JSON-RPC message"), "{heard}");
    scene.say(INITIALIZED);
    scene.asked().accepts();
    let mut stream = scene.asked();
    stream.peer.say(EVENTS);
    scene.say(CALL);
    scene.asked().answers_json("");
    drop(stream);
    let heard = scene.hears();
    assert!(
        heard.contains(r#""id":1,"error":{"code":-33001"#) && heard.contains("ended its stream"),
        "{heard}"
    );
    scene.say(CALL);
    scene.asked().answers_json("");
    let heard = scene.hears();
    assert!(heard.contains("HTTP 200 OK and no JSON-RPC message (`application/json`)"), "{heard}");
    drop(scene.end(true));
}

#[test]
fn a_server_of_the_older_transport_is_spoken_to_in_its_way() {
    for status in ["400 Bad Request", "404 Not Found", "405 Method Not Allowed"] {
        let mut scene = Scene::new();
        scene.say(INITIALIZE);
        scene.asked().refuses(status, "", "no");
        let mut stream = scene.asked();
        assert!(stream.head.starts_with("GET /mcp HTTP/1.1\r\n"), "{}", stream.head);
        stream.peer.say(EVENTS.to_owned() + "event: endpoint\r\ndata: messages?s=1\r\n\r\n");
        for (line, answer) in [(INITIALIZE, Some(WELCOME)), (INITIALIZED, None), (CALL, Some(ANSWER))] {
            if line != INITIALIZE {
                scene.say(line);
            }
            let asked = scene.asked();
            assert!(asked.head.starts_with("POST /messages?s=1 HTTP/1.1\r\n"), "{}", asked.head);
            assert_eq!(asked.body, line);
            asked.accepts();
            if let Some(answer) = answer {
                stream.peer.say(format!("event: message\ndata: {answer}\n\n"));
                assert_eq!(scene.hears(), answer);
            }
        }
        scene.say(CALL);
        scene.asked().accepts();
        drop(stream);
        let heard = scene.hears();
        assert!(heard.contains("ended the stream that its answers come on"), "{heard}");
        drop(scene.end(false));
    }
}

#[test]
fn an_older_server_that_sends_elsewhere_is_not_followed() {
    let mut scene = Scene::new();
    scene.say(INITIALIZE);
    scene.asked().refuses("405 Method Not Allowed", "", "");
    scene.asked().peer.say(EVENTS.to_owned() + "event: endpoint\ndata: https://elsewhere.example/m\n\n");
    let heard = scene.hears();
    assert!(heard.contains("HTTP 405"), "{heard}");
    drop(scene.end(false));
}

#[test]
fn a_list_of_messages_is_answered_by_a_list_and_a_single_one_by_lines() {
    let mut scene = Scene::begun();
    let both = r#"[{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"result":{}}]"#;
    let asked = r#"[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","id":2,"method":"b"}]"#;
    scene.say(asked);
    scene.asked().answers_json(both);
    assert_eq!(scene.hears(), both);
    scene.say(asked);
    scene.asked().refuses("500 Internal Server Error", "", "");
    let heard = scene.hears();
    assert!(
        heard.starts_with(r#"[{"jsonrpc":"2.0","id":1,"error""#)
            && heard.contains(r#"},{"jsonrpc":"2.0","id":2,"error""#),
        "{heard}"
    );
    scene.say(CALL);
    let notice = r#"{"jsonrpc":"2.0","method":"x"}"#;
    scene.asked().answers_json(&format!("[{notice},{ANSWER}]"));
    assert_eq!([scene.hears(), scene.hears()], [notice, ANSWER]);
    drop(scene.end(true));
}

#[test]
fn what_comes_as_the_response_to_a_line_is_recorded_as_that() {
    let mut scene = Scene::begun();
    let call = |id: u32| {
        format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t{id}"}}}}"#)
    };
    let mut calls = Vec::new();
    for id in 1..=3 {
        scene.say(&call(id));
        let mut asked = scene.asked();
        asked.peer.say(EVENTS);
        calls.push(asked);
    }
    // The first of three that are under way says something that names nobody, then the others do.
    for (number, asked) in (1..).zip(&mut calls) {
        let notice =
            format!(r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"n":{number}}}}}"#);
        asked.peer.say(format!("data: {notice}\n\n"));
        assert_eq!(scene.hears(), notice);
    }
    for (id, mut asked) in (1..).zip(calls) {
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
        asked.peer.say(format!("data: {answer}\n\n"));
        assert_eq!(scene.hears(), answer);
    }
    let cassette = scene.cassette(true);
    assert!(!cassette.contains("guess") && cassette.contains(r#""transport": "stdio-http""#), "{cassette}");
    for id in 1..=3 {
        let exchange = cassette
            .split(r#""key": "#)
            .find(|part| part.starts_with(&format!("\"tools/call t{id} @1\"")))
            .unwrap();
        assert!(exchange.contains(&format!(r#""params": {{"n": {id}}}"#)), "{exchange}");
    }
}

#[test]
fn a_call_that_is_resumed_in_vain_ends_with_the_clients_patience() {
    let named = EVENTS.replace("Connection", "Mcp-Session-Id: s1\r\nConnection");
    // What follows an `initialize` waits for its answer, and that may be the one that never comes.
    for (mut scene, line) in [(Scene::begun(), CALL), (Scene::new(), INITIALIZE)] {
        scene.say(line);
        scene.asked().peer.say(named.clone() + "id: 7\nretry: 1\ndata: \n\n");
        drop(scene.input.take());
        loop {
            let mut asked = scene.asked();
            if asked.head.starts_with("DELETE /mcp HTTP/1.1\r\n") {
                asked.peer.say("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
                break;
            }
            asked.has(&["last-event-id: 7"]);
            asked.peer.say(EVENTS.to_owned() + "id: 7\nretry: 1\ndata:\n\n");
        }
        assert_eq!(scene.hears(), "");
        scene.bridge.join().unwrap();
    }
}

#[test]
fn answers_that_make_no_sense_are_errors_and_the_next_call_is_served() {
    let mut scene = Scene::begun();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";
    let many: String = (0..10_000).map(|number| format!("X-{number}: 1\r\n")).collect();
    let bomb = {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(&vec![b' '; 1 << 20]).unwrap();
        encoder.finish().unwrap()
    };
    let bomb_head =
        format!("{head}Content-Encoding: gzip\r\nContent-Length: {}\r\n\r\n", bomb.len()).into_bytes();
    for (answer, what) in [
        (format!("{head}Content-Length: 100\r\n\r\n{{\"short\"").into_bytes(), "broke before the answer"),
        (
            format!("{head}Transfer-Encoding: chunked\r\n\r\n20\r\n{{\"torn").into_bytes(),
            "broke before the answer",
        ),
        (format!("{head}Transfer-Encoding: chunked\r\n\r\nzz\r\n").into_bytes(), "broke before the answer"),
        (format!("{head}{many}\r\n").into_bytes(), "broke before the answer"),
        (format!("{head}X: {}", "a".repeat(1 << 20)).into_bytes(), "broke before the answer"),
        (b"SSH-2.0-OpenSSH\r\n\r\n".to_vec(), "broke before the answer"),
        ([bomb_head, bomb].concat(), "larger than 65536 bytes"),
        (format!("{head}Content-Length: 5\r\n\r\n<html").into_bytes(), "no JSON-RPC message"),
    ] {
        scene.say(CALL);
        let mut asked = scene.asked();
        // It may be cut off before all of it is sent.
        let _ = asked.peer.0.write_all(&answer);
        drop(asked);
        let heard = scene.hears();
        assert!(
            heard.starts_with(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-33001,"#) && heard.contains(what),
            "{what}: {heard}"
        );
    }
    scene.say(CALL);
    let mut asked = scene.asked();
    asked.peer.say(EVENTS);
    asked.peer.reset();
    assert!(scene.hears().contains("broke before the answer"));
    scene.say(CALL);
    scene.asked().answers_json(ANSWER);
    assert_eq!(scene.hears(), ANSWER);
    drop(scene.end(true));
}

#[test]
fn what_has_another_id_answers_nothing_and_an_error_without_one_does() {
    let mut scene = Scene::begun();
    let outcomes = [("null", "result"), ("9", "result"), ("9", "error"), ("\"a\"", "result")];
    for (id, outcome) in outcomes {
        let stranger = format!(r#"{{"jsonrpc":"2.0","id":{id},"{outcome}":{{"code":1,"message":"m"}}}}"#);
        for is_stream in [false, true] {
            scene.say(CALL);
            let mut asked = scene.asked();
            let why = if is_stream {
                asked.peer.say(format!("{EVENTS}data: {stranger}\n\n"));
                drop(asked);
                "ended its stream before the answer came".to_owned()
            } else {
                asked.answers_json(&stranger);
                format!("nothing that answers this request (the id of what came is {id})")
                    .replace('"', "\\\"")
            };
            assert_eq!(scene.hears(), stranger);
            let heard = scene.hears();
            assert!(
                heard.starts_with(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-33001,"#)
                    && heard.contains(&why),
                "{stranger}: {heard}"
            );
        }
    }
    // These are answers all the same: in another type, and of a server that could not tell whose.
    for (answer, heard) in [
        (ANSWER.replace(":1,", ":\"1\","), ANSWER.replace(":1,", ":\"1\",")),
        (
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32700,"message":"m"}}"#.to_owned(),
        ),
    ] {
        scene.say(CALL);
        scene.asked().answers_json(&answer);
        assert_eq!(scene.hears(), heard);
    }
    drop(scene.end(true));
}

#[test]
fn a_server_of_another_version_of_http_is_told_of_with_the_next_step() {
    // Frames of HTTP/2: no settings, and the end because of a bad preface.
    let http2 = b"\0\0\0\x04\0\0\0\0\0\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\x01";
    let http1 = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    for (is_http2, answer, advice) in [
        (true, &http1[..], "it does not speak HTTP/2; leave out --http2"),
        (false, &http2[..], "where it speaks HTTP/2 alone, add --http2"),
    ] {
        let mut scene = Scene::with(ConnectOptions { http2: is_http2, ..ConnectOptions::default() });
        scene.say(INITIALIZE);
        let mut peer = Peer::new(scene.server.accept().unwrap().0);
        // Its first bytes are enough to answer so.
        peer.0.read_exact(&mut [0; 24]).unwrap();
        peer.say(answer);
        let heard = scene.hears();
        assert!(heard.contains("\"code\":-33001") && heard.contains(advice), "{heard}");
        drop(peer);
        drop(scene.end(false));
    }
}

#[test]
fn a_server_that_is_not_there_is_told_of_and_the_session_goes_on() {
    let mut scene = Scene::new();
    let address = scene.server.local_addr().unwrap();
    // Nobody listens there any more.
    scene.server = TcpListener::bind("127.0.0.1:0").unwrap();
    scene.say(INITIALIZE);
    let heard = scene.hears();
    let start = format!(
        r#"{{"jsonrpc":"2.0","id":0,"error":{{"code":-33001,"message":"tapedeck cannot reach the server at http://{address}: "#
    );
    assert!(heard.starts_with(&start), "{heard}");
    assert!(!scene.bridge.is_finished());
    drop(scene.end(false));
}
