//! A tool that failed, as a tool tells it: a result with `isError` (specification 2025-11-25, server/tools).

use std::sync::Arc;

use super::answer::{Answer, Response};
use crate::{
    fault::{Fault, PlanError, value::Object},
    wire::{
        results,
        scan::{self, push_string},
    },
};

pub(super) fn read(object: &mut Object<'_>) -> Result<Arc<dyn Fault>, PlanError> {
    let text = object.get("text").map(|text| text.string("text")).transpose()?;
    let mut shown = Vec::new();
    push_string(text.as_deref().unwrap_or("the tool failed"), &mut shown);
    Ok(Arc::new(Answer(move |answer: &Response<'_>| {
        let mut result = results::tool_error(&shown, answer.is_modern, "");
        // That is about the answer, whatever it says.
        let meta = answer.message.outcome().and_then(|outcome| {
            Some([b",\"_meta\":", scan::member(outcome, 0, "_meta")?.of(outcome)].concat())
        });
        result.splice(result.len() - 1..result.len() - 1, meta.unwrap_or_default());
        answer.with_result(&result)
    })))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Stand;

    #[test]
    fn the_result_says_that_the_tool_failed() {
        let mut stand = Stand::stdio(r#"{"do": "tool_error", "text": "no \"such\" file"}"#);
        stand.answers(r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#);
        assert_eq!(
            stand.seen(),
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[{\"type\":\"text\",\
             \"text\":\"no \\\"such\\\" file\"}],\"isError\":true}}\n"
        );
    }

    #[test]
    fn what_is_told_about_the_result_stays() {
        let mut stand = Stand::stdio(r#"{"do": "tool_error", "text": "no"}"#);
        stand.answers(
            r#"{"jsonrpc":"2.0","id":1,"result":{"_meta":{"a":1},"content":[],"resultType":"complete"}}"#,
        );
        let seen = stand.seen();
        assert!(seen.ends_with("\"isError\":true,\"_meta\":{\"a\":1}}}\n"), "{seen}");
    }
}
