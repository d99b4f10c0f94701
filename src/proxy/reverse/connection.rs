//! One client's connection and the one to the server that belongs to it.

use std::{
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use hyper::{
    Request,
    body::{Body, Incoming},
    service::{HttpService, service_fn},
};
use tokio::{
    net::TcpStream,
    sync::{mpsc, watch},
};

use super::{super::lock, Cut, Front, exchange, faulty, is_reset, request::RequestBody};
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
    /// How many calls are read on without their client, or whether or not it is there.
    reading_on: watch::Sender<usize>,
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
            reading_on: watch::Sender::new(0),
        })
    }

    /// For a client whose requests come one after the other; and what moves the bytes between it and the server, which
    /// is to be polled.
    fn of_http1(front: Arc<Front>, control: Arc<Control>) -> (Arc<Self>, mpsc::UnboundedReceiver<Driver>) {
        let (opened, openings) = mpsc::unbounded_channel();
        (Self::new(front, control, Some(opened)), openings)
    }

    /// A call goes on whether or not its client is there.
    pub(super) fn reads_on(&self) {
        self.reading_on.send_modify(|calls| *calls += 1);
    }

    /// Such a call is over.
    pub(super) fn has_read_on(&self) {
        self.reading_on.send_modify(|calls| *calls -= 1);
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
    // Its first request opens it.
    let is_used = AtomicBool::new(false);
    let opens = move || !is_used.swap(true, Ordering::Relaxed);
    if stream.is_http2() {
        // To the server each request has a connection of its own, which ends with it.
        let link = |front: &Arc<Front>| Link::new(Arc::clone(front), Control::of_shared(), None);
        let closing = front.closing.clone();
        match front.faults.clone() {
            None => {
                let service = service_fn(move |request| exchange::handle(link(&front), with_host(request)));
                server::serve_http2(stream, service, closing).await;
            }
            Some(stand) => {
                let service = service_fn(move |request| {
                    let (link, stand) = (link(&front), Arc::clone(&stand));
                    faulty::handle(stand, link, Control::of_shared(), opens(), with_host(request))
                });
                server::serve_http2(stream, service, closing).await;
            }
        }
        return;
    }
    let socket = Socket::new(stream);
    let control = Arc::clone(&socket.1);
    match front.faults.clone() {
        None => {
            let (link, to_server) = Link::of_http1(front, Arc::clone(&control));
            let service = {
                let link = Arc::clone(&link);
                service_fn(move |request| exchange::handle(Arc::clone(&link), request))
            };
            serve_http1(socket, &link, to_server, service).await;
        }
        Some(stand) => {
            // How the server ends a response is for a fault to say.
            let (link, to_server) = Link::of_http1(front, Control::of_none());
            let service = {
                let link = Arc::clone(&link);
                service_fn(move |request| {
                    let (link, stand) = (Arc::clone(&link), Arc::clone(&stand));
                    faulty::handle(stand, link, Arc::clone(&control), opens(), request)
                })
            };
            serve_http1(socket, &link, to_server, service).await;
        }
    }
}

async fn serve_http1<S, B>(
    (socket, control): (Socket, Arc<Control>),
    link: &Arc<Link>,
    mut openings: mpsc::UnboundedReceiver<Driver>,
    service: S,
) where
    S: HttpService<Incoming, ResBody = B, Error = Cut>,
    B: Body<Error = Cut> + 'static,
{
    let (closing, head_time) = (link.front.closing.clone(), link.front.head_time);
    let mut builder = server::http1();
    builder.preserve_header_case(true);
    let mut to_server = pin!(async {
        // It is opened once.
        let Some(to_server) = openings.recv().await else { return };
        if to_server.await.is_err_and(|error| is_reset(&error)) {
            control.reset_at_end();
        }
    });
    let socket = (socket, Arc::clone(&control));
    let is_over =
        server::serve_http1(&builder, socket, service, closing, head_time, to_server.as_mut()).await;
    lock(&link.sender).take();
    if is_over {
        return;
    }
    let mut reading_on = link.reading_on.subscribe();
    tokio::select! {
        biased;
        // With the last call, or with the server; either way the calls themselves tell.
        _ = reading_on.wait_for(|calls| *calls == 0) => {}
        () = to_server => {}
    }
}
