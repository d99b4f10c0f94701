//! Options for the way to a server that is reached over HTTP, and for our own side of it.

use std::{env, path::PathBuf, time::Duration};

use clap::Args;
use mcp_tapedeck::transport::http::{
    connect::ConnectOptions,
    proxies::Proxies,
    tls::{Acceptor, TlsError, Trust},
};

use super::{args, failure::Failure, output::Notices, values};

/// How the server is reached.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "HTTP")]
pub(super) struct ConnectArgs {
    /// Wait so long for a connection to the server
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = values::duration)]
    connect_timeout: Duration,

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
    pub(super) fn options(&self, notices: &Notices) -> Result<ConnectOptions, Failure> {
        if self.insecure_skip_verify {
            notices.warn(
                "the server's certificate is not checked: anybody on the way can read and change what passes",
            );
        }
        let ca = self.ca.iter().map(args::absolute).collect::<Result<Vec<_>, _>>()?;
        Ok(ConnectOptions {
            timeout: self.connect_timeout,
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

fn failure(error: TlsError) -> Failure {
    match error {
        TlsError::Roots(_) => Failure::peer(error),
        error => Failure::file(error),
    }
}
