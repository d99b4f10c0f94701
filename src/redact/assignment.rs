//! Secrets that stand behind their name in a text: `"password": "x"`, `API_KEY=x`, `?token=x`, `X-Api-Key: x`,
//! `--password x`, `<password>x</password>`, `$env:API_KEY = "x"`.
//!
//! The rules read texts at any level of escaping, since they also see JSON inside strings before it is decoded:
//! `\"password\":\"x\"`. Prose that only speaks of tokens and secrets is told by what follows the name.

mod brackets;
mod element;
mod environment;
mod equals;
mod files;
mod flags;
mod multipart;
mod options;
mod pairs;
mod phrase;
mod prose;
mod quotes;
mod schema;
mod settings;
mod sql;

use self::element::Content;
pub(super) use self::element::is_in_tag;
use self::equals::{encoded, equals};
pub(super) use self::files::account;
pub(super) use self::flags::{flag, is_flags_word};
pub(super) use self::options::field_of;
pub(super) use self::pairs::gives_names;
pub(super) use self::phrase::rest;
pub(super) use self::prose::{in_sentence, without_punctuation};
use self::quotes::{behind_quotes, between_signs, closing_quote, escape};
pub(super) use self::quotes::{goes_on, piece, said_by_shell, said_in_quotes, word};
pub(super) use self::schema::begins_schema;
pub(super) use self::settings::is_mixed;
use self::settings::{begins_string, colon, hides_line, indexed, sign_at, spaced, variable};
use super::names::{self, SecretName, is_name_byte};
use super::ordinary::is_ordinary;
use super::placeholder::is_placeholder;
use super::references::is_reference;
use crate::wire::{Span, scan::backslashes_at_end};

/// What stands at a name.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Assigned {
    /// A secret.
    Secret(&'static SecretName, Span),
    /// Something whose structure decides: an object or array, quotes that are escaped.
    Look,
    /// The name is itself a value: a member `value` beside it may be the secret; or it is that of an object that has one.
    NameOfValue,
}

/// Names are shorter: a text made of such would else be read for each of them.
const LONGEST: usize = 256;

/// The name that these bytes are part of, and what is assigned to it.
pub(super) fn at(text: &[u8], part: Span) -> Option<Assigned> {
    let name = name_around(text, part)?;
    if let Some(assigned) = sql::password(text, name).or_else(|| files::of_netrc(text, name)) {
        return Some(assigned);
    }
    let (inner, name) = brackets::around(text, name).unwrap_or((name, name));
    let spelled = inner.of(text);
    let row = names::secret(spelled).or_else(|| flag(spelled)).or_else(|| files::npm(spelled))?;
    let holds = |value: Span| row.may_hold(value.of(text));
    let held = |assigned: &Assigned| !matches!(assigned, Assigned::Secret(_, value) if !holds(*value));
    if let Some(content) = element::content(text, name) {
        return match content {
            Content::Text(value) => Some(Assigned::Secret(row, value)).filter(held),
            Content::Hidden => Some(Assigned::Look),
            Content::Other => None,
        };
    }
    if let Some(assigned) = environment::variable(text, name, row) {
        return assigned.filter(held);
    }
    if let Some(assigned) = multipart::field(text, name, row) {
        return assigned.filter(held);
    }
    if let Some(assigned) = pairs::in_yaml(text, name, row).or_else(|| files::of_npm(text, name, row)) {
        return Some(assigned).filter(held);
    }
    let slashes = backslashes(text, name.end);
    let assigned = match text.get(name.end + slashes)? {
        b'"' => quoted(text, name, row, slashes, b'"'),
        b'\'' if slashes == 0 => quoted(text, name, row, 0, b'\''),
        b'u' if slashes > 0 && text[name.end + slashes..].starts_with(b"u0022") => Some(Assigned::Look),
        b'=' if slashes == 0 => or_look(text, name, row, equals(text, name, name.end + 1)),
        b'%' if text[name.end..].len() > 3 && text[name.end..name.end + 3].eq_ignore_ascii_case(b"%3d") => {
            encoded(text, name).map(|value| Assigned::Secret(row, value))
        }
        b':' if slashes == 0 && sign_at(text, name.end).is_none() => {
            or_look(text, name, row, colon(text, name, row))
                .or_else(|| hides_line(text, name.end + 1).then_some(Assigned::Look))
        }
        b':' | b'?' | b' ' | b'\t' | b't' if sign_at(text, skip_gap(text, name.end)).is_some() => {
            match slashes {
                0 => or_look(text, name, row, spaced(text, name)),
                _ => Some(Assigned::Look),
            }
        }
        _ => flags::word_behind(text, name),
    };
    assigned.filter(held).or_else(|| pairs::tells_element(text, name).then_some(Assigned::Look))
}

