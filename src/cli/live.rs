//! Faults on live traffic, and what is told of it: what `record` and `proxy` share.

use std::{
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
    event_file::EventFile, failure::Failure, faults::FaultArgs, output::Notices, privacy::PrivacyArgs,
    replay, report_file::ReportFile,
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
    fn into_live(self) -> (Live, Option<EventFile>, Option<ReportFile>) {
        let events = self.events.is_some().then(Arc::default);
        let options = Options { name: self.name, look: Box::new(self.lens), events };
        (Live::new(self.plan, options), self.events, self.report)
    }

    /// What acts on clients over HTTP, and where the report goes.
    pub(super) fn over_http(self) -> (reverse::Faults, Option<ReportFile>) {
        let (live, events, report) = self.into_live();
        let happened = events.map(|events| {
            Box::new(move |happened: Vec<Event>| events.append(&happened)) as reverse::Happened
        });
        (reverse::Faults { live, happened }, report)
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
        let (live, events, report) = self.into_live();
        let (events, report) = (events.map(Arc::new), report.map(Arc::new));
        let (log, file, notices) = (events.clone(), report.clone(), Arc::clone(notices));
        let options = FaultOptions {
            max_message,
            signals,
            happened: Box::new(move |happened| log.iter().for_each(|log| log.append(&happened))),
            tell: Box::new(move |latest| file.iter().for_each(|file| file.write_again(latest, &notices))),
        };
        let (faults, client, ends) = Faults::between(live, client, options).map_err(|error| {
            Failure::peer(format_args!("cannot stand between client and server: {error}"))
        })?;
        Ok((Running { faults, report, events }, client, ends))
    }
}

/// Faults at work.
pub(super) struct Running {
    faults: Faults,
    report: Option<Arc<ReportFile>>,
    events: Option<Arc<EventFile>>,
}

impl Running {
    /// The session is over, because of a signal if it `was_asked` to end: tells what became of it, and ends as a fault
    /// says that the server did. What comes back is our own verdict; it is bad where the server was never reached.
    pub(super) fn end(self, was_asked: bool, unreachable: Option<&str>, notices: &Notices) -> ExitCode {
        let Self { faults, report, events } = self;
        let mut ended = faults.finish(was_asked);
        let last = ended.live.take_events(true);
        events.iter().for_each(|events| events.append(&last));
        let verdict = tell(&ended.live.finish(), unreachable, report.as_deref(), notices);
        let Some(End { exit, signal, .. }) = ended.end else { return verdict };
        let status = exit.filter(|status| *status != 0).unwrap_or_else(|| verdict.code().into());
        end_like(Exit { status: Some(status), signal, by_itself: true })
    }
}

/// The same, where there may be none.
pub(super) fn told(
    last: Option<&Report>,
    unreachable: Option<&str>,
    file: Option<&ReportFile>,
    notices: &Notices,
) -> ExitCode {
    last.map_or(ExitCode::Good, |last| tell(last, unreachable, file, notices))
}

/// Writes the report of the end, and says it where it is bad; that the server was never reached is said elsewhere.
fn tell(last: &Report, unreachable: Option<&str>, file: Option<&ReportFile>, notices: &Notices) -> ExitCode {
    if let Some(why) = unreachable {
        let mut last = last.clone();
        last.verdict = Verdict::Bad;
        last.warnings.push(why.to_owned());
        file.iter().for_each(|file| file.write_again(&last, notices));
        return ExitCode::Bad;
    }
    file.iter().for_each(|file| file.write_again(last, notices));
    if last.verdict == Verdict::Good {
        return ExitCode::Good;
    }
    notices.warn(replay::in_short(last));
    ExitCode::Bad
}
