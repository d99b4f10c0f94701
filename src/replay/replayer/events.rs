//! What became of each message of the client, where somebody wants to know.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::AtomicU64, atomic::Ordering},
};

use serde_json::value::RawValue;

use super::{Now, Replayer};
use crate::{
    fault::{Decision, step::Output},
    replay::exchange::HttpRequest,
    report::events::{Event, Outcome},
    traffic::{Lane, Micros},
    wire::jsonrpc::{Kind, Message, id_key, text},
};

/// What is known of messages, and of which the outcome is not known yet.
#[derive(Debug)]
pub(super) struct Events {
    numbers: Arc<AtomicU64>,
    open: BTreeMap<u64, Open>,
    done: Vec<Event>,
}

#[derive(Debug)]
struct Open {
    event: Event,
    came: Micros,
    /// Its id, as it is compared.
    id: Vec<u8>,
    is_request: bool,
    is_modern: bool,
    live: usize,
    lane: Lane,
    /// Over HTTP+SSE, the lane that its answer goes on.
    own: Lane,
    /// What is known of its outcome already.
    noted: Option<Outcome>,
    /// A fault that acts on it ends the matter.
    is_faulty: bool,
    /// Its response has begun, with such a status; whether events follow.
    head: Option<(u16, bool)>,
}

impl Open {
    fn outcome(&self, otherwise: Outcome) -> Outcome {
        match self.noted {
            Some(Outcome::Miss) => Outcome::Miss,
            _ if self.is_faulty => Outcome::Fault,
            Some(noted) => noted,
            None => otherwise,
        }
    }

    fn is_refused(&self) -> bool {
        self.head.is_some_and(|(status, _)| status >= 400)
    }
}

impl Events {
    pub(super) const fn new(numbers: Arc<AtomicU64>) -> Self {
        Self { numbers, open: BTreeMap::new(), done: Vec::new() }
    }

    /// The outcome of a message is known; `answered` is when its answer went.
    fn settle(&mut self, seq: u64, otherwise: Outcome, answered: Option<Micros>) {
        let Some(open) = self.open.remove(&seq) else { return };
        let outcome = open.outcome(otherwise);
        let duration_ms = answered.map(|now| now.saturating_sub(open.came) / 1000);
        self.done.push(Event { outcome, duration_ms, ..open.event });
    }

    fn settle_all(&mut self, otherwise: Outcome, answered: Option<Micros>, which: impl Fn(&Open) -> bool) {
        let which: Vec<u64> = self.open.iter().filter(|(_, open)| which(open)).map(|(seq, _)| *seq).collect();
        which.into_iter().for_each(|seq| self.settle(seq, otherwise, answered));
    }

    /// A response has ended. Where a client may fetch the rest of it, its request stays open.
    fn ended(&mut self, now: Micros, lane: Lane) {
        self.settle_all(Outcome::Error, Some(now), |open| open.lane == lane && open.is_refused());
        let is_over = |open: &Open| {
            let is_whole = open.head.is_some_and(|(_, is_stream)| !is_stream);
            open.lane == lane && open.own == lane && (open.is_faulty || is_whole)
        };
        self.settle_all(Outcome::Unanswered, None, is_over);
    }

    /// The request that an answer is for: on its own lane, in the session of that, or the only one of this id.
    fn asked(&self, lane: Lane, live: Option<usize>, id: &[u8]) -> Option<u64> {
        let of_id = || self.open.iter().filter(|(_, open)| open.is_request && open.id == id);
        let on_lane = of_id().find(|(_, open)| open.lane == lane || open.own == lane);
        let in_session = || of_id().find(|(_, open)| live == Some(open.live));
        let only = || of_id().next().filter(|_| of_id().count() == 1);
        on_lane.or_else(in_session).or_else(only).map(|(seq, _)| *seq)
    }
}

