//! Blobs: long texts and bytes that stand in files beside the cassette, each named by its own hash.

use std::{collections::BTreeMap, io};

use sha2::{Digest, Sha256};

use super::error::{LoadError, LoadErrorKind};

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

/// What a blob holds, by the end of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `.txt`: a string's text.
    Text,
    /// `.bin`: the bytes whose base64 the string is.
    Base64,
}

/// The name of the blob with these bytes.
pub(super) fn name(kind: Kind, bytes: &[u8]) -> String {
    let mut name = String::from("sha256-");
    push_hex(&Sha256::digest(bytes), &mut name);
    name.push_str(match kind {
        Kind::Text => ".txt",
        Kind::Base64 => ".bin",
    });
    name
}

/// What a blob of this name holds; none where it is no blob's name, such as one that leads out of the folder.
pub(super) fn kind(name: &str) -> Option<Kind> {
    let (hash, end) = name.strip_prefix("sha256-")?.split_once('.')?;
    let kind = match end {
        "txt" => Kind::Text,
        "bin" => Kind::Base64,
        _ => return None,
    };
    is_sha256(hash).then_some(kind)
}

/// Whether a text is a SHA-256 hash in lower-case hex.
pub(super) fn is_sha256(hash: &str) -> bool {
    hash.len() == 64 && hash.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

pub(super) fn push_hex(bytes: &[u8], out: &mut String) {
    for byte in bytes {
        for digit in [byte >> 4, byte & 15] {
            out.push(char::from(b"0123456789abcdef"[usize::from(digit)]));
        }
    }
}

/// Reads the blob that a cassette names at offset `at`, and checks that it is what its name says.
pub(super) fn fetch(name: &str, at: usize, blobs: &dyn BlobSource) -> Result<(Kind, Vec<u8>), LoadError> {
    let fail = |kind| Err(LoadError::new(at, kind));
    let Some(kind) = kind(name) else { return fail(LoadErrorKind::BlobName { name: found(name) }) };
    let bytes = match blobs.get(name) {
        Ok(bytes) => bytes,
        Err(source) => return fail(LoadErrorKind::Blob { name: name.to_owned(), source }),
    };
    if self::name(kind, &bytes) != name || (kind == Kind::Text && std::str::from_utf8(&bytes).is_err()) {
        return fail(LoadErrorKind::BlobHash { name: name.to_owned() });
    }
    Ok((kind, bytes))
}

/// A name that may be anything, short enough to be shown.
fn found(name: &str) -> String {
    name.chars().take(100).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hashes_are_names() {
        let name = name(Kind::Base64, b"");
        assert_eq!(name, "sha256-e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855.bin");
        assert_eq!(kind(&name), Some(Kind::Base64));
        for wrong in
            ["", "a.bin", "../x.bin", "sha256-.bin", &name.to_uppercase(), &name.replace(".bin", ".bin/../x")]
        {
            assert_eq!(kind(wrong), None, "{wrong}");
        }
    }
}

/// Blobs in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryBlobs(pub BTreeMap<String, Vec<u8>>);

impl BlobSource for MemoryBlobs {
    fn get(&self, name: &str) -> io::Result<Vec<u8>> {
        self.0.get(name).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl BlobSink for MemoryBlobs {
    fn put(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.0.insert(name.to_owned(), bytes.to_vec());
        Ok(())
    }
}