/// What was found behind a name; where that is nothing, and a string may begin with the name, it is to be looked at by
/// itself: lines and forms begin there.
fn or_look(text: &[u8], name: Span, row: &'static SecretName, found: Option<Span>) -> Option<Assigned> {
    let look = || begins_string(text, variable(text, name.start)).then_some(Assigned::Look);
    found.map(|value| Assigned::Secret(row, value)).or_else(look)
}

/// The name that these bytes are part of.
pub(super) fn name_around(text: &[u8], part: Span) -> Option<Span> {
    let before =
        text[..part.start].iter().rev().take(LONGEST).take_while(|byte| is_name_byte(**byte)).count();
    let behind = text[part.end..].iter().take(LONGEST).take_while(|byte| is_name_byte(**byte)).count();
    let mut name = Span::new(part.start - before, part.end + behind);
    if escapes_at(text, name.start) && name.len() > 1 {
        name.start += 1;
    }
    (before < LONGEST && behind < LONGEST).then_some(name)
}

/// Whether the letter at `at` belongs to an escape such as `\n`.
fn escapes_at(text: &[u8], at: usize) -> bool {
    at > 0 && text[at - 1] == b'\\' && matches!(text.get(at), Some(b'n' | b'r' | b't'))
}

fn backslashes(text: &[u8], at: usize) -> usize {
    text[at..].iter().take_while(|byte| **byte == b'\\').count()
}

/// What stands before a name, and before the quote that the name may stand behind with its backslashes; that quote, and
/// how many these are.
fn before_quote(text: &[u8], name: Span) -> (&[u8], Option<u8>, usize) {
    let before = &text[..name.start];
    let quote = before.last().copied().filter(|byte| matches!(byte, b'"' | b'\''));
    let before = &before[..before.len() - usize::from(quote.is_some())];
    let slashes = backslashes_at_end(before);
    (&before[..before.len() - slashes], quote, slashes)
}

/// The name stands in quotes, each behind so many backslashes.
fn quoted(text: &[u8], name: Span, row: &'static SecretName, slashes: usize, quote: u8) -> Option<Assigned> {
    let behind = skip_gap(text, name.end + slashes + 1);
    let at = match text.get(behind) {
        Some(b':') => skip_gap(text, behind + 1),
        Some(b'=') if text.get(behind + 1) == Some(&b'>') => skip_gap(text, behind + 2),
        Some(b',') if sets(text, name.start.saturating_sub(slashes + 1)) => skip_gap(text, behind + 1),
        // What is decoded says it without the backslashes.
        Some(b']') if slashes > 0 => {
            return sign_at(text, skip_gap(text, behind + 1)).map(|_| Assigned::Look);
        }
        Some(b']') => return indexed(text, name, behind).map(|value| Assigned::Secret(row, value)),
        Some(b',') if flag(name.of(text)).is_some() => {
            return flags::next_word(text, behind + 1, row, slashes, quote);
        }
        _ if pairs::names_itself(text, name.start, slashes) => {
            let value = pairs::sibling(text, behind, slashes, quote);
            return Some(value.map_or(Assigned::NameOfValue, |value| Assigned::Secret(row, value)));
        }
        _ => {
            let beside = element::value_beside(text, name, behind).map(|value| Assigned::Secret(row, value));
            return beside.or_else(|| flags::word_behind_quote(text, name, slashes, quote));
        }
    };
    let escapes = backslashes(text, at);
    match text.get(at + escapes)? {
        &byte if byte == quote && escapes == slashes => {
            let start = at + escapes + 1;
            let end = closing_quote(text, start, quote, slashes);
            let value = Span::new(start, end);
            (!value.is_empty() && is_secret(value.of(text))).then_some(Assigned::Secret(row, value))
        }
        b'"' | b'\'' | b'[' => Some(Assigned::Look),
        b'0'..=b'9' if escapes == 0 => number(text, at, row),
        b'u' if escapes > 0 => Some(Assigned::Look),
        b'{' if begins_schema(text, at + 1) => None,
        b'{' if row.deep => Some(Assigned::Look),
        // Its member `value` is the secret.
        b'{' => Some(Assigned::NameOfValue),
        _ => None,
    }
}

/// Calls that set what their first argument names to their second one.
const SETTERS: &[&str] =
    &["define(", "setenv(", "putenv(", "SetEnvironmentVariable(", "setdefault(", "setProperty("];