impl Replayer {
    /// Events of messages whose outcome is known by now. After the last one (`is_last`), nothing is answered any more.
    pub fn take_events(&mut self, is_last: bool) -> Vec<Event> {
        let Some(events) = &mut self.events else { return Vec::new() };
        if is_last {
            events.settle_all(Outcome::Unanswered, None, |_| true);
        }
        std::mem::take(&mut events.done)
    }

    /// What a request's headers call it.
    pub(super) fn note_correlation(&mut self, request: &HttpRequest<'_>) {
        if self.events.is_none() {
            return;
        }
        let found = ["x-correlation-id", "x-request-id", "traceparent"].into_iter().find_map(|name| {
            let value = String::from_utf8_lossy(request.header(name)?);
            let value = if name == "traceparent" { trace_id(&value)? } else { &value };
            Some((name, value.to_owned()))
        });
        let Some((name, value)) = found else { return };
        let hidden = self.options.vars.hide(value.as_bytes());
        let value = self.redactor.header_value(name, &String::from_utf8_lossy(&hidden)).into_owned();
        self.at_hand.correlation = Some(value);
    }

    /// A request or notification has come.
    pub(super) fn open_event(&mut self, lane: Lane, message: &Message<'_>, method: &str) {
        if self.events.is_none() {
            return;
        }
        let own = self.own_stream(lane);
        let Some(events) = &mut self.events else { return };
        let seq = events.numbers.fetch_add(1, Ordering::Relaxed) + 1;
        let is_request = message.kind == Kind::Request;
        let shown = message.id().filter(|_| is_request).unwrap_or_default();
        let id = if self.at_hand.id.is_empty() { shown } else { &self.at_hand.id };
        let of_meta = || {
            let value = text(message.meta("traceparent")?);
            trace_id(&value).map(str::to_owned)
        };
        let live = self.at_hand.live;
        let event = Event {
            seq,
            at_ms: self.now.played / 1000,
            server: self.options.server.as_deref().map(str::to_owned),
            take: None,
            session: Some(self.lives[live].ordinal).filter(|ordinal| *ordinal > 0),
            lane: lane.0,
            method: method.to_owned(),
            name: message.name().map(std::borrow::Cow::into_owned),
            key: None,
            request_id: std::str::from_utf8(shown)
                .ok()
                .filter(|id| !id.is_empty())
                .and_then(|id| RawValue::from_string(id.to_owned()).ok()),
            correlation_id: self.at_hand.correlation.clone().or_else(of_meta),
            outcome: Outcome::Unanswered,
            fault: None,
            duration_ms: None,
        };
        let id = id_key(id).into_owned();
        let open = Open {
            event,
            came: self.now.played,
            id,
            is_request,
            is_modern: message.is_modern(),
            live,
            lane,
            own,
            noted: None,
            is_faulty: false,
            head: None,
        };
        events.open.insert(seq, open);
        self.at_hand.events.push(seq);
    }

    fn at_hand_events(&mut self, mut note: impl FnMut(&mut Open)) {
        let Some(events) = &mut self.events else { return };
        for seq in &self.at_hand.events {
            events.open.get_mut(seq).into_iter().for_each(&mut note);
        }
    }

    /// What the message at hand asks for.
    pub(super) fn note_key(&mut self, exchange: u32) {
        if self.events.is_none() {
            return;
        }
        let (key, live) = (self.key(exchange), self.at_hand.live);
        let ordinal = Some(self.lives[live].ordinal).filter(|ordinal| *ordinal > 0);
        self.at_hand_events(|open| {
            open.event.key = Some(key.clone());
            (open.live, open.event.session) = (live, ordinal);
        });
    }

    /// What becomes of the message at hand.
    pub(super) fn note_outcome(&mut self, outcome: Outcome) {
        self.at_hand_events(|open| {
            if open.is_request || outcome != Outcome::Miss {
                open.noted = Some(outcome);
            }
        });
    }

