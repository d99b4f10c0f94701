//! Where clients reach us over HTTP, or join: options that several commands share, and what serves them.

use std::{
    collections::BTreeMap,
    fmt::{self, Write as _},
    io,
    path::{Path, PathBuf},
    process,
    sync::Arc,
};

use clap::{Args, ValueEnum};
use mcp_tapedeck::{
    exit_code::ExitCode,
    proxy::{
        join::Meeting,
        listen::{Happened, Listen, ListenOptions, admin::Admin},
        run::TestCommand,
    },
    report::{Refused, Report, Verdict, events::Event},
    traffic::Exit,
};
use serde::Serialize;

use super::{
    connect::ServeTlsArgs,
    deck::{Place, Serving},
    failure::Failure,
    output::{self, Notices},
    ready_file::ReadyFile,
    real,
    replay::{self, Session},
    report_file::{Telling, status},
    values,
};

/// Where clients reach us over HTTP, and which ones.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "HTTP")]
pub(super) struct FrontArgs {
    /// Serve clients over HTTP here, instead of one on stdin and stdout; port 0 picks a free one
    #[arg(long, value_name = "HOST:PORT", value_parser = values::address)]
    listen: Option<String>,

    /// Write where tapedeck listens to this file, as soon as it does; it goes when tapedeck ends
    #[arg(long, value_name = "FILE", requires = "listen")]
    ready_file: Option<PathBuf>,

    /// Serve clients that call tapedeck by this name too, where it listens on loopback
    #[arg(long, value_name = "HOST", requires = "listen")]
    pub allow_host: Vec<String>,

    /// Serve web pages of this origin too, where tapedeck listens on loopback
    #[arg(long, value_name = "ORIGIN", requires = "listen")]
    pub allow_origin: Vec<String>,
}

impl FrontArgs {
    /// Where to listen, if that is asked for.
    pub(super) fn address(&self) -> Option<&str> {
        self.listen.as_deref()
    }

    /// That nobody can listen there.
    pub(super) fn refused(&self, error: &io::Error) -> Failure {
        refused("--listen", self.listen.as_deref().unwrap_or_default(), error)
    }

    /// Writes the ready file, which is to be kept until the end.
    pub(super) fn tell(&self, ready: &Ready<'_>) -> Result<ReadyFile, Failure> {
        ReadyFile::write(self.ready_file.as_deref(), ready)
    }
}

/// That nobody can listen where an option says.
fn refused(option: &str, address: &str, error: &io::Error) -> Failure {
    let failure = |what: fmt::Arguments<'_>| Failure::peer(format_args!("{option} {address}: {what}"));
    match error.kind() {
        io::ErrorKind::AddrInUse => failure(format_args!("another program listens there"))
            .hint("end that one, or let port 0 pick a free one"),
        io::ErrorKind::AddrNotAvailable => failure(format_args!("this machine has no such address"))
            .hint("127.0.0.1 is reached from this machine alone, 0.0.0.0 from everywhere"),
        io::ErrorKind::PermissionDenied => {
            failure(format_args!("the system does not allow it")).hint("ports from 1024 on are for everybody")
        }
        _ => failure(format_args!("cannot listen there: {error}"))
            .hint("an address is HOST:PORT, such as 127.0.0.1:8123; port 0 picks a free one"),
    }
}

/// How a cassette is served over HTTP.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "HTTP")]
pub(super) struct ListenArgs {
    #[command(flatten)]
    front: FrontArgs,

    #[command(flatten)]
    tls: ServeTlsArgs,

    /// Let web pages read what is answered
    #[arg(long, requires = "listen")]
    cors: bool,

    /// Refuse requests with larger bodies
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = values::size, requires = "listen")]
    max_message: usize,

    #[command(flatten)]
    tend: TendArgs,
}

/// How a run is tended.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Tending a run")]
struct TendArgs {
    /// Tell over HTTP what happens, and be told what is to happen; only on loopback, port 0 picks a free one
    #[arg(long, value_name = "HOST:PORT", value_parser = values::address)]
    admin: Option<String>,

