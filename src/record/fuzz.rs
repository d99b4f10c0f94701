//! What fuzzers call: any bytes, which must come back, with what holds for all of them.

use std::{borrow::Cow, cell::RefCell, collections::HashMap, io};

use super::{EMPTY, Plan, fold};
use crate::{
    cassette::{
        blob::{BlobSink, BlobSource},
        format,
        journal::{Encoder, JournalHeader, JournalReader},
        model::{Cassette, Moment},
        order::timeline,
    },
    traffic::{
        Direction, Event, Exit, Headers, Lane, Payload, RequestHead, ResponseHead, STDIO_TO_HTTP, SseEvent,
    },
    wire::{
        jsonrpc::{Kind, Message},
        lines::LineSplitter,
    },
};

/// Blobs in memory.
#[derive(Clone, Default)]
struct Blobs(RefCell<HashMap<String, Vec<u8>>>);

impl BlobSource for Blobs {
    fn get(&self, name: &str) -> io::Result<Vec<u8>> {
        self.0.borrow().get(name).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl BlobSink for Blobs {
    fn put(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.0.get_mut().insert(name.to_owned(), bytes.to_owned());
        Ok(())
    }
}

/// A session's lines, folded into a cassette: all come back, in their order. A line that begins with `>` is the
/// client's, one with `<` the server's; `p` is the server's unfinished last line, `o` a client's line over the limit,
/// `g` a gap, `x` the exit. If the first one begins with a digit, the server is on HTTP, and a digit is a line's lane.
pub fn recording(bytes: &[u8]) {
    let is_bridged = bytes.first().is_some_and(u8::is_ascii_digit);
    let transport = if is_bridged { STDIO_TO_HTTP } else { "stdio" }.to_owned();
    let header = JournalHeader { id: "6f1c2a000000".to_owned(), transport, ..Default::default() };
    let mut encoder = Encoder::new(&header);
    let mut lines = Vec::new();
    for (at, line) in (0..).zip(bytes.split(|byte| *byte == b'\n')) {
        let lane = line.first().filter(|byte| is_bridged && byte.is_ascii_digit());
        let line = &line[usize::from(lane.is_some())..];
        let lane = Lane(lane.map_or(0, |digit| u32::from(digit - b'0')));
        let Some((&kind, line)) = line.split_first() else { continue };
        let (direction, payload) = match kind {
            b'>' => (Direction::ToServer, Payload::Message(Cow::Borrowed(line))),
            b'<' => (Direction::ToClient, Payload::Message(Cow::Borrowed(line))),
            b'p' => (Direction::ToClient, Payload::Partial(Cow::Borrowed(line))),
            b'o' => (Direction::ToServer, oversize(line)),
            b'g' => (Direction::ToClient, Payload::Gap { messages: line.len() as u64 }),
            b'x' => {
                let status = line.first().map(|byte| i32::from(*byte));
                (Direction::ToClient, Payload::Exit(Exit { status, signal: None, by_itself: true }))
            }
            _ => continue,
        };
        if let Payload::Message(line) = &payload {
            lines.push((direction == Direction::ToServer, line.to_vec()));
        }
        encoder.event(&Event { at: at * 700, direction, lane, payload });
    }
    encoder.end();
    let journal = encoder.bytes;
    let mut blobs = Blobs::default();
    let text = add(EMPTY, &journal, &mut blobs);
    let shown = text.escape_ascii().to_string().replace("\\n", "\n");
    let cassette = Cassette::load(text.clone(), &blobs).unwrap_or_else(|error| panic!("{error}\n{shown}"));
    assert_eq!(format(&cassette), text, "a recording is formatted\n{shown}");
    assert_eq!(add(&text, &journal, &mut blobs), text, "folding twice changes nothing\n{shown}");
    let mut found = read(&cassette, &blobs);
    if cassette.sessions.len() > 1 {
        // A late answer stands with its session.
        found.sort();
        lines.sort();
    }
    let show = |lines: &[(bool, Vec<u8>)]| {
        let show = |(from_client, line): &(bool, Vec<u8>)| format!("{from_client} {}", line.escape_ascii());
        lines.iter().map(show).collect::<Vec<_>>()
    };
    assert_eq!(show(&found), show(&lines), "{shown}");
}

/// What happened on lanes of HTTP, folded into a cassette: it loads, is formatted, and all that was said comes back.
/// A line's first byte says what it is and the second on which lane: `q` and `r` a request's and a response's head
/// (method and target, or status, then headers `name=value`, a blank between), `>` and `<` a body, `e` an event
/// (its id, type and data, a bar between), `p` and `u` an unfinished body or event, `o` one over the limit, `.` the
/// end, `x` a reset, `c` the client's leaving.
pub fn lanes(bytes: &[u8]) {
    let header =
        JournalHeader { id: "6f1c2a000000".to_owned(), transport: "http".to_owned(), ..Default::default() };
    let mut encoder = Encoder::new(&header);
    for (at, line) in (0..).zip(bytes.split(|byte| *byte == b'\n')) {
        let [kind, lane, rest @ ..] = line else { continue };
        let Some((direction, payload)) = on_lane(*kind, rest) else { continue };
        encoder.event(&Event { at: at * 700, direction, lane: Lane(u32::from(*lane)), payload });
    }
    encoder.end();
    let journal = encoder.bytes;
    let mut blobs = Blobs::default();
    let text = add(EMPTY, &journal, &mut blobs);
    let shown = text.escape_ascii().to_string().replace("\\n", "\n");
    let cassette = Cassette::load(text.clone(), &blobs).unwrap_or_else(|error| panic!("{error}\n{shown}"));
    assert!(format(&cassette) == text, "a recording is formatted\n{shown}");
    assert!(add(&text, &journal, &mut blobs) == text, "folding twice changes nothing\n{shown}");
    for exchange in &cassette.exchanges {
        let answers = exchange.server.iter().filter_map(|item| Some(&item.answer.as_ref()?.message));
        let said = exchange.server.iter().map(|item| &item.message).chain(answers);
        let mut both = exchange.client.iter().chain(exchange.body.as_deref()).chain(said);
        assert!(
            both.all(|message| {
                let mut line = Vec::new();
                message.form == crate::cassette::model::Form::Omitted
                    || cassette.wire(exchange.session, true, message, None, &blobs, &mut line).is_ok()
            }),
            "{shown}"
        );
    }
}

fn on_lane(kind: u8, rest: &[u8]) -> Option<(Direction, Payload<'_>)> {
    let mut words = rest.split(|byte| *byte == b' ');
    let mut word = || words.next().unwrap_or_default();
    let whole = |body| {
        let is_message = Message::read(body).kind != Kind::Noise;
        if is_message { Payload::Message(Cow::Borrowed(body)) } else { Payload::Body(Cow::Borrowed(body)) }
    };
    let (to_server, to_client) = (Direction::ToServer, Direction::ToClient);
    Some(match kind {
        b'q' => {
            let (method, target) = (word().into(), word().into());
            (to_server, Payload::Request(RequestHead { method, target, headers: headers(words) }))
        }
        b'r' => {
            let status = std::str::from_utf8(word()).ok()?.parse().ok().filter(|status| *status >= 200)?;
            (to_client, Payload::Response(ResponseHead { status, headers: headers(words) }))
        }
        b'>' => (to_server, whole(rest)),
        b'<' => (to_client, whole(rest)),
        b'e' => {
            let mut fields = rest.splitn(3, |byte| *byte == b'|');
            let mut field = || fields.next().filter(|field| !field.is_empty()).map(Cow::Borrowed);
            let (id, event, data) = (field(), field(), field().unwrap_or_default());
            let no_data = data.is_empty() && rest.first() == Some(&b'|');
            (to_client, Payload::SseEvent(SseEvent { id, event, retry: None, data, no_data }))
        }
        b'p' => (to_server, Payload::Partial(rest.into())),
        b'u' => (to_client, Payload::Partial(rest.into())),
        b'o' => (to_client, oversize(rest)),
        b'.' => (to_client, Payload::Closed),
        b'x' => (to_client, Payload::Broken { reset: true }),
        b'c' => (to_server, Payload::Closed),
        _ => return None,
    })
}

fn headers<'a>(words: impl Iterator<Item = &'a [u8]>) -> Headers<'a> {
    let pair = |word: &'a [u8]| {
        let at = word.iter().position(|byte| *byte == b'=')?;
        Some((word[..at].into(), word[at + 1..].into()))
    };
    words.filter_map(pair).collect()
}

