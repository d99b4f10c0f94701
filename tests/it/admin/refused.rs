//! What a run does not do for whoever tends it, or says so.

use std::process::Command;

use serde_json::json;

use super::{CASSETTE, Stand};
use crate::support::{program::TAPEDECK, tend::Asked};

#[test]
fn names_and_pages_from_elsewhere_are_refused() {
    let stand = Stand::new(&["c.json"]);
    for (header, expected) in [
        ("Host: evil.example", "does not answer to the host `evil.example`"),
        ("Origin: https://evil.example", "does not serve pages of `https://evil.example`"),
    ] {
        let asked = Asked::send(&stand.tend.origin, "GET", "/takes", &[header], "");
        let (status, answer) = stand.tend.told("GET", "/takes", asked);
        assert_eq!(status, 403);
        assert!(answer["error"].as_str().expect("a sentence").contains(expected), "{answer}");
    }
    let local = Asked::send(&stand.tend.origin, "GET", "/takes", &["Host: 127.0.0.1:1"], "");
    assert_eq!(stand.tend.told("GET", "/takes", local).0, 200);
}

/// The front is open to the network here, and so to pages of it; the run is not tended from there.
#[test]
fn a_front_that_anybody_reaches_is_tended_from_its_machine_alone() {
    let stand = Stand::new(&["c.json", "--listen", "0.0.0.0:0"]);
    let asked = Asked::send(&stand.tend.origin, "GET", "/takes", &["Host: evil.example"], "");
    assert_eq!(stand.tend.told("GET", "/takes", asked).0, 403);
}

#[test]
fn what_cannot_be_understood_is_refused_with_what_can() {
    let stand = Stand::new(&["c.json"]);
    for (method, target, body, status, sentence) in [
        ("GET", "/", "", 404, "there is no `/`; there are GET /takes,"),
        ("GET", "/clock/advance", "", 405, "`/clock/advance` takes POST, not GET"),
        ("GET", "/events?from=1", "", 400, "no filter is called `from`; there are server, method, key,"),
        ("GET", "/events?server=a", "", 400, "this run has no server `a`; it has c"),
        ("GET", "/takes?server=a", "", 400, "has no parameter `server`"),
        ("POST", "/reset", "{", 400, "the body is wrong: EOF"),
        (
            "POST",
            "/reset",
            r#"{"takes": 1}"#,
            400,
            "unknown field `takes`, expected one of `what`, `server`, `take`",
        ),
        ("POST", "/reset", r#"{"what": "x"}"#, 400, "expected one of `all`, `faults`, `played`"),
        ("POST", "/plan/scenario", r#"{"name": "a"}"#, 400, "missing field `on`"),
        (
            "POST",
            "/plan/scenario",
            r#"{"name": "a", "on": true}"#,
            404,
            "there is no scenario `a`; there is none",
        ),
        ("POST", "/clock/advance", r#"{"ms": -1}"#, 400, "invalid value: integer `-1`"),
        ("POST", "/clock/advance", r#"{"ms": 1}"#, 409, "`--clock manual`"),
        ("POST", "/takes/end", r#"{"take": "a"}"#, 404, "there is no take `a`"),
        ("POST", "/takes/end", r#"{"server": "a"}"#, 404, "this run has no server `a`; it has c"),
    ] {
        let (found, answer) = stand.tend.ask(method, target, body);
        let told = answer["error"].as_str().expect("a sentence");
        assert!(found == status && told.contains(sentence), "{method} {target} {body}: {found} {told}");
    }
    let allowed = Asked::send(&stand.tend.origin, "DELETE", "/takes", &[], "").answer().1;
    assert!(allowed.contains("allow: GET"), "{allowed}");
}

#[test]
fn a_body_that_is_too_long_is_refused() {
    let stand = Stand::new(&["c.json"]);
    let body = json!({"take": "a".repeat(64 << 10)}).to_string();
    let (status, answer) = stand.tend.ask("POST", "/reset", &body);
    assert_eq!((status, &answer["error"]), (413, &json!("the body has more than 65536 bytes")));
    let just = json!({"take": "a".repeat(60 << 10)}).to_string();
    assert_eq!(stand.tend.ask("POST", "/reset", &just).0, 404);
}

#[test]
fn a_replay_that_cannot_be_tended_says_what_to_do() {
    let folder = tempfile::tempdir().expect("a folder");
    let cassette = folder.path().join("c.json");
    std::fs::write(&cassette, CASSETTE).expect("it is written");
    for (arguments, expected) in [
        (&["replay", "c.json", "--admin", "127.0.0.1:0"][..], "`tapedeck join`"),
        (&["replay", "c.json", "--clock", "manual"], "`tapedeck join`"),
        (&["run", "c.json", "--clock", "manual", "--", "true"], "add `--admin 127.0.0.1:0`"),
        (&["replay", "c.json", "--listen", "127.0.0.1:0", "--clock", "manual"], "add `--admin 127.0.0.1:0`"),
        (&["run", "c.json", "--admin", "0.0.0.0:0", "--", "true"], "give an address of loopback"),
        (&["run", "c.json", "--admin", "here", "--", "true"], "expected HOST:PORT"),
    ] {
        let output = Command::new(TAPEDECK)
            .args(arguments)
            .current_dir(folder.path())
            .stdin(std::process::Stdio::null())
            .output()
            .expect("the program can be started");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(expected), "{arguments:?}: {said}");
    }
}
