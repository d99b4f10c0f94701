//! The short form of a rule: `tools/call search @2: timeout`.
//!
//! Before the last `: ` stand the requests: a key (`tools/call search @2`), a method and perhaps a name
//! (`tools/call search`), or `*` for all. Behind it stands the fault: its name and perhaps parameters, as
//! `error code=-32603 message="try later"`. Behind the first `: {` may stand an object with `do` instead.
//!
//! What is a key of the cassette is read as that, whatever else it could be: people name keys as they like.

use super::error::PlanError;
use crate::{
    cassette::key,
    wire::{
        jsonrpc,
        scan::{self, push_string},
    },
};

/// The rule as JSON; `is_key` knows the keys there are.
pub(super) fn expand(text: &str, is_key: &dyn Fn(&str) -> bool) -> Result<String, PlanError> {
    // Keys may have `: ` inside, and so may parameters: the fault begins where one does that is known.
    let is_known = |name: &str| super::catalogue::find(name).is_some();
    let begins = |fault: &str| fault.starts_with('{') || fault.split(' ').next().is_some_and(is_known);
    let splits = || text.match_indices(": ").map(|(at, _)| (text[..at].trim(), &text[at + 2..]));
    let of_key = splits().find(|(requests, _)| is_key(requests));
    let (requests, fault) = of_key
        .or_else(|| splits().find(|(_, fault)| begins(fault)))
        .or_else(|| key::split_selector(text))
        .ok_or_else(|| PlanError::new(0, "a fault is KEY: FAULT, such as `tools/call search @2: timeout`"))?;
    let mut json = b"{\"when\":{".to_vec();
    match of_key {
        Some((key, _)) => push_member("key", key, &mut json),
        None => push_requests(requests.trim(), &mut json)?,
    }
    json.extend_from_slice(b"},");
    push_fault(fault.trim(), &mut json)?;
    json.push(b'}');
    let json = String::from_utf8(json).expect("made of texts");
    if scan::is_json(json.as_bytes()) {
        return Ok(json);
    }
    Err(PlanError::new(
        0,
        format!("`{}` is no fault: its parameters are NAME=VALUE, with JSON values", fault.trim()),
    ))
}

/// What is wrong with the rule as JSON: where a parameter looks like another JSON value than the text that it must be,
/// how it is written.
pub(super) fn in_quotes(error: PlanError, json: &str) -> PlanError {
    let Some((member, _)) =
        error.text.strip_prefix('`').and_then(|text| text.split_once("` must be a string, found"))
    else {
        return error;
    };
    let value = &json[error.at..];
    let value = &value[..value.find([',', '}']).unwrap_or(value.len())];
    let text = format!("{}; write {member}=\"{value}\"", error.text);
    PlanError { text, ..error }
}

fn push_member(name: &str, text: &str, out: &mut Vec<u8>) {
    if !out.ends_with(b"{") && !out.ends_with(b",") {
        out.push(b',');
    }
    push_string(name, out);
    out.push(b':');
    push_string(text, out);
}

fn push_requests(requests: &str, out: &mut Vec<u8>) -> Result<(), PlanError> {
    let is_numbered = requests
        .rsplit_once(" @")
        .is_some_and(|(_, number)| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()));
    if requests == "*" {
        return Ok(());
    }
    if is_numbered {
        push_member("key", requests, out);
        return Ok(());
    }
    let (method, name) =
        requests.split_once(' ').map_or((requests, None), |(method, name)| (method, Some(name)));
    push_member("method", method, out);
    let Some(name) = name.map(str::trim) else { return Ok(()) };
    let name = if name.starts_with('"') { jsonrpc::text(name.as_bytes()) } else { name.into() };
    let subject = jsonrpc::subject(method).map(|(subject, _)| subject);
    let Some(member) = subject.filter(|subject| *subject != "task") else {
        let text = format!("requests `{method}` have no name; write `{method}`, or a key with its number");
        return Err(PlanError::new(0, text));
    };
    push_member(member, &name, out);
    Ok(())
}

