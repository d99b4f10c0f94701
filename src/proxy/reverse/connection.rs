//! One client's connection and the one to the server that belongs to it.

use std::{
    future::poll_fn,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    task::{Poll, Waker},
};

use hyper::{
    Request,
    body::{Body, Incoming},
    service::{HttpService, service_fn},
};
use tokio::{net::TcpStream, sync::watch};

use super::{super::lock, Cut, Front, exchange, faulty, is_reset, relay, request::RequestBody};
use crate::transport::http::{
    apart::{Apart, this_task},
    connect::{ConnectError, Connection},
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
    to_server: Mutex<ToServer>,
    failure: Mutex<Option<String>>,
    /// Why there is no connection to the server for the request that is next, where that was tried.
    refused: Mutex<Option<ConnectError>>,
    /// How many calls are read on without their client, or whether or not it is there.
    reading_on: watch::Sender<usize>,
    /// A request has come already, on the connection that is the client's.
    is_used: Arc<AtomicBool>,
}

/// What moves the bytes between us and the server.
#[derive(Default)]
struct ToServer {
    /// The task of the client's connection, which outlives all requests; none where requests share that connection.
    task: Option<Waker>,
    driver: Option<Apart<Driver>>,
    /// How it ended, until that is heard.
    ended: Option<hyper::Result<()>>,
}

impl ToServer {
    fn drive(&mut self) {
        if let Some(Poll::Ready(ended)) = self.driver.as_mut().map(Apart::poll) {
            self.ended = Some(ended);
            self.task.iter().for_each(Waker::wake_by_ref);
        }
    }
}

impl Link {
    fn new(
        front: Arc<Front>,
        control: Arc<Control>,
        task: Option<Waker>,
        is_used: &Arc<AtomicBool>,
    ) -> Arc<Self> {
        Arc::new(Self {
            front,
            control,
            sender: Mutex::default(),
            to_server: Mutex::new(ToServer { task, ..ToServer::default() }),
            failure: Mutex::default(),
            refused: Mutex::default(),
            reading_on: watch::Sender::new(0),
            is_used: Arc::clone(is_used),
        })
    }

    /// Moves what there is to move between us and the server, by whoever waits for it. Whether there was something.
    pub(super) fn drive(&self) -> bool {
        let mut to_server = lock(&self.to_server);
        let has_something = to_server.driver.as_ref().is_some_and(Apart::is_woken);
        to_server.drive();
        has_something
    }

    /// The same. Says once how the connection to the server has ended.
    fn drive_to_end(&self) -> Option<hyper::Result<()>> {
        let mut to_server = lock(&self.to_server);
        to_server.drive();
        to_server.ended.take()
    }

    /// A call goes on whether or not its client is there.
    pub(super) fn reads_on(&self) {
        self.reading_on.send_modify(|calls| *calls += 1);
    }

    /// Such a call is over.
    pub(super) fn has_read_on(&self) {
        self.reading_on.send_modify(|calls| *calls -= 1);
    }

    /// Whether the request that has come is the first one on its connection.
    pub(super) fn opens(&self) -> bool {
        !self.is_used.swap(true, Ordering::Relaxed)
    }

    pub(super) fn is_closing(&self) -> bool {
        *self.front.closing.borrow()
    }

    /// Opens the connection to the server, with the first request. Whether there is one, or was.
    pub(super) async fn connect(&self) -> bool {
        if lock(&self.sender).is_some() {
            return true;
        }
        let refused = lock(&self.refused).take();
        self.opened(match refused {
            Some(why) => Err(why),
            None => upstream::open(&self.front.upstream.connector).await,
        })
    }

    /// Takes over what has come of connecting to the server for the request that is next.
    async fn take_over(&self, server: Result<Connection, ConnectError>) {
        match server {
            Ok(connection) => {
                let spoken = upstream::speak(connection, &self.front.upstream.connector).await;
                self.opened(spoken);
            }
            Err(why) => *lock(&self.refused) = Some(why),
        }
    }