    /// Let waits of faults and of --timing end by themselves, or when --admin is told to advance
    #[arg(long, default_value = "real")]
    clock: ClockKind,
}

/// `--clock`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ClockKind {
    /// Time goes by.
    Real,
    /// It stands still until `POST /clock/advance`.
    Manual,
}

impl TendArgs {
    /// That a replay of one client on stdio is not tended, and that nobody waits for a clock that nobody can wind.
    fn check(&self, is_run: bool) -> Result<(), Failure> {
        let option = match (&self.admin, self.clock) {
            (None, ClockKind::Real) => return Ok(()),
            (Some(_), _) => "--admin",
            (None, ClockKind::Manual) => "--clock manual",
        };
        if !is_run {
            return Err(Failure::usage(format_args!(
                "{option} is for `tapedeck replay --listen` and `tapedeck run`, not for one client on stdio"
            ))
            .hint("add `--listen 127.0.0.1:0`, and let the client start `tapedeck join`: then it is served by that run"));
        }
        if self.admin.is_none() {
            return Err(Failure::usage("--clock manual needs --admin: somebody has to advance the clock")
                .hint("add `--admin 127.0.0.1:0`"));
        }
        Ok(())
    }

    fn open(&self) -> Result<Option<Admin>, Failure> {
        let Some(address) = &self.admin else { return Ok(None) };
        let refused = |error: io::Error| {
            match error.kind() {
            io::ErrorKind::InvalidInput => Failure::usage(format_args!(
                "--admin {address}: that is reached from other machines, and the run is tended from this one alone"
            ))
            .hint("give an address of loopback, such as 127.0.0.1:0"),
            _ => refused("--admin", address, &error),
        }
        };
        Admin::bind(address).map(Some).map_err(refused)
    }
}

/// `--auth`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Auth {
    /// Challenges are given where they were recorded.
    Recorded,
    /// They are left out, with the documents that lead on from them.
    Skip,
}

/// Where a front listens, as a program that started it reads it.
#[derive(Serialize)]
pub(super) struct Ready<'a> {
    /// Of the first server.
    url: &'a str,
    origin: &'a str,
    pid: u32,
    /// What `tapedeck join` is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<&'a Path>,
    /// Where the run is tended.
    #[serde(skip_serializing_if = "Option::is_none")]
    admin: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    servers: BTreeMap<&'a str, &'a str>,
}

impl<'a> Ready<'a> {
    /// Of a front with one server and nobody to join.
    pub(super) fn of(url: &'a str, origin: &'a str) -> Self {
        Self { url, origin, pid: process::id(), run: None, admin: None, servers: BTreeMap::new() }
    }
}

impl ListenArgs {
    pub(super) fn is_given(&self) -> bool {
        self.front.address().is_some()
    }

    /// How it is served: as a run, or else to one client on stdio.
    ///
    /// # Errors
    /// When somebody is to tend what cannot be tended.
    pub(super) fn serving(&self, is_run: bool) -> Result<Serving, Failure> {
        self.tend.check(is_run)?;
        Ok(Serving { is_http: is_run, is_tended: self.tend.admin.is_some(), cors: self.cors })
    }

