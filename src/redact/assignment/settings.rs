//! Lines of settings and headers: `password: x`, `password: "x"`, `password = "x"`.

use super::quotes::in_three_quotes;
use super::{
    LONGEST, backslashes_before_quote, behind_quotes, ends_setting, escapes_at, refers, run,
    without_punctuation, worth,
};
use crate::redact::address::turns;
use crate::redact::names::{self, SecretName};
use crate::redact::ordinary::speaks;
use crate::redact::references::is_example;
use crate::wire::Span;

/// What tells in YAML that a value is a text.
const TAG: &[u8] = b"!!str ";

/// `Name: value`: a header, or a line of settings.
pub(super) fn colon(text: &[u8], name: Span, row: &SecretName) -> Option<Span> {
    let before = name.start.checked_sub(1).map(|at| text[at]);
    let is_dashed = name.of(text).contains(&b'-');
    let is_header = matches!(row.kind, "authorization" | "cookie") || is_dashed;
    // Others stand before it, or the flag that sends it.
    let parted = before.is_some_and(|byte| matches!(byte, b'"' | b'\'' | b' ' | b'\t' | b'=' | b',' | b';'));
    let gap = run(text, name.end + 1, |byte| byte == b' ');
    let gap = gap + if text[name.end + 1 + gap..].starts_with(TAG) { TAG.len() } else { 0 };
    let begins = begins_line(text, name.start);
    let is_apart =
        gap > 0 || !is_dashed && begins || is_header && matches!(before, None | Some(b'"' | b'\'' | b'='));
    let below = next_line(text, name, name.end + 1 + gap);
    let mut start = below.unwrap_or(name.end + 1 + gap);
    let is_setting = begins || is_header && parted;
    if (is_setting || is_member(text, name.start))
        && let Some(literal) = literal(text, start)
    {
        return Some(literal);
    }
    // A line that is said: `echo "password: x"`.
    let is_said = !is_setting && matches!(before, Some(b'"' | b'\''));
    if !is_setting && !is_said {
        // Many things have tokens that a sentence tells of.
        let is_told = row.kind != "token" || is_member(text, name.start);
        let is_value = gap > 0 && is_told && !is_header && below.is_none();
        return if is_value { drawn(text, start) } else { None };
    }
    if row.kind == "cookie" {
        return if is_apart { cookies(text, start) } else { None };
    }
    // Behind the sign of a flag others may begin within the word.
    let whole = text.len();
    let text = if before == Some(b'=') { &text[..next_flag(text, start)] } else { text };
    let scheme = run(text, start, |byte| !ends_setting(byte));
    if row.kind == "authorization" && text.get(start + scheme) == Some(&b' ') {
        start += scheme + 1;
    }
    let parts: &[u8] = match (is_dashed, before) {
        (true, Some(b'=')) => b",; ",
        (true, _) => b",;",
        _ => b"",
    };
    let word = bare(text, start, parts)?;
    let value = worth(text, without_punctuation(text, word))?;
    let is_all = word.end < text.len() || word.end == whole;
    let is_all = is_all && (!is_said || text.get(word.end) == before.as_ref());
    // There a member may begin: `secrets:`, and its name on the next line.
    let is_name = below.is_some() && word.of(text).ends_with(b":");
    (is_apart && is_all && !is_name && is_mixed(value.of(text))).then_some(value)
}

/// A value in no quotes in the midst of a line, where code has names of its own: `{user: a, password: x}`. Its letters
/// and digits stand in each other's midst, as in nothing that people call something.
fn drawn(text: &[u8], start: usize) -> Option<Span> {
    let ends = |byte: u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b';' | b'}') || ends_line(byte);
    let word = Span::new(start, start + run(text, start, |byte| !ends(byte)));
    let value = worth(text, without_punctuation(text, word))?;
    let bytes = value.of(text);
    (bytes.iter().all(stands_in_tokens) && is_mixed(bytes) && turns(bytes) > 2).then_some(value)
}

/// Whether an escape says that the value of a member of YAML is on the next line.
pub(super) fn hides_line(text: &[u8], at: usize) -> bool {
    let at = at + run(text, at, |byte| matches!(byte, b' ' | b'|' | b'>' | b'+' | b'-'));
    text.get(at) == Some(&b'\\')
}

/// Where the value of a member of YAML begins that stands on the next line: `password:`, or `password: >-`, and more
/// blanks before it than before the name.
fn next_line(text: &[u8], name: Span, at: usize) -> Option<usize> {
    let is_blank = |byte| byte == b' ';
    let block = run(text, at, |byte| matches!(byte, b'|' | b'>' | b'+' | b'-'));
    let at = at + block + run(text, at + block, is_blank);
    let line = at
        + match text.get(at..)? {
            [b'\n', ..] => 1,
            [b'\r', b'\n', ..] => 2,
            _ => return None,
        };
    let indent = run(text, line, is_blank);
    let before = text[..name.start].iter().rev().take(LONGEST).take_while(|byte| matches!(byte, b' ' | b'-'));
    (indent > before.count()).then_some(line + indent)
}

