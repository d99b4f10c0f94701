//! Messages of the client, whatever carried them.

use std::borrow::Cow;

use super::{Found, Now, Replayer, blanks::Filled, facts::FITS, lives::Pending, secrets::Secrets};
use crate::{
    cassette::model::{Exchange, Unanswered},
    replay::{
        matcher::canonical::{Digest, canonical},
        own,
        play::Run,
        rewrite::Correlators,
        script::client_message,
    },
    report::{AnswerReport, Reason},
    traffic::{Direction, Lane},
    wire::jsonrpc::{Kind, Message},
};

impl Replayer {
    /// Takes in one message; what is known of what carried it stands in `at_hand`.
    pub(super) fn message(&mut self, now: Now, lane: Lane, original: Message<'_>) {
        if self.passes_on() {
            self.at_hand.line = original.bytes.to_vec();
        }
        self.at_hand.id.clear();
        self.at_hand.id.extend_from_slice(original.id().unwrap_or_default());
        self.at_hand.token = original.progress_token().map(Box::from);
        let spelling = self.foresee(&original);
        let named = self.options.vars.hide(original.bytes);
        let redacted = self.redactor.message(Direction::ToServer, &named);
        if let Cow::Owned(_) = &redacted {
            self.at_hand.plain = named.to_vec();
        }
        let changed = matches!((&named, &redacted), (Cow::Owned(_), _) | (_, Cow::Owned(_)));
        let message = if changed { Message::read(&redacted) } else { original };
        self.at_hand.spelling = spelling.filter(|_| !changed);
        match message.kind {
            Kind::Result | Kind::Error => match self.awaited(&message) {
                Some(pending) => {
                    let answered = self.response(now, lane, &message, pending);
                    self.accept_answer(lane, answered);
                }
                // It answers nothing, and servers may object to that.
                None => self.silent(now, lane, &message),
            },
            Kind::Request => {
                self.count(lane, &message);
                self.matcher.note_use(&message);
                self.observe(&message);
                self.request(now, lane, &message);
                self.dealt_with();
            }
            Kind::Notification => {
                self.count(lane, &message);
                self.observe(&message);
                if let Some(id) = message.cancelled_id() {
                    self.cancel(now, id);
                }
                match self.passes_on() && self.notifies_upstream(lane, &message) {
                    true => self.accept(lane),
                    false => self.silent(now, lane, &message),
                }
            }
            Kind::Batch => {
                if self.options.faults.as_ref().is_some_and(|plan| plan.has_rules()) {
                    self.warn(crate::fault::BATCH.to_owned());
                }
                message
                    .members()
                    .filter(|member| !member.method().is_empty())
                    .for_each(|member| self.count(lane, &member));
                self.batch(now, lane, &message);
            }
            Kind::Noise => self.silent(now, lane, &message),
        }
        self.close_notifications();
    }

    /// How a message is spelled. Where that was recorded is looked at later, and fetched until then.
    fn foresee(&mut self, message: &Message<'_>) -> Option<Digest> {
        let spelling = self.matcher.spelled(message)?;
        for play in [Some(0), self.playing(self.at_hand.live)].into_iter().flatten() {
            self.scripts[self.plays[play].script].index.fetch_ahead(spelling);
        }
        Some(spelling)
    }

    fn count(&mut self, lane: Lane, message: &Message<'_>) {
        let method = message.method();
        self.open_event(lane, message, &method);
        self.report.came(&method);
    }

    fn request(&mut self, now: Now, lane: Lane, message: &Message<'_>) {
        let method = message.method();
        if method == "initialize" {
            return self.initialize(now, lane, message);
        }
        if self.is_lost_to(message) {
            return self.session_not_found(lane, message.id().unwrap_or(b"null"));
        }
        let found = self.find(message);
        let refused = self.find_refused(message, found);
        let found = found.filter(|_| refused.is_none());
        let asks_for = found.map(|found| self.step_of(found).exchange).or(self.at_hand.unpaired);
        if self.may_be_faulted(asks_for) && self.faulted(lane, message, &method, asks_for, found) {
            self.may_come_again(message);
            return;
        }
        if let Some(refused) = refused {
            return self.refuse(now, lane, refused);
        }
        match found {
            Some(found) => self.play(now, lane, message, found),
            None if self.lives[self.at_hand.live].is_over => {
                self.session_not_found(lane, message.id().unwrap_or(b"null"));
            }
            None => self.unmatched(lane, message, &method),
        }
    }

