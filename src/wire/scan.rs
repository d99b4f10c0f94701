//! A tolerant JSON scanner that yields places instead of values.
//!
//! It accepts everything JSON's grammar allows, at any depth, and also what peers send although the grammar does
//! not allow it: bare words such as `NaN`, bytes that are not UTF-8, raw control characters in strings, repeated
//! names. [`is_json`] is the strict question. Nothing recurses: nesting is counted, not followed.

mod decimal;
mod lexer;
mod nesting;
mod strict;
mod string;

use memchr::{memchr, memchr2};

pub use self::{
    decimal::{integer_length, push_decimal},
    lexer::{Lexer, Token},
    nesting::Nesting,
    strict::{is_json, is_number},
    string::{Escape, escape, push_string, string_is, unescape, unescape_inside},
};
use super::{Span, pointer};

/// The text is not even loosely JSON at `at`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected} at byte {at}")]
pub struct ScanError {
    /// Offset of the byte that does not fit.
    pub at: usize,
    /// What would have fitted.
    pub expected: &'static str,
}

const fn error<T>(at: usize, expected: &'static str) -> Result<T, ScanError> {
    Err(ScanError { at, expected })
}

/// Offset of the first byte from `at` on that is no white space of JSON.
#[inline]
pub fn skip_space(text: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\t' | b'\r' | b'\n') = text.get(at) {
        at += 1;
    }
    at
}

/// The text without a UTF-8 byte order mark and white space at its edges, as a span of `text`.
pub fn trim(text: &[u8]) -> Span {
    let bom = if text.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let start = skip_space(text, bom);
    let mut end = text.len();
    while end > start && matches!(text[end - 1], b' ' | b'\t' | b'\r' | b'\n') {
        end -= 1;
    }
    Span::new(start, end)
}

/// `at` stands on an opening quote; offset behind the closing one.
///
/// # Errors
/// Where there is none.
#[inline]
pub fn skip_string(text: &[u8], at: usize) -> Result<usize, ScanError> {
    // Most strings are names that end in the first word.
    if let Some(word) = word_at(text, at + 1) {
        let found = marks(word, b'"');
        let quote = at + 1 + found.trailing_zeros() as usize / 8;
        if found != 0 && text[quote - 1] != b'\\' {
            return Ok(quote + 1);
        }
    }
    skip_longer_string(text, at)
}

#[inline(never)]
fn skip_longer_string(text: &[u8], at: usize) -> Result<usize, ScanError> {
    match first_near(text, at + 1, [b'"']) {
        Some(quote) if text[quote - 1] != b'\\' => Ok(quote + 1),
        _ => skip_long_string(text, at),
    }
}

/// As [`skip_string`]; and whether there is no escape in it.
#[inline]
fn skip_text(text: &[u8], at: usize) -> Result<(usize, bool), ScanError> {
    let found = first_near(text, at + 1, [b'"', b'\\']);
    match found.or_else(|| memchr2(b'"', b'\\', text.get(at + 1..)?).map(|found| at + 1 + found)) {
        Some(found) if text[found] == b'"' => Ok((found + 1, true)),
        _ => skip_long_string(text, at).map(|end| (end, false)),
    }
}

/// As [`skip_string`], for strings that are seldom short. Long texts are full of escapes, and few of them are quotes:
/// those before a quote are all that matters.
pub fn skip_long_string(text: &[u8], at: usize) -> Result<usize, ScanError> {
    let mut from = at + 1;
    while let Some(found) = text.get(from..).and_then(|rest| memchr(b'"', rest)) {
        let quote = from + found;
        let escapes = backslashes_at_end(&text[from..quote]);
        if escapes.is_multiple_of(2) {
            return Ok(quote + 1);
        }
        from = quote + 1;
    }
    error(text.len(), "a closing quote")
}

/// How many backslashes a text ends in.
pub fn backslashes_at_end(text: &[u8]) -> usize {
    text.iter().rev().take_while(|byte| **byte == b'\\').count()
}

/// Offset of the first of these bytes from `at` on, if it stands near. Most strings are names and end soon: a search
/// made for long texts would take longer to begin than to find.
#[inline]
fn first_near<const N: usize>(text: &[u8], at: usize, bytes: [u8; N]) -> Option<usize> {
    let mut from = at;
    for _ in 0..8 {
        let word = word_at(text, from)?;
        let found = bytes.iter().fold(0, |found, byte| found | marks(word, *byte));
        if found != 0 {
            return Some(from + found.trailing_zeros() as usize / 8);
        }
        from += 8;
    }
    None
}

/// Offset of the first backslash.
#[inline]
fn escape_in(inside: &[u8]) -> Option<usize> {
    let mut from = 0;
    while from < 32 {
        let Some(word) = word_at(inside, from) else {
            return inside[from..].iter().position(|byte| *byte == b'\\').map(|found| from + found);
        };
        match marks(word, b'\\') {
            0 => from += 8,
            found => return Some(from + found.trailing_zeros() as usize / 8),
        }
    }
    memchr::memchr(b'\\', &inside[from..]).map(|found| from + found)
}

const ONES: u64 = u64::MAX / 255;