    /// What becomes of a request that is played.
    pub(super) fn note_outcome_of(&mut self, lane: Lane, id: &[u8], outcome: Outcome) {
        let Some(events) = &mut self.events else { return };
        let asked = events.asked(lane, None, &id_key(id));
        let open = asked.and_then(|seq| events.open.get_mut(&seq));
        open.into_iter().for_each(|open| open.noted = Some(outcome));
    }

    /// Faults act on the message at hand; of those that speak in the server's place, whether they say anything.
    pub(super) fn note_fault(&mut self, decision: &Decision, exchange: Option<u32>, is_silent: bool) {
        if self.events.is_none() {
            return;
        }
        let key = exchange.map(|exchange| self.key(exchange));
        let is_faulty = decision.terminal.is_some();
        let name = decision.terminal.iter().chain(&decision.beside).next().map(|chosen| chosen.name);
        self.at_hand_events(|open| {
            open.event.fault = name.map(str::to_owned);
            open.event.key.clone_from(&key);
            open.is_faulty = is_faulty;
        });
        if let Some(events) = self.events.as_mut().filter(|_| is_silent) {
            self.at_hand.events.iter().for_each(|seq| events.settle(*seq, Outcome::Fault, None));
        }
    }

    /// The message at hand has been dealt with: what has no answer is over.
    pub(super) fn close_notifications(&mut self) {
        let Some(events) = &mut self.events else { return };
        for seq in &self.at_hand.events {
            if events.open.get(seq).is_some_and(|open| !open.is_request) {
                events.settle(*seq, Outcome::Accepted, None);
            }
        }
    }

    /// The client cancels a request.
    pub(super) fn note_cancelled(&mut self, id: &[u8]) {
        let live = self.at_hand.live;
        let Some(events) = &mut self.events else { return };
        let id = id_key(id);
        let is_it =
            |open: &Open| open.is_request && open.id == *id && (open.lane.0 == 0 || open.live == live);
        events.settle_all(Outcome::Cancelled, None, is_it);
    }

    /// The client has left a lane, which means that it cancels only since 2026-07-28 (F10.10).
    pub(super) fn note_left(&mut self, lane: Lane) {
        let Some(events) = &mut self.events else { return };
        events.settle_all(Outcome::Cancelled, None, |open| {
            open.lane == lane && open.own == lane && (open.is_modern || open.is_faulty)
        });
    }

    /// Something goes to the client.
    pub(super) fn note_told(&mut self, now: Now, output: &Output) {
        let Some(events) = &mut self.events else { return };
        match output {
            Output::Head { lane, head } => {
                let on_lane = events.open.values_mut().filter(|open| open.lane == *lane);
                on_lane.for_each(|open| open.head = Some((head.status, head.stream)));
            }
            Output::EndLane { lane, .. } => events.ended(now.played, *lane),
            _ => {
                let (lane, Some(text)) = (output.lane(), output.text()) else { return };
                let message = Message::read(text);
                let is_its = |live: &super::lives::Live| {
                    live.get == Some(lane)
                        || live.sse.as_ref().is_some_and(|(sse, _)| *sse == lane)
                        || live.resumed.iter().any(|(_, resumed)| *resumed == lane)
                };
                let live = || self.lives.iter().position(is_its);
                let mut told = |message: &Message<'_>| {
                    let outcome = match message.kind {
                        Kind::Result => Outcome::Answered,
                        Kind::Error => Outcome::Error,
                        _ => return,
                    };
                    let asked = message.id_key().and_then(|id| events.asked(lane, live(), &id));
                    asked.into_iter().for_each(|seq| events.settle(seq, outcome, Some(now.played)));
                };
                match message.kind {
                    Kind::Batch => message.members().for_each(|member| told(&member)),
                    _ => told(&message),
                }
            }
        }
    }
}

/// The trace id of a `traceparent` (W3C Trace Context): `00-TRACE-PARENT-FLAGS`.
fn trace_id(traceparent: &str) -> Option<&str> {
    let id = traceparent.split('-').nth(1)?;
    (id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(id)
}
