use super::*;

fn kind(text: &str) -> Kind {
    Message::read(text.as_bytes()).kind
}

#[test]
fn the_envelope_alone_says_what_a_message_is() {
    assert_eq!(kind(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#), Kind::Request);
    assert_eq!(kind(r#"{"jsonrpc":"2.0","id":null,"method":"tools/list"}"#), Kind::Request);
    assert_eq!(kind(r#"{"jsonrpc":"2.0","method":"notifications/x"}"#), Kind::Notification);
    assert_eq!(kind(r#"{"result":{},"id":1,"jsonrpc":"2.0"}"#), Kind::Result);
    assert_eq!(kind(r#"{"jsonrpc":"2.0","error":{"code":1,"message":""}}"#), Kind::Error);
    assert_eq!(kind("\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r"), Kind::Request);
    assert_eq!(kind(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#), Kind::Batch);
    assert_eq!(kind(r#"{"jsonrpc":"2.0","id":1,"result":{"mean":NaN}}"#), Kind::Result);
    assert_eq!(kind(r#"{"json\u0072pc":"2.0","\u0069d":1,"meth\u006fd":"ping"}"#), Kind::Request);
    assert_eq!(kind(r#"{"jsonrpc":"2.0","\"id":1,"method":"ping","\\":2}"#), Kind::Notification);
}

#[test]
fn the_first_members_tell_what_the_whole_message_is_or_nothing() {
    let members = [
        r#""jsonrpc":"2.0""#,
        r#""id": 7"#,
        r#""m\u0065thod":"ping""#,
        r#""method":5"#,
        r#""params":{"id":1}"#,
        r#""result":{"id":2}"#,
        r#""error":{"code":3}"#,
        r#""other":[]"#,
    ];
    let mut told = 0;
    for chosen in 0..1 << members.len() {
        let chosen: Vec<&str> = members
            .iter()
            .enumerate()
            .filter(|(at, _)| chosen >> at & 1 == 1)
            .map(|(_, text)| *text)
            .collect();
        for first in 0..chosen.len() {
            let mut order = chosen.clone();
            order.rotate_left(first);
            let text = format!(" {{{}}}", order.join(","));
            let message = Message::read(text.as_bytes());
            if let Some((kind, id)) = Message::first_look(text.as_bytes()) {
                told += 1;
                // Of a message that is several things at once, the first look sees the first.
                let is = |name: &str| usize::from(text.contains(name));
                let is_several = is("ping") + is("result") + is("error") > 1;
                assert!(is_several || kind == message.kind, "{text}");
                assert_eq!((id, message.id()), (&b"7"[..], Some(id)), "{text}");
            }
        }
    }
    assert!(told > 40, "{told}");
    let first = |text: &'static str| Message::first_look(text.as_bytes());
    assert_eq!(
        first(r#"{"jsonrpc":"2.0","id":"a","method":"x","params":"#),
        Some((Kind::Request, &b"\"a\""[..]))
    );
    assert_eq!(first(r#"{"jsonrpc":"2.0","id":1,"result":"#), Some((Kind::Result, &b"1"[..])));
    assert_eq!(first(r#"{"jsonrpc":"2.0","id":1,"error":"#), Some((Kind::Error, &b"1"[..])));
    for silent in [
        "",
        "log",
        "{}",
        r#"[{"jsonrpc":"2.0","id":1,"method":"x"}]"#,
        r#"{"jsonrpc":"2.0","method":"x"}"#,
        r#"{"id":1,"method":"x"}"#,
        r#"{"jsonrpc":"1.0","id":1,"method":"x"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":null}"#,
        r#"{"result":{},"jsonrpc":"2.0","id":1}"#,
        r#"{"jsonrpc":"2.0","id":1"#,
    ] {
        assert_eq!(first(silent), None, "{silent}");
    }
}

#[test]
fn what_is_no_message_is_noise() {
    for noise in [
        "",
        "   ",
        "42",
        "\"text\"",
        "[2025-01-01] log",
        "[]",
        "[1]",
        "{not json}",
        r#"{"id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"ping"} x"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"te"#,
    ] {
        assert_eq!(kind(noise), Kind::Noise, "{noise}");
    }
}

#[test]
fn a_batch_in_a_batch_is_noise_at_any_depth() {
    assert_eq!(kind(r#"[[{"jsonrpc":"2.0","id":1,"method":"ping"}]]"#), Kind::Noise);
    assert_eq!(kind(&["[".repeat(200_000), "]".repeat(200_000)].concat()), Kind::Noise);
}

#[test]
fn names_tokens_and_cancelled_ids_are_read_from_params() {
    let call = br#"{"jsonrpc":"2.0","id":1,"method":"tools\/call","params":{"name":"a","name":"b c","_meta":{"progressToken":"p"}}}"#;
    let call = Message::read(call);
    assert_eq!((call.method().as_ref(), call.name().as_deref()), ("tools/call", Some("b c")));
    assert_eq!(call.progress_token(), Some(&b"\"p\""[..]));
    let modern = br#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"\u005fmeta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
    assert!(Message::read(modern).is_modern());
    assert!(!Message::read(br#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":"\\u005f"}}"#).is_modern());
    let cancel = br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#;
    assert_eq!(Message::read(cancel).cancelled_id(), Some(&b"7"[..]));
}
