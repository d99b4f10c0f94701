//! A response's body on its way to the client.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use hyper::{
    HeaderMap,
    body::{Body, Bytes, Frame, Incoming, SizeHint},
    header::CONTENT_TYPE,
};
use tokio::time::timeout;

use super::{
    Cut,
    connection::Link,
    endpoint::{self, Endpoint},
    is_reset,
    item::Item,
    tape::Lane,
};
use crate::{
    traffic::Direction,
    transport::http::{
        coding::{Decoder, Undecodable},
        headers::{is_coded, is_type},
        upstream::Answer,
    },
    wire::{
        lines::Unfinished,
        sse::{EventStream, Piece},
    },
};

/// How long a call whose client left is read on without a byte.
pub(super) const READ_ON: Duration = Duration::from_secs(300);

/// How much is taken in before it is passed on, where the server is faster than we are.
const BATCH: usize = 256 << 10;

/// What the client is sent.
pub(super) enum ResponseBody {
    /// Words of ours, or a document that was changed.
    Own(Option<Bytes>),
    /// What the server sends.
    Passing(Option<Box<Passing>>),
}

/// A body that is recorded as it passes.
pub(super) struct Passing {
    inner: Incoming,
    lane: Arc<Lane>,
    link: Arc<Link>,
    kind: Kind,
    coded: Option<Box<Coded>>,
    endpoint: Option<Box<Endpoint>>,
    ready: VecDeque<Frame<Bytes>>,
    end: Option<End>,
}

/// How a body is recorded.
enum Kind {
    /// Not at all.
    Unseen,
    /// Event by event.
    Events(EventStream),
    /// When it is whole.
    Whole(Unfinished),
    /// By size and hash: it is compressed in a way that nobody asked for, so nothing in it could be hidden.
    Measured(Unfinished),
}

/// A body that is compressed although nobody asked for that, but can be read.
struct Coded {
    decoder: Decoder,
    /// What stands for it, should it turn out to be something else.
    measured: Unfinished,
}

impl Kind {
    /// How a body with this head is recorded.
    fn of(headers: &HeaderMap, lane: &Lane) -> Self {
        if !lane.records() {
            Self::Unseen
        } else if is_coded(headers) && Decoder::of(headers).is_none() {
            Self::Measured(Unfinished::new(0))
        } else if is_events(headers) {
            Self::Events(EventStream::new(lane.max_message()))
        } else {
            Self::Whole(Unfinished::new(lane.max_message()))
        }
    }

    /// How much of a compressed body one read may make.
    fn room(&self, max_message: usize) -> usize {
        match self {
            Self::Whole(body) => max_message.saturating_sub(body.so_far().len()),
            Self::Unseen | Self::Events(_) | Self::Measured(_) => max_message,
        }
    }
}

/// Whether a body with this head is an event stream.
pub(super) fn is_events(headers: &HeaderMap) -> bool {
    is_type(headers.get(CONTENT_TYPE), "text/event-stream")
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Clean,
    Cut {
        reset: bool,
    },
    /// The recording cannot be written, and that is fatal.
    Refused,
}

impl ResponseBody {
    /// A body that comes from the server. What was noted of its head is written with what comes first.
    pub(super) fn passing(
        inner: Incoming,
        lane: Arc<Lane>,
        link: Arc<Link>,
        headers: &HeaderMap,
        endpoint: Option<Endpoint>,
    ) -> Result<Self, Cut> {
        let is_over = inner.is_end_stream();
        let kind = Kind::of(headers, &lane);
        let decoder = if lane.records() { Decoder::of(headers) } else { None };
        let coded = decoder.map(|decoder| Box::new(Coded { decoder, measured: Unfinished::new(0) }));
        let endpoint = endpoint.map(Box::new);
        let mut passing =
            Passing { inner, lane, link, kind, coded, endpoint, ready: VecDeque::new(), end: None };
        if is_over {
            // hyper does not ask an empty body for anything.
            passing.ends(End::Clean);
            if !passing.lane.write() {
                return Err(Cut);
            }
        }
        Ok(Self::Passing(Some(Box::new(passing))))
    }
}

