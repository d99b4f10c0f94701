//! `tapedeck record`: stands between a client and its server, and writes down what they say.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, mpsc::Receiver},
};

use clap::Args;
use mcp_tapedeck::{
    exit_code::ExitCode,
    proxy::{
        record::{self as proxy, Ended, RecordOptions},
        shutdown::{Signals, end_like},
    },
    record::Changes,
    store::{FoldOptions, FoldOutcome},
    traffic::Exit,
    transport::stdio::{Client, Server},
};

use super::{
    args::{self, CassetteArgs, LogArgs, TapeArgs},
    failure::Failure,
    files, front,
    live::{self, Acting, LiveArgs, Outcome, Running},
    output::{self, Notices},
    privacy::{Cleaner, PrivacyArgs},
    record_bridge,
    record_url::{self, UrlArgs},
    tape::{HELD_UP, Lacks, Tape},
};

/// Record a session between an MCP client and a server
#[derive(Args, Debug)]
#[command(
    after_help = "Put it in front of the server's command in the client's configuration; the client talks to it as to the server.
A path that is a folder, or ends in `/`, gets a cassette of each start's own in it, named by the time.

Examples:
  tapedeck record session.json -- npx -y @modelcontextprotocol/server-everything
  tapedeck record --cassette sessions/ -- python server.py     a cassette for each start
  tapedeck record session.json --replace -- python server.py   keeps what people wrote
  tapedeck record session.json --fault 'tools/call echo: latency ms=500' -- python server.py
  tapedeck record session.json --url https://mcp.example/mcp --header 'Authorization: Bearer env:TOKEN'
  tapedeck record session.json --url http://127.0.0.1:9000/mcp --listen 127.0.0.1:9001   for clients that speak HTTP

In a client's configuration:
  {\"command\": \"tapedeck\", \"args\": [\"record\", \"/path/session.json\", \"--\", \"npx\", \"-y\", \"some-server\"]}"
)]
pub(super) struct RecordArgs {
    #[command(flatten)]
    pub(super) cassette: CassetteArgs,

    /// Let this recording take the place of the old ones once it ended well
    ///
    /// Sessions that one process starts within ten seconds of each other are one recording: none of them takes the place
    /// of another, since clients start a server more than once. Of a second run from the same shell within that time this
    /// is told on standard error.
    #[arg(long)]
    pub(super) replace: bool,

    #[command(flatten)]
    pub(super) log: LogArgs,

    /// The server's command
    #[arg(last = true, required_unless_present_any = ["url", "listen"], conflicts_with = "url", value_name = "CMD")]
    command: Vec<OsString>,

    #[command(flatten)]
    pub(super) url: UrlArgs,

    #[command(flatten)]
    pub(super) tape: TapeArgs,

    #[command(flatten)]
    pub(super) live: LiveArgs,

    #[command(flatten)]
    pub(super) privacy: PrivacyArgs,
}

pub(super) fn run(args: &RecordArgs) -> Result<ExitCode, Failure> {
    match (&args.url.server.url, args.url.front.address()) {
        (Some(url), Some(listen)) => {
            return record_url::run(url, listen, args).inspect_err(|failure| args.live.refused(failure));
        }
        (Some(url), None) => return bridge(url, args),
        // Nobody waits on stdin.
        (None, Some(_)) => args.url.check()?,
        (None, None) => {}
    }
    let prepared = args.log.notices().and_then(|notices| {
        args.url.check()?;
        let cassette = args.cassette.path()?;
        let notices = Arc::new(notices);
        let name = file_of(&cassette).display().to_string();
        let acting = args.live.prepare(name, false, &args.privacy, &notices)?;
        Session::prepare(&cassette, args.replace, &args.tape, &args.privacy, &args.command, notices)
            .map(|session| Session { acting, ..session })
    });
    match prepared {
        Ok(session) => session.record(),
        Err(failure) => {
            args.live.refused(&failure);
            Ok(front::refuse(&failure))
        }
    }
}

/// A client on stdio, a server on HTTP.
fn bridge(url: &str, args: &RecordArgs) -> Result<ExitCode, Failure> {
    let prepared = args.log.notices().and_then(|notices| {
        let cassette = args.cassette.path()?;
        let RecordArgs { replace, tape, .. } = args;
        let privacy = &args.privacy.sending(&args.url.server)?;
        let notices = Arc::new(notices);
        let name = file_of(&cassette).display().to_string();
        let acting = args.live.prepare(name, false, privacy, &notices)?;
        record_bridge::Session::prepare(&cassette, *replace, tape, privacy, url, &args.url.server, notices)
            .map(|session| session.under(acting))
    });
    match prepared {
        Ok(session) => session.record(),
        Err(failure) => {
            args.live.refused(&failure);
            Ok(front::refuse(&failure))
        }
    }
}

/// A recording that is ready for its client; its server has been started.
pub(super) struct Session {
    cassette: PathBuf,
    fold: FoldOptions,
    server: Server,
    tape: Tape,
    options: RecordOptions,
    cleaner: Cleaner,
    acting: Option<Acting>,
    notices: Arc<Notices>,
}

