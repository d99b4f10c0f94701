//! Batches of 2025-03-26 that were not recorded as they come: each request is matched by itself, and the answers are
//! joined again.

use super::{Found, Replayer};
use crate::{
    cassette::{key, model::Exchange},
    replay::{
        own,
        rewrite::{self, answer_id},
        script::{StepKind, client_message},
    },
    report::Reason,
    traffic::Lane,
    wire::{
        jsonrpc::{Kind, Message},
        lines::into_line,
    },
};

/// A recorded request that equals a live one, and its answer with the live id.
struct Answer {
    found: Found,
    /// Its place in a recorded batch.
    place: Option<usize>,
    request: Vec<u8>,
    bytes: Vec<u8>,
}

impl Replayer {
    /// Nothing equals a batch as a whole: an answer for each of its requests, in one batch.
    pub(super) fn split_batch(&mut self, lane: Lane, message: &Message<'_>) {
        let mut used = Vec::new();
        let mut answers = Vec::new();
        // Each of its messages has an event of its own.
        let events = std::mem::take(&mut self.at_hand.events);
        let mut numbers = events.iter().copied();
        for member in message.members().filter(|member| !member.method().is_empty()) {
            self.at_hand.events.clear();
            self.at_hand.events.extend(numbers.next());
            match member.kind {
                Kind::Request => answers.push(self.answer_member(&member, &mut used)),
                _ => self.heard_member(&member),
            }
        }
        self.at_hand.events = events;
        if self.pipes.has(lane) {
            return answers.into_iter().for_each(|answer| self.say(lane, answer, false));
        }
        self.say(lane, [b"[", &answers.join(&b","[..])[..], b"]"].concat(), false);
    }

    /// What one request of a batch is answered; `used` are the steps of recorded batches that had other answers to it.
    fn answer_member(&mut self, request: &Message<'_>, used: &mut Vec<(usize, u32)>) -> Vec<u8> {
        self.matcher.note_use(request);
        let Some(answer) = self.in_batch(request, used).or_else(|| self.alone(request)) else {
            if let Some(exchange) = self.at_hand.unpaired.take() {
                return self.missed(request, Reason::RedactionDiffers, Some(exchange), None);
            }
            if let Some((_, bytes)) = self.own_answer(request, &request.method()) {
                return bytes;
            }
            if let Some((exchange, company)) = self.in_company(request, true) {
                return self.missed(request, Reason::NeverRecorded, Some(exchange), Some(company));
            }
            let (reason, nearest) = self.explain(request, request.is_modern());
            return self.missed(request, reason, nearest, None);
        };
        let Found { play, step, .. } = answer.found;
        let exchange = self.exchange_of(answer.found);
        if self.lacks_head(&self.cassette.exchanges[exchange as usize]) {
            return self.missed(request, Reason::Incomplete, Some(exchange), None);
        }
        let may_play = self.may_play(request, answer.found).and_then(|()| {
            let pairs = self.pairs_member(request, answer.found, &answer.request);
            pairs.then_some(()).ok_or((Reason::RedactionDiffers, exchange))
        });
        if let Err((reason, exchange)) = may_play {
            return self.missed(request, reason, Some(exchange), None);
        }
        if let Some(place) = answer.place {
            used.push((play, step));
            self.members.entry((play, step)).or_default().push(place);
        }
        self.note_key(exchange);
        if play == 0 && !answer.found.repeat {
            self.draws(exchange);
        }
        // All of it goes at once.
        let script = &self.scripts[self.plays[play].script];
        self.plays[play].arrive(script, step);
        self.plays[play].is_answered(step);
        self.agenda.wake(play);
        answer.bytes
    }

    /// A notification of a batch that was not recorded as it comes: what is equal to it, in a batch or alone, has come.
    pub(super) fn heard_member(&mut self, member: &Message<'_>) {
        if member.kind != Kind::Notification {
            return;
        }
        let digest = self.matcher.digest(member);
        let mut batch = Vec::new();
        for play in [self.playing(self.at_hand.live), Some(0)].into_iter().flatten() {
            let steps = &self.scripts[self.plays[play].script].steps;
            for (step, plan) in (0..).zip(steps).filter(|(_, step)| step.kind == StepKind::Batch) {
                let entry = &self.cassette.exchanges[plan.exchange as usize];
                let played = self.members.get(&(play, step));
                let came_whole = self.plays[play].is_taken(step) && played.is_none();
                if came_whole || !client_message(&self.cassette, &*self.blobs, entry, &mut batch) {
                    continue;
                }
                let is_it = |(place, other): &(usize, Message<'_>)| {
                    other.kind == Kind::Notification
                        && played.is_none_or(|played| !played.contains(place))
                        && self.matcher.digest(other) == digest
                };
                if let Some((place, _)) = Message::read(&batch).members().enumerate().find(is_it) {
                    return self.members.entry((play, step)).or_default().push(place);
                }
            }
        }
        if let Some(Found { play, step, repeat: false }) = self.find(member) {
            let script = self.plays[play].script;
            self.plays[play].arrive(&self.scripts[script], step);
        }
    }

