//! The file that tells a program which started a front where that listens.

use std::{
    fs,
    path::{Path, PathBuf},
    process,
};

use serde::{Deserialize, Serialize};

use super::{args, failure::Failure, files};

/// A ready file that is written; it is there as long as this, unless another process has put its own there.
#[derive(Debug)]
pub(super) struct ReadyFile(Option<PathBuf>);

/// What tells whose a ready file is.
#[derive(Deserialize)]
struct Owner {
    pid: u32,
}

impl ReadyFile {
    /// Writes one, if one is wanted.
    pub(super) fn write(path: Option<&Path>, ready: &impl Serialize) -> Result<Self, Failure> {
        let path = path.map(args::absolute).transpose()?;
        if let Some(path) = &path {
            files::replace(path, ready).map_err(|error| Failure::io("write", path, &error))?;
        }
        Ok(Self(path))
    }
}

impl Drop for ReadyFile {
    fn drop(&mut self) {
        let Some(path) = self.0.as_deref().filter(|path| path.is_file()) else { return };
        let owner = fs::read(path).ok().and_then(|text| serde_json::from_slice::<Owner>(&text).ok());
        if owner.is_some_and(|owner| owner.pid == process::id()) {
            // Where it stays it names a process that has ended.
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn it_goes_with_its_process_unless_it_is_anothers_by_then() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ready.json");
        let file = ReadyFile::write(Some(&path), &json!({"pid": process::id()})).unwrap();
        assert!(path.exists());
        drop(file);
        assert!(!path.exists());
        let file = ReadyFile::write(Some(&path), &json!({"pid": process::id()})).unwrap();
        fs::write(&path, json!({"pid": 1}).to_string()).unwrap();
        drop(file);
        assert!(path.exists());
        drop(ReadyFile::write(None, &json!({})).unwrap());
    }
}
