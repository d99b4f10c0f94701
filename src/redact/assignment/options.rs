//! Fields that programs are given in the word of an option: `-d 'password=x y'`, `-e "PASSWORD=x y"`,
//! `--set auth.password=x`.

use super::equals::begins_field;
use super::quotes::{Word, word};
use super::{LONGEST, before_quote, behind_quotes, ends_setting};
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

/// What is assigned behind `start` to the name that an option's word begins with; the outer none where it begins none.
pub(super) fn field(text: &[u8], name: Span, start: usize) -> Option<Option<Span>> {
    let (before, quote, slashes) = before_quote(text, name);
    let (option, part) = option(before, quote.is_some())?;
    if option == VARIABLE && name.of(text).iter().any(u8::is_ascii_lowercase) {
        return None;
    }
    let is_file = matches!(option, FORM | b"--form") && matches!(text.get(start), Some(b'@' | b'<'));
    if is_file {
        return Some(None);
    }
    let Some(quote) = quote else {
        let Word { value, .. } = word(text, start, |at| ends_setting(text[at]));
        return Some(Some(value));
    };
    let end = behind_quotes(text, name.start, quote, slashes);
    let closes = text.get(end + slashes) == Some(&quote);
    let parts = |at: &usize| text[*at] == part && (part == b'&' || begins_field(&text[at + 1..end]));
    closes.then(|| Some(Span::new(start, (start..end).find(parts).unwrap_or(end))))
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
