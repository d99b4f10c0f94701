//! What the store does to the file system, one method for each operation.
//!
//! Everything goes through here so that a test can end the program before, or inside, any one operation.

use std::{
    io::{self, Read, Write},
    mem::MaybeUninit,
    panic::resume_unwind,
    path::{Path, PathBuf},
};

use fs_err::{
    self as fs, File, OpenOptions,
    os::unix::fs::{FileExt, OpenOptionsExt},
};
use rustix::fs::{FlockOperation, OFlags, flock};

use super::paths;

/// Tests end programs, not machines: waiting for the disk would only cost them time.
const ENDS_ARE_PLAYED: bool = cfg!(test);

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
    List,
    Read,
    Open,
    Create,
    Lock,
    Look,
    Write,
    Truncate,
    Permissions,
    SyncFile,
    SyncFolder,
    Rename,
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

    /// The names in a folder; none where there is no such folder, or something else in its place.
    pub(super) fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        self.step(Step::List)?;
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(Vec::new());
            }
            Err(error) => return Err(error),
        };
        let names = entries.map(|entry| Ok(entry?.file_name().into_string().ok()));
        names.filter_map(Result::transpose).collect()
    }

    /// The whole of a file.
    pub(super) fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        self.step(Step::Read)?;
        let file = File::open(path)?;
        let length = usize::try_from(file.metadata()?.len()).unwrap_or_default();
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length)?;
        in_huge_pages(bytes.spare_capacity_mut());
        // The file inside: the one around it, which names itself in errors, has all of the room zeroed first.
        let read = file.file().read_to_end(&mut bytes);
        read.map_err(|error| {
            io::Error::new(error.kind(), format!("failed to read from file `{}`: {error}", path.display()))
        })?;
        Ok(bytes)
    }

    /// Opens a journal for reading. It is no link to a file elsewhere, and a pipe in its place does not make us wait.
    pub(super) fn open(&self, path: &Path) -> io::Result<File> {
        self.step(Step::Open)?;
        OpenOptions::new().read(true).custom_flags(plain_flags()).open(path)
    }

    /// Opens a file of this name in a folder for reading; neither may be a link, and the file is no pipe or device.
    pub(super) fn open_plain(&self, folder: &Path, name: &str) -> io::Result<File> {
        self.step(Step::Open)?;
        let path = folder.join(name);
        let file = OpenOptions::new().read(true).custom_flags(plain_flags()).open(&path)?;
        let is_plain = file.metadata()?.is_file() && fs::symlink_metadata(folder)?.is_dir();
        if is_plain && path.file_name().is_some_and(|plain| plain == name) {
            return Ok(file);
        }
        let refused = format!("{} is no plain file in a plain folder", path.display());
        Err(io::Error::new(io::ErrorKind::InvalidInput, refused))
    }

    /// Whether there is something of this name.
    pub(super) fn exists(&self, path: &Path) -> io::Result<bool> {
        self.step(Step::Look)?;
        path.try_exists()
    }

    /// Bytes of a file from an offset on.
    pub(super) fn read_at(&self, file: &File, bytes: &mut [u8], at: u64) -> io::Result<usize> {
        self.step(Step::Read)?;
        file.read_at(bytes, at)
    }

    /// Makes a file with this mode, for reading and writing.
    pub(super) fn create_new(&self, path: &Path, mode: u32) -> io::Result<File> {
        self.step(Step::Create)?;
        OpenOptions::new().read(true).write(true).create_new(true).mode(mode).open(path)
    }

    /// Makes a file to write with this mode (less what the user masks). What has its name goes: a link that leads
    /// elsewhere must not be written through.
    pub(super) fn create_anew(&self, path: &Path, mode: u32) -> io::Result<File> {
        self.step(Step::Create)?;
        let create = || OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
        match create() {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                fs::remove_file(path)?;
                create()
            }
            file => file,
        }
    }

    /// Opens a file to lock it, made now or as it is.
    pub(super) fn create_or_open(&self, path: &Path) -> io::Result<File> {
        self.step(Step::Create)?;
        OpenOptions::new().read(true).append(true).create(true).custom_flags(plain_flags()).open(path)
    }

    /// Creates a folder; an error where a link has its name.
    pub(super) fn create_plain_folder(&self, path: &Path) -> io::Result<()> {
        self.create_folder(path)?;
        if fs::symlink_metadata(path)?.is_dir() {
            return Ok(());
        }
        let refused = format!("{} is a link, and blobs are written to plain folders only", path.display());
        Err(io::Error::new(io::ErrorKind::NotADirectory, refused))
    }

    /// Takes the exclusive lock of a file, which ends with the handle; whether nobody else has it.
    pub(super) fn try_lock(&self, file: &File) -> io::Result<bool> {
        self.step(Step::Lock)?;
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(true),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether somebody else has the exclusive lock of a file. The shared lock that finds it out disturbs no other
    /// reader, and is given back at once.
    pub(super) fn is_locked(&self, file: &File) -> io::Result<bool> {
        self.step(Step::Lock)?;
        match flock(file, FlockOperation::NonBlockingLockShared) {
            Ok(()) => Ok(flock(file, FlockOperation::Unlock).map(|()| false)?),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(true),
            Err(error) => Err(error.into()),
        }
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

    /// Length of a file that is open.
    pub(super) fn length(&self, file: &File) -> io::Result<u64> {
        self.step(Step::Look)?;
        Ok(file.metadata()?.len())
    }

    /// Writes all bytes: one call of the system unless it takes fewer.
    pub(super) fn write(&self, file: &File, bytes: &[u8]) -> io::Result<()> {
        self.step_in(bytes, |bytes| { file }.write_all(bytes))
    }

    /// Writes all bytes from an offset on: one call of the system unless it takes fewer.
    pub(super) fn write_at(&self, file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
        self.step_in(bytes, |bytes| {
            std::os::unix::fs::FileExt::write_all_at(file.file(), bytes, at).map_err(|error| {
                let text = format!("failed to write to file `{}`: {error}", file.path().display());
                io::Error::new(error.kind(), text)
            })
        })
    }

    fn step_in(&self, bytes: &[u8], write: impl Fn(&[u8]) -> io::Result<()>) -> io::Result<()> {
        let allowed = self.step(Step::Write);
        #[cfg(test)]
        if allowed.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::WriteZero) {
            write(&bytes[..bytes.len() / 2])?;
        }
        allowed?;
        write(bytes)
    }

    /// Puts a file in the place of what has its name, whole or not at all; `fill` writes it under another name.
    pub(super) fn put<T>(
        &self,
        path: &Path,
        mode: u32,
        fill: impl FnOnce(&File) -> io::Result<T>,
    ) -> io::Result<T> {
        self.put_unsynced(path, mode, |file| {
            let filled = fill(file)?;
            self.sync(file)?;
            Ok(filled)
        })
    }

    /// The same without waiting until its bytes are on the disk: a machine that ends may leave nothing of either.
    pub(super) fn put_unsynced<T, E: From<io::Error>>(
        &self,
        path: &Path,
        mode: u32,
        fill: impl FnOnce(&File) -> Result<T, E>,
    ) -> Result<T, E> {
        let unfinished = paths::with_suffix(path, ".tmp");
        let file = self.create_anew(&unfinished, mode)?;
        let filled = fill(&file).and_then(|filled| {
            self.rename(&unfinished, path)?;
            Ok(filled)
        });
        if filled.is_err() {
            // A disk may be full of it; what is left all the same is written over by the next.
            let _ = self.remove(&unfinished);
        }
        filled
    }

    /// Cuts a file that is open to a length.
    pub(super) fn truncate(&self, file: &File, length: u64) -> io::Result<()> {
        self.step(Step::Truncate)?;
        file.set_len(length)
    }

    /// Gives a file that is open the permissions of another one.
    pub(super) fn copy_permissions(&self, from: &Path, to: &File) -> io::Result<()> {
        self.step(Step::Permissions)?;
        to.set_permissions(fs::metadata(from)?.permissions())
    }

    /// Waits until a file's bytes are on the disk.
    pub(super) fn sync(&self, file: &File) -> io::Result<()> {
        self.step(Step::SyncFile)?;
        if ENDS_ARE_PLAYED { Ok(()) } else { file.sync_all() }
    }

    /// Waits until the bytes of files that are closed are on the disk: of several at a time, since the disk takes what is
    /// asked of it together in about the time of one.
    pub(super) fn sync_all(&self, paths: &[PathBuf]) -> io::Result<()> {
        /// How many are asked of it together.
        const TOGETHER: usize = 16;
        paths.iter().try_for_each(|_| self.step(Step::SyncFile))?;
        if ENDS_ARE_PLAYED {
            return Ok(());
        }
        let sync = |paths: &[PathBuf]| paths.iter().try_for_each(|path| File::open(path)?.sync_all());
        std::thread::scope(|scope| {
            let parts = paths.chunks(paths.len().div_ceil(TOGETHER).max(1));
            let syncing: Vec<_> = parts.map(|part| scope.spawn(move || sync(part))).collect();
            syncing.into_iter().try_for_each(|part| part.join().unwrap_or_else(|panic| resume_unwind(panic)))
        })
    }

    /// Waits until a folder's names are on the disk.
    pub(super) fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.step(Step::SyncFolder)?;
        let folder = File::open(folder)?;
        if ENDS_ARE_PLAYED { Ok(()) } else { folder.sync_all() }
    }

    /// Gives a file another name, in the place of what had it.
    pub(super) fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step(Step::Rename)?;
        fs::rename(from, to)
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

