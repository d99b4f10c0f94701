//! HTTP on a client's connection: one way to take it in, and one set of limits.

use std::{
    error::Error, future::poll_fn, io, net::SocketAddr, pin::pin, sync::Arc, task::Poll, time::Duration,
};

use hyper::{
    body::{Body, Incoming},
    rt::bounds::Http2ServerConnExec,
    server::conn::{http1, http2},
    service::HttpService,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{
    net::TcpStream,
    sync::watch,
    time::{interval, sleep},
};

use super::{
    MAX_HEAD, MAX_HEADERS,
    apart::{Apart, this_task},
    guard::Guard,
    socket::{Accepted, Control, Socket},
    tls::Acceptor,
};

/// How many requests may be under way on one connection (HTTP/2): a client opens streams that stay open.
const MAX_STREAMS: u32 = 1024;

/// What a client begins with that speaks HTTP/2 (RFC 9113, 3.4).
const HTTP2: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// What is told of a client that begins with it later.
const NO_HTTP2: &str = "tapedeck: a client that had begun with HTTP/1.1, or in pieces, went on with HTTP/2, which comes first and at once";

/// How long nobody is taken in where that has failed: descriptors that are used up come back.
const PAUSE: Duration = Duration::from_millis(10);

/// What a body fails with.
type BoxError = Box<dyn Error + Send + Sync>;

/// The next one who connects; where that fails, who connects later: a client that left again is none.
pub async fn next<T, F>(mut accept: impl FnMut() -> F) -> T
where
    F: Future<Output = io::Result<T>>,
{
    loop {
        match accept().await {
            Ok(accepted) => return accepted,
            Err(_) => sleep(PAUSE).await,
        }
    }
}

/// How clients speak of us: the scheme of our addresses.
pub const fn scheme(acceptor: Option<&Acceptor>) -> &'static str {
    if acceptor.is_some() { "https" } else { "http" }
}

/// Whom a front that listens there serves, besides these hosts and pages of these origins.
pub fn guard(address: SocketAddr, hosts: Vec<String>, origins: Vec<String>) -> Guard {
    Guard { is_open: !address.ip().is_loopback(), hosts, origins }
}

/// The connection of a client, ready to be spoken on. None where TLS is not agreed on: nothing was asked yet, and
/// whoever does not speak it cannot be told more. Where the client has not just left, `is_refused` is told why.
pub async fn open(
    stream: TcpStream,
    acceptor: Option<&Acceptor>,
    is_refused: impl FnOnce(&str),
) -> Option<Accepted> {
    // Without it small messages would wait for acknowledgements; where it fails they do.
    let _ = stream.set_nodelay(true);
    match acceptor {
        None if begins_http2(&stream).await => Some(Accepted::Prior(stream)),
        None => Some(Accepted::Plain(stream)),
        Some(acceptor) => match acceptor.accept(stream).await {
            Ok(stream) => Some(stream),
            Err(error) => {
                if error.kind() == io::ErrorKind::InvalidData {
                    is_refused(&error.to_string());
                }
                None
            }
        },
    }
}

/// Whether a client's first words are those of HTTP/2, which come in one piece.
async fn begins_http2(stream: &TcpStream) -> bool {
    let mut first = [0; HTTP2.len()];
    stream.peek(&mut first).await.is_ok_and(|_| first == *HTTP2)
}

/// HTTP/1.1 as it is spoken with clients.
pub fn http1() -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder.auto_date_header(false).max_headers(MAX_HEADERS).max_buf_size(MAX_HEAD).header_read_timeout(None);
    builder
}

/// Serves a client whose requests come one after the other, until its connection ends or it has taken longer than
/// `head_time` for a head. When `closing` says so, or `is_over` says once that what stands behind it is, the request
/// that is under way is the last. Whether that was said.
pub async fn serve_http1<S, B>(
    builder: &http1::Builder,
    (socket, control): (Socket, Arc<Control>),
    service: S,
    mut closing: watch::Receiver<bool>,
    head_time: Duration,
    mut is_over: impl FnMut() -> bool,
) -> bool
where
    S: HttpService<Incoming, ResBody = B>,
    S::Error: Into<BoxError>,
    B: Body + 'static,
    B::Error: Into<BoxError>,
{
    let task = this_task().await;
    let connection = Box::pin(builder.serve_connection(TokioIo::new(socket), service));
    let mut connection = Apart::new(connection, task.clone());
    let (closes, is_late) = (pin!(closing.changed()), pin!(is_late(&control, head_time)));
    let (mut closes, mut is_late) = (Apart::new(closes, task.clone()), Apart::new(is_late, task));
    let mut was_over = false;
    poll_fn(|_| {
        // First, so that what it brings is there when the client is served.
        if is_over() {
            was_over = true;
            connection.tell(|connection| connection.as_mut().graceful_shutdown());
        }
        if let Poll::Ready(ended) = connection.poll() {
            if ended.is_err_and(|error| error.is_parse_version_h2()) {
                control.is_refused(NO_HTTP2.to_owned());
            }
            return Poll::Ready(was_over);
        }
        if is_late.poll().is_ready() {
            control.is_refused(too_slow(head_time));
            return Poll::Ready(was_over);
        }
        if matches!(closes.poll(), Poll::Ready(Ok(()))) {
            connection.tell(|connection| connection.as_mut().graceful_shutdown());
        }
        Poll::Pending
    })
    .await
}

/// What is told of a client that has taken longer than this for a head.
pub fn too_slow(head_time: Duration) -> String {
    format!("tapedeck: the head of a request was not whole within {} seconds", head_time.as_secs_f32())
}

/// Waits until a client has taken too long for a head.
async fn is_late(control: &Control, head_time: Duration) {
    let mut ticks = interval((head_time / 4).max(Duration::from_millis(1)));
    while control.head_age().is_none_or(|age| age <= head_time) {
        ticks.tick().await;
    }
}

/// Serves a client whose requests share a connection, until that ends; when `closing` says so it takes no more.
pub async fn serve_http2<S, B>(stream: Accepted, service: S, mut closing: watch::Receiver<bool>)
where
    S: HttpService<Incoming, ResBody = B>,
    S::Error: Into<BoxError>,
    B: Body + 'static,
    B::Error: Into<BoxError>,
    TokioExecutor: Http2ServerConnExec<S::Future, B>,
{
    let (socket, _) = Socket::new(stream);
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .auto_date_header(false)
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(u32::try_from(MAX_HEAD).unwrap_or(u32::MAX));
    let mut connection = Box::pin(builder.serve_connection(TokioIo::new(socket), service));
    loop {
        tokio::select! {
            _ = &mut connection => return,
            Ok(()) = closing.changed() => connection.as_mut().graceful_shutdown(),
        }
    }
}
