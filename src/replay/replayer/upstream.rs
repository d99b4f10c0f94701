//! Requests that go on to the real server: which one, under which id, and what is known of them until they are
//! answered.
//!
//! A session has a server of its own, and begins with the first request that is passed on: what the live client said
//! in its handshake is said again, and what the server answers to that is kept from it. Ids and tokens are our own
//! numbers, counted from 1 in each of them (the handshake has 0), so that clients which share one get their own answers.
//!
//! - `heard`: what the server says
//! - `follow`: what the client says of what was passed on, and of what the server asked
//! - `leaving`: the end of their clients

mod follow;
mod heard;
mod leaving;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub(super) use self::follow::Asked;
use super::{Output, Replayer};
use crate::{
    cassette::{journal::Continues, key},
    fault::Acting,
    report::{PassedOn, Reason, events::Outcome},
    traffic::Lane,
    wire::{
        jsonrpc::{self, Message},
        lines::one_line,
    },
};

/// The id of a handshake.
const HANDSHAKE: u64 = 0;
/// How many distinct requests are told of; equal ones are counted, further ones too.
const MOST_TOLD: usize = 1_000;

/// The real servers of a take, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Upstreams(Vec<Upstream>);

/// A real server.
#[derive(Debug)]
struct Upstream {
    /// Index of the live session that it is there for.
    live: usize,
    stage: Stage,
    /// It was greeted with a handshake, ours or the client's.
    is_greeted: bool,
    /// It heard the client's own handshake, and hears all its notifications.
    is_whole: bool,
    /// Its input has been closed: nothing more is said to it.
    is_closed: bool,
    /// Lines that wait for the end of the handshake.
    waiting: Vec<(Lane, Vec<u8>)>,
    /// How many requests it was passed.
    count: u64,
    /// Those that it has not answered.
    asked: BTreeMap<u64, Passed>,
    /// The clients' progress tokens of requests that it has answered.
    tokens: BTreeMap<u64, Box<[u8]>>,
}

#[derive(Debug, PartialEq, Eq)]
enum Stage {
    /// It may have to be greeted first.
    Fresh,
    /// It has not answered the handshake.
    Greeting,
    /// It hears all.
    Open,
    /// It hears nothing any more: why.
    Over(String),
}

/// A request that was passed on.
#[derive(Debug)]
struct Passed {
    /// The lane that it came on.
    lane: Lane,
    /// The lane that its answer goes on.
    own: Lane,
    /// Its id and progress token, as the client has them.
    id: Vec<u8>,
    token: Option<Box<[u8]>>,
    is_modern: bool,
    is_cancelled: bool,
    /// Its answer is the end of a stream, which no client waits for.
    is_endless: bool,
    /// Faults act on it.
    acting: Option<Acting>,
    /// Where it is told of.
    told: usize,
}

impl Upstreams {
    /// Whether a client that speaks in lines is still to hear from one of them.
    pub(super) fn owes(&self, lane: Lane) -> bool {
        let is_owed = |passed: &Passed| passed.own == lane && !passed.is_cancelled;
        self.0.iter().any(|upstream| upstream.asked.values().any(is_owed))
    }

    /// The one that a live session has.
    fn of(&self, live: usize) -> Option<usize> {
        self.0.iter().rposition(|upstream| upstream.live == live && !upstream.is_closed)
    }
}

impl Upstream {
    /// Whether it hears what it is told now.
    fn is_heard(&self) -> bool {
        self.stage == Stage::Open && !self.is_closed
    }
}

impl Replayer {
    /// Where in the cassette what a real server is asked belongs.
    pub fn continues(&self, upstream: u32) -> Continues {
        let upstream = &self.upstreams.0[upstream as usize];
        let of_pool = || {
            let pool = self.scripts[0].steps.iter().rev();
            let sessions = pool.map(|step| self.cassette.exchanges[step.exchange as usize].session);
            let has_own =
                |session: &u32| self.scripts[1..].iter().any(|script| script.session == Some(*session));
            sessions.into_iter().find(|session| !has_own(session))
        };
        let played = self.playing(upstream.live).map(|play| self.scripts[self.plays[play].script].session);
        let session = match played {
            Some(session) => session,
            // A handshake that nobody recorded begins a session of its own.
            None if upstream.is_whole => None,
            None => of_pool(),
        };
        let session = session.map(|at| &self.cassette.sessions[at as usize]);
        Continues {
            recording: self.recording,
            session: session.map(|session| session.number),
            journal: session.and_then(|session| session.journal.as_deref().map(str::to_owned)),
        }
    }

