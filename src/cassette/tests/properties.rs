//! Whatever peers may send.

use proptest::{collection::vec, prelude::*};

use super::{super::*, *};
use crate::wire::scan;

/// JSON texts, spelled in every way that JSON allows, at any depth that a test has time for.
fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        3 => string(),
        1 => prop::sample::select(vec!["null", "true", "false", "0", "-0", "1e400", "-1.50E+07", "9007199254740993"])
            .prop_map(String::from),
        1 => "[1-9][0-9]{30}".prop_map(String::from),
    ];
    leaf.prop_recursive(5, 48, 6, |inner| {
        prop_oneof![
            (vec(inner.clone(), 0..5)).prop_map(|values| format!("[{}]", values.join(","))),
            (vec((name(), inner.clone()), 0..5)).prop_map(|members| {
                let members: Vec<_> =
                    members.into_iter().map(|(name, value)| format!("{name}:{value}")).collect();
                format!("{{{}}}", members.join(","))
            }),
            // A marker, or what looks like one.
            (name(), inner.clone()).prop_map(|(name, value)| format!("{{{name}:{value}}}")),
            // JSON in a string.
            (inner.clone(), spacing()).prop_map(|(value, spacing)| {
                let mut string = Vec::new();
                scan::push_string(&spaced(&value, spacing), &mut string);
                String::from_utf8(string).unwrap()
            }),
            inner.prop_map(|value| format!("{}{value}{}", "[".repeat(200), "]".repeat(200))),
        ]
    })
}

fn string() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[ -!#-\\[\\]-~]{0,12}",
        prop::sample::select(vec![
            "\\n",
            "\\\\",
            "\\\"",
            "\\/",
            "\\u000a",
            "\\u0041",
            "\\ud83d",
            "\\ude00",
            "\\b\\f\\r\\t",
            "\\\\n",
            "é",
            "😀",
            "\u{7f}",
            "\u{2028}",
            "\\u0000",
            "$lines",
            "{",
            "}",
        ])
        .prop_map(String::from),
    ];
    prop_oneof![
        100 => vec(piece, 0..6).prop_map(|pieces| format!("\"{}\"", pieces.concat())),
        1 => (1000..1100usize).prop_map(|n| format!("\"{}\"", "QUJD".repeat(n))),
        1 => (16_000..16_800usize).prop_map(|n| format!("\"{}\"", "a\\n ".repeat(n))),
    ]
}

fn name() -> impl Strategy<Value = String> {
    let marker =
        ["\"$lines\"", "\"$json\"", "\"$blob\"", "\"$literal\"", "\"$indent\"", "\"\\u0024json\"", "\"a\""];
    prop_oneof![string(), prop::sample::select(marker.to_vec()).prop_map(String::from)]
}

/// How a text is spaced: compact, `", "`, or indented by so many.
fn spacing() -> impl Strategy<Value = Option<usize>> {
    prop_oneof![Just(None), Just(Some(0)), Just(Some(2)), Just(Some(4))]
}

/// The text with white space of its own put between tokens.
fn spaced(json: &str, indent: Option<usize>) -> String {
    let Some(indent) = indent else { return json.to_owned() };
    let (mut out, mut depth) = (String::new(), 0usize);
    let mut lexer = scan::Lexer::new(json.as_bytes(), 0);
    let mut at = 0;
    while let Ok(Some((token, span))) = lexer.next() {
        let between = &json[at..span.start];
        at = span.end;
        out.push_str(&between.replace(':', ": ").replace(',', if indent == 0 { ", " } else { "," }));
        if indent > 0 && !between.contains(':') && depth + usize::from(token != scan::Token::ObjectStart) > 0
        {
            depth = lexer.depth();
            out.push('\n');
            out.push_str(&" ".repeat(indent * depth));
        }
        out.push_str(&json[span.start..span.end]);
    }
    out
}

/// Ids as clients give them, and such as none should: of every type that JSON has, with any white space inside.
fn id() -> impl Strategy<Value = String> {
    let plain = ["0", "1", "2", "7", "\"a\"", "\"\\u0061\"", "null", "true", "1.0", "18446744073709551615"];
    let containers = ["{\"a\":1}", "{\"a\": 1}", "[1, 2 ]", "{ }", "[]", "{\"$lines\":[\"a\"]}"];
    prop_oneof![
        4 => prop::sample::select(plain.to_vec()).prop_map(String::from),
        3 => prop::sample::select(containers.to_vec()).prop_map(String::from),
        1 => (json(), spacing()).prop_map(|(id, spacing)| spaced(&id, spacing)),
    ]
}

