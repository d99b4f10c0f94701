//! Before the answer the server asks something of the client, and does not wait for what it says.

use std::sync::Arc;

use super::ahead::Ahead;
use crate::{
    fault::{Effect, Fault, PlanError, Target, value::Object},
    wire::scan::push_string,
};

/// How the ids of such requests begin.
const BEGIN: &str = "\"fault-request-";
/// The same, as it is looked for.
pub(in crate::fault) const SERVER_REQUEST: &[u8] = BEGIN.as_bytes();

/// Its method, and params behind it.
#[derive(Debug)]
struct ServerRequest(Vec<u8>);

pub(super) fn read(object: &mut Object<'_>) -> Result<Arc<dyn Fault>, PlanError> {
    let method = object.get("method").map(|method| method.string("method")).transpose()?;
    let params = object.get("params");
    let mut bytes = b",\"method\":".to_vec();
    push_string(method.as_deref().unwrap_or("ping"), &mut bytes);
    if let Some(params) = params {
        if !params.is_object() {
            return Err(params.wrong("params", "an object in braces"));
        }
        bytes.extend_from_slice(b",\"params\":");
        bytes.extend(params.raw().iter().filter(|byte| !matches!(byte, b'\n' | b'\r')));
    }
    bytes.push(b'}');
    Ok(Arc::new(ServerRequest(bytes)))
}

impl Fault for ServerRequest {
    fn effect(&self, of: &Target<'_>) -> Option<Box<dyn Effect>> {
        // No id comes twice in a session.
        let mut bytes = format!(r#"{{"jsonrpc":"2.0","id":{BEGIN}{}""#, of.count).into_bytes();
        bytes.extend_from_slice(&self.0);
        Ahead(bytes).effect(of)
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Stand, refused};

    #[test]
    fn the_request_comes_before_the_answer() {
        let mut stand = Stand::stdio(r#"{"do": "server_request", "method": "roots/list", "params": {}}"#);
        let answer = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        stand.answers(answer);
        let request = r#"{"jsonrpc":"2.0","id":"fault-request-1","method":"roots/list","params":{}}"#;
        assert_eq!(stand.seen(), format!("{request}\n{answer}\n"));
        assert_eq!(
            refused(r#"{"do": "server_request", "params": []}"#),
            "`params` must be an object in braces, found `[]`"
        );
    }
}
