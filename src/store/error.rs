//! What may go wrong with a cassette's files, and what to do about it.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::{paths, shell};
use crate::cassette::{LoadError, journal::JournalError};

/// A cassette's files cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Neither the cassette nor a journal of it is there.
    #[error("{}: there is no such cassette, and no journal of one", path.display())]
    NotFound {
        /// The path that was given.
        path: PathBuf,
    },
    /// There is no cassette, but a journal of one.
    #[error("{}: only the journals of this cassette are there, it is not written yet", path.display())]
    Unwritten {
        /// The path that was given.
        path: PathBuf,
        /// Whether recorders that still run hold all of them.
        is_recording: bool,
    },
    /// A folder where a cassette or a journal is needed.
    #[error("{}: expected a file, found a folder", path.display())]
    Folder {
        /// The path that was given.
        path: PathBuf,
    },
    /// The file is no cassette, or one with a mistake.
    #[error("{}:{source}", path.display())]
    Cassette {
        /// The file.
        path: PathBuf,
        /// Where and what.
        source: Box<LoadError>,
    },
    /// The file is no journal, or a damaged one.
    #[error("{}: {source}", path.display())]
    Journal {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: JournalError,
    },
    /// A journal where a cassette is needed.
    #[error("{}: expected a cassette, found a journal", path.display())]
    IsJournal {
        /// The file.
        path: PathBuf,
    },
    /// The time was over before the cassette was written; nothing is lost, the journals are still there.
    #[error("{}: there was no time to write the cassette; its journals are kept, and are read with it", path.display())]
    Late {
        /// The cassette.
        path: PathBuf,
    },
    /// A journal that is to be recovered still has its recorder.
    #[error("{}: the recorder of this journal is still running", path.display())]
    Alive {
        /// The journal.
        path: PathBuf,
    },
    /// A journal does not say whose it is.
    #[error("{}: no cassette belongs to a journal of this name", path.display())]
    Stray {
        /// The journal.
        path: PathBuf,
    },
    /// A file that is to be made is there already.
    #[error("{}: this file exists and is not written over; remove it or choose another name", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl StoreError {
    /// A file could not be read.
    pub(super) fn unread(path: &Path, error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::IsADirectory => Self::Folder { path: path.to_owned() },
            _ => error.into(),
        }
    }
}

/// What to do about a journal that cannot be read: a sentence without a full stop.
pub fn advice(journal: &Path, error: &JournalError) -> Option<String> {
    match error {
        error if error.is_damage() => Some(way_out(journal)),
        JournalError::NoJournal | JournalError::Version { .. } | JournalError::NoArchive => {
            Some("take it away, or bring it back from a copy".to_owned())
        }
        _ => None,
    }
}

/// How what a journal holds gets into a cassette: a sentence without a full stop.
pub fn way_out(journal: &Path) -> String {
    let path = shell::word(journal);
    match paths::cassette_of(journal) {
        Some(_) => format!("`tapedeck recover {path}` puts what can be read of it into its cassette"),
        None => format!("`tapedeck convert {path} NEW.json` makes a cassette of what can be read of it"),
    }
}

/// What is said of a journal that could not be read, and of what becomes of it.
pub(super) fn note_of_unread(journal: &Path, error: &JournalError, so: &str) -> String {
    let advice = advice(journal, error).map(|advice| format!("; {advice}")).unwrap_or_default();
    format!("{}: {error}; {so}{advice}", journal.display())
}
