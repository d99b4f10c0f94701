//! What stands in quotes, and the quotes in it.

use std::borrow::Cow;

use super::equals::begins_field;
use super::{backslashes, backslashes_before_quote, run, without_punctuation};
use crate::redact::secrets::Spelling;
use crate::wire::{Span, scan::backslashes_at_end};

/// Quotes in a value are fewer.
const MOST_QUOTES: usize = 16;

/// Such a sign has more letters.
const SHORTEST_SIGN: usize = 4;

/// What stands at `at` between two signs that are each one quote within a shell's single quotes: `'"'"'x'"'"'`,
/// `'\''x'\''`; or within such in such. Where JSON has the text, `"` stands behind backslashes, and there are more of them.
pub(super) fn between_signs(text: &[u8], at: usize) -> Option<Span> {
    let rest = text.get(at..).filter(|rest| rest.starts_with(b"'"))?;
    let length = run(rest, 0, |byte| matches!(byte, b'\'' | b'"' | b'\\'));
    let start = at + length;
    let value = Span::new(start, start + run(text, start, |byte| !matches!(byte, b'\'' | b'\n')));
    let is_cut = value.end == text.len();
    let closes = is_cut || text[value.end..].starts_with(&text[at..start]);
    (length >= SHORTEST_SIGN && closes && !value.is_empty()).then_some(value)
}

/// Escapes and pieces of a word are fewer.
const MOST_PIECES: usize = 64;

/// A word of a shell.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Word {
    /// The text in its quotes; where it has several pieces, all of them with their quotes. Without quotes, what stands
    /// before the punctuation of a sentence.
    pub(in super::super) value: Span,
    /// Where it ends with that punctuation, or before the quote that closes it.
    pub(in super::super) end: usize,
    /// It begins with a quote.
    pub(super) is_quoted: bool,
}

/// The word of a shell that begins at `start`, and ends as told where it stands in no quotes.
pub(in super::super) fn word(text: &[u8], start: usize, ends: impl Fn(usize) -> bool) -> Word {
    let slashes = backslashes_before_quote(text, start);
    let Some(&quote @ (b'"' | b'\'')) = text.get(start + slashes) else {
        let (value, end) = bare_word(text, start, ends);
        return Word { value, end, is_quoted: false };
    };
    if let Some(value) = in_three_quotes(text, start) {
        return Word { value, end: value.end, is_quoted: true };
    }
    let inside = start + slashes + 1;
    let end = behind_quotes(text, inside, quote, slashes);
    let behind = end + 1;
    let has_more = slashes == 0
        && text.get(end) == Some(&quote)
        && (begins_piece(&text[behind..]) || piece(text, behind) > 0 || escape(text, behind) > 0);
    let first = Word { value: Span::new(inside, end), end, is_quoted: true };
    if !has_more {
        return first;
    }
    let (_, end) = bare_word(text, behind, ends);
    // What follows such a quote stood in the first piece, of which the escapes are gone.
    let is_cut =
        text.get(end) == Some(&quote) && !text[behind..end].iter().any(|byte| matches!(byte, b'\'' | b'"'));
    let is_code = text[behind] == b'.' && text.get(end) == Some(&b'(');
    if is_cut || is_code { first } else { Word { value: Span::new(start, end), end, is_quoted: true } }
}

/// What stands in three quotes at `start`, on one line, as Python and TOML have it.
pub(super) fn in_three_quotes(text: &[u8], start: usize) -> Option<Span> {
    let rest = text.get(start..)?;
    let quotes = [b"\"\"\"", b"'''"].into_iter().find(|quotes| rest.starts_with(*quotes))?;
    let length = run(rest, 3, |byte| byte != b'\n' && byte != quotes[0]);
    let value = Span::new(start + 3, start + 3 + length);
    (length > 0 && text[value.end..].starts_with(quotes)).then_some(value)
}

/// The word of a shell from `start` on that stands in no quotes there, and ends as told, and where it ends with the
/// punctuation of a sentence. A sign behind a backslash is part of it, and so is a piece in quotes.
fn bare_word(text: &[u8], start: usize, ends: impl Fn(usize) -> bool) -> (Span, usize) {
    let mut end = start;
    // Not more often: a text made of such words would be read to its end for each of them.
    for _ in 0..MOST_PIECES {
        end = (end..text.len()).find(|at| ends(*at)).unwrap_or(text.len());
        match piece(text, end).max(escape(text, end)) {
            0 => break,
            length => end += length,
        }
    }
    let word = Span::new(start, end);
    let less = without_punctuation(text, word);
    (if less.of(text).ends_with(b"\\") { word } else { less }, end)
}

