//! `tapedeck convert`: a cassette as a compact journal, and back.

use std::path::PathBuf;

use clap::Args;
use mcp_tapedeck::{exit_code::ExitCode, store};

use super::{failure::Failure, files, output};

/// Turn a cassette into a compact journal, or a journal into a cassette
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tapedeck convert session.json session.journal
  tapedeck convert session.journal session.json

What A is decides. Of a damaged journal what can be read becomes a cassette, and what is lost is told. A cassette that went through a journal is the same, byte by byte.")]
pub(super) struct ConvertArgs {
    /// What is read: a cassette or a journal
    #[arg(value_name = "A")]
    from: PathBuf,

    /// What is written; it must not be there yet
    #[arg(value_name = "B")]
    to: PathBuf,
}

pub(super) fn run(args: &ConvertArgs) -> Result<ExitCode, Failure> {
    files::say_unread(&args.from)?;
    for note in store::convert(&args.from, &args.to)? {
        output::warning(note);
    }
    Ok(ExitCode::Good)
}
