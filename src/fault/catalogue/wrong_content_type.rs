//! The response has another content type than what it carries.

use std::sync::Arc;

use super::heads::{Heads, header_value};
use crate::fault::{Fault, PlanError, step::ResponseHead, value::Object};

pub(super) fn read(object: &mut Object<'_>) -> Result<Arc<dyn Fault>, PlanError> {
    let value = object.get("value").map(|value| header_value(value, "value")).transpose()?;
    let value = value.unwrap_or_else(|| b"text/html".to_vec());
    Ok(Arc::new(Heads(move |head: &mut ResponseHead| {
        // In its place: a head that had it already is the same then, and nothing has acted.
        let is_it = |name: &str| name == "content-type";
        let at = head.headers.iter().position(|(name, _)| is_it(name)).unwrap_or(0);
        head.headers.retain(|(name, _)| !is_it(name));
        head.headers.insert(at, ("content-type".into(), value.clone().into()));
    })))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Stand, refused};

    const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

    #[test]
    fn the_content_type_is_another() {
        let mut stand = Stand::http(r#""wrong_content_type""#);
        stand.answers(ANSWER);
        assert_eq!(stand.seen(), format!("200 content-type: text/html\n{ANSWER}\nend\n"));
        let mut stand = Stand::http(r#"{"do": "wrong_content_type", "value": "text/plain"}"#);
        stand.streams();
        assert_eq!(stand.seen(), "200 content-type: text/plain\n");
    }

    #[test]
    fn it_is_a_headers_value() {
        assert!(refused(r#"{"do": "wrong_content_type", "value": "a\nb"}"#).contains("control characters"));
    }
}
