//! A folder for one test, with the files its servers work on.

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

/// One test's folder. It is kept where the test failed, and the failure says where.
pub(crate) struct Scene {
    folder: TempDir,
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self { folder: TempDir::new().expect("a temporary folder can be made") }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The folder that file servers serve.
    pub(crate) fn files(&self) -> PathBuf {
        self.path("files")
    }

    /// Puts the served files back to what every run begins with.
    pub(crate) fn reset(&self) {
        let files = self.files();
        if files.exists() {
            fs::remove_dir_all(&files).expect("the served folder can be removed");
        }
        fs::create_dir_all(files.join("inner")).expect("the served folder can be made");
        fs::write(files.join("kept.txt"), "kept\nfile\n").expect("a served file can be written");
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.folder.disable_cleanup(true);
        }
    }
}