/// Asks for pages of megabytes behind the room for a big file. Where it is filled the system has to find each page, and
/// with the small ones that takes longer than to copy what is read.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the system's advice takes a bare address")]
fn in_huge_pages(room: &mut [MaybeUninit<u8>]) {
    /// Fewer bytes have hardly a page of that size in them.
    const SMALLEST: usize = 4 << 20;
    /// Small pages are no bigger anywhere.
    const ALIGNED: usize = 64 << 10;
    if room.len() < SMALLEST {
        return;
    }
    let before = room.as_ptr().align_offset(ALIGNED);
    let Some(room) = room.get_mut(before..) else { return };
    let length = room.len() / ALIGNED * ALIGNED;
    // A system that has no such pages gives small ones.
    // SAFETY: all of the room is ours, and it keeps its bytes whatever pages it is made of.
    let _: rustix::io::Result<()> =
        unsafe { rustix::mm::madvise(room.as_mut_ptr().cast(), length, rustix::mm::Advice::LinuxHugepage) };
}

#[cfg(not(target_os = "linux"))]
const fn in_huge_pages(_: &mut [MaybeUninit<u8>]) {}

/// No link is followed, and a pipe is opened without waiting for its other end.
fn plain_flags() -> i32 {
    (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed()
}

/// Writes to a file that is open.
pub(super) struct FileOut<'a> {
    pub(super) disk: &'a Disk,
    pub(super) file: &'a File,
}

impl Write for FileOut<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.disk.write(self.file, bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
