//! HTTP requests: which session they belong to, and what they ask for.

use std::{borrow::Cow, sync::Arc};

use super::{AtHand, Found, Now, Replayer, facts::Facts, paths::Scope, streams::Stream};
use crate::{
    cassette::model::Unanswered,
    redact::is_credential,
    replay::{
        exchange::HttpRequest,
        miss,
        script::{Step, client_message},
    },
    report::events::Outcome,
    traffic::Lane,
    wire::jsonrpc::{self, Kind, Message},
};

impl Replayer {
    /// Takes in one HTTP request.
    pub(super) fn http(&mut self, now: Now, lane: Lane, request: &HttpRequest<'_>) {
        self.heard_http = true;
        self.report.connections += u64::from(request.opens_connection);
        let posted = if request.method == "POST" { self.posted_to(request.target) } else { None };
        let by_header = || request.header("mcp-session-id").and_then(|id| self.live_of(id));
        let live = posted.or_else(by_header).unwrap_or_default();
        let scope = if posted.is_some() { Scope::All } else { self.scope(request.target) };
        let before = self.at_hand.facts.take().unwrap_or_default();
        let facts = Facts::of(request, scope, self.options.skip_auth, before);
        let has_credentials = facts.has_credentials();
        // The room of the id before it serves again.
        let mut id = std::mem::take(&mut self.at_hand.id);
        id.clear();
        self.at_hand = AtHand {
            live,
            id,
            facts: Some(facts),
            post: posted.map(|_| lane),
            is_known: posted.is_none() && live > 0,
            ..AtHand::default()
        };
        self.note_correlation(request);
        if *self.origin != *request.origin {
            self.origin = request.origin.into();
        }
        self.streams.insert(lane.0, Stream::new(live, Arc::clone(&self.origin)));
        let credentials = request.headers.iter().filter(|(name, _)| has_credentials && is_credential(name));
        for (name, value) in credentials {
            // A server may have repeated it in what it sent, and a client may send it in its messages too.
            let _ = self.redactor.header_value(name, &String::from_utf8_lossy(value));
        }
        if let Some(found) = self.find_part(request) {
            let line = self.request_line(request);
            return self.start(now, lane, &Message::read(line.as_bytes()), found);
        }
        let message = Message::read(request.body);
        match request.method {
            "POST" if message.kind != Kind::Noise => {
                if message.is_modern() && posted.is_none() {
                    self.check_headers(request, &message);
                }
                self.message(now, lane, message);
            }
            "GET" => self.get(now, lane, request),
            _ => self.line(now, lane, request),
        }
    }

    /// The client closed the connection before the response had ended.
    pub(super) fn left(&mut self, now: Now, lane: Lane) {
        self.left_stage(lane);
        self.note_left(lane);
        let left = self.broken_off(lane);
        self.left_passed(lane, left.as_ref().is_some_and(|stream| stream.is_modern));
        let Some(Stream { run: Some((play, run)), is_modern, .. }) = left else { return };
        let scene = scene!(self, play, now);
        // Closing the response is how a client of 2026-07-28 cancels; an older one may come back for it (F10.10).
        if is_modern {
            let script = &self.scripts[self.plays[play].script];
            let at = self.plays[play].run(run).and_then(|run| script.steps[run.step as usize].cancelled_at());
            let said = at.and_then(|at| script.steps.iter().position(|step| step.rank == at));
            self.plays[play].cancel(scene, run);
            if let Some(said) = said.filter(|&said| self.plays[play].is_unused(said as u32)) {
                // On stdio it said so in a message, which does not come now.
                self.plays[play].arrive(script, said as u32);
            }
            self.agenda.wake(play);
        } else if self.plays[play].is_silent(run) {
            self.plays[play].remove(scene, run);
            self.agenda.wake(play);
        }
    }

