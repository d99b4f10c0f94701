//! The real server behind a replay: how it is reached for what nobody recorded, and what is recorded of that.

use std::{ffi::OsString, io, sync::Arc, time::Duration};

use clap::ValueEnum;
use hyper::header::{HeaderName, HeaderValue};
use mcp_tapedeck::{
    proxy::{
        bridge::{Bridge, BridgeError, BridgeOptions},
        record::{self as proxy, RecordOptions, Sink},
        stop::Stop,
        upstream::{Talk, Upstreams},
    },
    traffic::{Event, Exit},
    transport::{http::connect::ConnectOptions, stdio::Server},
};

use super::{
    connect::{self, ServerArgs},
    failure::Failure,
    output::Notices,
};

/// How long real servers may take to end once a signal has come.
const LAST: Duration = Duration::from_millis(1900);
/// How long they may take without one: longer than the steps of any ending.
const LONGEST: Duration = Duration::from_secs(30);
/// How often it is looked whether a signal has come meanwhile.
const LOOK: Duration = Duration::from_millis(20);

/// `--on-miss`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OnMiss {
    /// It is answered with an error, and the verdict is bad.
    Error,
    /// The real server answers it.
    Upstream,
}

/// How a real server is reached.
enum Way {
    Command(Vec<OsString>),
    Url { url: String, options: Box<ConnectOptions>, headers: Vec<(HeaderName, HeaderValue)> },
}

/// Nothing is recorded.
struct Nothing;

impl Sink for Nothing {
    fn write(&mut self, _: &[Event<'_>]) -> io::Result<()> {
        Ok(())
    }
}

/// Where requests go that nobody recorded, as the options say it; `names` is how a command line gives the real server.
pub(super) fn prepare(
    on_miss: OnMiss,
    command: &[OsString],
    server: &ServerArgs,
    names: &str,
    notices: &Arc<Notices>,
) -> Result<Option<Arc<Upstreams>>, Failure> {
    server.check()?;
    let way = match (&server.url, command) {
        (Some(url), _) => Way::Url {
            url: url.clone(),
            options: Box::new(server.options(notices)?),
            headers: server.headers()?,
        },
        (None, []) => return nothing(on_miss, names),
        (None, command) => Way::Command(command.to_owned()),
    };
    if on_miss == OnMiss::Error {
        return Err(Failure::usage("a real server is given, and nothing goes to it")
            .hint("`--on-miss upstream` has it answer what nobody recorded"));
    }
    if let Way::Url { url, options, .. } = &way {
        // A mistake in it is told now, and not with the first miss.
        Bridge::to(url, (**options).clone()).map_err(refused)?;
    }
    let notices = Arc::clone(notices);
    Ok(Some(Arc::new(Upstreams::new(Arc::new(move |talk| hold(&way, talk, &notices))))))
}

fn nothing(on_miss: OnMiss, names: &str) -> Result<Option<Arc<Upstreams>>, Failure> {
    let word = match on_miss {
        OnMiss::Error => return Ok(None),
        OnMiss::Upstream => "upstream",
    };
    Err(Failure::usage(format_args!("`--on-miss {word}` needs the real server"))
        .hint(format_args!("give {names}")))
}

fn refused(error: BridgeError) -> Failure {
    match error {
        BridgeError::Url(error) => Failure::usage(format_args!("--url: {error}")),
        BridgeError::Connect(error) => connect::unreachable(error),
        error => Failure::peer(error),
    }
}

/// Talks with the real server; why it answers nothing any more.
fn hold(way: &Way, talk: Talk, notices: &Arc<Notices>) -> String {
    let Talk { client, asked, .. } = talk;
    let warner = Arc::clone(notices);
    match way {
        Way::Command(command) => {
            let server = match Server::start(command) {
                Ok(server) => server,
                Err(error) => return error.to_string(),
            };
            let warn = Box::new(move |text: &str| warner.warn(text));
            let options = RecordOptions { asked: Some(asked), warn, ..RecordOptions::default() };
            match proxy::record(server, client, Nothing, options) {
                Ok(ended) => ended_as(ended.exit),
                Err(error) => error.to_string(),
            }
        }
        Way::Url { url, options, headers } => {
            let warn = Box::new(move |text: &str| warner.warn(text));
            let headers = headers.clone();
            let bridged = BridgeOptions { headers, signals: false, warn, ..BridgeOptions::default() };
            let ended = Bridge::to(url, (**options).clone())
                .and_then(|bridge| bridge.record(client, Nothing, bridged));
            match ended {
                Ok(ended) => {
                    ended.unreachable.unwrap_or_else(|| "the session with the real server is over".to_owned())
                }
                Err(error) => error.to_string(),
            }
        }
    }
}

fn ended_as(exit: Exit) -> String {
    match (exit.status, exit.signal) {
        (Some(status), _) => format!("the real server has ended, with status {status}"),
        (None, Some(signal)) => format!("the real server was ended by signal {signal}"),
        (None, None) => "the real server says nothing more".to_owned(),
    }
}

/// Ends all of them in good order, once the front has ended that they were there for: `asked` is the signal that ended
/// it, and `stop` tells of one that comes meanwhile.
pub(super) fn end(upstreams: &Upstreams, asked: Option<i32>, stop: Option<&Stop>) {
    let mut left = LONGEST;
    while asked.is_none() && !left.is_zero() {
        if upstreams.wait(LOOK) {
            return;
        }
        if stop.is_some_and(|stop| stop.signal().is_some()) {
            break;
        }
        left = left.saturating_sub(LOOK);
    }
    upstreams.end(asked.or_else(|| stop?.signal()).unwrap_or(TERM));
    upstreams.wait(LAST);
}

/// SIGTERM.
pub(super) const TERM: i32 = 15;
