//! The suite as a client: of the server itself, of a recorder before it, and of the recording's replay.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    sync::OnceLock,
};

use serde_json::Value;

use super::{KNOWN, checks, suite::Suite};
use crate::support::front::Front;
use crate::support::{
    client::refresh,
    difference::assert_same,
    install,
    program::{assert_good_verdict, assert_lint},
    scene::Scene,
    server::text,
};

/// Runs these scenarios through a recorder, each with a cassette of its own, and against its replay.
pub(super) fn check(scenarios: &[&str]) {
    let Some(stage) = Stage::new() else { return };
    for scenario in scenarios {
        stage.check(|url, folder| {
            let (checks, _) = stage.suite.run("server", scenario, &["--url", url], folder);
            [((*scenario).to_owned(), checks)].into()
        });
    }
}

/// Runs all scenarios through one recorder, and against the replay of its one cassette.
pub(super) fn check_all() {
    let Some(stage) = Stage::new() else { return };
    stage.check(|url, folder| stage.suite.run_all(url, folder));
}

type Checks = BTreeMap<String, Value>;

struct Stage {
    suite: Suite,
    server: &'static str,
}

impl Stage {
    fn new() -> Option<Self> {
        Some(Self { suite: Suite::new()?, server: server()? })
    }

    /// What the suite says of the server itself.
    fn direct(&self) -> &'static Checks {
        static DIRECT: OnceLock<Checks> = OnceLock::new();
        DIRECT.get_or_init(|| {
            let scene = Scene::new();
            let checks = self.comparable(self.suite.run_all(self.server, &scene.path("direct")), self.server);
            for (scenario, checks) in &checks {
                assert!(checks::failed(checks).is_empty(), "{scenario}: {:#?}", checks::failed(checks));
            }
            checks
        })
    }

    fn comparable(&self, checks: Checks, url: &str) -> Checks {
        let level = |(name, checks)| (name, checks::of_server(checks, &[url, self.server]));
        checks.into_iter().map(level).collect()
    }

    /// Records what a run of the suite does, and has it done again against the replay.
    fn check(&self, run: impl Fn(&str, &Path) -> Checks) {
        let scene = Scene::new();
        let assert_direct = |url: &str, name: &str| {
            for (scenario, checks) in self.comparable(run(url, &scene.path(name)), url) {
                assert_same(&format!("{scenario}, {name}"), &self.direct()[&scenario], &checks);
            }
        };
        let cassette = text(&scene.path("cassette.json"));
        let front =
            Front::start(&["record", "--url", self.server, "--cassette", &cassette], &scene.path("."));
        assert_direct(&front.url, "recorded");
        front.end();
        assert_lint(Path::new(&cassette), KNOWN);

        let reports = format!("{}/", text(&scene.path("reports")));
        let front = Front::start(&["replay", &cassette, "--report", &reports], &scene.path("."));
        assert_direct(&front.url, "replayed");
        front.end();
        assert_good_verdict(&scene.path("reports"));
    }
}

/// The URL of the one server of all tests; it ends with the test process, whose end of its stdin closes then.
fn server() -> Option<&'static str> {
    static SERVER: OnceLock<(Child, String)> = OnceLock::new();
    let node = install::node()?;
    let (_, url) = SERVER.get_or_init(|| {
        // Imports are looked up from the folder a script lies in.
        let script = node.join("conformance-server.mjs");
        refresh(&install::sources().join("servers/conformance.mjs"), &script);
        let mut command = Command::new("node");
        command.arg(script).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("node can be started");
        let mut url = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut url).expect("a line of text");
        (child, url.trim().to_owned())
    });
    Some(url)
}
