//! What the options say, compiled: which values and places are secret, and which are not.

use std::sync::Arc;

use regex::bytes::Regex;

use super::{finder, names, ordinary::is_ordinary, pointer::Pattern};
use crate::wire::Span;

/// Values of variables and values under secret names are looked for everywhere from this length on; shorter ones
/// are common words.
pub const SHORTEST: usize = 8;

/// So many bytes of a header that is sent to the server are looked for; `1` would stand everywhere.
const SHORTEST_SENT: usize = 6;

/// Headers that say how a request is to be understood: what they hold is no secret, and stands in messages as well.
const SPOKEN: &[&str] = &["accept", "content-", "user-agent", "mcp-", "origin", "referer", "cache-control"];

/// The options of the command line that concern redaction.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// `--redact`: `off`, a JSON Pointer (it begins with `/`; a step `*` stands for any one), or a regular
    /// expression, of which the first group is what is replaced where it has one. It is looked for in what strings say,
    /// and in texts that are no JSON; of Unicode's properties it knows the general categories.
    pub redact: Vec<String>,
    /// `--redact-env`: names of variables and their values.
    pub env: Vec<(String, String)>,
    /// `--header`: names and values of headers that are sent to the server and are to be recorded nowhere.
    pub sent: Vec<(String, Vec<u8>)>,
    /// `--keep`: JSON Pointers of places that are no secrets, with all below.
    pub keep: Vec<String>,
}

/// Compiled rules; cheap to clone.
#[derive(Clone, Debug)]
pub struct Rules(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    off: bool,
    places: Vec<Pattern>,
    expressions: Vec<Regex>,
    values: Vec<Named>,
    keep: Vec<Pattern>,
}

/// A value that options name, with the kind of its placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) kind: &'static str,
    pub(super) bytes: Vec<u8>,
    /// It is sent in a header: its kind is this wherever it stands first.
    pub(super) is_sent: bool,
}

/// Why options make no rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// An empty `--redact` or `--keep`.
    #[error("`{option}` is empty; it takes a JSON Pointer such as `/params/arguments/key`{or_regex}", or_regex = if *.option == "--redact" { " or a regular expression" } else { "" })]
    Empty {
        /// The option.
        option: &'static str,
    },
    /// `--redact off` beside other rules.
    #[error("`--redact off` leaves nothing for other redaction options to do; drop it or them")]
    OffAndMore,
    /// No JSON Pointer.
    #[error("`{given}` is no JSON Pointer: {why}")]
    Pointer {
        /// What was given.
        given: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// No regular expression.
    #[error("`{given}` is no regular expression: {why}; a JSON Pointer begins with `/`")]
    Expression {
        /// What was given.
        given: String,
        /// What is wrong with it.
        why: String,
    },
    /// A variable whose value is too short to be looked for.
    #[error("`--redact-env` removes values of {SHORTEST} characters or more; that of `{name}` has {length}")]
    ShortValue {
        /// The variable.
        name: String,
        /// How many characters its value has.
        length: usize,
    },
}

impl Rules {
    /// Compiles options; without any, the built-in rules apply.
    ///
    /// # Errors
    /// When a pointer or expression is none, or a variable's value is too short to be looked for.
    pub fn new(options: &Options) -> Result<Self, RuleError> {
        let mut inner = Inner::default();
        for given in &options.redact {
            match given.as_str() {
                "" => return Err(RuleError::Empty { option: "--redact" }),
                "off" => inner.off = true,
                _ if given.starts_with('/') => inner.places.push(pattern(given)?),
                _ => inner.expressions.push(expression(given)?),
            }
        }
        for given in &options.keep {
            match given.as_str() {
                "" => return Err(RuleError::Empty { option: "--keep" }),
                _ => inner.keep.push(pattern(given)?),
            }
        }
        for (name, value) in &options.env {
            let length = value.chars().count();
            if length < SHORTEST {
                return Err(RuleError::ShortValue { name: name.clone(), length });
            }
            inner.values.push(Named { kind: ENV, bytes: value.clone().into_bytes(), is_sent: false });
        }
        for (name, value) in &options.sent {
            for named in sent(name, value) {
                if inner.values.iter().all(|known| known.bytes != named.bytes) {
                    inner.values.push(named);
                }
            }
        }
        if inner.off && (options.redact.len() > 1 || !options.env.is_empty() || !options.keep.is_empty()) {
            return Err(RuleError::OffAndMore);
        }
        Ok(Self(Arc::new(inner)))
    }

    /// Whether anything is redacted at all.
    pub fn is_on(&self) -> bool {
        !self.0.off
    }

    /// Places that are secret.
    pub(super) fn places(&self) -> &[Pattern] {
        &self.0.places
    }

    /// Expressions whose matches are secret.
    pub(super) fn expressions(&self) -> &[Regex] {
        &self.0.expressions
    }

    /// Values that are secret from the start.
    pub(super) fn values(&self) -> &[Named] {
        &self.0.values
    }

