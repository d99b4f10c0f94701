//! Values beside each other.

use std::collections::HashSet;

use super::number::Decimal;
use crate::wire::{Span, scan};

pub(super) const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];

pub(super) fn is_of(name: &str, raw: &[u8]) -> bool {
    match raw[0] {
        b'"' => name == "string",
        b'{' => name == "object",
        b'[' => name == "array",
        b't' | b'f' => name == "boolean",
        b'n' => name == "null",
        // 1.0 and 1e3 are integers too.
        _ => {
            let is_whole = || Decimal::read(raw).is_none_or(|number| number.is_whole());
            name == "number" || (name == "integer" && is_whole())
        }
    }
}

/// The text of a string as it was on the wire; none where a placeholder may stand for a part of it, or it is no text.
pub(super) fn text(raw: &[u8]) -> Option<String> {
    let is_plain = raw[0] == b'"' && memchr::memchr(b'<', raw).is_none();
    is_plain.then(|| String::from_utf8(scan::unescape(raw).into_owned()).ok()).flatten()
}

/// A value that holds no others, in a form in which equal ones are equal.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Plain {
    Text(String),
    Number(Decimal),
    Word(Vec<u8>),
}

impl Plain {
    fn read(raw: &[u8]) -> Option<Self> {
        match raw[0] {
            b'{' | b'[' => None,
            b'"' => text(raw).map(Self::Text),
            b't' | b'f' | b'n' => Some(Self::Word(raw.to_vec())),
            _ => Decimal::read(raw).map(Self::Number),
        }
    }
}

/// Whether two values are equal; none where that is not told here.
pub(super) fn is_equal(one: &[u8], other: &[u8]) -> Option<bool> {
    let is_nested = |raw: &[u8]| matches!(raw[0], b'{' | b'[');
    if one == other && memchr::memchr(b'<', one).is_none() {
        return Some(true);
    }
    if is_nested(one) != is_nested(other) {
        return Some(false);
    }
    Some(Plain::read(one)? == Plain::read(other)?)
}

/// Whether no two elements of an array are equal; none where that is not told here.
pub(super) fn are_unique(text: &[u8], at: Span) -> Option<bool> {
    let (mut seen, mut nested, mut is_told) = (HashSet::new(), HashSet::new(), true);
    for element in scan::elements(text, at.start).map_while(Result::ok) {
        let raw = element.of(text);
        let is_new = match Plain::read(raw) {
            Some(plain) => seen.insert(plain),
            None if memchr::memchr(b'<', raw).is_some() => {
                is_told = false;
                true
            }
            None => {
                let is_new = nested.insert(raw);
                is_told &= nested.len() < 2;
                is_new
            }
        };
        if !is_new {
            return Some(false);
        }
    }
    is_told.then_some(true)
}

/// How many elements an array or members an object has.
pub(super) fn count(text: &[u8], at: Span) -> usize {
    match text[at.start] {
        b'[' => scan::elements(text, at.start).map_while(Result::ok).count(),
        _ => scan::members(text, at.start).map_while(Result::ok).count(),
    }
}
