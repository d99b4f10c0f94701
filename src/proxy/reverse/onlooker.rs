//! Looks on where no fault is to act: what a report and events tell of traffic that passes as it comes.

use std::sync::Arc;

use hyper::Method;

use super::{
    faulty::Stand,
    heard::is_event_stream,
    item::{Heads, Item},
};
use crate::{
    cassette::model::StreamEnd,
    fault::{
        live::{Came, Http},
        step::{Output, ResponseHead},
    },
    traffic::{Lane, SseEvent},
    wire::http,
};

/// Of a response that comes before its request's body, so much waits for that.
const MOST_EARLY: usize = 1_000;

/// One request and its response, as they are told of.
pub(super) struct Onlooker {
    stand: Arc<Stand>,
    lane: Lane,
    opens_connection: bool,
    /// The request's head, until its body is there, and what is said before that.
    head: Option<(Method, Vec<u8>, Arc<Heads>)>,
    early: Vec<Output>,
    /// Of a `GET`, where it goes.
    got: Option<String>,
}

impl Onlooker {
    pub(super) const fn new(stand: Arc<Stand>, lane: Lane, opens_connection: bool) -> Self {
        Self { stand, lane, opens_connection, head: None, early: Vec::new(), got: None }
    }

    /// Tells of something that happens.
    pub(super) fn sees(&mut self, item: &Item) {
        let lane = self.lane;
        let output = match item {
            Item::Request(method, target, heads) => {
                self.got = (method == Method::GET).then(|| String::from_utf8_lossy(target).into_owned());
                self.head = Some((method.clone(), target.clone(), Arc::clone(heads)));
                return;
            }
            Item::RequestBody(body) | Item::OtherBody(body) => return self.asks(body),
            Item::ClientClosed => {
                self.has_asked();
                return self.stand.leaves(lane);
            }
            Item::Response(status, heads) => Output::Head { lane, head: told(*status, heads) },
            Item::ResponseBody(bytes) => Output::Body { lane, bytes: bytes.clone() },
            Item::Event(event) => {
                self.leads(event);
                Output::Event { lane, event: event.clone() }
            }
            // A report says nothing of what is not whole.
            Item::Oversize(..) | Item::Partial(..) => return,
            Item::End => Output::EndLane { lane, partial: Vec::new(), end: None },
            Item::Broken { reset } => {
                let end = if *reset { StreamEnd::Reset } else { StreamEnd::Cut };
                Output::EndLane { lane, partial: Vec::new(), end: Some(end) }
            }
        };
        self.says(output);
    }

    /// The request has come, whatever it had for a body.
    pub(super) fn has_asked(&mut self) {
        self.asks(&[]);
    }

    fn says(&mut self, output: Output) {
        if self.head.is_none() {
            return self.stand.hears(output);
        }
        self.early.push(output);
        if self.early.len() > MOST_EARLY {
            self.has_asked();
        }
    }

    fn asks(&mut self, bytes: &[u8]) {
        let Some((method, target, heads)) = self.head.take() else { return };
        // It was read as a part of one.
        let text = |bytes| std::str::from_utf8(bytes).unwrap_or_default();
        let headers: Vec<(&str, &[u8])> = heads.iter().map(|(name, value)| (text(name), value)).collect();
        let posted = Some(text(&target)).filter(|_| method == Method::POST);
        let http = Http { headers: &headers, stream: None, opens_connection: self.opens_connection };
        self.stand.sees(&Came { lane: self.lane, bytes, http: Some(http) }, posted);
        std::mem::take(&mut self.early).into_iter().for_each(|output| self.stand.hears(output));
    }

    /// Takes in where the messages of a session of HTTP+SSE are posted.
    fn leads(&self, event: &SseEvent<'_>) {
        if let Some(path) = self.got.as_deref().filter(|_| event.event.as_deref() == Some(b"endpoint")) {
            self.stand.leads(http::resolve(path, event.data.trim_ascii()), self.lane);
        }
    }
}

fn told(status: u16, heads: &Heads) -> ResponseHead {
    let kind = heads.iter().find(|(name, _)| *name == b"content-type").map(|(_, value)| value);
    let headers = heads.iter().map(|(name, value)| {
        let name = String::from_utf8_lossy(name).into_owned();
        (name.into(), value.to_vec().into())
    });
    ResponseHead { status, headers: headers.collect(), stream: is_event_stream(kind) }
}
