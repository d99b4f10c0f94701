//! Messages of the two eras in one session.

use std::collections::HashSet;

use super::{
    Fault,
    dialogue::{Dialogue, is_initialize, short},
    session_header,
};
use crate::{cassette::model::Moment, wire::jsonrpc::Kind};

pub(super) fn mixed(dialogue: &Dialogue<'_>, faults: &mut Vec<Fault>) {
    for (index, seen) in dialogue.requests() {
        let method = short(&seen.message.method());
        if let Some(handshake) = dialogue.handshake {
            let request = &dialogue.seen[handshake.request];
            let was_called =
                || seen.message.method() != "server/discover" && dialogue.result_of(seen).is_some();
            if index < handshake.request && seen.is_modern() && was_called() {
                let text = format!(
                    "`initialize` is a message of a revision before 2026-07-28, and `{}` had a result of 2026-07-28 \
                     or later; speak one of both",
                    dialogue.key(seen)
                );
                faults.push(dialogue.fault(request, "/method", text));
                break;
            }
            if index > handshake.result && seen.is_modern() {
                let key = dialogue.key(&dialogue.seen[handshake.request]);
                let text = format!(
                    "`{method}` is a message of 2026-07-28 or later, in the session that `{key}` began; speak one of both"
                );
                faults.push(dialogue.fault(seen, "/method", text));
            }
            continue;
        }
        let is_legacy = !seen.message.is_modern() && !is_initialize(seen) && seen.message.method() != "ping";
        if is_legacy && dialogue.is_modern_before(index) && !session_header::is_dropped(dialogue, seen) {
            let text = format!(
                "`{method}` names no revision, and there is no `initialize`; since 2026-07-28 each request has \
                 `io.modelcontextprotocol/protocolVersion` in its `_meta`"
            );
            faults.push(dialogue.fault(seen, "/method", text));
        }
    }
    if dialogue.handshake.is_some() {
        return;
    }
    let modern = dialogue.requests().filter(|(_, seen)| seen.message.is_modern());
    let modern: HashSet<u32> = modern.map(|(_, seen)| seen.at.exchange).collect();
    for (_, seen) in
        dialogue.all(Kind::Request, false).filter(|(_, seen)| matches!(seen.at.moment, Moment::Item(_)))
    {
        if modern.contains(&seen.at.exchange) {
            let text = format!(
                "the server sent a request, `{}`; since 2026-07-28 it asks by a result of the type `input_required`",
                short(&seen.message.method())
            );
            faults.push(dialogue.fault(seen, "/method", text));
        }
    }
}
