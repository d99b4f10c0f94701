//! `tapedeck show`: what is in a cassette, as a listing or one exchange in full.
//!
//! Reads cassettes and journals, those of running recorders too; writes nothing.

mod exchange;
mod listing;

use std::{
    collections::{HashMap, HashSet},
    fs,
    io::{self, Write},
    os::fd::AsFd,
    path::{Path, PathBuf},
    time::SystemTime,
};

use clap::Args;
use mcp_tapedeck::{
    exit_code::ExitCode,
    store::{self, Loaded, StoreError, shell},
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};

use super::{args, failure::Failure, files, output, record};

/// Show what is in a cassette: a listing, or one exchange in full
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tapedeck show session.json
  tapedeck show session.json 'tools/call search @1'
  tapedeck show session.json --method tools/call --time
  tapedeck show session.json --follow              watch a session that is being recorded
  tapedeck show session.json --json | jq .key

What is watched is told with its session's journal, whose name stays: while recorders run, sessions and keys may be
numbered anew, as those that end first stand first. Where several run, keys are told without their numbers.")]
pub(super) struct ShowArgs {
    /// A cassette or a journal
    #[arg(value_name = "C", required_unless_present = "cassette_option")]
    path: Option<PathBuf>,

    /// The same, as an option
    #[arg(long = "cassette", value_name = "C", id = "cassette_option", conflicts_with = "key")]
    cassette_option: Option<PathBuf>,

    /// Show this exchange in full
    #[arg(conflicts_with_all = ["session", "method", "follow"])]
    key: Option<String>,

    /// Show this session only
    #[arg(long, value_name = "N")]
    session: Option<u32>,

    /// Show exchanges of this method only; `tools/*` stands for all that begin so
    #[arg(long, value_name = "METHOD")]
    method: Option<String>,

    /// Go on showing what is recorded, until interrupted
    #[arg(long)]
    follow: bool,

    /// Show how long each exchange took
    #[arg(long)]
    time: bool,

    /// Write one JSON object a line: an exchange, or with KEY a message as it travelled
    #[arg(long)]
    json: bool,
}

/// Keys are not known in advance while following; longer ones stand out of their column.
const FOLLOWED_KEY: usize = 40;

/// What of a cassette is listed, and how.
#[derive(Clone, Debug, Default)]
struct View {
    session: Option<u32>,
    method: Option<String>,
    time: bool,
    json: bool,
}

pub(super) fn run(args: &ShowArgs) -> Result<ExitCode, Failure> {
    let view = View { session: args.session, method: args.method.clone(), time: args.time, json: args.json };
    // Behind `--cassette C` the first word is the key.
    let (path, key) = match (&args.cassette_option, &args.path) {
        (Some(path), key) => (path, key.as_ref().and_then(|key| key.to_str())),
        (None, Some(path)) => (path, args.key.as_deref()),
        (None, None) => return Err(Failure::usage("no cassette was given")),
    };
    if args.follow {
        return follow(&args::absolute(path)?, &view);
    }
    let loaded = files::load(path)?;
    files::say_warnings(&loaded);
    if let Some(wanted) = view.session {
        let sessions = &loaded.cassette.sessions;
        let known: Vec<_> = sessions.iter().map(|session| session.number.to_string()).collect();
        if sessions.iter().all(|session| session.number != wanted) {
            let (path, known) = (loaded.path.display(), known.join(", "));
            let known = if known.is_empty() { "none" } else { &known };
            return Err(Failure::file(format_args!(
                "{path}: the cassette has no session {wanted}; it has {known}"
            )));
        }
    }
    let mut out = output::stdout();
    match key {
        Some(key) => exchange::show(&loaded, key, view.json, &mut out)?,
        None => listing::list(&loaded, &view, &mut out)?,
    }
    out.flush().map_err(Failure::output)?;
    Ok(ExitCode::Good)
}

/// Writes the listing of a whole cassette.
pub(super) fn print(loaded: &Loaded) -> Result<(), Failure> {
    let mut out = output::stdout();
    listing::list(loaded, &View::default(), &mut out)?;
    out.flush().map_err(Failure::output)
}

