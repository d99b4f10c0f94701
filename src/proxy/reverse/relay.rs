//! Exchanges that pass from socket to socket, in HTTP/1.1: any request for a path, and whatever answers it.
//!
//! A general implementation of HTTP, once as its server and once as its client, spells what it passes on anew, and costs
//! several times what the exchange itself does. Here one task reads a head, writes it with what has to change, and lets
//! bodies through in the bytes and the framing that they came in. What is left for hyper is what it refuses (heads that
//! are none, foreign hosts, `CONNECT`, a server that is not there), HTTP/1.0, and targets with an origin: at the first
//! such request the connection is hyper's, with what was read and with the connection to the server, and stays that.
//!
//! - `request`: a request's head, and how it goes on
//! - `response`: a response's head, and how it and what follows go on
//! - `form`: how a body is framed
//! - `changed`: bodies in which the server names its own address
//! - `exchange`: one request and its response

mod changed;
mod exchange;
mod form;
mod request;
mod response;

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker},
};

use tokio::{
    io::AsyncWriteExt,
    time::{Sleep, sleep, timeout},
};

use self::{
    exchange::{Exchange, Outcome},
    request::{Asked, Next},
};
use super::{super::lock, Front, is_reset, item::Heads, response::READ_ON};
use crate::{
    transport::http::{
        apart::Apart,
        connect::{ConnectError, Connection, Stream},
        plain::LastHead,
        server::too_slow,
        socket::{Control, Socket},
        way::{Outbox, Side},
    },
    wire::http::{LAST_EVENT_ID, SESSION_ID},
};

/// A connection that is hyper's from here on.
pub(super) struct Unserved {
    /// What was read and not served comes first.
    pub(super) socket: Socket,
    /// What has come of connecting to the server, where that was tried.
    pub(super) server: Option<Result<Connection, ConnectError>>,
    /// A request has come already.
    pub(super) is_used: bool,
}

/// What is under way between two sockets.
#[derive(Default)]
struct Ways {
    to_server: Outbox,
    to_client: Outbox,
    request: Known,
    response: Known,
    /// By what name the client knows us.
    host: Vec<u8>,
}

/// One side's last head, and how a head is recorded: the number of the last one that was, and that.
#[derive(Default)]
struct Known {
    last: LastHead,
    recorded: Option<(u64, Arc<Heads>)>,
}

/// How a wait for the next request ends.
enum Idle {
    Asked(Asked),
    Unserved,
    /// A head has taken too long.
    Late,
    /// One side has closed its connection, or all ends.
    Over,
}

