//! Where a cassette's files lie.

use std::{
    env, io,
    path::{Path, PathBuf},
};

use super::disk::Disk;
use crate::cassette::journal::{Continues, JournalHeader};

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

/// What the name of a journal says that is no recording of its own: even if all else of it is damaged it must not become
/// one, for the newest recording is the one that is played.
const ADDED: &str = ".added";

/// What stands behind a cassette's name in the name of one of its journals.
pub(super) fn journal_suffix(header: &JournalHeader) -> String {
    let started =
        i64::try_from(header.started_ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    let started = started.unwrap_or_default().strftime("%Y%m%dT%H%M%S");
    let added = if header.continues.is_some() { ADDED } else { "" };
    format!(".{started}-{}{added}.journal", header.id)
}

/// The start and id in the name of a journal that a recorder of the cassette called `cassette` wrote. None for other
/// names: journals that people named are theirs, and never folded.
fn parts<'a>(name: &'a str, cassette: &str) -> Option<(&'a str, &'a str)> {
    let between = name.strip_prefix(cassette)?.strip_prefix('.')?.strip_suffix(".journal")?;
    let between = between.strip_suffix(ADDED).unwrap_or(between);
    let (start, id) = between.split_once('-')?;
    let is_start = start.len() == 15
        && start
            .bytes()
            .enumerate()
            .all(|(at, byte)| if at == 8 { byte == b'T' } else { byte.is_ascii_digit() });
    let is_id = id.len() == 12 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_start && is_id).then_some((start, id))
}

/// The cassette beside which a journal of this name was written.
pub(super) fn cassette_of(journal: &Path) -> Option<PathBuf> {
    let name = journal.file_name()?.to_str()?;
    let stem = name.strip_suffix(".journal")?;
    let (cassette, _) = stem.strip_suffix(ADDED).unwrap_or(stem).rsplit_once('.')?;
    parts(name, cassette)?;
    Some(folder(journal).join(cassette))
}

/// What stands in the name of a journal that is never folded again.
const KEPT: &str = ".kept.journal";

/// Where a journal stays whose sessions are in its cassette.
pub(super) fn kept(journal: &Path) -> PathBuf {
    with_suffix(&journal.with_extension(""), KEPT)
}

/// The journal that stays at this path; none where no journal does.
pub(super) fn was_kept(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?.strip_suffix(KEPT)?;
    Some(path.with_file_name(format!("{name}.journal")))
}

/// What the name of a journal says of its header, for one whose header is lost.
pub(super) fn header_of(journal: &Path) -> JournalHeader {
    let name = journal.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let cassette = cassette_of(journal);
    let cassette = cassette.as_deref().and_then(Path::file_name).and_then(|name| name.to_str());
    let Some((start, id)) = cassette.and_then(|cassette| parts(name, cassette)) else {
        return JournalHeader::default();
    };
    let started = jiff::civil::DateTime::strptime("%Y%m%dT%H%M%S", start)
        .and_then(|start| jiff::tz::Offset::UTC.to_timestamp(start))
        .map(jiff::Timestamp::as_millisecond);
    let started_ms = started.ok().and_then(|started| u64::try_from(started).ok()).unwrap_or_default();
    let continues = is_added(journal).then(Continues::default);
    JournalHeader { id: id.to_owned(), started_ms, redacted: true, continues, ..JournalHeader::default() }
}

/// Whether a journal is no recording of its own, by its name.
pub(super) fn is_added(journal: &Path) -> bool {
    let name = journal.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.strip_suffix(".journal").is_some_and(|stem| stem.ends_with(ADDED))
}

/// The folder for journals whose cassette's folder cannot be written.
pub(super) fn state_folder() -> Option<PathBuf> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".local/state")));
    state.map(|state| state.join("tapedeck"))
}

/// The journals of a cassette by their names: those beside it, and those in the state folder that may be another
/// cassette's of the same name.
pub(super) fn journals(disk: &Disk, cassette: &Path, state: Option<&Path>) -> io::Result<Vec<PathBuf>> {
    let Some(name) = cassette.file_name().and_then(|name| name.to_str()) else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for folder in [Some(folder(cassette)), state].into_iter().flatten() {
        let names = disk.list(folder)?;
        found.extend(names.iter().filter(|found| parts(found, name).is_some()).map(|name| folder.join(name)));
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_recorders_give_are_journals_of_a_cassette() {
        let header = JournalHeader {
            id: "0123456789ab".to_owned(),
            started_ms: 1_795_819_201_000,
            ..JournalHeader::default()
        };
        let suffix = journal_suffix(&header);
        assert_eq!(suffix, ".20261127T224001-0123456789ab.journal");
        let journal = PathBuf::from(format!("/f/c.json{suffix}"));
        assert_eq!(cassette_of(&journal), Some("/f/c.json".into()));
        let known = header_of(&journal);
        assert_eq!((&known.id, known.started_ms), (&header.id, header.started_ms));
        let added = JournalHeader { continues: Some(Continues::default()), ..known };
        let journal = PathBuf::from(format!("/f/c.json{}", journal_suffix(&added)));
        assert_eq!(cassette_of(&journal), Some("/f/c.json".into()));
        assert_eq!(header_of(&journal), added);
        for other in
            ["c.json.journal", "c.json.old.journal", "c.json.20261127T224001-0123456789ab.journal.bak"]
        {
            assert_eq!(parts(other, "c.json"), None, "{other}");
            assert_eq!(cassette_of(Path::new(other)), None, "{other}");
        }
        assert_eq!(parts(&format!("c.json.b{suffix}"), "c.json"), None);
        assert_eq!(parts(&format!("c.json{suffix}"), "c"), None);
    }
}
