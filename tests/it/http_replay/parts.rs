//! Requests that the recorded server did not wait for: it cut them off in the middle, or answered without the rest.

use std::net::TcpListener;

use crate::support::{
    http::STREAM,
    program::{assert_good_verdict, tapedeck},
};

use super::*;

/// What is asked: the beginning, and the rest that the server never gets.
const BEGINNING: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"up","arguments":{"password":"correct-horse-4","text":"first "#;
const REST: &str = r#"and last"}}}"#;
const REFUSAL: &str = "HTTP/1.1 413 Payload Too Large\r\nContent-Type: text/plain\r\nContent-Length: 7\r\nConnection: close\r\n\r\ntoo big";

#[derive(Clone, Copy, Debug)]
enum Framing {
    Length,
    Chunks,
}

impl Framing {
    /// A request whose body comes in these pieces, of which perhaps more would come.
    fn request(self, pieces: &[&str], is_whole: bool) -> String {
        let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: application/json, text/event-stream\r\n";
        let all = pieces.concat();
        match self {
            Self::Length => {
                let length = if is_whole { all.len() } else { all.len() + REST.len() };
                format!("{head}Content-Length: {length}\r\n\r\n{all}")
            }
            Self::Chunks => {
                let end = if is_whole { "0\r\n\r\n" } else { "" };
                let chunks: String = pieces.iter().map(|piece| chunk(piece)).collect();
                format!("{head}Transfer-Encoding: chunked\r\n\r\n{chunks}{end}")
            }
        }
    }
}

/// What a client hears that says no more than this: status, body, and whether that is cut off by a reset.
fn hears(origin: &str, request: &str) -> (String, String, bool) {
    let mut peer = Peer::new(TcpStream::connect(&origin["http://".len()..]).expect("it listens"));
    peer.say(request);
    let (said, reset) = peer.rest();
    let (head, body) = said.split_once("\r\n\r\n").unwrap_or((&said, ""));
    (head.lines().next().unwrap_or_default().to_owned(), body.to_owned(), reset)
}

/// Records a server that answers the beginning of a request with this and then resets, or ends the connection. What its
/// client hears, and the folder with the cassette.
fn record(request: &str, beginning: &str, answer: &str, resets: bool) -> ((String, String, bool), TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("c.json");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let front = Front::start(&["record", path.to_str().expect("text"), "--url", &url], folder.path());
    let (beginning, answer) = (beginning.to_owned(), answer.to_owned());
    let server = std::thread::spawn(move || {
        let mut server = Peer::new(listener.accept().expect("a client").0);
        server.reads_to(&beginning);
        server.say(answer);
        if resets {
            return server.reset();
        }
        server.0.shutdown(std::net::Shutdown::Write).expect("it is open");
        let _ = server.0.read_to_end(&mut Vec::new());
    });
    let heard = hears(&front.origin, request);
    server.join().expect("it served");
    front.end();
    (heard, folder)
}

/// Asks a replay of each of these, one after the other, and has it end well.
fn replay(folder: &TempDir, requests: &[String]) -> Vec<(String, String, bool)> {
    let path = folder.path().join("c.json");
    let report = folder.path().join("reports/");
    let arguments = ["replay", path.to_str().expect("text"), "--report", report.to_str().expect("text")];
    let front = Front::start(&arguments, folder.path());
    let heard = requests.iter().map(|request| hears(&front.origin, request)).collect();
    front.end();
    assert_good_verdict(&report);
    heard
}

/// However a server ends a request that has not come whole, a replay ends it so, whether or not its rest comes.
#[test]
fn a_request_that_was_cut_off_is_cut_off_as_soon_as_so_much_of_it_has_come() {
    for framing in [Framing::Length, Framing::Chunks] {
        for answer in
            ["", "HTTP/1.1 200 O", STREAM, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{\"a\"", REFUSAL]
        {
            for resets in [false, true] {
                let what = format!("{framing:?} {answer:?} {resets}");
                let asked = framing.request(&[BEGINNING], false);
                if resets && !answer.is_empty() {
                    // What a reset overtakes is for the system to say.
                    continue;
                }
                let (heard, folder) = record(&asked, BEGINNING, answer, resets);
                assert_eq!(heard.2, resets, "{what}");
                let text = fs::read_to_string(folder.path().join("c.json")).expect("a cassette");
                assert!(
                    text.contains("\"partial\": true") && text.contains("\"http POST /mcp @1\""),
                    "{text}"
                );
                assert!(!text.contains("correct-horse") && text.matches("\"key\"").count() == 1, "{text}");
                // Its id is another one, it goes on, or it is spelled in another way.
                let other = BEGINNING.replace("\"id\":7", "\"id\": \"other\"").replace(":{", ": {");
                let requests = [
                    asked,
                    framing.request(&[&other], false),
                    framing.request(&[BEGINNING, REST], true),
                    Framing::Length.request(&[&BEGINNING[..50], &BEGINNING[50..], REST], true),
                ];
                let expected = match answer {
                    // Of a head that has no end nothing is passed on.
                    "HTTP/1.1 200 O" => (String::new(), String::new(), false),
                    _ => heard,
                };
                for heard in replay(&folder, &requests) {
                    assert_eq!(unchunked(heard), unchunked(expected.clone()), "{what}");
                }
                let path = folder.path().join("c.json");
                let checked = tapedeck(&["fmt", "--check", path.to_str().expect("text")]);
                assert!(checked.status.success(), "{what}: {checked:?}");
            }
        }
    }
}

/// What was answered before anything of its body had come is answered so, also to a client that waits to be told to go on,
/// and no request without a body is.
#[test]
fn a_request_that_was_answered_at_its_head_is_answered_there() {
    let head = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: application/json, text/event-stream\r\n";
    for (framing, expects) in [
        ("Content-Length: 5000\r\n", "Expect: 100-continue\r\n"),
        ("Content-Length: 5000\r\n", ""),
        ("Transfer-Encoding: chunked\r\n", ""),
    ] {
        for answer in ["", STREAM, REFUSAL] {
            let what = format!("{framing:?} {expects:?} {answer:?}");
            let asked = format!("{head}{framing}{expects}\r\n");
            let (heard, folder) = record(&asked, "\r\n\r\n", answer, false);
            let text = fs::read_to_string(folder.path().join("c.json")).expect("a cassette");
            assert!(text.contains(r#""body": "", "partial": true"#), "{what}: {text}");
            assert_eq!(text.contains(r#"{"content-length": "5000"}"#), framing.contains("5000"), "{text}");
            for said in replay(&folder, &[asked.clone(), asked]) {
                assert_eq!(said, heard, "{what}");
            }
            let path = folder.path().join("c.json");
            let checked = tapedeck(&["fmt", "--check", path.to_str().expect("text")]);
            assert!(checked.status.success(), "{what}: {checked:?}");
        }
    }
    let (_, folder) = record(&format!("{head}Content-Length: 5000\r\n\r\n"), "\r\n\r\n", REFUSAL, false);
    let path = folder.path().join("c.json");
    let front = Front::start(&["replay", path.to_str().expect("text")], folder.path());
    let close = "Connection: close\r\n";
    let (status, text, _) = hears(&front.origin, &format!("{head}{close}Content-Length: 0\r\n\r\n"));
    assert!(status.contains(" 400 ") && text.contains("no JSON-RPC message"), "{status} {text}");
    // One that goes on is none that stopped, however soon its first piece comes.
    let whole = [BEGINNING, REST].concat();
    let other = format!("{head}{close}Content-Length: {}\r\n\r\n{whole}", whole.len());
    let (_, text, _) = hears(&front.origin, &other);
    assert!(text.contains("never recorded"), "{text}");
    front.end_with(1);
}

/// A whole call that begins alike and was never made does not keep a part from what stops there, nor does the part keep the
/// call's answer from one that goes on.
#[test]
fn what_stops_is_the_part_and_what_goes_on_the_call() {
    let call = |text: &str| BEGINNING.replace("first ", text) + "\"}}}";
    let long = call(&"first ".repeat(20));
    let part = |key: &str| {
        format!(
            r#"{{"key": "{key}", "client": {{"http": "POST /mcp", "body": "{}", "partial": true}}, "http": {{"request": {{"content-length": "{}"}}, "status": 413}}, "server": [{{"body": "{key}"}}]}}"#,
            BEGINNING.replace('"', "\\\""),
            long.len()
        )
    };
    let whole = |key: &str, text: &str| {
        format!(
            r#"{{"key": "{key}", "client": {{"request": {{"id": 7, "method": "tools/call", "params": {{"name": "up", "arguments": {{"password": "correct-horse-4", "text": "{text}"}}}}}}}}, "server": [{{"result": {{"of": "{key}"}}}}]}}"#
        )
    };
    let cassette = cassette(
        &[whole("short", "first and"), whole("long", &"first ".repeat(20)), part("one"), part("two")]
            .join(","),
    );
    let deck = Deck::new(&cassette, &["--redact", "off"]);
    let session = format!("Mcp-Session-Id: {}\r\n", deck.initialize());
    let stops = |length: usize| {
        let mut peer = deck.connect();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nAccept: application/json, text/event-stream\r\n",
            deck.host()
        );
        peer.say(format!("{head}{session}Content-Length: {length}\r\n\r\n{BEGINNING}"));
        peer.rest().0
    };
    assert!(stops(long.len()).ends_with("one"));
    let (_, body, _) = deck.asks("POST /mcp", &session, &long);
    assert!(body.contains(r#"{"of":"long"}"#), "{body}");
    let (_, body, _) = deck.asks("POST /mcp", &session, &call("first and"));
    assert!(body.contains(r#"{"of":"short"}"#), "{body}");
    assert!(stops(long.len()).ends_with("two"));
    deck.ends_well();
}

/// Who writes it frames it anew.
fn unchunked((head, body, reset): (String, String, bool)) -> (String, String, bool) {
    (head, body.replace("4\r\n{\"a\"\r\n", "{\"a\""), reset)
}

/// A client that left in the middle was answered nothing, and nobody is answered that in its place.
#[test]
fn a_request_that_its_client_left_is_a_miss_that_names_it() {
    let part = |end: &str| {
        let body = BEGINNING.replace('"', "\\\"");
        cassette(&format!(
            r#"{{"key": "left", "client": {{"http": "POST /mcp", "body": "{body}", "partial": true}}, {end}}}"#
        ))
    };
    let deck = Deck::new(&part(r#""unanswered": "open""#), &[]);
    let session = format!("Mcp-Session-Id: {}\r\n", deck.initialize());
    let whole = [BEGINNING, REST].concat();
    let (_, body, _) = deck.asks("POST /mcp", &session, &whole);
    assert!(body.contains("never recorded") && body.contains("`left`"), "{body}");
    deck.front.expect("it runs").end_with(1);
    // One that differs in the part is none, and told the nearest.
    let deck = Deck::new(&part(r#""http": {"end": "cut"}, "unanswered": "lost""#), &[]);
    let session = format!("Mcp-Session-Id: {}\r\n", deck.initialize());
    let (_, body, _) = deck.asks("POST /mcp", &session, &whole.replace("first", "other"));
    assert!(body.contains("never recorded") && body.contains("`left`"), "{body}");
    deck.front.expect("it runs").end_with(1);
}

/// What was cut off and asked once more is answered then, in the order of the recording.
#[test]
fn a_request_that_came_again_is_answered_in_its_turn() {
    let part = format!(
        r#"{{"key": "cut", "client": {{"http": "POST /mcp", "body": "{}", "partial": true}}, "http": {{"end": "cut"}}, "unanswered": "lost"}}"#,
        BEGINNING.replace('"', "\\\"")
    );
    let whole = r#"{"key": "whole", "client": {"request": {"id": 7, "method": "tools/call", "params": {"name": "up", "arguments": {"password": "correct-horse-4", "text": "first and last"}}}}, "server": [{"result": {}}]}"#;
    let body = [BEGINNING, REST].concat();
    for (exchanges, cuts) in [([&part, whole], [true, false, false]), ([whole, &part], [false, true, false])]
    {
        let deck = Deck::new(&cassette(&exchanges.join(",")), &["--redact", "off"]);
        let session = format!("Mcp-Session-Id: {}\r\n", deck.initialize());
        for (at, cut) in cuts.into_iter().enumerate() {
            let mut peer = deck.connect();
            peer.say(format!(
                "POST /mcp HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nAccept: application/json, text/event-stream\r\n\
                 {session}Content-Length: {}\r\n\r\n{body}",
                deck.host(),
                body.len()
            ));
            let (said, _) = peer.rest();
            assert_eq!(said.is_empty(), cut, "{at}: {said}");
            assert!(cut || said.contains("\"result\":{}"), "{said}");
        }
        deck.ends_well();
    }
}

/// A part that does not tell what it asks is no beginning of all that begins so.
#[test]
fn a_beginning_that_says_too_little_answers_only_what_stops_there() {
    let part = r#"{"key": "refused", "client": {"http": "POST /mcp", "body": "{\"jsonrpc\":\"2.0\"", "partial": true}, "http": {"status": 413}, "server": [{"body": "too big"}]}"#;
    let other =
        r#"{"key": "ping @1", "client": {"request": {"method": "ping"}}, "server": [{"result": {}}]}"#;
    let deck = Deck::new(&cassette(&[part, other].join(",")), &[]);
    let session = format!("Mcp-Session-Id: {}\r\n", deck.initialize());
    let (_, body, _) = deck.asks("POST /mcp", &session, r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    assert!(body.contains("\"result\""), "{body}");
    let mut peer = deck.connect();
    let head = format!("POST /mcp HTTP/1.1\r\nHost: {}\r\n{session}", deck.host());
    peer.say(format!("{head}Content-Length: 900\r\n\r\n{{\"jsonrpc\": \"2.0\""));
    let (said, _) = peer.rest();
    assert!(said.starts_with("HTTP/1.1 413 ") && said.ends_with("too big"), "{said}");
    assert!(said.contains("connection: close"), "{said}");
    deck.ends_well();
}

/// Two clients without a session ask at the same time with the same id, and the server refuses the one whose request is
/// not whole, or no JSON: each hears what was said to it.
#[test]
fn an_answer_to_what_is_no_request_is_not_that_of_a_call_with_the_same_id() {
    let answer = |status: &str, message: &str| {
        let length = message.len();
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{message}"
        )
    };
    let good = answer("200 OK", r#"{"jsonrpc":"2.0","id":7,"result":{"of":"whole"}}"#);
    let bad =
        answer("400 Bad Request", r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32700,"message":"broken"}}"#);
    let whole = Framing::Length.request(&[&BEGINNING.replace("first", "other"), REST], true);
    for (asked, taken) in [
        (Framing::Length.request(&[BEGINNING], false), BEGINNING),
        (Framing::Length.request(&[BEGINNING, REST], true).replace("tools/call\"", "tools/call:"), "}}}"),
        (Framing::Length.request(&[BEGINNING], false).replace(BEGINNING, ""), "\r\n\r\n"),
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("c.json");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
        let front = Front::start(&["record", path.to_str().expect("text"), "--url", &url], folder.path());
        let connects = |request: &str| {
            let mut peer =
                Peer::new(TcpStream::connect(&front.origin["http://".len()..]).expect("it listens"));
            peer.say(request);
            peer
        };
        let serves = |end: &str| {
            let mut server = Peer::new(listener.accept().expect("a client").0);
            server.reads_to(end);
            server
        };
        let (mut client, mut server) = (connects(&whole), serves(REST));
        let (mut other_client, mut other_server) = (connects(&asked), serves(taken));
        other_server.say(&bad);
        drop(other_server);
        assert_eq!(other_client.rest(), (bad.clone(), false));
        server.say(&good);
        drop(server);
        assert_eq!(client.rest(), (good.clone(), false));
        front.end();
        let body = |answer: &str| answer.split_once("\r\n\r\n").expect("a head").1.to_owned();
        let last = |request: &str| request.replacen("\r\n", "\r\nConnection: close\r\n", 1);
        let heard = replay(&folder, &[last(&whole), last(&asked)]);
        let expected = [("HTTP/1.1 200 OK", &good), ("HTTP/1.1 400 Bad Request", &bad)];
        assert_eq!(heard, expected.map(|(status, answer)| (status.to_owned(), body(answer), false)));
    }
}
