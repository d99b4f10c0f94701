//! A request's body as its client sends it, or as it was read.

use std::{
    collections::VecDeque,
    pin::Pin,
    task::{Context, Poll},
};

use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};

/// A body that is still to be read, or has been.
pub(super) enum Inbound {
    Coming(Incoming),
    Read(Read),
}

/// What was read of a body, as it came, and what is left.
pub(super) struct Read {
    frames: VecDeque<Frame<Bytes>>,
    left: Option<Left>,
    size: SizeHint,
}

enum Left {
    Coming(Incoming),
    /// It broke off there: whoever reads on is told that once.
    Broken(hyper::Error),
}

impl Read {
    /// Reads a body, and gives all of it once more, or none where it has more bytes than that or breaks off.
    pub(super) async fn all(mut body: Incoming, limit: usize) -> (Self, Option<Vec<u8>>) {
        let size = body.size_hint();
        let mut frames = VecDeque::new();
        let mut whole = Vec::new();
        while !body.is_end_stream() {
            match std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
                None => break,
                Some(Ok(frame)) => {
                    let data = frame.data_ref().map(AsRef::as_ref).unwrap_or_default();
                    whole.extend_from_slice(data);
                    frames.push_back(frame);
                    if whole.len() > limit {
                        return (Self { frames, left: Some(Left::Coming(body)), size }, None);
                    }
                }
                Some(Err(error)) => {
                    return (Self { frames, left: Some(Left::Broken(error)), size }, None);
                }
            }
        }
        (Self { frames, left: None, size }, Some(whole))
    }
}

impl Body for Inbound {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        match &mut *self {
            Self::Coming(body) => Pin::new(body).poll_frame(cx),
            Self::Read(read) => match read.frames.pop_front() {
                Some(frame) => Poll::Ready(Some(Ok(frame))),
                None => match &mut read.left {
                    Some(Left::Coming(body)) => Pin::new(body).poll_frame(cx),
                    left => match left.take() {
                        Some(Left::Broken(error)) => Poll::Ready(Some(Err(error))),
                        _ => Poll::Ready(None),
                    },
                },
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Coming(body) => body.is_end_stream(),
            Self::Read(read) => {
                let is_over = match &read.left {
                    None => true,
                    Some(Left::Coming(body)) => body.is_end_stream(),
                    Some(Left::Broken(_)) => false,
                };
                read.frames.is_empty() && is_over
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Coming(body) => body.size_hint(),
            Self::Read(read) => read.size,
        }
    }
}
