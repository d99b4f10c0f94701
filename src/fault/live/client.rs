//! What clients send.

use std::borrow::Cow;

use super::{Came, Held, Live, Passing, Response};
use crate::{
    cassette::key,
    fault::{
        BATCH, Chosen, Decision, Effect, Origin, Request, Target,
        catalogue::{SERVER_REQUEST, speak},
        step::{Output, Step, are_silent},
    },
    report::{
        events::Outcome,
        ledger::{Came as Noted, correlation},
    },
    traffic::Micros,
    wire::jsonrpc::{self, Kind, Message, id_key},
};

/// So many methods and names are counted for keys; what comes after them has no key.
const MOST_NAMES: usize = 100_000;

impl Live {
    /// A client sends something: what becomes of it. What is none of its requests, or a batch, passes, but for
    /// two things: over HTTP nothing passes that is for a session which a fault has ended, and no server hears the answer
    /// to what a fault has asked.
    pub fn client(&mut self, now: Micros, came: &Came<'_>) -> Passing {
        let opens = came.http.map_or(!self.has_come, |http| http.opens_connection);
        self.report.connections += u64::from(opens);
        self.has_come = true;
        if let Some(http) = came.http {
            self.look.headers(http.headers);
        }
        let original = Message::read(came.bytes);
        let hidden = self.look.message(came.bytes);
        let message = match &hidden {
            Cow::Owned(hidden) => Message::read(hidden),
            Cow::Borrowed(_) => original,
        };
        let begins = message.kind == Kind::Request && message.method() == "initialize";
        let session = self.session_of(came, begins);
        if message.kind == Kind::Batch {
            self.tell_of_batch();
        }
        if came.http.is_some() {
            self.lanes.insert(came.lane.0, Response { session, begins, is_deaf: false });
        }
        let events = self.count(now, came, &message, original.id(), session);
        let is_lost = || came.http?.session().filter(|session| self.lost.contains(*session));
        let passing = if !begins && is_lost().is_some() {
            self.session_not_found(now, came, &original, &events);
            Passing::Never
        } else {
            match message.kind {
                Kind::Request => self.request(now, came, &original, &message, session, events.first()),
                Kind::Notification => self.notification(came, &message, session),
                Kind::Result | Kind::Error if answers_a_fault(&original) => {
                    if came.http.is_some() {
                        self.say(now, speak::response_on(came.lane, 202, Vec::new(), Vec::new()));
                    }
                    Passing::Never
                }
                _ => Passing::Now,
            }
        };
        if let Some(ledger) = &mut self.ledger {
            events.iter().for_each(|event| ledger.accept(*event));
        }
        self.take_back_idle();
        passing
    }

    /// A batch passes as it is, whatever the plan says of the requests in it.
    fn tell_of_batch(&mut self) {
        if self.plan.has_rules() && !self.report.warnings.iter().any(|told| told == BATCH) {
            self.report.warnings.push(BATCH.to_owned());
        }
    }

    /// The number of the session that something is in: of one that it begins, that which it will have; 0 for none.
    fn session_of(&self, came: &Came<'_>, begins: bool) -> u64 {
        if begins {
            return self.report.sessions + 1;
        }
        match came.http {
            None => self.report.sessions,
            Some(http) => {
                http.session().and_then(|session| self.sessions.get(session)).copied().unwrap_or_default()
            }
        }
    }

