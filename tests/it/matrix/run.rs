//! Real clients in a run: on stdio as processes that join it, and over HTTP.

use serde_json::Value;

use super::transcript::Transcript;
use crate::support::client::{self, Client, root};
use crate::support::program::{TAPEDECK, record};
use crate::support::run::Run;
use crate::support::scene::Scene;
use crate::support::server::{self, Server, text};

#[test]
fn python_with_fast() {
    check(client::python_auto(), server::fast());
}

#[test]
fn python_with_everything() {
    check(client::python_auto(), server::everything());
}

#[test]
fn typescript_1_with_everything() {
    check(client::typescript_1(), server::everything());
}

#[test]
fn typescript_2_with_modern() {
    check(client::typescript_2_auto(), server::modern());
}

fn check(client: Client, server: Server) {
    let scene = Scene::new();
    let plan = server.plan(&scene);
    let roots = [root(&scene.files())];
    let transcript = |run: Option<client::Run>| -> Option<Transcript> {
        let run = run?;
        let failed = run.transcript.get("failed").and_then(Value::as_str);
        assert_eq!(failed, None, "{}\n{}\n{:#}", failed.unwrap_or_default(), run.stderr, run.transcript);
        Some(Transcript::new(&run.transcript))
    };
    let Some(command) = server.command(&scene) else { return };
    let tape = scene.path("tape.json");
    scene.reset();
    let Some(recorded) = transcript(client.run(&record(&tape, &command), &plan, &roots)) else { return };
    assert!(recorded.calls() > 4, "{} made hardly any calls to {}", client.name, server.name);

    let of = |name: &str| format!("{name}={}", text(&tape));
    let run = Run::start(&["--server", &of("a"), "--server", &of("b")]);
    for (server, take) in [("a", ""), ("b", ""), ("a", "again")] {
        let join = [TAPEDECK, "join", &run.joins(), server, "--take", take].map(String::from);
        let joined = transcript(client.run(&join, &plan, &roots)).expect("this client was here");
        joined.assert_replays(&recorded, client.drops_late_progress);
    }
    let url = format!("{}/take/http/b/mcp", run.environment["TAPEDECK_ORIGIN"]);
    let over_http = transcript(client.run_at(&url, "http", &plan, &roots)).expect("this client was here");
    assert_eq!(over_http.calls(), recorded.calls());
    let output = run.end();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
