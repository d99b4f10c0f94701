//! Faults: what clients see of them, and what the report tells.

mod acting;
#[cfg(unix)]
mod chance;
mod events;
mod freeze;
#[cfg(unix)]
mod read_back;
mod stage;