    fn opened(&self, opened: Result<(Sender<RequestBody>, Driver), ConnectError>) -> bool {
        match opened {
            Ok((sender, driver)) => {
                lock(&self.front.reach).was_reached = true;
                *lock(&self.sender) = Some(sender);
                let mut to_server = lock(&self.to_server);
                match to_server.task.clone() {
                    Some(task) => to_server.driver = Some(Apart::new(driver, task)),
                    None => drop(tokio::spawn(driver)),
                }
                true
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
    let is_refused = |why: &str| front.refusals.add(why);
    let Some(stream) = server::open(stream, front.acceptor.as_ref(), is_refused).await else { return };
    // Its first request opens it.
    let is_used = Arc::new(AtomicBool::new(false));
    if stream.is_http2() {
        // To the server each request has a connection of its own, which ends with it.
        let link =
            move |front: &Arc<Front>| Link::new(Arc::clone(front), Control::of_shared(), None, &is_used);
        let closing = front.closing.clone();
        match front.faults.clone() {
            None => {
                let service = service_fn(move |request| exchange::handle(link(&front), with_host(request)));
                server::serve_http2(stream, service, closing).await;
            }
            Some(stand) => {
                let service = service_fn(move |request| {
                    let (link, stand) = (link(&front), Arc::clone(&stand));
                    faulty::handle(stand, link, Control::of_shared(), with_host(request))
                });
                server::serve_http2(stream, service, closing).await;
            }
        }
        return;
    }
    let (mut socket, control) = Socket::new(stream);
    let task = this_task().await;
    let mut server = None;
    if front.relays {
        // A stream that is held open by way of hyper does not hold room for it.
        let served = Box::pin(relay::serve((socket, Arc::clone(&control)), &front, task.clone()));
        let Some(unserved) = served.await else { return };
        (socket, server) = (unserved.socket, unserved.server);
        is_used.store(unserved.is_used, Ordering::Relaxed);
    }
    let (socket, task) = ((socket, Arc::clone(&control)), Some(task));
    match front.faults.clone() {
        None => {
            let link = Link::new(front, Arc::clone(&control), task, &is_used);
            if let Some(server) = server {
                link.take_over(server).await;
            }
            let service = {
                let link = Arc::clone(&link);
                service_fn(move |request| exchange::handle(Arc::clone(&link), request))
            };
            serve_http1(socket, &link, service).await;
        }
        Some(stand) => {
            // How the server ends a response is for a fault to say.
            let link = Link::new(front, Control::of_none(), task, &is_used);
            let service = {
                let link = Arc::clone(&link);
                service_fn(move |request| {
                    let (link, stand) = (Arc::clone(&link), Arc::clone(&stand));
                    faulty::handle(stand, link, Arc::clone(&control), request)
                })
            };
            serve_http1(socket, &link, service).await;
        }
    }
}

async fn serve_http1<S, B>((socket, control): (Socket, Arc<Control>), link: &Link, service: S)
where
    S: HttpService<Incoming, ResBody = B, Error = Cut>,
    B: Body<Error = Cut> + 'static,
{
    let (closing, head_time) = (link.front.closing.clone(), link.front.head_time);
    let mut builder = server::http1();
    builder.preserve_header_case(true);
    let is_over = || {
        let ended = link.drive_to_end();
        if let Some(Err(error)) = &ended
            && is_reset(error)
        {
            control.reset_at_end();
        }
        ended.is_some()
    };
    let socket = (socket, Arc::clone(&control));
    let was_over = server::serve_http1(&builder, socket, service, closing, head_time, is_over).await;
    control.refusal().into_iter().for_each(|why| link.front.refusals.add(why));
    lock(&link.sender).take();
    if !was_over {
        let mut reading_on = link.reading_on.subscribe();
        tokio::select! {
            biased;
            // With the last call, or with the server; either way the calls themselves tell.
            _ = reading_on.wait_for(|calls| *calls == 0) => {}
            () = poll_fn(|_| if is_over() { Poll::Ready(()) } else { Poll::Pending }) => {}
        }
    }
    lock(&link.to_server).driver = None;
}
