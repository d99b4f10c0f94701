//! The real server behind a replay: how it is reached for what nobody recorded, and what is recorded of that.

use std::{
    ffi::OsString,
    io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use clap::ValueEnum;
use hyper::header::{HeaderName, HeaderValue};
use mcp_tapedeck::{
    cassette::{journal, model::Cassette},
    proxy::{
        bridge::{Bridge, BridgeOptions},
        record::{self as proxy, Hide, RecordOptions, Sink},
        stop::Stop,
        upstream::{Talk, Upstreams},
    },
    redact::Met,
    store::{FoldOptions, shell},
    traffic::{Event, Exit, STDIO_TO_HTTP},
    transport::{http::connect::ConnectOptions, stdio::Server},
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{
    connect::ServerArgs,
    failure::Failure,
    output::Notices,
    privacy::{Cleaner, Listening, Privacy, PrivacyArgs},
    record_bridge::refused,
    tape::{self, Lacks, Tape, Time},
};

/// How long real servers may take to end once a signal has come.
const LAST: Duration = Duration::from_millis(1900);
/// How long they may take without one: longer than the steps of any ending.
const LONGEST: Duration = Duration::from_secs(30);
/// Files that clients, servers and all else may need beside the journals of sessions that are over.
const BESIDE: u64 = 512;
/// How often it is looked whether a signal has come meanwhile.
const LOOK: Duration = Duration::from_millis(20);

/// `--on-miss`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OnMiss {
    /// It is answered with an error, and the verdict is bad.
    Error,
    /// The real server answers it.
    Upstream,
    /// The real server answers it, and both are added to the cassette.
    Record,
}

/// How a real server is reached.
enum Way {
    Command(Vec<OsString>),
    Url { url: String, options: Box<ConnectOptions>, headers: Vec<(HeaderName, HeaderValue)> },
}

/// What becomes of what is said.
enum Paper {
    /// Nothing is recorded.
    Nothing,
    Tape(Tape),
}

impl Paper {
    fn tape(self) -> Option<Tape> {
        match self {
            Self::Nothing => None,
            Self::Tape(tape) => Some(tape),
        }
    }
}

impl Sink for Paper {
    fn write(&mut self, events: &[Event<'_>]) -> io::Result<()> {
        match self {
            Self::Nothing => Ok(()),
            Self::Tape(tape) => tape.write(events),
        }
    }

    fn missed(&mut self, messages: u64) {
        match self {
            Self::Nothing => {}
            Self::Tape(tape) => tape.missed(messages),
        }
    }
}

/// Where it is recorded.
pub(super) struct Recording<'a> {
    /// The cassette's file, and what it holds.
    pub path: &'a Path,
    pub cassette: &'a Arc<Cassette>,
    /// The secrets that clients show the replay.
    pub met: &'a Option<Met>,
    /// What is kept out of it.
    pub privacy: &'a PrivacyArgs,
}

/// The same, while it goes on.
struct Adding {
    path: PathBuf,
    cassette: Arc<Cassette>,
    met: Option<Met>,
    privacy: Privacy,
}

/// The real server of a replay.
struct Real {
    way: Way,
    /// Where what it says is recorded, if it is.
    adding: Option<Adding>,
    /// What was recorded of sessions with it that are over. It is added once all are: what one client shows as a secret
    /// may stand in what was recorded of another long before.
    over: Mutex<Vec<Recorded>>,
    notices: Arc<Notices>,
}

/// A session with the real server that is over.
struct Recorded {
    /// None where the disk held it up.
    tape: Option<Tape>,
    cleaner: Cleaner,
    /// Messages that are not in it.
    missed: u64,
    /// When a signal ended it.
    asked: Option<Instant>,
}

/// The sessions with the real server.
pub(super) struct Reals {
    /// Where they are begun.
    pub upstreams: Arc<Upstreams>,
    real: Arc<Real>,
}

/// Where requests go that nobody recorded, as the options say it; `names` is how a command line gives the real server.
pub(super) fn prepare(
    on_miss: OnMiss,
    command: &[OsString],
    server: &ServerArgs,
    recording: &Recording<'_>,
    names: &str,
    notices: &Arc<Notices>,
) -> Result<Option<Reals>, Failure> {
    server.check()?;
    let word = match on_miss {
        OnMiss::Error if server.url.is_none() && command.is_empty() => return Ok(None),
        OnMiss::Error => {
            return Err(Failure::usage("a real server is given, and nothing goes to it")
                .hint("`--on-miss upstream` has it answer what nobody recorded, `--on-miss record` adds that as well"));
        }
        OnMiss::Upstream => "upstream",
        OnMiss::Record => "record",
    };
    let way = match (&server.url, command) {
        (Some(url), _) => Way::Url {
            url: url.clone(),
            options: Box::new(server.options(notices)?),
            headers: server.headers()?,
        },
        (None, []) => {
            return Err(Failure::usage(format_args!("`--on-miss {word}` needs the real server"))
                .hint(format_args!("give {names}")));
        }
        (None, command) => Way::Command(command.to_owned()),
    };
    if let Way::Url { url, options, .. } = &way {
        // A mistake in it is told now, and not with the first miss.
        Bridge::to(url, (**options).clone()).map_err(refused)?;
    }
    let adding = match on_miss {
        OnMiss::Record => Some(Adding {
            path: file(recording.path)?,
            cassette: Arc::clone(recording.cassette),
            met: recording.met.clone(),
            privacy: recording.privacy.compile()?,
        }),
        OnMiss::Error | OnMiss::Upstream => None,
    };
    let real = Arc::new(Real { way, adding, over: Mutex::default(), notices: Arc::clone(notices) });
    let holds = Arc::clone(&real);
    let upstreams = Arc::new(Upstreams::new(Arc::new(move |talk| holds.hold(talk))));
    Ok(Some(Reals { upstreams, real }))
}

/// The cassette's file, which must be one that can be added to.
fn file(cassette: &Path) -> Result<PathBuf, Failure> {
    if fs_err::File::open(cassette).is_ok_and(journal::is_journal) {
        let path = cassette.display();
        return Err(Failure::usage(format_args!("{path} is a journal, and nothing is added to one")).hint(
            format_args!("`tapedeck convert {} session.json` makes a cassette of it", shell::word(cassette)),
        ));
    }
    Ok(cassette.to_owned())
}

impl Real {
    /// Talks with the real server; why it says nothing more.
    fn hold(&self, talk: Talk) -> String {
        let Talk { client, continues, asked } = talk;
        // It is begun before the server is, as its start may already say something.
        let begin = |transport: &str| match &self.adding {
            None => (Paper::Nothing, None),
            Some(Adding { path, cassette, met, privacy }) => {
                let tape = Tape::behind(path, transport, privacy, continues);
                let cleaner = Cleaner::behind(privacy.clone(), &cassette.text, met.clone());
                (Paper::Tape(tape), Some(cleaner))
            }
        };
        let hide = |cleaner: &Option<Cleaner>| match cleaner {
            Some(cleaner) => Box::new(Listening(cleaner.clone())) as Box<dyn Hide>,
            None => Box::new(()),
        };
        let over = |paper: Option<Paper>, cleaner, missed, asked: Option<(i32, Instant)>| {
            let Some(cleaner) = cleaner else { return };
            let tape = paper.and_then(Paper::tape);
            let mut over = self.over();
            // Its journal stays open, so that nobody else folds it.
            make_room(over.len() as u64);
            over.push(Recorded { tape, cleaner, missed, asked: asked.map(|(_, at)| at) });
        };
        let warner = Arc::clone(&self.notices);
        let warn = Box::new(move |text: &str| warner.warn(text));
        match &self.way {
            Way::Command(command) => {
                let server = match Server::start(command) {
                    Ok(server) => server,
                    Err(error) => return error.to_string(),
                };
                let (paper, cleaner) = begin("stdio");
                let ends = Some(asked);
                let options = RecordOptions { ends, warn, hide: hide(&cleaner), ..RecordOptions::default() };
                match proxy::record(server, client, paper, options) {
                    Ok(ended) => {
                        over(ended.sink, cleaner, ended.missed, ended.asked);
                        ended_as(ended.exit)
                    }
                    Err(error) => error.to_string(),
                }
            }
            Way::Url { url, options, headers } => {
                let bridge = match Bridge::to(url, (**options).clone()) {
                    Ok(bridge) => bridge,
                    Err(error) => return error.to_string(),
                };
                let (paper, cleaner) = begin(STDIO_TO_HTTP);
                let (headers, hide) = (headers.clone(), hide(&cleaner));
                let ends = Some(asked);
                let options =
                    BridgeOptions { headers, signals: false, ends, warn, hide, ..BridgeOptions::default() };
                match bridge.record(client, paper, options) {
                    Ok(ended) => {
                        over(ended.sink, cleaner, ended.missed, ended.asked);
                        let why = || "the session with the real server is over".to_owned();
                        ended.unreachable.unwrap_or_else(why)
                    }
                    Err(error) => error.to_string(),
                }
            }
        }
    }

    /// Adds what was recorded to the cassette; what is not in the recording.
    fn keep(&self, stop: Option<&Stop>) -> Lacks {
        let over = std::mem::take(&mut *self.over());
        let mut lacks = Lacks::default();
        let Some(Adding { path, .. }) = &self.adding else { return lacks };
        // What was met behind the last message, and by others, may stand in those before it.
        over.iter().for_each(|recorded| recorded.cleaner.listen());
        let asked = over.iter().filter_map(|recorded| recorded.asked).min();
        let mut tapes = Vec::with_capacity(over.len());
        for Recorded { tape, cleaner, missed, .. } in over {
            lacks.tell_of_end("the real server's session", missed, &cleaner, &self.notices);
            match tape {
                Some(tape) => tapes.push((tape, cleaner)),
                None => lacks.add(tape::HELD_UP, &self.notices),
            }
        }
        let time = Time::new(asked, stop);
        tape::keep(path, tapes, FoldOptions::default(), &time, &self.notices, &mut lacks);
        lacks
    }

    fn over(&self) -> MutexGuard<'_, Vec<Recorded>> {
        self.over.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets this process have so many files open beside all else: many systems allow few that are not asked for more.
fn make_room(files: u64) {
    let (limit, needed) = (getrlimit(Resource::Nofile), files + BESIDE);
    if limit.current.is_some_and(|current| current < needed) {
        let wanted = 2 * needed;
        let current = Some(limit.maximum.map_or(wanted, |most| most.min(wanted)));
        // Where it is refused, there may still be enough.
        let _ = setrlimit(Resource::Nofile, Rlimit { current, ..limit });
    }
}

fn ended_as(exit: Exit) -> String {
    match (exit.status, exit.signal) {
        (Some(status), _) => format!("the real server has ended, with status {status}"),
        (None, Some(signal)) => format!("the real server was ended by signal {signal}"),
        (None, None) => "the real server says nothing more".to_owned(),
    }
}

impl Reals {
    /// Ends all of them in good order, once the front has ended that they were there for, and adds what was recorded:
    /// `asked` is the signal that ended it, and `stop` tells of one that comes meanwhile. What comes back is what could not
    /// be recorded.
    pub(super) fn end(self, asked: Option<i32>, stop: Option<&Stop>) -> Lacks {
        let Self { upstreams, real } = self;
        if !all_end(&upstreams, asked, stop)
            && let Some(Adding { path, .. }) = &real.adding
        {
            real.notices.warn(format_args!(
                "the session with the real server did not end in time; what was recorded of it stays in a journal \
                 beside {}, which every command reads with it, and `tapedeck recover {}` adds it",
                path.display(),
                shell::word(path)
            ));
        }
        real.keep(stop)
    }
}

/// Whether all of them have ended in time.
fn all_end(upstreams: &Upstreams, asked: Option<i32>, stop: Option<&Stop>) -> bool {
    let mut left = LONGEST;
    while asked.is_none() && !left.is_zero() {
        if upstreams.wait(LOOK) {
            return true;
        }
        if stop.is_some_and(|stop| stop.signal().is_some()) {
            break;
        }
        left = left.saturating_sub(LOOK);
    }
    upstreams.end(asked.or_else(|| stop?.signal()).unwrap_or(TERM));
    upstreams.wait(LAST)
}

/// SIGTERM.
pub(super) const TERM: i32 = 15;