    /// Says to a message what was said to a part of it.
    pub(super) fn refuse(&mut self, now: Now, lane: Lane, refused: Found) {
        // It names no id.
        self.at_hand.id.clear();
        self.start(now, lane, &Message::read(b""), refused);
    }

    /// Where the exchange a live message asks for stands: in its session, or in the pool.
    pub(super) fn find(&mut self, message: &Message<'_>) -> Option<Found> {
        let own = self.playing(self.at_hand.live);
        let pool_first = message.is_modern() || (self.at_hand.live == 0 && self.at_hand.facts.is_some());
        let pool = Some(0).filter(|_| !self.scripts[0].steps.is_empty());
        let plays = if pool_first { [pool, own] } else { [own, pool] };
        self.at_hand.unpaired = None;
        let spelling = self.at_hand.spelling.take();
        let found = plays.into_iter().flatten().find_map(|play| self.find_in(play, message, spelling));
        let found =
            found.or_else(|| self.find_plain(plays, message)).or_else(|| self.find_blank(plays, message));
        self.at_hand.unpaired.take_if(|_| found.is_some());
        found
    }

    /// Where the exchange stands in one play, for a message with this spelling, if that is known.
    pub(super) fn find_in(
        &mut self,
        play: usize,
        message: &Message<'_>,
        spelling: Option<Digest>,
    ) -> Option<Found> {
        self.look_in(play, message, spelling, None)
    }

    /// Where it stands among all that equals the message, or among those that do but for their blanks.
    pub(super) fn look_in(
        &mut self,
        play: usize,
        message: &Message<'_>,
        spelling: Option<Digest>,
        filled: Option<Vec<Filled>>,
    ) -> Option<Found> {
        let script = &mut self.scripts[self.plays[play].script];
        let (queue, own) = match &filled {
            None => script.find(&self.cassette, &*self.blobs, &mut self.matcher, message, spelling),
            Some(filled) => (None, filled.iter().map(|(step, _)| *step).collect()),
        };
        let facts = self.at_hand.facts.as_ref().filter(|_| self.is_http);
        let (cassette, steps) = (&self.cassette, &script.steps);
        let (body, blobs) = (self.at_hand.body.as_ref(), &*self.blobs);
        let is_over = facts.is_some() && self.lives[self.at_hand.live].is_over;
        let ended_at = self.lives[self.at_hand.live].ended_at;
        // What a client without a session was refused is no answer to one that has one.
        let is_foreign = play == 0 && self.at_hand.is_known && !message.is_modern();
        let on_stdio = self.at_hand.facts.is_none();
        let fit = |step: u32, for_http: bool| {
            let (exchange, only_http) = (steps[step as usize].exchange, steps[step as usize].only_http);
            let Some(facts) = facts else { return (!on_stdio || only_http == for_http).then_some(FITS) };
            if is_over && play == 0 {
                return None;
            }
            if is_over || is_foreign {
                let http = cassette.exchanges[exchange as usize].http.as_ref();
                let refuses = http.and_then(|http| http.status).is_some_and(|status| status >= 400);
                // An ended session answers what it answered after its end.
                let is_behind = || ended_at.is_some_and(|end| steps[step as usize].rank > end);
                let answers = if is_over { refuses || is_behind() } else { !refuses };
                if !answers {
                    return None;
                }
            }
            facts.fit(cassette, exchange)
        };
        // An answer that the recorder lost comes last: it may have been asked for again since. Where its connection broke,
        // that is what came of it.
        let fit = |step: u32, for_http: bool| {
            let entry = &cassette.exchanges[steps[step as usize].exchange as usize];
            let broke = entry.http.as_ref().is_some_and(|http| http.end.is_some());
            let is_lost = entry.unanswered == Some(Unanswered::Lost) && !(broke && facts.is_some());
            let fit = fit(step, for_http).map(|fit| fit - u8::from(is_lost && fit > 0))?;
            let exchange = steps[step as usize].exchange;
            body.is_none_or(|body| body.wants(cassette, blobs, exchange)).then_some(fit)
        };
        if !self.is_http && self.lives[self.at_hand.live].is_over {
            return None;
        }
        let play_of = &mut self.plays[play];
        let choose = |pairs: &dyn Fn(u32) -> bool| {
            let fit = |step, for_http| fit(step, for_http).filter(|_| pairs(step));
            let found = play_of.choose(script, queue, &own, |step| fit(step, false));
            // On stdio nobody is sent on, or asked for credentials, unless that is all that was recorded.
            match found {
                None if on_stdio => play_of.choose(script, queue, &own, |step| fit(step, true)),
                found => found,
            }
        };
        let secrets = Secrets {
            cassette,
            blobs: &*self.blobs,
            matcher: &self.matcher,
            pairings: &self.pairings,
            redactor: &self.redactor,
            play,
            script,
        };
        let chosen = match filled {
            None => secrets.choose(message, choose),
            Some(filled) => secrets.choose_filled(filled, choose),
        };
        match chosen? {
            Ok((step, repeat, paired)) => {
                self.at_hand.paired = paired;
                Some(Found { play, step, repeat })
            }
            Err(exchange) => {
                self.at_hand.unpaired = Some(exchange);
                None
            }
        }
    }

