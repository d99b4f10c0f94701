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
    headers::{Hop, Onward, codings, is_chunks, transfer_codings},
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
        let last_coding = on_its_way(head).last();
        let mut length = None;
        for &(_, value) in head.fields.iter().filter(|(name, _)| *name == "content-length") {
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
        match (last_coding, length) {
            (Some(_), _) if !head.is_http11 => Err(BadResponse),
            (Some(last), _) if is_chunks(last) => Ok(Self::Chunks(Chunks::default())),
            (Some(_), _) => Ok(Self::ToEnd),
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
        let codings: Vec<&[u8]> = codings(&head.fields).collect();
        let has_length = matches!(form, Form::Length(_));
        let heard = Heard::new(Arc::clone(lane), has_length, values("content-type").next(), &codings, None);
        let moved = |name: &str, value: &[u8]| moved(name, value, upstream, || front.origin(Some(host)));
        write(head, bytes, &mut hop, moved, out);
        Ok(Self { form, heard, is_last })
    }
}

/// What the body is in on its way, in the order it was put in.
fn on_its_way<'a>(head: &ResponseHead<'a>) -> impl Iterator<Item = &'a [u8]> {
    let values = head.fields.iter().filter(|(name, _)| *name == "transfer-encoding");
    values.flat_map(|(_, value)| transfer_codings(value))
}

/// Appends a head as it goes on, with what `moved` gives in the place of values.
fn write(
    head: &ResponseHead<'_>,
    bytes: &[u8],
    hop: &mut Hop<'_>,
    moved: impl Fn(&str, &[u8]) -> Option<Vec<u8>>,
    out: &mut Vec<u8>,
) {
    // Empty lines may stand before it.
    let start = bytes.iter().position(|byte| !matches!(byte, b'\r' | b'\n')).unwrap_or_default();
    let mut rest = &bytes[start..head.length];
    let first = plain::take_line(&mut rest, 0).trim_ascii_end();
    out.extend_from_slice(b"HTTP/1.1");
    out.extend_from_slice(first.get(8..).unwrap_or_default());
    out.extend_from_slice(b"\r\n");
    let is_coded = on_its_way(head).next().is_some();
    let mut has_length = false;
    for &(name, value) in &head.fields {
        let line = plain::take_line(&mut rest, name.len() + value.len());
        let spelled = &line[..name.len()];
        match hop.onward(name) {
            // The body goes on in what it came in, or what it is in could not be told.
            Onward::Ends if name != "transfer-encoding" => continue,
            Onward::Close => {
                put(out, spelled, b"close");
                continue;
            }
            // One length says all, and none beside a coding (RFC 9112, 6.3).
            Onward::Goes if name == "content-length" => {
                if is_coded || std::mem::replace(&mut has_length, true) {
                    continue;
                }
            }
            Onward::Ends | Onward::Framing | Onward::Goes => {}
        }
        match moved(name, value) {
            Some(value) => put(out, spelled, &value),
            None if line.ends_with(b"\r\n") && line.get(name.len()) == Some(&b':') => {
                out.extend_from_slice(line);
            }
            None => put(out, spelled, value),
        }
    }
    out.extend_from_slice(b"\r\n");
}
