//! Requests that are answered before they are whole, as the recorded server did.

use hyper::{
    Response,
    body::{Bytes, Incoming},
    header::{CONNECTION, HeaderValue},
};

use super::super::reply::{Cut, ResponseBody};
use crate::{
    replay::Wants,
    transport::http::{body::next_data, socket::Control},
};

/// What has come of a body, and what is left of it.
pub(super) type Came = (Bytes, Option<Rest>);

/// What a client may still send of a request that is answered.
pub(super) struct Rest(Incoming);

/// Reads a body until it is whole, or until nothing `wants` more of it; none where it is too long.
pub(super) async fn read(
    mut body: Incoming,
    limit: usize,
    mut wants: impl FnMut(&[u8]) -> Wants,
) -> Result<Option<Came>, Cut> {
    let (mut bytes, mut is_too_long) = (Vec::new(), false);
    let mut enough = Some(1);
    while let Some(data) = next_data(&mut body).await.map_err(|_| Cut)? {
        is_too_long |= bytes.len() + data.len() > limit;
        if is_too_long {
            bytes = Vec::new();
            continue;
        }
        bytes.extend_from_slice(&data);
        if enough.is_some_and(|enough| bytes.len() >= enough) {
            enough = match wants(&bytes) {
                Wants::Nothing => return Ok(Some((bytes.into(), Some(Rest(body))))),
                Wants::More(more) => Some(bytes.len() + more),
                Wants::All => None,
            };
        }
    }
    Ok((!is_too_long).then(|| (bytes.into(), None)))
}

impl Rest {
    /// Takes what still comes, to nobody: a client that cannot send on may not read its answer.
    pub(super) fn goes_nowhere(self) {
        let Self(mut body) = self;
        drop(tokio::spawn(async move { while let Ok(Some(_)) = next_data(&mut body).await {} }));
    }
}

/// The connection ends behind a response to what is not whole: nobody knows whether the rest comes.
pub(super) fn is_last(response: &mut Response<ResponseBody>, control: &Control) {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response.body_mut().half_closes(control);
}
