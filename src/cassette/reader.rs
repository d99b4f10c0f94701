//! A strict JSON cursor over a cassette's text, which notes markers as it goes.
//!
//! The loader walks our own members with it and skips payloads; the expander asks it where a payload's markers
//! stand. Nesting is a stack of its own, never the program's.

use super::error::{LoadError, LoadErrorKind, Result};
use crate::wire::{Span, scan};

/// Checks that a text is one value of strict JSON, as the file holds them.
///
/// # Errors
/// With the place of the first thing that is wrong.
pub fn check_json(text: &[u8]) -> Result<()> {
    if let Err(error) = std::str::from_utf8(text) {
        return Err(LoadError::new(error.valid_up_to(), LoadErrorKind::NotUtf8).locate(text));
    }
    let mut reader = Reader::new(text, scan::trim(text).start);
    let checked = reader.value().and_then(|_| match reader.peek() {
        0 if reader.at >= text.len() => Ok(()),
        _ => Err(LoadError::syntax(text, reader.at, "the end of the text")),
    });
    checked.map_err(|error| error.locate(text))
}

/// The marker an object is, by its member's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marker {
    /// `{"$lines": ["…", …]}`: a text, split at its `\n` escapes.
    Lines,
    /// `{"$json": …}`: a text that is JSON, with `$indent` where it is not compact.
    Json,
    /// `{"$blob": "…"}`: a text that stands in a file.
    Blob,
    /// `{"$literal": …}`: the value itself, no marker read inside.
    Literal,
}

impl Marker {
    const ALL: [Self; 4] = [Self::Lines, Self::Json, Self::Blob, Self::Literal];

    /// The member's name.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Lines => "$lines",
            Self::Json => "$json",
            Self::Blob => "$blob",
            Self::Literal => "$literal",
        }
    }
}

/// An object that is a marker, and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MarkerAt {
    pub(super) marker: Marker,
    /// The whole object.
    pub(super) span: Span,
    /// The value of the member that makes it a marker.
    pub(super) value: Span,
    /// The value of `$indent`.
    pub(super) indent: Option<Span>,
}

/// An open object that began like a marker.
#[derive(Debug)]
struct Candidate {
    depth: usize,
    start: usize,
    marker: Option<(Marker, Span)>,
    indent: Option<Span>,
    /// What the member being read is.
    reading: Member,
}

/// A member of an object that may be a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Member {
    Marker(Marker),
    Indent,
    Other,
}

/// The cursor.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    pub(super) text: &'a [u8],
    pub(super) at: usize,
    /// Markers of the payload read last, ordered by their starts.
    pub(super) markers: Vec<MarkerAt>,
    /// One entry for each container open inside the payload being read: true for an object.
    open: Vec<bool>,
    candidates: Vec<Candidate>,
}

impl<'a> Reader<'a> {
    pub(super) const fn new(text: &'a [u8], at: usize) -> Self {
        Self { text, at, markers: Vec::new(), open: Vec::new(), candidates: Vec::new() }
    }

    pub(super) fn skip_space(&mut self) {
        self.at = skip_space(self.text, self.at);
    }

    /// The byte the cursor stands on after white space; 0 at the end.
    pub(super) fn peek(&mut self) -> u8 {
        self.skip_space();
        self.text.get(self.at).copied().unwrap_or(0)
    }

    pub(super) fn expect(&mut self, byte: u8, expected: &'static str) -> Result<()> {
        if self.peek() != byte {
            return Err(LoadError::syntax(self.text, self.at, expected));
        }
        self.at += 1;
        Ok(())
    }

    /// Steps to the next member of an object of ours: its name, quotes included; none behind its end.
    pub(super) fn member(&mut self, first: &mut bool) -> Result<Option<Span>> {
        if !self.begins_member(first)? {
            return Ok(None);
        }
        let name = self.name()?;
        self.skip_space();
        Ok(Some(name))
    }

    /// Steps to the name of the next member of an object of ours; false behind the object's end.
    pub(super) fn begins_member(&mut self, first: &mut bool) -> Result<bool> {
        self.goes_on(first, b'}', "a comma or a closing brace")
    }

    /// Steps to the next element of an array of ours; false behind its end.
    pub(super) fn element(&mut self, first: &mut bool) -> Result<bool> {
        self.goes_on(first, b']', "a comma or a closing bracket")
    }

