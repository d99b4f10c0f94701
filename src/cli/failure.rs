//! Why a command failed: one sentence for the person, the exit status.

use std::{fmt, io};

use mcp_tapedeck::exit_code::ExitCode;

/// Why a command failed.
///
/// The sentence says with its file, place, key or address what was expected and what was found. It is a fragment
/// without a full stop, for it stands behind `error: `.
#[derive(Debug)]
pub(super) struct Failure {
    /// The exit status.
    pub code: ExitCode,
    sentence: String,
}

impl Failure {
    fn new(code: ExitCode, sentence: impl fmt::Display) -> Self {
        Self { code, sentence: sentence.to_string() }
    }

    /// Writing what was asked for failed. That the reader went away is no failure: it has what it wanted.
    pub(super) fn output(error: io::Error) -> Self {
        let code = if error.kind() == io::ErrorKind::BrokenPipe { ExitCode::Good } else { ExitCode::File };
        Self::new(code, format_args!("cannot write the output: {error}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.sentence)
    }
}
