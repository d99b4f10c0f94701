//! What is recorded of a response's body.

use std::sync::Arc;

use super::{endpoint, item::Item, tape::Lane};
use crate::{
    traffic::Direction,
    transport::http::{
        coding::{Decoder, Undecodable},
        headers::is_coding,
        origin::Origin,
    },
    wire::{
        http::is_type,
        jsonrpc,
        lines::Unfinished,
        scan::Nesting,
        sse::{EventStream, Piece},
    },
};

/// A body as far as it has come.
pub(super) struct Heard {
    lane: Arc<Lane>,
    kind: Kind,
    coded: Option<Box<Coded>>,
    /// Where its events may name their server's address: that address.
    upstream: Option<Origin>,
}

/// How a body is recorded.
enum Kind {
    /// Not at all.
    Unseen,
    /// Event by event.
    Events(EventStream),
    /// When it is whole.
    Whole(Unfinished),
    /// When it is a message, which may be before its end: who tells no length may take long to tell the end.
    Message(Unfinished, Nesting),
    /// It was a message, and this came behind it.
    Behind(Unfinished),
    /// By size and hash: it is compressed in a way that nobody asked for, so nothing in it could be hidden.
    Measured(Unfinished),
}

/// A body that is compressed although nobody asked for that, but can be read.
struct Coded {
    decoder: Decoder,
    /// What stands for it, should it turn out to be something else.
    measured: Unfinished,
}

/// How a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Clean,
    Cut {
        reset: bool,
    },
    /// The recording cannot be written, and that is fatal.
    Refused,
}

impl Kind {
    /// How much of a compressed body one read may make.
    fn room(&self, max_message: usize) -> usize {
        match self {
            Self::Whole(body) | Self::Message(body, _) | Self::Behind(body) => {
                max_message.saturating_sub(body.so_far().len())
            }
            Self::Unseen | Self::Events(_) | Self::Measured(_) => max_message,
        }
    }
}

/// Whether a content type is that of an event stream.
pub(super) fn is_event_stream(content_type: Option<&[u8]>) -> bool {
    content_type.is_some_and(|value| is_type(value, "text/event-stream"))
}

impl Heard {
    /// A body with this content type and these codings, and perhaps with a length.
    pub(super) fn new(
        lane: Arc<Lane>,
        has_length: bool,
        content_type: Option<&[u8]>,
        codings: &[&[u8]],
        upstream: Option<Origin>,
    ) -> Self {
        if !lane.records() {
            return Self::unseen(lane);
        }
        let decoder = Decoder::of_codings(codings.iter().copied());
        let kind = if decoder.is_none() && codings.iter().any(|coding| is_coding(coding)) {
            Kind::Measured(Unfinished::new(0))
        } else if is_event_stream(content_type) {
            Kind::Events(EventStream::new(lane.max_message()))
        } else if has_length {
            Kind::Whole(Unfinished::new(lane.max_message()))
        } else {
            Kind::Message(Unfinished::new(lane.max_message()), Nesting::default())
        };
        let coded = decoder.map(|decoder| Box::new(Coded { decoder, measured: Unfinished::new(0) }));
        Self { lane, kind, coded, upstream }
    }

    /// A body that nobody looks at.
    pub(super) const fn unseen(lane: Arc<Lane>) -> Self {
        Self { lane, kind: Kind::Unseen, coded: None, upstream: None }
    }

    /// So much more of it has come.
    pub(super) fn feed(&mut self, data: &[u8]) {
        match &mut self.coded {
            None => self.keep(data),
            Some(coded) => {
                coded.measured.keep(data);
                let limit = self.kind.room(self.lane.max_message());
                let decoded = coded.decoder.decode(data, limit);
                self.keep_decoded(decoded);
            }
        }
    }

