//! `tapedeck record --url`: stands between clients and a server that is reached over HTTP.

use std::{env, path::PathBuf, process, sync::Arc};

use clap::Args;
use hyper::header::{HeaderName, HeaderValue};
use mcp_tapedeck::{
    exit_code::ExitCode,
    proxy::reverse::{ListenError, Reverse, ReverseEnded, ReverseOptions},
    store::FoldOptions,
    transport::http::connect::ConnectorError,
};
use serde::Serialize;

use super::{
    args,
    connect::{ConnectArgs, ServeTlsArgs},
    failure::Failure,
    files,
    privacy::Cleaner,
    record::{self, RecordArgs, Tape},
};

/// A server that is reached over HTTP, and where clients reach us.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "HTTP")]
pub(super) struct UrlArgs {
    /// The server's address, instead of a command
    #[arg(long, value_name = "URL", requires = "listen")]
    pub url: Option<String>,

    /// Where clients reach tapedeck, with the server's paths; port 0 picks a free one
    #[arg(long, value_name = "HOST:PORT", requires = "url")]
    listen: Option<String>,

    /// Write where tapedeck listens to this file, as soon as it does
    #[arg(long, value_name = "FILE", requires = "listen")]
    ready_file: Option<PathBuf>,

    #[command(flatten)]
    connect: ConnectArgs,

    #[command(flatten)]
    tls: ServeTlsArgs,

    /// Send this header with every request to the server and record it never; `env:NAME` stands for a variable's value
    #[arg(long, value_name = "NAME: VALUE", requires = "listen")]
    header: Vec<String>,

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

pub(super) fn run(url: &str, args: &RecordArgs) -> Result<ExitCode, Failure> {
    let notices = args.log.notices()?;
    let cassette = record::file_of(&args.cassette.path()?);
    record::check(&cassette, &notices)?;
    let privacy = args.privacy.compile()?;
    let headers = args.url.header.iter().map(|given| header(given, |name| env::var(name).ok()));
    let headers = headers.collect::<Result<Vec<_>, _>>()?;
    let listen = args.url.listen.as_deref().unwrap_or_default();
    let front = Reverse::listen(url, listen).map_err(|error| match error {
        ListenError::Url(error) => Failure::usage(format_args!("--url: {error}")),
        error => Failure::peer(format_args!("--listen {listen}: {error}")),
    })?;
    let front = front.reaching(args.url.connect.options(&notices)?).map_err(unreachable)?;
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
        signals: true,
        hide: Box::new(cleaner.clone()),
        warn: Box::new(move |text| warner.warn(text)),
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

/// There is no way to the server, whoever may answer there.
fn unreachable(error: ConnectorError) -> Failure {
    match error {
        ConnectorError::Tls(error) => Failure::peer(error),
        error => Failure::usage(error),
    }
}

fn write_ready(path: &std::path::Path, front: &Reverse) -> Result<(), Failure> {
    let path = args::absolute(path)?;
    let ready = Ready { url: &front.url(), origin: &front.origin(), pid: process::id() };
    files::replace(&path, &ready).map_err(|error| Failure::io("write", &path, &error))
}

/// Reads `--header`. Its value is not told in errors, for it may be a secret.
fn header(
    given: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<(HeaderName, HeaderValue), Failure> {
    let wrong = |why: &str| {
        Err(Failure::usage(format_args!("--header: {why}"))
            .hint("it looks like 'Authorization: Bearer env:TOKEN'"))
    };
    let Some((name, value)) = given.split_once(':') else { return wrong("there is no `:` behind the name") };
    let Ok(name) = name.trim().parse::<HeaderName>() else { return wrong("that is no header's name") };
    let mut words = Vec::new();
    for word in value.trim().split(' ') {
        words.push(match word.strip_prefix("env:") {
            None => word.to_owned(),
            Some(variable_name) => match variable(variable_name) {
                Some(value) => value,
                None => return wrong(&format!("the environment has no variable `{variable_name}`")),
            },
        });
    }
    match HeaderValue::from_str(&words.join(" ")) {
        Ok(value) => Ok((name, value)),
        Err(_) => wrong("a value has no line ends and nothing else that cannot be seen"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_takes_its_secret_from_the_environment() {
        let variable = |name: &str| (name == "TOKEN").then(|| "a b".to_owned());
        let (name, value) = header("Authorization:  Bearer env:TOKEN", variable).unwrap();
        assert_eq!((name.as_str(), value.to_str().unwrap()), ("authorization", "Bearer a b"));
        for (given, why) in [
            ("Authorization", "no `:`"),
            ("a b: c", "no header's name"),
            ("a: env:NONE", "no variable `NONE`"),
            ("a: b\nc", "no line ends"),
        ] {
            let failure = header(given, variable).unwrap_err().to_string();
            assert!(failure.contains(why), "{failure}");
        }
    }
}
