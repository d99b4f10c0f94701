//! `tapedeck fmt`: the canonical form of a cassette.

use std::path::{Path, PathBuf};

use clap::Args;
use mcp_tapedeck::{
    cassette::{self, model::Cassette},
    exit_code::ExitCode,
    store,
};

use super::{args::CassettesOption, failure::Failure, files, lint, output};

/// Put a cassette into its canonical form, or check that it is in it
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tapedeck fmt session.json
  tapedeck fmt --check cassettes/*.json     in CI: status 1 where one is not, or has unknown members

A recording is in this form already; one that was edited by hand may not be. Everything a person wrote stays.")]
pub(super) struct FmtArgs {
    /// The cassettes
    #[arg(id = "cassettes", value_name = "C", required_unless_present = "cassette_option")]
    paths: Vec<PathBuf>,

    #[command(flatten)]
    named: CassettesOption,

    /// Write nothing: say what is not as it should be
    #[arg(long)]
    check: bool,
}

pub(super) fn run(args: &FmtArgs) -> Result<ExitCode, Failure> {
    let mut all_is_well = true;
    for path in args.paths.iter().chain(&args.named.cassettes) {
        files::say_unread(path)?;
        if args.check {
            all_is_well &= check(path)?;
        } else {
            store::rewrite(path, |loaded| Ok::<_, Failure>(cassette::format(&loaded.cassette)))?;
        }
    }
    Ok(if all_is_well { ExitCode::Good } else { ExitCode::Bad })
}

fn check(path: &Path) -> Result<bool, Failure> {
    let cassette = store::load_file(path)?.cassette;
    let mut findings = lint::unknown(&cassette);
    findings.extend(first_difference(&cassette).map(|at| {
        (at, "from here on this is not the canonical form; `tapedeck fmt` makes it so".to_owned())
    }));
    for (at, finding) in &findings {
        let (path, place) = (path.display(), files::place(&cassette, *at));
        output::print(format_args!("{path}:{place}: {}\n", output::visible(finding)))?;
    }
    Ok(findings.is_empty())
}

/// Where a cassette's text leaves its canonical form.
fn first_difference(cassette: &Cassette) -> Option<usize> {
    let (text, canonical) = (&cassette.text, cassette::format(cassette));
    let equal = text.iter().zip(&canonical).take_while(|(a, b)| a == b).count();
    (*text != canonical).then_some(equal)
}
