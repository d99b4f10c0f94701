//! The command line from outside: exit statuses, sentences, files.

use std::{
    ffi::OsStr,
    process::{Command, Output, Stdio},
};

use mcp_tapedeck::exit_code::ExitCode;
use tempfile::TempDir;

/// One run of the program in a folder of its own.
struct Deck {
    folder: TempDir,
}

impl Deck {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    /// Runs `tapedeck` with these words; its input is at its end.
    fn run(&self, words: &str) -> Ran {
        self.run_words(words.split_whitespace())
    }

    fn run_words(&self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Ran {
        let output = Command::new(env!("CARGO_BIN_EXE_tapedeck"))
            .args(words)
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .output()
            .expect("tapedeck starts");
        Ran::of(output)
    }
}

/// What a run left behind.
#[derive(Debug)]
struct Ran {
    status: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Ran {
    fn of(output: Output) -> Self {
        Self {
            status: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    #[track_caller]
    fn status(self, expected: ExitCode) -> Self {
        assert_eq!(self.status, Some(expected.code().into()), "{self:#?}");
        self
    }

    #[track_caller]
    fn stdout(self, part: &str) -> Self {
        assert!(self.stdout.contains(part), "expected {part:?} on stdout of {self:#?}");
        self
    }

    #[track_caller]
    fn stderr(self, part: &str) -> Self {
        assert!(self.stderr.contains(part), "expected {part:?} on stderr of {self:#?}");
        self
    }

    #[track_caller]
    fn silent(self) -> Self {
        assert_eq!(self.stderr, "", "{self:#?}");
        self
    }
}

#[test]
fn help_lists_groups_and_exit_statuses() {
    let ran = Deck::new().run("help").status(ExitCode::Good).silent();
    for code in ExitCode::ALL {
        assert!(ran.stdout.contains(&format!("{}  {}", code.code(), code.meaning())), "{ran:#?}");
    }
    ran.stdout("Service:").stdout("Example:");
}

#[test]
fn nothing_and_nonsense_are_usage_errors() {
    Deck::new().run("").status(ExitCode::Usage).stderr("Usage:");
    Deck::new().run("complete").status(ExitCode::Usage).stderr("completions");
    Deck::new().run("completions tcsh").status(ExitCode::Usage).stderr("possible values");
}

#[test]
fn completions_know_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        Deck::new()
            .run(&format!("completions {shell}"))
            .status(ExitCode::Good)
            .stdout("completions")
            .silent();
    }
}

#[test]
fn a_reader_that_went_away_is_no_failure() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = Command::new(env!("CARGO_BIN_EXE_tapedeck"));
    let output = command.args(["completions", "bash"]).stdin(Stdio::null()).stdout(writer).output();
    Ran::of(output.expect("tapedeck starts")).status(ExitCode::Good).silent();
}