/// Whether a name in quotes that begins at `at` is the first argument of such a call.
fn sets(text: &[u8], at: usize) -> bool {
    let before = &text[text.len().min(at).saturating_sub(LONGEST)..at];
    let before = before.trim_ascii_end();
    SETTERS.iter().any(|call| before_word(before, call.as_bytes()).is_some())
}

/// What stands before this word where a text ends in it, in letters of any case.
fn before_word<'a>(text: &'a [u8], word: &[u8]) -> Option<&'a [u8]> {
    let (before, end) = text.split_at(text.len().checked_sub(word.len())?);
    end.eq_ignore_ascii_case(word).then_some(before)
}

/// Whether a name is written as those of variables are.
fn in_capitals(name: &[u8]) -> bool {
    !name.iter().any(u8::is_ascii_lowercase)
}

/// The number at `at`, where it may be a secret of this name.
fn number(text: &[u8], at: usize, row: &'static SecretName) -> Option<Assigned> {
    let value = Span::new(at, at + run(text, at, |byte| byte.is_ascii_digit()));
    let goes_on = |byte: &u8| is_name_byte(*byte) || *byte == b'+';
    (row.may_hold_number(value.of(text)) && !text.get(value.end).is_some_and(goes_on))
        .then_some(Assigned::Secret(row, value))
}

/// What a string says, as it is spelled, that is the value of the member with this name in quotes.
pub(super) fn string_behind(text: &[u8], name: Span) -> Option<Span> {
    let slashes = backslashes(text, name.end);
    let colon = skip_gap(text, name.end + slashes + 1);
    let quote = skip_gap(text, colon + 1);
    let is_string = text.get(name.end + slashes) == Some(&b'"')
        && text.get(colon) == Some(&b':')
        && text.get(quote..).is_some_and(|rest| rest.get(backslashes(text, quote)) == Some(&b'"'));
    let start = quote + slashes + 1;
    is_string.then(|| Span::new(start, closing_quote(text, start, b'"', slashes).max(start)))
}

/// Offset behind white space, escaped or not.
fn skip_gap(text: &[u8], mut at: usize) -> usize {
    loop {
        match text.get(at) {
            Some(b' ' | b'\t' | b'\r' | b'\n') => at += 1,
            Some(b'\\') => match text.get(at + backslashes(text, at)) {
                Some(b'n' | b'r' | b't') => at += backslashes(text, at) + 1,
                _ => return at,
            },
            _ => return at,
        }
    }
}

/// Whether what begins at `at` stands for a value: `$NAME`, `{name}`, `<your name>`, `%NAME%`; or is the rest of `==`.
pub(super) fn refers(text: &[u8], at: usize) -> bool {
    let rest = text.get(at..).unwrap_or_default();
    // A variable in quotes that stand between those of a text.
    let in_quotes = |rest: &[u8]| rest[run(rest, 0, |byte| byte == b'\\')..].starts_with(b"\"$");
    match rest {
        [b'$' | b'<' | b'{' | b'=', ..] => true,
        [b'"' | b'\\', ..] => in_quotes(rest),
        [b'%', rest @ ..] => {
            // Two digits after it make it an encoded byte.
            rest.first().is_some_and(u8::is_ascii_uppercase)
                && !rest.iter().take(2).all(u8::is_ascii_hexdigit)
        }
        _ => false,
    }
}

/// The sign before a quote in which shells know the escapes of programs: `$'x'`.
fn ansi_sign(text: &[u8], at: usize) -> usize {
    usize::from(text.get(at) == Some(&b'$') && matches!(text.get(at + 1), Some(b'\'' | b'"')))
}

fn backslashes_before_quote(text: &[u8], at: usize) -> usize {
    let slashes = text.get(at..).map_or(0, |_| backslashes(text, at));
    if matches!(text.get(at + slashes), Some(b'"' | b'\'')) { slashes } else { 0 }
}

pub(super) fn run(text: &[u8], start: usize, takes: impl Fn(u8) -> bool) -> usize {
    text.get(start..).unwrap_or_default().iter().take_while(|byte| takes(**byte)).count()
}

/// How much of a text does not end as told. A bracket that it opens it may close: `[::1]`, `a[b]=c`, `a(b)`.
pub(super) fn with_brackets(text: &[u8], ends: impl Fn(u8) -> bool) -> usize {
    const PAIRS: [[u8; 2]; 3] = [*b"()", *b"[]", *b"{}"];
    let mut are_open = [false; PAIRS.len()];
    let goes_on = |byte: &&u8| {
        let mut closes = false;
        for (is_open, [open, close]) in are_open.iter_mut().zip(PAIRS) {
            closes |= *is_open && **byte == close;
            *is_open = **byte == open || *is_open && **byte != close;
        }
        closes || !ends(**byte)
    };
    text.iter().take_while(goes_on).count()
}

