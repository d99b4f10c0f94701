//! Passwords of users in SQL: `IDENTIFIED BY 'x'`, `ALTER USER u PASSWORD 'x'`, `SET PASSWORD = 'x'`.

use super::settings::is_mixed;
use super::{Assigned, before_word, is_name_byte, is_secret, refers, run};
use crate::redact::names::{self, SecretName};
use crate::wire::Span;

/// What a statement says before the password is looked at so far, and so is the user whose it is.
const LONGEST: usize = 256;
const LONGEST_USER: usize = 128;

/// Words of statements that give users passwords, or protect something by one.
const STATEMENTS: &[&str] = &[
    "create user",
    "alter user",
    "create role",
    "alter role",
    "create login",
    "alter login",
    "create group",
    "create application role",
    "alter application role",
    "create credential",
    "alter credential",
    "scoped credential",
    "create master key",
    "alter master key",
    "open master key",
];

/// The password that follows these words, of which this name is the first; none where it is another name.
pub(super) fn password(text: &[u8], name: Span) -> Option<Assigned> {
    let word = name.of(text);
    if word.eq_ignore_ascii_case(b"identified") {
        let start = behind_identified(text, name.end)?;
        return quoted(text, start, names::secret(b"password")?).or_else(|| bare(text, start, name));
    }
    if !matches!(text.get(name.end)?, b' ' | b'\t' | b'\n' | b'\r' | b'=') {
        return None;
    }
    let row = names::secret(word).filter(|row| matches!(row.kind, "password" | "secret"))?;
    let is_set = word.eq_ignore_ascii_case(b"password") && is_behind_set(text, name.start);
    let at = if is_set { behind_user(text, name.end) } else { name.end };
    let start = at + run(text, at, is_blank);
    let (sign, behind) = match text.get(start..)? {
        [b'=', ..] => (true, start + 1),
        [t, o, end, ..] if [*t, *o].eq_ignore_ascii_case(b"to") && is_blank(*end) => (true, start + 2),
        _ => (false, start),
    };
    let start = within_call(text, behind + run(text, behind, is_blank));
    let begins = matches!(text.get(start), Some(b'\'' | b'"' | b'\\' | b'N' | b'n' | b'E' | b'e'));
    let is_told = || match (is_set, sign) {
        (true, true) => true,
        (_, true) => is_in_statement(text, name.start, true),
        (_, false) => row.kind == "password" && is_in_statement(text, name.start, false),
    };
    let is_told = begins && start > name.end && is_told();
    is_told.then(|| quoted(text, start, row)).flatten()
}

/// Whether the word before is `SET`.
fn is_behind_set(text: &[u8], at: usize) -> bool {
    let before = text[..at].trim_ascii_end();
    before_word(before, b"set")
        .is_some_and(|rest| before.len() < at && !rest.last().is_some_and(|byte| is_name_byte(*byte)))
}

/// What follows the user whose password is set: `FOR 'u'@'h'`.
fn behind_user(text: &[u8], at: usize) -> usize {
    let Some((_, end)) = word_at(text, at).filter(|(word, _)| word.eq_ignore_ascii_case(b"for")) else {
        return at;
    };
    let rest = &text[end..text.len().min(end + LONGEST_USER)];
    let user = rest.iter().position(|byte| matches!(byte, b'=' | b';'));
    user.map_or(at, |user| end + user)
}

/// What a function is given that makes a password's hash: `PASSWORD('x')`.
fn within_call(text: &[u8], at: usize) -> usize {
    match word_at(text, at) {
        Some((word, end)) if word.eq_ignore_ascii_case(b"password") && text.get(end) == Some(&b'(') => {
            end + 1 + run(text, end + 1, is_blank)
        }
        _ => at,
    }
}

