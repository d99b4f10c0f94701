//! A response's body on its way to the client.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use tokio::{
    sync::Notify,
    time::{Instant, Sleep, sleep},
};

use super::{Passing, Piece};
use crate::{cassette::model::StreamEnd, replay::KEEP_ALIVE, transport::http::socket::Control};

/// What a client is sent.
pub(in crate::proxy) enum ResponseBody {
    Whole(Option<Bytes>),
    Passing(Box<Under>),
}

/// A body that is under way.
pub(in crate::proxy) struct Under {
    passing: Passing,
    control: Arc<Control>,
    keeps_alive: bool,
    /// Of an event stream that has waited: when a comment goes.
    keep_alive: Option<Pin<Box<Sleep>>>,
    /// It has ended, in good order or not.
    ending: Option<Option<StreamEnd>>,
    /// A message is on its way in pieces: no comment may come between.
    is_amid: bool,
    /// Our side of the connection ends with it.
    half_closes: bool,
}

/// The response is cut off: it was so when it was recorded, by its server, or by a fault.
#[derive(Debug, thiserror::Error)]
#[error("the response is cut off here")]
pub(in crate::proxy) struct Cut;

/// How much of a response waits for its client.
#[derive(Debug, Default)]
pub(in crate::proxy) struct Flow {
    waiting: AtomicUsize,
    gone: Notify,
}

impl Flow {
    /// So much more waits.
    pub(in crate::proxy) fn adds(&self, size: usize) {
        self.waiting.fetch_add(size, Ordering::Relaxed);
    }

    fn goes(&self, size: usize) {
        self.waiting.fetch_sub(size, Ordering::Relaxed);
        self.gone.notify_one();
    }

    /// Waits until no more than this waits.
    pub(in crate::proxy) async fn ebbs(&self, most: usize) {
        while self.waiting.load(Ordering::Relaxed) > most {
            self.gone.notified().await;
        }
    }
}

impl ResponseBody {
    pub(super) fn passing(passing: Passing, control: Arc<Control>, is_stream: bool) -> Self {
        Self::Passing(Box::new(Under {
            keeps_alive: is_stream && passing.keeps_alive,
            passing,
            control,
            keep_alive: None,
            ending: None,
            is_amid: false,
            half_closes: false,
        }))
    }

    /// Our side of the connection ends with it, and the client is still heard.
    pub(in crate::proxy) fn half_closes(&mut self, control: &Control) {
        match self {
            Self::Whole(_) => control.half_close(),
            Self::Passing(under) => under.half_closes = true,
        }
    }
}

impl Under {
    fn poll_frame(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        loop {
            if let Some(end) = self.ending {
                let Some(end) = end else {
                    if self.half_closes {
                        self.control.half_close();
                    }
                    return Poll::Ready(None);
                };
                ready!(self.control.poll_written(cx));
                if end == StreamEnd::Reset {
                    self.control.reset_at_end();
                }
                return Poll::Ready(Some(Err(Cut)));
            }
            match self.passing.poll_next(cx) {
                Poll::Ready(Some(Piece::Data { bytes, goes_on })) => {
                    self.is_amid = goes_on;
                    self.passing.flow.iter().for_each(|flow| flow.goes(bytes.len()));
                    return self.send(bytes);
                }
                Poll::Ready(Some(Piece::Trailers(trailers))) => {
                    self.control.writes();
                    return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
                }
                Poll::Ready(Some(Piece::HalfClose)) => self.half_closes = true,
                Poll::Ready(Some(Piece::Head { .. })) => {}
                Poll::Ready(Some(Piece::End { end, partial })) => {
                    self.passing.place.ends();
                    self.ending = Some(end);
                    if !partial.is_empty() {
                        return self.send(partial.into());
                    }
                }
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Pending => {
                    if !self.keeps_alive || self.is_amid {
                        return Poll::Pending;
                    }
                    // Most streams have ended before anybody has to wait.
                    let soon = || Box::pin(sleep(Duration::from_micros(KEEP_ALIVE)));
                    let keep_alive = self.keep_alive.get_or_insert_with(soon);
                    ready!(keep_alive.as_mut().poll(cx));
                    return self.send(Bytes::from_static(b": keep-alive\n\n"));
                }
            }
        }
    }

    fn send(&mut self, data: Bytes) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        if let Some(keep_alive) = &mut self.keep_alive {
            keep_alive.as_mut().reset(Instant::now() + Duration::from_micros(KEEP_ALIVE));
        }
        self.control.writes();
        Poll::Ready(Some(Ok(Frame::data(data))))
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        match &mut *self {
            Self::Whole(bytes) => {
                let bytes = bytes.take().filter(|bytes| !bytes.is_empty());
                Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
            }
            Self::Passing(under) => under.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(bytes) if bytes.as_ref().is_none_or(Bytes::is_empty))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Passing(_) => SizeHint::default(),
        }
    }
}
