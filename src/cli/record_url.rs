//! `tapedeck record --url`: stands between clients and a server that is reached over HTTP.

use std::{path::PathBuf, process, sync::Arc};

use clap::Args;
use mcp_tapedeck::{
    exit_code::ExitCode,
    proxy::reverse::{ListenError, Reverse, ReverseEnded, ReverseOptions},
    store::FoldOptions,
};
use serde::Serialize;

use super::{
    args,
    connect::{self, ServeTlsArgs, ServerArgs},
    failure::Failure,
    files,
    privacy::Cleaner,
    record::{self, RecordArgs, Tape},
};

/// A server that is reached over HTTP, and where clients reach us.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "HTTP")]
pub(super) struct UrlArgs {
    #[command(flatten)]
    pub server: ServerArgs,

    /// Where clients reach tapedeck, with the server's paths; port 0 picks a free one. Without it, on stdin and stdout
    #[arg(long, value_name = "HOST:PORT", requires = "url")]
    pub listen: Option<String>,

    /// Write where tapedeck listens to this file, as soon as it does
    #[arg(long, value_name = "FILE", requires = "listen")]
    ready_file: Option<PathBuf>,

    #[command(flatten)]
    tls: ServeTlsArgs,

    /// Serve clients that call tapedeck by this name too, where it listens on loopback
    #[arg(long, value_name = "HOST", requires = "listen")]
    allow_host: Vec<String>,

    /// Serve web pages of this origin too, where tapedeck listens on loopback
    #[arg(long, value_name = "ORIGIN", requires = "listen")]
    allow_origin: Vec<String>,
}

/// Where a front listens, as a program that started it reads it.
#[derive(Serialize)]
struct Ready<'a> {
    url: &'a str,
    origin: &'a str,
    pid: u32,
}

pub(super) fn run(url: &str, listen: &str, args: &RecordArgs) -> Result<ExitCode, Failure> {
    let notices = args.log.notices()?;
    let cassette = record::file_of(&args.cassette.path()?);
    record::check(&cassette, &notices)?;
    let privacy = args.privacy.compile()?;
    let headers = args.url.server.headers()?;
    let front = Reverse::listen(url, listen).map_err(|error| match error {
        ListenError::Url(error) => Failure::usage(format_args!("--url: {error}")),
        error => Failure::peer(format_args!("--listen {listen}: {error}")),
    })?;
    let front = front.reaching(args.url.server.options(&notices)?).map_err(connect::unreachable)?;
    let front = match args.url.tls.acceptor()? {
        Some(acceptor) => front.with_tls(acceptor),
        None => front,
    };
    let tape = Tape::begin(&cassette, "http", args.replace, &privacy, args.tape.require_recording)?;
    let cleaner = Cleaner::new(privacy);
    if let Some(path) = &args.url.ready_file {
        write_ready(path, &front)?;
    }
    notices.info(format_args!("recording {url} into {}; clients use {}", cassette.display(), front.url()));
    let notices = Arc::new(notices);
    let warner = Arc::clone(&notices);
    let options = ReverseOptions {
        max_message: args.tape.max_message,
        require_recording: args.tape.require_recording,
        allow_hosts: args.url.allow_host.clone(),
        allow_origins: args.url.allow_origin.clone(),
        headers,
        hide: Box::new(cleaner.clone()),
        warn: Box::new(move |text| warner.warn(text)),
        ..ReverseOptions::default()
    };
    let ReverseEnded { asked, missed, sink } = front.record(tape, options).map_err(Failure::file)?;
    if missed > 0 {
        notices.warn(format_args!("{missed} messages were not recorded"));
    }
    cleaner.told().iter().for_each(|replaced| notices.info(replaced));
    let fold = FoldOptions { keep_journals: args.tape.keep_journal, ..FoldOptions::default() };
    sink.end(&cassette, fold, asked.map(|(_, at)| at), &cleaner, &notices);
    Ok(ExitCode::Good)
}

fn write_ready(path: &std::path::Path, front: &Reverse) -> Result<(), Failure> {
    let path = args::absolute(path)?;
    let ready = Ready { url: &front.url(), origin: &front.origin(), pid: process::id() };
    files::replace(&path, &ready).map_err(|error| Failure::io("write", &path, &error))
}