    fn keep(&mut self, data: &[u8]) {
        match &mut self.kind {
            Kind::Unseen => {}
            Kind::Whole(body) | Kind::Measured(body) | Kind::Behind(body) => body.keep(data),
            Kind::Message(body, nesting) => {
                body.keep(data);
                if nesting.feed(data) {
                    let body = std::mem::replace(body, Unfinished::new(0));
                    self.kind = self.whole(body);
                }
            }
            Kind::Events(stream) => stream.feed(data, |piece| {
                self.lane.note(|| match (piece, &self.upstream) {
                    (Piece::Event(event), Some(upstream)) => Item::Event(endpoint::recorded(event, upstream)),
                    (Piece::Event(event), None) => Item::Event(event),
                    (Piece::Oversize(measured), _) => Item::Oversize(Direction::ToClient, measured),
                });
            }),
        }
    }

    /// What becomes of a body that is whole as far as its brackets tell.
    fn whole(&self, mut body: Unfinished) -> Kind {
        if jsonrpc::Message::read(body.so_far()).kind == jsonrpc::Kind::Noise {
            return Kind::Whole(body);
        }
        match body.end() {
            Ok(message) => self.lane.note(|| Item::ResponseBody(message)),
            Err(measured) => self.lane.note(|| Item::Oversize(Direction::ToClient, measured)),
        }
        Kind::Behind(Unfinished::new(self.lane.max_message()))
    }

    fn keep_decoded(&mut self, decoded: Result<Vec<u8>, Undecodable>) {
        match decoded {
            Ok(decoded) => self.keep(&decoded),
            Err(Undecodable) => {
                if let Some(coded) = self.coded.take() {
                    self.kind = match self.kind {
                        // The message has been read, and what stands behind it cannot be.
                        Kind::Behind(_) => Kind::Unseen,
                        _ => Kind::Measured(coded.measured),
                    };
                }
            }
        }
    }

    /// Nothing more comes of it.
    pub(super) fn ends(&mut self, end: End) {
        if end == End::Clean
            && let Some(coded) = &mut self.coded
        {
            let rest = coded.decoder.finish();
            self.keep_decoded(rest);
        }
        match std::mem::replace(&mut self.kind, Kind::Unseen) {
            Kind::Measured(mut body) if body.has_begun() => {
                if let Err(measured) = body.end() {
                    self.lane.note(|| Item::unreadable(Direction::ToClient, measured));
                }
            }
            Kind::Whole(mut body) | Kind::Message(mut body, _) if end == End::Clean && body.has_begun() => {
                self.lane.note(|| match body.end() {
                    Ok(body) => Item::ResponseBody(body),
                    Err(measured) => Item::Oversize(Direction::ToClient, measured),
                });
            }
            kind => drop(self.note_part(kind)),
        }
        self.lane.note(|| match end {
            End::Cut { reset } => Item::Broken { reset },
            End::Clean | End::Refused => Item::End,
        });
    }

    /// Nobody hears the rest of it: what has come is all that is recorded. Whether there is any that was not.
    pub(super) fn breaks_off(&mut self) -> bool {
        let kind = std::mem::replace(&mut self.kind, Kind::Unseen);
        self.note_part(kind)
    }

    /// Notes what has begun and has no end; whether anything has.
    fn note_part(&self, kind: Kind) -> bool {
        let part = match kind {
            Kind::Unseen | Kind::Measured(_) => None,
            Kind::Events(stream) => stream.unfinished(),
            Kind::Whole(body) | Kind::Message(body, _) | Kind::Behind(body) => Some(body.so_far().to_vec()),
        };
        let part = part.filter(|part| !part.is_empty());
        let has_part = part.is_some();
        if let Some(part) = part {
            self.lane.note(|| Item::Partial(Direction::ToClient, part));
        }
        has_part
    }
}

impl Drop for Heard {
    fn drop(&mut self) {
        if self.breaks_off() {
            // There is nothing left to refuse.
            let _ = self.lane.write();
        }
    }
}
