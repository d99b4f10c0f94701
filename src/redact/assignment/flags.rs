//! Words that a flag says are secret: `["--password", "x"]`, `--password x`.

use super::quotes::{Word, word};
use super::{
    Assigned, ansi_sign, backslashes, backslashes_before_quote, between_signs, closing_quote, ends_setting,
    escape, escapes_at, refers, run, skip_gap, worth,
};
use crate::redact::names::{self, SecretName, is_name_byte};
use crate::wire::Span;

/// What a flag is followed by and has a digit is a shorter word than any password: `v2`, `md5`.
const SHORTEST_WORD: usize = 6;

/// So far back the bracket is looked for that a list begins with: of each flag anew.
const LONGEST_LIST: usize = 1024;

/// The secret that a flag says the next word is, in a list of words; `name` is the flag.
pub(in super::super) fn flag(name: &[u8]) -> Option<&'static SecretName> {
    let name = name.strip_prefix(b"-")?;
    let name = name.strip_prefix(b"-").unwrap_or(name);
    if name.starts_with(b"-") || name.starts_with(b"no-") || !name.iter().copied().all(is_name_byte) {
        return None;
    }
    names::secret_flag(name)
}

/// Whether a word can be what the flag before it says.
pub(in super::super) fn is_flags_word(row: &SecretName, word: &[u8]) -> bool {
    // Cookies may also be in a file.
    !word.starts_with(b"-") && (row.kind != "cookie" || word.contains(&b'=')) && row.may_hold(word)
}

/// The word in quotes that follows a flag in quotes, in a list.
pub(super) fn next_word(
    text: &[u8],
    at: usize,
    row: &'static SecretName,
    slashes: usize,
    quote: u8,
) -> Option<Assigned> {
    let at = skip_gap(text, at);
    let escapes = backslashes(text, at);
    if escapes != slashes || text.get(at + escapes) != Some(&quote) {
        return (escapes > 0).then_some(Assigned::Look);
    }
    let start = at + escapes + 1;
    let value = Span::new(start, closing_quote(text, start, quote, slashes));
    let behind = text.get(value.end + slashes + 1..).map(|_| skip_gap(text, value.end + slashes + 1));
    let is_name = behind.is_some_and(|behind| text.get(behind) == Some(&b':'));
    (!is_name && is_flags_word(row, value.of(text)))
        .then(|| worth(text, value))
        .flatten()
        .map(|value| Assigned::Secret(row, value))
}

/// `--password value` in a command line, or in two lines of a YAML list. Where escapes stand before or behind the flag,
/// what they say decides.
pub(super) fn word_behind(text: &[u8], name: Span) -> Option<Assigned> {
    let hidden = escape_before(text, name);
    let flag_at = name.start + hidden;
    let in_list = || text.get(name.end) == Some(&b',') && is_in_list(text, flag_at);
    let row =
        flag(&text[flag_at..name.end]).filter(|_| hidden > 0 || is_apart(text, flag_at) || in_list())?;
    let start = skip_blanks(text, name.end);
    let is_read = || backslashes_before_quote(text, start) > 0 || escape(text, start) > 0;
    if hidden > 0 || is_hidden(text, start) && !is_read() {
        return Some(Assigned::Look);
    }
    match text.get(start)? {
        b'\r' | b'\n' => item(text, row, next_item(text, flag_at, start)?),
        b',' if in_list() => list_item(text, row, skip_blanks(text, start + 1)),
        _ if start == name.end => None,
        _ => match value_at(text, row, start) {
            // What is decoded tells which quotes are in it.
            None if text[start..start + run(text, start, |byte| byte > b' ')].contains(&b'\\') => {
                return Some(Assigned::Look);
            }
            value => value,
        },
    }
    .map(|value| Assigned::Secret(row, value))
}

/// The same where the flag stands in quotes, of which the second ends at `end`, each behind so many backslashes.
pub(super) fn word_behind_quote(text: &[u8], name: Span, slashes: usize, quote: u8) -> Option<Assigned> {
    let (flag_at, end) = (name.start.checked_sub(1)?, name.end + slashes + 1);
    let row = flag(name.of(text)).filter(|_| text[flag_at] == quote)?;
    let start = skip_blanks(text, end);
    if is_hidden(text, start) || slashes > 0 && start > end {
        return Some(Assigned::Look);
    }
    match text.get(start)? {
        b'\r' | b'\n' => item(text, row, next_item(text, flag_at, start)?),
        // What has blanks says more likely what the flag is for.
        _ => value_at(text, row, start)
            .filter(|value| start > end && !value.of(text).iter().any(u8::is_ascii_whitespace)),
    }
    .map(|value| Assigned::Secret(row, value))
}

