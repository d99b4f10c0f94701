//! A request on its way to the server, and what the server says because of it.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use hyper::{
    Method, Request,
    body::Bytes,
    header::{CONNECTION, CONTENT_LENGTH, HeaderValue, TRANSFER_ENCODING},
    http::{request, response},
};
use tokio::{sync::oneshot, time::timeout};

use super::{
    super::{
        super::{
            lock,
            reply::{Cut, Flow},
        },
        absent::Back,
        connection::Link,
        exchange,
        inbound::Inbound,
        response::{READ_ON, ResponseBody, is_events},
    },
    Stand, State,
    cutter::{Cutter, Part},
    way::{Broken, Way},
};
use crate::{
    cassette::model::StreamEnd,
    fault::step::{Output, ResponseHead},
    traffic::Lane,
    transport::http::body::{Part as BodyPart, next_part},
    wire::{http, lines::Unfinished},
};

/// So much of a response may wait for its client before more of it is read.
const MOST_WAITING: usize = 1 << 20;

/// Reads what the server says, whether or not a fault lets its client hear it.
pub(super) struct Forward {
    stand: Arc<Stand>,
    link: Arc<Link>,
    lane: Lane,
    /// Where it is a `GET`, of what path.
    got: Option<String>,
    flow: Arc<Flow>,
    /// Tells when a client comes back for what a fault has ended, which it can where there was an id.
    back: Back,
    gave_ids: AtomicBool,
}

impl Forward {
    pub(super) fn new(
        stand: &Arc<Stand>,
        link: &Arc<Link>,
        head: &request::Parts,
        lane: Lane,
        flow: &Arc<Flow>,
    ) -> Self {
        // The connection to the server stays as long as it is read from.
        link.reads_on();
        let is_call = head.method != Method::GET;
        let session = head.headers.get(http::SESSION_ID).filter(|_| is_call).map(HeaderValue::as_bytes);
        Self {
            stand: Arc::clone(stand),
            link: Arc::clone(link),
            lane,
            got: (head.method == Method::GET).then(|| head.uri.path().to_owned()),
            flow: Arc::clone(flow),
            back: link.front.tape.absent.add(session),
            gave_ids: AtomicBool::new(false),
        }
    }

    /// Sends the request, when it is no longer held, and reads until the response is whole or the client has left.
    pub(super) async fn run(
        self,
        request: Request<Inbound>,
        held: Option<oneshot::Receiver<()>>,
        left: oneshot::Receiver<()>,
    ) {
        let pass = async {
            let goes = match held {
                Some(held) => held.await.is_ok(),
                None => true,
            };
            if goes {
                self.pass(request).await;
            }
        };
        tokio::select! {
            biased;
            Ok(()) = left => {}
            () = pass => {}
        }
    }

    async fn pass(&self, request: Request<Inbound>) {
        let Ok(response) = exchange::forward(&self.link, request).await else {
            let end = Some(self.how_cut());
            self.with(|_, state| self.to(state, |way| way.ends(end)));
            return self.ends(Vec::new(), end);
        };
        let (head, body) = response.into_parts();
        let stream = is_events(&head.headers);
        let is_plain = self.with(|_, state| self.way(state).is_some_and(|way| way.is_plain));
        if stream {
            self.events(head, body, is_plain && self.got.is_none()).await;
        } else if is_plain {
            self.plain(head, body).await;
        } else {
            self.whole(head, body).await;
        }
    }

    /// A body that passes as it comes.
    async fn plain(&self, head: response::Parts, mut body: ResponseBody) {
        let told = told(&head, false);
        self.with(|stand, state| {
            self.to(state, |way| way.head(head, false));
            stand.server(state, Output::Head { lane: self.lane, head: told });
        });
        let mut kept = Unfinished::new(self.link.front.tape.max_message);
        let end = loop {
            match self.next(&mut body).await {
                Ok(Some(data)) => {
                    kept.keep(&data);
                    self.with(|_, state| self.to(state, |way| way.pass(data)));
                }
                Ok(None) => break None,
                Err(end) => break Some(end),
            }
        };
        let lane = self.lane;
        self.with(|stand, state| {
            let body = kept.end().ok().filter(|body| end.is_none() && !body.is_empty());
            self.to(state, |way| way.ends(end));
            body.into_iter().for_each(|bytes| stand.server(state, Output::Body { lane, bytes }));
        });
        self.ends(Vec::new(), end);
    }