    /// The messages of a recorded batch that nobody sent, where others of it were: as `KEY METHOD NAME`.
    pub(super) fn unused_of_batch(&self, plays: &[usize], step: u32) -> Vec<String> {
        let mut used: Vec<usize> = Vec::new();
        for play in plays.iter().filter(|play| !self.plays[**play].is_unused(step)) {
            match self.members.get(&(*play, step)) {
                Some(places) => used.extend(places),
                // It came as it was recorded.
                None => return Vec::new(),
            }
        }
        let Some(play) = plays.first() else { return Vec::new() };
        let exchange = self.scripts[self.plays[*play].script].steps[step as usize].exchange;
        let entry = &self.cassette.exchanges[exchange as usize];
        let mut batch = Vec::new();
        client_message(&self.cassette, &*self.blobs, entry, &mut batch);
        let members = Message::read(&batch);
        let unused = members.members().enumerate().filter(|(place, member)| {
            matches!(member.kind, Kind::Request | Kind::Notification)
                && !used.contains(place)
                && !own::may_be_left_over(&member.method())
        });
        unused.map(|(_, member)| format!("{} {}", entry.key, key::of_client(&member))).collect()
    }

    /// The answer to an equal request that stood alone.
    fn alone(&mut self, request: &Message<'_>) -> Option<Answer> {
        let found = self.find(request)?;
        let entry = &self.cassette.exchanges[self.exchange_of(found) as usize];
        let mut recorded = Vec::new();
        client_message(&self.cassette, &*self.blobs, entry, &mut recorded);
        let bytes = self.answer_to(entry, &Message::read(&recorded), request)?;
        Some(Answer { found, place: None, request: recorded, bytes })
    }

    /// The answer to an equal request of a recorded batch: of one that has other answers to this live batch, else of one
    /// where it was not played yet, else of the last.
    fn in_batch(&mut self, request: &Message<'_>, used: &[(usize, u32)]) -> Option<Answer> {
        let digest = self.matcher.digest(request);
        let facts = self.at_hand.facts.as_ref().filter(|_| self.is_http);
        let mut best: Option<(u8, Answer)> = None;
        let mut batch = Vec::new();
        for play in [self.playing(self.at_hand.live), Some(0)].into_iter().flatten() {
            let steps = &self.scripts[self.plays[play].script].steps;
            for (step, plan) in (0..).zip(steps).filter(|(_, step)| step.kind == StepKind::Batch) {
                let entry = &self.cassette.exchanges[plan.exchange as usize];
                if facts.is_some_and(|facts| facts.fit(&self.cassette, plan.exchange).is_none())
                    || !client_message(&self.cassette, &*self.blobs, entry, &mut batch)
                {
                    continue;
                }
                let (is_taken, is_used) = (self.plays[play].is_taken(step), used.contains(&(play, step)));
                let played = self.members.get(&(play, step)).filter(|_| is_taken);
                for (place, member) in Message::read(&batch).members().enumerate() {
                    if member.kind != Kind::Request || self.matcher.digest(&member) != digest {
                        continue;
                    }
                    let repeat = played.map_or(is_taken, |played| played.contains(&place));
                    let rank = if repeat { 0 } else { 1 + u8::from(is_used) };
                    if best.as_ref().is_some_and(|(best, _)| *best > 0 && *best >= rank) {
                        continue;
                    }
                    if let Some(bytes) = self.answer_to(entry, &member, request) {
                        let found = Found { play, step, repeat };
                        let request = member.bytes.to_vec();
                        best = Some((rank, Answer { found, place: Some(place), request, bytes }));
                    }
                }
            }
        }
        best.map(|(_, answer)| answer)
    }

    /// What a recorded request was answered, with the live id; none where more came because of it than answers, or it
    /// was answered by more than a message.
    fn answer_to(&self, entry: &Exchange, recorded: &Message<'_>, live: &Message<'_>) -> Option<Vec<u8>> {
        let status = entry.http.as_deref().and_then(|http| http.status).unwrap_or(200);
        let is_answers = |kind: Kind| kind.is_response() || kind == Kind::Batch;
        if status != 200 || !entry.server.iter().all(|item| is_answers(item.message.kind)) {
            return None;
        }
        let (id, live) = (recorded.id()?, live.id()?);
        for item in &entry.server {
            let mut bytes = Vec::new();
            self.cassette.wire(entry.session, false, &item.message, None, &*self.blobs, &mut bytes).ok()?;
            let message = Message::read(&bytes);
            let mut answers = std::iter::once(message).chain(message.members());
            let answer =
                answers.find(|answer| answer.kind.is_response() && answer.id_key() == recorded.id_key());
            if let Some(answer) = answer {
                let mut bytes = self.options.vars.show(answer.bytes).into_owned();
                rewrite::set_id(&mut bytes, &answer_id(id, answer.id()?, live));
                // It may have had lines of its own in a body or an event.
                return Some(into_line(bytes));
            }
        }
        None
    }
}
