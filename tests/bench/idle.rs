//! What a plan costs whose rules never act, in instructions: those are the same in every run.

use std::{
    fmt::Write as _,
    fs::File,
    path::Path,
    process::{Command, Stdio},
};

use crate::{
    Options, folder,
    measure::{Goal, Unit, report_one},
    tapedeck,
};

const TOOLS: usize = 100;
const REQUESTS: usize = 10_000;
const GOAL: f64 = 1.02;

/// Two rules that name a tool each, and something in its arguments that is never so.
const PLAN: &str = r#"{"faults": 1, "rules": [
  {"when": {"tool": "t5", "where": {"/params/arguments/n": 77}}, "do": "timeout", "optional": true},
  {"when": {"tool": "t6", "where": {"/params/arguments/n": 77}}, "do": "drop", "optional": true}]}"#;

const HANDSHAKE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
"#;

fn cassette() -> String {
    let mut text = String::from(
        r#"{"cassette": 1, "sessions": [{"session": 1, "recording": 1, "transport": "stdio", "protocol": "2025-11-25"}], "exchanges": [
{"key": "initialize @1", "client": {"request": {"method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}}}},
  "server": [{"result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}}]}"#,
    );
    let shown = "x".repeat(60);
    for n in 0..TOOLS {
        let _ = write!(
            text,
            r#",
{{"key": "tools/call t{n} @1", "client": {{"request": {{"method": "tools/call", "params": {{"name": "t{n}", "arguments": {{"n": {n}}}}}}}}},
  "server": [{{"result": {{"content": [{{"type": "text", "text": "{shown}"}}]}}}}]}}"#
        );
    }
    text + "]}\n"
}

fn requests(count: usize) -> String {
    let mut text = HANDSHAKE.to_owned();
    for id in 1..=count {
        let n = (id - 1) % TOOLS;
        let _ = writeln!(
            text,
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t{n}","arguments":{{"n":{n}}}}}}}"#
        );
    }
    text
}

/// The instructions of a replay in this folder, from its start to its end.
fn instructions(folder: &Path, input: &str, options: &[&str]) -> f64 {
    let program = tapedeck();
    let (input, counts) = (folder.join(input), folder.join("counts"));
    let status = Command::new("valgrind")
        .args(["--quiet", "--tool=callgrind", "--callgrind-out-file=counts"])
        .arg(program.get_program())
        .args(["replay", "cassette.json"])
        .args(options)
        .current_dir(folder)
        .stdin(File::open(input).expect("it was written"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let counts = fs_err::read_to_string(counts).unwrap_or_else(|error| panic!("{status:?}: {error}"));
    let sum: f64 = counts
        .lines()
        .filter_map(|line| line.strip_prefix("summary: ").or_else(|| line.strip_prefix("totals: ")))
        .find_map(|sum| sum.trim().parse().ok())
        .unwrap_or_else(|| panic!("callgrind has counted nothing: {status:?}"));
    sum
}

pub(crate) fn plan(_: &Options) {
    if Command::new("valgrind").arg("--version").stdout(Stdio::null()).status().is_err() {
        println!("  SKIPPED: valgrind is not installed (apt-get install valgrind)");
        return;
    }
    let folder = folder();
    let write = |name: &str, text: &str| {
        fs_err::write(folder.path().join(name), text).expect("the target folder can be written");
    };
    write("cassette.json", &cassette());
    write("plan.json", PLAN);
    write("none.jsonl", &requests(0));
    write("all.jsonl", &requests(REQUESTS));
    let a_request = |options: &[&str]| {
        let [none, all] =
            ["none.jsonl", "all.jsonl"].map(|input| instructions(folder.path(), input, options));
        (all - none) / REQUESTS as f64
    };
    let (without, with) = (a_request(&[]), a_request(&["--faults", "plan.json"]));
    report_one("instructions a request, no plan", without, Unit::PIECES, Goal::None);
    report_one("instructions a request, a plan whose rules never act", with, Unit::PIECES, Goal::None);
    report_one("with the plan / without", with / without, Unit::TIMES, Goal::AtMost(GOAL));
}

/// What is replayed is a cassette and a plan.
pub(crate) fn self_check() {
    use mcp_tapedeck::{Cassette, cassette::blob::NoBlobs, fault::Plans};
    let cassette = Cassette::load(cassette().into(), &NoBlobs).expect("it loads");
    assert_eq!(cassette.exchanges.len(), TOOLS + 1);
    assert!(Plans::read(PLAN.as_bytes()).is_ok());
    assert_eq!(requests(REQUESTS).lines().count(), REQUESTS + 2);
}
