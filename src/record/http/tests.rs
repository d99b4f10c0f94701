//! What happened on lanes, told a line each, and what stands in the cassette because of it.

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
/// like; `.` is the end, `cut` and `reset` are others; `event …|data` is an event with its fields; `partial …` and
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
        "partial" => Payload::Partial(bytes(more)),
        "gap" => Payload::Gap { messages: 1 },
        "body" => {
            wire = Some(more);
            Payload::Body(bytes(more))
        }
        "event" => {
            let (fields, data) = more.split_once('|').unwrap();
            wire = Some(data);
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
            Payload::SseEvent(SseEvent { id: field("id"), event, retry, data: bytes(data) })
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

#[test]
fn sessions_are_told_apart_by_what_their_server_calls_them() {
    let (a, b) = (begun(1, "A"), begun(2, "B"));
    let ping = request(1, "ping");
    let mut lines: Vec<String> = [a, b].concat();
    for (lane, id) in [(3, "B"), (4, "A"), (5, "C")] {
        lines.push(format!("{lane} > POST /mcp mcp-session-id={id} mcp-protocol-version=2025-06-18"));
        lines.push(format!("{lane} > {ping}"));
    }
    // Equal ids, answered the other way round: each finds its own.
    for lane in [4, 3, 5] {
        let status = if lane == 5 { 404 } else { 200 };
        lines.push(format!("{lane} < {status} content-type=application/json"));
        lines.push(format!(r#"{lane} < {{"jsonrpc":"2.0","id":1,"result":{{"lane":{lane}}}}}"#));
        lines.push(format!("{lane} < ."));
    }
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    check(
        &lines,
        &[
            r#"1 initialize @1 {"headers": {"mcp-session-id": "<session-1>"}} | result"#,
            "1 ping @1 | result",
            r#"2 initialize @2 {"headers": {"mcp-session-id": "<session-2>"}} | result"#,
            "2 ping @2 | result",
            r#"3 ping @3 {"request": {"mcp-protocol-version": "2025-06-18"}, "status": 404} | result"#,
        ],
    );
    let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
    let (text, cassette, _) = record(&lines);
    assert!(!text.contains("\"A\"") && !text.contains("\"B\""), "{text}");
    let facts: Vec<_> = cassette
        .sessions
        .iter()
        .map(|session| {
            [&session.transport, &session.path, &session.protocol, &session.client, &session.server]
                .map(|fact| fact.clone().unwrap_or_default())
        })
        .collect();
    assert_eq!(facts[0], ["http", "/mcp", "2025-06-18", "c", "s 1"]);
    assert_eq!(facts[1], facts[0]);
    assert_eq!(facts[2], ["http", "/mcp", "", "", ""]);
}

#[test]
fn without_ids_requests_join_the_last_session_that_has_none() {
    let mut lines = begun(1, "");
    for line in [
        "2 > POST /mcp mcp-protocol-version=2025-06-18",
        r#"2 > {"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        "2 < 202",
        "2 < .",
        "3 > GET /mcp",
        "3 < 405",
        "3 < .",
        "4 > GET /.well-known/oauth-protected-resource",
        "4 < 404",
        "4 < .",
    ] {
        lines.push(line.to_owned());
    }
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    check(
        &lines,
        &[
            "1 initialize @1 | result",
            "1 notifications/initialized @1",
            r#"1 http GET /mcp @1 {"status": 405}"#,
            r#"2 http GET /.well-known/oauth-protected-resource @1 {"status": 404}"#,
        ],
    );
}

#[test]
fn what_fails_to_begin_a_session_stays_with_what_has_none() {
    let initialize = format!("1 > {INITIALIZE}");
    let second = initialize.replace("1 >", "3 >");
    let mut lines = vec![
        "1 > POST /mcp",
        &initialize,
        "1 < 401 www-authenticate=Bearer content-type=text/plain",
        "1 < body no",
        "1 < .",
        "2 > GET /.well-known/x",
        "2 < 200 content-type=text/plain",
        "2 < body y",
        "2 < .",
        "3 > POST /mcp authorization=x",
        &second,
        "3 < 200 content-type=application/json",
        r#"3 < {"jsonrpc":"2.0","id":0,"error":{"code":-32602,"message":"no"}}"#,
        "3 < .",
    ];
    let begun = begun(4, "A");
    lines.extend(begun.iter().map(String::as_str));
    check(
        &lines,
        &[
            r#"1 initialize @1 {"status": 401, "headers": {"www-authenticate": "Bearer", "content-type": "text/plain"}} | body "no" ! ended"#,
            r#"1 http GET /.well-known/x @1 {"status": 200, "headers": {"content-type": "text/plain"}} | body "y""#,
            r#"1 initialize @2 {"auth": true} | error"#,
            r#"2 initialize @3 {"headers": {"mcp-session-id": "<session-2>"}} | result"#,
        ],
    );
}

#[test]
fn modern_requests_share_the_session_without_a_beginning() {
    let modern = |id: u32| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list","params":{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{{"name":"m"}}}}}}}}"#
        )
    };
    let lines = [
        "1 > POST /mcp mcp-protocol-version=2026-07-28 mcp-method=tools/list".to_owned(),
        format!("1 > {}", modern(1)),
        "2 > POST /mcp mcp-protocol-version=2026-07-28 mcp-method=tools/list".to_owned(),
        format!("2 > {}", modern(1)),
        // One client leaves, and thereby cancels (F10.10).
        "1 > .".to_owned(),
        "2 < 200 content-type=text/event-stream".to_owned(),
        r#"2 < event |{"jsonrpc":"2.0","id":1,"result":{}}"#.to_owned(),
        "2 > .".to_owned(),
    ];
    let (_, cassette, _) = record(&lines);
    assert_eq!(cassette.sessions[0].protocol.as_deref(), Some("2026-07-28"));
    assert_eq!(cassette.sessions[0].client.as_deref(), Some("m"));
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    check(&lines, &["1 tools/list @1 ! cancelled", r#"1 tools/list @2 {"stream": true} | result"#]);
}

#[test]
fn headers_of_2026_07_28_are_told_where_they_do_not_say_what_the_message_says() {
    let call = r#"1 > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\u00e9","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
    for (headers, told) in [
        ("mcp-method=tools/call mcp-name==?base64?w6k=?=", ""),
        ("mcp-method=tools/list mcp-name==?base64?w6k=?=", r#"{"request": {"mcp-method": "tools/list"}} "#),
        (
            "mcp-method=tools/call mcp-method=x",
            r#"{"request": {"mcp-method": ["tools/call", "x"], "mcp-name": []}} "#,
        ),
    ] {
        let post = format!("1 > POST /mcp mcp-protocol-version=2026-07-28 {headers}");
        let answer = r#"1 < {"jsonrpc":"2.0","id":1,"result":{}}"#;
        let lines = [&*post, call, "1 < 200 content-type=application/json", answer, "1 > ."];
        check(&lines, &[&format!(r#"1 tools/call "é" @1 {told}| result"#)]);
    }
}

#[test]
fn only_what_is_not_as_usual_is_told_of_heads() {
    check_in_session(
        &[
            "1 > POST /mcp @S",
            r#"1 > {"jsonrpc":"2.0","method":"a"}"#,
            "1 < 202 date=x content-length=0",
            "1 < .",
            "2 > POST /other @S accept=*/* x-api-key=1 last-event-id=7",
            r#"2 > {"jsonrpc":"2.0","method":"b"}"#,
            "2 < 204",
            "2 < .",
            "3 > POST /mcp mcp-session-id=S",
            r#"3 > {"jsonrpc":"2.0","id":1,"method":"c"}"#,
            "3 < 200 x-one=a x-one= x-id=S",
            r#"3 < {"jsonrpc":"2.0","id":1,"result":{}}"#,
            "3 < .",
            "4 > OPTIONS /mcp",
            "4 < 202",
            "4 < .",
            "5 > POST /mcp @S",
            "5 > body a=1",
            "5 < 200 content-type=text/html",
            "5 < body <p>\\n</p>",
            "5 < .",
        ],
        &[
            "1 a @1",
            r#"1 b @1 {"path": "/other", "request": {"last-event-id": "7", "accept": "*/*"}, "auth": true, "status": 204}"#,
            r#"1 c @1 {"request": {"mcp-protocol-version": []}, "headers": {"content-type": [], "x-one": ["a", ""], "x-id": "<session-1>"}} | result"#,
            r#"1 http POST /mcp @1 {"status": 200, "headers": {"content-type": "text/html"}} | body {"$lines": ["<p>", "</p>"]}"#,
            "2 http OPTIONS /mcp @1",
        ],
    );
}

#[test]
fn what_comes_on_a_response_belongs_to_its_request() {
    check_in_session(
        &[
            "1 > POST /mcp @S",
            r#"1 > {"jsonrpc":"2.0","id":1,"method":"a"}"#,
            "2 > POST /mcp @S",
            r#"2 > {"jsonrpc":"2.0","id":2,"method":"b"}"#,
            "1 < 200 content-type=text/event-stream",
            "1 < event id=p retry=5 unnamed|",
            "1 < event event=ping|now",
            r#"1 < event event=odd|{"jsonrpc":"2.0","method":"not/for/us"}"#,
            // The token of the other request, and an id that is neither's.
            r#"1 < event |{"jsonrpc":"2.0","method":"notifications/message"}"#,
            r#"1 < event id=q|{"jsonrpc":"2.0","id":77,"result":{"of":"a"}}"#,
            "1 < .",
            "2 < 400 content-type=application/json",
            r#"2 < {"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}"#,
            "2 < .",
        ],
        &[
            r#"1 a @1 {"stream": true} | body "" | body "now" | body {"$json": {"jsonrpc": "2.0", "method": "not/for/us"}} | notification | result"#,
            r#"1 b @1 {"status": 400} | error"#,
        ],
    );
}

#[test]
fn a_server_request_is_answered_by_another_post() {
    check_in_session(
        &[
            "1 > POST /mcp @S",
            r#"1 > {"jsonrpc":"2.0","id":1,"method":"a"}"#,
            "1 < 200 content-type=text/event-stream",
            r#"1 < event |{"jsonrpc":"2.0","id":"x","method":"ask"}"#,
            r#"1 < event |{"jsonrpc":"2.0","id":"y","method":"ask"}"#,
            "2 > POST /mcp @S",
            r#"2 > {"jsonrpc":"2.0","id":"y","result":{}}"#,
            "2 < 202",
            "2 < .",
            "3 > POST /mcp @S",
            r#"3 > {"jsonrpc":"2.0","id":"x","result":{}}"#,
            "3 < 400 content-type=text/plain",
            "3 < body no",
            "3 < .",
            r#"1 < event |{"jsonrpc":"2.0","id":1,"result":{}}"#,
            "1 < .",
            "4 > POST /mcp @S",
            r#"4 > {"jsonrpc":"2.0","id":"z","result":{}}"#,
            "4 < 202",
            "4 < .",
        ],
        &[
            r#"1 a @1 {"stream": true} | request answered by result oddly | request answered by result | post body "no" | result"#,
            "1 raw @1",
        ],
    );
}

#[test]
fn a_get_stream_is_filed_as_stdio_is() {
    check_in_session(
        &[
            "1 > GET /mcp @S accept=text/event-stream",
            "1 < 200 content-type=text/event-stream",
            "1 < event unnamed id=0|",
            r#"1 < event |{"jsonrpc":"2.0","method":"notifications/early"}"#,
            "2 > POST /mcp @S",
            r#"2 > {"jsonrpc":"2.0","id":1,"method":"a","params":{"_meta":{"progressToken":"t"}}}"#,
            "3 > POST /mcp @S",
            r#"3 > {"jsonrpc":"2.0","id":2,"method":"b"}"#,
            r#"1 < event |{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t"}}"#,
            r#"1 < event |{"jsonrpc":"2.0","method":"notifications/guess"}"#,
            "2 < 202",
            "2 < .",
            // The answer comes here (F10.5).
            r#"1 < event |{"jsonrpc":"2.0","id":1,"result":{}}"#,
            "3 < 200 content-type=application/json",
            r#"3 < {"jsonrpc":"2.0","id":2,"result":{}}"#,
            "3 < .",
            r#"1 < event |{"jsonrpc":"2.0","method":"notifications/late"}"#,
            "4 > DELETE /mcp @S",
            "1 < .",
            "4 < 204",
            "4 < .",
        ],
        &[
            r#"1 http GET /mcp @1 {"status": 200, "stream": true} | body "" ! open"#,
            "1 push notifications/early @1 | get notification",
            r#"1 a @1 {"status": 202} | get notification | get result"#,
            "1 b @1 | get notification | result",
            "1 push notifications/late @1 | get notification",
            r#"1 http DELETE /mcp @1 {"status": 204}"#,
        ],
    );
}

#[test]
fn a_get_stream_says_how_it_ended() {
    for (end, http, why) in [
        ("1 > .", "", " ! open"),
        ("1 < .", "", ""),
        ("1 < cut", r#", "end": "cut""#, ""),
        ("1 < reset", r#", "end": "reset""#, ""),
        ("2 > GET /mcp @S", "", " ! open"),
    ] {
        let stream = format!(r#"1 http GET /mcp @1 {{"status": 200, "stream": true{http}}}{why}"#);
        let mut expected = vec![&*stream];
        if end.starts_with('2') {
            expected.push("1 http GET /mcp @2 ! open");
        }
        check_in_session(&["1 > GET /mcp @S", "1 < 200 content-type=text/event-stream", end], &expected);
    }
}

#[test]
fn a_stream_that_is_gone_on_with_belongs_to_its_request() {
    check_in_session(
        &[
            "1 > POST /mcp @S",
            r#"1 > {"jsonrpc":"2.0","id":1,"method":"a"}"#,
            "1 < 200 content-type=text/event-stream",
            "1 < event id=1 unnamed|",
            r#"1 < event id=2|{"jsonrpc":"2.0","method":"n"}"#,
            "1 < .",
            "2 > GET /mcp @S last-event-id=2",
            "2 < 200 content-type=text/event-stream",
            "2 < event id=2b unnamed|",
            r#"2 < event id=3|{"jsonrpc":"2.0","method":"n"}"#,
            "2 < cut",
            "3 > GET /mcp @S last-event-id=3",
            "3 < 200 content-type=text/event-stream",
            r#"3 < event id=4|{"jsonrpc":"2.0","id":1,"result":{}}"#,
            "3 < .",
            // What is answered is not gone on with: that is the session's own stream.
            "4 > GET /mcp @S last-event-id=4",
            "4 < 200 content-type=text/event-stream",
            r#"4 < event |{"jsonrpc":"2.0","method":"n"}"#,
            "4 < .",
        ],
        &[
            r#"1 a @1 {"stream": true} | body "" | notification | resume notification | resume result"#,
            r#"1 http GET /mcp @1 {"request": {"last-event-id": "2"}, "status": 200, "stream": true, "end": "cut"} | body """#,
            r#"1 http GET /mcp @2 {"request": {"last-event-id": "3"}, "status": 200, "stream": true}"#,
            r#"1 http GET /mcp @3 {"request": {"last-event-id": "4"}, "status": 200, "stream": true}"#,
            "1 push n @1 | get notification",
        ],
    );
}

#[test]
fn a_request_says_why_it_has_no_answer() {
    let stream = "1 < 200 content-type=text/event-stream";
    for (lines, http, why) in [
        (&["1 < 202", "1 < ."][..], r#" {"status": 202}"#, "ended"),
        (&[stream, "1 < ."], r#" {"stream": true}"#, "ended"),
        (&[stream, "1 < cut"], r#" {"stream": true, "end": "cut"}"#, "ended"),
        (
            &[stream, "1 < partial {\"jso", "1 < reset"],
            r#" {"stream": true, "end": "reset", "partial": "{\"jso"}"#,
            "ended",
        ),
        (&["1 < cut"], r#" {"end": "cut"}"#, "lost"),
        (&[stream], r#" {"stream": true}"#, "open"),
        (&["1 > ."], "", "open"),
        (&["1 > .", "1 < 500", "1 < ."], r#" {"status": 500}"#, "ended"),
    ] {
        let mut all = vec!["1 > POST /mcp @S", r#"1 > {"jsonrpc":"2.0","id":1,"method":"a"}"#];
        all.extend(lines);
        check_in_session(&all, &[&format!("1 a @1{http} ! {why}")]);
    }
    check_in_session(
        &[
            "1 > POST /mcp @S",
            r#"1 > {"jsonrpc":"2.0","id":1,"method":"a"}"#,
            "2 > POST /mcp @S",
            r#"2 > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
            "2 < 202",
            "2 < .",
        ],
        &["1 a @1 ! cancelled", "1 notifications/cancelled @1"],
    );
}

#[test]
fn what_was_not_recorded_is_not_made_up() {
    check(
        &[
            "1 > POST /mcp",
            r#"1 > {"jsonrpc":"2.0","id":1,"method":"a"}"#,
            "0 > gap",
            "1 < .",
            // Their heads are lost.
            r#"2 > {"jsonrpc":"2.0","id":5,"method":"b"}"#,
            r#"2 < event |{"jsonrpc":"2.0","id":5,"result":{}}"#,
            "3 < body <p>",
            "3 < .",
        ],
        &["1 a @1 ! lost", "1 b @1 | get result", r#"1 push raw @1 | get body "<p>""#],
    );
}

#[test]
fn a_new_recording_is_paired_with_the_old_one_by_what_it_asks() {
    let session = |text: &str| {
        let mut lines = begun(1, "S");
        for line in [
            "2 > GET /.well-known/x?a=1",
            "2 < 200 content-type=text/plain",
            "2 < body same",
            "2 < .",
            "3 > GET /.well-known/x?a=2",
            "3 < 200 content-type=text/plain",
            text,
            "3 < .",
        ] {
            lines.push(line.to_owned());
        }
        lines
    };
    let (text, _, blobs) = record(&session("3 < body old"));
    let noted = text.replacen(
        r#""key": "http GET /.well-known/x @2","#,
        "\"key\": \"mine\",\n      \"note\": \"why\",",
        1,
    );
    let base = Cassette::load(noted.into_bytes(), &blobs).unwrap();
    let header = JournalHeader {
        id: "new".to_owned(),
        transport: "http".to_owned(),
        replace: true,
        ..Default::default()
    };
    let mut recorder = Recorder::new(header);
    for (at, line) in (0..).zip(&session("3 < body new")) {
        recorder.event(&event(at * 9_000, line).0);
    }
    let text = recorder.finish(Some((&base, &blobs)), &mut MemoryBlobs::default()).unwrap();
    let cassette = Cassette::load(text, &blobs).unwrap();
    let keys: Vec<_> = cassette.exchanges.iter().map(|exchange| &*exchange.key).collect();
    assert_eq!(keys, ["initialize @1", "http GET /.well-known/x @1", "mine"]);
    let times = |cassette: &Cassette| cassette.exchanges[1].server[0].after_ms;
    assert_eq!(times(&cassette), times(&base), "what is the same keeps its time");
    assert_eq!(cassette.sessions.len(), base.sessions.len());
    assert!(String::from_utf8_lossy(&cassette.text).contains("\"note\": \"why\""));
}

#[test]
fn a_recorder_that_was_killed_loses_what_was_open() {
    let mut fold =
        crate::record::Fold::new(JournalHeader { transport: "http".to_owned(), ..Default::default() });
    let place = crate::cassette::journal::FramePlace { at: 0, len: 0 };
    for line in ["1 > POST /mcp", r#"1 > {"jsonrpc":"2.0","id":1,"method":"a"}"#, "2 > GET /mcp"] {
        fold.event(&event(0, line).0, place);
    }
    let tape = fold.finish();
    let why: Vec<_> = tape.sessions[0].exchanges.iter().map(|exchange| exchange.unanswered).collect();
    assert_eq!(why, [Some(crate::cassette::model::Unanswered::Lost); 2]);
}

#[test]
fn an_endpoint_event_begins_a_session() {
    let initialize = format!("2 > {INITIALIZE}");
    let initialized = format!("1 < event |{INITIALIZED}");
    let lines = [
        "1 > GET /sse?k=1 accept=text/event-stream",
        "1 < 200 content-type=text/event-stream",
        "1 < event event=endpoint|<origin>/base/messages/?session_id=ab%2F1&x=1",
        "2 > POST /base/messages/?session_id=ab%2F1&x=1",
        &initialize,
        &initialized,
        "2 < 202 content-type=text/plain",
        "2 < body Accepted",
        "2 < .",
        "3 > POST /base/messages/?session_id=ab%2F1&x=1",
        r#"3 > {"jsonrpc":"2.0","id":1,"method":"a"}"#,
        "3 < 200 content-type=application/json",
        r#"3 < {"jsonrpc":"2.0","id":1,"result":{}}"#,
        "3 < .",
        r#"1 < event |{"jsonrpc":"2.0","method":"n"}"#,
        "4 > POST /base/messages/?session_id=other&x=1",
        r#"4 > {"jsonrpc":"2.0","id":1,"method":"a"}"#,
        "4 < 404",
        "4 < .",
        "5 > POST /base/messages/?session_id=ab%2F1&x=1",
        r#"5 > {"jsonrpc":"2.0","id":2,"method":"a"}"#,
        "1 < .",
    ];
    check(
        &lines,
        &[
            r#"1 http GET /sse @1 {"status": 200, "stream": true} | body "<origin>/base/messages/?session_id=<session-1>&x=1""#,
            r#"1 initialize @1 {"status": 202, "headers": {"content-type": "text/plain"}} | result | post body "Accepted""#,
            "1 a @1 | post result",
            "1 push n @1 | notification",
            "1 a @2 ! ended",
            r#"2 a @3 {"status": 404} ! ended"#,
        ],
    );
    let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
    let (_, cassette, _) = record(&lines);
    let session = &cassette.sessions[0];
    let facts = [&session.transport, &session.path, &session.protocol, &session.server];
    assert_eq!(facts.map(|fact| fact.as_deref().unwrap_or("")), ["sse", "/sse?k=1", "2025-06-18", "s 1"]);
}

#[test]
fn texts_of_several_lines_come_back() {
    let pretty = r#"{\n  "jsonrpc": "2.0",\n  "id": 1,\n  "result": {}\n}"#;
    for body in
        [pretty.to_owned(), format!("{pretty}\\n"), r#"{"jsonrpc":"2.0",\n"id":1,"result":{}}"#.to_owned()]
    {
        let answer = format!("1 < {body}");
        check_in_session(
            &[
                "1 > POST /mcp @S",
                r#"1 > {"jsonrpc":"2.0","id":1,"method":"a"}"#,
                "1 < 200 content-type=application/json",
                &answer,
                "1 < .",
            ],
            &["1 a @1 | raw"],
        );
    }
    let (text, cassette, blobs) = record(&[
        "1 > POST /mcp".to_owned(),
        r#"1 > {"jsonrpc":"2.0","id":1,"method":"a"}"#.to_owned(),
        "1 < 200 content-type=application/json".to_owned(),
        format!("1 < {pretty}"),
    ]);
    assert!(
        text.contains(r#""raw": {"$json": {"jsonrpc": "2.0", "id": 1, "result": {}}, "$indent": 2}"#),
        "{text}"
    );
    // The id can be another one.
    let mut wire = Vec::new();
    let message = &cassette.exchanges[0].server[0].message;
    cassette.wire(0, false, message, Some(b"\"x\""), &blobs, &mut wire).unwrap();
    assert_eq!(jsonrpc::Message::read(&wire).id(), Some(&b"\"x\""[..]));
}

#[test]
fn hostile_heads_are_written_as_what_loads() {
    let lines =
        ["1 > G\u{e9}T /a\u{7f}b\u{1}", "1 < 999 x\u{1}=a y=\u{1}\u{7f} z=a\rb", "1 < ."].map(str::to_owned);
    let (text, cassette, _) = record(&lines);
    assert_eq!(cassette.exchanges.len(), 1, "{text}");
    assert!(text.contains(r#""status": 999"#) && !text.contains("\"x"), "{text}");
}
