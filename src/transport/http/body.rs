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
    is_caused_by(error, |kind| matches!(kind, io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData))
}

/// Whether the other side reset the connection.
pub fn is_reset(error: &(dyn Error + 'static)) -> bool {
    is_caused_by(error, |kind| kind == io::ErrorKind::ConnectionReset)
}

/// Whether an error is, or was caused by, one of the system of such a kind.
fn is_caused_by(error: &(dyn Error + 'static), is_it: impl Fn(io::ErrorKind) -> bool) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.downcast_ref::<io::Error>().is_some_and(|error| is_it(error.kind())) {
            return true;
        }
        next = error.source();
    }
    false
}
