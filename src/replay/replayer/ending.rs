//! The end of a recorded server, and its last line where that has no end.

use std::sync::Arc;

use super::{Now, Output, Replayer, streams::event};
use crate::{
    cassette::model::StreamEnd,
    fault::Acting,
    replay::{play::Run, rewrite},
    traffic::Lane,
    wire::{
        half::answered_id,
        jsonrpc::{Message, id_key, same_id},
    },
};

/// A recorded server's last line, as it is said now.
struct LastLine {
    bytes: Vec<u8>,
    /// Of the request that it is said because of: where the answer goes, and which faults act on it.
    of: Option<(Lane, Option<Acting>)>,
}

impl Replayer {
    /// Ends the pipe of a client as its recorded server ended, behind all that faults hold back.
    pub(super) fn end_pipe(&mut self, now: Now, play: usize, session: u32, lane: Lane) {
        let mut end = self.cassette.sessions[session as usize].end.clone().unwrap_or_default();
        let last = self.last_line(play, session, |run| run.lane == lane);
        end.partial = last
            .and_then(|LastLine { bytes, of }| self.say_last(lane, of.and_then(|(_, acting)| acting), bytes));
        self.close_all_acting([play, 0], |run| run.lane == lane);
        self.end_behind_held(Output::End { lane, end });
        self.ended_on(now, lane);
    }

    /// Over HTTP, a recorded server has ended in the middle of something: all that the session has open is cut off, and
    /// what it said on its last line goes on the response to the request which that answers, else to the one in whose
    /// middle it ended.
    pub(super) fn server_ended(&mut self, now: Now, play: usize, session: u32, run: Option<u32>) {
        let dying = run.and_then(|run| self.plays[play].run(run));
        let dying_on = dying.map(|run| (run.post.unwrap_or(run.lane), (run.lane, run.acting)));
        let is_heard = |run: &Run| self.streams.contains_key(&run.lane.0);
        let mut last = self.last_line(play, session, is_heard);
        if let Some(last) = &mut last {
            last.of = last.of.or(dying_on.map(|(_, of)| of));
        }
        let Some(live) = self.live_with(play) else {
            // What has no session shares no server.
            if let (Some(run), Some((lane, (_, acting)))) = (run, dying_on) {
                let last = last.filter(|last| last.of.is_some_and(|(of, _)| of == lane));
                self.cut_off(lane, last);
                let scene = scene!(self, play, now);
                self.plays[play].remove(scene, run);
                self.close_acting(acting);
            }
            return;
        };
        self.lives[live].is_over = true;
        let mut lanes: Vec<u32> =
            self.streams.iter().filter(|(_, stream)| stream.live == live).map(|(at, _)| *at).collect();
        lanes.sort_unstable();
        for lane in lanes.into_iter().map(Lane) {
            let last = last.take_if(|last| last.of.is_some_and(|(of, _)| of == lane));
            self.cut_off(lane, last);
        }
        self.lives[live].get = None;
        self.lives[live].resumed.clear();
        self.close_all_acting([play, play], |_| true);
        let script = self.plays[play].script;
        self.plays[play].stop(&self.scripts[script]);
    }

    /// Cuts a response off behind a server's last line.
    fn cut_off(&mut self, lane: Lane, last: Option<LastLine>) {
        let Some(LastLine { bytes, of }) = last else { return self.cut(lane, Vec::new()) };
        let acting = of.and_then(|(_, acting)| acting);
        self.speak_for(acting);
        self.begin_response(lane, true);
        let is_stream = self.streams.get(&lane.0).is_some_and(|stream| stream.is_stream);
        let rest = match self.say_last(lane, acting, bytes) {
            Some(rest) if is_stream => [b"data: ", &rest[..]].concat(),
            rest => rest.unwrap_or_default(),
        };
        self.cut(lane, rest);
        self.speak_for(None);
    }

    /// Cuts a response off; one that others share, behind all that faults hold back for them.
    fn cut(&mut self, lane: Lane, partial: Vec<u8>) {
        let is_shared = self
            .streams
            .get(&lane.0)
            .is_some_and(|stream| self.lives[stream.live].sse.as_ref().is_some_and(|(sse, _)| *sse == lane));
        let end = Some(StreamEnd::Cut);
        if !is_shared || !self.faults.as_ref().is_some_and(|faults| faults.owes(lane)) {
            return self.end(lane, end, &partial);
        }
        self.end_behind_held(Output::EndLane { lane, partial, end });
        self.streams.remove(&lane.0);
    }

    /// Sends a last line as faults will have it; gives back what is to go with the end, as it stands.
    fn say_last(&mut self, lane: Lane, acting: Option<Acting>, bytes: Vec<u8>) -> Option<Vec<u8>> {
        let (Some(acting), Some(faults)) = (acting, &mut self.faults) else { return Some(bytes) };
        let text = bytes.clone();
        let last = match self.streams.get(&lane.0) {
            None => {
                let line = Output::Send { lane, bytes: text.clone(), apart: false };
                // It may have to wait; and others may come behind it.
                let cut = match faults.owes(lane) {
                    true => line.clone(),
                    false => Output::Raw { lane, bytes: text, goes_on: false },
                };
                (line, Some(cut))
            }
            Some(stream) if stream.is_stream => (Output::Event { lane, event: event(text, None) }, None),
            Some(_) => (Output::Body { lane, bytes: text }, None),
        };
        let is_left = faults.pass_last(self.now, acting, last, &mut self.outputs);
        is_left.then_some(bytes)
    }

