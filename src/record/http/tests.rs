//! What happened on lanes, told a line each, and what stands in the cassette because of it.

mod heads;
mod own;
mod recordings;
mod responses;
mod sessions;
mod streams;

use std::borrow::Cow;

use crate::{
    cassette::{
        blob::MemoryBlobs,
        format,
        journal::JournalHeader,
        model::{Cassette, Exchange, Form, Message},
    },
    record::Recorder,
    traffic::{Direction, Event, Headers, Lane, Payload, RequestHead, ResponseHead, SseEvent},
    wire::{jsonrpc, scan},
};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","clientInfo":{"name":"c"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","serverInfo":{"name":"s","version":"1"}}}"#;

/// Reads one line: lane, arrow, what. Behind `>` stands `METHOD /target [name=value …]`, behind `<` a status and the
/// like; `.` is the end, `cut` and `reset` are others; `event …|data` is an event with its fields (`bare`: it has no
/// data; `again`: it is none of its own); `partial …` and
/// `body …` are what they say; all else is a message.
fn event(at: u64, line: &str) -> (Event<'_>, Option<&str>) {
    let (lane, rest) = line.split_once(' ').unwrap();
    let (arrow, what) = rest.split_once(' ').unwrap();
    let direction = if arrow == ">" { Direction::ToServer } else { Direction::ToClient };
    let headers = |text: &str| -> Headers<'static> {
        let pairs = text.split(' ').filter_map(|pair| pair.split_once('='));
        pairs
            .map(|(name, value)| (name.as_bytes().to_vec().into(), value.as_bytes().to_vec().into()))
            .collect()
    };
    let bytes = |text: &str| Cow::Owned(text.replace("\\n", "\n").into_bytes());
    let (word, more) = what.split_once(' ').unwrap_or((what, ""));
    let mut wire = None;
    let payload = match word {
        "." => Payload::Closed,
        "cut" => Payload::Broken { reset: false },
        "reset" => Payload::Broken { reset: true },
        "partial" => {
            wire = Some(more).filter(|_| direction == Direction::ToServer);
            Payload::Partial(bytes(more))
        }
        "gap" => Payload::Gap { messages: 1 },
        "body" => {
            wire = Some(more);
            Payload::Body(bytes(more))
        }
        "event" => {
            let (fields, data) = more.split_once('|').unwrap();
            wire = Some(data).filter(|_| !fields.contains("again"));
            let field = |name: &str| {
                let found = fields.split(' ').find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
                found.map(|value| Cow::Owned(value.as_bytes().to_vec()))
            };
            let retry = field("retry").map(|text| std::str::from_utf8(&text).unwrap().parse().unwrap());
            let event = if fields.contains("unnamed") {
                None
            } else {
                field("event").or(Some(b"message"[..].into()))
            };
            let no_data = fields.contains("bare");
            Payload::SseEvent(SseEvent { id: field("id"), event, retry, data: bytes(data), no_data })
        }
        _ if more.starts_with('/') => {
            let (target, more) = more.split_once(' ').unwrap_or((more, ""));
            let mut headers = headers(more);
            if !headers.iter().any(|(name, _)| &**name == b"accept") {
                headers.push((b"accept"[..].into(), b"application/json, text/event-stream"[..].into()));
            }
            let (method, target) = (word.as_bytes().to_vec().into(), target.as_bytes().to_vec().into());
            Payload::Request(RequestHead { method, target, headers })
        }
        _ if word.parse::<u16>().is_ok() => {
            Payload::Response(ResponseHead { status: word.parse().unwrap(), headers: headers(more) })
        }
        _ => {
            wire = Some(what);
            Payload::Message(bytes(what))
        }
    };
    (Event { at, direction, lane: Lane(lane.parse().unwrap()), payload }, wire)
}

