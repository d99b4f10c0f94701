//! HTTP responses on their way: what is sent on them, and how they end.

use std::{borrow::Cow, sync::Arc};

use super::{Output, Replayer};
use crate::{
    cassette::model::{EventType, Exchange, Form, Sse, StreamEnd},
    replay::exchange::{Headers, ResponseHead},
    traffic::{Lane, SseEvent},
};

/// A response that has not ended.
#[derive(Debug)]
pub(super) struct Stream {
    pub live: usize,
    /// Whether its request is of 2026-07-28 or later: its client cancels it by leaving.
    pub is_modern: bool,
    /// The run it answers.
    pub run: Option<(usize, u32)>,
    /// The origin by which its client calls us.
    pub origin: Arc<str>,
    /// What it begins with; none once that has gone.
    pub head: Option<ResponseHead>,
    /// Events follow.
    pub is_stream: bool,
    /// The recording says which content type it has, or that it has none.
    pub is_typed: bool,
}

impl Stream {
    pub(super) fn new(live: usize, origin: Arc<str>) -> Self {
        let head = Some(ResponseHead { status: 200, ..ResponseHead::default() });
        Self { live, is_modern: false, run: None, origin, head, is_stream: false, is_typed: false }
    }
}

impl Replayer {
    /// The stream that answers to a message go on: over HTTP+SSE, the session's.
    pub(super) fn own_stream(&self, lane: Lane) -> Lane {
        let sse = self.at_hand.post.and_then(|_| self.lives[self.at_hand.live].sse.as_ref());
        sse.map_or(lane, |(sse, _)| *sse)
    }

    /// Sends a response's head where it has not gone. `has_message`: a JSON-RPC message follows as its body.
    pub(super) fn begin_response(&mut self, lane: Lane, has_message: bool) {
        let Some(stream) = self.streams.get_mut(&lane.0) else { return };
        let Some(mut head) = stream.head.take() else { return };
        if has_message && !stream.is_typed {
            head.is_json();
        }
        self.emit(Output::Head { lane, head });
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
        self.deliver(lane, bytes, apart, None, None);
        // What we say ourselves is all there is.
        if self.streams.get(&lane.0).is_some_and(|stream| !stream.is_stream) {
            self.end(lane, None, &[]);
        }
    }

    /// Sends bytes on a lane, in the form that it has; `form` is that of a recorded message.
    pub(super) fn deliver(
        &mut self,
        lane: Lane,
        bytes: Vec<u8>,
        apart: bool,
        sse: Option<&Sse>,
        form: Option<Form>,
    ) {
        let is_message = form != Some(Form::Body);
        if self.pipes.has(lane) {
            if is_message && !self.pipes.has_ended(lane) {
                self.emit(Output::Send { lane, bytes, apart });
            }
            return;
        }
        let Some(stream) = self.streams.get_mut(&lane.0) else { return };
        if !stream.is_stream
            && matches!(form, Some(Form::Request | Form::Notification))
            && let Some(head) = &mut stream.head
        {
            // It was recorded on another stream, which nobody has opened.
            stream.is_stream = true;
            head.stream = true;
            if !stream.is_typed {
                head.is_events();
            }
        }
        if stream.is_stream {
            self.begin_response(lane, false);
            let event = event(bytes, sse);
            return self.emit(Output::Event { lane, event });
        }
        if stream.head.is_some() {
            self.begin_response(lane, is_message);
            self.emit(Output::Body { lane, bytes });
        }
    }

    /// Begins an event stream that is none of a recording's.
    pub(super) fn stream_head(&mut self, lane: Lane) {
        let Some(stream) = self.streams.get_mut(&lane.0) else { return };
        stream.is_stream = true;
        let headers = [("content-type", "text/event-stream"), ("cache-control", "no-cache")];
        let headers = headers.map(|(name, value)| (name.into(), value.as_bytes().into())).to_vec();
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
        self.emit(Output::Event { lane, event });
    }

    /// A response without a message: a status and perhaps a sentence.
    pub(super) fn plain(&mut self, lane: Lane, status: u16, text: &str) {
        self.plain_with(lane, Vec::new(), status, text);
    }

    fn plain_with(&mut self, lane: Lane, mut headers: Headers, status: u16, text: &str) {
        if !text.is_empty() {
            headers.push(("content-type".into(), b"text/plain; charset=utf-8".into()));
        }
        let head = ResponseHead { status, headers, stream: false };
        self.emit(Output::Head { lane, head });
        if !text.is_empty() {
            self.emit(Output::Body { lane, bytes: text.into() });
        }
        self.finish_lane(lane);
    }

    /// 405, with what is allowed and perhaps a sentence.
    pub(super) fn refuse_method(&mut self, lane: Lane, text: &str) {
        let allowed: &[u8] = match (self.legacy_recording, self.may_open()) {
            (false, _) => b"POST",
            (true, false) => b"POST, DELETE",
            (true, true) => b"GET, POST, DELETE",
        };
        self.plain_with(lane, vec![("allow".into(), allowed.into())], 405, text);
    }

    pub(super) fn finish_lane(&mut self, lane: Lane) {
        self.emit(Output::EndLane { lane, partial: Vec::new(), end: None });
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

    /// 202 as servers of HTTP+SSE say it.
    pub(super) fn accept_text(&mut self, lane: Lane) {
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
        self.emit(Output::EndLane { lane, partial: partial.to_vec(), end });
        self.streams.remove(&lane.0);
    }

    /// Says what had come of the answer to a client that left in its middle; the rest comes to nobody.
    pub(super) fn say_what_came(&mut self, lane: Lane, exchange: u32) {
        let entry = &self.cassette.exchanges[exchange as usize];
        let session = &self.cassette.sessions[entry.session as usize];
        let is_own = session.is_http() && !session.is_sse();
        let http = entry.http.as_deref().filter(|http| is_own && http.end.is_none());
        let Some(part) = http.and_then(|http| http.partial.clone()) else { return };
        let Some(stream) = self.streams.get(&lane.0) else { return };
        if self.lives[stream.live].sse.as_ref().is_some_and(|(sse, _)| *sse == lane) {
            return;
        }
        self.begin_response(lane, false);
        self.emit(Output::Raw { lane, bytes: part.into(), goes_on: true });
    }
}

/// Whether an exchange is of an HTTP request that is no message.
pub(super) fn is_line(entry: &Exchange) -> bool {
    entry.client.as_ref().is_some_and(|client| client.form == Form::Http)
}

/// An event with recorded data.
pub(super) fn event(data: Vec<u8>, sse: Option<&Sse>) -> SseEvent<'static> {
    let usual = Sse::default();
    let sse = sse.unwrap_or(&usual);
    let name: Option<Cow<'static, [u8]>> = match &sse.event {
        EventType::Message => Some(b"message"[..].into()),
        EventType::Unnamed => None,
        EventType::Named(name) => Some(name.as_bytes().to_vec().into()),
    };
    SseEvent {
        id: sse.id.as_ref().map(|id| Cow::Owned(id.as_bytes().to_vec())),
        event: name,
        retry: sse.retry,
        data: Cow::Owned(data),
        no_data: sse.no_data,
    }
}
