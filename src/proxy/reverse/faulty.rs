//! The front under a plan of faults. They act behind the recorder: what it writes down is what the peers really said,
//! and the client meets the fault.
//!
//! A request is read whole and shown to the plan, then it passes as without one, or is answered in the server's place.
//! What the server says is read by a task of its own, so that it is recorded to its end where a fault has ended it for
//! the client; where nothing is recorded the server sees its client leave. A response that nothing acts on passes byte
//! for byte as it comes; one that is acted on becomes [`Output`]s, and what of it comes out unchanged goes in its own
//! bytes.
//!
//! - `cutter`: an event stream, event by event, with its bytes
//! - `forward`: a request on its way to the server, and what that says
//! - `way`: a response on its way to the client

mod cutter;
mod forward;
mod way;

use std::{
    collections::{HashMap, VecDeque},
    ops::ControlFlow,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use hyper::{Method, Request, Response, body::Incoming, http::request};
use tokio::sync::{Notify, mpsc, oneshot};

use self::{forward::Forward, way::Way};
use super::{
    super::{
        lock,
        reply::{self, Cut, Flow, Leaves, Passing as Under, Place, Reply, ResponseBody},
    },
    connection::Link,
    exchange,
    inbound::{Inbound, Read},
};
use crate::{
    fault::{
        live::{Came, Do, Http, Live, Passing},
        step::Output,
    },
    report::{Report, events::Event},
    traffic::{Lane, Micros},
    transport::http::socket::Control,
};

/// Takes in what became of messages.
pub type Happened = Box<dyn Fn(Vec<Event>) + Send + Sync>;

/// What acts on live traffic, and who is told of it.
pub struct Faults {
    /// The plan's state.
    pub live: Live,
    /// Gets its events, where they are collected.
    pub happened: Option<Happened>,
}

/// What all connections share.
pub(super) struct Stand {
    start: Instant,
    state: Mutex<State>,
    /// The plan's deadline may have changed.
    changed: Notify,
    happened: Option<Happened>,
}

struct State {
    live: Live,
    ways: HashMap<u32, Way>,
    /// The streams of HTTP+SSE, by the endpoints that belong to them.
    endpoints: HashMap<String, Lane>,
    last_lane: u32,
    /// The deadline that the task that keeps the time waits for.
    awaited: Option<Micros>,
}

impl Stand {
    /// It, and the task that keeps its time.
    pub(super) fn begin(faults: Faults) -> Arc<Self> {
        let Faults { live, happened } = faults;
        let (ways, endpoints) = Default::default();
        let state = State { live, ways, endpoints, last_lane: 0, awaited: None };
        let stand = Arc::new(Self {
            start: Instant::now(),
            state: Mutex::new(state),
            changed: Notify::new(),
            happened,
        });
        drop(tokio::spawn(Arc::clone(&stand).keep_time()));
        stand
    }

    fn now(&self) -> Micros {
        u64::try_from(self.start.elapsed().as_micros()).unwrap_or(Micros::MAX)
    }

    async fn keep_time(self: Arc<Self>) {
        let wakes = || {
            let mut state = lock(&self.state);
            state.awaited = state.live.deadline();
            let due = state.awaited.and_then(|due| self.start.checked_add(Duration::from_micros(due)));
            ControlFlow::Continue(due)
        };
        reply::keep_time(&self.changed, wakes, || self.pump(&mut lock(&self.state))).await;
    }

    /// Takes in a request whose body was read, and gives its response as far as it is known.
    fn ask(
        self: &Arc<Self>,
        link: &Arc<Link>,
        head: request::Parts,
        (body, message): (Read, Option<Vec<u8>>),
        opens_connection: bool,
    ) -> Reply {
        let target = head.uri.path_and_query().map_or("*", |target| target.as_str());
        let headers: Vec<(&str, &[u8])> =
            head.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        let mut state = lock(&self.state);
        state.last_lane += 1;
        let lane = Lane(state.last_lane);
        let stream = state.endpoints.get_key_value(target).filter(|_| head.method == Method::POST);
        let stream = stream.map(|(endpoint, lane)| (endpoint.clone(), *lane));
        let came = Came {
            lane,
            bytes: message.as_deref().unwrap_or_default(),
            http: Some(Http {
                headers: &headers,
                stream: stream.as_ref().map(|(endpoint, lane)| (*lane, endpoint.as_str())),
                opens_connection,
            }),
        };
        let passing = state.live.client(self.now(), &came);
        let (sender, pieces) = mpsc::unbounded_channel();
        let (leave, left) = oneshot::channel();
        let flow = Arc::<Flow>::default();
        let is_plain = passing != Passing::Never && !state.live.is_affected(lane);
        let mut way = Way::new(sender, leave, Arc::clone(&flow), is_plain);
        way.is_read = passing != Passing::Never;
        // A recording has a call to its end; a stream that is listened to may have none.
        let is_endless = head.method == Method::GET || !link.front.tape.records();
        way.is_for_client = is_endless && !state.live.is_unheard(lane);
        if way.is_read {
            let held = (passing == Passing::Later).then(|| way.holds());
            let forward = Forward::new(self, link, &head, lane, &flow);
            tokio::spawn(forward.run(Request::from_parts(head, Inbound::Read(body)), held, left));
        }
        state.ways.insert(lane.0, way);
        self.pump(&mut state);
        drop(state);
        let place = Place::new(Arc::clone(self) as _, lane);
        let (ahead, pieces) = (VecDeque::new(), Some(pieces));
        Reply::Passing(Under { ahead, pieces, place, flow: Some(flow), keeps_alive: false })
    }

    /// The server says something on a lane: the client is given what comes of it.
    fn server(&self, state: &mut State, output: Output) {
        state.live.server(self.now(), output);
        self.pump(state);
    }

    /// Does what is due.
    fn pump(&self, state: &mut State) {
        let now = self.now();
        let mut begun = Vec::new();
        while let Some(next) = state.live.poll(now) {
            match next {
                Do::Pass { lane, .. } => {
                    if let Some(way) = state.ways.get_mut(&lane.0) {
                        way.goes();
                    }
                }
                Do::Say(output) => {
                    let lane = output.lane();
                    let Some(way) = state.ways.get_mut(&lane.0) else { continue };
                    let is_end = way.say(output);
                    begun.extend(way.has_to_begin().then_some(lane));
                    if is_end {
                        state.ended(lane);
                    }
                }
            }
        }
        for lane in begun {
            state.ways.get_mut(&lane.0).map(Way::begins).unwrap_or_default();
        }
        if let Some(happened) = &self.happened {
            let events = state.live.take_events(false);
            if !events.is_empty() {
                happened(events);
            }
        }
        if state.live.deadline() != state.awaited {
            self.changed.notify_one();
        }
    }

    /// A request came, which passes; `posted` is where, if it was posted.
    pub(super) fn sees(&self, came: &Came<'_>, posted: Option<&str>) {
        let mut state = lock(&self.state);
        let stream = posted.and_then(|target| state.endpoints.get_key_value(target));
        let stream = stream.map(|(endpoint, lane)| (endpoint.clone(), *lane));
        let stream = stream.as_ref().map(|(endpoint, lane)| (*lane, endpoint.as_str()));
        let came = Came { http: came.http.map(|http| Http { stream, ..http }), ..*came };
        state.live.client(self.now(), &came);
        self.pump(&mut state);
    }

    /// The server says something, which passes.
    pub(super) fn hears(&self, output: Output) {
        let mut state = lock(&self.state);
        let ended = Some(output.lane()).filter(|_| matches!(output, Output::EndLane { .. }));
        self.server(&mut state, output);
        ended.into_iter().for_each(|lane| state.ended(lane));
    }

    /// The messages that are posted there are answered on this lane.
    pub(super) fn leads(&self, endpoint: String, lane: Lane) {
        lock(&self.state).endpoints.insert(endpoint, lane);
    }

    /// A client has left a lane.
    pub(super) fn leaves(&self, lane: Lane) {
        Leaves::left(self, lane);
    }

    /// The report at the end; what is not known by now is told of as such.
    pub(super) fn finish(&self) -> Report {
        let mut state = lock(&self.state);
        if let Some(happened) = &self.happened {
            happened(state.live.take_events(true));
        }
        state.live.finish()
    }
}

impl State {
    /// A response has ended for its client.
    fn ended(&mut self, lane: Lane) {
        self.endpoints.retain(|_, stream| *stream != lane);
        if self.ways.get(&lane.0).is_some_and(|way| !way.is_read) {
            self.ways.remove(&lane.0);
        }
    }

    /// All that the server says on a lane has been read.
    fn is_read(&mut self, lane: Lane) {
        if let Some(way) = self.ways.get_mut(&lane.0) {
            way.is_read = false;
            if way.has_ended {
                self.ended(lane);
            }
        }
    }
}

impl Leaves for Stand {
    fn left(&self, lane: Lane) {
        let mut state = lock(&self.state);
        state.live.left(lane);
        state.ended(lane);
        if let Some(mut way) = state.ways.remove(&lane.0) {
            way.leaves();
        }
        self.pump(&mut state);
    }
}

/// What the client is answered.
///
/// # Errors
/// When its connection is to be cut off.
pub(super) async fn handle(
    stand: Arc<Stand>,
    link: Arc<Link>,
    control: Arc<Control>,
    request: Request<Incoming>,
) -> Result<Response<ResponseBody>, Cut> {
    control.head_is_read();
    let opens_connection = link.opens();
    let response = match exchange::refusal(&link, &request) {
        Some((status, text)) => reply::own(status, text),
        None => {
            let (head, body) = request.into_parts();
            let read = Read::all(body, link.front.tape.max_message).await;
            let reply = stand.ask(&link, head, read, opens_connection);
            reply::respond(reply, &control).await?
        }
    };
    control.awaits_head();
    control.writes();
    Ok(response)
}
