//! Clients that speak in lines. Each has a pipe, as to a server's process of its own: what it says there is one
//! session after the other, and when it closes its side, or the recorded server ends, that is no other client's end.

use std::collections::BTreeMap;

use super::{AtHand, Now, Replayer, lives::Live};
use crate::{traffic::Lane, wire::jsonrpc::Message};

/// The clients that speak in lines, by their lanes.
#[derive(Debug, Default)]
pub(in crate::replay) struct Pipes(BTreeMap<u32, Pipe>);

/// One of them.
#[derive(Debug)]
struct Pipe {
    /// Index of the live session that it is in.
    live: usize,
    /// It has closed its side.
    is_closed: bool,
    /// The recorded server has ended.
    has_ended: bool,
    /// A fault has closed what the client reads.
    is_shut: bool,
}

impl Pipes {
    /// Whether a client speaks in lines there.
    pub(in crate::replay) fn has(&self, lane: Lane) -> bool {
        self.0.contains_key(&lane.0)
    }

    /// Whether the client there has closed its side.
    pub(in crate::replay) fn is_closed(&self, lane: Lane) -> bool {
        self.0.get(&lane.0).is_some_and(|pipe| pipe.is_closed)
    }

    /// Whether neither side of a client's pipe has been closed.
    pub(in crate::replay) fn is_open(&self, lane: Lane) -> bool {
        self.0.get(&lane.0).is_some_and(|pipe| !pipe.is_closed && !pipe.has_ended)
    }

    /// Those whose server has not ended.
    pub(super) fn running(&self) -> Vec<Lane> {
        self.0.iter().filter(|(_, pipe)| !pipe.has_ended).map(|(lane, _)| Lane(*lane)).collect()
    }

    /// The live session that a client is in.
    pub(super) fn live(&self, lane: Lane) -> Option<usize> {
        self.0.get(&lane.0).map(|pipe| pipe.live)
    }

    /// Whether a client speaks in lines there whose server has ended.
    pub(in crate::replay) fn has_ended(&self, lane: Lane) -> bool {
        self.0.get(&lane.0).is_some_and(|pipe| pipe.has_ended)
    }

    /// Whether a fault has closed what the client there reads.
    pub(super) fn is_shut(&self, lane: Lane) -> bool {
        self.0.get(&lane.0).is_some_and(|pipe| pipe.is_shut)
    }

    /// A fault closes what the client there reads; whether it was closed before.
    pub(super) fn shut(&mut self, lane: Lane) -> bool {
        self.0.get_mut(&lane.0).is_some_and(|pipe| std::mem::replace(&mut pipe.is_shut, true))
    }

    /// From now on the client there is in this live session.
    pub(super) fn is_in(&mut self, lane: Lane, live: usize) {
        if let Some(pipe) = self.0.get_mut(&lane.0) {
            pipe.live = live;
        }
    }
}

impl Replayer {
    /// Takes in a line.
    pub(super) fn line_on(&mut self, now: Now, lane: Lane, bytes: &[u8]) {
        self.heard.lines = true;
        self.report.connections += u64::from(!self.pipes.has(lane));
        let live = self.pipe(lane).live;
        // The room of the id before it serves again.
        let id = std::mem::take(&mut self.at_hand.id);
        self.at_hand = AtHand { live, id, ..AtHand::default() };
        self.message(now, lane, Message::read(bytes));
        if self.pipes.has_ended(lane) {
            self.stop_on(now, lane);
        }
    }

    /// A client has closed its side.
    pub(super) fn closed(&mut self, lane: Lane) {
        self.pipe(lane).is_closed = true;
        self.end_upstreams_on(lane);
        self.agenda.wake(0);
        for play in self.plays_on(lane) {
            self.agenda.wake(play);
        }
    }

    /// A client has gone: nothing can be sent to it any more.
    pub(super) fn gone(&mut self, now: Now, lane: Lane) {
        self.left_stage(lane);
        self.stop_on(now, lane);
        self.pipes.0.remove(&lane.0);
    }

    /// The recorded server of a client has ended: nothing more is sent to it.
    pub(super) fn ended_on(&mut self, now: Now, lane: Lane) {
        self.pipe(lane).has_ended = true;
        self.stop_on(now, lane);
    }

    /// Whether nothing is left to be sent to a client whose server has ended, or that has closed its side.
    pub fn is_done(&self, lane: Lane) -> bool {
        let Some(pipe) = self.pipes.0.get(&lane.0) else { return false };
        let is_held_back = || self.faults.as_ref().is_some_and(|faults| faults.owes(lane));
        let is_owed = || {
            self.outputs.iter().any(|output| output.lane() == lane)
                || self.plays.iter().any(|play| play.owes(lane))
                || self.upstreams.owes(lane)
        };
        (pipe.has_ended || (pipe.is_closed && !is_owed())) && !is_held_back()
    }

    fn pipe(&mut self, lane: Lane) -> &mut Pipe {
        if !self.pipes.has(lane) {
            let live = self.begin_live(Live { pipe: Some(lane), ..Live::default() });
            self.pipes.0.insert(lane.0, Pipe { live, is_closed: false, has_ended: false, is_shut: false });
        }
        self.pipes.0.get_mut(&lane.0).expect("it was put there")
    }

    /// The plays of a client's sessions.
    fn plays_on(&self, lane: Lane) -> Vec<usize> {
        let is_on = |live: Option<usize>| live.is_some_and(|live| self.lives[live].pipe == Some(lane));
        (0..self.plays.len()).filter(|play| is_on(self.live_with(*play))).collect()
    }

    /// Takes away all that is under way for a client.
    fn stop_on(&mut self, now: Now, lane: Lane) {
        self.end_upstreams_on(lane);
        for play in self.plays_on(lane) {
            let script = self.plays[play].script;
            self.plays[play].stop(&self.scripts[script]);
        }
        // What all clients draw from goes on for the others.
        for run in self.plays[0].runs_on(lane) {
            let scene = scene!(self, 0, now);
            self.plays[0].remove(scene, run);
        }
        self.agenda.wake(0);
    }
}
