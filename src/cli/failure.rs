//! Why a command failed: one sentence for the person, the next step, the exit status.

use std::{fmt, io, path::Path};

use mcp_tapedeck::{
    exit_code::ExitCode,
    fault::{PlanError, Stranger},
};

/// Why a command failed.
///
/// The sentence says with its file, place, key or address what was expected and what was found. It is a fragment
/// without a full stop, for it stands behind `error: `.
#[derive(Debug)]
pub(super) struct Failure {
    /// The exit status.
    pub code: ExitCode,
    sentence: String,
    hints: Vec<String>,
}

impl Failure {
    /// What was to be checked is false.
    pub(super) fn bad(sentence: impl fmt::Display) -> Self {
        Self::new(ExitCode::Bad, sentence)
    }

    /// The command line is wrong.
    pub(super) fn usage(sentence: impl fmt::Display) -> Self {
        Self::new(ExitCode::Usage, sentence)
    }

    /// A file is missing, invalid or cannot be written.
    pub(super) fn file(sentence: impl fmt::Display) -> Self {
        Self::new(ExitCode::File, sentence)
    }

    /// A rule cannot act: what is wrong stands on the command line, or in a file.
    pub(super) fn plan(error: PlanError) -> Self {
        Self::new(if error.by_option { ExitCode::Usage } else { ExitCode::File }, error.text)
    }

    /// The same of a rule that fits nothing.
    pub(super) fn stranger(stranger: &Stranger, sentence: impl fmt::Display) -> Self {
        Self::new(if stranger.by_option() { ExitCode::Usage } else { ExitCode::File }, sentence)
    }

    /// A peer could not be started or reached.
    pub(super) fn peer(sentence: impl fmt::Display) -> Self {
        Self::new(ExitCode::Peer, sentence)
    }

    fn new(code: ExitCode, sentence: impl fmt::Display) -> Self {
        Self { code, sentence: sentence.to_string(), hints: Vec::new() }
    }

    /// Adds a next step.
    pub(super) fn hint(mut self, hint: impl fmt::Display) -> Self {
        self.hints.push(hint.to_string());
        self
    }

    /// Writing what was asked for failed. That the reader went away is no failure: it has what it wanted.
    pub(super) fn output(error: io::Error) -> Self {
        let code = if error.kind() == io::ErrorKind::BrokenPipe { ExitCode::Good } else { ExitCode::File };
        Self::new(code, format_args!("cannot write the output: {error}"))
    }

    /// An operation on a file failed.
    pub(super) fn io(what: &str, path: &Path, error: &io::Error) -> Self {
        Self::file(format_args!("cannot {what} `{}`: {error}", path.display()))
    }

    /// A file that somebody named cannot be read; `next` says where such a file comes from.
    pub(super) fn unread(path: &Path, error: &io::Error, next: &str) -> Self {
        let found = match error.kind() {
            io::ErrorKind::NotFound => "there is no such file",
            io::ErrorKind::IsADirectory => "expected a file, found a folder",
            _ => return Self::io("read", path, error),
        };
        Self::file(format_args!("{}: {found}", path.display())).hint(next)
    }

    /// What a client says cannot be read, or what it is told cannot be written: standard output may be a file.
    pub(super) fn client(sentence: impl fmt::Display, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::FileTooLarge | io::ErrorKind::QuotaExceeded => {
                Self::file(sentence)
                    .hint("standard output is a file here; make room for it, or give it a client")
            }
            _ => Self::peer(sentence),
        }
    }

    /// The whole on one line, for places that have only one, such as a JSON-RPC error.
    pub(super) fn one_line(&self) -> String {
        let mut line = self.sentence.clone();
        for hint in &self.hints {
            line.push_str("; hint: ");
            line.push_str(hint);
        }
        line
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.sentence)?;
        self.hints.iter().try_for_each(|hint| write!(f, "\nhint: {hint}"))
    }
}