/// Lines of any kind: messages, near misses, and noise.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let id = id();
    let message = (id, json(), any::<[bool; 6]>(), spacing(), 0..7u8).prop_map(
        |(id, payload, flags, spacing, kind)| {
            let payload = spaced(&payload, spacing);
            let mut members = match kind {
                0 | 1 => {
                    vec![format!("\"id\":{id}"), "\"method\":\"m\"".into(), format!("\"params\":{payload}")]
                }
                2 => vec!["\"method\":\"n\"".into(), format!("\"params\":{payload}")],
                3 => vec![format!("\"id\":{id}"), format!("\"result\":{payload}")],
                4 => vec![format!("\"id\":{id}"), format!("\"error\":{payload}")],
                5 => vec![format!("\"result\":{payload}")],
                _ => vec![format!("\"id\":{id}"), "\"method\":\"m\"".into(), format!("\"more\":{payload}")],
            };
            members.insert(if flags[0] { 0 } else { members.len() }, "\"jsonrpc\":\"2.0\"".into());
            if flags[1] && flags[2] {
                members.push("\"extra\":NaN".into());
            }
            let separator = if flags[3] { ", " } else { "," };
            let object = format!("{{{}}}", members.join(separator));
            let object = if flags[1] && flags[4] { format!("[{object},{object}]") } else { object };
            let object = if flags[2] && flags[5] { format!("\u{feff}{object}") } else { object };
            let end = if flags[4] && flags[5] { "\r" } else { "" };
            format!("{object}{end}").replace('\n', " ").into_bytes()
        },
    );
    prop_oneof![8 => message, 1 => vec(any::<u8>().prop_filter("a line", |byte| *byte != b'\n'), 0..40)]
}

fn exchanges() -> impl Strategy<Value = Vec<Lines>> {
    let item = (line(), prop::option::weighted(0.3, line())).prop_map(|(line, answer)| {
        let kind = crate::wire::jsonrpc::Message::read(&line).kind;
        let answer = answer.filter(|_| kind == crate::wire::jsonrpc::Kind::Request);
        (line, answer)
    });
    let exchange = (prop::option::weighted(0.9, line()), vec(item, 1..4));
    vec(exchange.prop_map(|(client, server)| Lines { client, server }), 1..5)
}

fn spelling() -> impl Strategy<Value = Spelling> {
    let side = (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(default, spaced, crlf)| {
        let order = "method params result error id jsonrpc";
        let order = spelling::Envelope::order(order).filter(|_| !default);
        spelling::Side { order: order.unwrap_or(spelling::Envelope::ALL), spaced, crlf }
    });
    (side.clone(), side).prop_map(|(client, server)| Spelling { client, server })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_recorded_comes_back(spelling in spelling(), exchanges in exchanges()) {
        let (text, blobs) = print(&spelling, &exchanges);
        let cassette = match Cassette::load(text.clone().into_bytes(), &blobs) {
            Ok(cassette) => cassette,
            Err(error) => return Err(TestCaseError::fail(format!("{error}\n{text}"))),
        };
        prop_assert!(cassette.warnings.iter().all(|warning| warning.text.contains("$")), "{:?}", cassette.warnings);
        for (found, expected) in lines(&cassette, &blobs).iter().zip(&exchanges) {
            prop_assert_eq!(&found.client, &expected.client);
            prop_assert_eq!(&found.server, &expected.server);
        }
        let formatted = format(&cassette);
        prop_assert_eq!(String::from_utf8_lossy(&formatted), &text[..]);
    }

    #[test]
    fn formatting_changes_no_message_and_is_done_once(exchanges in exchanges(), indent in spacing()) {
        let (text, blobs) = print(&Spelling::default(), &exchanges);
        let person = spaced(&text, indent);
        let cassette = Cassette::load(person.into_bytes(), &blobs).unwrap();
        let formatted = format(&cassette);
        prop_assert_eq!(String::from_utf8_lossy(&formatted), &text[..]);
    }

    #[test]
    fn expanding_gives_the_payload(payload in json()) {
        let mut text = b"{\"cassette\":1,\"exchanges\":[{\"key\":\"a\",\"server\":[{\"no_id\":true,\"result\":".to_vec();
        let mut pending = mark::PendingBlobs::default();
        mark::push_payload(payload.as_bytes(), &mut pending, &mut text);
        text.extend_from_slice(b"}]}]}");
        let cassette = Cassette::load(text, &pending).unwrap();
        let mut expanded = Vec::new();
        cassette.expand(cassette.exchanges[0].server[0].message.place, &pending, &mut expanded).unwrap();
        prop_assert_eq!(String::from_utf8_lossy(&expanded), &payload[..]);
    }
}
