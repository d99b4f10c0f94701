//! Where a cassette's files lie.

use std::{
    env, io,
    path::{Path, PathBuf},
};

use crate::cassette::journal::JournalHeader;

/// A cassette's path, absolute; a link is followed, so that writing keeps it.
pub(super) fn resolve(cassette: &Path) -> io::Result<PathBuf> {
    match fs_err::canonicalize(cassette) {
        Ok(path) => Ok(path),
        Err(_) => std::path::absolute(cassette),
    }
}

/// The folder a file lies in.
pub(super) fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."))
}

/// A path with something behind its name.
pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// What stands behind a cassette's name in the name of one of its journals.
pub(super) fn journal_suffix(header: &JournalHeader) -> String {
    let started =
        i64::try_from(header.started_ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    let started = started.unwrap_or_default().strftime("%Y%m%dT%H%M%S");
    format!(".{started}-{}.journal", header.id)
}

/// The folder for journals whose cassette's folder cannot be written.
pub(super) fn state_folder() -> Option<PathBuf> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
    state.map(|state| state.join("tapedeck"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journals_name_tells_its_start_and_id() {
        let header = JournalHeader {
            id: "0123456789ab".to_owned(),
            started_ms: 1_795_819_201_000,
            ..JournalHeader::default()
        };
        let suffix = journal_suffix(&header);
        assert_eq!(suffix, ".20261127T224001-0123456789ab.journal");
    }
}
