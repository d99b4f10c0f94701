//! Connections to the server, each used for one request at a time.

use std::{
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::{Duration, Instant},
};

use hyper::body::{Body, Bytes, Frame, SizeHint};

use super::super::lock;
use crate::transport::http::{
    connect::{ConnectError, Connector},
    origin::Origin,
    upstream::{self, Sender},
};

/// How long an idle connection is used again. Servers close theirs after some seconds (F10.18), and nothing that was
/// lost between the two is sent again.
const FRESH: Duration = Duration::from_secs(2);

/// How many idle connections are kept.
const MOST: usize = 16;

/// A body that is there.
#[derive(Debug, Default)]
pub(super) struct Whole(Option<Bytes>);

impl Whole {
    pub(super) fn new(bytes: Bytes) -> Self {
        Self((!bytes.is_empty()).then_some(bytes))
    }
}

impl Body for Whole {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}

/// All connections that are open and idle.
#[derive(Debug)]
pub(super) struct Pool {
    connector: Connector,
    idle: Mutex<Vec<(Sender<Whole>, Instant)>>,
}

impl Pool {
    pub(super) fn new(connector: Connector) -> Arc<Self> {
        Arc::new(Self { connector, idle: Mutex::default() })
    }

    pub(super) const fn origin(&self) -> &Origin {
        self.connector.origin()
    }

    /// A connection nobody uses, or one that many may.
    pub(super) async fn take(&self) -> Result<Sender<Whole>, ConnectError> {
        // What the server has closed meanwhile is known when the system was asked.
        tokio::task::yield_now().await;
        while let Some(sender) = self.pop() {
            if !sender.is_closed() {
                if let Some(shared) = sender.share() {
                    self.push(shared);
                }
                return Ok(sender);
            }
        }
        let (sender, driver) = upstream::open(&self.connector).await?;
        tokio::spawn(driver);
        if let Some(shared) = sender.share() {
            self.push(shared);
        }
        Ok(sender)
    }

    /// Takes a connection back whose last response was read to its end.
    pub(super) fn give_back(self: &Arc<Self>, mut sender: Sender<Whole>) {
        if sender.share().is_some() {
            // It is there already.
            return;
        }
        let pool = Arc::clone(self);
        tokio::spawn(async move {
            sender.ready().await;
            if !sender.is_closed() {
                pool.push(sender);
            }
        });
    }

    fn pop(&self) -> Option<Sender<Whole>> {
        let mut idle = lock(&self.idle);
        // A connection that is shared does not age.
        idle.retain(|(sender, since)| since.elapsed() < FRESH || sender.share().is_some());
        idle.pop().map(|(sender, _)| sender)
    }

    fn push(&self, sender: Sender<Whole>) {
        let mut idle = lock(&self.idle);
        if idle.len() < MOST {
            idle.push((sender, Instant::now()));
        }
    }
}
