//! What stands in a secret's place: `<redacted:kind-n>`.

use std::fmt;

use memchr::memmem;

use crate::wire::Span;

const START: &[u8] = b"<redacted:";

/// One placeholder, read from a text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Placeholder {
    /// The kind of secret.
    pub kind: Box<str>,
    /// Its number within the kind, from 1.
    pub number: u32,
}

impl fmt::Display for Placeholder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<redacted:{}-{}>", self.kind, self.number)
    }
}

/// The placeholders in a text, with their places, in order.
pub(super) fn placeholders(text: &[u8]) -> impl Iterator<Item = (Span, Placeholder)> + '_ {
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let start = from + memmem::find(&text[from..], START)?;
            from = start + START.len();
            if let Some((end, placeholder)) = read(text, from) {
                from = end;
                return Some((Span::new(start, end), placeholder));
            }
        }
    })
}

/// Reads `kind-n>`; the offset behind it.
fn read(text: &[u8], at: usize) -> Option<(usize, Placeholder)> {
    // Kinds are our own and short; what is longer is none of ours.
    let room = &text[at..text.len().min(at + 48)];
    let length = room.iter().position(|byte| *byte == b'>')?;
    let (kind, number) = std::str::from_utf8(&room[..length]).ok()?.rsplit_once('-')?;
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let fits =
        !kind.is_empty() && kind.bytes().all(plain) && number.bytes().all(|byte| byte.is_ascii_digit());
    let number = number.parse().ok().filter(|_| fits)?;
    Some((at + length + 1, Placeholder { kind: kind.into(), number }))
}

/// Whether the whole text is one placeholder of ours, or of a variable's value: nothing is left to redact.
pub(super) fn is_placeholder(text: &[u8]) -> bool {
    let whole = || read(text, START.len()).is_some_and(|(end, _)| end == text.len());
    text.starts_with(START) && whole() || is_variable(text)
}

fn is_variable(text: &[u8]) -> bool {
    text.strip_prefix(b"<var:")
        .and_then(|rest| rest.strip_suffix(b">"))
        .is_some_and(|name| !name.contains(&b'>'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(text: &str) -> Vec<String> {
        placeholders(text.as_bytes()).map(|(_, placeholder)| placeholder.to_string()).collect()
    }

    #[test]
    fn placeholders_are_read_in_order_and_nothing_else_is() {
        assert_eq!(
            read_all("a<redacted:api-key-12><redacted:jwt-1>b<redacted:<redacted:token-3>"),
            ["<redacted:api-key-12>", "<redacted:jwt-1>", "<redacted:token-3>"]
        );
        for none in [
            "<redacted:>",
            "<redacted:token>",
            "<redacted:token-x>",
            "<redacted:-1>",
            "<redacted:token-1",
            "",
        ] {
            assert_eq!(read_all(none), [] as [&str; 0], "{none}");
        }
    }

    #[test]
    fn a_text_that_is_a_placeholder_is_told_from_one_that_holds_it() {
        assert!(is_placeholder(b"<redacted:token-1>") && is_placeholder(b"<var:HOME>"));
        assert!(
            !is_placeholder(b"<redacted:token-1>x")
                && !is_placeholder(b"<var:A><var:B>")
                && !is_placeholder(b"")
        );
    }
}
