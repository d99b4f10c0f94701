//! The `endpoint` event of HTTP+SSE (2024-11-05), when it names the server's own address: clients refuse an endpoint on
//! another origin than the one they asked (F5), so ours takes its place.
//!
//! Bytes pass as they come, except a `data` line that may begin with the server's origin: that waits for the end of
//! its event, which says whether it is an endpoint. A message begins with `{`, so no message ever waits.

use hyper::body::Bytes;

use crate::{
    transport::http::origin::Origin,
    wire::{http, sse::SseEvent},
};

/// The longest event that is held back; a longer one is no endpoint.
const LONGEST: usize = 16 << 10;

/// Rewrites one stream.
#[derive(Debug)]
pub(super) struct Endpoint {
    upstream: Origin,
    ours: String,
    line: Line,
    /// The line so far, as long as it may matter.
    text: Vec<u8>,
    /// Bytes that wait, and where in them the address stands.
    held: Vec<u8>,
    address: Option<(usize, usize)>,
    is_endpoint: bool,
    after_cr: bool,
    has_changed: bool,
    has_ended: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    /// It may still be one that matters.
    Open,
    /// It is none.
    Plain,
}

impl Endpoint {
    pub(super) fn new(upstream: &Origin, ours: &str) -> Self {
        Self {
            upstream: upstream.clone(),
            ours: ours.to_owned(),
            line: Line::Open,
            text: Vec::new(),
            held: Vec::new(),
            address: None,
            is_endpoint: false,
            after_cr: false,
            has_changed: false,
            has_ended: false,
        }
    }

    /// What may be passed on now.
    pub(super) fn feed(&mut self, chunk: Bytes) -> Bytes {
        if self.is_unchanged(&chunk) {
            return chunk;
        }
        let mut out = Vec::with_capacity(self.held.len() + chunk.len());
        self.feed_slice(&chunk, &mut out);
        out.into()
    }

    /// The same, appended.
    pub(super) fn feed_slice(&mut self, chunk: &[u8], out: &mut Vec<u8>) {
        if self.is_unchanged(chunk) {
            return out.extend_from_slice(chunk);
        }
        for &byte in chunk {
            self.byte(byte, out);
        }
    }

    /// Whether this is within a line that does not matter.
    fn is_unchanged(&self, chunk: &[u8]) -> bool {
        let is_plain = self.held.is_empty() && self.line == Line::Plain;
        is_plain && memchr::memchr2(b'\r', b'\n', chunk).is_none()
    }

    /// What still waited when the stream ended.
    pub(super) fn finish(&mut self) -> Bytes {
        std::mem::take(&mut self.held).into()
    }

    /// Whether something waits.
    pub(super) fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    /// Whether an address has changed since that was asked.
    pub(super) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.has_changed)
    }

    /// Whether an event has ended since that was asked.
    pub(super) fn take_ended(&mut self) -> bool {
        std::mem::take(&mut self.has_ended)
    }

    fn byte(&mut self, byte: u8, out: &mut Vec<u8>) {
        let is_second_half = std::mem::take(&mut self.after_cr) && byte == b'\n';
        self.held.push(byte);
        if is_second_half {
            // It belongs to a line end that has been dealt with.
        } else if matches!(byte, b'\r' | b'\n') {
            self.after_cr = byte == b'\r';
            self.end_line(out);
        } else if self.line == Line::Open {
            self.text.push(byte);
            self.judge();
        }
        let waits = self.address.is_some() || (self.line == Line::Open && may_be_address(&self.text));
        if !waits || self.held.len() > LONGEST {
            self.address = None;
            out.append(&mut self.held);
        }
    }

    /// Whether the line so far can still be `event: endpoint` or an address.
    fn judge(&mut self) {
        let text = self.text.as_slice();
        let matters = b"event: endpoint".starts_with(text)
            || b"event:endpoint".starts_with(text)
            || may_be_address(text);
        if !matters || text.len() > LONGEST {
            self.line = Line::Plain;
        }
    }

    fn end_line(&mut self, out: &mut Vec<u8>) {
        let text = std::mem::take(&mut self.text);
        let line = std::mem::replace(&mut self.line, Line::Open);
        if line == Line::Plain {
            return;
        }
        if text.is_empty() {
            self.end_event(out);
        } else if text == b"event: endpoint" || text == b"event:endpoint" {
            self.is_endpoint = true;
        } else if let Some(value) = value(&text)
            && self.upstream.strip(value).is_some()
        {
            let end = self.held.len() - 1;
            self.address = Some((end - value.len(), end));
        }
    }

    fn end_event(&mut self, out: &mut Vec<u8>) {
        let is_endpoint = std::mem::take(&mut self.is_endpoint);
        if let Some((start, end)) = self.address.take()
            && is_endpoint
            && let Some(address) = self.upstream.replace(&self.held[start..end], &self.ours)
        {
            self.held.splice(start..end, address);
            self.has_changed = true;
        }
        self.has_ended = true;
        out.append(&mut self.held);
    }
}

