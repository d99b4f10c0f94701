//! Any transport serves any recording: one script, recorded over each transport and served over each.

use std::fs;
use std::path::Path;

use mcp_tapedeck::Report;
use serde_json::Value;

use super::http::{self, Service};
use super::transcript::Transcript;
use crate::support::client::{self, Client, Run, root};
use crate::support::program::{self, assert_good_verdict};
use crate::support::scene::Scene;
use crate::support::server::{self, Server};

const PLAN: &str = include_str!("../../peers/plans/transports.json");

/// A transport that the server is recorded over.
struct Recorded {
    name: &'static str,
    /// The server; none for the one on stdio.
    service: Option<Service>,
    /// It can send nothing but answers. So there is no progress at which a call could be cancelled.
    answers_only: bool,
}

const RECORDED: [Recorded; 4] = [
    Recorded { name: "stdio", service: None, answers_only: false },
    Recorded { name: "HTTP, answers as JSON", service: Some(http::fast_json()), answers_only: true },
    Recorded { name: "HTTP, answers as events", service: Some(http::fast()), answers_only: false },
    Recorded { name: "HTTP+SSE", service: Some(http::fast_sse()), answers_only: false },
];

/// A transport that clients are served over.
struct Served {
    name: &'static str,
    /// The word that scripts have for it.
    transport: &'static str,
    path: &'static str,
}

const SERVED: [Served; 3] = [
    Served { name: "stdio", transport: "stdio", path: "" },
    Served { name: "HTTP", transport: "http", path: "/mcp" },
    Served { name: "HTTP+SSE", transport: "sse", path: "/sse" },
];

#[test]
fn python_sees_the_same_over_every_transport() {
    check(client::python_legacy());
}

#[test]
fn typescript_sees_the_same_over_every_transport() {
    check(client::typescript_1());
}

#[test]
fn the_readme_shows_what_is_served_over_which_transport() {
    let cells = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let served = SERVED.iter().map(|served| format!("served over {}", served.name));
    let mut table = cells(["recorded over".to_owned()].into_iter().chain(served).collect());
    table.push_str(&"|---".repeat(SERVED.len() + 1));
    table.push_str("|\n");
    for recorded in &RECORDED {
        let seen = if recorded.answers_only { "answers only" } else { "all of it" };
        let row = SERVED.iter().map(|_| seen.to_owned());
        table.push_str(&cells([recorded.name.to_owned()].into_iter().chain(row).collect()));
    }
    let readme = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).expect("it is there");
    assert!(readme.contains(&table), "README.md does not have this table:\n{table}");
}

macro_rules! served {
    ($name:ident over $served:literal, $check:ident of $from:ident: $($client:ident: $($service:ident)*;)*) => {
        mod $name {
            $(mod $client {
                $(#[test]
                fn $service() {
                    let (client, service) = (super::super::client::$client(), super::super::$from::$service());
                    super::super::$check($served, client, service);
                })*
            })*
        }
    };
}

served! { http_on_stdio over "stdio", check_served_over of http:
    python_auto: everything everything_sse fast_stateless handler modern rust_server;
    typescript_1: everything everything_sse fast_stateless handler modern rust_server;
    typescript_2_auto: everything handler modern rust_server;
}

served! { http_on_http over "http", check_served_over of http:
    python_legacy: everything_sse;
    typescript_1: everything_sse;
}

served! { http_on_sse over "sse", check_served_over of http:
    python_legacy: everything fast_stateless rust_server;
    typescript_1: everything fast_stateless rust_server;
}

served! { stdio_on_http over "http", check_recorded_on_stdio of server:
    python_legacy: everything memory modern;
    python_auto: modern;
    typescript_1: everything filesystem modern;
}

served! { stdio_on_sse over "sse", check_recorded_on_stdio of server:
    python_legacy: everything memory modern;
    typescript_1: everything filesystem modern;
}

/// What was recorded over HTTP is served over another transport.
fn check_served_over(transport: &str, client: Client, service: Service) {
    let scene = Scene::new();
    let plan = service.server.plan(&scene);
    let roots = [root(&scene.files())];
    let tape = scene.path("tape.json");
    scene.reset();
    let Some(peer) = service.start(&scene) else { return };
    let front = http::record(&tape, &peer.url, &scene);
    let run = client.run_at(&front.url, service.transport, &plan, &roots);
    front.end();
    check_served(transport, client, &scene, &plan, run);
}

