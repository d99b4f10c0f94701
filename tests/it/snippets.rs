//! The examples of the README, run as they stand there: each passes with its cassette, and fails on a miss.

mod sum;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::json;

use crate::support::client;
use crate::support::install::{node, python, sources};
use crate::support::program::{TAPEDECK, record};
use crate::support::scene::Scene;
use crate::support::server;

/// The call that the examples make, and another one.
const CALL: &str = "\"b\": 3";
const OTHER_CALL: &str = "\"b\": 4";

#[test]
fn pytest() {
    check("test_sum.py", |folder| {
        let mut command = Command::new(python()?);
        command.args(["-m", "pytest", "-p", "no:cacheprovider", "test_sum.py"]).current_dir(folder);
        Some(command)
    });
}

#[test]
fn pytest_in_a_run() {
    check("test_run.py", |folder| {
        let bin = python()?.parent().expect("it lies in a folder").display().to_string();
        let mut command = Command::new("sh");
        command.args(["-c", &format!("PATH=\"{bin}:$PATH\"; tapedeck run sum.json -- pytest test_run.py")]);
        command.current_dir(folder);
        Some(command)
    });
}

#[test]
fn vitest() {
    check("sum.test.mjs", |folder| {
        let modules = node()?.join("node_modules");
        let link = folder.join("node_modules");
        if !link.exists() {
            std::os::unix::fs::symlink(&modules, link).expect("a link can be made");
        }
        let mut command = Command::new("node");
        command.arg(modules.join("vitest/vitest.mjs")).args(["run", "--root", "."]).current_dir(folder);
        Some(command)
    });
}

#[test]
fn cargo_test() {
    check("sum.rs", |folder| {
        let mut command = Command::new(std::env::current_exe().expect("this binary has a path"));
        command.args(["--exact", "snippets::sum::sum", "--ignored", "--nocapture"]).current_dir(folder);
        Some(command)
    });
}

/// Runs an example beside its cassette, and beside one that was recorded from another call.
fn check(example: &str, command: impl Fn(&Path) -> Option<Command>) {
    let scene = Scene::new();
    let run = |name: &str, call: &str| -> Option<Output> {
        let folder = scene.path(name);
        fs::create_dir(&folder).expect("a folder can be made");
        record_call(&scene, &folder.join("sum.json"), call)?;
        fs::copy(sources().with_file_name("it/snippets").join(example), folder.join(example))
            .expect("a copy");
        let mut command = command(&folder)?;
        let path = std::env::var("PATH").expect("PATH is set");
        let bin = Path::new(TAPEDECK).parent().expect("it lies in a folder").display();
        command.env("PATH", format!("{bin}:{path}"));
        Some(command.output().unwrap_or_else(|error| panic!("{command:?}: {error}")))
    };
    let told =
        |output: &Output| format!("{}\n{}{}", output.status, text(&output.stdout), text(&output.stderr));
    let Some(good) = run("good", CALL) else { return };
    assert!(good.status.success(), "{example} fails with its cassette: {}", told(&good));
    let miss = run("miss", OTHER_CALL).expect("it ran a moment ago");
    assert!(
        !miss.status.success(),
        "{example} passes although its call is not in the cassette: {}",
        told(&miss)
    );
    assert!(told(&miss).contains("get-sum"), "{example} does not say what was missed: {}", told(&miss));
}

/// Records a call of the sum tool.
fn record_call(scene: &Scene, cassette: &Path, call: &str) -> Option<()> {
    let arguments: serde_json::Value =
        serde_json::from_str(&format!("{{\"a\": 2, {call}}}")).expect("it is JSON");
    // The Python SDK lists the tools after a call of one that was never listed; none of the examples has capabilities.
    let steps = json!([{"do": "call", "tool": "get-sum", "arguments": arguments}, {"do": "lists"}]);
    let plan = json!({"capabilities": {}, "steps": steps});
    let server = server::everything().command(scene)?;
    let run = client::rust().run(&record(cassette, &server), &plan, &[])?;
    assert_eq!(run.transcript.get("failed"), None, "{}", run.stderr);
    Some(())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
