//! What stands in a secret's place: `<redacted:kind-n>`.

use std::{fmt, sync::LazyLock};

use memchr::memmem::{self, Finder};

use crate::wire::{Span, scan::backslashes_at_end};

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
pub(crate) fn placeholders(text: &[u8]) -> impl Iterator<Item = (Span, Placeholder)> + '_ {
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let start = from + memmem::find(&text[from..], START)?;
            from = start + START.len();
            if let Some((end, placeholder)) = read(text, from, plain_end) {
                from = end;
                return Some((Span::new(start, end), placeholder));
            }
        }
    })
}

/// The same, also where addresses or JSON spell their signs: `%3Credacted%3Atoken-1%3E`,
/// `\u003credacted:token-1\u003e`.
pub(super) fn spelled(text: &[u8]) -> impl Iterator<Item = (Span, Placeholder)> + '_ {
    const WORD: &[u8] = b"redacted";
    const SHORTEST: usize = "<redacted:k-1>".len();
    static FIND: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(WORD));
    let mut from = if text.len() < SHORTEST { text.len() } else { 0 };
    std::iter::from_fn(move || {
        loop {
            let word = from + FIND.find(&text[from..])?;
            let before = from;
            from = word + WORD.len();
            let Some(start) = start_before(text, before, word) else { continue };
            let colon = [":", "%3a"].into_iter().find(|colon| starts_with(&text[from..], colon));
            let found = colon.and_then(|colon| read(text, from + colon.len(), spelled_end));
            if let Some((end, placeholder)) = found {
                from = end;
                return Some((Span::new(start, end), placeholder));
            }
        }
    })
}

/// Where the `<` begins that ends at `end`, however it is spelled, with all backslashes of an escape.
fn start_before(text: &[u8], from: usize, end: usize) -> Option<usize> {
    let before = &text[from..end];
    let sign = ["<", "%3c", "u003c"].into_iter().find(|sign| {
        before.len().checked_sub(sign.len()).is_some_and(|at| starts_with(&before[at..], sign))
    })?;
    let before = &before[..before.len() - sign.len()];
    let slashes = backslashes_at_end(before);
    match sign.starts_with('u') {
        true => (slashes > 0).then(|| from + before.len() - slashes),
        false => Some(from + before.len()),
    }
}

/// Whether what stands there is part of a placeholder, in whatever spelling: `password` in `<redacted:password-1>`.
pub(super) fn is_within(text: &[u8], part: Span) -> bool {
    const LONGEST: usize = 96;
    let from = part.start.saturating_sub(LONGEST);
    let around = &text[from..text.len().min(part.end.saturating_add(LONGEST))];
    spelled(around).any(|(span, _)| span.start + from <= part.start && part.end <= span.end + from)
}

fn plain_end(text: &[u8]) -> Option<usize> {
    text.starts_with(b">").then_some(1)
}

/// How long the `>` is that a text begins with, however it is spelled.
fn spelled_end(text: &[u8]) -> Option<usize> {
    let slashes = text.iter().take_while(|byte| **byte == b'\\').count();
    match slashes {
        0 => [">", "%3e"].into_iter().find(|sign| starts_with(text, sign)).map(str::len),
        _ => starts_with(&text[slashes..], "u003e").then(|| slashes + "u003e".len()),
    }
}

/// Reads `kind-n` and the `>` behind it, whose length `end` says; the offset behind that.
fn read(text: &[u8], at: usize, end: impl Fn(&[u8]) -> Option<usize>) -> Option<(usize, Placeholder)> {
    // Kinds are our own and short; what is longer is none of ours.
    let room = &text[at..text.len().min(at + 48)];
    let is_plain = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
    let length = room.iter().take_while(|byte| is_plain(byte)).count();
    let (kind, number) = std::str::from_utf8(&room[..length]).ok()?.rsplit_once('-')?;
    let fits = !kind.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let number = number.parse().ok().filter(|_| fits)?;
    Some((at + length + end(&text[at + length..])?, Placeholder { kind: kind.into(), number }))
}

fn starts_with(text: &[u8], start: &str) -> bool {
    text.get(..start.len()).is_some_and(|text| text.eq_ignore_ascii_case(start.as_bytes()))
}

/// Whether the whole text is one placeholder of ours, or of a variable's value: nothing is left to redact.
pub(super) fn is_placeholder(text: &[u8]) -> bool {
    let whole = || read(text, START.len(), plain_end).is_some_and(|(end, _)| end == text.len());
    text.starts_with(START) && whole() || is_variable(text)
}

/// Whether the whole text is one placeholder, in whatever spelling.
pub(crate) fn is_spelled(text: &[u8]) -> bool {
    spelled(text).next().is_some_and(|(span, _)| span == Span::new(0, text.len()))
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
    fn placeholders_are_read_as_addresses_and_json_spell_them() {
        let read_all = |text: &str| -> Vec<String> {
            spelled(text.as_bytes())
                .map(|(span, placeholder)| format!("{}={placeholder}", &text[span.start..span.end]))
                .collect()
        };
        for token in [
            "<redacted:token-1>",
            "%3Credacted%3Atoken-1%3E",
            "%3credacted:token-1%3e",
            r"\u003credacted:token-1\u003e",
            r"\\\u003Credacted:token-1\\\u003E",
        ] {
            let expected = format!("{token}=<redacted:token-1>");
            assert_eq!(read_all(&format!("x{token}{token}y")), [&*expected, &expected], "{token}");
        }
        for none in [
            "redacted:token-1>",
            "u003credacted:token-1>",
            "<redacted%token-1>",
            r"<redacted:token-1\>",
            "redacted",
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
