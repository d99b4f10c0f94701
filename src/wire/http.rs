//! What recorder, cassette and replayer read in the same way of heads and addresses of HTTP.

use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::STANDARD};

/// What stands for an origin of ours, or of the server, in a recording.
pub const ORIGIN: &str = "<origin>";

/// The header that names a session, in lower case.
pub const SESSION_ID: &str = "mcp-session-id";

/// The header that names the event behind which a stream goes on, in lower case.
pub const LAST_EVENT_ID: &str = "last-event-id";

const SESSION: &str = "<session-";

/// What stands for the id of the session with this number in a recording.
pub fn session_placeholder(number: u32) -> String {
    format!("{SESSION}{number}>")
}

/// The text with `origin` in the place of every [`ORIGIN`], and what `session_id` gives in that of every
/// [`session_placeholder`]; none leaves those as they are.
pub fn fill(text: &[u8], origin: &str, mut session_id: impl FnMut() -> Option<Box<str>>) -> Vec<u8> {
    let mut filled = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'<', rest) {
        filled.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        if let Some(behind) = rest.strip_prefix(ORIGIN.as_bytes()) {
            filled.extend_from_slice(origin.as_bytes());
            rest = behind;
        } else if let Some((behind, id)) = behind_session(rest).and_then(|rest| Some((rest, session_id()?))) {
            filled.extend_from_slice(id.as_bytes());
            rest = behind;
        } else {
            filled.push(b'<');
            rest = &rest[1..];
        }
    }
    filled.extend_from_slice(rest);
    filled
}

fn behind_session(text: &[u8]) -> Option<&[u8]> {
    let rest = text.strip_prefix(SESSION.as_bytes())?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    rest[digits..].strip_prefix(b">").filter(|_| digits > 0)
}

/// Whether a text can be a method or the name of a header (RFC 9110, 5.6.2).
pub fn is_token(text: &[u8]) -> bool {
    let is_letter = |byte: &u8| {
        matches!(byte, b'!' | b'#'..=b'\'' | b'*' | b'+' | b'-' | b'.' | b'^'..=b'`' | b'|' | b'~')
            || byte.is_ascii_alphanumeric()
    };
    !text.is_empty() && text.iter().all(is_letter)
}

/// Whether a header belongs to a connection, or frames a body on it (RFC 9110, 7.6.1; RFC 9112, 6): whoever sends a
/// message writes those anew. The name is in lower case.
pub fn is_of_connection(name: &str) -> bool {
    const NAMES: [&str; 8] = [
        "connection",
        "content-length",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ];
    NAMES.contains(&name)
}

/// Whether these bytes can be the value of a header (RFC 9110, 5.5).
pub fn is_field_value(value: &[u8]) -> bool {
    value.iter().all(|byte| matches!(byte, b'\t' | b' '..=b'~' | 0x80..))
}

/// The value of a header that repeats a part of a message; what no header can say is sent in base64 (specification
/// 2026-07-28, basic/transports/streamable-http).
pub fn decoded(value: &[u8]) -> Cow<'_, [u8]> {
    let inside = value.strip_prefix(b"=?base64?").and_then(|rest| rest.strip_suffix(b"?="));
    match inside.and_then(|inside| STANDARD.decode(inside).ok()) {
        Some(bytes) => Cow::Owned(bytes),
        None => Cow::Borrowed(value),
    }
}

/// Whether a content type is this one, whatever its case and parameters.
pub fn is_type(value: &[u8], expected: &str) -> bool {
    let end = memchr::memchr(b';', value).unwrap_or(value.len());
    value[..end].trim_ascii().eq_ignore_ascii_case(expected.as_bytes())
}

/// Whether one of the values of `Accept` names this type.
pub fn names_type(values: &[impl AsRef<[u8]>], expected: &str) -> bool {
    let parts = values.iter().flat_map(|value| value.as_ref().split(|byte| *byte == b','));
    parts.into_iter().any(|part| is_type(part, expected))
}

/// A target, or an address, without its query.
pub fn path_of(target: &str) -> &str {
    target.split('?').next().unwrap_or(target)
}

