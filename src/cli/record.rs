//! `tapedeck record`: stands between a client and its server, and writes down what they say.

use std::{
    ffi::OsString,
    fmt, io,
    path::{Path, PathBuf},
    sync::{Arc, mpsc::Receiver},
    time::{Duration, Instant},
};

use clap::Args;
use mcp_tapedeck::{
    cassette::journal::{Continues, JournalError, JournalHeader},
    exit_code::ExitCode,
    proxy::{
        record::{self as proxy, Ended, Hide, RecordOptions, Sink},
        shutdown::{Signals, end_like},
    },
    record::Changes,
    store::{self, FoldOptions, FoldOutcome, Journal, StoreError},
    traffic::{Event, Exit, Payload},
    transport::stdio::{Client, Server},
};

use super::{
    args::{self, CassetteArgs, LogArgs, TapeArgs},
    failure::Failure,
    files, front,
    live::{Acting, LiveArgs, Outcome, Running},
    output::{self, Notices},
    privacy::{Cleaner, Privacy, PrivacyArgs},
    record_bridge,
    record_url::{self, UrlArgs},
};

/// How long writing the cassette may take at the end: a client kills what does not end within two seconds.
const WITHIN: Duration = Duration::from_secs(1);

/// How long after a signal that asks us to end everything has to be done.
const AFTER_A_SIGNAL: Duration = Duration::from_millis(1900);

/// Record a session between an MCP client and a server
#[derive(Args, Debug)]
#[command(
    after_help = "Put it in front of the server's command in the client's configuration; the client talks to it as to the server.

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
        let Begun { running, client, signals, ends } = begin(acting, client, max_message, signals, &notices)?;
        notices.info(format_args!("recording into {}", cassette.display()));
        let warner = Arc::clone(&notices);
        let options =
            RecordOptions { signals, ends, warn: Box::new(move |text| warner.warn(text)), ..options };
        let ended = proxy::record(server, client, tape, options);
        let Ended { exit, asked, gone, missed, sink } = ended.map_err(Failure::file)?;
        tell_of_end("this session", missed, &cleaner, &notices);
        match sink {
            Some(tape) => tape.end(&cassette, fold, asked.map(|(_, at)| at), &cleaner, &notices),
            None => notices.warn(HELD_UP),
        }
        let own = Outcome::of(running, asked.is_some(), None, gone, &notices)?;
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
    if !cassette.exists() {
        return Ok(());
    }
    let loaded = files::load(cassette)?;
    files::warnings(&loaded).for_each(|warning| notices.warn(warning));
    Ok(())
}

/// Ends recordings, and puts what was recorded into their cassette, in the time that is left after a signal; where that
/// fails the journals stay, with all of it.
pub(super) fn keep(
    cassette: &Path,
    tapes: Vec<(Tape, Cleaner)>,
    fold: FoldOptions,
    asked: Option<Instant>,
    notices: &Notices,
) {
    let has_gap = tapes.iter().any(|(tape, _)| tape.has_gap);
    let what = if has_gap { "what was recorded is safe" } else { "the recording is whole" };
    let (mut ended, mut unclean) = (Vec::new(), Vec::new());
    for (tape, cleaner) in tapes {
        tape.tell(notices);
        // Without a journal every message's failure has been told.
        let Ok(mut journal) = tape.journal else { continue };
        let path = journal.path().to_owned();
        if let Err(error) = clean(&mut journal, cleaner, asked) {
            let path = path.display();
            notices.warn(format_args!(
                "{what}, but stays in {path}, with secrets that were met only after they had been written: {error}\n\
                 hint: the next recording puts it into the cassette as it is, and so does `tapedeck recover {path}`"
            ));
            // As long as it is held nobody puts it there.
            unclean.push(journal);
        } else if let Err(error) = journal.finish() {
            notices.warn(stays(what, &path.display().to_string(), &error));
        } else {
            ended.push(path.display().to_string());
        }
    }
    if ended.is_empty() {
        return;
    }
    let left = asked.map_or(WITHIN, |at| AFTER_A_SIGNAL.saturating_sub(at.elapsed()).min(WITHIN));
    match store::fold(cassette, FoldOptions { within: Some(left), ..fold }) {
        Ok(outcome) => {
            outcome.notes.iter().for_each(|note| notices.warn(note));
            notices.info(told(&outcome));
        }
        Err(StoreError::Late { .. }) => notices.warn(format_args!(
            "{what}, but there was no time to put it into the cassette: it stays in {}, which every \
             command reads with the cassette; the next recording puts it there, and so does `tapedeck recover {}`",
            ended.join(", "),
            cassette.display()
        )),
        Err(error) => ended.iter().for_each(|path| notices.warn(stays(what, path, &error))),
    }
}

/// That a recording is not in its cassette.
fn stays(what: &str, path: &str, error: &dyn fmt::Display) -> String {
    format!(
        "{what}, but stays in {path}: {error}\nhint: the next recording puts it into the cassette, and so does \
         `tapedeck recover {path}`"
    )
}

