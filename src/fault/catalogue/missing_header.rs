//! A header is left out of the response.

use std::sync::Arc;

use super::heads::Heads;
use crate::{
    fault::{Fault, PlanError, step::ResponseHead, value::Object},
    wire::http::is_token,
};

/// Without these nobody knows where a response ends, so whoever sends it sets them.
const FRAMING: [&str; 3] = ["connection", "content-length", "transfer-encoding"];

pub(super) fn read(object: &mut Object<'_>) -> Result<Arc<dyn Fault>, PlanError> {
    let expected = "a header's name, such as mcp-session-id";
    let given = object.need("name", expected)?;
    let left_out = given.string("name")?.to_ascii_lowercase();
    if !is_token(left_out.as_bytes()) || FRAMING.contains(&&*left_out) {
        return Err(given.wrong("name", "a header's name that says nothing of the response's length"));
    }
    Ok(Arc::new(Heads(move |head: &mut ResponseHead| head.headers.retain(|(name, _)| **name != *left_out))))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Stand, refused};

    const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

    #[test]
    fn a_header_is_left_out() {
        for (name, head) in
            [("Content-Type", "200"), ("mcp-session-id", "200 content-type: application/json")]
        {
            let mut stand = Stand::http(&format!(r#"{{"do": "missing_header", "name": "{name}"}}"#));
            stand.answers(ANSWER);
            assert_eq!(stand.seen(), format!("{head}\n{ANSWER}\nend\n"));
        }
    }

    #[test]
    fn those_of_framing_stay() {
        for name in ["Content-Length", "a b", ""] {
            let refused = refused(&format!(r#"{{"do": "missing_header", "name": "{name}"}}"#));
            assert!(refused.contains("says nothing of the response's length"), "{refused}");
        }
    }
}
