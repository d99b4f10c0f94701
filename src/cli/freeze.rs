//! `tapedeck freeze`: what chance decided in a run becomes a plan.

use std::path::PathBuf;

use clap::Args;
use mcp_tapedeck::{
    exit_code::ExitCode,
    fault::freeze,
    report::{Report, Verdict},
};

use super::{args, failure::Failure, files, output, verdict};

/// Make a fault plan without chance of a replay's report
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tapedeck freeze report.json --out frozen.json
  tapedeck replay session.json --faults frozen.json

Against the same client and cassette, the same faults act on the same requests. In the plan each rule with `probability` becomes rules that name recorded exchanges, and which of the requests for them
are meant. The report of a run with several takes becomes a plan whose rules act in each take.")]
pub(super) struct FreezeArgs {
    /// The report of the run
    #[arg(value_name = "REPORT")]
    report: PathBuf,

    /// Write the plan to this file instead of stdout
    #[arg(long, value_name = "PLAN")]
    out: Option<PathBuf>,
}

pub(super) fn run(args: &FreezeArgs) -> Result<ExitCode, Failure> {
    let path = args.report.display();
    let report: Report = verdict::read(args.report.clone())?.report;
    if report.verdict == Verdict::Open {
        return Err(Failure::file(format_args!("{path}: the report is still open"))
            .hint("it tells what faults did once its replay has ended"));
    }
    let frozen = freeze(&report).map_err(|error| Failure::file(format_args!("{path}: {}", error.text)))?;
    frozen.notes.iter().for_each(output::warning);
    if frozen.drawn == 0 {
        output::warning("no fault acted by chance in this run; the plan holds its other rules");
    }
    match &args.out {
        None => output::print(&frozen.text)?,
        Some(out) => {
            let out = args::absolute(out)?;
            files::replace_by(&out, |file| file.write_all(frozen.text.as_bytes()))
                .map_err(|error| Failure::io("write", &out, &error))?;
        }
    }
    Ok(ExitCode::Good)
}
