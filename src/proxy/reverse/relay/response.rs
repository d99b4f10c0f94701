//! A response's head, and how it and what follows go on.

use std::sync::Arc;

use super::{
    super::{
        Front,
        heads::{moved, recorded_response},
        heard::Heard,
        item::Item,
        metadata,
        tape::Lane,
    },
    request::{grouped, put},
};
use crate::transport::http::{
    chunks::{Came, Chunks},
    headers::{Hop, Onward},
    plain::{self, BadResponse, ResponseHead},
};

/// How a body is framed.
#[derive(Debug)]
pub(super) enum Form {
    /// So many bytes are still to come.
    Length(u64),
    /// In chunks.
    Chunks(Chunks),
    /// To the end of the connection.
    ToEnd,
}

/// A response whose head has come.
pub(super) struct Answer {
    pub(super) form: Form,
    pub(super) heard: Heard,
    /// The connection ends behind it.
    pub(super) is_last: bool,
}

impl Form {
    /// As a head says (RFC 9112, 6.3).
    fn of(head: &ResponseHead<'_>) -> Result<Self, BadResponse> {
        if matches!(head.status, 100..200 | 204 | 304) {
            return Ok(Self::Length(0));
        }
        let (mut coding, mut length) = (None, None);
        for &(name, value) in &head.fields {
            match name {
                "transfer-encoding" => coding = Some(value),
                "content-length" => {
                    let value = std::str::from_utf8(value).map_err(|_| BadResponse)?;
                    for part in value.split(',').map(str::trim) {
                        let is_number = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
                        let part = part.parse::<u64>().ok().filter(|_| is_number).ok_or(BadResponse);
                        // A coding counts before any length.
                        length = match (length, part) {
                            (None, part) => Some(part),
                            (Some(Ok(length)), Ok(part)) if length == part => Some(Ok(length)),
                            _ => Some(Err(BadResponse)),
                        };
                    }
                }
                _ => {}
            }
        }
        match (coding, length) {
            (Some(_), _) if !head.is_http11 => Err(BadResponse),
            (Some(coding), _) => {
                let last = coding.rsplit(|byte| *byte == b',').next().unwrap_or_default();
                let is_chunked = last.trim_ascii().eq_ignore_ascii_case(b"chunked");
                Ok(if is_chunked { Self::Chunks(Chunks::default()) } else { Self::ToEnd })
            }
            (None, Some(length)) => length.map(Self::Length),
            (None, None) => Ok(Self::ToEnd),
        }
    }

    /// Gives the data in `bytes` to `each`; how many of them belong to the body.
    pub(super) fn feed<'a>(&mut self, bytes: &'a [u8], mut each: impl FnMut(&'a [u8])) -> (usize, Came) {
        match self {
            Self::Length(left) => {
                let count = usize::try_from(*left).map_or(bytes.len(), |left| left.min(bytes.len()));
                if count > 0 {
                    each(&bytes[..count]);
                }
                *left -= count as u64;
                (count, if *left == 0 { Came::Whole } else { Came::Open })
            }
            Self::Chunks(chunks) => chunks.feed(bytes, each),
            Self::ToEnd => {
                if !bytes.is_empty() {
                    each(bytes);
                }
                (bytes.len(), Came::Open)
            }
        }
    }
}

impl Answer {
    /// Notes the head of a final response, whose bytes are `bytes`, and appends it as the client is to have it. `host`
    /// is by what name the client knows us.
    pub(super) fn new(
        head: &ResponseHead<'_>,
        bytes: &[u8],
        (front, host): (&Front, &[u8]),
        lane: &Arc<Lane>,
        out: &mut Vec<u8>,
    ) -> Result<Self, BadResponse> {
        let form = Form::of(head)?;
        let values = |name: &'static str| {
            head.fields.iter().filter(move |(other, _)| *other == name).map(|(_, value)| *value)
        };
        let upstream = &front.upstream.origin;
        metadata::note_challenges(values("www-authenticate"), upstream, &front.documents);
        lane.note(|| Item::Response(head.status, recorded_response(&grouped(&head.fields), upstream)));
        let mut hop = Hop::of(&head.fields);
        let stays = !hop.closes() && (head.is_http11 || hop.has_option("keep-alive"));
        let is_last = !stays || head.status == 101 || matches!(form, Form::ToEnd);
        let codings: Vec<&[u8]> = values("content-encoding").collect();
        let heard = Heard::new(Arc::clone(lane), values("content-type").next(), &codings, None);
        let moved = |name: &str, value: &[u8]| match name {
            "location" | "www-authenticate" => moved(name, value, upstream, &front.origin(Some(host))),
            _ => None,
        };
        write(head, bytes, &mut hop, &form, moved, out);
        Ok(Self { form, heard, is_last })
    }
}

/// Appends a head as it goes on, with what `moved` gives in the place of values.
fn write(
    head: &ResponseHead<'_>,
    bytes: &[u8],
    hop: &mut Hop<'_>,
    form: &Form,
    moved: impl Fn(&str, &[u8]) -> Option<Vec<u8>>,
    out: &mut Vec<u8>,
) {
    // Empty lines may stand before it.
    let start = bytes.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or_default();
    let mut lines = plain::lines(&bytes[start..head.length]);
    let first = lines.next().unwrap_or_default().trim_ascii_end();
    out.extend_from_slice(b"HTTP/1.1");
    out.extend_from_slice(first.get(8..).unwrap_or_default());
    out.extend_from_slice(b"\r\n");
    let is_coded = head.fields.iter().any(|(name, _)| *name == "transfer-encoding");
    let (mut has_framing, mut has_length) = (false, false);
    for (&(name, value), line) in head.fields.iter().zip(lines) {
        let spelled = &line[..name.len()];
        match hop.onward(name) {
            Onward::Ends => continue,
            Onward::Close => {
                put(out, spelled, b"close");
                continue;
            }
            Onward::Framing => has_framing = true,
            // One length says all, and none beside a coding (RFC 9112, 6.3).
            Onward::Goes if name == "content-length" => {
                if is_coded || std::mem::replace(&mut has_length, true) {
                    continue;
                }
            }
            Onward::Goes => {}
        }
        match moved(name, value) {
            Some(value) => put(out, spelled, &value),
            None if line.ends_with(b"\r\n") && line.get(name.len()) == Some(&b':') => {
                out.extend_from_slice(line);
            }
            None => put(out, spelled, value),
        }
    }
    if matches!(form, Form::Chunks(_)) && !has_framing {
        put(out, b"transfer-encoding", b"chunked");
    }
    out.extend_from_slice(b"\r\n");
}
