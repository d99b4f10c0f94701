//! A body piece by piece.

use std::{error::Error, io, pin::Pin};

use hyper::{
    HeaderMap,
    body::{Body, Bytes},
};

/// A piece of a body.
#[derive(Debug)]
pub enum Part {
    /// Bytes of it.
    Data(Bytes),
    /// The headers behind its last byte.
    Trailers(HeaderMap),
}

/// The next piece of a body; none at its end.
///
/// # Errors
/// When the connection ends before the body does.
pub async fn next_part<B>(body: &mut B) -> Result<Option<Part>, B::Error>
where
    B: Body<Data = Bytes> + Unpin,
{
    loop {
        let frame = std::future::poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await;
        let Some(frame) = frame.transpose()? else { return Ok(None) };
        match frame.into_data() {
            Ok(data) => return Ok(Some(Part::Data(data))),
            Err(frame) => {
                if let Ok(trailers) = frame.into_trailers() {
                    return Ok(Some(Part::Trailers(trailers)));
                }
            }
        }
    }
}

/// The next bytes of a body; none at its end. Trailers are left out.
///
/// # Errors
/// When the connection ends before the body does.
pub async fn next_data<B>(body: &mut B) -> Result<Option<Bytes>, B::Error>
where
    B: Body<Data = Bytes> + Unpin,
{
    loop {
        match next_part(body).await? {
            Some(Part::Data(data)) => return Ok(Some(data)),
            Some(Part::Trailers(_)) => {}
            None => return Ok(None),
        }
    }
}

/// Whether a body failed since what came is none, such as chunks without a length, and not since its sender left.
pub fn is_malformed(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData);
        }
        next = error.source();
    }
    false
}
