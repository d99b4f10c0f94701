//! Files of programs that keep logins: `machine h login u password x` of netrc, `//registry.x/:_authToken=x` of npm.

use super::settings::{begins_line, is_mixed};
use super::{Assigned, backslashes, is_secret, refers, run, skip_gap, worth};
use crate::redact::names::{self, SecretName};
use crate::redact::references::is_example;
use crate::wire::Span;

/// What an entry says before its password is shorter.
const LONGEST_ENTRY: usize = 256;

/// The password of an entry of netrc, if this is its name there.
pub(super) fn of_netrc(text: &[u8], name: Span) -> Option<Assigned> {
    let is_behind = text.get(name.end).is_some_and(|byte| byte.is_ascii_whitespace() || *byte == b'\\');
    if !is_behind || !matches!(name.of(text), b"password" | b"passwd") {
        return None;
    }
    let before = &text[name.start.saturating_sub(LONGEST_ENTRY)..name.start];
    let is_hidden = memchr::memmem::find(before, b"\\n").is_some() || text[name.end] == b'\\';
    let begins = |begin: &&[u8]| memchr::memmem::find(before, begin).is_some();
    let look = || (is_hidden && [MACHINE, DEFAULT].iter().any(begins)).then_some(Assigned::Look);
    let Some(entry) = entry(before).filter(|_| text[name.end] != b'\\') else { return look() };
    let start = name.end + run(text, name.end, |byte| byte.is_ascii_whitespace());
    let value = Span::new(start, start + run(text, start, |byte| byte > b' '));
    let escapes = memchr::memchr(b'\\', value.of(text)).map(|at| &value.of(text)[at + 1..]);
    if escapes.is_some_and(|rest| matches!(rest.first(), Some(b'n' | b'r' | b't' | b'"'))) {
        return Some(Assigned::Look);
    }
    let value = unquoted(text, value);
    let is_value = |value: &Span| {
        let bytes = value.of(text);
        !refers(text, value.start) && !is_example(bytes) && (entry == Entry::Sure || is_mixed(bytes))
    };
    match worth(text, value).filter(is_value) {
        Some(value) => Some(Assigned::Secret(names::secret(b"password")?, value)),
        // Escapes or the end of a string may stand behind it.
        None if entry == Entry::Likely => Some(Assigned::Look),
        None => look(),
    }
}

/// The words that entries of netrc begin with.
const MACHINE: &[u8] = b"machine";
const DEFAULT: &[u8] = b"default";

/// What stands before a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    /// The words of an entry, and nothing else.
    Sure,
    /// What may be a sentence of the same words.
    Likely,
}

/// Whether these words stand before a password: those of a machine, or of the default, a login and an account.
fn entry(before: &[u8]) -> Option<Entry> {
    let words = before.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let words: Vec<&[u8]> = words.collect();
    let is_begin = |word: &[u8], begin: &[u8]| {
        let before = word.strip_suffix(begin);
        before.is_some_and(|before| !before.last().is_some_and(u8::is_ascii_alphanumeric))
    };
    // Of a sentence about them.
    let is_spoken = |word: &[u8]| [&b"and"[..], b"or", b"the", b"is", b"a"].contains(&word);
    let mut rest = &words[..];
    if is_spoken(rest.last()?) && !matches!(rest, [.., b"account", _]) {
        return None;
    }
    while let [others @ .., b"login" | b"account", _] = rest {
        rest = others;
    }
    match rest {
        [.., machine, _] if is_begin(machine, MACHINE) => Some(Entry::Sure),
        [others @ .., default] if rest.len() < words.len() && is_begin(default, DEFAULT) => {
            let is_alone = others.is_empty() || matches!(others, [.., b"password" | b"passwd", _]);
            let at = memchr::memmem::rfind(before, DEFAULT)?;
            let begins = *default != DEFAULT || begins_line(before, at);
            if is_alone { Some(Entry::Sure) } else { begins.then_some(Entry::Likely) }
        }
        _ => None,
    }
}

/// A word without a quote around it, or around the command whose last word it is.
fn unquoted(text: &[u8], word: Span) -> Span {
    let is_quote = |byte: Option<&u8>| matches!(byte, Some(b'"' | b'\'' | b'`'));
    let bytes = word.of(text);
    let opens = usize::from(bytes.len() > 1 && is_quote(bytes.first()));
    let closes = usize::from(bytes.len() > opens && is_quote(bytes.last()));
    Span::new(word.start + opens, word.end - closes)
}

/// What npm is to be told under this name, if it is one of npm's: `_authToken`, `_auth`, `_password`.
pub(super) fn npm(name: &[u8]) -> Option<&'static SecretName> {
    match name {
        b"_auth" => Some(&names::NPM_AUTH),
        b"_authToken" | b"_password" => names::secret(name),
        _ => None,
    }
}

/// What stands behind a name of npm's, behind its registry or at the begin of a line.
pub(super) fn of_npm(text: &[u8], name: Span, row: &'static SecretName) -> Option<Assigned> {
    npm(name.of(text))?;
    let is_of_registry = text[..name.start].ends_with(b"/:");
    if !is_of_registry && !begins_line(text, name.start) {
        return None;
    }
    let end = name.end + run(text, name.end, |byte| matches!(byte, b'"' | b'\'' | b'\\')).min(2);
    let sign = end + run(text, end, |byte| byte == b' ');
    let start = match text.get(sign)? {
        b'=' => skip_gap(text, sign + 1),
        _ if is_of_registry && sign > end && is_behind_set(text, name.start) => sign,
        _ => return None,
    };
    let start = start + backslashes(text, start);
    let start = start + usize::from(matches!(text.get(start), Some(b'"' | b'\'')));
    let ends = |byte: u8| byte <= b' ' || b"\"'`\\;,".contains(&byte);
    let value = Span::new(start, start + run(text, start, |byte| !ends(byte)));
    let is_value = !value.is_empty() && is_secret(value.of(text)) && !refers(text, value.start);
    (is_value && !value.of(text).starts_with(b"-")).then_some(Assigned::Secret(row, value))
}

/// Whether the word that `at` is in is what a command is to set: `npm config set //registry.x/:_authToken x`.
fn is_behind_set(text: &[u8], at: usize) -> bool {
    let near = &text[at.saturating_sub(LONGEST_ENTRY)..at];
    let word = near.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
    near[..near.len() - word.len()].trim_ascii_end().ends_with(b"set")
}
