//! Adding elements to a document's arrays and members to the document, every other byte left as it is.

use std::io::{self, Write};

use crate::{
    cassette::model::Place,
    wire::{Span, scan},
};

/// No line of a document is longer unless a single string is.
const COLUMNS: usize = 100;

/// What an element of one of the arrays begins with.
const INDENT: &[u8] = b"    ";

/// One of the document's arrays as it will be.
pub(super) struct Array<'a> {
    pub(super) name: &'static str,
    /// Where it stands; none where it is missing.
    pub(super) place: Option<Place>,
    /// The elements that stay.
    pub(super) stay: Vec<Place>,
    /// Whether all do.
    pub(super) all_stay: bool,
    /// Gives the next element that is added: indentation and text. False behind the last.
    pub(super) next: &'a mut dyn FnMut(&mut Vec<u8>) -> io::Result<bool>,
}

/// The document with its arrays replaced.
pub(super) fn write(text: &[u8], mut arrays: [Array<'_>; 2], out: &mut dyn Write) -> io::Result<()> {
    // An array that is missing goes behind the last member; a file may have them in any order.
    arrays.sort_by_cached_key(|array| array.place.map_or(u32::MAX, |place| place.start));
    let mut written = 0;
    for array in arrays {
        written = array.write(text, written, out)?;
    }
    out.write_all(&text[written..])
}

impl Array<'_> {
    /// Writes the document from `written` on to the end of this array; where that is.
    fn write(self, text: &[u8], written: usize, out: &mut dyn Write) -> io::Result<usize> {
        let last = self.stay.last().map(|place| place.end as usize);
        if let (Some(place), Some(last)) = (self.place, last)
            && self.all_stay
            && begins_a_line(text, place)
        {
            out.write_all(&text[written..last])?;
            let mut element = Vec::new();
            while (self.next)(&mut element)? {
                out.write_all(b",\n")?;
                out.write_all(&element)?;
                element.clear();
            }
            return Ok(last);
        }
        let resumes = match self.place {
            Some(place) => {
                out.write_all(&text[written..place.start as usize])?;
                place.end as usize
            }
            None => {
                let end = last_member(text);
                out.write_all(&text[written.min(end)..end])?;
                out.write_all(format!(",\n  \"{}\": ", self.name).as_bytes())?;
                end.max(written)
            }
        };
        self.write_whole(text, out)?;
        Ok(resumes)
    }

    fn write_whole(mut self, text: &[u8], out: &mut dyn Write) -> io::Result<()> {
        let mut stay = std::mem::take(&mut self.stay).into_iter();
        let mut next = |element: &mut Vec<u8>| match stay.next() {
            Some(place) => {
                element.extend_from_slice(INDENT);
                element.extend_from_slice(place.span().of(text));
                Ok(true)
            }
            None => (self.next)(element),
        };
        let mut element = Vec::new();
        let mut separator: &[u8] = b"\n";
        out.write_all(b"[")?;
        while next(&mut element)? {
            out.write_all(separator)?;
            out.write_all(&element)?;
            element.clear();
            separator = b",\n";
        }
        out.write_all(if separator == b"\n" { b"]" } else { b"\n  ]" })
    }
}

/// How many columns a text takes.
fn columns(text: &[u8]) -> usize {
    text.iter().filter(|byte| **byte & 0xc0 != 0x80).count()
}

/// Whether an array's first element stands on a line of its own, as it does where arrays are long.
fn begins_a_line(text: &[u8], array: Place) -> bool {
    let inside = array.start as usize + 1;
    text[inside..scan::skip_space(text, inside)].contains(&b'\n')
}

/// Offset behind the last member of the document.
fn last_member(text: &[u8]) -> usize {
    let start = scan::trim(text).start;
    scan::members(text, start).map_while(Result::ok).last().map_or(start + 1, |member| member.value.end)
}

/// The document of a cassette without sessions.
pub const EMPTY: &[u8] = b"{\n  \"cassette\": 1,\n  \"sessions\": [],\n  \"exchanges\": []\n}\n";

/// The document with these names among its `vars`, and with `"redacted": false` where some of it is not; none where
/// it says so already.
pub fn with_members(text: &[u8], vars: &[&str], is_redacted: bool) -> Option<Vec<u8>> {
    let mut edited = None;
    if !is_redacted {
        let is_said = |value: Span| value.of(text) == b"false";
        edited = set_member(text, "redacted", &["note", "cassette"], is_said, |_| b"false".to_vec());
    }
    let text = edited.as_deref().unwrap_or(text);
    let missing = |value: Span| {
        let known = |name: &str| {
            let mut names = scan::elements(text, value.start).map_while(Result::ok);
            names.any(|known| scan::string_is(known.of(text), name))
        };
        vars.iter().copied().filter(|name| !known(name)).collect::<Vec<_>>()
    };
    let nothing = Span::new(text.len(), text.len());
    if missing(nothing).is_empty() {
        return edited;
    }
    let names = |value: Option<Span>| {
        let value = value.unwrap_or(nothing);
        let known =
            scan::elements(text, value.start).map_while(Result::ok).map(|name| name.of(text).to_vec());
        let added = missing(value).into_iter().map(|name| {
            let mut raw = Vec::new();
            scan::push_string(name, &mut raw);
            raw
        });
        string_array(&known.chain(added).collect::<Vec<_>>())
    };
    let is_said = |value: Span| missing(value).is_empty();
    set_member(text, "vars", &["redacted", "note", "cassette"], is_said, names).or(edited)
}

fn string_array(names: &[Vec<u8>]) -> Vec<u8> {
    let line = names.join(&b", "[..]);
    if columns(&line) + "  \"vars\": [],".len() <= COLUMNS {
        return [b"[", &line[..], b"]"].concat();
    }
    [b"[\n    ", &names.join(&b",\n    "[..])[..], b"\n  ]"].concat()
}

/// Gives a member of the document a value, made from the one it has. One that is missing goes behind the first of
/// the others that is there. None where `is_said` of the value it has.
fn set_member(
    text: &[u8],
    name: &str,
    behind: &[&str],
    is_said: impl Fn(Span) -> bool,
    value: impl Fn(Option<Span>) -> Vec<u8>,
) -> Option<Vec<u8>> {
    let start = scan::trim(text).start;
    let member = |name: &str| scan::member(text, start, name);
    if let Some(found) = member(name) {
        let replaced = || [&text[..found.start], &value(Some(found)), &text[found.end..]].concat();
        return (!is_said(found)).then(replaced);
    }
    let at = behind.iter().find_map(|name| member(name)).map_or(start + 1, |value| value.end);
    let begins = format!(",\n  \"{name}\": ");
    Some([&text[..at], begins.as_bytes(), &value(None), &text[at..]].concat())
}
