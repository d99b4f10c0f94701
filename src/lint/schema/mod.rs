//! JSON Schema, as much of it as tells whether a value fits: the words of [`LOOKED_AT`], of which `$ref` within the
//! schema only.
//!
//! A part that has another word, or one that cannot be decided here, neither fits nor is wrong, so a value that is said
//! to be wrong is wrong. (A whole validator would be half of the program's size.)

mod number;
mod pattern;
mod value;
mod words;

use std::collections::{BTreeSet, HashMap};

use regex::Regex;

use super::dialogue::text;
use crate::wire::{Span, pointer, scan};

/// The first place where a value does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Misfit {
    /// JSON Pointer into the value.
    pub(super) pointer: String,
    pub(super) text: String,
}

/// So many bytes of schema and value are looked at, those in nested parts once for each level.
const MOST: usize = 16 << 20;
/// What a part takes beside its own bytes.
const PART: usize = 128;

/// The words by which values are judged.
const LOOKED_AT: [&str; 26] = [
    "$ref",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "prefixItems",
    "properties",
    "required",
    "type",
    "uniqueItems",
];
/// Words that ask nothing of a value.
const SILENT: [&str; 15] = [
    "$anchor",
    "$comment",
    "$defs",
    "$schema",
    "contentEncoding",
    "contentMediaType",
    "default",
    "definitions",
    "deprecated",
    "description",
    "examples",
    "readOnly",
    "title",
    "writeOnly",
    "$id",
];

/// What is known of a value and a part of a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Verdict {
    Fits,
    Unknown,
    Wrong(Misfit),
}

/// A value, and the part of the schema that it has to fit.
#[derive(Clone, Debug)]
struct Part {
    of: Span,
    span: Span,
    pointer: String,
}

/// How a group's verdict comes from those of its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    All,
    Any,
    One,
    Not,
}

/// What is to be judged.
#[derive(Debug)]
enum Goal {
    Part(Part),
    Group(Kind, String, Vec<Goal>),
}

/// A group that is being judged.
#[derive(Debug)]
struct Group {
    kind: Kind,
    pointer: String,
    /// What is left of it, the next one last.
    left: Vec<Goal>,
    fits: usize,
    unknown: usize,
    wrong: Vec<Misfit>,
}

/// The first part of a value that does not fit a schema. Words of the schema that were met and not looked at are put
/// into `passed_over`.
pub(super) fn first_fault(schema: &[u8], value: &[u8], passed_over: &mut BTreeSet<String>) -> Option<Misfit> {
    let judge = Judge { schema, value, patterns: HashMap::new(), spent: 0, passed_over };
    match judge.judge() {
        Some(Verdict::Wrong(misfit)) => Some(misfit),
        _ => None,
    }
}

struct Judge<'a> {
    schema: &'a [u8],
    value: &'a [u8],
    patterns: HashMap<String, Option<Regex>>,
    spent: usize,
    passed_over: &'a mut BTreeSet<String>,
}

