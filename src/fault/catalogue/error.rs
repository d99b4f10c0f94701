//! A JSON-RPC error in the answer's place.

use std::sync::Arc;

use super::speak;
use crate::{
    fault::{Fault, PlanError, Target, step::Step, value::Object},
    wire::jsonrpc,
};

#[derive(Debug)]
struct Error {
    code: i32,
    message: String,
    data: Option<String>,
}

pub(super) fn read(object: &mut Object<'_>) -> Result<Arc<dyn Fault>, PlanError> {
    let code = object.get("code").map(|code| code.integer("code", "a whole number")).transpose()?;
    let message = object.get("message").map(|message| message.string("message")).transpose()?;
    let data = object.get("data").map(|data| String::from_utf8_lossy(data.raw()).into_owned());
    Ok(Arc::new(Error {
        code: code.unwrap_or(-32603),
        message: message.map_or_else(|| "Internal error".to_owned(), |message| message.into_owned()),
        data,
    }))
}

impl Fault for Error {
    fn instead(&self, of: &Target<'_>) -> Option<Vec<Step>> {
        let error = jsonrpc::error(of.id, self.code, &self.message, self.data.as_deref());
        Some(speak::message(of, 200, error))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Stand, refused};

    #[test]
    fn an_error_has_the_live_id() {
        let fault = r#"{"do": "error", "code": -32000, "message": "busy", "data": {"again_in": 5}}"#;
        let error =
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"busy","data":{"again_in": 5}}}"#;
        assert_eq!(Stand::stdio(fault).instead(), format!("{error}\n"));
        assert_eq!(
            Stand::http(fault).instead(),
            format!("200 content-type: application/json\n{error}\nend\n")
        );
        assert_eq!(Stand::sse(fault).instead(), format!("202\nAccepted\nend\nevent {error}\n"));
    }

    #[test]
    fn it_is_an_internal_error_unless_told_otherwise() {
        let error = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"Internal error"}}"#;
        assert_eq!(Stand::stdio(r#""error""#).instead(), format!("{error}\n"));
        assert_eq!(
            refused(r#"{"do": "error", "code": "x"}"#),
            "`code` must be a whole number, found `\"x\"`"
        );
    }
}
