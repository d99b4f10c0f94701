//! `structuredContent` that breaks the tool's `outputSchema` (specification 2025-11-25, server/tools).

use std::sync::Arc;

use super::answer::{Answer, Response};
use crate::{
    fault::{Fault, PlanError, value::Object},
    wire::scan,
};

pub(super) fn read(_: &mut Object<'_>) -> Result<Arc<dyn Fault>, PlanError> {
    Ok(Arc::new(Answer(violated)))
}

/// An output schema is of an object, so a list breaks any. A tool that has one answers with structured content
/// (specification 2025-11-25, server/tools); a result without that is none of such a tool.
fn violated(response: &Response<'_>) -> Option<Vec<u8>> {
    const LIST: &[u8] = br#"["this breaks the outputSchema"]"#;
    let result = response.message.outcome_span()?;
    let bytes = response.message.bytes;
    let place = scan::member(bytes, result.start, "structuredContent")?;
    Some(response.with(place, LIST))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Stand;

    fn seen(result: &str) -> String {
        let mut stand = Stand::stdio(r#""schema_violation""#);
        stand.answers(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#));
        stand.seen()
    }

    #[test]
    fn structured_content_is_of_a_type_that_no_output_schema_allows() {
        let broken = r#""structuredContent":["this breaks the outputSchema"]"#;
        let told = |result: &str| format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{result}}}\n");
        assert_eq!(
            seen(r#"{"content":[],"structuredContent":{"n":1},"x":1}"#),
            told(&format!("{{\"content\":[],{broken},\"x\":1}}"))
        );
    }

    /// Its tool has no such schema, or failed.
    #[test]
    fn a_result_without_structured_content_passes() {
        for result in [r#"{"content":[]}"#, "{}", r#"{"content":[],"isError":true}"#] {
            let mut stand = Stand::stdio(r#""schema_violation""#);
            stand.answers(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#));
            assert!(stand.is_idle(), "{result}");
            assert_eq!(stand.seen(), format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{result}}}\n"));
        }
    }
}
