//! `tapedeck recover`: journals that were left behind, and what can be saved of them.

use std::path::{Path, PathBuf};

use clap::Args;
use mcp_tapedeck::{
    exit_code::ExitCode,
    store::{self, LeftJournal},
};

use super::{failure::Failure, files, output, record};

/// List journals that were left behind, or put one into its cassette, damaged or not
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tapedeck recover
  tapedeck recover session.json
  tapedeck recover session.json.20261127T224001-6f1c2a7b9d0e.journal

A recorder that was killed, or that had no time to write its cassette, leaves a journal with all that was recorded.
Commands that read a cassette read its journals too, and the next recording puts them into it.")]
pub(super) struct RecoverArgs {
    /// A journal, or a cassette with journals beside it; without one, the journals of this folder and of the folder
    /// for those that could not be written to theirs are listed
    #[arg(value_name = "JOURNAL")]
    path: Option<PathBuf>,
}

pub(super) fn run(args: &RecoverArgs) -> Result<ExitCode, Failure> {
    match &args.path {
        Some(path) => recover(path),
        None => list(),
    }
}

fn recover(path: &Path) -> Result<ExitCode, Failure> {
    let outcome = store::recover(path)?;
    outcome.notes.iter().for_each(output::warning);
    if outcome.added.is_empty() && outcome.changes.is_none() && outcome.path.exists() {
        // That nothing was to be added to it does not say that it can be read.
        files::load(&outcome.path)?;
    }
    output::print(format_args!("{}\n", record::told(&outcome)))?;
    Ok(ExitCode::Good)
}

fn list() -> Result<ExitCode, Failure> {
    let folder = Path::new(".");
    let journals = store::left_journals(folder).map_err(|error| Failure::io("read", folder, &error))?;
    for journal in &journals {
        output::print(format_args!("{}\n", described(journal)))?;
    }
    if journals.iter().any(|journal| !journal.is_alive) {
        output::print("put one into its cassette: tapedeck recover JOURNAL\n")?;
    }
    Ok(ExitCode::Good)
}

fn described(journal: &LeftJournal) -> String {
    let mut text = journal.path.display().to_string();
    if let Some(cassette) = &journal.cassette {
        text.push_str(&format!(": of {}", cassette.display()));
    }
    if journal.is_alive {
        text.push_str(", still being recorded");
    }
    if let Some(error) = &journal.error {
        text.push_str(&format!(", damaged: {error}"));
    }
    text
}
