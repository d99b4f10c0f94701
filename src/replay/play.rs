//! One live session playing a script: which item goes next, and what it waits for.
//!
//! Inside an exchange order is absolute: an item goes after the items before it, and after the client's answers
//! that had come before it (a gate). Between overlapping exchanges the one recorded first goes first; an item waits
//! for requests recorded before it until they have come or the grace is over. Pushes follow the last client message
//! before them. Nothing here knows bytes: [`Play::step`] says what to perform.
//!
//! - `order`: what goes next, and what holds it back
//! - `strict`: whether requests come in the recorded order
//! - `tending`: what whoever tends a replay asks, and does

mod order;
mod strict;
mod tending;

pub(super) use strict::MovedStep;

use std::sync::Arc;

use super::{
    clock::{Due, Now},
    index::Queue,
    options::{Options, Order, is_needed_wait},
    replayer::Pipes,
    rewrite::Correlators,
    script::{Rank, Script},
};
use crate::{
    cassette::model::Cassette,
    fault::Acting,
    traffic::{Lane, Micros},
};

/// The rank of a server's end, which comes after all it ever sent.
const END: Rank = Rank::MAX;

/// So many equal steps are looked at for the one that fits best: enough for all that differ in what carried them.
const MOST_COMPARED: usize = 1_000;

/// State of one live session.
#[derive(Debug)]
pub(super) struct Play {
    /// Index of the script.
    pub script: usize,
    steps: Vec<Fate>,
    /// For each list of equal steps, how many of it are played.
    next: Vec<u32>,
    runs: Vec<Option<Run>>,
    vacant: Vec<u32>,
    /// Runs with an item to send, in the order of these items' ranks.
    ready: Vec<(Rank, u32)>,
    next_push: usize,
    push_due: Option<Due>,
    /// Its client is there, although nothing of it may have come.
    is_open: bool,
    /// The highest rank of a client message that has come.
    progress: Option<Rank>,
    groups: Vec<Group>,
    /// How many of the script's requests have come.
    arrived: usize,
    /// Under `--strict`, of the steps that came in their order the last recorded one.
    latest: Option<u32>,
    /// Under `--strict`, what came, in its order.
    asked: strict::Asked,
    /// Which steps were taken before it was rewound.
    taken_before: Vec<bool>,
}

/// What has become of a step.
#[derive(Clone, Copy, Debug, Default)]
struct Fate {
    /// A live message has asked for it.
    taken: bool,
    /// Its answer has gone.
    sent: bool,
}

/// What is known of a group of overlapping exchanges.
#[derive(Clone, Copy, Debug, Default)]
struct Group {
    /// Its client messages before this position have come.
    missing: u32,
    /// Its wait has run out; it is not waited for again.
    gave_up: bool,
}

/// An exchange being played for a live message.
#[derive(Debug)]
pub(super) struct Run {
    pub step: u32,
    /// The stream of its exchange.
    pub lane: Lane,
    /// Index of the live session it is played for.
    pub live: usize,
    /// Over HTTP+SSE, the response to the request that carried the client's message.
    pub post: Option<Lane>,
    /// Over HTTP, the response to the client's message has ended.
    pub is_over: bool,
    pub to: Arc<Correlators>,
    /// The recorded request asked for log messages, and the live one does not.
    pub leaves_out_logs: bool,
    /// Faults act on it.
    pub acting: Option<Acting>,
    /// The item that goes next.
    item: u32,
    /// When the moment before it was.
    last: Now,
    /// Server requests the client has not answered.
    gates: Vec<u32>,
    cancelled: bool,
    /// Bound by no order: a repeat, or `--order free`.
    free: bool,
    /// The server's end in its middle does not wait any longer for requests recorded before that.
    ends_early: bool,
    /// Since when, on the real clock.
    blocked_since: Option<Micros>,
}

/// What to perform next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// Send this item of a run's exchange.
    Item { run: u32, item: u32 },
    /// Send this push.
    Push { step: u32 },
    /// All items of a run have gone.
    Finished { run: u32 },
    /// The server ends as it ended in this recorded session.
    End { session: u32, run: Option<u32> },
    /// A wait for a request recorded earlier ran out.
    GraceOver { run: u32, missing: u32 },
    /// The client's answer to a server request is not waited for any longer.
    GateOpened { run: u32, gate: Gate, why: &'static str },
    /// Nothing now; something at this time, if any.
    Idle { until: Due },
}

