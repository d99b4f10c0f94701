//! `GET`: event streams that a client opens, and documents.

use super::{Found, Now, Replayer, facts::Facts, lives::GetEnd, streams::is_line};
use crate::{
    cassette::model::{Item, On},
    replay::{
        exchange::HttpRequest,
        own,
        script::{Script, Step, StepKind},
    },
    traffic::Lane,
    wire::{
        http::path_of,
        jsonrpc::{self, Message},
    },
};

/// Until when a recorded stream was open.
pub(super) enum Until {
    /// To the end.
    Open,
    /// The server ended it behind an item.
    Behind(GetEnd),
    /// The server ended it before anything of the session's was sent on it.
    Now,
    /// To the session's `DELETE`, before that was answered.
    Delete(GetEnd),
}

impl Replayer {
    /// `GET`: the rest of a stream, a recorded document or stream, or a stream of ours.
    pub(super) fn get(&mut self, now: Now, lane: Lane, request: &HttpRequest<'_>, line: String) {
        let (mut line, mut found) = self.find_line(request, line);
        let path = path_of(request.target);
        if found.is_none() && self.lives[self.at_hand.live].is_over {
            return self.session_not_found(lane, b"null");
        }
        let id = request.header("last-event-id");
        if id.is_some_and(|id| self.resume(now, lane, id, &Message::read(line.as_bytes()), found)) {
            return;
        }
        if id.is_some() && found.is_none() {
            if self.gave_ids() {
                return self.unknown_event(lane);
            }
            self.at_hand.facts.as_mut().map(Facts::resumes_nothing);
            (line, found) = self.find_line(request, line);
        }
        if self.begins_sse(&line, found) {
            self.heard.sse = true;
            return self.open_sse(now, lane, &line);
        }
        self.heard.http |= !own::is_lookup(path) && !self.is_own_sse(path);
        match found {
            Some(found) if !self.opens_stream(found) => self.play_line(now, lane, request, &line, found),
            Some(found) if !found.repeat => {
                let until = self.until(found);
                self.start(now, lane, &Message::read(line.as_bytes()), found);
                self.is_get_until(lane, until);
            }
            // It comes back to a stream that it had.
            Some(found) => {
                self.respond(lane, found, false);
                self.is_get(lane, None);
            }
            None if self.is_own_sse(path) => {
                self.heard.sse = true;
                self.open_own_sse(lane);
            }
            None if self.takes_at(path) && self.may_open() => {
                self.count_own("GET");
                self.stream_head(lane);
                self.is_get(lane, None);
            }
            None => self.unknown_line(lane, request, &line),
        }
    }

    /// This lane is its session's `GET` stream, as long as the recorded one was.
    pub(super) fn is_get_until(&mut self, lane: Lane, until: Until) {
        match until {
            Until::Open => {
                self.is_get(lane, None);
                self.stays_open_on(lane);
            }
            Until::Behind(until) | Until::Delete(until) => self.is_get(lane, Some(until)),
            Until::Now => {}
        }
    }

    /// Whether the recorded server gave ids to its events, by which their streams can be gone on with.
    fn gave_ids(&self) -> bool {
        let steps = self.scripts.iter().flat_map(|script| &script.steps);
        let mut items = steps.flat_map(|step| &self.cassette.exchanges[step.exchange as usize].server);
        items.any(|item| item.sse.as_ref().is_some_and(|sse| sse.id.is_some()))
    }

    /// An event that was never sent is refused as the TypeScript SDK's servers refuse it. Those that keep no events
    /// look at no such id.
    fn unknown_event(&mut self, lane: Lane) {
        self.count_own("unknown Last-Event-ID");
        self.set_status(lane, 400);
        self.say(lane, jsonrpc::error(b"null", -32000, "Invalid event ID format", None), false);
    }

    /// Until when a recorded stream was open.
    pub(super) fn until(&self, found: Found) -> Until {
        let exchange = self.exchange_of(found);
        let entry = &self.cassette.exchanges[exchange as usize];
        if self.stays_open(exchange) {
            return Until::Open;
        }
        let ends = |behind, own| {
            let (end, partial) = match entry.http.as_deref() {
                Some(http) => (http.end, http.partial.clone().unwrap_or_default()),
                None => (None, Box::default()),
            };
            GetEnd { behind, own, end, partial }
        };
        if entry.http.as_deref().is_some_and(|http| http.until_delete) {
            return Until::Delete(ends(None, None));
        }
        let script = &self.scripts[self.plays[found.play].script];
        match self.last_on_get(script, &script.steps[found.step as usize]) {
            Some(behind) => {
                let own = entry.server.len().checked_sub(1).map(|last| (exchange, last as u32));
                Until::Behind(ends(Some(behind), own))
            }
            None => Until::Now,
        }
    }

    /// The last item that was sent on the stream that a step opened, and its exchange.
    pub(super) fn last_on_get(&self, script: &Script, opened: &Step) -> Option<(u32, u32)> {
        let entry = |step: &Step| &self.cassette.exchanges[step.exchange as usize];
        let is_stream = |step: &&Step| {
            step.kind == StepKind::Line && entry(step).http.as_ref().is_some_and(|http| http.stream)
        };
        let later = |rank: &u32| *rank > opened.rank;
        let next = script.steps.iter().filter(is_stream).map(|step| step.rank).filter(later).min();
        let was_sse = self.cassette.sessions[entry(opened).session as usize].is_sse();
        let is_on_it = |item: &Item| if was_sse { item.on.is_none() } else { item.on == Some(On::Get) };
        let steps = script.steps.iter().filter(|step| !is_line(entry(step)));
        let items = steps.flat_map(|step| {
            let items = (0..).zip(script.items(step)).zip(&entry(step).server);
            let on_it = items.filter(|(_, item)| is_on_it(item));
            on_it.map(|((at, item), _)| (item.rank, step.exchange, at))
        });
        let within = |(rank, ..): &(u32, u32, u32)| later(rank) && next.is_none_or(|next| *rank < next);
        items.filter(within).max().map(|(_, exchange, item)| (exchange, item))
    }

    /// Whether what was found is a `GET` that was answered by an event stream, or waited for one.
    pub(super) fn opens_stream(&self, found: Found) -> bool {
        let exchange = self.exchange_of(found);
        let Some(http) = &self.cassette.exchanges[exchange as usize].http else {
            return self.stays_open(exchange);
        };
        match http.status {
            None => http.stream || self.stays_open(exchange),
            Some(status) => http.stream && status == 200,
        }
    }

    /// Whether a stream is opened that was not recorded in the session at hand: another one had one, or what was
    /// recorded over another transport has something for it.
    pub(super) fn may_open(&self) -> bool {
        let has_session =
            self.at_hand.live > 0 || self.lives.iter().any(|live| live.play.is_some() && live.pipe.is_none());
        let has_stream = |script: &Script| {
            script.steps.iter().any(|step| {
                let entry = &self.cassette.exchanges[step.exchange as usize];
                let session = &self.cassette.sessions[entry.session as usize];
                match step.kind {
                    StepKind::Line => entry.http.as_ref().is_some_and(|http| http.stream),
                    StepKind::Push => true,
                    _ => !session.is_http() && entry.server.len() > 1,
                }
            })
        };
        self.legacy_recording && has_session && self.scripts.iter().any(has_stream)
    }
}