/// The value that a word at `start` is, in quotes or without. Prose names flags too, so that what stands in no quotes
/// has to be no word.
fn value_at(text: &[u8], row: &SecretName, start: usize) -> Option<Span> {
    let start = start + ansi_sign(text, start);
    let slashes = backslashes_before_quote(text, start);
    let between = between_signs(text, start);
    let ends = |at: usize| ends_setting(text[at]) || wide_blank(&text[at..]) > 0;
    let value = match text.get(start + slashes) {
        _ if between.is_some() => between?,
        Some(quote @ (b'"' | b'\'')) => {
            let Word { value, end, .. } = word(text, start, ends);
            // A quote that ends here, and none that begins, is around the flag.
            (value.start == start || text.get(end + slashes) == Some(quote)).then_some(value)?
        }
        _ => {
            let Word { value, .. } = word(text, start, ends);
            let has = |is: fn(&u8) -> bool| value.of(text).iter().any(is);
            let is_word = !has(u8::is_ascii_digit) || !has(u8::is_ascii_alphabetic);
            (value.len() >= SHORTEST_WORD && !is_word).then_some(value)?
        }
    };
    worth(text, value).filter(|_| is_flags_word(row, value.of(text)) && !refers(text, value.start))
}

/// The value that an item of a YAML list is; it fills its line.
fn item(text: &[u8], row: &SecretName, start: usize) -> Option<Span> {
    let value = value_at(text, row, start)?;
    let behind = value.end + usize::from(value.start > start);
    let behind = behind + run(text, behind, |byte| byte == b' ');
    text.get(behind).is_none_or(|byte| matches!(byte, b'\r' | b'\n')).then_some(value)
}

/// The item at `start` of a YAML list in brackets.
fn list_item(text: &[u8], row: &SecretName, start: usize) -> Option<Span> {
    let ends = |byte: u8| matches!(byte, b',' | b']');
    let is_quoted =
        backslashes_before_quote(text, start) > 0 || matches!(text.get(start), Some(b'"' | b'\''));
    let end = if is_quoted { text.len() } else { start + run(text, start, |byte| !ends(byte)) };
    let value = value_at(&text[..end], row, start)?;
    let closes = if is_quoted { value.start - start } else { 0 };
    let behind = skip_blanks(text, value.end + closes);
    text.get(behind).is_some_and(|byte| ends(*byte)).then_some(value)
}

/// Whether a bracket is open on the line before `at`: a list in YAML's short form.
fn is_in_list(text: &[u8], at: usize) -> bool {
    let before = text[..at].iter().rev().take(LONGEST_LIST);
    before.take_while(|byte| !matches!(byte, b'\n' | b']')).any(|byte| *byte == b'[')
}

/// Where the next item of a YAML list begins; the one before it begins at `item` and ends at `end`.
fn next_item(text: &[u8], item: usize, end: usize) -> Option<usize> {
    let before = text[..item].strip_suffix(b"- ")?;
    let indent = before.iter().rev().take_while(|byte| **byte == b' ').count();
    let begins_line = before[..before.len() - indent].last().is_none_or(|byte| *byte == b'\n');
    let line = end + if text[end..].starts_with(b"\r\n") { 2 } else { 1 };
    let dash = line + run(text, line, |byte| byte == b' ');
    (begins_line && dash - line == indent && text.get(dash..dash + 2) == Some(b"- ")).then_some(dash + 2)
}

/// Whether a word of a command line begins at `at`.
fn is_apart(text: &[u8], at: usize) -> bool {
    let Some(before) = at.checked_sub(1) else { return true };
    let parts = |byte: u8| byte.is_ascii_whitespace() || byte >= 0x80 || b"\"'`(;&|".contains(&byte);
    parts(text[before]) || escapes_at(text, before)
}

/// How long an escape is, without its backslash, that stands before a flag and reads as part of its name: that of a
/// no-break space, say.
fn escape_before(text: &[u8], name: Span) -> usize {
    let is_behind = name.start > 0 && text[name.start - 1] == b'\\';
    match name.of(text) {
        [b'u', digits @ ..] if is_behind && digits.iter().take(4).all(u8::is_ascii_hexdigit) => {
            5.min(name.len())
        }
        _ => 0,
    }
}

/// Whether an escape says what stands at `at`, or behind a sign there that takes back a line end.
fn is_hidden(text: &[u8], at: usize) -> bool {
    let at = at + usize::from(matches!(text.get(at), Some(b'^' | b'`')));
    text.get(at) == Some(&b'\\')
}

/// Offset behind blanks, and behind line ends that a sign before them takes back.
fn skip_blanks(text: &[u8], from: usize) -> usize {
    let mut at = from;
    loop {
        let length = match text.get(at..).unwrap_or_default() {
            [b' ' | b'\t', ..] => 1,
            [b'\\' | b'^' | b'`', b'\n', ..] if at > from => 2,
            [b'\\' | b'^' | b'`', b'\r', b'\n', ..] if at > from => 3,
            rest => wide_blank(rest),
        };
        if length == 0 {
            return at;
        }
        at += length;
    }
}

/// How long the blank beyond ASCII is that a text begins with, such as a no-break space.
const fn wide_blank(text: &[u8]) -> usize {
    match text {
        [0xc2, 0xa0, ..] => 2,
        [0xe2, 0x80, 0x80..=0x8a | 0xaf, ..] | [0xe3, 0x80, 0x80, ..] => 3,
        _ => 0,
    }
}
