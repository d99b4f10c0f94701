//! Files of programs that keep logins: `machine h login u password x` of netrc, `//registry.x/:_authToken=x` of npm.

use super::quotes::goes_on;
use super::settings::begins_line;
use super::{Assigned, backslashes, behind_quotes, is_secret, refers, run, skip_gap, worth, worth_itself};
use crate::redact::names::{self, SecretName};
use crate::redact::ordinary::is_spoken;
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
    let before = near(text, name.start);
    let is_hidden = memchr::memmem::find(before, b"\\n").is_some() || text[name.end] == b'\\';
    let begins = |begin: &&[u8]| memchr::memmem::find(before, begin).is_some();
    let look = || (is_hidden && [MACHINE, DEFAULT].iter().any(begins)).then_some(Assigned::Look);
    let Some(entry) = entry(before).filter(|_| text[name.end] != b'\\') else { return look() };
    let Some(value) = token(text, name.end) else { return Some(Assigned::Look) };
    let behind = &text[value.end..text.len().min(value.end + LONGEST_ENTRY)];
    let tells_file = || [before, behind].iter().any(|near| memchr::memmem::find(near, b"netrc").is_some());
    let is_value = |value: &Span| {
        let bytes = value.of(text);
        let is_spoken = entry == Entry::Spoken && is_spoken(bytes);
        !refers(text, value.start) && !is_example(bytes) && bytes != b"%s" && (!is_spoken || tells_file())
    };
    match worth(text, value).filter(is_value) {
        Some(value) => Some(Assigned::Secret(names::secret(b"password")?, value)),
        None => look(),
    }
}

/// The account of the entry of netrc that has this password, which is a second one.
pub(in super::super) fn account(text: &[u8], password: Span) -> Option<Span> {
    let before = near(text, password.start);
    let is_quote = |byte: &u8| matches!(byte, b'"' | b'\'');
    let quotes = before.iter().rev().take_while(|byte| is_quote(byte)).count().min(1);
    let before = before[..before.len() - quotes].trim_ascii_end();
    let before = before.strip_suffix(b"password").or_else(|| before.strip_suffix(b"passwd"))?;
    let begin = [MACHINE, DEFAULT].iter().filter_map(|begin| memchr::memmem::rfind(before, begin)).max()?;
    entry(before)?;
    let behind = password.end + quotes;
    let behind = behind + run(text, behind, |byte| byte.is_ascii_whitespace());
    let name = match memchr::memmem::rfind(&before[begin..], ACCOUNT) {
        Some(at) => password.start.saturating_sub(LONGEST_ENTRY) + begin + at,
        None => text.get(behind..).filter(|rest| rest.starts_with(ACCOUNT)).map(|_| behind)?,
    };
    let value = token(text, name + ACCOUNT.len())?;
    worth_itself(text, value)
}

/// What stands before `at`, so far as an entry may.
fn near(text: &[u8], at: usize) -> &[u8] {
    &text[at.saturating_sub(LONGEST_ENTRY)..at]
}

/// The words that entries of netrc begin with, and one behind which a second password stands.
const MACHINE: &[u8] = b"machine";
const DEFAULT: &[u8] = b"default";
const ACCOUNT: &[u8] = b"account";

/// What stands before a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    /// The words of an entry, and nothing else.
    Sure,
    /// What reads as words of a sentence: `machine learning login form`.
    Spoken,
}

/// Whether these words stand before a password: those of a machine, or of the default, a login and an account.
fn entry(before: &[u8]) -> Option<Entry> {
    let words = before.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let words: Vec<&[u8]> = words.collect();
    let is_begin = |word: &[u8], begin: &[u8]| {
        let before = word.strip_suffix(begin);
        before.is_some_and(|before| !before.last().is_some_and(u8::is_ascii_alphanumeric))
    };
    // Of a sentence about them; the login of a host may be such a word.
    let joins = |word: &[u8]| [&b"and"[..], b"or", b"the", b"is", b"a"].contains(&word);
    let mut rest = &words[..];
    let is_value = match rest {
        [.., b"account", _] => true,
        [.., machine, host, b"login", _] => is_begin(machine, MACHINE) && host.contains(&b'.'),
        _ => false,
    };
    if joins(rest.last()?) && !is_value {
        return None;
    }
    let mut are_spoken = true;
    let mut reads = |word: &[u8]| are_spoken &= is_spoken(word) && word != b"localhost";
    while let [others @ .., b"login" | b"account", word] = rest {
        reads(word);
        rest = others;
    }
    let begin = match rest {
        [.., machine, word] if is_begin(machine, MACHINE) => {
            reads(word);
            MACHINE
        }
        [others @ .., default] if rest.len() < words.len() && is_begin(default, DEFAULT) => {
            let is_alone = others.is_empty() || matches!(others, [.., b"password" | b"passwd", _]);
            let at = memchr::memmem::rfind(before, DEFAULT)?;
            (is_alone || *default != DEFAULT || begins_line(before, at)).then_some(DEFAULT)?
        }
        _ => return None,
    };
    // Sentences go on in their line.
    let at = memchr::memmem::rfind(before, begin)?;
    let is_spoken = are_spoken && !before[at..].trim_ascii_end().contains(&b'\n');
    Some(if is_spoken { Entry::Spoken } else { Entry::Sure })
}

/// The word of an entry behind the white space at `at`; none where escapes say what it is. In no quotes it ends before
/// the quote that closes the text which the entry stands in.
fn token(text: &[u8], at: usize) -> Option<Span> {
    let start = at + run(text, at, |byte| byte.is_ascii_whitespace());
    let word = Span::new(start, start + run(text, start, |byte| byte > b' '));
    let bytes = word.of(text);
    let is_quote = |byte: &u8| matches!(byte, b'"' | b'\'' | b'`');
    let opens = usize::from(bytes.len() > 1 && is_quote(&bytes[0]));
    if opens > 0 {
        let inside = Span::new(start + 1, behind_quotes(text, start + 1, bytes[0], 0));
        if text.get(inside.end) == Some(&bytes[0]) {
            return Some(inside);
        }
    }
    let is_escape = |pair: &[u8]| pair[0] == b'\\' && matches!(pair[1], b'n' | b'r' | b't' | b'"');
    if bytes.windows(2).any(is_escape) {
        return None;
    }
    let closes = |at: &usize| is_quote(&bytes[*at]) && !goes_on(&bytes[at + 1..]);
    let end = (opens..bytes.len()).find(closes).unwrap_or(bytes.len());
    Some(Span::new(start + opens, start + end))
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
    let near = near(text, at);
    let word = near.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
    near[..near.len() - word.len()].trim_ascii_end().ends_with(b"set")
}
