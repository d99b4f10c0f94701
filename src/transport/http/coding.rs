//! Bodies that a server has compressed although nobody asked for it (F10.17): what they say, as far as it may be known.

use std::io::{self, Write};

use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use hyper::HeaderMap;

use super::headers::{codings, pairs};

/// Undoes a content coding, read by read.
#[derive(Debug)]
pub struct Decoder(Coding);

#[derive(Debug)]
enum Coding {
    Gzip(MultiGzDecoder<Room>),
    /// As RFC 9110, 8.4.1.2 defines `deflate`.
    Zlib(ZlibDecoder<Room>),
    /// As some servers understand it.
    Raw(DeflateDecoder<Room>),
    /// `deflate`, of which the first byte has not come yet.
    Deflate,
}

/// The body is not what its head says, or far larger than its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a body that cannot be decoded")]
pub struct Undecodable;

/// Takes what was decoded, up to a limit.
#[derive(Debug, Default)]
struct Room {
    bytes: Vec<u8>,
    limit: usize,
}

impl Write for Room {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + bytes.len() > self.limit {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Decoder {
    /// For a body with this head; none where it is coded in another way, or twice.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        Self::of_codings(codings(&pairs(headers)))
    }

    /// For a body in these [codings].
    pub fn of_codings<'a>(mut codings: impl Iterator<Item = &'a [u8]>) -> Option<Self> {
        let coding = codings.next()?.trim_ascii();
        if codings.next().is_some() {
            return None;
        }
        let is = |name: &[u8]| coding.eq_ignore_ascii_case(name);
        if is(b"gzip") || is(b"x-gzip") {
            Some(Self(Coding::Gzip(MultiGzDecoder::new(Room::default()))))
        } else {
            is(b"deflate").then_some(Self(Coding::Deflate))
        }
    }

    /// What these bytes stand for, at most `limit` bytes of it.
    ///
    /// # Errors
    /// When it is more, or nothing that was compressed. Nothing of what follows can be decoded then.
    pub fn decode(&mut self, bytes: &[u8], limit: usize) -> Result<Vec<u8>, Undecodable> {
        if let (Coding::Deflate, Some(first)) = (&self.0, bytes.first()) {
            // RFC 1950, 2.2: the method is 8, the window at most 7.
            self.0 = if first & 0x8f == 8 {
                Coding::Zlib(ZlibDecoder::new(Room::default()))
            } else {
                Coding::Raw(DeflateDecoder::new(Room::default()))
            };
        }
        let written = match &mut self.0 {
            Coding::Gzip(decoder) => {
                decoder.get_mut().limit = limit;
                decoder.write_all(bytes).and_then(|()| decoder.flush())
            }
            Coding::Zlib(decoder) => {
                decoder.get_mut().limit = limit;
                decoder.write_all(bytes).and_then(|()| decoder.flush())
            }
            Coding::Raw(decoder) => {
                decoder.get_mut().limit = limit;
                decoder.write_all(bytes).and_then(|()| decoder.flush())
            }
            Coding::Deflate => Ok(()),
        };
        written.map(|()| self.take()).map_err(|_| Undecodable)
    }

    /// What is left when the body has ended.
    ///
    /// # Errors
    /// When it had to go on.
    pub fn finish(&mut self) -> Result<Vec<u8>, Undecodable> {
        let finished = match &mut self.0 {
            Coding::Gzip(decoder) => decoder.try_finish(),
            Coding::Zlib(decoder) => decoder.try_finish(),
            Coding::Raw(decoder) => decoder.try_finish(),
            Coding::Deflate => Ok(()),
        };
        finished.map(|()| self.take()).map_err(|_| Undecodable)
    }

    fn take(&mut self) -> Vec<u8> {
        let room = match &mut self.0 {
            Coding::Gzip(decoder) => decoder.get_mut(),
            Coding::Zlib(decoder) => decoder.get_mut(),
            Coding::Raw(decoder) => decoder.get_mut(),
            Coding::Deflate => return Vec::new(),
        };
        std::mem::take(&mut room.bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::iter;

    use super::*;
    use flate2::{
        Compression,
        write::{DeflateEncoder, GzEncoder, ZlibEncoder},
    };

    fn codings(text: &[u8]) -> [(&'static str, Vec<u8>); 4] {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        let mut raw = DeflateEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(text).unwrap();
        zlib.write_all(text).unwrap();
        raw.write_all(text).unwrap();
        let gzip = gzip.finish().unwrap();
        [
            ("gzip", gzip.clone()),
            ("X-GZIP", gzip),
            ("deflate", zlib.finish().unwrap()),
            ("deflate", raw.finish().unwrap()),
        ]
    }

    fn decoder(coding: &str) -> Option<Decoder> {
        Decoder::of_codings(iter::once(coding.as_bytes()))
    }

    #[test]
    fn what_was_compressed_comes_back_wherever_it_is_cut() {
        let text =
            br#"data: {"jsonrpc":"2.0","id":1,"result":{"text":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}}"#;
        for (name, coded) in codings(text) {
            for cut in 0..=coded.len() {
                let mut decoder = decoder(name).unwrap();
                let mut decoded = decoder.decode(&coded[..cut], 1000).unwrap();
                decoded.extend(decoder.decode(&coded[cut..], 1000).unwrap());
                // Nothing waits for the end.
                assert_eq!(decoded, text, "{name} cut at {cut}");
                assert_eq!(decoder.finish(), Ok(Vec::new()));
            }
        }
    }

    #[test]
    fn a_bomb_stops_at_the_limit() {
        for (name, coded) in codings(&vec![b'a'; 10 << 20]) {
            assert_eq!(decoder(name).unwrap().decode(&coded, 1 << 20), Err(Undecodable));
        }
    }

    #[test]
    fn what_is_something_else_is_not_decoded() {
        assert_eq!(decoder("gzip").unwrap().decode(b"{\"jsonrpc\"", 1000), Err(Undecodable));
        for other in ["br", "identity", "gzip, gzip", ""] {
            assert!(decoder(other).is_none(), "{other}");
        }
        let (_, coded) = &codings(b"text")[0];
        let mut decoder = decoder("gzip").unwrap();
        decoder.decode(&coded[..coded.len() - 1], 1000).unwrap();
        assert_eq!(decoder.finish(), Err(Undecodable));
    }
}
