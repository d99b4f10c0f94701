//! A request's body on its way to the server by way of hyper.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use hyper::body::{Body, Bytes, Frame, SizeHint};

use super::{Cut, inbound::Inbound, said::Said, tape::Lane};
use crate::transport::http::body::is_malformed;

/// A body that is recorded as it passes.
pub(super) struct RequestBody {
    inner: Inbound,
    said: Said,
}

impl RequestBody {
    pub(super) fn new(inner: Inbound, lane: Arc<Lane>, is_coded: bool) -> Self {
        let said = Said::new(lane, is_coded, !inner.is_end_stream());
        Self { inner, said }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let passes = match std::task::ready!(Pin::new(&mut self.inner).poll_frame(cx)) {
            Some(Ok(frame)) => {
                if let Some(data) = frame.data_ref() {
                    self.said.keep(data);
                }
                // Behind trailers nothing is asked for any more.
                let is_last = frame.is_trailers() || self.inner.is_end_stream();
                let passes = !is_last || self.said.has_ended() || self.said.end_written();
                return Poll::Ready(Some(if passes { Ok(frame) } else { Err(Cut) }));
            }
            None => self.said.has_ended() || self.said.end_written(),
            Some(Err(error)) => {
                self.said.is_given_up(is_malformed(&error));
                false
            }
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
