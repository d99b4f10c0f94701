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
    header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue},
};
use tokio::time::timeout;

use super::{
    Cut,
    connection::Link,
    endpoint::Endpoint,
    heard::{End, Heard, is_event_stream},
    is_reset,
    tape::Lane,
};
use crate::transport::http::{
    headers::{codings, pairs},
    upstream::Answer,
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
    heard: Heard,
    endpoint: Option<Box<Endpoint>>,
    ready: VecDeque<Frame<Bytes>>,
    end: Option<End>,
}

/// Whether a body with this head is an event stream.
pub(super) fn is_events(headers: &HeaderMap) -> bool {
    is_event_stream(content_type(headers))
}

fn content_type(headers: &HeaderMap) -> Option<&[u8]> {
    headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes)
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
        let upstream = endpoint.as_ref().map(|_| link.front.upstream.origin.clone());
        let codings: Vec<&[u8]> = codings(&pairs(headers)).collect();
        let has_length = headers.contains_key(CONTENT_LENGTH);
        let heard = Heard::new(Arc::clone(&lane), has_length, content_type(headers), &codings, upstream);
        let endpoint = endpoint.map(Box::new);
        let mut passing = Passing { inner, lane, link, heard, endpoint, ready: VecDeque::new(), end: None };
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

impl ResponseBody {
    /// Nobody hears the rest of it, and it is not read on.
    pub(super) fn let_go(&mut self) {
        let Self::Passing(passing) = self else { return };
        let Some(mut passing) = passing.take() else { return };
        passing.heard.breaks_off();
        passing.lane.client_left();
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
        self.heard.feed(&data);
        let data = match &mut self.endpoint {
            Some(endpoint) => endpoint.feed(data),
            None => data,
        };
        self.pass(data);
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
        self.heard.ends(end);
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
        let back = self.lane.is_alone();
        while self.end.is_none() {
            let taken = timeout(READ_ON, std::future::poll_fn(|cx| next(&mut self, cx)));
            tokio::select! {
                biased;
                () = back.comes() => break,
                taken = taken => if taken.is_err() {
                    break;
                },
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
        let Some(mut passing) = passing.take() else { return };
        passing.link.control.awaits_head();
        if !passing.lane.goes_on_alone() {
            // Before it is told that nobody hears the rest.
            passing.heard.breaks_off();
        }
        if passing.end.is_none() && passing.lane.client_left() && !passing.link.is_closing() {
            passing.link.reads_on();
            tokio::spawn(passing.read_on());
        }
    }
}