/// How long a piece of a word is that stands in quotes from `at` on; none where the quote may be the one that closes what
/// the word stands in: the word goes on behind that quote, and no blank parts it from the next.
pub(in super::super) fn piece(text: &[u8], at: usize) -> usize {
    let Some((&quote @ (b'"' | b'\''), rest)) = text.get(at..).and_then(<[u8]>::split_first) else {
        return 0;
    };
    let length = run(rest, 0, |byte| byte > b' ' && byte != quote && byte != b'\\');
    let begins = begins_piece(rest) || length == 0 && begins_piece(&rest[rest.len().min(1)..]);
    if begins && rest.get(length) == Some(&quote) { length + 2 } else { 0 }
}

/// Whether a piece of a word begins with a text that stands behind a quote: code and JSON have other signs there.
pub(super) fn begins_piece(text: &[u8]) -> bool {
    let signs = text.iter().take_while(|byte| b"_-!@#%^~.$".contains(byte)).count();
    text.get(signs).is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte >= 0x80)
}

/// How long an escape of a word without quotes is that begins at `at`: a sign behind a backslash, or behind more where
/// JSON has the word. Of a quote only where the word goes on behind it, since it may also end what the word stands in.
pub(super) fn escape(text: &[u8], at: usize) -> usize {
    let slashes = text.get(at..).map_or(0, |_| backslashes(text, at));
    let rest = text.get(at + slashes..).unwrap_or_default();
    match rest {
        _ if slashes == 0 => 0,
        // The word goes on in the next line.
        [b'\n', behind @ ..] if slashes == 1 && begins_piece(behind) => 2,
        // Of a program or of JSON.
        [] | [0..=0x1f | b'n' | b'r' | b't' | b'u', ..] => 0,
        // A backslash behind another.
        [sign, ..] if sign.is_ascii_alphanumeric() => slashes - slashes % 2,
        [b'"' | b'\'', behind @ ..] if !goes_on(behind) => 0,
        // Another field follows.
        [b'&', behind @ ..] if begins_field(behind) => 0,
        _ => slashes + 1,
    }
}

/// Whether a word goes on behind a quote in it.
pub(in super::super) fn goes_on(behind: &[u8]) -> bool {
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

/// What a word of a shell says that may have several pieces: without the quotes around them, and without the backslashes
/// before signs and line ends.
pub(in super::super) fn said_by_shell(word: &[u8]) -> Cow<'_, [u8]> {
    if !word.iter().any(|byte| matches!(byte, b'"' | b'\'' | b'\\')) {
        return Cow::Borrowed(word);
    }
    let (mut said, mut rest, mut open) = (Vec::with_capacity(word.len()), word, None);
    while let Some((&byte, behind)) = rest.split_first() {
        rest = behind;
        match (byte, open) {
            // All of it stands in single quotes.
            (b'\'', None) if behind.starts_with(b"\\''") || behind.starts_with(b"\"'\"'") => {
                said.push(byte);
                rest = &behind[if behind[0] == b'"' { 4 } else { 3 }..];
            }
            (b'\\', None | Some(b'"'))
                if behind.first().is_some_and(|sign| !sign.is_ascii_alphanumeric()) =>
            {
                said.extend(behind.first().filter(|sign| **sign != b'\n'));
                rest = &behind[1..];
            }
            (quote, Some(other)) if quote == other => open = None,
            (b'"' | b'\'', None) if behind.contains(&byte) => open = Some(byte),
            _ => said.push(byte),
        }
    }
    Cow::Owned(said)
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
    let is_escape = |sign: u8| {
        sign.is_ascii_punctuation()
            || sign == b'\n' && quote == b'"'
            || quote == b'\'' && has_escapes(&text[..start - 1])
    };
    // Not more often: a text made of such quotes would be read to its end for each of them.
    for _ in 0..MOST_QUOTES {
        end += run(text, end, |byte| byte != quote && byte != b'\n' && byte != b'\\');
        let rest = text.get(end..).unwrap_or_default();
        let shells = [&b"'\\''"[..], b"'\"'\"'"].into_iter().filter(|_| quote == b'\'');
        let doubled = [quote; 2];
        // In JSON that a text holds, the other may be the one that closes the string.
        let is_doubled =
            end > start && (quote == b'\'' || rest.get(2).is_some_and(|byte| !ends_string(*byte)));
        let mut within = shells.chain(is_doubled.then_some(&doubled[..]));
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

/// Whether a byte stands behind strings of JSON.
const fn ends_string(byte: u8) -> bool {
    byte <= b' ' || matches!(byte, b',' | b':' | b'}' | b']')
}

/// The place of the quote that ends a string begun behind so many backslashes; the end of the text where none does.
///
/// Strings at depth d begin and end with 2^d - 1 backslashes before their quotes; a quote inside them has more, and
/// a backslash at their end adds multiples of 2^(d+1).
pub(super) fn closing_quote(text: &[u8], start: usize, quote: u8, slashes: usize) -> usize {
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
