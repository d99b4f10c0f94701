//! `tapedeck record --url`: stands between clients and a server that is reached over HTTP.

use std::sync::Arc;

use clap::Args;
use mcp_tapedeck::{
    exit_code::ExitCode,
    proxy::reverse::{ListenError, Reverse, ReverseEnded, ReverseOptions},
    report::Report,
    store::FoldOptions,
};

use super::{
    connect::{self, ServeTlsArgs, ServerArgs},
    failure::Failure,
    listen::{FrontArgs, Ready, say_refused},
    live::{Acting, told},
    output::Notices,
    privacy::Cleaner,
    ready_file::ReadyFile,
    record::{self, RecordArgs},
    tape::{Lacks, Tape},
};

/// A server that is reached over HTTP, and where clients reach us.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "HTTP")]
pub(super) struct UrlArgs {
    #[command(flatten)]
    pub server: ServerArgs,

    #[command(flatten)]
    pub front: FrontArgs,

    #[command(flatten)]
    tls: ServeTlsArgs,
}

impl UrlArgs {
    /// Nothing of it makes sense for a server that is started by its command.
    pub(super) fn check(&self) -> Result<(), Failure> {
        let listen = self.front.address().map(|_| "--listen");
        if self.server.url.is_none()
            && let Some(option) = listen.or(self.server.needs_url())
        {
            return Err(connect::without_url(option));
        }
        Ok(())
    }

    /// Listens for clients of the server at `url`.
    pub(super) fn open(&self, url: &str, listen: &str, notices: &Notices) -> Result<Reverse, Failure> {
        let front = Reverse::listen(url, listen).map_err(|error| match error {
            ListenError::Url(error) => Failure::usage(format_args!("--url: {error}")),
            ListenError::Listen(error) => self.front.refused(&error),
            error => Failure::peer(error),
        })?;
        let front = front.reaching(self.server.options(notices)?).map_err(connect::unreachable)?;
        Ok(match self.tls.acceptor()? {
            Some(acceptor) => front.with_tls(acceptor),
            None => front,
        })
    }

    /// Tells where the front listens. Whoever waits for that may end us at once, so from then on it heeds signals.
    pub(super) fn tell(&self, front: Reverse) -> Result<(Reverse, ReadyFile), Failure> {
        let front = front.heeding_signals().map_err(Failure::peer)?;
        let ready = self.front.tell(&Ready::of(&front.url(), &front.origin()))?;
        Ok((front, ready))
    }
}

pub(super) fn run(url: &str, listen: &str, args: &RecordArgs) -> Result<ExitCode, Failure> {
    let notices = Arc::new(args.log.notices()?);
    let cassette = record::file_of(&args.cassette.path()?);
    record::check(&cassette, &notices)?;
    let privacy = args.privacy.sending(&args.url.server)?;
    let acting = args.live.prepare(cassette.display().to_string(), true, &privacy, &notices)?;
    let privacy = privacy.compile()?;
    let headers = args.url.server.headers()?;
    let front = args.url.open(url, listen, &notices)?;
    let tape = Tape::begin(&cassette, "http", args.replace, &privacy, args.tape.require_recording)?;
    let (url, clients) = (privacy.address(url), privacy.address(&front.url()));
    let cleaner = Cleaner::new(privacy);
    let (front, _ready) = args.url.tell(front)?;
    notices.info(format_args!("recording {url} into {}; clients use {clients}", cassette.display()));
    let (faults, files) = acting.map(Acting::over_http).unzip();
    let warner = Arc::clone(&notices);
    let options = ReverseOptions {
        max_message: args.tape.max_message,
        require_recording: args.tape.require_recording,
        allow_hosts: args.url.front.allow_host.clone(),
        allow_origins: args.url.front.allow_origin.clone(),
        headers,
        hide: Box::new(cleaner.clone()),
        faults,
        warn: Box::new(move |text| warner.warn(text)),
        ..ReverseOptions::default()
    };
    let ended = front.record(tape, options).map_err(|error| {
        let (failure, report) = (Failure::file(error), Report::open(&cassette.display().to_string()));
        told(Some(&report), Some(&failure.one_line()), files.as_ref(), &Lacks::default(), &notices);
        failure
    });
    let ReverseEnded { asked, missed, unreachable, refused, report: last, sink } = ended?;
    say_refused(&refused, "which no recording has", &notices);
    let mut lacks = Lacks::of_required(args.tape.require_recording);
    lacks.tell_of_end("these sessions", missed, &cleaner, &notices);
    let fold = FoldOptions { keep_journals: args.tape.keep_journal, ..FoldOptions::default() };
    sink.end(&cassette, fold, asked.map(|(_, at)| at), &cleaner, &notices, &mut lacks);
    let own = told(last.as_ref(), unreachable.as_deref(), files.as_ref(), &lacks, &notices);
    match unreachable {
        Some(why) => Err(Failure::peer(why)),
        None => Ok(own),
    }
}
