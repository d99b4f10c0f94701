//! `tapedeck recover`: journals that were left behind, and what can be saved of them.

use std::{
    io,
    path::{Path, PathBuf},
};

use clap::Args;
use mcp_tapedeck::{
    exit_code::ExitCode,
    store::{self, LeftJournal, StoreError},
};

use super::{failure::Failure, files, output, record};

/// List journals that were left behind, or put one into its cassette, damaged or not
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tapedeck recover
  tapedeck recover session.json
  tapedeck recover session.json.20261127T224001-6f1c2a7b9d0e.journal

A recorder that was killed, or that had no time to write its cassette, leaves a journal with all that was recorded.
Commands that read a cassette read its journals too, and the next recording puts them into it. A damaged one is left
out until its path, or that of its cassette, is given here: what can be read of it goes into the cassette, and the
journal stays as NAME.kept.journal, to be deleted once nobody needs it. The status is 3 where a journal cannot be read
at all, and where its recorder still runs.")]
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
    let outcome = store::recover(path).map_err(unwritten)?;
    outcome.notes.iter().for_each(output::warning);
    let is_same = outcome.added.is_empty() && outcome.changes.is_none();
    if is_same && outcome.alive > 0 {
        return Err(Failure::file(format_args!(
            "{}: the recorder of this cassette is still running, and nothing else is left to be added",
            outcome.path.display()
        ))
        .hint("its recording becomes part of the cassette when it ends"));
    }
    if is_same && !outcome.left.is_empty() {
        let path = outcome.path.display();
        return Err(Failure::file(format_args!(
            "{path}: nothing was added, for no journal of it can be read"
        )));
    }
    if is_same && outcome.path.exists() {
        // That nothing was to be added to it does not say that it can be read.
        files::load(&outcome.path)?;
    }
    output::print(format_args!("{}\n", record::told(&outcome)))?;
    Ok(if outcome.left.is_empty() { ExitCode::Good } else { ExitCode::File })
}

/// Why nothing was recovered. Where the cassette cannot be written, one in another folder can.
fn unwritten(error: StoreError) -> Failure {
    use io::ErrorKind as Kind;
    let is_unwritable = matches!(&error, StoreError::Io(error) if matches!(
        error.kind(),
        Kind::StorageFull
            | Kind::FileTooLarge
            | Kind::QuotaExceeded
            | Kind::ReadOnlyFilesystem
            | Kind::PermissionDenied
    ));
    let failure = Failure::from(error);
    if !is_unwritable {
        return failure;
    }
    failure.hint(
        "the journals stay as they were; where there is room and leave to write, `tapedeck convert JOURNAL NEW.json` makes \
         a cassette of one",
    )
}

fn list() -> Result<ExitCode, Failure> {
    let folder = Path::new(".");
    let journals = store::left_journals(folder).map_err(|error| Failure::io("read", folder, &error))?;
    for journal in &journals {
        output::print(format_args!("{}\n", described(journal)))?;
    }
    if journals.iter().any(|journal| !journal.is_alive && !journal.is_kept && journal.is_readable) {
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
    if journal.is_kept {
        text.push_str(", kept: what can be read of it is in the cassette; delete it once nobody needs it");
    } else if let Some(error) = &journal.error {
        text.push_str(&format!(", cannot be read whole: {error}"));
    }
    text
}
