//! Values that differ from run to run and have a name: `--var NAME=VALUE`.
//!
//! [`Vars::hide`] writes `<var:NAME>` where the value stands, in a recording and in a live request before it is
//! matched; [`Vars::show`] writes the value again, in the same form. A form that is not the usual one at its place is
//! part of the placeholder: `<var:NAME:percent>`. Usual is the path's form of RFC 8089 right behind `file://`, and
//! the value as it is anywhere else; how a JSON string spells it follows from where it stands.

use std::borrow::Cow;
use std::cmp::Reverse;

use aho_corasick::AhoCorasick;
use memchr::memmem;

use super::forms::{Form, json_inside};
use super::layers::Layers;
use crate::wire::Span;
use crate::wire::scan::{self, Lexer, ScanError, Token};

const START: &[u8] = b"<var:";

/// Variables and their values.
#[derive(Clone, Debug, Default)]
pub struct Vars {
    list: Vec<Var>,
    /// What a message holds at least where it holds a value, or none where nothing certain can be said.
    hints: Option<AhoCorasick>,
    /// All forms of all values.
    spellings: Option<AhoCorasick>,
    /// Which form of which value each of them is.
    meanings: Vec<(usize, Form)>,
}

#[derive(Clone, Debug)]
struct Var {
    name: String,
    value: String,
}

/// What is written in a place's stead.
struct Edit {
    span: Span,
    text: String,
}

/// Why variables are none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VarError {
    /// A name that placeholders cannot spell.
    #[error(
        "`{name}` is no name for a variable: letters, digits, `_`, `.` and `-` make one, a letter or `_` first"
    )]
    Name {
        /// The name.
        name: String,
    },
    /// An empty value stands everywhere.
    #[error("the variable `{name}` has no value; give one, as in `--var {name}=VALUE`")]
    Empty {
        /// The variable.
        name: String,
    },
    /// Two values for one name.
    #[error("the variable `{name}` is given twice; drop one of the two")]
    Twice {
        /// The variable.
        name: String,
    },
    /// One value for two names.
    #[error(
        "the variables `{first}` and `{second}` have the same value, so they cannot be told apart; drop one"
    )]
    Same {
        /// The one given first.
        first: String,
        /// The other.
        second: String,
    },
}

impl Vars {
    /// Variables by name and value.
    ///
    /// # Errors
    /// When a name or value cannot be used.
    pub fn new(vars: Vec<(String, String)>) -> Result<Self, VarError> {
        let mut list: Vec<Var> = Vec::with_capacity(vars.len());
        for (name, value) in vars {
            if !is_name(name.as_bytes()) {
                return Err(VarError::Name { name });
            } else if value.is_empty() {
                return Err(VarError::Empty { name });
            } else if list.iter().any(|var| var.name == name) {
                return Err(VarError::Twice { name });
            } else if let Some(var) = list.iter().find(|var| var.value == value) {
                return Err(VarError::Same { first: var.name.clone(), second: name });
            }
            list.push(Var { name, value });
        }
        let mut meanings = Vec::new();
        let mut spellings: Vec<String> = Vec::new();
        for (index, var) in list.iter().enumerate() {
            for form in Form::ALL {
                let spelling = form.spell(&var.value);
                if !spellings.contains(&spelling) {
                    spellings.push(spelling);
                    meanings.push((index, form));
                }
            }
        }
        let automaton = |literals: &[&[u8]]| AhoCorasick::new(literals).ok();
        let runs: Vec<_> = list.iter().map(|var| sturdy_run(&var.value)).collect();
        let hidden = (b'2'..=b'7').map(|digit| [b'\\', b'u', b'0', b'0', digit]).collect::<Vec<_>>();
        let hints: Vec<_> = runs.iter().copied().chain(hidden.iter().map(|escape| &escape[..])).collect();
        Ok(Self {
            hints: if runs.iter().any(|run| run.is_empty()) { None } else { automaton(&hints) },
            spellings: automaton(&spellings.iter().map(String::as_bytes).collect::<Vec<_>>()),
            list,
            meanings,
        })
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Their names, in the order given.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|var| var.name.as_str())
    }

    /// Writes placeholders for values.
    pub fn hide<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let may_hold = |text: &[u8]| self.hints.as_ref().is_none_or(|hints| hints.is_match(text));
        if self.is_empty() || !may_hold(bytes) {
            return Cow::Borrowed(bytes);
        }
        rewrite(bytes, &may_hold, &|text| self.find(text))
    }

    /// Writes values for placeholders; those of unknown names stay.
    pub fn show<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let may_hold = |text: &[u8]| memmem::find(text, b"var:").is_some();
        if self.is_empty() || !may_hold(bytes) {
            return Cow::Borrowed(bytes);
        }
        rewrite(bytes, &may_hold, &|text| self.placeholders(text))
    }

    /// The values in a text, with the placeholders for them: of two that overlap, the longer value.
    fn find(&self, text: &[u8]) -> Vec<Edit> {
        let Some(spellings) = &self.spellings else { return Vec::new() };
        let mut found: Vec<_> = spellings
            .find_overlapping_iter(text)
            .map(|found| (Span::new(found.start(), found.end()), self.meanings[found.pattern().as_usize()]))
            .filter(|(span, _)| stands_alone(text, *span))
            .collect();
        found.sort_by_key(|(span, (var, _))| {
            (Reverse(self.list[*var].value.len()), span.start, Reverse(span.end))
        });
        let mut taken: Vec<(Span, (usize, Form))> = Vec::new();
        for (span, meaning) in found {
            if taken.iter().all(|(other, _)| span.end <= other.start || other.end <= span.start) {
                taken.push((span, meaning));
            }
        }
        taken.sort_by_key(|(span, _)| span.start);
        let mut from = 0;
        let placeholder = |(span, (var, form)): (Span, (usize, Form))| {
            let Var { name, value } = &self.list[var];
            // What is usual follows from the text before that stays.
            let usual = Form::usual(&text[from..], span.start - from);
            from = span.end;
            let text = match usual.spell(value).as_bytes() == span.of(text) {
                true => format!("<var:{name}>"),
                false => format!("<var:{name}:{}>", form.name()),
            };
            Edit { span, text }
        };
        taken.into_iter().map(placeholder).collect()
    }

    /// The placeholders in a text, with the values for them.
    fn placeholders(&self, text: &[u8]) -> Vec<Edit> {
        let mut found = Vec::new();
        for start in memmem::find_iter(text, START) {
            let inside = &text[start + START.len()..];
            let Some(length) = inside.iter().take(256).position(|byte| *byte == b'>') else { continue };
            let Ok(inside) = std::str::from_utf8(&inside[..length]) else { continue };
            let (name, form) = match inside.split_once(':') {
                Some((name, form)) => (name, Form::ALL.into_iter().find(|known| known.name() == form)),
                None => (inside, Some(Form::usual(text, start))),
            };
            if let (Some(var), Some(form)) = (self.list.iter().find(|var| var.name == name), form) {
                let span = Span::new(start, start + START.len() + length + 1);
                found.push(Edit { span, text: form.spell(&var.value) });
            }
        }
        found
    }
}

