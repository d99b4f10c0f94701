//! How live traffic is seen by faults: as a recording of it would be.

use std::borrow::Cow;

use super::matcher::Matcher;
use crate::{
    fault::live::Look,
    redact::{Redactor, Rules, Vars, is_credential},
    traffic::Direction,
    wire::jsonrpc::Message,
};

/// Messages without their secrets, and equal ones alike.
#[derive(Debug)]
pub struct Lens {
    vars: Vars,
    redactor: Redactor,
    matcher: Matcher,
}

impl Lens {
    /// With what is redacted, and what variables stand for.
    pub fn new(rules: &Rules, vars: Vars) -> Self {
        Self { vars, redactor: Redactor::for_recording(rules), matcher: Matcher::plain() }
    }
}

impl Look for Lens {
    fn message<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        match self.vars.hide(bytes) {
            Cow::Borrowed(bytes) => self.redactor.message(Direction::ToServer, bytes),
            Cow::Owned(bytes) => Cow::Owned(self.redactor.message(Direction::ToServer, &bytes).into_owned()),
        }
    }

    fn headers(&mut self, headers: &[(&str, &[u8])]) {
        for (name, value) in headers.iter().filter(|(name, _)| is_credential(name)) {
            self.header(name, value);
        }
    }

    fn header(&mut self, name: &str, value: &[u8]) -> String {
        let hidden = self.vars.hide(value);
        self.redactor.header_value(name, &String::from_utf8_lossy(&hidden)).into_owned()
    }

    fn form(&mut self, message: &Message<'_>) -> Vec<u8> {
        self.matcher.form(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_of_a_header_is_hidden_where_a_message_repeats_it() {
        let mut lens = Lens::new(&Rules::default(), Vars::default());
        let call = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":"zzyyxxww-1"}}}"#;
        assert_eq!(*lens.message(call), call[..]);
        lens.headers(&[("accept", b"zzyyxxww-2"), ("x-api-key", b"zzyyxxww-1")]);
        let seen = String::from_utf8_lossy(&lens.message(call)).into_owned();
        assert!(!seen.contains("zzyyxxww-1") && seen.contains("<redacted:"), "{seen}");
    }
}
