//! Lines as they pass: whole ones for faults to look at, and long ones in the pieces they come in.

use std::mem;

use memchr::memchr;

/// A stream cut into lines, but for those that are too long: their bytes pass as they come.
pub(super) struct Lines {
    limit: usize,
    open: Vec<u8>,
    passes: bool,
}

pub(super) enum Piece<'a> {
    /// A line without its end.
    Line(&'a [u8]),
    /// Of a long one, its end among them unless it `goes_on`.
    Part { bytes: &'a [u8], goes_on: bool },
}

impl Lines {
    pub(super) const fn new(limit: usize) -> Self {
        Self { limit, open: Vec::new(), passes: false }
    }

    pub(super) fn feed(&mut self, mut chunk: &[u8], mut each: impl FnMut(Piece<'_>)) {
        while let Some(end) = memchr(b'\n', chunk) {
            let (line, next) = chunk.split_at(end + 1);
            chunk = next;
            if mem::take(&mut self.passes) {
                each(Piece::Part { bytes: line, goes_on: false });
                continue;
            }
            let mut open = mem::take(&mut self.open);
            let line = if open.is_empty() {
                line
            } else {
                open.extend_from_slice(line);
                &open
            };
            each(match line.len() - 1 > self.limit {
                true => Piece::Part { bytes: line, goes_on: false },
                false => Piece::Line(&line[..line.len() - 1]),
            });
        }
        if self.passes && !chunk.is_empty() {
            return each(Piece::Part { bytes: chunk, goes_on: true });
        }
        self.open.extend_from_slice(chunk);
        if self.open.len() > self.limit {
            self.passes = true;
            each(Piece::Part { bytes: &mem::take(&mut self.open), goes_on: true });
        }
    }

    /// What stands behind the last line end.
    pub(super) fn finish(&mut self) -> Vec<u8> {
        mem::take(&mut self.open)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_cut_alike_wherever_it_is_read_and_loses_nothing() {
        let text = b"one\n\na line that is too long\r\ntwo\nlast";
        let cut = |chunks: &[&[u8]]| {
            let (mut lines, mut whole, mut bytes) = (Lines::new(8), Vec::new(), Vec::new());
            for chunk in chunks {
                lines.feed(chunk, |piece| match piece {
                    Piece::Line(line) => {
                        whole.push(String::from_utf8(line.to_vec()).unwrap());
                        bytes.extend_from_slice(&[line, b"\n"].concat());
                    }
                    Piece::Part { bytes: part, .. } => bytes.extend_from_slice(part),
                });
            }
            bytes.extend(lines.finish());
            (whole, bytes)
        };
        for at in 0..=text.len() {
            let (whole, bytes) = cut(&[&text[..at], &text[at..]]);
            assert_eq!(
                (whole, &bytes[..]),
                (vec!["one".into(), String::new(), "two".into()], &text[..]),
                "{at}"
            );
        }
        assert_eq!(cut(&text.chunks(1).collect::<Vec<_>>()).1, text);
    }
}