impl Judge<'_> {
    /// None where it would take too long.
    fn judge(mut self) -> Option<Verdict> {
        let whole = |text: &[u8]| Span::new(0, text.len());
        let root = Part { of: whole(self.schema), span: whole(self.value), pointer: String::new() };
        let mut groups = vec![Group::new(Kind::All, String::new(), vec![Goal::Part(root)])];
        loop {
            let group = groups.last_mut()?;
            let verdict = match group.left.pop() {
                Some(Goal::Group(kind, pointer, goals)) => {
                    groups.push(Group::new(kind, pointer, goals));
                    continue;
                }
                Some(Goal::Part(part)) => {
                    self.spent += PART + part.of.len() + part.span.len() + part.pointer.len();
                    if self.spent > MOST {
                        return None;
                    }
                    let (verdict, goals) = self.own(&part);
                    if !matches!(verdict, Verdict::Wrong(_)) && !goals.is_empty() {
                        let mut inside = Group::new(Kind::All, part.pointer, goals);
                        inside.add(verdict);
                        groups.push(inside);
                        continue;
                    }
                    verdict
                }
                None => {
                    let verdict = groups.pop()?.verdict();
                    if groups.is_empty() {
                        return Some(verdict);
                    }
                    verdict
                }
            };
            groups.last_mut()?.add(verdict);
        }
    }

    /// What the part's own words say of the value itself, and what is left to be judged.
    fn own(&mut self, part: &Part) -> (Verdict, Vec<Goal>) {
        match &self.schema[part.of.start..part.of.end] {
            b"true" => return (Verdict::Fits, Vec::new()),
            b"false" => return (part.wrong("nothing fits here".to_owned()), Vec::new()),
            [b'{', ..] => {}
            _ => return (Verdict::Unknown, Vec::new()),
        }
        let mut verdict = Verdict::Fits;
        let members: Vec<_> = scan::members(self.schema, part.of.start).map_while(Result::ok).collect();
        // Before 2019-09 what stands beside a reference does not count.
        let is_alone = self.word(part, "$ref").is_some() && self.is_old();
        let mut goals = Vec::new();
        for member in members {
            let word = text(member.name.of(self.schema)).unwrap_or_default();
            if is_alone && word != "$ref" {
                continue;
            }
            let found = match word.as_str() {
                // Below another address references lead elsewhere.
                "$id" if part.of.start > 0 => Verdict::Unknown,
                // Validators may judge by it or not.
                "format" => Verdict::Unknown,
                word if SILENT.contains(&word) => Verdict::Fits,
                word if LOOKED_AT.contains(&word) => {
                    goals.extend(self.goals(part, word, member.value));
                    self.says(part, word, member.value)
                }
                _ => {
                    self.passed_over.insert(word);
                    Verdict::Unknown
                }
            };
            match found {
                Verdict::Fits => {}
                Verdict::Unknown => verdict = Verdict::Unknown,
                wrong @ Verdict::Wrong(_) => return (wrong, Vec::new()),
            }
        }
        goals.reverse();
        (verdict, goals)
    }

    fn word(&self, part: &Part, name: &str) -> Option<Span> {
        member(self.schema, part.of, name)
    }

    fn is_old(&self) -> bool {
        let dialect = member(self.schema, Span::new(0, self.schema.len()), "$schema");
        dialect.and_then(|span| text(span.of(self.schema))).is_some_and(|name| name.contains("/draft-0"))
    }

    /// What a word leaves to be judged: parts of the value, or other parts of the schema.
    fn goals(&mut self, part: &Part, word: &str, at: Span) -> Vec<Goal> {
        let here = |of: Span| Goal::Part(Part { of, ..part.clone() });
        let each = |schema: &[u8]| -> Vec<Goal> {
            scan::elements(schema, at.start).map_while(Result::ok).map(here).collect()
        };
        let is_list = self.schema[at.start] == b'[';
        let first = self.value[part.span.start];
        match word {
            "$ref" => self.target(at).map(here).into_iter().collect(),
            "not" => vec![Goal::Group(Kind::Not, part.pointer.clone(), vec![here(at)])],
            "allOf" if is_list => vec![Goal::Group(Kind::All, part.pointer.clone(), each(self.schema))],
            "anyOf" if is_list => vec![Goal::Group(Kind::Any, part.pointer.clone(), each(self.schema))],
            "oneOf" if is_list => vec![Goal::Group(Kind::One, part.pointer.clone(), each(self.schema))],
            "properties" | "additionalProperties" if first == b'{' => self.members(part, word, at),
            "items" | "prefixItems" if first == b'[' => {
                let fixed = self.word(part, "prefixItems").filter(|_| word == "items");
                let skipped = fixed.map_or(0, |span| value::count(self.schema, span));
                let elements = scan::elements(self.value, part.span.start).map_while(Result::ok).enumerate();
                let below = |(n, span): (usize, Span), of| {
                    Goal::Part(Part { of, span, pointer: format!("{}/{n}", part.pointer) })
                };
                if is_list {
                    let schemas = scan::elements(self.schema, at.start).map_while(Result::ok);
                    return elements.zip(schemas).map(|(element, of)| below(element, of)).collect();
                }
                elements.skip(skipped).map(|element| below(element, at)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The members of an object that `properties` names, or that only `additionalProperties` is for.
    fn members(&self, part: &Part, word: &str, at: Span) -> Vec<Goal> {
        let properties = self.word(part, "properties");
        let members = scan::members(self.value, part.span.start).map_while(Result::ok);
        let goal = |found: scan::Member| {
            let name = text(found.name.of(self.value))?;
            let named = properties.and_then(|span| member(self.schema, span, &name));
            let of = match word {
                "properties" => named?,
                _ if named.is_none() => at,
                _ => return None,
            };
            let pointer = format!("{}/{}", part.pointer, pointer::escaped(&name));
            Some(Goal::Part(Part { of, span: found.value, pointer }))
        };
        // Which members a pattern takes is not looked at, and a member that is closed out is told of by its name.
        let is_open = word == "properties"
            || self.word(part, "patternProperties").is_none() && at.of(self.schema) != b"false";
        if is_open { members.filter_map(goal).collect() } else { Vec::new() }
    }

    /// Where a reference within the schema leads.
    fn target(&self, at: Span) -> Option<Span> {
        let target = text(at.of(self.schema))?;
        let pointer = target.strip_prefix('#')?;
        let is_pointer = pointer.is_empty() || pointer.starts_with('/') && !pointer.contains('%');
        is_pointer.then(|| scan::pointer(self.schema, Span::new(0, self.schema.len()), pointer)).flatten()
    }
}

impl Part {
    fn wrong(&self, text: String) -> Verdict {
        Verdict::Wrong(Misfit { pointer: self.pointer.clone(), text })
    }
}

impl Group {
    fn new(kind: Kind, pointer: String, mut goals: Vec<Goal>) -> Self {
        goals.reverse();
        Self { kind, pointer, left: goals, fits: 0, unknown: 0, wrong: Vec::new() }
    }

    fn add(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Fits => self.fits += 1,
            Verdict::Unknown => self.unknown += 1,
            Verdict::Wrong(misfit) => self.wrong.push(misfit),
        }
        let is_settled = match self.kind {
            Kind::All => !self.wrong.is_empty(),
            Kind::Any => self.fits > 0,
            Kind::One => self.fits > 1,
            Kind::Not => true,
        };
        if is_settled {
            self.left.clear();
        }
    }

    fn verdict(mut self) -> Verdict {
        let wrong = |pointer, text| Verdict::Wrong(Misfit { pointer, text });
        match self.kind {
            Kind::All if !self.wrong.is_empty() => Verdict::Wrong(self.wrong.swap_remove(0)),
            Kind::All if self.unknown == 0 => Verdict::Fits,
            Kind::Any if self.fits > 0 => Verdict::Fits,
            Kind::One if self.fits > 1 => wrong(
                self.pointer,
                "fits more than one of the choices of `oneOf`, and may fit one only".to_owned(),
            ),
            Kind::One if self.fits == 1 && self.unknown == 0 => Verdict::Fits,
            Kind::Any | Kind::One if self.fits == 0 && self.unknown == 0 => {
                let word = if self.kind == Kind::Any { "anyOf" } else { "oneOf" };
                let why: Vec<&str> = self.wrong.iter().take(3).map(|misfit| &*misfit.text).collect();
                wrong(self.pointer, format!("fits none of the choices of `{word}` ({})", why.join("; ")))
            }
            Kind::Not if !self.wrong.is_empty() => Verdict::Fits,
            Kind::Not if self.fits > 0 => wrong(self.pointer, "fits what stands in `not`".to_owned()),
            _ => Verdict::Unknown,
        }
    }
}

fn member(text: &[u8], at: Span, name: &str) -> Option<Span> {
    (text.get(at.start) == Some(&b'{')).then(|| scan::member(text, at.start, name)).flatten()
}

#[cfg(test)]
mod tests;