/// What fills a line or a string from `start` on, or ends before one of these. What goes on is code.
fn bare(text: &[u8], start: usize, parts: &[u8]) -> Option<Span> {
    let up_to = |ends: fn(u8) -> bool| Span::new(start, start + run(text, start, |byte| !ends(byte)));
    let ends = |value: &Span| fills_line(text, value.end, b"#");
    let value = up_to(ends_setting);
    let with_signs = up_to(|byte| byte <= b' ' || ends_line(byte) || is_bracket(byte));
    let goes_on = || matches!(text[with_signs.end - 1], b',' | b';');
    match ends(&value) {
        true => Some(value),
        false if ends(&with_signs) && !goes_on() => Some(with_signs),
        false => Some(value).filter(|value| parts.contains(&text[value.end])),
    }
}

/// Where the next sign stands that assigns something; the end of the text where none does.
fn next_flag(text: &[u8], start: usize) -> usize {
    let assigns = |pair: &[u8]| pair[0] == b'=' && pair[1].is_ascii_alphanumeric();
    text.get(start..).and_then(|rest| rest.windows(2).position(assigns)).map_or(text.len(), |at| start + at)
}

const fn is_bracket(byte: u8) -> bool {
    matches!(byte, b'(' | b')' | b'[' | b']' | b'{' | b'}' | b'<' | b'>')
}

/// The pairs of a cookie header, up to the end of the line or string.
fn cookies(text: &[u8], start: usize) -> Option<Span> {
    // First what is short: a text made of such names would be read to its end for each of them.
    let name = run(text, start, |byte| !ends_line(byte) && !matches!(byte, b' ' | b';' | b'='));
    let is_pair = name > 0 && text.get(start + name) == Some(&b'=');
    let has_value = |byte: &u8| !ends_line(*byte) && !matches!(byte, b' ' | b';' | b'=');
    (is_pair && text.get(start + name + 1).is_some_and(has_value))
        .then(|| Span::new(start, start + run(text, start, |byte| !ends_line(byte))))
}

/// `name = value`, with blanks around the sign. Code has such lines too, so that only a literal counts, or what fills a
/// line and is no name.
pub(super) fn spaced(text: &[u8], name: Span) -> Option<Span> {
    let is_blank = |byte| matches!(byte, b' ' | b'\t');
    let sign = sign_at(text, name.end + run(text, name.end, is_blank))?;
    if matches!(text.get(sign + 1), Some(b'=' | b'>' | b'~')) {
        return None;
    }
    let start = sign + 1 + run(text, sign + 1, is_blank);
    let variable = variable(text, name.start);
    let begins = begins_line(text, variable);
    if (begins || text[variable - 1].is_ascii_whitespace())
        && let Some(literal) = literal(text, start)
    {
        return Some(literal);
    }
    if !begins {
        return None;
    }
    let word = Span::new(start, start + run(text, start, |byte| !ends_setting(byte)));
    let value = worth(text, without_punctuation(text, word))?;
    let bytes = value.of(text);
    let is_token = bytes.iter().all(stands_in_tokens);
    let is_variable = bytes.contains(&b'_') && !bytes.iter().any(u8::is_ascii_uppercase);
    let ends = fills_line(text, word.end, b"#;");
    let is_value = is_token && !is_variable && !refers(text, start);
    (ends && is_value && is_mixed(bytes)).then_some(value)
}

/// Whether nothing but blanks, and a remark that begins with one of these signs behind them, stands in a line from `at` on.
fn fills_line(text: &[u8], at: usize, remarks: &[u8]) -> bool {
    let blanks = run(text, at, |byte| matches!(byte, b' ' | b'\t'));
    text.get(at + blanks).is_none_or(|byte| ends_line(*byte) || blanks > 0 && remarks.contains(byte))
}

/// Where the `=` is of the sign at `at` that assigns: `=`, `:=`, `?=`, `||=`.
pub(super) fn sign_at(text: &[u8], at: usize) -> Option<usize> {
    let before = [&b"="[..], b":=", b"?=", b"::=", b"||=", b"??="].into_iter();
    let sign = before.filter(|sign| text.get(at..).is_some_and(|rest| rest.starts_with(sign)));
    sign.map(|sign| at + sign.len() - 1).next()
}

/// The value in quotes that an element gets whose name in quotes ends before the bracket at `at`: `ENV["KEY"] = "x"`.
pub(super) fn indexed(text: &[u8], name: Span, at: usize) -> Option<Span> {
    let is_blank = |byte| matches!(byte, b' ' | b'\t');
    // A text may begin with the name.
    let opens = text[..name.start.saturating_sub(1)].trim_ascii_end().ends_with(b"[");
    let sign = sign_at(text, at + 1 + run(text, at + 1, is_blank)).filter(|_| opens)?;
    literal(text, sign + 1 + run(text, sign + 1, is_blank))
}