    /// Passes a request on that would be a miss.
    pub(super) fn pass_on(
        &mut self,
        lane: Lane,
        message: &Message<'_>,
        reason: Reason,
        nearest: Option<u32>,
    ) {
        self.note_outcome(Outcome::PassedOn);
        let told = self.tell_of(message, reason, nearest.map(|exchange| self.key(exchange)));
        let is_handshake = message.method() == "initialize";
        if is_handshake {
            self.begin_passed_session(lane);
        }
        let live = self.at_hand.live;
        let number = self.upstreams.of(live).unwrap_or_else(|| {
            self.upstreams.0.push(Upstream {
                live,
                stage: Stage::Fresh,
                is_greeted: false,
                is_whole: false,
                is_closed: false,
                waiting: Vec::new(),
                count: 0,
                asked: BTreeMap::new(),
                tokens: BTreeMap::new(),
            });
            self.upstreams.0.len() - 1
        });
        let own = self.own_stream(lane);
        let id = if self.at_hand.id.is_empty() { b"null".to_vec() } else { self.at_hand.id.clone() };
        let passed = Passed {
            lane,
            own,
            id,
            token: self.at_hand.token.clone(),
            is_modern: message.is_modern(),
            is_cancelled: false,
            is_endless: message.method() == "subscriptions/listen",
            acting: self.at_hand.acting.take(),
            told,
        };
        if let Some(stream) = self.streams.get_mut(&lane.0) {
            stream.is_modern = passed.is_modern;
        }
        if self.at_hand.post == Some(lane) {
            self.accept_text(lane);
        }
        if let Stage::Over(why) = &self.upstreams.0[number].stage {
            let why = why.clone();
            return self.fail(passed, &why);
        }
        let greeting = self.greeting_of(live).filter(|_| !is_handshake && !passed.is_modern);
        let upstream = &mut self.upstreams.0[number];
        upstream.count += 1;
        let line = renamed(&self.at_hand.line, upstream.count);
        let is_modern = passed.is_modern;
        upstream.asked.insert(upstream.count, passed);
        match (&upstream.stage, greeting) {
            (Stage::Fresh, Some(greeting)) => {
                (upstream.stage, upstream.is_greeted) = (Stage::Greeting, true);
                upstream.waiting.push((lane, line));
                self.say_to(number, lane, renamed(&greeting, HANDSHAKE));
            }
            (Stage::Greeting, _) if !is_modern => upstream.waiting.push((lane, line)),
            _ => {
                if is_handshake {
                    (upstream.is_greeted, upstream.is_whole) = (true, true);
                }
                if is_handshake || !is_modern {
                    upstream.stage = Stage::Open;
                }
                self.say_to(number, lane, line);
            }
        }
    }

    /// Whether a request that is a miss goes to the real server.
    pub(super) const fn passes_on(&self) -> bool {
        self.options.passes_on
    }

    fn say_to(&mut self, upstream: usize, lane: Lane, line: Vec<u8>) {
        if !self.upstreams.0[upstream].is_closed {
            self.outputs.push_back(Output::Upstream { lane, upstream: upstream as u32, line });
        }
    }

    /// The handshake of the client that a live session is of, as it stood.
    fn greeting_of(&self, live: usize) -> Option<Vec<u8>> {
        let of_play = || self.playing(live).and_then(|play| self.live_with(play));
        let greeting = |live: usize| self.lives[live].greeting.clone();
        greeting(live).or_else(|| of_play().and_then(greeting))
    }

    /// Over HTTP a handshake that is passed on begins a session of ours.
    fn begin_passed_session(&mut self, lane: Lane) {
        let is_http = self.at_hand.facts.is_some() && self.at_hand.post.is_none();
        if !is_http {
            return;
        }
        let live = super::lives::Live { ordinal: self.report.sessions, ..Default::default() };
        self.at_hand.live = self.begin_live(live);
        let id = self.id_of(self.at_hand.live);
        if let Some(stream) = self.streams.get_mut(&lane.0) {
            stream.live = self.at_hand.live;
            let headers = stream.head.iter_mut().map(|head| &mut head.headers);
            headers
                .for_each(|headers| headers.push(("mcp-session-id".into(), id.as_bytes().to_vec().into())));
        }
    }

    /// Ends a handshake of ours, and says what waits for its end.
    fn say_what_waits(&mut self, number: usize) {
        let waiting = std::mem::take(&mut self.upstreams.0[number].waiting);
        let first = waiting.first().map_or(Lane(0), |(lane, _)| *lane);
        self.say_to(number, first, br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_vec());
        for (lane, line) in waiting {
            self.say_to(number, lane, line);
        }
    }

    /// Whether a lane is none of a single request's.
    fn is_shared(&self, lane: Lane, live: usize) -> bool {
        self.pipes.has(lane) || self.lives[live].sse.as_ref().is_some_and(|(sse, _)| *sse == lane)
    }

    /// Where a request is told of.
    fn tell_of(&mut self, message: &Message<'_>, reason: Reason, nearest: Option<String>) -> usize {
        let request = key::of_client(message);
        let told = &mut self.report.passed_on;
        let full = told.len() >= MOST_TOLD;
        let is_same =
            |known: &PassedOn| (&known.request, known.reason, &known.nearest) == (&request, reason, &nearest);
        let is_it = |known: &PassedOn| full || is_same(known);
        let at = told.iter().rposition(is_it).unwrap_or_else(|| {
            told.push(PassedOn { server: None, request, reason, nearest, count: 0, failed: 0, why: None });
            told.len() - 1
        });
        told[at].count += 1;
        at
    }

    /// A request is answered by nobody: why.
    fn fail(&mut self, passed: Passed, why: &str) {
        let error = jsonrpc::error(&passed.id, jsonrpc::NO_ANSWER, why, None);
        self.failed(passed.told, why);
        self.settle(&passed, error);
    }

    /// Gives a client the answer to its request.
    fn settle(&mut self, passed: &Passed, answer: Vec<u8>) {
        self.speak_for(passed.acting);
        self.deliver(passed.own, answer, true, None, None);
        if self.streams.get(&passed.own.0).is_some_and(|stream| !self.is_shared(passed.own, stream.live)) {
            self.end(passed.own, None, &[]);
        }
        self.speak_for(None);
        self.close_acting(passed.acting);
    }
}

/// A request on one line, under a number of ours, which is its progress token as well if it has one.
fn renamed(line: &[u8], number: u64) -> Vec<u8> {
    let mut line = one_line(line);
    let message = Message::read(&line);
    let token = message.param_span("/_meta/progressToken");
    let mut spans: Vec<_> = message.id_span().into_iter().chain(token).collect();
    spans.sort_by_cached_key(|span| std::cmp::Reverse(span.start));
    for span in spans {
        line.splice(span.start..span.end, number.to_string().into_bytes());
    }
    line
}