fn push_fault(fault: &str, out: &mut Vec<u8>) -> Result<(), PlanError> {
    if let Some(inside) = fault.strip_prefix('{') {
        let Some(inside) = inside.trim_end().strip_suffix('}') else {
            return Err(PlanError::new(0, format!("`{fault}` has no end; a `}}` ends it")));
        };
        out.extend_from_slice(inside.as_bytes());
        return Ok(());
    }
    let (name, mut rest) =
        fault.split_once(' ').map_or((fault, ""), |(name, rest)| (name, rest.trim_start()));
    push_member("do", name, out);
    while !rest.is_empty() {
        let Some((member, value)) = rest.split_once('=') else {
            let text = format!("`{rest}` is no parameter of `{name}`; write NAME=VALUE, such as ms=200");
            return Err(PlanError::new(0, text));
        };
        let end = match value.as_bytes().first() {
            Some(b'"' | b'{' | b'[') => scan::skip_value(value.as_bytes(), 0)
                .map_err(|_| PlanError::new(0, format!("the value of `{member}` has no end: `{value}`")))?,
            _ => value.find(' ').unwrap_or(value.len()),
        };
        let (value, behind) = value.split_at(end);
        if scan::is_json(value.as_bytes()) {
            out.push(b',');
            push_string(member, out);
            out.push(b':');
            out.extend_from_slice(value.as_bytes());
        } else {
            push_member(member, value, out);
        }
        rest = behind.trim_start();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::expand as expand_for;

    fn expand(text: &str) -> Result<String, crate::fault::PlanError> {
        expand_for(text, &|_| false)
    }

    #[test]
    fn a_short_form_says_what_a_rule_says() {
        for (short, rule) in [
            ("tools/call search @2: timeout", r#"{"when":{"key":"tools/call search @2"},"do":"timeout"}"#),
            (
                "tools/call search: timeout",
                r#"{"when":{"method":"tools/call","tool":"search"},"do":"timeout"}"#,
            ),
            ("*: latency ms=200", r#"{"when":{},"do":"latency","ms":200}"#),
            (
                r#"resources/read "a: b": error code=-32603 message="try later""#,
                r#"{"when":{"method":"resources/read","uri":"a: b"},"do":"error","code":-32603,"message":"try later"}"#,
            ),
            (r#"ping: {"do": "error", "code": 1}"#, r#"{"when":{"method":"ping"},"do": "error", "code": 1}"#),
            (
                "initialize: wrong_version version=2024-11-05",
                r#"{"when":{"method":"initialize"},"do":"wrong_version","version":"2024-11-05"}"#,
            ),
        ] {
            assert_eq!(expand(short).as_deref(), Ok(rule), "{short}");
        }
    }

    #[test]
    fn a_colon_in_a_key_or_a_text_divides_nothing() {
        for (short, rule) in [
            (
                r#"ping: error message="a: b c""#,
                r#"{"when":{"method":"ping"},"do":"error","message":"a: b c"}"#,
            ),
            (
                r#"resources/read "a: timeout" @1: drop"#,
                r#"{"when":{"key":"resources/read \"a: timeout\" @1"},"do":"drop"}"#,
            ),
        ] {
            assert_eq!(expand(short).as_deref(), Ok(rule), "{short}");
        }
        assert_eq!(
            expand(r#"ping: error message="a"#).unwrap_err().text,
            "the value of `message` has no end: `\"a`"
        );
    }

    #[test]
    fn what_is_none_is_told() {
        let told = |short| expand(short).unwrap_err().text;
        assert_eq!(told("timeout"), "a fault is KEY: FAULT, such as `tools/call search @2: timeout`");
        assert_eq!(
            told("ping x: drop"),
            "requests `ping` have no name; write `ping`, or a key with its number"
        );
        assert_eq!(
            told("ping: latency 200"),
            "`200` is no parameter of `latency`; write NAME=VALUE, such as ms=200"
        );
        assert!(told("ping: {\"do\": }").starts_with("`{\"do\": }` is no fault"));
        assert_eq!(told("ping: {\"do\": 1"), "`{\"do\": 1` has no end; a `}` ends it");
    }

    #[test]
    fn a_key_that_is_there_is_that_whatever_else_it_could_be() {
        let keys = ["echo works again", "tools/call echo", "a: timeout", "*"];
        let expand = |text: &str| expand_for(text, &|key| keys.contains(&key)).unwrap();
        for key in keys {
            let rule = format!(r#"{{"when":{{"key":"{key}"}},"do":"timeout"}}"#);
            assert_eq!(expand(&format!("{key}: timeout")), rule);
        }
        assert_eq!(
            expand("tools/call ech: timeout"),
            r#"{"when":{"method":"tools/call","tool":"ech"},"do":"timeout"}"#
        );
        assert!(expand_for("echo works again: timeout", &|_| false).is_err());
    }
}