/// The cassette's text. What went over the wire comes back, and the text is formatted.
fn record(lines: &[String]) -> (String, Cassette, MemoryBlobs) {
    let mut recorder = Recorder::new(JournalHeader { transport: "http".to_owned(), ..Default::default() });
    let mut sent = Vec::new();
    for (at, line) in (0..).zip(lines) {
        let (event, wire) = event(at * 1000, line);
        sent.extend(wire.map(|wire| wire.replace("\\n", "\n")));
        recorder.event(&event);
    }
    let mut blobs = MemoryBlobs::default();
    let text = recorder.finish(None, &mut blobs).unwrap();
    let shown = String::from_utf8(text.clone()).unwrap();
    let cassette = Cassette::load(text, &blobs).unwrap_or_else(|error| panic!("{error}\n{shown}"));
    assert_eq!(String::from_utf8(format(&cassette)).unwrap(), shown, "a recording is formatted");
    assert!(cassette.warnings.is_empty(), "{:?}", cassette.warnings);
    let mut found = Vec::new();
    for exchange in &cassette.exchanges {
        let mut add = |from_client, message: &Message| {
            let mut wire = Vec::new();
            cassette.wire(exchange.session, from_client, message, None, &blobs, &mut wire).unwrap();
            found.push(String::from_utf8(wire).unwrap());
        };
        let client = exchange.client.iter().filter(|message| message.form != Form::Http);
        client.chain(exchange.body.as_deref()).for_each(|message| add(true, message));
        for item in &exchange.server {
            add(false, &item.message);
            item.answer.iter().for_each(|answer| add(true, &answer.message));
        }
    }
    // An endpoint's address has a placeholder.
    found.retain(|text| !text.contains("<session-"));
    sent.retain(|text| !text.contains("/messages"));
    found.sort();
    sent.sort();
    assert_eq!(found, sent, "{shown}");
    (shown, cassette, blobs)
}

/// Each exchange in a line: its session, its key, its `http`, and its items; behind `!` why it has no answer.
#[track_caller]
fn check(lines: &[&str], expected: &[&str]) {
    let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
    let (shown, cassette, _) = record(&lines);
    let summary: Vec<_> = cassette.exchanges.iter().map(|exchange| summary(&cassette, exchange)).collect();
    assert_eq!(summary, expected, "{shown}");
}

fn summary(cassette: &Cassette, exchange: &Exchange) -> String {
    let member = |start: u32, name| {
        let value = scan::member(&cassette.text, start as usize, name).map(|span| span.of(&cassette.text))?;
        let text = String::from_utf8_lossy(value).split_whitespace().collect::<Vec<_>>().join(" ");
        Some(text.replace("{ ", "{").replace(" }", "}").replace("[ ", "[").replace(" ]", "]"))
    };
    let mut text = format!("{} {}", cassette.sessions[exchange.session as usize].number, exchange.key);
    text.push_str(if exchange.is_partial { " in part" } else { "" });
    if let Some(http) = member(exchange.place.start, "http") {
        text.push_str(&format!(" {http}"));
    }
    for item in &exchange.server {
        text.push_str(" | ");
        text.push_str(&item.on.map_or(String::new(), |on| format!("{} ", on.word())));
        text.push_str(item.message.form.word());
        if item.message.form == Form::Body {
            text.push_str(&format!(" {}", String::from_utf8_lossy(cassette.at(item.message.place))));
        }
        let answer = item.answer.as_ref();
        text.push_str(
            &answer.map_or(String::new(), |answer| format!(" answered by {}", answer.message.form.word())),
        );
        if answer.is_some_and(|answer| answer.http.is_some()) {
            text.push_str(" oddly");
        }
    }
    text.push_str(&exchange.unanswered.map_or(String::new(), |why| format!(" ! {}", why.word())));
    text
}

/// A session that begins, on the lane `lane`, and is called `id`.
fn begun(lane: u32, id: &str) -> Vec<String> {
    let id = if id.is_empty() { String::new() } else { format!(" mcp-session-id={id}") };
    vec![
        format!("{lane} > POST /mcp"),
        format!("{lane} > {INITIALIZE}"),
        format!("{lane} < 200 content-type=application/json{id}"),
        format!("{lane} < {INITIALIZED}"),
        format!("{lane} < ."),
    ]
}

/// The same as [`check`] behind a session called `S`, whose beginning is not expected again.
#[track_caller]
fn check_in_session(lines: &[&str], expected: &[&str]) {
    let begun = begun(99, "S");
    let all: Vec<&str> = begun.iter().map(String::as_str).chain(lines.iter().copied()).collect();
    let first = [r#"1 initialize @1 {"headers": {"mcp-session-id": "<session-1>"}} | result"#];
    let expected: Vec<&str> = first.into_iter().chain(expected.iter().copied()).collect();
    let all: Vec<String> = all
        .iter()
        .map(|line| line.replace(" @S", " mcp-session-id=S mcp-protocol-version=2025-06-18"))
        .collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    check(&all, &expected);
}

fn request(id: u32, method: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#)
}
