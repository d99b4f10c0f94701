//! The JSON-RPC envelope of one message, as places in its bytes.
//!
//! Only the envelope is read; params and results stay text. What MCP's pages say of ids, tokens and names that the
//! recorder and the replayer need is asked of [`Message`], never of a typed model
//! (specification 2025-11-25 and 2026-07-28, basic/index).

mod id;

use std::{borrow::Cow, sync::LazyLock};

use memchr::memmem::Finder;

pub use self::id::{id_key, number_key, same_id};
use super::{
    Span,
    scan::{self, ScanError},
};

/// What a message is, by its envelope alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `method` and `id` (even `"id": null`, which is no notification).
    Request,
    /// `method` and no `id` member at all.
    Notification,
    /// No `method`, but `result`.
    Result,
    /// No `method`, but `error`.
    Error,
    /// An array with at least one JSON-RPC message in it (revision 2025-03-26).
    Batch,
    /// No JSON-RPC message: log lines, other JSON, blank lines.
    Noise,
}

impl Kind {
    /// Whether the message answers a request.
    pub const fn is_response(self) -> bool {
        matches!(self, Self::Result | Self::Error)
    }
}

/// One message and the places of its envelope's members.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// The bytes the spans count in.
    pub bytes: &'a [u8],
    /// What it is.
    pub kind: Kind,
    id: Option<Span>,
    method: Option<Span>,
    /// The method where it stands there as it is, without escapes: it is asked for many times.
    plain_method: Option<&'a str>,
    params: Option<Span>,
    outcome: Option<Span>,
    /// Whether the params can have a `_meta`: most have none, and it is asked for several times.
    may_have_meta: bool,
}

impl<'a> Message<'a> {
    /// Reads the envelope of one line, event or body; a byte order mark and white space around it do not matter.
    ///
    /// A message counts as JSON-RPC when it says `"jsonrpc": "2.0"`, is an object, and is complete; what stands in
    /// its values may be anything.
    pub fn read(bytes: &'a [u8]) -> Self {
        let whole = scan::trim(bytes);
        match bytes.get(whole.start) {
            Some(b'{') => Self::read_object(bytes, whole).unwrap_or_else(|_| Self::noise(bytes)),
            Some(b'[') => {
                let batch = Self { kind: Kind::Batch, outcome: Some(whole), ..Self::noise(bytes) };
                let complete = scan::skip_value(bytes, whole.start) == Ok(whole.end);
                if complete && batch.members().any(|member| member.kind != Kind::Noise) {
                    batch
                } else {
                    Self::noise(bytes)
                }
            }
            _ => Self::noise(bytes),
        }
    }

    /// A request or notification that is written without its envelope: an object with `method` and `params`.
    pub fn without_envelope(bytes: &'a [u8], is_request: bool) -> Self {
        let kind = if is_request { Kind::Request } else { Kind::Notification };
        // It is hardly ever asked for there.
        let mut message = Self { kind, may_have_meta: true, ..Self::noise(bytes) };
        for member in scan::members(bytes, 0).map_while(Result::ok) {
            match scan::unescape(member.name.of(bytes)).as_ref() {
                b"method" => message.has_method(member.value),
                b"params" => message.params = Some(member.value),
                _ => {}
            }
        }
        message
    }

    /// The id of a request, or of the response to one, where that is known before the params, the result or the error
    /// are read: nothing is read from there on, and it may be anything. None where nobody knows without reading all.
    pub fn first_look(bytes: &'a [u8]) -> Option<(Kind, &'a [u8])> {
        let start = scan::trim(bytes).start;
        let mut members = scan::members(bytes, start);
        let (mut is_jsonrpc, mut id, mut is_method) = (false, None, false);
        loop {
            let envelope = Envelope::of(members.try_name().ok()??.of(bytes))?;
            let outcome = match envelope {
                Envelope::Params => return None,
                Envelope::Result => Some(Kind::Result),
                Envelope::Error => Some(Kind::Error),
                Envelope::Jsonrpc | Envelope::Id | Envelope::Method => None,
            };
            if let Some(kind) = outcome {
                return id.filter(|_| is_jsonrpc && !is_method).map(|id| (kind, id));
            }
            let value = members.try_value().ok()?.of(bytes);
            match envelope {
                Envelope::Jsonrpc => is_jsonrpc = scan::string_is(value, "2.0"),
                Envelope::Id => id = Some(value),
                _ => is_method = value.starts_with(b"\""),
            }
            if let Some(id) = id.filter(|_| is_jsonrpc && is_method) {
                return Some((Kind::Request, id));
            }
        }
    }

    /// A batch in a batch is noise: arrays in arrays may be as deep as they like.
    fn read_member(bytes: &'a [u8]) -> Self {
        match bytes.first() {
            Some(b'[') => Self::noise(bytes),
            _ => Self::read(bytes),
        }
    }

