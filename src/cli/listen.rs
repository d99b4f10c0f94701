//! Where clients reach us over HTTP: options that several commands share.

use std::{path::PathBuf, process};

use clap::{Args, ValueEnum};
use mcp_tapedeck::proxy::listen::{Listen, ListenOptions};
use serde::Serialize;

use super::{args, failure::Failure, files, values};

/// How clients are served over HTTP.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "HTTP")]
pub(super) struct ListenArgs {
    /// Serve clients over HTTP here, instead of one on stdin and stdout; port 0 picks a free one
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,

    /// Write where tapedeck listens to this file, as soon as it does
    #[arg(long, value_name = "FILE", requires = "listen")]
    ready_file: Option<PathBuf>,

    /// Serve clients that call tapedeck by this name too, where it listens on loopback
    #[arg(long, value_name = "HOST", requires = "listen")]
    allow_host: Vec<String>,

    /// Serve web pages of this origin too, where tapedeck listens on loopback
    #[arg(long, value_name = "ORIGIN", requires = "listen")]
    allow_origin: Vec<String>,

    /// Let web pages read what is answered
    #[arg(long, requires = "listen")]
    cors: bool,

    /// Refuse requests with larger bodies
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = values::size, requires = "listen")]
    max_message: usize,
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
struct Ready<'a> {
    url: &'a str,
    origin: &'a str,
    pid: u32,
}

impl ListenArgs {
    pub(super) const fn is_given(&self) -> bool {
        self.listen.is_some()
    }

    pub(super) fn bind(&self) -> Result<Listen, Failure> {
        let address = self.listen.as_deref().unwrap_or_default();
        Listen::bind(address).map_err(|error| {
            Failure::peer(format_args!("--listen {address}: cannot listen: {error}"))
                .hint("an address is HOST:PORT, such as 127.0.0.1:8123; port 0 picks a free one")
        })
    }

    /// Writes the ready file.
    pub(super) fn tell(&self, origin: &str, endpoint: &str) -> Result<(), Failure> {
        let Some(path) = &self.ready_file else { return Ok(()) };
        let path = args::absolute(path)?;
        let ready = Ready { url: &format!("{origin}{endpoint}"), origin, pid: process::id() };
        files::replace(&path, &ready).map_err(|error| Failure::io("write", &path, &error))
    }

    pub(super) fn options(&self) -> ListenOptions {
        ListenOptions {
            max_message: self.max_message,
            allow_hosts: self.allow_host.clone(),
            allow_origins: self.allow_origin.clone(),
            cors: self.cors,
            happened: None,
        }
    }
}
