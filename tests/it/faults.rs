//! Faults: what clients see of them, and what the report tells.

mod acting;
mod documents;
mod errors;
mod program;
mod stage;
#[cfg(unix)]
mod stories;
