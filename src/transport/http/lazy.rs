//! hyper on the connections that have something for it.
//!
//! Where all that a client asks is answered before hyper would see it, hyper need not be there: it would be asked in
//! vain each time that something comes, and keeps room for what it never reads.

use std::{
    mem::MaybeUninit,
    pin::Pin,
    task::{Context, Poll},
};

use hyper::{
    body::{Body, Incoming},
    server::conn::http1::{self, Connection},
    service::HttpService,
};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{server::BoxError, socket::Socket};

/// How much is read at a time as long as hyper is not there.
const ROOM: usize = 8 << 10;

/// A client's connection; ends when that does.
pub(super) struct Lazy<'a, S: HttpService<Incoming>> {
    builder: &'a http1::Builder,
    /// Until there is something for hyper.
    waiting: Option<(Socket, S)>,
    connection: Option<Http1<S>>,
}

type Http1<S> = Pin<Box<Connection<TokioIo<Socket>, S>>>;

/// Nothing in it is ever pinned but what is in a box.
impl<S: HttpService<Incoming>> Unpin for Lazy<'_, S> {}

impl<'a, S, B> Lazy<'a, S>
where
    S: HttpService<Incoming, ResBody = B>,
    S::Error: Into<BoxError>,
    B: Body + 'static,
    B::Error: Into<BoxError>,
{
    /// Whatever is for hyper goes to this service.
    pub(super) const fn new(builder: &'a http1::Builder, socket: Socket, service: S) -> Self {
        Self { builder, waiting: Some((socket, service)), connection: None }
    }

    /// The request that is under way is the last.
    pub(super) fn shuts_down(&mut self) {
        self.begin();
        if let Some(connection) = &mut self.connection {
            connection.as_mut().graceful_shutdown();
        }
    }

    /// It is hyper's from now on.
    fn begin(&mut self) {
        if let Some((socket, service)) = self.waiting.take() {
            self.connection = Some(Box::pin(self.builder.serve_connection(TokioIo::new(socket), service)));
        }
    }
}

impl<S, B> Future for Lazy<'_, S>
where
    S: HttpService<Incoming, ResBody = B>,
    S::Error: Into<BoxError>,
    B: Body + 'static,
    B::Error: Into<BoxError>,
{
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if let Some((socket, _)) = &mut self.waiting {
            let mut room = [const { MaybeUninit::uninit() }; ROOM];
            let mut read = ReadBuf::uninit(&mut room);
            if Pin::new(&mut *socket).poll_read(cx, &mut read).is_pending() {
                // What the system had no room for. An error is found again by whoever reads.
                let _ = Pin::new(socket).poll_flush(cx);
                return Poll::Pending;
            }
            // An end, and an error, is hyper's too.
            socket.read_ahead(read.filled());
            self.begin();
        }
        match &mut self.connection {
            Some(connection) => connection.as_mut().poll(cx).map(|_| ()),
            None => Poll::Pending,
        }
    }
}
