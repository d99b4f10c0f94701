//! Which live secret stands for which recorded one, whatever stands before it.

use mcp_tapedeck::report::Reason;

use super::stage::{MODERN, SSE, STDIO, Stage, ask, begun};

/// A request that is no message, and the answer to it.
fn line(key: &str, asked: &str, answer: &str) -> String {
    format!(
        r#"{{"key": "{key}", "client": {{"http": "{asked}"}}, "http": {{"status": 200}}, "server": [{{"body": {{"$json": {answer}}}}}]}}"#
    )
}

fn message(key: &str, params: &str, answer: &str) -> String {
    format!(
        r#"{{"key": "{key}", "client": {{"request": {{"method": "m", "params": {params}}}}}, "server": [{{"result": {answer}}}]}}"#
    )
}

fn stage(exchanges: &[String]) -> Stage {
    Stage::new(MODERN, &exchanges.join(", "))
}

fn says(heard: &[String], answer: &str) -> bool {
    heard.iter().any(|heard| heard.contains(answer))
}

#[track_caller]
fn gets(stage: &mut Stage, target: &str, answer: &str) {
    let heard = stage.get(target, &[]);
    assert!(says(&heard, answer), "{target}: {heard:?}");
}

#[track_caller]
fn posts(stage: &mut Stage, headers: &[&str], params: &str, answer: &str) {
    let heard = stage.post(headers, &ask(7, "m", params));
    assert!(says(&heard, answer), "{params}: {heard:?}");
}

fn misses(stage: &Stage) -> Vec<Reason> {
    stage.report().misses.iter().map(|miss| miss.reason).collect()
}