    fn goes_on(&mut self, first: &mut bool, end: u8, expected: &'static str) -> Result<bool> {
        match self.peek() {
            byte if byte == end => {
                self.at += 1;
                return Ok(false);
            }
            _ if *first => *first = false,
            b',' => {
                self.at += 1;
                self.skip_space();
            }
            _ => return Err(LoadError::syntax(self.text, self.at, expected)),
        }
        Ok(true)
    }

    /// Reads a string and gives its place, quotes included.
    pub(super) fn string(&mut self) -> Result<Span> {
        let start = self.at;
        if self.text.get(start) != Some(&b'"') {
            return Err(LoadError::syntax(self.text, start, "a string"));
        }
        let mut at = start + 1;
        loop {
            at = plain_run(self.text, at);
            match self.text.get(at) {
                Some(b'"') => {
                    self.at = at + 1;
                    return Ok(Span::new(start, self.at));
                }
                Some(b'\\') => at += self.escape(at)?,
                Some(_) => return Err(LoadError::syntax(self.text, at, "no control characters in a string")),
                None => return Err(LoadError::syntax(self.text, at, "a closing quote")),
            }
        }
    }

    /// The length of the escape at `at`.
    fn escape(&self, at: usize) -> Result<usize> {
        match self.text.get(at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(2),
            Some(b'u')
                if self.text.get(at + 2..at + 6).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)) =>
            {
                Ok(6)
            }
            _ => Err(LoadError::syntax(self.text, at, "an escape that JSON knows")),
        }
    }

    /// Steps over a member's name and colon.
    pub(super) fn name(&mut self) -> Result<Span> {
        if self.text.get(self.at) != Some(&b'"') {
            return Err(LoadError::syntax(self.text, self.at, "a member's name in quotes"));
        }
        let name = self.string()?;
        self.expect(b':', "a colon")?;
        Ok(name)
    }

    /// Steps over a member's name, which is known and has so many bytes, and its colon.
    pub(super) fn name_of(&mut self, length: usize) -> Result<Span> {
        let name = Span::new(self.at, self.at + length + 2);
        self.at = name.end;
        self.expect(b':', "a colon")?;
        Ok(name)
    }

    fn word(&mut self) -> Result<()> {
        let start = self.at;
        let ends = |byte: &u8| {
            matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b',' | b':' | b'"' | b'{' | b'}' | b'[' | b']')
        };
        let end = self.text[start..].iter().position(ends).map_or(self.text.len(), |length| start + length);
        let word = &self.text[start..end];
        if !matches!(word, b"true" | b"false" | b"null") && !scan::is_number(word) {
            return Err(LoadError::syntax(self.text, start, "a value"));
        }
        self.at = end;
        Ok(())
    }

    /// Reads one value of any kind and notes the markers in it.
    pub(super) fn value(&mut self) -> Result<Span> {
        self.skip_space();
        let start = self.at;
        self.markers.clear();
        self.open.clear();
        self.candidates.clear();
        loop {
            let is_closed = match self.text.get(self.at) {
                Some(b'"') => self.string().map(|_| true)?,
                Some(b'{') => self.open_object()?,
                Some(b'[') => self.open_array(),
                _ => self.word().map(|()| true)?,
            };
            if is_closed && self.close()? {
                break;
            }
        }
        if self.markers.len() > 1 {
            self.markers.sort_unstable_by_key(|marker| marker.span.start);
        }
        Ok(Span::new(start, self.at))
    }

    /// Whether the object was empty and so is closed already; otherwise the cursor stands on its first value.
    fn open_object(&mut self) -> Result<bool> {
        let start = self.at;
        self.at += 1;
        if self.peek() == b'}' {
            self.at += 1;
            return Ok(true);
        }
        self.open.push(true);
        let name = self.name()?;
        self.skip_space();
        if matches!(self.text[name.start + 1], b'$' | b'\\') {
            let reading = self.member_named(name);
            if reading != Member::Other {
                let candidate =
                    Candidate { depth: self.open.len(), start, marker: None, indent: None, reading };
                self.candidates.push(candidate.begin(self.at));
            }
        }
        Ok(false)
    }

    fn open_array(&mut self) -> bool {
        self.at += 1;
        if self.peek() == b']' {
            self.at += 1;
            return true;
        }
        self.open.push(false);
        false
    }

    /// Behind a value: closes what ends here and steps over a comma. True when the outermost value is complete.
    fn close(&mut self) -> Result<bool> {
        loop {
            let Some(&in_object) = self.open.last() else { return Ok(true) };
            let value_end = self.at;
            match self.peek() {
                b'}' if in_object => {
                    self.at += 1;
                    self.close_candidate(value_end);
                    self.open.pop();
                }
                b']' if !in_object => {
                    self.at += 1;
                    self.open.pop();
                }
                b',' => {
                    self.at += 1;
                    self.skip_space();
                    if in_object {
                        let name = self.name()?;
                        self.skip_space();
                        self.next_candidate_member(value_end, name);
                    }
                    return Ok(false);
                }
                _ if in_object => {
                    return Err(LoadError::syntax(self.text, self.at, "a comma or a closing brace"));
                }
                _ => return Err(LoadError::syntax(self.text, self.at, "a comma or a closing bracket")),
            }
        }
    }

    fn next_candidate_member(&mut self, value_end: usize, name: Span) {
        let depth = self.open.len();
        let Some(mut candidate) = self.candidates.pop_if(|candidate| candidate.depth == depth) else {
            return;
        };
        candidate.end(value_end);
        candidate.reading = self.member_named(name);
        let is_new = match candidate.reading {
            Member::Marker(_) => candidate.marker.is_none(),
            Member::Indent => candidate.indent.is_none(),
            // With any other member it is an ordinary object.
            Member::Other => false,
        };
        if is_new {
            self.candidates.push(candidate.begin(self.at));
        }
    }

    fn close_candidate(&mut self, value_end: usize) {
        let depth = self.open.len();
        let Some(mut candidate) = self.candidates.pop_if(|candidate| candidate.depth == depth) else {
            return;
        };
        candidate.end(value_end);
        if let Some((marker, value)) = candidate.marker {
            let span = Span::new(candidate.start, self.at);
            self.markers.push(MarkerAt { marker, span, value, indent: candidate.indent });
        }
    }

    fn member_named(&self, name: Span) -> Member {
        let name = name.of(self.text);
        match Marker::ALL.into_iter().find(|marker| scan::string_is(name, marker.name())) {
            Some(marker) => Member::Marker(marker),
            None if scan::string_is(name, "$indent") => Member::Indent,
            None => Member::Other,
        }
    }
}

