//! One client's connection and the one to the server that belongs to it.

use std::{
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use hyper::{
    HeaderMap, Request, client::conn::http1 as client, header::HOST, server::conn::http1 as server,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{
    net::TcpStream,
    sync::{mpsc, watch},
    time::{interval, timeout},
};

use super::{Front, exchange, is_reset, request::RequestBody, tape::lock};
use crate::transport::http::socket::{Control, Socket};

/// Far more than anybody sends in good faith; each costs memory while a head is read.
const MAX_HEADERS: usize = 1024;
/// The longest head.
const MAX_HEAD: usize = 256 << 10;
/// How long a client may take to send a head it has begun.
const HEAD_TIME: Duration = Duration::from_secs(30);

type ToServer = client::Connection<TokioIo<TcpStream>, RequestBody>;

/// What the requests of one client's connection share.
pub(super) struct Link {
    pub(super) front: Arc<Front>,
    pub(super) control: Arc<Control>,
    sender: Mutex<Option<client::SendRequest<RequestBody>>>,
    opened: mpsc::UnboundedSender<ToServer>,
    failure: Mutex<Option<String>>,
    /// How many calls go on without their client.
    pub(super) reading_on: AtomicUsize,
}

impl Link {
    pub(super) fn is_closing(&self) -> bool {
        *self.front.closing.borrow()
    }

    /// Our origin, as the client that sent these headers calls it.
    pub(super) fn our_origin(&self, headers: &HeaderMap) -> String {
        let host = headers.get(HOST).and_then(|host| host.to_str().ok()).filter(|host| !host.is_empty());
        format!("http://{}", host.unwrap_or(&self.front.address))
    }

    /// Opens the connection to the server, with the first request. Whether there is one, or was.
    pub(super) async fn connect(&self) -> bool {
        if lock(&self.sender).is_some() {
            return true;
        }
        match self.open().await {
            Ok((sender, connection)) => {
                *lock(&self.sender) = Some(sender);
                // It is polled by this connection's own task, which outlives all requests.
                self.opened.send(connection).is_ok()
            }
            Err(why) => {
                *lock(&self.failure) = Some(why);
                false
            }
        }
    }

    async fn open(&self) -> Result<(client::SendRequest<RequestBody>, ToServer), String> {
        let origin = &self.front.upstream.origin;
        let limit = self.front.upstream.connect_timeout;
        let stream = timeout(limit, TcpStream::connect((origin.host(), origin.port())))
            .await
            .map_err(|_| format!("no connection within {} s", limit.as_secs_f32()))?
            .map_err(|error| error.to_string())?;
        // Without it small messages would wait for acknowledgements; where it fails they do.
        let _ = stream.set_nodelay(true);
        client::Builder::new()
            .preserve_header_case(true)
            .max_headers(MAX_HEADERS)
            .allow_obsolete_multiline_headers_in_responses(true)
            .allow_spaces_after_header_name_in_responses(true)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|error| error.to_string())
    }

    pub(super) fn why_unreachable(&self) -> String {
        let why = lock(&self.failure).clone().unwrap_or_default();
        format!("tapedeck cannot reach the server at {}: {why}", self.front.upstream.origin)
    }

    /// Sends a request on the connection to the server, as soon as that is done with the one before.
    pub(super) async fn send(&self, request: Request<RequestBody>) -> exchange::Answer {
        let Some(mut sender) = lock(&self.sender).take() else {
            unreachable!("requests of one connection come one after the other, and it is open")
        };
        // Where the server has closed it, sending says so.
        let _ = sender.ready().await;
        let answer = sender.send_request(request);
        *lock(&self.sender) = Some(sender);
        Box::pin(answer)
    }
}

/// Serves a client until its connection, or the one to the server, ends.
pub(super) async fn serve(stream: TcpStream, front: Arc<Front>) {
    let _ = stream.set_nodelay(true);
    let mut closing: watch::Receiver<bool> = front.closing.clone();
    let (socket, control) = Socket::new(stream);
    let (opened, mut openings) = mpsc::unbounded_channel();
    let link = Arc::new(Link {
        front,
        control: Arc::clone(&control),
        sender: Mutex::default(),
        opened,
        failure: Mutex::default(),
        reading_on: AtomicUsize::new(0),
    });
    let service = {
        let link = Arc::clone(&link);
        service_fn(move |request| exchange::handle(Arc::clone(&link), request))
    };
    let to_client = server::Builder::new()
        .preserve_header_case(true)
        .auto_date_header(false)
        .max_headers(MAX_HEADERS)
        .max_buf_size(MAX_HEAD)
        .header_read_timeout(None)
        .serve_connection(TokioIo::new(socket), service);
    let mut to_client = Box::pin(to_client);
    let mut to_server: Option<Pin<Box<ToServer>>> = None;
    let mut ticks = interval(HEAD_TIME / 4);
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
            Some(connection) = openings.recv() => to_server = Some(Box::pin(connection)),
            Ok(()) = closing.changed() => to_client.as_mut().graceful_shutdown(),
            _ = ticks.tick() => {
                if control.head_age().is_some_and(|age| age > HEAD_TIME) {
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
