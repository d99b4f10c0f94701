//! What a client of Streamable HTTP says in headers, read from its messages (F4.1, F4.2).

use base64::{Engine, engine::general_purpose::STANDARD};
use hyper::{
    HeaderMap,
    header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT},
};

use super::params::Tools;
use crate::wire::jsonrpc::{Kind, Message, text};

/// The header of a legacy session.
pub(super) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");
const AGENT: &str = concat!("mcp-tapedeck/", env!("CARGO_PKG_VERSION"));

/// What a session has agreed on so far.
#[derive(Debug, Default)]
pub(super) struct Agreed {
    /// The session's id, where the server gave one.
    pub(super) session: Option<HeaderValue>,
    /// The revision in the answer to `initialize`.
    pub(super) revision: Option<HeaderValue>,
    /// What of a call's arguments is repeated in headers.
    pub(super) tools: Tools,
}

impl Agreed {
    /// The headers of a POST with this message.
    pub(super) fn post(&self, message: &Message<'_>) -> HeaderMap {
        let mut headers = common("application/json, text/event-stream");
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(revision) = message.meta("io.modelcontextprotocol/protocolVersion").map(text) {
            insert(&mut headers, REVISION, &revision);
            insert(&mut headers, METHOD, &message.method());
            if let Some(name) = named(message) {
                insert(&mut headers, NAME, &name);
            }
            for (name, value) in self.tools.headers(message) {
                insert(&mut headers, name, &value);
            }
        } else if !(message.kind == Kind::Request && message.method() == "initialize") {
            self.legacy(&mut headers);
        }
        headers
    }

    /// The headers of a GET.
    pub(super) fn get(&self) -> HeaderMap {
        let mut headers = common("text/event-stream");
        self.legacy(&mut headers);
        headers
    }

    /// The headers of the DELETE that ends the session.
    pub(super) fn delete(&self) -> HeaderMap {
        let mut headers = common("*/*");
        self.legacy(&mut headers);
        headers
    }

    fn legacy(&self, headers: &mut HeaderMap) {
        if let Some(session) = &self.session {
            headers.insert(SESSION, session.clone());
        }
        if let Some(revision) = &self.revision {
            headers.insert(REVISION, revision.clone());
        }
    }
}

fn common(accept: &'static str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(ACCEPT, HeaderValue::from_static(accept));
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
    headers
}

/// What `Mcp-Name` names: not in every method that has a name.
fn named(message: &Message<'_>) -> Option<String> {
    let has_header = matches!(
        message.method().as_ref(),
        "tools/call" | "prompts/get" | "resources/read" | "tasks/get" | "tasks/update" | "tasks/cancel"
    );
    has_header.then(|| message.name()).flatten().map(std::borrow::Cow::into_owned)
}

fn insert(headers: &mut HeaderMap, name: HeaderName, text: &str) {
    // What was encoded is plain.
    if let Ok(value) = HeaderValue::from_str(&encoded(text)) {
        headers.insert(name, value);
    }
}

/// A text as a header's value: as it is where it is plain, else behind a marker (F4.2).
fn encoded(text: &str) -> String {
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && text.trim_matches(' ').len() == text.len()
        && !(text.starts_with("=?base64?") && text.ends_with("?="));
    if is_plain { text.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(text)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(headers: &HeaderMap) -> Vec<String> {
        let all = headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()));
        all.filter(|line| line.starts_with("mcp-")).collect()
    }

    #[test]
    fn a_modern_message_names_itself() {
        let agreed = Agreed { session: Some(HeaderValue::from_static("s")), ..Agreed::default() };
        let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
        for (method, params, expected) in [
            ("tools/call", r#""name":"a b","#, Some("a b")),
            ("resources/read", r#""uri":"file:///ä","#, Some("=?base64?ZmlsZTovLy/DpA==?=")),
            ("prompts/get", r#""name":" p","#, Some("=?base64?IHA=?=")),
            ("tasks/cancel", r#""taskId":"=?base64?x?=","#, Some("=?base64?PT9iYXNlNjQ/eD89?=")),
            ("tools/list", r#""name":"x","#, None),
        ] {
            let text =
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}{meta}}}}}"#);
            let mut lines =
                vec!["mcp-protocol-version: 2026-07-28".to_owned(), format!("mcp-method: {method}")];
            lines.extend(expected.map(|name| format!("mcp-name: {name}")));
            assert_eq!(shown(&agreed.post(&Message::read(text.as_bytes()))), lines);
        }
    }

    #[test]
    fn a_legacy_message_names_its_session_and_initialize_begins_one() {
        let agreed = Agreed {
            session: Some(HeaderValue::from_static("s")),
            revision: Some(HeaderValue::from_static("2025-11-25")),
            ..Agreed::default()
        };
        let all = ["mcp-session-id: s", "mcp-protocol-version: 2025-11-25"];
        let post = |text: &str| shown(&agreed.post(&Message::read(text.as_bytes())));
        assert_eq!(post(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}"#), all);
        assert_eq!(post(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#), all);
        assert!(post(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#).is_empty());
        assert_eq!(
            (shown(&agreed.get()), shown(&agreed.delete())),
            (all.map(str::to_owned).into(), all.map(str::to_owned).into())
        );
    }
}
