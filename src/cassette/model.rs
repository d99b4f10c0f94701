//! The cassette in memory: its text, and what stands where in it.
//!
//! A [`Cassette`] keeps the file's own bytes and knows their parts as [`Place`]s. Payloads stay text until somebody
//! asks for a message's wire bytes, so loading costs one pass and little memory, and a rewrite can keep every byte
//! that it does not address.

mod http;
mod items;
mod message;

use std::collections::BTreeMap;

pub use self::{
    http::{EventType, Header, Http, On, Sse, StreamEnd},
    items::Items,
    message::{Form, Id, Message},
};
use super::spelling::Spelling;
use crate::{
    ahead,
    wire::{Span, jsonrpc},
};

/// A place in a cassette's text; cassettes over 4 GiB are refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Place {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset behind the last byte.
    pub end: u32,
}

impl Place {
    /// The same place as a span.
    pub const fn span(self) -> Span {
        Span::new(self.start as usize, self.end as usize)
    }
}

impl From<Span> for Place {
    /// # Panics
    /// Panics past 4 GiB; the loader refuses such a text first.
    fn from(span: Span) -> Self {
        let at = |offset: usize| u32::try_from(offset).expect("cassettes over 4 GiB are refused");
        Self { start: at(span.start), end: at(span.end) }
    }
}

/// A loaded cassette.
#[derive(Clone, Debug)]
pub struct Cassette {
    /// The file's bytes, UTF-8.
    pub text: Vec<u8>,
    /// Top-level `match` rules, in order.
    pub rules: Vec<MatchRule>,
    /// Names in `vars`.
    pub vars: Vec<String>,
    /// False where the file says `"redacted": false`.
    pub redacted: bool,
    /// The sessions, in file order.
    pub sessions: Vec<Session>,
    /// The exchanges, in file order.
    pub exchanges: Vec<Exchange>,
    /// Unknown members and other things that load but deserve a word, in file order.
    pub warnings: Vec<Warning>,
    /// `faults`: a fault plan.
    pub faults: Option<Place>,
    /// `assert`: what has to be so at the end of a replay.
    pub assert: Option<Place>,
    /// `fault` of exchanges, by their indexes.
    pub exchange_faults: Vec<(u32, Place)>,
    /// `journal` of exchanges that were added to their session later: the exchange, and the id of the journal they
    /// come from; in the order of the file.
    pub exchange_journals: Vec<(u32, Box<str>)>,
    /// `gap` of recordings: of those that have any, all that is missing in their sessions.
    pub(crate) gaps: BTreeMap<u32, u64>,
    /// Where the top-level members stand, for rewrites that keep the rest.
    pub layout: Layout,
}

/// Where the arrays of a cassette's document stand.
#[derive(Clone, Copy, Debug, Default)]
pub struct Layout {
    /// The `sessions` array, brackets included.
    pub sessions: Option<Place>,
    /// The `exchanges` array, brackets included.
    pub exchanges: Option<Place>,
}

/// Something in the file that loads but deserves a word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Offset in the text.
    pub at: usize,
    /// One sentence: what was found, what was meant perhaps.
    pub text: String,
    /// It is about a value that the format does not have; else about a member.
    pub is_value: bool,
}

/// One entry of `sessions`.
#[derive(Clone, Debug, Default)]
pub struct Session {
    /// `session`: its number, unique in the cassette.
    pub number: u32,
    /// `recording`: which recording it belongs to; the highest is the newest.
    pub recording: u32,
    /// `journal`: the id of the journal it was folded from.
    pub journal: Option<String>,
    /// `parent`: a hash that tells the recorder's parent process from any other; sessions with the same one are one
    /// recording if they overlap in time, or one follows the other within ten seconds.
    pub parent: Option<String>,
    /// `at`: when it began, RFC 3339.
    pub at: Option<String>,
    /// `lasted_s`: for how many whole seconds its recorder went on from then.
    pub lasted_s: u64,
    /// `by`: the program that recorded it.
    pub by: Option<String>,
    /// `transport`: `stdio`, `http` (Streamable HTTP), `sse` (HTTP+SSE of 2024-11-05) or `stdio-http` (the client on
    /// stdio, the server on HTTP; its messages are those of stdio).
    pub transport: Option<String>,
    /// `path`: over HTTP, the path and query of its endpoint; with `sse`, of its event stream.
    pub path: Option<String>,
    /// `protocol`: the negotiated revision.
    pub protocol: Option<String>,
    /// `client`: the client's name.
    pub client: Option<String>,
    /// `server`: the server's name and version.
    pub server: Option<String>,
    /// `spelling`: how its messages are spelled.
    pub spelling: Spelling,
    /// `end`: only where the server ended by itself, or its last line has no end.
    pub end: Option<End>,
    /// `gap`: how many messages are missing at least: recording failed, or its journal was damaged.
    pub gap: u64,
    /// The whole entry.
    pub place: Place,
}

