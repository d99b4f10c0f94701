//! `mcp-session-id`: requests that belong to no session although one was given.
//!
//! The header itself is not in the file. A recorder files a request under the session that it names, and all requests
//! that name none under one session without `initialize`.

use super::{
    Fault,
    dialogue::{Dialogue, Seen, is_initialize, short},
};
use crate::{
    cassette::model::Form,
    wire::jsonrpc::{self, Kind},
};

/// The key of the `initialize` before an exchange that was given a session which the exchange does not name.
fn given_before<'a>(dialogue: &Dialogue<'a>, exchange: u32) -> Option<&'a str> {
    let is_common = dialogue.handshake.is_none() && dialogue.session.transport.as_deref() == Some("http");
    let recording = dialogue.session.recording;
    let mut given = dialogue.known.given.iter().rev();
    let before = given.find(|(initialize, of)| is_common && *of == recording && *initialize < exchange)?;
    Some(&dialogue.cassette.exchanges[before.0 as usize].key)
}

/// Whether a message of the client's is one that lacks its session's id.
pub(super) fn is_dropped(dialogue: &Dialogue<'_>, seen: &Seen<'_>) -> bool {
    let is_message = matches!(seen.message.kind, Kind::Request | Kind::Notification);
    is_message
        && seen.from_client
        && !seen.is_modern()
        && !is_initialize(seen)
        && !dialogue.is_challenged(seen)
        && given_before(dialogue, seen.at.exchange).is_some()
}

pub(super) fn dropped(dialogue: &Dialogue<'_>, faults: &mut Vec<Fault>) {
    for seen in dialogue.seen.iter().filter(|seen| is_dropped(dialogue, seen)) {
        let Some(initialize) = given_before(dialogue, seen.at.exchange) else { continue };
        let method = short(&seen.message.method());
        faults.push(dialogue.fault(seen, "/method", sentence(&method, initialize)));
    }
    plain(dialogue, faults);
}

/// Streams and `DELETE`s that the server refused for want of a session.
fn plain(dialogue: &Dialogue<'_>, faults: &mut Vec<Fault>) {
    let cassette = dialogue.cassette;
    for (exchange, index) in cassette.exchanges.iter().zip(0..) {
        let Some(client) = exchange.client.as_ref().filter(|client| client.form == Form::Http) else {
            continue;
        };
        let is_here = std::ptr::eq(&cassette.sessions[exchange.session as usize], dialogue.session);
        let is_refused = exchange.http.as_ref().is_some_and(|http| http.status == Some(400));
        let line = jsonrpc::text(cassette.at(client.place));
        let Some((method @ ("GET" | "DELETE"), target)) = line.split_once(' ') else { continue };
        let is_endpoint = dialogue.session.path.as_deref() == Some(target);
        if is_here
            && is_refused
            && is_endpoint
            && let Some(initialize) = given_before(dialogue, index)
        {
            let at = client.place.start as usize;
            faults.push(Fault { at, exchange: index, text: sentence(method, initialize), is_note: false });
        }
    }
}

fn sentence(what: &str, initialize: &str) -> String {
    format!(
        "`{what}` did not carry the `mcp-session-id` of any session, although `{initialize}` was given one; send that \
         header with every later request"
    )
}
