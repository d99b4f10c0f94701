//! The form of results and errors.

use super::{
    Fault,
    dialogue::{Dialogue, Seen, shown},
};
use crate::wire::{
    jsonrpc::{Kind, Message},
    scan,
};

pub(super) fn form(dialogue: &Dialogue<'_>, faults: &mut Vec<Fault>) {
    for seen in &dialogue.seen {
        let (result, error) = (member(&seen.message, "result"), member(&seen.message, "error"));
        let is_response = seen.message.kind.is_response();
        let text = match (result, error) {
            (Some(_), Some(_)) if is_response => {
                "a response with both `result` and `error`; leave one of them out".to_owned()
            }
            (Some(result), None) if is_response && result.first() != Some(&b'{') => {
                format!("`result` must be an object, found `{}`", shown(result))
            }
            (None, None) if is_bare(&seen.message) => {
                "a message with an `id`, but without `method`, `result` and `error`; add one of them"
                    .to_owned()
            }
            _ => continue,
        };
        faults.push(dialogue.fault(seen, "/result", text));
    }
}

pub(super) fn once(dialogue: &Dialogue<'_>, faults: &mut Vec<Fault>) {
    for (index, seen) in dialogue.seen.iter().enumerate() {
        let Some(first) = seen.asked.and_then(|asked| dialogue.seen[asked].answer) else { continue };
        if first != index {
            let text = "a second response to the same request; a request is answered once";
            faults.push(dialogue.fault(seen, "", text));
        }
    }
}

/// A member of the envelope; none in what is no object.
fn member<'a>(message: &Message<'a>, name: &str) -> Option<&'a [u8]> {
    let start = scan::trim(message.bytes).start;
    scan::member(message.bytes, start, name).map(|span| span.of(message.bytes))
}

/// Whether a line is a JSON-RPC object that is no message.
fn is_bare(message: &Message<'_>) -> bool {
    let is_jsonrpc = member(message, "jsonrpc").is_some_and(|version| scan::string_is(version, "2.0"));
    message.kind == Kind::Noise
        && is_jsonrpc
        && member(message, "id").is_some()
        && member(message, "method").is_none()
}

pub(super) fn error(dialogue: &Dialogue<'_>, faults: &mut Vec<Fault>) {
    for seen in dialogue.seen.iter().filter(|seen| seen.message.kind == Kind::Error) {
        let error = seen.message.outcome().unwrap_or_default();
        if error.first() != Some(&b'{') {
            let text =
                format!("`error` must be an object with `code` and `message`, found `{}`", shown(error));
            faults.push(dialogue.fault(seen, "/error", text));
            continue;
        }
        let value = |name: &str| scan::member(error, 0, name).map(|span| span.of(error));
        let is_whole =
            |raw: &&[u8]| scan::is_number(raw) && !raw.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E'));
        let mut wrong = |pointer: &str, name: &str, expected: &str| {
            let found = value(name).map_or("none".to_owned(), |raw| format!("`{}`", shown(raw)));
            let pointer = if value(name).is_some() { pointer } else { "/error" };
            let text = format!("`{name}` of an error must be {expected}, found {found}");
            faults.push(dialogue.fault(seen, pointer, text));
        };
        if value("code").filter(is_whole).is_none() {
            wrong("/error/code", "code", "a whole number");
        }
        if value("message").is_none_or(|raw| raw.first() != Some(&b'"')) {
            wrong("/error/message", "message", "a string");
        }
    }
}

/// The client's requests of one kind that were answered by a result.
fn results<'d, 'a>(
    dialogue: &'d Dialogue<'a>,
) -> impl Iterator<Item = (&'d Seen<'a>, &'d Seen<'a>, &'a [u8])> {
    dialogue.requests().filter_map(|(_, request)| {
        let answer = dialogue.result_of(request)?;
        Some((request, answer, answer.message.outcome().filter(|result| result.first() == Some(&b'{'))?))
    })
}

pub(super) fn is_error(dialogue: &Dialogue<'_>, faults: &mut Vec<Fault>) {
    for (request, answer, result) in results(dialogue) {
        let value = scan::member(result, 0, "isError").map(|span| span.of(result));
        if let Some(value) = value.filter(|value| !matches!(*value, b"true" | b"false"))
            && request.message.method() == "tools/call"
        {
            let text = format!("`isError` must be true or false, found `{}`", shown(value));
            faults.push(dialogue.fault(answer, "/result/isError", text));
        }
    }
}

pub(super) fn result_type(dialogue: &Dialogue<'_>, faults: &mut Vec<Fault>) {
    for (request, answer, result) in results(dialogue) {
        if request.message.is_modern() && scan::member(result, 0, "resultType").is_none() {
            let text = "the result of a request of 2026-07-28 needs a `resultType`, such as \"complete\"";
            faults.push(dialogue.fault(answer, "/result", text));
        }
    }
}
