//! Strings and their escapes.

use std::borrow::Cow;

use super::escape_in;

/// The number of four hexadecimal digits.
pub(super) fn hex4(text: &[u8], at: usize) -> Option<u32> {
    let mut code = 0;
    for &digit in text.get(at..at + 4)? {
        code = code * 16 + (digit as char).to_digit(16)?;
    }
    Some(code)
}

/// One escape, and what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Escape {
    /// How many bytes it is spelled with.
    pub length: usize,
    bytes: [u8; 4],
    count: usize,
}

impl Escape {
    const fn byte(length: usize, byte: u8) -> Self {
        Self { length, bytes: [byte, 0, 0, 0], count: 1 }
    }

    fn char(length: usize, char: char) -> Self {
        let mut bytes = [0; 4];
        let count = char.encode_utf8(&mut bytes).len();
        Self { length, bytes, count }
    }

    /// The bytes of the character it says.
    pub fn text(&self) -> &[u8] {
        &self.bytes[..self.count]
    }
}

/// The escape that a text begins with; `text[0]` is its backslash.
///
/// A lone surrogate becomes its three bytes of generalized UTF-8. An escape JSON does not know is its backslash.
pub fn escape(text: &[u8]) -> Escape {
    match text.get(1) {
        Some(b'b') => Escape::byte(2, 8),
        Some(b'f') => Escape::byte(2, 12),
        Some(b'n') => Escape::byte(2, b'\n'),
        Some(b'r') => Escape::byte(2, b'\r'),
        Some(b't') => Escape::byte(2, b'\t'),
        Some(&byte @ (b'"' | b'\\' | b'/')) => Escape::byte(2, byte),
        Some(b'u') => hex4(text, 2).map_or(Escape::byte(1, b'\\'), |unit| code_unit(text, unit)),
        _ => Escape::byte(1, b'\\'),
    }
}

/// The character of the `\uXXXX` that a text begins with, pairing surrogates.
fn code_unit(text: &[u8], unit: u32) -> Escape {
    if (0xd800..0xdc00).contains(&unit)
        && text.get(6..8) == Some(b"\\u")
        && let Some(low) = hex4(text, 8)
        && (0xdc00..0xe000).contains(&low)
    {
        let code = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
        return Escape::char(12, char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
    }
    match char::from_u32(unit) {
        Some(char) => Escape::char(6, char),
        None => {
            let tail = |shift: u32| 0x80 | ((unit >> shift) & 0x3f) as u8;
            Escape { length: 6, bytes: [0xe0 | (unit >> 12) as u8, tail(6), tail(0), 0], count: 3 }
        }
    }
}

/// The text of a string given with its quotes, escapes undone (see [`escape`]): two strings are equal by code unit
/// exactly when these bytes are equal.
pub fn unescape(raw: &[u8]) -> Cow<'_, [u8]> {
    unescape_inside(raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default())
}

/// The same for what stands between a string's quotes.
pub fn unescape_inside(inside: &[u8]) -> Cow<'_, [u8]> {
    let Some(mut plain) = escape_in(inside) else { return Cow::Borrowed(inside) };
    let mut text = Vec::with_capacity(inside.len());
    let mut rest = inside;
    loop {
        text.extend_from_slice(&rest[..plain]);
        let escape = escape(&rest[plain..]);
        text.extend_from_slice(escape.text());
        rest = &rest[plain + escape.length..];
        match memchr::memchr(b'\\', rest) {
            Some(next) => plain = next,
            None => break,
        }
    }
    text.extend_from_slice(rest);
    Cow::Owned(text)
}

/// Whether a string given with its quotes spells `text`, whatever its escapes.
pub fn string_is(raw: &[u8], text: &str) -> bool {
    let Some(inside) = raw.get(1..raw.len().saturating_sub(1)) else { return false };
    inside == text.as_bytes()
        || (memchr::memchr(b'\\', inside).is_some() && *unescape(raw) == *text.as_bytes())
}

/// Appends `text` as a JSON string with its quotes, escaping only what JSON demands.
pub fn push_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let bytes = text.as_bytes();
    // All that is escaped is ASCII; what stands between goes as it is.
    let mut from = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if byte >= b' ' && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&bytes[from..at]);
        from = at + 1;
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            8 => out.extend_from_slice(b"\\b"),
            12 => out.extend_from_slice(b"\\f"),
            other => out.extend_from_slice(format!("\\u{other:04x}").as_bytes()),
        }
    }
    out.extend_from_slice(&bytes[from..]);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_json_demands_is_escaped_wherever_it_stands() {
        let pushed = |text: &str| {
            let mut out = Vec::new();
            push_string(text, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(pushed(""), "\"\"");
        assert_eq!(pushed("é/\u{7f}\u{2028}😀"), "\"é/\u{7f}\u{2028}😀\"");
        let escaped = [("\"", r#"\""#), ("\\", r"\\"), ("\n", r"\n"), ("\r", r"\r"), ("\t", r"\t")];
        let control = [("\u{8}", r"\b"), ("\u{c}", r"\f"), ("\0", r"\u0000"), ("\u{1f}", r"\u001f")];
        for (text, spelled) in escaped.into_iter().chain(control) {
            for around in ["", "a", "é", "\n"] {
                let own = pushed(around);
                let own = &own[1..own.len() - 1];
                assert_eq!(pushed(&format!("{around}{text}{around}")), format!("\"{own}{spelled}{own}\""));
            }
        }
    }

    #[test]
    fn strings_are_equal_by_code_unit() {
        assert!(string_is(br#""tools\/call""#, "tools/call"));
        assert_eq!(*unescape(br#""\ud83d\ude00""#), *"😀".as_bytes());
        assert_eq!(*unescape(br#""\ude00\ud83d""#), [0xed, 0xb8, 0x80, 0xed, 0xa0, 0xbd]);
        assert_eq!(*unescape(br#""a\n\"\u0041\x""#), *b"a\n\"A\\x");
    }
}
