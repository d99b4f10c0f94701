//! Servers that fail, leave or make no sense.

use mcp_tapedeck::{
    Cassette,
    cassette::{blob::MemoryBlobs, model::Unanswered},
    lint::lint,
};

use super::*;

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

/// A response of unknown length in JSON, as its server goes on with it, and what is recorded in the end.
#[test]
fn a_message_is_recorded_before_its_client_has_it_whatever_its_end_is() {
    const CHUNKED: &str =
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    const UP_TO_END: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n";
    let message = format!("1 < message {ANSWER}");
    let plain = |text: &str| text.to_owned();
    for (head, piece) in [(CHUNKED, &chunk as &dyn Fn(&str) -> String), (UP_TO_END, &plain)] {
        for (rest, is_cut, ends) in [
            ("", false, &["1 < closed"][..]),
            ("\r\n", false, &["1 < partial \r\n", "1 < closed"]),
            ("{}", false, &["1 < partial {}", "1 < closed"]),
            ("", true, &["1 < cut"]),
            (" {", true, &["1 < partial  {", "1 < cut"]),
        ] {
            let scene = Scene::new();
            let mut client = scene.client();
            client.say(call("localhost"));
            let mut server = scene.accept();
            server.takes_call();
            // However it is cut, it is there with its last byte and not before.
            let (begun, last) = ANSWER.split_at(ANSWER.len() - 1);
            server.say(head);
            client.hears(head);
            for byte in begun.split_inclusive(|_: char| true) {
                server.say(piece(byte));
                client.hears(piece(byte));
            }
            assert!(!scene.lines.0.lock().unwrap().contains(&message));
            server.say(piece(last));
            client.hears(piece(last));
            assert!(scene.lines.0.lock().unwrap().contains(&message));
            if !rest.is_empty() {
                server.say(piece(rest));
                client.hears(piece(rest));
            }
            // Nothing but the last chunk tells an end from a cut.
            let is_cut = is_cut && head == CHUNKED;
            if head == CHUNKED && !is_cut {
                server.say("0\r\n\r\n");
                client.hears("0\r\n\r\n");
            }
            drop(server);
            client.rest();
            let mut expected = vec![message.as_str()];
            expected.extend(ends);
            if let Some(last) = expected.last_mut().filter(|_| !is_cut) {
                *last = "1 < closed";
            }
            assert_eq!(scene.end()[3..], expected);
        }
    }
}

