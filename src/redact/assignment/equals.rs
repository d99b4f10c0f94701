//! `NAME=value` in a query, a form, an environment, a command line, a list, a file of settings.

use super::quotes::{Word, begins_piece, word};
use super::settings::{
    begins_line, ends_line, is_literal, is_literal_or_phrase, is_mixed, stands_in_tokens, variable,
};
use super::{
    LONGEST, ansi_sign, backslashes, before_quote, behind_quotes, between_signs, element, ends_parameter,
    ends_setting, escapes_at, flag, in_capitals, in_sentence, is_form, options, phrase, refers, run,
    with_brackets, without_punctuation, worth, worth_itself,
};
use crate::redact::names::is_name_byte;
use crate::wire::{Span, scan::backslashes_at_end};

/// What is assigned to a name by the sign before `start`.
pub(super) fn equals(text: &[u8], name: Span, start: usize) -> Option<Span> {
    if let Some(value) = between_signs(text, start).or_else(|| element::attribute(text, name, start)) {
        return worth_itself(text, value);
    }
    if let Some(value) = options::field(text, name, start) {
        return worth_itself(text, value?);
    }
    if let Some(value) = phrase::value(text, name, start) {
        return worth(text, value).filter(|_| !refers(text, start));
    }
    let start = start + ansi_sign(text, start);
    let before = name.start.checked_sub(1).map(|at| text[at]);
    // `Server=h;Password='x';Database=d`
    if before == Some(b';') {
        let Word { value, is_quoted, .. } = word(text, start, |at| ends_setting(text[at]));
        if is_quoted {
            return worth_itself(text, value).filter(|value| is_literal_or_phrase(value.of(text)));
        }
    }
    let spelled = name.of(text);
    let is_upper = in_capitals(spelled);
    let may_fill = is_upper || flag(spelled).is_some();
    let filled = if may_fill { fills_word(text, name, start, is_upper) } else { None };
    let is_field = spelled.iter().any(|byte| matches!(byte, b'[' | b'%'));
    let parameter = || {
        let is_one = match before {
            // A word of a shell may have more behind a backslash.
            None => is_form(text) && !(may_fill && text[start..].contains(&b'\\')),
            Some(b'"' | b'\'') if !is_field && !may_fill => return first_field(text, name, start),
            Some(b'"' | b'\'') => is_field,
            Some(byte) => matches!(byte, b'?' | b'&' | b';' | b'#'),
        };
        let value = || Span::new(start, start + with_brackets(&text[start..], ends_parameter));
        is_one.then(|| in_sentence(text, value()))
    };
    if let Some(value) = filled.or_else(parameter) {
        return worth(text, value).filter(|_| !refers(text, start));
    }
    let is_variable = is_upper
        && (before.is_none_or(|byte| byte.is_ascii_whitespace() || b"\"'`(\\>=,".contains(&byte))
            || escapes_at(text, name.start - 1));
    // Code stands in the middle of lines as well: there, only what cannot be part of an expression counts.
    let variable = variable(text, name.start);
    let begins = begins_line(text, variable);
    let is_apart = variable > 0 && text[variable - 1].is_ascii_whitespace();
    let in_call = before == Some(b'(') && matches!(text.get(start), Some(b'"' | b'\''));
    let in_list = before == Some(b',') || is_apart && text[..variable].trim_ascii_end().ends_with(b";");
    let is_plain = is_variable || spelled.starts_with(b"--") || is_apart && flag(spelled).is_some();
    if refers(text, start) || !is_plain && !is_apart && !in_call && !in_list && !begins {
        return None;
    }
    let Word { value, end, is_quoted } = word(text, start, |at| ends_setting(text[at]));
    let is_quote = |byte: &u8| matches!(byte, b'"' | b'\'' | b'\\');
    let value = worth(text, value).filter(|value| !value.of(text).iter().all(is_quote))?;
    let is_mixed = if is_quoted { is_literal_or_phrase } else { is_mixed };
    let is_token = || {
        let in_text = || text[end..].starts_with(b"; ");
        let ends = |byte: &u8| *byte <= b' ' || ends_line(*byte) || in_list && matches!(byte, b',' | b';');
        let closes = || is_quoted && matches!(text.get(end + 1), Some(b')' | b','));
        begins
            || (in_call || is_apart) && closes() && is_literal_or_phrase(value.of(text))
            || (in_list || is_apart) && is_quoted && is_beside(text, variable, value, end)
            || (text.get(end).is_none_or(ends) || in_text()) && is_token_of_shell(value.of(text))
    };
    (is_plain && !refers(text, value.start) || is_mixed(value.of(text)) && is_token()).then_some(value)
}

