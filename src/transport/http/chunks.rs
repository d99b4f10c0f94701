//! Where in a chunked body its data stands, and where the body ends (RFC 9112, 7.1). Nothing is taken out of it: whoever
//! passes it on does so with the framing that it came in.

/// How many bytes extensions and trailers of one body may have.
const MOST_BESIDE: usize = 16 << 10;

/// Follows one body.
#[derive(Debug)]
pub struct Chunks {
    place: Place,
    /// How many bytes of extensions and trailers have come.
    beside: usize,
}

/// What the next byte is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// A chunk's size, whose first digit has come or not.
    Size(u64, bool),
    /// Behind the size, up to the line's end.
    Extension(u64),
    /// What belongs to the CR of that line.
    SizeEnd(u64),
    /// So many bytes are data.
    Data(u64),
    /// The end of a chunk.
    DataCr,
    DataLf,
    /// A trailer's first byte, or the end.
    Trailer,
    /// A trailer, up to its line's end.
    InTrailer,
    TrailerLf,
    /// The end of the body.
    LastLf,
    Over,
}

/// How far a body has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Came {
    /// It goes on.
    Open,
    /// It is whole.
    Whole,
    /// What follows is no part of one.
    Broken,
}

impl Default for Chunks {
    fn default() -> Self {
        Self { place: Place::Size(0, false), beside: 0 }
    }
}

impl Chunks {
    /// Gives the data in `bytes` to `each`; how many of them belong to the body.
    pub fn feed<'a>(&mut self, bytes: &'a [u8], each: impl FnMut(&'a [u8])) -> (usize, Came) {
        self.run::<false>(bytes, each)
    }

    /// The same, and no further than to the end of a chunk.
    pub fn feed_chunk<'a>(&mut self, bytes: &'a [u8], each: impl FnMut(&'a [u8])) -> (usize, Came) {
        self.run::<true>(bytes, each)
    }

    /// Whether the next byte is the first of a chunk.
    pub fn is_between(&self) -> bool {
        self.place == Place::Size(0, false)
    }

    fn run<'a, const ONE: bool>(&mut self, bytes: &'a [u8], mut each: impl FnMut(&'a [u8])) -> (usize, Came) {
        let mut at = 0;
        while at < bytes.len() && self.place != Place::Over {
            if let Place::Data(left) = self.place {
                let rest = &bytes[at..];
                let count = usize::try_from(left).map_or(rest.len(), |left| left.min(rest.len()));
                each(&rest[..count]);
                at += count;
                self.place = match left - count as u64 {
                    0 => Place::DataCr,
                    left => Place::Data(left),
                };
                continue;
            }
            let Some(next) = self.behind(bytes[at]) else { return (at, Came::Broken) };
            self.place = next;
            at += 1;
            if ONE && self.is_between() {
                break;
            }
        }
        (at, if self.place == Place::Over { Came::Whole } else { Came::Open })
    }

    /// What comes behind this byte, where it may stand here.
    fn behind(&mut self, byte: u8) -> Option<Place> {
        let next = match (self.place, byte) {
            (Place::Size(size, has_begun), _) => match (char::from(byte).to_digit(16), byte) {
                (Some(digit), _) => Place::Size(size.checked_mul(16)?.checked_add(u64::from(digit))?, true),
                (None, b'\r') if has_begun => Place::SizeEnd(size),
                (None, b';' | b' ' | b'\t') if has_begun => Place::Extension(size),
                _ => return None,
            },
            (Place::Extension(size), b'\r') => Place::SizeEnd(size),
            (Place::SizeEnd(0), b'\n') => Place::Trailer,
            (Place::SizeEnd(size), b'\n') => Place::Data(size),
            (Place::DataCr, b'\r') => Place::DataLf,
            (Place::DataLf, b'\n') => Place::Size(0, false),
            (Place::Trailer, b'\r') => Place::LastLf,
            (Place::InTrailer, b'\r') => Place::TrailerLf,
            (Place::TrailerLf, b'\n') => Place::Trailer,
            (Place::LastLf, b'\n') => Place::Over,
            (Place::Extension(_) | Place::Trailer | Place::InTrailer, b'\n') => return None,
            (Place::Extension(size), _) => Place::Extension(size),
            (Place::Trailer | Place::InTrailer, _) => Place::InTrailer,
            _ => return None,
        };
        if matches!(next, Place::Extension(_) | Place::InTrailer) {
            self.beside += 1;
        }
        (self.beside <= MOST_BESIDE).then_some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Its data, how many bytes belong to it, and what has come of it.
    fn fed<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (String, usize, Came) {
        let (mut chunks, mut data, mut length, mut came) = (Chunks::default(), Vec::new(), 0, Came::Open);
        for piece in pieces {
            if came == Came::Open {
                let (count, now) = chunks.feed(piece, |bytes| data.extend_from_slice(bytes));
                length += count;
                came = now;
            }
        }
        (String::from_utf8(data).unwrap(), length, came)
    }

    #[test]
    fn data_is_found_wherever_the_body_is_cut() {
        for (body, data) in [
            ("5\r\nab\r\nc\r\n0\r\n\r\n", "ab\r\nc"),
            ("1\r\na\r\n00A;x=\"y\"\r\n0123456789\r\n0 \r\n\r\n", "a0123456789"),
            ("3\r\nabc\r\n0;z\r\nX-Sum: 1\r\nY: 2\r\n\r\n", "abc"),
            ("0\r\n\r\n", ""),
        ] {
            let all = [body.as_bytes(), b"HTTP/1.1"].concat();
            for cut in 0..=all.len() {
                let found = fed([&all[..cut], &all[cut..]]);
                assert_eq!(found, (data.to_owned(), body.len(), Came::Whole), "{body:?} cut at {cut}");
            }
            assert_eq!(fed(all.chunks(1)), (data.to_owned(), body.len(), Came::Whole));
            let (mut chunks, mut rest, mut joined) = (Chunks::default(), &*all, Vec::new());
            loop {
                assert!(chunks.is_between());
                let (count, came) = chunks.feed_chunk(rest, |bytes| joined.extend_from_slice(bytes));
                rest = &rest[count..];
                if came == Came::Whole {
                    break;
                }
            }
            assert_eq!((joined, rest), (data.as_bytes().to_vec(), &b"HTTP/1.1"[..]));
            for cut in 0..body.len() {
                let (_, length, came) = fed([&all[..cut]]);
                assert_eq!((length, came), (cut, Came::Open), "{body:?} as far as {cut}");
            }
        }
    }

    #[test]
    fn what_is_no_chunk_breaks_it_where_it_stands() {
        for (body, length) in [
            ("zz\r\n", 0),
            ("\r\n", 0),
            ("-1\r\n", 0),
            ("+1\r\na\r\n", 0),
            ("5\n12345", 1),
            ("5\r12345", 2),
            ("5\r\n12345xx", 8),
            ("5\r\n12345\nx", 8),
            ("5\r\n12345\rx", 9),
            ("FFFFFFFFFFFFFFFFF\r\n", 16),
            ("1;a\nb", 3),
            ("0\r\nX: 1\n\r\n", 7),
            ("0\r\n\n", 3),
            ("0\r\n\rx", 4),
        ] {
            let (_, found, came) = fed([body.as_bytes()]);
            assert_eq!((found, came), (length, Came::Broken), "{body:?}");
        }
        for beside in ["1;", "0\r\nX: "] {
            let long = format!("{beside}{}", "a".repeat(MOST_BESIDE + 1));
            assert_eq!(fed([long.as_bytes()]).2, Came::Broken);
        }
    }
}
