//! HTTP+SSE of 2024-11-05: an event stream, whose first event says where messages are posted.

use super::{Found, Now, Replayer, gets::Until, lives::Live};
use crate::{
    cassette::model::{EventType, Item},
    replay::{
        matcher::canonical::without_numbers,
        script::{Step, StepKind},
    },
    traffic::Lane,
    wire::{
        http,
        jsonrpc::{Message, text},
    },
};

/// Where clients look for the stream of a recording over another transport.
const SSE_PATH: &str = "/sse";

impl Replayer {
    /// The live session whose messages are posted there, over HTTP+SSE.
    pub(super) fn posted_to(&self, target: &str) -> Option<usize> {
        self.by_endpoint.get(target).copied()
    }

    /// Whether this `GET` opens the stream of a session that was recorded over HTTP+SSE.
    pub(super) fn begins_sse(&self, line: &str, found: Option<Found>) -> bool {
        let is_sse = |found: Found| {
            let entry = &self.cassette.exchanges[self.exchange_of(found) as usize];
            self.cassette.sessions[entry.session as usize].is_sse() && self.opens_stream(found)
        };
        self.sse_script(line).is_some() || found.is_some_and(is_sse)
    }

    /// The session over HTTP+SSE that begins with this request: the first not yet played, else the last.
    fn sse_script(&self, line: &str) -> Option<usize> {
        let line = without_numbers(line.as_bytes());
        let begins = |script: &usize| {
            let script = &self.scripts[*script];
            let is_sse = script.session.is_some_and(|at| self.cassette.sessions[at as usize].is_sse());
            let is_first = |step: &Step| {
                step.kind == StepKind::Line && without_numbers(&self.recorded_request(step.exchange)) == line
            };
            is_sse && script.steps.iter().any(is_first)
        };
        let all = 1..self.scripts.len();
        all.clone().filter(|script| !self.played[*script]).find(begins).or_else(|| all.rev().find(begins))
    }

    /// The recorded event stream of HTTP+SSE: a live session of its own, which plays the session that began so.
    pub(super) fn open_sse(&mut self, now: Now, lane: Lane, line: &str) {
        let live = self.begin_sse(lane);
        if let Some(script) = self.sse_script(line) {
            self.played[script] = true;
            let play = self.begin_play(script, live);
            self.lives[live].play = Some(play);
        }
        // Without a handshake its messages are among those that have no session.
        let message = Message::read(line.as_bytes());
        let Some(found) = self.find(&message) else { return self.open_own_sse(lane) };
        let exchange = self.exchange_of(found);
        let endpoint = self.recorded_endpoint(exchange, live).unwrap_or_else(|| self.own_endpoint(live));
        self.is_sse(live, lane, endpoint);
        self.lives[live].get_until = match self.until(found) {
            Until::Behind(until) if self.lives[live].play.is_some() => Some(until),
            _ => None,
        };
        self.start(now, lane, &message, found);
    }

    /// The event stream for clients of 2024-11-05 of a recording over another transport.
    pub(super) fn open_own_sse(&mut self, lane: Lane) {
        let live = self.begin_sse(lane);
        let endpoint = self.own_endpoint(live);
        self.stream_head(lane);
        let origin = self.streams.get(&lane.0).map(|stream| stream.origin.clone()).unwrap_or_default();
        let data = led_back(endpoint.clone().into_bytes(), &origin);
        self.event(lane, b"endpoint", &data);
        self.is_sse(live, lane, endpoint);
    }

    fn begin_sse(&mut self, lane: Lane) -> usize {
        let id = self.mint();
        let live = self.begin_live(Live { id: Some(id), ..Live::default() });
        self.at_hand.live = live;
        if let Some(stream) = self.streams.get_mut(&lane.0) {
            stream.live = live;
        }
        live
    }

    fn is_sse(&mut self, live: usize, lane: Lane, endpoint: String) {
        self.by_endpoint.insert(endpoint.clone(), live);
        self.lives[live].sse = Some((lane, endpoint));
    }

    /// Whether clients of 2024-11-05 find a stream there although none was recorded.
    pub(super) fn is_own_sse(&self, path: &str) -> bool {
        path == SSE_PATH && self.legacy_recording && !self.endpoints.iter().any(|known| **known == *path)
    }

    fn own_endpoint(&self, live: usize) -> String {
        format!("/messages?sessionId={}", self.lives[live].id.as_deref().unwrap_or_default())
    }

    /// Where the recorded endpoint event has this live session's messages posted.
    fn recorded_endpoint(&mut self, exchange: u32, live: usize) -> Option<String> {
        let entry = &self.cassette.exchanges[exchange as usize];
        let item = (0..).zip(&entry.server).find(|(_, item)| is_endpoint_event(item))?.0;
        let line = self.cassette.at(entry.client.as_ref()?.place);
        let line = text(line).into_owned();
        let base = line.split(' ').nth(1).unwrap_or("/");
        let bytes = self.recorded(exchange, item);
        Some(http::resolve(base, &self.filled(&bytes, http::ORIGIN, live)))
    }
}

pub(super) fn is_endpoint_event(item: &Item) -> bool {
    item.sse.as_ref().is_some_and(|sse| matches!(&sse.event, EventType::Named(name) if &**name == "endpoint"))
}

/// An address that begins with a path, with the take that the origin names before it.
pub(super) fn led_back(address: Vec<u8>, origin: &str) -> Vec<u8> {
    let authority = origin.split_once("://").map_or("", |(_, rest)| rest);
    match authority.find('/') {
        Some(take) if address.starts_with(b"/") && !address.starts_with(b"//") => {
            [&authority.as_bytes()[take..], &address].concat()
        }
        _ => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_leads_back_to_its_take() {
        for (address, origin, expected) in [
            ("/m?s=1", "http://h:1", "/m?s=1"),
            ("/m?s=1", "http://h:1/take/a", "/take/a/m?s=1"),
            ("m?s=1", "http://h:1/take/a", "m?s=1"),
            ("http://h:1/take/a/m", "http://h:1/take/a", "http://h:1/take/a/m"),
        ] {
            assert_eq!(led_back(address.into(), origin), expected.as_bytes(), "{address}");
        }
    }
}
