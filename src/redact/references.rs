//! Texts in a secret's place that say where it is to be found, or what has to stand there.

use super::names::{self, is_name_byte};

/// What begins and ends a reference, and what may stand between.
type Between = (&'static str, &'static str, fn(&[u8]) -> bool);

const BETWEEN: &[Between] = &[
    ("${", "}", is_anything),
    ("$(", ")", is_anything),
    ("{{", "}}", is_anything),
    ("$", "", is_variable),
    ("$env:", "", is_name),
    ("%", "%", is_variable),
    ("{", "}", is_name),
    ("<", ">", is_words),
];

/// How expressions begin that ask for a value, and go on with names, quotes and brackets.
const ASKING: &[&str] = &[
    "process.env.",
    "process.env[",
    "import.meta.env.",
    "os.environ[",
    "os.environ.get(",
    "os.getenv(",
    "System.getenv(",
    "Deno.env.get(",
    "ENV[",
    "ENV.fetch(",
    "getenv(",
    "env(",
    "env.",
    "secrets.",
    "!Ref ",
    "op://",
];

/// The longest that a made-up value is.
const LONGEST_EXAMPLE: usize = 24;

/// Whether a text refers to a secret: `$NAME`, `${NAME}`, `%NAME%`, `{{name}}`, `<your-token>`, `process.env.NAME`.
pub(super) fn is_reference(value: &[u8]) -> bool {
    let is_between = |(open, close, holds): &Between| {
        let inside = value.strip_prefix(open.as_bytes()).and_then(|rest| rest.strip_suffix(close.as_bytes()));
        inside.is_some_and(holds)
    };
    let may_ask = |byte: &u8| is_name_byte(*byte) || b"[]()\"'/ :".contains(byte);
    let asks = |begin: &&str| {
        // TypeScript says by the sign behind it that it is there.
        let rest = value.strip_suffix(b"!").unwrap_or(value).strip_prefix(begin.as_bytes());
        rest.is_some_and(|rest| !rest.is_empty() && rest.iter().all(may_ask))
    };
    // In quotes of another shell.
    let is_quoted = || {
        let sign = value.iter().take_while(|byte| **byte == b'\\').count();
        value[sign..].strip_prefix(b"$").is_some_and(|name| sign > 0 && is_variable(name))
    };
    is_quoted() || BETWEEN.iter().any(is_between) || ASKING.iter().any(asks) || is_joined(value)
}

/// Whether a text is code that joins others to one that is named: `"Bearer " + token1`, `'Bearer ' . $token1`.
fn is_joined(code: &[u8]) -> bool {
    let Some(&quote @ (b'"' | b'\'')) = code.first() else { return false };
    let Some((_, rest)) = split_at_byte(&code[1..], quote) else { return false };
    let name = match rest {
        [b' ', b'+' | b'.', b' ', name @ ..] | [b'+', name @ ..] => name,
        _ => return false,
    };
    let is_part = |byte: &u8| is_name_byte(*byte) || b"[]()$'\"".contains(byte);
    let begins = |byte: &u8| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$');
    name.first().is_some_and(begins) && name.iter().all(is_part)
}

/// Whether a value is nothing but what it is called: `password1`, `my_token`, `PASSWORD`.
pub(super) fn is_example(value: &[u8]) -> bool {
    let digits = value.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let name = &value[..value.len() - digits];
    let is_in =
        |is_letter: fn(&u8) -> bool| name.iter().all(|byte| is_letter(byte) || matches!(byte, b'_' | b'-'));
    value.len() <= LONGEST_EXAMPLE
        && digits <= 2
        && (is_in(u8::is_ascii_lowercase) || is_in(u8::is_ascii_uppercase))
        && names::secret(value).is_some()
}

fn split_at_byte(text: &[u8], byte: u8) -> Option<(&[u8], &[u8])> {
    memchr::memchr(byte, text).map(|at| (&text[..at], &text[at + 1..]))
}

const fn is_anything(_: &[u8]) -> bool {
    true
}

/// Whether this is how variables are called: in capitals, with digits behind a separator only, as passwords may begin
/// with a sign too; or as secrets are.
fn is_variable(name: &[u8]) -> bool {
    let mut parts = name.split(|byte| *byte == b'_').skip_while(|part| part.is_empty());
    let is_capital = |byte: &u8| byte.is_ascii_uppercase();
    let is_constant = parts.next().is_some_and(|first| first.iter().all(is_capital))
        && parts.all(|part| part.iter().all(|byte| is_capital(byte) || byte.is_ascii_digit()));
    is_constant || is_name(name) && names::secret(name).is_some()
}

fn is_name(name: &[u8]) -> bool {
    is_words(name) && !name.contains(&b' ')
}

/// Whether these are words, with digits at their ends only.
fn is_words(text: &[u8]) -> bool {
    let is_part = |byte: &u8| is_name_byte(*byte) || *byte == b' ';
    let is_mixed = |pair: &[u8]| pair[0].is_ascii_digit() && pair[1].is_ascii_alphabetic();
    text.first().is_some_and(u8::is_ascii_alphabetic)
        && text.iter().all(is_part)
        && !text.windows(2).any(is_mixed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_refers_to_a_secret_is_none() {
        for value in [
            "$SECRET_1",
            "$TOKEN",
            "$password",
            "$API_KEY2",
            "${any thing}",
            "$(cat file1)",
            "{{ .Values.token1 }}",
            "%API_TOKEN%",
            "{token}",
            "<your-token>",
            "<your token 1>",
            "$env:MY_TOKEN",
            "process.env.API_KEY1",
            "process.env.API_KEY2!",
            "process.env['API_KEY']",
            "os.environ[\"TOKEN_2\"]",
            "os.getenv('X1')",
            "ENV['TOKEN']",
            "secrets.GITHUB_TOKEN",
            "op://vault/item/password1",
            "\"Bearer \" + token1",
            "'Bearer ' . $config['token1']",
            "'Bearer '+get_token2()",
        ] {
            assert!(is_reference(value.as_bytes()), "{value}");
        }
        for value in [
            "",
            "$",
            "$ecret123",
            "$ECRET123",
            "$Kd93mZq71Lp",
            "%Kd93mZq71Lp%",
            "%41%42",
            "<Kd93mZq71Lp>",
            "<>",
            "{Kd93mZq71Lp}",
            "process.env.",
            "env.A&b1",
            "\"Kd93\" + ",
            "\"Kd93\" + 12",
            "'Kd93'mZq71",
            "hunter2",
        ] {
            assert!(!is_reference(value.as_bytes()), "{value}");
        }
    }

    #[test]
    fn a_value_that_is_its_own_name_is_an_example() {
        for value in ["password", "password1", "my_token12", "db-password", "PASSWORD", "API_TOKEN1"] {
            assert!(is_example(value.as_bytes()), "{value}");
        }
        for value in ["", "12", "Password1", "password1234", "horse138", "passw0rd"] {
            assert!(!is_example(value.as_bytes()), "{value}");
        }
    }
}
