//! Faults on live traffic, and what is told of it: what `record` and `proxy` share.

use std::{
    io,
    path::PathBuf,
    sync::{Arc, mpsc::Receiver},
};

use clap::Args;
use mcp_tapedeck::{
    cassette::model::End,
    exit_code::ExitCode,
    fault::{
        Plan,
        live::{Live, Options},
    },
    proxy::{
        live::{FaultOptions, Faults},
        reverse,
        shutdown::{Signals, end_like},
    },
    replay::Lens,
    report::{Report, Verdict, events::Event},
    traffic::Exit,
    transport::stdio::Client,
};

use super::{
    event_file::EventFile,
    failure::Failure,
    faults::FaultArgs,
    output::Notices,
    privacy::PrivacyArgs,
    replay,
    report_file::{ReportFile, status},
    tape::Lacks,
};

/// What goes wrong on purpose in live traffic, and where it is told.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Faults")]
pub(super) struct LiveArgs {
    #[command(flatten)]
    pub faults: FaultArgs,

    /// Write what came, what faults did and the verdict to this file, or to a file of its own in this folder
    #[arg(long, value_name = "PATH")]
    pub report: Option<PathBuf>,

    /// Append what became of each message to this file, a JSON object a line
    #[arg(long, value_name = "FILE")]
    pub events: Option<PathBuf>,
}

/// A plan that is ready for live traffic; from now on there is a report of it.
pub(super) struct Acting {
    plan: Arc<Plan>,
    lens: Lens,
    name: String,
    report: Option<ReportFile>,
    events: Option<EventFile>,
}

impl LiveArgs {
    /// What they mean for traffic that is called `name`; none where nothing is to act or to be told.
    pub(super) fn prepare(
        &self,
        name: String,
        is_http: bool,
        privacy: &PrivacyArgs,
        notices: &Arc<Notices>,
    ) -> Result<Option<Acting>, Failure> {
        let plan = self.faults.live_plan(is_http)?;
        if plan.is_empty() && self.report.is_none() && self.events.is_none() {
            return Ok(None);
        }
        let privacy = privacy.compile()?;
        let report = self.report.as_deref().map(ReportFile::at).transpose()?;
        let events = self.events.as_deref().map(|path| EventFile::at(path, notices)).transpose()?;
        let lens = Lens::new(&privacy.rules, privacy.vars);
        let acting = Acting { plan: Arc::new(plan), lens, name, report, events };
        if let Some(report) = &acting.report {
            report.write(&Report::open(&acting.name))?;
        }
        Ok(Some(acting))
    }

    /// Leaves a bad report where nothing could start.
    pub(super) fn refused(&self, failure: &Failure) {
        replay::refused(self.report.as_deref(), failure);
    }
}

impl Acting {
    /// The core, where its events go, and where its report goes.
    fn into_live(self) -> (Live, Files) {
        let events = self.events.is_some().then(Arc::default);
        let options = Options { name: self.name, look: Box::new(self.lens), events };
        let files = Files { report: self.report.map(Arc::new), events: self.events.map(Arc::new) };
        (Live::new(self.plan, options), files)
    }

    /// What acts on clients over HTTP, and where it is told.
    pub(super) fn over_http(self) -> (reverse::Faults, Files) {
        let (live, files) = self.into_live();
        let happened = files.events.clone().map(|events| {
            Box::new(move |happened: Vec<Event>| events.append(&happened)) as reverse::Happened
        });
        (reverse::Faults { live, happened }, files)
    }

    /// Begins to act between a client on stdio and a session. What comes with it is the session's client, and what
    /// tells the session that its server is to end.
    pub(super) fn between(
        self,
        client: Client,
        max_message: usize,
        signals: Option<Signals>,
        notices: &Arc<Notices>,
    ) -> Result<(Running, Client, Receiver<i32>), Failure> {
        let (live, files) = self.into_live();
        let (Files { report: file, events: log }, notices) = (files.clone(), Arc::clone(notices));
        let options = FaultOptions {
            max_message,
            signals,
            happened: Box::new(move |happened| log.iter().for_each(|log| log.append(&happened))),
            tell: Box::new(move |latest| {
                if let Some(file) = &file {
                    file.write_again(latest, &notices);
                }
            }),
        };
        let (faults, client, ends) = Faults::between(live, client, options).map_err(|error| {
            Failure::peer(format_args!("cannot stand between client and server: {error}"))
        })?;
        Ok((Running { faults, files }, client, ends))
    }
}

