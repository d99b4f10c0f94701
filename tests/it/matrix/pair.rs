//! One client with one server.

use super::cassette::Cassette;
use super::transcript::{Transcript, Varies};
use crate::support::client::{Client, root};
use crate::support::program::{assert_good_verdict, assert_lint, record, replay};
use crate::support::scene::Scene;
use crate::support::server::Server;
use crate::support::wire::assert_rebuilds;

/// What differs between two sessions with the same server, with nothing between it and its client.
pub(super) fn varies(server: &str) -> Varies {
    match server {
        // Both put the time of day into what they make up; one of eight log messages is drawn by lot.
        "everything" => Varies {
            calls: &["tools/call get-resource-reference", "resources/read demo://resource/dynamic/"],
            logs: "level",
        },
        // What time it is, and which day.
        "time" => Varies { calls: &["tools/call get_current_time", "tools/call convert_time"], logs: "" },
        _ => Varies { calls: &[], logs: "" },
    }
}

/// Runs the pair directly, recorded, replayed, and with the replay recorded.
pub(super) fn check(client: Client, server: Server) {
    let scene = Scene::new();
    let Some(command) = server.command(&scene) else { return };
    let run = |command: &[String]| -> Option<Transcript> {
        scene.reset();
        let run = client.run(command, &server.plan(&scene), &[root(&scene.files())])?;
        let failed = run.transcript.get("failed").and_then(|reason| reason.as_str());
        assert_eq!(failed, None, "{}\n{}\n{:#}", failed.unwrap_or_default(), run.stderr, run.transcript);
        Some(Transcript::new(&run.transcript))
    };
    let drops = client.drops_late_progress;
    let Some(direct) = run(&command) else { return };
    assert!(direct.calls() > 4, "{} made hardly any calls to {}", client.name, server.name);

    let tape = scene.path("tape.json");
    let recorded = run(&record(&tape, &command)).expect("this client was here a moment ago");
    recorded.assert_transparent(&direct, &varies(server.name), drops);
    assert_rebuilds(&tape);
    // The plans subscribe whether a server offers it or not.
    assert_lint(&tape, &["server-capability"]);

    let reports = scene.path("reports");
    let replayed = run(&replay(&tape, &reports)).expect("this client was here a moment ago");
    replayed.assert_replays(&recorded, drops);
    assert_good_verdict(&reports);

    let again = scene.path("again.json");
    run(&record(&again, &replay(&tape, &reports))).expect("this client was here a moment ago");
    assert_good_verdict(&reports);
    Cassette::read(&tape).assert_same(&Cassette::read(&again));
}
