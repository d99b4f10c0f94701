//! `tapedeck run`: a run around a test command.

use std::ffi::OsString;

use clap::Args;
use mcp_tapedeck::{
    exit_code::ExitCode,
    proxy::{run::TestCommand, shutdown::end_like},
};

use super::{
    args::{LogArgs, PlayArgs},
    connect::ServerArgs,
    deck::DecksArgs,
    failure::Failure,
    listen::ListenArgs,
    privacy::PrivacyArgs,
    replay::Session,
};

/// Run a test command beside a replay; fail where the verdict is bad
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tapedeck run session.json -- pytest
  tapedeck run --server primary=a.json --server backup=b.json -- npx vitest run
  tapedeck run session.json --strict --report reports/ -- cargo test
  tapedeck run session.json --admin 127.0.0.1:0 --clock manual --fault 'tools/call: latency ms=30000' -- pytest
  tapedeck run session.json --on-miss record --url https://mcp.example/mcp -- pytest

The command finds in its environment:
  TAPEDECK_URL        where clients reach the server over HTTP (of several, the first)
  TAPEDECK_URL_NAME   the same for each server, by its name in capitals, with _ for all that is no letter or digit
  TAPEDECK_ORIGIN     what both begin with
  TAPEDECK_RUN        what `tapedeck join` is given, which serves a client over stdio
  TAPEDECK_ADMIN      with --admin, where the run is tended (`tapedeck schema admin` tells how)

It ends as the command ends, or with 1 where that passed and the verdict is bad.")]
pub(super) struct RunArgs {
    #[command(flatten)]
    decks: DecksArgs,

    /// The test command
    #[arg(last = true, required = true, value_name = "TESTCMD")]
    command: Vec<OsString>,

    #[command(flatten)]
    log: LogArgs,

    #[command(flatten)]
    play: PlayArgs,

    #[command(flatten)]
    privacy: PrivacyArgs,

    #[command(flatten)]
    listen: ListenArgs,

    #[command(flatten)]
    server: ServerArgs,
}

pub(super) fn run(args: &RunArgs) -> Result<ExitCode, Failure> {
    let notices = args.log.notices()?;
    let serving = args.listen.serving(true)?;
    let privacy = args.privacy.sending(&args.server)?;
    let decks = args.decks.prepare(&args.play, &privacy, serving, &notices)?;
    let mut opened = {
        let session = Session::of(decks, &args.play, notices)?;
        let names = "its address as `--url URL`; behind `--` stands the test command";
        args.listen.open(session.with_real((&args.play, &privacy), (&[], &args.server), names)?)?
    };
    let origin = opened.front.origin();
    let places = opened.session.decks.places(&origin);
    let mut environment: Vec<(String, OsString)> = Vec::new();
    environment.extend(places.first().map(|place| ("TAPEDECK_URL".to_owned(), (&place.url).into())));
    environment.extend(places.into_iter().map(|place| (place.variable, place.url.into())));
    environment.push(("TAPEDECK_ORIGIN".to_owned(), origin.into()));
    environment.extend(opened.front.meeting().map(|path| ("TAPEDECK_RUN".to_owned(), path.into())));
    environment.extend(opened.front.admin().map(|origin| ("TAPEDECK_ADMIN".to_owned(), origin.into())));
    let heeded = opened.front.heed_all_signals();
    heeded.map_err(|error| Failure::peer(format_args!("cannot handle signals: {error}")))?;
    let command = TestCommand::start(&args.command, &environment).map_err(Failure::peer)?;
    let (ended, verdict) = opened.serve(Some(command))?;
    match ended {
        Some(end) if end.status != Some(0) => end_like(end),
        _ => Ok(verdict),
    }
}