/// Rewrites what `find` finds in the message's texts: in its strings, decoded, and in those of JSON inside strings. A
/// text of which `may_hold` says no is passed over.
fn rewrite<'a>(
    message: &'a [u8],
    may_hold: &dyn Fn(&[u8]) -> bool,
    find: &dyn Fn(&[u8]) -> Vec<Edit>,
) -> Cow<'a, [u8]> {
    let mut layers: Layers<'_, String> = Layers::new(message);
    let mut layer = 0;
    while layer < layers.len() {
        let text = layers.text(layer);
        match strings(text, layer == 0) {
            Ok(strings) => {
                for inside in strings {
                    if !may_hold(inside.of(layers.text(layer))) || layers.open(layer, inside, false).is_some()
                    {
                        continue;
                    }
                    for Edit { span, text } in find(inside.of(layers.text(layer))) {
                        layers.add(layer, span.shift(inside.start), json_inside(&text));
                    }
                }
            }
            Err(_) => {
                for Edit { span, text } in find(text) {
                    layers.add(layer, span, text);
                }
            }
        }
        layer += 1;
    }
    let edits = layers.flatten(|text| *text = json_inside(text));
    if edits.is_empty() {
        return Cow::Borrowed(message);
    }
    let mut rewritten = Vec::with_capacity(message.len());
    let mut from = 0;
    for (span, new) in edits {
        rewritten.extend_from_slice(&message[from..span.start]);
        rewritten.extend_from_slice(new.as_bytes());
        from = span.end;
    }
    rewritten.extend_from_slice(&message[from..]);
    Cow::Owned(rewritten)
}

/// The insides of all strings and names of a text that is a JSON object or array as a whole; of a message, not those
/// of its envelope.
fn strings(text: &[u8], is_message: bool) -> Result<Vec<Span>, ScanError> {
    let whole = scan::trim(text);
    let none = |at| ScanError { at, expected: "an object or array" };
    if !matches!(text.get(whole.start), Some(b'{' | b'[')) {
        return Err(none(whole.start));
    }
    let top = if text[whole.start] == b'[' { 2 } else { 1 };
    let mut found = Vec::new();
    let mut is_envelope = false;
    let mut lexer = Lexer::new(text, whole.start);
    while let Some((token, span)) = lexer.next()? {
        let inside = Span::new(span.start + 1, span.end.saturating_sub(1));
        match token {
            Token::Name => {
                let names = ["jsonrpc", "method", "id"];
                is_envelope = is_message
                    && lexer.depth() == top
                    && names.iter().any(|name| scan::string_is(span.of(text), name));
                found.push(inside);
            }
            Token::String if !(is_envelope && lexer.depth() == top) => found.push(inside),
            _ => {}
        }
    }
    if lexer.at() == whole.end { Ok(found) } else { Err(none(lexer.at())) }
}

