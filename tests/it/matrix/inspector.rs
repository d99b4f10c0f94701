//! The Inspector's command line: a process for each call. It swallows the `--` before a server's command, and ends the
//! server that does not end by itself.

use std::process::Command;

use serde_json::Value;

use super::cassette::Cassette;
use crate::support::difference::assert_same;
use crate::support::install::node;
use crate::support::program::{assert_good_verdict, assert_lint, record, replay};
use crate::support::scene::Scene;
use crate::support::server::{self, Server};
use crate::support::wire::assert_rebuilds;

#[test]
fn everything() {
    check(server::everything(), &["tools/list"]);
    check(server::everything(), &["tools/call", "--tool-name", "echo", "--tool-arg", "message=zwei Wörter"]);
}

#[test]
fn filesystem() {
    check(server::filesystem(), &["tools/call", "--tool-name", "list_allowed_directories"]);
}

#[test]
fn fast() {
    check(server::fast(), &["resources/read", "--uri", "data://config"]);
}

/// Calls a method directly, recorded, replayed, and with the replay recorded.
fn check(server: Server, method: &[&str]) {
    let scene = Scene::new();
    let (Some(node), Some(command)) = (node(), server.command(&scene)) else { return };
    let run = |command: &[String]| -> Value {
        scene.reset();
        let inspector = node.join("node_modules/.bin/mcp-inspector");
        let output = Command::new(inspector)
            .arg("--cli")
            .args(command)
            .arg("--method")
            .args(method)
            .output()
            .expect("the Inspector can be started");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{command:?}: the Inspector ended with {}:\n{stderr}",
            output.status
        );
        serde_json::from_slice(&output.stdout).expect("the Inspector prints JSON")
    };
    let direct = run(&command);
    let (tape, again, reports) = (scene.path("tape.json"), scene.path("again.json"), scene.path("reports"));
    assert_same("the result, recorded", &direct, &run(&record(&tape, &command)));
    assert_rebuilds(&tape);
    assert_lint(&tape, &[]);
    assert_same("the result, replayed", &direct, &run(&replay(&tape, &reports)));
    assert_good_verdict(&reports);
    assert_same(
        "the result, replayed and recorded",
        &direct,
        &run(&record(&again, &replay(&tape, &reports))),
    );
    Cassette::read(&tape).assert_same(&Cassette::read(&again));
}
