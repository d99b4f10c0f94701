//! What both sides declared that they can do.

use super::{Fault, dialogue::Dialogue};
use crate::wire::{jsonrpc::Kind, revision::capability, scan};

pub(super) fn of_client(dialogue: &Dialogue<'_>, faults: &mut Vec<Fault>) {
    let Some(handshake) = dialogue.handshake else { return };
    let initialize = &dialogue.seen[handshake.request];
    let Some(declared) = initialize.message.param("/capabilities") else { return };
    for (_, seen) in dialogue.all(Kind::Request, false) {
        let method = seen.message.method();
        let Some(capability) = capability::of_client(&method) else { continue };
        if scan::member(declared, 0, capability).is_none() {
            let text = format!(
                "the server sent `{method}`, but the client did not declare `{capability}` in `{}`; ask only for what \
                 was declared",
                dialogue.key(initialize)
            );
            faults.push(dialogue.fault(seen, "/method", text));
        }
    }
}

pub(super) fn of_server(dialogue: &Dialogue<'_>, faults: &mut Vec<Fault>) {
    let Some(handshake) = dialogue.handshake else { return };
    let Some(result) = dialogue.seen[handshake.result].message.outcome() else { return };
    let Some(declared) = scan::member(result, 0, "capabilities") else { return };
    let agreed = dialogue.protocol().unwrap_or_default();
    for (index, seen) in dialogue.requests().filter(|(_, seen)| !seen.is_modern()) {
        let method = seen.message.method();
        let Some(capability) = capability::of_server(&method).filter(|_| index > handshake.result) else {
            continue;
        };
        // A method that the protocol lacks is another rule's.
        if crate::wire::revision::methods::find(&method).is_none()
            || !capability::is_declared_in(capability, &agreed)
        {
            continue;
        }
        let found = scan::member(result, declared.start, capability);
        let subscribes = matches!(&*method, "resources/subscribe" | "resources/unsubscribe");
        let can_subscribe = || {
            let member = scan::member(result, found?.start, "subscribe");
            member.filter(|value| value.of(result) == b"true")
        };
        let lacks = match found {
            None => format!("`{capability}`"),
            Some(_) if subscribes && can_subscribe().is_none() => "`subscribe` in `resources`".to_owned(),
            Some(_) => continue,
        };
        let text = format!(
            "the client sent `{method}`, but the server did not declare {lacks} in the answer to `{}`; look there first",
            dialogue.key(&dialogue.seen[handshake.request])
        );
        faults.push(dialogue.fault(seen, "/method", text));
    }
}
