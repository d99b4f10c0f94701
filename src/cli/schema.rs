//! `tapedeck schema`: the JSON Schema of our files, and the document of `--admin`, for editors and other programs.

use clap::{Args, ValueEnum};
use mcp_tapedeck::exit_code::ExitCode;

use super::{failure::Failure, output};

/// Print the JSON Schema (2020-12) of a kind of file, or the OpenAPI document of `--admin`
#[derive(Args, Debug)]
#[command(after_help = "Example:
  tapedeck schema cassette > cassette.schema.json

An editor that knows JSON Schema completes and checks a cassette whose first member is
  \"$schema\": \"./cassette.schema.json\"")]
pub(super) struct SchemaArgs {
    /// The kind of file
    kind: Kind,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    /// What `record` writes and `replay` reads
    Cassette,
    /// What `replay --faults` reads
    Faults,
    /// What `replay --report` writes and `verdict` reads
    Report,
    /// A line of what `replay --events` writes and `events` reads
    Events,
    /// What `--admin` is asked and answers (OpenAPI 3.1)
    Admin,
}

pub(super) fn run(args: &SchemaArgs) -> Result<ExitCode, Failure> {
    output::print(match args.kind {
        Kind::Cassette => CASSETTE,
        Kind::Faults => FAULTS,
        Kind::Report => REPORT,
        Kind::Events => EVENTS,
        Kind::Admin => ADMIN,
    })?;
    Ok(ExitCode::Good)
}

const CASSETTE: &str = include_str!("schema/cassette.json");
const FAULTS: &str = include_str!("schema/faults.json");
const REPORT: &str = include_str!("schema/report.json");
const ADMIN: &str = include_str!("schema/admin.json");
const EVENTS: &str = include_str!("schema/events.json");