/// Takes out of a journal what was met only after it had been written, in the time that is left after a signal.
fn clean(journal: &mut Journal, mut cleaner: Cleaner, asked: Option<Instant>) -> Result<(), JournalError> {
    if !cleaner.met_late() {
        return Ok(());
    }
    cleaner.again();
    journal.rewrite(|event| match asked.is_some_and(|at| at.elapsed() >= AFTER_A_SIGNAL) {
        true => Err(io::Error::other("there was no time to take them out")),
        false => {
            cleaner.event(event);
            Ok(())
        }
    })
}

/// What is said where a session ended before its last messages were written.
pub(super) const HELD_UP: &str = "the disk held up the last messages; they may be missing in the recording";

/// Says what of a session is not in its recording, or not as it was.
pub(super) fn tell_of_end(session: &str, missed: u64, cleaner: &Cleaner, notices: &Notices) {
    if missed > 0 {
        let messages = output::counted(missed, "message", "messages");
        let were = if missed == 1 { "was" } else { "were" };
        notices.warn(format_args!("{messages} of {session} {were} not recorded"));
    }
    cleaner.told().iter().for_each(|replaced| notices.info(replaced));
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

/// The journal, or why there is none: the first message's failure then says so, and the session goes on.
pub(super) struct Tape {
    journal: io::Result<Journal>,
    /// Something could not be written.
    has_gap: bool,
    /// How many messages were longer than `--max-message`.
    too_long: u64,
    /// How many bodies were compressed in a way that cannot be read.
    unreadable: u64,
}

impl Tape {
    /// Begins the journal of a recording into `cassette`.
    pub(super) fn begin(
        cassette: &Path,
        transport: &str,
        replace: bool,
        privacy: &Privacy,
        is_required: bool,
    ) -> Result<Self, Failure> {
        let tape = Self::create(cassette, transport, privacy, |header| JournalHeader { replace, ..header });
        match &tape.journal {
            Err(error) if is_required => Err(Failure::io("record into", cassette, error)),
            _ => Ok(tape),
        }
    }

    /// Begins the journal of what goes on with a recording in `cassette`.
    pub(super) fn behind(cassette: &Path, transport: &str, privacy: &Privacy, continues: Continues) -> Self {
        let continues = Some(continues);
        Self::create(cassette, transport, privacy, |header| JournalHeader { continues, ..header })
    }

    fn create(
        cassette: &Path,
        transport: &str,
        privacy: &Privacy,
        with: impl FnOnce(JournalHeader) -> JournalHeader,
    ) -> Self {
        let header = store::new_header(transport).map(|header| JournalHeader {
            vars: privacy.vars.names().map(str::to_owned).collect(),
            redacted: privacy.rules.is_on(),
            ..header
        });
        let journal = header.and_then(|header| Journal::create(cassette, with(header)));
        Self { journal, has_gap: false, too_long: 0, unreadable: 0 }
    }

    /// Takes away a recording in which the server never said anything: it was not reached.
    pub(super) fn discard(self, notices: &Notices) {
        let Ok(journal) = self.journal else { return };
        let path = journal.path().to_owned();
        drop(journal);
        match std::fs::remove_file(&path) {
            Ok(()) => notices.info("nothing was recorded: the server was never reached"),
            Err(error) => notices.warn(Failure::io("remove", &path, &error).one_line()),
        }
    }

    /// Leaves a recording that did not end well where it is: it takes no other's place.
    pub(super) fn leave(self, cleaner: &Cleaner, notices: &Notices) {
        if let Ok(mut journal) = self.journal {
            if let Err(error) = clean(&mut journal, cleaner.clone(), None) {
                notices.warn(format_args!("secrets that were met late stay in the journal: {error}"));
            }
            notices.warn(format_args!(
                "the server answered nothing, so the old recording stays; this one is in {}, and `tapedeck recover` \
                 adds it to the cassette",
                journal.path().display()
            ));
        }
    }

    /// Ends it, and puts what was recorded into the cassette, in the time that is left after a signal.
    pub(super) fn end(
        self,
        cassette: &Path,
        fold: FoldOptions,
        asked: Option<Instant>,
        cleaner: &Cleaner,
        notices: &Notices,
    ) {
        keep(cassette, vec![(self, cleaner.clone())], fold, asked, notices);
    }

    /// Says what of it cannot be replayed.
    fn tell(&self, notices: &Notices) {
        if self.too_long > 0 {
            let were = output::counted(self.too_long, "message was", "messages were");
            notices.warn(format_args!(
                "{were} longer than --max-message allows: only size and hash are recorded, so a replay cannot answer \
                 with them"
            ));
        }
        if self.unreadable > 0 {
            let were = output::counted(self.unreadable, "body was", "bodies were");
            notices.warn(format_args!(
                "{were} compressed in a way that cannot be read: only size and hash are recorded, so a replay cannot \
                 answer with them"
            ));
        }
    }
}

impl Sink for Tape {
    fn write(&mut self, events: &[Event<'_>]) -> io::Result<()> {
        for event in events {
            match &event.payload {
                Payload::Oversize(measured) if measured.head.is_empty() => self.unreadable += 1,
                Payload::Oversize(_) => self.too_long += 1,
                _ => {}
            }
        }
        let written = match &mut self.journal {
            Ok(journal) => journal.write(events),
            Err(error) => Err(io::Error::new(error.kind(), error.to_string())),
        };
        self.has_gap |= written.is_err();
        written
    }
}
