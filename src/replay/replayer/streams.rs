//! HTTP responses: their heads, events and ends.

use std::{borrow::Cow, sync::Arc};

use memchr::memmem;

use super::{Output, Replayer, lives::Held, resume::Sent};
use crate::{
    cassette::model::{EventType, Exchange, Form, Header, Http, Item, On, Sse, StreamEnd, Unanswered},
    replay::{exchange::ResponseHead, rewrite::Correlators, script::stays_silent},
    traffic::{Lane, SseEvent},
    wire::jsonrpc::{Kind, Message},
};

const ORIGIN: &[u8] = b"<origin>";
const SESSION: &[u8] = b"<session-";

/// A response that has not ended.
#[derive(Debug)]
pub(super) struct Stream {
    pub live: usize,
    /// Whether its request is of 2026-07-28 or later: its client cancels it by leaving.
    pub is_modern: bool,
    /// The run it answers.
    pub run: Option<(usize, u32)>,
    /// The origin by which its client calls us.
    origin: Box<str>,
    /// What it begins with; none once that has gone.
    head: Option<ResponseHead>,
    /// Events follow.
    is_stream: bool,
    /// The recording says which content type it has, or that it has none.
    is_typed: bool,
}

impl Stream {
    pub(super) fn new(live: usize, origin: &str) -> Self {
        let head = Some(ResponseHead { status: 200, ..ResponseHead::default() });
        Self {
            live,
            is_modern: false,
            run: None,
            origin: origin.into(),
            head,
            is_stream: false,
            is_typed: false,
        }
    }
}

/// One recorded message on its way.
pub(super) struct Going<'a> {
    pub live: usize,
    pub lane: Lane,
    pub exchange: u32,
    pub item: u32,
    pub to: &'a Arc<Correlators>,
}

impl Replayer {
    /// The stream that answers to a message go on: over HTTP+SSE, the session's.
    pub(super) fn own_stream(&self, lane: Lane) -> Lane {
        let sse = self.at_hand.post.and_then(|_| self.lives[self.at_hand.live].sse.as_ref());
        sse.map_or(lane, |(sse, _)| *sse)
    }

    /// Prepares the response to a request that an exchange is played for, and begins it where it can begin.
    pub(super) fn respond(&mut self, lane: Lane, exchange: u32, is_modern: bool) {
        let Some(stream) = self.streams.get_mut(&lane.0) else { return };
        stream.is_modern = is_modern;
        let live = stream.live.max(self.at_hand.live);
        let cassette = Arc::clone(&self.cassette);
        let entry = &cassette.exchanges[exchange as usize];
        let session = &cassette.sessions[entry.session as usize];
        let (is_line, is_sse, asks) = (is_line(entry), self.at_hand.post.is_some(), self.asks(exchange));
        // It was recorded as a response of this kind.
        let is_alike = is_line || (session.is_http() && session.is_sse() == is_sse);
        let http = entry.http.as_deref().filter(|_| is_alike);
        let (status, is_stream) = if is_alike {
            let usual = if is_line || asks { 200 } else { 202 };
            (http.and_then(|http| http.status).unwrap_or(usual), http.is_some_and(|http| http.stream))
        } else if is_sse || !asks {
            (202, false)
        } else {
            let is_one = entry.server.len() == 1 && self.is_response(exchange, 0);
            (200, !is_one && entry.unanswered != Some(Unanswered::Lost))
        };
        let mut head = ResponseHead { status, headers: self.headers(http, lane, live), stream: is_stream };
        if !is_alike && asks && !is_sse && self.method_of(exchange) == "initialize" {
            head.headers.push(("mcp-session-id".into(), self.id_of(live).as_bytes().to_vec()));
        }
        let is_typed = http.is_some_and(|http| http.headers.iter().any(is_content_type));
        if is_stream && !is_typed {
            head.headers.insert(0, ("content-type".into(), b"text/event-stream".to_vec()));
        }
        let never_came = http.is_some_and(|http| http.end.is_some() && http.status.is_none() && !http.stream);
        if let Some(stream) = self.streams.get_mut(&lane.0) {
            stream.head = Some(head).filter(|_| !never_came);
            stream.is_stream = is_stream;
            stream.is_typed = is_typed;
        }
        if is_stream {
            self.begin_response(lane, false);
        } else if is_sse && !is_alike {
            self.accept_text(lane);
        } else if self.is_empty(entry, asks, is_alike, is_sse) {
            self.end(lane, None, &[]);
        }
    }

