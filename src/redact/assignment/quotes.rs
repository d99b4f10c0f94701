//! What stands in quotes, and the quotes in it.

use std::borrow::Cow;

use super::{backslashes, run, without_punctuation};
use crate::redact::secrets::Spelling;
use crate::wire::{Span, scan::backslashes_at_end};

/// Quotes in a value are fewer.
const MOST_QUOTES: usize = 16;

/// What stands at `at` between two signs that are each one quote within a shell's single quotes: `'"'"'x'"'"'`,
/// `'\''x'\''`. Where JSON has the text, `"` stands behind backslashes, and there are more of them.
pub(super) fn between_signs(text: &[u8], at: usize) -> Option<Span> {
    let rest = text.get(at..)?.strip_prefix(b"'")?;
    let slashes = backslashes(rest, 0);
    let length = match &rest[slashes..] {
        [b'"', b'\'', behind @ ..] if backslashes(behind, 0) == slashes => {
            behind[slashes..].starts_with(b"\"'").then_some(1 + slashes + 2 + slashes + 2)?
        }
        [b'\'', b'\'', ..] if slashes > 0 => 1 + slashes + 2,
        _ => return None,
    };
    let start = at + length;
    let value = Span::new(start, start + run(text, start, |byte| !matches!(byte, b'\'' | b'\n')));
    let is_cut = value.end == text.len();
    let closes = is_cut || text[value.end..].starts_with(&text[at..start]);
    (closes && !value.is_empty()).then_some(value)
}

/// Escapes in a word without quotes are fewer.
const MOST_ESCAPES: usize = 64;

/// The word of a shell that begins at `start`, stands in no quotes, and ends as told, and where it ends with the
/// punctuation of a sentence. A sign behind a backslash is part of it.
pub(super) fn bare_word(text: &[u8], start: usize, ends: impl Fn(usize) -> bool) -> (Span, usize) {
    let mut end = start;
    // Not more often: a text made of such words would be read to its end for each of them.
    for _ in 0..MOST_ESCAPES {
        end = (end..text.len()).find(|at| ends(*at)).unwrap_or(text.len());
        match escape(text, end) {
            0 => break,
            length => end += length,
        }
    }
    let word = Span::new(start, end);
    let less = without_punctuation(text, word);
    (if less.of(text).ends_with(b"\\") { word } else { less }, end)
}

/// How long an escape of a word without quotes is that begins at `at`: a sign behind a backslash, or behind more where
/// JSON has the word. Of a quote only where the word goes on behind it, since it may also end what the word stands in.
pub(super) fn escape(text: &[u8], at: usize) -> usize {
    let slashes = text.get(at..).map_or(0, |_| backslashes(text, at));
    let rest = text.get(at + slashes..).unwrap_or_default();
    match rest {
        _ if slashes == 0 => 0,
        // Of a program or of JSON.
        [] | [0..=0x1f | b'n' | b'r' | b't' | b'u', ..] => 0,
        // A backslash behind another.
        [sign, ..] if sign.is_ascii_alphanumeric() => slashes - slashes % 2,
        [b'"' | b'\'', behind @ ..] if !goes_on(behind) => 0,
        _ => slashes + 1,
    }
}

/// Whether a word goes on behind a quote in it.
fn goes_on(behind: &[u8]) -> bool {
    match behind {
        [b'\\', ..] => {
            let sign = behind.iter().find(|byte| **byte != b'\\');
            sign.is_some_and(|sign| *sign == b' ' || sign.is_ascii_punctuation() && !b"\"'".contains(sign))
        }
        [byte, ..] => byte.is_ascii_alphanumeric() || *byte >= 0x80 || b"_-!?@#$%^*+=~".contains(byte),
        [] => false,
    }
}

/// What a text says that stands behind this one in quotes: of shells, SQL and programs. Where these stand behind
/// backslashes, what is decoded says it.
pub(in super::super) fn said_in_quotes<'a>(before: &[u8], quote: u8, text: &'a [u8]) -> Cow<'a, [u8]> {
    match quote {
        b'\'' if has_escapes(before) => Spelling::Escaped.said(text),
        b'\'' => {
            let ways = [Spelling::Shell, Spelling::Doubled(b'\''), Spelling::Slashed];
            let said =
                ways.map(|spelling| spelling.said(text)).into_iter().find(|said| said.len() < text.len());
            said.unwrap_or(Cow::Borrowed(text))
        }
        _ if before.ends_with(b"\\") => Cow::Borrowed(text),
        _ => Spelling::Slashed.said(text),
    }
}

/// Whether a quote behind this text has escapes as programs do: `$'x'` of shells, `E'x'` of SQL.
fn has_escapes(before: &[u8]) -> bool {
    match before {
        [.., b'$'] => true,
        [.., other, b'E' | b'e'] => !other.is_ascii_alphanumeric(),
        _ => false,
    }
}

/// Where what stands in quotes from `start` on ends, which open behind so many backslashes: at the quote, line end or
/// backslash. Shells end a quote for the one that they are to have, `'it'\\''s'`, SQL and YAML double it, and programs
/// have it behind a backslash.
pub(super) fn behind_quotes(text: &[u8], start: usize, quote: u8, slashes: usize) -> usize {
    let (mut end, mut escape) = (start, None);
    let is_escape =
        |sign: u8| sign.is_ascii_punctuation() || quote == b'\'' && has_escapes(&text[..start - 1]);
    // Not more often: a text made of such quotes would be read to its end for each of them.
    for _ in 0..MOST_QUOTES {
        end += run(text, end, |byte| byte != quote && byte != b'\n' && byte != b'\\');
        let rest = text.get(end..).unwrap_or_default();
        let shells = [&b"'\\''"[..], b"'\"'\"'"].into_iter().filter(|_| quote == b'\'');
        let doubled = [quote; 2];
        let mut within = shells.chain((end > start).then_some(&doubled[..]));
        end += match (within.find(|within| rest.starts_with(within)), rest) {
            (Some(within), _) => within.len(),
            (None, [b'\\', sign, ..]) if slashes == 0 && is_escape(*sign) => {
                escape = escape.or(Some(end));
                2
            }
            _ => break,
        };
    }
    // Where no quote closes, the backslash is none of an escape.
    escape.filter(|_| text.get(end) != Some(&quote)).unwrap_or(end)
}

/// The place of the quote that ends a string begun behind so many backslashes; the end of the text where none does.
///
/// Strings at depth d begin and end with 2^d - 1 backslashes before their quotes; a quote inside them has more, and
/// a backslash at their end adds multiples of 2^(d+1).
pub(in super::super) fn closing_quote(text: &[u8], start: usize, quote: u8, slashes: usize) -> usize {
    let mut from = start;
    while let Some(found) = memchr::memchr(quote, text.get(from..).unwrap_or_default()) {
        let at = from + found;
        let before = backslashes_at_end(&text[start..at]);
        if before < slashes || before % (2 * (slashes + 1)) == slashes {
            return at - before.min(slashes);
        }
        from = at + 1;
    }
    text.len()
}
