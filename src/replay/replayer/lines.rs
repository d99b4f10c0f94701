//! HTTP requests that are no messages: what was recorded for them, what clients ask for by themselves, and misses.

use std::cmp::Reverse;

use super::{Found, Now, Replayer};
use crate::{
    cassette::model::{Http, Unanswered},
    replay::{
        exchange::HttpRequest,
        miss, own,
        script::{Step, StepKind},
    },
    report::{Miss, Reason},
    traffic::Lane,
    wire::{
        http::path_of,
        jsonrpc::{Kind, Message},
    },
};

/// So many further paths are known at which messages were taken.
const MOST_PATHS: usize = 100;

impl Replayer {
    /// A request that is no message, and no `GET`.
    pub(super) fn line(&mut self, now: Now, lane: Lane, request: &HttpRequest<'_>, line: String) {
        let (line, found) = self.find_line(request, line);
        self.heard.http |= self.at_hand.post.is_none() && !own::is_lookup(path_of(request.target));
        let live = self.at_hand.live;
        let Some(found) = found else { return self.unknown_line(lane, request, &line) };
        self.play_line(now, lane, request, &line, found);
        let exchange = self.exchange_of(found);
        let http = self.cassette.exchanges[exchange as usize].http.as_ref();
        let is_accepted = http.and_then(|http| http.status).is_none_or(|status| status < 300);
        if request.method == "DELETE" && live > 0 && is_accepted {
            self.is_over(live, |replayer| replayer.advance(now));
            let rank = self.step_of(found).rank;
            self.lives[live].ended_at = Some(rank).filter(|_| self.playing(live) == Some(found.play));
        }
    }

    /// Plays what was found, unless the options make a repeat a miss.
    pub(super) fn play_line(
        &mut self,
        now: Now,
        lane: Lane,
        request: &HttpRequest<'_>,
        line: &str,
        found: Found,
    ) {
        let exchange = self.exchange_of(found);
        if self.has_no_response(exchange) {
            self.plays[found.play].take(found.step);
            return match own::is_lookup(path_of(request.target)) || self.is_asked_anyway(request) {
                true => self.unknown_line(lane, request, line),
                false => self.missed_line(lane, request, line, Reason::Incomplete, Some(exchange)),
            };
        }
        if found.repeat && !self.is_asked_anyway(request) {
            if self.options.repeat_is_miss() {
                return self.missed_line(lane, request, line, Reason::Consumed, Some(exchange));
            }
            self.repeated(exchange);
        }
        self.start(now, lane, &Message::read(line.as_bytes()), found);
    }

    /// Whether a response to an exchange may have come, and its head is not recorded, or nothing of what came behind that.
    fn has_no_response(&self, exchange: u32) -> bool {
        let entry = &self.cassette.exchanges[exchange as usize];
        let goes_on = |http: &Http| http.stream || http.partial.is_some() || !entry.server.is_empty();
        let has_begun = |http: &Http| http.end.is_some() || http.status.is_some() && goes_on(http);
        entry.unanswered == Some(Unanswered::Lost) && !entry.http.as_deref().is_some_and(has_begun)
    }

    /// A request as recordings name it, which is `line`, and the exchange it asks for. At a path where messages were
    /// taken although none was recorded there, that is what was recorded at the endpoint.
    pub(super) fn find_line(&mut self, request: &HttpRequest<'_>, line: String) -> (String, Option<Found>) {
        let found = self.find_by_body(&Message::read(line.as_bytes()));
        let path = path_of(request.target);
        if found.is_some() || !self.further.iter().any(|known| **known == *path) {
            return (line, found);
        }
        let there = format!("{} {}", request.method, self.endpoint());
        match self.find_by_body(&Message::read(there.as_bytes())) {
            Some(found) => (there, Some(found)),
            None => (line, None),
        }
    }

    /// A message has been posted there; `is_sse`: to where an event stream of HTTP+SSE says.
    pub(super) fn is_taken_at(&mut self, target: &str, is_sse: bool) {
        if is_sse {
            self.heard.sse = true;
            return;
        }
        self.heard.http = true;
        if self.endpoints.iter().any(|endpoint| **endpoint == *target) {
            return;
        }
        let path = path_of(target);
        if !self.takes_at(path) && !self.paths.are_several() && self.further.len() < MOST_PATHS {
            self.further.push(path.into());
        }
    }

    /// Whether messages are taken at a path.
    pub(super) fn takes_at(&self, path: &str) -> bool {
        self.endpoints.iter().chain(&self.further).any(|known| **known == *path)
    }

