//! The revision that `initialize` agrees on.

use super::{
    Fault,
    dialogue::{Dialogue, short, shown, text},
};
use crate::wire::{revision::REVISIONS, scan};

/// A revision that some SDKs still accept, and no page describes.
const BEFORE_THE_FIRST: &str = "2024-10-07";

pub(super) fn agreed(dialogue: &Dialogue<'_>, faults: &mut Vec<Fault>) {
    let Some(handshake) = dialogue.handshake else { return };
    let (request, result) = (&dialogue.seen[handshake.request], &dialogue.seen[handshake.result]);
    let offered = request.message.param("/protocolVersion").and_then(text);
    if offered.is_none() {
        let text = "`initialize` must name the revision that the client wants in `protocolVersion`, a string";
        faults.push(dialogue.fault(request, "/params", text));
    }
    let outcome = result.message.outcome().unwrap_or_default();
    let raw = scan::member(outcome, 0, "protocolVersion").map(|span| span.of(outcome));
    let Some(version) = raw.and_then(text) else {
        let text = match raw {
            Some(raw) => {
                format!("`protocolVersion` must be a string, such as \"2025-11-25\"; found `{}`", shown(raw))
            }
            None => "the answer to `initialize` must name the revision in `protocolVersion`".to_owned(),
        };
        return faults.push(dialogue.fault(result, "/result", text));
    };
    let mut add = |text: String| faults.push(dialogue.fault(result, "/result/protocolVersion", text));
    let row = REVISIONS.iter().find(|row| row.name == version);
    let newest = REVISIONS.last().map_or("", |row| row.name);
    match row {
        Some(row) if !row.handshake => {
            let legacy = REVISIONS.iter().rfind(|row| row.handshake).map_or("", |row| row.name);
            add(format!(
                "{version} has no `initialize`; a server answers it with {legacy} or an older revision"
            ));
        }
        Some(_) => {}
        None if version == BEFORE_THE_FIRST || (is_date(&version) && *version > *newest) => {}
        // Both may know a revision of their own; one of a date that has passed is known to all.
        None if offered.as_deref() == Some(&*version) && !is_date(&version) => {}
        None => {
            let names: Vec<&str> = REVISIONS.iter().map(|row| row.name).collect();
            add(format!("`{}` is no revision; there are {}", short(&version), names.join(", ")));
        }
    }
    match &dialogue.session.protocol {
        Some(written) if *written != version => {
            let at = dialogue.session.place.start as usize;
            let text = format!(
                "the session's `protocol` is {}, but the server answered {}; write the same in both",
                short(written),
                short(&version)
            );
            faults.push(Fault { at, exchange: result.at.exchange, text, is_note: false });
        }
        _ => {}
    }
}

fn is_date(version: &str) -> bool {
    let digits =
        |(at, byte): (usize, u8)| if matches!(at, 4 | 7) { byte == b'-' } else { byte.is_ascii_digit() };
    version.len() == 10 && version.bytes().enumerate().all(digits)
}
