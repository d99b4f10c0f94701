//! Record and replay MCP (Model Context Protocol) traffic.
#![cfg_attr(not(test), warn(clippy::unwrap_used))]

pub mod cassette;
pub mod exit_code;
pub mod proxy;
pub mod record;
pub mod redact;
pub mod replay;
pub mod report;
pub mod store;
pub mod traffic;
pub mod transport;
pub mod wire;