    /// Whether a response has nothing but its head, and goes at once.
    fn is_empty(&self, entry: &Exchange, asks: bool, is_alike: bool, is_sse: bool) -> bool {
        if !is_alike {
            return !asks;
        }
        let on_it = |item: &Item| match item.on {
            None => !is_sse || is_line(entry),
            Some(on) => is_sse && on == On::Post,
        };
        let is_unanswered = stays_silent(entry) || entry.unanswered == Some(Unanswered::Lost);
        let waits = asks && !is_sse && is_unanswered;
        let ends_badly = entry.http.as_ref().is_some_and(|http| http.end.is_some());
        !waits && !ends_badly && !entry.server.iter().any(on_it)
    }

    /// Whether the client waits for an answer to this exchange's message.
    fn asks(&self, exchange: u32) -> bool {
        let client = self.cassette.exchanges[exchange as usize].client.as_ref();
        match client.map(|client| client.form) {
            Some(Form::Request) => return true,
            Some(Form::Notification | Form::Result | Form::Error | Form::Http) => return false,
            _ => {}
        }
        let bytes = self.recorded_request(exchange);
        let message = Message::read(&bytes);
        message.kind == Kind::Request || message.members().any(|member| member.kind == Kind::Request)
    }

    fn method_of(&self, exchange: u32) -> String {
        Message::read(&self.recorded_request(exchange)).method().into_owned()
    }

    fn is_response(&self, exchange: u32, item: u32) -> bool {
        let entry = &self.cassette.exchanges[exchange as usize];
        match entry.server[item as usize].message.form {
            Form::Result | Form::Error | Form::Omitted => true,
            Form::Raw | Form::Base64 => Message::read(&self.recorded(exchange, item)).kind.is_response(),
            _ => false,
        }
    }

    /// The recorded headers of a response, with what is live in its place.
    fn headers(&mut self, http: Option<&Http>, lane: Lane, live: usize) -> Vec<(Box<str>, Vec<u8>)> {
        let Some(http) = http else { return Vec::new() };
        let origin = self.streams.get(&lane.0).map(|stream| stream.origin.clone()).unwrap_or_default();
        let recorded = http
            .headers
            .iter()
            .flat_map(|header| header.values.iter().map(|value| (header.name.clone(), value)));
        recorded.map(|(name, value)| (name, self.filled(value, &origin, live))).collect()
    }

    /// A recorded text with the live origin and session id in the place of what stands for them.
    pub(super) fn filled(&mut self, text: &[u8], origin: &str, live: usize) -> Vec<u8> {
        let mut filled = Vec::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = memchr::memchr(b'<', rest) {
            filled.extend_from_slice(&rest[..at]);
            rest = &rest[at..];
            if let Some(behind) = rest.strip_prefix(ORIGIN) {
                filled.extend_from_slice(origin.as_bytes());
                rest = behind;
            } else if let Some(behind) = behind_session(rest) {
                let id = self.id_of(live);
                filled.extend_from_slice(id.as_bytes());
                rest = behind;
            } else {
                filled.push(b'<');
                rest = &rest[1..];
            }
        }
        filled.extend_from_slice(rest);
        match self.options.vars.show(&filled) {
            Cow::Borrowed(_) => filled,
            Cow::Owned(shown) => shown,
        }
    }

    /// Sends a response's head where it has not gone. `has_message`: a JSON-RPC message follows as its body.
    fn begin_response(&mut self, lane: Lane, has_message: bool) {
        let Some(stream) = self.streams.get_mut(&lane.0) else { return };
        let Some(mut head) = stream.head.take() else { return };
        if has_message && !stream.is_typed {
            head.headers.insert(0, ("content-type".into(), b"application/json".to_vec()));
        }
        self.outputs.push_back(Output::Head { lane, head });
    }

