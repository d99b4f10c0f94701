//! The file a replay's report stands in.

use std::path::{Path, PathBuf};

use mcp_tapedeck::report::Report;

use super::{args, failure::Failure, files};

/// A report's file. It is replaced as a whole each time, so a reader never sees half a report.
#[derive(Debug)]
pub(super) struct ReportFile {
    path: PathBuf,
}

impl ReportFile {
    /// Where `--report` says: this file, or a file of this process's own where it names a folder.
    pub(super) fn at(given: &Path) -> Result<Self, Failure> {
        let mut path = args::absolute(given)?;
        if args::is_folder(&path) {
            path.push(format!("{}-{}.json", args::now_in_name(), std::process::id()));
        }
        Ok(Self { path })
    }

    /// Writes the report.
    pub(super) fn write(&self, report: &Report) -> Result<(), Failure> {
        files::replace(&self.path, report)
            .map_err(|error| Failure::io("write the report", &self.path, &error))
    }
}
