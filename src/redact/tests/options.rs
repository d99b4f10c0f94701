//! What the options name, and what they leave.

use std::borrow::Cow;

use super::{env, redactor, session};
use crate::redact::Options;
use crate::traffic::Direction::ToServer;

#[test]
fn values_of_the_environment_are_removed_from_the_start() {
    session(
        &mut redactor(env("12345678")),
        &[
            (
                r#"{"a":"x12345678y","b":12345678,"c":123456789}"#,
                r#"{"a":"x<redacted:env-1>y","b":"<redacted:env-1>","c":123456789}"#,
            ),
            (r#"{"text":"{\"n\":12345678}"}"#, r#"{"text":"{\"n\":\"<redacted:env-1>\"}"}"#),
            (
                r#"{"jsonrpc":"2.0","id":12345678,"method":"12345678"}"#,
                r#"{"jsonrpc":"2.0","id":12345678,"method":"12345678"}"#,
            ),
        ],
    );
    session(
        &mut redactor(env(r#"pa"ss\w rd"#)),
        &[
            (r#"{"a":"pa\"ss\\w rd"}"#, r#"{"a":"<redacted:env-1>"}"#),
            (r#"{"a":"[\"pa\\\"ss\\\\w rd\"]"}"#, r#"{"a":"[\"<redacted:env-1>\"]"}"#),
            (r#"{"a":"pa%22ss%5Cw%20rd"}"#, r#"{"a":"<redacted:env-1>"}"#),
            // Never across tokens.
            (r#"{"pa":"ss\\w rd"}"#, r#"{"pa":"ss\\w rd"}"#),
        ],
    );
}

#[test]
fn texts_that_only_look_like_json_are_texts() {
    session(
        &mut redactor(env("[1,2,3,\"4\"]")),
        &[
            (r#"{"a":"[1,2,3,\"4\"]","b":[1,2,3,"4"]}"#, r#"{"a":"<redacted:env-1>","b":[1,2,3,"4"]}"#),
            (r#"{"token":"hunter2hunter2"}"#, r#"{"token":"<redacted:token-1>"}"#),
            (
                r#"{"a":"[hunter2hunter2]","b":"[\n x\u0068unter2hunter2]"}"#,
                r#"{"a":"[<redacted:token-1>]","b":"[\n x<redacted:token-1>]"}"#,
            ),
            ("[hunter2hunter2]", "[<redacted:token-1>]"),
        ],
    );
}

#[test]
fn places_and_expressions_of_options_are_replaced() {
    let options = Options {
        redact: vec!["/params/arguments/*/pin".into(), "ACME-[0-9]+".into(), "user=(\\S+)".into()],
        ..Options::default()
    };
    session(
        &mut redactor(options),
        &[
            (
                r#"{"params":{"arguments":[{"pin":1234,"pan":1234},{"pin":["a\n",true]}]}}"#,
                r#"{"params":{"arguments":[{"pin":"<redacted:place-1>","pan":1234},{"pin":["<redacted:place-2>",true]}]}}"#,
            ),
            (
                r#"{"a":"ACME-12 of \"user=bob\"","b":"[\"ACME-13\"]"}"#,
                r#"{"a":"<redacted:pattern-1> of \"user=<redacted:pattern-2>","b":"[\"<redacted:pattern-3>\"]"}"#,
            ),
        ],
    );
}

#[test]
fn kept_places_stay_and_teach_nothing() {
    let options = Options { keep: vec!["/params/arguments/token".into()], ..env("from-the-env") };
    session(
        &mut redactor(options),
        &[
            (
                r#"{"params":{"arguments":{"token":"dummy-token"}}}"#,
                r#"{"params":{"arguments":{"token":"dummy-token"}}}"#,
            ),
            (
                r#"{"params":{"token":"other-token","a":"dummy-token"}}"#,
                r#"{"params":{"token":"<redacted:token-1>","a":"dummy-token"}}"#,
            ),
            (
                r#"{"params":{"arguments":{"token":"from-the-env"}}}"#,
                r#"{"params":{"arguments":{"token":"<redacted:token-2>"}}}"#,
            ),
        ],
    );
}

#[test]
fn off_means_off() {
    let message = br#"{"password":"hunter2hunter2"}"#;
    let mut redactor = redactor(Options { redact: vec!["off".into()], ..Options::default() });
    assert!(matches!(redactor.message(ToServer, message), Cow::Borrowed(_)));
    assert_eq!(redactor.header_value("authorization", "Bearer abc"), "Bearer abc");
    assert_eq!(redactor.url("/?token=abc"), "/?token=abc");
}

#[test]
fn expressions_look_at_values_and_leave_names_and_the_envelope() {
    let with = |expression: &str| redactor(Options { redact: vec![expression.into()], ..Options::default() });
    let call = r#"{"jsonrpc":"2.0","id":"name-1","method":"tools/call","params":{"name":"a name","names":["x"],"arguments":{"n\u0061me":"n\u0061me"}}}"#;
    session(
        &mut with("name"),
        &[
            (
                call,
                r#"{"jsonrpc":"2.0","id":"name-1","method":"tools/call","params":{"name":"a <redacted:pattern-1>","names":["x"],"arguments":{"n\u0061me":"<redacted:pattern-1>"}}}"#,
            ),
            (
                r#"[{"method":"name"},{"result":{"text":"{\"name\": \"my name\", \"name\\n\": 1}"}}]"#,
                r#"[{"method":"name"},{"result":{"text":"{\"name\": \"my <redacted:pattern-1>\", \"name\\n\": 1}"}}]"#,
            ),
            // What is no JSON is one value.
            ("name: x", "<redacted:pattern-1>: x"),
        ],
    );
    for expression in ["2.0", "tools/[a-z]+", "jsonrpc|method|params", "^.+$"] {
        let redacted = super::redact(&mut with(expression), call);
        let envelope = r#"{"jsonrpc":"2.0","id":"name-1","method":"tools/call","params":{"name":"#;
        assert!(
            redacted.starts_with(envelope) && redacted.contains("\"n\\u0061me\":"),
            "{expression}: {redacted}"
        );
    }
}