    /// Sends a message of ours: a line, an event, or the body of a response.
    pub(super) fn say(&mut self, lane: Lane, bytes: Vec<u8>, apart: bool) {
        let lane = match self.at_hand.post {
            Some(post) if post == lane => {
                self.accept_text(lane);
                self.own_stream(lane)
            }
            _ => lane,
        };
        self.deliver(lane, bytes, apart, None, true);
        // What we say ourselves is all there is.
        if self.streams.get(&lane.0).is_some_and(|stream| !stream.is_stream) {
            self.end(lane, None, &[]);
        }
    }

    /// Sends bytes on a lane, in the form that it has.
    pub(super) fn deliver(
        &mut self,
        lane: Lane,
        bytes: Vec<u8>,
        apart: bool,
        sse: Option<&Sse>,
        is_message: bool,
    ) {
        if lane.0 == 0 {
            if is_message {
                self.outputs.push_back(Output::Send { lane, bytes, apart });
            }
            return;
        }
        let Some(stream) = self.streams.get(&lane.0) else { return };
        if stream.is_stream {
            self.begin_response(lane, false);
            let event = event(bytes, sse);
            return self.outputs.push_back(Output::Event { lane, event });
        }
        if stream.head.is_some() {
            self.begin_response(lane, is_message);
            self.outputs.push_back(Output::Body { lane, bytes });
            // A body is all there is, whatever its exchange waits for.
            self.finish_lane(lane);
        }
    }

    /// Sends a recorded message where it was sent: on its own stream, or on one of the session's.
    pub(super) fn send_on(&mut self, going: Going<'_>, bytes: Vec<u8>, apart: bool) {
        let Going { live, lane, exchange, item, to } = going;
        let entry = &self.cassette.exchanges[exchange as usize];
        let recorded = &entry.server[item as usize];
        let form = recorded.message.form;
        let sse = recorded.sse.clone();
        let is_body = form == Form::Body;
        let session = &self.cassette.sessions[entry.session as usize];
        let was_http = session.is_http();
        if !self.over_http {
            return self.deliver(lane, bytes, apart, None, !(is_body || was_http && form == Form::Base64));
        }
        let is_noise = matches!(form, Form::Raw | Form::Base64) && Message::read(&bytes).kind == Kind::Noise;
        if is_noise && !was_http {
            return;
        }
        let bytes = if is_body {
            let origin = self.streams.get(&lane.0).map(|stream| stream.origin.clone()).unwrap_or_default();
            if super::http::is_endpoint_event(
                &self.cassette.exchanges[exchange as usize].server[item as usize],
            ) {
                self.filled(&bytes, &origin, live)
            } else {
                replaced(&bytes, ORIGIN, origin.as_bytes())
            }
        } else {
            bytes
        };
        let on = self.on(exchange, item, live, lane);
        let lane = match on {
            None => Some(lane),
            Some(On::Resume) => {
                let resumed = self.lives[live].resumed.iter().rev();
                resumed.clone().find(|(resumed, _)| *resumed == exchange).map(|(_, lane)| *lane)
            }
            Some(On::Post) => Some(lane),
            Some(On::Get | On::Sse) => self.lives[live].get,
        };
        let Some(lane) = lane else {
            let on = on.unwrap_or(On::Get);
            let held = Held { on, exchange, item, bytes, to: Arc::clone(to) };
            return self.lives[live].held.push(held);
        };
        self.note_sent(live, exchange, item, to, on == Some(On::Get));
        self.deliver(lane, bytes, apart, sse.as_deref(), !is_body);
        self.end_of_get(live, exchange, item);
    }

    /// Ends a `GET` stream behind the last item that was sent on it, where the recorded server ended it there.
    fn end_of_get(&mut self, live: usize, exchange: u32, item: u32) {
        let is_last = self.lives[live].get_until == Some((exchange, item));
        if is_last && let Some(lane) = self.lives[live].get.take() {
            self.end(lane, None, &[]);
        }
    }

