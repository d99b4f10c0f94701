//! What stands in a live message where a recorded one has placeholders, if it is equal in all else.
//!
//! Which values are secret is known by what was seen of a session, so it can differ between a recording and a live
//! session, or be another kind of secret. Here a placeholder is a blank that any text fills: as a whole string, any
//! that is not empty, or a number such as secrets are; within a longer one, what quotes around it keep together, or what
//! reads as one word or password there, so that no further argument, path segment or member of a text goes unseen.
//! Secrets that are known by their look alone are known wherever they stand: what has no such look fills no blank of
//! their kinds.

use std::{borrow::Cow, ops::Range};

use super::canonical::holds_placeholder;
use crate::{
    redact::{Placeholder, entity, is_look, is_of_looks_alone, is_spelled, placeholders},
    wire::scan::integer_length,
};

/// What fills a blank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::replay) enum Filling<'a> {
    /// A secret of the live session.
    Secret(Placeholder),
    /// Text as it stands, or the digits of a number.
    Text(Cow<'a, [u8]>),
}

/// Numbers that have fewer digits are no secrets.
const SHORTEST_NUMBER: usize = 4;
/// Numbers that have more are none either: they measure something.
const LONGEST_NUMBER: usize = 64;

/// The kind of keys that fill lines.
const PRIVATE_KEY: &str = "private-key";

/// Shorter values are looked for nowhere but in their own places.
const SHORTEST_PASSWORD: usize = 8;
/// What is longer was not chosen by anybody.
const LONGEST_PASSWORD: usize = 128;

/// What fills the blanks of a recorded form, in order, in a live form that is equal but for them; none where it is not
/// equal. Both keep the numbers of placeholders; in a live form that `is_redacted` these are the live session's.
pub(in crate::replay) fn fillings<'a>(
    recorded: &[u8],
    live: &'a [u8],
    is_redacted: bool,
) -> Option<Vec<(Placeholder, Filling<'a>)>> {
    let (mut at, mut live_at) = (0, 0);
    let mut filled = Vec::new();
    while at < recorded.len() {
        if recorded[at] != b'"' {
            (live.get(live_at) == Some(&recorded[at])).then_some(())?;
            (at, live_at) = (at + 1, live_at + 1);
            continue;
        }
        let text = text_at(recorded, at)?;
        at = text.end;
        if live.get(live_at) == Some(&b'n') {
            let placeholder = only_placeholder(&recorded[text])?;
            let length =
                memchr::memchr(b';', &live[live_at..]).filter(|_| !is_of_looks_alone(&placeholder.kind))?;
            filled.push((placeholder, Filling::Text(digits(&live[live_at + 1..live_at + length])?)));
            live_at += length + 1;
            continue;
        }
        let live_text = text_at(live, live_at)?;
        live_at = live_text.end;
        fill(&recorded[text], &live[live_text], is_redacted, &mut filled)?;
    }
    (live_at == live.len()).then_some(filled)
}

/// Whether a member's name holds a placeholder: what fills it may be another one in the order of names.
pub(in crate::replay) fn is_in_a_name(recorded: &[u8]) -> bool {
    placeholders(recorded).any(|(span, _)| {
        let behind = &recorded[span.end..];
        let quote = memchr::memchr(b'"', behind).unwrap_or(behind.len());
        behind[quote..].get(1..).is_some_and(|rest| rest.trim_ascii_start().starts_with(b":"))
    })
}

