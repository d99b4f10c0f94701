//! What became of each message of the client, where somebody wants to know.

use std::borrow::Cow;

use super::{Now, Replayer};
use crate::{
    fault::{Decision, step::Output},
    replay::{exchange::HttpRequest, matcher::canonical::holds_placeholder},
    report::{
        events::{Event, Outcome},
        ledger::{Came, Open, correlation},
    },
    traffic::Lane,
    wire::jsonrpc::{Message, id_key},
};

impl Replayer {
    /// Events of messages whose outcome is known by now. After the last one (`is_last`), nothing is answered any more.
    pub fn take_events(&mut self, is_last: bool) -> Vec<Event> {
        if let Some(faults) = self.faults.as_mut().filter(|_| is_last) {
            faults.are_over(self.events.as_mut());
        }
        self.events.as_mut().map(|events| events.take(is_last)).unwrap_or_default()
    }

    /// What a request's headers call it.
    pub(super) fn note_correlation(&mut self, request: &HttpRequest<'_>) {
        if self.events.is_none() {
            return;
        }
        let found = correlation(|name| request.header(name));
        let Some((name, value)) = found else { return };
        let value = self.header(name, value.as_bytes());
        self.at_hand.correlation = Some(value);
    }

    /// A request or notification has come.
    pub(super) fn open_event(&mut self, lane: Lane, message: &Message<'_>, method: &str) {
        if self.events.is_none() {
            return;
        }
        let own = self.own_stream(lane);
        let Some(events) = &mut self.events else { return };
        let live = self.at_hand.live;
        let seq = events.open(&Came {
            now: self.now.played,
            server: self.options.called(),
            session: Some(self.lives[live].ordinal).filter(|ordinal| *ordinal > 0),
            live,
            lane,
            own,
            message,
            method,
            id: Some(&self.at_hand.id[..]).filter(|id| !id.is_empty()),
            correlation: self.at_hand.correlation.as_deref(),
        });
        self.at_hand.events.push(seq);
    }

    fn at_hand_events(&mut self, mut note: impl FnMut(&mut Open)) {
        let Some(events) = &mut self.events else { return };
        for seq in &self.at_hand.events {
            events.get_mut(*seq).into_iter().for_each(&mut note);
        }
    }

    /// What the message at hand asks for.
    pub(super) fn note_key(&mut self, exchange: u32) {
        if self.events.is_none() {
            return;
        }
        let (key, live) = (self.key(exchange), self.at_hand.live);
        let ordinal = Some(self.lives[live].ordinal).filter(|ordinal| *ordinal > 0);
        // What is live where a secret stood when recorded is told no more than that was.
        let client = self.cassette.exchanges[exchange as usize].client.as_ref();
        let recorded = client.and_then(|client| self.cassette.peek(client)?.name().map(Cow::into_owned));
        let hides = recorded.filter(|name| holds_placeholder(name.as_bytes()));
        self.at_hand_events(|open| {
            if hides.is_some() {
                open.event.name.clone_from(&hides);
            }
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
        let open = asked.and_then(|seq| events.get_mut(seq));
        open.into_iter().for_each(|open| open.noted = Some(outcome));
    }

    /// Faults act on the message at hand; of those that speak in the server's place, whether they say anything.
    pub(super) fn note_fault(&mut self, decision: &Decision, exchange: Option<u32>, is_silent: bool) {
        if self.events.is_none() {
            return;
        }
        let key = exchange.map(|exchange| self.key(exchange));
        let is_faulty = decision.terminal.is_some();
        let name = decision.name();
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
        self.at_hand.events.iter().for_each(|seq| events.accept(*seq));
    }

    /// The client cancels a request.
    pub(super) fn note_cancelled(&mut self, id: &[u8]) {
        let live = self.at_hand.live;
        if let Some(events) = &mut self.events {
            events.cancelled(live, id);
        }
    }

    /// The client has left a lane.
    pub(super) fn note_left(&mut self, lane: Lane) {
        if let Some(events) = &mut self.events {
            events.left(lane);
        }
    }

    /// Something goes to the client.
    pub(super) fn note_told(&mut self, now: Now, output: &Output) {
        let Some(events) = &mut self.events else { return };
        let lane = output.lane();
        let is_its = |live: &super::lives::Live| {
            live.get == Some(lane)
                || live.sse.as_ref().is_some_and(|(sse, _)| *sse == lane)
                || live.resumed.iter().any(|(_, resumed)| *resumed == lane)
        };
        let lives = &self.lives;
        let live = || lives.iter().position(is_its);
        match output {
            Output::Head { lane, head } => events.head(*lane, head.status, head.stream),
            Output::EndLane { lane, .. } => events.ended(now.played, *lane),
            Output::Raw { lane, bytes, goes_on } => events.piece(now.played, *lane, (bytes, *goes_on), live),
            // Its last line may be an answer.
            Output::End { lane, end } => {
                let Some(last) = &end.partial else { return };
                events.told(now.played, *lane, last, live);
            }
            _ => {
                let Some(text) = output.text() else { return };
                events.told(now.played, lane, text, live);
            }
        }
    }
}
