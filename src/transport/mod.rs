//! The wires themselves: descriptors and processes, and nothing of what travels on them.
//!
//! - [`http`]: sockets, heads, origins, and who may talk to a front of ours
//! - [`stdio`]: the pipes of a server that is a child process, and of the client that started us

pub mod http;
#[cfg(unix)]
pub mod stdio;