impl Session {
    /// Starts the server and the journal. A `cassette` that is a folder gets a file of this start's own.
    pub(super) fn prepare(
        cassette: &Path,
        replace: bool,
        tape: &TapeArgs,
        privacy: &PrivacyArgs,
        command: &[OsString],
        notices: Arc<Notices>,
    ) -> Result<Self, Failure> {
        let cassette = file_of(cassette);
        check(&cassette, &notices)?;
        let privacy = privacy.compile()?;
        let signals = Signals::install()
            .map_err(|error| Failure::peer(format_args!("cannot handle signals: {error}")))?;
        let server = Server::start(command).map_err(Failure::peer)?;
        let journal = Tape::begin(&cassette, "stdio", replace, &privacy, tape.require_recording)?;
        let cleaner = Cleaner::new(privacy);
        let options = RecordOptions {
            max_message: tape.max_message,
            require_recording: tape.require_recording,
            signals: Some(signals),
            hide: Box::new(cleaner.clone()),
            ..RecordOptions::default()
        };
        let fold = FoldOptions { keep_journals: tape.keep_journal, ..FoldOptions::default() };
        Ok(Self { cassette, fold, server, tape: journal, options, cleaner, acting: None, notices })
    }

    /// Passes everything between client and server until their session is over, then writes the cassette; ends as
    /// the server did.
    pub(super) fn record(self) -> Result<ExitCode, Failure> {
        let Self { cassette, fold, server, tape, options, cleaner, acting, notices } = self;
        let client = front::take_client(&notices)?;
        let (max_message, signals) = (options.max_message, options.signals);
        let is_required = options.require_recording;
        let Begun { running, client, signals, ends } = begin(acting, client, max_message, signals, &notices)?;
        notices.info(format_args!("recording into {}", cassette.display()));
        let warner = Arc::clone(&notices);
        let options =
            RecordOptions { signals, ends, warn: Box::new(move |text| warner.warn(text)), ..options };
        let ended = match proxy::record(server, client, tape, options) {
            Ok(ended) => ended,
            Err(error) => return Err(live::broken_off(running, Failure::file(error), &notices)),
        };
        let Ended { exit, asked, gone, missed, sink } = ended;
        let mut lacks = Lacks::of_required(is_required);
        lacks.tell_of_end("this session", missed, &cleaner, &notices);
        match sink {
            Some(tape) => tape.end(&cassette, fold, asked.map(|(_, at)| at), &cleaner, &notices, &mut lacks),
            None => lacks.add(HELD_UP, &notices),
        }
        let own = Outcome::of(running, asked.is_some(), None, gone, &lacks, &notices)?;
        end_as(exit, asked.map(|(signal, _)| signal), &own)
    }
}

/// The cassette's file: in a folder, one of this start's own.
pub(super) fn file_of(cassette: &Path) -> PathBuf {
    let mut cassette = cassette.to_owned();
    if args::is_folder(&cassette) {
        cassette.push(format!("{}-{}.json", args::now_in_name(), std::process::id()));
    }
    cassette
}

/// An existing cassette must be one: otherwise the end of the session would be the first to find out.
pub(super) fn check(cassette: &Path, notices: &Notices) -> Result<(), Failure> {
    if !is_begun(cassette) {
        return Ok(());
    }
    let loaded = files::load(cassette)?;
    files::warnings(&loaded).for_each(|warning| notices.warn(warning));
    Ok(())
}

/// Whether there is anything at the path of a cassette: an empty file, as `mktemp` makes, is as good as none.
pub(super) fn is_begun(cassette: &Path) -> bool {
    fs::metadata(cassette).is_ok_and(|found| !found.is_file() || found.len() > 0)
}

/// What folding did, for a person.
pub(super) fn told(outcome: &FoldOutcome) -> String {
    let exchanges: usize = outcome.added.iter().map(|session| session.exchanges).sum();
    let path = outcome.path.display();
    match &outcome.changes {
        Some(Changes { kept, changed, new, gone }) => {
            format!("{path}: {kept} kept, {changed} changed, {new} new, {gone} gone")
        }
        None if exchanges == 0 => format!("{path}: nothing to add"),
        None => format!("{path}: {} recorded", output::counted(exchanges as u64, "exchange", "exchanges")),
    }
}

/// What a session begins with.
pub(super) struct Begun {
    /// Faults at work between its client and it, where any are.
    pub running: Option<Running>,
    pub client: Client,
    /// What it is told to pass on to its server: signals, or what faults let through of them.
    pub signals: Option<Signals>,
    pub ends: Option<Receiver<i32>>,
}

/// Lets faults act between a client and the session, where any are to.
pub(super) fn begin(
    acting: Option<Acting>,
    client: Client,
    max_message: usize,
    signals: Option<Signals>,
    notices: &Arc<Notices>,
) -> Result<Begun, Failure> {
    let Some(acting) = acting else { return Ok(Begun { running: None, client, signals, ends: None }) };
    let (running, client, ends) = acting.between(client, max_message, signals, notices)?;
    Ok(Begun { running: Some(running), client, signals: None, ends: Some(ends) })
}

/// Ends this process as the server ended; where that was well, or because its client had left, with a status of our
/// `own`.
pub(super) fn end_as(exit: Exit, asked: Option<i32>, own: &Outcome) -> Result<ExitCode, Failure> {
    match exit {
        _ if own.has_left => Ok(own.code),
        Exit { status: Some(0), .. } => Ok(own.code),
        Exit { status: None, signal: None, .. } => end_like(Exit { signal: asked, ..exit }),
        _ => end_like(exit),
    }
}
