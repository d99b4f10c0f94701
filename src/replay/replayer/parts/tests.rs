//! What a request waits for at each point, and what it is then.

use std::sync::Arc;

use super::*;
use crate::{
    cassette::{blob::NoBlobs, model::Cassette},
    replay::{Input, Options, Output},
};

const WHOLE: &str = r#"{"key": "whole", "client": {"request": {"id": 1, "method": "tools/call", "params": {"name": "up", "arguments": {"text": "first and last"}}}}, "server": [{"result": {}}]}"#;
const EMPTY: &str = r#"{"key": "empty", "client": {"http": "POST /mcp"}, "http": {"status": 400}, "server": [{"body": "none"}]}"#;

/// The body of `WHOLE`, and the beginning of it that tells what it asks.
const BODY: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"up","arguments":{"text":"first and last"}}}"#;
const BEGINNING: &str =
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"up","arguments":{"text":"fir"#;

/// An exchange whose request came in part; `length` is what it told of the whole.
fn part(key: &str, body: &str, length: &str) -> String {
    let body = body.replace('"', "\\\"");
    let request = match length {
        "" => String::new(),
        length => format!(r#""request": {{"content-length": "{length}"}}, "#),
    };
    format!(
        r#"{{"key": "{key}", "client": {{"http": "POST /mcp", "body": "{body}", "partial": true}}, "http": {{{request}"status": 413}}, "server": [{{"body": "{key}"}}]}}"#
    )
}

struct Stage {
    replayer: Replayer,
    lanes: u32,
}

impl Stage {
    fn new(exchanges: &[&str]) -> Self {
        let text = format!(
            r#"{{"cassette": 1, "sessions": [{{"session": 1, "transport": "http", "path": "/mcp"}}], "exchanges": [{}]}}"#,
            exchanges.join(",")
        );
        let cassette = Arc::new(Cassette::load(text.into(), &NoBlobs).unwrap());
        let replayer = Replayer::new(cassette, Arc::new(NoBlobs), "c", Options::default()).unwrap();
        Self { replayer, lanes: 0 }
    }

    fn request<'a>(headers: &'a [(&'a str, &'a [u8])], body: &'a str, is_whole: bool) -> HttpRequest<'a> {
        HttpRequest {
            method: "POST",
            target: "/mcp",
            origin: "http://h",
            headers,
            body: body.as_bytes(),
            is_whole,
            opens_connection: true,
        }
    }

    /// Whether a request of this length is answered that has come so far.
    fn is_answered(&mut self, body: &str, length: &str, pace: Pace) -> bool {
        let headers = [("content-length", length.as_bytes())];
        let headers = if length.is_empty() { &headers[..0] } else { &headers };
        self.replayer.wants(&Self::request(headers, body, false), pace) == Wants::Nothing
    }

    /// At which pace it is answered.
    fn answered_at(&mut self, body: &str, length: &str) -> Option<Pace> {
        let paces = [Pace::Comes, Pace::Pauses, Pace::Stops];
        let at = paces.into_iter().find(|pace| self.is_answered(body, length, *pace));
        // What is answered at one is so at all that follow.
        let later = paces.into_iter().filter(|pace| at.is_some_and(|at| *pace >= at));
        assert!(later.into_iter().all(|pace| self.is_answered(body, length, pace)));
        at
    }

    /// What the client hears.
    fn hears(&mut self, body: &str, length: &str, is_whole: bool) -> String {
        self.lanes += 1;
        let headers =
            [("content-length", length.as_bytes()), ("accept", b"application/json, text/event-stream")];
        let request = Self::request(&headers, body, is_whole);
        self.replayer.handle(0, Input::Request { lane: Lane(self.lanes), request: &request });
        let outputs = std::iter::from_fn(|| self.replayer.poll(0));
        outputs
            .filter_map(|output| match output {
                Output::Head { head, .. } => Some(format!("{} ", head.status)),
                Output::Body { bytes, .. } => Some(String::from_utf8(bytes).unwrap()),
                _ => None,
            })
            .collect()
    }
}

fn length(body: &str) -> String {
    body.len().to_string()
}

#[test]
fn what_stops_behind_its_head_is_answered_then_and_nothing_that_goes_on_is() {
    let length = length(BODY);
    for recorded in [&length, ""] {
        let mut stage = Stage::new(&[&part("head", "", recorded), WHOLE, EMPTY]);
        assert_eq!(stage.answered_at("", &length), Some(Pace::Pauses));
        for cut in 1..BODY.len() {
            assert_eq!(stage.answered_at(&BODY[..cut], &length), None, "{cut}");
        }
        // Where it is whole before it can be refused, only a length tells that it is the one that was.
        if recorded == length {
            assert_eq!(stage.hears(BODY, &length, true), "413 head");
        }
        assert!(stage.hears(BODY, &length, true).starts_with("200 "), "what was recorded behind it");
        assert_eq!(stage.hears("", "0", true), "400 none", "no body is not the same as none so far");
        assert_eq!(stage.hears("", &length, false), "413 head");
        assert!(stage.replayer.report().misses.is_empty());
    }
    // Another length is another request.
    let mut stage = Stage::new(&[&part("head", "", "9000"), WHOLE]);
    assert_eq!(stage.answered_at("", &length), None);
    assert_eq!(stage.answered_at("", ""), Some(Pace::Pauses), "one that does not tell it may be any");
    assert_eq!(stage.answered_at("", "9012"), Some(Pace::Pauses), "ids are longer and shorter");
}

#[test]
fn a_whole_one_is_refused_as_the_head_of_one_as_long_was_in_its_turn() {
    let length = length(BODY);
    for beginning in ["", "{\"json"] {
        let mut stage = Stage::new(&[&part("head", beginning, &length)]);
        assert_eq!(stage.hears(BODY, &length, true), "413 head");
        assert_eq!(stage.hears(BODY, &length, true), "413 head", "and again");
        assert!(stage.replayer.report().misses.is_empty());
        for other in ["", "106", "9000"] {
            let mut stage = Stage::new(&[&part("head", beginning, other)]);
            assert!(stage.hears(BODY, &length, true).contains("-33000"), "{other}");
            assert_eq!(stage.replayer.report().misses.len(), 1);
        }
        let again = WHOLE.replace("whole", "again").replace("{}", "{\"again\":1}");
        let one = part("one", beginning, &length);
        let two = part("two", beginning, &length);
        for (exchanges, heard) in [
            (&[&*one, WHOLE][..], &["413 one", "200 {}", "200 {}"][..]),
            (&[WHOLE, &one, &again], &["200 {}", "413 one", "200 again", "200 again"]),
            (&[&one, WHOLE, &two], &["413 one", "200 {}", "413 two", "200 {}"]),
            // Another one as long is not this one.
            (&[WHOLE, &part("one", beginning, "9000")], &["200 {}", "200 {}"]),
            (&[&part("one", BEGINNING, &length), WHOLE], &["413 one", "200 {}"]),
        ] {
            let mut stage = Stage::new(exchanges);
            let said = heard.iter().map(|_| stage.hears(BODY, &length, true));
            let said = said.map(|said| match said.split_once("\"result\":") {
                Some((_, "{}}")) => "200 {}".to_owned(),
                Some(_) => "200 again".to_owned(),
                None => said,
            });
            assert_eq!(said.collect::<Vec<_>>(), heard, "{exchanges:?}");
            assert!(stage.replayer.report().misses.is_empty());
        }
    }
}

#[test]
fn whatever_is_posted_is_refused_as_its_head_was() {
    let notification = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let batch = format!("[{BODY}]");
    let initialize = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#;
    let noise = r#"{"jsonrpc":"2.0","id":9,"result":{}}"#;
    for (body, status) in [(notification, "202 "), (&batch, "200 "), (initialize, "200 "), (noise, "202 ")] {
        let length = length(body);
        let mut stage = Stage::new(&[&part("head", "", &length)]);
        assert_eq!(stage.hears(body, &length, true), "413 head", "{body}");
        let whole = format!(
            r#"{{"key": "whole", "client": {{"raw": "{}"}}, "server": [{{"id": 1, "result": {{}}}}]}}"#,
            body.replace('"', "\\\"")
        );
        let whole = if status == "202 " { whole.replace(r#"{"id": 1, "result": {}}"#, "") } else { whole };
        let mut stage = Stage::new(&[&part("head", "", &length), &whole]);
        assert_eq!(stage.hears(body, &length, true), "413 head", "{body}");
        let heard = stage.hears(body, &length, true);
        assert!(heard.starts_with(status), "{body} {heard}");
        let mut stage = Stage::new(&[&whole, &part("head", "", &length)]);
        assert!(stage.hears(body, &length, true).starts_with(status), "{body}");
    }
}

#[test]
fn what_may_be_a_whole_one_is_waited_for_until_it_stops() {
    let (length, long) = (length(BODY), "9000");
    for beginning in ["", "{\"json", BEGINNING] {
        let tells = beginning == BEGINNING;
        let soon = if tells { Pace::Comes } else { Pace::Pauses };
        // The whole one is left, and equally long; shorter than what comes; or nobody says.
        let mut stage = Stage::new(&[WHOLE, &part("part", beginning, &length)]);
        assert_eq!(stage.answered_at(beginning, &length), Some(Pace::Stops), "{beginning}");
        let mut stage = Stage::new(&[WHOLE, &part("part", beginning, long)]);
        assert_eq!(stage.answered_at(beginning, long), Some(soon), "{beginning}");
        assert_eq!(stage.answered_at(beginning, &length), None, "{beginning}");
        let mut stage = Stage::new(&[WHOLE, &part("part", beginning, "")]);
        for told in ["", &length, long] {
            assert_eq!(stage.answered_at(beginning, told), Some(Pace::Stops), "{beginning}");
        }
        // It was there, or was recorded later.
        assert!(stage.hears(BODY, &length, true).starts_with("200 "));
        assert_eq!(stage.answered_at(beginning, &length), Some(soon), "{beginning}");
        let mut stage = Stage::new(&[&part("part", beginning, &length), WHOLE]);
        assert_eq!(stage.answered_at(beginning, &length), Some(soon), "{beginning}");
        // Once more.
        assert_eq!(stage.hears(beginning, &length, false), "413 part");
        assert_eq!(stage.answered_at(beginning, &length), Some(Pace::Stops), "{beginning}");
        assert_eq!(stage.hears(beginning, &length, false), "413 part");
    }
    // A rule leaves out what may be longer.
    let ruled = WHOLE.replace("\"server\"", r#""match": {"ignore": ["/params/arguments/text"]}, "server""#);
    let mut stage = Stage::new(&[&ruled, &part("part", BEGINNING, long)]);
    assert_eq!(stage.answered_at(BEGINNING, long), Some(Pace::Stops));
}

#[test]
fn of_several_parts_each_is_answered_in_its_turn() {
    let length = length(BODY);
    let mut stage = Stage::new(&[WHOLE, &part("one", BEGINNING, &length), &part("two", BEGINNING, &length)]);
    assert_eq!(stage.hears(BEGINNING, &length, false), "413 one");
    assert_eq!(stage.hears(BEGINNING, &length, false), "413 two");
    assert_eq!(stage.hears(BEGINNING, &length, false), "413 two");
    assert!(stage.hears(BODY, &length, true).starts_with("200 "));
}

#[test]
fn of_several_parts_that_begin_alike_the_one_recorded_first_is_waited_for() {
    let length = length(BODY);
    for (short, soon) in [("", Pace::Pauses), ("{\"json", Pace::Pauses), (&BEGINNING[..90], Pace::Comes)] {
        let (longer, short_part) = (part("longer", BEGINNING, &length), part("short", short, &length));
        let mut stage = Stage::new(&[&longer, &short_part]);
        assert_eq!(stage.answered_at(short, &length), Some(Pace::Stops), "{short}");
        assert_eq!(stage.answered_at(BEGINNING, &length), Some(Pace::Comes), "{short}");
        assert_eq!(stage.hears(BEGINNING, &length, false), "413 longer");
        assert_eq!(stage.answered_at(short, &length), Some(soon), "{short}");
        assert_eq!(stage.hears(short, &length, false), "413 short");
        // One of another length is not meant, nor one that was recorded behind it.
        let mut stage = Stage::new(&[&part("longer", BEGINNING, "9000"), &short_part]);
        assert_eq!(stage.answered_at(short, &length), Some(soon), "{short}");
        let mut stage = Stage::new(&[&short_part, &longer]);
        assert_eq!(stage.answered_at(short, &length), Some(soon), "{short}");
        assert_eq!(stage.hears(short, &length, false), "413 short");
        assert_eq!(stage.answered_at(short, &length), Some(Pace::Stops), "once more");
    }
}

#[test]
fn what_was_recorded_without_a_body_is_no_less_whole() {
    let mut stage = Stage::new(&[EMPTY, &part("head", "", "500")]);
    assert_eq!(stage.answered_at("", "500"), Some(Pace::Pauses), "that has another length");
    let mut stage = Stage::new(&[EMPTY, &part("head", "", "")]);
    assert_eq!(stage.answered_at("", ""), Some(Pace::Stops));
    assert_eq!(stage.hears("", "", true), "400 none");
    assert_eq!(stage.answered_at("", ""), Some(Pace::Pauses));
    // A whole one is never what stops.
    let mut stage = Stage::new(&[&part("head", "", "")]);
    assert!(stage.hears("", "0", true).contains("no JSON-RPC message"));
    let mut stage = Stage::new(&[&part("short", "[{\"id\":", "")]);
    assert!(!stage.hears("[{\"id\":", "7", true).contains("short"));
}

#[test]
fn what_does_not_go_on_and_was_not_recorded_so_is_a_miss() {
    let mut stage = Stage::new(&[WHOLE, &part("part", BEGINNING, "9000")]);
    let told = stage.hears(&BODY[..BODY.len() - 2], &length(BODY), false);
    assert!(
        told.starts_with("408 tapedeck: `POST /mcp` stopped within its body, of which 105 of 107 "),
        "{told}"
    );
    assert!(told.contains("(nearest: `part`)"), "{told}");
    let report = stage.replayer.report();
    let [miss] = &report.misses[..] else { panic!("{report:?}") };
    assert_eq!((&*miss.method, miss.nearest.as_deref()), ("POST /mcp", Some("part")));
    // Nothing of it was used up.
    assert!(stage.hears(BODY, &length(BODY), true).starts_with("200 "));
    let mut stage = Stage::new(&[WHOLE]);
    assert!(stage.hears(BEGINNING, "", false).contains("of which 92 bytes came"));
}
