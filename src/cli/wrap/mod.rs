//! `tapedeck wrap`: stands before the servers of a client's configuration.
//!
//! Only what has to change in the file changes: comments, order, layout and `${…}` stay. The file as it was lies
//! beside it, and `--undo` takes each wrapped server from there, so that edits made since are kept.
//!
//! - `clients`: where each client keeps its configuration
//! - `entry`: what becomes of a server
//! - `json`, `toml`: the two forms of configurations

mod clients;
mod entry;
mod json;
mod toml;

use std::{
    env,
    ffi::OsString,
    fs, io,
    io::Write,
    path::{Path, PathBuf},
};

use clap::Args;
use mcp_tapedeck::exit_code::ExitCode;
use similar::TextDiff;

use self::{
    entry::{Change, Entry, Mode, Place},
    json::JsonConfig,
    toml::TomlConfig,
};
use super::{args, failure::Failure, output};

/// Stand before the servers of a client's configuration, or leave it again
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tapedeck wrap claude-code                        record all its servers into cassettes/
  tapedeck wrap cursor --replay cassettes --dry-run
  tapedeck wrap path/to/mcp.json --record /home/me/cassettes
  tapedeck wrap claude-code --undo

Clients: claude-code, claude-desktop, codex, cursor, vscode; or the path of a configuration. Restart the client, or
have it start its servers again, for the change to work. A server reached over HTTP with a fixed header is recorded
too: the header's value goes into the entry's `env`. One that clients log in to themselves is left as it is.")]
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

/// A configuration that can be edited in place.
trait Config {
    fn entries(&self) -> Vec<(Place, Entry)>;
    fn change(&mut self, place: &Place, change: &Change);
    /// Puts an entry back as it is in `before`; false where it is not there.
    fn restore(&mut self, place: &Place, before: &Self) -> bool;
    /// Takes the words that were put before an entry's command away.
    fn unwrap(&mut self, place: &Place, command: &str, words: usize);
    fn text(&self) -> String;
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
    for file in &files {
        let text = fs::read_to_string(file).map_err(|error| Failure::io("read", file, &error))?;
        let before = backup_of(file);
        let before = match fs::read_to_string(&before) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(Failure::io("read", &before, &error)),
        };
        let is_toml = file.extension().is_some_and(|extension| extension == "toml");
        let (new, told) = if is_toml {
            rewrite::<TomlConfig>(file, &text, before.as_deref(), mode.as_ref(), TomlConfig::parse)?
        } else {
            rewrite::<JsonConfig>(file, &text, before.as_deref(), mode.as_ref(), JsonConfig::parse)?
        };
        output::print(told)?;
        match (&args.out, args.dry_run) {
            (_, true) => output::print(difference(file, &text, &new))?,
            (Some(out), _) => write(&args::absolute(out)?, &new)?,
            (None, _) => replace(file, &text, &new, before.is_some(), args.undo)?,
        }
    }
    Ok(ExitCode::Good)
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
    let places: Vec<PathBuf> = places.iter().map(|place| here.join(place)).collect();
    let found: Vec<PathBuf> = places.iter().filter(|place| place.is_file()).cloned().collect();
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

/// The new text of a configuration, and what is to be said.
fn rewrite<C: Config>(
    file: &Path,
    text: &str,
    before: Option<&str>,
    mode: Option<&Mode>,
    parse: impl Fn(&str) -> Result<C, String>,
) -> Result<(String, String), Failure> {
    let wrong = |error| Failure::file(format_args!("{}:{error}", file.display()));
    let (mut config, found) = (parse(text).map_err(wrong)?, parse(text).map_err(wrong)?);
    // A copy that cannot be read any more is as good as none.
    let before = before.and_then(|before| parse(before).ok());
    let mut told = Vec::new();
    let entries = config.entries();
    if entries.is_empty() {
        return Err(Failure::file(format_args!("{} names no servers", file.display()))
            .hint("they stand under `mcpServers`, `servers` or `[mcp_servers.NAME]`"));
    }
    for (place, entry) in entries.iter().filter(|(_, entry)| entry.is_wrapped()) {
        let restored = before.as_ref().is_some_and(|before| config.restore(place, before));
        let unwrapped = match entry.wrapped_command() {
            _ if restored => true,
            Some((command, words)) => {
                config.unwrap(place, command, words);
                true
            }
            None => false,
        };
        if mode.is_none() {
            told.push(match unwrapped {
                true => format!("{}: as it was", entry.name),
                false => format!("{}: what it was is not known any more; left as it is", entry.name),
            });
        }
    }
    let mut taken = Vec::new();
    if let Some(mode) = mode {
        for (place, entry) in config.entries() {
            let cassette = mode.cassette(&entry.name, &mut taken);
            let decided = mode.decide(&entry, &cassette, Path::new(&cassette).exists());
            told.push(match &decided {
                Ok(change) => {
                    config.change(&place, change);
                    let verb = if mode.replays { "replayed from" } else { "recorded into" };
                    format!("{}: {verb} {cassette}", entry.name)
                }
                Err(why) => {
                    // What was wrapped stays so.
                    config.restore(&place, &found);
                    format!("{}: left as it is: {why}", entry.name)
                }
            });
        }
    }
    if told.is_empty() {
        told.push("no server was wrapped".to_owned());
    }
    let told = told.iter().map(|line| format!("{}\n", output::visible(line))).collect();
    Ok((config.text(), told))
}

fn difference(file: &Path, old: &str, new: &str) -> String {
    let name = file.display().to_string();
    TextDiff::from_lines(old, new).unified_diff().context_radius(3).header(&name, &name).to_string()
}

/// Where a configuration lies as it was.
fn backup_of(file: &Path) -> PathBuf {
    let mut name = file.file_name().map(OsString::from).unwrap_or_default();
    name.push(".before-tapedeck");
    file.with_file_name(name)
}

/// Puts the new text in place; the old one is kept until the servers are what they were.
fn replace(file: &Path, old: &str, new: &str, has_backup: bool, undo: bool) -> Result<(), Failure> {
    let backup = backup_of(file);
    if old != new {
        if !undo && !has_backup {
            write(&backup, old)?;
        }
        write(file, new)?;
    }
    if undo && has_backup {
        fs::remove_file(&backup).map_err(|error| Failure::io("remove", &backup, &error))?;
    }
    Ok(())
}

/// Writes a file whole or not at all. Secrets may stand in it, so it is as private as it was; a new one is private.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let wrong = |error: io::Error| Failure::io("write", path, &error);
    // A configuration is often a link into a folder that is under version control.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    output::create_parent(path).map_err(wrong)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let file = tempfile::Builder::new().prefix(".tapedeck-").suffix(".tmp").tempfile_in(folder);
    let mut file = file.map_err(wrong)?;
    file.write_all(text.as_bytes()).map_err(wrong)?;
    if let Ok(known) = fs::metadata(path) {
        fs::set_permissions(file.path(), known.permissions()).map_err(wrong)?;
    }
    file.persist(path).map(drop).map_err(|error| wrong(error.error))
}