/// Where the password begins that is told behind `IDENTIFIED`: of MySQL with the name of a method before it.
fn behind_identified(text: &[u8], at: usize) -> Option<usize> {
    let at = match word_at(text, at) {
        Some((word, end)) if word.eq_ignore_ascii_case(b"with") => next_word(text, end)?.1,
        _ => at,
    };
    let (by, end) = word_at(text, at)?;
    let end = match word_at(text, end) {
        Some((word, end)) if word.eq_ignore_ascii_case(b"password") => end,
        _ => end,
    };
    (by.eq_ignore_ascii_case(b"by") || by.eq_ignore_ascii_case(b"as"))
        .then_some(end + run(text, end, is_blank))
}

/// The next word, which may stand in quotes.
fn next_word(text: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let start = at + run(text, at, |byte| is_blank(byte) || matches!(byte, b'\'' | b'"' | b'`'));
    let (word, end) = word_at(text, start)?;
    Some((word, end + run(text, end, |byte| matches!(byte, b'\'' | b'"' | b'`'))))
}

/// The word behind blanks at `at`, and where it ends.
fn word_at(text: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let start = at + run(text, at, is_blank);
    let length = run(text, start, |byte| byte.is_ascii_alphanumeric() || byte == b'_');
    (length > 0).then(|| (&text[start..start + length], start + length))
}

const fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Whether these words stand before `at`; and behind them, before what has a sign, `WITH` or `BY`: code has signs, too.
fn is_in_statement(text: &[u8], at: usize, has_sign: bool) -> bool {
    let before = &text[at.saturating_sub(LONGEST)..at];
    let begin = memchr::memrchr(b';', before).map_or(0, |end| end + 1);
    let before = before[begin..].to_ascii_lowercase();
    let behind = |statement: &&str| {
        memchr::memmem::rfind(&before, statement.as_bytes()).map(|found| &before[found + statement.len()..])
    };
    let is_joint = |word: &[u8]| matches!(word, b"with" | b"by");
    let joins = |rest: &[u8]| rest.split(u8::is_ascii_whitespace).any(is_joint);
    STATEMENTS.iter().filter_map(behind).any(|rest| !has_sign || joins(rest))
}

/// The text in quotes that begins at `start`, with a letter before it that tells its characters or escapes; where the
/// quotes stand behind backslashes, what is decoded decides.
fn quoted(text: &[u8], start: usize, row: &'static SecretName) -> Option<Assigned> {
    if text.get(start) == Some(&b'\\') {
        return Some(Assigned::Look);
    }
    let start = start + run(text, start, |byte| matches!(byte, b'N' | b'n' | b'E' | b'e')).min(1);
    if text.get(start..).is_some_and(|rest| rest.starts_with(b"\\\"")) {
        return Some(Assigned::Look);
    }
    let quote = *text.get(start).filter(|byte| matches!(byte, b'\'' | b'"'))?;
    let value = Span::new(start + 1, super::behind_quotes(text, start + 1, quote, 0));
    let is_value = !value.is_empty()
        && is_secret(value.of(text))
        && !refers(text, value.start)
        && !is_parameter(value.of(text));
    (is_value && text.get(value.end) == Some(&quote)).then_some(Assigned::Secret(row, value))
}

/// Whether a driver is to fill something in here: `?`, `%s`, `:name`, `@name`.
fn is_parameter(value: &[u8]) -> bool {
    let is_name = |name: &[u8]| !name.is_empty() && name.iter().copied().all(is_name_byte);
    match value {
        b"?" => true,
        [b'%', rest @ ..] => matches!(rest, b"s" | [b'(', ..]),
        [b':' | b'@', name @ ..] => is_name(name),
        _ => false,
    }
}

/// A password in no quotes, as Oracle takes it.
fn bare(text: &[u8], start: usize, identified: Span) -> Option<Assigned> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'#');
    let value = Span::new(start, start + run(text, start, is_part));
    let is_told = is_mixed(value.of(text)) && is_in_statement(text, identified.start, false);
    is_told.then(|| names::secret(b"password").map(|row| Assigned::Secret(row, value))).flatten()
}