/// An event as it is recorded: the address in an endpoint is on no origin in particular.
pub(super) fn recorded(event: SseEvent<'static>, upstream: &Origin) -> SseEvent<'static> {
    if event.event.as_deref() != Some(b"endpoint") {
        return event;
    }
    let data = upstream.replace(&event.data, http::ORIGIN).map_or(event.data, Into::into);
    SseEvent { data, ..event }
}

/// The value of a `data` line.
fn value(line: &[u8]) -> Option<&[u8]> {
    let value = line.strip_prefix(b"data:")?;
    Some(value.strip_prefix(b" ").unwrap_or(value))
}

/// Whether a line begins as a `data` line with an absolute address does, as far as it has come.
fn may_be_address(line: &[u8]) -> bool {
    if line.len() < 5 {
        return !line.is_empty() && b"data:".starts_with(line);
    }
    let Some(value) = value(line) else { return false };
    let starts = |prefix: &[u8]| {
        let length = prefix.len().min(value.len());
        value[..length].eq_ignore_ascii_case(&prefix[..length])
    };
    starts(b"http://") || starts(b"https://") || starts(b"//")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(chunks: &[&[u8]]) -> (String, String) {
        let upstream = Origin::new(false, "127.0.0.1:9000").unwrap();
        let mut endpoint = Endpoint::new(&upstream, "http://localhost:1");
        let mut out = Vec::new();
        for chunk in chunks {
            out.extend_from_slice(&endpoint.feed(Bytes::copy_from_slice(chunk)));
        }
        let rest = endpoint.finish();
        (String::from_utf8(out).unwrap(), String::from_utf8(rest.to_vec()).unwrap())
    }

    fn check(text: &str, expected: &str) {
        for cut in 0..=text.len() {
            let (left, right) = text.as_bytes().split_at(cut);
            assert_eq!(run(&[left, right]), (expected.to_owned(), String::new()), "{text:?} cut at {cut}");
        }
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(run(&bytes).0, expected, "{text:?} byte by byte");
    }

    #[test]
    fn an_endpoint_on_the_servers_origin_becomes_one_on_ours() {
        for end in ["\n", "\r", "\r\n"] {
            let event = |address: &str| {
                format!(": hi|event: endpoint|data: {address}||data: {{}}||").replace('|', end)
            };
            check(
                &event("http://127.0.0.1:9000/m/?s=1&x=1%2F2"),
                &event("http://localhost:1/m/?s=1&x=1%2F2"),
            );
            for same in ["/messages?s=1", "http://127.0.0.1:90/m", "https://elsewhere.example/", ""] {
                check(&event(same), &event(same));
            }
        }
        check(
            "data:HTTP://127.0.0.1:9000/m\nevent:endpoint\n\n",
            "data:http://localhost:1/m\nevent:endpoint\n\n",
        );
    }

    #[test]
    fn other_events_stay_as_they_are() {
        for text in [
            "data: http://127.0.0.1:9000/m\n\n",
            "event: endpoints\ndata: http://127.0.0.1:9000/m\n\n",
            "event: endpoint\n\nevent: message\ndata: http://127.0.0.1:9000/m\n\n",
            ": data: http://127.0.0.1:9000/m\n\r\r\n\n",
        ] {
            check(text, text);
        }
    }

    #[test]
    fn messages_do_not_wait() {
        let (out, rest) = run(&[b"event: message\ndata: {\"a\""]);
        assert_eq!((out.as_str(), rest.as_str()), ("event: message\ndata: {\"a\"", ""));
        let (out, rest) = run(&[b"data: http://127.0"]);
        assert_eq!((out.as_str(), rest.as_str()), ("", "data: http://127.0"));
    }
}
