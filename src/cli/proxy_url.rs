//! `tapedeck proxy --url`: stands before a server that is reached over HTTP, records nothing, and lets faults act.

use std::sync::Arc;

use mcp_tapedeck::{
    exit_code::ExitCode,
    proxy::{
        bridge::{BridgeEnded, BridgeOptions},
        reverse::{ReverseEnded, ReverseOptions},
    },
};

use super::{
    failure::Failure,
    front,
    listen::say_refused,
    live::{Acting, Outcome, told},
    output::Notices,
    proxy::{Nothing, ProxyArgs},
    record::{self, Begun},
    record_bridge,
    tape::Lacks,
};

/// Serves clients over HTTP.
pub(super) fn run(url: &str, listen: &str, args: &ProxyArgs) -> Result<ExitCode, Failure> {
    let (acting, notices) = prepare(url, true, args)?;
    let headers = args.url.server.headers()?;
    let (front, _ready) = args.url.tell(args.url.open(url, listen, &notices)?)?;
    let privacy = args.privacy.sending(&args.url.server)?.compile()?;
    let (url, clients) = (privacy.address(url), privacy.address(&front.url()));
    notices.info(format_args!("passing {url} on; clients use {clients}"));
    let (faults, files) = acting.map(Acting::over_http).unzip();
    let warner = Arc::clone(&notices);
    let options = ReverseOptions {
        max_message: args.max_message,
        allow_hosts: args.url.front.allow_host.clone(),
        allow_origins: args.url.front.allow_origin.clone(),
        headers,
        faults,
        warn: Box::new(move |text| warner.warn(text)),
        ..ReverseOptions::default()
    };
    let ended = front.pass(options).map_err(Failure::peer)?;
    let ReverseEnded { unreachable, refused, report: last, .. } = ended;
    say_refused(&refused, "and went no further", &notices);
    let own = told(last.as_ref(), unreachable.as_deref(), files.as_ref(), &Lacks::default(), &notices);
    match unreachable {
        Some(why) => Err(Failure::peer(why)),
        None => Ok(own),
    }
}

/// Serves a client on stdio.
pub(super) fn bridge(url: &str, args: &ProxyArgs) -> Result<ExitCode, Failure> {
    let prepared = prepare(url, false, args).and_then(|(acting, notices)| {
        let bridge = record_bridge::open(url, &args.url.server, &notices)?;
        Ok((acting, notices, bridge, args.url.server.headers()?))
    });
    let (acting, notices, bridge, headers) = match prepared {
        Ok(prepared) => prepared,
        Err(failure) => {
            args.live.refused(&failure);
            return Ok(front::refuse(&failure));
        }
    };
    let client = front::take_client(&notices)?;
    let max_message = args.max_message;
    // Without its client a bridge ends by itself.
    let Begun { running, client, .. } = record::begin(acting, client, max_message, None, &notices)?;
    let options = BridgeOptions {
        max_message,
        require_recording: false,
        headers,
        signals: true,
        ends: None,
        hide: Box::new(()),
        warn: Box::new(|_| ()),
    };
    let BridgeEnded { asked, gone, unreachable, .. } =
        bridge.record(client, Nothing, options).map_err(Failure::peer)?;
    let own =
        Outcome::of(running, asked.is_some(), unreachable.as_deref(), gone, &Lacks::default(), &notices)?;
    match unreachable {
        Some(why) => Err(Failure::peer(why)),
        None => Ok(own.code),
    }
}

fn prepare(url: &str, is_http: bool, args: &ProxyArgs) -> Result<(Option<Acting>, Arc<Notices>), Failure> {
    let notices = Arc::new(args.log.notices()?);
    // A query may hold a secret.
    let name = url.split(['?', '#']).next().unwrap_or_default().to_owned();
    let privacy = args.privacy.sending(&args.url.server)?;
    let acting = args.live.prepare(name, is_http, &privacy, &notices)?;
    Ok((acting, notices))
}
