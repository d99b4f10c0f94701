//! Secrets in addresses: the password before the host, and secret parameters of the query.

use std::{borrow::Cow, cell::OnceCell};

use super::assignment::{ends_parameter, in_sentence, is_mixed, is_secret, refers, with_brackets};
use super::{names, rules::SHORTEST};
use crate::wire::Span;

/// So far before a query its path is looked at: of each query anew, since addresses stand in addresses.
const LONGEST_PATH: usize = 2048;

/// Passwords that examples in manuals have.
const EXAMPLES: &[&str] =
    &["password", "pass", "passwd", "pwd", "secret", "pw", "your_password", "your-password"];

/// The kind of a password before the host.
pub(super) const URL_PASSWORD: &str = "url-password";

/// The password that GitHub takes with a token as the user.
const TOKEN_BEFORE: &[u8] = b"x-oauth-basic";

/// A code that is shorter says by itself not that it is random: those of OAuth have 20 characters or more.
const SHORTEST_RANDOM: usize = 20;

/// Parts of paths at which OAuth's codes are given, beside those that name it.
const GIVE_CODES: &[&str] = &[
    "auth",
    "authenticate",
    "authorization",
    "authorize",
    "cb",
    "login",
    "oidc",
    "redirect",
    "signin",
    "sign-in",
    "sso",
    "token",
    ".well-known",
];

