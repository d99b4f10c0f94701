//! On which requests a rule acts: the selector.

use std::borrow::Cow;

use regex::Regex;

use super::{
    engine::Request,
    error::PlanError,
    value::{Object, Value},
};
use crate::{
    cassette::model,
    traffic::Direction,
    wire::{jsonrpc, pointer, scan},
};

/// A selector; what it does not name fits everything.
#[derive(Debug, Default)]
pub(super) struct When {
    pub(super) server: Option<String>,
    /// What it has in common with the selector of a match rule.
    pub(super) request: model::When,
    /// The recorded session's number.
    pub(super) session: Option<u32>,
    /// Which way that travels on which the fault acts.
    pub(super) direction: Option<Direction>,
    pub(super) tests: Vec<(String, Test)>,
}

/// What the value at a JSON Pointer must be.
#[derive(Debug)]
pub(super) enum Test {
    /// A string, number, boolean or null like this one; raw.
    Equals(Box<[u8]>),
    /// A string that this fits.
    Matches(Regex),
    /// There, or not there.
    Exists(bool),
}

impl When {
    pub(super) fn read(value: Value<'_>) -> Result<Self, PlanError> {
        let mut object = value.object("`when`")?;
        let mut when = Self::default();
        for (name, slot) in [
            ("server", &mut when.server),
            ("method", &mut when.request.method),
            ("tool", &mut when.request.tool),
            ("prompt", &mut when.request.prompt),
            ("uri", &mut when.request.uri),
            ("key", &mut when.request.key),
        ] {
            *slot = object.get(name).map(|value| value.string(name)).transpose()?.map(Cow::into_owned);
        }
        when.session = object
            .get("session")
            .map(|value| value.integer("session", "the number of a recorded session"))
            .transpose()?;
        when.direction = object.get("direction").map(direction).transpose()?;
        if let Some(tests) = object.get("where") {
            when.tests = tests_of(tests)?;
        }
        let names =
            [("tool", &when.request.tool), ("prompt", &when.request.prompt), ("uri", &when.request.uri)];
        let mut given = names.iter().filter(|(_, name)| name.is_some());
        if let (Some((first, _)), Some((second, _))) = (given.next(), given.next()) {
            let text = format!("`when` names `{first}` and `{second}`, and no request has both");
            return Err(PlanError::new(value.at(), text));
        }
        object.finish()?;
        Ok(when)
    }

    /// Whether what it says of values is so in a message.
    pub(super) fn holds(&self, message: &jsonrpc::Message<'_>) -> bool {
        self.tests.iter().all(|(pointer, test)| test.holds(message, pointer))
    }

    /// Whether it fits a request, whatever its values are.
    pub(super) fn names(&self, request: &Request<'_>) -> bool {
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        self.request.fits(request.method, request.message)
            && is(&self.request.key, request.key)
            && is(&self.server, request.server)
            && self.session.is_none_or(|session| request.session == Some(session))
    }

    /// The method of the requests that it fits, where it says so.
    pub(super) fn method(&self) -> Option<&str> {
        let model::When { method, tool, prompt, uri, .. } = &self.request;
        let of = |method, name: &Option<String>| name.as_ref().map(|_| method);
        (method.as_deref())
            .or_else(|| of("tools/call", tool))
            .or_else(|| of("prompts/get", prompt))
            .or_else(|| of("resources/read", uri))
    }

    /// What of it can be looked up in a recording.
    pub(super) fn names_something(&self) -> bool {
        let model::When { method, tool, prompt, uri, key } = &self.request;
        self.session.is_some() || [method, tool, prompt, uri, key].into_iter().any(Option::is_some)
    }
}

fn direction(value: Value<'_>) -> Result<Direction, PlanError> {
    match &*value.string("direction")? {
        "to_client" => Ok(Direction::ToClient),
        "to_server" => Ok(Direction::ToServer),
        _ => Err(value.wrong("direction", "`to_client` or `to_server`")),
    }
}

fn tests_of(value: Value<'_>) -> Result<Vec<(String, Test)>, PlanError> {
    let mut object = value.object("`where`")?;
    let mut tests = Vec::new();
    for (pointer, value) in object.all() {
        if pointer::steps(pointer).is_err() {
            let text =
                format!("`{pointer}` is no JSON Pointer into the request, such as /params/arguments/limit");
            return Err(PlanError::new(value.at(), text));
        }
        tests.push((pointer.to_owned(), Test::read(value)?));
    }
    Ok(tests)
}

impl Test {
    fn read(value: Value<'_>) -> Result<Self, PlanError> {
        if !value.is_object() {
            if value.is_array() {
                return Err(value.wrong("where", "a plain value, {\"matches\": …} or {\"exists\": …}"));
            }
            return Ok(Self::Equals(value.raw().into()));
        }
        let mut object: Object<'_> = value.object("a test of `where`")?;
        let test = match (object.get("matches"), object.get("exists")) {
            (Some(pattern), None) => {
                let text = pattern.string("matches")?;
                Self::Matches(Regex::new(&text).map_err(|error| {
                    let reason = error.to_string();
                    let reason = reason.lines().last().unwrap_or_default();
                    PlanError::new(pattern.at(), format!("`{text}` is no regular expression: {reason}"))
                })?)
            }
            (None, Some(exists)) => Self::Exists(exists.boolean("exists")?),
            _ => return Err(value.wrong("where", "a plain value, {\"matches\": …} or {\"exists\": …}")),
        };
        object.finish()?;
        Ok(test)
    }

    fn holds(&self, message: &jsonrpc::Message<'_>, pointer: &str) -> bool {
        // Where the params stand is known.
        let found = match pointer.strip_prefix("/params") {
            Some(below) if below.is_empty() || below.starts_with('/') => message.param(below),
            _ => {
                let found = scan::pointer(message.bytes, scan::trim(message.bytes), pointer);
                found.map(|span| span.of(message.bytes))
            }
        };
        match (self, found) {
            (Self::Exists(exists), found) => found.is_some() == *exists,
            (_, None) => false,
            (Self::Equals(wanted), Some(found)) => equal(wanted, found),
            (Self::Matches(pattern), Some(found)) => {
                found.first() == Some(&b'"') && pattern.is_match(&jsonrpc::text(found))
            }
        }
    }
}

/// Whether two plain values are equal: strings by their text, numbers by their worth.
fn equal(wanted: &[u8], found: &[u8]) -> bool {
    let number = |raw: &[u8]| std::str::from_utf8(raw).ok().and_then(|text| text.parse::<f64>().ok());
    match (wanted.first(), found.first()) {
        (Some(b'"'), Some(b'"')) => scan::unescape(wanted) == scan::unescape(found),
        (Some(b'"'), _) | (_, Some(b'"')) => false,
        _ => wanted == found || number(wanted).is_some_and(|wanted| Some(wanted) == number(found)),
    }
}
