//! `tapedeck verdict`: reads the reports of replays and says whether all is well.
//!
//! A server on stdio cannot make a test run fail: SDKs ignore its exit status and swallow its stderr. So each replay
//! writes a report, and this command fails in its place.

use std::{
    fmt::{self, Write as _},
    fs, io,
    path::{Path, PathBuf},
};

use clap::Args;
use mcp_tapedeck::{
    exit_code::ExitCode,
    report::{Difference, Miss, Report, Verdict},
    wire::scan,
};

use super::{args, failure::Failure, junit, output, replay, unfit};

/// Read the reports of replays; fail where one is bad, still open, or a path has none
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tapedeck verdict reports/
  pytest; tapedeck verdict reports/ --junit tapedeck.xml

A replay writes its report where `--report reports/` says so. A report that is still open tells of a replay that is
running or was killed; one of an earlier run counts as any other, so give each run of a test suite an empty folder.")]
pub(super) struct VerdictArgs {
    /// Reports, or folders of reports
    #[arg(value_name = "PATH", required = true)]
    paths: Vec<PathBuf>,

    /// Write the result in JUnit's XML form to this file as well
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

pub(super) fn run(args: &VerdictArgs) -> Result<ExitCode, Failure> {
    let (mut found, mut without) = (Vec::new(), Vec::new());
    for path in &args.paths {
        let reports = reports_at(path)?;
        if reports.is_empty() {
            without.push(format!("`{}`", path.display()));
        }
        found.extend(reports);
    }
    if let Some(path) = &args.junit {
        let path = args::absolute(path)?;
        output::create_parent(&path)
            .and_then(|()| fs::write(&path, junit::xml(&found, &without)))
            .map_err(|error| Failure::io("write", &path, &error))?;
    }
    if !found.is_empty() {
        output::print(Summary(&found))?;
    }
    if !without.is_empty() {
        return Err(Failure::bad(format_args!("no report was found in {}", without.join(" and "))).hint(
            "start each replay with `--report` and this path; a test run that started none tested nothing",
        ));
    }
    Ok(if found.iter().all(Found::is_good) { ExitCode::Good } else { ExitCode::Bad })
}

/// A report and where it was found.
#[derive(Debug)]
pub(super) struct Found {
    /// Its file.
    pub path: PathBuf,
    /// What it says.
    pub report: Report,
}

impl Found {
    /// Whether nothing is wrong.
    pub(super) fn is_good(&self) -> bool {
        self.report.verdict == Verdict::Good
    }

    /// The verdict in a few words.
    pub(super) const fn verdict(&self) -> &'static str {
        match self.report.verdict {
            Verdict::Good => "good",
            Verdict::Bad => "bad",
            Verdict::Open => "still open: the replay runs until its client ends, or was killed",
        }
    }

    /// What a reader should know beside the verdict, in lines.
    pub(super) fn details(&self) -> String {
        let report = &self.report;
        let mut text = String::new();
        for miss in &report.misses {
            let _ = write!(text, "{}", Explained(miss));
        }
        for passed in &report.passed_on {
            let times = output::counted(passed.count, "time", "times");
            let (server, request) = (Of(&passed.server), &passed.request);
            let _ = write!(text, "passed on: {server}{request}, {times}");
            if let Some(nearest) = &passed.nearest {
                let _ = write!(text, " (nearest: {nearest})");
            }
            let _ = match &passed.why {
                Some(why) => writeln!(text, "; {} not answered: {why}", passed.failed),
                None => writeln!(text),
            };
        }
        for joined in &report.not_joined {
            let times = if joined.count > 1 { format!(", {} times", joined.count) } else { String::new() };
            let _ = writeln!(text, "could not join{times}: {}", joined.why);
        }
        for refused in &report.refused {
            let requests = output::counted(refused.count, "request", "requests");
            let _ = writeln!(text, "refused: {requests}: {}", refused.why);
        }
        for wait in &report.waits {
            let waited_for = &wait.waited_for;
            let server = Of(&wait.server);
            let _ = writeln!(text, "wait: {server}{} waited in vain for {waited_for}", wait.key);
        }
        for answer in report.answers.iter().filter(|answer| answer.answer != "as_recorded") {
            let told = if answer.answer == "none" { "was not answered" } else { "was answered otherwise" };
            let server = Of(&answer.server);
            let _ = writeln!(text, "answer: {server}{} in {} {told}", answer.method, answer.key);
        }
        for repeat in &report.repeats {
            let times = output::counted(repeat.count, "time", "times");
            let (server, key) = (Of(&repeat.server), &repeat.key);
            let _ = writeln!(text, "repeat: {server}{key}, {times} more than recorded");
        }
        for fault in &report.faults {
            let told = match fault.fired {
                0 if fault.optional => "never acted, which is optional".to_owned(),
                0 => "never acted".to_owned(),
                1 => "acted once".to_owned(),
                times => format!("acted {times} times"),
            };
            let _ = writeln!(text, "fault: {}: {told}", fault.rule);
        }
        for assert in report.asserts.iter().filter(|assert| !assert.holds) {
            let _ = writeln!(text, "assert: {}", replay::failed(assert));
        }
        for told in &report.protocol {
            let of = told.server.as_ref().map(|server| format!("{server}: ")).unwrap_or_default();
            let _ = writeln!(
                text,
                "protocol: {of}{}: {} ({}, {})",
                told.rule, told.text, told.source, told.count
            );
        }
        for key in &report.unused {
            let _ = writeln!(text, "unused: {key}");
        }
        for rule in report.rules.iter().filter(|rule| rule.used == 0) {
            let _ = writeln!(text, "unused match rule: {}{}", Of(&rule.server), rule.rule);
        }
        for warning in &report.warnings {
            let _ = writeln!(text, "warning: {warning}");
        }
        text
    }
}

