//! How a response begins: its status, its headers, and whether events follow.

use std::{borrow::Cow, sync::Arc};

use super::{
    Found, Output, Replayer,
    items::Way,
    streams::{event, is_line},
};
use crate::{
    cassette::model::{Exchange, Header, Http, Id, Item, Unanswered},
    replay::{
        exchange::{Headers, ResponseHead},
        rewrite,
        script::StepKind,
    },
    traffic::Lane,
    wire::http,
};

/// Clients in Python read no longer events, but bodies of any length (F10.16).
const LONGEST_EVENT: usize = 1 << 20;

/// How a response begins.
pub(super) struct Beginning {
    pub head: ResponseHead,
    /// The recording says which content type it has.
    pub is_typed: bool,
    /// It was recorded over the transport that the request at hand came over.
    is_alike: bool,
}

impl Replayer {
    /// Prepares the response to a request that an exchange is played for, and begins it where it can begin.
    pub(super) fn respond(&mut self, lane: Lane, found: Found, is_modern: bool) {
        let Some(stream) = self.streams.get_mut(&lane.0) else { return };
        stream.is_modern = is_modern;
        let (live, origin) = (stream.live, Arc::clone(&stream.origin));
        let cassette = Arc::clone(&self.cassette);
        let entry = &cassette.exchanges[self.exchange_of(found) as usize];
        let Beginning { head, is_typed, is_alike } = self.beginning(entry, found, live, &origin);
        let (is_stream, is_sse) = (head.stream, self.at_hand.post.is_some());
        if let Some(stream) = self.streams.get_mut(&lane.0) {
            stream.head = Some(head);
            stream.is_stream = is_stream;
            stream.is_typed = is_typed;
        }
        if is_stream {
            self.begin_response(lane, false);
        } else if is_sse && !is_alike {
            self.accept_text(lane);
        }
    }

    /// How the response begins to a request of the live session `live` that an exchange is played for.
    pub(super) fn beginning(
        &mut self,
        entry: &Exchange,
        found: Found,
        live: usize,
        origin: &str,
    ) -> Beginning {
        let live = live.max(self.at_hand.live);
        let step = self.step_of(found);
        let (asks, is_initialize) =
            (step.is_asked(), self.scripts[self.plays[found.play].script].is_handshake(step));
        let (is_line, is_sse) = (step.kind == StepKind::Line, self.at_hand.post.is_some());
        let is_alike = is_line || self.is_alike(entry);
        let http = entry.http.as_deref().filter(|_| is_alike);
        let (status, is_stream) = if is_alike {
            self.recorded_status(entry, asks, is_sse)
        } else if is_sse || !asks {
            (202, false)
        } else {
            (200, self.sole_answer(entry).is_none() && entry.unanswered != Some(Unanswered::Lost))
        };
        let mut head = ResponseHead { status, headers: self.headers(http, origin, live), stream: is_stream };
        if !is_alike && asks && !is_sse && is_initialize {
            head.headers.push(("mcp-session-id".into(), self.id_of(live).as_bytes().to_vec().into()));
        }
        let is_typed = http.is_some_and(|http| http.headers.iter().any(is_content_type));
        if is_stream && !is_typed {
            head.is_events();
        }
        if status == 401 {
            self.tell_of_challenge(&head);
        }
        Beginning { head, is_typed, is_alike }
    }

    /// Whether an exchange was recorded over the transport that the request at hand came over.
    pub(super) fn is_alike(&self, entry: &Exchange) -> bool {
        let session = &self.cassette.sessions[entry.session as usize];
        session.is_http() && session.is_sse() == self.at_hand.post.is_some()
    }

    /// The recorded status, and whether events followed.
    fn recorded_status(&self, entry: &Exchange, asks: bool, is_sse: bool) -> (u16, bool) {
        let http = entry.http.as_deref();
        let is_stream = http.is_some_and(|http| http.stream);
        // A stream whose head never came was one that nothing was sent on; whatever else was left open is silent.
        let wants_events = || self.at_hand.facts.as_ref().is_some_and(super::facts::Facts::wants_events);
        let is_awaited = is_line(entry) && entry.unanswered == Some(Unanswered::Open) && wants_events();
        let usual = if asks || is_stream || is_awaited { 200 } else { 202 };
        let status = http.and_then(|http| http.status).unwrap_or(usual);
        // An answer that came on the `GET` stream goes on the response: not all clients look for it there (F10.5).
        let answers = |item: &Item| item.on.is_some() && self.answers(entry, item);
        if !is_sse && asks && status == 202 && entry.server.iter().any(answers) {
            return (200, false);
        }
        (status, (is_stream || is_awaited) && !(asks && self.is_too_long(entry)))
    }

    /// Whether a stream is nothing but one answer that is too long for an event.
    fn is_too_long(&self, entry: &Exchange) -> bool {
        let is_plain = |http: &Http| http.end.is_none() && !http.headers.iter().any(is_content_type);
        let Some(item) = self.sole_answer(entry) else { return false };
        let is_long = item.message.place.span().len() > LONGEST_EVENT;
        is_long
            && item.sse.as_ref().is_none_or(|sse| sse.id.is_none() && sse.retry.is_none())
            && entry.http.as_deref().is_none_or(is_plain)
            && self.at_hand.facts.as_ref().is_some_and(super::facts::Facts::accepts_json)
    }