/// The value in quotes at `start`, where it looks like a secret: quotes say what is no code, but code has texts too.
fn literal(text: &[u8], start: usize) -> Option<Span> {
    if let Some(value) = in_three_quotes(text, start) {
        return worth(text, value).filter(|value| is_literal(value.of(text)) && !refers(text, value.start));
    }
    let slashes = backslashes_before_quote(text, start);
    let quote = *text.get(start + slashes).filter(|byte| matches!(byte, b'"' | b'\''))?;
    let inside = start + slashes + 1;
    let word = inside + run(text, inside, |byte| byte >= b' ' && byte != quote && byte != b'\\');
    if !matches!(text.get(word), Some(b'"' | b'\'' | b'\\')) {
        return None;
    }
    let value = Span::new(inside, behind_quotes(text, inside, quote, slashes));
    let closes = text.get(value.end + slashes) == Some(&quote);
    (closes && is_literal_or_phrase(value.of(text)) && !refers(text, inside))
        .then(|| worth(text, value))
        .flatten()
}

/// Where the variable begins whose name begins at `at`: `$password`, `@password`, `$this->password`.
pub(super) fn variable(text: &[u8], at: usize) -> usize {
    let (mut at, first) = (at, at.saturating_sub(LONGEST));
    while text[first..at].ends_with(b"->") {
        at -= 2;
        // The arrow's first sign may stand in names.
        let name = |byte: &&u8| names::is_name_byte(**byte) && **byte != b'-';
        at -= text[first..at].iter().rev().take_while(name).count();
    }
    at - text[..at].iter().rev().take(2).take_while(|byte| matches!(byte, b'$' | b'@')).count()
}

/// Whether a member of an object in code begins at `at`: `{password: "x"}`.
fn is_member(text: &[u8], at: usize) -> bool {
    let before = text[..at].iter().rev().take(LONGEST).find(|byte| !byte.is_ascii_whitespace());
    matches!(before, Some(b'{' | b','))
}

pub(super) const fn ends_line(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r' | b'"' | b'\'' | b'`' | b'\\')
}

/// Whether a line begins at `at`, white space and the marks of lists and bold text aside.
pub(super) fn begins_line(text: &[u8], at: usize) -> bool {
    let lead = text[..at]
        .iter()
        .rev()
        .take(LONGEST)
        .take_while(|byte| matches!(byte, b' ' | b'\t' | b'-' | b'*'))
        .count();
    let at = at - lead;
    at == 0
        || matches!(text[at - 1], b'\n' | b'\r')
        || (at >= 2 && escapes_at(text, at - 1))
        || text[..at].ends_with(b"export")
}

/// Whether a string of JSON may begin at `at`, white space and list marks aside: what it says is read once it is decoded.
pub(super) fn begins_string(text: &[u8], at: usize) -> bool {
    let lead = |byte: &&u8| !matches!(byte, b' ' | b'\t' | b'-' | b'*');
    text[..at].iter().rev().take(LONGEST).find(lead) == Some(&b'"')
}

/// Whether a byte may stand in a token, and makes no expression of it.
pub(super) fn stands_in_tokens(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_+/=~!?@#$%^*".contains(byte)
}

/// Whether a value that stands in no quotes looks like a secret: letters and digits, and no code.
pub(in super::super) fn is_mixed(value: &[u8]) -> bool {
    has_both(value) && !value.iter().any(|byte| matches!(byte, b'(' | b'[' | b'{' | b'}' | b'<' | b'>'))
}

/// The same of one in quotes, where brackets are signs as well, unless something is to stand in their place.
pub(super) fn is_literal(value: &[u8]) -> bool {
    has_both(value) && !is_template(value)
}

/// The same of one that may have blanks: of the words of a secret one has letters and digits.
pub(super) fn is_literal_or_phrase(value: &[u8]) -> bool {
    is_literal(value) && (!value.iter().any(|byte| *byte <= b' ') || is_phrase(value))
}

/// Whether a text with blanks looks like a secret: it is no sentence.
pub(super) fn is_phrase(value: &[u8]) -> bool {
    let is_part =
        |word: &[u8]| word.iter().any(u8::is_ascii_digit) && word.iter().any(u8::is_ascii_alphabetic);
    value.contains(&b' ')
        && !value.iter().any(|byte| *byte < b' ')
        && is_literal(value)
        && value.split(|byte| *byte == b' ').any(is_part)
        && !speaks(value)
}

fn has_both(value: &[u8]) -> bool {
    value.len() >= 8
        && value.iter().any(u8::is_ascii_digit)
        && value.iter().any(u8::is_ascii_alphabetic)
        && !is_example(value)
}

/// Whether part of a text is filled in later: `a-${NAME}`, `a-{0}`, `a-<name>`, `a-$(cmd)`.
fn is_template(text: &[u8]) -> bool {
    let opens = |pair: &[u8]| matches!(pair, b"${" | b"$(" | b"#{" | b"%(" | b"{{" | b"<%");
    let holds_name = |open: u8, close: u8| {
        text.split(|byte| *byte == open).skip(1).any(|rest| {
            let name = rest.iter().take_while(|byte| names::is_name_byte(**byte)).count();
            rest.get(name) == Some(&close)
        })
    };
    text.windows(2).any(opens) || holds_name(b'{', b'}') || holds_name(b'<', b'>')
}
