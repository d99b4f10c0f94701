//! Passwords of users in SQL: `IDENTIFIED BY 'x'`, `ALTER USER u PASSWORD 'x'`.

use super::{Assigned, is_secret, refers, run};
use crate::redact::names::{self, SecretName};
use crate::wire::Span;

/// What a statement says before the password is looked at so far.
const LONGEST: usize = 256;

/// Words of statements that give users passwords.
const STATEMENTS: &[&str] =
    &["create user", "alter user", "create role", "alter role", "create login", "alter login"];

/// The password that follows these words, of which this name is the first; none where it is another name.
pub(super) fn password(text: &[u8], name: Span) -> Option<Assigned> {
    let word = name.of(text);
    let is_identified = word.eq_ignore_ascii_case(b"identified");
    let start = if is_identified {
        behind_identified(text, name.end)?
    } else if word.eq_ignore_ascii_case(b"password") {
        name.end + run(text, name.end, is_blank)
    } else {
        return None;
    };
    let begins = matches!(text.get(start), Some(b'\'' | b'"' | b'\\')) && start > name.end;
    let is_told = begins && (is_identified || is_in_statement(text, name.start));
    is_told.then(|| quoted(text, start, names::secret(b"password")?)).flatten()
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

fn is_in_statement(text: &[u8], at: usize) -> bool {
    let before = &text[at.saturating_sub(LONGEST)..at];
    let begin = memchr::memrchr(b';', before).map_or(0, |end| end + 1);
    let before = before[begin..].to_ascii_lowercase();
    STATEMENTS.iter().any(|statement| memchr::memmem::find(&before, statement.as_bytes()).is_some())
}

/// The text in quotes that begins at `start`; where these stand behind backslashes, what is decoded decides.
fn quoted(text: &[u8], start: usize, row: &'static SecretName) -> Option<Assigned> {
    if text.get(start) == Some(&b'\\') {
        return Some(Assigned::Look);
    }
    let quote = *text.get(start).filter(|byte| matches!(byte, b'\'' | b'"'))?;
    let value = Span::new(start + 1, super::behind_quotes(text, start + 1, quote));
    let is_value = !value.is_empty() && is_secret(value.of(text)) && !refers(text, value.start);
    (is_value && text.get(value.end) == Some(&quote)).then_some(Assigned::Secret(row, value))
}
