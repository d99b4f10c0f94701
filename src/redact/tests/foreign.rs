//! Traffic that itself reads as placeholders.

use super::{redact, session};
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