    /// What is no message, without a look at it.
    pub(crate) const fn noise(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            kind: Kind::Noise,
            id: None,
            method: None,
            plain_method: None,
            params: None,
            outcome: None,
            may_have_meta: false,
        }
    }

    fn read_object(bytes: &'a [u8], whole: Span) -> Result<Self, ScanError> {
        let mut message = Self::noise(bytes);
        let (mut is_jsonrpc, mut is_error) = (false, false);
        let mut members = scan::members(bytes, whole.start);
        while let Some(member) = members.try_next()? {
            let value = Some(member.value);
            match Envelope::of(member.name.of(bytes)) {
                Some(Envelope::Jsonrpc) => is_jsonrpc = scan::string_is(member.value.of(bytes), "2.0"),
                Some(Envelope::Id) => message.id = value,
                Some(Envelope::Method) if bytes[member.value.start] == b'"' => {
                    message.has_method(member.value)
                }
                Some(Envelope::Params) => message.params = value,
                Some(Envelope::Result) => message.outcome = value,
                Some(Envelope::Error) => (message.outcome, is_error) = (value, true),
                Some(Envelope::Method) | None => {}
            }
        }
        message.kind = match (message.method.is_some(), message.id.is_some(), message.outcome.is_some()) {
            _ if !is_jsonrpc || members.end() != whole.end => return Ok(Self::noise(bytes)),
            (true, true, _) => Kind::Request,
            (true, false, _) => Kind::Notification,
            (false, _, true) if is_error => Kind::Error,
            (false, _, true) => Kind::Result,
            (false, _, false) => return Ok(Self::noise(bytes)),
        };
        message.may_have_meta = message.params().is_some_and(may_have_meta);
        Ok(message)
    }

    fn has_method(&mut self, place: Span) {
        self.method = Some(place);
        let raw = place.of(self.bytes);
        self.plain_method = frequent_method(raw).or_else(|| match text(raw) {
            Cow::Borrowed(method) => Some(method),
            Cow::Owned(_) => None,
        });
    }

    /// The members of a batch; nothing for any other kind.
    pub fn members(&self) -> impl Iterator<Item = Message<'a>> {
        let bytes = self.bytes;
        let array = (self.kind == Kind::Batch).then_some(self.outcome).flatten();
        let spans = array.into_iter().flat_map(move |span| scan::elements(bytes, span.start));
        spans.map_while(Result::ok).map(move |span| Message::read_member(span.of(bytes)))
    }

    /// Place of the raw `id` token.
    pub const fn id_span(&self) -> Option<Span> {
        self.id
    }

    /// Place of the raw `params` value.
    pub const fn params_span(&self) -> Option<Span> {
        self.params
    }

    /// Place of the raw `result` or `error` value.
    pub const fn outcome_span(&self) -> Option<Span> {
        self.outcome
    }

    /// The raw `id` token, `null` included.
    pub fn id(&self) -> Option<&'a [u8]> {
        self.id.map(|span| span.of(self.bytes))
    }

    /// The id as it is compared: see [`id_key`]. None for an absent or null id.
    pub fn id_key(&self) -> Option<Cow<'a, [u8]>> {
        self.id().filter(|id| *id != b"null").map(id_key)
    }

    /// The method with escapes undone; empty where there is none.
    pub fn method(&self) -> Cow<'a, str> {
        match (self.plain_method, self.method) {
            (Some(method), _) => Cow::Borrowed(method),
            (None, method) => method.map_or(Cow::Borrowed(""), |span| text(span.of(self.bytes))),
        }
    }

    /// The raw params value.
    pub fn params(&self) -> Option<&'a [u8]> {
        self.params.map(|span| span.of(self.bytes))
    }

    /// The raw result or error value.
    pub fn outcome(&self) -> Option<&'a [u8]> {
        self.outcome.map(|span| span.of(self.bytes))
    }

    /// The raw value at a JSON Pointer below `params`.
    pub fn param(&self, pointer: &str) -> Option<&'a [u8]> {
        self.param_span(pointer).map(|span| span.of(self.bytes))
    }

    /// The place of the value at a JSON Pointer below `params`.
    pub fn param_span(&self, pointer: &str) -> Option<Span> {
        scan::pointer(self.bytes, self.params?, pointer)
    }

    /// What a request is about, beside its method: the tool's or prompt's name, the resource's URI, the task's id.
    pub fn name(&self) -> Option<Cow<'a, str>> {
        let (_, pointer) = subject(&self.method())?;
        self.param(pointer).filter(|raw| raw.first() == Some(&b'"')).map(text)
    }

    /// The raw value of a member of the params' `_meta`.
    // It is asked for again and again of messages that have none.
    #[inline]
    pub fn meta(&self, name: &str) -> Option<&'a [u8]> {
        if self.may_have_meta { self.find_meta(name) } else { None }
    }

    fn find_meta(&self, name: &str) -> Option<&'a [u8]> {
        let params = self.params()?;
        let meta = scan::member(params, 0, "_meta")?;
        scan::member(params, meta.start, name).map(|span| span.of(params))
    }

    /// The progress token a request asks for, raw.
    pub fn progress_token(&self) -> Option<&'a [u8]> {
        self.meta("progressToken")
    }

    /// The id that `notifications/cancelled` names, raw.
    pub fn cancelled_id(&self) -> Option<&'a [u8]> {
        (self.method() == "notifications/cancelled").then(|| self.param("/requestId")).flatten()
    }

    /// Whether this is an error of ours, with which a client is told that its request has no answer.
    pub fn is_no_answer(&self) -> bool {
        let Some(error) = self.outcome().filter(|_| self.kind == Kind::Error) else { return false };
        let is = |pointer: &str, raw: &[u8]| {
            let value = scan::pointer(error, Span::new(0, error.len()), pointer);
            value.is_some_and(|value| value.of(error) == raw)
        };
        is("/code", NO_ANSWER.to_string().as_bytes()) && is("/data/source", b"\"tapedeck\"")
    }

    /// Whether a request is of the modern era (2026-07-28 on): it carries its protocol version itself.
    pub fn is_modern(&self) -> bool {
        self.meta("io.modelcontextprotocol/protocolVersion").is_some()
    }
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