/// What a run waits for from the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gate {
    /// Its answer to this item.
    Answer(u32),
    /// Its cancelling the request.
    Cancel,
    /// The request of this step, which it sent before the server ended.
    Request(u32),
}

/// All that deciding needs besides the play itself.
#[derive(Clone, Copy)]
pub(super) struct Scene<'a> {
    pub cassette: &'a Cassette,
    pub script: &'a Script,
    pub options: &'a Options,
    pub now: Now,
    /// Clients that speak in lines, some of whom have closed their sides.
    pub pipes: &'a Pipes,
    /// The one whose session it is. Over HTTP a server ends in mid-call, but not because nothing is left to be asked.
    pub pipe: Option<Lane>,
    /// The one to which is said what the server says unasked.
    pub hears: Option<Lane>,
}

impl Scene<'_> {
    /// When an item is due that goes behind this moment.
    fn due(&self, after: Now, step: u32, item: u32) -> Due {
        let exchange = self.script.steps[step as usize].exchange;
        let server = &self.cassette.exchanges[exchange as usize].server;
        self.options.due(after, server[item as usize].after_ms, is_needed_wait(server, item as usize))
    }
}

impl Play {
    pub(super) fn new(script: usize, of: &Script) -> Self {
        Self {
            script,
            steps: vec![Fate::default(); of.steps.len()],
            next: Vec::new(),
            runs: Vec::new(),
            vacant: Vec::new(),
            ready: Vec::new(),
            next_push: 0,
            push_due: None,
            is_open: false,
            progress: None,
            groups: vec![Group::default(); of.groups.len()],
            arrived: 0,
            latest: None,
            asked: strict::Asked::default(),
            taken_before: Vec::new(),
        }
    }

    /// Its client is there: what the server said before any client message goes to it.
    pub(super) const fn open(&mut self) {
        self.is_open = true;
    }

    /// Whether its client is known to be there.
    pub(super) const fn is_open(&self) -> bool {
        self.is_open
    }

    /// What the server said first has been said by another play, as far as that is open.
    pub(super) const fn goes_on_with(&mut self, other: &Self) {
        self.next_push = other.next_push;
    }

    /// Of equal steps, the first not yet played among those that fit best; else the last of them, and that it is a
    /// repeat. `fit` says how well one fits, or that it does not.
    pub(super) fn choose(
        &mut self,
        script: &Script,
        queue: Option<Queue>,
        own: &[u32],
        fit: impl Fn(u32) -> Option<u8>,
    ) -> Option<(u32, bool)> {
        let (mut only, mut next) = (0, 0);
        let queued: &[u32] = queue.map_or(&[], |queue| script.index.steps(queue, &mut only));
        if let Some(list) = queue.and_then(Queue::list) {
            // Lists are made as methods are asked for.
            self.next.resize(script.index.lists(), 0);
            let of_list = &mut self.next[list as usize];
            while queued.get(*of_list as usize).is_some_and(|&step| self.steps[step as usize].taken) {
                *of_list += 1;
            }
            next = *of_list as usize;
        }
        let fresh = queued[next..].iter().chain(own).filter(|&&step| !self.steps[step as usize].taken);
        let mut fresh = fresh.take(MOST_COMPARED);
        // Nearly always the first one is all that has to be looked at.
        let mut best: Option<(u8, u32)> = None;
        let mut look = |step: u32| {
            if let Some(fit) = fit(step)
                && best.is_none_or(|(best, of)| fit > best || (fit == best && step < of))
            {
                best = Some((fit, step));
            }
            best.is_some_and(|(best, _)| best == u8::MAX)
        };
        if own.is_empty() {
            let _ = fresh.any(|&step| look(step));
        } else {
            for &step in fresh {
                look(step);
            }
        }
        if let Some((_, step)) = best {
            return Some((step, false));
        }
        let fitting = |&&step: &&u32| fit(step).is_some();
        let last = [queued, own].map(|steps| steps.iter().rev().take(MOST_COMPARED).find(fitting));
        last.into_iter().flatten().max().map(|&step| (step, true))
    }

