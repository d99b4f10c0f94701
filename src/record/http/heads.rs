//! The second pass: what of heads, events and bodies is written.

use std::{borrow::Cow, slice};

use super::super::{Carrier, Content, Session, fold::line};
use crate::{
    cassette::{
        draft::{MessageDraft, Part},
        journal::FramePlace,
        model::{EventType, Header, Http, Sse},
    },
    redact,
    traffic::{Event, Headers, Payload, RequestHead, SseEvent},
    wire::{
        http::{
            decoded, is_field_value, is_of_connection, is_token, is_type, names_type, session_placeholder,
        },
        jsonrpc::{Kind, Message},
    },
};

/// How long a request says that its body is.
const CONTENT_LENGTH: &str = "content-length";

impl Carrier {
    /// Its frames, in the order in which [`Heads::http`] takes their events.
    pub(in super::super) fn places(&self) -> impl Iterator<Item = FramePlace> {
        [Some(self.request), self.body, self.response, self.partial].into_iter().flatten()
    }
}

/// Whether an event is a JSON-RPC message.
pub(in super::super) fn is_message_event(event: &SseEvent<'_>) -> bool {
    matches!(event.event.as_deref(), None | Some(b"" | b"message"))
        && Message::read(&event.data).kind != Kind::Noise
}

/// Reads the heads of one session's exchanges.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Heads<'a> {
    pub(in super::super) session: &'a Session,
    pub(in super::super) number: u32,
    /// What the servers called the sessions of this recording, each with its number.
    pub(in super::super) live_ids: &'a [(&'a [u8], u32)],
}

