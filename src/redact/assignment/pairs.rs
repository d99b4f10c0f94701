//! Names that are themselves values, with their values beside them: `{"name": "API_KEY", "value": "x"}`, and in YAML
//! `- name: API_KEY` with `value: x` on the next line.

use super::{
    Assigned, LONGEST, backslashes, before_quote, behind_quotes, closing_quote, refers, run, skip_gap, worth,
};
use crate::redact::names::{self, SecretName, is_name_byte};
use crate::wire::{Span, scan::backslashes_at_end};

/// So many members, or lines, may stand between the name and the value.
const MOST_BETWEEN: usize = 4;

/// So many quotes may stand before a name in the words that describe something.
const MOST_QUOTES: usize = 4;

/// Whether the string that begins at `start` is the value of a member that gives names:
/// `{"name": "API_KEY", "value": …}`.
pub(super) fn names_itself(text: &[u8], start: usize, slashes: usize) -> bool {
    member_of(text, start, slashes).is_some_and(gives_names)
}

/// Whether a name stands in the string that says in words what a tool of a browser acts on:
/// `{"element": "Password field", "text": …}`.
pub(super) fn tells_element(text: &[u8], name: Span) -> bool {
    let from = name.start.saturating_sub(LONGEST);
    let before = &text[from..name.start];
    // The words may have quotes of their own.
    memchr::memrchr_iter(b'"', before).take(MOST_QUOTES).any(|quote| {
        let slashes = backslashes_at_end(&before[..quote]);
        let member = member_of(text, from + quote + 1, slashes);
        member.is_some_and(|before| before.ends_with(b"\"element"))
    })
}

/// The text up to the end of the name of the member whose string begins at `start`; all quotes stand behind so many
/// backslashes.
fn member_of(text: &[u8], start: usize, slashes: usize) -> Option<&[u8]> {
    let before = |mut end: usize, byte: u8| {
        while end > 0 && matches!(text[end - 1], b' ' | b'\t') {
            end -= 1;
        }
        (end > 0 && text[end - 1] == byte).then(|| end - 1)
    };
    let colon = before(start, b'"').and_then(|quote| before(quote.saturating_sub(slashes), b':'))?;
    let quote = before(colon, b'"')?;
    Some(&text[..quote.saturating_sub(slashes)])
}

/// Whether a text ends in the name of a member whose value is another's name.
pub(in super::super) fn gives_names(text: &[u8]) -> bool {
    [&b"name"[..], b"key", b"Name", b"Key", b"header"].iter().any(|name| text.ends_with(name))
}

/// The string of the member that holds the value, among those that stand from the comma at `at` on; all quotes stand
/// behind so many backslashes.
pub(super) fn sibling(text: &[u8], mut at: usize, slashes: usize, quote: u8) -> Option<Span> {
    let string = |at: usize| {
        let start = at + slashes + 1;
        let opens = backslashes(text, at) == slashes && text.get(start - 1) == Some(&quote);
        opens.then(|| Span::new(start, closing_quote(text, start, quote, slashes).max(start)))
    };
    for _ in 0..MOST_BETWEEN {
        if text.get(at) != Some(&b',') {
            return None;
        }
        let name = string(skip_gap(text, at + 1)).filter(|name| name.len() < LONGEST)?;
        let colon = skip_gap(text, name.end + slashes + 1);
        if text.get(colon) != Some(&b':') {
            return None;
        }
        let value = string(skip_gap(text, colon + 1))?;
        if names::is_value(name.of(text)) {
            return worth(text, value);
        }
        at = skip_gap(text, value.end + slashes + 1);
        if value.len() > LONGEST {
            return None;
        }
    }
    None
}

