//! A response on its way to the client.

use std::{collections::VecDeque, sync::Arc};

use hyper::{
    HeaderMap,
    body::Bytes,
    http::{Extensions, response},
};
use tokio::sync::{mpsc, oneshot};

use super::super::super::reply::{Flow, Piece};
use crate::{
    cassette::model::StreamEnd,
    fault::step::{Output, ResponseHead},
    traffic::{Lane, SseEvent},
};

/// So many events wait for their own bytes: more than that were left out, and do not come.
const MOST: usize = 1_000;

/// A response, from the request on until the server has said all of it.
pub(super) struct Way {
    pieces: mpsc::UnboundedSender<Piece>,
    /// Tells who reads what the server says that the client has left.
    leave: Option<oneshot::Sender<()>>,
    /// Tells who holds the request back that it goes.
    go: Option<oneshot::Sender<()>>,
    flow: Arc<Flow>,
    /// Somebody reads what the server says.
    pub(super) is_read: bool,
    /// Nobody wants what the server says when it has ended for its client.
    pub(super) is_for_client: bool,
    /// It passes as it comes: the plan is only told of it.
    pub(super) is_plain: bool,
    /// The server has ended it.
    pub(super) is_whole: bool,
    /// It has ended for its client.
    pub(super) has_ended: bool,
    /// Its head has gone.
    pub(super) has_begun: bool,
    /// What of the server's head no [`Output`] holds: how names and reason were spelled.
    extensions: Option<Extensions>,
    /// Events that have come, and their bytes.
    events: VecDeque<(SseEvent<'static>, Bytes)>,
    /// What goes behind all else, if that ends in good order.
    trailers: Option<HeaderMap>,
    /// A body that was cut off.
    broken: Option<Broken>,
}

/// A response that the server cut off in its body: where nothing acts on it, it has the framing that it had.
pub(super) struct Broken {
    /// The head in the server's own words.
    pub(super) own: response::Parts,
    /// The same as it is told.
    pub(super) told: ResponseHead,
    pub(super) body: Vec<u8>,
    /// Its head is to go.
    pub(super) goes: bool,
}

impl Way {
    pub(super) fn new(
        pieces: mpsc::UnboundedSender<Piece>,
        leave: oneshot::Sender<()>,
        flow: Arc<Flow>,
        is_plain: bool,
    ) -> Self {
        Self {
            pieces,
            leave: Some(leave),
            go: None,
            flow,
            is_read: false,
            is_for_client: false,
            is_plain,
            is_whole: false,
            has_ended: false,
            has_begun: false,
            extensions: None,
            events: VecDeque::new(),
            trailers: None,
            broken: None,
        }
    }

    /// The server has cut off the body.
    pub(super) fn breaks(&mut self, broken: Broken) {
        self.broken = Some(broken);
    }

    /// Whether the head of a response that was cut off is to go, with what follows at the same time.
    pub(super) fn has_to_begin(&self) -> bool {
        self.broken.as_ref().is_some_and(|broken| broken.goes)
    }

    /// Gives the client the head of a response that was cut off, where something has changed what follows, or may yet.
    pub(super) fn begins(&mut self) {
        if let Some(Broken { told, .. }) = self.broken.take_if(|broken| broken.goes) {
            self.tell(Output::Head { lane: Lane(0), head: told });
        }
    }

    /// The request is held back until what this gives is told.
    pub(super) fn holds(&mut self) -> oneshot::Receiver<()> {
        let (go, held) = oneshot::channel();
        self.go = Some(go);
        held
    }

    /// The request goes on to the server.
    pub(super) fn goes(&mut self) {
        if let Some(go) = self.go.take() {
            // Whoever waited for it may have been told that the client has left.
            let _ = go.send(());
        }
    }

    /// Nobody wants the rest of what the server says.
    pub(super) fn leaves(&mut self) {
        if let Some(leave) = self.leave.take() {
            // Where all is read nobody listens.
            let _ = leave.send(());
        }
    }

    /// What the head in the server's own words has besides status and headers.
    pub(super) fn spelled(&mut self, extensions: Extensions) {
        self.extensions = Some(extensions);
    }

    /// The server has said these behind the last byte.
    pub(super) fn ends_with(&mut self, trailers: HeaderMap) {
        self.trailers = Some(trailers);
    }

    /// An event has come in these bytes.
    pub(super) fn comes(&mut self, event: SseEvent<'static>, bytes: Vec<u8>) {
        if self.events.len() == MOST {
            self.events.pop_front();
        }
        self.events.push_back((event, bytes.into()));
    }

    /// Gives the client bytes as they stand.
    pub(super) fn pass(&mut self, bytes: Bytes) {
        if !bytes.is_empty() {
            self.send(Piece::whole(bytes));
        }
    }

    /// Gives the client the head as it stands.
    pub(super) fn head(&mut self, head: response::Parts, stream: bool) {
        self.send(Piece::Head { head, stream });
    }

    /// Gives the client its end as it came.
    pub(super) fn ends(&mut self, end: Option<StreamEnd>) {
        self.is_whole = true;
        if self.is_plain {
            self.send(Piece::End { end, partial: Vec::new() });
        }
    }

    /// Gives the client what the plan says; whether that ends the response.
    pub(super) fn say(&mut self, output: Output) -> bool {
        let is_end = matches!(output, Output::EndLane { .. });
        if self.is_plain && (!is_end || self.is_whole) {
            return is_end;
        }
        let own = match &output {
            Output::Event { event, .. } => {
                let at = self.events.iter().position(|(known, _)| known == event);
                at.and_then(|at| self.events.remove(at)).map(|(_, bytes)| bytes)
            }
            _ => None,
        };
        match (&mut self.broken, &output) {
            (Some(broken), Output::Head { head, .. }) if *head == broken.told => {
                broken.goes = true;
                return false;
            }
            (Some(broken), Output::EndLane { partial, end: Some(_), .. })
                if *partial == broken.body && broken.goes =>
            {
                if let Some(Broken { mut own, .. }) = self.broken.take() {
                    own.extensions = self.extensions.take().unwrap_or_default();
                    self.head(own, false);
                }
            }
            _ => self.begins(),
        }
        match own {
            Some(bytes) => self.send(Piece::whole(bytes)),
            None => self.tell(output),
        }
        if is_end && self.is_for_client && !self.is_whole {
            self.leaves();
        }
        is_end
    }

    fn tell(&mut self, output: Output) {
        let Ok((_, mut piece)) = Piece::of(output) else { return };
        if let Piece::Head { head, .. } = &mut piece
            && let Some(extensions) = self.extensions.take()
        {
            head.extensions = extensions;
        }
        self.send(piece);
    }

    fn send(&mut self, piece: Piece) {
        if self.has_ended {
            return;
        }
        match &piece {
            Piece::Head { .. } => self.has_begun = true,
            Piece::Data { bytes, .. } => self.flow.adds(bytes.len()),
            Piece::HalfClose | Piece::Trailers(_) => {}
            Piece::End { end, partial } => {
                self.has_ended = true;
                let trailers = self.trailers.take().filter(|_| end.is_none() && partial.is_empty());
                if let Some(trailers) = trailers {
                    // As below.
                    let _ = self.pieces.send(Piece::Trailers(trailers));
                }
            }
        }
        // A client that has left says so by itself.
        let _ = self.pieces.send(piece);
    }
}
