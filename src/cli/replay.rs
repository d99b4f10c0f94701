//! `tapedeck replay`: serves a cassette in a server's place.

use std::{
    os::fd::AsFd,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use clap::Args;
use mcp_tapedeck::{
    exit_code::ExitCode,
    proxy::{
        replay::{Ended, serve},
        shutdown::end_like,
        stop::Stop,
    },
    replay::{Options, Replayer},
    report::{Report, Verdict},
    traffic::Exit,
    transport::stdio::Client,
};

use super::{
    args::{self, LogArgs, PlayArgs},
    failure::Failure,
    files, front,
    listen::ListenArgs,
    output::Notices,
    privacy::PrivacyArgs,
    report_file::ReportFile,
};

/// Longer messages of a client are looked at by their envelope only, as a recorder's default has it.
const MAX_MESSAGE: usize = 64 << 20;

/// Serve a cassette in place of the recorded server
#[derive(Args, Debug)]
#[command(after_help = "Put it in the server's place in the client's configuration.

Examples:
  tapedeck replay session.json
  tapedeck replay session.json --strict --report reports/
  tapedeck replay session.json --timing recorded --max-delay 2s
  tapedeck replay session.json --listen 127.0.0.1:8123

In a client's configuration:
  {\"command\": \"tapedeck\", \"args\": [\"replay\", \"/path/session.json\"]}

A request for which the cassette holds no answer is a miss: it gets an error that says what differs, and the replay
ends with status 1.")]
pub(super) struct ReplayArgs {
    /// The cassette
    #[arg(value_name = "C")]
    cassette: PathBuf,

    #[command(flatten)]
    log: LogArgs,

    #[command(flatten)]
    play: PlayArgs,

    #[command(flatten)]
    privacy: PrivacyArgs,

    #[command(flatten)]
    listen: ListenArgs,
}

pub(super) fn run(args: &ReplayArgs) -> Result<ExitCode, Failure> {
    let prepared = args.log.notices().and_then(|notices| {
        let cassette = args::absolute(&args.cassette)?;
        Session::prepare(&cassette, &args.play, &args.privacy, args.listen.is_given(), notices)
    });
    if args.listen.is_given() {
        return prepared?.listen(&args.listen);
    }
    match prepared {
        Ok(session) => session.play(),
        Err(failure) => Ok(front::refuse(&failure)),
    }
}

/// A replay that is ready for its client.
pub(super) struct Session {
    replayer: Replayer,
    /// Makes a replayer like it.
    again: Box<dyn Fn() -> Replayer + Send + Sync>,
    report: Option<ReportFile>,
    notices: Notices,
}

impl Session {
    /// Reads the cassette, and says what is to be said before the client comes.
    pub(super) fn prepare(
        cassette: &Path,
        play: &PlayArgs,
        privacy: &PrivacyArgs,
        is_http: bool,
        notices: Notices,
    ) -> Result<Self, Failure> {
        let mut options = play.options(privacy.compile()?);
        // Session ids that nobody guesses; where the system has no randomness they are only all different.
        let _ = getrandom::fill(&mut options.seed);
        let loaded = files::load(cassette)?;
        files::warnings(&loaded).for_each(|warning| notices.warn(warning));
        let path = loaded.path.display().to_string();
        let is_missing = |name: &&String| !options.vars.names().any(|given| given == **name);
        if let Some(name) = loaded.cassette.vars.iter().find(is_missing) {
            return Err(Failure::usage(format_args!(
                "{path}: the value of its variable `{name}` is not given"
            ))
            .hint(format_args!("add `--var {name}=VALUE`")));
        }
        options.faults = play.faults.plan(&loaded, is_http)?;
        let report = play.report.as_deref().map(ReportFile::at).transpose()?;
        let (cassette, blobs) = (Arc::new(loaded.cassette), Arc::new(loaded.blobs));
        let name = path.clone();
        let again = move |options: Options| {
            Replayer::new(Arc::clone(&cassette), Arc::clone(&blobs) as Arc<_>, &name, options)
        };
        let replayer =
            again(options.clone()).map_err(|error| Failure::file(format_args!("{path}: {error}")))?;
        let takes = AtomicU64::new(0);
        let again = Box::new(move || {
            let mut options = options.clone();
            // The ids of one take are not those of another.
            let take = takes.fetch_add(1, Ordering::Relaxed) + 1;
            options.seed.iter_mut().zip(take.to_le_bytes()).for_each(|(byte, take)| *byte ^= take);
            again(options).expect("the first one was made of the same")
        });
        if let Some(report) = &report {
            report.write(&replayer.report())?;
        }
        notices.info(format_args!("replaying {path}"));
        Ok(Self { replayer, again, report, notices })
    }

    /// Serves clients over HTTP until a signal comes; ends with the verdict.
    pub(super) fn listen(self, args: &ListenArgs) -> Result<ExitCode, Failure> {
        let Self { replayer, again, report, notices } = self;
        let front = args.bind()?;
        let origin = front.origin();
        let endpoint = replayer.endpoint();
        args.tell(&origin, endpoint)?;
        notices.info(format_args!("clients use {origin}{endpoint}, old ones {origin}/sse"));
        let mut missed = |latest: &Report| {
            if let Some(miss) = latest.misses.last() {
                notices.log("miss", &miss.message);
            }
            write(report.as_ref(), latest, &notices);
        };
        let ended = front.serve(replayer, again, args.options(), &mut missed);
        let ended = ended.map_err(|error| Failure::peer(format_args!("cannot serve HTTP: {error}")))?;
        write(report.as_ref(), &ended.report, &notices);
        if ended.report.verdict == Verdict::Bad {
            notices.warn(in_short(&ended.report));
        }
        Ok(if ended.report.verdict == Verdict::Good { ExitCode::Good } else { ExitCode::Bad })
    }

    /// Serves the client until it leaves; ends as the recorded server or with the verdict.
    pub(super) fn play(self) -> Result<ExitCode, Failure> {
        let Self { mut replayer, report, notices, .. } = self;
        let stop =
            Stop::install().map_err(|error| Failure::peer(format_args!("cannot handle signals: {error}")))?;
        let client = front::take_client(&notices)?;
        let mut tell = |latest: &Report| {
            if let Some(miss) = latest.misses.last().filter(|_| latest.verdict == Verdict::Open) {
                notices.log("miss", &miss.message);
            }
            write(report.as_ref(), latest, &notices);
        };
        let Client { input, output } = client;
        let ended = serve(&mut replayer, input.as_fd(), output, Some(stop.as_fd()), MAX_MESSAGE, &mut tell);
        let last = replayer.finish();
        write(report.as_ref(), &last, &notices);
        drop(input);
        if last.verdict == Verdict::Bad {
            notices.warn(in_short(&last));
        }
        let own = if last.verdict == Verdict::Good { ExitCode::Good } else { ExitCode::Bad };
        match ended.map_err(|error| Failure::peer(format_args!("cannot read from the client: {error}")))? {
            Ended::AsRecorded(end) if end.signal.is_some() || end.exit.is_some_and(|status| status != 0) => {
                end_like(Exit { status: end.exit, signal: end.signal, by_itself: true })
            }
            Ended::Stopped => end_like(Exit { status: None, signal: stop.signal(), by_itself: false }),
            Ended::AsRecorded(_) | Ended::ByClient => Ok(own),
        }
    }
}

fn write(file: Option<&ReportFile>, report: &Report, notices: &Notices) {
    if let Some(Err(failure)) = file.map(|file| file.write(report)) {
        notices.warn(failure.one_line());
    }
}

/// Why a verdict is bad.
fn in_short(report: &Report) -> String {
    let misses: u64 = report.misses.iter().map(|miss| miss.count).sum();
    let mut why = Vec::new();
    if let Some(first) = report.misses.first() {
        let name = first.name.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
        let requests = if misses == 1 { "1 request".to_owned() } else { format!("{misses} requests") };
        why.push(format!(
            "no recorded answer for {requests}, first {}{name}: {}",
            first.method, first.message
        ));
    }
    let waits = report.waits.iter().filter(|wait| wait.bad).count();
    if waits > 0 {
        why.push(format!("{waits} waits ran out"));
    }
    if let Some(fault) = report.faults.iter().find(|fault| fault.is_missing()) {
        why.push(format!("the fault `{}` never acted", fault.rule));
    }
    if why.is_empty() {
        why.push(format!("{} recorded exchanges were not asked for", report.unused.len()));
    }
    format!("{}: {}", report.cassette, why.join("; "))
}
