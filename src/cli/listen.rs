//! Where clients reach us over HTTP: options that several commands share.

use std::{fmt, io, path::PathBuf, process};

use clap::{Args, ValueEnum};
use mcp_tapedeck::proxy::listen::{Listen, ListenOptions};
use serde::Serialize;

use super::{args, failure::Failure, files, values};

/// Where clients reach us over HTTP, and which ones.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "HTTP")]
pub(super) struct FrontArgs {
    /// Serve clients over HTTP here, instead of one on stdin and stdout; port 0 picks a free one
    #[arg(long, value_name = "HOST:PORT", value_parser = values::address)]
    listen: Option<String>,

    /// Write where tapedeck listens to this file, as soon as it does
    #[arg(long, value_name = "FILE", requires = "listen")]
    ready_file: Option<PathBuf>,

    /// Serve clients that call tapedeck by this name too, where it listens on loopback
    #[arg(long, value_name = "HOST", requires = "listen")]
    pub allow_host: Vec<String>,

    /// Serve web pages of this origin too, where tapedeck listens on loopback
    #[arg(long, value_name = "ORIGIN", requires = "listen")]
    pub allow_origin: Vec<String>,
}

impl FrontArgs {
    /// Where to listen, if that is asked for.
    pub(super) fn address(&self) -> Option<&str> {
        self.listen.as_deref()
    }

    /// That nobody can listen there.
    pub(super) fn refused(&self, error: &io::Error) -> Failure {
        let address = self.listen.as_deref().unwrap_or_default();
        let failure = |what: fmt::Arguments<'_>| Failure::peer(format_args!("--listen {address}: {what}"));
        match error.kind() {
            io::ErrorKind::AddrInUse => failure(format_args!("another program listens there"))
                .hint("end that one, or let port 0 pick a free one"),
            io::ErrorKind::AddrNotAvailable => failure(format_args!("this machine has no such address"))
                .hint("127.0.0.1 is reached from this machine alone, 0.0.0.0 from everywhere"),
            io::ErrorKind::PermissionDenied => failure(format_args!("the system does not allow it"))
                .hint("ports from 1024 on are for everybody"),
            _ => failure(format_args!("cannot listen there: {error}"))
                .hint("an address is HOST:PORT, such as 127.0.0.1:8123; port 0 picks a free one"),
        }
    }

    /// Writes the ready file.
    pub(super) fn tell(&self, url: &str, origin: &str) -> Result<(), Failure> {
        let Some(path) = &self.ready_file else { return Ok(()) };
        let path = args::absolute(path)?;
        let ready = Ready { url, origin, pid: process::id() };
        files::replace(&path, &ready).map_err(|error| Failure::io("write", &path, &error))
    }
}

/// How a cassette is served over HTTP.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "HTTP")]
pub(super) struct ListenArgs {
    #[command(flatten)]
    front: FrontArgs,

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
    pub(super) fn is_given(&self) -> bool {
        self.front.address().is_some()
    }

    pub(super) fn bind(&self) -> Result<Listen, Failure> {
        Listen::bind(self.front.address().unwrap_or_default()).map_err(|error| self.front.refused(&error))
    }

    /// Writes the ready file.
    pub(super) fn tell(&self, origin: &str, endpoint: &str) -> Result<(), Failure> {
        self.front.tell(&format!("{origin}{endpoint}"), origin)
    }

    pub(super) fn options(&self) -> ListenOptions {
        ListenOptions {
            max_message: self.max_message,
            allow_hosts: self.front.allow_host.clone(),
            allow_origins: self.front.allow_origin.clone(),
            cors: self.cors,
        }
    }
}
