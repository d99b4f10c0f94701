//! The answer's id is null, as in answers to what could not be read (JSON-RPC 2.0, section 5).

use std::sync::Arc;

use super::answer::{Answer, Response};
use crate::fault::{Fault, PlanError, value::Object};

pub(super) fn read(_: &mut Object<'_>) -> Result<Arc<dyn Fault>, PlanError> {
    Ok(Arc::new(Answer(|response: &Response<'_>| response.with_id(b"null"))))
}

#[cfg(test)]
mod tests {
    use super::super::testing::Stand;

    #[test]
    fn the_id_is_null() {
        let mut stand = Stand::stdio(r#""null_id""#);
        stand.answers(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        assert_eq!(stand.seen(), "{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":{}}\n");
    }
}