    /// Takes in which requests and notifications have come; the numbers of their events.
    fn count(
        &mut self,
        now: Micros,
        came: &Came<'_>,
        message: &Message<'_>,
        id: Option<&[u8]>,
        session: u64,
    ) -> Vec<u64> {
        let correlation = came.http.filter(|_| self.ledger.is_some()).and_then(|http| {
            let (name, value) = correlation(|name| http.header(name))?;
            Some(self.look.header(name, value.as_bytes()))
        });
        let mut events = Vec::new();
        let mut each = |message: &Message<'_>, id: Option<&[u8]>| {
            if !matches!(message.kind, Kind::Request | Kind::Notification) {
                return;
            }
            let method = message.method();
            self.report.came(&method);
            let Some(ledger) = &mut self.ledger else { return };
            events.push(ledger.open(&Noted {
                now,
                server: None,
                session: Some(session).filter(|session| *session > 0),
                live: number_of(session),
                lane: came.lane,
                own: came.own_lane(),
                message,
                method: &method,
                id,
                correlation: correlation.as_deref(),
            }));
        };
        match message.kind {
            Kind::Batch => message.members().for_each(|member| each(&member, member.id())),
            _ => each(message, id),
        }
        events
    }

    /// The key of a request.
    fn key(&mut self, message: &Message<'_>) -> Option<String> {
        let name = key::of_client(message);
        if self.counts.len() >= MOST_NAMES && !self.counts.contains_key(&name) {
            return None;
        }
        let count = self.counts.entry(name.clone()).or_default();
        *count += 1;
        Some(format!("{name} @{count}"))
    }

    fn request(
        &mut self,
        now: Micros,
        came: &Came<'_>,
        original: &Message<'_>,
        message: &Message<'_>,
        session: u64,
        event: Option<&u64>,
    ) -> Passing {
        let method = message.method();
        let key = self.key(message);
        if let (Some(ledger), Some(event)) = (&mut self.ledger, event) {
            ledger.get_mut(*event).into_iter().for_each(|open| open.event.key.clone_from(&key));
        }
        let is_modern = message.is_modern();
        // Since 2026-07-28 all traffic of one front is one session.
        let number = if session == 0 { is_modern.then_some(1) } else { u32::try_from(session).ok() };
        let request = Request {
            kind: None,
            server: None,
            message,
            method: &method,
            key: key.as_deref(),
            session: number,
            is_modern: Some(is_modern),
        };
        let decision = self.engine.decide(&request, || self.look.form(message));
        let passing = match decision {
            None => Passing::Now,
            Some(decision) => {
                let origin = Origin {
                    events: event.copied().into_iter().collect(),
                    asked: (number_of(session), original.id_key().unwrap_or_default().into_owned()),
                    post: came.post(),
                };
                self.act(now, came, original, decision, origin)
            }
        };
        if method == "initialize" && passing != Passing::Never {
            self.begin(came, session);
        }
        passing
    }

    /// A session begins.
    fn begin(&mut self, came: &Came<'_>, session: u64) {
        self.report.sessions = session;
        if let Some((_, endpoint)) = came.http.and_then(|http| http.stream) {
            self.lost.remove(endpoint);
            self.sessions.insert(endpoint.into(), session);
        }
    }

    /// Faults act on a request.
    fn act(
        &mut self,
        now: Micros,
        came: &Came<'_>,
        original: &Message<'_>,
        decision: Decision,
        origin: Origin,
    ) -> Passing {
        let method = &*original.method();
        let (id, token) = (original.id().unwrap_or(b"null"), original.progress_token());
        let (lane, post) = (came.own_lane(), came.post());
        let is_http = came.http.is_some();
        let is_modern = original.is_modern();
        let target = Target { lane, post, is_http, method, id, is_modern, token, count: 0, roll: 0.0 };
        let terminal = decision.terminal.as_ref();
        let instead = terminal.and_then(|chosen| chosen.instead(&target));
        // Where nothing goes to the server, what holds that back holds the answer back.
        let is_on_its_way = |chosen: &Chosen| chosen.to_server && instead.is_none();
        let line = Output::Send { lane, bytes: Vec::new(), apart: false };
        let holds = |chosen: &Chosen| {
            let effect = chosen.effect(&target).filter(|_| is_on_its_way(chosen))?;
            Some(waits(effect, line.clone()))
        };
        let wait = decision.beside.iter().filter_map(holds).fold(0, Micros::saturating_add);
        let chosen = terminal.into_iter().chain(&decision.beside);
        let works = chosen.map(|chosen| chosen.work(&target, holds(chosen))).collect();
        self.lingers = self.lingers.max(decision.lingers());
        self.note_fault(&decision, origin.events.first(), instead.as_deref().is_some_and(are_silent));
        let acting = self.stage.begin(works, origin, (is_http && post.is_none()).then_some(came.lane));
        let Some(steps) = instead else {
            if !is_http || post.is_some() {
                self.asked.add(lane, original, Some(acting));
            }
            return if wait == 0 { Passing::Now } else { self.hold(now, wait, came) };
        };
        self.stage.perform(now, acting, steps, &mut self.outputs);
        self.stage.close(acting);
        if decision.ends_session() {
            self.lost.extend(came.http.and_then(|http| http.session()).map(Box::from));
        }
        if !decision.consumes {
            return Passing::Never;
        }
        // The server does it all the same, and nobody hears of that.
        if let Some(response) = self.lanes.get_mut(&came.lane.0) {
            response.is_deaf = true;
        }
        if !is_http || post.is_some() {
            self.asked.add(lane, original, None);
        }
        Passing::Now
    }

    fn note_fault(&mut self, decision: &Decision, event: Option<&u64>, is_silent: bool) {
        let (Some(ledger), Some(event)) = (&mut self.ledger, event) else { return };
        if let Some(open) = ledger.get_mut(*event) {
            open.event.fault = decision.name().map(str::to_owned);
            open.is_faulty = decision.terminal.is_some();
        }
        if is_silent {
            ledger.settle(*event, Outcome::Fault, None);
        }
    }

    fn hold(&mut self, now: Micros, wait: Micros, came: &Came<'_>) -> Passing {
        self.hold_until(now.saturating_add(wait), came);
        Passing::Later
    }

    fn hold_until(&mut self, due: Micros, came: &Came<'_>) {
        self.holds += 1;
        self.held.insert((due, self.holds), Held { lane: came.lane, bytes: came.bytes.to_vec() });
    }

    fn notification(&mut self, came: &Came<'_>, message: &Message<'_>, session: u64) -> Passing {
        let Some(id) = message.cancelled_id() else { return Passing::Now };
        let goes_on = self.stage.cancel(number_of(session), &id_key(id), came.http.is_none());
        if let Some(ledger) = self.ledger.as_mut().filter(|_| !goes_on) {
            ledger.cancelled(number_of(session), id);
        }
        let is_it =
            |held: &Held| Message::read(&held.bytes).id_key().is_some_and(|known| known == id_key(id));
        // What cancels a request does not overtake it.
        let due = self.held.iter().filter(|(_, held)| is_it(held)).map(|((due, _), _)| *due).next();
        match due {
            Some(due) => {
                self.hold_until(due, came);
                Passing::Later
            }
            None => Passing::Now,
        }
    }

    /// The session is gone, and stays so.
    fn session_not_found(&mut self, now: Micros, came: &Came<'_>, message: &Message<'_>, events: &[u64]) {
        *self.report.self_answered.entry("session not found".to_owned()).or_default() += 1;
        if let Some(ledger) = &mut self.ledger {
            for event in events {
                ledger.get_mut(*event).into_iter().for_each(|open| open.noted = Some(Outcome::SelfAnswered));
            }
        }
        let id = message.id().filter(|_| message.kind == Kind::Request).unwrap_or(b"null");
        let error = jsonrpc::error(id, -32001, "Session not found", None);
        self.say(now, speak::response_on(came.lane, 404, speak::typed("application/json"), error));
    }

    /// Says what is not because of any request.
    fn say(&mut self, now: Micros, steps: Vec<Step>) {
        for step in steps {
            if let Step::Do(output) = step {
                self.stage.go(now, None, output, &mut self.outputs);
            }
        }
    }
}

/// A session as the ledger and the stage know it.
fn number_of(session: u64) -> usize {
    usize::try_from(session).unwrap_or(usize::MAX)
}

/// Whether a client answers a request that a fault has made: its server knows nothing of that.
fn answers_a_fault(answer: &Message<'_>) -> bool {
    answer.id().is_some_and(|id| id.starts_with(SERVER_REQUEST))
}

/// How long an effect holds back something that passes it.
fn waits(mut effect: Box<dyn Effect>, output: Output) -> Micros {
    let mut steps = Vec::new();
    effect.pass(output, &mut steps);
    let waits = steps.iter().map(|step| match step {
        Step::Wait(time) | Step::Yield(time) => *time,
        Step::Do(_) => 0,
    });
    waits.fold(0, Micros::saturating_add)
}
