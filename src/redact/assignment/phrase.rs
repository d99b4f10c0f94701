//! Values with blanks that have no quotes of their own, where what they stand in says where they end: lines of `.env`
//! files and of lists in YAML, `set "NAME=x y"`, connection strings, all of a word in a list.

use super::settings::{ends_line, is_phrase};
use super::{before_quote, before_word, flag, in_capitals, refers, run, worth};
use crate::redact::names::{self, SecretName, is_name_byte};
use crate::wire::Span;

/// The line before is looked at so far.
const LONGEST_LINE: usize = 256;

/// The value of this name from `start` on, if it is such a one.
pub(super) fn value(text: &[u8], name: Span, start: usize) -> Option<Span> {
    let (before, quote, slashes) = before_quote(text, name);
    let is_upper = in_capitals(name.of(text));
    let up_to = |ends: fn(u8) -> bool| Span::new(start, start + run(text, start, |byte| !ends(byte)));
    let value = match quote {
        Some(quote) if is_upper && before_word(before, b"set ").is_some() => {
            let value = up_to(ends_line);
            (text.get(value.end + slashes) == Some(&quote)).then_some(value)
        }
        None if !is_upper && before.trim_ascii_end().ends_with(b";") => {
            let value = up_to(|byte| ends_line(byte) || byte == b';');
            matches!(text.get(value.end), Some(b';' | b'"' | b'\'' | b'\\')).then_some(value)
        }
        // First what is short: a text made of such names would be read to its end for each of them.
        None if is_upper => {
            let lead = lead(text, name.start)?;
            let value = up_to(ends_line);
            let ends = text.get(value.end).is_none_or(|byte| matches!(byte, b'\n' | b'\r'));
            (ends && is_line(text, lead, value.end)).then(|| without_remark(text, value))
        }
        _ => None,
    };
    value.filter(|value| is_phrase(value.of(text)) && reads_as_value(value.of(text)))
}

/// The value that fills the rest of a word in a list, and what it is: of a flag, or in an environment of any variable.
pub(in super::super) fn rest(word: &[u8], in_environment: bool) -> Option<(&'static SecretName, Span)> {
    let name = &word[..run(word, 0, is_name_byte)];
    let start = name.len() + 1;
    let value = word.get(start..).filter(|_| word[name.len()] == b'=')?;
    let has_blank = value.contains(&b' ') && !matches!(value[0], b'"' | b'\'');
    let is_told = has_blank && (in_environment || is_phrase(value));
    let row =
        if is_told { flag(name).or_else(|| names::secret(name).filter(|_| in_environment)) } else { None }?;
    let value = worth(word, Span::new(start, word.len())).filter(|_| !refers(word, start))?;
    row.may_hold(value.of(word)).then_some((row, value))
}

/// Whether a line that ends here assigns something and is no command: one of a list in YAML, or one beside which others
/// assign as well.
fn is_line(text: &[u8], lead: Span, end: usize) -> bool {
    let above = &text[lead.start.saturating_sub(LONGEST_LINE)..lead.start.saturating_sub(1)];
    let above = &above[above.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1)..];
    let below = text[end..].trim_ascii_start();
    lead.of(text).contains(&b'-') || assigns(above) || assigns(below)
}

/// What stands before `at` in a line, if that is nothing but blanks and the sign of a list.
fn lead(text: &[u8], at: usize) -> Option<Span> {
    let near = &text[at.saturating_sub(LONGEST_LINE)..at];
    let length = near.iter().rev().take_while(|byte| matches!(byte, b' ' | b'-')).count();
    let lead = Span::new(at - length, at);
    let begins = text[..lead.start].last().is_none_or(|byte| *byte == b'\n');
    (begins && matches!(lead.of(text).trim_ascii(), b"" | b"-")).then_some(lead)
}

/// Whether a line assigns something to a name in capitals.
fn assigns(line: &[u8]) -> bool {
    let name = &line[..run(line, 0, is_name_byte)];
    name.first().is_some_and(u8::is_ascii_uppercase)
        && in_capitals(name)
        && line.get(name.len()) == Some(&b'=')
}

/// A value without the remark behind it, and blanks.
fn without_remark(text: &[u8], value: Span) -> Span {
    let bytes = value.of(text);
    let bytes = &bytes[..memchr::memmem::find(bytes, b" #").unwrap_or(bytes.len())];
    Span::new(value.start, value.start + bytes.trim_ascii_end().len())
}

/// Whether what has blanks is no command behind a variable, nor other settings.
fn reads_as_value(value: &[u8]) -> bool {
    !value.iter().any(|byte| b"/$&|<>=;`".contains(byte)) && memchr::memmem::find(value, b" -").is_none()
}