/// Adds the secrets of the address whose `://` stands at `colon`, with their kinds; whether its query was read, and
/// up to where. Addresses inside the query of another (`read_to`) are not read again.
pub(super) fn secrets(
    text: &[u8],
    colon: usize,
    read_to: usize,
    mut add: impl FnMut(&'static str, Span),
) -> usize {
    let start = colon + 3;
    let rest = &text[start.min(text.len())..];
    // However long: the next address has slashes, at which this part ends.
    let authority = rest.iter().take_while(|byte| !ends_authority(**byte)).count();
    if let Some(password) = password(&rest[..authority]) {
        add(URL_PASSWORD, Span::new(start + password.start, start + password.end));
    }
    if colon < read_to {
        return read_to;
    }
    let end = start + length(rest);
    let behind = authority.min(end - start);
    if let Some(first) = first_parameter(&rest[behind..end - start]) {
        parameters(&text[..end], start + behind + first, false, |kind, span| {
            add(kind, if span.end == end { in_sentence(text, span) } else { span });
        });
    }
    end
}

/// How long the address, or the rest of a form, is that a text begins with.
pub(super) fn length(text: &[u8]) -> usize {
    with_brackets(text, ends_address)
}

/// Where parameters begin: those of a path, or the query.
pub(super) fn first_parameter(address: &[u8]) -> Option<usize> {
    address.iter().position(|byte| parts_pairs(*byte) && *byte != b'&').map(|at| at + 1)
}

/// Adds the secret parameters of the query that begins at `start` and ends with the text, with their kinds. That of a
/// redirect, and of a request that follows one, may be an OAuth grant, which says no more of that than its long `code`
/// beside a `state` or `scope`, a path that is named so, or a code that only chance can have made.
pub(super) fn parameters(
    text: &[u8],
    start: usize,
    is_redirect: bool,
    mut add: impl FnMut(&'static str, Span),
) {
    let grants = || {
        // A short code tells by itself nothing: a state beside it does that is drawn by chance, or that is anything at a
        // place where codes are given.
        let told = OnceCell::new();
        let is_told = || {
            *told.get_or_init(|| {
                let gives_codes = is_of_oauth(path(text, start));
                let may_be_one = |value: Span| match gives_codes {
                    true => !value.is_empty(),
                    false => may_be_granted(&decoded(value.of(text))),
                };
                pairs(text, start)
                    .any(|(name, value)| is_called(name.of(text), b"state") && may_be_one(value))
            })
        };
        let is_code = |(name, value): (Span, Span)| {
            is_called(name.of(text), b"code") && (value.len() >= SHORTEST || !value.is_empty() && is_told())
        };
        // Filters have names in brackets, and states of their own.
        let has_state = || pairs(text, start).any(|(name, _)| names::is_beside_code(&decoded(name.of(text))));
        let is_random = || pairs(text, start).any(|pair| is_code(pair) && is_random(pair.1.of(text)));
        let is_granted = || is_redirect || has_state() || is_of_oauth(path(text, start)) || is_random();
        pairs(text, start).any(is_code) && is_granted()
    };
    let mut speaks_oauth = None;
    for (name, value) in pairs(text, start) {
        let oauth = || {
            let any = || pairs(text, start).any(|(name, _)| names::speaks_oauth(&decoded(name.of(text))));
            *speaks_oauth.get_or_insert_with(|| any() || grants())
        };
        let name = decoded(name.of(text));
        let named = in_brackets(&name).filter(|name| names::is_oauth_field(name)).unwrap_or(&name);
        let kind = names::secret_parameter(named, oauth);
        let holds = || names::secret(named).is_none_or(|row| row.may_hold(value.of(text)));
        let is_value =
            || !value.is_empty() && is_secret(value.of(text)) && !refers(text, value.start) && holds();
        if let Some(kind) = kind.filter(|_| is_value()) {
            add(kind, value);
        }
    }
}

/// What stands before the query that begins at `start`, up to where its address begins.
fn path(text: &[u8], start: usize) -> &[u8] {
    if start == 0 || !parts_pairs(text[start - 1]) {
        return b"";
    }
    let before = &text[start.saturating_sub(LONGEST_PATH)..start.saturating_sub(1)];
    let begins = before.iter().rposition(|byte| ends_address(*byte)).map_or(0, |at| at + 1);
    &before[begins..]
}

/// Whether a path is one at which codes are given.
fn is_of_oauth(path: &[u8]) -> bool {
    let has = |word: &[u8]| path.windows(word.len()).any(|part| part.eq_ignore_ascii_case(word));
    let is_named = |part: &[u8]| GIVE_CODES.iter().any(|name| part.eq_ignore_ascii_case(name.as_bytes()));
    has(b"oauth") || has(b"callback") || path.split(|byte| *byte == b'/').any(is_named)
}

/// Whether a code is none that people gave to a country, an error or a voucher: it is long, of letters and digits that
/// stand in each other's midst. Programs that are called code have other signs.
pub(super) fn is_random(code: &[u8]) -> bool {
    let can_be = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.~/+=%".contains(byte);
    let code = decoded(code);
    code.len() >= SHORTEST_RANDOM && code.iter().all(can_be) && turns(&code) >= 2
}

/// How often a letter and a digit stand side by side.
pub(super) fn turns(text: &[u8]) -> usize {
    let turns = |pair: &&[u8]| {
        pair.iter().all(u8::is_ascii_alphanumeric) && pair[0].is_ascii_digit() != pair[1].is_ascii_digit()
    };
    text.windows(2).filter(turns).count()
}

/// Whether a text may be a code that was granted, if what stands beside it says so: it is no word, and no constant.
pub(super) fn may_be_granted(code: &[u8]) -> bool {
    is_mixed(code) && !code.iter().any(|byte| *byte <= b' ')
}

/// The names and values of a query, up to the end of the text.
fn pairs(text: &[u8], start: usize) -> impl Iterator<Item = (Span, Span)> + '_ {
    let mut from = start;
    std::iter::from_fn(move || {
        while from < text.len() {
            let length = text[from..].iter().take_while(|byte| !parts_pairs(**byte)).count();
            let pair = Span::new(from, from + length);
            from = pair.end + 1;
            if let Some(equals) = pair.of(text).iter().position(|byte| *byte == b'=') {
                let equals = pair.start + equals;
                return Some((Span::new(pair.start, equals), Span::new(equals + 1, pair.end)));
            }
        }
        None
    })
}

/// Whether a parameter has this name, which may stand in brackets: `code`, `CODE`, `c%6fde`, `a[code]`.
fn is_called(name: &[u8], wanted: &[u8]) -> bool {
    let name = decoded(name);
    in_brackets(&name).unwrap_or(&name).eq_ignore_ascii_case(wanted)
}

/// The last part of a name such as `a[b]` or `a[b][]`.
fn in_brackets(name: &[u8]) -> Option<&[u8]> {
    let name = name.strip_suffix(b"[]").unwrap_or(name).strip_suffix(b"]")?;
    name.iter().rposition(|byte| *byte == b'[').map(|open| &name[open + 1..])
}

/// What a parameter says: it may stand elsewhere without its percent signs.
pub(super) fn decoded(value: &[u8]) -> Cow<'_, [u8]> {
    if !value.contains(&b'%') {
        return Cow::Borrowed(value);
    }
    let mut decoded = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some((&byte, behind)) = rest.split_first() {
        let digit = |at: usize| (behind.get(at).copied()? as char).to_digit(16);
        let escape = if byte == b'%' { digit(0).zip(digit(1)) } else { None };
        decoded.push(escape.map_or(byte, |(high, low)| (high * 16 + low) as u8));
        rest = if escape.is_some() { &behind[2..] } else { behind };
    }
    Cow::Owned(decoded)
}

