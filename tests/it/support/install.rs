//! The real peers: installed into `target/peers/` on first use, from the pins under `tests/peers/`.
//!
//! Several tests and several test processes may come here at once: a lock file lets one of them install, and a stamp
//! of the pins tells the others, now and in later runs, that nothing is to be done.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use rustix::fs::{FlockOperation, flock};
use sha2::{Digest as _, Sha256};

/// The folder `tests/peers`.
pub(crate) fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers")
}

/// A folder whose `node_modules` holds the npm peers, and beside it the client scripts; none where they cannot be had.
pub(crate) fn node() -> Option<&'static Path> {
    static NODE: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    or_skip(
        NODE.get_or_init(|| {
            installed("node", &["package.json", "package-lock.json"], &["npm", "node"], npm_ci)
        }),
    )
}

/// The Python interpreter that has the PyPI peers; none where they cannot be had.
pub(crate) fn python() -> Option<&'static Path> {
    static PYTHON: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let made = || Ok(installed("python", &["requirements.txt"], &["python3"], venv)?.join("bin/python"));
    or_skip(PYTHON.get_or_init(made))
}

/// Says loudly that a test has not tested anything; an error where peers are required.
///
/// # Panics
/// Panics if `TAPEDECK_REQUIRE_PEERS` is 1.
pub(crate) fn skip(reason: &str) {
    let required = std::env::var_os("TAPEDECK_REQUIRE_PEERS").is_some_and(|value| value == "1");
    assert!(!required, "a peer is missing, and TAPEDECK_REQUIRE_PEERS is 1: {reason}");
    let test = std::thread::current().name().unwrap_or_default().to_owned();
    // Not by a macro: the test runner captures those, and keeps what a passing test printed to itself.
    let mut stderr = std::io::stderr();
    writeln!(stderr, "SKIPPED: {test}: {reason}").expect("stderr takes a line");
}

fn or_skip(installed: &'static Result<PathBuf, String>) -> Option<&'static Path> {
    match installed {
        Ok(path) => Some(path),
        Err(reason) => {
            skip(reason);
            None
        }
    }
}

fn npm_ci(folder: &Path) -> Result<(), String> {
    // No package needs its install script, so none gets to run one.
    run(Command::new("npm").args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(folder))
}

fn venv(folder: &Path) -> Result<(), String> {
    run(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "-r"];
    run(Command::new(folder.join("bin/python")).args(pip).arg(folder.join("requirements.txt")))
}

/// The folder of these pins, made by `make` unless its stamp says that it already was.
fn installed(
    name: &str,
    pins: &[&str],
    tools: &[&str],
    make: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<PathBuf, String> {
    let peers = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("peers");
    let told = |error: std::io::Error| format!("{} cannot be written: {error}", peers.display());
    let mut hash = Sha256::new();
    for tool in tools {
        hash.update(version(tool)?);
    }
    for pin in pins {
        hash.update(fs::read(sources().join(pin)).map_err(told)?);
    }
    let hash: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();

    fs::create_dir_all(&peers).map_err(told)?;
    let lock = File::create(peers.join(format!("{name}.lock"))).map_err(told)?;
    flock(&lock, FlockOperation::LockExclusive).map_err(|error| told(error.into()))?;
    let folder = peers.join(name);
    let stamp = folder.join("stamp");
    if fs::read_to_string(&stamp).is_ok_and(|found| found == hash) {
        return Ok(folder);
    }
    fs::remove_dir_all(&folder).or_else(|error| if folder.exists() { Err(told(error)) } else { Ok(()) })?;
    fs::create_dir_all(&folder).map_err(told)?;
    for pin in pins {
        fs::copy(sources().join(pin), folder.join(pin)).map_err(told)?;
    }
    make(&folder)?;
    fs::write(stamp, hash).map_err(told)?;
    Ok(folder)
}

fn version(tool: &str) -> Result<Vec<u8>, String> {
    match Command::new(tool).arg("--version").output() {
        Ok(output) if output.status.success() => Ok(output.stdout),
        Ok(output) => Err(format!("`{tool} --version` ended with {}", output.status)),
        Err(error) => Err(format!("{tool} cannot be started: {error}")),
    }
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?} cannot be started: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?} ended with {}:\n{}", output.status, String::from_utf8_lossy(&output.stderr)))
}
