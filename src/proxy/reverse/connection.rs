//! One client's connection and the one to the server that belongs to it.

use std::{
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use hyper::{Request, service::service_fn};
use tokio::{net::TcpStream, sync::mpsc};

use super::{super::lock, Front, exchange, is_reset, request::RequestBody};
use crate::transport::http::{
    headers::with_host,
    server,
    socket::{Control, Socket},
    upstream::{self, Answer, Driver, Sender},
};

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
    let Some(stream) = server::open(stream, front.acceptor.as_ref()).await else { return };
    let closing = front.closing.clone();
    if stream.is_http2() {
        // To the server each request has a connection of its own, which ends with it.
        let service = service_fn(move |request| {
            exchange::handle(Link::new(Arc::clone(&front), Control::of_shared(), None), with_host(request))
        });
        return server::serve_http2(stream, service, closing).await;
    }
    let head_time = front.head_time;
    let (socket, control) = Socket::new(stream);
    let (opened, mut openings) = mpsc::unbounded_channel();
    let link = Link::new(front, Arc::clone(&control), Some(opened));
    let service = {
        let link = Arc::clone(&link);
        service_fn(move |request| exchange::handle(Arc::clone(&link), request))
    };
    let mut builder = server::http1();
    builder.preserve_header_case(true);
    let mut to_server = pin!(async {
        // It is opened once.
        let Some(to_server): Option<Driver> = openings.recv().await else { return };
        if to_server.await.is_err_and(|error| is_reset(&error)) {
            control.reset_at_end();
        }
    });
    let socket = (socket, Arc::clone(&control));
    let is_over =
        server::serve_http1(&builder, socket, service, closing, head_time, to_server.as_mut()).await;
    lock(&link.sender).take();
    if link.reading_on.load(Ordering::Relaxed) > 0 && !is_over {
        // It ends with the last call, or with the server; either way the calls themselves tell.
        to_server.await;
    }
}