impl Envelope {
    /// The member that a raw JSON string names. Nearly all are spelled without escapes, so those are looked for last.
    #[inline]
    pub fn of(raw: &[u8]) -> Option<Self> {
        match raw {
            b"\"jsonrpc\"" => Some(Self::Jsonrpc),
            b"\"id\"" => Some(Self::Id),
            b"\"method\"" => Some(Self::Method),
            b"\"params\"" => Some(Self::Params),
            b"\"result\"" => Some(Self::Result),
            b"\"error\"" => Some(Self::Error),
            _ if raw.contains(&b'\\') => Self::escaped(raw),
            _ => None,
        }
    }

    #[cold]
    fn escaped(raw: &[u8]) -> Option<Self> {
        let mut plain = Vec::from(b"\"");
        plain.extend_from_slice(&scan::unescape(raw));
        plain.push(b'"');
        // What is escaped twice is another name.
        if plain.contains(&b'\\') { None } else { Self::of(&plain) }
    }
}

/// Whether params can have a `_meta`, by their text: an escape may spell it in another way.
fn may_have_meta(params: &[u8]) -> bool {
    static NAME: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"_meta"));
    // Most have neither.
    let Some(first) = memchr::memchr2(b'_', b'\\', params) else { return false };
    let rest = &params[first..];
    NAME.find(rest).is_some() || memchr::memchr(b'\\', rest).is_some()
}

/// What requests of a method are about: what that is called, and where it stands below `params`; see
/// [`Message::name`].
pub(crate) fn subject(method: &str) -> Option<(&'static str, &'static str)> {
    match method {
        "tools/call" => Some(("tool", "/name")),
        "prompts/get" => Some(("prompt", "/name")),
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => Some(("uri", "/uri")),
        "tasks/get" | "tasks/result" | "tasks/cancel" | "tasks/update" => Some(("task", "/taskId")),
        _ => None,
    }
}

/// The methods that most messages have, as they are written: to know one takes less than to check that it is text.
fn frequent_method(raw: &[u8]) -> Option<&'static str> {
    match raw {
        b"\"tools/call\"" => Some("tools/call"),
        b"\"tools/list\"" => Some("tools/list"),
        b"\"resources/read\"" => Some("resources/read"),
        b"\"prompts/get\"" => Some("prompts/get"),
        b"\"notifications/progress\"" => Some("notifications/progress"),
        b"\"notifications/message\"" => Some("notifications/message"),
        _ => None,
    }
}

/// A raw JSON string as text; what is not UTF-8 is shown as replacement characters.
pub fn text(raw: &[u8]) -> Cow<'_, str> {
    match scan::unescape(raw) {
        // The lossy way is the slower one even where nothing is lost.
        Cow::Borrowed(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(bytes),
        },
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    }
}

/// Code of an error of ours in the place of an answer that no server gave, outside the ranges that JSON-RPC and MCP
/// have reserved (specification 2026-07-28, basic/index).
pub const NO_ANSWER: i32 = -33001;

/// The `data` of such an error, by which it is told from a server's: see [`Message::is_no_answer`].
pub const FROM_TAPEDECK: &str = r#"{"source":"tapedeck"}"#;

/// An error response of ours to the request with this id, which is raw JSON as `data` is.
pub fn error(id: &[u8], code: i32, message: &str, data: Option<&str>) -> Vec<u8> {
    let mut out = b"{\"jsonrpc\":\"2.0\",\"id\":".to_vec();
    out.extend_from_slice(id);
    out.extend_from_slice(format!(",\"error\":{{\"code\":{code},\"message\":").as_bytes());
    scan::push_string(message, &mut out);
    if let Some(data) = data {
        out.extend_from_slice(format!(",\"data\":{data}").as_bytes());
    }
    out.extend_from_slice(b"}}");
    out
}

#[cfg(test)]
mod tests;
