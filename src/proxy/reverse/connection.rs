//! One client's connection and the one to the server that belongs to it.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use hyper::{
    HeaderMap, Request,
    header::HOST,
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{
    net::TcpStream,
    sync::{mpsc, watch},
    time::interval,
};

use super::{super::lock, Front, exchange, is_reset, request::RequestBody, scheme};
use crate::transport::http::{
    MAX_HEAD, MAX_HEADERS,
    headers::with_host,
    socket::{Accepted, Control, Socket},
    upstream::{self, Answer, Driver, Sender},
};

/// How many requests of one client may be under way on one connection (HTTP/2).
const MAX_STREAMS: u32 = 256;

/// What the requests of one client's connection share.
pub(super) struct Link {
    pub(super) front: Arc<Front>,
    pub(super) control: Arc<Control>,
    sender: Mutex<Option<Sender<RequestBody>>>,
    /// Who polls the connection to the server; none where that is nobody's but its own.
    opened: Option<mpsc::UnboundedSender<Driver>>,
    failure: Mutex<Option<String>>,
    /// How many calls go on without their client.
    pub(super) reading_on: AtomicUsize,
}

impl Link {
    fn new(
        front: Arc<Front>,
        control: Arc<Control>,
        opened: Option<mpsc::UnboundedSender<Driver>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            front,
            control,
            sender: Mutex::default(),
            opened,
            failure: Mutex::default(),
            reading_on: AtomicUsize::new(0),
        })
    }

    pub(super) fn is_closing(&self) -> bool {
        *self.front.closing.borrow()
    }

    /// Our origin, as the client that sent these headers calls it.
    pub(super) fn our_origin(&self, headers: &HeaderMap) -> String {
        let host = headers.get(HOST).and_then(|host| host.to_str().ok()).filter(|host| !host.is_empty());
        let scheme = scheme(self.front.acceptor.as_ref());
        format!("{scheme}://{}", host.unwrap_or(&self.front.address))
    }

    /// Opens the connection to the server, with the first request. Whether there is one, or was.
    pub(super) async fn connect(&self) -> bool {
        if lock(&self.sender).is_some() {
            return true;
        }
        match upstream::open(&self.front.upstream.connector).await {
            Ok((sender, driver)) => {
                lock(&self.front.reach).was_reached = true;
                *lock(&self.sender) = Some(sender);
                match &self.opened {
                    // It is polled by this connection's own task, which outlives all requests.
                    Some(opened) => opened.send(driver).is_ok(),
                    None => {
                        tokio::spawn(driver);
                        true
                    }
                }
            }
            Err(why) => {
                let why = why.to_string();
                lock(&self.front.reach).why_never = Some(why.clone());
                *lock(&self.failure) = Some(why);
                false
            }
        }
    }

    pub(super) fn why_unreachable(&self) -> String {
        lock(&self.failure).clone().unwrap_or_default()
    }

    /// Sends a request on the connection to the server, as soon as that is done with the one before.
    pub(super) async fn send(&self, request: Request<RequestBody>) -> Answer {
        let Some(mut sender) = lock(&self.sender).take() else {
            unreachable!("requests of one connection come one after the other, and it is open")
        };
        sender.ready().await;
        let answer = sender.send(request);
        *lock(&self.sender) = Some(sender);
        answer
    }
}

/// Serves a client until its connection, or the one to the server, ends.
pub(super) async fn serve(stream: TcpStream, front: Arc<Front>) {
    let _ = stream.set_nodelay(true);
    let stream = match &front.acceptor {
        None => Accepted::Plain(stream),
        Some(acceptor) => match acceptor.accept(stream).await {
            Ok(stream) => stream,
            // Nothing was asked yet, and whoever does not speak TLS cannot be told more.
            Err(_) => return,
        },
    };
    if stream.is_http2() { serve_http2(stream, front).await } else { serve_http1(stream, front).await }
}

/// Serves a client whose requests share a connection. To the server each has one of its own, which ends with it.
async fn serve_http2(stream: Accepted, front: Arc<Front>) {
    let mut closing: watch::Receiver<bool> = front.closing.clone();
    let (socket, _) = Socket::new(stream);
    let service = service_fn(move |request| {
        exchange::handle(Link::new(Arc::clone(&front), Control::of_shared(), None), with_host(request))
    });
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .auto_date_header(false)
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(u32::try_from(MAX_HEAD).unwrap_or(u32::MAX));
    let mut to_client = Box::pin(builder.serve_connection(TokioIo::new(socket), service));
    loop {
        tokio::select! {
            _ = &mut to_client => return,
            Ok(()) = closing.changed() => to_client.as_mut().graceful_shutdown(),
        }
    }
}

async fn serve_http1(stream: Accepted, front: Arc<Front>) {
    let mut closing: watch::Receiver<bool> = front.closing.clone();
    let head_time = front.head_time;
    let (socket, control) = Socket::new(stream);
    let (opened, mut openings) = mpsc::unbounded_channel();
    let link = Link::new(front, Arc::clone(&control), Some(opened));
    let service = {
        let link = Arc::clone(&link);
        service_fn(move |request| exchange::handle(Arc::clone(&link), request))
    };
    let to_client = http1::Builder::new()
        .preserve_header_case(true)
        .auto_date_header(false)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEAD)
        .header_read_timeout(None)
        .serve_connection(TokioIo::new(socket), service);
    let mut to_client = Box::pin(to_client);
    let (mut is_opened, mut to_server): (_, Option<Driver>) = (false, None);
    let mut ticks = interval((head_time / 4).max(Duration::from_millis(1)));
    loop {
        tokio::select! {
            biased;
            // First, so that what has come from the server is there when the client is served.
            ended = async { to_server.as_mut().expect("guarded").await }, if to_server.is_some() => {
                to_server = None;
                if ended.is_err_and(|error| is_reset(&error)) {
                    control.reset_at_end();
                }
                to_client.as_mut().graceful_shutdown();
            }
            _ = &mut to_client => break,
            // It is opened once.
            Some(connection) = openings.recv(), if !is_opened => {
                is_opened = true;
                to_server = Some(connection);
            }
            Ok(()) = closing.changed() => to_client.as_mut().graceful_shutdown(),
            _ = ticks.tick() => {
                if control.head_age().is_some_and(|age| age > head_time) {
                    break;
                }
            }
        }
    }
    drop(to_client);
    lock(&link.sender).take();
    if link.reading_on.load(Ordering::Relaxed) > 0
        && let Some(to_server) = to_server
    {
        // It ends with the last call, or with the server; either way the calls themselves tell.
        let _ = to_server.await;
    }
}
