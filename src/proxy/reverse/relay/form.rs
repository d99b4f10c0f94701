//! How a body is framed, and so where in what comes of it its data stands.

use crate::transport::http::{
    chunks::{Came, Chunks},
    headers::{is_chunks, transfer_codings},
    plain::{BadResponse, RequestHead, ResponseHead},
};

/// How a body is framed, as far as it has not come.
#[derive(Debug)]
pub(super) enum Form {
    /// So many bytes are still to come.
    Length(u64),
    /// In chunks.
    Chunks(Chunks),
    /// To the end of the connection.
    ToEnd,
}

impl Form {
    /// Of a request with this head.
    pub(super) fn of_request(head: &RequestHead<'_>) -> Self {
        match head.is_chunked {
            true => Self::Chunks(Chunks::default()),
            false => Self::Length(head.body.unwrap_or_default() as u64),
        }
    }

    /// Of a response with this head (RFC 9112, 6.3); `is_to_head` that is one to `HEAD`.
    pub(super) fn of_response(head: &ResponseHead<'_>, is_to_head: bool) -> Result<Self, BadResponse> {
        if is_to_head || matches!(head.status, 100..200 | 204 | 304) {
            // There is none, whatever its head says of it.
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

/// What a response's body is in on its way, in the order it was put in.
pub(super) fn on_its_way<'a>(head: &ResponseHead<'a>) -> impl Iterator<Item = &'a [u8]> {
    let values = head.fields.iter().filter(|(name, _)| *name == "transfer-encoding");
    values.flat_map(|(_, value)| transfer_codings(value))
}
