//! Bodies that do not go on as they came, since the server names its own address in them: the document that says where
//! its tokens come from, and the `endpoint` event of HTTP+SSE. Where they do not, their bytes do.

use super::{
    super::{
        Front,
        endpoint::Endpoint,
        heard::Heard,
        metadata::{LONGEST, rewrite_document},
    },
    form::Form,
    request::put,
};
use crate::{
    transport::http::{
        chunks::{Came, Chunks},
        origin::Origin,
        plain,
    },
    wire::http,
};

/// So much of a chunk waits for the rest of it.
const MOST_OF_CHUNK: usize = 16 << 10;

/// A body that may have to change.
pub(super) enum Changed {
    Document(Document),
    Events(Events),
}

/// A document, which waits until it is whole.
pub(super) struct Document {
    /// The response's head, which may tell its length.
    head: Vec<u8>,
    /// What has come of it, and what of that is data.
    raw: Vec<u8>,
    data: Vec<u8>,
    upstream: Origin,
    ours: String,
    is_in_chunks: bool,
    is_over: bool,
}

/// The events that a `GET` gives. A chunk of them waits until it is whole, since its size may change: what comes of it
/// before is a part of an event, or goes on as a chunk of its own.
pub(super) struct Events {
    endpoint: Endpoint,
    /// Chunks as they came, that wait, and where in them the one begins that is not whole.
    raw: Vec<u8>,
    open: usize,
    /// Of that one some data has come.
    has_data: bool,
    /// What of their data may go on.
    data: Vec<u8>,
    /// A part of it has gone on, so their sizes are no longer theirs.
    is_split: bool,
}

impl Changed {
    /// A document whose response's head is this, as its client is to have it; `ours` is our origin as that knows it.
    pub(super) fn document(head: Vec<u8>, form: &Form, front: &Front, ours: String) -> Self {
        Self::Document(Document {
            head,
            raw: Vec::new(),
            data: Vec::new(),
            upstream: front.upstream.origin.clone(),
            ours,
            is_in_chunks: matches!(form, Form::Chunks(_)),
            is_over: false,
        })
    }

    /// Events, for a client that knows us by the origin `ours`.
    pub(super) fn events(front: &Front, ours: &str) -> Self {
        Self::Events(Events {
            endpoint: Endpoint::new(&front.upstream.origin, ours),
            raw: Vec::new(),
            open: 0,
            has_data: false,
            data: Vec::new(),
            is_split: false,
        })
    }

    /// Takes in what has come, and appends what may go on; how much of it belongs to the body.
    pub(super) fn feed(
        &mut self,
        form: &mut Form,
        heard: &mut Heard,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> (usize, Came) {
        match (self, form) {
            (Self::Document(document), form) => document.feed(form, heard, bytes, out),
            (Self::Events(events), Form::Chunks(chunks)) => events.feed(chunks, heard, bytes, out),
            (Self::Events(events), form) => form.feed(bytes, |data| {
                heard.feed(data);
                events.endpoint.feed_slice(data, out);
            }),
        }
    }

    /// Appends what waits, now that nothing more comes; whether it has come whole.
    pub(super) fn finish(&mut self, is_whole: bool, heard: &mut Heard, out: &mut Vec<u8>) {
        match self {
            Self::Document(document) if is_whole => document.finish(heard, out),
            Self::Document(document) => document.gives_up(heard, out),
            Self::Events(events) => events.finish(is_whole, out),
        }
    }
}

impl Document {
    fn feed(&mut self, form: &mut Form, heard: &mut Heard, bytes: &[u8], out: &mut Vec<u8>) -> (usize, Came) {
        if self.is_over {
            let (count, came) = form.feed(bytes, |data| heard.feed(data));
            out.extend_from_slice(&bytes[..count]);
            return (count, came);
        }
        let (count, came) = form.feed(bytes, |data| self.data.extend_from_slice(data));
        self.raw.extend_from_slice(&bytes[..count]);
        if came == Came::Open && self.raw.len() > LONGEST {
            self.gives_up(heard, out);
        }
        (count, came)
    }

    /// It goes on as it came, for it is none, or will never be whole.
    fn gives_up(&mut self, heard: &mut Heard, out: &mut Vec<u8>) {
        if !std::mem::replace(&mut self.is_over, true) {
            heard.feed(&std::mem::take(&mut self.data));
            out.append(&mut self.head);
            out.append(&mut self.raw);
        }
    }

    fn finish(&mut self, heard: &mut Heard, out: &mut Vec<u8>) {
        let Some(recorded) = rewrite_document(&self.data, &self.upstream, http::ORIGIN) else {
            return self.gives_up(heard, out);
        };
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        heard.feed(&recorded);
        let document = rewrite_document(&self.data, &self.upstream, &self.ours).unwrap_or_default();
        for line in plain::lines(&self.head) {
            let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
            match name.eq_ignore_ascii_case(b"content-length") {
                true => put(out, name, document.len().to_string().as_bytes()),
                false => out.extend_from_slice(line),
            }
        }
        if self.is_in_chunks {
            put_chunk(out, &document);
            out.extend_from_slice(b"0\r\n\r\n");
        } else {
            out.extend_from_slice(&document);
        }
    }
}

impl Events {
    fn feed(
        &mut self,
        chunks: &mut Chunks,
        heard: &mut Heard,
        bytes: &[u8],
        out: &mut Vec<u8>,
    ) -> (usize, Came) {
        let mut at = 0;
        loop {
            let (count, came) = chunks.feed_chunk(&bytes[at..], |data| {
                heard.feed(data);
                self.endpoint.feed_slice(data, &mut self.data);
                self.has_data = true;
            });
            self.raw.extend_from_slice(&bytes[at..at + count]);
            at += count;
            let has_event = self.endpoint.take_ended();
            if chunks.is_between() {
                (self.open, self.has_data) = (self.raw.len(), false);
            }
            if chunks.is_between() && !self.endpoint.holds() {
                self.goes(true, out);
            } else if has_event || self.is_split || self.raw.len() > MOST_OF_CHUNK {
                self.splits(out);
            }
            if came != Came::Open || at == bytes.len() {
                return (at, came);
            }
        }
    }

    /// What waits goes, as it came where it may.
    fn goes(&mut self, is_whole: bool, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.is_split) | self.endpoint.take_changed() {
            put_chunk(out, &self.data);
            // The last chunk has no data, and stays what it is.
            out.extend_from_slice(if is_whole { &self.raw[self.open..] } else { b"" });
        } else {
            out.extend_from_slice(&self.raw);
        }
        self.raw.clear();
        self.data.clear();
        self.open = 0;
    }

    /// What of the data may go on goes.
    fn splits(&mut self, out: &mut Vec<u8>) {
        if self.data.is_empty() {
            return;
        }
        put_chunk(out, &self.data);
        self.data.clear();
        self.endpoint.take_changed();
        self.is_split = true;
        if self.has_data {
            self.raw.clear();
        } else {
            self.raw.drain(..self.open);
        }
        self.open = 0;
    }

    fn finish(&mut self, is_whole: bool, out: &mut Vec<u8>) {
        self.data.extend_from_slice(&self.endpoint.finish());
        self.goes(is_whole, out);
    }
}

/// Appends a chunk, where there is something in it: an empty one would be the last.
fn put_chunk(out: &mut Vec<u8>, data: &[u8]) {
    if !data.is_empty() {
        out.extend_from_slice(format!("{:X}\r\n", data.len()).as_bytes());
        out.extend_from_slice(data);
        out.extend_from_slice(b"\r\n");
    }
}
