//! A take: its replayer, the responses that are under way, and its clock.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use hyper::body::Bytes;
use tokio::{
    sync::{Notify, mpsc},
    time::{sleep_until, timeout_at},
};

use super::lock;
use crate::{
    cassette::model::StreamEnd,
    replay::{HttpRequest, Input, Output, Replayer, ResponseHead},
    report::Report,
    traffic::{Lane, Micros},
    wire::sse,
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

/// A lane of a take, until its response has ended.
pub(super) struct Place {
    take: Arc<Take>,
    lane: Lane,
    has_ended: bool,
}

impl Place {
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
    start: Instant,
    state: Mutex<State>,
    /// The replayer's deadline may have changed.
    changed: Notify,
    /// Told when a miss has come.
    missing: Arc<Notify>,
}

struct State {
    replayer: Replayer,
    lanes: HashMap<u32, mpsc::UnboundedSender<Piece>>,
    last_lane: u32,
    misses: u64,
    /// The deadline that the task that keeps the time waits for.
    awaited: Option<Micros>,
}

impl Take {
    /// A take, and the task that keeps its time.
    pub(super) fn begin(replayer: Replayer, missing: Arc<Notify>) -> Arc<Self> {
        let state = State { replayer, lanes: HashMap::new(), last_lane: 0, misses: 0, awaited: None };
        let take = Arc::new(Self {
            start: Instant::now(),
            state: Mutex::new(state),
            changed: Notify::new(),
            missing,
        });
        drop(tokio::spawn(Arc::clone(&take).keep_time()));
        take
    }

    fn now(&self) -> Micros {
        u64::try_from(self.start.elapsed().as_micros()).unwrap_or(Micros::MAX)
    }

    async fn keep_time(self: Arc<Self>) {
        loop {
            let deadline = {
                let mut state = lock(&self.state);
                state.awaited = state.replayer.deadline();
                state.awaited
            };
            let changed = self.changed.notified();
            match deadline.and_then(|due| self.start.checked_add(Duration::from_micros(due))) {
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
        let is_whole = match &pieces[..] {
            [Piece::Head(head), Piece::End { end: None, partial }]
            | [Piece::Head(head), Piece::Data { .. }, Piece::End { end: None, partial }] => {
                !head.stream && partial.is_empty()
            }
            _ => false,
        };
        if is_whole {
            let mut pieces = pieces.into_iter();
            let (head, body) = (pieces.next(), pieces.next());
            let head = if let Some(Piece::Head(head)) = head { head } else { ResponseHead::default() };
            let body = if let Some(Piece::Data { bytes, .. }) = body { bytes } else { Bytes::new() };
            return Reply::Whole(head, body);
        }
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

    fn left(&self, lane: Lane) {
        let mut state = lock(&self.state);
        state.lanes.remove(&lane.0);
        state.replayer.handle(self.now(), Input::Left { lane });
        self.pump(&mut state, None);
    }

    /// Passes on what the replayer wants sent; what goes on the lane of `own` is put there.
    fn pump(&self, state: &mut State, mut own: Option<(Lane, &mut Vec<Piece>)>) {
        let now = self.now();
        while let Some(output) = state.replayer.poll(now) {
            let (lane, piece) = match output {
                Output::Head { lane, head } => (lane, Piece::Head(head)),
                Output::Raw { lane, bytes, goes_on } => (lane, Piece::Data { bytes: bytes.into(), goes_on }),
                Output::Event { lane, event } => (lane, Piece::whole(sse::encode(&event))),
                Output::Body { lane, bytes } => (lane, Piece::whole(bytes)),
                Output::HalfClose { lane } => (lane, Piece::HalfClose),
                Output::EndLane { lane, partial, end } => (lane, Piece::End { end, partial }),
                // Nobody has told of lines, and what a server's end means over HTTP its streams tell.
                Output::Send { .. } | Output::End(_) => continue,
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
        if state.replayer.deadline() != state.awaited {
            self.changed.notify_one();
        }
        let misses = state.replayer.misses();
        if misses > state.misses {
            state.misses = misses;
            self.missing.notify_one();
        }
    }

    /// Ends all responses that are under way.
    pub(super) fn close(&self) {
        let lanes = std::mem::take(&mut lock(&self.state).lanes);
        for sender in lanes.into_values() {
            // A client that has left says so by itself.
            let _ = sender.send(Piece::End { end: None, partial: Vec::new() });
        }
    }

    pub(super) fn report(&self) -> Report {
        lock(&self.state).replayer.report()
    }

    pub(super) fn judge(&self, report: Report) -> Report {
        lock(&self.state).replayer.judge(report)
    }
}
