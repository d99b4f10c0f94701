//! A body piece by piece.

use std::pin::Pin;

use hyper::body::{Body, Bytes};

/// The next bytes of a body; none at its end. Trailers are left out.
///
/// # Errors
/// When the connection ends before the body does.
pub async fn next_data<B>(body: &mut B) -> Result<Option<Bytes>, B::Error>
where
    B: Body<Data = Bytes> + Unpin,
{
    loop {
        let frame = std::future::poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await;
        let Some(frame) = frame.transpose()? else { return Ok(None) };
        if let Ok(data) = frame.into_data() {
            return Ok(Some(data));
        }
    }
}
