//! One value, token by token.

use std::borrow::Cow;

use super::{ScanError, error, skip_space, skip_text, skip_value, unescape};
use crate::wire::Span;

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
