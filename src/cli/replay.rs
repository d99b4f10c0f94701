//! `tapedeck replay`: serves a cassette in a server's place.

use std::{ffi::OsString, os::fd::AsFd, path::Path, sync::Arc};

use clap::Args;
use mcp_tapedeck::{
    exit_code::ExitCode,
    proxy::{
        replay::{Ended, ServeOptions, serve},
        shutdown::end_like,
        stop::Stop,
    },
    report::{AssertReport, Miss, Reason, Report, Verdict, events::Event},
    traffic::Exit,
    transport::stdio::Client,
};

use super::{
    args::{LogArgs, PlayArgs},
    connect::ServerArgs,
    deck::{Decks, DecksArgs},
    event_file::EventFile,
    failure::Failure,
    front,
    listen::ListenArgs,
    output::{self, Notices},
    privacy::PrivacyArgs,
    real::{self, Reals},
    report_file::{ReportFile, Telling, status},
    tape::Lacks,
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
  tapedeck replay --server primary=a.json --server backup=b.json --listen 127.0.0.1:8123
  tapedeck replay session.json --listen 127.0.0.1:8123 --events events.jsonl
  tapedeck replay session.json --listen 127.0.0.1:8123 --admin 127.0.0.1:8124
  tapedeck replay session.json --on-miss record -- python server.py   asks it what nobody recorded, and adds that

In a client's configuration:
  {\"command\": \"tapedeck\", \"args\": [\"replay\", \"/path/session.json\"]}

A request for which the cassette holds no answer is a miss: it gets an error that says what differs, and the replay
ends with status 1. With --on-miss upstream the real server answers it, and with record both are added to the cassette.")]
pub(super) struct ReplayArgs {
    #[command(flatten)]
    decks: DecksArgs,

    #[command(flatten)]
    log: LogArgs,

    #[command(flatten)]
    play: PlayArgs,

    #[command(flatten)]
    privacy: PrivacyArgs,

    #[command(flatten)]
    listen: ListenArgs,

    /// The real server's command, for --on-miss
    #[arg(last = true, conflicts_with = "url", value_name = "CMD")]
    command: Vec<OsString>,

    #[command(flatten)]
    server: ServerArgs,
}

pub(super) fn run(args: &ReplayArgs) -> Result<ExitCode, Failure> {
    let prepared = args.log.notices().and_then(|notices| {
        let is_http = args.listen.is_given();
        let serving = args.listen.serving(is_http)?;
        let privacy = args.privacy.sending(&args.server)?;
        let decks = args.decks.prepare(&args.play, &privacy, serving, &notices)?;
        if !args.listen.is_given() {
            decks.for_stdio()?;
        }
        Session::of(decks, &args.play, notices)?.with_real(
            (&args.play, &privacy),
            (&args.command, &args.server),
            BOTH,
        )
    });
    if let Err(failure) = &prepared {
        refused(args.play.report.as_deref(), failure);
    }
    if args.listen.is_given() {
        let opened = args.listen.open(prepared?)?;
        return opened.serve(None).map(|(_, verdict)| verdict);
    }
    match prepared {
        Ok(session) => session.play(),
        Err(failure) => Ok(front::refuse(&failure)),
    }
}

/// Leaves a bad report of a replay that could not start: a good one of yesterday's must not stand for it.
pub(super) fn refused(path: Option<&Path>, failure: &Failure) {
    let Some(Ok(file)) = path.map(ReportFile::at) else { return };
    let mut report = Report::open("");
    report.verdict = Verdict::Bad;
    report.warnings.push(failure.one_line());
    // That it failed is said anyway.
    let _ = file.write(&report);
}

/// A replay that is ready for its clients.
pub(super) struct Session {
    pub(super) decks: Decks,
    pub(super) report: Option<ReportFile>,
    pub(super) events: Option<EventFile>,
    pub(super) notices: Arc<Notices>,
    /// Where requests go that nobody recorded.
    pub(super) reals: Option<Reals>,
}

/// How the real server is given where it may be a command.
pub(super) const BOTH: &str = "its command behind `--`, or its address as `--url URL`";

impl Session {
    /// A replay of one cassette.
    pub(super) fn prepare(
        cassette: &Path,
        play: &PlayArgs,
        privacy: &PrivacyArgs,
        notices: Notices,
    ) -> Result<Self, Failure> {
        let decks = Decks::one(cassette, play, privacy, &notices)?;
        Self::of(decks, play, notices)
    }

    /// A replay of these cassettes; from now on there is a report of it.
    pub(super) fn of(decks: Decks, play: &PlayArgs, notices: Notices) -> Result<Self, Failure> {
        let report = play.report.as_deref().map(ReportFile::at).transpose()?;
        if let Some(report) = &report {
            report.write(&decks.report())?;
        }
        let notices = Arc::new(notices);
        let events = play.events.as_deref().map(|path| EventFile::at(path, &notices)).transpose()?;
        Ok(Self { decks, report, events, notices, reals: None })
    }

    /// With the real server for what nobody recorded, where that is asked for.
    pub(super) fn with_real(
        mut self,
        (play, privacy): (&PlayArgs, &PrivacyArgs),
        (command, server): (&[OsString], &ServerArgs),
        names: &str,
    ) -> Result<Self, Failure> {
        let recording = self.decks.first(privacy);
        self.reals = real::prepare(play.on_miss, command, server, &recording, names, &self.notices)?;
        if self.reals.is_some() {
            self.decks.for_one_server()?;
        }
        Ok(self)
    }

    /// Serves the client until it leaves; ends as the recorded server or with the verdict.
    pub(super) fn play(self) -> Result<ExitCode, Failure> {
        let Self { decks, report, events, notices, reals } = self;
        let mut replayer = decks.into_first();
        let stop =
            Stop::install().map_err(|error| Failure::peer(format_args!("cannot handle signals: {error}")))?;
        let client = front::take_client(&notices)?;
        let mut telling = Telling::new(report.as_ref(), &notices);
        let mut tell = |latest: &Report| {
            telling.tell(latest);
        };
        let Client { input, output } = client;
        let mut happened = |happened: Vec<Event>| events.iter().for_each(|events| events.append(&happened));
        let options = ServeOptions {
            stop: Some(stop.as_fd()),
            max_message: MAX_MESSAGE,
            upstreams: reals.as_ref().map(|reals| &*reals.upstreams),
        };
        let ended = serve(&mut replayer, input.as_fd(), output, options, &mut tell, &mut happened);
        happened(replayer.take_events(true));
        let mut last = replayer.finish();
        let mut all_written = telling.tell(&last) && events.as_ref().is_none_or(EventFile::is_whole);
        drop(input);
        if let Some(reals) = reals {
            let asked = matches!(ended, Ok(Ended::Stopped)).then(|| stop.signal()).flatten();
            all_written &= add_lacks(&mut last, &reals.end(asked, Some(&stop)), &mut telling);
        }
        say_unused(&last, &notices);
        if last.verdict == Verdict::Bad {
            notices.warn(in_short(&last));
        }
        let own = status(last.verdict, all_written);
        match ended.map_err(|error| {
            Failure::client(format_args!("cannot read from the client or write to it: {error}"), &error)
        })? {
            Ended::AsRecorded(end) if end.signal.is_some() || end.exit.is_some_and(|status| status != 0) => {
                end_like(Exit { status: end.exit, signal: end.signal, by_itself: true })
            }
            Ended::Stopped => end_like(Exit { status: None, signal: stop.signal(), by_itself: false }),
            Ended::AsRecorded(_) | Ended::ByClient => Ok(own),
        }
    }
}

/// Adds to a report that has been told what was asked for and not recorded. Whether there is no such thing.
pub(super) fn add_lacks(last: &mut Report, lacks: &Lacks, telling: &mut Telling<'_>) -> bool {
    if !lacks.is_empty() {
        lacks.warn_in(last);
        telling.tell(last);
    }
    lacks.is_empty()
}

/// Says which match rules no request ever met.
pub(super) fn say_unused(report: &Report, notices: &Notices) {
    for rule in report.rules.iter().filter(|rule| rule.used == 0) {
        let server = rule.server.as_ref().map(|server| format!("{server}: ")).unwrap_or_default();
        let words: Vec<&str> = rule.rule.split_whitespace().collect();
        notices.info(format_args!("unused match rule: {server}{}", words.join(" ")));
    }
}

/// What was asserted and is not so.
pub(super) fn failed(assert: &AssertReport) -> String {
    let of = assert.server.as_ref().map(|server| format!("{server}: ")).unwrap_or_default();
    format!("{of}asserted {}, found {}", assert.assert, assert.found)
}

/// Why a verdict is bad.
pub(super) fn in_short(report: &Report) -> String {
    let mut why = Vec::new();
    // What came in another order was answered all the same.
    let (moved, missed): (Vec<_>, Vec<_>) =
        report.misses.iter().partition(|miss| miss.reason == Reason::OutOfOrder);
    let requests =
        |misses: &[&Miss]| output::counted(misses.iter().map(|miss| miss.count).sum(), "request", "requests");
    let first = |first: &Miss| {
        let name = first.name.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
        format!("first {}{name}: {}", first.method, first.message)
    };
    if let Some(miss) = missed.first() {
        why.push(format!("no recorded answer for {}, {}", requests(&missed), first(miss)));
    }
    if let Some(miss) = moved.first() {
        why.push(format!(
            "--strict, and {} in another order than recorded, {}",
            requests(&moved),
            first(miss)
        ));
    }
    let unheard: u64 = report.passed_on.iter().map(|passed| passed.failed).sum();
    if let Some(reason) = report.passed_on.iter().find_map(|passed| passed.why.as_deref()) {
        let requests = output::counted(unheard, "request", "requests");
        why.push(format!("{requests} passed on and not answered: {reason}"));
    }
    if let Some(first) = report.not_joined.first() {
        let count: u64 = report.not_joined.iter().map(|joined| joined.count).sum();
        let processes = output::counted(count, "process", "processes");
        why.push(format!("{processes} could not join: {}", first.why));
    }
    let mut waits = report.waits.iter().filter(|wait| wait.bad);
    if let Some(first) = waits.next() {
        let ran = output::counted(1 + waits.count() as u64, "wait ran out", "waits ran out, the first");
        why.push(format!("{ran}: {} waited in vain for {}", first.key, first.waited_for));
    }
    if let Some(fault) = report.faults.iter().find(|fault| fault.is_missing()) {
        why.push(format!("the fault `{}` never acted", fault.rule));
    }
    let mut asserts = report.asserts.iter().filter(|assert| !assert.holds);
    if let Some(first) = asserts.next() {
        why.push(failed(first));
        let more = asserts.count();
        if more > 0 {
            why.push(format!("{more} more that was asserted is not so"));
        }
    }
    let passed: u64 = report.passed_on.iter().map(|passed| passed.count).sum();
    if why.is_empty() && passed > 0 {
        let requests = output::counted(passed, "request", "requests");
        why.push(format!("--strict, and {requests} went to the real server"));
    }
    if why.is_empty() {
        let left_over = report.left_over.len() as u64;
        let exchanges = output::counted(left_over, "recorded exchange was", "recorded exchanges were");
        let first = report.left_over.first().map_or("", |key| key);
        why.push(format!("--strict, and {exchanges} not asked for, first `{first}`"));
    }
    format!("{}: {}", report.cassette, why.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_in_another_order_was_answered_and_the_summary_says_no_other() {
        let miss = |method: &str, reason, count| Miss {
            server: None,
            method: method.to_owned(),
            name: None,
            reason,
            message: format!("why {method}"),
            nearest: None,
            differences: Vec::new(),
            rule: None,
            count,
        };
        let moved = miss("a", Reason::OutOfOrder, 2);
        let mut report = Report { misses: vec![moved], ..Report::open("c.json") };
        assert_eq!(
            in_short(&report),
            "c.json: --strict, and 2 requests in another order than recorded, first a: why a"
        );
        report.misses.push(miss("b", Reason::NeverRecorded, 1));
        assert_eq!(
            in_short(&report),
            "c.json: no recorded answer for 1 request, first b: why b; --strict, and 2 requests in another order than \
             recorded, first a: why a"
        );
    }
}
