//! Faults between a raw server and a raw client: the client meets them, the recording does not.

use std::{collections::BTreeSet, sync::Arc};

use mcp_tapedeck::{
    fault::{
        Plan,
        live::{Live, Options},
    },
    proxy::reverse::Faults,
    redact::{Rules, Vars},
    replay::Lens,
    report::Verdict,
};

use super::*;

impl Scene {
    /// A recorder behind faults.
    pub(super) fn faulty(faults: &[&str]) -> Self {
        Self::with(|options| options.faults = Some(self::faults(faults)))
    }

    /// Faults, and no recording.
    pub(super) fn faulty_without_a_recording(faults: &[&str]) -> Self {
        let faults = Some(self::faults(faults));
        Self::serving(|front, _| {
            let options = ReverseOptions { faults, ..ReverseOptions::default() };
            Box::new(move || all_told(front.pass(options)))
        })
    }

    /// A client that has asked this, on a connection of its own.
    fn asks(&self, session: &str, body: &str) -> Peer {
        let mut client = self.client();
        client.say(post(session, body));
        client
    }

    /// A client that has begun a session of this id, and the server's side of its connection.
    fn begun(&self, id: &str) -> (Peer, Peer) {
        let mut client = self.asks("", INITIALIZE);
        let mut server = self.accept();
        server.head();
        server.hears(INITIALIZE);
        let answer = json(ANSWER).replace("Content-Type", &format!("Mcp-Session-Id: {id}\r\nContent-Type"));
        server.say(&answer);
        client.hears(&answer);
        (client, server)
    }

    /// Ends in good order, and each fault acted so often.
    fn ends_having_fired(self, fired: &[u64]) -> Vec<String> {
        let (lines, report) = self.end_with_report();
        let report = report.expect("there were faults");
        assert_eq!(report.faults.iter().map(|fault| fault.fired).collect::<Vec<_>>(), fired);
        assert_eq!(report.verdict, Verdict::Good);
        lines
    }
}

fn faults(faults: &[&str]) -> Faults {
    let mut plan = Plan::default();
    faults.iter().for_each(|fault| plan.add_short(fault).unwrap());
    plan.check_live(true).unwrap();
    let look = Box::new(Lens::new(&Rules::default(), Vars::default()));
    let options = Options { name: "live".to_owned(), look, events: Some(Arc::default()) };
    Faults { live: Live::new(Arc::new(plan), options), happened: None }
}

fn post(session: &str, body: &str) -> String {
    format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\n{session}Content-Length: {}\r\n\r\n{body}", body.len())
}

/// A response whose head nothing acts on, but whose length is ours to tell.
fn told(head: &str, body: &str) -> String {
    format!("{head}Content-Length: {}\r\n\r\n{body}", body.len())
}

/// A response in the server's place.
fn instead(head: &str, body: &str) -> String {
    told(head, body).replace("Content-Length", "content-length")
}

const JSON: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
const CHUNKED: &str = "transfer-encoding: chunked\r\n\r\n";
const OTHER: &str = r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"b"}}"#;
const INITIALIZE: &str =
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
const PROGRESS: &str = r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}"#;

