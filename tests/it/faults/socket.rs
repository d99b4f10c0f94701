//! Faults over HTTP, as a client sees them at its socket: those of a replay, and those on live traffic with a server that
//! is a replay without any.

use std::{io::Read as _, net::TcpStream};

use tempfile::TempDir;

use super::{
    deck::{FIRST, PROGRESS, RECORDED, SECOND, deck, no_text, on_first},
    stage::{INITIALIZE, REPORT, SEARCH},
};
use crate::support::{
    front::Front,
    http::{Peer, chunk},
};

/// Which faults are seen at a socket by which test.
pub(super) const TESTED: &[(&str, fn())] = &[
    ("refuse", a_connection_is_reset_before_any_byte),
    ("reset_peer", a_connection_is_reset_in_the_answers_place),
    ("close_early", a_connection_is_closed_in_the_answers_place),
    ("cut_after", a_stream_is_cut_off_behind_so_much),
    ("half_close", our_side_ends_behind_the_answer_and_the_client_is_heard),
    ("exit", a_server_that_ends_leaves_its_clients),
    ("garbage", bodies_are_what_they_are_said_to_be),
    ("truncate", bodies_are_what_they_are_said_to_be),
    ("malformed_json", bodies_are_what_they_are_said_to_be),
    ("invalid_utf8", bodies_are_what_they_are_said_to_be),
    ("oversize", bodies_are_what_they_are_said_to_be),
    ("wrong_content_type", heads_are_what_they_are_said_to_be),
    ("missing_header", heads_are_what_they_are_said_to_be),
];

const JSON: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
const CHUNKED: &str = "transfer-encoding: chunked\r\n\r\n";
const STREAM: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// Who lets a fault act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Replay,
    Proxy,
    Record,
}

const ALL: [By; 3] = [By::Replay, By::Proxy, By::Record];

struct Deck {
    by: By,
    front: Option<Front>,
    /// The server, in live traffic.
    server: Option<Front>,
    session: String,
    folder: TempDir,
}

impl Deck {
    /// After the handshake.
    fn new(by: By, fault: &str) -> Self {
        let (folder, replay) = deck(fault);
        let mut arguments: Vec<&str> = replay.iter().map(String::as_str).collect();
        let recorded = folder.path().join(RECORDED).display().to_string();
        let mut server = None;
        if by != By::Replay {
            server = Some(Front::start(&["replay", arguments[1]], folder.path()));
            let url = &server.as_ref().expect("it was started").url;
            arguments = match by {
                By::Record => vec!["record", &recorded, "--url", url, "--fault", fault],
                _ => vec!["proxy", "--url", url, "--fault", fault],
            };
        }
        let front = Front::start(&arguments, folder.path());
        let mut deck = Self { by, front: Some(front), server, session: String::new(), folder };
        deck.initialize();
        deck
    }

    /// Begins a session; its head.
    fn initialize(&mut self) -> String {
        self.session.clear();
        let mut peer = self.asks(INITIALIZE);
        let head = peer.head();
        let id = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
        self.session = id.map(|id| format!("Mcp-Session-Id: {id}\r\n")).unwrap_or_default();
        head
    }

    fn host(&self) -> &str {
        &self.front.as_ref().expect("it runs").origin["http://".len()..]
    }

    fn request(&self, body: &str) -> String {
        format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nAccept: application/json, text/event-stream\r\n{}\
             Content-Length: {}\r\n\r\n{body}",
            self.host(),
            self.session,
            body.len()
        )
    }

    /// A client that has asked, on a connection of its own which it would use again.
    fn asks(&self, body: &str) -> Peer {
        let mut peer = Peer::new(TcpStream::connect(self.host()).expect("it listens"));
        peer.say(self.request(body));
        peer
    }

    /// A client that is not affected gets this answer.
    #[track_caller]
    fn answers(&self, answer: &str) {
        self.asks(SEARCH).hears(whole(answer));
    }

    fn ends_well(mut self) {
        self.front.take().expect("it runs").end();
        self.server.take().into_iter().for_each(Front::stop);
        if self.by == By::Record {
            let recorded = std::fs::read_to_string(self.folder.path().join(RECORDED));
            let recorded = recorded.expect("a cassette");
            let is_as_said = recorded.contains("\"initialize @1\"") && !recorded.contains("\"fault");
            assert!(is_as_said, "{recorded}");
        }
    }
}

/// A response that nothing has happened to.
fn whole(body: &str) -> String {
    format!("{JSON}content-length: {}\r\n\r\n{body}", body.len())
}

#[test]
fn a_connection_is_reset_before_any_byte() {
    for by in ALL {
        let deck = Deck::new(by, "tools/call search: {\"do\": \"refuse\", \"times\": 1}");
        assert_eq!(deck.asks(SEARCH).rest(), (String::new(), true));
        deck.answers(FIRST);
        deck.ends_well();
    }
}

#[test]
fn a_connection_is_reset_in_the_answers_place() {
    for by in ALL {
        let head = format!("{JSON}{CHUNKED}");
        for (fault, seen) in [
            ("reset_peer", String::new()),
            ("reset_peer bytes=0", head.clone()),
            ("reset_peer bytes=9", format!("{head}{}", chunk(&FIRST[..9]))),
        ] {
            let deck = Deck::new(by, &on_first(fault));
            assert_eq!(deck.asks(SEARCH).rest(), (seen, true), "{fault}");
            deck.answers(SECOND);
            deck.ends_well();
        }
    }
}