#[test]
fn a_body_that_is_no_message_is_recorded_when_it_ends() {
    for body in [r#"{"a": 1}"#, "[]", "<p>{}</p>", "\"text\"", r#"{"jsonrpc":"2.0","id":7,"result":{}"#] {
        let scene = Scene::new();
        let mut client = scene.client();
        client.say(call("localhost"));
        let mut server = scene.accept();
        server.takes_call();
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        let sent = format!("{head}{}{}", chunk(body), chunk("\n"));
        server.say(&sent);
        client.hears(&sent);
        server.say("0\r\n\r\n");
        client.hears("0\r\n\r\n");
        assert_eq!(scene.end()[3..], [format!("1 < body {body}\n"), "1 < closed".to_owned()]);
    }
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
    let (mut client, server) = scene.called();
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
    // What the client heard is what a replay has to say.
    let error = heard.split_once("\r\n\r\n").unwrap().1;
    assert!(error.ends_with(r#","data":{"source":"tapedeck"}}}"#), "{error}");
    let expected = [
        format!("1 > message {CALL}"),
        "1 < 502 content-type=application/json".to_owned(),
        format!("1 < message {error}"),
        "1 < closed".to_owned(),
    ];
    assert_eq!(lines.0.lock().unwrap()[1..], expected);
    let text = lines.cassette();
    assert!(text.contains("\"status\": 502") && text.contains("\"error\": {"), "{text}");
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}"#;

#[test]
fn a_call_to_a_server_that_is_gone_is_one_exchange_of_its_session() {
    let mut scene = Scene::new();
    let ours = scene.origin.trim_start_matches("http://").to_owned();
    let asks = |headers: &str, body: &str| {
        let mut client = Peer::new(TcpStream::connect(&ours).unwrap());
        let length = body.len();
        client.say(format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: application/json, text/event-stream\r\n\
             Content-Type: application/json\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        ));
        client
    };
    let in_session = "Mcp-Session-Id: one\r\nMCP-Protocol-Version: 2025-11-25\r\n";
    let calls = |id: u32| asks(in_session, &CALL.replace('7', &id.to_string()));
    let takes = |scene: &Scene, body: &str| {
        let mut server = scene.accept();
        server.head();
        server.hears(body);
        server
    };
    let named = json(INITIALIZED).replace("Content-Type", "Mcp-Session-Id: one\r\nContent-Type");
    let mut client = asks("", INITIALIZE);
    let mut server = takes(&scene, INITIALIZE);
    server.say(&named);
    client.hears(&named);
    drop((client, server));
    let mut client = calls(1);
    drop(takes(&scene, &CALL.replace('7', "1")));
    assert_eq!(client.rest().0, "");
    let upstream = scene.upstream();
    drop(scene.server);
    let mut client = calls(2);
    assert!(client.head().starts_with("HTTP/1.1 502 "));
    drop(client);
    scene.server = TcpListener::bind(upstream).unwrap();
    let mut client = calls(3);
    let mut server = takes(&scene, &CALL.replace('7', "3"));
    let answer = json(&ANSWER.replace('7', "3"));
    server.say(&answer);
    client.hears(&answer);
    drop((client, server));
    scene.stop.stop();
    scene.front.join().unwrap();
    let text = scene.lines.cassette();
    let blobs = MemoryBlobs::default();
    let cassette = Cassette::load(text.clone().into_bytes(), &blobs).unwrap();
    let exchanges = cassette.exchanges.iter();
    let found: Vec<_> = exchanges
        .map(|exchange| (exchange.session, &*exchange.key, exchange.unanswered.map(Unanswered::word)))
        .collect();
    let expected = [
        (0, "initialize @1", None),
        (0, "tools/call a @1", Some("lost")),
        (0, "tools/call a @2", None),
        (0, "tools/call a @3", None),
    ];
    assert_eq!(found, expected, "{text}");
    let found = lint(&cassette, &blobs);
    assert!(found.iter().all(|finding| finding.rule != "session-header"), "{found:#?}");
}

#[test]
fn what_cannot_be_read_of_a_request_is_measured_though_no_server_is_there() {
    let scene = Scene::with(|options| options.max_message = 1000);
    let Scene { server, origin, lines, stop, front } = scene;
    drop(server);
    let long = "x".repeat(3000);
    for (headers, body) in [("", &*long), ("Content-Encoding: gzip\r\n", "secret")] {
        let mut client = Peer::new(TcpStream::connect(origin.trim_start_matches("http://")).unwrap());
        let length = body.len();
        client.say(format!(
            "POST /mcp HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
        ));
        assert!(client.head().starts_with("HTTP/1.1 502 "));
    }
    stop.stop();
    front.join().unwrap();
    let lines = lines.0.lock().unwrap();
    let told = |lane: &str, lines: &[String]| {
        assert_eq!(lines[1], format!("{lane} < 502 content-type=text/plain; charset=utf-8"));
        let start = format!("{lane} < body tapedeck cannot reach the server at ");
        assert!(lines[2].starts_with(&start) && lines[3] == format!("{lane} < closed"), "{lines:#?}");
    };
    assert_eq!((&*lines[1], &*lines[6]), ("1 > oversize 3000", "2 > oversize 6"));
    told("1", &lines[1..5]);
    told("2", &lines[6..]);
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
    let _open = scene.called();
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

/// Whoever is cut off may have it all ended at once; what it was cut off by is told before that.
#[test]
fn a_torn_head_is_told_although_all_ends_at_once() {
    for _ in 0..30 {
        let told = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let telling = std::sync::Arc::clone(&told);
        let scene = Scene::with(|options| {
            options.warn = Box::new(move |sentence| telling.lock().unwrap().push(sentence.to_owned()));
        });
        let mut client = scene.client();
        client.say(call("localhost"));
        let mut server = scene.accept();
        server.takes_call();
        server.say("HTTP/1.1 200 OK\r\nContent-");
        drop(server);
        assert_eq!(client.rest(), (String::new(), false));
        scene.end();
        let told = told.lock().unwrap();
        assert!(told.len() == 1 && told[0].contains("within the head of a response"), "{told:?}");
    }
}
