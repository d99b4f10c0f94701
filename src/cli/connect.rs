//! Options for the way to a server that is reached over HTTP, and for our own side of it.

use std::{env, path::PathBuf, time::Duration};

use clap::Args;
use hyper::header::{CONTENT_ENCODING, HOST, HeaderName, HeaderValue};
use mcp_tapedeck::{
    transport::http::{
        connect::{ConnectOptions, ConnectorError},
        proxies::Proxies,
        tls::{Acceptor, TlsError, Trust},
    },
    wire::http::is_of_connection,
};

use super::{args, failure::Failure, output::Notices, values};

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(30);

/// A server that is reached over HTTP.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "HTTP")]
pub(super) struct ServerArgs {
    /// The server's address, instead of a command
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,

    #[command(flatten)]
    connect: ConnectArgs,

    /// Send this header with every request to the server and record it never; `env:NAME` stands for a variable's value
    #[arg(long, value_name = "NAME: VALUE", requires = "url")]
    header: Vec<String>,
}

impl ServerArgs {
    /// Without a URL all its options are senseless. clap does not say so where a command is given, for `--url` cannot
    /// stand beside one.
    pub(super) fn check(&self) -> Result<(), Failure> {
        match self.needs_url() {
            Some(option) if self.url.is_none() => Err(without_url(option)),
            _ => Ok(()),
        }
    }

    /// The first option given that says how a URL is reached.
    pub(super) fn needs_url(&self) -> Option<&'static str> {
        let ConnectArgs { connect_timeout, connect, ca, insecure_skip_verify, http2 } = &self.connect;
        let given = [
            ("--connect-timeout", connect_timeout.is_some()),
            ("--connect", connect.is_some()),
            ("--ca", !ca.is_empty()),
            ("--insecure-skip-verify", *insecure_skip_verify),
            ("--http2", *http2),
            ("--header", !self.header.is_empty()),
        ];
        given.into_iter().find_map(|(option, is_given)| is_given.then_some(option))
    }

    /// How the server is reached.
    pub(super) fn options(&self, notices: &Notices) -> Result<ConnectOptions, Failure> {
        self.connect.options(notices)
    }

    /// What every request carries.
    pub(super) fn headers(&self) -> Result<Vec<(HeaderName, HeaderValue)>, Failure> {
        self.header.iter().map(|given| header(given, |name| env::var(name).ok())).collect()
    }
}

/// How the server is reached.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "HTTP")]
struct ConnectArgs {
    /// Wait so long for a connection to the server [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = values::duration, requires = "url")]
    connect_timeout: Option<Duration>,

    /// Connect to this address; Host, server name and certificate stay those of the URL
    #[arg(long, value_name = "HOST[:PORT]", requires = "url")]
    connect: Option<String>,

    /// Believe the certificates in this file as well, and what they issued
    #[arg(long, value_name = "FILE", requires = "url")]
    ca: Vec<PathBuf>,

    /// Believe whatever certificate the server shows
    #[arg(long, requires = "url", conflicts_with = "ca")]
    insecure_skip_verify: bool,

    /// Speak HTTP/2 with the server
    #[arg(long, requires = "url")]
    http2: bool,
}

/// What clients are shown.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "HTTP")]
pub(super) struct ServeTlsArgs {
    /// Speak TLS with clients, and show them the certificates in this file
    #[arg(long, value_name = "FILE", requires_all = ["listen", "key"])]
    cert: Option<PathBuf>,

    /// The key to the certificate
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
}

impl ConnectArgs {
    /// What they mean; what is unsafe about them is told.
    fn options(&self, notices: &Notices) -> Result<ConnectOptions, Failure> {
        if self.insecure_skip_verify {
            notices.warn(
                "the server's certificate is not checked: anybody on the way can read and change what passes",
            );
        }
        let ca = self.ca.iter().map(args::absolute).collect::<Result<Vec<_>, _>>()?;
        Ok(ConnectOptions {
            timeout: self.connect_timeout.unwrap_or(CONNECT),
            dial: self.connect.clone(),
            trust: if self.insecure_skip_verify {
                Trust::blind()
            } else {
                Trust::load(&ca).map_err(failure)?
            },
            http2: self.http2,
            proxies: Proxies::read(|name| env::var(name).ok()).map_err(Failure::usage)?,
        })
    }
}

impl ServeTlsArgs {
    /// What ends the TLS of clients, where they are to speak it.
    pub(super) fn acceptor(&self) -> Result<Option<Acceptor>, Failure> {
        let (Some(cert), Some(key)) = (&self.cert, &self.key) else { return Ok(None) };
        Acceptor::load(&args::absolute(cert)?, &args::absolute(key)?).map(Some).map_err(failure)
    }
}

/// An option is given for a server that is reached over HTTP, and none is.
pub(super) fn without_url(option: &str) -> Failure {
    Failure::usage(format_args!("{option} needs `--url`, the address of a server that is reached over HTTP"))
        .hint("give `--url URL` instead of the server's command")
}

/// There is no way to the server, whoever may answer there.
pub(super) fn unreachable(error: ConnectorError) -> Failure {
    match error {
        ConnectorError::Tls(error) => Failure::peer(error),
        error => Failure::usage(error),
    }
}

fn failure(error: TlsError) -> Failure {
    match error {
        TlsError::Read { ref path, ref source } => {
            Failure::unread(path, source, "`--ca`, `--cert` and `--key` name files in PEM form")
        }
        TlsError::Roots(_) => Failure::peer(error),
        error => Failure::file(error),
    }
}

/// Whether a header cannot be given with `--header`.
pub(super) fn is_refused(name: &str) -> bool {
    name.parse::<HeaderName>().map_or(true, |name| name == HOST || is_of_one_connection(&name))
}

fn is_of_one_connection(name: &HeaderName) -> bool {
    is_of_connection(name.as_str()) || matches!(name.as_str(), "expect" | "http2-settings")
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
    if name == HOST {
        return Err(Failure::usage("--header: `Host` is that of --url")
            .hint("give --connect HOST:PORT where the server of that name is reached elsewhere"));
    }
    if is_of_one_connection(&name) {
        return Err(Failure::usage(format_args!(
            "--header: `{name}` says how a message is carried from one end of a connection to the other, which nobody \
             but we can say"
        ))
        .hint("leave it out"));
    }
    if name == CONTENT_ENCODING {
        return Err(Failure::usage(
            "--header: `content-encoding` says how a body is packed, and ours is not",
        )
        .hint("leave it out"));
    }
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
            ("Content-Length: 5", "`content-length` says how a message is carried"),
            ("transfer-encoding: chunked", "`transfer-encoding`"),
            ("Connection: close", "`connection`"),
            ("TE: trailers", "`te`"),
            ("Upgrade: h2c", "`upgrade`"),
            ("Trailer: x", "`trailer`"),
            ("Content-Encoding: gzip", "`content-encoding` says how a body is packed"),
            ("Host: elsewhere.example", "`Host` is that of --url"),
        ] {
            let failure = header(given, variable).unwrap_err().to_string();
            assert!(failure.contains(why), "{failure}");
        }
    }
}
