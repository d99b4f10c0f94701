//! Journals that were left behind: finding them, and folding even damaged ones.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::{
    disk::Disk,
    error::{StoreError, advice},
    fold::{Files, FoldOptions, FoldOutcome},
    paths,
    siblings::Opened,
};
use crate::cassette::journal::JournalError;

/// A journal that lies about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftJournal {
    /// Where it lies.
    pub path: PathBuf,
    /// The cassette it belongs to; none where its header is lost.
    pub cassette: Option<PathBuf>,
    /// When it began, in milliseconds since 1970 UTC.
    pub started_ms: u64,
    /// Whether its recorder still runs.
    pub is_alive: bool,
    /// Whether its sessions are in the cassette: it was kept on request, or since not all of it could be read.
    pub is_kept: bool,
    /// What is wrong with it, and what to do about that, where it cannot be read.
    pub error: Option<String>,
    /// Whether any of it can be: not where it is no journal, or one of another version.
    pub is_readable: bool,
}

/// The journals of any cassette in a folder, and in the user's state folder, where those go whose own folder cannot
/// be written; in the order of their start. Those that nobody writes are read, to find what is wrong with them.
///
/// # Errors
/// When a folder cannot be read.
pub fn left_journals(folder: &Path) -> io::Result<Vec<LeftJournal>> {
    left_journals_on(&Disk::default(), folder, paths::state_folder().as_deref())
}

pub(super) fn left_journals_on(
    disk: &Disk,
    folder: &Path,
    state: Option<&Path>,
) -> io::Result<Vec<LeftJournal>> {
    let folder = paths::resolve(folder)?;
    let mut left = Vec::new();
    for folder in [Some(&*folder), state.filter(|state| *state != folder)].into_iter().flatten() {
        for name in disk.list(folder)? {
            let path = folder.join(name);
            let kept = paths::was_kept(&path);
            let of = paths::cassette_of(kept.as_ref().unwrap_or(&path));
            let Some(of) = of else { continue };
            // One that cannot be read hides no other.
            left.extend(look_at(disk, &path, of, kept.is_some(), state).unwrap_or_else(|error| {
                let (header, named) = (paths::header_of(&path), format!("{}: ", path.display()));
                Some(LeftJournal {
                    path,
                    cassette: None,
                    started_ms: header.started_ms,
                    is_alive: false,
                    is_kept: kept.is_some(),
                    error: Some(error.to_string().trim_start_matches(&named).to_owned()),
                    is_readable: false,
                })
            }));
        }
    }
    left.sort_unstable_by(|a, b| (a.started_ms, &a.path).cmp(&(b.started_ms, &b.path)));
    Ok(left)
}

/// One journal of the cassette `of`, as far as its name tells; none where it is gone.
fn look_at(
    disk: &Disk,
    path: &Path,
    of: PathBuf,
    is_kept: bool,
    state: Option<&Path>,
) -> io::Result<Option<LeftJournal>> {
    let Some(journal) = Opened::open(disk, path.to_owned())? else { return Ok(None) };
    let found = describe(disk, &journal, state)?;
    let cassette = found.cassette.or_else(|| is_kept.then_some(of));
    let found = LeftJournal { cassette, is_kept, ..found };
    if found.error.is_some() || found.is_alive || is_kept {
        return Ok(Some(found));
    }
    let wrong = journal.wrong()?;
    let is_readable = wrong.as_ref().is_none_or(is_readable);
    Ok(Some(LeftJournal { error: wrong.map(|error| told(path, &error)), is_readable, ..found }))
}

/// Whether some of a journal can be read of which this is wrong.
const fn is_readable(error: &JournalError) -> bool {
    error.is_damage() || matches!(error, JournalError::NoHeader)
}

fn told(journal: &Path, error: &JournalError) -> String {
    advice(journal, error).map_or_else(|| error.to_string(), |advice| format!("{error}; {advice}"))
}

fn describe(disk: &Disk, journal: &Opened, state: Option<&Path>) -> io::Result<LeftJournal> {
    let is_alive = !disk.try_lock(&journal.file)?;
    let (header, error) = match journal.header() {
        Ok(header) => (header, None),
        Err(JournalError::Io(error)) => return Err(error),
        Err(error) => (paths::header_of(&journal.path), Some(error)),
    };
    let cassette = match header.cassette {
        Some(cassette) => Some(PathBuf::from(cassette)),
        None => paths::cassette_of(&journal.path).filter(|_| Some(paths::folder(&journal.path)) != state),
    };
    Ok(LeftJournal {
        path: journal.path.clone(),
        cassette,
        started_ms: header.started_ms,
        is_alive,
        is_kept: false,
        is_readable: error.as_ref().is_none_or(is_readable),
        error: error.map(|error| told(&journal.path, &error)),
    })
}

/// Folds a journal, or all journals of a cassette, into the cassette, and skips what is damaged; what is lost is said
/// in the notes.
///
/// # Errors
/// When there is no such file, when the journal's recorder still runs or its cassette is not known, and as
/// [`fold()`](super::fold()) has them.
pub fn recover(path: &Path) -> Result<FoldOutcome, StoreError> {
    Files { disk: Disk::default(), state: paths::state_folder() }.recover(path)
}

impl Files {
    pub(super) fn recover(&self, path: &Path) -> Result<FoldOutcome, StoreError> {
        let path = paths::resolve(path)?;
        let options = FoldOptions { recover: true, ..FoldOptions::default() };
        let opened =
            Opened::open(&self.disk, path.clone()).map_err(|error| StoreError::unread(&path, error))?;
        let Some(journal) = opened.filter(is_journal) else {
            let has_none = paths::journals(&self.disk, &path, self.state.as_deref())?.is_empty();
            if has_none && !self.disk.exists(&path)? {
                return Err(StoreError::NotFound { path });
            }
            return self.fold(&path, options, None, &|| true);
        };
        let left = describe(&self.disk, &journal, self.state.as_deref())?;
        // The lock that told whether it lives ends here, so that folding can take it.
        drop(journal);
        match left.cassette {
            _ if left.is_alive => Err(StoreError::Alive { path }),
            Some(cassette) => self.fold(&cassette, options, Some(&path), &|| true),
            None => Err(StoreError::Stray { path }),
        }
    }
}

/// Whether a file is a journal, perhaps a damaged one: by its first bytes, or by its name.
fn is_journal(file: &Opened) -> bool {
    file.is_journal() || paths::cassette_of(&file.path).is_some()
}