#[test]
fn a_connection_is_closed_in_the_answers_place() {
    for by in ALL {
        let head = format!("{JSON}{CHUNKED}");
        for (fault, seen) in
            [("close_early", head.clone()), ("close_early bytes=9", format!("{head}{}", chunk(&FIRST[..9])))]
        {
            let deck = Deck::new(by, &on_first(fault));
            assert_eq!(deck.asks(SEARCH).rest(), (seen, false), "{fault}");
            deck.answers(SECOND);
            deck.ends_well();
        }
    }
}

#[test]
fn a_stream_is_cut_off_behind_so_much() {
    for by in ALL {
        let event = chunk(&format!("event: message\ndata: {PROGRESS}\n\n"));
        for (fault, seen) in [
            ("cut_after events=0", STREAM.to_owned()),
            ("cut_after events=1", format!("{STREAM}{event}")),
            ("cut_after bytes=9", format!("{STREAM}{}", chunk("event: me"))),
        ] {
            let deck = Deck::new(by, &format!("tools/call report: {fault}"));
            assert_eq!(deck.asks(REPORT).rest(), (seen, false), "{fault}");
            deck.answers(FIRST);
            deck.ends_well();
        }
    }
}

#[test]
fn our_side_ends_behind_the_answer_and_the_client_is_heard() {
    // A recording of so much takes its time.
    for by in [By::Replay, By::Proxy] {
        let deck = Deck::new(by, &on_first("half_close"));
        let mut peer = deck.asks(SEARCH);
        let seen = format!("{JSON}{CHUNKED}{}0\r\n\r\n", chunk(FIRST));
        assert_eq!(peer.rest(), (seen, false));
        // Far more than any socket holds goes through: somebody reads.
        peer.say(deck.request(&(SEARCH.to_owned() + &" ".repeat(32 << 20))));
        assert_eq!(peer.rest(), (String::new(), false));
        deck.answers(SECOND);
        deck.ends_well();
    }
}

#[test]
fn a_server_that_ends_leaves_its_clients() {
    for by in ALL {
        let mut deck = Deck::new(by, &on_first("exit"));
        assert_eq!(deck.asks(SEARCH).rest(), (String::new(), false));
        assert!(deck.asks(SEARCH).head().starts_with("HTTP/1.1 404 "), "it knows nobody any more");
        deck.initialize();
        // A replay goes on; a real server begins anew.
        deck.answers(if by == By::Replay { SECOND } else { FIRST });
        deck.ends_well();
    }
}

#[test]
fn bodies_are_what_they_are_said_to_be() {
    for by in ALL {
        let said = |fault: &str| {
            let deck = Deck::new(by, &on_first(fault));
            let mut peer = deck.asks(SEARCH);
            let head = peer.head();
            let length = head.strip_prefix(&format!("{JSON}content-length: ")).expect("its length");
            let mut body = vec![0; length.trim().parse().expect("a number")];
            peer.0.read_exact(&mut body).expect("a body");
            // The connection is as good as it was.
            peer.say(deck.request(SEARCH));
            peer.hears(whole(SECOND));
            deck.ends_well();
            body
        };
        assert_eq!(said("garbage text=\"<html>\""), b"<html>");
        let noise = said("garbage bytes=100");
        assert_eq!((noise.len(), noise[0]), (100, 0xfe));
        assert_eq!(said("truncate bytes=20"), &FIRST.as_bytes()[..20]);
        assert_eq!(said("malformed_json"), format!("{}]", &FIRST[..FIRST.len() - 1]).into_bytes());
        assert_eq!(said("invalid_utf8"), no_text());
        let white = " ".repeat((1 << 20) - FIRST.len());
        assert!(
            said("oversize bytes=1048576") == format!("{}{white}}}", &FIRST[..FIRST.len() - 1]).into_bytes()
        );
    }
}

#[test]
fn heads_are_what_they_are_said_to_be() {
    for by in ALL {
        let deck = Deck::new(by, &on_first("wrong_content_type"));
        deck.asks(SEARCH).hears(whole(FIRST).replace("application/json", "text/html"));
        deck.answers(SECOND);
        deck.ends_well();
        let mut deck = Deck::new(by, "initialize: missing_header name=Mcp-Session-Id");
        assert!(deck.session.is_empty());
        let head = deck.initialize();
        assert!(head.starts_with(JSON) && !head.contains("mcp-session-id"), "{head}");
        deck.ends_well();
    }
}

#[test]
fn an_answer_that_comes_in_pieces_is_whole() {
    for by in ALL {
        let deck = Deck::new(by, &on_first("dribble chunks=2 ms=1"));
        let (one, two) = FIRST.split_at(FIRST.len() / 2);
        let mut peer = deck.asks(SEARCH);
        peer.hears(format!("{JSON}{CHUNKED}{}{}0\r\n\r\n", chunk(one), chunk(two)));
        peer.say(deck.request(SEARCH));
        peer.hears(whole(SECOND));
        deck.ends_well();
    }
}
