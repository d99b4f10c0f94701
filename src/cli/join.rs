//! `tapedeck join`: a pipe between a client's stdio and a run.

use std::path::PathBuf;

use clap::Args;
use mcp_tapedeck::{
    exit_code::ExitCode,
    proxy::{
        join::{JoinError, Joined, broke_off},
        shutdown::end_like,
    },
};

use super::{args::LogArgs, failure::Failure, front};

/// Serve a client on stdin and stdout by a run that is under way
#[derive(Args, Debug)]
#[command(after_help = "It is what a client starts as its server.

Examples:
  tapedeck join \"$TAPEDECK_RUN\"
  tapedeck join \"$TAPEDECK_RUN\" primary --take first

In a client's configuration, with a client that fills in variables:
  {\"command\": \"tapedeck\", \"args\": [\"join\", \"${TAPEDECK_RUN}\"]}

A run is `tapedeck run`, which sets TAPEDECK_RUN for the command it starts, or `tapedeck replay --listen`, whose ready
file has it as `run`. Each process that joins is a session of its own; report and verdict are the run's.")]
pub(super) struct JoinArgs {
    /// The run: what its TAPEDECK_RUN holds
    #[arg(value_name = "RUN")]
    run: PathBuf,

    /// Which of its servers; it may be left out where there is one
    #[arg(value_name = "NAME")]
    server: Option<String>,

    /// Join this take of the server instead of the default one
    #[arg(long, value_name = "T", default_value = "", hide_default_value = true)]
    take: String,

    #[command(flatten)]
    log: LogArgs,
}

pub(super) fn run(args: &JoinArgs) -> Result<ExitCode, Failure> {
    let prepared = args.log.notices().and_then(|notices| {
        let joined = Joined::connect(&args.run, args.server.as_deref(), &args.take).map_err(failure)?;
        notices.info(format_args!("joined the run at {}", args.run.display()));
        Ok((joined, notices))
    });
    let (joined, notices) = match prepared {
        Ok(prepared) => prepared,
        Err(failure) => return Ok(front::refuse(&failure)),
    };
    let client = front::take_client(&notices)?;
    let end = joined.serve(client).map_err(|error| {
        if matches!(error, JoinError::Client(_)) {
            broke_off(&args.run, &error);
        }
        failure(error)
    })?;
    if end.status == Some(0) { Ok(ExitCode::Good) } else { end_like(end) }
}

fn failure(error: JoinError) -> Failure {
    let hint =
        "`tapedeck run` sets TAPEDECK_RUN for the command it starts, and it is gone when that has ended";
    match error {
        JoinError::NoRun { .. } => Failure::peer(error).hint(hint),
        JoinError::Refused(_) => Failure::usage(error),
        JoinError::Ended => Failure::peer(error),
        JoinError::Client(ref cause) => Failure::client(&error, cause),
    }
}
