//! What goes to the client, and when.

use std::{borrow::Cow, sync::Arc};

use super::{
    Now, Replayer,
    items::{Going, Way},
    lives::Pending,
    streams::is_line,
};
use crate::{
    cassette::model::{Form, Id, Unanswered},
    replay::{
        options::is_needed_wait,
        play::{Action, Gate},
        rewrite::{self, Correlators},
        script::stays_silent,
    },
    report::Wait,
    traffic::Lane,
    wire::jsonrpc::{Kind, Message, id_key},
};

/// One recorded server message on its way.
struct Sending<'a> {
    play: usize,
    /// The run it belongs to; none for a push.
    run: Option<u32>,
    exchange: u32,
    item: u32,
    live: usize,
    lane: Lane,
    way: Way,
    to: &'a Arc<Correlators>,
}

impl Replayer {
    /// Performs everything that can go now, in every session of the take.
    pub(super) fn advance(&mut self, now: Now) {
        self.release_faults(now);
        let plays = self.agenda.take(now);
        for &at in &plays {
            loop {
                let scene = scene!(self, at, now);
                match self.plays[at].step(scene) {
                    Action::Idle { until } => {
                        self.agenda.set(at, until);
                        break;
                    }
                    action => self.perform(now, at, action),
                }
            }
            if at == 0 {
                self.end_drained(now);
            }
        }
        self.agenda.have_been_asked(plays);
    }

