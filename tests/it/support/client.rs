//! The real clients: scripts of ours around an SDK, which do what a server's plan says and tell what they saw.
//!
//! A script serves one job after the other, so that an SDK is loaded once and not for each of hundreds of sessions.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Mutex, mpsc};
use std::time::Duration;

use serde_json::{Value, json};

use super::install::{node, python, sources};
use super::rust_client;
use super::server::text;

/// How long a job may take; far more than it needs, for a machine that does other things as well.
const SECONDS: u64 = 60;

/// A real client.
#[derive(Clone, Copy)]
pub(crate) struct Client {
    /// Its name here.
    pub(crate) name: &'static str,
    /// The SDK's mode.
    mode: &'static str,
    kind: Kind,
    /// Whether its SDK drops a progress notification that reaches it in the same read as the response: the TypeScript
    /// SDKs handle notifications a turn later than responses.
    pub(crate) drops_late_progress: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Python,
    Node { script: &'static str },
    Rust,
}

macro_rules! client {
    ($name:ident, $mode:literal, $kind:expr) => {
        pub(crate) const fn $name() -> Client {
            let drops_late_progress = matches!($kind, Kind::Node { .. });
            Client { name: stringify!($name), mode: $mode, kind: $kind, drops_late_progress }
        }
    };
}

client!(python_auto, "auto", Kind::Python);
client!(python_legacy, "legacy", Kind::Python);
client!(python_modern, "2026-07-28", Kind::Python);
client!(typescript_1, "legacy", Kind::Node { script: "sdk1.mjs" });
client!(typescript_2, "legacy", Kind::Node { script: "sdk2.mjs" });
client!(typescript_2_auto, "auto", Kind::Node { script: "sdk2.mjs" });
client!(rust, "legacy", Kind::Rust);
client!(rust_auto, "auto", Kind::Rust);

/// What came of a job.
pub(crate) struct Run {
    /// What the client saw.
    pub(crate) transcript: Value,
    /// What the client, the server and whatever stood between them wrote to stderr.
    pub(crate) stderr: String,
}

impl Client {
    /// Drives the server that `command` starts as `plan` says; none where this client cannot be had.
    pub(crate) fn run(&self, command: &[String], plan: &Value, roots: &[String]) -> Option<Run> {
        self.run_job(json!({"command": command}), plan, roots)
    }

    /// Drives the server at `url`, which speaks `transport` (`http` or `sse`).
    pub(crate) fn run_at(&self, url: &str, transport: &str, plan: &Value, roots: &[String]) -> Option<Run> {
        self.run_job(json!({"url": url, "transport": transport}), plan, roots)
    }

    fn run_job(&self, mut job: Value, plan: &Value, roots: &[String]) -> Option<Run> {
        job["mode"] = self.mode.into();
        job["roots"] = roots.into();
        job["seconds"] = SECONDS.into();
        for (name, value) in plan.as_object().expect("a plan is an object") {
            job[name] = value.clone();
        }
        if self.kind == Kind::Rust {
            return Some(rust_client::run(&job));
        }
        let mut worker = Worker::idle(self)?;
        let run = worker.run(&job);
        worker.rest();
        Some(run)
    }

    /// Whether this client can be had; it is installed where it has to be.
    pub(crate) fn is_there(&self) -> bool {
        self.kind == Kind::Rust || self.command().is_some()
    }

    fn command(&self) -> Option<Command> {
        match self.kind {
            Kind::Python => {
                let mut command = Command::new(python()?);
                command.arg(sources().join("clients/script.py"));
                Some(command)
            }
            Kind::Node { script } => {
                // Imports are looked up from the folder a script lies in.
                let folder = node()?;
                for name in ["script.mjs", script] {
                    refresh(&sources().join("clients").join(name), &folder.join(name));
                }
                let mut command = Command::new("node");
                command.arg(folder.join(script));
                Some(command)
            }
            Kind::Rust => None,
        }
    }
}

/// A client script's process between jobs.
struct Worker {
    name: &'static str,
    child: Child,
    jobs: ChildStdin,
    transcripts: mpsc::Receiver<String>,
    stderr: PathBuf,
    read: usize,
}

/// Scripts that wait for their next job. They end when their stdin does: with the test process.
static IDLE: Mutex<Vec<Worker>> = Mutex::new(Vec::new());

impl Worker {
    fn idle(client: &Client) -> Option<Self> {
        let mut idle = IDLE.lock().expect("no test panics holding it");
        if let Some(at) = idle.iter().position(|worker| worker.name == client.name) {
            return Some(idle.swap_remove(at));
        }
        drop(idle);
        Self::start(client)
    }

    fn rest(self) {
        IDLE.lock().expect("no test panics holding it").push(self);
    }

    fn start(client: &Client) -> Option<Self> {
        let mut command = client.command()?;
        let (file, stderr) =
            tempfile::NamedTempFile::new().expect("a file can be made").keep().expect("and kept");
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(file)
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?} cannot be started: {error}"));
        let jobs = child.stdin.take().expect("stdin is a pipe");
        let lines = BufReader::new(child.stdout.take().expect("stdout is a pipe")).lines();
        let (sender, transcripts) = mpsc::channel();
        std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Some(Self { name: client.name, child, jobs, transcripts, stderr, read: 0 })
    }

    fn run(&mut self, job: &Value) -> Run {
        writeln!(self.jobs, "{job}").expect("the client script takes a job");
        let line = self.transcripts.recv_timeout(Duration::from_secs(SECONDS + 20));
        let bytes = fs::read(&self.stderr).expect("the client's stderr is a file");
        let stderr = String::from_utf8_lossy(&bytes[self.read..]).into_owned();
        self.read = bytes.len();
        let transcript = match line {
            Ok(line) => serde_json::from_str(&line).expect("a transcript is JSON"),
            Err(error) => {
                self.child.kill().expect("a client script can be killed");
                panic!(
                    "client {} gave no transcript ({error}); its stderr:\n{stderr}\nthe job: {job}",
                    self.name
                )
            }
        };
        Run { transcript, stderr }
    }
}

/// Copies a file unless it is already there; others may be doing the same.
pub(crate) fn refresh(from: &std::path::Path, to: &std::path::Path) {
    let wanted = fs::read(from).expect("a client script is readable");
    if fs::read(to).is_ok_and(|found| found == wanted) {
        return;
    }
    let mut file =
        tempfile::NamedTempFile::new_in(to.parent().expect("it lies in a folder")).expect("a file");
    file.write_all(&wanted).expect("a script can be copied");
    file.persist(to).expect("a script can be put in place");
}

/// The file a process's stderr goes to, and its path.
pub(crate) fn stderr_file(folder: &std::path::Path, name: &str) -> (File, PathBuf) {
    let path = folder.join(name);
    (File::create(&path).expect("a file can be made"), path)
}

/// A `file://` root for a folder.
pub(crate) fn root(folder: &std::path::Path) -> String {
    format!("file://{}", text(folder))
}