/// What was recorded on stdio is served over another transport.
fn check_recorded_on_stdio(transport: &str, client: Client, server: Server) {
    let scene = Scene::new();
    let plan = server.plan(&scene);
    let roots = [root(&scene.files())];
    scene.reset();
    let Some(command) = server.command(&scene) else { return };
    let run = client.run(&program::record(&scene.path("tape.json"), &command), &plan, &roots);
    check_served(transport, client, &scene, &plan, run);
}

/// Serves the recording of a run.
fn check_served(transport: &str, client: Client, scene: &Scene, plan: &Value, run: Option<Run>) {
    let (tape, reports, roots) = (scene.path("tape.json"), scene.path("reports"), [root(&scene.files())]);
    let Some(recorded) = transcript("recorded", run) else { return };
    let served = SERVED.iter().find(|served| served.transport == transport).expect("one of these");
    let run = if transport == "stdio" {
        client.run(&program::replay(&tape, &reports), plan, &roots)
    } else {
        let front = http::replay(&tape, scene);
        let run = client.run_at(&format!("{}{}", front.origin, served.path), transport, plan, &roots);
        front.end();
        run
    };
    let replayed = transcript("replayed", run).expect("this client was here a moment ago");
    replayed.assert_same_session(&recorded, client.drops_late_progress);
    if transport == "stdio" {
        assert_good_verdict(&reports);
        assert_nothing_waited(&reports);
    }
}

#[expect(clippy::print_stdout, reason = "a test that fails says where")]
fn check(client: Client) {
    let mut all: Option<Transcript> = None;
    for recorded in &RECORDED {
        let scene = Scene::new();
        let mut plan: Value = serde_json::from_str(PLAN).expect("a plan is JSON");
        let is_made = |step: &Value| !recorded.answers_only || step["do"] != "cancel";
        plan["steps"].as_array_mut().expect("steps").retain(is_made);
        let tape = scene.path("tape.json");
        let at = |url: &str, transport: &str| client.run_at(url, transport, &plan, &[]);
        let run = match recorded.service {
            None => {
                let Some(command) = server::fast().command(&scene) else { return };
                client.run(&program::record(&tape, &command), &plan, &[])
            }
            Some(service) => {
                let Some(peer) = service.start(&scene) else { return };
                let front = http::record(&tape, &peer.url, &scene);
                let run = at(&front.url, service.transport);
                front.end();
                run
            }
        };
        let Some(expected) = transcript(recorded.name, run) else { return };
        assert_eq!(expected.has_answers_only(), recorded.answers_only, "recorded over {}", recorded.name);
        for served in &SERVED {
            let cell = format!("recorded over {}, served over {}", recorded.name, served.name);
            let run = if served.transport == "stdio" {
                let reports = scene.path("reports");
                // As long as a client on a busy machine may take between two requests that it sends at once.
                let patience = ["--order-grace", "10s"].map(String::from);
                let command = [&program::replay(&tape, &reports)[..], &patience].concat();
                let run = client.run(&command, &plan, &[]);
                assert_good_verdict(&reports);
                assert_nothing_waited(&reports);
                run
            } else {
                let front = http::replay(&tape, &scene);
                let run = at(&format!("{}{}", front.origin, served.path), served.transport);
                front.end();
                run
            };
            let seen = transcript(&cell, run).expect("this client was here a moment ago");
            println!("{cell}");
            seen.assert_same_session(&expected, client.drops_late_progress);
        }
        if !recorded.answers_only {
            match &all {
                None => all = Some(expected),
                Some(all) => expected.assert_same_session(all, client.drops_late_progress),
            }
        }
    }
}

/// What only clients of HTTP do is not waited for.
fn assert_nothing_waited(reports: &Path) {
    for report in fs::read_dir(reports).expect("a folder of reports") {
        let report = fs::read(report.expect("a report").path()).expect("it is readable");
        let report: Report = serde_json::from_slice(&report).expect("a report");
        assert_eq!(report.waits, []);
    }
}

fn transcript(what: &str, run: Option<Run>) -> Option<Transcript> {
    let mut run = run?;
    let failed = run.transcript.get("failed").and_then(Value::as_str);
    assert_eq!(failed, None, "{what}: {}\n{}", run.stderr, run.transcript);
    // One SDK tells it on HTTP alone.
    if let Some(server) = run.transcript["server"].as_object_mut() {
        server.remove("protocol");
    }
    Some(Transcript::new(&run.transcript))
}
