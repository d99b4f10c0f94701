//! The answer is long: white space before its last brace, so it means what it meant.

use std::sync::Arc;

use super::answer::{Answer, Response};
use crate::{
    fault::{Fault, PlanError, value::Object},
    wire::Span,
};

/// The greatest length: it is held in memory.
const MOST: usize = 256 << 20;

pub(super) fn read(object: &mut Object<'_>) -> Result<Arc<dyn Fault>, PlanError> {
    let expected = "how many bytes the answer has, from 0 to 268435456";
    let given = object.need("bytes", expected)?;
    let bytes: usize = given.integer("bytes", expected)?;
    if bytes > MOST {
        return Err(given.wrong("bytes", expected));
    }
    Ok(Arc::new(Answer(move |answer: &Response<'_>| {
        let text = answer.message.bytes;
        let last = text.iter().rposition(|byte| *byte == b'}')?;
        let missing = bytes.checked_sub(text.len())?;
        Some(answer.with(Span::new(last, last), &vec![b' '; missing]))
    })))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Stand, refused};

    fn seen(bytes: &str) -> String {
        let mut stand = Stand::stdio(&format!(r#"{{"do": "oversize", "bytes": {bytes}}}"#));
        stand.answers(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        stand.seen()
    }

    #[test]
    fn the_answer_grows_to_a_size() {
        assert_eq!(seen("40"), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}    }\n");
        assert_eq!(seen("0"), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n");
        assert_eq!(seen("1000000").len(), 1_000_001);
    }

    #[test]
    fn what_no_memory_holds_is_refused() {
        assert!(refused(r#"{"do": "oversize", "bytes": 268435457}"#).contains("from 0 to 268435456"));
    }
}
