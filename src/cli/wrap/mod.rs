//! `tapedeck wrap`: stands before the servers of a client's configuration.
//!
//! Only what has to change in the file changes: comments, order, layout and `${…}` stay. The file as it was lies
//! beside it, and `--undo` takes each wrapped server from there. What was edited since is kept; where it stands in what
//! was put there to wrap the server, that stays as it is.
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
trait Config: Clone {
    fn entries(&self) -> Vec<(Place, Entry)>;
    fn change(&mut self, place: &Place, change: &Change);
    /// Puts an entry back as it is in `before`; false where it is not there.
    fn restore(&mut self, place: &Place, before: &Self) -> bool;
    /// Whether an entry stands in both as the same text.
    fn is_same(&self, place: &Place, other: &Self) -> bool;
    /// Puts back the command and arguments alone that an entry has in `before`; false where that cannot be.
    fn put_back(&mut self, place: &Place, before: &Self) -> bool;
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
    let mut is_good = true;
    for file in &files {
        let whole = fs::read_to_string(file).map_err(|error| Failure::io("read", file, &error))?;
        // Editors of some systems begin a file with a byte order mark, which no parser takes.
        let text = whole.strip_prefix('\u{feff}').unwrap_or(&whole);
        let before = backup_of(file);
        let before = match fs::read_to_string(&before) {
            Ok(text) => Some(text.trim_start_matches('\u{feff}').to_owned()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(Failure::io("read", &before, &error)),
        };
        let is_toml = file.extension().is_some_and(|extension| extension == "toml");
        let Rewritten { new, told, has_left } = if is_toml {
            rewrite::<TomlConfig>(file, text, before.as_deref(), mode.as_ref(), TomlConfig::parse)?
        } else {
            rewrite::<JsonConfig>(file, text, before.as_deref(), mode.as_ref(), JsonConfig::parse)?
        };
        let new = format!("{}{new}", &whole[..whole.len() - text.len()]);
        output::print(told)?;
        match (&args.out, args.dry_run) {
            (_, true) => output::print(difference(file, &whole, &new))?,
            (Some(out), _) => write(&args::absolute(out)?, &new)?,
            (None, _) => replace(file, (&whole, &new), before.is_some(), (args.undo, has_left))?,
        }
        is_good &= !(args.undo && has_left);
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

/// What becomes of a configuration.
struct Rewritten {
    /// Its new text.
    new: String,
    /// What is to be said.
    told: String,
    /// A wrapped server was left as it is, since it was edited or is not known by its name any more.
    has_left: bool,
}

/// What becomes of an entry that was wrapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Back {
    AsItWas,
    /// What was put there to wrap it was edited.
    Edited,
    /// What it was is not known any more.
    Unknown,
}

/// Takes what was put there to wrap an entry away.
fn take_back<C: Config>(config: &mut C, (place, entry): (&Place, &Entry), before: Option<&C>) -> Back {
    let was = |old: &C| old.entries().into_iter().find(|(known, _)| known == place).map(|(_, was)| was);
    let known = before.and_then(|old| Some((old, was(old)?)));
    if let Some((old, was)) = &known
        && let Some(change) = entry.wrapped_from(was)
    {
        let mut again = C::clone(old);
        again.change(place, &change);
        if again.is_same(place, config) && config.restore(place, old) {
            return Back::AsItWas;
        }
    }
    if let Some((command, words)) = entry.wrapped_command() {
        config.unwrap(place, command, words);
        return Back::AsItWas;
    }
    match known {
        None => Back::Unknown,
        Some((old, was)) if was.command.is_some() && entry.has_our_words() && config.put_back(place, old) => {
            Back::AsItWas
        }
        Some(_) => Back::Edited,
    }
}

/// The new text of a configuration, and what is to be said.
fn rewrite<C: Config>(
    file: &Path,
    text: &str,
    before: Option<&str>,
    mode: Option<&Mode>,
    parse: impl Fn(&str) -> Result<C, String>,
) -> Result<Rewritten, Failure> {
    let wrong = |error| Failure::file(format_args!("{}:{error}", file.display()));
    let mut config = parse(text).map_err(wrong)?;
    let found = config.clone();
    // A copy that cannot be read any more is as good as none.
    let before = before.and_then(|text| parse(text).ok());
    let (mut told, mut edited, mut has_left) = (Vec::new(), Vec::new(), false);
    let backup = backup_of(file);
    let left = format!("it was edited in what wraps it; what it was stands in {}", backup.display());
    let entries = config.entries();
    if entries.is_empty() {
        return Err(Failure::file(format_args!("{} names no servers", file.display()))
            .hint("they stand under `mcpServers`, `servers` or `[mcp_servers.NAME]`"));
    }
    for (place, entry) in entries.iter().filter(|(_, entry)| entry.is_wrapped()) {
        let back = take_back(&mut config, (place, entry), before.as_ref());
        match back {
            Back::AsItWas => {}
            Back::Edited => edited.push(place.clone()),
            Back::Unknown => has_left |= mode.is_none(),
        }
        if mode.is_none() {
            told.push(match back {
                Back::AsItWas => format!("{}: as it was", entry.name),
                Back::Edited => format!("{}: left as it is: {left}", entry.name),
                Back::Unknown => format!("{}: what it was is not known any more; left as it is", entry.name),
            });
        }
    }
    let mut taken = Vec::new();
    if let Some(mode) = mode {
        for (place, entry) in config.entries() {
            let cassette = mode.cassette(&entry.name, &mut taken);
            let decided = match edited.contains(&place) {
                true => Err(left.clone()),
                false => mode.decide(&entry, &cassette, Path::new(&cassette).exists()),
            };
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
    Ok(Rewritten { new: config.text(), told, has_left: has_left || !edited.is_empty() })
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
fn replace(
    file: &Path,
    (old, new): (&str, &str),
    has_backup: bool,
    (undo, has_left): (bool, bool),
) -> Result<(), Failure> {
    let backup = backup_of(file);
    if old != new {
        if !undo && !has_backup {
            write(&backup, old)?;
        }
        write(file, new)?;
    }
    if undo && has_backup && !has_left {
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
