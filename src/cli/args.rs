//! Options that several commands share.

use std::{path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};
use mcp_tapedeck::{
    redact::Met,
    replay::{self, Timing},
};

use super::{
    failure::Failure, faults::FaultArgs, listen::Auth, output::Notices, privacy::Privacy, real::OnMiss,
    values,
};

/// Cassettes that are named by an option, which means the same as by a word.
#[derive(Args, Clone, Debug)]
pub(super) struct CassettesOption {
    /// The same, as an option
    #[arg(long = "cassette", value_name = "C", id = "cassette_option", conflicts_with = "cassettes")]
    pub cassettes: Vec<PathBuf>,
}

/// Where a front's own words go.
#[derive(Args, Clone, Debug)]
pub(super) struct LogArgs {
    /// Append everything tapedeck has to say to this file
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,

    /// Say on stderr what is going on, even where that is no terminal
    #[arg(short, long)]
    pub verbose: bool,
}

impl LogArgs {
    /// Opens the log.
    pub(super) fn notices(&self) -> Result<Notices, Failure> {
        let log = self.log.as_deref().map(absolute).transpose()?;
        Notices::new(self.verbose, log.as_deref())
    }
}

/// How a recording is made.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Recording")]
pub(super) struct TapeArgs {
    /// Keep the journal, with its wall-clock times, beside the cassette
    #[arg(long)]
    pub keep_journal: bool,

    /// End the session where it cannot be recorded, instead of passing it on unrecorded
    #[arg(long)]
    pub require_recording: bool,

    /// Pass larger messages on, but record only their size and hash
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = values::size)]
    pub max_message: usize,
}

/// How a recording is played.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Playing")]
pub(super) struct PlayArgs {
    /// Play this recording instead of the newest
    #[arg(long, value_name = "N")]
    pub recording: Option<u32>,

    /// Play this session and no other
    #[arg(long, value_name = "N", conflicts_with = "recording")]
    pub session: Option<u32>,

    /// Answer instantly, with the recorded waits (for clients that lose progress which comes with its result), or so many
    /// times faster
    #[arg(long, value_name = "instant|recorded|2x", default_value = "instant", value_parser = values::timing)]
    pub timing: Timing,

    /// Wait no longer than this before anything sent, whatever --timing says
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub max_delay: Option<Duration>,

    /// Keep overlapping answers in their recorded order, or send each at once
    #[arg(long, default_value = "recorded")]
    pub order: Order,

    /// Wait so long for a request that had come before an answer when recorded
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = values::duration)]
    pub order_grace: Duration,

    /// Wait so long for the client's answer to a server's request, or for a request recorded before the server's end
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = values::duration)]
    pub answer_timeout: Duration,

    /// Each exchange once, none left over, nothing earlier than recorded
    #[arg(long)]
    pub strict: bool,

    /// After the last recorded answer to equal requests: repeat it, or answer with an error
    #[arg(long, default_value = "last")]
    pub repeat: Repeat,

    /// What becomes of a request that nobody recorded
    #[arg(long, default_value = "error", value_name = "WHAT")]
    pub on_miss: OnMiss,

    /// Answer with challenges for credentials where they were recorded, or leave them out
    #[arg(long, default_value = "recorded")]
    pub auth: Auth,

    /// Write the verdict to this file, or to a file of its own in this folder
    #[arg(long, value_name = "PATH")]
    pub report: Option<PathBuf>,

    /// Append what became of each message to this file, a JSON object a line
    #[arg(long, value_name = "FILE")]
    pub events: Option<PathBuf>,

    #[command(flatten)]
    pub faults: FaultArgs,
}

impl PlayArgs {
    /// What they mean.
    pub(super) fn options(&self, privacy: Privacy) -> replay::Options {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        replay::Options {
            recording: self.recording,
            session: self.session,
            timing: self.timing,
            max_delay: self.max_delay.map(micros),
            order: match self.order {
                Order::Recorded => replay::Order::Recorded,
                Order::Free => replay::Order::Free,
            },
            order_grace: micros(self.order_grace),
            answer_timeout: micros(self.answer_timeout),
            strict: self.strict,
            redact: privacy.rules,
            vars: privacy.vars,
            repeat: match self.repeat {
                Repeat::Last => replay::Repeat::Last,
                Repeat::Error => replay::Repeat::Error,
            },
            skip_auth: self.auth == Auth::Skip,
            passes_on: self.on_miss != OnMiss::Error,
            met: (self.on_miss == OnMiss::Record).then(Met::default),
            ..replay::Options::default()
        }
    }
}

/// `--order`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Order {
    /// As recorded.
    Recorded,
    /// Each answer at once.
    Free,
}

/// `--repeat`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Repeat {
    /// The last answer repeats.
    Last,
    /// A further request is a miss.
    Error,
}

/// The cassette of a command that takes one.
#[derive(Args, Clone, Debug)]
pub(super) struct CassetteArgs {
    /// The cassette
    #[arg(value_name = "C", required_unless_present = "cassette_option")]
    pub cassette: Option<PathBuf>,

    /// The same, as an option
    #[arg(long = "cassette", value_name = "C", conflicts_with = "cassette", id = "cassette_option")]
    pub cassette_option: Option<PathBuf>,
}

impl CassetteArgs {
    /// The path that was given.
    pub(super) fn given(&self) -> Result<&PathBuf, Failure> {
        let given = self.cassette_option.as_ref().or(self.cassette.as_ref());
        given.ok_or_else(|| Failure::usage("no cassette was given"))
    }

    /// The same, absolute; a `/` at its end stays.
    pub(super) fn path(&self) -> Result<PathBuf, Failure> {
        absolute(self.given()?)
    }
}

/// A path taken from the working folder.
pub(super) fn absolute(path: impl AsRef<std::path::Path>) -> Result<PathBuf, Failure> {
    let path = path.as_ref();
    std::path::absolute(path).map_err(|error| Failure::io("find", path, &error))
}

/// Whether a path that is given means a folder: it is one, or it ends in `/`.
pub(super) fn is_folder(path: &std::path::Path) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(b"/") || path.is_dir()
}

/// The time, in a form that file names can hold and that sorts.
pub(super) fn now_in_name() -> String {
    jiff::Timestamp::now().strftime("%Y%m%dT%H%M%S%3fZ").to_string()
}
