//! What stands in quotes, and the quotes in it.

use std::borrow::Cow;

use super::run;

/// Quotes in a value are fewer.
const MOST_QUOTES: usize = 8;

/// What a text in single quotes says: one of them stands in it as shells have it, or twice.
pub(in super::super) fn without_quotes(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.contains(&b'\'') {
        return Cow::Borrowed(text);
    }
    let spellings = [&b"'\\''"[..], b"'\"'\"'", b"''"];
    let (mut said, mut rest) = (Vec::with_capacity(text.len()), text);
    while let Some((&byte, behind)) = rest.split_first() {
        let spelled = spellings.iter().find(|spelling| rest.starts_with(spelling));
        said.push(byte);
        rest = spelled.map_or(behind, |spelling| &rest[spelling.len()..]);
    }
    Cow::Owned(said)
}

/// Where what stands in quotes from `start` on ends: at the quote, line end or backslash. Shells end a quote for the one
/// that they are to have, `'it'\\''s'`, and SQL and YAML double it.
pub(super) fn behind_quotes(text: &[u8], start: usize, quote: u8) -> usize {
    let mut end = start;
    // Not more often: a text made of such quotes would be read to its end for each of them.
    for _ in 0..MOST_QUOTES {
        end += run(text, end, |byte| byte != quote && byte != b'\n' && byte != b'\\');
        let rest = text.get(end..).unwrap_or_default();
        let shells = [&b"'\\''"[..], b"'\"'\"'"].into_iter().filter(|_| quote == b'\'');
        let doubled = [quote; 2];
        let mut within = shells.chain((end > start).then_some(&doubled[..]));
        match within.find(|within| rest.starts_with(within)) {
            Some(within) => end += within.len(),
            None => break,
        }
    }
    end
}

/// The place of the quote that ends a string begun behind so many backslashes; the end of the text where none does.
///
/// Strings at depth d begin and end with 2^d - 1 backslashes before their quotes; a quote inside them has more, and
/// a backslash at their end adds multiples of 2^(d+1).
pub(in super::super) fn closing_quote(text: &[u8], start: usize, quote: u8, slashes: usize) -> usize {
    let mut from = start;
    while let Some(found) = memchr::memchr(quote, text.get(from..).unwrap_or_default()) {
        let at = from + found;
        let before = text[start..at].iter().rev().take_while(|byte| **byte == b'\\').count();
        if before < slashes || before % (2 * (slashes + 1)) == slashes {
            return at - before.min(slashes);
        }
        from = at + 1;
    }
    text.len()
}
