//! What is redacted where: in journals that are kept, and not where a cassette says that it is not.

use std::{net::TcpStream, path::Path, process::Command};

use serde_json::Value;

use crate::support::{
    front::Front,
    http::Peer,
    program::{TAPEDECK, fed},
    server::text,
};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const SECRET: &str = "hunter2-A1b2c3";

fn call(id: u32, arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"measure","arguments":{{{arguments}}}}}}}"#
    )
}

/// A call that shows the secret.
fn shows() -> String {
    call(2, &format!(r#""city":"a","password":"{SECRET}""#))
}

/// Runs it in a folder, and says these lines; its status.
fn run(folder: &Path, words: &[&str], calls: &[String]) -> Option<i32> {
    let lines: Vec<&str> =
        [INITIALIZE, INITIALIZED].into_iter().chain(calls.iter().map(|call| &**call)).collect();
    let ended = fed(Command::new(TAPEDECK).args(words).current_dir(folder), &(lines.join("\n") + "\n"));
    ended.status.code()
}

fn record(folder: &Path, words: &[&str], calls: &[String]) {
    let words = [&["record"], words, &["--", TAPEDECK, "demo-server"]].concat();
    assert_eq!(run(folder, &words, calls), Some(0), "{words:?}");
}

fn misses(report: &Path) -> usize {
    let report: Value = serde_json::from_slice(&std::fs::read(report).expect("a report")).expect("JSON");
    report["misses"].as_array().expect("a list").len()
}

#[test]
fn a_journal_that_is_kept_has_no_secret_that_was_met_late() {
    let folder = tempfile::tempdir().expect("a folder");
    let says = call(1, &format!(r#""city":"it is {SECRET}""#));
    record(folder.path(), &["c.json", "--keep-journal"], &[says, shows()]);
    let files: Vec<_> = std::fs::read_dir(folder.path())
        .expect("a folder")
        .map(|file| file.expect("a file").path())
        .collect();
    assert_eq!(files.len(), 2, "{files:?}");
    for file in files {
        let text = String::from_utf8_lossy(&std::fs::read(&file).expect("it is there")).into_owned();
        assert!(!text.contains(SECRET) && text.contains("it is <redacted:password-1>"), "{file:?}: {text}");
    }
}

#[test]
fn the_last_report_has_no_secret_that_was_met_only_after_its_miss() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    record(folder, &["c.json"], &[shows()]);
    let says = call(1, &format!(r#""city":"it is {SECRET}""#));
    let words = ["replay", "c.json", "--report", "r.json"];
    let lines = [INITIALIZE, INITIALIZED, &says, &shows()].join("\n") + "\n";
    let ended = fed(Command::new(TAPEDECK).args(words).current_dir(folder), &lines);
    assert_eq!((ended.status.code(), misses(&folder.join("r.json"))), (Some(1), 1), "{ended:?}");
    let report = std::fs::read_to_string(folder.join("r.json")).expect("text");
    for told in [report, String::from_utf8_lossy(&ended.stderr).into_owned()] {
        assert!(!told.contains(SECRET), "{told}");
        assert!(told.contains("it is <redacted:password-1>"), "{told}");
    }
}

#[test]
fn what_says_that_it_is_not_redacted_is_replayed_so_unless_an_option_says_otherwise() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    record(folder, &["c.json", "--redact", "off"], &[shows()]);
    // Where it is redacted, any secret will do.
    let another = shows().replace(SECRET, "another-A1b2c3");
    for (options, status) in [
        (&[][..], 1),
        (&["--redact", "off"], 1),
        (&["--redact", "on"], 0),
        (&["--keep", "/params/arguments/password"], 1),
        (&["--redact", "/params/arguments/city"], 0),
    ] {
        let words = [&["replay", "c.json", "--report", "r.json"], options].concat();
        assert_eq!(run(folder, &words, &[shows()]), Some(0), "{options:?}");
        assert_eq!(run(folder, &words, std::slice::from_ref(&another)), Some(status), "{options:?}");
        assert_eq!(misses(&folder.join("r.json")), status as usize, "{options:?}");
    }
    // What is added is redacted none the less, of what the cassette shows as well.
    let other = [call(1, &format!(r#""city":"b","password":"another-A1b2c3","say":"{SECRET}""#))];
    let words = ["replay", "c.json", "--on-miss", "record", "--", TAPEDECK, "demo-server"];
    assert_eq!(run(folder, &words, &other), Some(0));
    let text = std::fs::read_to_string(folder.join("c.json")).expect("text");
    assert_eq!(text.matches(SECRET).count(), 1, "{text}");
    assert!(
        text.contains("<redacted:password-2>")
            && text.contains("<redacted:password-1>")
            && !text.contains("another-A1b2c3"),
        "{text}"
    );
    assert_eq!(run(folder, &["replay", "c.json"], &[shows(), other[0].clone()]), Some(0));
}

#[test]
fn what_reads_as_a_placeholder_is_not_taken_for_a_secret() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    // Met late, so that the journal is cleaned at the end.
    let says = |id: u32, text: &str| call(id, &format!(r#""city":"it is {text}""#));
    let calls = [says(1, SECRET), shows(), says(3, "<redacted:password-1>"), says(4, SECRET)];
    record(folder, &["c.json"], &calls);
    let text = std::fs::read_to_string(folder.join("c.json")).expect("text");
    assert!(!text.contains(SECRET), "{text}");
    for (placeholder, count) in [("it is <redacted:password-1>", 2), ("it is <redacted:password-2>", 1)] {
        let said = text.matches(&format!(r#""city": "{placeholder}""#)).count();
        assert_eq!(said, count, "{placeholder} in {text}");
    }
    assert_eq!(run(folder, &["replay", "c.json", "--strict"], &calls), Some(0));
}

/// Says it to a server, in a session if there is one; the session, and what it is answered.
fn post(front: &Front, path: &str, session: Option<&str>, body: &str) -> (String, String) {
    let host = &front.origin["http://".len()..];
    let mut peer = Peer::new(TcpStream::connect(host).expect("it listens"));
    let session = session.map(|session| format!("Mcp-Session-Id: {session}\r\n")).unwrap_or_default();
    peer.say(format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{session}Accept: application/json, \
         text/event-stream\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    ));
    let head = peer.head().to_ascii_lowercase();
    let named = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
    (named.unwrap_or_default().to_owned(), peer.rest().0)
}

#[test]
fn of_several_cassettes_each_is_replayed_by_what_it_says() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| text(&folder.path().join(name));
    record(folder.path(), &["open.json", "--redact", "off"], &[shows()]);
    record(folder.path(), &["hidden.json"], &[shows()]);
    let (open, hidden, report) = (path("open.json"), path("hidden.json"), path("r.json"));
    let front = Front::start(&["replay", &open, &hidden, "--report", &report], folder.path());
    let talk = |server: &str, call: &str| {
        let path = format!("/{server}/mcp");
        let (session, _) = post(&front, &path, None, INITIALIZE);
        post(&front, &path, Some(&session), INITIALIZED);
        post(&front, &path, Some(&session), call).1
    };
    assert!(talk("open", &shows()).contains(r#""result""#));
    // Here any other secret is as good.
    let other = shows().replace(SECRET, "another-A1b2c3");
    assert!(talk("hidden", &other).contains(r#""result""#));
    assert!(talk("open", &other).contains(r#""error""#));
    front.end_with(1);
    assert_eq!(misses(&folder.path().join("r.json")), 1);
}
