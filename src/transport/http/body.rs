//! A body piece by piece.

use std::pin::Pin;

use hyper::body::{Body, Bytes, Incoming};

/// The next bytes of a body; none at its end. Trailers are left out.
///
/// # Errors
/// When the connection ends before the body does.
pub async fn next_data(body: &mut Incoming) -> hyper::Result<Option<Bytes>> {
    loop {
        let frame = std::future::poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await;
        let Some(frame) = frame.transpose()? else { return Ok(None) };
        if let Ok(data) = frame.into_data() {
            return Ok(Some(data));
        }
    }
}
