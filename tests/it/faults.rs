//! Faults: what clients see of them, and what the report tells.

mod acting;
#[cfg(unix)]
mod chance;
mod documents;
mod errors;
mod events;
mod freeze;
mod program;
#[cfg(unix)]
mod read_back;
mod stage;
#[cfg(unix)]
mod stories;
