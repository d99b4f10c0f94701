//! The answer's text ends early, in a message that ends in good order.

use std::sync::Arc;

use super::answer::{Answer, Response};
use crate::fault::{Fault, PlanError, value::Object};

pub(super) fn read(object: &mut Object<'_>) -> Result<Arc<dyn Fault>, PlanError> {
    let expected = "how many bytes of the answer come, a whole number from 0";
    let bytes: usize = object.need("bytes", expected)?.integer("bytes", expected)?;
    Ok(Arc::new(Answer(move |answer: &Response<'_>| {
        let text = answer.message.bytes;
        Some(text[..bytes.min(text.len())].to_vec())
    })))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Stand;

    #[test]
    fn so_much_of_the_answer_comes() {
        let mut stand = Stand::stdio(r#"{"do": "truncate", "bytes": 9}"#);
        stand.answers(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        assert_eq!(stand.seen(), "{\"jsonrpc\n");
    }
}
