//! The file a replay's report stands in.

use std::{
    io::{self, Write},
    path::{Path, PathBuf},
};

use mcp_tapedeck::report::Report;

use super::{args, failure::Failure, output};

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
        self.replace(report).map_err(|error| Failure::io("write the report", &self.path, &error))
    }

    fn replace(&self, report: &Report) -> io::Result<()> {
        output::create_parent(&self.path)?;
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let mut file = tempfile::Builder::new().prefix(".report-").suffix(".tmp").tempfile_in(folder)?;
        serde_json::to_writer_pretty(&mut file, report)?;
        file.write_all(b"\n")?;
        file.persist(&self.path).map(drop).map_err(|error| error.error)
    }
}