    /// A client message has come that asks for this step; `run` says how to play it.
    pub(super) fn start(&mut self, scene: Scene<'_>, step: u32, repeat: bool, run: Run) -> u32 {
        if !repeat {
            self.arrive(scene.script, step);
        }
        let free = repeat || scene.options.order == Order::Free;
        let run = Run { free, last: scene.now, step, ..run };
        let at = match self.vacant.pop() {
            Some(at) => {
                self.runs[at as usize] = Some(run);
                at
            }
            None => {
                self.runs.push(Some(run));
                self.runs.len() as u32 - 1
            }
        };
        self.enqueue(scene, at);
        at
    }

    /// The client message of this step has come.
    pub(super) fn arrive(&mut self, script: &Script, step: u32) {
        let plan = &script.steps[step as usize];
        self.steps[step as usize].taken = true;
        self.progress = self.progress.max(Some(plan.rank));
        self.arrived += usize::from(plan.is_asked());
        if let Some(at) = plan.group() {
            let (group, members) = (&mut self.groups[at as usize], script.groups.get(at));
            while members.get(group.missing as usize).is_some_and(|&step| self.steps[step as usize].taken) {
                group.missing += 1;
            }
        }
        // What a server's end waits for comes one by one.
        for &(_, at) in self.ready.iter().rev().take_while(|(rank, _)| *rank == END) {
            self.runs[at as usize].as_mut().expect("ready runs live").blocked_since = None;
        }
    }

    /// Whether something waits to be sent, or may have to be said because of the next client message.
    pub(super) fn is_busy(&self, script: &Script) -> bool {
        !self.ready.is_empty() || self.next_push < script.pushes.len()
    }

    /// A client message has come that asks for this step, and all that was recorded of it has gone.
    pub(super) fn has_played(&mut self, script: &Script, step: u32, repeat: bool) {
        if !repeat {
            self.arrive(script, step);
        }
        self.steps[step as usize].sent = true;
    }

    /// Puts a run where its next item's rank belongs, or ends it.
    fn enqueue(&mut self, scene: Scene<'_>, at: u32) {
        let run = self.runs[at as usize].as_ref().expect("a live run");
        let step = &scene.script.steps[run.step as usize];
        let rank = scene.script.items(step).get(run.item as usize).map_or(END, |item| item.rank);
        if let Err(place) = self.ready.binary_search(&(rank, at)) {
            self.ready.insert(place, (rank, at));
        }
    }

    /// Takes a run from where [`Play::enqueue`] has put it.
    fn dequeue(&mut self, rank: Rank, at: u32) {
        if let Ok(place) = self.ready.binary_search(&(rank, at)) {
            self.ready.remove(place);
        }
    }

    pub(super) fn run(&self, at: u32) -> Option<&Run> {
        self.runs.get(at as usize)?.as_ref()
    }

    /// The client has answered this server item of a run.
    pub(super) fn answered(&mut self, at: u32, item: u32, now: Now) {
        if let Some(run) = self.runs.get_mut(at as usize).and_then(Option::as_mut) {
            run.gates.retain(|&gate| gate != item);
            run.last = now;
            run.blocked_since = None;
        }
    }

    /// A server request has gone and the client will answer it.
    pub(super) fn await_answer(&mut self, at: u32, item: u32) {
        if let Some(run) = self.runs[at as usize].as_mut() {
            run.gates.push(item);
        }
    }

    /// The client has cancelled a run: what is left of it goes only where the recorded server spoke on as well.
    pub(super) fn cancel(&mut self, scene: Scene<'_>, at: u32) {
        let Some(run) = self.runs.get_mut(at as usize).and_then(Option::as_mut) else { return };
        run.cancelled = true;
        let step = &scene.script.steps[run.step as usize];
        let speaks_on = step.cancelled_at().is_some() && (run.item as usize) < scene.script.items(step).len();
        if !speaks_on {
            self.remove(scene, at);
        }
    }

    /// Takes a run away.
    pub(super) fn remove(&mut self, scene: Scene<'_>, at: u32) {
        let Some(run) = self.runs[at as usize].take() else { return };
        let step = &scene.script.steps[run.step as usize];
        let rank = scene.script.items(step).get(run.item as usize).map_or(END, |item| item.rank);
        self.dequeue(rank, at);
        self.steps[run.step as usize].sent = true;
        self.vacant.push(at);
    }