    /// The stream of the session's that an item goes on; none for the one that its exchange has.
    fn on(&self, exchange: u32, item: u32, live: usize, lane: Lane) -> Option<On> {
        if self.lives[live].sse.is_some() {
            return None;
        }
        let entry = &self.cassette.exchanges[exchange as usize];
        let recorded = &entry.server[item as usize];
        if lane.0 == 0 {
            return Some(On::Get);
        }
        let on = self.stream_of(entry.session, recorded)?;
        if on == On::Post {
            return None;
        }
        let is_open = self.streams.get(&lane.0).is_some_and(|stream| stream.is_stream);
        // Nobody could answer it otherwise.
        let asks = on == On::Get && recorded.message.form == Form::Request && self.lives[live].get.is_none();
        if asks && is_open { None } else { Some(on) }
    }

    /// Notes an event with an id, for a client that will ask for what came behind it.
    pub(super) fn note_sent(
        &mut self,
        live: usize,
        exchange: u32,
        item: u32,
        to: &Arc<Correlators>,
        on_get: bool,
    ) {
        let recorded = &self.cassette.exchanges[exchange as usize].server[item as usize];
        if let Some(id) = recorded.sse.as_ref().and_then(|sse| sse.id.clone()) {
            self.lives[live].sent.push(Sent { id, exchange, item, to: Arc::clone(to), on_get });
        }
    }

    /// Sends what waited for a stream of this kind, of one exchange or of all.
    pub(super) fn release(&mut self, live: usize, on: On, exchange: Option<u32>, lane: Lane) {
        let held = std::mem::take(&mut self.lives[live].held);
        let goes = |held: &Held| held.on == on && exchange.is_none_or(|wanted| wanted == held.exchange);
        let (going, kept): (Vec<Held>, Vec<Held>) = held.into_iter().partition(goes);
        self.lives[live].held = kept;
        for held in going {
            let sse = self.cassette.exchanges[held.exchange as usize].server[held.item as usize].sse.clone();
            self.note_sent(live, held.exchange, held.item, &held.to, on == On::Get);
            self.deliver(lane, held.bytes, false, sse.as_deref(), true);
            self.end_of_get(live, held.exchange, held.item);
        }
    }

    /// This lane is from now on its session's `GET` stream, until the item behind which the recorded one ended.
    pub(super) fn is_get(&mut self, lane: Lane, until: Option<(u32, u32)>) {
        let Some(stream) = self.streams.get(&lane.0) else { return };
        let live = stream.live;
        self.lives[live].get = Some(lane);
        self.lives[live].get_until = until;
        self.release(live, On::Get, None, lane);
    }

    /// Begins an event stream that is none of a recording's.
    pub(super) fn stream_head(&mut self, lane: Lane) {
        let Some(stream) = self.streams.get_mut(&lane.0) else { return };
        stream.is_stream = true;
        let headers = [("content-type", "text/event-stream"), ("cache-control", "no-cache")];
        let headers = headers.map(|(name, value)| (name.into(), value.as_bytes().to_vec())).to_vec();
        stream.head = Some(ResponseHead { status: 200, headers, stream: true });
        self.begin_response(lane, false);
    }

    /// Sends an event that is none of a recording's.
    pub(super) fn event(&mut self, lane: Lane, name: &[u8], data: &[u8]) {
        let event = SseEvent {
            event: Some(Cow::Owned(name.to_vec())),
            data: Cow::Owned(data.to_vec()),
            ..SseEvent::default()
        };
        self.outputs.push_back(Output::Event { lane, event });
    }

    /// A response without a message: a status and perhaps a sentence.
    pub(super) fn plain(&mut self, lane: Lane, status: u16, text: &str) {
        let mut headers = Vec::new();
        if !text.is_empty() {
            headers.push(("content-type".into(), b"text/plain; charset=utf-8".to_vec()));
        }
        let head = ResponseHead { status, headers, stream: false };
        self.outputs.push_back(Output::Head { lane, head });
        if !text.is_empty() {
            self.outputs.push_back(Output::Body { lane, bytes: text.into() });
        }
        self.finish_lane(lane);
    }

    /// 405, with what is allowed.
    pub(super) fn refuse_method(&mut self, lane: Lane) {
        let headers = vec![("allow".into(), b"POST, DELETE".to_vec())];
        let head = ResponseHead { status: 405, headers, stream: false };
        self.outputs.push_back(Output::Head { lane, head });
        self.finish_lane(lane);
    }