/// Whether a byte ends a parameter of an address.
pub(super) const fn ends_parameter(byte: u8) -> bool {
    byte <= b' '
        || matches!(byte, b'&' | b'#' | b';' | b'"' | b'\'' | b'\\' | b'<' | b'>' | b'`' | b')' | b']' | b'}')
}

const fn ends_setting(byte: u8) -> bool {
    byte <= b' '
        || matches!(byte, b'"' | b'\'' | b'`' | b'\\' | b';' | b',' | b'(' | b')' | b'|' | b'&' | b'<' | b'>')
}

/// Whether a text is the body of a form: parameters and nothing else, of which the first has a name and a value. Where
/// values have signs that code has too, each has a name.
pub(super) fn is_form(text: &[u8]) -> bool {
    let is_pair = |pair: &[u8]| {
        let name = pair.iter().take_while(|byte| is_name_byte(**byte) || b"%[]+".contains(byte)).count();
        name > 0 && pair.get(name) == Some(&b'=')
    };
    let is_of_code = |byte: &u8| matches!(byte, b'"' | b'\'' | b'(' | b'{');
    let are_pairs = || text.contains(&b'&') && text.split(|byte| *byte == b'&').all(is_pair);
    text.iter().all(|byte| *byte > b' ') && (!text.iter().any(is_of_code) || are_pairs())
}

fn worth(text: &[u8], value: Span) -> Option<Span> {
    (!value.is_empty() && is_secret(value.of(text))).then_some(value)
}

/// The same of one that is no reference from its first sign on.
fn worth_itself(text: &[u8], value: Span) -> Option<Span> {
    worth(text, value).filter(|value| !refers(text, value.start))
}

