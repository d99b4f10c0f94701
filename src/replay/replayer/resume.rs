//! Streams that a client fetches the rest of: `GET` with `Last-Event-ID` (specification 2025-11-25,
//! basic/transports, resumability; F10.4).

use std::sync::Arc;

use super::{Found, Now, Replayer, gets::Until, items::Way, lives::Held};
use crate::{
    cassette::model::Form,
    replay::rewrite::{self, Correlators},
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
        let missed: Vec<(u32, u32, Arc<Correlators>)> = sent
            .iter()
            .skip(at + 1)
            .filter(|sent| is_same(sent) && self.is_message(sent))
            .map(|sent| (sent.exchange, sent.item, Arc::clone(&sent.to)))
            .collect();
        // Of a stream that is over there is no rest: what was recorded then is one of the session's.
        let is_running = on_get || self.is_running(exchange, &to);
        let waits = |held: &Held| held.way == Way::Resume && Arc::ptr_eq(&held.to, &to);
        let is_over = !is_running && missed.is_empty() && !self.lives[live].held.iter().any(waits);
        if is_over && found.is_some_and(|found| !found.repeat) {
            return false;
        }
        // The recorded request says how the rest began and ended; one that was refused is refused again.
        let found = found.filter(|found| !found.repeat);
        let until = found.map_or(Until::Open, |found| self.until(found));
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
        if on_get {
            self.is_get_until(lane, until);
            missed.iter().for_each(|(exchange, item, _)| self.end_of_get(live, *exchange, *item));
            return true;
        }
        self.lives[live].resumed.push((Arc::clone(&to), lane));
        self.release_on_resumed(live, &to, lane);
        if !is_running {
            self.end(lane, None, &[]);
        }
        true
    }

    /// Whether it is one that a client waits for, and not one that only told where it could go on.
    fn is_message(&self, sent: &Sent) -> bool {
        let item = &self.cassette.exchanges[sent.exchange as usize].server[sent.item as usize];
        item.message.form != Form::Body
    }

    /// Whether more of an exchange is to come.
    fn is_running(&self, exchange: u32, to: &Arc<Correlators>) -> bool {
        self.plays.iter().any(|play| {
            let script = &self.scripts[play.script];
            play.live_runs()
                .any(|run| script.steps[run.step as usize].exchange == exchange && Arc::ptr_eq(&run.to, to))
        })
    }
}
