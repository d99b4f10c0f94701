//! Real clients on stdio with real servers on HTTP, with `record --url` between them: they see what they see over HTTP.

use serde_json::Value;

use super::http::{self, Service};
use super::pair::varies;
use super::transcript::Transcript;
use crate::support::client::{self, Client, root};
use crate::support::program::{TAPEDECK, assert_good_verdict, assert_lint, replay};
use crate::support::scene::Scene;
use crate::support::server::text;
use crate::support::wire::assert_rebuilds;

#[test]
fn typescript_1_with_everything() {
    check(client::typescript_1(), http::everything());
}

#[test]
fn typescript_1_with_fast() {
    check(client::typescript_1(), http::fast());
}

#[test]
fn typescript_2_auto_with_fast() {
    check(client::typescript_2_auto(), http::fast());
}

#[test]
fn python_auto_with_everything() {
    check(client::python_auto(), http::everything());
}

#[test]
fn python_auto_with_fast() {
    check(client::python_auto(), http::fast());
}

#[test]
fn python_legacy_with_fast() {
    check(client::python_legacy(), http::fast());
}

fn check(client: Client, service: Service) {
    let scene = Scene::new();
    let server = service.server;
    let plan = server.plan(&scene);
    let transcript = |run: Option<client::Run>| -> Option<Transcript> {
        let mut run = run?;
        let failed = run.transcript.get("failed").and_then(Value::as_str);
        assert_eq!(failed, None, "{}\n{}\n{:#}", failed.unwrap_or_default(), run.stderr, run.transcript);
        run.transcript = sessionless(&run.transcript);
        // One SDK tells it on HTTP alone.
        if let Some(server) = run.transcript["server"].as_object_mut() {
            server.remove("protocol");
        }
        Some(Transcript::new(&run.transcript))
    };
    let roots = [root(&scene.files())];
    scene.reset();
    let Some(peer) = service.start(&scene) else { return };
    let Some(direct) = transcript(client.run_at(&peer.url, "http", &plan, &roots)) else { return };
    assert!(direct.calls() > 4, "{} made hardly any calls to {}", client.name, server.name);
    drop(peer);

    let Some(peer) = service.start(&scene) else { return };
    let tape = scene.path("tape.json");
    let words = [TAPEDECK, "record", "--keep-journal", "--cassette", &text(&tape), "--url", &peer.url];
    let recorded = transcript(client.run(&words.map(String::from), &plan, &roots));
    let recorded = recorded.expect("this client was here a moment ago");
    recorded.assert_transparent(&direct, &varies(server.name), client.drops_late_progress);
    assert_rebuilds(&tape);
    // The plans subscribe whether a server offers it or not.
    assert_lint(&tape, &["server-capability"]);

    let reports = scene.path("reports");
    let replayed = transcript(client.run(&replay(&tape, &reports), &plan, &roots));
    let replayed = replayed.expect("this client was here a moment ago");
    replayed.assert_replays(&recorded, client.drops_late_progress);
    assert_good_verdict(&reports);
}

/// The transcript without the ids of sessions, which one server likes to tell.
fn sessionless(transcript: &Value) -> Value {
    const TOLD: &str = "session ";
    const LENGTH: usize = "6640a50b-4f66-4fb1-9082-1a015d2c74a3".len();
    let text = transcript.to_string();
    let mut pieces = text.split(TOLD);
    let mut without = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let is_id = |id: &str| id.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        without.push_str(TOLD);
        without.push_str(piece.get(..LENGTH).filter(|id| is_id(id)).map_or(piece, |_| &piece[LENGTH..]));
    }
    serde_json::from_str(&without).expect("it is still JSON")
}