impl Heads<'_> {
    /// An event as what stands in the file, and the fields that an event of a stream had.
    pub(in super::super) fn message<'e>(&self, event: &'e Event<'_>) -> (MessageDraft<'e>, Option<Sse>) {
        let bytes = match &event.payload {
            Payload::Request(head) => {
                let part = Part::Request;
                return (MessageDraft { part, ..MessageDraft::new(request_line(head)) }, None);
            }
            Payload::Body(bytes) => return (MessageDraft::body(&**bytes), None),
            Payload::SseEvent(event) if !is_message_event(event) => {
                return (MessageDraft::body(self.data(event)), Some(fields(event)).filter(is_unusual));
            }
            Payload::SseEvent(event) => {
                return (MessageDraft::new(&*event.data), Some(fields(event)).filter(is_unusual));
            }
            payload => line(event.direction, payload).unwrap_or_default(),
        };
        let omitted = match &event.payload {
            Payload::Oversize(line) => Some((line.size, line.sha256)),
            _ => None,
        };
        (MessageDraft { part: Part::Message, bytes, omitted }, None)
    }

    /// The client's message, or the line of its request. A body without its request's head is taken for a line.
    pub(in super::super) fn client<'e>(&self, event: &'e Event<'_>) -> MessageDraft<'e> {
        let draft = self.message(event).0;
        let part = if draft.part == Part::Request { Part::Request } else { Part::Message };
        MessageDraft { part, ..draft }
    }

    /// The data of an event that is no message. An endpoint's address has its session's placeholder.
    fn data<'e>(&self, event: &'e SseEvent<'_>) -> Cow<'e, [u8]> {
        let data = Cow::Borrowed(&*event.data);
        let is_endpoint = self.session.is_sse && event.event.as_deref() == Some(b"endpoint");
        let Some(id) = self.session.live_id.as_deref().filter(|_| is_endpoint) else { return data };
        match memchr::memmem::rfind(&data, id) {
            Some(at) => {
                let placeholder = session_placeholder(self.number);
                Cow::Owned([&data[..at], placeholder.as_bytes(), &data[at + id.len()..]].concat())
            }
            None => data,
        }
    }

    /// What of a request and its response is not as usual. `client` is the message that the request held, and
    /// `body` takes its body if that is none.
    pub(in super::super) fn http<'e>(
        &self,
        carrier: &Carrier,
        events: &mut slice::Iter<'e, Event<'_>>,
        client: Option<&Event<'_>>,
        body: &mut Option<MessageDraft<'e>>,
    ) -> Option<Http> {
        let (again, until_delete, end) = (carrier.again.clone(), carrier.until_delete, carrier.end);
        let mut http = Http { again, until_delete, end, ..Http::default() };
        let line = client.and_then(|event| line(event.direction, &event.payload));
        let message = Message::read(line.as_deref().unwrap_or_default());
        let asked = Asked::of(client, &message);
        let request = events.next()?;
        let sent = if carrier.body.is_some() { events.next() } else { None };
        let is_partial = sent.is_some_and(|event| matches!(event.payload, Payload::Partial(_)));
        if let Payload::Request(head) = &request.payload {
            self.request(head, asked, &mut http);
            self.mirrors(head, &message, &mut http);
            if is_partial {
                self.request_headers(&[CONTENT_LENGTH], head, |_, values| values.is_empty(), &mut http);
            }
        }
        *body = sent.map(|event| {
            let part = if is_partial { Part::Partial } else { Part::Body };
            MessageDraft { part, ..MessageDraft::body(bytes(event)) }
        });
        if carrier.response.is_some()
            && let Payload::Response(head) = &events.next()?.payload
        {
            let usual = if asked.waits() { 200 } else { 202 };
            // No response is over with another below 200, but for a change of protocols; a journal may be anybody's.
            let is_status =
                |status: &u16| (*status == 101 || (200..=999).contains(status)) && *status != usual;
            http.status = Some(head.status).filter(is_status);
            self.response(&head.headers, carrier.content, &mut http);
        }
        if carrier.partial.is_some() {
            http.partial = events.next().map(|event| bytes(event).into());
        }
        (http != Http::default()).then_some(http)
    }

    fn request(&self, head: &RequestHead<'_>, asked: Asked, http: &mut Http) {
        let is_own = self.session.path.as_deref().is_some_and(|path| target(&head.target) == path);
        // Messages of HTTP+SSE go to the endpoint that the stream named.
        if asked != Asked::Plain && !is_own && !self.session.is_sse {
            http.path = Some(target(&head.target).into());
        }
        let usual = |name: &str, values: &[&[u8]]| match name {
            "mcp-protocol-version" => match values {
                [] => !self.must_say_version() || asked == Asked::Plain || asked == Asked::Initialize,
                [value] => self.protocol().is_some_and(|protocol| protocol.as_bytes() == *value),
                _ => false,
            },
            "accept" if asked != Asked::Plain => {
                names_type(values, "application/json") && names_type(values, "text/event-stream")
            }
            "accept" => !is_own || *head.method != *b"GET" || names_type(values, "text/event-stream"),
            _ => values.is_empty(),
        };
        self.request_headers(&["last-event-id", "mcp-protocol-version", "accept"], head, usual, http);
        http.auth =
            head.headers.iter().any(|(name, _)| std::str::from_utf8(name).is_ok_and(redact::is_credential));
    }

    /// Those of these headers that are not as usual.
    fn request_headers(
        &self,
        names: &[&str],
        head: &RequestHead<'_>,
        is_usual: impl Fn(&str, &[&[u8]]) -> bool,
        http: &mut Http,
    ) {
        for name in names {
            let values: Vec<&[u8]> = all(&head.headers, name).collect();
            if !is_usual(name, &values) {
                let values = values.into_iter().map(|value| self.value(value)).collect();
                http.request.push(Header { name: (*name).into(), values });
            }
        }
    }

    /// The headers that repeat the message, where they do not: a server of 2026-07-28 refuses that.
    fn mirrors(&self, head: &RequestHead<'_>, message: &Message<'_>, http: &mut Http) {
        if message.kind != Kind::Request || !message.is_modern() || self.session.is_sse {
            return;
        }
        for (header, expected) in [("mcp-method", Some(message.method())), ("mcp-name", message.name())] {
            let values: Vec<&[u8]> = all(&head.headers, header).collect();
            let is_usual = match (&values[..], &expected) {
                ([value], Some(expected)) => *decoded(value) == *expected.as_bytes(),
                (values, expected) => values.is_empty() && expected.is_none(),
            };
            if !is_usual {
                let values = values.into_iter().map(|value| self.value(value)).collect();
                http.request.push(Header { name: header.into(), values });
            }
        }
    }

    fn protocol(&self) -> Option<&str> {
        self.session.facts.protocol.as_deref()
    }

    /// Whether every request but the first names the revision (specification 2025-06-18, basic/transports).
    fn must_say_version(&self) -> bool {
        self.session.live_id.is_some() && !self.session.is_sse && self.protocol() >= Some("2025-06-18")
    }

    fn response(&self, headers: &Headers<'_>, content: Content, http: &mut Http) {
        let content_type: Vec<&[u8]> = all(headers, "content-type").collect();
        http.stream = matches!(content_type[..], [value] if is_type(value, "text/event-stream"));
        let usual: Option<&[u8]> = match content {
            _ if http.stream => Some(b"text/event-stream"),
            Content::Message => Some(b"application/json"),
            Content::Empty | Content::Other => None,
        };
        if usual.is_some() && content_type.is_empty() {
            http.headers.push(Header { name: "content-type".into(), values: Vec::new() });
        }
        for (name, value) in headers {
            let Some(name) = header_name(name) else { continue };
            // The clock differs each time, and who sends the response again frames it anew.
            let is_derived = name == "date"
                || is_of_connection(&name) && name != "upgrade"
                || (name == "content-type" && content_type.len() == 1 && usual == Some(&**value));
            if is_derived {
                continue;
            }
            let value = self.value(value);
            match http.headers.iter_mut().find(|known| *known.name == *name) {
                Some(known) => known.values.push(value),
                None => http.headers.push(Header { name: name.into(), values: vec![value] }),
            }
        }
    }

    /// A header's value, with placeholders for the ids of sessions.
    fn value(&self, value: &[u8]) -> Box<[u8]> {
        let own = self.session.live_id.as_deref().map(|id| (id, self.number));
        let known = own.into_iter().chain(self.live_ids.iter().copied());
        for (id, number) in known {
            if value == id {
                return session_placeholder(number).into_bytes().into();
            }
        }
        // No header has such bytes; a journal may be anybody's.
        value.iter().copied().filter(|byte| is_field_value(&[*byte])).collect()
    }
}

