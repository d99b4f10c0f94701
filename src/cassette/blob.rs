//! Blobs: long texts and bytes that stand in files beside the cassette, each named by its own hash.

use std::io;

/// Where a cassette's blobs are read from; names are plain file names, checked before anybody is asked.
pub trait BlobSource {
    /// The bytes of one blob.
    ///
    /// # Errors
    /// Whatever reading a file may bring; not found where there is none of this name.
    fn get(&self, name: &str) -> io::Result<Vec<u8>>;
}

/// Where new blobs are written to.
pub trait BlobSink {
    /// Keeps one blob. A name says what stands in it, so one that is there already may be left as it is.
    ///
    /// # Errors
    /// Whatever writing a file may bring.
    fn put(&mut self, name: &str, bytes: &[u8]) -> io::Result<()>;
}

/// A source without blobs, for cassettes that have none.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoBlobs;

impl BlobSource for NoBlobs {
    fn get(&self, _: &str) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }
}
