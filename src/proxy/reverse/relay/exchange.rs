//! One request and its response, from socket to socket.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use tokio::io::AsyncWrite;

use super::{
    super::{
        Front,
        heard::End,
        is_reset,
        item::Item,
        said::Said,
        tape::{Lane, Odd},
    },
    Known, Ways,
    form::Form,
    request::{Asked, Bearing},
    response::{Answer, Body},
};
use crate::transport::http::{
    chunks::Came,
    connect::Stream,
    plain::{self, BadResponse},
    socket::Socket,
    way::{Inbox, Outbox, Side},
};

/// The longest head of a response: as long as hyper takes them.
const LONGEST_HEAD: usize = 408 << 10;

/// An exchange that is under way.
pub(super) struct Exchange {
    pub(super) lane: Arc<Lane>,
    said: Said,
    bearing: Bearing,
    /// What of the request's body has not come, and whether all of it has.
    body: Form,
    is_whole: bool,
    /// Something was noted that is to be written before anything goes on.
    is_due: bool,
    /// Whether the server still reads, and whether it has reset the connection.
    takes: bool,
    resets: bool,
    response: Response,
    is_last: bool,
    /// The server has ended the connection behind its response, and so have we ended our side of the client's.
    is_closed: bool,
}

/// How far the response has come.
#[expect(
    clippy::large_enum_variant,
    reason = "a connection has one of them, and room for it would be made each time"
)]
enum Response {
    Head,
    Body(Body),
    Over(End),
}

/// How an exchange ends.
#[derive(Debug)]
pub(super) enum Outcome {
    /// In good order; and whether both connections end with it.
    Whole { is_last: bool },
    /// The client's connection is to be cut off.
    Cut { reset: bool },
    /// The client has left; the call may go on without it.
    Left { goes_on: bool },
}

/// What comes of a request's body is none.
struct NoRequest;

impl Exchange {
    /// Begins with a request whose head stands at the beginning of `inbox` and whose words are ready to go. None where
    /// what follows is no body.
    pub(super) fn begin(
        asked: Asked,
        front: &Front,
        inbox: &mut Inbox,
        to_server: &mut Outbox,
        opens_connection: bool,
    ) -> Option<Self> {
        let lane = front.tape.lane(asked.bearing.got.is_none(), opens_connection);
        if let Some((method, target, heads)) = asked.noted {
            lane.note(|| Item::Request(method, target, heads));
        }
        inbox.take(asked.length);
        let mut exchange = Self {
            said: Said::new(Arc::clone(&lane), asked.is_coded, true),
            lane,
            bearing: asked.bearing,
            body: asked.body,
            is_whole: false,
            is_due: false,
            takes: true,
            resets: false,
            response: Response::Head,
            is_last: false,
            is_closed: false,
        };
        exchange.take_request(inbox, to_server).is_ok().then_some(exchange)
    }

