//! Record and replay MCP (Model Context Protocol) traffic: real sessions become deterministic regression tests.
//!
//! The program `tapedeck` is built on this library. What it documents is for programs that want the same without a
//! process between: [`Cassette`] (the file and what stands in it), [`Recorder`] (what was seen on the wire becomes
//! a cassette), [`Replayer`] (a cassette in place of a server) and [`Report`] (what a replay has to say). None of
//! them owns a socket, a file or a clock.
//!
//! ```
//! use std::sync::Arc;
//! use mcp_tapedeck::{Cassette, Replayer, cassette::blob::NoBlobs, replay::{Input, Options, Output}, traffic::Lane};
//!
//! let text = r#"{"cassette": 1, "sessions": [{"session": 1, "recording": 1, "transport": "stdio"}], "exchanges": [
//!   {"key": "ping @1", "client": {"request": {"method": "ping"}}, "server": [{"result": {"pong": true}}]}]}"#;
//! let cassette = Cassette::load(text.into(), &NoBlobs)?;
//! let mut replayer = Replayer::new(Arc::new(cassette), Arc::new(NoBlobs), "ping.json", Options::default())?;
//!
//! let line = br#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#;
//! replayer.handle(0, Input::Message { lane: Lane(0), bytes: line });
//! let Some(Output::Send { bytes, .. }) = replayer.poll(0) else { panic!("no answer") };
//! assert_eq!(bytes, br#"{"jsonrpc":"2.0","id":"a","result":{"pong":true}}"#);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Architecture
//!
//! ```text
//! record   client <-> transport <-> proxy::record <-> transport <-> server     bytes pass as they come
//!                                       | Event (a copy)
//!                                       v
//!                            redact -> journal (store); at the end: journal -> record (fold) -> cassette -> store
//! live     client <-> proxy::live (fault::live) <-> pipes <-> proxy::record, which may record nothing
//! replay   client <-> proxy::replay <-> replay (what to send, and when) <- cassette
//!                                      | requests that nobody recorded, where that is asked for
//!                                      v
//!                              proxy::upstream <-> server
//! run      clients <-> proxy::listen <-> replay, one for each server and take; a client on stdio by proxy::join
//!          whoever tends it <-> proxy::listen::admin
//! ```
//!
//! From the bottom, each may use what stands above it in this list and nothing below:
//!
//! - [`wire`]: bytes and messages; a tolerant scanner that yields places, never values
//! - [`traffic`]: what happened, as events; the one vocabulary all else speaks
//! - [`cassette`]: the JSON file people read, and the journal recorders write
//! - [`redact`]: what must not reach a disk; [`edit`]: changes to a cassette that keep every line they do not address
//! - [`lint`]: what a session does that the protocol does not allow; [`report`]: what is told of a replay
//! - [`fault`]: what goes wrong on purpose, in replays and in live traffic
//! - [`record`]: events become exchanges; [`replay`]: exchanges become answers
//! - [`transport`], [`store`]: pipes and files; [`proxy`]: the only place that waits and reads the clock
//! - the binary's `cli`: one file for each command, all printing in one
//!
//! What is deliberately absent: a typed model of MCP's messages, a list of its methods (but for what SDKs ask by
//! themselves), a parsed tree of any payload, recursion over input, time inside the core. A message that nobody
//! foresaw is recorded and replayed like any other.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

mod ahead;
pub mod cassette;
#[doc(hidden)]
pub mod edit;
pub mod exit_code;
pub mod fault;
#[doc(hidden)]
pub mod lint;
pub mod proxy;
pub mod record;
pub mod redact;
pub mod replay;
pub mod report;
pub mod store;
pub mod traffic;
pub mod transport;
pub mod wire;

pub use cassette::model::Cassette;
pub use record::Recorder;
pub use replay::Replayer;
pub use report::Report;
