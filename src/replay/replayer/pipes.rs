//! Clients that speak in lines. Each has a pipe, as to a server's process of its own: what it says there is one
//! session after the other, and when it closes its side, or the recorded server ends, that is no other client's end.

use std::collections::BTreeMap;

use super::{AtHand, Now, Replayer, faulty::Faults, lives::Live};
use crate::{
    traffic::Lane,
    wire::jsonrpc::{Kind, Message},
};

/// The clients that speak in lines, by their lanes.
#[derive(Debug, Default)]
pub(in crate::replay) struct Pipes(BTreeMap<u32, Pipe>);

/// One of them.
#[derive(Debug, Default)]
struct Pipe {
    /// Index of the live session that it is in.
    live: usize,
    /// It has said something.
    has_spoken: bool,
    /// Before its first session, the play of what the server says unasked.
    opening: Option<usize>,
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
        let pipe = self.pipe(lane);
        let (live, has_spoken) = (pipe.live, std::mem::replace(&mut pipe.has_spoken, true));
        self.report.connections += u64::from(!has_spoken);
        // The room of the id before it serves again.
        let id = std::mem::take(&mut self.at_hand.id);
        self.at_hand = AtHand { live, id, ..AtHand::default() };
        self.message(now, lane, Message::read(bytes));
        if self.pipes.has_ended(lane) {
            self.stop_on(now, lane);
        }
    }

    /// A client is there: what a recorded server said before any client message is said to it now, where all sessions that
    /// it may begin have the same.
    pub(super) fn opened(&mut self, lane: Lane) {
        if self.pipes.has(lane) {
            return;
        }
        let live = self.pipe(lane).live;
        self.at_hand = AtHand { live, ..AtHand::default() };
        let play = match self.opening() {
            Some(0) => {
                self.pool_live = live;
                0
            }
            Some(script) => {
                let play = self.begin_play(script, live);
                self.pipe(lane).opening = Some(play);
                play
            }
            None => return,
        };
        self.plays[play].open();
        self.agenda.wake(play);
    }

    /// The script that begins with what is said to a client that has said nothing, whichever it will play.
    fn opening(&self) -> Option<usize> {
        if self.scripts.len() == 1 {
            return Some(0).filter(|_| !self.plays[0].is_open() && self.said_first(0).is_some());
        }
        if self.scripts[0].opening().next().is_some() || self.faults.as_ref().is_some_and(Faults::has_lost) {
            return None;
        }
        let may_begin = self.may_begin();
        let (&first, others) = may_begin.split_first()?;
        let said = self.said_first(first)?;
        others.iter().all(|&script| self.said_first(script).as_ref() == Some(&said)).then_some(first)
    }

    /// What the server of a script said before any client message; none where it asked for something, since what its
    /// client can do is not known yet.
    fn said_first(&self, script: usize) -> Option<Vec<Vec<u8>>> {
        let exchanges = self.scripts[script].opening().map(|step| step.exchange);
        let items = exchanges.flat_map(|exchange| {
            let items = 0..self.cassette.exchanges[exchange as usize].server.len() as u32;
            items.map(move |item| self.recorded(exchange, item))
        });
        let said: Vec<Vec<u8>> = items.collect();
        let asks = |bytes: &Vec<u8>| Message::read(bytes).kind == Kind::Request;
        (!said.is_empty() && !said.iter().any(asks)).then_some(said)
    }

    /// Begins the play of a session's script, where what its server said first may have been said.
    pub(super) fn begin_opened(&mut self, script: usize, lane: Lane) -> usize {
        let live = self.at_hand.live;
        let opening = self.pipes.0.get_mut(&lane.0).and_then(|pipe| pipe.opening.take());
        let Some(opened) = opening else { return self.begin_play(script, live) };
        if self.plays[opened].script == script {
            self.owners[opened] = Some(live);
            return opened;
        }
        let play = self.begin_play(script, live);
        let [opened, begun] = self.plays.get_disjoint_mut([opened, play]).expect("both are there");
        begun.goes_on_with(opened);
        opened.stop(&self.scripts[opened.script]);
        play
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
            self.pipes.0.insert(lane.0, Pipe { live, ..Pipe::default() });
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