    fn perform(&mut self, now: Now, play: usize, action: Action) {
        let script = self.plays[play].script;
        match action {
            Action::Item { run, item } => {
                let acting = self.plays[play].run(run).and_then(|run| run.acting);
                self.speak_for(acting);
                self.item(play, run, item);
                if !self.streams.is_empty() {
                    let has_answered = self.has_answered(play, run, item);
                    self.end_if_whole(play, run, item as usize + 1, has_answered);
                }
                self.speak_for(None);
            }
            Action::Push { step } => {
                let exchange = self.scripts[script].steps[step as usize].exchange;
                let live = self.live_with(play).unwrap_or(self.pool_live);
                // Over HTTP, a client that was given no session id is known by having none.
                let is_known = self.lives[live].pipe.is_some()
                    || (self.lives[live].id.is_some() && self.live_with(play).is_some());
                let live = if is_known { live } else { 0 };
                let sse = self.lives[live].sse.as_ref().map(|(lane, _)| *lane);
                let (lane, to) = (sse.unwrap_or(Lane(0)), Arc::default());
                let cassette = Arc::clone(&self.cassette);
                let entry = &cassette.exchanges[exchange as usize];
                for (item, recorded) in (0..).zip(&entry.server) {
                    let way = match self.way(entry, recorded, sse.is_some()) {
                        // The response to what the client answers is said where that comes.
                        Way::Post | Way::Nowhere => continue,
                        _ if sse.is_some() => Way::Own,
                        _ => Way::Get,
                    };
                    self.send(Sending { play, run: None, exchange, item, live, lane, way, to: &to });
                }
            }
            Action::Finished { run } => {
                let acting = self.plays[play].run(run).and_then(|run| run.acting);
                self.speak_for(acting);
                self.finished(now, play, run);
                self.speak_for(None);
                if self.plays[play].run(run).is_none() {
                    self.close_acting(acting);
                }
            }
            Action::End { session, run } => {
                let of = run.and_then(|at| self.plays[play].run(at));
                let live = of.map(|run| run.live).or_else(|| self.live_with(play));
                match live.and_then(|live| self.lives[live].pipe) {
                    Some(lane) => self.end_pipe(now, play, session, lane),
                    None => self.server_ended(now, play, session, run),
                }
            }
            Action::GraceOver { run, missing } => {
                let step = &self.scripts[script].steps[missing as usize];
                // Under --strict no answer goes before a request that had come before it when recorded.
                let (missing, bad) = (step.exchange, self.options.strict && step.is_asked());
                self.waited(play, run, format!("`{}` to come first", self.key(missing)), bad);
            }
            Action::GateOpened { run, gate, why } => {
                let what = match gate {
                    Gate::Cancel => format!("the client to cancel it: {why}"),
                    Gate::Request(step) => {
                        let missing = self.key(self.scripts[script].steps[step as usize].exchange);
                        format!("`{missing}` to come before the server ends: {why}")
                    }
                    Gate::Answer(item) => {
                        for live in &mut self.lives {
                            live.pending.retain(|pending| {
                                (pending.play, pending.run, pending.item) != (play, Some(run), item)
                            });
                        }
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
        self.report.waits.push(Wait { server: None, key, waited_for, bad });
    }

    /// Sends one item of a run's exchange.
    fn item(&mut self, play: usize, at: u32, item: u32) {
        let Some(run) = self.plays[play].run(at) else { return };
        let step = &self.scripts[self.plays[play].script].steps[run.step as usize];
        let (exchange, live) = (step.exchange, run.live);
        let entry = &self.cassette.exchanges[exchange as usize];
        let way = match self.way(entry, &entry.server[item as usize], run.post.is_some()) {
            Way::Own if run.is_over && run.post.is_none() => Way::Get,
            way => way,
        };
        let lane = run.post.filter(|_| way == Way::Post).unwrap_or(run.lane);
        let leaves_out_logs = run.leaves_out_logs;
        let to = Arc::clone(&run.to);
        if leaves_out_logs && self.is_log(exchange, item) {
            return;
        }
        let message = &self.cassette.exchanges[exchange as usize].server[item as usize].message;
        if message.form == Form::Omitted {
            return self.incomplete(lane, &to.live_id, exchange);
        }
        if !to.batch.is_empty() {
            let mut bytes = self.recorded(exchange, item);
            rewrite::rewrite_batch(&mut bytes, &to.batch);
            self.recorded_output(Going { live, lane, way, exchange, item, to: &to }, bytes, false);
            return;
        }
        self.send(Sending { play, run: Some(at), exchange, item, live, lane, way, to: &to });
    }

    /// Whether this item of a run's exchange answers its message.
    fn has_answered(&self, play: usize, run: u32, item: u32) -> bool {
        let Some(run) = self.plays[play].run(run).filter(|run| !run.is_over) else { return false };
        let exchange = self.scripts[self.plays[play].script].steps[run.step as usize].exchange;
        let entry = &self.cassette.exchanges[exchange as usize];
        self.answers(entry, &entry.server[item as usize])
    }

    fn is_log(&self, exchange: u32, item: u32) -> bool {
        Message::read(&self.recorded(exchange, item)).method() == "notifications/message"
    }

    /// A recorded server message as it stood on the wire; empty where its blob has gone since the cassette was
    /// loaded.
    pub(super) fn recorded(&self, exchange: u32, item: u32) -> Vec<u8> {
        let entry = &self.cassette.exchanges[exchange as usize];
        let mut bytes = Vec::new();
        let message = &entry.server[item as usize].message;
        if self.cassette.wire(entry.session, false, message, None, &*self.blobs, &mut bytes).is_err() {
            bytes.clear();
        }
        bytes
    }

    /// A recorded answer with the live id of its request, which `is_modern` or not; none where more than that may have to
    /// change.
    pub(super) fn answer(
        &mut self,
        (exchange, item): (u32, u32),
        (live_id, is_modern): (&[u8], bool),
        is_refusal: bool,
    ) -> Option<Vec<u8>> {
        let entry = &self.cassette.exchanges[exchange as usize];
        let message = &entry.server[item as usize].message;
        let asked = entry.client.as_ref().map(|client| &client.id);
        let payload = self.cassette.at(message.place);
        let is_named = || is_modern && rewrite::may_name_a_subscription(payload);
        if !matches!(message.form, Form::Result | Form::Error) || is_named() {
            return None;
        }
        let id = match &message.id {
            _ if is_refusal && message.form == Form::Error => Some(Cow::Borrowed(live_id)),
            Id::Absent => None,
            // As nearly all servers do it.
            id if asked == Some(id) => Some(Cow::Borrowed(live_id)),
            id => {
                let (mut asked_for, mut answered) = (Vec::new(), Vec::new());
                asked.into_iter().for_each(|asked| asked.push(&mut asked_for));
                id.push(&mut answered);
                Some(Cow::Owned(rewrite::answer_id(&asked_for, &answered, live_id)))
            }
        };
        let mut bytes = std::mem::take(&mut self.room);
        bytes.reserve(payload.len() + 64);
        let id = id.as_deref();
        self.cassette.wire(entry.session, false, message, id, &*self.blobs, &mut bytes).ok()?;
        Some(bytes)
    }

    fn send(&mut self, sending: Sending<'_>) {
        let Sending { play, run, exchange, item, live, lane, way, to } = sending;
        let going = Going { live, lane, way, exchange, item, to };
        let is_refusal = self.is_refusal(exchange, live, lane);
        if let Some(bytes) = self.answer((exchange, item), (&to.live_id, to.is_modern), is_refusal) {
            let apart = is_needed_wait(&self.cassette.exchanges[exchange as usize].server, item as usize);
            return self.recorded_output(going, bytes, apart);
        }
        let mut bytes = self.recorded(exchange, item);
        let entry = &self.cassette.exchanges[exchange as usize];
        let asks_client = entry.server[item as usize].answer.is_some()
            || entry.server[item as usize].message.kind == Kind::Request;
        if asks_client {
            let message = Message::read(&bytes);
            let method = message.method().into_owned();
            if message.kind == Kind::Request {
                if !self.client_can(live, play, &method) {
                    let waited_for = format!(
                        "the client's answer to `{method}`: the client did not declare that capability"
                    );
                    self.report.waits.push(Wait {
                        server: None,
                        key: entry.key.to_string(),
                        waited_for,
                        bad: true,
                    });
                    return;
                }
                let id = self.live_server_id(live, &mut bytes);
                let answered = entry.server[item as usize].answer.is_some();
                if let Some(run) = run.filter(|_| answered) {
                    self.plays[play].await_answer(run, item);
                }
                self.lives[live].pending.push(Pending {
                    id,
                    play,
                    run: run.filter(|_| answered),
                    exchange,
                    item,
                    method,
                    upstream: None,
                });
            }
        } else if !rewrite::rewrite(&mut bytes, to) {
            return;
        } else if is_refusal && Message::read(&bytes).kind == Kind::Error {
            rewrite::set_id(&mut bytes, &to.live_id);
        }
        let apart = is_needed_wait(&self.cassette.exchanges[exchange as usize].server, item as usize);
        self.recorded_output(going, bytes, apart);
    }

    /// Sends recorded bytes, with the values of variables in their places.
    fn recorded_output(&mut self, going: Going<'_>, bytes: Vec<u8>, apart: bool) {
        let bytes = self.shown(bytes);
        self.send_on(going, bytes, apart);
    }

    /// Recorded bytes with the values of variables in their places.
    pub(super) fn shown(&self, bytes: Vec<u8>) -> Vec<u8> {
        let shown = match self.options.vars.show(&bytes) {
            Cow::Borrowed(_) => None,
            Cow::Owned(shown) => Some(shown),
        };
        shown.unwrap_or(bytes)
    }

    /// Sends an event again that a client did not get.
    pub(super) fn send_again(&mut self, lane: Lane, exchange: u32, item: u32, bytes: Vec<u8>) {
        let cassette = Arc::clone(&self.cassette);
        let recorded = &cassette.exchanges[exchange as usize].server[item as usize];
        let bytes = self.shown(bytes);
        self.deliver(lane, bytes, false, recorded.sse.as_deref(), Some(recorded.message.as_form()));
    }

    /// The id a server request carries live: the recorded one, unless one with that id is still unanswered.
    pub(super) fn live_server_id(&self, live: usize, bytes: &mut Vec<u8>) -> Vec<u8> {
        let recorded = Message::read(bytes).id().unwrap_or(b"null").to_vec();
        let taken = |id: &[u8]| self.lives[live].pending.iter().any(|pending| pending.id == *id_key(id));
        if !taken(&recorded) {
            return id_key(&recorded).into_owned();
        }
        let fresh = (1_000_000u64..).map(|number| number.to_string().into_bytes()).find(|id| !taken(id));
        let fresh = fresh.unwrap_or(recorded);
        rewrite::set_id(bytes, &fresh);
        id_key(&fresh).into_owned()
    }

    /// All of an exchange has been sent.
    fn finished(&mut self, now: Now, play: usize, at: u32) {
        let Some(run) = self.plays[play].run(at) else { return };
        let step = &self.scripts[self.plays[play].script].steps[run.step as usize];
        let exchange = step.exchange;
        let entry = &self.cassette.exchanges[exchange as usize];
        if step.is_asked() && stays_silent(entry) && !self.pipes.is_closed(run.lane) {
            let (lane, is_pipe) = (run.lane, self.pipes.has(run.lane));
            self.plays[play].silence(at);
            if !is_pipe {
                self.tell_of_last_line(exchange);
                self.say_what_came(lane, exchange);
            }
            return;
        }
        let (lane, live, post, is_over) = (run.lane, run.live, run.post, run.is_over);
        let to = Arc::clone(&run.to);
        let asked = step.is_asked();
        // Where the connection broke before the response began, that is what comes back.
        let broke = entry.server.is_empty()
            && entry.http.as_deref().is_some_and(|http| http.end.is_some() && http.status.is_none());
        let is_lost = entry.unanswered == Some(Unanswered::Lost);
        let (lost, broke) = (asked && is_lost && !broke, is_lost && broke);
        let scene = scene!(self, play, now);
        self.plays[play].remove(scene, at);
        if lost {
            self.incomplete(lane, &to.live_id, exchange);
        } else if asked && !stays_silent(entry) && (self.pipes.has(lane) || post.is_some()) {
            self.tell_end(lane, &to.live_id, &to.batch, exchange);
        } else if broke && let Some(stream) = self.streams.get_mut(&lane.0) {
            stream.head = None;
        }
        if let Some(at) = self.lives[live].resumed.iter().rposition(|(resumed, _)| Arc::ptr_eq(resumed, &to))
        {
            let (_, lane) = self.lives[live].resumed.remove(at);
            self.end(lane, None, &[]);
        }
        self.finish_response(live, lane, post.filter(|_| !is_over), exchange, is_over);
    }

    /// Ends the response that an exchange was played on, if that has not ended.
    fn finish_response(&mut self, live: usize, lane: Lane, post: Option<Lane>, exchange: u32, is_over: bool) {
        if let Some(post) = post {
            return self.end(post, None, &[]);
        }
        let is_other = |lane: Lane| {
            let live = &self.lives[live];
            live.get == Some(lane)
                || live.sse.as_ref().is_some_and(|(sse, _)| *sse == lane)
                || live.resumed.iter().any(|(_, resumed)| *resumed == lane)
        };
        let entry = &self.cassette.exchanges[exchange as usize];
        if is_over || is_other(lane) {
            return;
        }
        if is_line(entry) && self.stays_open(exchange) {
            return self.say_what_came(lane, exchange);
        }
        let (end, partial) = match entry.http.as_deref() {
            Some(http) => (http.end, http.partial.clone().unwrap_or_default()),
            None => (None, Box::default()),
        };
        self.end(lane, end, &partial);
    }
}