/// How often the files are looked at.
const EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// Writes each line of the listing as it comes about, and again when it has changed, until the reader goes away.
fn follow(path: &Path, view: &View) -> Result<ExitCode, Failure> {
    let mut shown = Shown::default();
    let mut seen = None;
    let mut has_changed = true;
    loop {
        // A recorder that was killed changes no file: its lock is gone.
        let recorders = store::recorders(path).map_err(|error| Failure::io("read", path, &error))?;
        let state = (files_beside(path), recorders);
        let changes = seen.as_ref() != Some(&state);
        // Once more after each change: what follows at once may leave length and time as they are.
        if changes || has_changed {
            show_changes(path, view, &mut shown)?;
            seen = Some(state);
        }
        has_changed = changes;
        if is_reader_gone().map_err(|error| Failure::output(error.into()))? {
            return Ok(ExitCode::Good);
        }
    }
}

/// What was shown while following.
#[derive(Default)]
struct Shown {
    /// By what they are, how lines were shown but for their keys, which count on over all sessions: they shift where an
    /// earlier session goes on.
    rows: HashMap<(listing::Origin, String, u32), String>,
    /// The session that the last line was of, with its heading's number.
    headed: Option<(listing::Origin, u32)>,
    /// What was said of journals.
    notes: HashSet<String>,
    /// The journals that were being written.
    alive: Vec<String>,
    /// Whether it was said that nothing is there yet.
    is_waiting: bool,
}

fn show_changes(path: &Path, view: &View, shown: &mut Shown) -> Result<(), Failure> {
    let loaded = match store::load(path) {
        Ok(loaded) => loaded,
        Err(StoreError::NotFound { .. } | StoreError::Cassette { .. }) if !record::is_begun(path) => {
            if !std::mem::replace(&mut shown.is_waiting, true) {
                output::stderr(format_args!("waiting for a recording into {}", path.display()));
            }
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    let rows = listing::rows(&loaded, view)?;
    let origins = listing::origins(&loaded);
    let mut occurrences = HashMap::<_, u32>::new();
    let mut out = output::stdout();
    for row in rows {
        let named = (origins[row.session()].clone(), row.asked().to_owned());
        let occurrence = occurrences.entry(named.clone()).or_default();
        *occurrence += 1;
        let known = shown.rows.entry((named.0, named.1, *occurrence)).or_default();
        let told = row.told(view);
        if *known == told {
            continue;
        }
        *known = told;
        let (at, session) = (row.session(), &loaded.cassette.sessions[row.session()]);
        let is_alive = loaded.is_alive(at);
        let live = session.journal.as_deref().map(|journal| listing::Live {
            journal,
            is_final: !is_alive,
            shares_keys: is_alive && loaded.alive.len() > 1,
        });
        let head = (origins[at].clone(), session.number);
        if !view.json && shown.headed.as_ref() != Some(&head) {
            let heading = listing::Heading::live(&loaded.cassette, at, live);
            writeln!(out, "{heading}").map_err(Failure::output)?;
            shown.headed = Some(head);
        }
        row.write(FOLLOWED_KEY, view, live.as_ref(), &mut out).map_err(Failure::output)?;
    }
    out.flush().map_err(Failure::output)?;
    for note in loaded.notes.iter().filter(|note| shown.notes.insert((*note).clone())) {
        output::warning(note);
    }
    let path = loaded.path.display();
    for _ in shown.alive.iter().filter(|id| loaded.cut_off.contains(id)) {
        output::warning(format!(
            "a recorder of {path} is gone and had not ended its recording; `tapedeck recover {}` puts what there is \
             into the cassette",
            shell::word(&loaded.path)
        ));
    }
    shown.alive = loaded.alive;
    Ok(())
}

/// What the files beside a path look like from outside; anything written to them changes it.
fn files_beside(path: &Path) -> Vec<(PathBuf, u64, Option<SystemTime>)> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let name = path.file_name().unwrap_or_default().as_encoded_bytes();
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let ours = entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(name));
    let mut state: Vec<_> = ours
        .filter_map(|entry| {
            let metadata = entry.metadata().ok()?;
            Some((entry.path(), metadata.len(), metadata.modified().ok()))
        })
        .collect();
    state.sort_unstable();
    state
}

/// Waits a moment; tells whether nobody reads our output any more.
fn is_reader_gone() -> rustix::io::Result<bool> {
    let stdout = io::stdout();
    let mut watched = [PollFd::from_borrowed_fd(stdout.as_fd(), PollFlags::empty())];
    match poll(&mut watched, Some(&EVERY)) {
        Ok(0) | Err(Errno::INTR) => Ok(false),
        Ok(_) => Ok(true),
        Err(error) => Err(error),
    }
}
