//! What a real server says, and whom it is for.

use super::{Asked, HANDSHAKE, Replayer, Stage};
use crate::{
    cassette::model::{Form, Id},
    replay::{
        replayer::lives::Pending,
        rewrite::{self, Correlators},
    },
    traffic::Lane,
    wire::{
        jsonrpc::{self, Kind, Message, id_key, number_key, text},
        scan,
    },
};

/// How many tokens are kept of requests that were answered.
const MOST_TOKENS: usize = 1_000;

/// Where a message of a server goes.
#[derive(Clone, Copy)]
enum For {
    /// To the client of this request.
    Request(u64),
    /// To the session.
    Session,
}

impl Replayer {
    /// A real server said a line.
    pub(in crate::replay::replayer) fn upstream_said(&mut self, number: usize, line: &[u8]) {
        if matches!(self.upstreams.0[number].stage, Stage::Over(_)) {
            return;
        }
        let message = Message::read(line);
        match message.kind {
            Kind::Batch => message.members().for_each(|member| self.upstream_message(number, &member)),
            _ => self.upstream_message(number, &message),
        }
    }

    fn upstream_message(&mut self, number: usize, message: &Message<'_>) {
        match message.kind {
            Kind::Result | Kind::Error => self.upstream_answered(number, message),
            Kind::Request => self.upstream_asks(number, message),
            // It has no client before it has answered the handshake.
            Kind::Notification if self.upstreams.0[number].stage == Stage::Greeting => {}
            Kind::Notification => self.upstream_tells(number, message),
            Kind::Batch | Kind::Noise => {}
        }
    }

    /// A real server says nothing more.
    pub(in crate::replay::replayer) fn upstream_ended(&mut self, number: usize, why: &str) {
        let upstream = &mut self.upstreams.0[number];
        if matches!(upstream.stage, Stage::Over(_)) {
            return;
        }
        upstream.stage = Stage::Over(why.to_owned());
        upstream.waiting.clear();
        let live = upstream.live;
        for passed in std::mem::take(&mut upstream.asked).into_values() {
            // Who cancelled waits for nothing, and a stream ends when its client closes its side.
            if passed.is_cancelled || (passed.is_endless && self.pipes.is_closed(passed.own)) {
                self.close_acting(passed.acting);
            } else {
                self.fail(passed, why);
            }
        }
        let is_its =
            |pending: &Pending| pending.upstream.as_ref().is_some_and(|asked| asked.number == number);
        self.lives[live].pending.retain(|pending| !is_its(pending));
    }

    fn upstream_answered(&mut self, number: usize, message: &Message<'_>) {
        let minted = message.id().and_then(number_of);
        let upstream = &mut self.upstreams.0[number];
        if minted == Some(HANDSHAKE) && upstream.stage == Stage::Greeting {
            return self.greeted(number, message);
        }
        let Some((minted, passed)) =
            minted.and_then(|minted| Some((minted, upstream.asked.remove(&minted)?)))
        else {
            return self.warn("the real server answered a request that it was not asked".to_owned());
        };
        if let Some(token) = passed.token.clone() {
            upstream.tokens.insert(minted, token);
            if upstream.tokens.len() > MOST_TOKENS {
                upstream.tokens.pop_first();
            }
        }
        let mut answer = message.bytes.to_vec();
        rewrite::rewrite(&mut answer, &correlators(minted, &passed.id, passed.token.as_deref()));
        if message.kind == Kind::Error {
            match code_of(message) {
                Some(jsonrpc::NO_ANSWER) => self.failed(passed.told, &sentence_of(message)),
                // Specification 2026-07-28, basic/transports/streamable-http.
                Some(-32601) if passed.is_modern => self.set_status(passed.lane, 404),
                _ => {}
            }
        }
        if !passed.is_cancelled || self.pipes.has(passed.own) {
            self.settle(&passed, answer);
        }
    }

    /// A real server has answered the handshake.
    fn greeted(&mut self, number: usize, message: &Message<'_>) {
        if message.kind == Kind::Error {
            let why = match (code_of(message), sentence_of(message)) {
                (Some(jsonrpc::NO_ANSWER), why) => why,
                (_, why) => format!("the real server refuses the client's `initialize`: {why}"),
            };
            self.upstream_ended(number, &why);
            return self.end_upstream(number);
        }
        let live = self.upstreams.0[number].live;
        let agreed = message.outcome().and_then(|result| {
            let member = scan::member(result, 0, "protocolVersion")?;
            Some(text(member.of(result)).into_owned())
        });
        let of_play = self.playing(live).and_then(|play| self.live_with(play)).unwrap_or(live);
        let recorded = self.lives[of_play].declared.protocol.clone();
        if let Some(agreed) = agreed.filter(|agreed| !recorded.is_empty() && *agreed != recorded) {
            self.warn(format!("the real server speaks revision {agreed}, the recorded one {recorded}"));
        }
        self.upstreams.0[number].stage = Stage::Open;
        self.say_what_waits(number);
    }

