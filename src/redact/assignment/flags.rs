//! Words that a flag says are secret: `["--password", "x"]`, `--password x`.

use super::{
    Assigned, backslashes, backslashes_before_quote, closing_quote, ends_setting, escapes_at, refers, run,
    skip_gap, worth,
};
use crate::redact::names::{self, SecretName, is_name_byte};
use crate::wire::Span;

/// What a flag is followed by and has a digit is a shorter word than any password: `v2`, `md5`.
const SHORTEST_WORD: usize = 6;

/// The secret that a flag says the next word is, in a list of words; `name` is the flag.
pub(in super::super) fn flag(name: &[u8]) -> Option<&'static SecretName> {
    let name = name.strip_prefix(b"-")?;
    let name = name.strip_prefix(b"-").unwrap_or(name);
    if name.starts_with(b"-") || name.starts_with(b"no-") || !name.iter().copied().all(is_name_byte) {
        return None;
    }
    names::secret(name)
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

/// `--password value` in a command line. Prose names flags too, so that what stands in no quotes has to be no word.
pub(super) fn word_behind(text: &[u8], name: Span) -> Option<Span> {
    let before = name.start.checked_sub(1).map(|at| text[at]);
    let is_apart = before.is_none_or(|byte| byte.is_ascii_whitespace() || b"\"'`(".contains(&byte))
        || escapes_at(text, name.start - 1);
    let row = flag(name.of(text)).filter(|_| is_apart)?;
    let start = name.end + run(text, name.end, |byte| byte == b' ');
    let slashes = backslashes_before_quote(text, start);
    let value = match text.get(start + slashes) {
        Some(&quote @ (b'"' | b'\'')) => {
            let inside = start + slashes + 1;
            let length = run(text, inside, |byte| byte != quote && byte != b'\n' && byte != b'\\');
            // A quote that ends here, and none that begins, is around the flag.
            (text.get(inside + length + slashes) == Some(&quote))
                .then(|| Span::new(inside, inside + length))?
        }
        _ => {
            let value = Span::new(start, start + run(text, start, |byte| !ends_setting(byte)));
            let has = |is: fn(&u8) -> bool| value.of(text).iter().any(is);
            let is_word = !has(u8::is_ascii_digit) || !has(u8::is_ascii_alphabetic);
            (value.len() >= SHORTEST_WORD && !is_word).then_some(value)?
        }
    };
    worth(text, value).filter(|_| is_flags_word(row, value.of(text)) && !refers(text, value.start))
}
