//! All printing.
//!
//! Stdout belongs to the protocol while recording and replaying; other commands write their results to it. Hosts show
//! any line on stderr as a failed server, so [`Notices`] keeps silent there unless somebody is looking or something
//! is wrong.

use std::{
    borrow::Cow,
    fmt,
    fs::File,
    io::{self, BufWriter, IsTerminal, StdoutLock, Write},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use clap::error::ErrorKind;
use mcp_tapedeck::{exit_code::ExitCode, store};

use super::{failure::Failure, help};

/// Standard output, for a command's result.
pub(super) fn stdout() -> BufWriter<StdoutLock<'static>> {
    BufWriter::new(io::stdout().lock())
}

/// Writes a result and ends.
pub(super) fn print(text: impl fmt::Display) -> Result<(), Failure> {
    let mut out = stdout();
    write!(out, "{text}").and_then(|()| out.flush()).map_err(Failure::output)
}

/// So many of something: `1 request was`, `2 requests were`.
pub(super) fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Writes to stderr; what would act on a terminal is written out. Nothing is left to do where that fails.
pub(super) fn stderr(text: impl fmt::Display) {
    let mut stderr = io::stderr().lock();
    for line in text.to_string().lines() {
        let _ = writeln!(stderr, "{}", visible(line));
    }
}

/// Says on stderr what the reader of a result should know.
pub(super) fn warning(text: impl AsRef<str>) {
    stderr(format_args!("warning: {}", text.as_ref()));
}

/// Says why a command failed. That the reader of a result went away is no failure.
pub(super) fn failure(failure: &Failure) {
    if failure.code != ExitCode::Good {
        stderr(failure);
    }
}

/// Writes what the argument parser has to say: help to stdout, errors to stderr; the exit status.
pub(super) fn arguments(error: &clap::Error) -> ExitCode {
    if error.kind() == ErrorKind::ValueValidation {
        stderr(help::in_words(error).trim_end());
        return ExitCode::Usage;
    }
    let printed = error.print().and_then(|()| io::stdout().flush());
    if error.use_stderr() {
        return ExitCode::Usage;
    }
    match printed.map_err(Failure::output) {
        Ok(()) => ExitCode::Good,
        Err(unwritten) => {
            failure(&unwritten);
            unwritten.code
        }
    }
}

/// What a front has to say beside the protocol: to stderr and to the log.
#[derive(Debug)]
pub(super) struct Notices {
    speaks: bool,
    log: Option<Log>,
}

#[derive(Debug)]
struct Log {
    file: File,
    path: PathBuf,
    has_failed: AtomicBool,
}

impl Notices {
    /// Notices to the file `log`, and to stderr where it is a terminal or `verbose` is set.
    pub(super) fn new(verbose: bool, log: Option<&Path>) -> Result<Self, Failure> {
        let open = |path: &Path| {
            create_parent(path)
                .and_then(|()| match store::open_other(path)? {
                    Some(file) => Ok(file),
                    None => File::options().create(true).append(true).open(path),
                })
                .map(|file| Log { file, path: path.to_owned(), has_failed: AtomicBool::new(false) })
                .map_err(|error| Failure::io("write the log", path, &error))
        };
        Ok(Self { speaks: verbose || io::stderr().is_terminal(), log: log.map(open).transpose()? })
    }

    /// Says that something is as it should be.
    pub(super) fn info(&self, text: impl fmt::Display) {
        self.log("info", &text);
        if self.speaks {
            stderr(format_args!("tapedeck: {text}"));
        }
    }

    /// Says that something is wrong.
    pub(super) fn warn(&self, text: impl fmt::Display) {
        self.log("warning", &text);
        stderr(format_args!("tapedeck: warning: {text}"));
    }

    /// Writes to the log alone, whatever it is on one line. Where it cannot be written, that is said once.
    pub(super) fn log(&self, level: &str, text: &dyn fmt::Display) {
        if let Some(log) = &self.log {
            let now = jiff::Timestamp::now();
            let text = text.to_string();
            let line = format!("{now:.3} {} {level}: {}\n", std::process::id(), visible(&text));
            if let Err(error) = (&log.file).write_all(line.as_bytes())
                && !log.has_failed.swap(true, Ordering::Relaxed)
            {
                let failure = Failure::io("write the log", &log.path, &error);
                stderr(format_args!("tapedeck: warning: {}", failure.one_line()));
            }
        }
    }
}

/// A text from a file of somebody else's: what would act on a terminal instead of being seen is written out.
pub(super) fn visible(text: &str) -> Cow<'_, str> {
    let acts = |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let mut seen = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if acts(c) { seen.extend(c.escape_default()) } else { seen.push(c) }
    }
    Cow::Owned(seen)
}

/// Creates the folder a file is to stand in.
pub(super) fn create_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => std::fs::create_dir_all(parent),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_acts_on_a_terminal() {
        assert_eq!(visible("plain ä 漢"), "plain ä 漢");
        assert_eq!(visible("\u{1b}[2J\u{9b}a\rb"), "\\u{1b}[2J\\u{9b}a\\rb");
        assert_eq!(visible("\u{202e}gpj"), "\\u{202e}gpj");
    }
}
