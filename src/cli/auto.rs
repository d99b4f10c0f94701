//! `tapedeck auto`: replays where there is a cassette, else records one.

use std::{ffi::OsString, path::Path, sync::Arc};

use clap::{Args, ValueEnum};
use mcp_tapedeck::{
    cassette::model::{Exchange, Session as Recorded},
    exit_code::ExitCode,
    record as core,
    store::{self, Loaded, StoreError},
};

use super::{
    args::{CassetteArgs, LogArgs, PlayArgs, TapeArgs},
    connect::ServerArgs,
    failure::Failure,
    front,
    privacy::PrivacyArgs,
    real::OnMiss,
    record, record_bridge, replay,
};

/// Replay the cassette if it exists, else record it
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tapedeck auto session.json -- npx -y @modelcontextprotocol/server-everything
  tapedeck auto session.json --url https://mcp.example/mcp
  tapedeck auto session.json --on-miss record -- python server.py  asks it what the cassette has not
  tapedeck auto session.json --record none -- python server.py     in CI: never start the server")]
pub(super) struct AutoArgs {
    #[command(flatten)]
    cassette: CassetteArgs,

    /// When to record
    #[arg(long, default_value = "once", value_name = "WHEN")]
    record: When,

    #[command(flatten)]
    log: LogArgs,

    /// The server's command
    #[arg(last = true, required_unless_present = "url", conflicts_with = "url", value_name = "CMD")]
    command: Vec<OsString>,

    #[command(flatten)]
    server: ServerArgs,

    #[command(flatten)]
    play: PlayArgs,

    #[command(flatten)]
    tape: TapeArgs,

    #[command(flatten)]
    privacy: PrivacyArgs,
}

/// `--record`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum When {
    /// Where there is no cassette yet, and no journal that a killed recorder left
    Once,
    /// Never: a missing cassette is an error
    None,
    /// Always, as a further recording of the cassette
    New,
    /// Always, in place of the cassette's old recordings
    Replace,
}

/// What is done.
enum Session {
    Record(Box<record::Session>),
    Bridge(Box<record_bridge::Session>),
    Replay(Box<replay::Session>),
}

pub(super) fn run(args: &AutoArgs) -> Result<ExitCode, Failure> {
    match args.prepare() {
        Ok(Session::Record(session)) => session.record(),
        Ok(Session::Bridge(session)) => session.record(),
        Ok(Session::Replay(session)) => session.play(),
        Err(failure) => Ok(front::refuse(&failure)),
    }
}

impl AutoArgs {
    fn prepare(&self) -> Result<Session, Failure> {
        self.server.check()?;
        let notices = self.log.notices()?;
        let cassette = self.cassette.path()?;
        let privacy = self.privacy.sending(&self.server);
        let records = match self.record {
            When::Once => is_new(&cassette)?,
            When::None => false,
            When::New | When::Replace => true,
        };
        let needs_none = !records && self.play.on_miss == OnMiss::Error;
        let privacy = &match privacy {
            // Where only the cassette answers nobody has to have the server's credentials.
            Err(_) if needs_none => self.privacy.clone(),
            privacy => privacy?,
        };
        if !records {
            return replay::Session::prepare(&cassette, &self.play, privacy, notices)
                .and_then(|session| match self.play.on_miss {
                    // What is given is for when there is no cassette.
                    OnMiss::Error => Ok(session),
                    _ => {
                        session.with_real((&self.play, privacy), (&self.command, &self.server), replay::BOTH)
                    }
                })
                .map(|session| Session::Replay(Box::new(session)));
        }
        if self.play.faults.is_given() {
            self.play.faults.check(!record::is_begun(&cassette))?;
            notices.warn(format_args!(
                "this session is recorded into {}, so no fault acts in it; they act once that is replayed, and \
                 `tapedeck record` lets faults act on live traffic",
                cassette.display()
            ));
        }
        let (replace, notices) = (self.record == When::Replace, Arc::new(notices));
        if let Some(url) = &self.server.url {
            let Self { tape, server, .. } = self;
            return record_bridge::Session::prepare(&cassette, replace, tape, privacy, url, server, notices)
                .map(|session| Session::Bridge(Box::new(session)));
        }
        record::Session::prepare(&cassette, replace, &self.tape, privacy, &self.command, notices)
            .map(|session| Session::Record(Box::new(session)))
    }
}

/// Whether there is nothing to be replayed yet: no cassette, and no journal but of recorders that still run, whose
/// recordings lack what they are about to hold.
fn is_new(cassette: &Path) -> Result<bool, Failure> {
    let is_begun = record::is_begun(cassette);
    match store::load(cassette) {
        Err(StoreError::NotFound { .. } | StoreError::Cassette { .. }) if !is_begun => Ok(true),
        loaded => {
            let loaded = loaded?;
            let is_alive = |exchange: &Exchange| loaded.is_alive(exchange.session as usize);
            Ok(!is_begun && loaded.cassette.exchanges.iter().all(is_alive) || is_ours(&loaded))
        }
    }
}

/// Whether all of a cassette comes from the client that started us, just now: its recording goes on. A client may
/// start its server several times, the first time only to see what that can do.
fn is_ours(loaded: &Loaded) -> bool {
    let Ok(header) = store::new_header("stdio") else { return false };
    let (us, sessions) = (header.parent_key(), &loaded.cassette.sessions);
    let is_now = |(number, session): (usize, &Recorded)| {
        loaded.is_alive(number) || core::goes_on(session, header.started_ms)
    };
    let goes_on = sessions.is_empty() || sessions.iter().enumerate().any(is_now);
    us.is_some() && goes_on && sessions.iter().all(|session| session.parent == us)
}
