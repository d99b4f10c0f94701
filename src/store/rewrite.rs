//! A cassette's file alone, without its journals: read, and put into another form.

use std::{io, path::Path};

use super::{
    blobs::{BlobFiles, Blobs, Noted},
    disk::Disk,
    error::StoreError,
    load::{Loaded, parse},
    lock::CassetteLock,
    paths,
    siblings::Opened,
};
use crate::cassette::blob::BlobSink;

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
/// When the cassette cannot be read or written; those of `change`, and then nothing was written.
pub fn rewrite<E: From<StoreError>>(
    path: &Path,
    change: impl FnOnce(&Loaded) -> Result<Vec<u8>, E>,
) -> Result<(), E> {
    rewrite_on(&Disk::default(), path, change)
}

/// Writes another text of a cassette to a path at which there is nothing yet, with the blobs that it names. The
/// cassette stays as it is.
///
/// # Errors
/// When the cassette cannot be read, or `to` is there already or cannot be written; those of `change`.
pub fn write_variant<E: From<StoreError>>(
    path: &Path,
    to: &Path,
    change: impl FnOnce(&Loaded) -> Result<Vec<u8>, E>,
) -> Result<(), E> {
    let disk = &Disk::default();
    let loaded = read(disk, path)?;
    let to = paths::resolve(to).map_err(StoreError::from)?;
    if disk.exists(&to).map_err(StoreError::from)? {
        return Err(StoreError::Exists { path: to }.into());
    }
    let text = change(&loaded)?;
    Ok(write(disk, &loaded, &to, text)?)
}

fn write(disk: &Disk, loaded: &Loaded, to: &Path, text: Vec<u8>) -> Result<(), StoreError> {
    let noted = Noted::new(&loaded.blobs);
    let variant = parse(to, text, &noted)?;
    disk.create_folder(paths::folder(to))?;
    let mut blobs = BlobFiles::of(disk, to);
    for (name, bytes) in noted.all()? {
        blobs.put(&name, &bytes)?;
    }
    blobs.sync()?;
    Ok(replace(disk, &loaded.path, to, &variant.text)?)
}

fn read(disk: &Disk, path: &Path) -> Result<Loaded, StoreError> {
    let path = paths::resolve(path)?;
    let text = read_text(disk, &path)?;
    let blobs = Blobs::of(disk, &path);
    Ok(Loaded::new(parse(&path, text, &blobs)?, blobs, Vec::new(), path))
}

/// The text of a cassette's file.
pub(super) fn read_text(disk: &Disk, path: &Path) -> Result<Vec<u8>, StoreError> {
    match disk.read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let path = path.to_owned();
            let journals = paths::journals(disk, &path, paths::state_folder().as_deref())?;
            if journals.is_empty() {
                return Err(StoreError::NotFound { path });
            }
            let mut is_recording = true;
            for journal in journals {
                if let Some(journal) = Opened::open(disk, journal)? {
                    is_recording &= disk.is_locked(&journal.file)?;
                }
            }
            Err(StoreError::Unwritten { path, is_recording })
        }
        text => text.map_err(|error| StoreError::unread(path, error)),
    }
}

fn rewrite_on<E: From<StoreError>>(
    disk: &Disk,
    path: &Path,
    change: impl FnOnce(&Loaded) -> Result<Vec<u8>, E>,
) -> Result<(), E> {
    // Nothing is left beside a path at which there is nothing.
    let path = read(disk, path)?.path;
    let lock =
        CassetteLock::take(disk, paths::with_suffix(&path, ".lock"), &|| true).map_err(StoreError::from)?;
    let rewritten = read(disk, &path).map_err(E::from).and_then(|loaded| {
        let text = change(&loaded)?;
        if text == loaded.cassette.text {
            return Ok(());
        }
        Ok(replace(disk, &path, &path, &text).map_err(StoreError::from)?)
    });
    // The lock ends with its file; a file that cannot be taken away is used again by the next.
    let _ = lock.map(CassetteLock::release);
    rewritten
}

/// Puts a text at `path`, with the permissions of the cassette that it was made from.
fn replace(disk: &Disk, from: &Path, path: &Path, text: &[u8]) -> io::Result<()> {
    disk.put(path, 0o666, |file| {
        disk.copy_permissions(from, file)?;
        disk.write(file, text)
    })?;
    disk.sync_folder(paths::folder(path))
}

#[cfg(test)]
mod tests {
    use std::{os::unix::fs::PermissionsExt, sync::Arc};

    use super::{super::disk::Step, *};

    const TEXT: &[u8] = b"{\n  \"cassette\": 1\n}\n";
    const OTHER: &[u8] = b"{\n  \"cassette\": 1,\n  \"note\": \"other\"\n}\n";

    #[expect(clippy::unnecessary_wraps, reason = "changes may fail")]
    fn other(_: &Loaded) -> Result<Vec<u8>, StoreError> {
        Ok(OTHER.to_vec())
    }

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
        rewrite(&path, |loaded| {
            assert_eq!(loaded.cassette.text, TEXT);
            other(loaded)
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
            rewrite_on(&disk, &path, other).unwrap_err();
            assert_eq!(fs_err::read(&path).unwrap(), TEXT, "{fatal:?}");
            rewrite(&path, other).unwrap();
            assert_eq!(
                (fs_err::read(&path).unwrap(), names(folder.path())),
                (OTHER.to_vec(), vec!["c.json".into()])
            );
        }
    }

    #[test]
    fn a_change_that_fails_writes_nothing_and_leaves_no_lock() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.json");
        fs_err::write(&path, TEXT).unwrap();
        let fails = |loaded: &Loaded| Err(StoreError::Exists { path: loaded.path.clone() });
        rewrite(&path, fails).unwrap_err();
        write_variant(&path, &folder.path().join("d.json"), fails).unwrap_err();
        assert_eq!(
            (fs_err::read(&path).unwrap(), names(folder.path())),
            (TEXT.to_vec(), vec!["c.json".into()])
        );
    }

    #[test]
    fn a_variant_brings_its_blobs_along_and_stands_in_nobody_s_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.json");
        let blob = "sha256-e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855.txt";
        let text = format!(
            "{{\"cassette\": 1, \"exchanges\": [{{\"key\": \"a\", \"server\": [{{\"no_id\": true, \"result\": {{\"$blob\": \"{blob}\"}}}}]}}]}}"
        );
        fs_err::write(&path, &text).unwrap();
        fs_err::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        fs_err::create_dir(folder.path().join("c.json.blobs")).unwrap();
        fs_err::write(folder.path().join("c.json.blobs").join(blob), "").unwrap();
        fs_err::write(folder.path().join("c.json.blobs").join(blob.replace("txt", "bin")), "").unwrap();
        let to = folder.path().join("variants/d.json");
        let same = |loaded: &Loaded| Ok::<_, StoreError>(loaded.cassette.text.clone());
        write_variant(&path, &to, same).unwrap();
        assert_eq!(fs_err::read_to_string(&to).unwrap(), text);
        assert_eq!(to.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(names(&folder.path().join("variants/d.json.blobs")), [blob]);
        assert!(matches!(write_variant(&path, &to, same), Err(StoreError::Exists { .. })));
    }

    #[test]
    fn a_cassette_that_is_not_there_or_broken_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.json");
        let never = |_: &Loaded| -> Result<Vec<u8>, StoreError> { unreachable!() };
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
