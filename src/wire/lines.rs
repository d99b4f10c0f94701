//! A byte stream cut into lines.
//!
//! `\n` alone ends a line (specification, basic/transports, stdio); a `\r` before it belongs to the line's bytes. A
//! line that is whole in one read is not copied. A line longer than the limit is not kept: it is measured, hashed,
//! and its envelope is read from its two ends.

use memchr::{memchr, memchr2};
use sha2::{Digest, Sha256};

use super::jsonrpc::{Kind, Message};

/// How much of each end of an oversize line is kept to read its envelope from.
const EDGE: usize = 4096;

/// One line, without the `\n` that ended it.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// The line's bytes.
    Whole(&'a [u8]),
    /// A line over the limit.
    Oversize(Oversize),
}

/// What is known of a line over the limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Oversize {
    /// Its length in bytes, without the `\n`.
    pub size: u64,
    /// SHA-256 of those bytes.
    pub sha256: [u8; 32],
    /// Its first bytes, at most 4 KiB.
    pub head: Vec<u8>,
    /// Its last bytes, at most 4 KiB.
    pub tail: Vec<u8>,
}

/// Cuts what it is fed into lines; holds at most the limit of an unfinished one.
#[derive(Debug)]
pub struct LineSplitter {
    open: Unfinished,
    /// The line that came in several pieces and ended in the last one; its room is used again.
    joined: Vec<u8>,
}

/// Bytes that are still coming: kept up to a limit, only measured beyond it.
#[derive(Debug)]
pub(crate) struct Unfinished {
    limit: usize,
    bytes: Vec<u8>,
    /// Seldom there, and large.
    oversize: Option<Box<(Sha256, Oversize)>>,
}

impl LineSplitter {
    /// Lines up to `limit` bytes are kept whole.
    pub const fn new(limit: usize) -> Self {
        Self { open: Unfinished::new(limit), joined: Vec::new() }
    }

    /// Gives each line that `chunk` ends to `each`, in order; they can be kept until the next chunk.
    pub fn feed<'a>(&'a mut self, mut chunk: &'a [u8], mut each: impl FnMut(Line<'a>)) {
        let Self { open, joined } = self;
        // A long line's room is given back.
        if joined.capacity() > 1 << 20 {
            *joined = Vec::new();
        }
        // Only the first line can have begun in an earlier chunk.
        if open.has_begun()
            && let Some(end) = memchr(b'\n', chunk)
        {
            open.keep(&chunk[..end]);
            chunk = &chunk[end + 1..];
            each(open.take(joined));
        }
        while let Some(end) = memchr(b'\n', chunk) {
            let (line, next) = (&chunk[..end], &chunk[end + 1..]);
            chunk = next;
            each(match line.len() > open.limit {
                true => Line::Oversize(Oversize::measure(line)),
                false => Line::Whole(line),
            });
        }
        open.keep(chunk);
    }

    /// What ends a stream's last line where its sender did not, and it is a message; else nothing. A server reads that.
    pub fn missing_end(&self) -> &'static [u8] {
        match Message::read(self.open.so_far()).kind {
            Kind::Noise => b"",
            _ => b"\n",
        }
    }

    /// What ends a stream's last line, whatever that is, where its sender did not.
    pub fn end(&self) -> &'static [u8] {
        if self.open.has_begun() { b"\n" } else { b"" }
    }

    /// What stands behind the last `\n`, at the end of the stream.
    pub fn finish(self) -> Option<Vec<u8>> {
        match self.open.oversize {
            Some(oversize) => Some(oversize.1.head),
            None if self.open.bytes.is_empty() => None,
            None => Some(self.open.bytes),
        }
    }
}

impl Unfinished {
    /// Up to `limit` bytes are kept.
    pub(crate) const fn new(limit: usize) -> Self {
        Self { limit, bytes: Vec::new(), oversize: None }
    }

    /// What has come so far, or its beginning.
    pub(crate) fn so_far(&self) -> &[u8] {
        self.oversize.as_ref().map_or(&self.bytes, |oversize| &oversize.1.head)
    }

    /// What came, now that all of it has; begins anew.
    pub(crate) fn end(&mut self) -> Result<Vec<u8>, Oversize> {
        match self.oversize.take() {
            Some(oversize) => Err(oversize_of(*oversize)),
            None => Ok(std::mem::take(&mut self.bytes)),
        }
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.oversize.is_some() || !self.bytes.is_empty()
    }

    pub(crate) fn keep(&mut self, bytes: &[u8]) {
        if self.oversize.is_none() && self.bytes.len() + bytes.len() <= self.limit {
            self.bytes.extend_from_slice(bytes);
            return;
        }
        let before = std::mem::take(&mut self.bytes);
        let (hash, line) =
            &mut **self.oversize.get_or_insert_with(|| Box::new((Sha256::new(), Oversize::EMPTY)));
        line.add(hash, &before);
        line.add(hash, bytes);
    }

