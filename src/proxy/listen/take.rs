//! A take: its replayer, the responses and pipes that are under way, and its clock.

mod tending;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use hyper::body::Bytes;
use tokio::{
    sync::{Notify, mpsc},
    time::{sleep_until, timeout_at},
};

use super::{super::lock, Shared};
use crate::{
    cassette::model::{End, StreamEnd},
    replay::{Due, HttpRequest, Input, Now, Output, Replayer, ResponseHead},
    report::Report,
    traffic::Lane,
    wire::{
        lines::{Line, LineSplitter},
        sse,
    },
};

/// A part of a response.
pub(super) enum Piece {
    Head(ResponseHead),
    /// `goes_on`: more of the same message follows.
    Data {
        bytes: Bytes,
        goes_on: bool,
    },
    /// With the end of the response our side of the connection ends.
    HalfClose,
    End {
        end: Option<StreamEnd>,
        partial: Vec<u8>,
    },
}

impl Piece {
    fn whole(bytes: Vec<u8>) -> Self {
        Self::Data { bytes: bytes.into(), goes_on: false }
    }
}

/// What comes of a request.
pub(super) enum Reply {
    /// A response that is whole already.
    Whole(ResponseHead, Bytes),
    /// One that is under way.
    Passing(Passing),
}

/// A response that is under way.
pub(super) struct Passing {
    pub(super) pieces: mpsc::UnboundedReceiver<Piece>,
    /// Tells the replayer when the client leaves.
    pub(super) place: Place,
}

/// What goes to a client that speaks in lines.
pub(super) enum Spoken {
    /// A line without its end; `apart`: it must not share a write with what was said before it.
    Line { bytes: Vec<u8>, apart: bool },
    /// Bytes as they stand, in a write of their own.
    Raw(Vec<u8>),
    /// Nothing more; how the recorded server ended, if it did.
    End(End),
}

/// A lane of a take, until its response has ended or its client has left.
pub(super) struct Place {
    take: Arc<Take>,
    lane: Lane,
    has_ended: bool,
}

impl Place {
    pub(super) const fn lane(&self) -> Lane {
        self.lane
    }

    /// Whether what was recorded with a wait between may come at one and the same real time.
    pub(super) fn may_crowd(&self) -> bool {
        self.take.shared.clock.is_wound()
    }

    /// The response is whole: that its client leaves tells nothing any more.
    pub(super) const fn ends(&mut self) {
        self.has_ended = true;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.has_ended {
            self.take.left(self.lane);
        }
    }
}

pub(super) struct Take {
    shared: Arc<Shared>,
    state: Mutex<State>,
    /// The replayer's deadline may have changed.
    changed: Notify,
    /// Where it is not the default one.
    name: Option<String>,
}

struct State {
    replayer: Replayer,
    lanes: HashMap<u32, mpsc::UnboundedSender<Piece>>,
    pipes: HashMap<u32, mpsc::UnboundedSender<Spoken>>,
    /// The pipes whose clients have closed their sides.
    closed: Vec<Lane>,
    last_lane: u32,
    misses: u64,
    /// The deadline that the task that keeps the time waits for.
    awaited: Due,
    /// Nothing more is asked of it.
    has_ended: bool,
}

impl Take {
    /// A take, and the task that keeps its time.
    pub(super) fn begin(name: &str, replayer: Replayer, shared: Arc<Shared>) -> Arc<Self> {
        let (lanes, pipes, closed) = Default::default();
        let state = State {
            replayer,
            lanes,
            pipes,
            closed,
            last_lane: 0,
            misses: 0,
            awaited: Due::NEVER,
            has_ended: false,
        };
        let take = Arc::new(Self {
            shared,
            state: Mutex::new(state),
            changed: Notify::new(),
            name: (!name.is_empty()).then(|| name.to_owned()),
        });
        drop(tokio::spawn(Arc::clone(&take).keep_time()));
        take
    }

    fn now(&self) -> Now {
        self.shared.clock.now()
    }

    async fn keep_time(self: Arc<Self>) {
        loop {
            let due = {
                let mut state = lock(&self.state);
                if state.has_ended {
                    return;
                }
                state.awaited = state.replayer.due();
                state.awaited
            };
            let changed = self.changed.notified();
            match self.shared.clock.wakes(due) {
                None => changed.await,
                Some(due) => {
                    if timeout_at(due.into(), changed).await.is_err() {
                        // Timers have a millisecond's grain; the replayer's clock has not.
                        sleep_until((due + Duration::from_micros(1)).into()).await;
                        self.pump(&mut lock(&self.state), None);
                    }
                }
            }
        }
    }

    /// Takes in a request, and gives its response as far as it is known.
    pub(super) fn ask(self: &Arc<Self>, request: &HttpRequest<'_>) -> Reply {
        let mut state = lock(&self.state);
        state.last_lane += 1;
        let lane = Lane(state.last_lane);
        state.replayer.handle(self.now(), Input::Request { lane, request });
        let mut pieces = Vec::new();
        self.pump(&mut state, Some((lane, &mut pieces)));
        let pieces = match whole(pieces) {
            Ok((head, body)) => return Reply::Whole(head, body),
            Err(pieces) => pieces,
        };
        let (sender, receiver) = mpsc::unbounded_channel();
        let has_ended = matches!(pieces.last(), Some(Piece::End { .. }));
        for piece in pieces {
            // The other end is at hand.
            let _ = sender.send(piece);
        }
        if !has_ended {
            state.lanes.insert(lane.0, sender);
        }
        drop(state);
        let place = Place { take: Arc::clone(self), lane, has_ended: false };
        Reply::Passing(Passing { pieces: receiver, place })
    }

