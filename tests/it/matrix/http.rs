//! Every real client with every real server over HTTP: directly, recorded, replayed, and the replay recorded.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use mcp_tapedeck::Report;

use super::cassette::Cassette;
use super::pair::varies;
use super::transcript::Transcript;
use crate::support::client::{Client, root};
use crate::support::front::Front;
use crate::support::program::assert_lint;
use crate::support::rust_server::RustServer;
use crate::support::scene::Scene;
use crate::support::server::{self, Server, text};
use crate::support::wire::assert_rebuilds;

/// A real server that listens.
#[derive(Clone, Copy)]
pub(super) struct Service {
    pub(super) server: Server,
    /// What stands behind its command, the port as `{port}`.
    words: &'static [&'static str],
    pub(super) path: &'static str,
    pub(super) transport: &'static str,
}

macro_rules! service {
    ($name:ident, $server:ident, $transport:literal, $path:literal, $words:expr) => {
        pub(super) const fn $name() -> Service {
            Service { server: server::$server(), words: $words, path: $path, transport: $transport }
        }
    };
}

service!(everything, everything, "http", "/mcp", &["streamableHttp"]);
service!(everything_sse, everything, "sse", "/sse", &["sse"]);
service!(fast, fast, "http", "/mcp", &["{port}"]);
service!(fast_stateless, fast, "http", "/mcp", &["{port}", "stateless"]);
service!(fast_json, fast, "http", "/mcp", &["{port}", "json"]);
service!(fast_sse, fast, "sse", "/sse", &["{port}", "sse"]);
service!(handler, handler, "http", "/mcp", &["{port}"]);
service!(rust_server, rust_server, "http", "/mcp", &[]);
service!(modern, modern, "http", "/mcp", &["{port}"]);

/// A server, ended with this.
pub(super) struct Running {
    _peer: Peer,
    pub(super) url: String,
}

#[expect(dead_code, reason = "it is held until it is to end")]
enum Peer {
    Process(Process),
    Thread(RustServer),
}

struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Service {
    /// Starts it, and waits until it listens; none where it cannot be had.
    pub(super) fn start(&self, scene: &Scene) -> Option<Running> {
        let mut command = self.server.command(scene)?;
        let url = |port: u16| format!("http://127.0.0.1:{port}{}", self.path);
        if command.is_empty() {
            let server = RustServer::start();
            let url = url(server.port);
            return Some(Running { _peer: Peer::Thread(server), url });
        }
        command.retain(|word| word != "stdio");
        let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("it has one").port();
        command.extend(self.words.iter().map(|word| word.replace("{port}", &port.to_string())));
        let mut child = Command::new(&command[0])
            .args(&command[1..])
            .env("PORT", port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server can be started");
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = child.try_wait().expect("a child");
            assert!(
                ended.is_none() && start.elapsed() < Duration::from_secs(60),
                "{command:?} does not listen"
            );
            std::thread::yield_now();
        }
        Some(Running { _peer: Peer::Process(Process(child)), url: url(port) })
    }
}

/// Runs the pair directly, recorded, replayed, and with the replay recorded.
pub(super) fn check(client: Client, service: Service) {
    let scene = Scene::new();
    let mut plan = service.server.plan(&scene);
    if service.words.contains(&"json") {
        // Without streams there is no progress at which a call could be cancelled.
        plan["steps"].as_array_mut().expect("steps").retain(|step| step["do"] != "cancel");
    }
    let run = |url: &str| -> Option<Transcript> {
        scene.reset();
        let run = client.run_at(url, service.transport, &plan, &[root(&scene.files())])?;
        let failed = run.transcript.get("failed").and_then(|reason| reason.as_str());
        assert_eq!(failed, None, "{}\n{}\n{:#}", failed.unwrap_or_default(), run.stderr, run.transcript);
        Some(Transcript::new(&without_ids(run.transcript)))
    };
    let Some(server) = service.start(&scene) else { return };
    let Some(direct) = run(&server.url) else { return };
    assert!(direct.calls() > 4, "{} made hardly any calls to {}", client.name, service.server.name);
    drop(server);

    let drops = client.drops_late_progress;
    let varies = varies(service.server.name);
    let tape = scene.path("tape.json");
    let recorded = {
        let server = service.start(&scene).expect("it was here a moment ago");
        let front = record(&tape, &server.url, &scene);
        let recorded = run(&front.url).expect("this client was here a moment ago");
        front.end();
        recorded
    };
    recorded.assert_transparent(&direct, &varies, drops);
    assert_rebuilds(&tape);
    // That SDK may come back for the rest of a call that it has just cancelled; this server then repeats on that
    // stream what went on all others. Whether it happens is a race within the client.
    let may_repeat = client.name == "typescript_1" && service.server.name == "everything";
    // The plans subscribe whether a server offers it or not.
    let known: &[&str] =
        if may_repeat { &["server-capability", "response-once"] } else { &["server-capability"] };
    assert_lint(&tape, known);

    let replayed = {
        let front = replay(&tape, &scene);
        let replayed = run(&format!("{}{}", front.origin, service.path)).expect("this client was here");
        front.end();
        replayed
    };
    replayed.assert_same_session(&recorded, drops);
    assert_nothing_left_over(&scene);

    if may_repeat {
        return;
    }
    let again = scene.path("again.json");
    let front = replay(&tape, &scene);
    let recorder = record(&again, &format!("{}{}", front.origin, service.path), &scene);
    run(&recorder.url).expect("this client was here a moment ago");
    recorder.end();
    front.end();
    Cassette::read(&tape).assert_same(&Cassette::read(&again));
}

/// What a client saw without the session ids in it, which some servers put into their texts.
fn without_ids(transcript: serde_json::Value) -> serde_json::Value {
    let ids = regex::Regex::new("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").expect("a pattern");
    serde_json::from_str(&ids.replace_all(&transcript.to_string(), "(an id)")).expect("it is JSON still")
}

pub(super) fn record(cassette: &std::path::Path, url: &str, scene: &Scene) -> Front {
    let arguments = ["record", "--keep-journal", "--cassette", &text(cassette), "--url", url];
    Front::start(&arguments, &scene.path(""))
}

pub(super) fn replay(cassette: &std::path::Path, scene: &Scene) -> Front {
    let report = text(&scene.path("report.json"));
    Front::start(&["replay", &text(cassette), "--report", &report], &scene.path(""))
}

/// A client that does the same sends the same again: notifications, and requests that are no messages too. What its
/// caches and clocks decide on may be another matter.
fn assert_nothing_left_over(scene: &Scene) {
    let report = std::fs::read(scene.path("report.json")).expect("it is written");
    let mut report: Report = serde_json::from_slice(&report).expect("a report");
    let may_be = |key: &String| {
        let comes_back = key.starts_with("http GET ") && !key.ends_with(" @1");
        comes_back || key.contains("/list @") || key.starts_with("server/discover ")
    };
    report.unused.retain(|key| !may_be(key));
    assert_eq!(report.unused, [""; 0]);
}
