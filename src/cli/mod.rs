//! The command line: arguments in, library calls, sentences out.
//!
//! One file holds one subcommand: its arguments as they are typed (`…Args`), a step that makes options of them, and
//! `run`. To add one: a file here, a line in [`Command`] and in `run`, a place in `help::GROUPS`, an example in its
//! `after_help`, a test in `tests/it/cli.rs`. Printing is `output`'s alone; `cli` uses nothing of the library that
//! other programs could not.

mod args;
mod auto;
mod completions;
mod connect;
mod convert;
mod deck;
mod demo;
mod edit;
mod event_file;
mod events;
mod failure;
mod faults;
mod files;
mod fmt;
mod freeze;
mod front;
mod help;
mod join;
mod junit;
mod lint;
mod listen;
mod live;
mod output;
mod privacy;
mod proxy;
mod proxy_url;
mod ready_file;
mod real;
mod record;
mod record_bridge;
mod record_url;
mod recover;
mod replay;
mod report_file;
mod run;
mod schema;
mod separator;
mod show;
mod tape;
mod unfit;
mod values;
mod verdict;
mod wrap;

use std::{env, ffi::OsString, process};

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
    Auto(auto::AutoArgs),
    Completions(completions::CompletionsArgs),
    Convert(convert::ConvertArgs),
    Demo(demo::DemoArgs),
    #[command(hide = true)]
    DemoServer,
    Edit(edit::EditArgs),
    Events(events::EventsArgs),
    Fmt(fmt::FmtArgs),
    Freeze(freeze::FreezeArgs),
    Join(join::JoinArgs),
    Lint(lint::LintArgs),
    Proxy(proxy::ProxyArgs),
    Record(record::RecordArgs),
    Recover(recover::RecoverArgs),
    Replay(replay::ReplayArgs),
    Run(run::RunArgs),
    Schema(schema::SchemaArgs),
    Show(show::ShowArgs),
    Verdict(verdict::VerdictArgs),
    Wrap(wrap::WrapArgs),
}

/// Runs the command that the process was started with.
pub(crate) fn main() -> process::ExitCode {
    // Without it everything works but where such a limit is met.
    #[cfg(unix)]
    let _ = mcp_tapedeck::proxy::shutdown::outlive_size_limit();
    let code = parse(env::args_os().collect()).map_or_else(
        |code| code,
        |command| {
            command.run().unwrap_or_else(|failure| {
                output::failure(&failure);
                failure.code
            })
        },
    );
    code.code().into()
}

/// What the command line says; where there is nothing to run, the exit status.
fn parse(line: Vec<OsString>) -> Result<Command, ExitCode> {
    let command = help::group(Cli::command());
    let line = separator::restore(&command, line);
    // Nobody waits on the stdin of a front that listens.
    let listens = line.iter().any(|word| word.to_string_lossy().starts_with("--listen"));
    let is_front = !listens
        && line.get(1).is_some_and(|name| {
            ["record", "proxy", "replay", "auto", "join"].iter().any(|front| name == front)
        });
    let parsed = command.try_get_matches_from(line).and_then(|matches| Cli::from_arg_matches(&matches));
    parsed.map(|cli| cli.command).map_err(|error| {
        let code = output::arguments(&error);
        if is_front && error.use_stderr() {
            front::tell(&help::in_one_line(&error));
        }
        code
    })
}

impl Command {
    fn run(self) -> Result<ExitCode, Failure> {
        match self {
            Self::Auto(args) => auto::run(&args),
            Self::Completions(args) => completions::run(&args),
            Self::Convert(args) => convert::run(&args),
            Self::Demo(args) => demo::run(&args),
            Self::DemoServer => demo::server::run(),
            Self::Edit(args) => edit::run(args),
            Self::Events(args) => events::run(&args),
            Self::Fmt(args) => fmt::run(&args),
            Self::Freeze(args) => freeze::run(&args),
            Self::Join(args) => join::run(&args),
            Self::Lint(args) => lint::run(&args),
            Self::Proxy(args) => proxy::run(&args),
            Self::Record(args) => record::run(&args),
            Self::Recover(args) => recover::run(&args),
            Self::Replay(args) => replay::run(&args),
            Self::Run(args) => run::run(&args),
            Self::Schema(args) => schema::run(&args),
            Self::Show(args) => show::run(&args),
            Self::Verdict(args) => verdict::run(&args),
            Self::Wrap(args) => wrap::run(&args),
        }
    }
}