    fn finish_lane(&mut self, lane: Lane) {
        self.outputs.push_back(Output::EndLane { lane, partial: Vec::new(), end: None });
        self.streams.remove(&lane.0);
    }

    /// 202: what the client said was taken in.
    pub(super) fn accept(&mut self, lane: Lane) {
        if self.at_hand.post == Some(lane) {
            return self.accept_text(lane);
        }
        if self.streams.get(&lane.0).is_some_and(|stream| stream.head.is_some()) {
            self.plain(lane, 202, "");
        }
    }

    /// What was said to a client that answered a server request: as recorded, or that it was taken in.
    pub(super) fn accept_answer(&mut self, lane: Lane, answered: Option<(u32, u32)>) {
        let cassette = Arc::clone(&self.cassette);
        let recorded = answered.and_then(|(exchange, item)| {
            let entry = &cassette.exchanges[exchange as usize];
            let session = &cassette.sessions[entry.session as usize];
            let is_alike = session.is_http() && session.is_sse() == self.at_hand.post.is_some();
            entry.server[item as usize].answer.as_ref()?.http.as_deref().filter(|_| is_alike)
        });
        let (Some(http), Some(stream)) = (recorded, self.streams.get(&lane.0)) else {
            return self.accept(lane);
        };
        let live = stream.live;
        let status = http.status.unwrap_or(202);
        let head = ResponseHead { status, headers: self.headers(Some(http), lane, live), stream: false };
        self.outputs.push_back(Output::Head { lane, head });
        self.finish_lane(lane);
    }

    /// 202 as servers of HTTP+SSE say it.
    fn accept_text(&mut self, lane: Lane) {
        if self.streams.get(&lane.0).is_some_and(|stream| stream.head.is_some()) {
            self.plain(lane, 202, "Accepted");
        }
    }

    pub(super) fn set_status(&mut self, lane: Lane, status: u16) {
        if let Some(head) = self.streams.get_mut(&lane.0).and_then(|stream| stream.head.as_mut()) {
            head.status = status;
        }
    }

    /// Ends a response: in good order, or as the recorded one ended.
    pub(super) fn end(&mut self, lane: Lane, end: Option<StreamEnd>, partial: &[u8]) {
        if !self.streams.contains_key(&lane.0) {
            return;
        }
        self.begin_response(lane, false);
        self.outputs.push_back(Output::EndLane { lane, partial: partial.to_vec(), end });
        self.streams.remove(&lane.0);
    }
}

/// Whether an exchange is of an HTTP request that is no message.
pub(super) fn is_line(entry: &Exchange) -> bool {
    entry.client.as_ref().is_some_and(|client| client.form == Form::Http)
}

fn is_content_type(header: &Header) -> bool {
    &*header.name == "content-type"
}

/// An event with recorded data.
fn event(data: Vec<u8>, sse: Option<&Sse>) -> SseEvent<'static> {
    let usual = Sse::default();
    let sse = sse.unwrap_or(&usual);
    let name: Option<&str> = match &sse.event {
        EventType::Message => Some("message"),
        EventType::Unnamed => None,
        EventType::Named(name) => Some(name),
    };
    SseEvent {
        id: sse.id.as_ref().map(|id| Cow::Owned(id.as_bytes().to_vec())),
        event: name.map(|name| Cow::Owned(name.as_bytes().to_vec())),
        retry: sse.retry,
        data: Cow::Owned(data),
    }
}

/// What stands behind `<session-N>`.
fn behind_session(text: &[u8]) -> Option<&[u8]> {
    let rest = text.strip_prefix(SESSION)?;
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    rest[digits..].strip_prefix(b">").filter(|_| digits > 0)
}

fn replaced(text: &[u8], what: &[u8], by: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut from = 0;
    for at in memmem::find_iter(text, what) {
        out.extend_from_slice(&text[from..at]);
        out.extend_from_slice(by);
        from = at + what.len();
    }
    out.extend_from_slice(&text[from..]);
    out
}
