//! A test whose peer cannot be had says so, loudly; where peers are required it fails.

use std::process::{Command, Output};

/// Runs a test of this binary on a machine without npm and Python.
fn without_peers(required: &str) -> Output {
    Command::new(std::env::current_exe().expect("this binary has a path"))
        .args(["--exact", "matrix::rust::memory"])
        .env("PATH", "")
        .env("TAPEDECK_REQUIRE_PEERS", required)
        .output()
        .expect("this binary can be started")
}

#[test]
fn a_missing_peer_is_named() {
    let output = without_peers("");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("SKIPPED: matrix::rust::memory: npm cannot be started"), "{said}");
    assert!(output.status.success(), "{said}");
}

#[test]
fn a_missing_peer_is_a_failure_where_peers_are_required() {
    let output = without_peers("1");
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
