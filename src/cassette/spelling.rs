//! How a session's messages are spelled: what of a line the cassette need not write because it is always the same.

/// The spelling of both sides of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spelling {
    /// How the client spells.
    pub client: Side,
    /// How the server spells.
    pub server: Side,
}

/// The spelling of one side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    /// The order in which envelope members stand, those a message lacks left out.
    pub order: [Envelope; 6],
    /// Whether a space follows each comma and colon that stands outside strings.
    pub spaced: bool,
    /// Whether each line ends in `\r\n`.
    pub crlf: bool,
}

/// A member of the envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Envelope {
    /// `jsonrpc`
    Jsonrpc,
    /// `id`
    Id,
    /// `method`
    Method,
    /// `params`
    Params,
    /// `result`
    Result,
    /// `error`
    Error,
}

impl Default for Side {
    fn default() -> Self {
        use Envelope::{Error, Id, Jsonrpc, Method, Params, Result};
        Self { order: [Jsonrpc, Id, Method, Params, Result, Error], spaced: false, crlf: false }
    }
}
