//! Event streams: of a POST, of the server's own, of the older transport; and how one that was cut off goes on.

use std::sync::{Arc, atomic::Ordering};

use hyper::{
    HeaderMap, Method, StatusCode,
    body::Bytes,
    header::{HeaderName, HeaderValue},
    http::uri::PathAndQuery,
};
use tokio::{
    sync::oneshot,
    time::{Duration, sleep, timeout},
};

use super::{
    super::lock,
    failure::Failure,
    shared::{Call, Core, Mode, Reply, next_data, resolve},
    tape::COMMON,
};
use crate::{
    transport::http::coding::Decoder,
    wire::sse::{EventStream, Piece, SseEvent},
};

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// How long a client waits before it asks for the rest, unless the server says otherwise (F10.4).
const RETRY: Duration = Duration::from_secs(1);
/// The longest wait that a server may ask for.
const LONGEST_RETRY: Duration = Duration::from_secs(300);
/// How often in a row nothing may come of asking.
const FAILURES: u32 = 2;
/// How long the first event of the older transport may take.
const FIRST_EVENT: Duration = Duration::from_secs(10);

/// Where a stream can go on.
#[derive(Debug, Default)]
struct Place {
    last: Option<HeaderValue>,
    retry: Option<Duration>,
    /// Something has come since the stream was last asked for.
    has_moved: bool,
}

impl Place {
    fn see(&mut self, event: &SseEvent<'_>) {
        self.has_moved = true;
        if let Some(id) = &event.id {
            // An empty one takes back those before (WHATWG HTML, server-sent events).
            self.last = HeaderValue::from_bytes(id).ok().filter(|id| !id.is_empty());
        }
        if let Some(retry) = event.retry {
            self.retry = Some(Duration::from_millis(retry).min(LONGEST_RETRY));
        }
    }

    async fn wait(&self) {
        sleep(self.retry.unwrap_or(RETRY)).await;
    }
}

/// Reads a response's events one by one.
struct Events {
    reply: Reply,
    stream: EventStream,
    decoder: Option<Decoder>,
    limit: usize,
    /// Events that came in one read, the last one first.
    ready: Vec<SseEvent<'static>>,
}

impl Events {
    fn new(reply: Reply, limit: usize) -> Self {
        let decoder = Decoder::of(&reply.head.headers);
        // Whatever its length, an event has to be passed on whole.
        Self { reply, stream: EventStream::new(usize::MAX), decoder, limit, ready: Vec::new() }
    }

    async fn next(&mut self) -> Result<Option<SseEvent<'static>>, Failure> {
        loop {
            if let Some(event) = self.ready.pop() {
                return Ok(Some(event));
            }
            let Some(data) = next_data(&mut self.reply.body).await? else { return Ok(None) };
            let decoded = match &mut self.decoder {
                None => data,
                Some(decoder) => {
                    let decoded = decoder.decode(&data, self.limit);
                    decoded.map_err(|_| Failure::TooLarge(self.limit))?.into()
                }
            };
            let ready = &mut self.ready;
            self.stream.feed(&decoded, |piece| {
                if let Piece::Event(event) = piece {
                    ready.push(event);
                }
            });
            ready.reverse();
        }
    }
}

/// What an event says, where it is a message.
fn message<'a>(event: &'a SseEvent<'_>) -> Option<&'a [u8]> {
    let is_message = event.event.as_deref().is_none_or(|name| name == b"message" || name.is_empty());
    (is_message && !event.data.is_empty()).then_some(event.data.as_ref())
}

impl Core {
    /// Reads the stream that answers a POST, and what follows it where it is cut off.
    pub(super) async fn stream(&self, reply: Reply, call: &mut Call) -> Result<(), Failure> {
        let mut place = Place::default();
        let mut outcome = self.read_stream(reply, &mut place, call).await;
        let mut failures = 0;
        while call.requests.iter().any(|request| self.flight.is_waited_for(&request.key)) {
            if place.last.is_none() || call.is_modern || failures == FAILURES {
                return outcome.and(Err(Failure::Ended));
            }
            place.wait().await;
            place.has_moved = false;
            outcome = match self.get(place.last.clone()).await {
                Ok(reply) if reply.head.status == StatusCode::OK && reply.is_event_stream() => {
                    self.read_stream(reply, &mut place, call).await
                }
                Ok(_) => Err(Failure::Ended),
                Err(failure) => Err(failure),
            };
            failures = if place.has_moved { 0 } else { failures + 1 };
        }
        Ok(())
    }

