//! A tolerant JSON scanner that yields places instead of values.
//!
//! It accepts everything JSON's grammar allows, at any depth, and also what peers send although the grammar does
//! not allow it: bare words such as `NaN`, bytes that are not UTF-8, raw control characters in strings, repeated
//! names. [`is_json`] is the strict question. Nothing recurses: nesting is counted, not followed.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

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
#[inline]
fn skip_string(text: &[u8], at: usize) -> Result<usize, ScanError> {
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

/// As [`skip_string`]. Long texts are full of escapes, and few of them are quotes: those before a quote are all that
/// matters.
fn skip_long_string(text: &[u8], at: usize) -> Result<usize, ScanError> {
    let mut from = at + 1;
    while let Some(found) = text.get(from..).and_then(|rest| memchr(b'"', rest)) {
        let quote = from + found;
        let escapes = text[from..quote].iter().rev().take_while(|byte| **byte == b'\\').count();
        if escapes.is_multiple_of(2) {
            return Ok(quote + 1);
        }
        from = quote + 1;
    }
    error(text.len(), "a closing quote")
}

/// Offset of the first of these bytes from `at` on, if it stands near. Most strings are names and end soon: a search
/// made for long texts would take longer to begin than to find.
#[inline]
fn first_near<const N: usize>(text: &[u8], at: usize, bytes: [u8; N]) -> Option<usize> {
    let mut from = at;
    for _ in 0..4 {
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

/// Offset of the first quote, brace or bracket from `at` on; eight bytes at a time, as most payloads are full of
/// other things.
fn next_structural(text: &[u8], mut at: usize) -> usize {
    while let Some(word) = word_at(text, at) {
        // Brackets differ from braces by one bit.
        let folded = word | (ONES * 0x20);
        let found = marks(word, b'"') | marks(folded, b'{') | marks(folded, b'}');
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while text.get(at).is_some_and(|byte| !matches!(byte, b'"' | b'{' | b'}' | b'[' | b']')) {
        at += 1;
    }
    at
}

/// `at` stands on the first byte of a value (no white space); offset behind the value.
///
/// # Errors
/// When no value begins there, or when it does not end.
pub fn skip_value(text: &[u8], at: usize) -> Result<usize, ScanError> {
    match text.get(at) {
        None => error(at, "a value"),
        Some(b'"') => skip_string(text, at),
        Some(b'{' | b'[') => {
            let (mut depth, mut from) = (0usize, at);
            loop {
                from = next_structural(text, from);
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
        Some(_) => match skip_word(text, at) {
            end if end == at => error(at, "a value"),
            end => Ok(end),
        },
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
    /// Offset behind the closing brace, once the iterator has ended without error.
    pub const fn end(&self) -> usize {
        self.at
    }

    fn step(&mut self) -> Result<Option<Member>, ScanError> {
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
        at = skip_space(self.text, at + 1);
        let value = Span::new(at, skip_value(self.text, at)?);
        self.at = value.end;
        self.state = State::Next;
        Ok(Some(Member { name, value }))
    }
}

impl Iterator for Members<'_> {
    type Item = Result<Member, ScanError>;

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
        let name = pointer::unescaped(step);
        here = match text.get(here.start) {
            Some(b'{') => member(text, here.start, &name)?,
            Some(b'[') => elements(text, here.start).nth(name.parse().ok()?)?.ok()?,
            _ => return None,
        };
    }
    Some(here)
}

/// What one step of a [`Lexer`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// `{`
    ObjectStart,
    /// `}`
    ObjectEnd,
    /// `[`
    ArrayStart,
    /// `]`
    ArrayEnd,
    /// A member's name, quotes included in the span.
    Name,
    /// A string value, quotes included in the span.
    String,
    /// A number, `true`, `false`, `null`, or a bare word that JSON does not know.
    Word,
}

/// Walks one value token by token, with its nesting on a stack of bits; commas and colons are checked, not given.
#[derive(Clone, Debug)]
pub struct Lexer<'a> {
    text: &'a [u8],
    at: usize,
    open: Open,
    expects: Expects,
    /// The string or name read last has no escape in it.
    is_plain: bool,
}

/// The open containers: a bit for each, set for an object. The innermost ones are at hand, so that most values are
/// walked without any room of their own.
#[derive(Clone, Debug)]
struct Open {
    depth: usize,
    /// The lowest bit is the innermost container's.
    inner: u64,
    /// What has no room there, in full words.
    outer: Vec<u64>,
}

impl Open {
    fn push(&mut self, is_object: bool) {
        if self.depth > 0 && self.depth.is_multiple_of(64) {
            self.outer.push(self.inner);
        }
        self.inner = self.inner << 1 | u64::from(is_object);
        self.depth += 1;
    }

    fn pop(&mut self) {
        self.depth -= 1;
        self.inner >>= 1;
        if self.depth.is_multiple_of(64) {
            self.inner = self.outer.pop().unwrap_or_default();
        }
    }

    const fn is_in_object(&self) -> bool {
        self.depth > 0 && self.inner & 1 == 1
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expects {
    Value,
    /// After `{`: a name or the end. After `[`: a value or the end.
    FirstOrEnd,
    CommaOrEnd,
    Done,
}

impl<'a> Lexer<'a> {
    /// Reads the value that begins at or after `at`.
    pub const fn new(text: &'a [u8], at: usize) -> Self {
        let open = Open { depth: 0, inner: 0, outer: Vec::new() };
        Self { text, at, open, expects: Expects::Value, is_plain: true }
    }

    /// How many containers are open.
    pub const fn depth(&self) -> usize {
        self.open.depth
    }

    /// Offset behind what has been read.
    pub const fn at(&self) -> usize {
        self.at
    }

    /// The next token with its place, or `None` behind the value.
    ///
    /// # Errors
    /// When the text does not go on as loosely as JSON does.
    #[inline]
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator of results would hide that an error is final"
    )]
    pub fn next(&mut self) -> Result<Option<(Token, Span)>, ScanError> {
        if self.expects == Expects::Done {
            return Ok(None);
        }
        let mut at = skip_space(self.text, self.at);
        let in_object = self.open.is_in_object();
        let close = if in_object { b'}' } else { b']' };
        let first = self.expects == Expects::FirstOrEnd;
        if self.expects != Expects::Value {
            if self.text.get(at) == Some(&close) {
                self.open.pop();
                self.after_value(at + 1);
                let token = if in_object { Token::ObjectEnd } else { Token::ArrayEnd };
                return Ok(Some((token, Span::new(at, at + 1))));
            }
            if !first {
                if self.text.get(at) != Some(&b',') {
                    return error(
                        at,
                        if in_object { "a comma or a closing brace" } else { "a comma or a closing bracket" },
                    );
                }
                at = skip_space(self.text, at + 1);
            }
            if in_object {
                return self.name(at).map(Some);
            }
        }
        let token = match self.text.get(at) {
            Some(b'{') => Token::ObjectStart,
            Some(b'[') => Token::ArrayStart,
            Some(b'"') => Token::String,
            Some(_) => Token::Word,
            None => return error(at, "a value"),
        };
        if matches!(token, Token::ObjectStart | Token::ArrayStart) {
            self.open.push(token == Token::ObjectStart);
            self.expects = Expects::FirstOrEnd;
            self.at = at + 1;
            return Ok(Some((token, Span::new(at, at + 1))));
        }
        let end = match token {
            Token::String => self.skip_text(at)?,
            _ => skip_value(self.text, at)?,
        };
        self.after_value(end);
        Ok(Some((token, Span::new(at, end))))
    }

    /// The text of the string or name that was read last, which stands at `span`: as [`unescape`] has it.
    #[inline]
    pub fn string(&self, span: Span) -> Cow<'a, [u8]> {
        match self.is_plain {
            true => Cow::Borrowed(&self.text[span.start + 1..span.end - 1]),
            false => unescape(span.of(self.text)),
        }
    }

    #[inline]
    fn skip_text(&mut self, at: usize) -> Result<usize, ScanError> {
        let (end, is_plain) = skip_text(self.text, at)?;
        self.is_plain = is_plain;
        Ok(end)
    }

    /// Reads over the whole value that comes next.
    ///
    /// # Errors
    /// As [`Lexer::next`].
    pub fn skip(&mut self) -> Result<(), ScanError> {
        let outside = self.depth();
        loop {
            let read = self.next()?;
            if self.depth() <= outside || read.is_none() {
                return Ok(());
            }
        }
    }

    fn name(&mut self, at: usize) -> Result<(Token, Span), ScanError> {
        if self.text.get(at) != Some(&b'"') {
            return error(at, "a member's name in quotes");
        }
        let span = Span::new(at, self.skip_text(at)?);
        let colon = skip_space(self.text, span.end);
        if self.text.get(colon) != Some(&b':') {
            return error(colon, "a colon");
        }
        self.at = colon + 1;
        self.expects = Expects::Value;
        Ok((Token::Name, span))
    }

    #[inline]
    fn after_value(&mut self, at: usize) {
        self.at = at;
        self.expects = if self.depth() == 0 { Expects::Done } else { Expects::CommaOrEnd };
    }
}

/// Whether the whole text is one value of strict JSON (RFC 8259): UTF-8, known words, well-formed numbers and
/// escapes. Lone surrogate escapes, repeated names and numbers of any size are allowed by its grammar.
pub fn is_json(text: &[u8]) -> bool {
    if std::str::from_utf8(text).is_err() {
        return false;
    }
    let mut lexer = Lexer::new(text, 0);
    loop {
        match lexer.next() {
            Err(_) => return false,
            Ok(None) => return skip_space(text, lexer.at()) == text.len(),
            Ok(Some((Token::Name | Token::String, span))) if !is_string(span.of(text)) => return false,
            Ok(Some((Token::Word, span))) if !is_word(span.of(text)) => return false,
            Ok(Some(_)) => {}
        }
    }
}

fn is_word(word: &[u8]) -> bool {
    matches!(word, b"true" | b"false" | b"null") || is_number(word)
}

/// Whether the text is a number by JSON's grammar.
pub fn is_number(word: &[u8]) -> bool {
    let digits = |from: usize| word[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let mut at = usize::from(word.first() == Some(&b'-'));
    match word.get(at) {
        Some(b'0') => at += 1,
        Some(b'1'..=b'9') => at += digits(at),
        _ => return false,
    }
    if word.get(at) == Some(&b'.') {
        let fraction = digits(at + 1);
        if fraction == 0 {
            return false;
        }
        at += 1 + fraction;
    }
    if let Some(b'e' | b'E') = word.get(at) {
        at += 1;
        if let Some(b'+' | b'-') = word.get(at) {
            at += 1;
        }
        let exponent = digits(at);
        if exponent == 0 {
            return false;
        }
        at += exponent;
    }
    at == word.len()
}

/// `raw` is a string with its quotes; whether its inside is as JSON wants it.
fn is_string(raw: &[u8]) -> bool {
    let inside = &raw[1..raw.len() - 1];
    let mut at = 0;
    while at < inside.len() {
        match inside[at] {
            0..=0x1f => return false,
            b'\\' => match inside.get(at + 1) {
                Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => at += 2,
                Some(b'u') if hex4(inside, at + 2).is_some() => at += 6,
                _ => return false,
            },
            _ => at += 1,
        }
    }
    true
}

fn hex4(text: &[u8], at: usize) -> Option<u32> {
    let mut code = 0;
    for &digit in text.get(at..at + 4)? {
        code = code * 16 + (digit as char).to_digit(16)?;
    }
    Some(code)
}

/// One escape, and what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Escape {
    /// How many bytes it is spelled with.
    pub length: usize,
    bytes: [u8; 4],
    count: usize,
}

impl Escape {
    const fn byte(length: usize, byte: u8) -> Self {
        Self { length, bytes: [byte, 0, 0, 0], count: 1 }
    }

    fn char(length: usize, char: char) -> Self {
        let mut bytes = [0; 4];
        let count = char.encode_utf8(&mut bytes).len();
        Self { length, bytes, count }
    }

    /// The bytes of the character it says.
    pub fn text(&self) -> &[u8] {
        &self.bytes[..self.count]
    }
}

/// The escape that a text begins with; `text[0]` is its backslash.
///
/// A lone surrogate becomes its three bytes of generalized UTF-8. An escape JSON does not know is its backslash.
pub fn escape(text: &[u8]) -> Escape {
    match text.get(1) {
        Some(b'b') => Escape::byte(2, 8),
        Some(b'f') => Escape::byte(2, 12),
        Some(b'n') => Escape::byte(2, b'\n'),
        Some(b'r') => Escape::byte(2, b'\r'),
        Some(b't') => Escape::byte(2, b'\t'),
        Some(&byte @ (b'"' | b'\\' | b'/')) => Escape::byte(2, byte),
        Some(b'u') => hex4(text, 2).map_or(Escape::byte(1, b'\\'), |unit| code_unit(text, unit)),
        _ => Escape::byte(1, b'\\'),
    }
}

/// The character of the `\uXXXX` that a text begins with, pairing surrogates.
fn code_unit(text: &[u8], unit: u32) -> Escape {
    if (0xd800..0xdc00).contains(&unit)
        && text.get(6..8) == Some(b"\\u")
        && let Some(low) = hex4(text, 8)
        && (0xdc00..0xe000).contains(&low)
    {
        let code = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
        return Escape::char(12, char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
    }
    match char::from_u32(unit) {
        Some(char) => Escape::char(6, char),
        None => {
            let tail = |shift: u32| 0x80 | ((unit >> shift) & 0x3f) as u8;
            Escape { length: 6, bytes: [0xe0 | (unit >> 12) as u8, tail(6), tail(0), 0], count: 3 }
        }
    }
}

/// The text of a string given with its quotes, escapes undone (see [`escape`]): two strings are equal by code unit
/// exactly when these bytes are equal.
pub fn unescape(raw: &[u8]) -> Cow<'_, [u8]> {
    unescape_inside(raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default())
}

/// The same for what stands between a string's quotes.
pub fn unescape_inside(inside: &[u8]) -> Cow<'_, [u8]> {
    let Some(mut plain) = escape_in(inside) else { return Cow::Borrowed(inside) };
    let mut text = Vec::with_capacity(inside.len());
    let mut rest = inside;
    loop {
        text.extend_from_slice(&rest[..plain]);
        let escape = escape(&rest[plain..]);
        text.extend_from_slice(escape.text());
        rest = &rest[plain + escape.length..];
        match memchr::memchr(b'\\', rest) {
            Some(next) => plain = next,
            None => break,
        }
    }
    text.extend_from_slice(rest);
    Cow::Owned(text)
}

/// Whether a string given with its quotes spells `text`, whatever its escapes.
pub fn string_is(raw: &[u8], text: &str) -> bool {
    let Some(inside) = raw.get(1..raw.len().saturating_sub(1)) else { return false };
    inside == text.as_bytes()
        || (memchr::memchr(b'\\', inside).is_some() && *unescape(raw) == *text.as_bytes())
}

/// Appends `text` as a JSON string with its quotes, escaping only what JSON demands.
pub fn push_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for char in text.chars() {
        match char {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            '\u{8}' => out.extend_from_slice(b"\\b"),
            '\u{c}' => out.extend_from_slice(b"\\f"),
            '\0'..='\x1f' => out.extend_from_slice(format!("\\u{:04x}", char as u32).as_bytes()),
            _ => out.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    out.push(b'"');
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
        assert_eq!(pointer(text, whole, "/a~1b/m~0n/2"), None);
        assert_eq!(pointer(text, whole, ""), Some(whole));
    }

    #[test]
    fn strings_are_equal_by_code_unit() {
        assert!(string_is(br#""tools\/call""#, "tools/call"));
        assert_eq!(*unescape(br#""\ud83d\ude00""#), *"😀".as_bytes());
        assert_eq!(*unescape(br#""\ude00\ud83d""#), [0xed, 0xb8, 0x80, 0xed, 0xa0, 0xbd]);
        assert_eq!(*unescape(br#""a\n\"\u0041\x""#), *b"a\n\"A\\x");
    }

    #[test]
    fn strict_json_is_told_from_what_is_only_tolerated() {
        for good in
            ["1e400", r#"{"a":[1,-0.5E+3,"\ud83d",true,null]}"#, " [] ", "123456789012345678901234567890"]
        {
            assert!(is_json(good.as_bytes()), "{good}");
        }
        for bad in
            ["NaN", "01", "1.", "[1,]", "{\"a\":1} x", "\"\\x\"", "\"\n\"", "", "{\"a\" 1}", "[1 2]", "tru"]
        {
            assert!(!is_json(bad.as_bytes()), "{bad}");
        }
        assert!(!is_json(b"\"\xff\""));
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
