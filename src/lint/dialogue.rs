//! A session as rules look at it: its messages in the order of the wire, each with its place in the file.

use std::collections::{HashMap, HashSet};

use super::Fault;
use crate::{
    cassette::{
        blob::BlobSource,
        model::{self, Cassette, Exchange, Form, Http, Item, Moment, Ref, Session},
        order::timeline,
    },
    wire::{
        jsonrpc::{Kind, Message},
        revision::{methods, revision},
        scan,
    },
};

/// What stood on the wire in one session.
#[derive(Debug, Default)]
pub(super) struct Lines {
    lines: Vec<(Ref, Vec<u8>)>,
    /// Something is not in the file: a gap, a message over the recorder's limit, a blob.
    has_holes: bool,
}

impl Lines {
    pub(super) fn of(cassette: &Cassette, session: u32, exchanges: &[u32], blobs: &dyn BlobSource) -> Self {
        let mut read = Self { has_holes: cassette.has_gap(session), ..Self::default() };
        for at in timeline(cassette, exchanges) {
            let Some(message) = message(cassette, at) else { continue };
            if matches!(message.form, Form::Http | Form::Body) {
                continue;
            }
            let mut line = Vec::new();
            match cassette.wire(session, is_from_client(at), message, None, blobs, &mut line) {
                Ok(()) => read.lines.push((at, line)),
                Err(_) => read.has_holes = true,
            }
        }
        read
    }
}

/// One message.
#[derive(Debug)]
pub(super) struct Seen<'a> {
    pub(super) at: Ref,
    pub(super) message: Message<'a>,
    pub(super) from_client: bool,
    pub(super) in_batch: bool,
    /// Of a response: the request it answers.
    pub(super) asked: Option<usize>,
    /// Of a request: the first response to it.
    pub(super) answer: Option<usize>,
}

impl Seen<'_> {
    pub(super) fn is(&self, kind: Kind, from_client: bool) -> bool {
        self.message.kind == kind && self.from_client == from_client
    }

    /// Whether a client's request is of 2026-07-28 or later.
    pub(super) fn is_modern(&self) -> bool {
        let only_modern = |name: &str| matches!(name, "server/discover" | "subscriptions/listen");
        self.message.is_modern() || only_modern(&self.message.method())
    }
}

/// The `initialize` of a session that was answered by a result.
#[derive(Clone, Copy, Debug)]
pub(super) struct Handshake {
    pub(super) request: usize,
    pub(super) result: usize,
}

/// One session.
#[derive(Debug)]
pub(super) struct Dialogue<'a> {
    pub(super) cassette: &'a Cassette,
    pub(super) session: &'a Session,
    pub(super) known: &'a Known,
    /// Its messages; members of a batch each on its own.
    pub(super) seen: Vec<Seen<'a>>,
    pub(super) handshake: Option<Handshake>,
    /// From which message on it is of 2026-07-28 or later; none where it is not, or had a handshake.
    modern_from: Option<usize>,
    /// Whether all of the session is in the file.
    pub(super) is_whole: bool,
    /// Whether messages of it may have passed unrecorded.
    pub(super) has_gap: bool,
}

impl<'a> Dialogue<'a> {
    pub(super) fn new(cassette: &'a Cassette, session: u32, lines: &'a Lines, known: &'a Known) -> Self {
        let mut seen: Vec<Seen<'a>> = Vec::with_capacity(lines.lines.len());
        let mut requests: HashMap<Ref, Vec<usize>> = HashMap::new();
        for (at, line) in &lines.lines {
            let whole = Message::read(line);
            let in_batch = whole.kind == Kind::Batch;
            let single = (!in_batch).then_some(whole);
            for message in single.into_iter().chain(whole.members()) {
                let index = seen.len();
                let mut entry = Seen {
                    at: *at,
                    message,
                    from_client: is_from_client(*at),
                    in_batch,
                    asked: None,
                    answer: None,
                };
                if message.kind == Kind::Request {
                    requests.entry(*at).or_default().push(index);
                } else if message.kind.is_response() && !is_aside(cassette, *at) {
                    entry.asked = asked(&requests, *at, &message, &seen);
                }
                if let Some(asked) = entry.asked {
                    seen[asked].answer.get_or_insert(index);
                }
                seen.push(entry);
            }
        }
        let handshake = seen.iter().enumerate().find_map(|(request, entry)| {
            let result = entry.answer.filter(|answer| seen[*answer].message.kind == Kind::Result)?;
            (is_initialize(entry)).then_some(Handshake { request, result })
        });
        let (session, has_gap) = (&cassette.sessions[session as usize], cassette.has_gap(session));
        let (is_whole, modern_from) = (!lines.has_holes, None);
        let mut dialogue = Self { cassette, session, known, seen, handshake, modern_from, is_whole, has_gap };
        dialogue.modern_from = dialogue.find_modern();
        dialogue
    }

