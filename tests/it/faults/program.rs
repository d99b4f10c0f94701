//! The program with faults: options, statuses, what is said.

use std::{
    fs,
    io::Write as _,
    path::Path,
    process::{Command, Output, Stdio},
};

use super::stage::{CASSETTE, INITIALIZE, SEARCH};
use crate::support::program::TAPEDECK;

/// Replays a cassette to a client that says these lines.
fn replay(cassette: &str, arguments: &[&str], lines: &[&str]) -> (Output, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("c.json"), cassette).expect("it is written");
    fs::write(folder.path().join("plan.json"), PLAN).expect("it is written");
    let mut child = Command::new(TAPEDECK)
        .args(["replay", "c.json", "--report", "report.json"])
        .args(arguments)
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut stdin = child.stdin.take().expect("a pipe");
    for line in lines {
        // A server that has ended reads no more.
        let _ = writeln!(stdin, "{line}");
    }
    drop(stdin);
    (child.wait_with_output().expect("it ends"), folder)
}

const PLAN: &str = r#"{"faults": 1, "scenarios": {
  "busy": [{"name": "the busy one", "when": {"tool": "search"}, "do": "error", "code": -32000, "message": "busy"}],
  "crash": [{"when": {"tool": "search"}, "do": "exit", "status": 3, "partial": "{\"jso"}]}}"#;

fn report(folder: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(folder.join("report.json")).expect("a report")).expect("JSON")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_scenario_of_a_plan_acts_and_is_reported() {
    let (output, folder) =
        replay(CASSETTE, &["--faults", "plan.json", "--scenario", "busy"], &[INITIALIZE, SEARCH]);
    assert!(text(&output.stdout).contains("busy"), "{output:?}");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let report = report(folder.path());
    assert_eq!(report["faults"][0]["rule"], "the busy one");
    assert_eq!(report["faults"][0]["fired"], 1);
}

#[test]
fn a_server_that_ends_by_a_fault_ends_with_its_status_and_last_bytes() {
    let arguments = ["--faults", "plan.json", "--scenario", "crash"];
    let (output, _folder) = replay(CASSETTE, &arguments, &[INITIALIZE, SEARCH, SEARCH]);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    assert!(text(&output.stdout).ends_with("}\n{\"jso"), "{output:?}");
}

#[test]
fn stdout_is_closed_where_a_response_is_cut() {
    let fault = ["--fault", "tools/call search @1: cut_after bytes=10"];
    let (output, _folder) = replay(CASSETTE, &fault, &[INITIALIZE, SEARCH, SEARCH]);
    assert!(text(&output.stdout).ends_with("}\n{\"jsonrpc\""), "{output:?}");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn faults_in_the_cassette_act() {
    let cassette = CASSETTE.replacen(
        r#""exchanges""#,
        r#""faults": {"scenarios": {"busy": [{"when": {"tool": "search"}, "do": "error", "message": "busy"}]}}, "exchanges""#,
        1,
    );
    let named = replay(&cassette, &["--scenario", "busy"], &[INITIALIZE, SEARCH]).0;
    assert!(text(&named.stdout).contains("busy"), "{named:?}");
    let unnamed = replay(&cassette, &[], &[INITIALIZE, SEARCH]).0;
    assert!(text(&unnamed.stdout).contains("first"), "{unnamed:?}");
    let of_exchange = CASSETTE.replacen(
        r#"{"key": "tools/call search @1","#,
        r#"{"key": "tools/call search @1", "fault": {"do": "tool_error", "text": "no"},"#,
        1,
    );
    let output = replay(&of_exchange, &[], &[INITIALIZE, SEARCH]).0;
    assert!(text(&output.stdout).contains("isError"), "{output:?}");
}

#[test]
fn a_fault_that_never_acts_makes_the_run_bad_and_is_named() {
    let (output, folder) =
        replay(CASSETTE, &["--fault", "tools/call search @2: timeout"], &[INITIALIZE, SEARCH]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        text(&output.stderr).contains("the fault `tools/call search @2: timeout` never acted"),
        "{output:?}"
    );
    let verdict = Command::new(TAPEDECK)
        .args(["verdict", "report.json"])
        .current_dir(folder.path())
        .output()
        .expect("it runs");
    assert!(
        text(&verdict.stdout).contains("fault: tools/call search @2: timeout: never acted"),
        "{verdict:?}"
    );
    assert_eq!(verdict.status.code(), Some(1));
}

#[test]
fn mistakes_are_named_with_their_place_and_status() {
    let bad = CASSETTE.replacen(
        r#"{"key": "tools/call search @1","#,
        "\n{\"key\": \"tools/call search @1\", \"fault\": \"tiemout\",",
        1,
    );
    for (cassette, arguments, status, told) in [
        (CASSETTE, &["--fault", "ping"][..], 2, "--fault 'ping': a fault is KEY: FAULT"),
        (
            CASSETTE,
            &["--fault", "tools/call sarch: timeout"],
            2,
            "`tools/call sarch: timeout` fits nothing that was recorded; did you mean the tool `search`?",
        ),
        (CASSETTE, &["--fault", "tools/call search: status status=500"], 2, "`status` cannot exist here"),
        (
            CASSETTE,
            &["--fault", "initialize: wrong_version version=1.0"],
            2,
            "`version` must be a string, found `1.0`; write version=\"1.0\"",
        ),
        (CASSETTE, &["--faults", "plan.json"], 2, "choose one by `--scenario`: busy and crash"),
        (
            CASSETTE,
            &["--faults", "plan.json", "--scenario", "x"],
            2,
            "there is no scenario `x`; there is busy, crash",
        ),
        (CASSETTE, &["--scenario", "x"], 2, "there is no scenario `x`; there is none"),
        (CASSETTE, &["--faults", "none.json"], 3, "none.json: there is no such file"),
        (&bad, &[], 3, "c.json:10:42: no fault is called `tiemout`; did you mean `timeout`?"),
    ] {
        let output = replay(cassette, arguments, &[]).0;
        let said = text(&output.stderr);
        assert!(said.contains(told), "{arguments:?}: {said}");
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {said}");
    }
}

/// People name keys as they like; of several cassettes one has it.
#[test]
fn a_key_without_a_number_is_found_as_that() {
    let named = CASSETTE.replace("\"tools/call search @1\"", "\"search once more\"");
    let fault = ["--fault", "search once more: error message=busy"];
    let (output, folder) = replay(&named, &fault, &[INITIALIZE, SEARCH]);
    assert!(text(&output.stdout).contains("busy"), "{output:?}");
    assert_eq!(report(folder.path())["faults"][0]["keys"], serde_json::json!(["search once more"]));
    let output = replay(CASSETTE, &fault, &[]).0;
    assert!(text(&output.stderr).contains("requests `search` have no name"), "{output:?}");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("a.json"), CASSETTE).expect("it is written");
    fs::write(folder.path().join("b.json"), &named).expect("it is written");
    let run = |fault: &str| {
        let run = ["run", "--server", "a=a.json", "--server", "b=b.json", "--fault", fault, "--", "true"];
        let output = Command::new(TAPEDECK).args(run).current_dir(folder.path()).output().expect("it starts");
        (output.status.code(), text(&output.stderr))
    };
    let (status, said) = run(fault[1]);
    assert!(status == Some(1) && said.contains("never acted"), "{said}");
    let (status, said) = run("search one more: timeout");
    assert!(status == Some(2) && said.contains("did you mean the key `search once more`?"), "{said}");
}
