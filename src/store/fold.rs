//! Folding: the journals of recorders that ended become sessions of their cassette.

use std::{
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::{
    blobs::{BlobFiles, Blobs},
    disk::{Disk, FileOut},
    error::{StoreError, advice, note_of_unread},
    load::{base, divide, in_order, is_anothers, note_of_end, note_of_stray, notes_of_losses},
    lock::CassetteLock,
    paths,
    siblings::{FileFrames, Folded, Opened},
};
use crate::{
    cassette::journal::JournalError,
    record::{Addition, Changes, Joined, Plan, Tape},
};

/// How a cassette is folded.
#[derive(Clone, Copy, Debug, Default)]
pub struct FoldOptions {
    /// How long to wait for another fold of the cassette; one that runs out of time leaves its journal to the next.
    pub wait: Option<Duration>,
    /// Whether journals are kept, under a name by which they are never folded again.
    pub keep_journals: bool,
    /// Whether damaged places of journals are skipped; else a damaged journal is left as it is.
    pub recover: bool,
}

/// What folding did.
#[derive(Clone, Debug, Default)]
pub struct FoldOutcome {
    /// The cassette, absolute.
    pub path: PathBuf,
    /// The sessions that were added.
    pub added: Vec<Addition>,
    /// How the new recording differs from those whose place it took; none where it took none's.
    pub changes: Option<Changes>,
    /// The recording that a new one became a part of, although it was to take its place.
    pub joined: Option<Joined>,
    /// How many journals have a recorder that still runs.
    pub alive: usize,
    /// What deserves a word: damaged journals, unfinished ends. One sentence each.
    pub notes: Vec<String>,
    /// The journals that are left because they cannot be read, such as damaged ones, each with what to do about it.
    pub left: Vec<(PathBuf, Option<String>)>,
}

/// Puts the sessions of a cassette's dead journals into it and takes the journals away. Folding twice, or being
/// killed at any point and folding again, changes nothing: a session keeps the id of its journal. It is given up once
/// `goes_on`, which is asked again and again, says no.
///
/// # Errors
/// When the cassette cannot be read or written, or it was given up. The journals are still there then.
pub fn fold(
    cassette: &Path,
    options: FoldOptions,
    goes_on: &dyn Fn() -> bool,
) -> Result<FoldOutcome, StoreError> {
    let files = Files { disk: Disk::default(), state: paths::state_folder() };
    files.fold(cassette, options, None, goes_on)
}

/// Where files are.
pub(super) struct Files {
    pub(super) disk: Disk,
    pub(super) state: Option<PathBuf>,
}

impl Files {
    /// Folds all dead journals of a cassette, or only this one.
    pub(super) fn fold(
        &self,
        cassette: &Path,
        options: FoldOptions,
        only: Option<&Path>,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<FoldOutcome, StoreError> {
        let path = paths::resolve(cassette)?;
        let lock = paths::with_suffix(&path, ".lock");
        // A lock file that was left by one that was killed goes with the next fold, whatever that finds.
        if only.is_none() && self.journals(&path)?.is_empty() && !self.disk.exists(&lock)? {
            return Ok(FoldOutcome { path, ..FoldOutcome::default() });
        }
        let until = options.wait.map(|wait| Instant::now() + wait);
        let waits = || until.is_none_or(|until| Instant::now() < until) && goes_on();
        let late = || StoreError::Late { path: path.clone() };
        let lock = CassetteLock::take(&self.disk, lock, &waits)?.ok_or_else(late)?;
        let folding = Folding {
            disk: &self.disk,
            path: &path,
            options,
            goes_on,
            is_only: only.is_some(),
            alive: Vec::new(),
            outcome: FoldOutcome { path: path.clone(), ..FoldOutcome::default() },
        };
        let journals = match only {
            Some(journal) => vec![journal.to_owned()],
            None => self.journals(&path)?,
        };
        let outcome = folding.run(journals);
        // The lock ends with its file; a file that cannot be taken away is used again by the next.
        let _ = lock.release();
        outcome.map_err(|error| match error {
            StoreError::Io(error) if error.kind() == io::ErrorKind::TimedOut => late(),
            error => error,
        })
    }

    fn journals(&self, cassette: &Path) -> io::Result<Vec<PathBuf>> {
        paths::journals(&self.disk, cassette, self.state.as_deref())
    }
}

/// One fold, under the cassette's lock.
struct Folding<'a> {
    disk: &'a Disk,
    path: &'a Path,
    options: FoldOptions,
    goes_on: &'a dyn Fn() -> bool,
    /// Whether one journal was named.
    is_only: bool,
    /// Of the recorders that still run, what their sessions' recordings depend on.
    alive: Vec<Tape>,
    outcome: FoldOutcome,
}

impl Folding<'_> {
    fn run(mut self, journals: Vec<PathBuf>) -> Result<FoldOutcome, StoreError> {
        let mut dead = Vec::new();
        for journal in journals {
            dead.extend(self.take(journal)?);
        }
        let mut folded = Vec::new();
        let mut done = Vec::new();
        for journal in &dead {
            match journal.fold(self.options.recover, self.goes_on) {
                Ok(read) if is_anothers(&read.tape, &journal.path, self.path) => {}
                Ok(read) => {
                    self.note(journal, &read);
                    // What could not be read of it may be worth something to somebody.
                    done.push((journal, self.options.keep_journals || !read.losses.is_empty()));
                    folded.push((journal, read));
                }
                // It holds no message.
                Err(JournalError::NoHeader) => {
                    if self.is_only {
                        self.outcome.notes.push(format!("{}: it held no message", journal.path.display()));
                    }
                    done.push((journal, false));
                }
                Err(JournalError::Io(error)) => return Err(error.into()),
                Err(source) if self.is_only => {
                    return Err(StoreError::Journal { path: journal.path.clone(), source });
                }
                Err(error) => {
                    self.outcome.notes.push(note_of_unread(&journal.path, &error, "it is left"));
                    self.outcome.left.push((journal.path.clone(), advice(&journal.path, &error)));
                }
            }
        }
        let [recordings, added] = divide(folded);
        let mut left = self.add(recordings)?;
        left.extend(self.add(added)?);
        for (journal, is_kept) in done.into_iter().filter(|(journal, _)| !left.contains(&&*journal.path)) {
            match self.discard(journal, is_kept) {
                Err(error) => self.outcome.notes.push(format!("{error}; its sessions are in the cassette")),
                Ok(()) if is_kept && !self.options.keep_journals => self.outcome.notes.push(format!(
                    "{}: the damaged journal is kept under this name; delete it once nobody needs what else is in it",
                    paths::kept(&journal.path).display()
                )),
                Ok(()) => {}
            }
        }
        Ok(self.outcome)
    }

    /// Opens a journal that nobody writes, and locks it; none where it is written or gone, or was empty.
    fn take(&mut self, path: PathBuf) -> io::Result<Option<Opened>> {
        let mut journal = loop {
            let journal = match Opened::open(self.disk, path.clone()) {
                Ok(Some(journal)) => journal,
                Ok(None) => return Ok(None),
                // Somebody else's, say: the others are folded all the same.
                Err(error) => {
                    self.outcome.notes.push(format!("{error}; it is left"));
                    return Ok(None);
                }
            };
            if !self.disk.try_lock(&journal.file)? {
                self.outcome.alive += 1;
                let header = journal.header().ok().filter(|header| header.continues.is_none());
                self.alive.extend(header.map(Tape::of_alive));
                return Ok(None);
            }
            // Its recorder may have put another in its place since it was opened.
            if self.disk.is_still(&journal.file, &journal.path)? {
                break journal;
            }
        };
        // Its recorder may have written, and ended, since it was opened.
        journal.measure()?;
        if journal.is_empty() {
            // Perhaps a recorder is about to lock it: that one sees it gone and makes another, now and not only
            // when this fold is over.
            self.disk.remove(&journal.path)?;
            return Ok(None);
        }
        Ok(Some(journal))
    }

    fn note(&mut self, journal: &Opened, read: &Folded) {
        let notes = &mut self.outcome.notes;
        notes.extend(read.torn.map(|torn| note_of_end(&journal.path, torn)));
        notes.extend(notes_of_losses(&journal.path, &read.losses));
    }

    /// Adds journals of one kind; those that could not be added.
    fn add<'j>(&mut self, mut folded: Vec<(&'j Opened, Folded)>) -> Result<Vec<&'j Path>, StoreError> {
        in_order(&mut folded);
        let (journals, mut tapes): (Vec<_>, Vec<_>) =
            folded.into_iter().map(|(journal, read)| (journal, read.tape)).unzip();
        if tapes.iter().all(|tape| tape.sessions.is_empty()) {
            return Ok(Vec::new());
        }
        let text = match self.disk.read(self.path) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error.into()),
        };
        let is_there = text.is_some();
        // As `mktemp` makes it.
        let text = text.filter(|text| !text.is_empty());
        let old = Blobs::of(self.disk, self.path);
        let base = base(self.path, text, &tapes, &old)?;
        // Behind the others, whose numbers are those of the journals.
        tapes.extend(self.alive.iter().cloned());
        let mut plan = Plan::new(&base, &tapes);
        let strays: Vec<_> = plan.strays().iter().map(|&stray| &*journals[stray].path).collect();
        self.outcome.notes.extend(strays.iter().map(|stray| format!("{}; it is left", note_of_stray(stray))));
        if plan.is_empty() {
            return Ok(strays);
        }
        let mut frames = FileFrames::new(journals, self.goes_on);
        let changes = self.write(is_there, |out, blobs| plan.write(&mut frames, &old, blobs, out))?;
        if plan.drops() {
            self.outcome.changes = Some(changes);
        }
        self.outcome.joined = self.outcome.joined.or(plan.joined());
        self.outcome.added.extend(plan.additions());
        Ok(strays)
    }

    /// Writes a file beside the cassette, then puts it in the cassette's place.
    fn write(
        &self,
        is_there: bool,
        print: impl FnOnce(&mut dyn Write, &mut BlobFiles) -> io::Result<Changes>,
    ) -> io::Result<Changes> {
        let changes = self.disk.put(self.path, 0o666, |file| {
            if is_there {
                self.disk.copy_permissions(self.path, file)?;
            }
            let mut blobs = BlobFiles::of(self.disk, self.path);
            let mut out = BufWriter::with_capacity(256 << 10, FileOut { disk: self.disk, file });
            let changes = print(&mut out, &mut blobs)?;
            out.flush()?;
            drop(out);
            blobs.sync()?;
            Ok(changes)
        })?;
        self.disk.sync_folder(paths::folder(self.path))?;
        Ok(changes)
    }

    /// Takes a journal away, or gives it a name by which it is never folded again.
    fn discard(&self, journal: &Opened, is_kept: bool) -> io::Result<()> {
        // A recorder that was killed while it cleaned it has left that there.
        let unfinished = paths::with_suffix(&journal.path, ".tmp");
        if self.disk.exists(&unfinished)? {
            self.disk.remove(&unfinished)?;
        }
        match is_kept {
            true => self.disk.rename(&journal.path, &paths::kept(&journal.path)),
            false => self.disk.remove(&journal.path),
        }
    }
}