    /// What nobody recorded: clients find out by themselves what there is, and end their sessions; all else is a miss.
    pub(super) fn unknown_line(&mut self, lane: Lane, request: &HttpRequest<'_>, line: &str) {
        let live = self.at_hand.live;
        match request.method {
            "DELETE" if self.lives[live].is_over => self.session_not_found(lane, b"null"),
            "DELETE" if live > 0 => {
                self.count_own("DELETE");
                self.is_over(live, |_| ());
                self.plain(lane, 200, "");
            }
            _ if self.at_hand.unpaired.is_some() && !self.takes_at(path_of(request.target)) => {
                let equal = self.at_hand.unpaired.take();
                self.missed_line(lane, request, line, Reason::RedactionDiffers, equal);
            }
            "GET" | "HEAD" if own::is_lookup(path_of(request.target)) => {
                self.count_own(line);
                self.plain(lane, 404, "");
            }
            method if self.is_asked_anyway(request) => {
                self.count_own(method);
                self.refuse_method(lane, "");
            }
            _ => {
                if let Some(miss) = self.of_other_body(line) {
                    return self.tell_miss(lane, request, miss);
                }
                let (reason, nearest) = self.explain_line(line);
                self.missed_line(lane, request, line, reason, nearest);
            }
        }
    }

    /// Whether clients make this request whatever was recorded, once or several times: to end a session, to be given a
    /// stream, or to look what there is.
    fn is_asked_anyway(&self, request: &HttpRequest<'_>) -> bool {
        let path = path_of(request.target);
        match request.method {
            "HEAD" => true,
            "GET" => own::is_lookup(path) || self.takes_at(path),
            "DELETE" => self.at_hand.live > 0 || self.takes_at(path),
            _ => false,
        }
    }

    /// Notes a miss, and tells the client.
    fn missed_line(
        &mut self,
        lane: Lane,
        request: &HttpRequest<'_>,
        line: &str,
        reason: Reason,
        nearest: Option<u32>,
    ) {
        let nearest = nearest.map(|exchange| self.key(exchange));
        let miss = miss::describe_line(line, reason, nearest, self.endpoint());
        self.tell_miss(lane, request, miss);
    }

    fn tell_miss(&mut self, lane: Lane, request: &HttpRequest<'_>, miss: Miss) {
        let text = format!("{}\n", miss.message);
        match request.method {
            "POST" => self.plain(lane, 400, &text),
            "GET" => self.plain(lane, 404, &text),
            _ => self.refuse_method(lane, &text),
        }
        self.remember(miss);
    }

    /// Why nothing is played for a request, and what comes nearest.
    fn explain_line(&mut self, line: &str) -> (Reason, Option<u32>) {
        let current = self.playing(self.at_hand.live).map_or(0, |play| self.plays[play].script);
        let message = Message::read(line.as_bytes());
        for at in 0..self.scripts.len() {
            let script = &mut self.scripts[at];
            let first = script.first(&self.cassette, &*self.blobs, &mut self.matcher, &message);
            if first.is_some() {
                let is_here = at == current || at == 0;
                return (if is_here { Reason::ParamsDiffer } else { Reason::OtherSession }, first);
            }
        }
        (Reason::NeverRecorded, self.nearest_line(line))
    }

    /// Of the recorded requests that are no messages, the one that is most like this one: of its path, else of its
    /// method, else of a path that begins alike.
    fn nearest_line(&self, line: &str) -> Option<u32> {
        let (method, target) = line.split_once(' ')?;
        let rank = |step: &Step| {
            let recorded = self.recorded_request(step.exchange);
            let recorded = String::from_utf8_lossy(&recorded);
            let (recorded_method, recorded) = recorded.split_once(' ')?;
            let alike = recorded.bytes().zip(target.bytes()).take_while(|(a, b)| a == b).count();
            let differs = (path_of(recorded) != path_of(target), recorded_method != method);
            Some((differs, Reverse(alike), step.exchange))
        };
        let steps = self.scripts.iter().flat_map(|script| &script.steps);
        let lines = steps.filter(|step| step.kind == StepKind::Line).take(1_000);
        lines.filter_map(rank).min().map(|(.., exchange)| exchange)
    }

    /// Whether only a client that speaks in lines can say what a step recorded: a line that is no message at all.
    pub(super) fn is_only_a_line(&self, step: &Step) -> bool {
        step.kind == StepKind::Noise
            && Message::read(&self.recorded_request(step.exchange)).kind == Kind::Noise
    }
}
