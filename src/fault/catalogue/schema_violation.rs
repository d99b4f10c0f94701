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

/// An output schema is of an object, so a list breaks any.
fn violated(response: &Response<'_>) -> Option<Vec<u8>> {
    const LIST: &[u8] = br#"["this breaks the outputSchema"]"#;
    let result = response.message.outcome_span()?;
    let bytes = response.message.bytes;
    match scan::member(bytes, result.start, "structuredContent") {
        Some(place) => Some(response.with(place, LIST)),
        None => {
            let inside = bytes.get(result.start + 1..result.end)?;
            let comma: &[u8] = if scan::skip_space(inside, 0) + 1 == inside.len() { b"" } else { b"," };
            let result = [b"{\"structuredContent\":", LIST, comma, inside].concat();
            response.with_result(&result)
        }
    }
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
        assert_eq!(seen(r#"{"content":[]}"#), told(&format!("{{{broken},\"content\":[]}}")));
        assert_eq!(seen("{}"), told(&format!("{{{broken}}}")));
    }
}
