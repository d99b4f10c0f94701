//! A take: its replayer, the responses and pipes that are under way, and its clock.

mod tending;

use std::{
    collections::HashMap,
    ops::ControlFlow,
    sync::{Arc, Mutex, Weak},
};

use tokio::sync::{Notify, mpsc};

use super::{
    super::{
        lock,
        reply::{self, Leaves, Passing, Piece, Place, Reply, plain},
        upstream::{Heard, Link, Upstreams},
    },
    Shared,
};
use crate::{
    cassette::model::{End, StreamEnd},
    replay::{Due, HttpRequest, Input, Now, Output, Pace, Replayer, Wants},
    report::Report,
    traffic::Lane,
    wire::lines::{Line, LineSplitter},
};

/// For so many outputs room is kept.
const ROOM_KEPT: usize = 64;

/// What goes to a client that speaks in lines.
pub(super) enum Spoken {
    /// A line without its end; `apart`: it must not share a write with what was said before it.
    Line { bytes: Vec<u8>, apart: bool },
    /// Bytes as they stand, in a write of their own.
    Raw(Vec<u8>),
    /// Nothing more is said, behind this of a line; the process goes on.
    Close(Vec<u8>),
    /// Nothing more; how the recorded server ended, if it did.
    End(End),
}

pub(super) struct Take {
    shared: Arc<Shared>,
    state: Mutex<State>,
    /// The replayer's deadline may have changed.
    changed: Notify,
    /// Where it is not the default one.
    name: Option<String>,
    /// Where requests go that are no misses for it.
    upstreams: Option<Arc<Upstreams>>,
    /// For those that tell it what real servers say.
    own: Weak<Self>,
}

/// A response that is under way.
struct Open {
    sender: mpsc::UnboundedSender<Piece>,
    /// A message that was begun goes on.
    goes_on: bool,
}

struct State {
    replayer: Replayer,
    lanes: HashMap<u32, Open>,
    pipes: HashMap<u32, mpsc::UnboundedSender<Spoken>>,
    /// The pipes whose clients have closed their sides.
    closed: Vec<Lane>,
    /// Those whose clients are told nothing more, because a fault has closed them.
    shut: Vec<Lane>,
    last_lane: u32,
    misses: u64,
    /// Room for what goes to the client whose request is dealt with.
    own: Vec<Output>,
    /// A response ended before anything was said to the request that is dealt with.
    other_ended: bool,
    /// The ways to its real servers.
    links: HashMap<u32, Link>,
    /// The deadline that the task that keeps the time waits for.
    awaited: Due,
    /// Nothing more is asked of it.
    has_ended: bool,
}

impl Take {
    /// A take, and the task that keeps its time.
    pub(super) fn begin(
        name: &str,
        replayer: Replayer,
        shared: Arc<Shared>,
        upstreams: Option<Arc<Upstreams>>,
    ) -> Arc<Self> {
        let (lanes, pipes, closed, shut, links) = Default::default();
        let state = State {
            replayer,
            lanes,
            pipes,
            closed,
            shut,
            links,
            last_lane: 0,
            misses: 0,
            own: Vec::new(),
            other_ended: false,
            awaited: Due::NEVER,
            has_ended: false,
        };
        let take = Arc::new_cyclic(|own| Self {
            shared,
            state: Mutex::new(state),
            changed: Notify::new(),
            name: (!name.is_empty()).then(|| name.to_owned()),
            upstreams,
            own: own.clone(),
        });
        drop(tokio::spawn(Arc::clone(&take).keep_time()));
        take
    }

    fn now(&self) -> Now {
        self.shared.clock.now()
    }

    async fn keep_time(self: Arc<Self>) {
        let wakes = || {
            let mut state = lock(&self.state);
            if state.has_ended {
                return ControlFlow::Break(());
            }
            state.awaited = state.replayer.due();
            ControlFlow::Continue(self.shared.clock.wakes(state.awaited))
        };
        reply::keep_time(&self.changed, wakes, || self.pump(&mut lock(&self.state))).await;
    }

    /// What a request waits for whose body has come so far.
    pub(super) fn wants(&self, request: &HttpRequest<'_>, pace: Pace) -> Wants {
        lock(&self.state).replayer.wants(request, pace)
    }

    /// Takes in a request, and gives its response as far as it is known; and whether another one ended before that.
    pub(super) fn ask(self: &Arc<Self>, request: &HttpRequest<'_>) -> (Reply, bool) {
        let mut state = lock(&self.state);
        state.other_ended = false;
        let (lane, outputs) = self.take_in(&mut state, request);
        let is_behind = state.other_ended;
        (self.reply(&mut state, lane, outputs), is_behind)
    }