/// What is assigned to the name that a text in quotes begins with: `'password=x&user=ann'`. The text may be a sentence or
/// code as well: what no other field follows, nor the quote, has to look like a secret.
fn first_field(text: &[u8], name: Span, start: usize) -> Option<Span> {
    let (&quote, before) = text[..name.start].split_last()?;
    let slashes = backslashes_at_end(before);
    // A quote that is itself in those of a shell ends at the next: `'"'"'password=x'"'"'`.
    let is_sign = quote == b'\'' && matches!(before.last(), Some(b'"' | b'\''));
    let end = if is_sign {
        start + run(text, start, |byte| !matches!(byte, b'\'' | b'\n'))
    } else {
        behind_quotes(text, name.start, quote, slashes)
    };
    let ends = |at: &usize| match text[*at] {
        b'&' => true,
        b';' => begins_field(&text[at + 1..end]),
        byte => byte <= b' ',
    };
    let value = Span::new(start, (start..end).find(ends).unwrap_or(end));
    let bytes = value.of(text);
    if matches!(bytes.first()?, b'"' | b'\'' | b'(' | b'[' | b'\\') {
        return None;
    }
    let fills = value.end == end && text.get(end..)?.get(slashes) == Some(&quote);
    let is_whole = fills || matches!(text.get(value.end), Some(b'&' | b';'));
    let is_word = bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || b"-_.+~!@".contains(byte));
    let is_value = is_whole && is_word || is_mixed(bytes) || is_literal(bytes) && !bytes.contains(&b'[');
    is_value.then(|| if is_whole { value } else { without_punctuation(text, value) })
}

/// Whether another field stands before `from`, or behind the quote at `end`: `host=h password='x y' user=ann`. What begins
/// with a blank stands between two texts of code, and so may what has several pieces.
fn is_beside(text: &[u8], from: usize, value: Span, end: usize) -> bool {
    let before = text[from.saturating_sub(LONGEST)..from].trim_ascii_end();
    let mut word = before.iter().rev().take_while(|byte| !byte.is_ascii_whitespace() && !ends_line(**byte));
    let behind = end + backslashes(text, end) + 1;
    let behind = text.get(behind..).unwrap_or_default();
    let is_one = word.any(|byte| *byte == b'=') || begins_field(behind.strip_prefix(b",").unwrap_or(behind));
    let is_whole =
        |value: &[u8]| value.trim_ascii().len() == value.len() && !matches!(value, [b'"' | b'\'', ..]);
    is_one && is_whole(value.of(text))
}

/// Whether all signs may stand in a token, or behind a backslash.
fn is_token_of_shell(text: &[u8]) -> bool {
    let mut is_escaped = false;
    text.iter().all(|byte| {
        let stands = is_escaped || *byte == b'\\' || stands_in_tokens(byte);
        is_escaped = *byte == b'\\' && !is_escaped;
        stands
    })
}

/// Whether a text begins with a name and the sign that assigns something to it.
pub(super) fn begins_field(text: &[u8]) -> bool {
    let name = text.trim_ascii_start();
    let length = name.iter().take_while(|byte| is_name_byte(**byte)).count();
    length > 0 && name.get(length) == Some(&b'=')
}

/// What is assigned in a word that fills its quotes, or all of the text: any sign is part of it there. Of a variable
/// not, where it reads as several.
fn fills_word(text: &[u8], name: Span, start: usize, is_variable: bool) -> Option<Span> {
    let (_, quote, slashes) = before_quote(text, name);
    if name.start > 0 && quote.is_none() {
        return None;
    }
    let ends = |byte: u8| byte <= b' ' || matches!(byte, b'"' | b'\'' | b'`' | b'\\' | b'<' | b'>');
    let value = Span::new(start, start + run(text, start, |byte| !ends(byte)));
    let behind = text.get(value.end + slashes..).unwrap_or_default();
    let fills = match quote {
        None => value.end == text.len(),
        Some(quote) => {
            backslashes(text, value.end) == slashes
                && behind.first() == Some(&quote)
                && !begins_piece(&behind[1..])
        }
    };
    let parts = |byte: &u8| matches!(byte, b'&' | b';' | b',');
    // Base64 ends in this sign, and what follows is another command.
    let has_end = |pair: &[u8]| pair[0] == b'=' && parts(&pair[1]);
    let has_several = || {
        let bytes = value.of(text);
        bytes.split(parts).skip(1).any(|part| part.contains(&b'=')) || bytes.windows(2).any(has_end)
    };
    // What follows is another element of HTML in a text that shows it.
    let has_tag =
        || [&b"&lt;"[..], b"&gt;"].iter().any(|tag| memchr::memmem::find(value.of(text), tag).is_some());
    let is_more = value.is_empty() || has_tag() || is_variable && has_several();
    (fills && !is_more).then_some(value)
}

/// `%3Ftoken%3Dvalue`: a query inside a parameter.
pub(super) fn encoded(text: &[u8], name: Span) -> Option<Span> {
    // `%3F` or `%26` before the name reads as `3Ftoken`.
    let begins = name.start > 0 && text[name.start - 1] == b'%';
    let separator = text.get(name.start..name.start + 2)?;
    if !begins || !(separator.eq_ignore_ascii_case(b"3f") || separator == b"26") {
        return None;
    }
    let start = name.end + 3;
    worth(text, Span::new(start, start + run(text, start, |byte| !ends_parameter(byte) && byte != b'%')))
}
