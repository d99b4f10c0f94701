//! The session is gone: in each form that real servers give that (F10.1, F10.2).

use std::sync::Arc;

use super::speak;
use crate::{
    fault::{Fault, PlanError, Target, step::Step, value::Object},
    wire::jsonrpc,
};

#[derive(Debug)]
struct SessionExpired {
    style: Style,
    message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    Http404,
    Http400,
    Error,
}

pub(super) fn read(object: &mut Object<'_>) -> Result<Arc<dyn Fault>, PlanError> {
    let style = match object.get("style") {
        None => Style::Http404,
        Some(style) => match &*style.string("style")? {
            "http_404" => Style::Http404,
            "http_400" => Style::Http400,
            "error" => Style::Error,
            _ => return Err(style.wrong("style", "`http_404`, `http_400` or `error`")),
        },
    };
    let message = object.get("message").map(|message| message.string("message")).transpose()?;
    let usual = match style {
        Style::Http404 | Style::Error => "Session not found",
        Style::Http400 => "Bad Request: No valid session ID provided",
    };
    let message = message.map_or_else(|| usual.to_owned(), |message| message.into_owned());
    Ok(Arc::new(SessionExpired { style, message }))
}

impl Fault for SessionExpired {
    fn instead(&self, of: &Target<'_>) -> Option<Vec<Step>> {
        let (status, code, id) = match self.style {
            Style::Http404 => (404, -32001, &b"null"[..]),
            Style::Http400 => (400, -32000, &b"null"[..]),
            Style::Error => (200, -32001, of.id),
        };
        let error = jsonrpc::error(id, code, &self.message, None);
        if status == 200 || !of.is_http {
            return Some(speak::message(of, 200, jsonrpc::error(of.id, code, &self.message, None)));
        }
        Some(speak::response(of, status, speak::typed("application/json"), error))
    }

    fn ends_session(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Stand, refused};

    #[test]
    fn a_lost_session_is_told_as_real_servers_tell_it() {
        assert_eq!(
            Stand::http(r#""session_expired""#).instead(),
            "404 content-type: application/json\n\
             {\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32001,\"message\":\"Session not found\"}}\nend\n"
        );
        assert_eq!(
            Stand::http(r#"{"do": "session_expired", "style": "http_400"}"#).instead(),
            "400 content-type: application/json\n{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32000,\
             \"message\":\"Bad Request: No valid session ID provided\"}}\nend\n"
        );
        let error = r#"{"do": "session_expired", "style": "error", "message": "Session terminated"}"#;
        let told = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"Session terminated"}}"#;
        assert_eq!(Stand::stdio(error).instead(), format!("{told}\n"));
        assert_eq!(
            Stand::http(error).instead(),
            format!("200 content-type: application/json\n{told}\nend\n")
        );
    }

    #[test]
    fn other_styles_are_named() {
        assert_eq!(
            refused(r#"{"do": "session_expired", "style": "tcp"}"#),
            "`style` must be `http_404`, `http_400` or `error`, found `\"tcp\"`"
        );
    }
}
