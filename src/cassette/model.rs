//! The cassette in memory: its text, and what stands where in it.
//!
//! A [`Cassette`] keeps the file's own bytes and knows their parts as [`Place`]s. Payloads stay text until somebody
//! asks for a message's wire bytes, so loading costs one pass and little memory, and a rewrite can keep every byte
//! that it does not address.

mod items;

use std::fmt;

pub use self::items::Items;
use super::spelling::Spelling;
use crate::wire::{
    Span,
    jsonrpc::{self, Kind},
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
#[derive(Debug)]
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
    /// `gap`: how many messages passed unrecorded because recording failed.
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
#[derive(Debug)]
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

/// The HTTP request and response that carried an exchange.
///
/// What is as usual is not written. Usual is: of a request that is a message, `POST` to its session's path; of a
/// response to a request, status 200; to anything else, status 202 with an empty body; of an event stream, content
/// type `text/event-stream`; of a body that is a message, `application/json`; of an empty one, none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Http {
    /// `path`: path and query of a request that is a message, where they are not those of its session.
    pub path: Option<Box<str>>,
    /// `request`: the request's headers that its answer can depend on, names in lower case.
    pub request: Vec<Header>,
    /// `auth`: whether the request carried credentials.
    pub auth: bool,
    /// `status`; none where it is the usual one, or no response came.
    pub status: Option<u16>,
    /// `stream`: whether the response is an event stream.
    pub stream: bool,
    /// `headers`: the response's headers that are not derived, names in lower case.
    pub headers: Vec<Header>,
    /// `end`: how the response ended, where not in good order.
    pub end: Option<StreamEnd>,
    /// `partial`, `partial_base64`: what the response had sent of a message, or of the lines of an event, when it ended;
    /// or what came behind its message.
    pub partial: Option<Box<[u8]>>,
}

/// A header and all its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Its name in lower case.
    pub name: Box<str>,
    /// Its values in order, as bytes (ISO-8859-1 in the file): one for each line of it. No value says that it was not
    /// sent although it usually is.
    pub values: Vec<Box<[u8]>>,
}

/// How a response ended before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// `cut`: the connection was closed.
    Cut,
    /// `reset`: the connection was reset.
    Reset,
}

impl StreamEnd {
    /// Both words.
    pub const ALL: [Self; 2] = [Self::Cut, Self::Reset];

    /// The word in the file.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Cut => "cut",
            Self::Reset => "reset",
        }
    }
}

/// A stream that an item travelled on, where that is not its exchange's own.
///
/// The own stream is the response to the client's message; in a session over HTTP+SSE, the session's event stream.
/// A push has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum On {
    /// `get`: the session's `GET` stream.
    Get,
    /// `resume`: the `GET` stream that went on with an earlier one, named by `Last-Event-ID`.
    Resume,
    /// `post`: the response to the client's message, in a session over HTTP+SSE; else the response to another
    /// message of the client.
    Post,
    /// `sse`: the event stream of HTTP+SSE.
    Sse,
}

impl On {
    /// The four words.
    pub const ALL: [Self; 4] = [Self::Get, Self::Resume, Self::Post, Self::Sse];

    /// The word in the file.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Resume => "resume",
            Self::Post => "post",
            Self::Sse => "sse",
        }
    }
}

/// Fields of an item's event beside its data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sse {
    /// `id`, where one was sent.
    pub id: Option<Box<str>>,
    /// `event`: its type.
    pub event: EventType,
    /// `retry`, in milliseconds, where it was sent.
    pub retry: Option<u64>,
    /// `"data": false`: it had no line `data`, which is not the same as an empty one.
    pub no_data: bool,
}

/// The type of an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum EventType {
    /// Not written: a line `event: message`.
    #[default]
    Message,
    /// `null`: no line, which means `message` too.
    Unnamed,
    /// Any other.
    Named(Box<str>),
}

/// One message as it stands in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Which member it stands in.
    pub form: Form,
    /// What it is: that of its form, of `raw` and `base64` what their text says.
    pub kind: Kind,
    /// That member's value.
    pub place: Place,
    /// The id it had when recorded: written, or derived where it is an ordinary one.
    pub id: Id,
}