/// How a session's server ended. Neither status nor signal: once its input was closed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// `exit`: its status.
    pub exit: Option<i32>,
    /// `signal`: the signal that ended it.
    pub signal: Option<i32>,
    /// `partial`: the bytes of its unfinished last line.
    pub partial: Option<Vec<u8>>,
}

impl End {
    /// Whether the server ended before its input was closed.
    pub const fn is_by_itself(&self) -> bool {
        self.exit.is_some() || self.signal.is_some() || self.partial.is_none()
    }
}

/// One entry of `exchanges`.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// `key`, unique in the cassette.
    pub key: Box<str>,
    /// Index into [`Cassette::sessions`].
    pub session: u32,
    /// `client`; none for a push.
    pub client: Option<Message>,
    /// `client.body`: of an HTTP request that is no message ([`Form::Http`]), in the form [`Form::Body`] or
    /// [`Form::Base64`].
    pub body: Option<Box<Message>>,
    /// `client.partial`: that body is the beginning of one; its rest never came.
    pub is_partial: bool,
    /// `http`: what of HTTP is not derived; none on stdio, and where all of it is as usual.
    pub http: Option<Box<Http>>,
    /// `after`: what came just before the client message (for a push: before its first item).
    pub after: Option<Ref>,
    /// `server`, in order.
    pub server: Items,
    /// `unanswered`.
    pub unanswered: Option<Unanswered>,
    /// Its own `match` rule.
    pub rule: Option<Box<MatchRule>>,
    /// The whole entry.
    pub place: Place,
}

impl Exchange {
    /// Whether one of its items is the response to a client's answer to an item before it, and none to its own message.
    pub fn is_aside(&self, item: &Item) -> bool {
        let is_said = |item: &Item| item.on == Some(On::Post) && item.message.kind.is_response();
        if !is_said(item) {
            return false;
        }
        let at = self.server.iter().position(|known| std::ptr::eq(known, item)).unwrap_or_default();
        let mut since = self.server[..at].iter().rev().take_while(|known| !is_said(known));
        since.any(|known| known.answer.as_ref().is_some_and(|answer| answer.http.is_some()))
    }
}

/// One item of an exchange's `server` list.
#[derive(Clone, Debug)]
pub struct Item {
    /// `after_ms`: how long after the item before it.
    pub after_ms: u32,
    /// What the server sent (`same_as` is resolved).
    pub message: Message,
    /// `answer`: what the client answered to a server request.
    pub answer: Option<Box<Answer>>,
    /// `after`: what came just before it in the session, where that is not the item before it.
    pub after: Option<Ref>,
    /// `guess`: it was filed here although several exchanges were open.
    pub guess: bool,
    /// `on`: where it did not travel on its exchange's own stream.
    pub on: Option<On>,
    /// `sse`: what its event held beside the data, where that is not just a line `event: message`.
    pub sse: Option<Box<Sse>>,
}

/// The client's answer to a server request.
#[derive(Clone, Debug)]
pub struct Answer {
    /// `after_ms`: how long after the request.
    pub after_ms: u32,
    /// The answer: `result`, `error`, `raw` or `base64`.
    pub message: Message,
    /// `after`: what came just before it in the session, where that is not its request.
    pub after: Option<Ref>,
    /// `http`: of the request that carried it and its response, where they are not as usual.
    pub http: Option<Box<Http>>,
}

/// A moment of a session, as `after` names it: `KEY`, `KEY #2`, `KEY #2 answer`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ref {
    /// Index into [`Cassette::exchanges`].
    pub exchange: u32,
    /// Which moment of that exchange.
    pub moment: Moment,
}

/// A moment of one exchange; items count from 0 here and from 1 in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Moment {
    /// The client's message.
    Client,
    /// A server item.
    Item(u32),
    /// The client's answer to that server item.
    Answer(u32),
}

/// Why an exchange has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// `cancelled`: the client cancelled it.
    Cancelled,
    /// `open`: it was open when the client closed its side, or is a stream that stays open.
    Open,
    /// `lost`: the recorder was killed or its upstream broke.
    Lost,
    /// `ended`: the server ended the response without it.
    Ended,
}

impl Unanswered {
    /// The four words.
    pub const ALL: [Self; 4] = [Self::Cancelled, Self::Open, Self::Lost, Self::Ended];

    /// The word in the file.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::Open => "open",
            Self::Lost => "lost",
            Self::Ended => "ended",
        }
    }
}

