//! A plan's text as values that know where they stand.
//!
//! Nothing is built: a value is a place in the text, read when it is asked for. What nobody asked for is a mistake.

use std::borrow::Cow;

use super::error::PlanError;
use crate::{
    cassette::nearest,
    traffic::Micros,
    wire::{Span, jsonrpc, scan},
};

/// One JSON value of a plan.
#[derive(Clone, Copy, Debug)]
pub struct Value<'a> {
    text: &'a [u8],
    span: Span,
}

/// One JSON object of a plan, whose members are asked for one by one.
#[derive(Debug)]
pub struct Object<'a> {
    /// What messages call it.
    what: String,
    text: &'a [u8],
    span: Span,
    members: Vec<(String, Span, Span)>,
    asked: Vec<&'static str>,
}

impl<'a> Value<'a> {
    pub(super) const fn new(text: &'a [u8], span: Span) -> Self {
        Self { text, span }
    }

    /// Its JSON text.
    pub fn raw(&self) -> &'a [u8] {
        self.span.of(self.text)
    }

    /// Where it begins.
    pub const fn at(&self) -> usize {
        self.span.start
    }

    /// That it is not what `member` must be.
    pub fn wrong(&self, member: &str, expected: &str) -> PlanError {
        let found = crate::cassette::found(self.text, self.span.start);
        PlanError::new(self.span.start, format!("`{member}` must be {expected}, found {found}"))
    }

    /// Whether it is a string, an object, an array.
    pub fn is_string(&self) -> bool {
        self.raw().first() == Some(&b'"')
    }

    /// See [`Value::is_string`].
    pub fn is_object(&self) -> bool {
        self.raw().first() == Some(&b'{')
    }

    /// See [`Value::is_string`].
    pub fn is_array(&self) -> bool {
        self.raw().first() == Some(&b'[')
    }

    /// Its text.
    ///
    /// # Errors
    /// Where it is no string.
    pub fn string(&self, member: &str) -> Result<Cow<'a, str>, PlanError> {
        if self.is_string() { Ok(jsonrpc::text(self.raw())) } else { Err(self.wrong(member, "a string")) }
    }

    /// A number that `is_good` takes.
    ///
    /// # Errors
    /// Where it is none.
    pub fn number(
        &self,
        member: &str,
        expected: &str,
        is_good: impl Fn(f64) -> bool,
    ) -> Result<f64, PlanError> {
        let number = std::str::from_utf8(self.raw()).ok().and_then(|text| text.parse::<f64>().ok());
        number.filter(|number| is_good(*number)).ok_or_else(|| self.wrong(member, expected))
    }

    /// A whole number in a range.
    ///
    /// # Errors
    /// Where it is none.
    pub fn integer<T: TryFrom<i64>>(&self, member: &str, expected: &str) -> Result<T, PlanError> {
        let number = std::str::from_utf8(self.raw()).ok().and_then(|text| text.parse::<i64>().ok());
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| self.wrong(member, expected))
    }

    /// A whole number from 1.
    ///
    /// # Errors
    /// Where it is none.
    pub fn count(&self, member: &str) -> Result<u64, PlanError> {
        let expected = "a whole number from 1";
        self.integer::<u64>(member, expected).and_then(|count| match count {
            0 => Err(self.wrong(member, expected)),
            count => Ok(count),
        })
    }

    /// Milliseconds, as microseconds.
    ///
    /// # Errors
    /// Where it is no number from 0 to a day.
    pub fn millis(&self, member: &str) -> Result<Micros, PlanError> {
        const DAY: f64 = 86_400_000.0;
        let millis = self.number(member, "milliseconds, from 0 to a day", |ms| (0.0..=DAY).contains(&ms))?;
        Ok((millis * 1000.0) as Micros)
    }

    /// # Errors
    /// Where it is neither `true` nor `false`.
    pub fn boolean(&self, member: &str) -> Result<bool, PlanError> {
        match self.raw() {
            b"true" => Ok(true),
            b"false" => Ok(false),
            _ => Err(self.wrong(member, "true or false")),
        }
    }

    /// Its elements.
    ///
    /// # Errors
    /// Where it is no array.
    pub fn elements(&self, member: &str) -> Result<Vec<Self>, PlanError> {
        if !self.is_array() {
            return Err(self.wrong(member, "an array"));
        }
        let spans = scan::elements(self.text, self.span.start).map_while(Result::ok);
        Ok(spans.map(|span| Self::new(self.text, span)).collect())
    }

    /// Its members.
    ///
    /// # Errors
    /// Where it is no object, or names one twice.
    pub fn object(&self, what: &str) -> Result<Object<'a>, PlanError> {
        if !self.is_object() {
            return Err(self.wrong(what, "an object in braces"));
        }
        let mut members: Vec<(String, Span, Span)> = Vec::new();
        for member in scan::members(self.text, self.span.start).map_while(Result::ok) {
            let name = jsonrpc::text(member.name.of(self.text)).into_owned();
            if members.iter().any(|(known, ..)| *known == name) {
                let text = format!("`{name}` stands twice in {what}; remove one of them");
                return Err(PlanError::new(member.name.start, text));
            }
            members.push((name, member.name, member.value));
        }
        Ok(Object { what: what.to_owned(), text: self.text, span: self.span, members, asked: Vec::new() })
    }
}

impl<'a> Object<'a> {
    /// An object without members.
    pub fn empty(what: &str) -> Self {
        let span = Span::new(0, 0);
        Self { what: what.to_owned(), text: b"", span, members: Vec::new(), asked: Vec::new() }
    }

    /// What messages call it.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Where it begins.
    pub const fn at(&self) -> usize {
        self.span.start
    }

    /// Its JSON text.
    pub fn raw(&self) -> &'a [u8] {
        self.span.of(self.text)
    }

    /// The value of a member, if it is there.
    pub fn get(&mut self, name: &'static str) -> Option<Value<'a>> {
        self.asked.push(name);
        let found = self.members.iter().find(|(known, ..)| known == name);
        found.map(|(_, _, value)| Value::new(self.text, *value))
    }

    /// Whether it has a member, asked for or not.
    pub fn has(&self, name: &str) -> bool {
        self.members.iter().any(|(known, ..)| known == name)
    }

    /// The value of a member that has to be there.
    ///
    /// # Errors
    /// Where it is not.
    pub fn need(&mut self, name: &'static str, expected: &str) -> Result<Value<'a>, PlanError> {
        self.get(name).ok_or_else(|| {
            PlanError::new(self.span.start, format!("{} needs `{name}`, {expected}", self.what))
        })
    }

    /// All members, where their names are anything.
    pub fn all(&mut self) -> impl Iterator<Item = (&str, Value<'a>)> {
        self.asked.clear();
        let text = self.text;
        self.members.iter().map(move |(name, _, value)| (name.as_str(), Value::new(text, *value)))
    }

    /// That nothing stands in it that nobody asked for.
    ///
    /// # Errors
    /// With the member, and what it may have meant.
    pub fn finish(self) -> Result<(), PlanError> {
        let known = |name: &str| self.asked.contains(&name) || name == "note" || name.starts_with("x-");
        let Some((name, at, _)) = self.members.iter().find(|(name, ..)| !known(name)) else { return Ok(()) };
        let mut asked = self.asked.clone();
        asked.dedup();
        let hint = match nearest(name, asked.iter().copied()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None if asked.is_empty() => "it has none".to_owned(),
            None => format!("it knows {}", super::error::list(asked.iter().copied())),
        };
        Err(PlanError::new(at.start, format!("{} has an unknown member `{name}`; {hint}", self.what)))
    }
}