    /// The same for a client that is answered directly: none where its response is whole, and has been appended.
    pub(super) fn ask_directly(
        self: &Arc<Self>,
        request: &HttpRequest<'_>,
        response: &mut Vec<u8>,
    ) -> Option<Reply> {
        let mut state = lock(&self.state);
        let (lane, mut outputs) = self.take_in(&mut state, request);
        if plain::write(&outputs, response) {
            outputs.drain(..).for_each(|output| state.replayer.take_back(output));
            outputs.shrink_to(ROOM_KEPT);
            state.own = outputs;
            return None;
        }
        Some(self.reply(&mut state, lane, outputs))
    }

    fn take_in(&self, state: &mut State, request: &HttpRequest<'_>) -> (Lane, Vec<Output>) {
        state.last_lane += 1;
        let lane = Lane(state.last_lane);
        let now = self.now();
        state.replayer.handle(now, Input::Request { lane, request });
        let mut outputs = std::mem::take(&mut state.own);
        self.pump_at(now, state, Some((lane, &mut outputs)));
        (lane, outputs)
    }

    fn reply(self: &Arc<Self>, state: &mut State, lane: Lane, outputs: Vec<Output>) -> Reply {
        let pieces = outputs.into_iter().filter_map(|output| Piece::of(output).ok());
        let ahead = match reply::whole(pieces.map(|(_, piece)| piece).collect()) {
            Ok((head, body)) => return Reply::Whole(head, body),
            Err(pieces) => pieces,
        };
        let last = ahead.back();
        let goes_on = last.is_some_and(Piece::goes_on);
        let pieces = (!matches!(last, Some(Piece::End { .. }))).then(|| {
            let (sender, pieces) = mpsc::unbounded_channel();
            state.lanes.insert(lane.0, Open { sender, goes_on });
            pieces
        });
        let place = Place::new(Arc::clone(self) as _, lane);
        Reply::Passing(Passing { ahead, pieces, place, flow: None, keeps_alive: true })
    }

    /// A client that speaks in lines has come: its place, and what goes to it.
    pub(super) fn join(self: &Arc<Self>) -> (Place, mpsc::UnboundedReceiver<Spoken>) {
        let mut state = lock(&self.state);
        state.last_lane += 1;
        let lane = Lane(state.last_lane);
        let (sender, receiver) = mpsc::unbounded_channel();
        state.pipes.insert(lane.0, sender);
        state.replayer.handle(self.now(), Input::Opened { lane });
        self.pump(&mut state);
        (Place::new(Arc::clone(self) as _, lane), receiver)
    }

    /// Takes in bytes of a client that speaks in lines.
    pub(super) fn hear(&self, lane: Lane, lines: &mut LineSplitter, bytes: &[u8]) {
        let mut state = lock(&self.state);
        if !state.pipes.contains_key(&lane.0) {
            return;
        }
        let now = self.now();
        lines.feed(bytes, |line| {
            let bytes = match &line {
                Line::Whole(bytes) => bytes,
                Line::Oversize(line) => &line.head[..],
            };
            state.replayer.handle(now, Input::Message { lane, bytes });
        });
        self.pump(&mut state);
    }

    /// A client that speaks in lines has closed its side.
    pub(super) fn closed(&self, lane: Lane) {
        let mut state = lock(&self.state);
        if state.pipes.contains_key(&lane.0) {
            state.closed.push(lane);
            state.replayer.handle(self.now(), Input::Closed { lane });
            self.pump(&mut state);
        }
    }

    /// Passes on what the replayer wants sent.
    fn pump(&self, state: &mut State) {
        self.pump_at(self.now(), state, None);
    }

    /// The same at this time; what goes on the lane of `own` is put there.
    fn pump_at(&self, now: Now, state: &mut State, mut own: Option<(Lane, &mut Vec<Output>)>) {
        while let Some(output) = state.replayer.poll(now) {
            let output = match output {
                Output::Raw { lane, bytes, .. } if state.pipes.contains_key(&lane.0) => {
                    state.speak(lane, Spoken::Raw(bytes));
                    continue;
                }
                Output::EndLane { lane, partial, .. } if state.pipes.contains_key(&lane.0) => {
                    state.speak(lane, Spoken::Close(partial));
                    state.shut.push(lane);
                    continue;
                }
                Output::Send { lane, bytes, apart } => {
                    state.speak(lane, Spoken::Line { bytes, apart });
                    continue;
                }
                Output::End { lane, end } => {
                    state.speak(lane, Spoken::End(end));
                    continue;
                }
                Output::Upstream { upstream, line, .. } => {
                    self.say_to(state, upstream, line);
                    continue;
                }
                Output::EndUpstream { upstream, .. } => {
                    state.links.remove(&upstream);
                    continue;
                }
                output => output,
            };
            if let Some((own, outputs)) = &mut own
                && *own == output.lane()
            {
                outputs.push(output);
                continue;
            }
            let Ok((lane, piece)) = Piece::of(output) else { continue };
            let is_end = matches!(piece, Piece::End { .. });
            if let Some(Open { sender, goes_on }) = state.lanes.get_mut(&lane.0) {
                *goes_on = piece.goes_on();
                // A client that has left says so by itself.
                let _ = sender.send(piece);
            }
            if is_end {
                state.other_ended |= own.as_ref().is_some_and(|(_, outputs)| outputs.is_empty());
                state.lanes.remove(&lane.0);
            }
        }
        let (replayer, pipes, shut) = (&state.replayer, &state.pipes, &state.shut);
        state.closed.retain(|lane| {
            // Where neither side can say anything more, nothing is waited for.
            let is_done = replayer.is_done(*lane) || shut.contains(lane);
            if let Some(sender) = pipes.get(&lane.0).filter(|_| is_done) {
                // One that has left says so by itself.
                let _ = sender.send(Spoken::End(End::default()));
            }
            !is_done && pipes.contains_key(&lane.0)
        });
        self.tell_events(state, false);
        if self.shared.clock.is_wound() {
            self.shared.stirred.notify_waiters();
        }
        if state.replayer.due() != state.awaited {
            self.changed.notify_one();
        }
        let misses = state.replayer.misses();
        if misses > state.misses {
            state.misses = misses;
            self.shared.missing.notify_one();
        }
    }

