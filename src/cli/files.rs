//! Reading cassettes, and what is to be said of them; writing files that are there whole or not at all.

use std::{
    fs,
    io::{self, BufWriter, IntoInnerError, Write},
    path::Path,
    time::{Duration, SystemTime},
};

use mcp_tapedeck::{
    cassette::{LoadError, model::Cassette},
    store::{self, Loaded, StoreError, shell},
};

use serde::Serialize;

use super::{failure::Failure, output};

/// Reads a cassette and its journals.
pub(super) fn load(path: &Path) -> Result<Loaded, Failure> {
    store::load(path).map_err(Failure::from)
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let failure = Self::file(&error);
        match error {
            StoreError::NotFound { .. } => {
                failure.hint("`tapedeck record` makes one; `tapedeck help record` says how")
            }
            StoreError::Unwritten { path, is_recording: true } => failure.hint(format_args!(
                "its recorder still runs, and writes it when it ends; `tapedeck show {}` reads what there is",
                shell::word(&path)
            )),
            StoreError::Unwritten { path, .. } => {
                failure.hint(format_args!("`tapedeck recover {}` writes it", shell::word(&path)))
            }
            StoreError::Cassette { source, .. } if source.is_no_cassette() => failure.hint(
                "`tapedeck record` makes one; `tapedeck verdict` reads reports, `tapedeck events` files of `--events`",
            ),
            StoreError::Folder { .. } => failure.hint("name a cassette or a journal in it"),
            StoreError::Journal { path, source } => match store::advice(&path, &source) {
                Some(advice) => failure.hint(advice),
                None => failure,
            },
            StoreError::IsJournal { path } | StoreError::Stray { path } => failure.hint(store::way_out(&path)),
            StoreError::Alive { .. } => failure.hint("it becomes part of its cassette when that ends"),
            _ => failure,
        }
    }
}

/// What a reader of a cassette should know, in sentences.
pub(super) fn warnings(loaded: &Loaded) -> impl Iterator<Item = String> {
    let (cassette, path) = (&loaded.cassette, loaded.path.display());
    let unknown = cassette.warnings.iter();
    let unknown =
        unknown.map(move |warning| format!("{path}:{}: {}", place(cassette, warning.at), warning.text));
    unknown.chain(loaded.notes.iter().cloned())
}

/// Says on stderr what somebody should know who reads or writes the file of a cassette alone: of journals beside it that
/// cannot be read, which nobody puts into it by themselves.
pub(super) fn say_unread(path: &Path) -> Result<(), Failure> {
    let notes = store::unread_journals(path).map_err(|error| Failure::io("read", path, &error))?;
    notes.iter().for_each(output::warning);
    Ok(())
}

/// A place in a cassette as `LINE:COLUMN`.
pub(super) fn place(cassette: &Cassette, at: usize) -> String {
    let (line, column) = cassette.line_column(at);
    format!("{line}:{column}")
}

/// Says on stderr what a reader should know.
pub(super) fn say_warnings(loaded: &Loaded) {
    warnings(loaded).for_each(output::warning);
}

/// What is wrong in a cassette that could be read: its blobs.
pub(super) fn fault(loaded: &Loaded, error: &LoadError) -> Failure {
    Failure::file(format_args!("{}:{error}", loaded.path.display()))
}

/// Puts a JSON document into a file. A reader never sees half of it.
pub(super) fn replace(path: &Path, document: &impl Serialize) -> io::Result<()> {
    replace_by(path, |file| {
        serde_json::to_writer_pretty(&mut *file, document)?;
        file.write_all(b"\n")
    })
}

/// What files are called until they are whole.
const UNFINISHED: (&str, &str) = (".tapedeck-", ".tmp");

/// How old one has to be to be nobody's any more: what is under way takes no longer.
const LEFT_BEHIND: Duration = Duration::from_secs(60);

/// Removes what a process left beside a file that was killed while it replaced one. Where that fails it stays.
pub(super) fn clean(beside: &Path, now: SystemTime) {
    let beside = fs::canonicalize(beside).unwrap_or_else(|_| beside.to_owned());
    let Some(folder) = beside.parent() else { return };
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten().filter(|entry| is_unfinished(&entry.file_name().to_string_lossy())) {
        let age = entry
            .metadata()
            .ok()
            .filter(fs::Metadata::is_file)
            .and_then(|known| now.duration_since(known.modified().ok()?).ok());
        if age.is_some_and(|age| age > LEFT_BEHIND) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Whether it is called as `tempfile` calls ours.
fn is_unfinished(name: &str) -> bool {
    let (before, behind) = UNFINISHED;
    let middle = name.strip_prefix(before).and_then(|name| name.strip_suffix(behind));
    middle.is_some_and(|middle| middle.len() == 6 && middle.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

/// Puts into a file what is written. A reader never sees half of it; it is as private as it was, and a new one is
/// private. What is no file, such as `/dev/null` or a pipe, stays what it is, and is written to.
pub(super) fn replace_by(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    // A link stays one: a configuration is often a link into a folder that is under version control.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if let Some(file) = store::open_other(path)? {
        let mut file = BufWriter::new(file);
        write(&mut file)?;
        return file.flush();
    }
    output::create_parent(path)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let file = tempfile::Builder::new().prefix(UNFINISHED.0).suffix(UNFINISHED.1).tempfile_in(folder)?;
    // Documents come in very small pieces.
    let mut file = BufWriter::new(file);
    write(&mut file)?;
    let file = file.into_inner().map_err(IntoInnerError::into_error)?;
    if let Ok(known) = fs::metadata(path) {
        fs::set_permissions(file.path(), known.permissions())?;
    }
    file.persist(path).map(drop).map_err(|error| error.error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_behind_is_removed_and_nothing_else_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let ours = ".tapedeck-a1B2c3.tmp";
        let others = ["c.json", ".tapedeck-a1B2c.tmp", ".tapedeck-a1-2c3.tmp", ".tapedeck-a1B2c3.tmp.bak"];
        others.iter().chain([&ours]).for_each(|name| fs::write(path(name), "").unwrap());
        fs::create_dir(path(".tapedeck-folder.tmp")).unwrap();
        let written = fs::metadata(path(ours)).unwrap().modified().unwrap();
        // Another process may be about to finish it.
        clean(&path("c.json"), written + LEFT_BEHIND);
        assert!(path(ours).exists());
        clean(&path("c.json"), written + LEFT_BEHIND + Duration::from_secs(1));
        assert!(!path(ours).exists());
        assert!(others.iter().all(|name| path(name).exists()) && path(".tapedeck-folder.tmp").exists());
        // It has the names that are given.
        let file =
            tempfile::Builder::new().prefix(UNFINISHED.0).suffix(UNFINISHED.1).tempfile_in(folder.path());
        assert!(is_unfinished(&file.unwrap().path().file_name().unwrap().to_string_lossy()));
    }
}