/// A `match` rule: where a live request may differ from the recorded one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MatchRule {
    /// `when`: which requests; an empty one means all.
    pub when: When,
    /// `ignore`: JSON Pointers of places left out with all below.
    pub ignore: Vec<String>,
    /// `pattern`: pointer and regular expression; both values must match it.
    pub pattern: Vec<(String, String)>,
    /// `type`: pointer and JSON type (`string`, `number`, `boolean`, `object`, `array`, `null`).
    pub types: Vec<(String, String)>,
    /// The rule's text.
    pub place: Place,
}

/// A selector: every member that is given must fit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct When {
    /// `method`.
    pub method: Option<String>,
    /// `tool`: `params.name` of `tools/call`.
    pub tool: Option<String>,
    /// `prompt`: `params.name` of `prompts/get`.
    pub prompt: Option<String>,
    /// `uri`: `params.uri` of a resource method.
    pub uri: Option<String>,
    /// `key`: the recorded exchange's key.
    pub key: Option<String>,
}

impl When {
    /// What the messages that it fits are about, where it says so: a tool, a prompt or a resource.
    pub fn subject(&self) -> Option<&str> {
        self.tool.as_deref().or(self.prompt.as_deref()).or(self.uri.as_deref())
    }

    /// Whether it fits a message of this method, whatever the message's key is.
    pub fn fits(&self, method: &str, message: &jsonrpc::Message<'_>) -> bool {
        let subjects = [("tool", &self.tool), ("prompt", &self.prompt), ("uri", &self.uri)];
        self.method.as_deref().is_none_or(|wanted| wanted == method)
            && subjects.into_iter().all(|(subject, wanted)| {
                wanted.as_deref().is_none_or(|wanted| {
                    jsonrpc::subject(method).is_some_and(|(about, _)| about == subject)
                        && message.name().is_some_and(|name| name == wanted)
                })
            })
    }
}

/// Messages that passed unrecorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missed {
    /// How many.
    pub messages: u64,
    /// They stand with other sessions of the recording, which passed at the same time: nobody knows whose they were.
    pub is_shared: bool,
}

impl Session {
    /// Whether it was recorded over HTTP.
    pub fn is_http(&self) -> bool {
        matches!(self.transport.as_deref(), Some("http" | "sse"))
    }
}

impl Cassette {
    /// Whether an exchange, by its index, was added to its session later.
    pub fn is_added(&self, exchange: u32) -> bool {
        self.added_by(exchange).is_some()
    }

    /// The id of the journal by which an exchange was added to its session later.
    pub fn added_by(&self, exchange: u32) -> Option<&str> {
        let at = self.exchange_journals.binary_search_by_key(&exchange, |(added, _)| *added).ok()?;
        Some(&self.exchange_journals[at].1)
    }

    /// Whether messages are missing that what comes in a session can refer to.
    pub(crate) fn has_gap(&self, session: u32) -> bool {
        self.gaps.contains_key(&self.sessions[session as usize].recording)
    }

    /// What is, or may be, missing in a session; none where nothing is.
    pub fn missed(&self, session: u32) -> Option<Missed> {
        let session = &self.sessions[session as usize];
        let &all = self.gaps.get(&session.recording)?;
        match session.gap {
            0 => session.is_http().then_some(Missed { messages: all, is_shared: true }),
            messages => Some(Missed { messages, is_shared: false }),
        }
    }

    /// The text at a place.
    pub fn at(&self, place: Place) -> &[u8] {
        place.span().of(&self.text)
    }

    /// Begins to fetch what stands elsewhere of an exchange that is about to be played: HTTP's part and its items' text.
    #[inline]
    pub(crate) fn fetch_ahead(&self, exchange: u32) {
        /// Between several there is time.
        const FIRST: usize = 2;
        let entry = &self.exchanges[exchange as usize];
        if let Some(http) = &entry.http {
            ahead::fetch(&**http);
        }
        for item in entry.server.iter().take(FIRST) {
            ahead::fetch(self.at(item.message.place));
            if let Some(sse) = &item.sse {
                ahead::fetch(&**sse);
            }
        }
    }

    /// The exchange with this key.
    pub fn find(&self, key: &str) -> Option<&Exchange> {
        self.exchanges.iter().find(|exchange| *exchange.key == *key)
    }

    /// Line and column of an offset, both from 1; columns count characters.
    pub fn line_column(&self, offset: usize) -> (usize, usize) {
        line_column(&self.text, offset)
    }
}

/// Line and column of an offset in a text, both from 1; columns count characters.
pub fn line_column(text: &[u8], offset: usize) -> (usize, usize) {
    let before = &text[..offset.min(text.len())];
    let start = memchr::memrchr(b'\n', before).map_or(0, |newline| newline + 1);
    let line = 1 + memchr::memchr_iter(b'\n', before).count();
    (line, 1 + String::from_utf8_lossy(&before[start..]).chars().count())
}
