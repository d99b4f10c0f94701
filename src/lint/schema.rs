//! JSON Schema, as much of it as proves that a value does not fit: `type`, `enum`, `const`, `required`, `properties`,
//! `additionalProperties: false`, `items` and `$ref` within the schema. Other words are passed over, so a value that
//! is said to be wrong is wrong. (A whole validator would be half of the program's size.)

use std::collections::VecDeque;

use super::dialogue::{short, shown, text};
use crate::wire::{Span, scan};

/// The first place where a value does not fit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Misfit {
    /// JSON Pointer into the value.
    pub(super) pointer: String,
    pub(super) text: String,
}

/// So many bytes of the value are looked at, those in nested parts once for each level.
const MOST: usize = 16 << 20;

/// The first part of a value that does not fit a schema, level by level.
pub(super) fn first_fault(schema: &[u8], value: &[u8]) -> Option<Misfit> {
    let root = (Span::new(0, schema.len()), Span::new(0, value.len()), String::new());
    let (mut todo, mut seen) = (VecDeque::from([root]), 0);
    while let Some((of, span, pointer)) = todo.pop_front() {
        seen += span.len() + pointer.len();
        if seen > MOST {
            return None;
        }
        let Some(at) = resolve(schema, of) else { continue };
        let check = Check { schema, at, value, span, pointer };
        if let Some(text) = check.own() {
            return Some(Misfit { pointer: check.pointer, text });
        }
        todo.extend(check.children());
    }
    None
}

/// Follows `$ref` within the schema. Not every reference can be followed: then nothing is known.
fn resolve(schema: &[u8], mut at: Span) -> Option<Span> {
    for _ in 0..32 {
        let Some(target) = member(schema, at, "$ref") else { return Some(at) };
        let target = text(target.of(schema))?;
        at = scan::pointer(schema, Span::new(0, schema.len()), target.strip_prefix('#')?)?;
    }
    None
}

fn member(text: &[u8], at: Span, name: &str) -> Option<Span> {
    (text.get(at.start) == Some(&b'{')).then(|| scan::member(text, at.start, name)).flatten()
}

/// A value, and the schema that it has to fit.
struct Check<'a> {
    schema: &'a [u8],
    at: Span,
    value: &'a [u8],
    span: Span,
    pointer: String,
}

impl Check<'_> {
    fn word(&self, name: &str) -> Option<Span> {
        member(self.schema, self.at, name)
    }

    fn strings(&self, word: &str) -> Vec<String> {
        let Some(span) = self.word(word) else { return Vec::new() };
        let raw = span.of(self.schema);
        if raw[0] != b'[' {
            return text(raw).into_iter().collect();
        }
        let elements = scan::elements(raw, 0).map_while(Result::ok);
        elements.filter_map(|element| text(element.of(raw))).collect()
    }

    /// What is wrong with the value itself, whatever stands in it.
    fn own(&self) -> Option<String> {
        let raw = self.span.of(self.value);
        let types = self.strings("type");
        let known = |name: &String| TYPES.contains(&name.as_str());
        if !types.is_empty() && types.iter().all(known) && !types.iter().any(|name| is_of(name, raw)) {
            return Some(format!("expected {}, found `{}`", types.join(" or "), shown(raw)));
        }
        // A redacted text is none of the recorded ones.
        let is_plain = raw[0] == b'"' && memchr::memchr(b'<', raw).is_none();
        let choices = [self.strings("enum"), self.strings("const")].concat();
        let are_all = match self.word("enum").or_else(|| self.word("const")) {
            Some(span) => count(self.schema, span) == choices.len(),
            None => false,
        };
        if is_plain && are_all && text(raw).is_some_and(|found| !choices.contains(&found)) {
            return Some(format!("expected one of {}, found `{}`", short(&choices.join(", ")), shown(raw)));
        }
        if raw[0] != b'{' {
            return None;
        }
        let lacks = |name: &String| member(self.value, self.span, name).is_none();
        if let Some(name) = self.strings("required").into_iter().find(lacks) {
            return Some(format!("`{}` is missing", short(&name)));
        }
        let is_closed =
            self.word("additionalProperties").is_some_and(|span| span.of(self.schema) == b"false")
                && self.word("patternProperties").is_none();
        let properties = self.word("properties");
        let mut names =
            scan::members(self.value, self.span.start).map_while(Result::ok).map(|member| member.name);
        let extra = names.find(|name| {
            let name = text(name.of(self.value)).unwrap_or_default();
            is_closed && properties.and_then(|span| member(self.schema, span, &name)).is_none()
        });
        extra.map(|name| format!("`{}` is not in the schema", shown(name.of(self.value)).trim_matches('"')))
    }

    /// The parts of the value, each with its schema.
    fn children(&self) -> Vec<(Span, Span, String)> {
        let mut children = Vec::new();
        match self.value[self.span.start] {
            b'{' => {
                let Some(properties) = self.word("properties") else { return children };
                for member_of in scan::members(self.value, self.span.start).map_while(Result::ok) {
                    let name = text(member_of.name.of(self.value)).unwrap_or_default();
                    let escaped = name.replace('~', "~0").replace('/', "~1");
                    let schema = member(self.schema, properties, &name);
                    children.extend(
                        schema.map(|schema| (schema, member_of.value, format!("{}/{escaped}", self.pointer))),
                    );
                }
            }
            b'[' if self.word("prefixItems").is_none() => {
                let items = self.word("items").filter(|span| self.schema[span.start] == b'{');
                let elements = scan::elements(self.value, self.span.start).map_while(Result::ok).enumerate();
                let each = elements
                    .filter_map(|(n, element)| Some((items?, element, format!("{}/{n}", self.pointer))));
                children.extend(each);
            }
            _ => {}
        }
        children
    }
}

