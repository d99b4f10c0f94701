//! The program under test.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::server::text;

/// Its path.
pub(crate) const TAPEDECK: &str = env!("CARGO_BIN_EXE_tapedeck");

/// The command that records the server that `command` starts.
pub(crate) fn record(cassette: &Path, command: &[String]) -> Vec<String> {
    let mut record: Vec<String> =
        [TAPEDECK, "record", "--keep-journal", "--cassette", &text(cassette), "--"].map(String::from).into();
    record.extend_from_slice(command);
    record
}

/// The command that replays a cassette, with a report in a folder.
pub(crate) fn replay(cassette: &Path, reports: &Path) -> Vec<String> {
    let reports = format!("{}/", reports.display());
    [TAPEDECK, "replay", &text(cassette), "--report", &reports].map(String::from).into()
}

/// Runs the program to its end.
pub(crate) fn tapedeck(arguments: &[&str]) -> Output {
    Command::new(TAPEDECK).args(arguments).output().expect("the program can be started")
}

/// Runs a command to its end with this input.
pub(crate) fn fed(command: &mut Command, input: &str) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
    child.wait_with_output().expect("it ends")
}

/// Asserts that every report in a folder says that all went well.
///
/// # Panics
/// Panics with what `tapedeck verdict` said otherwise.
pub(crate) fn assert_good_verdict(reports: &Path) {
    let output = tapedeck(&["verdict", &text(reports)]);
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "the verdict ended with {}:\n{}{}",
        output.status,
        said(&output.stdout),
        said(&output.stderr)
    );
}

/// Asserts that a cassette has no faults but those that its peers are known for.
///
/// # Panics
/// Panics with what `tapedeck lint` said otherwise.
pub(crate) fn assert_lint(cassette: &Path, known: &[&str]) {
    let cassette = text(cassette);
    let allowed = known.iter().flat_map(|rule| ["--allow", rule]);
    let arguments: Vec<&str> = ["lint", &cassette].into_iter().chain(allowed).collect();
    let output = tapedeck(&arguments);
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
