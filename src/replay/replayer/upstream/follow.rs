//! What the client says of requests that were passed on, and to those of real servers.

use super::{Passed, Replayer, Stage};
use crate::{
    replay::rewrite,
    traffic::Lane,
    wire::{
        jsonrpc::{Kind, Message, id_key, same_id},
        lines::one_line,
    },
};

/// A request of a real server that the client has not answered.
#[derive(Debug)]
pub(in crate::replay::replayer) struct Asked {
    /// Which server.
    pub(super) number: usize,
    /// The id that it gave.
    pub(super) id: Vec<u8>,
    /// The id that the client sees.
    pub(super) shown: Vec<u8>,
    /// Its progress token.
    pub(super) token: Option<Box<[u8]>>,
}

impl Replayer {
    /// Whether a notification of the client belongs to what was passed on; it goes there too.
    pub(in crate::replay::replayer) fn notifies_upstream(
        &mut self,
        lane: Lane,
        message: &Message<'_>,
    ) -> bool {
        let live = self.at_hand.live;
        if let Some(id) = message.cancelled_id() {
            return self.cancel_passed(lane, &id_key(id));
        }
        let upstream = self.upstreams.of(live).filter(|&number| self.upstreams.0[number].is_heard());
        let Some(number) = upstream else { return false };
        let token = message.param("/progressToken").filter(|_| message.method() == "notifications/progress");
        let is_for = |token: &[u8]| {
            let mut asked = self.lives[live].pending.iter().filter_map(|pending| pending.upstream.as_ref());
            asked.any(|asked| {
                asked.number == number && asked.token.as_deref().is_some_and(|own| same_id(own, token))
            })
        };
        let goes = self.upstreams.0[number].is_whole || token.is_some_and(is_for);
        if goes {
            let line = one_line(&self.at_hand.line);
            self.say_to(number, lane, line);
        }
        goes
    }

    /// The client cancels a request that was passed on.
    fn cancel_passed(&mut self, lane: Lane, id: &[u8]) -> bool {
        let live = self.at_hand.live;
        let is_it = |passed: &Passed| !passed.is_cancelled && *id_key(&passed.id) == *id;
        let found = self.upstreams.0.iter().enumerate().find_map(|(number, upstream)| {
            let mut asked = upstream.asked.iter().filter(|_| upstream.live == live);
            asked.find(|(_, passed)| is_it(passed)).map(|(minted, _)| (number, *minted))
        });
        let Some((number, minted)) = found else { return false };
        let mut line = one_line(&self.at_hand.line);
        if let Some(span) = Message::read(&line).param_span("/requestId") {
            line.splice(span.start..span.end, minted.to_string().into_bytes());
        }
        self.give_up(number, minted, lane, line);
        true
    }

    /// The client of a request has left its response, which cancels it since 2026-07-28.
    pub(in crate::replay::replayer) fn left_passed(&mut self, lane: Lane, is_modern: bool) {
        let found = self.upstreams.0.iter().enumerate().find_map(|(number, upstream)| {
            let mut asked = upstream.asked.iter();
            asked
                .find(|(_, passed)| passed.lane == lane && !passed.is_cancelled)
                .map(|(minted, _)| (number, *minted))
        });
        let Some((number, minted)) = found.filter(|_| is_modern) else { return };
        let line = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{minted}}}}}"#
        );
        self.give_up(number, minted, lane, line.into_bytes());
    }

    fn give_up(&mut self, number: usize, minted: u64, lane: Lane, line: Vec<u8>) {
        let upstream = &mut self.upstreams.0[number];
        let Some(passed) = upstream.asked.get_mut(&minted) else { return };
        passed.is_cancelled = true;
        let (own, acting) = (passed.own, passed.acting.take());
        match upstream.stage {
            Stage::Greeting if !passed.is_modern => upstream.waiting.push((lane, line)),
            _ => self.say_to(number, lane, line),
        }
        self.close_acting(acting);
        // An answer that comes all the same has no response to come on.
        if self.streams.get(&own.0).is_some_and(|stream| !self.is_shared(own, stream.live)) {
            self.end(own, None, &[]);
        }
    }

    /// The client answers a request of a real server.
    pub(in crate::replay::replayer) fn answer_upstream(
        &mut self,
        lane: Lane,
        asked: &Asked,
        message: &Message<'_>,
    ) {
        let is_over = matches!(self.upstreams.0[asked.number].stage, Stage::Over(_));
        if is_over {
            return;
        }
        let of_line = Message::read(&self.at_hand.line);
        let own = match of_line.kind {
            Kind::Batch => of_line.members().find(|member| member.id_key() == message.id_key()),
            _ => Some(of_line),
        };
        let mut line = one_line(own.map_or(message.bytes, |own| own.bytes));
        rewrite::set_id(&mut line, &asked.id);
        self.say_to(asked.number, lane, line);
    }
}
