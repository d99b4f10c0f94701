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

use super::{Happened, lock};
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
    Data(Bytes),
    End { end: Option<StreamEnd>, partial: Vec<u8> },
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
    /// Gets its events, with its name where it is not the default one.
    happened: Option<Happened>,
    name: Option<String>,
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
    pub(super) fn begin(
        name: &str,
        replayer: Replayer,
        missing: Arc<Notify>,
        happened: Option<Happened>,
    ) -> Arc<Self> {
        let state = State { replayer, lanes: HashMap::new(), last_lane: 0, misses: 0, awaited: None };
        let take = Arc::new(Self {
            start: Instant::now(),
            state: Mutex::new(state),
            changed: Notify::new(),
            missing,
            happened,
            name: (!name.is_empty()).then(|| name.to_owned()),
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
        if let [Piece::Head(_), .., Piece::End { end: None, partial }] | [Piece::End { end: None, partial }] =
            &pieces[..]
            && partial.is_empty()
            && pieces.len() <= 3
            && matches!(&pieces[0], Piece::Head(head) if !head.stream)
        {
            let mut pieces = pieces.into_iter();
            if let Some(Piece::Head(head)) = pieces.next() {
                let body = match pieces.next() {
                    Some(Piece::Data(data)) => data,
                    _ => Bytes::new(),
                };
                return Reply::Whole(head, body);
            }
            return Reply::Whole(ResponseHead { status: 500, ..ResponseHead::default() }, Bytes::new());
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
                Output::Raw { lane, bytes } => (lane, Piece::Data(bytes.into())),
                Output::Event { lane, event } => (lane, Piece::Data(sse::encode(&event).into())),
                Output::Body { lane, bytes } => (lane, Piece::Data(bytes.into())),
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
        self.tell_events(state, false);
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

    /// Tells of what has become of messages, and of those of which nothing will.
    pub(super) fn tell_last(&self) {
        self.tell_events(&mut lock(&self.state), true);
    }

    fn tell_events(&self, state: &mut State, is_last: bool) {
        let Some(happened) = &self.happened else { return };
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
