//! A request's body on its way to the server.

use std::{
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
    time::Duration,
};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use tokio::time::{Sleep, sleep};

use super::{super::lock, Cut, inbound::Inbound, said::Said, tape::Lane};

/// How long a client that asked whether to go on is kept waiting for the server's word. Clients themselves wait about
/// that long (RFC 9110, 10.1.1: they must not wait for ever, since servers of HTTP/1.0 never say it).
const PATIENCE: Duration = Duration::from_secs(1);

/// A body that is recorded as it passes.
pub(super) struct RequestBody {
    inner: Inbound,
    said: Said,
    go_on: Option<(Arc<GoOn>, Pin<Box<Sleep>>)>,
}

/// Whether the server wants the body of a request with `Expect: 100-continue`.
///
/// hyper tells the client to go on as soon as the body is asked for, so it must not be asked for before.
#[derive(Debug, Default)]
pub(super) struct GoOn(Mutex<(bool, Option<Waker>)>);

impl GoOn {
    pub(super) fn say(&self) {
        let mut said = lock(&self.0);
        said.0 = true;
        if let Some(waker) = said.1.take() {
            waker.wake();
        }
    }

    fn poll_said(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut said = lock(&self.0);
        if said.0 {
            return Poll::Ready(());
        }
        said.1 = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl RequestBody {
    pub(super) fn new(inner: Inbound, lane: Arc<Lane>, is_coded: bool, go_on: Option<Arc<GoOn>>) -> Self {
        let go_on = go_on.map(|go_on| (go_on, Box::pin(sleep(PATIENCE))));
        Self { inner, said: Said::new(lane, is_coded), go_on }
    }

    /// Whether the client is to send its body.
    fn poll_wanted(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if let Some((go_on, patience)) = &mut self.go_on {
            if go_on.poll_said(cx).is_pending() && patience.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.go_on = None;
        }
        Poll::Ready(())
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        std::task::ready!(self.poll_wanted(cx));
        let passes = match std::task::ready!(Pin::new(&mut self.inner).poll_frame(cx)) {
            Some(Ok(frame)) => {
                if let Some(data) = frame.data_ref() {
                    self.said.keep(data);
                }
                let passes = !self.inner.is_end_stream() || self.said.end();
                return Poll::Ready(Some(if passes { Ok(frame) } else { Err(Cut) }));
            }
            None => self.said.has_ended() || self.said.end(),
            Some(Err(_)) => false,
        };
        Poll::Ready((!passes).then_some(Err(Cut)))
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
