//! Answers whose clients left in their middle, or that were on their way when the recorder ended.

use std::net::TcpListener;

use crate::support::http::{CALL, STREAM};

use super::*;

const PART: &str = r#"{"jsonrpc":"2.0","id":7,"result":{"text":"as far as it "#;
const EVENT: &str = "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n";

/// When the recorder is told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    BehindItsClient,
    WithItsClient,
}

/// Records a server that says this to a request and then nothing; the folder with the cassette.
fn record(request: &str, answer: &str, heard: &str, ends: Ends) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("c.json");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let front = Front::start(&["record", path.to_str().expect("text"), "--url", &url], folder.path());
    let answer = answer.to_owned();
    let server = std::thread::spawn(move || {
        let mut server = Peer::new(listener.accept().expect("a client").0);
        let mut byte = [0];
        let mut taken = Vec::new();
        while !taken.windows(4).any(|window| window == b"\r\n\r\n") {
            server.0.read_exact(&mut byte).expect("a request");
            taken.push(byte[0]);
        }
        server.say(answer);
        let _ = server.0.read_to_end(&mut taken);
    });
    let mut client = Peer::new(TcpStream::connect(&front.origin["http://".len()..]).expect("it listens"));
    client.say(request);
    let mut said = String::new();
    while !said.ends_with(heard) {
        let mut byte = [0];
        client.0.read_exact(&mut byte).expect("what the server says");
        said.push(char::from(byte[0]));
    }
    if ends == Ends::BehindItsClient {
        drop(client);
        front.end();
    } else {
        front.end();
        drop(client);
    }
    server.join().expect("it served");
    folder
}

/// Whatever a client had of an answer stands in the cassette, and a replay says it and no more.
#[test]
fn what_had_come_of_an_answer_is_recorded_and_said_again() {
    let post = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{CALL}",
        CALL.len()
    );
    let put = "PUT /x HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\nContent-Length: 2\r\n\r\nab"
        .to_owned();
    let get = "GET /status HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n\r\n".to_owned();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
    let with_length = format!("{head}Content-Length: 5000\r\n\r\n{PART}");
    let to_end = format!("{head}\r\n{PART}");
    let stream = format!("{STREAM}{}{}", chunk(EVENT), chunk("id: 4\ndata: {\"json"));
    for (request, answer) in [
        (&post, &with_length),
        (&post, &to_end),
        (&post, &stream),
        (&put, &with_length),
        (&get, &with_length),
    ] {
        for ends in [Ends::BehindItsClient, Ends::WithItsClient] {
            let what = format!("{} {answer:?} {ends:?}", &request[..5]);
            let part = if *answer == stream { "id: 4\ndata: {\"json" } else { PART };
            let heard = if *answer == stream { "{\"json\r\n" } else { PART };
            let folder = record(request, answer, heard, ends);
            let path = folder.path().join("c.json");
            let text = fs::read_to_string(&path).expect("a cassette");
            let escaped = part.replace('"', "\\\"").replace('\n', "\\n");
            assert!(text.contains(&format!("\"partial\": \"{escaped}\"")), "{what}: {text}");
            assert!(text.contains(r#""unanswered": "open""#), "{what}: {text}");
            let front = Front::start(&["replay", path.to_str().expect("text")], folder.path());
            let mut client =
                Peer::new(TcpStream::connect(&front.origin["http://".len()..]).expect("it listens"));
            client.say(request);
            let head = client.head();
            assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{what}: {head}");
            if *answer == stream {
                client.hears(chunk(EVENT));
            }
            client.hears(chunk(part));
            // Where it is told to end, what has no end is cut off.
            front.end();
            assert_eq!(client.rest(), (String::new(), false), "{what}");
        }
    }
}
