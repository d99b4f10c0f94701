//! Requests of Streamable HTTP that are answered at once, as nearly all are: one answer is all that was recorded of them,
//! nothing goes before it, and nothing waits for it.

use std::sync::Arc;

use super::{Found, Now, Output, Replayer, heads::Beginning, streams::event};
use crate::{
    cassette::model::{Exchange, Item},
    replay::{options::Order, script::StepKind},
    traffic::Lane,
    wire::jsonrpc::{Kind, Message},
};

impl Replayer {
    /// Plays an exchange from its beginning to its end, if it is one that is answered at once. What comes of it is what
    /// comes of playing it step by step, but nobody has to find out what goes next.
    pub(super) fn at_once(&mut self, now: Now, lane: Lane, message: &Message<'_>, found: Found) -> bool {
        let (exchange, cassette) = (self.exchange_of(found), Arc::clone(&self.cassette));
        let entry = &cassette.exchanges[exchange as usize];
        let [item] = &entry.server[..] else { return false };
        let is_asked = message.kind == Kind::Request && self.is_bare(lane);
        if !(is_asked && self.is_unbound(now, found, item) && self.is_all(entry)) {
            return false;
        }
        let id = std::mem::take(&mut self.at_hand.id);
        let answer = self.answer((exchange, 0), (&id, message.is_modern()), false);
        self.at_hand.id = id;
        let Some(bytes) = answer else { return false };
        let Some(stream) = self.streams.remove(&lane.0) else { return false };
        self.note_key(exchange);
        let Beginning { mut head, is_typed, .. } = self.beginning(entry, found, stream.live, &stream.origin);
        let play = &mut self.plays[found.play];
        play.has_played(&self.scripts[play.script], found.step, found.repeat);
        let bytes = self.shown(bytes);
        let said = if head.stream {
            Output::Event { lane, event: event(bytes, item.sse.as_deref()) }
        } else {
            if !is_typed {
                head.is_json();
            }
            Output::Body { lane, bytes }
        };
        self.emit(Output::Head { lane, head });
        self.emit(said);
        self.emit(Output::EndLane { lane, partial: Vec::new(), end: None });
        true
    }

    /// Whether the request at hand came by itself over Streamable HTTP, and nobody does anything to its answer.
    fn is_bare(&self, lane: Lane) -> bool {
        let is_alone = !self.heard.lines && !self.heard.sse && self.members.is_empty();
        is_alone && self.faults.is_none() && self.streams.contains_key(&lane.0)
    }

    /// Whether the first item of what was found may go now, whatever else does.
    fn is_unbound(&self, now: Now, found: Found, item: &Item) -> bool {
        let (play, step) = (&self.plays[found.play], self.step_of(found));
        let is_free = found.repeat || self.options.order == Order::Free || step.group().is_none();
        is_free
            && !play.is_busy(&self.scripts[play.script])
            && self.options.due(now, item.after_ms, false).has_come(now)
            && step.kind == StepKind::Request
            && !step.dies
            && step.cancelled_at().is_none()
    }

    /// Whether the one item of an exchange answers it, and is all that the response to it was. Nobody can ask for what
    /// came behind it, as it has no id.
    fn is_all(&self, entry: &Exchange) -> bool {
        let is_whole = entry.http.as_deref().is_none_or(|http| http.end.is_none() && http.partial.is_none());
        let is_last = |item: &Item| item.sse.as_ref().is_none_or(|sse| sse.id.is_none());
        is_whole && entry.unanswered.is_none() && self.sole_answer(entry).is_some_and(is_last)
    }
}
