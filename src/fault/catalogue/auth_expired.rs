//! The access token is not good any more (RFC 6750, section 3.1; specification 2025-11-25, basic/authorization).

use std::sync::Arc;

use super::speak;
use crate::fault::{Fault, PlanError, Target, step::Step, value::Object};

#[derive(Debug)]
struct AuthExpired;

pub(super) fn read(_: &mut Object<'_>) -> Result<Arc<dyn Fault>, PlanError> {
    Ok(Arc::new(AuthExpired))
}

impl Fault for AuthExpired {
    fn instead(&self, of: &Target<'_>) -> Option<Vec<Step>> {
        const CHALLENGE: &[u8] =
            b"Bearer error=\"invalid_token\", error_description=\"The access token expired\"";
        let mut headers = vec![("www-authenticate".into(), CHALLENGE.into())];
        headers.extend(speak::typed("application/json"));
        let body = br#"{"error":"invalid_token","error_description":"The access token expired"}"#;
        Some(speak::response(of, 401, headers, body.to_vec()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Stand;

    #[test]
    fn a_challenge_says_that_the_token_expired() {
        let told = Stand::http(r#""auth_expired""#).instead();
        assert!(told.starts_with("401 www-authenticate: Bearer error=\"invalid_token\""), "{told}");
    }
}
