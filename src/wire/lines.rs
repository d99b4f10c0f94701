//! A byte stream cut into lines.
//!
//! `\n` alone ends a line (specification, basic/transports, stdio); a `\r` before it belongs to the line's bytes. A
//! line that is whole in one read is not copied. A line longer than the limit is not kept: it is measured, hashed,
//! and its envelope is read from its two ends.

use memchr::memchr;
use sha2::{Digest, Sha256};

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
    limit: usize,
    partial: Vec<u8>,
    oversize: Option<(Sha256, Oversize)>,
}

impl LineSplitter {
    /// Lines up to `limit` bytes are kept whole.
    pub const fn new(limit: usize) -> Self {
        Self { limit, partial: Vec::new(), oversize: None }
    }

    /// Gives each line that `chunk` ends to `each`, in order.
    pub fn feed(&mut self, mut chunk: &[u8], mut each: impl FnMut(Line<'_>)) {
        while let Some(end) = memchr(b'\n', chunk) {
            let (rest, next) = (&chunk[..end], &chunk[end + 1..]);
            chunk = next;
            if self.oversize.is_none() && self.partial.is_empty() && rest.len() <= self.limit {
                each(Line::Whole(rest));
                continue;
            }
            self.keep(rest);
            match self.oversize.take() {
                Some((hash, line)) => {
                    each(Line::Oversize(Oversize { sha256: hash.finalize().into(), ..line }))
                }
                None => each(Line::Whole(&self.partial)),
            }
            // A long line's room is given back; an ordinary one's is used again.
            if self.partial.capacity() > 1 << 20 {
                self.partial = Vec::new();
            } else {
                self.partial.clear();
            }
        }
        self.keep(chunk);
    }

    /// What stands behind the last `\n`, at the end of the stream.
    pub fn finish(self) -> Option<Vec<u8>> {
        match self.oversize {
            Some((_, line)) => Some(line.head),
            None if self.partial.is_empty() => None,
            None => Some(self.partial),
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.oversize.is_none() && self.partial.len() + bytes.len() <= self.limit {
            self.partial.extend_from_slice(bytes);
            return;
        }
        let before = std::mem::take(&mut self.partial);
        let (hash, line) = self.oversize.get_or_insert_with(|| {
            (Sha256::new(), Oversize { size: 0, sha256: [0; 32], head: Vec::new(), tail: Vec::new() })
        });
        for bytes in [&before[..], bytes] {
            hash.update(bytes);
            line.size += bytes.len() as u64;
            let room = EDGE - line.head.len();
            line.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
            line.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(EDGE)..]);
            let over = line.tail.len().saturating_sub(EDGE);
            line.tail.drain(..over);
        }
    }
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
        splitter.feed(&long[..3000], |_| unreachable!());
        splitter.feed(&[&long[3000..], b"\n"].concat(), |line| {
            let Line::Oversize(line) = line else { panic!("kept whole") };
            assert_eq!((line.size, line.head, line.tail), (10_000, b"A".repeat(4096), b"Z".repeat(4096)));
        });
    }
}