/// A value is no part of a longer word or number: `/home/ann` does not stand in `/home/anna`.
fn stands_alone(text: &[u8], span: Span) -> bool {
    let joins = |a: Option<&u8>, b: Option<&u8>| match (a, b) {
        (Some(a), Some(b)) => {
            a.is_ascii_alphabetic() && b.is_ascii_alphabetic() || a.is_ascii_digit() && b.is_ascii_digit()
        }
        _ => false,
    };
    let escaped = span.start >= 3 && text[span.start - 3] == b'%';
    let before = text[..span.start].last().filter(|_| !escaped);
    !joins(before, text.get(span.start)) && !joins(text[..span.end].last(), text.get(span.end))
}

/// The longest run of letters and digits: no encoder touches it.
fn sturdy_run(value: &str) -> &[u8] {
    value
        .split(|char: char| !char.is_ascii_alphanumeric())
        .max_by_key(|run| run.len())
        .unwrap_or_default()
        .as_bytes()
}

fn is_name(name: &[u8]) -> bool {
    let begins = name.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_');
    begins && name.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn vars(vars: &[(&str, &str)]) -> Vars {
        Vars::new(vars.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
            .unwrap()
    }

    fn text(bytes: Cow<'_, [u8]>) -> String {
        String::from_utf8(bytes.into_owned()).unwrap()
    }

    /// Each pair is a message and what it becomes; showing brings the message back.
    fn hides(vars: &Vars, messages: &[(&str, &str)]) {
        for (message, hidden) in messages {
            assert_eq!(text(vars.hide(message.as_bytes())), *hidden, "{message}");
            assert_eq!(text(vars.show(hidden.as_bytes())), *message, "{hidden}");
        }
    }

    #[test]
    fn values_are_hidden_and_shown_in_every_form() {
        hides(
            &vars(&[("ROOT", "/home/ann/my dir")]),
            &[
                (r#"{ "path" : "/home/ann/my dir/x" }"#, r#"{ "path" : "<var:ROOT>/x" }"#),
                (r#"{"/home/ann/my dir":1}"#, r#"{"<var:ROOT>":1}"#),
                (r#"{"uri":"file:///home/ann/my%20dir/x"}"#, r#"{"uri":"file://<var:ROOT>/x"}"#),
                (r#"{"uri":"file:///home/ann/my dir/x"}"#, r#"{"uri":"file://<var:ROOT:plain>/x"}"#),
                (r#"{"u":"?p=%2Fhome%2Fann%2Fmy%20dir"}"#, r#"{"u":"?p=<var:ROOT:percent>"}"#),
                (r#"{"u":"?p=%2fhome%2fann%2fmy%20dir"}"#, r#"{"u":"?p=<var:ROOT:percent-lower>"}"#),
                (r#"{"u":"?p=%2Fhome%2Fann%2Fmy+dir"}"#, r#"{"u":"?p=<var:ROOT:form>"}"#),
                (r#"{"t":"{\"p\":\"/home/ann/my dir\"}"}"#, r#"{"t":"{\"p\":\"<var:ROOT>\"}"}"#),
                ("log /home/ann/my dir", "log <var:ROOT>"),
            ],
        );
    }

    #[test]
    fn escapes_follow_from_the_place() {
        hides(
            &vars(&[("ROOT", r#"C:\Users\a"b"#)]),
            &[
                (r#"{"p":"C:\\Users\\a\"b\\x"}"#, r#"{"p":"<var:ROOT>\\x"}"#),
                (r#"{"t":"{\"p\":\"C:\\\\Users\\\\a\\\"b\"}"}"#, r#"{"t":"{\"p\":\"<var:ROOT>\"}"}"#),
                (
                    r#"{"t":"so: {\"p\":\"C:\\\\Users\\\\a\\\"b\"}"}"#,
                    r#"{"t":"so: {\"p\":\"<var:ROOT:json>\"}"}"#,
                ),
                (r#"{"u":"file:///C:/Users/a%22b/x"}"#, r#"{"u":"file://<var:ROOT>/x"}"#),
                (r#"log C:\Users\a"b"#, "log <var:ROOT>"),
            ],
        );
        let vars = vars(&[("ROOT", "/home/ann")]);
        for escaped in [r#"["\/home\/ann"]"#, r#"["\u002fhome\u002fann"]"#, r#"["\u002f\u0068ome/ann"]"#] {
            assert_eq!(text(vars.hide(escaped.as_bytes())), r#"["<var:ROOT>"]"#);
        }
        assert_eq!(text(vars.show(br#"["\u003cvar:ROOT\u003e"]"#)), r#"["/home/ann"]"#);
    }

    #[test]
    fn another_value_is_shown_in_the_form_that_was_hidden() {
        let shown = |hidden: &str| text(vars(&[("ROOT", r#"/tmp/ü "x"#)]).show(hidden.as_bytes()));
        assert_eq!(
            shown(r#"{"u":"file://<var:ROOT>/x","p":"<var:ROOT>"}"#),
            r#"{"u":"file:///tmp/%C3%BC%20%22x/x","p":"/tmp/ü \"x"}"#
        );
        assert_eq!(shown(r#"{"t":"{\"p\":\"<var:ROOT>\"}"}"#), r#"{"t":"{\"p\":\"/tmp/ü \\\"x\"}"}"#);
        assert_eq!(shown(r#"{"t":"<var:ROOT:percent>"}"#), r#"{"t":"%2Ftmp%2F%C3%BC%20%22x"}"#);
    }

    #[test]
    fn the_longest_value_goes_first_and_parts_of_words_stay() {
        hides(
            &vars(&[
                ("HOME", "/home/ann"),
                ("PROJECT", "/home/ann/project"),
                ("PORT", "8080"),
                ("TAIL", "ann/project/src"),
            ]),
            &[
                (r#"["/home/ann/project/x","/home/ann/y"]"#, r#"["<var:PROJECT>/x","<var:HOME>/y"]"#),
                (r#"["/home/ann/project/src"]"#, r#"["<var:PROJECT>/src"]"#),
                (
                    r#"["/home/anna","/home/ann/projects","18080","80801","p8080"]"#,
                    r#"["/home/anna","<var:HOME>/projects","18080","80801","p<var:PORT>"]"#,
                ),
                (r#"["http://localhost:8080/x"]"#, r#"["http://localhost:<var:PORT>/x"]"#),
            ],
        );
    }

    #[test]
    fn numbers_and_the_envelope_stay() {
        let vars = vars(&[("PORT", "8080"), ("V", "2.0"), ("M", "ping")]);
        let message = r#"{"jsonrpc":"2.0","id":"8080","method":"ping","params":{"port":8080}}"#;
        assert_eq!(text(vars.hide(message.as_bytes())), message);
        assert!(matches!(vars.hide(br#"{"a":"b"}"#), Cow::Borrowed(_)));
        assert!(matches!(vars.show(br#"{"a":"<var:OTHER>"}"#), Cow::Borrowed(_)));
    }

    #[test]
    fn what_makes_no_variable_is_said_in_one_sentence() {
        let error = |vars: &[(&str, &str)]| {
            let vars = vars.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            Vars::new(vars).map(|_| ()).expect_err("no variables").to_string()
        };
        assert_eq!(
            error(&[("a b", "x")]),
            "`a b` is no name for a variable: letters, digits, `_`, `.` and `-` make one, a letter or `_` first"
        );
        assert_eq!(error(&[("A", "")]), "the variable `A` has no value; give one, as in `--var A=VALUE`");
        assert_eq!(error(&[("A", "1"), ("A", "2")]), "the variable `A` is given twice; drop one of the two");
        assert_eq!(
            error(&[("A", "1"), ("B", "1")]),
            "the variables `A` and `B` have the same value, so they cannot be told apart; drop one"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_was_hidden_is_shown_again(
            value in "[/a-z0-9 \"\\\\%é:+]{1,12}",
            pieces in prop::collection::vec((0..14usize, "[a-z/ :é\"\\\\%]{0,4}"), 0..6),
            nested in any::<bool>(),
        ) {
            let vars = vars(&[("V", &value)]);
            let inside: String = pieces
                .iter()
                .map(|(form, between)| match form {
                    0..=10 => format!("{}{between}", Form::ALL[*form].spell(&value)),
                    11 => format!("file://{}{between}", Form::Path.spell(&value)),
                    _ => between.clone(),
                })
                .collect();
            prop_assume!(!inside.contains("<var:"));
            let quote = |text: &str| format!("\"{}\"", json_inside(text));
            let inside = if nested { format!("[{}]", quote(&inside)) } else { inside };
            let message = format!("{{\"a\": {}}}", quote(&inside));
            let hidden = text(vars.hide(message.as_bytes()));
            prop_assert_eq!(text(vars.show(hidden.as_bytes())), message, "{}", hidden);
        }
    }
}
