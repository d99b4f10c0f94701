//! Before the answer the server asks something of the client, and does not wait for what it says.

use std::sync::Arc;

use super::ahead::Ahead;
use crate::{
    fault::{Fault, PlanError, value::Object},
    wire::scan::push_string,
};

pub(super) fn read(object: &mut Object<'_>) -> Result<Arc<dyn Fault>, PlanError> {
    let method = object.get("method").map(|method| method.string("method")).transpose()?;
    let params = object.get("params");
    let mut bytes = br#"{"jsonrpc":"2.0","id":"fault-request","method":"#.to_vec();
    push_string(method.as_deref().unwrap_or("ping"), &mut bytes);
    if let Some(params) = params {
        if !params.is_object() {
            return Err(params.wrong("params", "an object in braces"));
        }
        bytes.extend_from_slice(b",\"params\":");
        bytes.extend(params.raw().iter().filter(|byte| !matches!(byte, b'\n' | b'\r')));
    }
    bytes.push(b'}');
    Ok(Arc::new(Ahead(bytes)))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Stand, refused};

    #[test]
    fn the_request_comes_before_the_answer() {
        let mut stand = Stand::stdio(r#"{"do": "server_request", "method": "roots/list", "params": {}}"#);
        let answer = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        stand.answers(answer);
        let request = r#"{"jsonrpc":"2.0","id":"fault-request","method":"roots/list","params":{}}"#;
        assert_eq!(stand.seen(), format!("{request}\n{answer}\n"));
        assert_eq!(
            refused(r#"{"do": "server_request", "params": []}"#),
            "`params` must be an object in braces, found `[]`"
        );
    }
}