    /// Whether an exchange has an answer, and the head of the HTTP response is lost in which that came: whether it was said
    /// with another status, or more was said beside it, nobody knows.
    pub(super) fn lacks_head(&self, entry: &Exchange) -> bool {
        entry.unanswered == Some(Unanswered::Lost)
            && entry.server.iter().any(|item| self.answers(entry, item))
    }

    /// Plays an exchange for a live request, unless the options make a repeat a miss.
    pub(super) fn play(&mut self, now: Now, lane: Lane, message: &Message<'_>, found: Found) {
        let script = &self.scripts[self.plays[found.play].script];
        let step = &script.steps[found.step as usize];
        let (exchange, rank, dead_from) = (step.exchange, step.rank, script.dead_from);
        let entry = &self.cassette.exchanges[exchange as usize];
        let is_lost = entry.unanswered == Some(Unanswered::Lost);
        if message.kind == Kind::Request && is_lost && (self.passes_on() || self.lacks_head(entry)) {
            self.plays[found.play].take(found.step);
            return self.miss(lane, message, Reason::Incomplete, Some(exchange));
        }
        if let Err((reason, exchange)) = self.may_play(message, found) {
            if self.passes_on() && message.kind == Kind::Request {
                return self.pass_on(lane, message, reason, Some(exchange));
            }
            let bytes = self.missed(message, reason, Some(exchange), None);
            return self.say(lane, bytes, false);
        }
        self.start(now, lane, message, found);
        if self.at_hand.facts.is_some() && found.play > 0 && dead_from.is_some_and(|dead| rank >= dead) {
            self.lives[self.at_hand.live].is_over = true;
        }
    }

    /// Whether what was found is played, unless the options make a repeat a miss. Why it is not, and which exchange says
    /// so. What comes early under `--strict` is played, and told of.
    pub(super) fn may_play(&mut self, message: &Message<'_>, found: Found) -> Result<(), (Reason, u32)> {
        let script = &self.scripts[self.plays[found.play].script];
        let step = &script.steps[found.step as usize];
        let exchange = step.exchange;
        if found.repeat && !self.at_hand.goes_on {
            let method = if message.kind == Kind::Request {
                message.method()
            } else {
                Cow::Borrowed(&**script.method(step))
            };
            if self.options.repeat_is_miss() && !own::may_be_left_over(&method) {
                if self.options.strict {
                    self.plays[found.play].comes_again(script, found.step);
                }
                return Err((Reason::Consumed, exchange));
            }
            if !own::repeats_silently(&method) {
                self.repeated(exchange);
            }
        } else if self.options.strict
            && !found.repeat
            // What was added later was recorded in another run: nothing had come before it.
            && !self.cassette.is_added(exchange)
            && let Some(other) = self.plays[found.play].comes(script, found.step)
        {
            let under_way = script.steps[other as usize].exchange;
            self.early(message, under_way);
        }
        Ok(())
    }

