//! Secrets in any disguise, and any bytes.

use proptest::prelude::*;

use super::{env, plain, redact, redactor, session};
use crate::traffic::Direction::ToServer;
use crate::wire::scan;

/// A way to hide a secret in a message, and how the test undoes it to look for the secret.
#[derive(Clone, Copy, Debug)]
enum Disguise {
    Plain,
    Escaped,
    InJson,
    InJsonInJson,
    Base64(usize),
    Percent,
    Hex,
}

fn disguise() -> impl Strategy<Value = Disguise> {
    prop_oneof![
        Just(Disguise::Plain),
        Just(Disguise::Escaped),
        Just(Disguise::InJson),
        Just(Disguise::InJsonInJson),
        (0..6usize).prop_map(Disguise::Base64),
        Just(Disguise::Percent),
        Just(Disguise::Hex),
    ]
}

fn quoted(text: &str) -> String {
    let mut quoted = Vec::new();
    scan::push_string(text, &mut quoted);
    String::from_utf8(quoted).unwrap()
}

/// Which escapes an encoder writes beside those that JSON demands.
#[derive(Clone, Copy, Debug)]
enum Encoder {
    Plain,
    Php,
    Go,
    DotNet,
    Python,
}

impl Encoder {
    fn quoted(self, text: &str) -> String {
        let escape =
            |char: char| char.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04X}")).collect();
        let inside: String = text
            .chars()
            .map(|char| match (self, char) {
                (Self::Php, '/') => "\\/".to_owned(),
                (Self::Go, '<' | '>' | '&') => escape(char),
                (Self::DotNet, '"' | '\'' | '+' | '<' | '>' | '&' | '`') => escape(char),
                (Self::DotNet | Self::Python, char) if !char.is_ascii() => escape(char),
                _ => {
                    let quoted = quoted(&char.to_string());
                    quoted[1..quoted.len() - 1].to_owned()
                }
            })
            .collect();
        format!("\"{inside}\"")
    }
}

/// The raw JSON string that holds the secret.
fn plant(secret: &str, disguise: Disguise, encoder: Encoder) -> String {
    use base64::Engine as _;
    let quoted = |text: &str| encoder.quoted(text);
    match disguise {
        Disguise::Plain => quoted(&format!("see {secret}.")),
        Disguise::Escaped => {
            format!("\"{}\"", secret.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect::<String>())
        }
        Disguise::InJson => quoted(&format!("{{\"a\": {}}}", quoted(secret))),
        Disguise::InJsonInJson => quoted(&format!("text: [{}]", quoted(&format!("[{}]", quoted(secret))))),
        Disguise::Base64(shift) => quoted(
            &base64::engine::general_purpose::STANDARD.encode(format!("{}{secret}~~", "~".repeat(shift))),
        ),
        Disguise::Percent => quoted(
            &secret
                .bytes()
                .map(|byte| match byte.is_ascii_alphanumeric() {
                    true => (byte as char).to_string(),
                    false => format!("%{byte:02X}"),
                })
                .collect::<String>(),
        ),
        Disguise::Hex => quoted(&secret.bytes().map(|byte| format!("{byte:02x}")).collect::<String>()),
    }
}

/// A JSON document with a hole for a value.
fn document() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("-1.5e3".to_owned()),
        "[a-z \"\\\\é\n/]{0,12}".prop_map(|text| quoted(&text)),
        Just("@".to_owned()),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|items| format!("[{}]", items.join(", "))),
            prop::collection::vec(("[a-z\"\\\\ ]{0,8}", inner), 0..4).prop_map(|members| {
                let members: Vec<_> =
                    members.iter().map(|(name, value)| format!("{}:{value}", quoted(name))).collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    })
    .prop_map(|document| format!("{{\"d\": {document}, \"e\": @}}"))
}

#[test]
fn a_secret_that_is_called_as_its_kind_is_not_found_in_placeholders() {
    session(
        &mut redactor(env("password")),
        &[
            (r#"{"password":"password"}"#, r#"{"password":"<redacted:password-1>"}"#),
            (r#"{"x":"the password is"}"#, r#"{"x":"the <redacted:password-1> is"}"#),
            (r#"{"token":"password-1"}"#, r#"{"token":"<redacted:token-1>"}"#),
            (r#"{"x":"a password-2"}"#, r#"{"x":"a <redacted:password-1>-2"}"#),
            (r#"{"x":"\u003credacted:password-3\u003e"}"#, r#"{"x":"\u003credacted:password-3\u003e"}"#),
            ("password <redacted:password-3>", "<redacted:password-1> <redacted:password-3>"),
        ],
    );
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_planted_secret_survives(
        secret in "[!-~éж😀][ -~éж😀]{6,22}[!-~éж😀]",
        document in document(),
        disguise in disguise(),
        encoder in prop::sample::select(vec![Encoder::Plain, Encoder::Php, Encoder::Go, Encoder::DotNet, Encoder::Python]),
        named in any::<bool>(),
    ) {
        prop_assume!(crate::redact::assignment::is_secret(secret.as_bytes()));
        // The secret is known from the environment, or because it stood under a secret's name before.
        let mut redactor = if named { redactor(env(&secret)) } else { plain() };
        if !named {
            redact(&mut redactor, &format!("{{\"password\":{}}}", quoted(&secret)));
        }
        let planted = plant(&secret, disguise, encoder);
        let message = document.replace('@', &planted);
        let redacted = redact(&mut redactor, &message);
        prop_assert!(redacted.contains("<redacted:"), "{secret} in {message} became {redacted}");
        let kept = match disguise {
            Disguise::Plain => encoder.quoted(&secret).trim_matches('"').to_owned(),
            _ => planted,
        };
        prop_assert!(!redacted.contains(&kept), "{secret} in {message} became {redacted}");
        prop_assert!(scan::is_json(redacted.as_bytes()), "{redacted}");
        prop_assert_eq!(redact(&mut redactor, &redacted), redacted.clone());
        // All but the planted strings stays as it was.
        let mut rest = redacted.as_str();
        for piece in document.split('@') {
            let at = rest.find(piece);
            prop_assert!(at.is_some(), "{document} lost {piece} in {redacted}");
            rest = &rest[at.unwrap_or(0) + piece.len()..];
        }
    }

    #[test]
    fn redaction_is_idempotent_and_keeps_json_json(
        pieces in prop::collection::vec(
            prop::sample::select(vec![
                "{", "}", "[", "]", "\"", ":", ",", " ", "\\", "\\\"", "password", "token", "API_KEY=", "Bearer ",
                "http://u:p@h", "?token=", "hunter2hunter2", "sk-", "ghp_012345678901234567890123456789012345",
                "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc", "\\u0041", "n", "1234", "name", "value", "\n", "é", ";", "Cookie: ",
                "curl -u ", "\"curl\"", "\"-u\"", "a:b1", "--pass ", "<password>", "</password>", "<![CDATA[", "]]>", "$env:",
                "${env:", "}=", "pin", "12345678",
            ]),
            0..24,
        ),
    ) {
        let message = pieces.concat();
        let mut redactor = plain();
        let once = redact(&mut redactor, &message);
        prop_assert_eq!(&redact(&mut redactor, &once), &once, "{}", message);
        prop_assert_eq!(scan::is_json(message.as_bytes()), scan::is_json(once.as_bytes()), "{} became {}", message, once);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut redactor = redactor(env("environment"));
        redactor.message(ToServer, &bytes);
    }
}
