//! `tapedeck wrap`: stands before the servers of a client's configuration.
//!
//! Only what has to change in the file changes: comments, order, layout and `${…}` stay. `--undo` changes the same
//! places back, so that what was edited since stays. Most of what a server was stands in its wrapped entry, the rest in
//! a copy of the file as it is without us, which lies beside it and is brought up to date whenever it is wrapped again.
//!
//! - `clients`: where each client keeps its configuration
//! - `sheet`: a text and the places in it; `json`, `toml`: where servers stand in the two forms of configurations
//! - `entry`: what a server's entry says, and what becomes of it; `put`: standing before it; `back`: leaving it
//! - `copies`: the configuration as it was; `plan`: what becomes of a configuration

mod back;
mod clients;
mod copies;
mod entry;
mod json;
mod plan;
mod put;
mod sheet;
mod toml;

#[cfg(test)]
mod tests;

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use clap::Args;
use diffy::DiffOptions;
use mcp_tapedeck::exit_code::ExitCode;

use self::{entry::Mode, plan::Plan};
use super::{args, failure::Failure, files, output};

/// Stand before the servers of a client's configuration, or leave it again
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tapedeck wrap claude-code                        record all its servers into cassettes/
  tapedeck wrap cursor --replay cassettes --dry-run
  tapedeck wrap path/to/mcp.json --record /home/me/cassettes
  tapedeck wrap claude-code --undo

Clients: claude-code, claude-desktop, codex, cursor, vscode; or the path of a configuration. Restart the client, or
have it start its servers again, for the change to work. A server reached over HTTP with a fixed header is recorded
too: the header's value goes into the entry's `env`. One without, to which clients may have to log in themselves, is
left as it is, and wrap says how to record it.")]
pub(super) struct WrapArgs {
    /// The client, or the file of its configuration
    #[arg(value_name = "CLIENT|FILE")]
    target: String,

    /// Record each server into a cassette of its name in this folder
    #[arg(long, value_name = "DIR", default_value = "cassettes", conflicts_with_all = ["replay", "undo"])]
    record: PathBuf,

    /// Replay each server's cassette in this folder instead of starting it
    #[arg(long, value_name = "DIR", conflicts_with = "undo")]
    replay: Option<PathBuf>,

    /// Take the servers back to what they were
    #[arg(long)]
    undo: bool,

    /// Write here and leave the configuration as it is
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Show what would change, and change nothing
    #[arg(long, conflicts_with = "out")]
    dry_run: bool,
}

pub(super) fn run(args: &WrapArgs) -> Result<ExitCode, Failure> {
    let files = files(&args.target)?;
    if files.len() > 1
        && let Some(out) = &args.out
    {
        let names: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
        return Err(Failure::usage(format_args!("`--out {}` takes one configuration", out.display()))
            .hint(format_args!("name one of {}", names.join(", "))));
    }
    let mode = mode(args)?;
    let mut is_good = true;
    for file in &files {
        let plan = Plan::of(file, mode.as_ref())?;
        let mut told = plan.told.clone();
        if args.out.is_none() && !args.dry_run {
            told.extend(plan.carry_out(file)?);
        }
        output::print(told.iter().map(|line| format!("{}\n", output::visible(line))).collect::<String>())?;
        match &args.out {
            _ if args.dry_run => output::print(difference(file, &plan.old, &plan.new))?,
            Some(out) => write(&args::absolute(out)?, &plan.new)?,
            None => {}
        }
        is_good &= !(args.undo && plan.has_left);
    }
    Ok(if is_good { ExitCode::Good } else { ExitCode::Bad })
}

/// The configurations that a word names.
fn files(target: &str) -> Result<Vec<PathBuf>, Failure> {
    let Some(places) = clients::places(target, |name| env::var_os(name)) else {
        let path = args::absolute(Path::new(target))?;
        if path.is_file() {
            return Ok(vec![path]);
        }
        let names = clients::NAMES.join(", ");
        return Err(Failure::file(format_args!("`{target}` is neither a file nor a client that is known"))
            .hint(format_args!("the clients are {names}")));
    };
    let here = env::current_dir().map_err(|error| Failure::io("find", Path::new("."), &error))?;
    let mut places: Vec<PathBuf> = places.iter().map(|place| here.join(place)).collect();
    // In the home folder both may be the same.
    places.dedup();
    let mut found: Vec<PathBuf> = Vec::new();
    for place in places.iter().filter(|place| place.is_file()) {
        // In the home folder a project's own may be the user's.
        if !found.iter().any(|known| fs::canonicalize(known).ok() == fs::canonicalize(place).ok()) {
            found.push(place.clone());
        }
    }
    if found.is_empty() {
        let looked: Vec<_> = places.iter().map(|place| format!("`{}`", place.display())).collect();
        return Err(Failure::file(format_args!(
            "{target} has no configuration here: there is no {}",
            looked.join(" and no ")
        ))
        .hint("name its file"));
    }
    Ok(found)
}

/// What is to be done; none to undo.
fn mode(args: &WrapArgs) -> Result<Option<Mode>, Failure> {
    if args.undo {
        return Ok(None);
    }
    let program = env::current_exe().map_err(|error| Failure::io("find", Path::new("tapedeck"), &error))?;
    let folder = args::absolute(args.replay.as_deref().unwrap_or(&args.record))?;
    Ok(Some(Mode { program: text(&program)?, folder: text(&folder)?, replays: args.replay.is_some() }))
}

/// Configurations hold text.
fn text(path: &Path) -> Result<String, Failure> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| Failure::file(format_args!("`{}` is not UTF-8, which JSON needs", path.display())))
}

fn difference(file: &Path, old: &str, new: &str) -> String {
    let name = file.display().to_string();
    let mut options = DiffOptions::new();
    options.set_original_filename(name.clone()).set_modified_filename(name);
    options.create_patch(old, new).to_string()
}

/// Writes a file whole or not at all.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    files::replace_by(path, |file| file.write_all(text.as_bytes()))
        .map_err(|error| Failure::io("write", path, &error))
}