/// Whether what stands under a secret's name is one: no placeholder, no stars or dots, no reference, no ordinary word.
pub(super) fn is_secret(value: &[u8]) -> bool {
    let word = value.trim_ascii();
    let is_left_out = word.iter().all(|byte| *byte == b'*') || word.iter().all(|byte| *byte == b'.');
    !(is_left_out || is_reference(value) || is_placeholder(value) || is_ordinary(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first secret in a text, told by any byte of its name.
    fn secret(text: &str) -> Option<String> {
        look(text).map(|assigned| match assigned {
            Assigned::Secret(_, span) => text[span.start..span.end].to_owned(),
            Assigned::Look => "look".into(),
            Assigned::NameOfValue => "value".into(),
        })
    }

    fn look(text: &str) -> Option<Assigned> {
        let lower = text.to_lowercase();
        let words = [
            "authorization",
            "cookie",
            "password",
            "token",
            "secret",
            "api_key",
            "api-key",
            "private_key",
            "credentials",
        ];
        let start = words.iter().find_map(|word| lower.find(word))?;
        at(text.as_bytes(), Span::new(start + 1, start + 5))
    }

    #[test]
    fn members_are_read_at_every_level_of_escaping() {
        assert_eq!(secret(r#"{"password":"x"}"#).as_deref(), Some("x"));
        assert_eq!(secret(r#"{"password" : "x\"y\\"}"#).as_deref(), Some(r#"x\"y\\"#));
        assert_eq!(secret(r#"{\"password\": \"x\"}"#).as_deref(), Some("x"));
        assert_eq!(secret(r#"{\"password\":\"x\\\"y\\\\\"}"#).as_deref(), Some(r#"x\\\"y\\\\"#));
        assert_eq!(secret(r#"{\\\"password\\\":\n \\\"x\\\"}"#).as_deref(), Some("x"));
        assert_eq!(secret(r#"{\"password\": \"cut"#).as_deref(), Some("cut"));
        assert_eq!(secret("{'password': 'x'}").as_deref(), Some("x"));
        assert_eq!(secret(r#""password" => "x""#).as_deref(), Some("x"));
        assert_eq!(secret(r"{\u0022password\u0022:\u0022x\u0022}").as_deref(), Some("look"));
        assert_eq!(secret(r#"{"name":"GITHUB_TOKEN","value":"x"}"#).as_deref(), Some("x"));
        assert_eq!(secret(r#"{"name":"GITHUB_TOKEN","value":7}"#).as_deref(), Some("value"));
        assert_eq!(secret(r#"{"credentials":{"#).as_deref(), Some("look"));
    }

    #[test]
    fn members_that_hold_no_secret_are_passed_over() {
        for text in [
            r#"{"password":{"type":"string"}}"#,
            r#"{"token":7}"#,
            r#"{"token":null}"#,
            r#"{"token":""}"#,
            r#"{"token":"<redacted:token-1>"}"#,
            r#"{"token":"<var:T>"}"#,
            r#"{"token":"${GITHUB_TOKEN}"}"#,
            r#"{"password":"********"}"#,
            r#"{"password":"string"}"#,
            r#"{"required":["password"],"x":1}"#,
            r#"{"progressToken":"abc"}"#,
            r#"{"credentials":"/home/ann/credentials.json"}"#,
            r#"{"enum":["token","other"]}"#,
        ] {
            assert_eq!(look(text), None, "{text}");
        }
    }

    #[test]
    fn parameters_settings_and_headers_are_read() {
        for (text, expected) in [
            ("/mcp?token=abc&v=1", "abc"),
            ("grant_type=x&client_secret=abc", "abc"),
            ("client_secret=abc&x=1", "abc"),
            ("u=%2Fa%3Ftoken%3Dabc%26v", "abc"),
            ("DB_PASSWORD=hunter", "hunter"),
            ("a\nexport API_KEY=\"hun ter\"\n", "hun ter"),
            (r"a\nDB_PASSWORD=hunter\nB", "hunter"),
            ("run --password=hunter -v", "hunter"),
            ("run -password=hunter -v", "hunter"),
            ("run --password hunter2 -v", "hunter2"),
            (r"run\n--api-key  ab12cd34", "ab12cd34"),
            ("`x -token 'hunter' y`", "hunter"),
            (r#"{"cmd":"x --token \"hun ter\" y"}"#, "hun ter"),
            (r#"["x","--password","hunter"]"#, "hunter"),
            (r#"[\"--password\",\n \"hunter\"]"#, "hunter"),
            ("['--client-secret', 'hun-ter']", "hun-ter"),
            ("'--token' 'hun-ter'", "hun-ter"),
            ("password=hunter2x", "hunter2x"),
            ("  password: hunter2x\n", "hunter2x"),
            ("curl -H 'X-Api-Key: abc12345'", "abc12345"),
            ("Authorization: Token abc12345", "abc12345"),
            ("Cookie: sid=abc1; a=b\nx", "sid=abc1; a=b"),
        ] {
            assert_eq!(secret(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn prose_and_code_are_not() {
        for text in [
            "the token is in the header",
            "token: see the manual",
            "Token: required",
            "const token = await next();",
            "token=get_token(2)",
            "f(token=token1234)",
            "password: z.string().min(8)",
            "token: zod_v4.string(),",
            "    pub COOKIE: _bindgen_ty_64 = 1;",
            "    generate_private_key: x25519_generate_private_key,",
            "x?client_secret={CLIENT_SECRET}&y",
            "API_KEY=%API_KEY%",
            "API_KEY=$OTHER",
            "API_KEY=<your-key>",
            "if API_KEY==x",
            "tokens=12345678a",
            "the secret: be brave",
            "token",
            "token=",
            "token:",
            "Set a password. Use 12345678a",
            "the --token option, or --token 2",
            "use --password for mysql8.0",
            "--token v2",
            "---token b12345678",
            "--token <token1234>",
            "--token $TOKEN1234",
            "--token --other12345",
            "--no-password database1",
            "--private-key ~/.ssh/key1.pem",
            "--cookie cookies12345",
            "a--token b12345678",
            "token b12345678",
            "'--token' 'what b12345678 is'",
            "'a --token' 'b12345678'",
            "say \"--token\" or \"b12345678\"",
            r#"["--token","--other"]"#,
            r#"["--token",7]"#,
            r#"["--token-file","b12345678"]"#,
            r#"["token","b12345678"]"#,
            r#"{"a":"--token","b12345678":"c"}"#,
        ] {
            assert_eq!(look(text), None, "{text}");
        }
    }

    #[test]
    fn no_cut_of_a_text_panics() {
        let text =
            "\\nAPI_KEY=\\\"a\\\" {\\\"password\\\":\\\"x\\\\\\\"\"} %3Ftoken%3Dabc Authorization: a b";
        for start in 0..text.len() {
            for end in start + 4..=text.len() {
                let cut = &text.as_bytes()[start..end];
                for part in 0..=cut.len() - 4 {
                    let _ = at(cut, Span::new(part, part + 4));
                }
            }
        }
    }
}