/// Eight bytes of the text as a word, the first one lowest.
#[inline]
fn word_at(text: &[u8], at: usize) -> Option<u64> {
    text.get(at..at + 8).map(|chunk| u64::from_le_bytes(chunk.try_into().expect("eight bytes")))
}

/// The high bit of each byte of a word that is `byte`. The lowest mark is exact; only marks above it may be false.
const fn marks(word: u64, byte: u8) -> u64 {
    let word = word ^ (ONES * byte as u64);
    word.wrapping_sub(ONES) & !word & (ONES << 7)
}

const fn ends_word(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b',' | b':' | b'"' | b'{' | b'}' | b'[' | b']')
}

/// `at` stands on the first byte of a number or bare word; offset behind it.
fn skip_word(text: &[u8], at: usize) -> usize {
    let mut end = at;
    while end < text.len() && !ends_word(text[end]) {
        end += 1;
    }
    end
}

/// `at` stands on the first byte of a value (no white space); offset behind the value.
///
/// # Errors
/// When no value begins there, or when it does not end.
#[inline]
pub fn skip_value(text: &[u8], at: usize) -> Result<usize, ScanError> {
    match text.get(at) {
        None => error(at, "a value"),
        Some(b'"') => skip_string(text, at),
        Some(b'{' | b'[') => skip_container(text, at),
        Some(_) => match skip_word(text, at) {
            end if end == at => error(at, "a value"),
            end => Ok(end),
        },
    }
}

/// `at` stands on an opening bracket; offset behind the one that closes it.
#[inline(never)]
fn skip_container(text: &[u8], at: usize) -> Result<usize, ScanError> {
    let (mut depth, mut from) = (0usize, at);
    loop {
        match text.get(from) {
            None => return error(text.len(), "a closing bracket"),
            Some(b'"') => {
                from = skip_string(text, from)?;
                continue;
            }
            Some(b'{' | b'[') => depth += 1,
            Some(b'}' | b']') => {
                depth -= 1;
                if depth == 0 {
                    return Ok(from + 1);
                }
            }
            Some(_) => {}
        }
        from += 1;
    }
}

/// One member of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// The name, quotes included.
    pub name: Span,
    /// The value, without white space around it.
    pub value: Span,
}

/// The members of the object that begins at `at` (on its brace), in order; spans count from the start of `text`.
pub fn members(text: &[u8], at: usize) -> Members<'_> {
    Members { text, at, state: State::First }
}

/// The elements of the array that begins at `at` (on its bracket), in order.
pub fn elements(text: &[u8], at: usize) -> Elements<'_> {
    Elements { text, at, state: State::First }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    First,
    Next,
    Done,
}

/// Iterator made by [`members`]. After an error it ends.
pub struct Members<'a> {
    text: &'a [u8],
    at: usize,
    state: State,
}

impl Members<'_> {
    /// Offset behind what was read: behind the closing brace, once the iterator has ended without error, and where a value
    /// begins whose name was read.
    pub const fn end(&self) -> usize {
        self.at
    }

    /// The next member, for whoever reads no further than to the end or an error.
    ///
    /// # Errors
    /// Where the object does not go on as one.
    // A member is many words, and who reads all messages by this does it in one place.
    #[inline(always)]
    pub fn try_next(&mut self) -> Result<Option<Member>, ScanError> {
        let Some(name) = self.try_name()? else { return Ok(None) };
        Ok(Some(Member { name, value: self.try_value()? }))
    }

    /// The name of the next member, whose value is not read: [`Self::try_value`] does that, and nothing else comes next.
    ///
    /// # Errors
    /// Where the object does not go on as one.
    #[inline(always)]
    pub fn try_name(&mut self) -> Result<Option<Span>, ScanError> {
        let open = [b'{', b','][usize::from(self.state == State::Next)];
        let mut at = skip_space(self.text, self.at);
        if self.state == State::Next && self.text.get(at) == Some(&b'}') {
            self.at = at + 1;
            return Ok(None);
        }
        if self.text.get(at) != Some(&open) {
            return error(at, if open == b'{' { "an object" } else { "a comma or a closing brace" });
        }
        at = skip_space(self.text, at + 1);
        if self.state == State::First && self.text.get(at) == Some(&b'}') {
            self.at = at + 1;
            return Ok(None);
        }
        if self.text.get(at) != Some(&b'"') {
            return error(at, "a member's name in quotes");
        }
        let name = Span::new(at, skip_string(self.text, at)?);
        at = skip_space(self.text, name.end);
        if self.text.get(at) != Some(&b':') {
            return error(at, "a colon");
        }
        self.at = skip_space(self.text, at + 1);
        Ok(Some(name))
    }

    /// The value of the member whose name was read last.
    ///
    /// # Errors
    /// Where there is none.
    #[inline(always)]
    pub fn try_value(&mut self) -> Result<Span, ScanError> {
        let value = Span::new(self.at, skip_value(self.text, self.at)?);
        Ok(self.skip_to(value))
    }

    /// The same where it is known by its place already.
    #[inline(always)]
    pub const fn skip_to(&mut self, value: Span) -> Span {
        self.at = value.end;
        self.state = State::Next;
        value
    }
}

