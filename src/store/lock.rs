//! Locks: files whose names may be taken away while one waits for them.

use std::{
    io,
    path::{Path, PathBuf},
    sync::mpsc::{self, RecvTimeoutError},
    time::Duration,
};

use fs_err::File;

use super::disk::Disk;

/// The lock under which a cassette is written; it ends when this is dropped.
#[derive(Debug)]
pub(super) struct CassetteLock {
    disk: Disk,
    path: PathBuf,
    _file: File,
}

impl CassetteLock {
    /// Takes the lock of the cassette whose lock file this is, waiting for whoever has it; `None` once `goes_on` says no.
    pub(super) fn take(disk: &Disk, path: PathBuf, goes_on: &dyn Fn() -> bool) -> io::Result<Option<Self>> {
        loop {
            let file = disk.create_or_open(&path)?;
            if !disk.try_lock(&file)? && !wait_for(disk, &file, goes_on)? {
                return Ok(None);
            }
            // Whoever had the lock before took the file's name away: then this file locks nothing.
            if disk.is_still(&file, &path)? {
                return Ok(Some(Self { disk: disk.clone(), path, _file: file }));
            }
        }
    }

    /// Gives the lock back and takes its file away, so that none lies beside the cassette.
    pub(super) fn release(self) -> io::Result<()> {
        self.disk.remove(&self.path)
    }
}

/// How often it is asked whether waiting for a lock goes on.
const ASK: Duration = Duration::from_millis(20);

/// The system has no wait for a lock that ends; so a thread waits, and is left behind when nobody waits any more.
fn wait_for(disk: &Disk, file: &File, goes_on: &dyn Fn() -> bool) -> io::Result<bool> {
    if !goes_on() {
        return Ok(false);
    }
    let waiting = file.try_clone()?;
    let (tell, told) = mpsc::channel();
    let disk = disk.clone();
    std::thread::Builder::new().name("wait-for-lock".to_owned()).spawn(move || {
        let locked = disk.lock(&waiting);
        // Nobody listens any more: the lock ends with `waiting`, here.
        let _ = tell.send(locked);
    })?;
    loop {
        match told.recv_timeout(ASK) {
            Ok(locked) => return locked.map(|()| true),
            Err(RecvTimeoutError::Timeout) if goes_on() => {}
            Err(_) => return Ok(false),
        }
    }
}

/// Takes the lock of a file just created at `path`; whether `path` still leads to it. Between creation and lock it
/// looked dead, and whoever folded then has taken it away.
pub(super) fn lock_created(disk: &Disk, file: &File, path: &Path) -> io::Result<bool> {
    disk.lock(file)?;
    disk.is_still(file, path)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::{super::disk::Step, *};

    #[test]
    fn a_lock_whose_name_was_taken_away_locks_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.lock");
        let take = |disk: &Disk| CassetteLock::take(disk, path.clone(), &|| false).unwrap();
        let first = Mutex::new(take(&Disk::default()));
        let second = Arc::new(Mutex::new(None));
        let (seconds, name) = (Arc::clone(&second), path.clone());
        // The first gives its lock back and the second takes a new one, when the third has the old file open.
        let before = move |step| {
            if step == Step::Lock
                && let Some(first) = first.lock().unwrap().take()
            {
                first.release()?;
                *seconds.lock().unwrap() = CassetteLock::take(&Disk::default(), name.clone(), &|| true)?;
            }
            Ok(())
        };
        assert!(take(&Disk { before: Some(Arc::new(before)) }).is_none());
        second.lock().unwrap().take().unwrap().release().unwrap();
        assert!(take(&Disk::default()).is_some());
    }
}