    /// The answer, where that is all that goes on the response.
    pub(super) fn sole_answer<'a>(&self, entry: &'a Exchange) -> Option<&'a Item> {
        let mut own = entry.server.iter().filter(|item| self.way(entry, item, false) == Way::Own);
        own.next().filter(|item| own.next().is_none() && self.answers(entry, item))
    }

    /// The recorded headers of a response, with what is live in its place.
    fn headers(&mut self, http: Option<&Http>, origin: &str, live: usize) -> Headers {
        let Some(http) = http.filter(|http| !http.headers.is_empty()) else { return Vec::new() };
        let names_protocol = http.headers.iter().any(|header| &*header.name == "upgrade");
        // It goes with that header (RFC 9110, 7.8).
        let connection = names_protocol.then(|| ("connection".into(), b"upgrade".into()));
        let recorded = http
            .headers
            .iter()
            .flat_map(|header| header.values.iter().map(|value| (String::from(&*header.name), value)));
        let recorded = recorded.map(|(name, value)| (name.into(), self.filled(value, origin, live).into()));
        recorded.chain(connection).collect()
    }

    /// A recorded text with the live origin and session id in the place of what stands for them.
    pub(super) fn filled(&mut self, text: &[u8], origin: &str, live: usize) -> Vec<u8> {
        let filled = http::fill(text, origin, || Some(self.id_of(live)));
        match self.options.vars.show(&filled) {
            Cow::Borrowed(_) => filled,
            Cow::Owned(shown) => shown,
        }
    }

    /// What was said to a client that answered a server request: as recorded, or that it was taken in.
    pub(super) fn accept_answer(&mut self, lane: Lane, answered: Option<(u32, u32)>) {
        let cassette = Arc::clone(&self.cassette);
        let recorded = answered.and_then(|(exchange, item)| {
            let entry = &cassette.exchanges[exchange as usize];
            let answer = entry.server[item as usize].answer.as_ref()?;
            let http = answer.http.as_deref().filter(|_| self.is_alike(entry))?;
            // What was said to it stands behind it.
            let is_sse = self.at_hand.post.is_some();
            let is_body = |item: &Item| matches!(self.way(entry, item, is_sse), Way::Nowhere | Way::Post);
            let body = entry.server[item as usize + 1..].iter().position(is_body);
            let body = body.map(|at| self.said_to_answer(exchange, item, item + 1 + at as u32));
            Some((http, body))
        });
        let (Some((http, body)), Some(stream)) = (recorded, self.streams.get(&lane.0)) else {
            return self.accept(lane);
        };
        let (live, origin) = (stream.live, Arc::clone(&stream.origin));
        let status = http.status.unwrap_or(202);
        let mut headers = self.headers(Some(http), &origin, live);
        let said = body.map(|(exchange, item, bytes)| {
            (&cassette.exchanges[exchange as usize].server[item as usize], bytes)
        });
        let is_message = said.as_ref().is_some_and(|(item, _)| item.message.kind.is_response());
        if (http.stream || is_message) && !http.headers.iter().any(is_content_type) {
            let usual = if http.stream { "text/event-stream" } else { "application/json" };
            headers.insert(0, ("content-type".into(), usual.as_bytes().into()));
        }
        self.emit(Output::Head { lane, head: ResponseHead { status, headers, stream: http.stream } });
        match said {
            Some((item, bytes)) if http.stream => {
                self.emit(Output::Event { lane, event: event(bytes, item.sse.as_deref()) });
            }
            Some((_, bytes)) => self.emit(Output::Body { lane, bytes }),
            None => {}
        }
        self.finish_lane(lane);
    }

    /// What was said to a client that answered an item, in another one; with the live id where it names the answer's.
    fn said_to_answer(&self, exchange: u32, answered: u32, item: u32) -> (u32, u32, Vec<u8>) {
        let server = &self.cassette.exchanges[exchange as usize].server;
        let mut bytes = self.recorded(exchange, item);
        let (asked, said) = (&server[answered as usize].message, &server[item as usize].message);
        if said.kind.is_response() && said.id == asked.id && said.id != Id::Absent {
            rewrite::set_id(&mut bytes, &self.at_hand.id);
        }
        (exchange, item, self.options.vars.show(&bytes).into_owned())
    }

    /// Says once where clients go that are asked for credentials.
    fn tell_of_challenge(&mut self, head: &ResponseHead) {
        let challenge = head.headers.iter().find(|(name, _)| &**name == "www-authenticate");
        let challenge = challenge.map(|(_, value)| String::from_utf8_lossy(value).into_owned());
        let place = challenge.as_deref().and_then(|challenge| {
            let behind = challenge.split_once("resource_metadata=\"")?.1;
            Some(format!(", and the client looks for a way to get them at {}", behind.split_once('"')?.0))
        });
        self.warn(format!(
            "the recorded server asks for credentials{}; `--auth skip` leaves that out",
            place.unwrap_or_default()
        ));
    }
}

fn is_content_type(header: &Header) -> bool {
    &*header.name == "content-type"
}
