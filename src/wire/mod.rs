//! Bytes and messages: what stands on the wire, and where its parts are.
//!
//! Nothing here owns a payload: functions take bytes and give back [`Span`]s, so that the recorded text is the
//! text that was sent. The scanner is tolerant (it reads what SDKs really send, valid JSON or not) and does not
//! recurse (depth is data). Start with [`jsonrpc::Message`], which is what the other modules speak of.
//!
//! - [`scan`]: a tolerant JSON scanner that yields places
//! - [`mod@pointer`]: the steps of JSON Pointers
//! - [`jsonrpc`]: the JSON-RPC envelope of one message
//! - [`half`]: an answer that breaks off
//! - [`lines`]: a byte stream cut into lines
//! - [`sse`]: an event stream cut into events
//! - [`http`]: tokens, content types and addresses of HTTP
//! - [`revision`]: one table row of facts for each protocol revision
//! - [`results`]: results that are made here

#[doc(hidden)]
pub mod fuzz;
pub mod half;
pub mod http;
pub mod jsonrpc;
pub mod lines;
pub mod pointer;
pub mod results;
pub mod revision;
pub mod scan;
pub mod sse;

/// A half-open range of bytes, `start..end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// Offset of the first byte.
    pub start: usize,
    /// Offset behind the last byte.
    pub end: usize,
}

impl Span {
    /// The span `start..end`.
    pub const fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// The bytes this span names in `text`.
    ///
    /// # Panics
    /// Panics when the span does not lie in `text`: spans belong to the text they were read from.
    pub fn of(self, text: &[u8]) -> &[u8] {
        &text[self.start..self.end]
    }

    /// How many bytes the span covers.
    pub const fn len(self) -> usize {
        self.end - self.start
    }

    /// Whether the span covers nothing.
    pub const fn is_empty(self) -> bool {
        self.end == self.start
    }

    /// The same bytes seen from a text that begins `by` bytes earlier.
    pub const fn shift(self, by: usize) -> Self {
        Self { start: self.start + by, end: self.end + by }
    }
}
