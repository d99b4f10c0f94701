//! Values that were found once, wherever they stand.

use super::{env, plain, redact, redactor, session};

#[test]
fn a_value_found_once_is_removed_in_every_form_later() {
    session(
        &mut plain(),
        &[
            (r#"{"secret":"hunter2/hunter2"}"#, r#"{"secret":"<redacted:secret-1>"}"#),
            (r#"{"a":"is hunter2/hunter2."}"#, r#"{"a":"is <redacted:secret-1>."}"#),
            (r#"{"a":"is hunter2\/hunter2."}"#, r#"{"a":"is <redacted:secret-1>."}"#),
            (r#"{"a":"is hunter2\u002fhunter2."}"#, r#"{"a":"is <redacted:secret-1>."}"#),
            (r#"{"a":"hunter2%2Fhunter2"}"#, r#"{"a":"<redacted:secret-1>"}"#),
            (r#"{"a":"68756e746572322f68756e74657232"}"#, r#"{"a":"<redacted:secret-1>"}"#),
            (r#"{"a":"aHVudGVyMi9odW50ZXIy"}"#, r#"{"a":"<redacted:secret-1>"}"#),
            (r#"{"a":"IGh1bnRlcjIvaHVudGVyMg=="}"#, r#"{"a":"IG<redacted:secret-1>g=="}"#),
            (r#"{"hunter2/hunter2":1}"#, r#"{"<redacted:secret-1>":1}"#),
            ("log: hunter2/hunter2", "log: <redacted:secret-1>"),
        ],
    );
}

#[test]
fn escapes_inside_encoded_forms_hide_nothing() {
    // Base64 of `>>>hunter2?~~>?`: `Pj4+aHVudGVyMj9+fj4/`.
    session(
        &mut redactor(env(">>>hunter2?~~>?")),
        &[
            (r#"["Pj4+aHVudGVyMj9+fj4/"]"#, r#"["<redacted:env-1>"]"#),
            (r#"["Pj4+aHVudGVyMj9+fj4\/"]"#, r#"["<redacted:env-1>"]"#),
            (r#"["Pj4\u002BaHVudGVyMj9\u002Bfj4\/"]"#, r#"["<redacted:env-1>"]"#),
            (r#"["Pj4-aHVudGVyMj9-fj4_"]"#, r#"["<redacted:env-1>"]"#),
        ],
    );
}

#[test]
fn headers_and_addresses_teach_the_session() {
    let mut redactor = plain();
    assert_eq!(
        redactor.header_value("authorization", "Bearer c53-bearer-11aa"),
        "Bearer <redacted:authorization-1>"
    );
    assert_eq!(redactor.header_value("X-Api-Key", "c53-apikey-22bb"), "<redacted:api-key-1>");
    assert_eq!(
        redactor.header_value("Cookie", "sid=c53-cookie-33cc; theme=dark"),
        "sid=<redacted:cookie-1>; theme=<redacted:cookie-2>"
    );
    assert_eq!(
        redactor.header_value("Set-Cookie", "sid=c53-newcookie-66aa; HttpOnly; Path=/"),
        "sid=<redacted:cookie-3>; HttpOnly; Path=/"
    );
    assert_eq!(redactor.header_value("content-type", "text/plain"), "text/plain");
    assert_eq!(redactor.url("/mcp?api_key=c53-query-44dd&v=1"), "/mcp?api_key=<redacted:api-key-2>&v=1");
    assert_eq!(redactor.url("https://u:pw-1234@h/p"), "https://u:<redacted:url-password-1>@h/p");
    session(
        &mut redactor,
        &[(
            r#"{"text":"you sent Bearer c53-bearer-11aa, c53-apikey-22bb and sid=c53-cookie-33cc to /mcp?api_key=c53-query-44dd"}"#,
            r#"{"text":"you sent Bearer <redacted:authorization-1>, <redacted:api-key-1> and sid=<redacted:cookie-1> to /mcp?api_key=<redacted:api-key-2>"}"#,
        )],
    );
    // The password of Basic credentials is known by itself from then on.
    assert_eq!(
        redactor.header_value("Authorization", "Basic dXNlcjpodW50ZXIyaHVudGVyMg=="),
        "Basic <redacted:authorization-2>"
    );
    session(&mut redactor, &[(r#"["hunter2hunter2"]"#, r#"["<redacted:password-1>"]"#)]);
}

#[test]
fn a_key_is_the_same_at_any_level_of_escaping() {
    let key = |newline: &str| {
        ["-----BEGIN PRIVATE KEY-----", "MIIEpAIBAAKCAQEA1234", "-----END PRIVATE KEY-----"].join(newline)
    };
    let message = |text: String| format!(r#"{{"text":"{text}"}}"#);
    let mut redactor = plain();
    for (message, expected) in [
        (message(key(r"\n")), message("<redacted:private-key-1>".to_owned())),
        (message(format!("got: {}.", key(r"\\n"))), message("got: <redacted:private-key-1>.".to_owned())),
        (
            message(format!(r#"got: {{\"key\": \"{}\"}}"#, key(r"\\n"))),
            message(r#"got: {\"key\": \"<redacted:private-key-1>\"}"#.to_owned()),
        ),
    ] {
        assert_eq!(redact(&mut redactor, &message), expected);
    }
}
