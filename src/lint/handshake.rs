//! How a session of the revisions before 2026-07-28 begins.

use super::{
    Fault,
    dialogue::{Dialogue, Seen, is_initialize, short},
    session_header,
};
use crate::wire::jsonrpc::Kind;

/// Whether a request may come before the handshake is over: pings, and requests that need none.
fn needs_none(seen: &Seen<'_>) -> bool {
    seen.is_modern() || seen.message.method() == "ping"
}

pub(super) fn first(dialogue: &Dialogue<'_>, faults: &mut Vec<Fault>) {
    let found = dialogue.requests().find(|(_, seen)| !needs_none(seen));
    let Some((index, seen)) = found.filter(|(_, seen)| !is_initialize(seen) && dialogue.is_whole) else {
        return;
    };
    if dialogue.is_modern_before(index)
        || dialogue.is_challenged(seen)
        || session_header::is_dropped(dialogue, seen)
    {
        return;
    }
    let method = short(&seen.message.method());
    let text = match dialogue.handshake {
        Some(handshake) => format!(
            "`{method}` was sent before `initialize` ({}); send `initialize` first",
            dialogue.key(&dialogue.seen[handshake.request])
        ),
        None => format!(
            "`{method}` was sent in a session without `initialize`; let the client send `initialize` first, and record \
             from the session's start"
        ),
    };
    faults.push(dialogue.fault(seen, "/method", text));
}

pub(super) fn early(dialogue: &Dialogue<'_>, faults: &mut Vec<Fault>) {
    let Some((asked, initialize)) = dialogue.requests().find(|(_, seen)| is_initialize(seen)) else { return };
    let answered = dialogue.handshake.map_or(dialogue.seen.len(), |handshake| handshake.result);
    if !dialogue.is_whole || dialogue.is_challenged(initialize) {
        return;
    }
    let requests_and_last_word = dialogue.seen.iter().enumerate().filter(|(_, seen)| {
        let is_last_word = seen.message.method() == "notifications/initialized";
        seen.is(Kind::Request, true) || seen.is(Kind::Notification, true) && is_last_word
    });
    for (index, seen) in requests_and_last_word {
        if index <= asked || index >= answered || needs_none(seen) || is_initialize(seen) {
            continue;
        }
        // Over HTTP a refused `initialize` and requests of other clients stand in one session.
        if dialogue.handshake.is_none() && dialogue.session.is_http() {
            continue;
        }
        let (method, key) = (short(&seen.message.method()), dialogue.key(initialize));
        let text = match initialize.answer {
            Some(answer) if answer < index => {
                format!(
                    "`{method}` was sent although `{key}` was answered by an error; send `initialize` again first"
                )
            }
            _ => format!("`{method}` was sent before the answer to `{key}` had come; wait for it"),
        };
        faults.push(dialogue.fault(seen, "/method", text));
    }
}

pub(super) fn initialized(dialogue: &Dialogue<'_>, faults: &mut Vec<Fault>) {
    let Some(handshake) = dialogue.handshake.filter(|_| dialogue.is_whole) else { return };
    let says = |(_, seen): &(usize, &Seen<'_>)| seen.message.method() == "notifications/initialized";
    let said = || dialogue.all(Kind::Notification, true).filter(says);
    // Over HTTP what names no session may be another client's.
    let is_before = |index: usize| index < handshake.request && !dialogue.session.is_http();
    if let Some((_, seen)) = said().next()
        && said().all(|(index, _)| is_before(index))
    {
        let text = format!(
            "`notifications/initialized` was said before `{}`, and not again; say it once that is answered",
            dialogue.key(&dialogue.seen[handshake.request])
        );
        return faults.push(dialogue.fault(seen, "/method", text));
    }
    // Who sends it as a request, or without its prefix, is told that instead.
    let means = |(_, seen): (usize, &Seen<'_>)| {
        matches!(&*seen.message.method(), "notifications/initialized" | "initialized")
    };
    if said().next().is_some()
        || dialogue.all(Kind::Notification, true).any(means)
        || dialogue.requests().any(means)
    {
        return;
    }
    let after = |(index, seen): &(usize, &Seen<'_>)| {
        *index > handshake.result && !needs_none(seen) && !is_initialize(seen)
    };
    if let Some((_, seen)) = dialogue.requests().find(after) {
        let method = short(&seen.message.method());
        let text = format!(
            "`{method}` was sent, and the client never said `notifications/initialized`; send it once `initialize` is \
             answered"
        );
        faults.push(dialogue.fault(seen, "/method", text));
    }
}

pub(super) fn twice(dialogue: &Dialogue<'_>, faults: &mut Vec<Fault>) {
    let Some(handshake) = dialogue.handshake else { return };
    let again = |(index, seen): &(usize, &Seen<'_>)| *index > handshake.result && is_initialize(seen);
    for (_, seen) in dialogue.requests().filter(again) {
        let first = dialogue.key(&dialogue.seen[handshake.request]);
        let text = format!(
            "a second `initialize` in the session that `{first}` began; a new session needs a new process, or over HTTP \
             a request without `mcp-session-id`"
        );
        faults.push(dialogue.fault(seen, "/method", text));
    }
}
