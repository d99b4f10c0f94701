//! The command line: arguments in, library calls, sentences out.
//!
//! One file holds one subcommand: its arguments as they are typed (`…Args`), a step that makes options of them, and
//! `run`. To add one: a file here, a line in [`Command`] and in `run`, a place in `help::GROUPS`, an example in its
//! `after_help`, a test in `tests/it/cli.rs`. Printing is `output`'s alone; `cli` uses nothing of the library that
//! other programs could not.

mod completions;
mod demo;
mod failure;
mod help;
mod output;
mod schema;

use std::{ffi::OsString, process};

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use mcp_tapedeck::exit_code::ExitCode;

use failure::Failure;

/// Record, replay and check MCP (Model Context Protocol) sessions
#[derive(Debug, Parser)]
#[command(name = "tapedeck", version, max_term_width = 110)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Completions(completions::CompletionsArgs),
    #[command(hide = true)]
    DemoServer,
    Schema(schema::SchemaArgs),
}

/// Runs the command that the process was started with.
pub(crate) fn main() -> process::ExitCode {
    let result = parse(std::env::args_os().collect()).and_then(Command::run);
    let code = result.unwrap_or_else(|failure| {
        if failure.code != ExitCode::Good {
            output::stderr(&failure);
        }
        failure.code
    });
    code.code().into()
}

fn parse(line: Vec<OsString>) -> Result<Command, Failure> {
    let command = help::group(Cli::command());
    match command.try_get_matches_from(line).and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => Ok(cli.command),
        Err(error) => error.exit(),
    }
}

impl Command {
    fn run(self) -> Result<ExitCode, Failure> {
        match self {
            Self::Completions(args) => completions::run(&args),
            Self::DemoServer => demo::server::run(),
            Self::Schema(args) => schema::run(&args),
        }
    }
}
