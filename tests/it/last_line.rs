//! A last line without a line end: it is recorded in both directions, and the server's comes back.

use std::{
    path::Path,
    process::{Command, Output},
};

use crate::support::program::{TAPEDECK, fed};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;

fn run(folder: &Path, words: &[&str], input: &str) -> Output {
    let ended = fed(Command::new(TAPEDECK).args(words).current_dir(folder), input);
    assert!(ended.status.success() && ended.stderr.is_empty(), "{ended:?}");
    ended
}

#[test]
fn a_server_that_speaks_once_more_when_its_input_is_closed_does_so_in_the_replay() {
    let folder = tempfile::tempdir().expect("a folder");
    // It answers the first line at once and says goodbye at the end.
    let answer = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}"#;
    let bye = r#"{"jsonrpc":"2.0","method":"notifications/bye"}"#;
    let script = format!("read line; printf '%s\\n' '{answer}'; cat > /dev/null; printf %s '{bye}'");
    let input = format!("{INITIALIZE}\nlast");
    let live = run(folder.path(), &["record", "c.json", "--", "sh", "-c", &script], &input);
    assert_eq!(String::from_utf8_lossy(&live.stdout), format!("{answer}\n{bye}"));
    let cassette = std::fs::read_to_string(folder.path().join("c.json")).expect("it is there");
    assert!(cassette.contains(r#""client": {"raw": "last"}"#), "{cassette}");
    let escaped = bye.replace('"', "\\\"");
    assert!(cassette.contains(&format!(r#""end": {{"partial": "{escaped}"}}"#)), "{cassette}");
    run(folder.path(), &["fmt", "--check", "c.json"], "");
    assert_eq!(run(folder.path(), &["replay", "c.json", "--strict"], &input).stdout, live.stdout);
    // What a client said of it nobody has to say again, but for `--strict`.
    let without = format!("{INITIALIZE}\n");
    assert_eq!(run(folder.path(), &["replay", "c.json"], &without).stdout, live.stdout);
}

#[test]
fn a_recording_of_nothing_but_last_lines_is_one() {
    let folder = tempfile::tempdir().expect("a folder");
    run(folder.path(), &["record", "c.json", "--", "sh", "-c", "cat > /dev/null; printf bye"], "ping");
    let cassette = std::fs::read_to_string(folder.path().join("c.json")).expect("it is there");
    assert!(cassette.contains(r#""end": {"partial": "bye"}"#), "{cassette}");
    assert!(cassette.contains(r#""client": {"raw": "ping"}"#), "{cassette}");
}

#[test]
fn a_last_request_is_one_in_the_replay_too_and_half_of_one_is_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    let script = format!("read line; printf '%s\\n' '{answer}'; cat > /dev/null");
    let live = run(folder.path(), &["record", "c.json", "--", "sh", "-c", &script], &format!("{ping}\n"));
    assert_eq!(String::from_utf8_lossy(&live.stdout), format!("{answer}\n"));
    assert_eq!(run(folder.path(), &["replay", "c.json", "--strict"], ping).stdout, live.stdout);
    let half = &ping[..ping.len() - 1];
    assert!(run(folder.path(), &["replay", "c.json"], half).stdout.is_empty());
    let joined = |asked: &str, status: u8| {
        let command = format!("printf %s '{asked}' | '{TAPEDECK}' join \"$TAPEDECK_RUN\"");
        let ran = Command::new(TAPEDECK)
            .args(["run", "c.json", "--", "sh", "-c", &command])
            .current_dir(folder.path())
            .output()
            .expect("it starts");
        assert_eq!(ran.status.code(), Some(status.into()), "{ran:?}");
        ran.stdout
    };
    assert_eq!(joined(ping, 0), live.stdout);
    // Nobody recorded that, whether or not its line has an end.
    let other = ping.replace("ping", "tools/list");
    assert!(String::from_utf8_lossy(&joined(&other, 1)).contains("-33000"));
}

const BEGUN: &str = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}"#;

/// A server that answers `initialize`, and says this once its input is closed, without a line end.
fn answers_with(last: &str) -> String {
    format!("read line; printf '%s\\n' '{BEGUN}'; cat > /dev/null; printf %s '{last}'")
}

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
const PONG: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

/// What a client gets that says this, the status, and how often the fault has acted by the report.
fn under(folder: &Path, fault: &str, words: &[&str], input: &str) -> (String, i32, u64) {
    let words = [&words[..1], &["--fault", fault, "--report", "report.json"], &words[1..]];
    let ended = fed(Command::new(TAPEDECK).args(words.concat()).current_dir(folder), input);
    let report = std::fs::read(folder.join("report.json")).expect("it is there");
    let report: serde_json::Value = serde_json::from_slice(&report).expect("JSON");
    let said = String::from_utf8(ended.stdout).expect("text");
    let said = said.strip_prefix(&format!("{BEGUN}\n")).unwrap_or(&said).to_owned();
    (said, ended.status.code().expect("a status"), report["faults"][0]["fired"].as_u64().expect("a number"))
}

#[test]
fn faults_act_on_an_answer_without_a_line_end_and_make_a_line_of_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = answers_with(PONG);
    let malformed = |id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}]\n");
    let asked = format!("{INITIALIZE}\n{PING}\n");
    for front in [&["record", "c.json", "--"][..], &["proxy", "--"]] {
        let words = [front, &["sh", "-c", &server]].concat();
        assert_eq!(
            under(folder.path(), "ping: malformed_json", &words, &asked),
            (malformed(1), 0, 1),
            "{front:?}"
        );
    }
    let again = format!("{INITIALIZE}\n{}\n", PING.replace(":1,", ":7,"));
    assert_eq!(
        under(folder.path(), "ping: malformed_json", &["replay", "c.json"], &again),
        (malformed(7), 0, 1)
    );
    // Without any it is as it was, for the one who asks now.
    let said = run(folder.path(), &["replay", "c.json"], &again).stdout;
    assert_eq!(String::from_utf8_lossy(&said), format!("{BEGUN}\n{}", PONG.replace(":1,", ":7,")));
}

#[test]
fn faults_have_not_acted_on_half_an_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let half = &PONG[..20];
    let server = answers_with(half);
    let asked = format!("{INITIALIZE}\n{PING}\n");
    for front in [&["record", "c.json", "--"][..], &["proxy", "--"]] {
        let words = [front, &["sh", "-c", &server]].concat();
        assert_eq!(
            under(folder.path(), "ping: malformed_json", &words, &asked),
            (half.to_owned(), 1, 0),
            "{front:?}"
        );
    }
    assert_eq!(
        under(folder.path(), "ping: malformed_json", &["replay", "c.json"], &asked),
        (half.to_owned(), 1, 0)
    );
}

#[test]
fn half_an_answer_comes_late_or_is_cut_in_live_traffic_as_in_a_replay() {
    let folder = tempfile::tempdir().expect("a folder");
    let half = &PONG[..30];
    let server = answers_with(half);
    let asked = format!("{INITIALIZE}\n{PING}\n");
    for (fault, said, status, fired) in [
        ("ping: latency ms=5", half, 0, 1),
        ("ping: cut_after bytes=10", &half[..10], 0, 1),
        ("ping: exit status=7", half, 1, 0),
        ("ping: duplicate", half, 1, 0),
    ] {
        for front in [&["record", "c.json", "--"][..], &["proxy", "--"], &["replay", "c.json"]] {
            let server = if front[0] == "replay" { &[][..] } else { &["sh", "-c", &server] };
            let seen = under(folder.path(), fault, &[front, server].concat(), &asked);
            assert_eq!(seen, (said.to_owned(), status, fired), "{fault} {front:?}");
        }
    }
}

#[test]
fn a_replay_ends_as_the_server_did_although_a_fault_has_closed_its_output() {
    let folder = tempfile::tempdir().expect("a folder");
    let asked = format!("{INITIALIZE}\n{PING}\n");
    run(folder.path(), &["record", "c.json", "--", "sh", "-c", &answers_with(PONG)], &asked);
    let cassette = folder.path().join("c.json");
    let recorded = std::fs::read_to_string(&cassette).expect("it is there");
    let by_itself = recorded.replace(r#""end": {"#, r#""end": {"exit": 3, "#);
    assert_ne!(by_itself, recorded);
    std::fs::write(&cassette, by_itself).expect("it is written");
    let whole = format!("{PONG}\n");
    for (fault, said) in
        [("ping: cut_after bytes=10", &PONG[..10]), ("ping: half_close", &whole), ("ping: close_early", "")]
    {
        let seen = under(folder.path(), fault, &["replay", "c.json"], &asked);
        assert_eq!(seen, (said.to_owned(), 3, 1), "{fault}");
    }
}

#[test]
fn a_fault_ends_a_server_whose_output_another_one_has_closed() {
    let folder = tempfile::tempdir().expect("a folder");
    let tools = r#"{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}"#;
    let lines = [BEGUN, PONG, tools].map(|line| format!("read line; printf '%s\\n' '{line}'; "));
    let server = format!("{}cat > /dev/null", lines.concat());
    let list = PING.replace(":1,", ":2,").replace("ping", "tools/list");
    let asked = format!("{INITIALIZE}\n{PING}\n{list}\n");
    for front in [&["record", "c.json", "--"][..], &["proxy", "--"], &["replay", "c.json"]] {
        let words = [&front[..1], &["--fault", "tools/list: exit status=7"], &front[1..]].concat();
        let server = if front[0] == "replay" { &[][..] } else { &["sh", "-c", &server] };
        let seen = under(folder.path(), "ping: half_close", &[&words, server].concat(), &asked);
        assert_eq!(seen, (format!("{PONG}\n"), 7, 1), "{front:?}");
    }
}

#[test]
fn faults_act_on_a_last_request_without_a_line_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = format!("cat > asked; printf '%s\\n' '{PONG}'");
    let (said, status, fired) =
        under(folder.path(), "ping: malformed_json", &["proxy", "--", "sh", "-c", &server], PING);
    assert_eq!((&*said, status, fired), ("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}]\n", 0, 1));
    assert_eq!(std::fs::read_to_string(folder.path().join("asked")).expect("it is there"), PING);
}

#[test]
fn a_fault_that_changes_nothing_leaves_a_last_line_without_an_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = answers_with(PONG);
    let asked = format!("{INITIALIZE}\n{PING}\n");
    for (fault, status) in [("ping: cut_after bytes=9999", 1), ("ping: latency ms=5", 0)] {
        for front in [&["record", "c.json"][..], &["proxy"], &["replay", "c.json"]] {
            let server = ["--", "sh", "-c", &server];
            let server = if front[0] == "replay" { &[][..] } else { &server[..] };
            let words = [front, &["--fault", fault], server].concat();
            let ended = fed(Command::new(TAPEDECK).args(&words).current_dir(folder.path()), &asked);
            assert_eq!(String::from_utf8_lossy(&ended.stdout), format!("{BEGUN}\n{PONG}"), "{words:?}");
            assert_eq!(ended.status.code(), Some(status), "{words:?}");
        }
    }
}
