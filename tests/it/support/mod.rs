//! Starts the program and the peers around it.

pub(crate) mod client;
pub(crate) mod difference;
#[cfg(unix)]
pub(crate) mod front;
#[cfg(unix)]
pub(crate) mod http;
pub(crate) mod install;
pub(crate) mod playback;
pub(crate) mod program;
#[cfg(unix)]
pub(crate) mod run;
pub(crate) mod rust_client;
#[cfg(unix)]
pub(crate) mod rust_server;
pub(crate) mod scene;
pub(crate) mod server;
#[cfg(unix)]
pub(crate) mod tend;
#[cfg(unix)]
pub(crate) mod tls;
pub(crate) mod wire;
