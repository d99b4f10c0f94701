//! The answer is no UTF-8: a byte that never stands in it ends the last string of what is answered.

use std::sync::Arc;

use super::answer::{Answer, Response};
use crate::{
    fault::{Fault, PlanError, value::Object},
    wire::Span,
};

pub(super) fn read(_: &mut Object<'_>) -> Result<Arc<dyn Fault>, PlanError> {
    Ok(Arc::new(Answer(|answer: &Response<'_>| {
        let outcome = answer.message.outcome_span()?;
        let last = outcome.of(answer.message.bytes).iter().rposition(|byte| *byte == b'"');
        Some(match last {
            // A quote that nothing escapes ends it, so what stands before it is whole.
            Some(at) => answer.with(Span::new(outcome.start + at, outcome.start + at), b"\xff"),
            None => answer.with(outcome, b"\"\xff\""),
        })
    })))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Stand;

    fn seen(answer: &str) -> String {
        let mut stand = Stand::stdio(r#""invalid_utf8""#);
        stand.answers(answer);
        stand.seen()
    }

    #[test]
    fn a_string_of_the_answer_is_no_text() {
        assert_eq!(
            seen(r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"a\\"}]}}"#),
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"a\\\\\u{fffd}\"}]}}\n"
        );
        assert_eq!(
            seen(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"\u{fffd}\"}\n"
        );
    }
}