/// The cassette with a journal in it.
fn add(text: &[u8], journal: &[u8], blobs: &mut Blobs) -> Vec<u8> {
    let base = Cassette::load(text.to_vec(), blobs).expect("it was loaded or written before");
    let mut reader = JournalReader::new(journal).expect("the header was just written");
    let tapes = [fold(&mut reader, &|| true).expect("the journal is whole")];
    let (old, mut out) = (blobs.clone(), Vec::new());
    let journals = [journal.to_vec()];
    Plan::new(&base, &tapes).write(&mut &journals[..], &old, blobs, &mut out).expect("it is all in memory");
    out
}

fn oversize(line: &[u8]) -> Payload<'static> {
    let (mut splitter, mut found) = (LineSplitter::new(0), None);
    splitter.feed(&[line, b"x\n"].concat(), |line| {
        if let crate::wire::lines::Line::Oversize(line) = line {
            found = Some(line);
        }
    });
    Payload::Oversize(found.expect("a limit of nothing is passed"))
}

/// All messages in their order, those that were not over the limit.
fn read(cassette: &Cassette, blobs: &Blobs) -> Vec<(bool, Vec<u8>)> {
    let mut lines = Vec::new();
    for session in 0..cassette.sessions.len() as u32 {
        let exchanges: Vec<u32> = (0..cassette.exchanges.len() as u32)
            .filter(|&number| cassette.exchanges[number as usize].session == session)
            .collect();
        for at in timeline(cassette, &exchanges) {
            let exchange = &cassette.exchanges[at.exchange as usize];
            let (from_client, message) = match at.moment {
                Moment::Client => (true, exchange.client.as_ref()),
                Moment::Item(n) => (false, Some(&exchange.server[n as usize].message)),
                Moment::Answer(n) => {
                    (true, exchange.server[n as usize].answer.as_ref().map(|answer| &answer.message))
                }
            };
            let message = message.expect("a timeline has the moments there are");
            let mut line = Vec::new();
            if message.form != crate::cassette::model::Form::Omitted {
                let rebuilt = cassette.wire(session, from_client, message, None, blobs, &mut line);
                rebuilt.expect("it was printed from a line");
                lines.push((from_client, line));
            }
        }
    }
    lines
}
