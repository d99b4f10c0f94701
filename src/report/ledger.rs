//! Messages whose outcome is not known yet, and what is told of them once it is.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use serde_json::value::RawValue;

use super::events::{Event, Outcome};
use crate::{
    traffic::{Lane, Micros},
    wire::{
        jsonrpc::{Kind, Message, id_key, text},
        sse::{EventStream, Piece},
    },
};

/// What is known of messages, and of which the outcome is not known yet.
#[derive(Debug)]
pub(crate) struct Ledger {
    numbers: Arc<AtomicU64>,
    open: BTreeMap<u64, Open>,
    /// What has gone of messages that go in pieces, by lane.
    pieces: HashMap<u32, Vec<u8>>,
    done: Vec<Event>,
}

/// A message that has come.
pub(crate) struct Came<'a> {
    pub now: Micros,
    pub server: Option<&'a str>,
    /// Which of the take's sessions it is in.
    pub session: Option<u64>,
    /// The session, by whatever number its keeper knows it.
    pub live: usize,
    pub lane: Lane,
    /// Over HTTP+SSE, the lane that its answer goes on; else its own.
    pub own: Lane,
    /// After redaction.
    pub message: &'a Message<'a>,
    pub method: &'a str,
    /// Its id before redaction, where that may be another.
    pub id: Option<&'a [u8]>,
    /// What its request's headers call it.
    pub correlation: Option<&'a str>,
}

/// A message whose outcome is not known yet.
#[derive(Debug)]
pub(crate) struct Open {
    pub event: Event,
    came: Micros,
    /// Its id, as it is compared.
    id: Vec<u8>,
    pub is_request: bool,
    is_modern: bool,
    pub live: usize,
    lane: Lane,
    own: Lane,
    /// What is known of its outcome already.
    pub noted: Option<Outcome>,
    /// A fault that acts on it ends the matter.
    pub is_faulty: bool,
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

impl Ledger {
    pub(crate) fn new(numbers: Arc<AtomicU64>) -> Self {
        Self { numbers, open: BTreeMap::new(), pieces: HashMap::new(), done: Vec::new() }
    }

    /// A request or notification has come; its number.
    pub(crate) fn open(&mut self, came: &Came<'_>) -> u64 {
        let seq = self.numbers.fetch_add(1, Ordering::Relaxed) + 1;
        let message = came.message;
        let is_request = message.kind == Kind::Request;
        let shown = message.id().filter(|_| is_request).unwrap_or_default();
        let of_meta = || {
            let value = text(message.meta("traceparent")?);
            trace_id(&value).map(str::to_owned)
        };
        let event = Event {
            seq,
            at_ms: came.now / 1000,
            server: came.server.map(str::to_owned),
            take: None,
            session: came.session,
            lane: came.lane.0,
            method: came.method.to_owned(),
            name: message.name().map(std::borrow::Cow::into_owned),
            key: None,
            request_id: std::str::from_utf8(shown)
                .ok()
                .filter(|id| !id.is_empty())
                .and_then(|id| RawValue::from_string(id.to_owned()).ok()),
            correlation_id: came.correlation.map(str::to_owned).or_else(of_meta),
            outcome: Outcome::Unanswered,
            fault: None,
            duration_ms: None,
        };
        let open = Open {
            event,
            came: came.now,
            id: id_key(came.id.unwrap_or(shown)).into_owned(),
            is_request,
            is_modern: message.is_modern(),
            live: came.live,
            lane: came.lane,
            own: came.own,
            noted: None,
            is_faulty: false,
            head: None,
        };
        self.open.insert(seq, open);
        seq
    }

    /// One whose outcome is not known yet.
    pub(crate) fn get_mut(&mut self, seq: u64) -> Option<&mut Open> {
        self.open.get_mut(&seq)
    }

    /// A fault could change nothing of a message; `left` is one that acts all the same, and whether it ends the matter.
    pub(crate) fn was_no_fault(&mut self, events: &[u64], left: Option<(&str, bool)>) {
        for seq in events {
            if let Some(open) = self.open.get_mut(seq) {
                open.is_faulty = left.is_some_and(|(_, ends)| ends);
                open.event.fault = left.map(|(name, _)| name.to_owned());
            }
        }
    }

    /// The outcome of a message is known; `answered` is when its answer went.
    pub(crate) fn settle(&mut self, seq: u64, otherwise: Outcome, answered: Option<Micros>) {
        let Some(open) = self.open.remove(&seq) else { return };
        let outcome = open.outcome(otherwise);
        let duration_ms = answered.map(|now| now.saturating_sub(open.came) / 1000);
        self.done.push(Event { outcome, duration_ms, ..open.event });
    }

    fn settle_all(&mut self, otherwise: Outcome, answered: Option<Micros>, which: impl Fn(&Open) -> bool) {
        let which: Vec<u64> = self.open.iter().filter(|(_, open)| which(open)).map(|(seq, _)| *seq).collect();
        which.into_iter().for_each(|seq| self.settle(seq, otherwise, answered));
    }