    /// Plays what was found for a live message, on the response to that.
    pub(super) fn start(&mut self, now: Now, lane: Lane, message: &Message<'_>, found: Found) {
        self.keep_pairs(found.play, self.exchange_of(found));
        let http = self.cassette.exchanges[self.exchange_of(found) as usize].http.as_ref();
        if http.is_some_and(|http| http.status == Some(101)) && self.streams.contains_key(&lane.0) {
            return self.no_upgrade(lane, found);
        }
        if !self.at_once(now, lane, message, found) {
            self.in_steps(now, lane, message, found);
        }
        if found.play == 0 {
            self.pool_live = self.at_hand.live;
            if !found.repeat {
                self.draws(self.exchange_of(found));
            }
        }
    }

    /// Plays what was found as the plan of its live session has it.
    fn in_steps(&mut self, now: Now, lane: Lane, message: &Message<'_>, found: Found) {
        let run = self.begin(lane, message, self.exchange_of(found));
        self.respond(lane, found, message.is_modern());
        let lane = run.post.unwrap_or(run.lane);
        let scene = scene!(self, found.play, now);
        let run = self.plays[found.play].start(scene, found.step, found.repeat, run);
        if !self.members.is_empty() {
            // All of a batch has come, where a part of it may have come before.
            self.members.remove(&(found.play, found.step));
        }
        self.agenda.wake(found.play);
        if let Some(stream) = self.streams.get_mut(&lane.0) {
            stream.run = Some((found.play, run));
        }
        if !self.streams.is_empty() {
            self.end_if_whole(found.play, run, 0, false);
        }
    }