    async fn read_stream(&self, reply: Reply, place: &mut Place, call: &mut Call) -> Result<(), Failure> {
        let mut events = Events::new(reply, self.max_message);
        while let Some(event) = events.next().await? {
            place.see(&event);
            if let Some(message) = message(&event) {
                self.deliver(message, Some(call)).await;
            }
        }
        self.pool.give_back(events.reply.sender);
        Ok(())
    }

    /// Asks for the server's own stream, or for the rest of another one.
    async fn get(&self, last: Option<HeaderValue>) -> Result<Reply, Failure> {
        let mut headers = lock(&self.agreed).get();
        if let Some(last) = last {
            headers.insert(LAST_EVENT_ID, last);
        }
        let path = lock(&self.path).clone();
        self.send(Method::GET, path, headers, Bytes::new()).await
    }

    /// Reads the server's own stream for as long as there is one. Told when that is known.
    pub(super) async fn listen(self: Arc<Self>, opened: oneshot::Sender<()>) {
        self.read_own_streams(opened).await;
        self.stream_is_over();
    }

    /// The server has no stream of its own, or none any more: nothing comes on it.
    pub(super) fn stream_is_over(&self) {
        self.has_stream.store(false, Ordering::Relaxed);
        self.flight.speaks();
    }

    /// Waits for answers that may come on the server's own stream.
    pub(super) async fn come_elsewhere(&self, call: &Call) -> Result<(), Failure> {
        loop {
            let changed = self.flight.changes();
            if !call.requests.iter().any(|request| self.flight.is_waited_for(&request.key)) {
                return Ok(());
            }
            if !self.has_stream.load(Ordering::Relaxed) {
                return Err(Failure::Ended);
            }
            changed.await;
        }
    }

    async fn read_own_streams(&self, opened: oneshot::Sender<()>) {
        let mut opened = Some(opened);
        let mut place = Place::default();
        let mut failures = 0;
        while failures <= FAILURES {
            place.has_moved = false;
            let reply = self.get(place.last.clone()).await;
            drop(opened.take());
            match reply {
                Ok(reply) if reply.head.status == StatusCode::OK && reply.is_event_stream() => {
                    // However it ended, it goes on where it can.
                    let _ = self.read_own(reply, &mut place).await;
                }
                // There is none, or none for us.
                Ok(reply) => {
                    let status = reply.head.status;
                    if status != StatusCode::METHOD_NOT_ALLOWED && status != StatusCode::NOT_FOUND {
                        self.warn(format!("the server gives no stream of its own (HTTP {status})"));
                    }
                    return;
                }
                Err(_) => {}
            }
            failures = if place.has_moved { 0 } else { failures + 1 };
            if place.last.is_none() {
                return;
            }
            place.wait().await;
        }
    }

    async fn read_own(&self, reply: Reply, place: &mut Place) -> Result<(), Failure> {
        let mut events = Events::new(reply, self.max_message);
        while let Some(event) = events.next().await? {
            place.see(&event);
            if let Some(message) = message(&event) {
                self.deliver(message, None).await;
            }
        }
        Ok(())
    }

    /// Opens the one stream of the older transport; where messages are posted, if there is such a stream.
    pub(super) async fn open_sse(self: &Arc<Self>) -> Option<PathAndQuery> {
        let path = lock(&self.path).clone();
        let headers: HeaderMap = lock(&self.agreed).get();
        let reply = self.send(Method::GET, path.clone(), headers, Bytes::new()).await.ok()?;
        if reply.head.status != StatusCode::OK || !reply.is_event_stream() {
            return None;
        }
        let mut events = Events::new(reply, self.max_message);
        let first = async {
            loop {
                let event = events.next().await.ok()??;
                if event.event.as_deref() == Some(b"endpoint") {
                    return Some(event);
                }
            }
        };
        let endpoint = timeout(FIRST_EVENT, first).await.ok()??;
        // An address on another origin is refused, as clients refuse it (F5).
        let endpoint = resolve(&endpoint.data, self.origin(), &path)?;
        *lock(&self.mode) = Mode::Sse(endpoint.clone());
        let task = tokio::spawn(Arc::clone(self).read_sse(events));
        *lock(&self.listening) = Some(task.abort_handle());
        Some(endpoint)
    }

    async fn read_sse(self: Arc<Self>, mut events: Events) {
        while let Ok(Some(event)) = events.next().await {
            if let Some(message) = message(&event) {
                self.deliver(message, None).await;
            }
        }
        *lock(&self.mode) = Mode::SseOver;
        for request in self.flight.all_end() {
            self.say(COMMON, Failure::StreamOver.line(&request.id, self.origin())).await;
        }
    }
}