/// The answer holds the first secret, the requests behind it others.
fn asked_behind_an_answer() -> [String; 4] {
    [
        line("a", "GET /a", r#"{"access_token": "<redacted:token-1>"}"#),
        line("x", "GET /x?access_token=<redacted:token-2>", r#""of x""#),
        line("y", "GET /y?access_token=<redacted:token-1>&z=<redacted:token-2>", r#""of y""#),
        message("m @1", r#"{"token": "<redacted:token-2>", "n": 1}"#, r#""of m""#),
    ]
}

#[test]
fn a_secret_pairs_by_its_place_whatever_answers_held_before_it() {
    let mut stage = stage(&asked_behind_an_answer());
    gets(&mut stage, "/a", "access_token");
    gets(&mut stage, "/x?access_token=mine1234", "of x");
    gets(&mut stage, "/x?access_token=mine1234", "of x");
    posts(&mut stage, &[], r#"{"n": 1, "token": "mine1234"}"#, "of m");
    stage.good();
    // What the answer said comes back: it is not what the client has of its own, although both have the number 1.
    let sent_back = |own: &str| format!("/y?access_token=%3Credacted%3Atoken-1%3E&z={own}");
    gets(&mut stage, &sent_back("<redacted:token-9>"), "404");
    assert_eq!(misses(&stage), [Reason::RedactionDiffers]);
    gets(&mut stage, &sent_back("mine1234"), "of y");
    assert_eq!(misses(&stage), [Reason::RedactionDiffers]);
}

#[test]
fn requests_pair_in_any_order() {
    let mut stage = stage(&asked_behind_an_answer());
    posts(&mut stage, &[], r#"{"token": "mine1234", "n": 1}"#, "of m");
    gets(&mut stage, "/x?access_token=mine1234", "of x");
    gets(&mut stage, "/a", "access_token");
    stage.good();
    gets(&mut stage, "/x?access_token=other1234", "404");
    posts(&mut stage, &[], r#"{"token": "other1234", "n": 1}"#, "redaction_differs");
    assert_eq!(misses(&stage), [Reason::RedactionDiffers; 2]);
    assert!(stage.report().misses.iter().all(|miss| miss.nearest.is_some()));
}

#[test]
fn of_requests_that_differ_in_secrets_alone_each_gets_its_own_answer() {
    let exchanges = [
        line("x @1", "GET /x?token=<redacted:token-1>", r#""one""#),
        line("x @2", "GET /x?token=<redacted:token-2>", r#""two""#),
        message("m @1", r#"{"token": "<redacted:token-1>"}"#, r#""m one""#),
        message("m @2", r#"{"token": "<redacted:token-2>"}"#, r#""m two""#),
    ];
    let mut stage = stage(&exchanges);
    for (token, answer) in
        [("first111", "one"), ("second22", "two"), ("first111", "one"), ("second22", "two")]
    {
        gets(&mut stage, &format!("/x?token={token}"), answer);
    }
    for (token, answer) in [("second22", "m two"), ("first111", "m one"), ("second22", "m two")] {
        posts(&mut stage, &[], &format!(r#"{{"token": "{token}"}}"#), answer);
    }
    stage.good();
    posts(&mut stage, &[], r#"{"token": "third333"}"#, "redaction_differs");
}

#[test]
fn what_url_headers_and_bodies_say_is_known_wherever_it_comes_again() {
    let exchanges = [
        line("a", "GET /a", r#"{"api_key": "<redacted:api-key-1>"}"#),
        // First in the address: that says of which kind it is.
        line("x", "GET /x?token=<redacted:token-1>", r#""of x""#),
        message("m @1", r#"{"note": "<redacted:token-1>"}"#, r#""of token""#),
        message("m @2", r#"{"note": "<redacted:authorization-3>"}"#, r#""of header""#),
        line("f", "POST /form", r#""of form""#),
        message("m @3", r#"{"note": "<redacted:secret-1>"}"#, r#""of secret""#),
    ];
    let mut stage = stage(&exchanges);
    let heard = stage.get("/x?token=shared99", &["x-api-key: shared99"]);
    assert!(says(&heard, "of x"), "{heard:?}");
    posts(&mut stage, &["authorization: Bearer header88"], r#"{"note": "shared99"}"#, "of token");
    posts(&mut stage, &["authorization: Bearer header88"], r#"{"note": "header88"}"#, "of header");
    let heard = stage.ask("POST", "/form", &[], "grant_type=x&client_secret=form7777");
    assert!(says(&heard, "of form"), "{heard:?}");
    posts(&mut stage, &[], r#"{"note": "form7777"}"#, "of secret");
    stage.good();
}

#[test]
fn a_client_that_looks_for_a_stream_is_answered_whatever_its_secret() {
    let refused =
        r#"{"key": "g", "client": {"http": "GET /mcp?token=<redacted:token-1>"}, "http": {"status": 410}}"#;
    let mut stage = stage(&[refused.to_owned(), message("m @1", "{}", "1")]);
    gets(&mut stage, "/mcp?token=first111", "410");
    gets(&mut stage, "/mcp?token=second22", "405");
    stage.good();
}

#[test]
fn the_target_of_a_message_is_known_to_it() {
    let exchanges = [message("m @1", r#"{"note": "<redacted:token-1>"}"#, r#""of m""#)];
    let mut stage = stage(&exchanges);
    let heard = stage.ask("POST", "/mcp?token=shared99", &[], &ask(7, "m", r#"{"note": "shared99"}"#));
    assert!(says(&heard, "of m"), "{heard:?}");
    stage.good();
}

#[test]
fn a_stream_goes_on_behind_an_event_whose_id_is_a_secret() {
    let jwt =
        |n: char| format!("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.{}", n.to_string().repeat(43));
    let goes_on = r#"{"key": "g", "client": {"http": "GET /mcp"},
      "http": {"request": {"last-event-id": "<redacted:jwt-5>"}, "status": 410}, "server": []}"#;
    let mut stage = stage(&[goes_on.to_owned()]);
    let heard = stage.get("/mcp", &[&format!("last-event-id: {}", jwt('a'))]);
    assert!(says(&heard, "410"), "{heard:?}");
    let heard = stage.get("/mcp", &["last-event-id: 7"]);
    assert!(!says(&heard, "410"), "{heard:?}");
}

#[test]
fn a_stream_of_http_and_sse_begins_with_whatever_secret() {
    let open = r#"{"key": "s", "client": {"http": "GET /sse?token=<redacted:token-4>"}, "http": {"stream": true},
      "server": [{"sse": {"event": "endpoint"}, "body": "/messages?sessionId=<session-1>"}]}"#;
    let mut stage = Stage::new(SSE, &[open, &begun(1, ""), &message("m @1", "{}", r#""of m""#)].join(", "));
    let heard = stage.get("/sse?token=mine1234", &[]);
    assert!(says(&heard, "200 stream") && says(&heard, "/messages?sessionId="), "{heard:?}");
}

#[test]
fn sessions_of_the_pool_have_numbers_of_their_own() {
    let second = MODERN.replace(r#""session": 1"#, r#""session": 2"#);
    let of = |session: u32, key: &str, answer: &str| {
        let params = format!(r#"{{"token": "<redacted:token-1>", "key": "{key}"}}"#);
        message(key, &params, answer).replacen('{', &format!(r#"{{"session": {session}, "#), 1)
    };
    let exchanges = [of(1, "a", r#""of a""#), of(2, "b", r#""of b""#)];
    let mut stage = Stage::new(&format!("{MODERN}, {second}"), &exchanges.join(", "));
    posts(&mut stage, &[], r#"{"token": "first111", "key": "a"}"#, "of a");
    posts(&mut stage, &[], r#"{"token": "second22", "key": "b"}"#, "of b");
    stage.good();
}

#[test]
fn lines_and_batches_of_pipes_pair_too() {
    let raw = |key: &str, line: &str, answer: &str| {
        format!(r#"{{"key": "{key}", "client": {{"raw": "{line}"}}, "server": [{{"raw": "{answer}"}}]}}"#)
    };
    let exchanges = [
        begun(1, ""),
        message("m @1", r#"{"x": 1}"#, r#"{"password": "<redacted:password-1>"}"#),
        raw("one", "login --password <redacted:password-2>", "one"),
        raw("two", "login --password <redacted:password-3>", "two"),
        message("m @2", r#"{"password": "<redacted:password-3>"}"#, r#""of two""#),
        format!(
            r#"{{"key": "batch @1", "client": {{"batch": [{}, {}]}}, "server": [{{"batch": [{}, {}]}}]}}"#,
            r#"{"request": {"id": 1, "method": "m", "params": {"password": "<redacted:password-2>"}}}"#,
            r#"{"request": {"id": 2, "method": "n", "params": {"password": "<redacted:password-3>"}}}"#,
            r#"{"to": 0, "id": 1, "result": "batch one"}"#,
            r#"{"to": 1, "id": 2, "result": "batch two"}"#,
        ),
    ];
    let mut stage = Stage::new(STDIO, &exchanges.join(", "));
    stage.line(9, &super::stage::initialize());
    let mut said = |line: &str, answer: &str| {
        let heard = stage.line(9, line);
        assert!(says(&heard, answer), "{line}: {heard:?}");
    };
    said(&ask(1, "m", r#"{"x": 1}"#), "password-1");
    said("login --password first111", "line one");
    said("login --password second22", "line two");
    said(&ask(2, "m", r#"{"password": "second22"}"#), "of two");
    let batch = |one: &str, two: &str| {
        let of = |id, method, password| ask(id, method, &format!(r#"{{"password": "{password}"}}"#));
        format!("[{},{}]", of(4, "m", one), of(5, "n", two))
    };
    // Taken apart, its parts are asked as they were not recorded.
    said(&batch("second22", "first111"), "redaction_differs");
    said(&batch("first111", "second22"), "batch one");
}
