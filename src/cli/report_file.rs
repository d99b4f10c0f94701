//! The file a replay's report stands in.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use mcp_tapedeck::{
    exit_code::ExitCode,
    report::{Report, Verdict},
};

use super::{args, failure::Failure, files, output::Notices};

/// A report's file. It is replaced as a whole each time, so a reader never sees half a report.
#[derive(Debug)]
pub(super) struct ReportFile {
    path: PathBuf,
    has_failed: AtomicBool,
}

impl ReportFile {
    /// Where `--report` says: this file, or a file of this process's own where it names a folder.
    pub(super) fn at(given: &Path) -> Result<Self, Failure> {
        let mut path = args::absolute(given)?;
        if args::is_folder(&path) {
            path.push(format!("{}-{}.json", args::now_in_name(), std::process::id()));
        }
        Ok(Self { path, has_failed: AtomicBool::new(false) })
    }

    /// Writes the report.
    pub(super) fn write(&self, report: &Report) -> Result<(), Failure> {
        files::replace(&self.path, report)
            .map_err(|error| Failure::io("write the report", &self.path, &error))
    }

    /// Writes it again; where that fails it is said once, and the session goes on. Whether it was written.
    pub(super) fn write_again(&self, report: &Report, notices: &Notices) -> bool {
        let written = self.write(report);
        if let Err(failure) = &written
            && !self.has_failed.swap(true, Ordering::Relaxed)
        {
            notices.warn(failure.one_line());
        }
        written.is_ok()
    }
}

/// A report that is told again and again: as a whole to its file, and to the log what is new in it.
pub(super) struct Telling<'a> {
    file: Option<&'a ReportFile>,
    notices: &'a Notices,
    logged: HashSet<String>,
}

impl<'a> Telling<'a> {
    pub(super) fn new(file: Option<&'a ReportFile>, notices: &'a Notices) -> Self {
        Self { file, notices, logged: HashSet::new() }
    }

    /// Whether its file holds it.
    pub(super) fn tell(&mut self, latest: &Report) -> bool {
        let misses = latest.misses.iter().map(|miss| ("miss", &miss.message));
        let not_joined = latest.not_joined.iter().map(|joined| ("could not join", &joined.why));
        for (what, text) in misses.chain(not_joined) {
            if !self.logged.contains(text) {
                self.notices.log(what, text);
                self.logged.insert(text.clone());
            }
        }
        self.file.is_none_or(|file| file.write_again(latest, self.notices))
    }
}

/// The status of a session of our own: bad where the verdict is, and otherwise that of a file which does not hold all
/// that it was to hold.
pub(super) fn status(verdict: Verdict, all_written: bool) -> ExitCode {
    match (verdict, all_written) {
        (Verdict::Good, true) => ExitCode::Good,
        (Verdict::Good, false) => ExitCode::File,
        (Verdict::Open | Verdict::Bad, _) => ExitCode::Bad,
    }
}
