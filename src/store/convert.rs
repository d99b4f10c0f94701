//! From a cassette to a journal that holds it whole, and from a journal to a cassette.

use std::{
    io::{self, BufWriter, Write},
    path::Path,
};

use sha2::{Digest, Sha256};

use super::{
    blobs::{BlobFiles, Blobs, Noted},
    disk::{Disk, FileOut},
    error::StoreError,
    load::{load_journal, parse},
    origin::BY,
    paths,
    rewrite::read_text,
};
use crate::cassette::{
    blob::BlobSink,
    journal::{JournalHeader, encode_archive, is_journal},
};

/// Makes a journal from a cassette, or a cassette from a journal, of a damaged recording of what can be read of it; what
/// `from` is says which. A cassette that went
/// through a journal is the same, byte by byte. What deserves a word comes back, one sentence each.
///
/// # Errors
/// When `from` cannot be read, or `to` is there already or cannot be written.
pub fn convert(from: &Path, to: &Path) -> Result<Vec<String>, StoreError> {
    convert_on(&Disk::default(), from, to)
}

pub(super) fn convert_on(disk: &Disk, from: &Path, to: &Path) -> Result<Vec<String>, StoreError> {
    let (from, to) = (paths::resolve(from)?, paths::resolve(to)?);
    if disk.exists(&to)? {
        return Err(StoreError::Exists { path: to });
    }
    let text = read_text(disk, &from)?;
    if !is_journal(&*text) {
        let archive = archive(disk, &from, text)?;
        write(disk, &to, 0o600, &archive)?;
        return Ok(Vec::new());
    }
    let loaded = load_journal(disk, from, true)?;
    disk.create_folder(paths::folder(&to))?;
    let mut blobs = BlobFiles::of(disk, &to);
    for (name, bytes) in loaded.blobs.fresh() {
        blobs.put(name, bytes)?;
    }
    blobs.sync()?;
    write(disk, &to, 0o666, &loaded.cassette.text)?;
    Ok(loaded.notes)
}

fn archive(disk: &Disk, from: &Path, text: Vec<u8>) -> Result<Vec<u8>, StoreError> {
    let id = Sha256::digest(&text).iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    let blobs = Blobs::of(disk, from);
    let noted = Noted::new(&blobs);
    let cassette = parse(from, text, &noted)?;
    let header = JournalHeader {
        id,
        by: BY.to_owned(),
        vars: cassette.vars.clone(),
        redacted: cassette.redacted,
        ..JournalHeader::default()
    };
    let mut archive = Vec::new();
    encode_archive(&header, &cassette, &noted.all()?, &mut archive)?;
    Ok(archive)
}

fn write(disk: &Disk, path: &Path, mode: u32, bytes: &[u8]) -> io::Result<()> {
    disk.create_folder(paths::folder(path))?;
    disk.put(path, mode, |file| {
        let mut out = BufWriter::new(FileOut { disk, file });
        out.write_all(bytes)?;
        out.flush()
    })?;
    disk.sync_folder(paths::folder(path))
}
