//! An HTTP status in the answer's place: 401, 403, 404, 429, 500 and what else there is.

use std::sync::Arc;

use super::{heads::header_value, speak};
use crate::{
    fault::{
        Fault, PlanError, Target,
        step::{Headers, Step},
        value::Object,
    },
    wire::http::is_token,
};

#[derive(Debug)]
struct Status {
    status: u16,
    headers: Headers,
    body: String,
}

pub(super) fn read(object: &mut Object<'_>) -> Result<Arc<dyn Fault>, PlanError> {
    let expected = "an HTTP status from 200 to 599";
    let given = object.need("status", expected)?;
    let status: u16 = given.integer("status", expected)?;
    if !(200..600).contains(&status) {
        return Err(given.wrong("status", expected));
    }
    let mut headers = Headers::new();
    if let Some(seconds) = object.get("retry_after") {
        let seconds: u32 = seconds.integer("retry_after", "seconds, a whole number")?;
        headers.push(("retry-after".into(), seconds.to_string().into_bytes().into()));
    }
    if let Some(challenge) = object.get("challenge") {
        headers.push(("www-authenticate".into(), header_value(challenge, "challenge")?.into()));
    } else if status == 401 {
        headers.push(("www-authenticate".into(), b"Bearer".into()));
    }
    if let Some(given) = object.get("headers") {
        for (name, value) in given.object("`headers`")?.all() {
            if !is_token(name.as_bytes()) {
                return Err(PlanError::new(value.at(), format!("`{name}` cannot be a header's name")));
            }
            headers.push((name.to_ascii_lowercase().into(), header_value(value, "headers")?.into()));
        }
    }
    let body = object.get("body").map(|body| body.string("body")).transpose()?.unwrap_or_default();
    if !body.is_empty() && !headers.iter().any(|(name, _)| &**name == "content-type") {
        headers.extend(speak::typed("text/plain; charset=utf-8"));
    }
    Ok(Arc::new(Status { status, headers, body: body.into_owned() }))
}

impl Fault for Status {
    fn instead(&self, of: &Target<'_>) -> Option<Vec<Step>> {
        Some(speak::response(of, self.status, self.headers.clone(), self.body.clone().into_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Stand, refused};

    #[test]
    fn a_status_comes_with_its_headers_and_body() {
        assert_eq!(
            Stand::http(r#"{"do": "status", "status": 429, "retry_after": 3, "body": "later"}"#).instead(),
            "429 retry-after: 3; content-type: text/plain; charset=utf-8\nlater\nend\n"
        );
        assert_eq!(
            Stand::http(r#"{"do": "status", "status": 401, "challenge": "Bearer error=\"invalid_token\""}"#)
                .instead(),
            "401 www-authenticate: Bearer error=\"invalid_token\"\nend\n"
        );
        assert_eq!(Stand::sse(r#"{"do": "status", "status": 503}"#).instead(), "503\nend\n");
    }

    #[test]
    fn what_http_cannot_say_is_refused() {
        assert_eq!(
            refused(r#"{"do": "status", "status": 99}"#),
            "`status` must be an HTTP status from 200 to 599, found `99`"
        );
        assert!(refused(r#"{"do": "status", "status": 500, "headers": {"a b": ""}}"#).starts_with("`a b`"));
        assert!(
            refused(r#"{"do": "status", "status": 500, "challenge": "a\nb"}"#).contains("control characters")
        );
    }
}
