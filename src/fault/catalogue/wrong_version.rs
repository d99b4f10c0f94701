//! The server answers `initialize`, or `server/discover`, with a revision that nobody asked for.

use std::sync::Arc;

use super::answer::{Answer, Response};
use crate::{
    fault::{Fault, PlanError, value::Object},
    wire::scan::{self, push_string},
};

pub(super) fn read(object: &mut Object<'_>) -> Result<Arc<dyn Fault>, PlanError> {
    let version = object.get("version").map(|version| version.string("version")).transpose()?;
    let mut raw = Vec::new();
    push_string(version.as_deref().unwrap_or("1999-01-01"), &mut raw);
    Ok(Arc::new(Answer(move |response: &Response<'_>| {
        let result = response.message.outcome_span()?;
        let member = |name| scan::member(response.message.bytes, result.start, name);
        if let Some(place) = member("protocolVersion") {
            return Some(response.with(place, &raw));
        }
        member("supportedVersions").map(|place| response.with(place, &[b"[", &raw[..], b"]"].concat()))
    })))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Stand;

    #[test]
    fn the_revision_is_another() {
        let seen = |fault: &str, result: &str| {
            let mut stand = Stand::stdio(fault).of("initialize");
            stand.answers(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#));
            stand.seen()
        };
        assert_eq!(
            seen(r#""wrong_version""#, r#"{"protocolVersion":"2025-11-25"}"#),
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"protocolVersion\":\"1999-01-01\"}}\n"
        );
        assert_eq!(
            seen(r#"{"do": "wrong_version", "version": "2"}"#, r#"{"supportedVersions":["2026-07-28"]}"#),
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"supportedVersions\":[\"2\"]}}\n"
        );
    }
}
