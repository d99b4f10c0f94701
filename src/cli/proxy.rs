//! `tapedeck proxy`: stands between a client and its server, records nothing, and lets faults act.

use std::{ffi::OsString, io, sync::Arc};

use clap::Args;
use mcp_tapedeck::{
    exit_code::ExitCode,
    proxy::{
        record::{Ended, RecordOptions, Sink, record},
        shutdown::Signals,
    },
    traffic::Event,
    transport::stdio::Server,
};

use super::{
    args::LogArgs,
    failure::Failure,
    front,
    live::{Acting, LiveArgs, Outcome},
    output::Notices,
    privacy::PrivacyArgs,
    proxy_url,
    record::{Begun, begin, end_as},
    record_url::UrlArgs,
    tape::Lacks,
    values,
};

/// Let faults act on live traffic, recording nothing
#[derive(Args, Debug)]
#[command(
    after_help = "Put it in front of the server's command in the client's configuration; the client talks to it as to the server.

Examples:
  tapedeck proxy --fault 'tools/call echo @2: error' -- npx -y @modelcontextprotocol/server-everything
  tapedeck proxy --faults plan.json --scenario flaky --report reports/ -- python server.py
  tapedeck proxy --url http://127.0.0.1:9000/mcp --listen 127.0.0.1:9001 --fault 'tools/call: status status=429 nth=1'

In a client's configuration:
  {\"command\": \"tapedeck\", \"args\": [\"proxy\", \"--fault\", \"*: latency ms=200\", \"--\", \"npx\", \"-y\", \"some-server\"]}

A rule that never acted makes it end with status 1, unless the server ended with another one than 0."
)]
pub(super) struct ProxyArgs {
    /// The server's command
    #[arg(last = true, required_unless_present_any = ["url", "listen"], conflicts_with = "url", value_name = "CMD")]
    command: Vec<OsString>,

    #[command(flatten)]
    pub(super) log: LogArgs,

    #[command(flatten)]
    pub(super) url: UrlArgs,

    #[command(flatten)]
    pub(super) live: LiveArgs,

    /// Let larger messages pass without looking at them
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = values::size)]
    pub(super) max_message: usize,

    #[command(flatten)]
    pub(super) privacy: PrivacyArgs,
}

pub(super) fn run(args: &ProxyArgs) -> Result<ExitCode, Failure> {
    match (&args.url.server.url, args.url.front.address()) {
        (Some(url), Some(listen)) => {
            return proxy_url::run(url, listen, args).inspect_err(|failure| args.live.refused(failure));
        }
        (Some(url), None) => return proxy_url::bridge(url, args),
        // Nobody waits on stdin.
        (None, Some(_)) => args.url.check()?,
        (None, None) => {}
    }
    match Session::prepare(args) {
        Ok(session) => session.pass(),
        Err(failure) => {
            args.live.refused(&failure);
            Ok(front::refuse(&failure))
        }
    }
}

/// A session that is ready for its client; its server has been started.
struct Session {
    server: Server,
    signals: Signals,
    acting: Option<Acting>,
    max_message: usize,
    notices: Arc<Notices>,
}

impl Session {
    fn prepare(args: &ProxyArgs) -> Result<Self, Failure> {
        args.url.check()?;
        let notices = Arc::new(args.log.notices()?);
        // Arguments may be secrets.
        let name = args.command.first().map(|program| program.to_string_lossy().into_owned());
        let acting = args.live.prepare(name.unwrap_or_default(), false, &args.privacy, &notices)?;
        let signals = Signals::install()
            .map_err(|error| Failure::peer(format_args!("cannot handle signals: {error}")))?;
        let server = Server::start(&args.command).map_err(Failure::peer)?;
        Ok(Self { server, signals, acting, max_message: args.max_message, notices })
    }

    /// Passes everything between client and server until their session is over; ends as the server did.
    fn pass(self) -> Result<ExitCode, Failure> {
        let Self { server, signals, acting, max_message, notices } = self;
        let client = front::take_client(&notices)?;
        let Begun { running, client, signals, ends } =
            begin(acting, client, max_message, Some(signals), &notices)?;
        let options = RecordOptions { max_message, signals, ends, ..RecordOptions::default() };
        let Ended { exit, asked, gone, .. } =
            record(server, client, Nothing, options).map_err(Failure::peer)?;
        let own = Outcome::of(running, asked.is_some(), None, gone, &Lacks::default(), &notices)?;
        end_as(exit, asked.map(|(signal, _)| signal), &own)
    }
}

/// Keeps nothing.
pub(super) struct Nothing;

impl Sink for Nothing {
    fn write(&mut self, _: &[Event<'_>]) -> io::Result<()> {
        Ok(())
    }
}
