//! Methods that there are not, or not there.

use super::{
    Fault,
    dialogue::{Dialogue, Seen, short},
};
use crate::{
    cassette::nearest,
    wire::{
        jsonrpc::Kind,
        revision::{REVISIONS, methods},
        scan,
    },
};

/// The client's requests with a method that no revision knows and that the server did not answer by a result: what
/// both sides know is an extension.
fn strange<'d, 'a>(
    dialogue: &'d Dialogue<'a>,
    from_client: bool,
) -> impl Iterator<Item = (String, &'d Seen<'a>)> {
    let requests = dialogue.all(Kind::Request, from_client).map(|(_, seen)| seen);
    let refused = requests.filter(move |seen| match seen.answer {
        // What a recorder said itself tells nothing of the server.
        Some(answer) => {
            let answer = &dialogue.seen[answer].message;
            answer.kind == Kind::Error && !answer.is_no_answer()
        }
        None => from_client && dialogue.is_whole,
    });
    refused
        .map(|seen| (seen.message.method().into_owned(), seen))
        .filter(|(method, _)| methods::find(method).is_none())
}

pub(super) fn tool(dialogue: &Dialogue<'_>, faults: &mut Vec<Fault>) {
    for (method, seen) in strange(dialogue, true) {
        if dialogue.known.is_tool(dialogue.session.recording, &method) {
            let text = tool_as_method(&method);
            faults.push(dialogue.fault(seen, "/method", text));
        }
    }
}

pub(super) fn unknown(dialogue: &Dialogue<'_>, faults: &mut Vec<Fault>) {
    for from_client in [true, false] {
        for (method, seen) in strange(dialogue, from_client) {
            if from_client && dialogue.known.is_tool(dialogue.session.recording, &method) {
                continue;
            }
            let text = unknown_method(&method);
            faults.push(dialogue.fault(seen, "/method", text));
        }
        // A notification has no answer that would tell an extension from a slip.
        for (_, seen) in dialogue.all(Kind::Notification, from_client) {
            let method = seen.message.method();
            if methods::find(&method).is_none()
                && let Some(known) = meant(&method).filter(|known| known.starts_with("notifications/"))
            {
                let text =
                    format!("no revision has a notification `{}`; did you mean `{known}`?", short(&method));
                faults.push(dialogue.fault(seen, "/method", text));
            }
        }
    }
}

/// What is said of a tool that was called as a method.
pub(crate) fn tool_as_method(name: &str) -> String {
    let name = short(name);
    let mut quoted = Vec::new();
    scan::push_string(&name, &mut quoted);
    let quoted = String::from_utf8_lossy(&quoted).into_owned();
    format!(
        "`{name}` is a tool, not a method; call it by `tools/call` with the params {{\"name\": {quoted}, \
         \"arguments\": {{…}}}}"
    )
}

/// What is said of a method that nobody knows.
pub(crate) fn unknown_method(method: &str) -> String {
    let meant = match meant(method) {
        Some(known) => format!("did you mean `{known}`?"),
        None => "a method of your own has to be known to both sides".to_owned(),
    };
    format!("no revision has a method `{}`; {meant}", short(method))
}

/// The method that a name was meant to be.
fn meant(method: &str) -> Option<&'static str> {
    let with_prefix = format!("notifications/{method}");
    let names = || methods::METHODS.iter().map(|method| method.name);
    names().find(|name| *name == with_prefix).or_else(|| nearest(method, names()))
}

pub(super) fn foreign(dialogue: &Dialogue<'_>, faults: &mut Vec<Fault>) {
    let agreed = dialogue.handshake.and_then(|_| dialogue.protocol());
    for (index, seen) in dialogue.seen.iter().enumerate() {
        let name = seen.message.method();
        let Some(method) = methods::find(&name) else { continue };
        let is_request = seen.message.kind == Kind::Request;
        if !is_request && seen.message.kind != Kind::Notification {
            continue;
        }
        let text = if is_request == method.is_notification() {
            match is_request {
                true => {
                    format!("`{name}` is a notification, but it was sent with an id; send it without `id`")
                }
                false => format!("`{name}` is a request, but it was sent without an id; give it an `id`"),
            }
        } else if !method.sender.is(seen.from_client) {
            let (sender, other) = if seen.from_client { ("server", "client") } else { ("client", "server") };
            format!(
                "`{name}` is sent by the {sender} only, but the {other} sent it; leave it to the {sender}"
            )
        } else {
            let Some(name_of) = of(dialogue, index, seen, agreed.as_deref()) else { continue };
            if method.is_in(name_of) {
                continue;
            }
            match method.until.filter(|until| *until <= name_of) {
                Some(until) => format!("{until} has no `{name}` any more; leave it out"),
                None => format!(
                    "`{name}` came with {}, but this session is of {name_of}; leave it out",
                    method.since
                ),
            }
        };
        faults.push(dialogue.fault(seen, "/method", text));
    }
}

/// The revision whose methods a message may use, as far as that is known: a gap may hold a handshake. In which era a
/// message is where both are spoken is a rule of its own.
fn of(dialogue: &Dialogue<'_>, index: usize, seen: &Seen<'_>, agreed: Option<&str>) -> Option<&'static str> {
    if seen.from_client && seen.message.kind == Kind::Request && seen.message.is_modern() {
        let newest = REVISIONS.last().map(|row| row.name);
        return newest.filter(|_| dialogue.handshake.is_none());
    }
    let handshake = dialogue.handshake.filter(|_| !dialogue.has_gap);
    handshake.filter(|handshake| index > handshake.result && !seen.is_modern())?;
    // A revision that nobody here knows may have any method.
    REVISIONS.iter().find(|row| row.handshake && Some(row.name) == agreed).map(|row| row.name)
}