    /// A body that something acts on.
    async fn whole(&self, mut head: response::Parts, mut body: ResponseBody) {
        let lane = self.lane;
        let known = told(&head, false);
        let told = Output::Head { lane, head: known.clone() };
        self.with(|_, state| {
            let extensions = std::mem::take(&mut head.extensions);
            self.to(state, |way| way.spelled(extensions));
        });
        let mut bytes = Vec::new();
        let limit = self.link.front.tape.max_message;
        let end = loop {
            match self.next(&mut body).await {
                Ok(Some(data)) => bytes.extend_from_slice(&data),
                Ok(None) => break None,
                Err(end) => break Some(end),
            }
            if bytes.len() > limit {
                self.say([told, Output::Raw { lane, bytes, goes_on: true }]);
                return self.too_long(body).await;
            }
        };
        self.with(|stand, state| {
            if end.is_some() {
                let broken = Broken { own: head, told: known, body: bytes.clone(), goes: false };
                self.to(state, |way| way.breaks(broken));
                state.live.server(stand.now(), told);
            } else {
                stand.server(state, told);
                let bytes = std::mem::take(&mut bytes);
                if !bytes.is_empty() {
                    stand.server(state, Output::Body { lane, bytes });
                }
            }
            self.ends_in(stand, state, bytes, end);
        });
    }

    /// The rest of a body that is too long to be held.
    async fn too_long(&self, mut body: ResponseBody) {
        let lane = self.lane;
        let end = loop {
            match self.next(&mut body).await {
                Ok(Some(data)) => self.say([Output::Raw { lane, bytes: data.into(), goes_on: true }]),
                Ok(None) => break None,
                Err(end) => break Some(end),
            }
        };
        self.say([Output::Raw { lane, bytes: Vec::new(), goes_on: false }]);
        self.ends(Vec::new(), end);
    }

    /// An event stream. What a `GET` gives is plain unless it is one of HTTP+SSE, on which the answers to requests come.
    async fn events(&self, mut head: response::Parts, mut body: ResponseBody, mut is_plain: bool) {
        let lane = self.lane;
        let told = told(&head, true);
        self.with(|stand, state| {
            if let Some(way) = self.way(state) {
                if is_plain {
                    way.head(head, true);
                } else {
                    way.is_plain = false;
                    way.spelled(std::mem::take(&mut head.extensions));
                }
            }
            stand.server(state, Output::Head { lane, head: told });
        });
        let mut cutter = Cutter::new(self.link.front.tape.max_message);
        let mut held = Vec::new();
        let mut is_first = self.got.is_some();
        let end = loop {
            let data = match self.next(&mut body).await {
                Ok(Some(data)) => data,
                Ok(None) => break None,
                Err(end) => break Some(end),
            };
            let mut parts = Vec::new();
            cutter.feed(&data, |part, bytes| parts.push((part, bytes)));
            if parts.iter().any(|(part, _)| matches!(part, Part::Event(event) if event.id.is_some())) {
                self.gave_ids.store(true, Ordering::Relaxed);
            }
            self.with(|stand, state| {
                if is_plain {
                    self.to(state, |way| way.pass(data));
                    for (part, _) in parts {
                        if let Part::Event(event) = part {
                            stand.server(state, Output::Event { lane, event });
                        }
                    }
                    return;
                }
                for (part, bytes) in parts {
                    held.extend_from_slice(&bytes);
                    if let Part::Event(event) = &part
                        && std::mem::take(&mut is_first)
                    {
                        is_plain = event.event.as_deref() != Some(b"endpoint");
                        if !is_plain {
                            let path = self.got.as_deref().unwrap_or_default();
                            let endpoint = http::resolve(path, event.data.trim_ascii());
                            state.endpoints.insert(endpoint, lane);
                        }
                    }
                    let Some(way) = state.ways.get_mut(&lane.0) else { continue };
                    let bytes = std::mem::take(&mut held);
                    let output = match part {
                        Part::Event(event) => {
                            way.comes(event.clone(), bytes);
                            Output::Event { lane, event }
                        }
                        // It must not come between the pieces of a message, nor before the head.
                        Part::Nothing if way.has_begun && !state.live.owes(lane) => {
                            way.pass(bytes.into());
                            continue;
                        }
                        Part::Nothing => {
                            held = bytes;
                            continue;
                        }
                        Part::Bytes { goes_on } => Output::Raw { lane, bytes, goes_on },
                    };
                    stand.server(state, output);
                }
                if is_plain && let Some(way) = self.way(state) {
                    held.extend(cutter.rest());
                    way.is_plain = true;
                    way.pass(std::mem::take(&mut held).into());
                }
            });
        };
        if is_plain {
            self.with(|_, state| self.to(state, |way| way.ends(end)));
        } else {
            held.extend(cutter.rest());
        }
        self.ends(held, end);
    }

