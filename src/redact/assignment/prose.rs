//! The punctuation of a sentence behind a value that stands in no quotes.

use crate::wire::Span;

/// So far back a blank is looked for that tells a text from an address or a form that stands alone.
const LONGEST_WORD: usize = 2048;

/// A value without the punctuation that ends it: `,`, `.`, `;`, `:`, `**`, and a bracket that it does not open.
pub(in super::super) fn without_punctuation(text: &[u8], value: Span) -> Span {
    let mut bytes = value.of(text);
    while let [rest @ .., last] = bytes {
        let closes = |open: u8| !rest.contains(&open);
        bytes = match last {
            b',' | b'.' | b';' | b':' => rest,
            b')' if closes(b'(') => rest,
            b']' if closes(b'[') => rest,
            b'*' if rest.ends_with(b"*") => &rest[..rest.len() - 1],
            _ => break,
        };
    }
    Span::new(value.start, value.start + bytes.len())
}

/// The same of the end of an address or a form, where that stands in a sentence: alone, any sign is part of it.
pub(in super::super) fn in_sentence(text: &[u8], value: Span) -> Span {
    let less = without_punctuation(text, value);
    let ends = || text.get(value.end).is_none_or(u8::is_ascii_whitespace);
    let stands_alone = || !text[..value.start].iter().rev().take(LONGEST_WORD).any(u8::is_ascii_whitespace);
    if less == value || !ends() || stands_alone() { value } else { less }
}
