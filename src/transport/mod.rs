//! The wires themselves: descriptors and processes, and nothing of what travels on them.
//!
//! - [`stdio`]: the pipes of a server that is a child process, and of the client that started us

#[cfg(unix)]
pub mod stdio;