/// What is our own at the end of a session with a client on stdio.
pub(super) struct Outcome {
    /// The verdict, where nobody else's status wins.
    pub code: ExitCode,
    /// The client left before it had heard all, which is its own affair. What the server made of that is not told by a
    /// status: whether it ran into a closed pipe or was told first to end is a matter of chance.
    pub has_left: bool,
}

impl Outcome {
    /// Of a session that is over, because of a signal if it `was_asked` to end; `gone` is why its client did not take all.
    ///
    /// # Errors
    /// When standard output is a file that cannot be written.
    pub(super) fn of(
        running: Option<Running>,
        was_asked: bool,
        unreachable: Option<&str>,
        gone: Option<io::Error>,
        lacks: &Lacks,
        notices: &Notices,
    ) -> Result<Self, Failure> {
        let (code, of_faults) = match running {
            Some(running) => running.end(was_asked, unreachable, lacks, notices),
            None => (status(Verdict::Good, lacks.is_empty()), None),
        };
        let has_left = |error: &io::Error| {
            matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
        };
        match of_faults.or(gone) {
            Some(error) if !has_left(&error) => {
                Err(Failure::client(format_args!("cannot write to the client: {error}"), &error))
            }
            gone => Ok(Self { code, has_left: gone.is_some() && !was_asked }),
        }
    }
}

/// Faults at work.
pub(super) struct Running {
    faults: Faults,
    files: Files,
}

/// Where it is told what happens.
#[derive(Clone)]
pub(super) struct Files {
    report: Option<Arc<ReportFile>>,
    events: Option<Arc<EventFile>>,
}

impl Running {
    /// The session is over, because of a signal if it `was_asked` to end: tells what became of it, and ends as a fault
    /// says that the server did. What comes back is our own verdict, which is bad where the server was never reached, and
    /// why the client did not take all.
    fn end(
        self,
        was_asked: bool,
        unreachable: Option<&str>,
        lacks: &Lacks,
        notices: &Notices,
    ) -> (ExitCode, Option<io::Error>) {
        let Self { faults, files } = self;
        let mut ended = faults.finish(was_asked);
        let last = ended.live.take_events(true);
        files.events.iter().for_each(|events| events.append(&last));
        let verdict = tell(&ended.live.finish(), unreachable, &files, lacks, notices);
        let Some(End { exit, signal, .. }) = ended.end else { return (verdict, ended.gone) };
        let status = exit.filter(|status| *status != 0).unwrap_or_else(|| verdict.code().into());
        end_like(Exit { status: Some(status), signal, by_itself: true })
    }
}

/// The same, where there may be none.
pub(super) fn told(
    last: Option<&Report>,
    unreachable: Option<&str>,
    files: Option<&Files>,
    lacks: &Lacks,
    notices: &Notices,
) -> ExitCode {
    let own = status(Verdict::Good, lacks.is_empty());
    last.zip(files).map_or(own, |(last, files)| tell(last, unreachable, files, lacks, notices))
}

/// A session that was broken off since its recording cannot be written: its report says so.
pub(super) fn broken_off(running: Option<Running>, failure: Failure, notices: &Notices) -> Failure {
    if let Some(running) = running {
        running.end(true, Some(&failure.one_line()), &Lacks::default(), notices);
    }
    failure
}

/// Writes the report of the end, and says it where it is bad; that the server was never reached, and what was not
/// recorded, is said elsewhere.
fn tell(
    last: &Report,
    unreachable: Option<&str>,
    files: &Files,
    lacks: &Lacks,
    notices: &Notices,
) -> ExitCode {
    let mut last = last.clone();
    let before = last.verdict;
    lacks.warn_in(&mut last);
    let write = |last: &Report| files.report.as_ref().is_none_or(|file| file.write_again(last, notices));
    if let Some(why) = unreachable {
        last.verdict = Verdict::Bad;
        last.warnings.push(why.to_owned());
        write(&last);
        return ExitCode::Bad;
    }
    let all_written = write(&last) && files.events.as_ref().is_none_or(|events| events.is_whole());
    if last.verdict != Verdict::Good {
        notices.warn(replay::in_short(&last));
    }
    // What a recording lacks has its own status, whatever the report makes of it.
    status(before, all_written && lacks.is_empty())
}
