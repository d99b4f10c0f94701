//! Fields that programs are given in the word of an option: `-d 'password=x y'`, `-e "PASSWORD=x y"`,
//! `--set auth.password=x`.

use super::equals::begins_field;
use super::quotes::{Word, word};
use super::settings::is_phrase;
use super::{LONGEST, before_quote, behind_quotes, ends_setting, in_capitals, refers, run, worth};
use crate::redact::names::{self, SecretName, is_name_byte};
use crate::wire::Span;

/// Options whose word is such a field, and the sign that parts it from others in the word.
const OPTIONS: &[(&[u8], u8)] = &[
    (b"-d", b'&'),
    (b"--data", b'&'),
    (b"--data-raw", b'&'),
    (b"--data-ascii", b'&'),
    (b"--data-binary", b'&'),
    (b"--data-urlencode", ALONE),
    (b"--url-query", ALONE),
    (FORM, b';'),
    (b"--form", b';'),
    (b"--form-string", ALONE),
    (VARIABLE, ALONE),
    (b"--env", ALONE),
    (b"--build-arg", ALONE),
    (b"--from-literal", ALONE),
    (b"--set", b','),
    (b"--set-string", b','),
];

/// No other field follows.
const ALONE: u8 = b'\0';

/// Here what begins with a sign names a file.
const FORM: &[u8] = b"-F";

/// To some programs the word of this is what they look for.
const VARIABLE: &[u8] = b"-e";

/// What is assigned behind `start` to the name of a field in an option's word; the outer none where it is no such name.
pub(super) fn field(text: &[u8], name: Span, start: usize) -> Option<Option<Span>> {
    let word_at = begin(text, name);
    let (before, quote, slashes) = before_quote(text, Span::new(word_at, word_at));
    let (option, part) = option(before, quote.is_some())?;
    let may_be_pattern = may_be_pattern(option, name.of(text));
    if may_be_pattern && quote.is_none() {
        return None;
    }
    if names_file(option, &text[start..]) {
        return Some(None);
    }
    let Some(quote) = quote else {
        let Word { value, .. } = word(text, start, |at| ends_setting(text[at]));
        return Some(Some(value));
    };
    let end = behind_quotes(text, word_at, quote, slashes);
    let is_field = word_at == name.start || text[name.start - 1] == part;
    let closes = is_field && text.get(end + slashes) == Some(&quote);
    let rest = text.get(start..end).filter(|rest| closes && (!may_be_pattern || is_phrase(rest)))?;
    Some(Some(Span::new(start, start + length(rest, part))))
}

/// Where the word in quotes begins that a field is in; of the first one, where its name does.
fn begin(text: &[u8], name: Span) -> usize {
    let from = name.start.saturating_sub(LONGEST);
    let near = &text[from..name.start];
    let is_further = matches!(near.last(), Some(b'&' | b';' | b','));
    let quote = near.iter().rposition(|byte| matches!(byte, b'"' | b'\'' | b'\n')).filter(|_| is_further);
    quote.map_or(name.start, |quote| from + quote + 1)
}

/// The same in a list of words, of which these are the option and the one behind it.
pub(in super::super) fn field_of(option: &[u8], word: &[u8]) -> Option<(&'static SecretName, Option<Span>)> {
    let (_, part) = OPTIONS.iter().find(|(name, _)| *name == option)?;
    let start = run(word, 0, is_name_byte) + 1;
    let name = word.get(..start)?.strip_suffix(b"=")?;
    let row = names::secret(name).filter(|_| !may_be_pattern(option, name) || is_phrase(&word[start..]))?;
    let value = worth(word, Span::new(start, start + length(&word[start..], *part)));
    let is_one = |value: &Span| row.may_hold(value.of(word)) && !refers(word, start);
    Some((row, value.filter(|value| is_one(value) && !names_file(option, &word[start..]))))
}

/// Whether a word that begins with this name may be what a program looks for.
fn may_be_pattern(option: &[u8], name: &[u8]) -> bool {
    option == VARIABLE && !in_capitals(name)
}

/// How long a field's value is that a text begins with.
fn length(text: &[u8], part: u8) -> usize {
    let parts = |at: &usize| text[*at] == part && (part == b'&' || begins_field(&text[at + 1..]));
    (0..text.len()).find(parts).unwrap_or(text.len())
}

/// Whether a field's value is said to be in a file.
fn names_file(option: &[u8], value: &[u8]) -> bool {
    matches!(option, FORM | b"--form") && matches!(value.first(), Some(b'@' | b'<'))
}

/// The option that a text ends with, and what parts the fields in its word, which follows, in quotes or without.
fn option(before: &[u8], is_quoted: bool) -> Option<(&'static [u8], u8)> {
    let near = &before[before.len().saturating_sub(LONGEST)..];
    let less = near.strip_suffix(b"=").unwrap_or_else(|| near.trim_ascii_end());
    let is_apart = less.len() < near.len();
    let name = less.iter().rev().take_while(|byte| byte.is_ascii_alphabetic() || **byte == b'-').count();
    let (before, name) = less.split_at(less.len() - name);
    let begins = before.last().is_none_or(|byte| byte.is_ascii_whitespace() || matches!(byte, b'"' | b'\''));
    let is_it = |option: &&(&[u8], u8)| option.0 == name && (is_apart || is_quoted && name.len() == 2);
    OPTIONS.iter().find(is_it).filter(|_| begins).copied()
}