    /// The next bytes of a body; none at its end.
    async fn next(&self, body: &mut ResponseBody) -> Result<Option<Bytes>, StreamEnd> {
        self.flow.ebbs(MOST_WAITING).await;
        loop {
            let part = tokio::select! {
                biased;
                () = self.back.comes() => {
                    if self.is_for_nobody() && self.gave_ids.load(Ordering::Relaxed) {
                        body.let_go();
                        return Err(StreamEnd::Cut);
                    }
                    continue;
                }
                part = timeout(READ_ON, next_part(body)) => part,
            };
            match part {
                Ok(Ok(Some(BodyPart::Data(data)))) => return Ok(Some(data)),
                Ok(Ok(Some(BodyPart::Trailers(trailers)))) => {
                    self.with(|_, state| self.to(state, |way| way.ends_with(trailers)));
                }
                Ok(Ok(None)) => return Ok(None),
                Ok(Err(Cut)) => return Err(self.how_cut()),
                // A client whose response a fault has ended is read on for only so long.
                Err(_) if self.is_for_nobody() => return Err(StreamEnd::Cut),
                Err(_) => {}
            }
        }
    }

    /// Whether a fault has ended the response, or its client has left.
    fn is_for_nobody(&self) -> bool {
        self.with(|_, state| self.way(state).is_none_or(|way| way.has_ended))
    }

    /// How the server cut a response off.
    fn how_cut(&self) -> StreamEnd {
        if self.link.control.resets() { StreamEnd::Reset } else { StreamEnd::Cut }
    }

    fn say<const N: usize>(&self, outputs: [Output; N]) {
        self.with(|stand, state| outputs.into_iter().for_each(|output| stand.server(state, output)));
    }

    /// The server has ended the response.
    fn ends(&self, partial: Vec<u8>, end: Option<StreamEnd>) {
        self.with(|stand, state| self.ends_in(stand, state, partial, end));
    }

    fn ends_in(&self, stand: &Stand, state: &mut State, partial: Vec<u8>, end: Option<StreamEnd>) {
        self.to(state, |way| way.is_whole = true);
        stand.server(state, Output::EndLane { lane: self.lane, partial, end });
    }

    fn way<'a>(&self, state: &'a mut State) -> Option<&'a mut Way> {
        state.ways.get_mut(&self.lane.0)
    }

    /// Does this to the response, unless its client has left.
    fn to(&self, state: &mut State, act: impl FnOnce(&mut Way)) {
        self.way(state).map(act).unwrap_or_default();
    }

    fn with<R>(&self, act: impl FnOnce(&Stand, &mut State) -> R) -> R {
        act(&self.stand, &mut lock(&self.stand.state))
    }
}

impl Drop for Forward {
    fn drop(&mut self) {
        self.with(|_, state| state.is_read(self.lane));
        self.link.has_read_on();
    }
}

/// A head as faults know it, without framing.
fn told(head: &response::Parts, stream: bool) -> ResponseHead {
    let headers = head.headers.iter();
    let headers =
        headers.filter(|(name, _)| ![CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING].contains(*name));
    ResponseHead {
        status: head.status.as_u16(),
        headers: headers
            .map(|(name, value)| (name.to_string().into(), value.as_bytes().to_vec().into()))
            .collect(),
        stream,
    }
}
