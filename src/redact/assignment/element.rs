//! Elements of XML: `<password>x</password>`, `<wsse:Password Type="…">x</wsse:Password>`, `<user password="x"/>`.

use super::pairs::gives_names;
use super::{backslashes_before_quote, before_quote, escapes_at, refers, run, skip_gap, worth, worth_itself};
use crate::redact::names::{self, is_name_byte};
use crate::wire::{Span, scan::backslashes_at_end};

/// What stands in a tag behind the element's name is shorter: where no tag ends, a text of names would be read to its
/// end for each of them.
const LONGEST_ATTRIBUTES: usize = 512;

/// A secret in [`CDATA`] is shorter, for the same reason.
const LONGEST_DATA: usize = 1 << 10;

/// What begins and ends a text in which no sign means anything.
const CDATA: [&[u8]; 2] = [b"<![CDATA[", b"]]>"];

/// What an element has.
pub(super) enum Content {
    /// This text.
    Text(Span),
    /// What escapes say.
    Hidden,
    /// Nothing that may be a secret: other elements, words, a reference.
    Other,
}

/// What the element has whose name this is; none where no tag begins with it.
pub(super) fn content(text: &[u8], name: Span) -> Option<Content> {
    if name.of(text).starts_with(b"u003c") && text[..name.start].ends_with(b"\\") {
        return Some(Content::Hidden);
    }
    let tag = begin_of_tag(text, name)?;
    let inside = name.end + run(text, name.end, is_name_byte_or_colon);
    if inside != name.end {
        return None;
    }
    let start = behind_tag(text, name.end)?;
    Some(inside_of(text, start, Span::new(tag, name.end)))
}

/// The value at `start` of the attribute of this name, if one is.
pub(super) fn attribute(text: &[u8], name: Span, start: usize) -> Option<Span> {
    if !is_in_tag(text, name.start) {
        return None;
    }
    let slashes = backslashes_before_quote(text, start);
    let quote = *text.get(start + slashes).filter(|byte| matches!(byte, b'"' | b'\''))?;
    let inside = start + slashes + 1;
    let value =
        Span::new(inside, inside + run(text, inside, |byte| !matches!(byte, b'<' | b'>') && byte != quote));
    let value = Span::new(value.start, value.end - backslashes_at_end(value.of(text)).min(slashes));
    let behind = text.get(value.end + slashes + 1)?;
    let closes = text.get(value.end + slashes) == Some(&quote)
        && (behind.is_ascii_whitespace() || matches!(behind, b'/' | b'>' | b'?' | b'\\'));
    let is_apart =
        text[..name.start].last().is_some_and(u8::is_ascii_whitespace) || escapes_at(text, name.start - 1);
    (is_apart && closes).then_some(value)
}

/// The attribute at `at` that holds the value of what the attribute before it names: `name="password" value="x"`.
pub(super) fn value_beside(text: &[u8], name: Span, at: usize) -> Option<Span> {
    let (before, ..) = before_quote(text, name);
    before.strip_suffix(b"=").filter(|before| gives_names(before))?;
    let held = Span::new(at, at + run(text, at, is_name_byte));
    let is_it = names::is_value(held.of(text)) && text.get(held.end) == Some(&b'=');
    let value = if is_it { attribute(text, held, held.end + 1) } else { None }?;
    worth_itself(text, value)
}

/// Whether a tag is open before `at`, where its attributes stand.
pub(in super::super) fn is_in_tag(text: &[u8], at: usize) -> bool {
    let near = &text[at.saturating_sub(LONGEST_ATTRIBUTES)..at];
    let begin = near.iter().rposition(|byte| matches!(byte, b'<' | b'>'));
    begin.is_some_and(|begin| near[begin] == b'<' && near.get(begin + 1).is_some_and(u8::is_ascii_alphabetic))
}

/// Where the name with its prefix begins, if a tag does there.
fn begin_of_tag(text: &[u8], name: Span) -> Option<usize> {
    match text[..name.start].last()? {
        b'<' => Some(name.start),
        b':' => {
            let before = text[..name.start - 1].iter().rev().take_while(|byte| is_name_byte(**byte)).count();
            let start = name.start - 1 - before;
            (before > 0 && text[..start].last() == Some(&b'<')).then_some(start)
        }
        _ => None,
    }
}

const fn is_name_byte_or_colon(byte: u8) -> bool {
    is_name_byte(byte) || byte == b':'
}

/// Where a tag ends, of which the name ends at `at`; none for one that has no content.
fn behind_tag(text: &[u8], at: usize) -> Option<usize> {
    let is_apart = matches!(text.get(at)?, b'>' | b' ' | b'\t' | b'\r' | b'\n' | b'\\');
    let rest = text[at..].iter().take(LONGEST_ATTRIBUTES);
    let end = at + rest.take_while(|byte| !matches!(byte, b'<' | b'>')).count();
    (is_apart && text.get(end) == Some(&b'>') && text[end - 1] != b'/').then_some(end + 1)
}

/// What stands from `start` on up to the tag that ends the element of this name.
fn inside_of(text: &[u8], start: usize, name: Span) -> Content {
    let mut value = Span::new(skip_gap(text, start), 0);
    let [begin, end] = CDATA;
    let is_data = text[value.start..].starts_with(begin);
    let behind = if is_data {
        value.start += begin.len();
        let rest = &text[value.start..text.len().min(value.start + LONGEST_DATA)];
        let Some(length) = memchr::memmem::find(rest, end) else { return Content::Other };
        value.end = value.start + length;
        skip_gap(text, value.end + end.len())
    } else {
        let takes = |byte: u8| byte > b' ' && !matches!(byte, b'<' | b'>');
        value.end = value.start + run(text, value.start, takes);
        skip_gap(text, value.end)
    };
    let rest = &text[behind..];
    let is_whole = rest
        .strip_prefix(b"</")
        .and_then(|rest| rest.strip_prefix(name.of(text)))
        .is_some_and(|rest| rest.first() == Some(&b'>'));
    let hides = || value.of(text).contains(&b'\\') || matches!(rest, [b'\\', ..] | [b'<', b'\\', ..]);
    match worth(text, value).filter(|_| is_whole) {
        Some(value) if !refers(text, value.start) => Content::Text(value),
        None if !is_whole && hides() => Content::Hidden,
        _ => Content::Other,
    }
}