/// In how many bytes a recorded form and a live one agree that fills its blanks so, and whether text that fills one is
/// never part of a longer word. What would be the rest of such a word does not count as agreed: a secret may be all of it.
pub(in crate::replay) fn agreed(recorded: &[u8], filled: &[(Placeholder, Filling<'_>)]) -> (usize, bool) {
    let (mut at, mut agreed, mut are_whole) = (0, 0, true);
    let mut filled = filled.iter();
    while at < recorded.len() {
        let Some(text) = text_at(recorded, at) else {
            (at, agreed) = (at + 1, agreed + 1);
            continue;
        };
        at = text.end;
        let text = &recorded[text];
        let mut blanks = 0;
        for (span, _) in placeholders(text) {
            let is_text = matches!(filled.next(), Some((_, Filling::Text(_))));
            let joined = if is_text { joined(&text[..span.start], &text[span.end..]) } else { 0 };
            are_whole &= joined == 0;
            blanks += span.len() + joined;
        }
        // What joins two blanks is counted for both.
        agreed += text.len().saturating_sub(blanks);
    }
    (agreed, are_whole)
}

/// How many bytes before and behind a blank may be of one word with it: of a password, say.
fn joined(before: &[u8], behind: &[u8]) -> usize {
    let joins = |byte: &&u8| byte.is_ascii_alphanumeric() || b"!$^*~".contains(byte);
    before.iter().rev().take_while(joins).count() + behind.iter().take_while(joins).count()
}

/// Where the text stands that a form has here behind its length.
fn text_at(form: &[u8], at: usize) -> Option<Range<usize>> {
    let rest = form.get(at..)?.strip_prefix(b"\"")?;
    let colon = memchr::memchr(b':', rest)?;
    let length: usize = std::str::from_utf8(&rest[..colon]).ok()?.parse().ok()?;
    let start = at + 1 + colon + 1;
    let end = start.checked_add(length).filter(|end| *end <= form.len())?;
    Some(start..end)
}

/// The placeholder that is all of a text.
fn only_placeholder(text: &[u8]) -> Option<Placeholder> {
    starts_with_secret(text).filter(|(_, length)| *length == text.len()).map(|(placeholder, _)| placeholder)
}

/// The digits of a number that may be a secret, by its form: that has an exponent for the zeros at its end.
fn digits(form: &[u8]) -> Option<Cow<'_, [u8]>> {
    let is_long = |(_, length): &(usize, usize)| (SHORTEST_NUMBER..=LONGEST_NUMBER).contains(length);
    let (end, length) = integer_length(form).filter(is_long)?;
    let digits = &form[..end];
    digits.iter().all(u8::is_ascii_digit).then(|| match length - end {
        0 => digits.into(),
        zeros => [digits, &b"0".repeat(zeros)].concat().into(),
    })
}

/// Fills the blanks of one text.
fn fill<'a>(
    recorded: &[u8],
    live: &'a [u8],
    is_redacted: bool,
    filled: &mut Vec<(Placeholder, Filling<'a>)>,
) -> Option<()> {
    let mut blanks = placeholders(recorded).peekable();
    let first = blanks.peek().map_or(recorded.len(), |(span, _)| span.start);
    let mut rest = live;
    // What stands before the blank, and has to stand there.
    let mut before = &recorded[..first];
    while let Some((span, placeholder)) = blanks.next() {
        let next = blanks.peek().map_or(recorded.len(), |(next, _)| next.start);
        let behind = &recorded[span.end..next];
        let has_look = is_of_looks_alone(&placeholder.kind);
        if let Some((number, behind_it)) = bare_number(before, rest, behind).filter(|_| !has_look) {
            filled.push((placeholder, Filling::Text(number.into())));
            rest = behind_it;
            before = &behind[quote(before).len()..];
            continue;
        }
        rest = rest.strip_prefix(before)?;
        let (filling, length) = match starts_with_secret(rest).filter(|_| is_redacted) {
            Some((secret, length)) => (Filling::Secret(secret), length),
            None => {
                let length = match blanks.peek() {
                    None => rest.strip_suffix(behind)?.len(),
                    // Where one ends and the next begins only a secret tells.
                    Some(_) if behind.is_empty() => {
                        placeholders(rest).next().filter(|_| is_redacted)?.0.start
                    }
                    Some(_) => {
                        // Quotes before the next one may be missing.
                        let sure = &behind[..behind.len() - quote(behind).len()];
                        let sure = if sure.is_empty() { behind } else { sure };
                        memchr::memmem::find(rest.get(1..)?, sure)? + 1
                    }
                };
                let text = &rest[..length];
                let around = [&recorded[..span.start], &recorded[span.end..]];
                let may_stand = !text.is_empty() && may_stand(text, around, &placeholder.kind);
                // Part of it is a secret, and the rest is not: what the blank stands for is not told.
                let is_mixed = holds_placeholder(text)
                    && (is_redacted
                        || starts_with_secret(text).is_none_or(|(_, length)| length < text.len()));
                let may_be_one = !has_look || is_look(text) || is_spelled(text);
                (may_stand && may_be_one && !is_mixed).then_some((Filling::Text(text.into()), length))?
            }
        };
        rest = &rest[length..];
        before = behind;
        filled.push((placeholder, filling));
    }
    (rest == before).then_some(())
}

/// The number that stands where a blank in quotes does, and what follows it: in JSON inside a text, what is replaced gets
/// quotes.
fn bare_number<'a>(before: &[u8], live: &'a [u8], behind: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let quote = quote(before);
    if quote.is_empty() || !behind.starts_with(quote) {
        return None;
    }
    let rest = live.strip_prefix(&before[..before.len() - quote.len()])?;
    let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, rest) = rest.split_at(length);
    let goes_on = rest
        .first()
        .is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'+' | b'-'));
    (length >= SHORTEST_NUMBER && !goes_on).then_some((number, rest))
}

