//! Faults over HTTP+SSE: a connection fault is one of the stream that the answer would come on, and what carried the
//! request is accepted all the same.

use std::{io::Read as _, net::TcpStream};

use tempfile::TempDir;

use super::{
    deck::{FIRST, deck_of, on_first},
    stage::{CASSETTE, INITIALIZE, SEARCH},
};
use crate::support::{
    front::Front,
    http::{Peer, chunk},
};

struct Deck {
    front: Front,
    stream: Peer,
    endpoint: String,
    _folder: TempDir,
}

impl Deck {
    /// After the handshake.
    fn new(fault: &str) -> Self {
        let cassette = CASSETTE.replace(r#""transport": "http", "path": "/mcp""#, r#""transport": "stdio""#);
        let (folder, arguments) = deck_of(&cassette, fault);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let front = Front::start(&arguments, folder.path());
        let mut stream = connect(&front);
        stream.say("GET /sse HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n");
        assert!(stream.head().starts_with("HTTP/1.1 200 "));
        let mut deck = Self { front, stream, endpoint: String::new(), _folder: folder };
        let event = deck.event();
        deck.endpoint = event.split("data: ").nth(1).expect("an endpoint").trim().to_owned();
        assert_eq!(deck.posts(INITIALIZE), ACCEPTED);
        assert!(deck.event().contains("\"id\":1,\"result\""));
        deck
    }

    /// The next event, as a chunk.
    fn event(&mut self) -> String {
        let mut text = String::new();
        while !text.ends_with("\n\n\r\n") {
            let mut byte = [0];
            self.stream.0.read_exact(&mut byte).expect("an event");
            text.push(char::from(byte[0]));
        }
        text
    }

    /// Posts a message; the status and body, or that the connection was reset before any.
    fn posts(&self, body: &str) -> String {
        let mut peer = connect(&self.front);
        peer.say(format!(
            "POST {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            self.endpoint,
            body.len()
        ));
        let (seen, reset) = peer.rest();
        match seen.split_once("\r\n\r\n") {
            Some((head, body)) => format!("{} {body}", &head[..12]),
            None if reset => format!("{seen}{RESET}"),
            None => seen,
        }
    }
}

const ACCEPTED: &str = "HTTP/1.1 202 Accepted";
const RESET: &str = "reset";

fn connect(front: &Front) -> Peer {
    Peer::new(TcpStream::connect(&front.origin["http://".len()..]).expect("it listens"))
}

fn event(text: &str) -> String {
    chunk(&format!("event: message\ndata: {text}\n\n"))
}

#[test]
fn the_stream_ends_in_the_answers_place() {
    for (fault, seen, reset) in [
        ("reset_peer", String::new(), true),
        ("reset_peer bytes=9", chunk("event: me"), true),
        ("close_early", String::new(), false),
        ("close_early bytes=9", chunk("event: me"), false),
        ("cut_after events=0", String::new(), false),
        ("cut_after events=1", event(FIRST), false),
        ("half_close", format!("{}0\r\n\r\n", event(FIRST)), false),
        ("exit", String::new(), false),
    ] {
        let mut deck = Deck::new(&on_first(fault));
        assert_eq!(deck.posts(SEARCH), ACCEPTED, "{fault}");
        assert_eq!(deck.stream.rest(), (seen, reset), "{fault}");
        deck.front.end();
    }
}

#[test]
fn what_carries_a_request_is_reset_or_accepted_and_the_next_one_is_served() {
    for (fault, seen) in [("refuse", RESET), ("timeout", ACCEPTED)] {
        let mut deck = Deck::new(&format!("tools/call search: {{\"do\": \"{fault}\", \"nth\": 1}}"));
        assert_eq!(deck.posts(SEARCH), seen, "{fault}");
        assert_eq!(deck.posts(SEARCH), ACCEPTED, "{fault}");
        assert_eq!(deck.event(), event(FIRST), "{fault}");
        drop(deck.stream);
        deck.front.end();
    }
}
