//! What the store does to the file system, one method for each operation.
//!
//! Everything goes through here so that a test can end the program before, or inside, any one operation.

use std::{
    io::{self, Write},
    path::Path,
};

use fs_err::{self as fs, File, OpenOptions, os::unix::fs::OpenOptionsExt};
use rustix::fs::{FlockOperation, flock};

/// The file system.
#[derive(Clone, Default)]
pub(super) struct Disk {
    #[cfg(test)]
    pub(super) before: Option<std::sync::Arc<Before>>,
}

/// Is told each operation before it is done, and may refuse it: the program ended there. Where a write is refused
/// with [`io::ErrorKind::WriteZero`], it ended in the write, half of which was done.
#[cfg(test)]
pub(super) type Before = dyn Fn(Step) -> io::Result<()> + Send + Sync;

/// The operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    CreateFolder,
    Create,
    Lock,
    Look,
    Write,
    Truncate,
    Remove,
}

impl Disk {
    #[cfg(test)]
    fn step(&self, step: Step) -> io::Result<()> {
        self.before.as_ref().map_or(Ok(()), |before| before(step))
    }

    #[cfg(not(test))]
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "tests refuse steps")]
    const fn step(&self, _: Step) -> io::Result<()> {
        Ok(())
    }

    /// Creates a folder and those above it.
    pub(super) fn create_folder(&self, path: &Path) -> io::Result<()> {
        self.step(Step::CreateFolder)?;
        fs::create_dir_all(path)
    }

    /// Makes a file with this mode, for reading and appending.
    pub(super) fn create_new(&self, path: &Path, mode: u32) -> io::Result<File> {
        self.step(Step::Create)?;
        OpenOptions::new().read(true).append(true).create_new(true).mode(mode).open(path)
    }

    /// Takes the exclusive lock of a file and waits until nobody else has it.
    pub(super) fn lock(&self, file: &File) -> io::Result<()> {
        self.step(Step::Lock)?;
        Ok(rustix::io::retry_on_intr(|| flock(file, FlockOperation::LockExclusive))?)
    }

    /// Whether `path` still leads to the file that was opened.
    pub(super) fn is_still(&self, file: &File, path: &Path) -> io::Result<bool> {
        use std::os::unix::fs::MetadataExt;

        self.step(Step::Look)?;
        let opened = file.metadata()?;
        match fs::metadata(path) {
            Ok(named) => Ok((opened.dev(), opened.ino()) == (named.dev(), named.ino())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Writes all bytes: one call of the system unless it takes fewer.
    pub(super) fn write(&self, mut file: &File, bytes: &[u8]) -> io::Result<()> {
        let allowed = self.step(Step::Write);
        #[cfg(test)]
        if allowed.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WriteZero) {
            file.write_all(&bytes[..bytes.len() / 2])?;
        }
        allowed?;
        file.write_all(bytes)
    }

    /// Cuts a file that is open to a length.
    pub(super) fn truncate(&self, file: &File, length: u64) -> io::Result<()> {
        self.step(Step::Truncate)?;
        file.set_len(length)
    }

    /// Removes a file.
    pub(super) fn remove(&self, path: &Path) -> io::Result<()> {
        self.step(Step::Remove)?;
        fs::remove_file(path)
    }
}

impl std::fmt::Debug for Disk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Disk")
    }
}