/// Serves a client until its connection, or the one to the server, ends; or until it asks what is not plain.
pub(super) async fn serve(
    (socket, control): (Socket, Arc<Control>),
    front: &Front,
    task: Waker,
) -> Option<Unserved> {
    let mut closing = front.closing.clone();
    let closes = pin!(closing.changed());
    let mut closes = Apart::new(closes, task);
    let mut client = Side::new(socket);
    let mut server: Option<Side<Stream>> = None;
    let mut ways = Ways::default();
    let mut is_used = false;
    loop {
        let mut late = None;
        let idle = poll_fn(|cx| {
            if matches!(closes.poll(), Poll::Ready(Ok(()))) {
                return Poll::Ready(Idle::Over);
            }
            // First: a server that has left is asked nothing.
            if let Some(server) = &mut server {
                // Whatever it says unasked, it cannot be trusted any more.
                if !server.inbox.is_empty() {
                    return Poll::Ready(Idle::Over);
                }
                if let Poll::Ready(read) = server.poll_read(cx) {
                    if read.is_err_and(|error| is_reset(&error)) {
                        control.reset_at_end();
                    }
                    return Poll::Ready(Idle::Over);
                }
            }
            poll_request(cx, &mut client, &mut ways, front, &mut late)
        });
        let asked = match idle.await {
            Idle::Asked(asked) => asked,
            Idle::Over => {
                end(client.stream).await;
                return None;
            }
            Idle::Late => {
                front.refusals.add(&too_slow(front.head_time));
                end(client.stream).await;
                return None;
            }
            Idle::Unserved => {
                let server = server.map(|server| Connection::plain(server.stream));
                return Some(unserved(client, server.map(Ok), is_used));
            }
        };
        control.head_is_read();
        front.linger.renew();
        if server.is_none() {
            match connect(&mut client, front).await? {
                Ok(Connection { stream, is_http2: false, proxied: None }) => server = Some(Side::new(stream)),
                other => return Some(unserved(client, Some(other), is_used)),
            }
        }
        let server = server.as_mut()?;
        let opens = !std::mem::replace(&mut is_used, true);
        if asked.bearing.got.is_some()
            && let Some((_, _, heads)) = &asked.noted
        {
            front.tape.absent.let_go(heads.get(SESSION_ID), heads.get(LAST_EVENT_ID)).await;
        }
        let mut exchange = Exchange::begin(asked, front, &mut client.inbox, &mut ways.to_server, opens)?;
        match poll_fn(|cx| exchange.poll(cx, &mut client, server, &mut ways, front)).await {
            Outcome::Whole { is_last: false } => {
                front.linger.renew();
                control.awaits_head();
                client.inbox.rest();
                server.inbox.rest();
            }
            Outcome::Whole { is_last: true } => {
                end(client.stream).await;
                return None;
            }
            Outcome::Cut { reset } => {
                if reset {
                    control.reset_at_end();
                }
                return None;
            }
            Outcome::Left { goes_on } => {
                let Side { stream, mut inbox } = client;
                drop(stream);
                let back = exchange.lane.is_alone();
                let mut more = goes_on;
                while more {
                    let next = poll_fn(|cx| exchange.poll_alone(cx, &mut inbox, server, &mut ways, front));
                    more = tokio::select! {
                        biased;
                        () = back.comes() => false,
                        next = timeout(READ_ON, next) => next.unwrap_or(false),
                    };
                }
                return None;
            }
        }
    }
}

/// Waits for the head of the next request.
fn poll_request(
    cx: &mut Context<'_>,
    client: &mut Side<Socket>,
    ways: &mut Ways,
    front: &Front,
    late: &mut Option<Pin<Box<Sleep>>>,
) -> Poll<Idle> {
    // What came with the request before.
    let mut has_come = late.is_none() && !client.inbox.is_empty();
    loop {
        if has_come {
            match request::read(client.inbox.unread(), ways, front) {
                Next::Asked(asked) => return Poll::Ready(Idle::Asked(asked)),
                Next::Other => return Poll::Ready(Idle::Unserved),
                Next::Part => {}
            }
            late.get_or_insert_with(|| Box::pin(sleep(front.head_time)));
        }
        match client.poll_read(cx) {
            Poll::Ready(Ok(1..)) => has_come = true,
            Poll::Ready(_) => return Poll::Ready(Idle::Over),
            Poll::Pending => break,
        }
    }
    match late {
        Some(late) => late.as_mut().poll(cx).map(|()| Idle::Late),
        None => Poll::Pending,
    }
}

/// Opens the connection to the server; none where the client leaves before.
async fn connect(client: &mut Side<Socket>, front: &Front) -> Option<Result<Connection, ConnectError>> {
    let mut connect = pin!(front.upstream.connector.connect());
    let connected = poll_fn(|cx| {
        loop {
            if let Poll::Ready(connected) = connect.as_mut().poll(cx) {
                return Poll::Ready(Some(connected));
            }
            if !client.inbox.has_room() {
                return Poll::Pending;
            }
            match client.poll_read(cx) {
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(_) => return Poll::Ready(None),
                Poll::Pending => return Poll::Pending,
            }
        }
    });
    let connected = connected.await;
    if let Some(Ok(_)) = connected {
        lock(&front.reach).was_reached = true;
    }
    connected
}

/// The connection ends in good order.
async fn end(mut socket: Socket) {
    let _ = socket.shutdown().await;
}

fn unserved(
    client: Side<Socket>,
    server: Option<Result<Connection, ConnectError>>,
    is_used: bool,
) -> Unserved {
    let Side { stream, inbox } = client;
    Unserved { socket: stream.with_ahead(inbox.unread().to_vec()), server, is_used }
}