    /// The file says it of the session, or a request of it was answered by a result.
    fn find_modern(&self) -> Option<usize> {
        if self.handshake.is_some() {
            return None;
        }
        if self.session.protocol.as_deref().is_some_and(|name| !revision(name).handshake) {
            return Some(0);
        }
        let was_answered = |request: &Seen<'_>| request.answer.is_some() && self.result_of(request).is_some();
        let first = self.requests().find(|(_, seen)| seen.is_modern() && was_answered(seen));
        first.map(|(index, _)| index + 1)
    }

    /// The messages of one kind and side, each with its index.
    pub(super) fn all(&self, kind: Kind, from_client: bool) -> impl Iterator<Item = (usize, &Seen<'a>)> {
        self.seen.iter().enumerate().filter(move |(_, seen)| seen.is(kind, from_client))
    }

    /// The client's requests.
    pub(super) fn requests(&self) -> impl Iterator<Item = (usize, &Seen<'a>)> {
        self.all(Kind::Request, true)
    }

    /// The first response to a request, if it is a result.
    pub(super) fn result_of(&self, request: &Seen<'_>) -> Option<&Seen<'a>> {
        request.answer.map(|answer| &self.seen[answer]).filter(|answer| answer.message.kind == Kind::Result)
    }

    pub(super) fn exchange(&self, seen: &Seen<'_>) -> &'a Exchange {
        &self.cassette.exchanges[seen.at.exchange as usize]
    }

    pub(super) fn key(&self, seen: &Seen<'_>) -> &'a str {
        &self.exchange(seen).key
    }

    /// The item of `server` that a message of the server's is, or that the client answers.
    pub(super) fn item(&self, seen: &Seen<'_>) -> Option<&'a Item> {
        match seen.at.moment {
            Moment::Client => None,
            Moment::Item(n) | Moment::Answer(n) => self.exchange(seen).server.get(n as usize),
        }
    }

    /// What is told of the HTTP request and response that carried a message of the client's.
    pub(super) fn http(&self, seen: &Seen<'_>) -> Option<&'a Http> {
        match seen.at.moment {
            Moment::Client => self.exchange(seen).http.as_deref(),
            Moment::Item(_) => None,
            Moment::Answer(_) => self.item(seen)?.answer.as_ref()?.http.as_deref(),
        }
    }

    /// The revision that was agreed on.
    pub(super) fn protocol(&self) -> Option<String> {
        let agreed = self.handshake.and_then(|handshake| {
            let result = self.seen[handshake.result].message.outcome()?;
            let version = scan::member(result, 0, "protocolVersion")?.of(result);
            text(version)
        });
        agreed.or_else(|| self.session.protocol.clone())
    }

    /// Whether a request of 2026-07-28 or later was answered by a result before a message, or the file says that the
    /// session is of such a revision.
    pub(super) fn is_modern_before(&self, index: usize) -> bool {
        self.modern_from.is_some_and(|from| from <= index)
    }

    /// Whether the server refused an HTTP request before it looked at the message.
    pub(super) fn is_challenged(&self, seen: &Seen<'_>) -> bool {
        self.http(seen).and_then(|http| http.status).is_some_and(|status| matches!(status, 401 | 403 | 429))
    }

    /// A fault of a message; `pointer` leads to what is wrong in it (`""`: all of it).
    pub(super) fn fault(&self, seen: &Seen<'_>, pointer: &str, text: impl Into<String>) -> Fault {
        Fault { at: self.place(seen, pointer), exchange: seen.at.exchange, text: text.into(), is_note: false }
    }

    /// Where a part of a message stands in the file: as near as the form lets tell.
    fn place(&self, seen: &Seen<'_>, pointer: &str) -> usize {
        let (text, exchange) = (&self.cassette.text, self.exchange(seen));
        let Some(message) = message(self.cassette, seen.at) else { return exchange.place.start as usize };
        let place = message.place.span();
        let is_here = exchange.place.start <= message.place.start && message.place.end <= exchange.place.end;
        if !is_here {
            // `same_as`: the answer stands elsewhere.
            return self.item_place(seen).unwrap_or(exchange.place.start as usize);
        }
        let inside = match message.form {
            Form::Request | Form::Notification => Some(pointer),
            Form::Result => pointer.strip_prefix("/result"),
            Form::Error => pointer.strip_prefix("/error"),
            _ => None,
        };
        inside
            .and_then(|pointer| scan::pointer(text, place, pointer))
            .map_or(place.start, |found| found.start)
    }

    fn item_place(&self, seen: &Seen<'_>) -> Option<usize> {
        let (Moment::Item(n) | Moment::Answer(n)) = seen.at.moment else { return None };
        let text = &self.cassette.text;
        let server = scan::member(text, self.exchange(seen).place.start as usize, "server")?;
        scan::elements(text, server.start).nth(n as usize)?.ok().map(|item| item.start)
    }
}

/// Whether a message is the request that begins a session of a revision before 2026-07-28.
pub(super) fn is_initialize(seen: &Seen<'_>) -> bool {
    seen.is(Kind::Request, true) && seen.message.method() == "initialize" && !seen.message.is_modern()
}

/// The text of a raw JSON string; none where it is something else.
pub(super) fn text(raw: &[u8]) -> Option<String> {
    let inside = raw.first() == Some(&b'"');
    inside.then(|| String::from_utf8_lossy(&scan::unescape(raw)).into_owned())
}

/// A name to be shown, on one line and not too long.
pub(super) fn short(name: &str) -> String {
    name.chars().take(80).collect()
}

/// The raw value shown.
pub(super) fn shown(raw: &[u8]) -> String {
    short(&String::from_utf8_lossy(raw))
}

fn is_from_client(at: Ref) -> bool {
    !matches!(at.moment, Moment::Item(_))
}

fn message(cassette: &Cassette, at: Ref) -> Option<&model::Message> {
    let exchange = &cassette.exchanges[at.exchange as usize];
    match at.moment {
        Moment::Client => exchange.client.as_ref(),
        Moment::Item(n) => exchange.server.get(n as usize).map(|item| &item.message),
        Moment::Answer(n) => exchange.server.get(n as usize)?.answer.as_ref().map(|answer| &answer.message),
    }
}

/// Whether a message was said to a client's answer, which is no request.
fn is_aside(cassette: &Cassette, at: Ref) -> bool {
    let exchange = &cassette.exchanges[at.exchange as usize];
    matches!(at.moment, Moment::Item(item) if exchange.is_aside(&exchange.server[item as usize]))
}

/// The request that a response answers: the one of its exchange, or of its item; in a batch, the one with its id.
fn asked(
    requests: &HashMap<Ref, Vec<usize>>,
    at: Ref,
    response: &Message<'_>,
    seen: &[Seen<'_>],
) -> Option<usize> {
    let moment = match at.moment {
        Moment::Item(_) => Moment::Client,
        Moment::Answer(n) => Moment::Item(n),
        Moment::Client => return None,
    };
    let candidates = requests.get(&Ref { moment, ..at })?;
    match candidates[..] {
        [only] if !seen[only].in_batch => Some(only),
        _ => {
            let id = response.id_key()?;
            candidates.iter().copied().find(|request| seen[*request].message.id_key().as_ref() == Some(&id))
        }
    }
}

/// What is told of a whole recording.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The names in its lists of tools, by its number.
    tools: HashMap<u32, HashSet<String>>,
    /// Each `initialize` that was given an `mcp-session-id`: its exchange, and the number of its recording.
    pub(super) given: Vec<(u32, u32)>,
}

impl Known {
    fn of_exchange(&mut self, cassette: &Cassette, index: u32, blobs: &dyn BlobSource) {
        let exchange = &cassette.exchanges[index as usize];
        let recording = cassette.sessions[exchange.session as usize].recording;
        let headers = exchange.http.iter().flat_map(|http| &http.headers);
        let mut named = headers.filter(|header| &*header.name == "mcp-session-id");
        let Some(client) = &exchange.client else { return };
        let mut line = Vec::new();
        let is_rebuilt = client.form != Form::Http
            && cassette.wire(exchange.session, true, client, None, blobs, &mut line).is_ok();
        if !is_rebuilt {
            return;
        }
        let request = Message::read(&line);
        match &*request.method() {
            "initialize" if named.any(|header| !header.values.is_empty()) => {
                self.given.push((index, recording));
            }
            "tools/list" => {
                for item in exchange.server.iter().filter(|item| item.message.kind == Kind::Result) {
                    let mut line = Vec::new();
                    if cassette.wire(exchange.session, false, &item.message, None, blobs, &mut line).is_ok() {
                        let names = tools(&Message::read(&line)).filter_map(|(name, _)| name);
                        self.tools.entry(recording).or_default().extend(names);
                    }
                }
            }
            _ => {}
        }
    }

    pub(super) fn of(cassette: &Cassette, blobs: &dyn BlobSource) -> Self {
        let mut known = Self::default();
        for index in 0..cassette.exchanges.len() {
            // Each exchange takes more than one byte of 4 GiB.
            known.of_exchange(cassette, u32::try_from(index).unwrap_or(u32::MAX), blobs);
        }
        known
    }

    /// Whether a name is in a list of tools.
    pub(super) fn is_tool(&self, recording: u32, name: &str) -> bool {
        methods::find(name).is_none() && self.tools.get(&recording).is_some_and(|tools| tools.contains(name))
    }
}

/// The tools that the answer to `tools/list` names, each with its `outputSchema`, raw.
pub(super) fn tools<'a>(
    list: &Message<'a>,
) -> impl Iterator<Item = (Option<String>, Option<&'a [u8]>)> + use<'a> {
    let result = list.outcome().unwrap_or_default();
    let tools = scan::member(result, 0, "tools").filter(|span| result[span.start] == b'[');
    let tools = tools.into_iter().flat_map(move |span| scan::elements(result, span.start));
    tools.map_while(Result::ok).filter(|span| result[span.start] == b'{').map(|span| {
        let member = |name| scan::member(result, span.start, name).map(|span| span.of(result));
        (member("name").and_then(text), member("outputSchema"))
    })
}