    /// The events of those whose outcome is known by now. After the last one (`is_last`), nothing is answered any more.
    pub(crate) fn take(&mut self, is_last: bool) -> Vec<Event> {
        if is_last {
            self.settle_all(Outcome::Unanswered, None, |_| true);
        }
        std::mem::take(&mut self.done)
    }

    /// A message has been dealt with: where it has no answer, it is over.
    pub(crate) fn accept(&mut self, seq: u64) {
        if self.open.get(&seq).is_some_and(|open| !open.is_request) {
            self.settle(seq, Outcome::Accepted, None);
        }
    }

    /// The request that an answer is for: on its own lane, in the session of that, or the only one of this id.
    pub(crate) fn asked(&self, lane: Lane, live: Option<usize>, id: &[u8]) -> Option<u64> {
        let of_id = || self.open.iter().filter(|(_, open)| open.is_request && open.id == id);
        let on_lane = of_id().find(|(_, open)| open.lane == lane || open.own == lane);
        let in_session = || of_id().find(|(_, open)| live == Some(open.live));
        let only = || of_id().next().filter(|_| of_id().count() == 1);
        on_lane.or_else(in_session).or_else(only).map(|(seq, _)| *seq)
    }

    /// The client cancels a request.
    pub(crate) fn cancelled(&mut self, live: usize, id: &[u8]) {
        let id = id_key(id);
        let is_it =
            |open: &Open| open.is_request && open.id == *id && (open.lane.0 == 0 || open.live == live);
        self.settle_all(Outcome::Cancelled, None, is_it);
    }

    /// The client has left a lane, which means that it cancels only since 2026-07-28 (F10.10).
    pub(crate) fn left(&mut self, lane: Lane) {
        self.pieces.remove(&lane.0);
        self.settle_all(Outcome::Cancelled, None, |open| {
            open.lane == lane && open.own == lane && (open.is_modern || open.is_faulty)
        });
    }

    /// A piece of a message goes to the client; `goes_on`: it is not the last. The message is a line, an event or a body;
    /// `live` as in [`Ledger::told`].
    pub(crate) fn piece(
        &mut self,
        now: Micros,
        lane: Lane,
        piece: (&[u8], bool),
        mut live: impl FnMut() -> Option<usize>,
    ) {
        let (bytes, goes_on) = piece;
        let so_far = self.pieces.entry(lane.0).or_default();
        so_far.extend_from_slice(bytes);
        if goes_on {
            return;
        }
        let whole = std::mem::take(so_far);
        self.pieces.remove(&lane.0);
        if matches!(whole.trim_ascii_start().first(), Some(b'{' | b'[')) {
            return self.told(now, lane, whole.trim_ascii_end(), live);
        }
        let mut texts = Vec::new();
        EventStream::new(whole.len()).feed(&whole, |piece| {
            if let Piece::Event(event) = piece {
                texts.push(event.data);
            }
        });
        texts.into_iter().for_each(|text| self.told(now, lane, &text, &mut live));
    }

    /// A response begins.
    pub(crate) fn head(&mut self, lane: Lane, status: u16, is_stream: bool) {
        let on_lane = self.open.values_mut().filter(|open| open.lane == lane);
        on_lane.for_each(|open| open.head = Some((status, is_stream)));
    }

    /// A response has ended. Where a client may fetch the rest of it, its request stays open.
    pub(crate) fn ended(&mut self, now: Micros, lane: Lane) {
        self.settle_all(Outcome::Error, Some(now), |open| open.lane == lane && open.is_refused());
        let is_over = |open: &Open| {
            let is_whole = open.head.is_some_and(|(_, is_stream)| !is_stream);
            open.lane == lane && open.own == lane && (open.is_faulty || is_whole)
        };
        self.settle_all(Outcome::Unanswered, None, is_over);
    }

    /// A text goes to the client; `live` finds the session that its lane is of.
    pub(crate) fn told(
        &mut self,
        now: Micros,
        lane: Lane,
        text: &[u8],
        mut live: impl FnMut() -> Option<usize>,
    ) {
        let message = Message::read(text);
        let mut told = |message: &Message<'_>| {
            let outcome = match message.kind {
                Kind::Result => Outcome::Answered,
                Kind::Error => Outcome::Error,
                _ => return,
            };
            let asked = message.id_key().and_then(|id| self.asked(lane, live(), &id));
            asked.into_iter().for_each(|seq| self.settle(seq, outcome, Some(now)));
        };
        match message.kind {
            Kind::Batch => message.members().for_each(|member| told(&member)),
            _ => told(&message),
        }
    }
}

/// What a request's headers call it, and by which header.
pub(crate) fn correlation<'a>(header: impl Fn(&str) -> Option<&'a [u8]>) -> Option<(&'static str, String)> {
    ["x-correlation-id", "x-request-id", "traceparent"].into_iter().find_map(|name| {
        let value = String::from_utf8_lossy(header(name)?);
        let value = if name == "traceparent" { trace_id(&value)? } else { &value };
        Some((name, value.to_owned()))
    })
}

/// The trace id of a `traceparent` (W3C Trace Context): `00-TRACE-PARENT-FLAGS`.
fn trace_id(traceparent: &str) -> Option<&str> {
    let id = traceparent.split('-').nth(1)?;
    (id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(id)
}
