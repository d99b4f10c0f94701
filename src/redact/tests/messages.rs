//! Messages as a whole: their envelopes, what is counted, and lines that are none.

use super::{plain, redact, session};
use crate::traffic::Direction::{ToClient, ToServer};

#[test]
fn a_method_that_looks_like_a_secret_is_replaced_and_ids_stay() {
    const KEY: &str = "ghp_012345678901234567890123456789012345";
    let mut redactor = plain();
    for (message, expected) in [
        (r#"{"jsonrpc":"2.0","id":"KEY","method":"KEY"}"#, r#"{"jsonrpc":"2.0","id":"KEY","method":"<1>"}"#),
        (r#"{"jsonrpc":"2.0","method":"x/KEY"}"#, r#"{"jsonrpc":"2.0","method":"x/<1>"}"#),
        (r#"[{"id":"KEY","method":"x\/KEY"}]"#, r#"[{"id":"KEY","method":"<1>"}]"#),
        (r#"{"jsonrpc":"2.0","id":"KEY","result":"KEY"}"#, r#"{"jsonrpc":"2.0","id":"KEY","result":"<1>"}"#),
        (
            r#"{"method":"notifications/cancelled","params":{"requestId":"KEY","reason":"KEY"}}"#,
            r#"{"method":"notifications/cancelled","params":{"requestId":"KEY","reason":"<1>"}}"#,
        ),
        (r#"{"method":"x","params":{"requestId":"KEY"}}"#, r#"{"method":"x","params":{"requestId":"<1>"}}"#),
    ] {
        let expected = expected.replace("KEY", KEY);
        let expected = expected.replace("<1>", "<redacted:github-token-1>");
        assert_eq!(redact(&mut redactor, &message.replace("KEY", KEY)), expected);
    }
    session(
        &mut plain(),
        &[
            (r#"{"password":"tools/list"}"#, r#"{"password":"<redacted:password-1>"}"#),
            (r#"{"method":"tools/list","params":{}}"#, r#"{"method":"tools/list","params":{}}"#),
        ],
    );
}

#[test]
fn what_was_replaced_is_counted_by_kind_and_place() {
    let mut redactor = plain();
    let call =
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{"apiKey":"key-number-1"}}}"#;
    redactor.message(ToServer, call.as_bytes());
    redactor.message(ToServer, call.as_bytes());
    redactor.message(ToClient, br#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"text":"key-number-1"}]}}"#);
    let counts: Vec<_> = redactor.counts().iter().map(|c| (&*c.kind, c.place.as_str(), c.times)).collect();
    assert_eq!(
        counts,
        [
            ("api-key", "tools/call /params/arguments/apiKey", 2),
            ("api-key", "server's answer /result/content/*/text", 1)
        ]
    );
}

#[test]
fn lines_that_are_no_json_are_redacted_too() {
    session(
        &mut plain(),
        &[
            (
                "[INFO] connecting to postgres://app:s3cr3t-pw@db/x",
                "[INFO] connecting to postgres://app:<redacted:url-password-1>@db/x",
            ),
            (
                r#"{"password":"x","n":NaN,"lone":"\ud83d"}"#,
                r#"{"password":"<redacted:password-1>","n":NaN,"lone":"\ud83d"}"#,
            ),
            (r#"{"password":"x",}"#, r#"{"password":"<redacted:password-1>",}"#),
            (r#"{"a":"b","password":"cut of"#, r#"{"a":"b","password":"<redacted:password-2>"#),
            ("GITHUB_TOKEN=ghp_012345678901234567890123456789012345", "GITHUB_TOKEN=<redacted:token-1>"),
        ],
    );
    let mut redactor = plain();
    let bytes = b"\xff{\"password\":\"a\xff\"}";
    assert_eq!(redactor.message(ToClient, bytes), &b"\xff{\"password\":\"<redacted:password-1>\"}"[..]);
}