#[test]
fn what_nothing_acts_on_passes_byte_for_byte_as_it_comes() {
    let scene = Scene::faulty(&[r#"tools/call a: {"do": "timeout", "optional": true}"#]);
    let mut client = scene.client();
    client.say(format!(
        "POST /mcp?x HTTP/1.1\r\nhOsT: localhost\r\nX-One: a\r\nTransfer-Encoding: chunked\r\n\r\n{}{}0\r\n\r\n",
        chunk(&OTHER[..9]),
        chunk(&OTHER[9..])
    ));
    let mut server = scene.accept();
    let head = format!(
        "POST /mcp?x HTTP/1.1\r\nhOsT: {}\r\nX-One: a\r\nTransfer-Encoding: chunked\r\n\r\n",
        scene.upstream()
    );
    server.hears(head + &chunk(&OTHER[..9]) + &chunk(&OTHER[9..]) + "0\r\n\r\n");
    server.say("HTTP/1.1 299 Quite Fine\r\nMcp-Session-ID: a,b\r\nCONTENT-length: 4\r\n\r\n");
    client.hears("HTTP/1.1 299 Quite Fine\r\nMcp-Session-ID: a,b\r\nCONTENT-length: 4\r\n\r\n");
    for byte in ["t", "e", "x", "t"] {
        server.say(byte);
        client.hears(byte);
    }
    for request in [post("", OTHER), "GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned()] {
        client.say(&request);
        server.head();
        if request.starts_with("POST") {
            server.hears(OTHER);
        }
        server.say(STREAM);
        if request.starts_with("POST") {
            client.hears(STREAM);
        }
        server.say(chunk(": hi\n\ndata: 1\n\n"));
        if request.starts_with("POST") {
            client.hears(chunk(": hi\n\ndata: 1\n\n"));
        } else {
            client.hears(STREAM);
            client.hears(chunk(": hi\n\n") + &chunk("data: 1\n\n"));
        }
        for text in ["id", ": 2\r", "\n\r\n: ", "\n"] {
            server.say(chunk(text));
            client.hears(chunk(text));
        }
        server.say("0\r\n\r\n");
        client.hears("0\r\n\r\n");
    }
    scene.ends_having_fired(&[0]);
}

/// What a server says behind the last byte, where its client takes that.
#[test]
fn trailers_pass_whether_something_acts_or_not() {
    for scene in [
        Scene::new(),
        Scene::faulty(&[r#"tools/call b: {"do": "timeout", "optional": true}"#]),
        Scene::faulty(&["tools/call a: latency ms=1"]),
    ] {
        for head in [
            STREAM,
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
        ] {
            let mut client = scene.asks("TE: trailers\r\n", CALL);
            let mut server = scene.accept();
            server.takes_call();
            server.say(head.replace("Transfer", "Trailer: X-Sum\r\nTransfer"));
            let body = if head == STREAM { format!("data: {ANSWER}\n\n") } else { ANSWER.to_owned() };
            server.say(chunk(&body) + "0\r\nX-Sum: 1\r\n\r\n");
            let mut heard = String::new();
            while !heard.to_ascii_lowercase().ends_with("\r\n0\r\nx-sum: 1\r\n\r\n") {
                let mut room = [0; 1024];
                let length = client.0.read(&mut room).unwrap();
                assert!(length > 0, "{heard}");
                heard.push_str(std::str::from_utf8(&room[..length]).unwrap());
            }
            assert!(heard.contains(&body), "{heard}");
        }
        drop(scene.end());
    }
}

#[test]
fn every_method_passes_by_a_plan() {
    passes_every_method(Scene::faulty(&[r#"tools/call: {"do": "timeout", "optional": true}"#]));
}

#[test]
fn what_is_too_long_to_be_looked_at_passes_by_a_plan() {
    let scene = Scene::with(|options| {
        options.max_message = 1000;
        options.faults = Some(faults(&[r#"tools/call: {"do": "status", "status": 500, "optional": true}"#]));
    });
    let long = CALL.to_owned() + &" ".repeat(3000);
    let mut client = scene.asks("", &long);
    let mut server = scene.accept();
    server.head();
    server.hears(&long);
    server.say(json(&long));
    client.hears(json(&long));
    scene.ends_having_fired(&[0]);
}

#[test]
fn an_answer_that_is_too_long_to_be_held_is_not_changed() {
    let scene = Scene::with(|options| {
        options.max_message = 1000;
        options.faults = Some(faults(&["tools/call a: latency ms=1"]));
    });
    let mut client = scene.asks("", CALL);
    let mut server = scene.accept();
    server.takes_call();
    let long = "x".repeat(30_000);
    server.say(json(&long));
    drop(server);
    let (heard, _) = client.rest();
    let body = heard.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    assert_eq!(body.matches('x').count(), long.len());
    assert!(body.ends_with("0\r\n\r\n"), "{}", &body[body.len() - 20..]);
    scene.ends_having_fired(&[1]);
}

#[test]
fn a_status_in_the_servers_place_is_all_that_the_client_hears_and_the_server_hears_nothing() {
    let scene = Scene::faulty(&["tools/call a: status status=429 retry_after=1 nth=1"]);
    let mut client = scene.client();
    client.say(call("localhost"));
    client.hears("HTTP/1.1 429 Too Many Requests\r\nretry-after: 1\r\ncontent-length: 0\r\n\r\n");
    client.say(call("localhost"));
    let mut server = scene.accept();
    server.takes_call();
    server.say(json(ANSWER));
    client.hears(json(ANSWER));
    let lines = scene.ends_having_fired(&[1]);
    assert!(lines.iter().all(|line| line.starts_with("1 ")), "{lines:#?}");
}

#[test]
fn a_session_that_has_expired_is_gone_until_another_begins_and_others_stay() {
    let scene = Scene::faulty(&["tools/call a: session_expired nth=1"]);
    let mut server: Vec<Peer> = Vec::new();
    let mut sessions = Vec::new();
    for id in ["one", "two", "three"] {
        let (client, peer) = scene.begun(id);
        server.push(peer);
        sessions.push((format!("Mcp-Session-Id: {id}\r\n"), client));
        if id == "two" {
            let (session, client) = &mut sessions[0];
            let gone = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}"#;
            for id in ["null", "7"] {
                let gone = gone.replace("null", id);
                client.say(post(session, CALL));
                client.hears(instead("HTTP/1.1 404 Not Found\r\ncontent-type: application/json\r\n", &gone));
            }
            client.say(format!("GET /mcp HTTP/1.1\r\nHost: localhost\r\n{session}\r\n"));
            assert!(client.head().starts_with("HTTP/1.1 404 "));
        }
    }
    for ((session, client), server) in sessions[1..].iter_mut().zip(&mut server[1..]) {
        client.say(post(session, CALL));
        assert!(server.head().contains(session.trim_end()));
        server.hears(CALL);
        server.say(json(ANSWER));
        client.hears(json(ANSWER));
    }
    scene.ends_having_fired(&[1]);
}

#[test]
fn a_connection_breaks_for_the_client_and_the_answer_is_recorded() {
    for (fault, seen, reset) in [
        ("reset_peer", String::new(), true),
        ("reset_peer bytes=9", format!("{JSON}{CHUNKED}{}", chunk(&ANSWER[..9])), true),
        ("close_early bytes=9", format!("{JSON}{CHUNKED}{}", chunk(&ANSWER[..9])), false),
        ("lost_answer", format!("{JSON}{CHUNKED}"), false),
        ("refuse", String::new(), true),
    ] {
        let scene = Scene::faulty(&[&format!("tools/call a: {fault}")]);
        let mut other = scene.client();
        other.say(post("", OTHER));
        let mut others = scene.accept();
        others.head();
        let mut client = scene.asks("", CALL);
        let server = (fault != "refuse").then(|| {
            let mut server = scene.accept();
            server.takes_call();
            server.say(json(ANSWER));
            server
        });
        assert_eq!(client.rest(), (seen, reset), "{fault}");
        drop(server);
        others.say(json(ANSWER));
        other.hears(json(ANSWER));
        let lines = scene.ends_having_fired(&[1]);
        let is_recorded =
            lines.contains(&format!("2 < message {ANSWER}")) && lines.contains(&"2 < closed".to_owned());
        assert_eq!(is_recorded, fault != "refuse", "{fault}: {lines:#?}");
        assert!(!lines.contains(&"2 > closed".to_owned()), "{fault}: {lines:#?}");
    }
}

#[test]
fn a_stream_is_cut_off_for_the_client_and_recorded_to_its_end() {
    let event = format!("id: 1\r\ndata: {PROGRESS}\r\n\r\n");
    let (head, plain) = (STREAM.to_owned(), chunk(&event));
    for (fault, seen) in
        [("cut_after events=1", format!("{head}{plain}")), ("cut_after events=0", head.clone())]
    {
        let scene = Scene::faulty(&[&format!("tools/call a: {fault}")]);
        let mut client = scene.asks("", CALL);
        let mut server = scene.accept();
        server.takes_call();
        server.say(STREAM.to_owned() + &chunk(&event));
        assert_eq!(client.rest(), (seen, false), "{fault}");
        server.say(chunk(&format!("data: {ANSWER}\n\n")) + "0\r\n\r\n");
        // Our side closes when all is read.
        assert_eq!(server.rest(), (String::new(), false));
        let lines = scene.ends_having_fired(&[1]);
        let expected =
            [format!("1 < event {PROGRESS}"), format!("1 < event {ANSWER}"), "1 < closed".to_owned()];
        assert_eq!(lines[3..], expected, "{fault}");
    }
}

#[test]
fn a_lost_answer_comes_to_a_client_that_resumes_its_stream() {
    let scene = Scene::faulty(&["tools/call a: lost_answer"]);
    let mut client = scene.asks("", CALL);
    let mut server = scene.accept();
    server.takes_call();
    let (primes, answers) = (chunk("id: 1\ndata:\n\n"), chunk(&format!("id: 2\ndata: {ANSWER}\n\n")));
    server.say(format!("{STREAM}{primes}{answers}0\r\n\r\n"));
    assert_eq!(client.rest(), (format!("{STREAM}{primes}"), false));
    let mut client = scene.client();
    client.say("GET /mcp HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: 1\r\n\r\n");
    let mut server = scene.accept();
    assert!(server.head().contains("\r\nLast-Event-ID: 1\r\n"));
    server.say(format!("{STREAM}{answers}0\r\n\r\n"));
    client.hears(format!("{STREAM}{answers}0\r\n\r\n"));
    scene.ends_having_fired(&[1]);
}

#[test]
fn a_server_sees_its_client_cut_off_where_nothing_is_recorded() {
    let scene = Scene::faulty_without_a_recording(&["tools/call a: cut_after events=1"]);
    let mut client = scene.asks("", CALL);
    let mut server = scene.accept();
    server.takes_call();
    server.say(STREAM.to_owned() + &chunk("data: 1\n\n"));
    assert_eq!(client.rest(), (STREAM.to_owned() + &chunk("data: 1\n\n"), false));
    assert_eq!(server.rest(), (String::new(), false));
    assert_eq!(scene.ends_having_fired(&[1]), Vec::<String>::new());
}

#[test]
fn a_server_that_leaves_without_a_head_ends_its_clients_connection_as_without_a_plan() {
    /// What the server does once it is asked, and whether what comes of it is a reset.
    type Leaves = (&'static str, bool, fn(Peer));
    let kinds: [Leaves; 6] = [
        ("it closes", false, drop),
        ("it resets", true, Peer::reset),
        ("half a head, then it closes", false, |mut server| server.say("HTTP/1.1 200 OK\r\nContent-")),
        ("half a head, then it resets", true, |mut server| {
            server.say("HTTP/1.1 200 OK\r\nContent-");
            server.reset();
        }),
        ("no HTTP", false, |mut server| {
            server.say("SSH-2.0-OpenSSH\r\n\r\n");
            server.rest_or_whole();
        }),
        ("a head with two lengths", false, |mut server| {
            server.say("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n");
            server.rest_or_whole();
        }),
    ];
    let no_rule: &[&str] = &[];
    let other_rule = &[r#"tools/call b: {"do": "latency", "ms": 1, "optional": true}"#][..];
    for (kind, resets, leaves) in kinds {
        for request in [call("localhost"), "GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n".to_owned()] {
            let seen = |scene: Scene| {
                // It is not the connection's first.
                let (mut client, mut server) = scene.called();
                client.say(&request);
                server.head();
                if request.starts_with("POST") {
                    server.hears(CALL);
                }
                leaves(server);
                let heard = client.rest();
                // The next client is served.
                let mut client = scene.asks("", OTHER);
                let mut server = scene.accept();
                server.head();
                server.hears(OTHER);
                server.say(json(ANSWER));
                client.hears(json(ANSWER));
                (heard, scene.end())
            };
            let (heard, recorded) = seen(Scene::new());
            assert_eq!(heard, (String::new(), resets), "{kind}: {request}");
            assert_eq!(seen(Scene::passing()).0, heard, "{kind}: {request}");
            for rules in [no_rule, other_rule] {
                assert_eq!(seen(Scene::faulty(rules)).0, heard, "{kind}, {rules:?}: {request}");
                let passed = seen(Scene::faulty_without_a_recording(rules));
                assert_eq!(passed, (heard.clone(), Vec::new()), "{kind}, {rules:?}: {request}");
            }
            assert_eq!(seen(Scene::faulty(no_rule)).1, recorded, "{kind}: {request}");
        }
    }
}

#[test]
fn a_server_that_is_asked_all_the_same_is_not_heard() {
    let scene = Scene::faulty(&[r#"tools/call a: {"do": "status", "status": 503, "consumes": true}"#]);
    let mut client = scene.asks("", CALL);
    let mut server = scene.accept();
    server.takes_call();
    server.say(json(ANSWER));
    client.hears("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n");
    drop(client);
    assert_eq!(server.rest(), (String::new(), false));
    let lines = scene.ends_having_fired(&[1]);
    assert!(lines.contains(&format!("1 < message {ANSWER}")), "{lines:#?}");
}

#[test]
fn our_side_ends_behind_the_answer_and_the_client_is_heard() {
    let scene = Scene::faulty(&["tools/call a: half_close nth=1"]);
    let mut client = scene.asks("", CALL);
    let mut server = scene.accept();
    server.takes_call();
    server.say(json(ANSWER));
    assert_eq!(client.rest(), (format!("{JSON}{CHUNKED}{}0\r\n\r\n", chunk(ANSWER)), false));
    client.say(call("localhost"));
    server.takes_call();
    scene.ends_having_fired(&[1]);
}

#[test]
fn answers_are_what_they_are_said_to_be_and_the_connection_is_as_good_as_it_was() {
    let wrong = r#"{"jsonrpc":"2.0","id":987654321,"result":{}}"#;
    for (fault, expected) in [
        ("truncate bytes=9", told(JSON, &ANSWER[..9])),
        ("garbage text=<html>", told(JSON, "<html>")),
        ("wrong_id", told(JSON, wrong)),
        ("malformed_json", told(JSON, &format!("{}]", &ANSWER[..ANSWER.len() - 1]))),
        ("wrong_content_type", told(&JSON.replace("application/json", "text/html"), ANSWER)),
        ("missing_header name=content-type", told("HTTP/1.1 200 OK\r\n", ANSWER)),
        ("latency ms=1", told(JSON, ANSWER)),
        ("slow_start ms=1", told(JSON, ANSWER)),
    ] {
        let scene = Scene::faulty(&[&format!("tools/call a: {fault} nth=1")]);
        let mut client = scene.asks("", CALL);
        let mut server = scene.accept();
        server.takes_call();
        server.say(json(ANSWER));
        client.hears(&expected);
        client.say(call("localhost"));
        server.takes_call();
        server.say(json(ANSWER));
        client.hears(json(ANSWER));
        let lines = scene.ends_having_fired(&[1]);
        assert_eq!(lines.iter().filter(|line| line.ends_with(ANSWER)).count(), 2, "{fault}: {lines:#?}");
    }
}

#[test]
fn events_that_come_late_come_in_their_own_bytes() {
    let scene = Scene::faulty(&["tools/call a: latency ms=20"]);
    let mut client = scene.asks("", CALL);
    let mut server = scene.accept();
    server.takes_call();
    let events = [": hi\n\nid:1\ndata:1\n\n".to_owned(), format!("event: message\r\ndata: {ANSWER}\r\n\r\n")];
    server.say(STREAM.to_owned() + &chunk(&events.concat()) + &chunk(": bye") + "0\r\n\r\n");
    client.hears(STREAM);
    client.hears(chunk(&events[0]) + &chunk(&events[1]) + &chunk(": bye") + "0\r\n\r\n");
    scene.ends_having_fired(&[1]);
}

#[test]
fn a_server_that_ends_cuts_all_off_and_knows_nobody() {
    let scene = Scene::faulty(&["tools/call a: exit"]);
    let session = "Mcp-Session-Id: one\r\n";
    let (mut client, mut server) = scene.begun("one");
    let mut listening = scene.client();
    listening.say(format!("GET /mcp HTTP/1.1\r\nHost: localhost\r\n{session}\r\n"));
    let mut stream = scene.accept();
    stream.head();
    stream.say(STREAM.to_owned() + &chunk("data: 1\n\n"));
    listening.hears(STREAM.to_owned() + &chunk("data: 1\n\n"));
    let mut waiting = scene.asks(session, OTHER);
    let mut others = scene.accept();
    others.head();
    others.hears(OTHER);
    client.say(post(session, CALL));
    server.takes_call();
    server.say(json(ANSWER));
    for client in [&mut client, &mut listening, &mut waiting] {
        assert_eq!(client.rest(), (String::new(), false));
    }
    // The stream has nobody left; the call is still answered, for the recording.
    assert_eq!(stream.rest(), (String::new(), false));
    others.say(json(ANSWER));
    assert_eq!(others.rest(), (String::new(), false));
    assert!(scene.asks(session, OTHER).head().starts_with("HTTP/1.1 404 "));
    let lines = scene.ends_having_fired(&[1]);
    assert_eq!(lines.iter().filter(|line| line.ends_with(ANSWER)).count(), 3, "{lines:#?}");
}

#[test]
fn the_answers_of_old_servers_come_on_the_stream_of_their_client() {
    let scene = Scene::faulty(&[
        "tools/call a: wrong_id",
        r#"tools/call b: {"do": "error", "code": -1, "message": "no"}"#,
    ]);
    let mut listening = scene.client();
    listening.say("GET /sse HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let mut stream = scene.accept();
    stream.head();
    let endpoint = "event: endpoint\r\ndata: /messages?s=1\r\n\r\n";
    stream.say(STREAM.to_owned() + &chunk(endpoint));
    listening.hears(STREAM.to_owned() + &chunk(endpoint));
    let to_messages = |body: &str| post("", body).replace("/mcp", "/messages?s=1");
    let accepted = "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n";
    let mut client = scene.client();
    client.say(to_messages(CALL));
    let mut server = scene.accept();
    server.takes_call();
    server.say(accepted);
    client.hears(accepted);
    let other = chunk("event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}\n\n");
    stream.say(chunk(": ping\n\n") + &chunk(&format!("event: message\ndata: {ANSWER}\n\n")) + &other);
    let wrong = r#"{"jsonrpc":"2.0","id":987654321,"result":{}}"#;
    listening.hears(chunk(": ping\n\n") + &chunk(&format!("event: message\ndata: {wrong}\n\n")) + &other);
    client.say(to_messages(OTHER));
    client.hears(instead("HTTP/1.1 202 Accepted\r\n", "Accepted"));
    let error = r#"{"jsonrpc":"2.0","id":8,"error":{"code":-1,"message":"no"}}"#;
    listening.hears(chunk(&format!("event: message\ndata: {error}\n\n")));
    scene.ends_having_fired(&[1, 1]);
}

#[test]
fn a_client_that_leaves_is_seen_to_leave() {
    let scene = Scene::faulty(&["tools/call a: latency ms=1", "tools/call b: timeout"]);
    let modern = CALL
        .replace(r#""name""#, r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"name""#);
    let client = scene.asks("", &modern);
    let mut server = scene.accept();
    server.head();
    server.hears(&modern);
    drop(client);
    assert_eq!(server.rest(), (String::new(), false));
    // A legacy call goes on.
    let client = scene.asks("", CALL);
    let mut server = scene.accept();
    server.takes_call();
    drop(client);
    server.say(json(ANSWER));
    assert_eq!(server.rest(), (String::new(), false));
    drop(scene.asks("", OTHER));
    let lines = scene.end();
    assert!(lines.contains(&"1 > closed".to_owned()), "{lines:#?}");
    assert!(lines.contains(&format!("2 < message {ANSWER}")), "{lines:#?}");
}

#[test]
fn a_recording_with_faults_is_the_one_without() {
    let recorded = |faults: &[&str]| {
        let scene = if faults.is_empty() { Scene::new() } else { Scene::faulty(faults) };
        for body in [CALL, OTHER] {
            let mut client = scene.asks("", body);
            let mut server = scene.accept();
            server.head();
            server.hears(body);
            server.say(STREAM.to_owned() + &chunk(&format!("data: {PROGRESS}\n\n")));
            server.say(chunk(&format!("data: {ANSWER}\n\n")) + "0\r\n\r\n");
            client.rest_or_whole();
        }
        scene.end().into_iter().collect::<BTreeSet<_>>()
    };
    let plain = recorded(&[]);
    assert_eq!(plain, recorded(&["tools/call a: cut_after events=1", "tools/call b: reset_peer"]));
    assert_eq!(plain, recorded(&["tools/call a: garbage", "tools/call b: duplicate"]));
}

#[test]
fn a_response_that_has_the_wrong_type_already_passes_as_it_is() {
    let scene = Scene::faulty(&[
        r#"tools/call a: {"do": "wrong_content_type", "value": "application/json", "optional": true}"#,
    ]);
    let mut client = scene.asks("", CALL);
    let mut server = scene.accept();
    server.takes_call();
    let response = format!(
        "HTTP/1.1 200 OK\r\nX-First: 1\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{ANSWER}",
        ANSWER.len()
    );
    server.say(&response);
    client.hears(&response);
    scene.ends_having_fired(&[0]);
}

#[test]
fn a_body_that_is_cut_off_keeps_its_framing_where_no_fault_changes_it() {
    for (fault, fired) in
        [(r#""tool_error""#, 0), (r#""latency", "ms": 5"#, 1), (r#""truncate", "bytes": 1"#, 0)]
    {
        let scene = Scene::faulty(&[&format!(r#"tools/call a: {{"do": {fault}, "optional": true}}"#)]);
        let mut client = scene.asks("", CALL);
        let mut server = scene.accept();
        server.takes_call();
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"short\"";
        server.say(head);
        drop(server);
        let (heard, is_reset) = client.rest();
        // The server's connection has ended, and so does the client's.
        let heard = heard.replace("connection: close\r\n", "");
        assert_eq!((&*heard, is_reset), (head, false), "{fault}");
        scene.ends_having_fired(&[fired]);
    }
    // Where one does, the length is no longer true.
    let scene = Scene::faulty(&["tools/call a: wrong_content_type"]);
    let mut client = scene.asks("", CALL);
    let mut server = scene.accept();
    server.takes_call();
    server.say("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"short\"");
    drop(server);
    let (heard, _) = client.rest();
    assert!(heard.contains("text/html") && heard.contains("transfer-encoding: chunked"), "{heard}");
    scene.ends_having_fired(&[1]);
}

#[test]
fn a_request_whose_body_breaks_off_is_no_whole_one_for_the_server() {
    let scene = Scene::faulty(&[r#"tools/call a: {"do": "timeout", "optional": true}"#]);
    let mut client = scene.client();
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    client.say(head.to_owned() + &chunk("{\"half\"") + "zz\r\n");
    let mut server = scene.accept();
    let mut heard = Vec::new();
    // It may be reset, for it is not whole.
    let _ = server.0.read_to_end(&mut heard);
    assert!(!String::from_utf8_lossy(&heard).contains("0\r\n\r\n"), "{}", String::from_utf8_lossy(&heard));
    drop(client);
    scene.end();
}

/// Asks of all kinds, and answers; what is passed on to the server, and to the client.
fn all_kinds(scene: &Scene) -> (Vec<u8>, Vec<u8>) {
    let event = chunk(&format!("data: {}\n\n", ANSWER.replace('7', "8")));
    let get = "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept:text/event-stream \r\n\r\n".to_owned();
    let with_id = post("X-Request-Id:  abc\t\r\n", OTHER);
    let interim = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    let begins =
        json(&ANSWER.replace('7', "0")).replace("Content-Type", "MCP-Session-Id: one\r\nContent-Type");
    let in_session = |body| post("Mcp-Session-Id: one\r\n", body);
    let said = [
        (post("", INITIALIZE), begins, true),
        (in_session(CALL), format!("{interim}{}", json(ANSWER)), true),
        (with_id, format!("{JSON}X-Spaced:   a \t\r\nContent-Length: 2\r\n\r\n{{}}"), true),
        (in_session(OTHER), format!("{STREAM}{event}3;x=\"y\"\r\n: a\r\n0\r\nSum: 1\r\n\r\n"), true),
        (get, format!("{STREAM}{event}0\r\n\r\n"), true),
        (in_session(PROGRESS), "HTTP/1.1 202 Fine\r\ncontent-Length: 0\r\n\r\n".to_owned(), true),
        (in_session(CALL), format!("{JSON}Content-Length: 9\r\n\r\n{{"), false),
    ];
    let (mut asked, mut heard) = (Vec::new(), Vec::new());
    let mut client = scene.client();
    let mut server = None;
    for (request, answer, stays) in said {
        client.say(&request);
        let server = server.get_or_insert_with(|| scene.accept());
        let mut room = vec![0; request.len() + scene.upstream().len() - "localhost".len()];
        server.0.read_exact(&mut room).unwrap();
        asked.extend(room);
        server.say(&answer);
        match stays {
            true => {
                let mut room = vec![0; answer.len()];
                client.0.read_exact(&mut room).unwrap();
                heard.extend(room);
                assert!(heard.ends_with(answer.as_bytes()), "{}", heard.escape_ascii());
            }
            false => {
                server.0.shutdown(Shutdown::Write).unwrap();
                heard.extend(client.rest().0.into_bytes());
                assert!(heard.ends_with(answer.as_bytes()), "{}", heard.escape_ascii());
            }
        }
    }
    assert!(String::from_utf8_lossy(&asked).contains("X-Request-Id:  abc\t\r\n"));
    (asked, heard)
}

#[test]
fn where_no_fault_is_to_act_all_passes_byte_for_byte_and_is_told_of_all_the_same() {
    let told = |rules: &[&str], records: bool| {
        let mut options = self::faults(rules);
        let (says, events) = std::sync::mpsc::channel();
        options.happened = Some(Box::new(move |happened| {
            happened.into_iter().for_each(|event| drop(says.send(event)));
        }));
        let faults = Some(options);
        let scene = match records {
            true => Scene::with(|options| options.faults = faults),
            false => Scene::serving(|front, _| {
                let options = ReverseOptions { faults, ..ReverseOptions::default() };
                Box::new(move || all_told(front.pass(options)))
            }),
        };
        (scene, events)
    };
    let plain = Scene::new();
    let upstream = plain.upstream();
    let (asked, heard) = all_kinds(&plain);
    let recorded = plain.end();
    for records in [true, false] {
        let (scene, events) = told(&[], records);
        let own = scene.upstream();
        let (also_asked, also_heard) = all_kinds(&scene);
        let asked = String::from_utf8(asked.clone()).unwrap().replace(&upstream, &own);
        assert_eq!(String::from_utf8(also_asked).unwrap(), asked);
        assert_eq!(also_heard, heard);
        let (lines, report) = scene.end_with_report();
        assert_eq!(lines, if records { recorded.clone() } else { Vec::new() });
        let report = report.expect("one was asked for");
        assert_eq!((report.connections, report.sessions, report.verdict), (1, 1, Verdict::Good));
        let calls: Vec<_> = report.calls.iter().map(|(method, count)| (method.as_str(), *count)).collect();
        assert_eq!(calls, [("initialize", 1), ("notifications/progress", 1), ("tools/call", 4)]);
        let mut events: Vec<_> = events.iter().collect();
        events.sort_by_key(|event| event.seq);
        let short: Vec<String> = events
            .iter()
            .map(|event| {
                let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
                let session = event.session.map_or_else(|| "-".to_owned(), |session| session.to_string());
                let (key, id) = (or_dash(&event.key), or_dash(&event.correlation_id));
                format!("{session} {key} {id} {}", event.outcome.name())
            })
            .collect();
        assert_eq!(
            short,
            [
                "1 initialize @1 - answered",
                "1 tools/call a @1 - answered",
                "- tools/call b @1 abc unanswered",
                "1 tools/call b @2 - answered",
                "1 - - accepted",
                "1 tools/call a @2 - unanswered",
            ]
        );
    }
}
