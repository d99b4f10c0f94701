//! An event stream cut into events that keep their bytes.

use memchr::memchr2;

use crate::wire::sse::{EventStream, Piece, SseEvent};

/// A part of a stream.
pub(super) enum Part {
    /// An event.
    Event(SseEvent<'static>),
    /// Nothing that a client would call an event: a comment, or empty lines.
    Nothing,
    /// An event with more data than is kept, or a part of one.
    Bytes {
        /// More of the same follows.
        goes_on: bool,
    },
}

/// Cuts what it is fed; holds at most an event.
pub(super) struct Cutter {
    stream: EventStream,
    raw: Vec<u8>,
    limit: usize,
    /// Nothing has come of the line that is under way.
    at_start: bool,
    /// The last byte was a CR: a LF now belongs to it.
    after_cr: bool,
}

impl Cutter {
    /// Events with up to `limit` bytes of data are kept whole.
    pub(super) const fn new(limit: usize) -> Self {
        let stream = EventStream::new(limit);
        Self { stream, raw: Vec::new(), limit, at_start: true, after_cr: false }
    }

    /// Gives each part that `chunk` ends, with its bytes.
    pub(super) fn feed(&mut self, chunk: &[u8], mut each: impl FnMut(Part, Vec<u8>)) {
        let mut rest = chunk;
        while !rest.is_empty() {
            let mut end = memchr2(b'\n', b'\r', rest).map_or(rest.len(), |at| at + 1);
            if rest[end - 1] == b'\r' && rest.get(end) == Some(&b'\n') {
                end += 1;
            }
            let (line, behind) = rest.split_at(end);
            rest = behind;
            let is_second_half = std::mem::take(&mut self.after_cr) && line == b"\n";
            let is_blank = self.at_start && !is_second_half && matches!(line, b"\n" | b"\r" | b"\r\n");
            let mut part = is_blank.then_some(Part::Nothing);
            self.stream.feed(line, |piece| {
                part = Some(match piece {
                    Piece::Event(event) => Part::Event(event),
                    Piece::Oversize(_) => Part::Bytes { goes_on: false },
                });
            });
            self.raw.extend_from_slice(line);
            self.at_start = line.ends_with(b"\n") || line.ends_with(b"\r");
            self.after_cr = line.ends_with(b"\r");
            if part.is_none() && self.raw.len() > self.limit + (64 << 10) {
                part = Some(Part::Bytes { goes_on: true });
            }
            if let Some(part) = part {
                each(part, std::mem::take(&mut self.raw));
            }
        }
    }

    /// What has come behind the last part.
    pub(super) fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.raw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_keep_their_bytes_wherever_a_stream_is_cut() {
        let text = b": hi\r\n\r\nid: 1\r\ndata: a\r\n\r\n\ndata:b\rdata: c\r\r: there\n\nevent: x\ndata: d\n\ndata: e";
        for cut in 0..=text.len() {
            let mut cutter = Cutter::new(100);
            let (mut events, mut raw) = (Vec::new(), Vec::new());
            for chunk in [&text[..cut], &text[cut..]] {
                cutter.feed(chunk, |part, bytes| {
                    raw.extend(bytes);
                    if let Part::Event(event) = part {
                        events.push(String::from_utf8(event.data.into_owned()).unwrap());
                    }
                });
            }
            assert_eq!(events, ["a", "b\nc", "d"], "cut at {cut}");
            raw.extend(cutter.rest());
            assert_eq!(raw, text, "cut at {cut}");
        }
    }

    #[test]
    fn a_comment_is_nothing_and_what_is_too_long_is_bytes() {
        let mut cutter = Cutter::new(10);
        let mut parts = Vec::new();
        let long = format!(": hi\n\ndata: {}\n\ndata: 1\n\n", "x".repeat(100 << 10));
        for chunk in long.as_bytes().chunks(1000) {
            cutter.feed(chunk, |part, bytes| {
                parts.push(match part {
                    Part::Nothing => ("nothing", bytes.len()),
                    Part::Event(_) => ("event", bytes.len()),
                    Part::Bytes { goes_on: true } => ("goes on", bytes.len()),
                    Part::Bytes { goes_on: false } => ("ends", bytes.len()),
                });
            });
        }
        let names: Vec<&str> = parts.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["nothing", "goes on", "ends", "event"]);
        assert_eq!(parts.iter().map(|(_, length)| length).sum::<usize>(), long.len());
    }
}