/// Path and query of an address that stands in a document at `base`, which is a path and query too. Of an address with
/// an origin, or with [`ORIGIN`] in its place, only what is behind that counts.
pub fn resolve(base: &str, address: &[u8]) -> String {
    let address = String::from_utf8_lossy(address);
    let address = address.split('#').next().unwrap_or_default();
    let rest = address.strip_prefix(ORIGIN).or_else(|| {
        let behind =
            address.split_once("//").filter(|(scheme, _)| scheme.is_empty() || scheme.ends_with(':'))?.1;
        Some(&behind[behind.find(['/', '?']).unwrap_or(behind.len())..])
    });
    let path = path_of(base);
    match rest.unwrap_or(address) {
        "" if rest.is_some() => "/".to_owned(),
        "" => base.to_owned(),
        absolute if absolute.starts_with('/') => absolute.to_owned(),
        query if query.starts_with('?') && rest.is_some() => format!("/{query}"),
        query if query.starts_with('?') => format!("{path}{query}"),
        relative => {
            let folder = path.rfind('/').map_or(0, |slash| slash + 1);
            format!("{}{relative}", &path[..folder])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_types_are_compared_without_case_and_parameters() {
        let is = |value: &str| is_type(value.as_bytes(), "text/event-stream");
        assert!(is("Text/Event-Stream ; charset=utf-8") && is("text/event-stream"));
        assert!(!is("text/event-streams") && !is(""));
    }

    #[test]
    fn types_are_found_in_lists_over_several_lines() {
        let names = |values: &[&str]| names_type(values, "text/event-stream");
        assert!(names(&["application/json;q=0.9,text/event-stream ; q=1"]));
        assert!(names(&["application/json", "Text/Event-Stream"]));
        assert!(!names(&["*/*", "text/event-streams"]) && !names(&[]));
    }

    #[test]
    fn placeholders_are_filled_and_what_only_looks_like_one_stays() {
        let text = [b"<origin>/m?s=", session_placeholder(12).as_bytes(), b"<session-><a<origin"].concat();
        let filled =
            |id: Option<&str>| String::from_utf8(fill(&text, "http://h", || id.map(Box::from))).unwrap();
        assert_eq!(filled(Some("x")), "http://h/m?s=x<session-><a<origin");
        assert_eq!(filled(None), "http://h/m?s=<session-12><session-><a<origin");
    }

    #[test]
    fn values_in_base64_are_read() {
        assert_eq!(&*decoded(b"=?base64?w6k=?="), "é".as_bytes());
        assert_eq!(&*decoded(b"plain"), b"plain");
        assert_eq!(&*decoded(b"=?base64?*?="), b"=?base64?*?=");
    }

    #[test]
    fn what_belongs_to_a_connection_is_told_from_what_belongs_to_a_message() {
        assert!(is_of_connection("content-length") && is_of_connection("keep-alive"));
        assert!(!is_of_connection("content-type") && !is_of_connection("date"));
        assert!(
            is_field_value("a\t\u{e9}".as_bytes()) && !is_field_value(b"a\x7f") && !is_field_value(b"a\x01")
        );
    }

    #[test]
    fn tokens_hold_neither_spaces_nor_separators() {
        assert!(is_token(b"mcp-session-id") && is_token(b"M-SEARCH"));
        assert!(!is_token(b"") && !is_token(b"a b") && !is_token(b"a:") && !is_token("é".as_bytes()));
    }

    #[test]
    fn addresses_are_resolved_against_their_streams() {
        for (address, resolved) in [
            ("/m?s=1#f", "/m?s=1"),
            ("m", "/a/m"),
            ("?s", "/a/sse?s"),
            ("", "/a/sse?q"),
            ("<origin>/m", "/m"),
            ("http://h:1/m?a=//b", "/m?a=//b"),
            ("http://h:1/m/?s=1#x", "/m/?s=1"),
            ("http://h", "/"),
            ("//h/m", "/m"),
            ("//h", "/"),
            ("m?s=1", "/a/m?s=1"),
            ("<origin>?x", "/?x"),
        ] {
            assert_eq!(resolve("/a/sse?q", address.as_bytes()), resolved, "{address}");
        }
    }
}
