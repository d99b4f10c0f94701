//! What frames hold, as bytes: by bincode.

use std::borrow::Cow;

use bincode::{BorrowDecode, Encode, config, enc::write::Writer, error::EncodeError};
use sha2::{Digest, Sha256};

use super::{
    Continues, Damage, JournalHeader, MAGIC, VERSION, fields,
    head::{self, MAX_PAYLOAD},
};
use crate::{
    traffic::{Direction, Event, Exit, Headers, Lane, Payload, RequestHead, ResponseHead, SseEvent},
    wire::lines::Oversize,
};

/// The longest message that is kept whole; a longer one is kept as size, hash and its two ends.
pub const MAX_MESSAGE: usize = MAX_PAYLOAD - 4096;

/// Decoding is limited always: without a limit a hostile length makes bincode ask for that much memory.
const CONFIG: config::Configuration<config::LittleEndian, config::Varint, config::Limit<MAX_PAYLOAD>> =
    config::standard().with_limit::<MAX_PAYLOAD>();

/// What a frame behind the header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry<'a> {
    /// Something happened.
    Event(Event<'a>),
    /// The recorder ended in good order; a journal without it was left by one that was killed, or still runs.
    End,
    /// Of an archive: the next piece of the cassette's text, without messages.
    Text(&'a [u8]),
    /// Of an archive: a message that was cut out of the text.
    Message(CutMessage<'a>),
    /// Of an archive: a blob.
    Blob {
        /// Its name.
        name: &'a str,
        /// What stands in it.
        bytes: &'a [u8],
    },
    /// No frame, but where some were: what recovery skipped here.
    Lost(Damage),
}

/// A message that was cut out of a cassette's text, without the white space that laid it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, BorrowDecode)]
pub struct CutMessage<'a> {
    /// Where in the text without messages it stood.
    pub at: u64,
    /// How many containers of the file stood around it.
    pub level: u32,
    /// In which column it began.
    pub column: u32,
    /// Its text.
    pub flat: &'a [u8],
}

/// The payload of a frame. bincode tells variants by their position: new ones go to the end.
///
/// Events are written by [`fields`], and read by what stands here.
#[derive(Encode, BorrowDecode)]
enum Frame<'a> {
    Header(HeaderFrame),
    Event(EventFrame<'a>),
    End,
    Text(&'a [u8]),
    Message(CutMessage<'a>),
    Blob {
        name: &'a str,
        bytes: &'a [u8],
    },
    Continues {
        recording: u32,
        session: Option<u32>,
        journal: Option<&'a str>,
    },
    /// A number of one length whatever it is: it is written over in its place.
    Missed([u8; 8]),
}

#[derive(Encode, BorrowDecode)]
struct HeaderFrame {
    id: String,
    parent: u32,
    parent_start: u64,
    boot: String,
    started_ms: u64,
    by: String,
    transport: String,
    vars: Vec<String>,
    redacted: bool,
    replace: bool,
    cassette: Option<String>,
}

#[derive(Encode, BorrowDecode)]
struct EventFrame<'a> {
    at: u64,
    to_server: bool,
    lane: u32,
    payload: PayloadFrame<'a>,
}

#[derive(Encode, BorrowDecode)]
enum PayloadFrame<'a> {
    Message(&'a [u8]),
    Partial(&'a [u8]),
    Oversize {
        size: u64,
        sha256: [u8; 32],
        head: &'a [u8],
        tail: &'a [u8],
    },
    Closed,
    Exit {
        status: Option<i32>,
        signal: Option<i32>,
        by_itself: bool,
    },
    Gap {
        messages: u64,
    },
    Request {
        method: &'a [u8],
        target: &'a [u8],
        headers: HeaderFrames<'a>,
    },
    Response {
        status: u16,
        headers: HeaderFrames<'a>,
    },
    SseEvent {
        id: Option<&'a [u8]>,
        event: Option<&'a [u8]>,
        retry: Option<u64>,
        data: &'a [u8],
    },
    Body(&'a [u8]),
    Broken {
        reset: bool,
    },
    /// An event without data.
    SseFields {
        id: Option<&'a [u8]>,
        event: Option<&'a [u8]>,
        retry: Option<u64>,
    },
}

type HeaderFrames<'a> = Vec<(&'a [u8], &'a [u8])>;

/// Frames as bytes, each numbered behind the one before it.
#[derive(Debug, Default)]
pub struct Encoder {
    /// What has been encoded; whoever wrote it takes it out.
    pub bytes: Vec<u8>,
    /// The number of the next frame. What is not written although it was encoded takes none.
    pub number: u32,
}

impl Encoder {
    /// Begins with what a journal begins with: magic, version, the header's frame, and that of where it belongs if it is no
    /// recording of its own.
    pub fn new(header: &JournalHeader) -> Self {
        let mut encoder = Self { bytes: MAGIC.to_vec(), number: 0 };
        encoder.bytes.extend_from_slice(&VERSION.to_le_bytes());
        let header = header.clone();
        let continues = header.continues;
        encoder.frame(&Frame::Header(HeaderFrame {
            id: header.id,
            parent: header.parent,
            parent_start: header.parent_start,
            boot: header.boot,
            started_ms: header.started_ms,
            by: header.by,
            transport: header.transport,
            vars: header.vars,
            redacted: header.redacted,
            replace: header.replace,
            cassette: header.cassette,
        }));
        if let Some(Continues { recording, session, journal }) = continues {
            encoder.frame(&Frame::Continues { recording, session, journal: journal.as_deref() });
        }
        encoder
    }

    /// Appends the frame of one event; with room for it nothing is allocated.
    pub fn event(&mut self, event: &Event<'_>) {
        match &event.payload {
            Payload::Message(bytes) if bytes.len() > MAX_MESSAGE => self.cut(event, bytes),
            _ => self.framed(|out| fields::push(event, out)),
        }
    }

    /// Appends the frame of a message that no frame can hold.
    fn cut(&mut self, event: &Event<'_>, bytes: &[u8]) {
        let line = Oversize {
            size: bytes.len() as u64,
            sha256: Sha256::digest(bytes).into(),
            head: bytes[..4096].to_vec(),
            tail: bytes[bytes.len() - 4096..].to_vec(),
        };
        self.event(&Event { payload: Payload::Oversize(line), ..*event });
    }

    /// Appends the frame that counts what the recorder could not write. It is of one length whatever the number, and stands
    /// behind what [`Self::new`] gives: a recorder whose disk is full writes another one over it, with the same number.
    pub fn missed(&mut self, messages: u64) {
        self.frame(&Frame::Missed(messages.to_le_bytes()));
    }

    /// Appends the frame that says that the recorder ended in good order.
    pub fn end(&mut self) {
        self.frame(&Frame::End);
    }

    /// Appends the frame of what an archive holds; only its own parts can be longer than a frame.
    pub(super) fn part(&mut self, part: &Part<'_>) {
        self.frame(&match *part {
            Part::Text(text) => Frame::Text(text),
            Part::Message(message) => Frame::Message(message),
            Part::Blob { name, bytes } => Frame::Blob { name, bytes },
        });
    }

    fn frame(&mut self, frame: &Frame<'_>) {
        self.framed(|out| {
            bincode::encode_into_writer(frame, Out(out), CONFIG).expect("a vector takes every frame");
        });
    }

    /// Appends a frame with the payload that `push` appends.
    fn framed(&mut self, push: impl FnOnce(&mut Vec<u8>)) {
        head::push(self.number, &mut self.bytes, push);
        self.number = self.number.wrapping_add(1);
    }
}

/// What an archive holds before its end.
pub(super) enum Part<'a> {
    Text(&'a [u8]),
    Message(CutMessage<'a>),
    Blob { name: &'a str, bytes: &'a [u8] },
}

fn event_headers(frames: HeaderFrames<'_>) -> Headers<'_> {
    frames.into_iter().map(|(name, value)| (name.into(), value.into())).collect()
}

/// A vector as bincode writes to it: there is no error that would have to be asked for with every byte.
struct Out<'a>(&'a mut Vec<u8>);

impl Writer for Out<'_> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }
}

/// Reads one frame, as [`super::FramePlace`] names it; none where the bytes are damaged or of another version.
pub fn decode(frame: &[u8]) -> Option<Entry<'_>> {
    head::payload_of(frame).and_then(decode_payload)
}

/// Reads the payload of a frame that was found whole.
pub(super) fn decode_payload(payload: &[u8]) -> Option<Entry<'_>> {
    match decode_frame(payload)? {
        Frame::Header(_) | Frame::Continues { .. } | Frame::Missed(_) => None,
        Frame::Event(frame) => Some(Entry::Event(event(frame))),
        Frame::End => Some(Entry::End),
        Frame::Text(text) => Some(Entry::Text(text)),
        Frame::Message(message) => Some(Entry::Message(message)),
        Frame::Blob { name, bytes } => Some(Entry::Blob { name, bytes }),
    }
}

fn decode_frame(payload: &[u8]) -> Option<Frame<'_>> {
    let (frame, length) = bincode::borrow_decode_from_slice(payload, CONFIG).ok()?;
    (length == payload.len()).then_some(frame)
}

/// Whether the payload of a frame that was found whole is one that this version has.
pub(super) fn is_frame(payload: &[u8]) -> bool {
    decode_frame(payload).is_some()
}

/// Adds to a header what its first frame says, or one of those behind that belong to it; whether this is such a frame.
pub(super) fn add_to_header(payload: &[u8], is_first: bool, header: &mut JournalHeader) -> bool {
    match decode_frame(payload) {
        Some(Frame::Header(frame)) if is_first => {
            *header = JournalHeader {
                id: frame.id,
                parent: frame.parent,
                parent_start: frame.parent_start,
                boot: frame.boot,
                started_ms: frame.started_ms,
                by: frame.by,
                transport: frame.transport,
                vars: frame.vars,
                redacted: frame.redacted,
                replace: frame.replace,
                cassette: frame.cassette,
                continues: header.continues.take(),
                missed: header.missed,
            };
        }
        Some(Frame::Continues { recording, session, journal }) if !is_first => {
            header.continues = Some(Continues { recording, session, journal: journal.map(str::to_owned) });
        }
        Some(Frame::Missed(messages)) if !is_first => header.missed = u64::from_le_bytes(messages),
        _ => return false,
    }
    true
}

fn event(frame: EventFrame<'_>) -> Event<'_> {
    let payload = match frame.payload {
        PayloadFrame::Message(bytes) => Payload::Message(Cow::Borrowed(bytes)),
        PayloadFrame::Partial(bytes) => Payload::Partial(Cow::Borrowed(bytes)),
        PayloadFrame::Oversize { size, sha256, head, tail } => {
            Payload::Oversize(Oversize { size, sha256, head: head.to_vec(), tail: tail.to_vec() })
        }
        PayloadFrame::Closed => Payload::Closed,
        PayloadFrame::Exit { status, signal, by_itself } => Payload::Exit(Exit { status, signal, by_itself }),
        PayloadFrame::Gap { messages } => Payload::Gap { messages },
        PayloadFrame::Request { method, target, headers } => Payload::Request(RequestHead {
            method: method.into(),
            target: target.into(),
            headers: event_headers(headers),
        }),
        PayloadFrame::Response { status, headers } => {
            Payload::Response(ResponseHead { status, headers: event_headers(headers) })
        }
        PayloadFrame::SseEvent { id, event, retry, data } => Payload::SseEvent(SseEvent {
            id: id.map(Cow::Borrowed),
            event: event.map(Cow::Borrowed),
            retry,
            data: data.into(),
            no_data: false,
        }),
        PayloadFrame::SseFields { id, event, retry } => Payload::SseEvent(SseEvent {
            id: id.map(Cow::Borrowed),
            event: event.map(Cow::Borrowed),
            retry,
            data: Cow::Borrowed(b""),
            no_data: true,
        }),
        PayloadFrame::Body(bytes) => Payload::Body(Cow::Borrowed(bytes)),
        PayloadFrame::Broken { reset } => Payload::Broken { reset },
    };
    let direction = if frame.to_server { Direction::ToServer } else { Direction::ToClient };
    Event { at: frame.at, direction, lane: Lane(frame.lane), payload }
}

/// The same frame as bincode writes it.
#[cfg(test)]
pub(super) fn by_bincode(frame: &[u8]) -> Vec<u8> {
    let mut out = Encoder::default();
    out.frame(&head::payload_of(frame).and_then(decode_frame).expect("a frame"));
    out.bytes
}
