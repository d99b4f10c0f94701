//! The blobs of a cassette `C`, in the folder `C.blobs`.

use std::{
    cell::RefCell,
    collections::{BTreeSet, HashMap},
    io::{self, Read},
    path::{Path, PathBuf},
};

use super::{disk::Disk, paths};
use crate::cassette::{
    blob::{BlobSink, BlobSource},
    journal::MAX_MESSAGE,
};

/// A longer blob is not read: no string of a message is that long.
const LONGEST: u64 = MAX_MESSAGE as u64;

/// The blobs of a cassette that is read: those in its folder, and those of journals that are not folded yet.
#[derive(Debug)]
pub struct Blobs {
    disk: Disk,
    folder: PathBuf,
    fresh: HashMap<String, Vec<u8>>,
}

impl Blobs {
    pub(super) fn of(disk: &Disk, cassette: &Path) -> Self {
        Self { disk: disk.clone(), folder: folder(cassette), fresh: HashMap::new() }
    }

    /// Those that are in memory, by their names.
    pub(super) fn fresh(&self) -> Vec<(&str, &[u8])> {
        let mut fresh: Vec<_> = self.fresh.iter().map(|(name, bytes)| (&**name, &**bytes)).collect();
        fresh.sort_unstable();
        fresh
    }
}

fn folder(cassette: &Path) -> PathBuf {
    paths::with_suffix(cassette, ".blobs")
}

impl BlobSource for Blobs {
    fn get(&self, name: &str) -> io::Result<Vec<u8>> {
        if let Some(bytes) = self.fresh.get(name) {
            return Ok(bytes.clone());
        }
        let file = self.disk.open_plain(&self.folder, name)?;
        let mut bytes = Vec::new();
        file.take(LONGEST + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > LONGEST {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("the blob {name} is over 1 GiB"),
            ));
        }
        Ok(bytes)
    }
}

/// Blobs of journals that are read along stay in memory: reading writes nothing.
impl BlobSink for Blobs {
    fn put(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.fresh.entry(name.to_owned()).or_insert_with(|| bytes.to_vec());
        Ok(())
    }
}

/// Notes which blobs are asked for. Loading asks for every blob, so those are the ones that belong to a cassette.
#[derive(Debug)]
pub(super) struct Noted<'a> {
    blobs: &'a Blobs,
    names: RefCell<BTreeSet<String>>,
}

impl<'a> Noted<'a> {
    pub(super) fn new(blobs: &'a Blobs) -> Self {
        Self { blobs, names: RefCell::default() }
    }

    /// The blobs that were asked for, in the order of their names.
    pub(super) fn all(self) -> io::Result<Vec<(String, Vec<u8>)>> {
        let names = self.names.into_inner().into_iter();
        names.map(|name| self.blobs.get(&name).map(|bytes| (name, bytes))).collect()
    }
}

impl BlobSource for Noted<'_> {
    fn get(&self, name: &str) -> io::Result<Vec<u8>> {
        self.names.borrow_mut().insert(name.to_owned());
        self.blobs.get(name)
    }
}

/// Writes the blobs of a cassette that is written. They get their names all at once, by [`BlobFiles::sync`]: waiting for
/// the disk with each of them takes several times as long.
#[derive(Debug)]
pub(super) struct BlobFiles {
    disk: Disk,
    folder: PathBuf,
    /// Those that are written and have no names yet.
    unnamed: BTreeSet<String>,
}

impl BlobFiles {
    pub(super) fn of(disk: &Disk, cassette: &Path) -> Self {
        Self { disk: disk.clone(), folder: folder(cassette), unnamed: BTreeSet::new() }
    }

    /// Waits until the blobs are on the disk, and their names.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        if self.unnamed.is_empty() {
            return Ok(());
        }
        let unfinished: Vec<_> = self.unnamed.iter().map(|name| self.unfinished(name)).collect();
        self.disk.sync_all(&unfinished)?;
        while let Some(name) = self.unnamed.first() {
            self.disk.rename(&self.unfinished(name), &self.folder.join(name))?;
            self.unnamed.pop_first();
        }
        self.disk.sync_folder(&self.folder)
    }

    fn unfinished(&self, name: &str) -> PathBuf {
        paths::with_suffix(&self.folder.join(name), ".tmp")
    }
}

impl BlobSink for BlobFiles {
    fn put(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        if self.unnamed.contains(name) {
            return Ok(());
        }
        match self.disk.open_plain(&self.folder, name) {
            // A blob that has its name has its bytes too: it gets it last.
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        self.disk.create_plain_folder(&self.folder)?;
        let file = self.disk.create_anew(&self.unfinished(name), 0o666)?;
        self.unnamed.insert(name.to_owned());
        self.disk.write(&file, bytes)
    }
}

impl Drop for BlobFiles {
    fn drop(&mut self) {
        // A disk may be full of them; what is left all the same is written over by the next.
        for name in &self.unnamed {
            let _ = self.disk.remove(&self.unfinished(name));
        }
    }
}
