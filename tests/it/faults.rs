//! Faults: what clients see of them, and what the report tells.

mod acting;
mod events;
mod stage;
