//! What is to be written into a cassette: sessions and exchanges as the recorder knows them, messages as bytes.
//!
//! Whoever fills these in need not care how a message is written: the printer tries the readable form, rebuilds the
//! line from it and falls back to the raw text where one byte differs. It also decides which ids are ordinary, and
//! which answers are the same as an earlier one.

use std::borrow::Cow;

use super::{
    model::{End, Http, On, Sse, Unanswered},
    spelling::Spelling,
};

/// An entry of `sessions`.
#[derive(Clone, Debug, Default)]
pub struct SessionDraft<'a> {
    /// `session`: its number, unique in the cassette.
    pub number: u32,
    /// `recording`: which recording it belongs to.
    pub recording: u32,
    /// `journal`: the id of the journal it comes from.
    pub journal: Option<Cow<'a, str>>,
    /// `parent`: what tells the recorder's parent process from any other; written after `journal`.
    pub parent: Option<Cow<'a, str>>,
    /// `at`: when it began, RFC 3339.
    pub at: Option<Cow<'a, str>>,
    /// `lasted_s`: for how many whole seconds its recorder went on from then.
    pub lasted_s: u64,
    /// `by`: the program that recorded it.
    pub by: Option<Cow<'a, str>>,
    /// `transport`.
    pub transport: Option<Cow<'a, str>>,
    /// `path`: path and query of the endpoint, over HTTP.
    pub path: Option<Cow<'a, str>>,
    /// `protocol`: the negotiated revision.
    pub protocol: Option<Cow<'a, str>>,
    /// `client`: the client's name.
    pub client: Option<Cow<'a, str>>,
    /// `server`: the server's name and version.
    pub server: Option<Cow<'a, str>>,
    /// `spelling`: how its messages are spelled.
    pub spelling: Spelling,
    /// `end`: only where the server ended by itself.
    pub end: Option<End>,
    /// `gap`: how many messages passed unrecorded.
    pub gap: u64,
    /// Members that a person wrote.
    pub extra: Vec<Extra<'a>>,
}

/// An entry of `exchanges`.
#[derive(Clone, Debug)]
pub struct ExchangeDraft<'a> {
    /// `key`, unique in the cassette: see [`Keys`](super::key::Keys).
    pub key: Cow<'a, str>,
    /// `session`: the number of its session.
    pub session: u32,
    /// `journal`: the id of the journal it was added from, where that is not its session's.
    pub journal: Option<Cow<'a, str>>,
    /// The spelling that is written in that session.
    pub spelling: &'a Spelling,
    /// `after`: see [`key::reference`](super::key::reference).
    pub after: Option<Cow<'a, str>>,
    /// `client`; none for a push.
    pub client: Option<MessageDraft<'a>>,
    /// `client.body`: of an HTTP request that is no message.
    pub body: Option<MessageDraft<'a>>,
    /// `http`: what of the request and response that carried it is not as usual.
    pub http: Option<Http>,
    /// `server`, in order.
    pub server: Vec<ItemDraft<'a>>,
    /// `unanswered`.
    pub unanswered: Option<Unanswered>,
    /// Members that a person wrote (`note`, `match`, `fault`, `x-…`, unknown ones): they go to their places.
    pub extra: Vec<Extra<'a>>,
}

/// A member that is carried over as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extra<'a> {
    /// Its name, with the quotes.
    pub name: Cow<'a, [u8]>,
    /// Its value, raw JSON.
    pub value: Cow<'a, [u8]>,
}

/// One message.
#[derive(Clone, Debug)]
pub struct MessageDraft<'a> {
    /// What the bytes are.
    pub part: Part,
    /// The line, event or body as it stood on the wire; a line without its `\n`. Of an omitted message: what is left of
    /// its envelope, a message without params or with an empty result.
    pub bytes: Cow<'a, [u8]>,
    /// Size and SHA-256 of a message over `--max-message`.
    pub omitted: Option<(u64, [u8; 32])>,
}

/// What a draft's bytes are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Part {
    /// A message, or a line where one was due.
    #[default]
    Message,
    /// The line of an HTTP request that is no message: `GET /path?query`.
    Request,
    /// An HTTP body, or an event's data, that is no message.
    Body,
    /// The beginning of an HTTP body whose rest never came.
    Partial,
}

/// One item of an exchange's `server` list.
#[derive(Clone, Debug)]
pub struct ItemDraft<'a> {
    /// `after_ms`: see [`round_after_ms`].
    pub after_ms: u32,
    /// `after`: see [`key::reference`](super::key::reference).
    pub after: Option<Cow<'a, str>>,
    /// `guess`.
    pub guess: bool,
    /// `on`: where it did not travel on its exchange's own stream.
    pub on: Option<On>,
    /// `sse`: what its event held beside the data; none where that was a line `event: message`.
    pub sse: Option<Sse>,
    /// What the server sent.
    pub message: MessageDraft<'a>,
    /// What the client answered to a server request.
    pub answer: Option<AnswerDraft<'a>>,
}

/// The client's answer to a server request.
#[derive(Clone, Debug)]
pub struct AnswerDraft<'a> {
    /// `after_ms`: how long after the request.
    pub after_ms: u32,
    /// `after`: see [`key::reference`](super::key::reference).
    pub after: Option<Cow<'a, str>>,
    /// `http`: what of the request that carried it and its response is not as usual.
    pub http: Option<Http>,
    /// The answer.
    pub message: MessageDraft<'a>,
}

impl<'a> MessageDraft<'a> {
    /// A whole message.
    pub fn new(bytes: impl Into<Cow<'a, [u8]>>) -> Self {
        Self { part: Part::Message, bytes: bytes.into(), omitted: None }
    }

    /// An HTTP body, or an event's data, that is no message.
    pub fn body(bytes: impl Into<Cow<'a, [u8]>>) -> Self {
        Self { part: Part::Body, ..Self::new(bytes) }
    }
}

/// Milliseconds rounded to two significant digits, so that a second recording of the same thing differs less.
pub fn round_after_ms(ms: u64) -> u32 {
    let mut unit = 1;
    while ms / unit >= 100 {
        unit *= 10;
    }
    u32::try_from(ms.saturating_add(unit / 2) / unit * unit).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_two_digits() {
        let rounded = [0, 7, 99, 100, 104, 105, 995, 12_345, u64::MAX].map(round_after_ms);
        assert_eq!(rounded, [0, 7, 99, 100, 100, 110, 1000, 12_000, u32::MAX]);
    }
}
