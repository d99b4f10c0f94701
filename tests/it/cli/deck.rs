//! The harness: one run of the program in a folder of its own.

use std::{
    ffi::OsStr,
    fs,
    io::Write,
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
};

use mcp_tapedeck::exit_code::ExitCode;
use tempfile::TempDir;

/// A folder in which the program is run.
pub(super) struct Deck {
    folder: TempDir,
}

impl Deck {
    pub(super) fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    /// With this file in it.
    pub(super) fn with(self, name: &str, text: impl AsRef<[u8]>) -> Self {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("it lies in a folder")).expect("the folder is made");
        fs::write(path, text).expect("the file is written");
        self
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The names in the folder, in order.
    pub(super) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).expect("the folder is there");
        let mut names: Vec<_> = entries
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// Runs `tapedeck` with these words; its input is at its end.
    pub(super) fn run(&self, words: &str) -> Ran {
        self.run_words(words.split_whitespace(), "")
    }

    /// Runs `tapedeck` with these words and this on its input.
    pub(super) fn talk(&self, words: &str, input: &str) -> Ran {
        self.run_words(words.split_whitespace(), input)
    }

    /// The same with a shell between: a start of its own, as far as recordings go.
    pub(super) fn talk_apart(&self, words: &str, input: &str) -> Ran {
        let line = format!("{} {words}; exit $?", env!("CARGO_BIN_EXE_tapedeck"));
        self.start(Command::new("sh").args(["-c", &line]), input)
    }

    pub(super) fn run_words(&self, words: impl IntoIterator<Item = impl AsRef<OsStr>>, input: &str) -> Ran {
        self.start(Command::new(env!("CARGO_BIN_EXE_tapedeck")).args(words), input)
    }

    /// Starts `tapedeck` with these words, to be talked to while it runs.
    pub(super) fn spawn(&self, words: &str) -> Child {
        self.spawn_words(words.split_whitespace())
    }

    pub(super) fn spawn_words(&self, words: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Child {
        self.begin(Command::new(env!("CARGO_BIN_EXE_tapedeck")).args(words))
    }

    pub(super) fn begin(&self, command: &mut Command) -> Child {
        command.current_dir(self.folder.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("it starts")
    }

    pub(super) fn start(&self, command: &mut Command, input: &str) -> Ran {
        let mut child = self.begin(command);
        let mut stdin = child.stdin.take().expect("a pipe was asked for");
        // A program that does not read its input may be gone already.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        Ran::of(&child.wait_with_output().expect("tapedeck ends"))
    }
}

/// What a run left behind.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) code: Option<i32>,
    pub(super) signal: Option<i32>,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl Ran {
    pub(super) fn of(output: &Output) -> Self {
        use std::os::unix::process::ExitStatusExt;
        Self {
            code: output.status.code(),
            signal: output.status.signal(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    #[track_caller]
    pub(super) fn status(self, expected: ExitCode) -> Self {
        assert_eq!(self.code, Some(expected.code().into()), "{self:#?}");
        self
    }

    #[track_caller]
    pub(super) fn stdout(self, part: &str) -> Self {
        assert!(self.stdout.contains(part), "expected {part:?} on stdout of {self:#?}");
        self
    }

    #[track_caller]
    pub(super) fn stderr(self, part: &str) -> Self {
        assert!(self.stderr.contains(part), "expected {part:?} on stderr of {self:#?}");
        self
    }

    #[track_caller]
    pub(super) fn silent(self) -> Self {
        assert_eq!(self.stderr, "", "{self:#?}");
        self
    }
}
