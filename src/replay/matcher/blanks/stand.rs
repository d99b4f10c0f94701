//! What may be all of a secret within a longer text: no further argument, path segment or member goes unseen in it.

use super::{PRIVATE_KEY, only_placeholder};
use crate::redact::{entity, is_look};

/// Shorter values are looked for nowhere but in their own places.
const SHORTEST_PASSWORD: usize = 8;
/// What parts members and parameters.
const PARTS: &[u8] = b",;{&?";
/// What is longer was not chosen by anybody.
const LONGEST_PASSWORD: usize = 128;

/// Whether a text may be all of a secret of this kind where a blank stands between these texts: it is all of a string, of
/// a line or of what a line says behind a name, it stands in quotes that it does not end, or it is one word there.
pub(super) fn may_stand(text: &[u8], around: [&[u8]; 2], kind: &str) -> bool {
    let [before, behind] = around;
    let is_one = only_placeholder(text).is_some();
    if before.is_empty() && behind.is_empty() || is_one || kind == PRIVATE_KEY && is_block(text) {
        return true;
    }
    let is_key_unnamed = kind == PRIVATE_KEY && !is_named(before);
    if !is_key_unnamed && is_rest_of_line(text, around) {
        return true;
    }
    let slashes = behind.iter().take_while(|byte| **byte == b'\\').count();
    let closing = behind.get(slashes).copied().filter(|sign| b"\"'`".contains(sign));
    let quote = closing.filter(|_| before.ends_with(&behind[..=slashes]));
    if quote.is_none() && (says_more(text) || is_key_unnamed) {
        return false;
    }
    let signs = [before.last(), behind.first()].map(Option::<&u8>::copied);
    // Base64 ends in `=`, and names end there; the others part no words, and passwords end in some.
    let is_border = |byte: u8| {
        !byte.is_ascii_alphanumeric() && !b"=-_.!^*~".contains(&byte) && signs.contains(&Some(byte))
    };
    let parts = |byte: u8| match quote {
        Some(quote) => byte == quote,
        None => byte.is_ascii_whitespace() || b"\"'`\\&|;,?#$(){}[]<>".contains(&byte) || is_border(byte),
    };
    let is_apart = signs.iter().all(|sign| sign.is_none_or(|sign| sign.is_ascii_whitespace()));
    holds_none(text, slashes, parts) || quote.is_none() && reads_as_password(text, is_apart, is_border)
}

/// Whether a text is all of a line where a blank is that, or what a line says behind a name, as headers and settings do:
/// `Authorization: Bearer x`. There it names nothing else.
fn is_rest_of_line(text: &[u8], [before, behind]: [&[u8]; 2]) -> bool {
    let start = memchr::memrchr(b'\n', before).map_or(0, |end| end + 1);
    let name = &before[start..];
    let ends = behind.is_empty() || behind.starts_with(b"\n") || behind.starts_with(b"\r\n");
    let is_line = ends && !text.iter().any(|byte| b"\r\n".contains(byte));
    let is_name = |name: &[u8]| !name.is_empty() && name.iter().all(is_of_name);
    let says_more =
        || (0..text.len()).any(|at| PARTS.contains(&text[at]) && assigns(text[at + 1..].trim_ascii_start()));
    is_line && (name.is_empty() || name.strip_suffix(b": ").is_some_and(is_name) && !says_more())
}

fn is_of_name(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// Whether a text begins with a name and what assigns to it.
fn assigns(text: &[u8]) -> bool {
    let name = text.iter().take_while(|byte| is_of_name(byte)).count();
    name > 0 && matches!(text.get(name), Some(b'=' | b':'))
}

/// Whether a text is a key with the lines that begin and end it, and nothing else.
fn is_block(text: &[u8]) -> bool {
    const BEGIN: &[u8] = b"-----BEGIN ";
    let text = text.trim_ascii();
    text.starts_with(BEGIN)
        && text.ends_with(b"-----")
        && memchr::memmem::find_iter(text, BEGIN).count() == 1
        && memchr::memmem::find_iter(text, b"-----END ").count() == 1
        && is_look(text)
}

/// Whether a text ends as one does behind which a value is told: in a sign that assigns, or a flag. Where none tells
/// it, a key is known by its look.
fn is_named(before: &[u8]) -> bool {
    let before = before.trim_ascii_end();
    let word = before.rsplit(u8::is_ascii_whitespace).next().unwrap_or_default();
    word.starts_with(b"-") || matches!(before.last(), Some(b'=' | b':' | b'>'))
}

/// Whether a word says what else is to be done, or done with: a command or variable that a shell puts in, `$(x)` and
/// `${x}`, or a line end and the like in an address, `%0A`.
fn says_more(text: &[u8]) -> bool {
    let is_put_in = |pair: &[u8]| matches!(pair, b"$(" | b"${");
    let is_control = |escape: &[u8]| match escape {
        [b'%', b'0' | b'1', digit] => digit.is_ascii_hexdigit(),
        [b'%', b'7', b'f' | b'F'] => true,
        _ => false,
    };
    text.windows(2).any(is_put_in) || text.windows(3).any(is_control)
}

/// Whether a text has none of these signs but in escapes of JSON, shells, HTML and SQL. Quotes around it may themselves
/// stand behind backslashes: such a one is no escape.
fn holds_none(text: &[u8], slashes: usize, parts: impl Fn(u8) -> bool) -> bool {
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        let rest = &text[at..];
        let run = rest.iter().take_while(|other| **other == byte).count();
        let escape = match byte {
            b'\\' if run > slashes => {
                rest.get(run).filter(|sign| !sign.is_ascii_alphanumeric()).map(|_| run + 1)
            }
            b'&' => entity(rest).map(|(_, length)| length),
            b'\'' | b'"' if slashes == 0 && run % 2 == 0 => Some(run),
            _ => None,
        };
        if escape.is_none() && parts(byte) {
            return false;
        }
        at += escape.unwrap_or(1);
    }
    true
}

/// Whether a text in no quotes reads as what people and programs choose as passwords, signs and all: but not where a
/// sign begins another parameter or member, unless blanks alone part it from what stands around it.
fn reads_as_password(text: &[u8], is_apart: bool, is_border: impl Fn(u8) -> bool) -> bool {
    let has = |is: fn(&u8) -> bool| text.iter().any(is);
    let may_stand = |at: usize| match text[at] {
        b'"' | b'\'' | b'`' | b'\\' => false,
        // Behind these shells read another command, or a file.
        b'|' | b';' | b'&' | b'<' | b'>' => false,
        byte if byte.is_ascii_whitespace() || is_border(byte) => false,
        byte if is_of_name(&byte) => true,
        byte => is_apart && !PARTS.contains(&byte) || !assigns(&text[at + 1..]),
    };
    (SHORTEST_PASSWORD..=LONGEST_PASSWORD).contains(&text.len())
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_alphabetic)
        && (0..text.len()).all(may_stand)
}
