//! What fuzzers call: any bytes, which must come back, with what holds for all of them.

use std::sync::LazyLock;

use super::{Options, Pairing, Redactor, Rules};
use crate::{
    traffic::Direction,
    wire::{jsonrpc::Message, scan},
};

/// A session's lines: what was JSON still is, what was a message is the same kind of message, and what was redacted
/// once is left alone.
pub fn redactor(bytes: &[u8]) {
    static RULES: LazyLock<[Rules; 2]> = LazyLock::new(|| [Rules::default(), rules()]);
    RULES.iter().for_each(|rules| session(rules, bytes));
}

fn rules() -> Rules {
    let options = Options {
        redact: vec!["/params/arguments/*/0".to_owned(), "key=([a-z]+)".to_owned()],
        env: vec![("NAME".to_owned(), "hunter2hunter2".to_owned())],
        sent: vec![("x-company".into(), b"Bearer acme-17".into())],
        keep: vec!["/params/arguments/kept".to_owned()],
    };
    Rules::new(&options).expect("these options make rules")
}

fn session(rules: &Rules, bytes: &[u8]) {
    let (mut redactor, mut recorder) = (Redactor::new(rules), Redactor::for_recording(rules));
    let mut pairing = Pairing::new();
    for (n, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
        let direction = if n % 2 == 0 { Direction::ToServer } else { Direction::ToClient };
        let redacted = redactor.message(direction, line).into_owned();
        let shown = || format!("{} became {}", line.escape_ascii(), redacted.escape_ascii());
        assert!(!redacted.contains(&b'\n'), "{}", shown());
        if scan::is_json(line) {
            assert!(scan::is_json(&redacted), "{}", shown());
            assert_eq!(Message::read(line).kind, Message::read(&redacted).kind, "{}", shown());
        }
        let again = redactor.message(direction, &redacted);
        assert_eq!(again.escape_ascii().to_string(), redacted.escape_ascii().to_string(), "{}", shown());
        assert_eq!(pairing.pair(&redacted, &redacted), Ok(()), "a message pairs with itself");
        let _ = pairing.pair(line, &redacted);
        let recorded = recorder.message(direction, line);
        assert_eq!(scan::is_json(&recorded), scan::is_json(&redacted), "{}", shown());
        if let Ok(text) = std::str::from_utf8(line) {
            let _ = (redactor.text(text), redactor.url(text), redactor.header_value("authorization", text));
        }
    }
}
