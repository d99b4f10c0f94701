//! The recording HTTP front between a raw server and a raw client: each sees exactly what the other sent, and the
//! recording says what that was.

mod clients;
mod faults;
mod passing;
mod relay;
mod resumed;
mod servers;
mod spelled;

use std::{
    io::{ErrorKind, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    thread::JoinHandle,
};

use mcp_tapedeck::{
    Report,
    proxy::reverse::{Reverse, ReverseEnded, ReverseError, ReverseOptions, Stop},
    report::Refused,
};

use crate::support::http::{ANSWER, CALL, Lines, Peer, STREAM, call, chunk, json};

/// What a front tells at its end.
type Told = (Option<Report>, Vec<Refused>);

struct Scene {
    server: TcpListener,
    origin: String,
    lines: Lines,
    stop: Stop,
    front: JoinHandle<Told>,
}

impl Scene {
    fn new() -> Self {
        Self::with(|_| ())
    }

    fn with(change: impl FnOnce(&mut ReverseOptions)) -> Self {
        Self::serving(|front, sink| {
            let mut options = ReverseOptions::default();
            change(&mut options);
            Box::new(move || all_told(front.record(sink, options)))
        })
    }

    /// Without a recording.
    fn passing() -> Self {
        Self::serving(|front, _| Box::new(move || all_told(front.pass(ReverseOptions::default()))))
    }

    fn serving(serve: impl FnOnce(Reverse, Lines) -> Box<dyn FnOnce() -> Told + Send>) -> Self {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", server.local_addr().unwrap());
        let front = Reverse::listen(&url, "127.0.0.1:0").unwrap();
        let (stop, origin, lines) = (front.stop(), front.origin(), Lines::new("http"));
        let front = std::thread::spawn(serve(front, lines.clone()));
        Self { server, origin, lines, stop, front }
    }

    fn client(&self) -> Peer {
        Peer::new(TcpStream::connect(self.origin.trim_start_matches("http://")).unwrap())
    }

    fn accept(&self) -> Peer {
        Peer::new(self.server.accept().unwrap().0)
    }

    /// A client whose first call was answered, and the server's side of its connection.
    fn called(&self) -> (Peer, Peer) {
        let mut client = self.client();
        client.say(call("localhost"));
        let mut server = self.accept();
        server.takes_call();
        server.say(json(ANSWER));
        client.hears(json(ANSWER));
        (client, server)
    }

    /// The server's own authority.
    fn upstream(&self) -> String {
        self.server.local_addr().unwrap().to_string()
    }

    /// What was recorded, when all is over.
    fn end(self) -> Vec<String> {
        self.end_with_report().0
    }

    fn end_with_report(self) -> (Vec<String>, Option<Report>) {
        let (lines, (report, _)) = self.end_with_told();
        (lines, report)
    }

    fn end_with_told(self) -> (Vec<String>, Told) {
        self.stop.stop();
        let told = self.front.join().unwrap();
        let upstream = self.server.local_addr().unwrap().to_string();
        let lines = self.lines.0.lock().unwrap();
        (lines.iter().map(|line| line.replace(&upstream, "SERVER")).collect(), told)
    }
}

fn all_told<S>(ended: Result<ReverseEnded<S>, ReverseError>) -> Told {
    let ended = ended.unwrap();
    (ended.report, ended.refused)
}

#[test]
fn heads_and_bodies_pass_as_they_were_sent() {
    let scene = Scene::new();
    let mut client = scene.client();
    let mut request = b"POST /any/path?x=1%2F2&y HTTP/1.1\r\nhOsT: localhost:1\r\nX-One: a\r\nACCEPT: a, b;q=0.5\r\n\
        X-one: b\r\nEmpty:\r\nX-Byte: \xe9\r\nOrigin: http://localhost:9\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\n\
        Accept-Encoding: gzip, br\r\ncontent-LENGTH: "
        .to_vec();
    request.extend_from_slice(format!("{}\r\n\r\n{CALL}", CALL.len()).as_bytes());
    client.say(&request);
    let mut server = scene.accept();
    let mut expected = b"POST /any/path?x=1%2F2&y HTTP/1.1\r\n".to_vec();
    expected.extend_from_slice(format!("hOsT: {}\r\n", scene.upstream()).as_bytes());
    expected.extend_from_slice(
        b"X-One: a\r\nACCEPT: a, b;q=0.5\r\nX-one: b\r\nEmpty:\r\nX-Byte: \xe9\r\nOrigin: http://localhost:9\r\n\
          Accept-Encoding: identity\r\ncontent-LENGTH: ",
    );
    expected.extend_from_slice(format!("{}\r\n\r\n{CALL}", CALL.len()).as_bytes());
    server.hears(&expected);
    let response = format!(
        "HTTP/1.1 299 Quite Fine\r\nMcp-Session-ID: a,b\r\nSet-Cookie: a=1, x\r\nEmpty: \r\nCONTENT-length: {}\r\n\r\n\
         {ANSWER}",
        ANSWER.len()
    );
    server.say(&response);
    client.hears(&response);
    let lines = scene.end();
    assert_eq!(lines.len(), 5, "{lines:#?}");
    assert!(
        lines[0].starts_with("1 > POST /any/path?x=1%2F2&y x-one=a x-one=b accept=a, b;q=0.5"),
        "{lines:#?}"
    );
    assert!(!lines[0].contains(" host=") && !lines[0].contains("x-hop"), "{lines:#?}");
    assert_eq!(lines[1], format!("1 > message {CALL}"));
    assert!(lines[2].starts_with("1 < 299 mcp-session-id=a,b"), "{lines:#?}");
    assert_eq!(lines[3..], [format!("1 < message {ANSWER}"), "1 < closed".to_owned()]);
}

#[test]
fn events_pass_as_they_come_and_are_recorded_one_by_one() {
    let scene = Scene::new();
    let mut client = scene.client();
    client.say(call("localhost"));
    let mut server = scene.accept();
    server.takes_call();
    server.say(STREAM);
    client.hears(STREAM);
    for text in [": hi\r\n\r\n", "id: 1\r\nretry: 5\r\ndata: \r", "\n\r\n", "da", "ta: a\ndata: b\n\n"] {
        server.say(chunk(text));
        client.hears(chunk(text));
    }
    let text = format!("data: {ANSWER}\n\n");
    server.say(chunk(&text) + "0\r\n\r\n");
    client.hears(chunk(&text) + "0\r\n\r\n");
    let lines = scene.end();
    assert_eq!(lines[3..], ["1 < event ", "1 < event a\nb", &format!("1 < event {ANSWER}"), "1 < closed"]);
}

#[test]
fn every_method_passes() {
    passes_every_method(Scene::new());
}

fn passes_every_method(scene: Scene) {
    let mut client = scene.client();
    let mut server = None;
    for (line, response) in [
        ("GET / HTTP/1.1", "HTTP/1.1 404 Not Found\r\nContent-Length: 1\r\n\r\nx"),
        ("HEAD /mcp HTTP/1.1", "HTTP/1.1 405 No\r\nContent-Length: 10\r\n\r\n"),
        ("OPTIONS * HTTP/1.1", "HTTP/1.1 204 No Content\r\nAllow: POST\r\n\r\n"),
        ("DELETE /mcp HTTP/1.1", "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n"),
        (
            "bReW /pot?a=b HTTP/1.1",
            "HTTP/1.1 418 I'm a teapot\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ),
    ] {
        client.say(format!("{line}\r\nHost: localhost\r\n\r\n"));
        let server = server.get_or_insert_with(|| scene.accept());
        server.hears(format!("{line}\r\nHost: {}\r\n\r\n", scene.upstream()));
        server.say(response);
        client.hears(response);
    }
    let lines = scene.end();
    assert!(
        lines.contains(&"5 > bReW /pot?a=b".to_owned()) && lines.contains(&"3 > OPTIONS *".to_owned()),
        "{lines:#?}"
    );
}

#[test]
fn the_servers_own_address_becomes_ours_where_clients_follow_it() {
    let scene = Scene::new();
    let (upstream, ours) = (scene.upstream(), scene.origin.clone());
    let host = ours.trim_start_matches("http://").to_owned();
    let document =
        |origin: &str| format!("{{\"resource\": \"{origin}/mcp\", \"x\": \"http://{upstream}/\"}}");
    let of_length = |body: &str| {
        format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    };
    let stream = |origin: &str| chunk(&format!("event: endpoint\ndata: {origin}/m?s=1\n\n"));
    let theirs = format!("http://{upstream}");
    let mut client = scene.client();
    let mut server = None;
    for (path, sent, heard) in [
        (
            "/mcp",
            format!("HTTP/1.1 307 X\r\nLocation: {theirs}/mcp/\r\nContent-Length: 0\r\n\r\n"),
            format!("HTTP/1.1 307 X\r\nLocation: {ours}/mcp/\r\nContent-Length: 0\r\n\r\n"),
        ),
        (
            "/mcp",
            format!(
                "HTTP/1.1 401 X\r\nWWW-Authenticate: Bearer resource_metadata=\"{theirs}/doc\"\r\nContent-Length: 0\r\n\r\n"
            ),
            format!(
                "HTTP/1.1 401 X\r\nWWW-Authenticate: Bearer resource_metadata=\"{ours}/doc\"\r\nContent-Length: 0\r\n\r\n"
            ),
        ),
        ("/doc", of_length(&document(&theirs)), of_length(&document(&ours))),
        ("/other", of_length(&document(&theirs)), of_length(&document(&theirs))),
        ("/sse", STREAM.to_owned() + &stream(&theirs), STREAM.to_owned() + &stream(&ours)),
    ] {
        client.say(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        let server = server.get_or_insert_with(|| scene.accept());
        server.head();
        server.say(sent);
        client.hears(heard);
    }
    let lines = scene.end();
    for (place, expected) in [
        (1, "1 < 307 location=<origin>/mcp/ content-length=0"),
        (7, "3 < 200"),
        (8, "3 < body {\"resource\": \"<origin>/mcp\""),
    ] {
        assert!(lines[place].starts_with(expected), "{place}: {expected} in {lines:#?}");
    }
}

#[test]
fn what_cannot_be_read_passes_and_is_measured() {
    let scene = Scene::new();
    let mut client = scene.client();
    client.say(call("localhost"));
    let mut server = scene.accept();
    server.takes_call();
    let response = "HTTP/1.1 200 OK\r\nContent-Encoding: br\r\nContent-Length: 6\r\n\r\nsecret";
    server.say(response);
    client.hears(response);
    let lines = scene.end();
    assert_eq!(lines[3..], ["1 < oversize 6", "1 < closed"]);
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn what_a_server_compresses_unasked_passes_so_and_is_recorded_in_plain() {
    let scene = Scene::with(|options| options.max_message = 100_000);
    let mut client = scene.client();
    client.say(call("localhost").repeat(3));
    let mut server = scene.accept();
    let events = gzip(format!("data: 1\n\ndata: {ANSWER}\n\n").as_bytes());
    // A bomb: a thousand times what passes.
    let bomb = gzip(&vec![b'a'; 10 << 20]);
    for (kind, body) in [
        ("application/json", gzip(ANSWER.as_bytes())),
        ("text/event-stream", events),
        ("application/json", bomb.clone()),
    ] {
        server.takes_call();
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let response = [head.as_bytes(), &body].concat();
        server.say(&response);
        client.hears(&response);
    }
    let lines: Vec<_> = scene.end().into_iter().filter(|line| line.contains(" < ")).collect();
    assert_eq!(
        lines,
        [
            "1 < 200 content-type=application/json",
            &format!("1 < message {ANSWER}"),
            "1 < closed",
            "2 < 200 content-type=text/event-stream",
            "2 < event 1",
            &format!("2 < event {ANSWER}"),
            "2 < closed",
            "3 < 200 content-type=application/json",
            &format!("3 < oversize {}", bomb.len()),
            "3 < closed",
        ]
    );
}

#[test]
fn a_header_of_ours_reaches_the_server_and_no_recording() {
    let scene = Scene::with(|options| {
        options.headers.push(("authorization".parse().unwrap(), "Bearer ours".parse().unwrap()));
    });
    let mut client = scene.client();
    client.say("GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer theirs\r\nAccept: a\r\n\r\n");
    let mut server = scene.accept();
    let expected = format!("Host: {}\r\nAuthorization: Bearer ours\r\nAccept: a\r\n", scene.upstream());
    server.hears(format!("GET / HTTP/1.1\r\n{expected}\r\n"));
    server.say(json(ANSWER));
    client.hears(json(ANSWER));
    let lines = scene.end();
    assert!(!lines.concat().contains("ours"), "{lines:#?}");
}

#[test]
fn what_is_over_the_limit_passes_and_is_measured() {
    let scene = Scene::with(|options| options.max_message = 1000);
    let mut client = scene.client();
    let long = "x".repeat(3000);
    client.say(format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 3000\r\n\r\n{long}"
    ));
    let mut server = scene.accept();
    server.head();
    server.hears(&long);
    server.say(STREAM.to_owned() + &chunk(&format!("data: {long}\n\ndata: 1\n\n")) + "0\r\n\r\n");
    let (heard, _) = client.rest();
    assert!(heard.contains(&long[..1000]) && heard.ends_with("0\r\n\r\n"), "{heard}");
    let lines = scene.end();
    assert_eq!(lines[1], "1 > oversize 3000");
    assert_eq!(lines[3..5], ["1 < oversize 3000", "1 < event 1"]);
}
