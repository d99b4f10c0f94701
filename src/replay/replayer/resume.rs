//! Streams that a client fetches the rest of: `GET` with `Last-Event-ID` (specification 2025-11-25,
//! basic/transports, resumability; F10.4).

use std::sync::Arc;

use super::{Found, Now, Replayer, gets::Until, items::Way, lives::Held};
use crate::{
    cassette::model::Form,
    replay::{
        rewrite::{self, Correlators},
        script::StepKind,
    },
    traffic::Lane,
    wire::jsonrpc::Message,
};

/// An event that was sent and had an id.
#[derive(Debug)]
pub(super) struct Sent {
    pub id: Box<str>,
    pub exchange: u32,
    pub item: u32,
    pub to: Arc<Correlators>,
    /// It went on the session's `GET` stream.
    pub on_get: bool,
}

impl Replayer {
    /// Sends what came behind the event with this id, and goes on with its stream; false where nobody knows the id.
    /// `found` is the recorded request for it, if there was one.
    pub(super) fn resume(
        &mut self,
        now: Now,
        lane: Lane,
        id: &[u8],
        line: &Message<'_>,
        found: Option<Found>,
    ) -> bool {
        let live = self.at_hand.live;
        let sent = &self.lives[live].sent;
        let Some(at) = sent.iter().rposition(|sent| sent.id.as_bytes() == id) else { return false };
        let (exchange, to, on_get) = (sent[at].exchange, Arc::clone(&sent[at].to), sent[at].on_get);
        let is_same = |other: &Sent| {
            if on_get { other.on_get } else { other.exchange == exchange && Arc::ptr_eq(&other.to, &to) }
        };
        let is_missed = |place: usize, sent: &Sent| place > at && is_same(sent) && self.is_message(sent);
        let again = self.again(found);
        let missed: Vec<(u32, u32, Arc<Correlators>)> = sent
            .iter()
            .enumerate()
            .filter(|(place, sent)| is_missed(*place, sent) || again.contains(&sent.id))
            .map(|(_, sent)| (sent.exchange, sent.item, Arc::clone(&sent.to)))
            .collect();
        // Of a stream that is over there is no rest: what was recorded then is one of the session's.
        let is_running = on_get || self.is_running(&to);
        let waits = |held: &Held| held.way == Way::Resume && Arc::ptr_eq(&held.to, &to);
        let is_over = !is_running && missed.is_empty() && !self.lives[live].held.iter().any(waits);
        if is_over && found.is_some_and(|found| !found.repeat) {
            return false;
        }
        let found = found.or_else(|| self.refused_on(exchange, line).filter(|_| !on_get));
        // The recorded request says how the rest began and ended; one that was refused is refused again.
        let found = found.filter(|found| !found.repeat);
        let until = found.map_or(Until::Open, |found| self.until(found));
        let stays_open = found.is_some() && matches!(until, Until::Open | Until::Delete(_));
        match found {
            Some(found) if !self.opens_stream(found) => {
                self.start(now, lane, line, found);
                return true;
            }
            Some(found) => self.start(now, lane, line, found),
            None => self.stream_head(lane),
        }
        for (exchange, item, to) in &missed {
            let mut bytes = self.recorded(*exchange, *item);
            rewrite::rewrite(&mut bytes, to);
            self.send_again(lane, *exchange, *item, bytes);
        }
        // A call that is over leaves a stream like the session's own.
        let is_own = stays_open && !is_running && self.lives[live].get.is_none();
        if on_get || is_own && !self.lives[live].held.iter().any(waits) {
            self.is_get_until(lane, until);
            missed.iter().for_each(|(exchange, item, _)| self.end_of_get(live, *exchange, *item));
            return true;
        }
        self.lives[live].resumed.push((Arc::clone(&to), lane));
        if found.is_some() && matches!(until, Until::Open) {
            self.stays_open_on(lane);
        }
        self.release_on_resumed(live, &to, lane);
        if !is_running && !stays_open {
            self.end(lane, None, &[]);
        }
        true
    }

    /// Ids of the events that the recorded server sent once more: those of other streams may be among them.
    fn again(&self, found: Option<Found>) -> &[Box<str>] {
        let http =
            found.and_then(|found| self.cassette.exchanges[self.exchange_of(found) as usize].http.as_deref());
        http.map_or(&[], |http| &http.again)
    }

    /// A recorded request that was to go on with this exchange's stream behind another event, and was refused.
    fn refused_on(&self, exchange: u32, line: &Message<'_>) -> Option<Found> {
        let play = self.playing(self.at_hand.live)?;
        let items = &self.cassette.exchanges[exchange as usize].server;
        let is_of_stream = |id: &[u8]| {
            let mut ids = items.iter().filter_map(|item| item.sse.as_ref()?.id.as_deref());
            ids.any(|known| known.as_bytes() == id)
        };
        let is_refused = |found: &Found| {
            let of = self.exchange_of(*found);
            let http = self.cassette.exchanges[of as usize].http.as_deref();
            let mut headers = http.into_iter().flat_map(|http| &http.request);
            headers.any(|header| {
                &*header.name == "last-event-id" && header.values.iter().any(|id| is_of_stream(id))
            }) && !self.opens_stream(*found)
                && *self.recorded_request(of) == *line.bytes
        };
        let steps = (0..).zip(&self.scripts[self.plays[play].script].steps);
        let lines = steps.filter(|(step, of)| of.kind == StepKind::Line && !self.plays[play].is_taken(*step));
        lines.map(|(step, _)| Found { play, step, repeat: false }).find(is_refused)
    }

    /// Whether it is one that a client waits for, and not one that only told where it could go on.
    fn is_message(&self, sent: &Sent) -> bool {
        let item = &self.cassette.exchanges[sent.exchange as usize].server[sent.item as usize];
        item.message.form != Form::Body
    }

    /// Whether more of an exchange is to come.
    pub(super) fn is_running(&self, to: &Arc<Correlators>) -> bool {
        self.plays.iter().any(|play| play.live_runs().any(|run| Arc::ptr_eq(&run.to, to)))
    }
}
