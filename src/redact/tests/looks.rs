//! Looks that change nothing.

use std::borrow::Cow;

use super::*;

#[test]
fn a_look_tells_what_stays_as_it_is_and_counts_as_having_seen_it() {
    let rules = Rules::default();
    for text in [
        "plain",
        r#"{"jsonrpc":"2.0","id":1,"result":{"text":"a token of thanks"}}"#,
        r#"{"password":"hunter2hunter2"}"#,
        "at http://u:pw12345@h",
        r#"{"p\u0061ssword":"hunter2hunter2"}"#,
    ] {
        let stays = matches!(Redactor::new(&rules).message(ToServer, text.as_bytes()), Cow::Borrowed(_));
        assert_eq!(Redactor::new(&rules).is_clean_message(text.as_bytes()), stays, "{text}");
    }
    let late = |first: &[u8]| {
        let mut redactor = Redactor::new(&rules);
        assert!(first.is_empty() || redactor.is_clean_message(first));
        redactor.message(ToServer, br#"{"password":"hunter2hunter2"}"#);
        assert!(!redactor.is_clean_message(b"it was hunter2hunter2"));
        redactor.met_late()
    };
    assert!(late(b"it was hunter2hunter2") && !late(b""));
    // What comes back in replay may have to be renumbered.
    assert!(!Redactor::for_replay(&rules).is_clean_message(b"plain"));
}
