//! The recording HTTP front between a raw server and a raw client: each sees exactly what the other sent, and the
//! recording says what that was.

use std::{
    io::{ErrorKind, Read, Write},
    net::{TcpListener, TcpStream},
    thread::JoinHandle,
};

use mcp_tapedeck::proxy::reverse::{Reverse, ReverseOptions, Stop};

use crate::support::http::{ANSWER, CALL, Lines, Peer, STREAM, call, chunk, json};

struct Scene {
    server: TcpListener,
    origin: String,
    lines: Lines,
    stop: Stop,
    front: JoinHandle<()>,
}

impl Scene {
    fn new() -> Self {
        Self::with(|_| ())
    }

    fn with(change: impl FnOnce(&mut ReverseOptions)) -> Self {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", server.local_addr().unwrap());
        let front = Reverse::listen(&url, "127.0.0.1:0").unwrap();
        let (stop, origin, lines) = (front.stop(), front.origin(), Lines::new("http"));
        let mut options = ReverseOptions::default();
        change(&mut options);
        let sink = lines.clone();
        let front = std::thread::spawn(move || drop(front.record(sink, options).unwrap()));
        Self { server, origin, lines, stop, front }
    }

    fn client(&self) -> Peer {
        Peer::new(TcpStream::connect(self.origin.trim_start_matches("http://")).unwrap())
    }

    fn accept(&self) -> Peer {
        Peer::new(self.server.accept().unwrap().0)
    }

    /// The server's own authority.
    fn upstream(&self) -> String {
        self.server.local_addr().unwrap().to_string()
    }