/// What the value is beside this name in YAML, if the name stands in one there.
pub(super) fn in_yaml(text: &[u8], name: Span, row: &'static SecretName) -> Option<Assigned> {
    let is_blank = |byte: &&u8| matches!(byte, b' ' | b'\t');
    let (before, quote, slashes) = before_quote(text, name);
    let before = &before[..before.len() - before.iter().rev().take(LONGEST).take_while(is_blank).count()];
    let before = before.strip_suffix(b":").filter(|before| gives_names(before))?;
    if slashes > 0 {
        return Some(Assigned::Look);
    }
    let key = before.iter().rev().take(LONGEST).take_while(|byte| is_name_byte(**byte)).count();
    let key = before.len() - key;
    let mut at = name.end;
    if let Some(quote) = quote {
        (text.get(at) == Some(&quote)).then_some(())?;
        at += 1;
    }
    at += run(text, at, |byte| matches!(byte, b' ' | b'\t'));
    let value = match text.get(at)? {
        b'\\' if matches!(text.get(at + 1), Some(b'n' | b'r' | b'\\')) => return Some(Assigned::Look),
        b',' => in_braces(text, skip_gap(text, at + 1)),
        b'\r' | b'\n' => on_lines(text, at, column(text, key)?),
        _ => None,
    }?;
    let value = worth(text, value).filter(|value| row.may_hold(value.of(text)))?;
    (!refers(text, value.start)).then_some(Assigned::Secret(row, value))
}

/// How far a member's name is behind the begin of its line, of which only blanks and the signs of lists stand before it.
fn column(text: &[u8], key: usize) -> Option<usize> {
    let lead = text[..key].iter().rev().take(LONGEST);
    let lead = lead.take_while(|byte| matches!(byte, b' ' | b'-')).count();
    text[..key - lead].last().is_none_or(|byte| *byte == b'\n').then_some(lead)
}

/// The value on one of the lines behind `at` that begin at this column.
fn on_lines(text: &[u8], mut at: usize, column: usize) -> Option<Span> {
    for _ in 0..MOST_BETWEEN {
        let line = at + memchr::memchr(b'\n', &text[at..])? + 1;
        let start = line + run(text, line, |byte| byte == b' ');
        if start - line != column {
            return None;
        }
        if let Some(value) = behind_key(text, start) {
            let end = |start: usize| start + run(text, start, |byte| !matches!(byte, b'\r' | b'\n'));
            let is_block = matches!(text.get(value), Some(b'|' | b'>')) && end(value) - value <= 2;
            let value = if is_block { skip_gap(text, end(value)) } else { value };
            return scalar(text, value, end(value));
        }
        at = start;
    }
    None
}

/// The value of the next member in braces: `{name: API_KEY, value: x}`.
fn in_braces(text: &[u8], at: usize) -> Option<Span> {
    let value = behind_key(text, at)?;
    scalar(text, value, value + run(text, value, |byte| !matches!(byte, b'\r' | b'\n' | b',' | b'}')))
}

/// Where the value of the member begins that begins at `at`, if that is one that holds values.
fn behind_key(text: &[u8], at: usize) -> Option<usize> {
    let name = Span::new(at, at + run(text, at, is_name_byte));
    let is_it = names::is_value(name.of(text)) && text.get(name.end) == Some(&b':');
    let start = name.end + 1 + run(text, name.end + 1, |byte| byte == b' ');
    (is_it && start > name.end + 1).then_some(start)
}

/// A value of YAML that ends here at the latest, without quotes and a remark.
fn scalar(text: &[u8], start: usize, end: usize) -> Option<Span> {
    match *text.get(start)? {
        quote @ (b'"' | b'\'') => {
            let inside = Span::new(start + 1, behind_quotes(text, start + 1, quote, 0));
            (text.get(inside.end) == Some(&quote)).then_some(inside)
        }
        b'&' | b'*' | b'!' | b'[' | b'{' | b'|' | b'>' => None,
        _ => {
            let bytes = text.get(start..end)?;
            let bytes = &bytes[..memchr::memmem::find(bytes, b" #").unwrap_or(bytes.len())];
            Some(Span::new(start, start + bytes.trim_ascii_end().len()))
        }
    }
}