    /// Over HTTP a client does not close its side, so what the server said once that had happened is not said.
    pub(super) fn tell_of_last_line(&mut self, exchange: u32) {
        let session = &self.cassette.sessions[self.cassette.exchanges[exchange as usize].session as usize];
        let is_said = session.end.as_ref().is_none_or(|end| end.partial.is_none() || end.is_by_itself());
        if is_said || session.is_http() {
            return;
        }
        self.warn(format!(
            "`{}` stays open: the recorded server's last line, which has no end, came once its input was closed, and a \
             client over HTTP closes none; a replay on stdio sends it",
            self.key(exchange)
        ));
    }

    /// What a recorded server said on its last line; none where it answers a request that is not under way now. `heard`
    /// says whose requests it can be because of.
    fn last_line(&self, play: usize, session: u32, heard: impl Fn(&Run) -> bool) -> Option<LastLine> {
        let mut bytes = self.cassette.sessions[session as usize].end.as_ref()?.partial.clone()?;
        let id = answered_id(&bytes).map(|id| id_key(id.of(&bytes)).into_owned());
        let message = Message::read(&bytes);
        let is_progress = message.method() == "notifications/progress";
        let token = message.param("/progressToken").filter(|_| is_progress);
        let is_its = |run: &&Run| match &id {
            Some(id) => *id_key(&run.to.recorded_id()) == **id,
            None => token.zip(run.to.recorded_token.as_deref()).is_some_and(|(a, b)| same_id(a, b)),
        };
        let plays = [Some(play), Some(0).filter(|_| play > 0)].into_iter().flatten();
        let runs = plays.flat_map(|play| self.plays[play].live_runs().map(move |run| (play, run)));
        let of_session = |(play, run): &(usize, &Run)| {
            let step = &self.scripts[self.plays[*play].script].steps[run.step as usize];
            self.cassette.exchanges[step.exchange as usize].session == session
        };
        let of = runs.filter(of_session).map(|(_, run)| run).filter(|run| heard(run)).find(is_its);
        match of {
            None if id.is_some_and(|id| self.was_asked(session, &id)) => return None,
            Some(run) if !rewrite::rewrite_last(&mut bytes, &run.to) => return None,
            _ => {}
        }
        let of = of.map(|run| (run.lane, run.acting));
        Some(LastLine { bytes: self.options.vars.show(&bytes).into_owned(), of })
    }

    /// Whether a request with this id, as it is compared, was recorded in a session.
    fn was_asked(&self, session: u32, id: &[u8]) -> bool {
        let of_session = self.cassette.exchanges.iter().filter(|entry| entry.session == session);
        of_session.filter_map(|entry| entry.client.as_ref()).any(|client| {
            let mut raw = Vec::new();
            client.id.push(&mut raw);
            *id_key(&raw) == *id
        })
    }

    /// All has been said because of the requests of these runs.
    fn close_all_acting(&mut self, plays: [usize; 2], which: impl Fn(&Run) -> bool) {
        let runs = plays.into_iter().flat_map(|play| self.plays[play].live_runs());
        let acting: Vec<Acting> = runs.filter(|run| which(run)).filter_map(|run| run.acting).collect();
        acting.into_iter().for_each(|acting| self.close_acting(Some(acting)));
    }

    /// A client on stdio has asked for something of a session that has none to itself.
    pub(super) fn draws(&mut self, exchange: u32) {
        let session = self.cassette.exchanges[exchange as usize].session;
        let live = &mut self.lives[self.at_hand.live];
        if live.pipe.is_some() && live.drawn_from.is_none_or(|(of, _)| of != session) {
            live.drawn_from = Some((session, 0));
        }
    }

    /// Ends the pipes of clients that all was played to of a session which began with no `initialize`.
    pub(super) fn end_drained(&mut self, now: Now) {
        let cassette = Arc::clone(&self.cassette);
        for lane in self.pipes.running() {
            let Some(live) = self.pipes.live(lane).filter(|live| self.lives[*live].play.is_none()) else {
                continue;
            };
            let Some((session, from)) = self.lives[live].drawn_from else { continue };
            let Some(end) = &cassette.sessions[session as usize].end else { continue };
            let (play, script) = (&self.plays[0], &self.scripts[self.plays[0].script]);
            if play.owes(lane) {
                continue;
            }
            let is_over = if end.is_by_itself() {
                let left = play.left_of(script, &cassette, session, from);
                self.lives[live].drawn_from = Some((session, left.unwrap_or(from)));
                left.is_none() && self.pipes.is_open(lane)
            } else {
                self.pipes.is_closed(lane)
            };
            if is_over {
                self.end_pipe(now, 0, session, lane);
            }
        }
    }
}