    /// Listens, by default on any port of loopback, and tells who asked for it.
    pub(super) fn open(&self, session: Session) -> Result<Opened, Failure> {
        let address = self.front.address().unwrap_or("127.0.0.1:0");
        let mut front = Listen::bind(address).map_err(|error| self.front.refused(&error))?;
        if let Some(acceptor) = self.tls.acceptor()? {
            front = front.with_tls(acceptor);
        }
        match Meeting::open() {
            Ok(meeting) => front = front.with_meeting(meeting),
            Err(error) => {
                session.notices.warn(format_args!("nobody can join, for want of a socket: {error}"))
            }
        }
        if let Some(admin) = self.tend.open()? {
            session.notices.info(format_args!("whoever tends the run uses {}", admin.origin()));
            front = front.with_admin(admin);
        }
        let origin = front.origin();
        let places = session.decks.places(&origin);
        let ready = self.front.tell(&Ready {
            url: places.first().map_or("", |place| &place.url),
            origin: &origin,
            pid: process::id(),
            run: front.meeting(),
            admin: front.admin(),
            servers: places.iter().map(|place| (place.name, &*place.url)).collect(),
        })?;
        for Place { name, base, url, .. } in places {
            session.notices.info(format_args!("{name}: clients use {url}, old ones {base}/sse"));
        }
        let options = ListenOptions {
            max_message: self.max_message,
            allow_hosts: self.front.allow_host.clone(),
            allow_origins: self.front.allow_origin.clone(),
            cors: self.cors,
            happened: None,
            manual_clock: self.tend.clock == ClockKind::Manual,
        };
        Ok(Opened { front, session, options, ready })
    }
}

/// A front that clients can connect to, and are about to be served by.
pub(super) struct Opened {
    pub(super) front: Listen,
    pub(super) session: Session,
    options: ListenOptions,
    ready: ReadyFile,
}

impl Opened {
    /// Serves clients until the command has ended (how), or without one until a signal comes; and the verdict.
    pub(super) fn serve(self, command: Option<TestCommand>) -> Result<(Option<Exit>, ExitCode), Failure> {
        let Self { front, session: Session { decks, report, events, notices, reals }, options, ready } = self;
        let mut telling = Telling::new(report.as_ref(), &notices);
        let mut missed = |latest: &Report| {
            telling.tell(latest);
        };
        let events = events.map(Arc::new);
        let happened = events
            .clone()
            .map(|events| Arc::new(move |happened: Vec<Event>| events.append(&happened)) as Happened);
        let options = ListenOptions { happened, ..options };
        let served = decks.into_served(reals.as_ref().map(|reals| Arc::clone(&reals.upstreams)));
        let ended = front.serve(served, command, options, &mut missed);
        drop(ready);
        let mut ended = ended.map_err(|error| Failure::peer(format_args!("cannot serve HTTP: {error}")))?;
        let mut all_written = telling.tell(&ended.report) && events.is_none_or(|events| events.is_whole());
        replay::say_unused(&ended.report, &notices);
        say_refused(&ended.report.refused, "which no verdict depends on", &notices);
        // A command that failed has said so itself.
        let has_passed = ended.command.as_ref().is_some_and(|end| end.status == Some(0));
        if has_passed && ended.report.calls.is_empty() {
            notices.warn("the command ended and had asked for nothing: nothing was tested here; TAPEDECK_URL and TAPEDECK_RUN tell it where we are");
        }
        if let Some(reals) = reals {
            let lacks = reals.end(ended.command.is_none().then_some(real::TERM), None);
            all_written &= replay::add_lacks(&mut ended.report, &lacks, &mut telling);
        }
        if ended.report.verdict != Verdict::Good {
            notices.warn(replay::in_short(&ended.report));
        }
        Ok((ended.command, status(ended.report.verdict, all_written)))
    }
}

/// So many reasons are told one by one.
const REASONS_TOLD: usize = 5;

/// Says which requests a front refused, and what that is to its user.
pub(super) fn say_refused(refused: &[Refused], so: &str, notices: &Notices) {
    if refused.is_empty() {
        return;
    }
    let count = refused.iter().map(|refused| refused.count).sum();
    let requests = output::counted(count, "request was", "requests were");
    let mut text = format!("{requests} refused, {so}:");
    for Refused { why, count } in refused.iter().take(REASONS_TOLD) {
        let _ = write!(text, "\n  {why}");
        if *count > 1 {
            let _ = write!(text, " ({count} times)");
        }
    }
    if let more @ 1.. = refused.len().saturating_sub(REASONS_TOLD) {
        let _ = write!(text, "\n  and {more} more");
    }
    notices.warn(text);
}