    /// Moves what there is to move.
    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut Side<Socket>,
        server: &mut Side<Stream>,
        ways: &mut Ways,
        front: &Front,
    ) -> Poll<Outcome> {
        // First, so that it counts when a client left before its answer came.
        let is_watched = self.said.has_ended();
        if self.is_left(cx, client, &ways.to_server) {
            return Poll::Ready(self.left(front));
        }
        loop {
            if self.is_due {
                if !ready!(self.lane.poll_written(cx)) {
                    return Poll::Ready(Outcome::Cut { reset: false });
                }
                self.is_due = false;
            }
            let mut moves = false;
            if self.poll_sent(cx, &mut client.inbox, server, ways) && !self.is_whole {
                if client.inbox.is_empty()
                    && let Poll::Ready(read) = client.poll_read(cx)
                    && !matches!(read, Ok(1..))
                {
                    return Poll::Ready(match self.said.has_ended() {
                        true => self.left(front),
                        false => self.breaks_off(),
                    });
                }
                if !client.inbox.is_empty() {
                    if self.take_request(&client.inbox, &mut ways.to_server).is_err() {
                        return Poll::Ready(Outcome::Cut { reset: false });
                    }
                    moves = true;
                }
            }
            match ways.to_client.poll_write(cx, &mut client.stream, &mut server.inbox) {
                Poll::Pending => {}
                Poll::Ready(Err(_)) => return Poll::Ready(self.left(front)),
                Poll::Ready(Ok(())) => match self.response {
                    Response::Over(end @ (End::Cut { .. } | End::Refused)) => {
                        return Poll::Ready(Outcome::Cut { reset: end == End::Cut { reset: true } });
                    }
                    Response::Over(End::Clean) if self.is_sent(ways) => {
                        let is_last = self.is_last || !self.takes;
                        return Poll::Ready(Outcome::Whole { is_last });
                    }
                    Response::Over(End::Clean) => moves |= self.poll_closed(cx, client, server).is_ready(),
                    Response::Head | Response::Body(..) => {
                        moves |= self.poll_response(cx, server, ways, front).is_ready();
                    }
                },
            }
            if moves {
                continue;
            }
            return match !is_watched && self.is_left(cx, client, &ways.to_server) {
                true => Poll::Ready(self.left(front)),
                false => Poll::Pending,
            };
        }
    }

    /// The same without a client: ready each time that something has come; whether more may.
    pub(super) fn poll_alone(
        &mut self,
        cx: &mut Context<'_>,
        inbox: &mut Inbox,
        server: &mut Side<Stream>,
        ways: &mut Ways,
        front: &Front,
    ) -> Poll<bool> {
        self.poll_sent(cx, inbox, server, ways);
        ways.to_client.drop_all(&mut server.inbox);
        if !matches!(self.response, Response::Over(_)) {
            ready!(self.poll_response(cx, server, ways, front));
            // There is nothing left to refuse.
            let _ = self.lane.write();
        }
        Poll::Ready(!matches!(self.response, Response::Over(_)))
    }

    /// Sends what may be sent; whether all of it was.
    fn poll_sent(
        &mut self,
        cx: &mut Context<'_>,
        inbox: &mut Inbox,
        server: &mut Side<Stream>,
        ways: &mut Ways,
    ) -> bool {
        if !self.takes {
            return false;
        }
        match ways.to_server.poll_write(cx, &mut server.stream, inbox) {
            Poll::Pending => false,
            Poll::Ready(Ok(())) => true,
            Poll::Ready(Err(error)) => {
                // It may have answered before it left.
                (self.takes, self.resets) = (false, is_reset(&error));
                ways.to_server.drop_all(inbox);
                false
            }
        }
    }

    /// Whether a client whose request has come has closed its side. One that asks on has not, and its next request
    /// waits.
    fn is_left(&self, cx: &mut Context<'_>, client: &mut Side<Socket>, to_server: &Outbox) -> bool {
        let waits = client.inbox.unread().len() > to_server.behind;
        self.said.has_ended()
            && !waits
            && matches!(client.poll_read(cx), Poll::Ready(read) if !matches!(read, Ok(1..)))
    }

    /// Whether the server has the whole request, or does not want it.
    fn is_sent(&self, ways: &Ways) -> bool {
        !self.takes || self.is_whole && ways.to_server.is_empty()
    }

    /// Ends our side where the server does before it has the whole request: its client may wait for that. What that
    /// still sends is for the server. Ready where nobody wants it any more.
    fn poll_closed(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut Side<Socket>,
        server: &mut Side<Stream>,
    ) -> Poll<()> {
        if self.is_closed {
            return Poll::Pending;
        }
        let read = ready!(server.poll_read(cx));
        self.is_last = true;
        if !matches!(read, Ok(0)) {
            // It says what nobody has asked for, or nothing any more.
            self.takes = false;
            return Poll::Ready(());
        }
        let _ = ready!(Pin::new(&mut client.stream).poll_shutdown(cx));
        self.is_closed = true;
        Poll::Pending
    }

    /// Takes in what has come of the request's body.
    ///
    /// # Errors
    /// When it is none.
    fn take_request(&mut self, inbox: &Inbox, to_server: &mut Outbox) -> Result<(), NoRequest> {
        let rest = &inbox.unread()[to_server.behind..];
        let (count, came) = self.body.feed(rest, |data| self.said.keep(data));
        to_server.behind += count;
        match came {
            Came::Open => Ok(()),
            Came::Whole => {
                self.is_whole = true;
                self.said.end();
                self.is_due = true;
                Ok(())
            }
            Came::Broken => {
                self.said.is_given_up(true);
                Err(NoRequest)
            }
        }
    }

    /// Reads what the server says, and has ready what may go on. Ready where something has come.
    fn poll_response(
        &mut self,
        cx: &mut Context<'_>,
        server: &mut Side<Stream>,
        ways: &mut Ways,
        front: &Front,
    ) -> Poll<()> {
        let read = ready!(server.poll_read(cx));
        let is_in_head = matches!(self.response, Response::Head) && !server.inbox.is_empty();
        if is_in_head && !matches!(read, Ok(1..)) {
            self.lane.tell(Odd::Head);
        }
        match read {
            Ok(0) => {
                let end = match &self.response {
                    Response::Body(body) if matches!(body.form, Form::ToEnd) => End::Clean,
                    _ => End::Cut { reset: self.resets },
                };
                self.ends(end, &mut ways.to_client);
            }
            Ok(_) => {
                if self.take_in(&mut server.inbox, ways, front).is_err() {
                    self.lane.tell(Odd::Response);
                    self.ends(End::Cut { reset: false }, &mut ways.to_client);
                }
            }
            Err(error) => {
                self.ends(End::Cut { reset: self.resets || is_reset(&error) }, &mut ways.to_client);
            }
        }
        self.is_due = true;
        Poll::Ready(())
    }

    /// Takes in what the server has said.
    fn take_in(&mut self, inbox: &mut Inbox, ways: &mut Ways, front: &Front) -> Result<(), BadResponse> {
        while let Response::Head = self.response {
            let bytes = inbox.unread();
            let Known { last, recorded } = &mut ways.response;
            let head = match plain::response(bytes, last)? {
                Some(head) => head,
                None if bytes.len() > LONGEST_HEAD => return Err(BadResponse),
                None => return Ok(()),
            };
            recorded.take_if(|(of, _)| *of != head.number);
            let length = head.length;
            if head.is_folded() {
                let unfolded = plain::unfolded(&bytes[..length]);
                inbox.replace(length, &unfolded);
                continue;
            }
            if matches!(head.status, 100 | 102..200) {
                ways.to_client.head.extend_from_slice(&bytes[..length]);
            } else {
                let at = (front, &*ways.host);
                let out = &mut ways.to_client.head;
                let answer = Answer::new(&head, bytes, &self.bearing, at, (&self.lane, recorded), out)?;
                self.is_last = answer.is_last;
                if answer.is_tunnel {
                    (self.body, self.is_whole) = (Form::ToEnd, false);
                }
                self.response = Response::Body(answer.body);
            }
            inbox.take(length);
            if inbox.is_empty() && matches!(self.response, Response::Head) {
                return Ok(());
            }
        }
        let Response::Body(body) = &mut self.response else { return Ok(()) };
        match body.take_in(inbox, &mut ways.to_client) {
            Came::Open => Ok(()),
            Came::Whole => {
                self.ends(End::Clean, &mut ways.to_client);
                Ok(())
            }
            Came::Broken => Err(BadResponse),
        }
    }

    /// Notes how the response ends.
    fn ends(&mut self, end: End, out: &mut Outbox) {
        if end != End::Clean {
            // More of the request goes nowhere.
            self.said.break_off();
        }
        match &mut self.response {
            Response::Body(body) => body.ends(end, out),
            _ => self.lane.note(|| Item::Broken { reset: end == End::Cut { reset: true } }),
        }
        self.response = Response::Over(end);
    }

    /// The client's connection has ended.
    fn left(&mut self, front: &Front) -> Outcome {
        if let Response::Body(body) = &mut self.response
            && !self.lane.goes_on_alone()
        {
            // Before it is told that nobody hears the rest.
            body.breaks_off();
        }
        let is_over = matches!(self.response, Response::Over(_));
        let goes_on = !is_over && self.lane.client_left() && !*front.closing.borrow();
        Outcome::Left { goes_on }
    }

    /// It has ended within the request's body, which is no request then.
    fn breaks_off(&mut self) -> Outcome {
        self.said.is_given_up(false);
        Outcome::Left { goes_on: false }
    }
}
