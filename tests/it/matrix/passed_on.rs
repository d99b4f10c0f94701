//! Real clients whose recording ends in the middle: the real server answers the rest, and is needed only once.

use std::fs;

use serde_json::Value;

use super::transcript::Transcript;
use crate::support::client::{self, Client, root};
use crate::support::program::{TAPEDECK, assert_good_verdict, assert_lint, record, tapedeck};
use crate::support::scene::Scene;
use crate::support::server::{self, Server, text};

#[test]
fn python_with_fast() {
    check(client::python_legacy(), server::fast());
}

#[test]
fn typescript_1_with_everything() {
    check(client::typescript_1(), server::everything());
}

#[test]
fn python_with_modern() {
    // Others start a process to see what there is, which asks for nothing else, and that is bad under `--strict`.
    check(client::python_modern(), server::modern());
}

fn check(client: Client, server: Server) {
    let scene = Scene::new();
    let plan = server.plan(&scene);
    let mut half = plan.clone();
    let steps = half["steps"].as_array_mut().expect("a plan has steps");
    steps.truncate(steps.len() / 3);
    let run = |command: &[String], plan: &Value| -> Option<Transcript> {
        let run = client.run(command, plan, &[root(&scene.files())])?;
        let failed = run.transcript.get("failed").and_then(Value::as_str);
        assert_eq!(failed, None, "{}\n{}\n{:#}", failed.unwrap_or_default(), run.stderr, run.transcript);
        Some(Transcript::new(&run.transcript))
    };
    let Some(command) = server.command(&scene) else { return };
    let tape = scene.path("tape.json");
    let reports = scene.path("reports");
    scene.reset();
    if run(&record(&tape, &command), &half).is_none() {
        return;
    }
    let before = fs::read_to_string(&tape).expect("it is written");
    let replay = |options: &[&str]| -> Vec<String> {
        let reports = format!("{}/", reports.display());
        let begin = [TAPEDECK, "replay", &text(&tape), "--report", &reports].map(String::from);
        begin.into_iter().chain(options.iter().map(ToString::to_string)).collect()
    };
    let passes_on = [replay(&["--on-miss", "record", "--"]), command].concat();
    let passed = run(&passes_on, &plan).expect("this client was here a moment ago");
    assert_good_verdict(&reports);
    let after = fs::read_to_string(&tape).expect("it is written");
    assert!(after.starts_with(before.strip_suffix("\n  ]\n}\n").expect("a cassette ends so")));
    assert!(after.len() > before.len() && tapedeck(&["fmt", "--check", &text(&tape)]).status.success());
    // The plans subscribe whether a server offers it or not.
    assert_lint(&tape, &["server-capability"]);
    let again = run(&replay(&["--strict"]), &plan).expect("this client was here a moment ago");
    again.assert_replays(&passed, client.drops_late_progress);
    assert_good_verdict(&reports);
}
