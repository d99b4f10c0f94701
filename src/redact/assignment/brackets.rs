//! Names that stand in brackets behind another, as forms have them: `user[password]`, `user%5Bpassword%5D`, `password[]`.

use super::{LONGEST, escapes_at};
use crate::redact::names::is_name_byte;
use crate::wire::Span;

/// The name within the brackets, and with all that stands before and behind it; none where no bracket does.
pub(super) fn around(text: &[u8], name: Span) -> Option<(Span, Span)> {
    let mut inner = name;
    let is_encoded = text[..name.start].ends_with(b"%") && starts_with(name.of(text), b"5b");
    let is_open = is_encoded || text[..name.start].ends_with(b"[");
    let (mut start, mut end) = (name.start, name.end);
    if is_open {
        inner.start += if is_encoded { 2 } else { 0 };
        start = begin(text, name.start - 1)?;
        end += closing(&text[end..])?;
    }
    end += empty(&text[end..]);
    (end > name.end && !inner.is_empty()).then_some((inner, Span::new(start, end)))
}

/// Where what stands before the bracket at `open` begins; none where no name does.
fn begin(text: &[u8], open: usize) -> Option<usize> {
    let is_part = |byte: &&u8| is_name_byte(**byte) || matches!(byte, b'[' | b']' | b'%');
    let before = text[..open].iter().rev().take(LONGEST).take_while(is_part).count();
    let start = open - before;
    let start = start + usize::from(before > 1 && escapes_at(text, start));
    let begins = text[start..open].first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_');
    (begins && before < LONGEST).then_some(start)
}

/// How long the bracket is that a text begins with.
fn closing(text: &[u8]) -> Option<usize> {
    [&b"]"[..], b"%5d"].iter().find(|sign| starts_with(text, sign)).map(|sign| sign.len())
}

/// How long the brackets of a list are that a text begins with.
fn empty(text: &[u8]) -> usize {
    [&b"[]"[..], b"%5b%5d"].iter().find(|sign| starts_with(text, sign)).map_or(0, |sign| sign.len())
}

fn starts_with(text: &[u8], start: &[u8]) -> bool {
    text.get(..start.len()).is_some_and(|text| text.eq_ignore_ascii_case(start))
}
