//! A cassette's file alone, without its journals: read, and put into another form.

use std::{io, path::Path};

use super::{
    blobs::Blobs,
    disk::Disk,
    error::StoreError,
    load::{Loaded, parse},
    lock::CassetteLock,
    paths,
};
use crate::cassette::model::Cassette;

/// Reads a cassette's file, and no journal.
///
/// # Errors
/// When it is not there, or has a mistake.
pub fn load_file(path: &Path) -> Result<Loaded, StoreError> {
    read(&Disk::default(), path)
}

/// Puts another text in the place of a cassette's, as a whole. Recorders that end meanwhile wait until it is done;
/// a text that does not change is not written.
///
/// # Errors
/// When the cassette cannot be read or written.
pub fn rewrite(path: &Path, change: impl FnOnce(&Cassette) -> Vec<u8>) -> Result<(), StoreError> {
    rewrite_on(&Disk::default(), path, change)
}

fn read(disk: &Disk, path: &Path) -> Result<Loaded, StoreError> {
    let path = paths::resolve(path)?;
    let text = read_text(disk, &path)?;
    let blobs = Blobs::of(disk, &path);
    Ok(Loaded { cassette: parse(&path, text, &blobs)?, blobs, notes: Vec::new(), path })
}

/// The text of a cassette's file.
pub(super) fn read_text(disk: &Disk, path: &Path) -> Result<Vec<u8>, StoreError> {
    match disk.read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let path = path.to_owned();
            let journals = paths::journals(disk, &path, paths::state_folder().as_deref())?;
            Err(if journals.is_empty() {
                StoreError::NotFound { path }
            } else {
                StoreError::Unwritten { path }
            })
        }
        text => Ok(text?),
    }
}

fn rewrite_on(disk: &Disk, path: &Path, change: impl FnOnce(&Cassette) -> Vec<u8>) -> Result<(), StoreError> {
    // Nothing is left beside a path at which there is nothing.
    let path = read(disk, path)?.path;
    let lock = CassetteLock::take(disk, paths::with_suffix(&path, ".lock"), None)?;
    let rewritten = read(disk, &path).and_then(|loaded| {
        let text = change(&loaded.cassette);
        if text == loaded.cassette.text { Ok(()) } else { replace(disk, &path, &text).map_err(Into::into) }
    });
    // The lock ends with its file; a file that cannot be taken away is used again by the next.
    let _ = lock.map(CassetteLock::release);
    rewritten
}

fn replace(disk: &Disk, path: &Path, text: &[u8]) -> io::Result<()> {
    let unfinished = paths::with_suffix(path, ".tmp");
    let file = disk.create_anew(&unfinished, 0o666)?;
    disk.copy_permissions(path, &file)?;
    disk.write(&file, text)?;
    disk.sync(&file)?;
    disk.rename(&unfinished, path)?;
    disk.sync_folder(paths::folder(path))
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::PermissionsExt, sync::Arc};

    use super::{super::disk::Step, *};

    const TEXT: &[u8] = b"{\n  \"cassette\": 1\n}\n";
    const OTHER: &[u8] = b"{\n  \"cassette\": 1,\n  \"note\": \"other\"\n}\n";

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs_err::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_text_is_replaced_with_the_file_s_permissions_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.json");
        fs_err::write(&path, TEXT).unwrap();
        fs_err::set_permissions(&path, PermissionsExt::from_mode(0o640)).unwrap();
        rewrite(&path, |cassette| {
            assert_eq!(cassette.text, TEXT);
            OTHER.to_vec()
        })
        .unwrap();
        assert_eq!(fs_err::read(&path).unwrap(), OTHER);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(names(folder.path()), ["c.json"]);
    }

    #[test]
    fn what_fails_on_the_way_leaves_the_old_text() {
        for fatal in [Step::Create, Step::Write, Step::SyncFile, Step::Rename] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("c.json");
            fs_err::write(&path, TEXT).unwrap();
            let before =
                move |step| if step == fatal { Err(io::ErrorKind::WriteZero.into()) } else { Ok(()) };
            let disk = Disk { before: Some(Arc::new(before)) };
            rewrite_on(&disk, &path, |_| OTHER.to_vec()).unwrap_err();
            assert_eq!(fs_err::read(&path).unwrap(), TEXT, "{fatal:?}");
            rewrite(&path, |_| OTHER.to_vec()).unwrap();
            assert_eq!(
                (fs_err::read(&path).unwrap(), names(folder.path())),
                (OTHER.to_vec(), vec!["c.json".into()])
            );
        }
    }

    #[test]
    fn a_cassette_that_is_not_there_or_broken_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.json");
        let never = |_: &Cassette| -> Vec<u8> { unreachable!() };
        assert!(matches!(rewrite(&path, never), Err(StoreError::NotFound { .. })));
        let journal = paths::with_suffix(&path, ".20261127T224001-6f1c2a7b9d0e.journal");
        fs_err::write(&journal, "").unwrap();
        assert!(matches!(rewrite(&path, never), Err(StoreError::Unwritten { .. })));
        fs_err::remove_file(&journal).unwrap();
        fs_err::write(&path, "{}").unwrap();
        assert!(matches!(rewrite(&path, never), Err(StoreError::Cassette { .. })));
        assert_eq!(names(folder.path()), ["c.json"]);
    }
}