    /// Says a line to a real server.
    fn say_to(&self, state: &mut State, upstream: u32, line: Vec<u8>) {
        if !state.links.contains_key(&upstream) {
            let Some(upstreams) = &self.upstreams else { return };
            let own = self.own.clone();
            let tell = move |heard| own.upgrade().into_iter().for_each(|take| take.heard(upstream, &heard));
            match upstreams.open(state.replayer.continues(upstream), tell) {
                Ok(link) => drop(state.links.insert(upstream, link)),
                Err(error) => {
                    let why = format!("the real server cannot be reached: {error}");
                    state.replayer.handle(self.now(), Input::UpstreamEnded { upstream, why: &why });
                    return;
                }
            }
        }
        state.links[&upstream].say(line);
    }

    /// A real server does something.
    fn heard(&self, upstream: u32, heard: &Heard) {
        let mut state = lock(&self.state);
        let input = match heard {
            Heard::Line(line) => Input::Upstream { upstream, line },
            Heard::Ended(why) => Input::UpstreamEnded { upstream, why },
        };
        state.replayer.handle(self.now(), input);
        self.pump(&mut state);
    }

    /// Ends all responses, pipes and real servers that are under way.
    pub(super) fn close(&self) {
        let (lanes, pipes) = {
            let mut state = lock(&self.state);
            state.links.clear();
            (std::mem::take(&mut state.lanes), std::mem::take(&mut state.pipes))
        };
        for sender in pipes.into_values() {
            let _ = sender.send(Spoken::End(End::default()));
        }
        for Open { sender, goes_on } in lanes.into_values() {
            // In the middle of a message it must not look as if that were all.
            let end = goes_on.then_some(StreamEnd::Cut);
            // A client that has left says so by itself.
            let _ = sender.send(Piece::End { end, partial: Vec::new() });
        }
    }

    /// Tells of what has become of messages, and of those of which nothing will.
    pub(super) fn tell_last(&self) {
        self.tell_events(&mut lock(&self.state), true);
    }

    fn tell_events(&self, state: &mut State, is_last: bool) {
        let Some(happened) = &self.shared.happened else { return };
        let mut events = state.replayer.take_events(is_last);
        if events.is_empty() {
            return;
        }
        events.iter_mut().for_each(|event| event.take.clone_from(&self.name));
        happened(events);
    }

    /// The report as it stands, or that of the end.
    pub(super) fn report(&self, is_last: bool) -> Report {
        let replayer = &lock(&self.state).replayer;
        if is_last { replayer.last_report() } else { replayer.report() }
    }

    pub(super) fn judge(&self, report: Report) -> Report {
        lock(&self.state).replayer.judge(report)
    }

    pub(super) fn judge_all(&self, mut report: Report) -> Report {
        lock(&self.state).replayer.judge_all(&mut report);
        report
    }
}

impl Leaves for Take {
    fn left(&self, lane: Lane) {
        let mut state = lock(&self.state);
        state.lanes.remove(&lane.0);
        state.pipes.remove(&lane.0);
        state.shut.retain(|shut| *shut != lane);
        state.replayer.handle(self.now(), Input::Left { lane });
        self.pump(&mut state);
    }

    fn may_crowd(&self) -> bool {
        self.shared.clock.is_wound()
    }
}

impl State {
    fn speak(&self, lane: Lane, spoken: Spoken) {
        if let Some(sender) = self.pipes.get(&lane.0) {
            // A client that has left says so by itself.
            let _ = sender.send(spoken);
        }
    }
}