    /// What was recorded, when all is over.
    fn end(self) -> Vec<String> {
        self.stop.stop();
        self.front.join().unwrap();
        let upstream = self.server.local_addr().unwrap().to_string();
        let lines = self.lines.0.lock().unwrap();
        lines.iter().map(|line| line.replace(&upstream, "SERVER")).collect()
    }
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
    // Lines of one name stand together, in their order.
    expected.extend_from_slice(
        b"X-One: a\r\nX-one: b\r\nACCEPT: a, b;q=0.5\r\nEmpty:\r\nX-Byte: \xe9\r\nOrigin: http://localhost:9\r\n\
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
fn a_stream_that_is_cut_off_is_cut_off_for_the_client_too() {
    for is_reset in [false, true] {
        let scene = Scene::new();
        let mut client = scene.client();
        client.say(call("localhost"));
        let mut server = scene.accept();
        server.takes_call();
        server.say(STREAM.to_owned() + &chunk("data: 1\n\n") + &chunk("id: 8\ndata: {\"to"));
        // A reset takes back what the other side has not yet read.
        client.hears(STREAM);
        let heard = if is_reset {
            let both = chunk("data: 1\n\n") + &chunk("id: 8\ndata: {\"to");
            client.hears(&both);
            server.reset();
            client.rest()
        } else {
            drop(server);
            client.rest()
        };
        let cut = if is_reset { "" } else { "9\r\ndata: 1\n\n\r\n10\r\nid: 8\ndata: {\"to\r\n" };
        assert_eq!(heard, (cut.to_owned(), is_reset));
        let end = if is_reset { "1 < reset" } else { "1 < cut" };
        assert_eq!(scene.end()[3..], ["1 < event 1", "1 < partial id: 8\ndata: {\"to", end]);
    }
}

#[test]
fn a_body_shorter_than_it_says_stays_that() {
    let scene = Scene::new();
    let mut client = scene.client();
    client.say(call("localhost"));
    let mut server = scene.accept();
    server.takes_call();
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"short\"";
    server.say(head);
    drop(server);
    assert_eq!(client.rest(), (head.to_owned(), false));
    assert_eq!(scene.end()[2..], ["1 < 200 content-length=100", "1 < partial {\"short\"", "1 < cut"]);
}

#[test]
fn a_torn_chunk_stays_torn() {
    let scene = Scene::new();
    let mut client = scene.client();
    client.say(call("localhost"));
    let mut server = scene.accept();
    server.takes_call();
    server.say(STREAM.to_owned() + "20\r\ndata: 1\n\nda");
    drop(server);
    let (heard, _) = client.rest();
    assert!(
        heard.starts_with(STREAM) && heard.contains("data: 1\n\nda") && !heard.contains("0\r\n\r\n"),
        "{heard}"
    );
    assert_eq!(scene.end()[3..], ["1 < event 1", "1 < partial da", "1 < cut"]);
}

#[test]
fn a_server_that_closes_without_an_answer_is_seen_as_that_and_asked_only_once() {
    let scene = Scene::new();
    let mut client = scene.client();
    client.say(call("localhost"));
    let mut server = scene.accept();
    server.takes_call();
    drop(server);
    assert_eq!(client.rest(), (String::new(), false));
    scene.server.set_nonblocking(true).unwrap();
    assert_eq!(scene.server.accept().map(drop).unwrap_err().kind(), ErrorKind::WouldBlock);
    let lines = scene.end();
    assert_eq!(lines[1..], [format!("1 > message {CALL}"), "1 < cut".to_owned()]);
}

#[test]
fn a_server_that_closes_while_idle_ends_the_clients_connection() {
    let scene = Scene::new();
    let mut client = scene.client();
    client.say(call("localhost"));
    let mut server = scene.accept();
    server.takes_call();
    server.say(json(ANSWER));
    client.hears(json(ANSWER));
    drop(server);
    assert_eq!(client.rest(), (String::new(), false));
    // Another client has a connection of its own.
    let mut client = scene.client();
    client.say(call("localhost"));
    let mut server = scene.accept();
    server.takes_call();
    // A client that goes takes its connection to the server with it.
    server.say(json(ANSWER));
    client.hears(json(ANSWER));
    drop(client);
    assert_eq!(server.rest(), (String::new(), false));
    drop(scene.end());
}

#[test]
fn a_server_that_cannot_be_reached_is_an_error_with_the_callers_id() {
    let scene = Scene::new();
    let Scene { server, origin, lines, stop, front } = scene;
    let upstream = server.local_addr().unwrap();
    drop(server);
    let mut client = Peer::new(TcpStream::connect(origin.trim_start_matches("http://")).unwrap());
    client.say(call("localhost").replace("HTTP/1.1\r\n", "HTTP/1.1\r\nConnection: close\r\n"));
    let (heard, _) = client.rest();
    assert!(heard.starts_with("HTTP/1.1 502 Bad Gateway\r\n"), "{heard}");
    let start = format!(
        r#"{{"jsonrpc":"2.0","id":7,"error":{{"code":-33001,"message":"tapedeck cannot reach the server at http://{upstream}: "#
    );
    assert!(heard.contains(&start), "{heard}");
    stop.stop();
    front.join().unwrap();
    let lines = lines.0.lock().unwrap();
    assert_eq!(lines.len(), 3, "{lines:#?}");
    assert!(
        lines.contains(&format!("1 > message {CALL}")) && lines.contains(&"1 < cut".to_owned()),
        "{lines:#?}"
    );
}

#[test]
fn requests_in_a_row_use_one_connection_and_are_answered_in_their_order() {
    let scene = Scene::new();
    let mut client = scene.client();
    client.say(call("localhost").repeat(3));
    let mut server = scene.accept();
    for number in 1..=3 {
        server.takes_call();
        server.say(json(&number.to_string()));
    }
    for number in 1..=3 {
        client.hears(json(&number.to_string()));
    }
    let lines = scene.end();
    let bodies: Vec<_> = lines.iter().filter(|line| line.contains("< body")).collect();
    assert_eq!(bodies, ["1 < body 1", "2 < body 2", "3 < body 3"]);
}

#[test]
fn every_method_passes() {
    let scene = Scene::new();
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
fn foreign_hosts_and_pages_are_refused_with_the_way_out() {
    let scene = Scene::with(|options| options.allow_hosts.push("deck.example".to_owned()));
    for (headers, status, word) in [
        ("Host: evil.example\r\n", "403", "--allow-host evil.example"),
        ("Host: localhost\r\nOrigin: https://evil.example\r\n", "403", "--allow-origin https://evil.example"),
        ("Host: localhost\r\nHost: localhost\r\n", "400", "two hosts"),
    ] {
        let mut client = scene.client();
        client.say(format!("POST /mcp HTTP/1.1\r\n{headers}Connection: close\r\nContent-Length: 0\r\n\r\n"));
        let (heard, _) = client.rest();
        assert!(heard.starts_with(&format!("HTTP/1.1 {status}")) && heard.contains(word), "{heard}");
    }
    let mut client = scene.client();
    client.say(call("deck.example:80"));
    scene.accept().takes_call();
    let lines = scene.end();
    assert!(
        lines[0].starts_with("1 > POST") && !lines.iter().any(|line| line.starts_with('2')),
        "{lines:#?}"
    );
}

#[test]
fn a_head_without_end_is_refused_and_disturbs_nobody() {
    let scene = Scene::new();
    let mut other = scene.client();
    other.say(call("localhost"));
    let mut server = scene.accept();
    server.takes_call();
    let mut client = scene.client();
    let lines: String = (0..10_000).map(|number| format!("X-{number}: 1\r\n")).collect();
    // It may be refused before all of it is sent.
    let _ = client.0.write_all(format!("GET / HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n").as_bytes());
    let mut status = [0; 12];
    client.0.read_exact(&mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 431");
    // Three hundred are nothing unusual.
    let mut client = scene.client();
    let lines: String = (0..300).map(|number| format!("X-{number}: 1\r\n")).collect();
    client.say(format!("GET / HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n"));
    assert!(scene.accept().head().contains("\r\nX-299: 1\r\n"));
    server.say(json(ANSWER));
    other.hears(json(ANSWER));
    drop(scene.end());
}

#[test]
fn a_client_that_asks_whether_to_go_on_is_answered_by_the_server() {
    let scene = Scene::new();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        CALL.len()
    );
    let mut client = scene.client();
    client.say(&head);
    let mut server = scene.accept();
    assert!(server.head().contains("\r\nExpect: 100-continue\r\n"));
    server.say("HTTP/1.1 100 Continue\r\n\r\n");
    client.hears("HTTP/1.1 100 Continue\r\n\r\n");
    client.say(CALL);
    server.hears(CALL);
    server.say(json(ANSWER));
    client.hears(json(ANSWER));
    // The other way: the body is not wanted, and never sent.
    let mut client = scene.client();
    client.say(&head);
    let mut server = scene.accept();
    server.head();
    let refusal = "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n";
    server.say(refusal.to_owned() + "\r\n");
    client.hears(refusal);
    drop(client);
    assert_eq!(server.rest().0, "");
    let lines = scene.end();
    assert!(lines.iter().any(|line| line.starts_with("2 < 417")), "{lines:#?}");
}

#[test]
fn a_modern_client_that_leaves_cancels_and_a_legacy_one_does_not() {
    let scene = Scene::new();
    let modern = r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
    let mut client = scene.client();
    client.say(format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{modern}",
        modern.len()
    ));
    let mut server = scene.accept();
    server.head();
    server.hears(modern);
    drop(client);
    assert_eq!(server.rest().0, "");
    // Legacy, once before the head has come and once behind it.
    for has_begun in [false, true] {
        let mut client = scene.client();
        client.say(call("localhost"));
        let mut server = scene.accept();
        server.takes_call();
        if has_begun {
            server.say(STREAM);
            client.hears(STREAM);
            drop(client);
        } else {
            drop(client);
            server.say(STREAM);
        }
        server.say(chunk(&format!("data: {ANSWER}\n\n")) + "0\r\n\r\n");
        // The front goes when the call is over.
        assert_eq!(server.rest().0, "");
    }
    let lines = scene.end();
    assert!(lines.contains(&"1 > closed".to_owned()), "{lines:#?}");
    for lane in [2, 3] {
        for expected in ["> closed".to_owned(), format!("< event {ANSWER}"), "< closed".to_owned()] {
            assert!(lines.contains(&format!("{lane} {expected}")), "{lane} {expected} in {lines:#?}");
        }
    }
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

#[test]
fn a_client_that_never_finishes_a_head_is_cut_off_and_disturbs_nobody() {
    let scene = Scene::with(|options| options.head_time = std::time::Duration::from_millis(40));
    let mut other = scene.client();
    other.say(call("localhost"));
    let mut server = scene.accept();
    server.takes_call();
    // A head that only grows.
    let mut endless = scene.client();
    endless.say("GET / HTTP/1.1\r\nHost: localhost\r\nX: ");
    let _ = endless.0.write_all(&vec![b'a'; 1 << 20]);
    let mut status = [0; 12];
    endless.0.read_exact(&mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 431");
    // One that stands still.
    let mut slow = scene.client();
    slow.say("POST /mcp HTTP/1.1\r\nHost: loc");
    assert_eq!(slow.rest().0, "");
    // A call is no head: it takes its time.
    server.say(json(ANSWER));
    other.hears(json(ANSWER));
    let lines = scene.end();
    assert!(lines.iter().all(|line| line.starts_with("1 ")), "{lines:#?}");
}

#[test]
fn lengths_that_contradict_each_other_go_no_further() {
    let scene = Scene::new();
    for headers in [
        "Content-Length: 4\r\nContent-Length: 5\r\n",
        "Content-Length: -1\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: gzip\r\n",
    ] {
        let mut client = scene.client();
        client.say(format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n12345"));
        let (heard, _) = client.rest();
        assert!(heard.starts_with("HTTP/1.1 400"), "{headers}: {heard}");
    }
    assert!(scene.end().is_empty());
}

#[test]
fn a_body_that_is_no_message_is_recorded_as_what_it_is() {
    let scene = Scene::new();
    let mut client = scene.client();
    client.say("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{\"not\": j");
    let mut server = scene.accept();
    server.head();
    server.hears("{\"not\": j");
    let answer = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/html\r\nContent-Length: 3\r\n\r\n<p>";
    server.say(answer);
    client.hears(answer);
    let lines = scene.end();
    assert!(lines.contains(&"1 > body {\"not\": j".to_owned()), "{lines:#?}");
    assert!(lines.contains(&"1 < body <p>".to_owned()), "{lines:#?}");
}

#[test]
fn a_client_that_leaves_in_the_middle_of_its_body_is_recorded_so_far() {
    let scene = Scene::new();
    let mut client = scene.client();
    client.say("POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{\"half\"");
    let mut server = scene.accept();
    server.head();
    server.hears("{\"half\"");
    drop(client);
    assert_eq!(server.rest().0, "");
    let lines = scene.end();
    assert!(lines.contains(&"1 > partial {\"half\"".to_owned()), "{lines:#?}");
}

#[test]
fn a_server_whose_head_makes_no_sense_is_cut_off_and_the_next_client_is_served() {
    let scene = Scene::new();
    let many: String = (0..10_000).map(|number| format!("X-{number}: 1\r\n")).collect();
    let long = format!("X: {}", "a".repeat(1 << 20));
    for head in [
        format!("HTTP/1.1 200 OK\r\n{many}\r\n"),
        format!("HTTP/1.1 200 OK\r\n{long}"),
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nabc".to_owned(),
        "SSH-2.0-OpenSSH\r\n\r\n".to_owned(),
    ] {
        let mut client = scene.client();
        client.say(call("localhost"));
        let mut server = scene.accept();
        server.takes_call();
        // It may be cut off before all of it is sent.
        let _ = server.0.write_all(head.as_bytes());
        let mut heard = Vec::new();
        let _ = client.0.read_to_end(&mut heard);
        assert!(heard.is_empty(), "{}", String::from_utf8_lossy(&heard));
    }
    let mut client = scene.client();
    client.say(call("localhost"));
    let mut server = scene.accept();
    server.takes_call();
    server.say(json(ANSWER));
    client.hears(json(ANSWER));
    let lines = scene.end();
    for lane in 1..=4 {
        let broken = [format!("{lane} < cut"), format!("{lane} < reset")];
        assert!(lines.iter().any(|line| broken.contains(line)), "{lane}: {lines:#?}");
    }
}

#[test]
fn what_comes_behind_a_whole_response_is_none_of_it() {
    // More than its length says, a second response that nobody asked for, noise behind the last chunk.
    let whole = json(ANSWER);
    let chunked = STREAM.to_owned() + &chunk(&format!("data: {ANSWER}\n\n")) + "0\r\n\r\n";
    for (response, more) in
        [(&whole, "and more"), (&whole, &*whole), (&chunked, "and more"), (&chunked, "0\r\n\r\n")]
    {
        let scene = Scene::new();
        let mut client = scene.client();
        client.say(call("localhost"));
        let mut server = scene.accept();
        server.takes_call();
        server.say(response.to_owned() + more);
        // The connection cannot be trusted any more, for whatever comes next; the client may be told so before.
        let (heard, _) = client.rest();
        assert_eq!(heard.replace("connection: close\r\n", ""), *response);
        let lines = scene.end();
        assert_eq!(lines.last().unwrap(), "1 < closed", "{lines:#?}");
        assert_eq!(lines.iter().filter(|line| line.contains(ANSWER)).count(), 1, "{lines:#?}");
    }
}

#[test]
fn a_chunk_that_is_none_ends_the_response_where_it_stands() {
    for bad in ["zz\r\n", "5\r\nab", "-1\r\n", "FFFFFFFFFFFFFFFFF\r\n", "5\r\n12345xx"] {
        let scene = Scene::new();
        let mut client = scene.client();
        client.say(call("localhost"));
        let mut server = scene.accept();
        server.takes_call();
        server.say(STREAM);
        client.hears(STREAM);
        server.say(chunk("data: 1\n\n"));
        client.hears(chunk("data: 1\n\n"));
        server.say(bad);
        drop(server);
        let mut heard = Vec::new();
        let _ = client.0.read_to_end(&mut heard);
        let heard = String::from_utf8_lossy(&heard);
        assert!(!heard.contains("0\r\n\r\n"), "{bad:?}: {heard:?}");
        let lines = scene.end();
        assert!(lines.contains(&"1 < event 1".to_owned()), "{lines:#?}");
        assert!(["1 < cut", "1 < reset"].contains(&&**lines.last().unwrap()), "{bad:?}: {lines:#?}");
    }
}

#[test]
fn requests_that_make_no_sense_go_no_further_and_disturb_nobody() {
    let scene = Scene::new();
    let mut other = scene.client();
    other.say(call("localhost"));
    let mut server = scene.accept();
    server.takes_call();
    let long = "a".repeat(1 << 20);
    for bytes in [
        "SSH-2.0-OpenSSH_9.9\r\n\r\n".to_owned(),
        "\x16\x03\x01\x02\x00\x01\x00\x01\u{fc}\x03\x03\r\n\r\n".to_owned(),
        "GET / HTTP/9.9\r\nHost: localhost\r\n\r\n".to_owned(),
        "GET / HTTP/1.1\r\nHost: localhost\r\nNo colon\r\n\r\n".to_owned(),
        "GET / HTTP/1.1\r\nHost: localhost\r\n folded: 1\r\n\r\n".to_owned(),
        "GE T / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned(),
        format!("GET /{long} HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ] {
        let mut client = scene.client();
        // It may be refused before all of it is sent.
        let _ = client.0.write_all(bytes.as_bytes());
        let mut heard = [0; 10];
        client.0.read_exact(&mut heard).unwrap();
        assert_eq!(&heard, b"HTTP/1.1 4", "{}", &bytes[..bytes.len().min(60)]);
    }
    // A tunnel is opened to nobody.
    let mut client = scene.client();
    client.say("CONNECT localhost:22 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert!(client.rest().0.starts_with("HTTP/1.1 405"));
    server.say(json(ANSWER));
    other.hears(json(ANSWER));
    let lines = scene.end();
    assert!(lines.iter().all(|line| line.starts_with("1 ")), "{lines:#?}");
}

#[test]
fn a_clients_torn_chunk_is_no_whole_body_for_the_server() {
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    for rest in ["", "zz\r\n", "9\r\nab"] {
        let scene = Scene::new();
        let mut client = scene.client();
        client.say(head.to_owned() + &chunk("{\"half\""));
        let mut server = scene.accept();
        server.head();
        server.hears(chunk("{\"half\""));
        client.say(rest);
        drop(client);
        let mut heard = Vec::new();
        let _ = server.0.read_to_end(&mut heard);
        assert!(!String::from_utf8_lossy(&heard).contains("0\r\n\r\n"), "{rest:?}");
        let lines = scene.end();
        let partial = lines.iter().find(|line| line.starts_with("1 > partial {\"half\""));
        assert!(partial.is_some() && !lines.iter().any(|line| line.contains("message")), "{lines:#?}");
    }
}

#[test]
fn a_reset_by_the_client_reaches_the_server_as_the_end_of_its_connection() {
    let scene = Scene::new();
    let mut client = scene.client();
    client.say("GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let mut server = scene.accept();
    server.head();
    server.say(STREAM);
    client.hears(STREAM);
    client.reset();
    assert_eq!(server.rest().0, "");
    let mut client = scene.client();
    client.say(call("localhost"));
    let mut server = scene.accept();
    server.takes_call();
    server.say(json(ANSWER));
    client.hears(json(ANSWER));
    let lines = scene.end();
    assert!(lines.contains(&"1 > closed".to_owned()), "{lines:#?}");
}
