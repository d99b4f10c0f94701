//! `tapedeck demo`: a recording, its replay and a miss, with nothing but this program.

pub(super) mod server;