/// The quote that a text ends with, and the backslashes before it.
fn quote(text: &[u8]) -> &[u8] {
    let Some(before) = text.strip_suffix(b"\"") else { return b"" };
    let slashes = before.iter().rev().take_while(|byte| **byte == b'\\').count();
    &text[before.len() - slashes..]
}

/// The placeholder that a text begins with, and its length.
fn starts_with_secret(text: &[u8]) -> Option<(Placeholder, usize)> {
    let mut found = text.starts_with(b"<").then(|| placeholders(text))?;
    found.next().filter(|(span, _)| span.start == 0).map(|(span, secret)| (secret, span.end))
}

/// Whether a text may be all of a secret of this kind where a blank stands between these texts: it is all of a string, it
/// stands in quotes that it does not end, or it is one word there.
fn may_stand(text: &[u8], around: [&[u8]; 2], kind: &str) -> bool {
    let [before, behind] = around;
    if before.is_empty() && behind.is_empty() || only_placeholder(text).is_some() {
        return true;
    }
    if kind == PRIVATE_KEY && is_block(text) {
        return true;
    }
    let slashes = behind.iter().take_while(|byte| **byte == b'\\').count();
    let closing = behind.get(slashes).copied().filter(|sign| b"\"'`".contains(sign));
    let quote = closing.filter(|_| before.ends_with(&behind[..=slashes]));
    if quote.is_none() && (says_more(text) || kind == PRIVATE_KEY && !is_named(before)) {
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
    holds_none(text, slashes, parts) || quote.is_none() && reads_as_password(text, is_border)
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

/// Whether a text ends as one does behind which a value is told: in a sign that assigns, or a flag. Where none tells it, a
/// key is known by its look.
fn is_named(before: &[u8]) -> bool {
    let before = before.trim_ascii_end();
    let word = before.rsplit(u8::is_ascii_whitespace).next().unwrap_or_default();
    word.starts_with(b"-") || matches!(before.last(), Some(b'=' | b':' | b'>'))
}

/// Whether a word says what else is to be done, or done with: a command or variable that a shell puts in, `$(x)` and `${x}`,
/// or a line end and the like in an address, `%0A`.
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
/// sign begins another parameter or member.
fn reads_as_password(text: &[u8], is_border: impl Fn(u8) -> bool) -> bool {
    let has = |is: fn(&u8) -> bool| text.iter().any(is);
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let assigns = |rest: &[u8]| {
        let name = rest.iter().take_while(|byte| is_name(byte)).count();
        name > 0 && matches!(rest.get(name), Some(b'=' | b':'))
    };
    let may_stand = |at: usize| match text[at] {
        b'"' | b'\'' | b'`' | b'\\' => false,
        // Behind these shells read another command, or a file.
        b'|' | b';' | b'&' | b'<' | b'>' => false,
        byte if byte.is_ascii_whitespace() || is_border(byte) => false,
        byte if is_name(&byte) => true,
        _ => !assigns(&text[at + 1..]),
    };
    (SHORTEST_PASSWORD..=LONGEST_PASSWORD).contains(&text.len())
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_alphabetic)
        && (0..text.len()).all(may_stand)
}

#[cfg(test)]
mod tests;
