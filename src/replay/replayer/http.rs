//! HTTP requests: which session they belong to, and what they ask for.

use std::{borrow::Cow, sync::Arc};

use super::{AtHand, Found, Now, Replayer, facts::Facts, lives::GetEnd, paths::Scope, streams::Stream};
use crate::{
    cassette::model::Unanswered,
    redact::is_credential,
    replay::{
        exchange::HttpRequest,
        rewrite::Correlators,
        script::{Step, client_message},
    },
    report::events::Outcome,
    traffic::Lane,
    wire::jsonrpc::{self, Kind, Message},
};

/// Whose an HTTP request is, and what it tells beside its body.
pub(super) struct Placed<'a> {
    /// The live session to which it was posted over HTTP+SSE.
    pub posted: Option<usize>,
    /// That, or the one that its header names, or what has none.
    pub live: usize,
    /// Its target as recordings have it.
    pub target: Cow<'a, str>,
    pub facts: Facts,
}

impl Replayer {
    /// Takes in one HTTP request.
    pub(super) fn http(&mut self, now: Now, lane: Lane, request: &HttpRequest<'_>) {
        self.report.connections += u64::from(request.opens_connection);
        let before = self.at_hand.facts.take().unwrap_or_default();
        let Placed { posted, live, target, facts } = self.place(request, before);
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
            let _ = self.header(name, value);
        }
        if let Some(found) = self.find_part(request) {
            let line = format!("{} {target}", request.method);
            return self.start(now, lane, &Message::read(line.as_bytes()), found);
        }
        if !request.is_whole {
            return self.stopped(lane, request, &format!("{} {target}", request.method));
        }
        let message = Message::read(request.body);
        match request.method {
            "POST" if message.kind != Kind::Noise => {
                self.is_taken_at(request.target, posted.is_some());
                if message.is_modern() && posted.is_none() {
                    self.check_headers(request, &message);
                }
                self.at_hand.announced = self.announced(request, &target);
                self.message(now, lane, message);
            }
            method => {
                self.take_body(request.body, request.header("content-type"));
                let line = format!("{method} {target}");
                match method {
                    "GET" => self.get(now, lane, request, line),
                    _ => self.line(now, lane, request, line),
                }
            }
        }
    }

    /// Whose an HTTP request is, and what it tells beside its body; most of that is `before`, of the request before it.
    pub(super) fn place<'a>(&mut self, request: &HttpRequest<'a>, before: Facts) -> Placed<'a> {
        let posted = if request.method == "POST" { self.posted_to(request.target) } else { None };
        let by_header = || request.header("mcp-session-id").and_then(|id| self.live_of(id));
        let live = posted.or_else(by_header).unwrap_or_default();
        // Before all else, as recordings have it: what it says may be said again in headers and the body.
        let target = self.target(request.target);
        let scope = if posted.is_some() { Scope::All } else { self.paths.scope(&target) };
        let mut facts = Facts::of(request, &target, scope, self.options.skip_auth, before);
        facts.hide(|name, value| self.header(name, value));
        Placed { posted, live, target, facts }
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
        live.stay_open.retain(|open| *open != lane);
        if let Some((_, endpoint)) = live.sse.take_if(|(sse, _)| *sse == lane) {
            live.is_over = true;
            self.by_endpoint.remove(&endpoint);
            self.end_upstream_of(stream.live);
        }
        Some(stream)
    }

    /// A target as recordings have it.
    pub(super) fn target<'a>(&mut self, target: &'a str) -> Cow<'a, str> {
        match self.options.vars.hide(target.as_bytes()) {
            Cow::Borrowed(_) => self.redactor.url(target),
            Cow::Owned(hidden) => {
                Cow::Owned(self.redactor.url(&String::from_utf8_lossy(&hidden)).into_owned())
            }
        }
    }

    /// A header's value as recordings have it.
    pub(super) fn header(&mut self, name: &str, value: &[u8]) -> String {
        let hidden = self.options.vars.hide(value);
        self.redactor.header_value(name, &String::from_utf8_lossy(&hidden)).into_owned()
    }

    /// The step that was found.
    pub(super) fn step_of(&self, found: Found) -> &Step {
        &self.scripts[self.plays[found.play].script].steps[found.step as usize]
    }

    /// The exchange of the step that was found.
    pub(super) fn exchange_of(&self, found: Found) -> u32 {
        self.step_of(found).exchange
    }

    pub(super) fn count_own(&mut self, what: &str) {
        self.note_outcome(Outcome::SelfAnswered);
        *self.report.self_answered.entry(what.to_owned()).or_default() += 1;
    }

    /// An ended session: its streams end, before or behind what `answers` that, and what comes for it is refused unless
    /// it was answered then.
    pub(super) fn is_over(&mut self, live: usize, answers: impl FnOnce(&mut Self)) {
        self.lives[live].is_over = true;
        self.end_upstream_of(live);
        let stay_open = std::mem::take(&mut self.lives[live].stay_open);
        self.end_streams(live, |lane| !stay_open.contains(&lane));
        answers(self);
        self.end_streams(live, |lane| stay_open.contains(&lane));
    }

    /// Ends those of a session's streams by which a client waits for whatever comes.
    fn end_streams(&mut self, live: usize, which: impl Fn(Lane) -> bool) {
        if let Some(lane) = self.lives[live].get.take_if(|lane| which(*lane)) {
            let until = self.lives[live].get_until.take().filter(GetEnd::is_delete);
            let (end, partial) = until.map_or_else(Default::default, |until| (until.end, until.partial));
            self.end(lane, end, &partial);
        }
        let older = self.lives[live].older_gets.extract_if(.., |lane| which(*lane)).collect::<Vec<_>>();
        older.into_iter().for_each(|lane| self.end(lane, None, &[]));
        let resumed = std::mem::take(&mut self.lives[live].resumed);
        let ends = |(to, lane): &(Arc<Correlators>, Lane)| which(*lane) && !self.is_running(to);
        let (ending, kept): (Vec<_>, Vec<_>) = resumed.into_iter().partition(ends);
        self.lives[live].resumed = kept;
        ending.into_iter().for_each(|(_, lane)| self.end(lane, None, &[]));
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
