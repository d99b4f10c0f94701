//! What one session has met, and another finds.

use super::{Redactor, Rules, ToServer, redact};
use crate::redact::Met;

fn both() -> (Redactor, Redactor) {
    let (rules, met) = (Rules::default(), Some(Met::default()));
    (Redactor::for_replay(&rules).telling(met.clone()), Redactor::new(&rules).telling(met))
}

#[test]
fn what_another_session_met_is_found_wherever_it_stands() {
    let (mut replay, mut recorder) = both();
    assert_eq!(redact(&mut recorder, r#"["hunter2-one"]"#), r#"["hunter2-one"]"#);
    let basic = "Basic YW5uOmh1bnRlcjItdGhyZWU=";
    assert_eq!(replay.header_value("authorization", basic), "Basic <redacted:authorization-1>");
    assert_eq!(replay.url("/x?token=hunter2-two"), "/x?token=<redacted:token-1>");
    redact(&mut replay, r#"{"password":"hunter2-one","token":"short"}"#);
    assert!(!recorder.met_late());
    recorder.listen();
    assert!(recorder.met_late(), "what came before may hold it");
    assert_eq!(
        redact(&mut recorder, r#"["hunter2-one","hunter2-two","hunter2-three","short"]"#),
        r#"["<redacted:password-1>","<redacted:token-1>","<redacted:password-2>","short"]"#
    );
    // And the other way round, where that is listened to.
    redact(&mut recorder, r#"{"secret":"hunter2-four"}"#);
    assert_eq!(replay.text("hunter2-four"), "hunter2-four");
    replay.listen();
    assert_eq!(replay.text("hunter2-four"), "<redacted:secret-1>");
}

#[test]
fn what_was_heard_before_the_first_message_was_not_met_late() {
    let (mut replay, mut recorder) = both();
    redact(&mut replay, r#"{"password":"hunter2-one"}"#);
    recorder.listen();
    redact(&mut recorder, r#"["hunter2-one"]"#);
    recorder.listen();
    assert!(!recorder.met_late());
}

#[test]
fn what_stands_for_a_secret_is_told_where_it_is_no_word() {
    let (mut replay, mut recorder) = both();
    for (kind, value) in
        [("token", "wonderful"), ("token", "one two 3"), ("token", "a1"), ("odd", "abcd-1234")]
    {
        replay.stands(kind, value.as_bytes());
    }
    replay.stands("token", b"hunter2-one");
    recorder.listen();
    let text = "wonderful one two 3 a1";
    assert_eq!(recorder.text(text), text);
    assert_eq!(recorder.text("abcd-1234 hunter2-one"), "<redacted:secret-1> <redacted:token-1>");
    assert_eq!(replay.text("hunter2-one"), "hunter2-one", "as it came it is compared");
}

#[test]
fn numbers_go_on_behind_those_of_a_text() {
    let behind = |text: &str| Redactor::new(&Rules::default()).behind(text.as_bytes());
    let mut redactor = behind(r#"<redacted:token-7> <redacted:token-3> \u003credacted:jwt-2\u003e"#);
    let message = br#"{"token":"a","password":"b","x":"<redacted:token-3>"}"#;
    assert_eq!(
        String::from_utf8_lossy(&redactor.message(ToServer, message)),
        r#"{"token":"<redacted:token-8>","password":"<redacted:password-1>","x":"<redacted:token-3>"}"#
    );
    // No number is so large that none is left.
    let mut redactor = behind(&format!("<redacted:token-{}>", u32::MAX));
    assert!(redactor.message(ToServer, message).len() > message.len());
}
