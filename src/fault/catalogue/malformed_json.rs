//! The answer is almost JSON: its last brace is a bracket.

use std::sync::Arc;

use super::answer::{Answer, Response};
use crate::fault::{Fault, PlanError, value::Object};

pub(super) fn read(_: &mut Object<'_>) -> Result<Arc<dyn Fault>, PlanError> {
    Ok(Arc::new(Answer(|answer: &Response<'_>| {
        let mut text = answer.message.bytes.to_vec();
        let last = text.iter().rposition(|byte| *byte == b'}')?;
        text[last] = b']';
        Some(text)
    })))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Stand;

    #[test]
    fn the_last_brace_is_a_bracket() {
        let mut stand = Stand::stdio(r#""malformed_json""#);
        stand.says(r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#);
        stand.answers("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}} ");
        assert_eq!(
            stand.seen(),
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\
             {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}] \n"
        );
    }
}