    /// The line, now that it has ended.
    fn take<'a>(&mut self, joined: &'a mut Vec<u8>) -> Line<'a> {
        if let Some(oversize) = self.oversize.take() {
            return Line::Oversize(oversize_of(*oversize));
        }
        joined.clear();
        std::mem::swap(joined, &mut self.bytes);
        Line::Whole(joined)
    }
}

/// What was measured, with its hash.
fn oversize_of((hash, measured): (Sha256, Oversize)) -> Oversize {
    Oversize { sha256: hash.finalize().into(), ..measured }
}

impl Oversize {
    const EMPTY: Self = Self { size: 0, sha256: [0; 32], head: Vec::new(), tail: Vec::new() };

    pub(crate) fn measure(line: &[u8]) -> Self {
        let (mut hash, mut measured) = (Sha256::new(), Self::EMPTY);
        measured.add(&mut hash, line);
        Self { sha256: hash.finalize().into(), ..measured }
    }

    fn add(&mut self, hash: &mut Sha256, bytes: &[u8]) {
        hash.update(bytes);
        self.size += bytes.len() as u64;
        let room = EDGE - self.head.len();
        self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(EDGE)..]);
        let over = self.tail.len().saturating_sub(EDGE);
        self.tail.drain(..over);
    }
}

/// What came as a body or as an event's data, as a client that reads lines gets it: a message on one line, whatever it
/// has between its tokens and around it; anything else as it was.
pub fn into_line(text: Vec<u8>) -> Vec<u8> {
    let begins = matches!(text.first(), Some(b'{' | b'['));
    if (begins && memchr2(b'\n', b'\r', &text).is_none()) || Message::read(&text).kind == Kind::Noise {
        return text;
    }
    one_line(&text)
}

/// A message on one line: line ends can only stand between its tokens, where a space means the same.
pub fn one_line(message: &[u8]) -> Vec<u8> {
    let whole = super::scan::trim(message);
    let mut line = whole.of(message).to_vec();
    for byte in &mut line {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(limit: usize, chunks: &[&[u8]]) -> (Vec<String>, Option<Vec<u8>>) {
        let mut splitter = LineSplitter::new(limit);
        let mut seen = Vec::new();
        for chunk in chunks {
            splitter.feed(chunk, |line| {
                seen.push(match line {
                    Line::Whole(bytes) => String::from_utf8_lossy(bytes).into_owned(),
                    Line::Oversize(line) => {
                        format!("{} {:02x}{:02x}", line.size, line.sha256[0], line.sha256[1])
                    }
                });
            });
        }
        (seen, splitter.finish())
    }

    #[test]
    fn lines_are_the_same_wherever_the_stream_is_cut() {
        let text = "{\"a\":\"né 😀\"}\r\n\n  \nthe last\nno end".as_bytes();
        let whole = lines(64, &[text]);
        assert_eq!(whole.0, ["{\"a\":\"né 😀\"}\r", "", "  ", "the last"]);
        assert_eq!(whole.1.as_deref(), Some(&b"no end"[..]));
        for cut in 0..=text.len() {
            assert_eq!(lines(64, &[&text[..cut], &text[cut..]]), whole, "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(lines(64, &bytes), whole);
    }

    #[test]
    fn a_line_over_the_limit_is_measured_and_the_next_one_is_whole() {
        let text = b"0123456789\nok\n";
        // sha256("0123456789") begins 84d8.
        for cut in 0..=text.len() {
            let (seen, rest) = lines(9, &[&text[..cut], &text[cut..]]);
            assert_eq!(
                (seen.as_slice(), rest),
                (&["10 84d8".to_owned(), "ok".to_owned()][..], None),
                "cut at {cut}"
            );
        }
    }

    #[test]
    fn both_ends_of_an_oversize_line_are_kept() {
        let long = [b"A".repeat(5000), b"Z".repeat(5000)].concat();
        let mut splitter = LineSplitter::new(100);
        let rest = [&long[3000..], b"\n"].concat();
        splitter.feed(&long[..3000], |_| unreachable!());
        splitter.feed(&rest, |line| {
            let Line::Oversize(line) = line else { panic!("kept whole") };
            assert_eq!((line.size, line.head, line.tail), (10_000, b"A".repeat(4096), b"Z".repeat(4096)));
        });
    }

    #[test]
    fn the_lines_of_one_chunk_can_be_kept_together() {
        let mut splitter = LineSplitter::new(64);
        splitter.feed(b"be", |_| unreachable!());
        let mut kept = Vec::new();
        splitter.feed(b"gun\nwhole\nnex", |line| kept.push(line));
        assert_eq!(kept, [Line::Whole(b"begun"), Line::Whole(b"whole")]);
        kept.clear();
        splitter.feed(b"t\n", |line| assert_eq!(line, Line::Whole(b"next")));
    }
}