impl Message {
    /// The form that tells what it is: of a message in `raw` or `base64`, the one that its text would have.
    pub(crate) const fn as_form(&self) -> Form {
        match (self.form, self.kind) {
            (Form::Raw | Form::Base64, Kind::Request) => Form::Request,
            (Form::Raw | Form::Base64, Kind::Notification) => Form::Notification,
            (Form::Raw | Form::Base64, Kind::Result) => Form::Result,
            (Form::Raw | Form::Base64, Kind::Error) => Form::Error,
            (Form::Raw | Form::Base64, Kind::Batch) => Form::Batch,
            (form, _) => form,
        }
    }
}

/// The members a message can stand in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `request`: `{"method", "params"}`, members unknown to us, `id` where it is no ordinary one.
    Request,
    /// `notification`: the same without id.
    Notification,
    /// `result`: the result itself.
    Result,
    /// `error`: the error object.
    Error,
    /// `batch`: an array of messages, each in its own form, responses with `to`.
    Batch,
    /// `raw`: the line's text as a JSON string.
    Raw,
    /// `base64`: the line's bytes, where they are not UTF-8.
    Base64,
    /// `omitted`: `{"bytes", "sha256"}` of a message over `--max-message`.
    Omitted,
    /// `http`: `"GET /path?query"`, an HTTP request whose body is no message.
    Http,
    /// `body`: the text of an HTTP body, or of an event's data, that is no message.
    Body,
}

impl Form {
    /// What a message in this form is, as far as the form alone says it.
    pub(super) const fn kind(self) -> Kind {
        match self {
            Self::Request => Kind::Request,
            Self::Notification => Kind::Notification,
            Self::Result => Kind::Result,
            Self::Error => Kind::Error,
            Self::Batch => Kind::Batch,
            Self::Raw | Self::Base64 | Self::Omitted | Self::Http | Self::Body => Kind::Noise,
        }
    }
}

/// A recorded id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Id {
    /// No `id` member.
    #[default]
    Absent,
    /// A plain non-negative integer.
    Number(u64),
    /// Any other token, raw, `null` included. Seldom, so it stands apart: every message has room for an id.
    Token(Box<Box<[u8]>>),
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

impl Session {
    /// Whether it was recorded over HTTP.
    pub fn is_http(&self) -> bool {
        matches!(self.transport.as_deref(), Some("http" | "sse"))
    }
}

impl Form {
    /// The member's name.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Notification => "notification",
            Self::Result => "result",
            Self::Error => "error",
            Self::Batch => "batch",
            Self::Raw => "raw",
            Self::Base64 => "base64",
            Self::Omitted => "omitted",
            Self::Http => "http",
            Self::Body => "body",
        }
    }

    /// Every form.
    pub const ALL: [Self; 10] = [
        Self::Request,
        Self::Notification,
        Self::Result,
        Self::Error,
        Self::Batch,
        Self::Raw,
        Self::Base64,
        Self::Omitted,
        Self::Http,
        Self::Body,
    ];
}

impl Id {
    /// The id of a raw token.
    pub fn of(token: Option<&[u8]>) -> Self {
        let Some(token) = token else { return Self::Absent };
        let plain = token == b"0" || (!token.starts_with(b"0") && token.iter().all(u8::is_ascii_digit));
        match std::str::from_utf8(token).ok().filter(|_| plain).and_then(|text| text.parse().ok()) {
            Some(number) => Self::Number(number),
            None => Self::Token(Box::new(token.into())),
        }
    }

    /// Appends the raw token; nothing where the id is absent.
    pub fn push(&self, out: &mut Vec<u8>) {
        match self {
            Self::Absent => {}
            Self::Number(number) => {
                let (mut digits, mut rest) = ([0; 20], *number);
                let mut start = digits.len();
                while start == digits.len() || rest > 0 {
                    start -= 1;
                    digits[start] = b'0' + (rest % 10) as u8;
                    rest /= 10;
                }
                out.extend_from_slice(&digits[start..]);
            }
            Self::Token(token) => out.extend_from_slice(token),
        }
    }

    /// The id an ordinary request after this one has: one more; 0 at the start of a session.
    pub fn next(&self) -> Self {
        match self {
            Self::Number(number) => Self::Number(number.wrapping_add(1)),
            _ => Self::Number(0),
        }
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut token = Vec::new();
        self.push(&mut token);
        f.write_str(&String::from_utf8_lossy(&token))
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

    /// The text at a place.
    pub fn at(&self, place: Place) -> &[u8] {
        place.span().of(&self.text)
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