    fn upstream_asks(&mut self, number: usize, message: &Message<'_>) {
        let goes = self.goes(number);
        let live = self.upstreams.0[number].live;
        let id = message.id().unwrap_or(b"null").to_vec();
        let Some((lane, acting)) = self.lane_for(number, goes) else {
            let why = "the client has no stream open on which a request could reach it";
            return self.say_to(number, Lane(0), jsonrpc::error(&id, jsonrpc::NO_ANSWER, why, None));
        };
        let mut request = message.bytes.to_vec();
        let key = self.live_server_id(live, &mut request);
        let shown = Message::read(&request).id().unwrap_or(b"null").to_vec();
        let token = message.progress_token().map(Box::from);
        self.lives[live].pending.push(Pending {
            id: key,
            play: 0,
            run: None,
            exchange: 0,
            item: 0,
            method: message.method().into_owned(),
            upstream: Some(Asked { number, id, shown, token }),
        });
        self.speak_for(acting);
        self.deliver(lane, request, true, None, Some(Form::Request));
        self.speak_for(None);
    }

    fn upstream_tells(&mut self, number: usize, message: &Message<'_>) {
        let mut line = message.bytes.to_vec();
        let live = self.upstreams.0[number].live;
        let mut minted = None;
        if let Some(id) = message.cancelled_id() {
            // It takes back what it asked the client.
            let key = id_key(id);
            let is_it = |pending: &&Pending| {
                let asked = pending.upstream.as_ref();
                asked.is_some_and(|asked| asked.number == number && id_key(&asked.id) == key)
            };
            let asked =
                self.lives[live].pending.iter().find(is_it).and_then(|pending| pending.upstream.as_ref());
            let live_id = asked.map(|asked| asked.shown.clone());
            if let (Some(live_id), Some(span)) = (live_id, message.param_span("/requestId")) {
                line.splice(span.start..span.end, live_id);
            }
        } else {
            let token =
                message.param("/progressToken").filter(|_| message.method() == "notifications/progress");
            let named = token.or_else(|| message.param("/_meta/io.modelcontextprotocol~1subscriptionId"));
            minted = named.and_then(number_of);
        }
        let upstream = &self.upstreams.0[number];
        let passed = minted.and_then(|minted| Some((minted, upstream.asked.get(&minted)?)));
        let late = minted.and_then(|minted| Some((minted, upstream.tokens.get(&minted)?)));
        let goes = match (passed, late) {
            (Some((minted, passed)), _) => {
                if passed.is_cancelled {
                    return;
                }
                rewrite::rewrite(&mut line, &correlators(minted, &passed.id, passed.token.as_deref()));
                For::Request(minted)
            }
            (None, Some((minted, token))) => {
                rewrite::rewrite(&mut line, &correlators(minted, b"null", Some(token)));
                For::Session
            }
            (None, None) => self.goes(number),
        };
        let Some((lane, acting)) = self.lane_for(number, goes) else { return };
        self.speak_for(acting);
        self.deliver(lane, line, false, None, Some(Form::Notification));
        self.speak_for(None);
    }

    /// Where something goes that names no request: to the latest that was passed on, else to the session.
    fn goes(&self, number: usize) -> For {
        let asked = self.upstreams.0[number].asked.iter().rev();
        let latest = asked.filter(|(_, passed)| !passed.is_cancelled).map(|(minted, _)| *minted).next();
        latest.map_or(For::Session, For::Request)
    }

    /// The lane that it goes on, if there is any, and whose fault it is under.
    fn lane_for(&self, number: usize, goes: For) -> Option<(Lane, Option<crate::fault::Acting>)> {
        let upstream = &self.upstreams.0[number];
        let live = &self.lives[upstream.live];
        let passed = match goes {
            For::Request(minted) => upstream.asked.get(&minted),
            For::Session => None,
        };
        let is_there = |lane: &Lane| self.pipes.has(*lane) || self.streams.contains_key(&lane.0);
        let own = passed.map(|passed| (passed.own, passed.acting)).filter(|(lane, _)| is_there(lane));
        let shared = || {
            let lanes = [live.pipe, live.sse.as_ref().map(|(lane, _)| *lane), live.get];
            lanes.into_iter().flatten().find(is_there).map(|lane| (lane, None))
        };
        own.or_else(shared)
    }
}

/// One of our numbers, however a server spells it.
fn number_of(id: &[u8]) -> Option<u64> {
    let key = id_key(id);
    let key = number_key(key.strip_prefix(b"\"").unwrap_or(&key));
    std::str::from_utf8(&key).ok()?.parse().ok()
}

fn correlators(minted: u64, live_id: &[u8], live_token: Option<&[u8]>) -> Correlators {
    Correlators {
        recorded_token: live_token.map(|_| minted.to_string().into_bytes().into()),
        recorded_id: Id::Number(minted),
        live_id: live_id.to_vec(),
        live_token: live_token.map(Box::from),
        is_modern: true,
        batch: Vec::new(),
    }
}

fn code_of(error: &Message<'_>) -> Option<i32> {
    let error = error.outcome()?;
    std::str::from_utf8(scan::member(error, 0, "code")?.of(error)).ok()?.parse().ok()
}

fn sentence_of(error: &Message<'_>) -> String {
    let error = error.outcome().unwrap_or_default();
    scan::member(error, 0, "message").map(|span| text(span.of(error)).into_owned()).unwrap_or_default()
}
