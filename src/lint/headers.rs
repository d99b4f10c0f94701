//! Headers of requests over HTTP, as far as they are recorded: where they are not as usual.

use super::{
    Fault,
    dialogue::{Dialogue, Seen, is_initialize, short, text},
};
use crate::{
    cassette::model::{Form, Http},
    wire::{http::decoded, jsonrpc::Kind, revision::revision, scan},
};

const VERSION: &str = "mcp-protocol-version";

pub(super) fn version(dialogue: &Dialogue<'_>, faults: &mut Vec<Fault>) {
    if dialogue.session.transport.as_deref() != Some("http") {
        return;
    }
    let agreed = dialogue.handshake.and_then(|_| dialogue.protocol());
    let must_say = agreed.as_deref().is_some_and(|agreed| revision(agreed).name >= "2025-06-18");
    for seen in dialogue.seen.iter().filter(|seen| seen.from_client && !is_initialize(seen)) {
        let Some(values) = dialogue.http(seen).and_then(|http| values(http, VERSION)) else { continue };
        let own = seen.message.meta("io.modelcontextprotocol/protocolVersion").and_then(text);
        let Some(expected) = own.as_ref().or(agreed.as_ref()) else { continue };
        let text = match &values[..] {
            [] if !must_say && own.is_none() => continue,
            [value] if value == expected => continue,
            [] => format!("the request had no `{VERSION}`; send `{VERSION}: {expected}`"),
            [value] => format!(
                "`{VERSION}` was {}, expected {expected}; send what the session agreed on",
                short(value)
            ),
            _ => format!("`{VERSION}` was sent {} times; send it once", values.len()),
        };
        faults.push(fault(dialogue, seen, text));
    }
    let Some(agreed) = agreed else { return };
    for (exchange, index) in dialogue.cassette.exchanges.iter().zip(0..) {
        let is_here = std::ptr::eq(&dialogue.cassette.sessions[exchange.session as usize], dialogue.session);
        let is_plain = exchange.client.as_ref().is_some_and(|client| client.form == Form::Http);
        let values =
            exchange.http.as_ref().filter(|_| is_here && is_plain).and_then(|http| values(http, VERSION));
        if let Some([value]) = values.as_deref()
            && *value != agreed
        {
            let text = format!(
                "`{VERSION}` was {}, expected {agreed}; send what the session agreed on",
                short(value)
            );
            faults.push(Fault { at: http_place(dialogue, index), exchange: index, text, is_note: false });
        }
    }
}

pub(super) fn method(dialogue: &Dialogue<'_>, faults: &mut Vec<Fault>) {
    for (_, seen) in dialogue.requests().filter(|(_, seen)| seen.message.is_modern()) {
        let Some(http) =
            dialogue.http(seen).filter(|_| dialogue.session.transport.as_deref() == Some("http"))
        else {
            continue;
        };
        let method = Some(seen.message.method().into_owned());
        let name = seen.message.name().map(|name| name.into_owned());
        for (header, expected) in [("mcp-method", method), ("mcp-name", name)] {
            let Some(values) = values(http, header) else { continue };
            let text = match (&values[..], expected) {
                ([value], Some(expected)) if *value == expected => continue,
                // What was replaced in both need not look the same.
                ([value], Some(_)) if value.contains(['<', '%']) => continue,
                ([], None) => continue,
                ([], Some(expected)) => {
                    format!("the request had no `{header}`; send `{header}: {}`", short(&expected))
                }
                ([value], Some(expected)) => format!(
                    "`{header}` was `{}`, but the message says `{}`; send what the message says",
                    short(value),
                    short(&expected)
                ),
                (_, None) => format!("`{header}` was sent, but the message names nothing; leave it out"),
                _ => format!("`{header}` was sent {} times; send it once", values.len()),
            };
            faults.push(fault(dialogue, seen, text));
        }
    }
}

/// The values of a recorded header of a request; none where it was as usual. What is sent in base64 is written out.
fn values(http: &Http, name: &str) -> Option<Vec<String>> {
    let header = http.request.iter().find(|header| &*header.name == name)?;
    let read = |value: &[u8]| String::from_utf8_lossy(&decoded(value)).into_owned();
    Some(header.values.iter().map(|value| read(value)).collect())
}

fn fault(dialogue: &Dialogue<'_>, seen: &Seen<'_>, text: String) -> Fault {
    if seen.message.kind == Kind::Noise || seen.message.kind.is_response() {
        return dialogue.fault(seen, "", text);
    }
    Fault { at: http_place(dialogue, seen.at.exchange), exchange: seen.at.exchange, text, is_note: false }
}

/// Where an exchange's `http` stands.
fn http_place(dialogue: &Dialogue<'_>, exchange: u32) -> usize {
    let (text, start) = (&dialogue.cassette.text, dialogue.cassette.exchanges[exchange as usize].place.start);
    scan::member(text, start as usize, "http").map_or(start as usize, |http| http.start)
}
