//! All printing.

use std::{
    fmt,
    io::{self, BufWriter, StdoutLock, Write},
};

use super::failure::Failure;

/// Standard output, for a command's result.
pub(super) fn stdout() -> BufWriter<StdoutLock<'static>> {
    BufWriter::new(io::stdout().lock())
}

/// Writes a result and ends.
pub(super) fn print(text: impl fmt::Display) -> Result<(), Failure> {
    let mut out = stdout();
    write!(out, "{text}").and_then(|()| out.flush()).map_err(Failure::output)
}

/// Writes a line to stderr. Nothing is left to do where that fails.
pub(super) fn stderr(text: impl fmt::Display) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}
