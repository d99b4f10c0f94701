//! The suite as a server: of the client itself, and of a client whose traffic is recorded.

use std::path::Path;

use serde_json::Value;

use super::{KNOWN, checks, suite::Suite};
use crate::support::{
    client::refresh,
    difference::assert_same,
    install,
    program::{TAPEDECK, assert_lint},
    scene::Scene,
    server::text,
};

/// A scenario whose server accepts only what was meant for its own URL: a client that reaches it by another one asks for
/// a token that is good there, and must not get in (RFC 8707, F8). The check that then fails, and what it says.
const ONLY_DIRECT: (&str, &str, &str) =
    ("auth/cross-app-access-complete-flow", "complete-flow-jwt-bearer", "does not match MCP server resource");

/// How long a client may take, in milliseconds; far more than it needs, for a machine that does other things as well.
const TIMEOUT: &str = "120000";

/// Runs these scenarios twice each.
pub(super) fn check(scenarios: &[&str]) {
    let (Some(suite), Some(node)) = (Suite::new(), install::node()) else { return };
    // Imports are looked up from the folder a script lies in.
    let script = node.join("conformance-client.mjs");
    refresh(&install::sources().join("clients/conformance.mjs"), &script);
    let script = text(&script);
    for scenario in scenarios {
        let scene = Scene::new();
        let run = |name: &str, recorder: &[&str]| {
            // The suite has a shell read the command.
            let words = [&["node", &*script], recorder].concat();
            let command: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
            let (checks, said) = suite.run(
                "client",
                scenario,
                &["--timeout", TIMEOUT, "--command", &command.join(" ")],
                &scene.path(name),
            );
            let is_whole = !said.contains("CLIENT EXITED WITH ERROR") && !said.contains("CLIENT TIMED OUT");
            assert!(is_whole || *scenario == ONLY_DIRECT.0, "{scenario}, {name}:\n{said}");
            checks::of_client(checks)
        };
        let direct = run("direct", &[]);
        assert!(checks::failed(&direct).is_empty(), "{scenario}: {:#?}", checks::failed(&direct));

        let cassette = text(&scene.path("cassette.json"));
        let recorder =
            ["record", "--url", "{url}", "--listen", "localhost:0", "--ready-file", "{ready}", "--cassette"];
        let recorded = run("recorded", &[&[TAPEDECK], &recorder[..], &[&cassette]].concat());
        assert_lint(Path::new(&cassette), KNOWN);
        if *scenario == ONLY_DIRECT.0 {
            assert_refused(&recorded);
        } else {
            assert_same(&format!("{scenario}, recorded"), &direct, &recorded);
        }
    }
}

fn assert_refused(checks: &Value) {
    let failed = checks::failed(checks);
    assert!(!failed.is_empty(), "{checks:#?}");
    for check in failed {
        assert_eq!(check["id"], ONLY_DIRECT.1);
        assert!(check["description"].as_str().is_some_and(|text| text.contains(ONLY_DIRECT.2)), "{check:#?}");
    }
}