impl Passing {
    /// Takes in what the server has sent, writes what it ends, and has it ready to be passed on.
    fn take_in(&mut self, cx: &mut Context<'_>) {
        let (mut size, mut is_driven) = (0, false);
        while self.end.is_none() && size < BATCH {
            match Pin::new(&mut self.inner).poll_frame(cx) {
                // What came behind it goes with it.
                Poll::Pending if !is_driven && self.link.drive() => is_driven = true,
                Poll::Pending => break,
                Poll::Ready(None) => self.ends(End::Clean),
                Poll::Ready(Some(Err(error))) => self.ends(End::Cut { reset: is_reset(&error) }),
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => {
                        (size, is_driven) = (size + data.len(), false);
                        self.feed(data);
                        if self.inner.is_end_stream() {
                            self.ends(End::Clean);
                        }
                    }
                    Err(trailers) => self.ready.push_back(trailers),
                },
            }
        }
        if !self.lane.write() {
            self.ready.clear();
            self.end = Some(End::Refused);
        }
    }

    fn feed(&mut self, data: Bytes) {
        match &mut self.coded {
            None => self.keep(&data),
            Some(coded) => {
                coded.measured.keep(&data);
                let limit = self.kind.room(self.lane.max_message());
                let decoded = coded.decoder.decode(&data, limit);
                self.keep_decoded(decoded);
            }
        }
        let data = match &mut self.endpoint {
            Some(endpoint) => endpoint.feed(data),
            None => data,
        };
        self.pass(data);
    }

    /// Records what has come.
    fn keep(&mut self, data: &[u8]) {
        match &mut self.kind {
            Kind::Unseen => {}
            Kind::Whole(body) | Kind::Measured(body) => body.keep(data),
            Kind::Events(stream) => stream.feed(data, |piece| {
                self.lane.note(|| match piece {
                    Piece::Event(event) if self.endpoint.is_some() => {
                        Item::Event(endpoint::recorded(event, &self.link.front.upstream.origin))
                    }
                    Piece::Event(event) => Item::Event(event),
                    Piece::Oversize(measured) => Item::Oversize(Direction::ToClient, measured),
                });
            }),
        }
    }

    fn keep_decoded(&mut self, decoded: Result<Vec<u8>, Undecodable>) {
        match decoded {
            Ok(decoded) => self.keep(&decoded),
            Err(Undecodable) => {
                if let Some(coded) = self.coded.take() {
                    self.kind = Kind::Measured(coded.measured);
                }
            }
        }
    }

    fn pass(&mut self, data: Bytes) {
        if !data.is_empty() {
            self.ready.push_back(Frame::data(data));
        }
    }

    fn ends(&mut self, end: End) {
        self.end = Some(end);
        if let Some(rest) = self.endpoint.as_mut().map(|endpoint| endpoint.finish()) {
            self.pass(rest);
        }
        if end == End::Clean
            && let Some(coded) = &mut self.coded
        {
            let rest = coded.decoder.finish();
            self.keep_decoded(rest);
        }
        let partial = match &mut self.kind {
            Kind::Unseen => None,
            Kind::Events(stream) => stream.unfinished(),
            Kind::Whole(body) | Kind::Measured(body) if !body.has_begun() => None,
            Kind::Measured(body) => {
                if let Err(measured) = body.end() {
                    self.lane.note(|| Item::unreadable(Direction::ToClient, measured));
                }
                None
            }
            Kind::Whole(body) if end != End::Clean => Some(body.so_far().to_vec()),
            Kind::Whole(body) => {
                self.lane.note(|| match body.end() {
                    Ok(body) => Item::ResponseBody(body),
                    Err(measured) => Item::Oversize(Direction::ToClient, measured),
                });
                None
            }
        };
        if let Some(partial) = partial {
            self.lane.note(|| Item::Partial(Direction::ToClient, partial));
        }
        self.lane.note(|| match end {
            End::Cut { reset } => Item::Broken { reset },
            End::Clean | End::Refused => Item::End,
        });
    }

    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        if self.ready.is_empty() && self.end.is_none() {
            self.take_in(cx);
        }
        if let Some(frame) = self.ready.pop_front() {
            self.link.control.writes();
            return Poll::Ready(Some(Ok(frame)));
        }
        match self.end {
            None => Poll::Pending,
            Some(End::Clean) => Poll::Ready(None),
            Some(End::Cut { reset }) => {
                std::task::ready!(self.link.control.poll_written(cx));
                if reset {
                    self.link.control.reset_at_end();
                }
                Poll::Ready(Some(Err(Cut)))
            }
            Some(End::Refused) => Poll::Ready(Some(Err(Cut))),
        }
    }

    /// Reads on for a client that left.
    async fn read_on(mut self) {
        let next = |passing: &mut Self, cx: &mut Context<'_>| {
            passing.take_in(cx);
            let has_more = !passing.ready.is_empty() || passing.end.is_some();
            passing.ready.clear();
            if has_more { Poll::Ready(()) } else { Poll::Pending }
        };
        while self.end.is_none() {
            let taken = timeout(READ_ON, std::future::poll_fn(|cx| next(&mut self, cx)));
            if taken.await.is_err() {
                break;
            }
        }
        self.link.has_read_on();
    }
}

/// Reads on, whose client left before its response began.
pub(super) async fn read_on_from_head(response: Answer, lane: Arc<Lane>, link: Arc<Link>) {
    if let Ok(Ok(response)) = timeout(READ_ON, response).await
        && let Ok(mut body) = super::exchange::record(response, &lane, &link)
        && let ResponseBody::Passing(passing) = &mut body
        && let Some(passing) = passing.take()
    {
        // It counts itself out.
        return passing.read_on().await;
    }
    link.has_read_on();
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        match &mut *self {
            Self::Own(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Passing(Some(passing)) => passing.poll_frame(cx),
            Self::Passing(None) => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Own(bytes) => bytes.is_none(),
            Self::Passing(Some(passing)) => passing.ready.is_empty() && passing.end == Some(End::Clean),
            Self::Passing(None) => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Own(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            // An address of another length changes the whole.
            Self::Passing(Some(passing)) if passing.endpoint.is_none() => passing.inner.size_hint(),
            Self::Passing(_) => SizeHint::default(),
        }
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        let Self::Passing(passing) = self else { return };
        let Some(passing) = passing.take() else { return };
        passing.link.control.awaits_head();
        if passing.end.is_none() && passing.lane.client_left() && !passing.link.is_closing() {
            passing.link.reads_on();
            tokio::spawn(passing.read_on());
        }
    }
}