    /// Places that are no secrets.
    pub(super) fn keep(&self) -> &[Pattern] {
        &self.0.keep
    }
}

impl Default for Rules {
    /// The built-in rules alone.
    fn default() -> Self {
        Self(Arc::default())
    }
}

/// The kind of values that are secret because an option says so.
const ENV: &str = "env";

/// What is secret of a header that is sent.
fn sent(name: &str, value: &[u8]) -> Vec<Named> {
    let name = name.to_ascii_lowercase();
    let parts = match names::secret(name.as_bytes()) {
        Some(row) => finder::parts(row.kind, value),
        None if SPOKEN.iter().any(|spoken| name.starts_with(spoken)) => return Vec::new(),
        None => {
            let schemes = [&b"Bearer "[..], b"Basic "];
            let scheme = schemes.into_iter().find(|scheme| {
                value.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
            });
            vec![Span::new(scheme.map_or(0, <[u8]>::len), value.len())]
        }
    };
    let parts = parts.into_iter().map(|part| part.of(value).trim_ascii());
    let secret = parts.filter(|part| part.len() >= SHORTEST_SENT && !is_ordinary(part));
    // Of one kind with what `--redact-env` names: a replay that is not given the header knows it by that.
    secret.map(|part| Named { kind: ENV, bytes: part.to_vec(), is_sent: true }).collect()
}

fn pattern(given: &str) -> Result<Pattern, RuleError> {
    Pattern::parse(given).map_err(|why| RuleError::Pointer { given: given.to_owned(), why })
}

fn expression(given: &str) -> Result<Regex, RuleError> {
    Regex::new(given).map_err(|error| {
        // The library draws the expression with a caret over several lines; its last line is the reason.
        let text = error.to_string();
        let why = text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
        RuleError::Expression { given: given.to_owned(), why }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(options: Options) -> String {
        Rules::new(&options).map(|_| ()).expect_err("no rules").to_string()
    }

    fn redact(rules: &[&str]) -> Options {
        Options { redact: rules.iter().map(|&rule| rule.to_owned()).collect(), ..Options::default() }
    }

    #[test]
    fn a_slash_makes_a_pointer_and_anything_else_an_expression() {
        let rules = Rules::new(&redact(&["/params/arguments/*/pin", "acme-[0-9]+"])).unwrap();
        assert_eq!((rules.places().len(), rules.expressions().len(), rules.is_on()), (1, 1, true));
        assert!(!Rules::new(&redact(&["off"])).unwrap().is_on());
    }

    #[test]
    fn a_header_that_is_sent_names_its_credential_and_no_word_of_the_protocol() {
        let values = |name: &str, value: &str| {
            let sent = vec![(name.to_owned(), value.as_bytes().to_vec())];
            let rules = Rules::new(&Options { sent, ..Options::default() }).unwrap();
            let text = |named: &Named| (named.kind, String::from_utf8(named.bytes.clone()).unwrap());
            rules.values().iter().map(text).collect::<Vec<_>>()
        };
        let one = |kind, value: &str| vec![(kind, value.to_owned())];
        assert_eq!(values("X-Company", "acme-17"), one("env", "acme-17"));
        assert_eq!(values("X-Company", "bearer acme-17"), one("env", "acme-17"));
        assert_eq!(values("Authorization", "Bearer abc123"), one("env", "abc123"));
        assert_eq!(values("X-Api-Key", "abc123"), one("env", "abc123"));
        for (name, value) in
            [("X-Count", "1"), ("X-Company", "required"), ("MCP-Protocol-Version", "2025-11-25")]
        {
            assert_eq!(values(name, value), [], "{name}");
        }
    }

    #[test]
    fn what_makes_no_rule_is_said_in_one_sentence() {
        let env = |value: &str| Options { env: vec![("KEY".into(), value.into())], ..Options::default() };
        assert_eq!(error(redact(&["/a~2"])), "`/a~2` is no JSON Pointer: `~` stands only in `~0` and `~1`");
        assert_eq!(
            error(redact(&["("])),
            "`(` is no regular expression: unclosed group; a JSON Pointer begins with `/`"
        );
        assert_eq!(
            error(env("short")),
            "`--redact-env` removes values of 8 characters or more; that of `KEY` has 5"
        );
        assert_eq!(
            error(env("")),
            "`--redact-env` removes values of 8 characters or more; that of `KEY` has 0"
        );
        assert_eq!(
            error(redact(&["off", "/x"])),
            "`--redact off` leaves nothing for other redaction options to do; drop it or them"
        );
        assert_eq!(
            error(redact(&[""])),
            "`--redact` is empty; it takes a JSON Pointer such as `/params/arguments/key` or a regular expression"
        );
        let keep = Options { keep: vec!["token".into()], ..Options::default() };
        assert_eq!(error(keep), "`token` is no JSON Pointer: it does not begin with `/`");
    }
}