    /// A response has ended before its time: whatever was open by it is not any more.
    pub(super) fn broken_off(&mut self, lane: Lane) -> Option<Stream> {
        let stream = self.streams.remove(&lane.0)?;
        let live = &mut self.lives[stream.live];
        live.get.take_if(|get| *get == lane);
        live.resumed.retain(|(_, resumed)| *resumed != lane);
        if let Some((_, endpoint)) = live.sse.take_if(|(sse, _)| *sse == lane) {
            live.is_over = true;
            self.by_endpoint.remove(&endpoint);
            self.end_upstream_of(stream.live);
        }
        Some(stream)
    }

    /// A request that is no message.
    fn line(&mut self, now: Now, lane: Lane, request: &HttpRequest<'_>) {
        let line = self.request_line(request);
        let live = self.at_hand.live;
        let message = Message::read(line.as_bytes());
        let Some(found) = self.find(&message) else {
            return self.unknown_line(lane, request, &line);
        };
        self.start(now, lane, &message, found);
        let exchange = self.exchange_of(found);
        let http = self.cassette.exchanges[exchange as usize].http.as_ref();
        let is_accepted = http.and_then(|http| http.status).is_none_or(|status| status < 300);
        if request.method == "DELETE" && live > 0 && is_accepted {
            self.is_over(live);
        }
    }

    pub(super) fn request_line(&mut self, request: &HttpRequest<'_>) -> String {
        format!("{} {}", request.method, self.target(request.target))
    }

    /// A target as recordings have it.
    pub(super) fn target<'a>(&mut self, target: &'a str) -> Cow<'a, str> {
        let target = self.redactor.url(target);
        let hidden = match self.options.vars.hide(target.as_bytes()) {
            Cow::Borrowed(_) => None,
            Cow::Owned(hidden) => Some(String::from_utf8_lossy(&hidden).into_owned()),
        };
        hidden.map_or(target, Cow::Owned)
    }

    /// The step that was found.
    pub(super) fn step_of(&self, found: Found) -> &Step {
        &self.scripts[self.plays[found.play].script].steps[found.step as usize]
    }

    /// The exchange of the step that was found.
    pub(super) fn exchange_of(&self, found: Found) -> u32 {
        self.step_of(found).exchange
    }

    /// What nobody recorded: a session's end is taken in, other methods are not; a body that is no message is a miss.
    fn unknown_line(&mut self, lane: Lane, request: &HttpRequest<'_>, line: &str) {
        let live = self.at_hand.live;
        match request.method {
            "POST" => {
                let miss = miss::describe_line(line);
                self.plain(lane, 400, &format!("{}\n", miss.message));
                self.remember(miss);
            }
            "DELETE" if self.lives[live].is_over => self.session_not_found(lane, b"null"),
            "DELETE" if live > 0 => {
                self.count_own("DELETE");
                self.is_over(live);
                self.plain(lane, 200, "");
            }
            method => {
                self.count_own(method);
                self.refuse_method(lane);
            }
        }
    }

    pub(super) fn count_own(&mut self, what: &str) {
        self.note_outcome(Outcome::SelfAnswered);
        *self.report.self_answered.entry(what.to_owned()).or_default() += 1;
    }

    /// An ended session: its streams end, and what comes for it is refused unless it was answered then.
    fn is_over(&mut self, live: usize) {
        self.lives[live].is_over = true;
        self.end_upstream_of(live);
        if let Some(lane) = self.lives[live].get.take() {
            self.end(lane, None, &[]);
        }
    }

    pub(super) fn session_not_found(&mut self, lane: Lane, id: &[u8]) {
        let error = jsonrpc::error(id, -32001, "Session not found", None);
        self.count_own("session not found");
        self.set_status(lane, 404);
        self.say(lane, error, false);
        self.end(lane, None, &[]);
    }

    /// Whether the recording's stream is one that stays open.
    pub(super) fn stays_open(&self, exchange: u32) -> bool {
        self.cassette.exchanges[exchange as usize].unanswered == Some(Unanswered::Open)
    }

    /// The client's message of an exchange, for a miss.
    pub(super) fn recorded_request(&self, exchange: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        client_message(&self.cassette, &*self.blobs, &self.cassette.exchanges[exchange as usize], &mut bytes);
        bytes
    }
}