const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];

fn is_of(name: &str, raw: &[u8]) -> bool {
    match raw[0] {
        b'"' => name == "string",
        b'{' => name == "object",
        b'[' => name == "array",
        b't' | b'f' => name == "boolean",
        b'n' => name == "null",
        // 1.0 and 1e3 are integers too.
        _ => name == "number" || (name == "integer" && is_integer(raw)),
    }
}

fn is_integer(raw: &[u8]) -> bool {
    let plain = !raw.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E'));
    let number = std::str::from_utf8(raw).ok().and_then(|text| text.parse::<f64>().ok());
    plain || number.is_none_or(|number| number.fract() == 0.0)
}

/// How many elements an array has; one for any other value.
fn count(text: &[u8], at: Span) -> usize {
    if text[at.start] == b'[' { scan::elements(text, at.start).map_while(Result::ok).count() } else { 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &[u8] = br##"{"type": "object", "required": ["a"], "properties": {
        "a": {"type": ["integer", "null"]}, "b": {"type": "array", "items": {"$ref": "#/$defs/b~1"}},
        "c": {"enum": ["x", "y"]}, "d": {"allOf": [{"type": "string"}]}, "e": true},
        "additionalProperties": false, "$defs": {"b/": {"type": "object", "properties": {"n": {"type": "string"}}}}}"##;

    fn fault(value: &str) -> Option<(String, String)> {
        first_fault(SCHEMA, value.as_bytes()).map(|misfit| (misfit.pointer, misfit.text))
    }

    #[test]
    fn what_fits_or_is_not_understood_is_no_fault() {
        for value in [
            r#"{"a": 1}"#,
            r#"{"a": 1.0, "c": "x"}"#,
            r#"{"a": null, "b": [{"n": "s"}, {}], "d": 7, "e": []}"#,
            r#"{"a": 1, "c": "<redacted:jwt-1>"}"#,
        ] {
            assert_eq!(fault(value), None, "{value}");
        }
        assert_eq!(first_fault(br##"{"$ref": "#"}"##, b"{}"), None);
        assert_eq!(first_fault(br#"{"$ref": "http://x/y", "type": "string"}"#, b"{}"), None);
        assert_eq!(first_fault(b"true", b"[1]"), None);
    }

    #[test]
    fn what_does_not_fit_is_named_with_its_place() {
        for (value, pointer, text) in [
            ("[]", "", "expected object, found `[]`"),
            (r#"{"b": []}"#, "", "`a` is missing"),
            (r#"{"a": 1, "f": 2}"#, "", "`f` is not in the schema"),
            (r#"{"a": 1.5}"#, "/a", "expected integer or null, found `1.5`"),
            (r#"{"a": 1, "b": [{}, {"n": 7}]}"#, "/b/1/n", "expected string, found `7`"),
            (r#"{"a": 1, "c": "z"}"#, "/c", "expected one of x, y, found `\"z\"`"),
        ] {
            assert_eq!(fault(value), Some((pointer.to_owned(), text.to_owned())), "{value}");
        }
    }

    #[test]
    fn depth_is_only_data() {
        let deep = format!("{}{}", r#"{"n":"#.repeat(20_000), "}".repeat(20_000).replacen('}', "1}", 1));
        assert_eq!(first_fault(br##"{"properties": {"n": {"$ref": "#"}}}"##, deep.as_bytes()), None);
    }
}
