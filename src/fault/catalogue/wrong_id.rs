//! The answer has an id that no request has.

use std::sync::Arc;

use super::answer::{Answer, Response};
use crate::fault::{Fault, PlanError, value::Object};

pub(super) fn read(_: &mut Object<'_>) -> Result<Arc<dyn Fault>, PlanError> {
    Ok(Arc::new(Answer(|response: &Response<'_>| response.with_id(&other(response.id)))))
}

/// An id of the same type that clients, which count upwards, have not used.
fn other(id: &[u8]) -> Vec<u8> {
    match id {
        [b'"', inside @ .., b'"'] => [b"\"not-", inside, b"\""].concat(),
        _ => b"987654321".to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Stand;

    #[test]
    fn the_id_is_another_of_its_type() {
        let mut stand = Stand::stdio(r#""wrong_id""#);
        stand.answers(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        assert_eq!(stand.seen(), "{\"jsonrpc\":\"2.0\",\"id\":987654321,\"result\":{}}\n");
        assert_eq!(super::other(b"\"a\""), b"\"not-a\"");
    }
}
