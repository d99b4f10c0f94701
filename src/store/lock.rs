//! Locks: files whose names may be taken away while one waits for them.

use std::{io, path::Path};

use fs_err::File;

use super::disk::Disk;

/// Takes the lock of a file just created at `path`; whether `path` still leads to it. Between creation and lock it
/// looked dead, and whoever folded then has taken it away.
pub(super) fn lock_created(disk: &Disk, file: &File, path: &Path) -> io::Result<bool> {
    disk.lock(file)?;
    disk.is_still(file, path)
}