    /// Takes all runs away; what was recorded behind them can still be asked for.
    pub(super) fn abandon(&mut self, scene: Scene<'_>) {
        (0..self.runs.len() as u32).for_each(|at| self.remove(scene, at));
    }

    /// A fault has answered in a step's place: what comes after its answer need not wait for that.
    pub(super) fn is_answered(&mut self, step: u32) {
        self.steps[step as usize].sent = true;
    }

    /// Uses up a step that is not played.
    pub(super) fn take(&mut self, step: u32) {
        self.steps[step as usize].taken = true;
        self.steps[step as usize].sent = true;
    }

    /// All runs.
    pub(super) fn live_runs(&self) -> impl Iterator<Item = &Run> {
        self.numbered_runs().map(|(_, run)| run)
    }

    /// All runs, each with its number.
    pub(super) fn numbered_runs(&self) -> impl Iterator<Item = (u32, &Run)> {
        (0..).zip(&self.runs).filter_map(|(at, run)| Some((at, run.as_ref()?)))
    }

    /// Its server has ended: nothing comes any more.
    pub(super) fn stop(&mut self, script: &Script) {
        self.ready.clear();
        self.runs.clear();
        self.vacant.clear();
        self.next_push = script.pushes.len();
    }

    /// The response to the client's message has gone, or whatever else ended what it came on.
    pub(super) fn over(&mut self, at: u32) {
        if let Some(run) = self.runs.get_mut(at as usize).and_then(Option::as_mut) {
            run.is_over = true;
        }
    }

    /// Whether all of a run has gone and it only waits to be cancelled.
    pub(super) fn is_silent(&self, at: u32) -> bool {
        self.run(at).is_some() && !self.ready.iter().any(|&(_, ready)| ready == at)
    }

    /// Leaves a run silent: nothing more is sent, but it can be cancelled.
    pub(super) fn silence(&mut self, at: u32) {
        self.dequeue(END, at);
    }

    /// Whether a step is played, since the session began.
    pub(super) fn is_taken(&self, step: u32) -> bool {
        self.steps[step as usize].taken
    }

    /// Whether nobody has asked for a step.
    pub(super) fn is_unused(&self, step: u32) -> bool {
        !self.steps[step as usize].taken && !self.taken_before.get(step as usize).is_some_and(|&taken| taken)
    }

    /// Of the steps of a recorded session, the first from this one on that is left: not asked for yet, or not said, or one
    /// in whose middle the server ended.
    pub(super) fn left_of(&self, of: &Script, cassette: &Cassette, session: u32, from: u32) -> Option<u32> {
        let is_of = |at: u32| {
            let step = &of.steps[at as usize];
            cassette.exchanges[step.exchange as usize].session == session
        };
        let is_open = |at: u32| {
            let step = &of.steps[at as usize];
            step.dies || step.is_asked() && !self.steps[at as usize].taken
        };
        let open = (from..of.steps.len() as u32).find(|&at| is_open(at) && is_of(at));
        open.or_else(|| of.pushes[self.next_push..].iter().copied().find(|&at| is_of(at)))
    }

    /// Whether something is still owed to the client on a lane.
    pub(super) fn owes(&self, lane: Lane) -> bool {
        self.ready.iter().any(|&(_, at)| self.run(at).is_some_and(|run| run.lane == lane))
    }

    /// The runs of the client on a lane.
    pub(super) fn runs_on(&self, lane: Lane) -> Vec<u32> {
        self.numbered_runs().filter(|(_, run)| run.lane == lane).map(|(at, _)| at).collect()
    }
}

impl Run {
    /// A run that is about to start.
    pub(super) fn new(lane: Lane, to: Correlators) -> Self {
        Self {
            step: 0,
            lane,
            live: 0,
            post: None,
            is_over: false,
            to: Arc::new(to),
            leaves_out_logs: false,
            acting: None,
            item: 0,
            last: Now::default(),
            gates: Vec::new(),
            cancelled: false,
            free: false,
            ends_early: false,
            blocked_since: None,
        }
    }
}