/// The same of what a form says, in which `+` is a blank.
pub(crate) fn form_decoded(value: &[u8]) -> Cow<'_, [u8]> {
    if !value.contains(&b'+') {
        return decoded(value);
    }
    let blanks: Vec<u8> = value.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
    Cow::Owned(decoded(&blanks).into_owned())
}

/// The password in `user:password@host`, or the user where that is a token.
fn password(authority: &[u8]) -> Option<Span> {
    let at = authority.iter().rposition(|byte| *byte == b'@')?;
    let colon = authority[..at].iter().position(|byte| *byte == b':')?;
    let is_token = authority[colon + 1..at].eq_ignore_ascii_case(TOKEN_BEFORE);
    let mut password = if is_token { Span::new(0, colon) } else { Span::new(colon + 1, at) };
    // A shell takes quotes away.
    if let [b'\'', inside @ .., b'\''] = password.of(authority) {
        password = Span::new(password.start + 1, password.start + 1 + inside.len());
    }
    let bytes = password.of(authority);
    let example = EXAMPLES.iter().any(|example| bytes.eq_ignore_ascii_case(example.as_bytes()));
    let template =
        matches!(bytes.first(), None | Some(b'$' | b'{' | b'[' | b'%' | b'*')) && !bytes.contains(&b'%');
    (!bytes.is_empty() && !example && !template && is_secret(bytes)).then_some(password)
}

const fn parts_pairs(byte: u8) -> bool {
    matches!(byte, b'&' | b';' | b'?' | b'#')
}

/// Whether a byte ends an address, or a form.
const fn ends_address(byte: u8) -> bool {
    ends_parameter(byte) && !parts_pairs(byte)
}

const fn ends_authority(byte: u8) -> bool {
    byte <= b' ' || matches!(byte, b'/' | b'?' | b'#' | b'"' | b'\\' | b'<' | b'`')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(&'static str, &str)> {
        let mut found = Vec::new();
        let colon = text.find("://").unwrap();
        secrets(text.as_bytes(), colon, 0, |kind, span| found.push((kind, &text[span.start..span.end])));
        found
    }

    #[test]
    fn passwords_before_the_host_are_found() {
        assert_eq!(found("see postgres://app:s3cr@t:x@db:5432/x?y=1."), [("url-password", "s3cr@t:x")]);
        assert_eq!(found("redis://:hunter2@localhost"), [("url-password", "hunter2")]);
        assert_eq!(found("redis://ann:'hunter2'@localhost"), [("url-password", "hunter2")]);
        assert_eq!(found("redis://ann:hunter'2@localhost"), [("url-password", "hunter'2")]);
        assert_eq!(found("https://t0ken:x-oauth-basic@github.com/a"), [("url-password", "t0ken")]);
        for none in [
            "https://example.com:8080/a@b",
            "ssh://git@github.com/x",
            "postgresql://user:password@localhost/db",
            "postgres://user:${PASS}@localhost/db",
            "postgres://user:<password>@host",
            "postgres://user:'$PASS'@host",
            "postgres://user:''@host",
            "mongodb://user:***@host",
            "https://:x-oauth-basic@github.com/a",
            "https://${TOKEN}:x-oauth-basic@github.com/a",
            "http://h",
            "http://",
            "see http://a and mail x:y@z",
        ] {
            assert_eq!(found(none), [], "{none}");
        }
    }

    #[test]
    fn secret_parameters_are_found_and_others_are_not() {
        assert_eq!(
            found("(https://h/p?api_key=k1&v=2#access_token=t2) token=x"),
            [("api-key", "k1"), ("token", "t2")]
        );
        assert_eq!(found("https://h/x?sv=1&sig=a%2Bb%3D&se=2"), [("signature", "a%2Bb%3D")]);
        assert_eq!(found("https://h/cb?code=c1&state=s1&iss=https%3A"), [("oauth", "c1"), ("oauth", "s1")]);
        assert_eq!(found("https://api.github.com/issues?state=open&page_token=2"), []);
        assert_eq!(found("https://h/?api_key={KEY}&token=$TOKEN"), []);
        assert_eq!(found("https://h/?u=http://g/?token=abc"), [("token", "abc")]);
        assert_eq!(found("[http://[::1]:8/x;token=abc] y"), [("token", "abc")]);
        assert_eq!(found("[x](https://h/?a[token]=abc&b]=2&sig=c"), [("token", "abc")]);
    }
}
