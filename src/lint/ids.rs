//! Ids of requests and responses.

use std::collections::HashMap;

use super::{
    Fault,
    dialogue::{Dialogue, shown},
};
use crate::wire::{jsonrpc::Kind, scan};

pub(super) fn reused(dialogue: &Dialogue<'_>, faults: &mut Vec<Fault>) {
    for from_client in [true, false] {
        // Requests without `initialize` may be of several clients.
        let is_one_client = dialogue.handshake.is_some() || !dialogue.session.is_http();
        let mut used: HashMap<Vec<u8>, usize> = HashMap::new();
        for (index, seen) in dialogue.all(Kind::Request, from_client).filter(|_| is_one_client) {
            // What HTTP refused may be sent again as it was.
            let is_refused =
                dialogue.http(seen).and_then(|http| http.status).is_some_and(|status| status >= 400);
            let Some(id) = seen.message.id_key().filter(|_| !is_refused) else { continue };
            let Some(before) = used.insert(id.into_owned(), index) else { continue };
            let first = &dialogue.seen[before];
            // Since 2026-07-28 an id is free again once its request is answered.
            let is_free = |answer: usize| answer < index && (seen.is_modern() || first.is_modern());
            if first.answer.is_some_and(is_free) {
                continue;
            }
            let text = format!(
                "the id {} was used before, by `{}`; give each request an id of its own",
                shown(seen.message.id().unwrap_or_default()),
                dialogue.key(first)
            );
            faults.push(dialogue.fault(seen, "/id", text));
        }
    }
}

pub(super) fn response(dialogue: &Dialogue<'_>, faults: &mut Vec<Fault>) {
    for seen in &dialogue.seen {
        let Some(request) = seen.asked.map(|asked| &dialogue.seen[asked].message) else { continue };
        let (asked, id) = (request.id_key(), seen.message.id_key());
        // An error may come before the request's id was read.
        let is_nameless = seen.message.kind == Kind::Error && id.is_none();
        // A number that got a fraction, or lost one, is of another type to most.
        let is_respelled =
            || seen.message.id() != request.id() && seen.message.id().is_some_and(scan::is_number);
        if asked.is_none() || (asked == id && !is_respelled()) || is_nameless {
            continue;
        }
        let expected = shown(request.id().unwrap_or_default());
        let text = match seen.message.id() {
            Some(found) => format!("the id must be {expected}, as in the request; found {}", shown(found)),
            None => format!("the response has no id; it must be {expected}, as in the request"),
        };
        faults.push(dialogue.fault(seen, "", text));
    }
}
