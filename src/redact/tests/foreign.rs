//! Traffic that itself reads as placeholders.

use super::{plain, redact, session};
use crate::redact::{Redactor, Rules};

#[test]
fn a_text_that_reads_as_a_placeholder_is_no_secrets() {
    let mut redactor = Redactor::for_recording(&Rules::default());
    session(
        &mut redactor,
        &[
            (r#"{"password":"hunter2hunter2"}"#, r#"{"password":"<redacted:password-1>"}"#),
            // The number is taken.
            (
                r#"["a <redacted:password-1>, <redacted:token-5>"]"#,
                r#"["a <redacted:password-2>, <redacted:token-5>"]"#,
            ),
            (r#"{"token":"<redacted:token-5>"}"#, r#"{"token":"<redacted:token-5>"}"#),
            (r#"{"password":"another-1"}"#, r#"{"password":"<redacted:password-3>"}"#),
            (r#"{"token":"another-2"}"#, r#"{"token":"<redacted:token-6>"}"#),
            (r#"["%3Credacted:password-2%3E"]"#, r#"["<redacted:password-4>"]"#),
            ("hunter2hunter2 <redacted:password-1>", "<redacted:password-1> <redacted:password-2>"),
            (r#"["<redacted:password-0>"]"#, r#"["<redacted:password-5>"]"#),
            (r#"["<redacted:jwt-4294967295>"]"#, r#"["<redacted:jwt-4294967295>"]"#),
        ],
    );
    assert_eq!(redactor.url("/x?a=<redacted:password-1>"), "/x?a=<redacted:password-2>");
    assert_eq!(redactor.header_value("x-a", "<redacted:password-1>"), "<redacted:password-2>");
    // What it has seen holds its own ones.
    redactor.again();
    let seen = r#"["<redacted:password-1>","<redacted:password-2>"]"#;
    assert_eq!(redact(&mut redactor, seen), seen);
}

#[test]
fn a_look_sees_what_reads_as_a_placeholder() {
    let clean = |redactor: &Redactor, text: &str| redactor.is_clean_message(text.as_bytes());
    let mut redactor = Redactor::for_recording(&Rules::default());
    assert!(clean(&redactor, r#"["a redacted text, <redacted> and <redacted:>"]"#));
    assert!(
        !clean(&redactor, r#"["<redacted:password-1>"]"#)
            && !clean(&redactor, r#"["\u003credacted:a-1\u003e"]"#)
    );
    redactor.again();
    assert!(clean(&redactor, r#"["<redacted:password-1>"]"#));
}

#[test]
fn placeholders_that_come_back_in_replay_get_numbers_of_the_session() {
    let mut redactor = Redactor::for_replay(&Rules::default());
    session(
        &mut redactor,
        &[
            (r#"{"token":"live"}"#, r#"{"token":"<redacted:token-1>"}"#),
            (
                r#"{"t":"<redacted:token-1> <redacted:jwt-7>"}"#,
                r#"{"t":"<redacted:token-2> <redacted:jwt-1>"}"#,
            ),
            (
                r#"{"t":"<redacted:token-1>","token":"live"}"#,
                r#"{"t":"<redacted:token-2>","token":"<redacted:token-1>"}"#,
            ),
            // As clients spell them that escape for HTML, or put them into an address.
            (r#"{"token":"\u003credacted:token-1\u003e"}"#, r#"{"token":"<redacted:token-2>"}"#),
            (
                r#"{"u":"https://h/?token=%3Credacted%3Atoken-1%3E"}"#,
                r#"{"u":"https://h/?token=<redacted:token-2>"}"#,
            ),
        ],
    );
    for (target, expected) in [
        ("/x?api_key=%3Credacted%3Atoken-1%3E", "/x?api_key=<redacted:token-2>"),
        ("/x?token=<redacted:token-1>", "/x?token=<redacted:token-2>"),
        ("/x?token=live", "/x?token=<redacted:token-1>"),
    ] {
        assert_eq!(redactor.url(target), expected);
        assert_eq!(redactor.header_value("location", target), expected);
    }
    assert_eq!(redactor.header_value("x-api-key", "<redacted:token-1>"), "<redacted:token-2>");
    let basic = "Basic YTo8cmVkYWN0ZWQ6dG9rZW4tMj4=";
    assert_eq!(redactor.header_value("authorization", basic), "Basic <redacted:authorization-1>");
    assert_eq!(redactor.text("<redacted:token-1>"), "<redacted:token-2>");
}

#[test]
fn what_stands_for_a_secret_is_looked_for_only_once_it_is_met_as_one() {
    let mut redactor = plain();
    assert_eq!(redactor.known(b"projectx1"), None);
    let stands = redactor.stands("api-key", b"projectx1");
    assert_eq!(
        (redactor.known(b"projectx1"), stands.to_string()),
        (Some(stands.clone()), "<redacted:api-key-1>".into())
    );
    let place = r#"{"path":"/srv/projectx1/a"}"#;
    session(
        &mut redactor,
        &[
            (place, place),
            (r#"{"password":"projectx1"}"#, r#"{"password":"<redacted:api-key-1>"}"#),
            (place, r#"{"path":"/srv/<redacted:api-key-1>/a"}"#),
            (r#"{"api_key":"projecty2"}"#, r#"{"api_key":"<redacted:api-key-2>"}"#),
        ],
    );
    assert_eq!(redactor.stands("password", b"projecty2").to_string(), "<redacted:api-key-2>");
}