    /// A client that speaks in lines has come: its place, and what goes to it.
    pub(super) fn join(self: &Arc<Self>) -> (Place, mpsc::UnboundedReceiver<Spoken>) {
        let mut state = lock(&self.state);
        state.last_lane += 1;
        let lane = Lane(state.last_lane);
        let (sender, receiver) = mpsc::unbounded_channel();
        state.pipes.insert(lane.0, sender);
        (Place { take: Arc::clone(self), lane, has_ended: false }, receiver)
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
        self.pump(&mut state, None);
    }

    /// A client that speaks in lines has closed its side.
    pub(super) fn closed(&self, lane: Lane) {
        let mut state = lock(&self.state);
        if state.pipes.contains_key(&lane.0) {
            state.closed.push(lane);
            state.replayer.handle(self.now(), Input::Closed { lane });
            self.pump(&mut state, None);
        }
    }

    fn left(&self, lane: Lane) {
        let mut state = lock(&self.state);
        state.lanes.remove(&lane.0);
        state.pipes.remove(&lane.0);
        state.replayer.handle(self.now(), Input::Left { lane });
        self.pump(&mut state, None);
    }

    /// Passes on what the replayer wants sent; what goes on the lane of `own` is put there.
    fn pump(&self, state: &mut State, mut own: Option<(Lane, &mut Vec<Piece>)>) {
        let now = self.now();
        while let Some(output) = state.replayer.poll(now) {
            let (lane, piece) = match output {
                Output::Head { lane, head } => (lane, Piece::Head(head)),
                Output::Raw { lane, bytes, .. } if state.pipes.contains_key(&lane.0) => {
                    state.speak(lane, Spoken::Raw(bytes));
                    continue;
                }
                Output::EndLane { lane, partial, .. } if state.pipes.contains_key(&lane.0) => {
                    let partial = Some(partial).filter(|partial| !partial.is_empty());
                    state.speak(lane, Spoken::End(End { partial, ..End::default() }));
                    continue;
                }
                Output::Raw { lane, bytes, goes_on } => (lane, Piece::Data { bytes: bytes.into(), goes_on }),
                Output::Event { lane, event } => (lane, Piece::whole(sse::encode(&event))),
                Output::Body { lane, bytes } => (lane, Piece::whole(bytes)),
                Output::HalfClose { lane } => (lane, Piece::HalfClose),
                Output::EndLane { lane, partial, end } => (lane, Piece::End { end, partial }),
                Output::Send { lane, bytes, apart } => {
                    state.speak(lane, Spoken::Line { bytes, apart });
                    continue;
                }
                Output::End { lane, end } => {
                    state.speak(lane, Spoken::End(end));
                    continue;
                }
            };
            match &mut own {
                Some((own, pieces)) if *own == lane => pieces.push(piece),
                _ => {
                    let is_end = matches!(piece, Piece::End { .. });
                    if let Some(sender) = state.lanes.get(&lane.0) {
                        // A client that has left says so by itself.
                        let _ = sender.send(piece);
                    }
                    if is_end {
                        state.lanes.remove(&lane.0);
                    }
                }
            }
        }
        let (replayer, pipes) = (&state.replayer, &mut state.pipes);
        state.closed.retain(|lane| {
            let is_done = replayer.is_done(*lane);
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

    /// Ends all responses and pipes that are under way.
    pub(super) fn close(&self) {
        let (lanes, pipes) = {
            let mut state = lock(&self.state);
            (std::mem::take(&mut state.lanes), std::mem::take(&mut state.pipes))
        };
        for sender in pipes.into_values() {
            let _ = sender.send(Spoken::End(End::default()));
        }
        for sender in lanes.into_values() {
            // A client that has left says so by itself.
            let _ = sender.send(Piece::End { end: None, partial: Vec::new() });
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

    pub(super) fn report(&self) -> Report {
        lock(&self.state).replayer.report()
    }

    pub(super) fn judge(&self, report: Report) -> Report {
        lock(&self.state).replayer.judge(report)
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

/// Head and body of a response that has ended in good order already and is no stream; else the pieces again.
fn whole(mut pieces: Vec<Piece>) -> Result<(ResponseHead, Bytes), Vec<Piece>> {
    let is_end = |piece: &Piece| matches!(piece, Piece::End { end: None, partial } if partial.is_empty());
    match pieces.as_mut_slice() {
        [Piece::Head(head), rest @ .., last] if !head.stream && is_end(last) => match rest {
            [] => Ok((std::mem::take(head), Bytes::new())),
            [Piece::Data { bytes, .. }] => Ok((std::mem::take(head), std::mem::take(bytes))),
            _ => Err(pieces),
        },
        _ => Err(pieces),
    }
}