    fn begin(&mut self, lane: Lane, message: &Message<'_>, exchange: u32) -> Run {
        self.note_key(exchange);
        let entry = &self.cassette.exchanges[exchange as usize];
        let mut to = Correlators {
            recorded_id: entry.client.as_ref().map(|client| client.id.clone()).unwrap_or_default(),
            live_id: self.at_hand.id.clone(),
            recorded_token: None,
            live_token: self.at_hand.token.clone(),
            is_modern: message.is_modern(),
            batch: Vec::new(),
        };
        let mut bytes = Vec::new();
        let is_all_answers = entry.server.iter().all(|item| item.message.kind.is_response());
        // More may be said because of it on a last line.
        let end = self.cassette.sessions[entry.session as usize].end.as_ref();
        let is_all_answers = is_all_answers && end.is_none_or(|end| end.partial.is_none());
        let mut asked_for_logs = false;
        let is_batch = message.kind == Kind::Batch;
        if (!is_all_answers || is_batch) && client_message(&self.cassette, &*self.blobs, entry, &mut bytes) {
            let recorded = Message::read(&bytes);
            to.recorded_token = recorded.progress_token().map(Box::from);
            asked_for_logs = asks_for_logs(&recorded);
            let ids = |message: &Message<'_>| -> Vec<Vec<u8>> {
                let id = |member: Message<'_>| {
                    member.id().filter(|_| member.kind == Kind::Request).map(<[u8]>::to_vec)
                };
                message.members().map(|member| id(member).unwrap_or_default()).collect()
            };
            to.batch = ids(&recorded).into_iter().zip(ids(message)).collect();
        }
        let mut run = Run::new(self.own_stream(lane), to);
        (run.live, run.post) = (self.at_hand.live, self.at_hand.post);
        // Modern servers log only to requests that ask for it (specification 2026-07-28, server/utilities/logging).
        run.leaves_out_logs = asked_for_logs && !asks_for_logs(message);
        run.acting = self.at_hand.acting.take();
        run
    }

    /// A notification or line of noise: what the server sent because of it is sent again; nothing is missed.
    fn silent(&mut self, now: Now, lane: Lane, message: &Message<'_>) {
        let is_http = self.streams.contains_key(&lane.0);
        // A notification that was refused is refused again; on stdio there is nothing to say again.
        let found = self.find(message).filter(|found| is_http || !found.repeat);
        if let Some(refused) = self.find_refused(message, found) {
            return self.refuse(now, lane, refused);
        }
        let Some(found) = found else {
            if is_http && self.lives[self.at_hand.live].is_over {
                return self.session_not_found(lane, b"null");
            }
            return self.unheard(lane, message);
        };
        self.start(now, lane, message, found);
    }

    fn batch(&mut self, now: Now, lane: Lane, message: &Message<'_>) {
        let asks = message.members().any(|member| member.kind == Kind::Request);
        for member in message.members().filter(|member| member.kind.is_response()) {
            if let Some(pending) = self.awaited(&member) {
                self.response(now, lane, &member, pending);
            }
        }
        let found = self.find(message);
        if let Some(refused) = self.find_refused(message, found) {
            return self.refuse(now, lane, refused);
        }
        let found = found.filter(|found| {
            let exchange = self.exchange_of(*found);
            !(asks && self.lacks_head(&self.cassette.exchanges[exchange as usize]))
        });
        match found {
            Some(found) if asks || !found.repeat => self.start(now, lane, message, found),
            None if asks && self.lives[self.at_hand.live].is_over => self.session_not_found(lane, b"null"),
            None if asks => self.split_batch(lane, message),
            None => {
                message.members().for_each(|member| self.heard_member(&member));
                self.accept(lane);
            }
            Some(_) => self.accept(lane),
        }
    }

    /// The server request that a response of the client is for, which waits no longer.
    fn awaited(&mut self, response: &Message<'_>) -> Option<Pending> {
        let id = response.id_key()?;
        let pending = &mut self.lives[self.at_hand.live].pending;
        let at = pending.iter().position(|pending| pending.id == *id)?;
        Some(pending.remove(at))
    }

    /// The client answers a server request: which item of which exchange.
    fn response(
        &mut self,
        now: Now,
        lane: Lane,
        message: &Message<'_>,
        pending: Pending,
    ) -> Option<(u32, u32)> {
        if let Some(asked) = &pending.upstream {
            self.answer_upstream(lane, asked, message);
            return None;
        }
        if let Some(run) = pending.run {
            self.plays[pending.play].answered(run, pending.item, now);
            self.agenda.wake(pending.play);
        }
        let same = self.same_answer(&pending, message);
        self.report.answers.push(AnswerReport {
            server: None,
            key: self.key(pending.exchange),
            method: pending.method,
            answer: if same { "as_recorded" } else { "differs" }.to_owned(),
        });
        Some((pending.exchange, pending.item))
    }

    fn same_answer(&self, pending: &Pending, live: &Message<'_>) -> bool {
        let entry = &self.cassette.exchanges[pending.exchange as usize];
        let Some(answer) = &entry.server[pending.item as usize].answer else { return false };
        let mut bytes = Vec::new();
        if self.cassette.wire(entry.session, true, &answer.message, None, &*self.blobs, &mut bytes).is_err() {
            return false;
        }
        let recorded = Message::read(&bytes);
        let form = |message: &Message<'_>| {
            let (mut room, mut form) = Default::default();
            let read = canonical(b"", message.outcome(), &Default::default(), &mut room, &mut form);
            read.map(|()| form).ok()
        };
        recorded.kind == live.kind && form(&recorded) == form(live)
    }

    fn cancel(&mut self, now: Now, id: &[u8]) {
        let mut speaks_on = false;
        if let Some((play, run)) = self.in_flight(self.at_hand.live, id) {
            let acting = self.plays[play].run(run).and_then(|run| run.acting);
            let scene = scene!(self, play, now);
            self.plays[play].cancel(scene, run);
            self.agenda.wake(play);
            speaks_on = self.plays[play].run(run).is_some();
            if !speaks_on {
                self.close_acting(acting);
            }
        }
        if speaks_on || !self.cancel_stage(id) {
            self.note_cancelled(id);
        }
    }
}

/// Whether a request asks for log messages (2026-07-28).
fn asks_for_logs(request: &Message<'_>) -> bool {
    request.kind == Kind::Request && request.meta("io.modelcontextprotocol/logLevel").is_some()
}
