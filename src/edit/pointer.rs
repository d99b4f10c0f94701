//! JSON Pointers (RFC 6901) into an exchange's entry, through the text as it stands in the file.

use std::fmt;

use super::{
    error::{EditError, Result},
    parts::{Parts, parts},
};
use crate::{
    cassette::{model::Cassette, nearest},
    wire::{Span, pointer},
};

/// More members than these are not named in an error.
const NAMED: usize = 12;

/// A place in an exchange's entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer {
    text: String,
    pub(super) steps: Vec<String>,
}

impl Pointer {
    /// Reads a pointer.
    ///
    /// # Errors
    /// When it does not begin with `/`, or has a `~` that is neither `~0` nor `~1`.
    pub fn parse(text: &str) -> Result<Self> {
        let error = |reason| EditError::Pointer { pointer: text.to_owned(), reason };
        let steps = pointer::steps(text).map_err(error)?;
        let steps = steps.map(|step| pointer::unescaped(step).into_owned()).collect();
        Ok(Self { text: text.to_owned(), steps })
    }

    /// What of this pointer is there below `root`: the value at each step, the root's first.
    pub(super) fn trail(&self, text: &[u8], root: Span) -> Vec<Span> {
        let mut trail = vec![root];
        for step in &self.steps {
            let here = trail[trail.len() - 1];
            match parts(text, here).and_then(|parts| parts.find(text, step).map(|at| parts.list[at].value)) {
                Some(value) => trail.push(value),
                None => break,
            }
        }
        trail
    }

    /// There is nothing at this pointer: what is there of it.
    #[cold]
    pub(super) fn nothing(&self, cassette: &Cassette, exchange: usize, trail: &[Span]) -> EditError {
        let text = &cassette.text;
        let depth = trail.len() - 1;
        let here = trail[depth];
        let place = match depth {
            0 => "the exchange".to_owned(),
            _ => format!("`/{}`", self.text.split('/').skip(1).take(depth).collect::<Vec<_>>().join("/")),
        };
        let mut meant = String::new();
        let there = match parts(text, here) {
            Some(parts @ Parts { is_object: true, .. }) => {
                let names: Vec<_> = parts.list.iter().filter_map(|part| part.name(text)).collect();
                let missing = self.steps.get(depth).map_or("", String::as_str);
                if let Some(name) = nearest(missing, names.iter().map(|name| &**name)) {
                    meant = format!("; did you mean `{name}`?");
                }
                let shown: Vec<_> = names.iter().take(NAMED).map(|name| format!("`{name}`")).collect();
                match (shown.is_empty(), names.len() > NAMED) {
                    (true, _) => "is an empty object".to_owned(),
                    (_, true) => format!("has {} and {} more", shown.join(", "), names.len() - NAMED),
                    _ => format!("has {}", shown.join(", ")),
                }
            }
            Some(parts) => match parts.list.len() {
                0 => "is an empty array".to_owned(),
                1 => "is an array with 1 element, `0`".to_owned(),
                count => format!("is an array with {count} elements, `0` to `{}`", count - 1),
            },
            None if text[here.start] == b'"' => "is a string".to_owned(),
            None => format!("is `{}`", String::from_utf8_lossy(here.of(text))),
        };
        let key = cassette.exchanges[exchange].key.to_string();
        EditError::NoPlace { key, pointer: self.text.clone(), place, there, meant }
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_those_of_rfc_6901() {
        let text = br#"{"a/b":{"m~n":[1,{"~1":"x"}]},"":2}"#;
        let at = |pointer: &str| {
            let pointer = Pointer::parse(pointer).unwrap();
            let trail = pointer.trail(text, Span::new(0, text.len()));
            (trail.len() > pointer.steps.len()).then(|| trail[trail.len() - 1].of(text))
        };
        assert_eq!(at("/a~1b/m~0n/1/~01"), Some(&b"\"x\""[..]));
        assert_eq!(at("/"), Some(&b"2"[..]));
        for nothing in ["/a~1b/m~0n/01", "/a~1b/m~0n/2", "/a~1b/m~0n/-", "/a/b", "/a~1b/m~0n/0/0"] {
            assert_eq!(at(nothing), None, "{nothing}");
        }
        for wrong in ["", "a", "#/a", "/~", "/~2"] {
            assert!(Pointer::parse(wrong).is_err(), "{wrong}");
        }
    }
}
