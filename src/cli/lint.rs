//! `tapedeck lint`: what is wrong with a cassette's file.

use std::path::PathBuf;

use clap::Args;
use mcp_tapedeck::{cassette::model::Cassette, exit_code::ExitCode, wire::scan};

use super::{failure::Failure, files, output};

/// Check a cassette's file: unknown members and other mistakes
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tapedeck lint session.json
  tapedeck lint cassettes/*.json

Each finding stands on a line of its own, FILE:LINE:COLUMN before it. The status is 1 where there is one, 3 where a
file is no cassette.")]
pub(super) struct LintArgs {
    /// The cassettes
    #[arg(value_name = "C", required = true)]
    paths: Vec<PathBuf>,
}

pub(super) fn run(args: &LintArgs) -> Result<ExitCode, Failure> {
    let mut all_is_well = true;
    for path in &args.paths {
        let loaded = files::load(path)?;
        for (at, finding) in findings(&loaded.cassette) {
            let place = files::place(&loaded.cassette, at);
            output::print(format_args!("{}:{place}: {}\n", path.display(), output::visible(&finding)))?;
            all_is_well = false;
        }
    }
    Ok(if all_is_well { ExitCode::Good } else { ExitCode::Bad })
}

/// What is wrong with a cassette that can be read, and where.
pub(super) fn findings(cassette: &Cassette) -> Vec<(usize, String)> {
    let unredacted = scan::member(&cassette.text, scan::trim(&cassette.text).start, "redacted");
    let unredacted = unredacted.filter(|_| !cassette.redacted).map(|span| {
        (span.start, "recorded with `--redact off`: secrets of the session may stand in this file".to_owned())
    });
    let mut findings: Vec<_> = unredacted.into_iter().chain(unknown_members(cassette)).collect();
    findings.sort_by_key(|(at, _)| *at);
    findings
}

/// Members that nobody knows, and where.
pub(super) fn unknown_members(cassette: &Cassette) -> Vec<(usize, String)> {
    cassette.warnings.iter().map(|warning| (warning.at, warning.text.clone())).collect()
}
