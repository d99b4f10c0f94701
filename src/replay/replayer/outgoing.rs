//! What goes to the client, and when.

use std::{borrow::Cow, sync::Arc};

use super::{Output, Pending, Replayer};
use crate::{
    cassette::model::{Form, Unanswered},
    replay::{
        options::is_needed_wait,
        play::{Action, Gate},
        rewrite::{self, Correlators},
        script::stays_silent,
    },
    report::Wait,
    traffic::{Lane, Micros},
    wire::jsonrpc::{Kind, Message, id_key},
};

/// One recorded server message on its way.
struct Sending<'a> {
    play: usize,
    /// The run it belongs to; none for a push.
    run: Option<u32>,
    exchange: u32,
    item: u32,
    lane: Lane,
    to: &'a Correlators,
}

impl Replayer {
    /// Performs everything that can go now, in every session of the take.
    pub(super) fn advance(&mut self, now: Micros) {
        self.deadline = None;
        for at in 0..self.plays.len() {
            while !self.ended {
                let scene = scene!(self, at, now);
                match self.plays[at].step(scene) {
                    Action::Idle { until } => {
                        self.deadline = self.deadline.into_iter().chain(until).min();
                        break;
                    }
                    action => self.perform(now, at, action),
                }
            }
        }
    }

    fn perform(&mut self, now: Micros, play: usize, action: Action) {
        let script = self.plays[play].script;
        match action {
            Action::Item { run, item } => self.item(play, run, item),
            Action::Push { step } => {
                let exchange = self.scripts[script].steps[step as usize].exchange;
                for item in 0..self.cassette.exchanges[exchange as usize].server.len() as u32 {
                    self.send(Sending {
                        play,
                        run: None,
                        exchange,
                        item,
                        lane: Lane(0),
                        to: &Correlators::default(),
                    });
                }
            }
            Action::Finished { run } => self.finished(now, play, run),
            Action::End { session } => {
                self.ended = true;
                let end = self.cassette.sessions[session as usize].end.clone().unwrap_or_default();
                self.outputs.push_back(Output::End(end));
            }
            Action::GraceOver { run, missing } => {
                let missing = self.scripts[script].steps[missing as usize].exchange;
                self.waited(play, run, format!("`{}` to come first", self.key(missing)), false);
            }
            Action::GateOpened { run, gate, why } => {
                let what = match gate {
                    Gate::Cancel => format!("the client to cancel it: {why}"),
                    Gate::Answer(item) => {
                        self.pending.retain(|pending| {
                            (pending.play, pending.run, pending.item) != (play, Some(run), item)
                        });
                        format!("the client's answer to item {}: {why}", item + 1)
                    }
                };
                self.waited(play, run, what, true);
            }
            Action::Idle { .. } => {}
        }
    }

    fn waited(&mut self, play: usize, run: u32, waited_for: String, bad: bool) {
        let Some(run) = self.plays[play].run(run) else { return };
        let step = &self.scripts[self.plays[play].script].steps[run.step as usize];
        let key = self.key(step.exchange);
        self.report.waits.push(Wait { key, waited_for, bad });
    }

    /// Sends one item of a run's exchange.
    fn item(&mut self, play: usize, at: u32, item: u32) {
        let Some(run) = self.plays[play].run(at) else { return };
        let step = &self.scripts[self.plays[play].script].steps[run.step as usize];
        let (exchange, lane) = (step.exchange, run.lane);
        // Modern servers log only to requests that ask for it (specification 2026-07-28, server/utilities/logging).
        let unasked_log = step.log_level && !run.log_level;
        let (to, batch) = (Arc::clone(&run.to), run.batch.clone());
        if unasked_log && self.is_log(exchange, item) {
            return;
        }
        let message = &self.cassette.exchanges[exchange as usize].server[item as usize].message;
        if message.form == Form::Omitted {
            return self.incomplete(lane, &to.live_id, exchange);
        }
        if !batch.is_empty() {
            let mut bytes = self.recorded(exchange, item);
            rewrite::rewrite_batch(&mut bytes, &batch);
            return self.recorded_output(lane, bytes, false);
        }
        self.send(Sending { play, run: Some(at), exchange, item, lane, to: &to });
    }

    fn is_log(&self, exchange: u32, item: u32) -> bool {
        Message::read(&self.recorded(exchange, item)).method() == "notifications/message"
    }

    /// A recorded server message as it stood on the wire; empty where its blob has gone since the cassette was
    /// loaded.
    fn recorded(&self, exchange: u32, item: u32) -> Vec<u8> {
        let entry = &self.cassette.exchanges[exchange as usize];
        let mut bytes = Vec::new();
        let message = &entry.server[item as usize].message;
        if self.cassette.wire(entry.session, false, message, None, &*self.blobs, &mut bytes).is_err() {
            bytes.clear();
        }
        bytes
    }

