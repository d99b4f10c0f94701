//! One client with one server.

use serde_json::Value;

use super::transcript::Transcript;
use crate::support::client::{Client, root};
use crate::support::scene::Scene;
use crate::support::server::Server;

/// Runs the pair in every way.
pub(super) fn check(client: Client, server: Server) {
    let scene = Scene::new();
    let Some(command) = server.command(&scene) else { return };
    let run = |command: &[String]| -> Option<Transcript> {
        scene.reset();
        let roots = [root(&scene.files())];
        let run = client.run(command, &server.plan(&scene), &roots)?;
        assert_eq!(run.transcript.get("failed"), None::<&Value>, "{}\n{:#}", run.stderr, run.transcript);
        Some(Transcript::new(&run.transcript))
    };
    let Some(direct) = run(&command) else { return };
    assert!(direct.calls() > 4, "{} made hardly any calls to {}", client.name, server.name);
}