/// Everything that was found, for a person.
pub(super) struct Summary<'a>(pub &'a [Found]);

impl fmt::Display for Summary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for found in self.0 {
            let calls: u64 = found.report.calls.values().sum();
            let messages = output::counted(calls, "message", "messages");
            writeln!(f, "{}: {}, {messages}", found.path.display(), found.verdict())?;
            for line in found.details().lines() {
                writeln!(f, "  {}", output::visible(line))?;
            }
        }
        let good = self.0.iter().filter(|found| found.is_good()).count();
        let reports = output::counted(self.0.len() as u64, "report", "reports");
        writeln!(f, "{reports}, {good} good")
    }
}

/// Whose it is, where there are several servers.
struct Of<'a>(&'a Option<String>);

impl fmt::Display for Of<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |server| write!(f, "{server}: "))
    }
}

/// A miss and all that explains it.
struct Explained<'a>(&'a Miss);

impl fmt::Display for Explained<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(miss) = self;
        let name = miss.name.as_deref().map(|name| format!(" {name}")).unwrap_or_default();
        let times = if miss.count > 1 { format!(", {} times", miss.count) } else { String::new() };
        let server = Of(&miss.server);
        writeln!(f, "miss: {server}{}{name}{times}: {}", miss.method, miss.message)?;
        if let Some(nearest) = &miss.nearest {
            writeln!(f, "  nearest: {nearest}")?;
        }
        for Difference { at, recorded, live } in &miss.differences {
            let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
            writeln!(f, "  {at}: recorded {}, now {}", shown(recorded), shown(live))?;
        }
        if let Some(rule) = &miss.rule {
            let rule = serde_json::to_string(rule).map_err(|_| fmt::Error)?;
            writeln!(f, "  to accept it, add to \"match\": {rule}")?;
        }
        Ok(())
    }
}

/// The reports at a path, a folder's by name. A path that does not exist has none: perhaps no replay was started.
pub(super) fn reports_at(path: &Path) -> Result<Vec<Found>, Failure> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => {
            let mut found = Vec::new();
            for file in json_files(path).map_err(|error| Failure::io("read", path, &error))? {
                found.push(read(file)?);
            }
            Ok(found)
        }
        Ok(_) => Ok(vec![read(path.to_owned())?]),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(Failure::io("read", path, &error)),
    }
}

fn json_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") && path.is_file() {
            files.push(path);
        }
    }
    files.sort_unstable();
    Ok(files)
}

/// The report in a file.
pub(super) fn read(path: PathBuf) -> Result<Found, Failure> {
    let next = "a replay writes its report to the file or folder that its `--report` names";
    let text = fs::read(&path).map_err(|error| Failure::unread(&path, &error, next))?;
    match serde_json::from_slice::<Report>(&text) {
        Ok(report) if report.report == 1 => Ok(Found { path, report }),
        Ok(report) => Err(Failure::file(format_args!(
            "{}: this report is of version {}, expected 1",
            path.display(),
            report.report
        ))
        .hint("read it with the tapedeck that wrote it")),
        Err(_) if is_cassette(&text) => {
            let found = format_args!("{}: expected a report, found a cassette", path.display());
            Err(Failure::file(found).hint(next))
        }
        Err(error) => Err(Failure::file(unfit::why(&path, (&text, 1), "a report", &error)).hint(next)),
    }
}

/// Whether a text that is no report is meant to be a cassette: a report names one in that member.
fn is_cassette(text: &[u8]) -> bool {
    let start = scan::trim(text).start;
    let version = || scan::member(text, start, "cassette");
    text.get(start) == Some(&b'{') && version().is_some_and(|span| text[span.start].is_ascii_digit())
}
