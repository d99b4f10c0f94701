//! What fuzzers call (`tests/fuzz`), called here with the seeds and with some thousand inputs made from them: always
//! the same ones, so that a failure comes again.

use std::{
    borrow::Cow,
    panic::{self, AssertUnwindSafe},
    path::Path,
};

use mcp_tapedeck::{
    cassette::{
        self,
        journal::{Encoder, JournalHeader},
    },
    record, redact, replay,
    traffic::{Direction, Event, Lane, Payload, RequestHead, ResponseHead, SseEvent},
    wire,
};

#[test]
fn scanner() {
    check("scanner", 3000, wire::fuzz::scanner);
}

#[test]
fn lines() {
    check("lines", 2000, wire::fuzz::lines);
}

#[test]
fn load() {
    check("load", 2000, cassette::fuzz::load);
}

#[test]
fn print() {
    check("print", 600, cassette::fuzz::print);
}

#[test]
fn journal() {
    check_with("journal", vec![a_journal()], 3000, cassette::fuzz::journal);
}

#[test]
fn keys() {
    check("keys", 3000, cassette::fuzz::keys);
}

#[test]
fn redactor() {
    check("redactor", 150, redact::fuzz::redactor);
}

#[test]
fn recording() {
    check("recording", 500, record::fuzz::recording);
}

#[test]
fn lanes() {
    check("lanes", 500, record::fuzz::lanes);
}

#[test]
fn replayer() {
    check("replayer", 1000, replay::fuzz::replayer);
}

#[test]
fn http() {
    check("http", 1000, replay::fuzz::http);
}

fn a_journal() -> Vec<u8> {
    let event = |at, payload| Event { at, direction: Direction::ToClient, lane: Lane(0), payload };
    let message = |line: &'static str| Payload::Message(Cow::Borrowed(line.as_bytes()));
    let mut encoder = Encoder::new(&JournalHeader { id: "6f1c2a000000".into(), ..Default::default() });
    encoder.event(&event(1, message(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#)));
    encoder.event(&event(300, Payload::Gap { messages: 3 }));
    encoder.event(&event(70_000, message("ready")));
    let headers = || vec![(b"accept"[..].into(), b"*/*"[..].into())];
    let (method, target) = (b"GET"[..].into(), b"/mcp?x=1"[..].into());
    let request = Payload::Request(RequestHead { method, target, headers: headers() });
    let response = Payload::Response(ResponseHead { status: 200, headers: headers() });
    let (id, data) = (Some(b"7"[..].into()), b"{}"[..].into());
    let sent = Payload::SseEvent(SseEvent { id, retry: Some(5), data, ..SseEvent::default() });
    let bare = Payload::SseEvent(SseEvent { retry: Some(5), no_data: true, ..SseEvent::default() });
    let body = Payload::Body(b"<p>"[..].into());
    for payload in [request, response, sent, bare, body, Payload::Broken { reset: true }] {
        encoder.event(&Event { lane: Lane(3), ..event(80_000, payload) });
    }
    encoder.event(&event(u64::MAX, Payload::Closed));
    encoder.end();
    encoder.bytes
}

/// `made` inputs come from the seeds: fewer where one takes long without optimisation.
fn check(target: &str, made: usize, call: fn(&[u8])) {
    check_with(target, Vec::new(), made, call);
}

fn check_with(target: &str, mut seeds: Vec<Vec<u8>>, made: usize, call: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/seeds").join(target);
    let mut paths: Vec<_> = match std::fs::read_dir(&folder) {
        Ok(entries) => entries.map(|entry| entry.expect("an entry is readable").path()).collect(),
        Err(_) => Vec::new(),
    };
    paths.sort();
    seeds.extend(paths.iter().map(|path| std::fs::read(path).expect("a seed is readable")));
    assert!(!seeds.is_empty(), "{} has no seeds", folder.display());
    let mut mutator = Mutator { seeds: &seeds, state: 0x9e37_79b9_7f4a_7c15 };
    let made = (0..made).map(|_| mutator.input());
    for input in seeds.iter().cloned().chain(std::iter::once(Vec::new())).chain(made) {
        if panic::catch_unwind(AssertUnwindSafe(|| call(&input))).is_err() {
            panic!("`{target}` does not come back from b\"{}\"", input.escape_ascii());
        }
    }
}

/// Makes inputs from seeds.
struct Mutator<'a> {
    seeds: &'a [Vec<u8>],
    state: u64,
}

/// What means something to one of the targets.
const WORDS: &[&[u8]] = &[
    b"\"",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\n",
    b"\r\n",
    b" ",
    b"null",
    b"0",
    b"-1e999",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\\u0000",
    b"\\ud83d",
    b"\xc3\xa9",
    b"{\"$lines\":[\"\"]}",
    b"{\"$json\":1,\"$indent\":2}",
    b"\"$literal\":",
    b"\"id\":null,",
    b"\"after\":\"",
    b" #1 answer",
    b" @2",
    b"\"jsonrpc\":\"2.0\",",
    b"[[[[[[[[",
    b"4294967295",
    b"password=hunter2hunter2",
    b"ghp_0123456789abcdefghijABCDEFGHIJ012345",
    b"<redacted:token-1>",
    b"\n<{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}\n",
    b"\n>",
    b"\n<",
    b"\nx0\n",
    b"\ng12\n",
    b"\"same_as\":\"",
    b"\"raw\":\"\"",
    b"\"result\":{}",
    b"\"session\":1,",
    b"\nq1POST /mcp mcp-session-id=S\n",
    b"\nr1200 content-type=text/event-stream\n",
    b"\ne1|endpoint|/m?session=a\n",
    b"\n.1\n",
    b" last-event-id=1",
];

impl Mutator<'_> {
    /// Xorshift: below `limit`, which is not 0.
    fn below(&mut self, limit: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 11) as usize % limit
    }

    fn input(&mut self) -> Vec<u8> {
        let mut input = self.seeds[self.below(self.seeds.len())].clone();
        // One change in most inputs: more of them seldom get past the first check.
        for _ in 0..[1, 1, 1, 2, 2, 5][self.below(6)] {
            self.change(&mut input);
        }
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.below(input.len() + 1);
        let to = (at + self.below(24)).min(input.len());
        match self.below(8) {
            0 if at < input.len() => input[at] ^= 1 << self.below(8),
            1 if at < input.len() => input[at] = self.below(256) as u8,
            2 => drop(input.drain(at..to)),
            3 => {
                let again = input[at..to].to_vec();
                let behind = self.below(input.len() + 1);
                input.splice(behind..behind, again);
            }
            4 => input.truncate(at),
            5 => {
                let other = &self.seeds[self.below(self.seeds.len())];
                let from = self.below(other.len() + 1);
                let length = self.below(200).min(other.len() - from);
                input.splice(at..to, other[from..from + length].iter().copied());
            }
            6 => drop(input.splice(at..to, WORDS[self.below(WORDS.len())].iter().copied())),
            _ => drop(input.splice(at..at, WORDS[self.below(WORDS.len())].iter().copied())),
        }
    }
}