impl Iterator for Members<'_> {
    type Item = Result<Member, ScanError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.state == State::Done {
            return None;
        }
        let step = self.try_next().transpose();
        if !matches!(step, Some(Ok(_))) {
            self.state = State::Done;
        }
        step
    }
}

/// Iterator made by [`elements`]. After an error it ends.
pub struct Elements<'a> {
    text: &'a [u8],
    at: usize,
    state: State,
}

impl Elements<'_> {
    fn step(&mut self) -> Result<Option<Span>, ScanError> {
        let open = [b'[', b','][usize::from(self.state == State::Next)];
        let mut at = skip_space(self.text, self.at);
        if self.state == State::Next && self.text.get(at) == Some(&b']') {
            self.at = at + 1;
            return Ok(None);
        }
        if self.text.get(at) != Some(&open) {
            return error(at, if open == b'[' { "an array" } else { "a comma or a closing bracket" });
        }
        at = skip_space(self.text, at + 1);
        if self.state == State::First && self.text.get(at) == Some(&b']') {
            self.at = at + 1;
            return Ok(None);
        }
        let value = Span::new(at, skip_value(self.text, at)?);
        self.at = value.end;
        self.state = State::Next;
        Ok(Some(value))
    }
}

impl Iterator for Elements<'_> {
    type Item = Result<Span, ScanError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.state == State::Done {
            return None;
        }
        let step = self.step().transpose();
        if !matches!(step, Some(Ok(_))) {
            self.state = State::Done;
        }
        step
    }
}

/// The value of the last member called `name` of the object that begins at `at`: where a name stands twice, the
/// last one counts, as it does for the JSON parsers of every SDK.
pub fn member(text: &[u8], at: usize, name: &str) -> Option<Span> {
    let mut found = None;
    for member in members(text, at) {
        let Ok(member) = member else { break };
        if string_is(member.name.of(text), name) {
            found = Some(member.value);
        }
    }
    found
}

/// The value at a JSON Pointer (RFC 6901) below the value at `root`; `""` is the value itself.
pub fn pointer(text: &[u8], root: Span, pointer: &str) -> Option<Span> {
    let mut here = root;
    for step in pointer.split('/').skip(1) {
        here = match text.get(here.start) {
            Some(b'{') => member(text, here.start, &pointer::unescaped(step))?,
            Some(b'[') => elements(text, here.start).nth(pointer::index(step)?)?.ok()?,
            _ => return None,
        };
    }
    Some(here)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        members(text.as_bytes(), 0)
            .map(|m| m.map(|m| String::from_utf8_lossy(m.name.of(text.as_bytes())).into_owned()))
            .collect::<Result<_, _>>()
            .unwrap_or_else(|error| vec![error.to_string()])
    }

    #[test]
    fn members_are_found_whatever_stands_in_them() {
        assert_eq!(names(r#"{}"#), [] as [&str; 0]);
        assert_eq!(names(r#"{ "a" : NaN , "b":{"}":[1,"]"]}, "a":-Infinity }"#), ["\"a\"", "\"b\"", "\"a\""]);
        assert_eq!(names(r#"{"a":1,}"#), ["expected a member's name in quotes at byte 7"]);
        assert_eq!(names(r#"{not json}"#), ["expected a member's name in quotes at byte 1"]);
    }

    #[test]
    fn a_repeated_name_counts_last() {
        let text = br#"{"n":1,"N":2,"n":3}"#;
        assert_eq!(member(text, 0, "n").map(|span| span.of(text)), Some(&b"3"[..]));
    }

    #[test]
    fn pointers_follow_rfc_6901() {
        let text = br#"{"a/b":{"m~n":[10,{"":7}]}}"#;
        let whole = Span::new(0, text.len());
        assert_eq!(pointer(text, whole, "/a~1b/m~0n/1/").map(|span| span.of(text)), Some(&b"7"[..]));
        for nothing in ["/a~1b/m~0n/2", "/a~1b/m~0n/01", "/a~1b/m~0n/+1", "/a~1b/m~0n/"] {
            assert_eq!(pointer(text, whole, nothing), None, "{nothing}");
        }
        assert_eq!(pointer(text, whole, ""), Some(whole));
    }

    #[test]
    fn a_million_levels_are_only_counted() {
        let deep = [vec![b'['; 1_000_000], vec![b']'; 1_000_000]].concat();
        assert_eq!(skip_value(&deep, 0), Ok(deep.len()));
        assert!(is_json(&deep));
        assert!(!is_json(&deep[..deep.len() - 1]));
    }

    #[test]
    fn every_cut_of_a_text_ends_in_an_error_or_a_value_and_never_a_panic() {
        let text = r#"{"a\"":[1,{"b":"\u00e9\ud83d"},NaN],"c":""}"#.as_bytes();
        for cut in 0..text.len() {
            assert!(skip_value(&text[..cut], 0).is_err(), "{cut}");
            assert!(!is_json(&text[..cut]));
            let _ = unescape(&text[..cut]);
            let _ = members(&text[..cut], 0).count();
        }
    }
}