    /// A recorded answer with the live id; none where more than that may have to change.
    fn answer(&self, exchange: u32, item: u32, to: &Correlators) -> Option<Vec<u8>> {
        let entry = &self.cassette.exchanges[exchange as usize];
        let message = &entry.server[item as usize].message;
        let payload = self.cassette.at(message.place);
        if !matches!(message.form, Form::Result | Form::Error) || rewrite::may_name_a_subscription(payload) {
            return None;
        }
        let mut recorded = Vec::new();
        message.id.push(&mut recorded);
        let id = (!recorded.is_empty()).then(|| rewrite::answer_id(&to.recorded_id, &recorded, &to.live_id));
        let mut bytes = Vec::with_capacity(payload.len() + 64);
        let id = id.as_deref();
        self.cassette.wire(entry.session, false, message, id, &*self.blobs, &mut bytes).ok()?;
        Some(bytes)
    }

    fn send(&mut self, sending: Sending<'_>) {
        let Sending { play, run, exchange, item, lane, to } = sending;
        if let Some(bytes) = self.answer(exchange, item, to) {
            let apart = is_needed_wait(&self.cassette.exchanges[exchange as usize].server, item as usize);
            return self.recorded_output(lane, bytes, apart);
        }
        let mut bytes = self.recorded(exchange, item);
        let entry = &self.cassette.exchanges[exchange as usize];
        let asks_client = entry.server[item as usize].answer.is_some()
            || entry.server[item as usize].message.form == Form::Request;
        if asks_client {
            let message = Message::read(&bytes);
            let method = message.method().into_owned();
            if message.kind == Kind::Request {
                if !self.client_can(&method) {
                    let waited_for = format!(
                        "the client's answer to `{method}`: the client did not declare that capability"
                    );
                    self.report.waits.push(Wait { key: entry.key.to_string(), waited_for, bad: true });
                    return;
                }
                let id = self.live_server_id(&mut bytes);
                let answered = entry.server[item as usize].answer.is_some();
                if let Some(run) = run.filter(|_| answered) {
                    self.plays[play].await_answer(run, item);
                }
                self.pending.push(Pending {
                    id,
                    play,
                    run: run.filter(|_| answered),
                    exchange,
                    item,
                    method,
                });
            }
        } else if !rewrite::rewrite(&mut bytes, to) {
            return;
        }
        let apart = is_needed_wait(&self.cassette.exchanges[exchange as usize].server, item as usize);
        self.recorded_output(lane, bytes, apart);
    }

    /// Sends recorded bytes, with the values of variables in their places.
    fn recorded_output(&mut self, lane: Lane, bytes: Vec<u8>, apart: bool) {
        let shown = match self.options.vars.show(&bytes) {
            Cow::Borrowed(_) => None,
            Cow::Owned(shown) => Some(shown),
        };
        self.outputs.push_back(Output::Send { lane, bytes: shown.unwrap_or(bytes), apart });
    }

    /// The id a server request carries live: the recorded one, unless one with that id is still unanswered.
    fn live_server_id(&self, bytes: &mut Vec<u8>) -> Vec<u8> {
        let recorded = Message::read(bytes).id().unwrap_or(b"null").to_vec();
        let taken = |id: &[u8]| self.pending.iter().any(|pending| pending.id == *id_key(id));
        if !taken(&recorded) {
            return id_key(&recorded).into_owned();
        }
        let fresh = (1_000_000u64..).map(|number| number.to_string().into_bytes()).find(|id| !taken(id));
        let fresh = fresh.unwrap_or(recorded);
        rewrite::set_id(bytes, &fresh);
        id_key(&fresh).into_owned()
    }

    /// All of an exchange has been sent.
    fn finished(&mut self, now: Micros, play: usize, at: u32) {
        let Some(run) = self.plays[play].run(at) else { return };
        let step = &self.scripts[self.plays[play].script].steps[run.step as usize];
        let exchange = step.exchange;
        let entry = &self.cassette.exchanges[exchange as usize];
        if step.is_asked() && stays_silent(entry) && !self.closed {
            self.plays[play].silence(at);
            return;
        }
        let (lane, live_id) = (run.lane, run.to.live_id.clone());
        let lost = step.is_asked() && entry.unanswered == Some(Unanswered::Lost);
        self.in_flight.remove(&*id_key(&live_id));
        let scene = scene!(self, play, now);
        self.plays[play].remove(scene, at);
        if lost {
            self.incomplete(lane, &live_id, exchange);
        }
    }
}
