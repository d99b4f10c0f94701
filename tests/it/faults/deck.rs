//! A cassette with faults, replayed by the program itself.

use std::{fs, path::PathBuf};

use tempfile::TempDir;

use super::stage::CASSETTE;
use crate::support::program::TAPEDECK;

/// Where the report is, in the folder.
pub(super) const REPORT: &str = "report.json";
/// Where the recording of live traffic is, in the folder.
pub(super) const RECORDED: &str = "recorded.json";
/// The answer to the first search, with the id of [`super::stage::SEARCH`].
pub(super) const FIRST: &str =
    r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"first"}]}}"#;
/// The answer to the second search.
pub(super) const SECOND: &str =
    r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"second"}]}}"#;
/// The first thing that is said because of [`super::stage::REPORT`].
pub(super) const PROGRESS: &str =
    r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1}}"#;

/// A folder with the cassette in it, and the arguments that replay it with a fault.
pub(super) fn deck(fault: &str) -> (TempDir, Vec<String>) {
    deck_of(CASSETTE, fault)
}

/// The same of another cassette.
pub(super) fn deck_of(cassette: &str, fault: &str) -> (TempDir, Vec<String>) {
    let folder = tempfile::tempdir().expect("a folder");
    let path: PathBuf = folder.path().join("c.json");
    fs::write(&path, cassette).expect("it is written");
    let path = path.to_str().expect("text");
    let report = folder.path().join(REPORT);
    let report = report.to_str().expect("text");
    let arguments = ["replay", path, "--report", report, "--fault", fault].map(str::to_owned);
    (folder, arguments.into())
}

/// A folder with the cassette in it, and the arguments that let a fault act on live traffic with a server that replays
/// it; what is recorded goes to [`RECORDED`].
pub(super) fn live(command: &str, fault: &str) -> (TempDir, Vec<String>) {
    let (folder, replay) = deck(fault);
    let cassette = &replay[1];
    let mut arguments = vec![command.to_owned()];
    if command == "record" {
        arguments.push(folder.path().join(RECORDED).to_str().expect("text").to_owned());
    }
    arguments.extend_from_slice(&replay[2..]);
    arguments.extend(["--", TAPEDECK, "replay", cassette].map(str::to_owned));
    (folder, arguments)
}

/// The first answer as `invalid_utf8` has it.
pub(super) fn no_text() -> Vec<u8> {
    let (text, rest) = FIRST.as_bytes().split_at(FIRST.rfind('"').expect("a string"));
    [text, b"\xff", rest].concat()
}

/// The fault on the first search.
pub(super) fn on_first(fault: &str) -> String {
    format!("tools/call search @1: {fault}")
}