/// What a request was, as far as its usual response depends on that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    /// `initialize`.
    Initialize,
    /// Any other message that is answered.
    Request,
    /// Any other message.
    Other,
    /// No message.
    Plain,
}

impl Asked {
    const fn waits(self) -> bool {
        matches!(self, Self::Initialize | Self::Request)
    }

    fn of(client: Option<&Event<'_>>, message: &Message<'_>) -> Self {
        let Some(event) = client else { return Self::Other };
        if matches!(event.payload, Payload::Request(_)) {
            return Self::Plain;
        }
        if message.kind == Kind::Request && message.method() == "initialize" {
            return Self::Initialize;
        }
        let asks =
            message.kind == Kind::Request || message.members().any(|member| member.kind == Kind::Request);
        if asks { Self::Request } else { Self::Other }
    }
}

/// The bytes of a body, or of what there was of one.
fn bytes<'e>(event: &'e Event<'_>) -> &'e [u8] {
    match &event.payload {
        Payload::Message(bytes) | Payload::Body(bytes) | Payload::Partial(bytes) => bytes,
        _ => &[],
    }
}

fn fields(event: &SseEvent<'_>) -> Sse {
    let event_type = match event.event.as_deref() {
        None | Some(b"") => EventType::Unnamed,
        Some(b"message") => EventType::Message,
        Some(name) => EventType::Named(line_of(name)),
    };
    let no_data = event.no_data && event.data.is_empty();
    Sse { id: event.id.as_deref().map(line_of), event: event_type, retry: event.retry, no_data }
}

/// A field of an event as the file has it.
pub(super) fn line_of(bytes: &[u8]) -> Box<str> {
    String::from_utf8_lossy(bytes).replace(['\r', '\n', '\0'], "").into()
}

fn is_unusual(sse: &Sse) -> bool {
    *sse != Sse::default()
}

/// All values of a header.
pub(super) fn all<'h>(headers: &'h Headers<'_>, name: &str) -> impl Iterator<Item = &'h [u8]> {
    let named = headers.iter().filter(move |(known, _)| known.eq_ignore_ascii_case(name.as_bytes()));
    named.map(|(_, value)| &**value)
}

/// A header's name in lower case; none where it is none.
fn header_name(name: &[u8]) -> Option<String> {
    is_token(name).then(|| String::from_utf8_lossy(name).to_ascii_lowercase())
}

/// A request's path and query as the file has it; what can stand in no address is escaped.
pub(super) fn target(target: &[u8]) -> String {
    let mut text = String::with_capacity(target.len());
    for letter in String::from_utf8_lossy(target).chars() {
        match letter {
            '\0'..=' ' | '\x7f' => text.push_str(&format!("%{:02X}", letter as u32)),
            letter => text.push(letter),
        }
    }
    if !text.starts_with('/') && text != "*" {
        text.insert(0, '/');
    }
    text
}

/// A request's method as the file has it: as it was, or what of it is a token where a journal was damaged.
pub(super) fn method(method: &[u8]) -> String {
    let letters = method.iter().filter(|byte| is_token(slice::from_ref(*byte)));
    let name: String = letters.copied().map(char::from).collect();
    if name.is_empty() { "-".to_owned() } else { name }
}

/// The line of a request as the file has it.
pub(in super::super) fn request_line(head: &RequestHead<'_>) -> Vec<u8> {
    format!("{} {}", method(&head.method), target(&head.target)).into_bytes()
}