impl Candidate {
    /// The value of the member being read begins here.
    const fn begin(mut self, at: usize) -> Self {
        let value = Span::new(at, at);
        match self.reading {
            Member::Marker(marker) => self.marker = Some((marker, value)),
            Member::Indent => self.indent = Some(value),
            Member::Other => {}
        }
        self
    }

    /// And ends here.
    const fn end(&mut self, at: usize) {
        match (self.reading, &mut self.marker, &mut self.indent) {
            (Member::Marker(_), Some((_, value)), _) | (Member::Indent, _, Some(value)) => value.end = at,
            _ => {}
        }
    }
}

/// Like [`scan::skip_space`], but quick over the indentation that a cassette is full of.
#[inline]
pub(super) fn skip_space(text: &[u8], at: usize) -> usize {
    // Most often there is none.
    match text.get(at) {
        Some(b' ' | b'\t' | b'\r' | b'\n') => skip_spaces(text, at),
        _ => at,
    }
}

/// `at` stands on white space.
fn skip_spaces(text: &[u8], mut at: usize) -> usize {
    const SPACES: u64 = ONES * b' ' as u64;
    loop {
        at += 1;
        // A line's end, and the indentation of the next.
        while let Some(chunk) = text.get(at..at + 8) {
            let others = u64::from_le_bytes(chunk.try_into().expect("eight bytes")) ^ SPACES;
            if others != 0 {
                at += others.trailing_zeros() as usize / 8;
                break;
            }
            at += 8;
        }
        if !matches!(text.get(at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            return at;
        }
    }
}

const ONES: u64 = u64::MAX / 255;

/// Offset of the first byte from `at` on that ends a run of plain string text: a quote, a backslash or a control
/// character. Eight bytes at a time, as most strings are short.
fn plain_run(text: &[u8], mut at: usize) -> usize {
    const HIGHS: u64 = ONES << 7;
    let has_zero = |word: u64| word.wrapping_sub(ONES) & !word & HIGHS;
    while let Some(chunk) = text.get(at..at + 8) {
        let word = u64::from_le_bytes(chunk.try_into().expect("eight bytes"));
        let control = word.wrapping_sub(ONES * 0x20) & !word & HIGHS;
        let stop = control | has_zero(word ^ (ONES * b'"' as u64)) | has_zero(word ^ (ONES * b'\\' as u64));
        if stop != 0 {
            // The lowest mark is exact; only marks above it may be false.
            return at + stop.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while text.get(at).is_some_and(|byte| !matches!(byte, 0..=0x1f | b'"' | b'\\')) {
        at += 1;
    }
    at
}
