//! The real servers.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::install::{node, python, sources};
use super::scene::Scene;

/// A real server.
#[derive(Clone, Copy)]
pub(crate) struct Server {
    /// Its name here, and that of its plan.
    pub(crate) name: &'static str,
    /// How it is started; none where it cannot be had.
    command: fn(&Scene) -> Option<Vec<String>>,
    plan: &'static str,
}

macro_rules! server {
    ($name:ident, $command:expr) => {
        pub(crate) const fn $name() -> Server {
            let plan = include_str!(concat!("../../peers/plans/", stringify!($name), ".json"));
            Server { name: stringify!($name), command: $command, plan }
        }
    };
}

server!(everything, |_| node_server("server-everything", &["stdio"]));
server!(filesystem, |scene| node_server("server-filesystem", &[&text(&scene.files())]));
server!(memory, |scene| {
    // Clients pass hardly any environment on, so the setting travels in the command.
    let setting = format!("MEMORY_FILE_PATH={}", scene.files().join("memory.jsonl").display());
    let mut command = vec!["env".to_owned(), setting];
    command.extend(node_server("server-memory", &[])?);
    Some(command)
});
server!(time, |_| {
    let arguments = ["-m", "mcp_server_time", "--local-timezone", "UTC"];
    python_command(&arguments.map(String::from))
});
server!(fast, |_| python_command(&[text(&sources().join("servers/fast.py"))]));
server!(modern, |_| python_command(&[text(&sources().join("servers/modern.py"))]));

impl Server {
    /// The command that starts it.
    pub(crate) fn command(&self, scene: &Scene) -> Option<Vec<String>> {
        (self.command)(scene)
    }

    /// What a client is to do with it: `elicit` and `steps`.
    pub(crate) fn plan(&self, scene: &Scene) -> Value {
        let plan = self.plan.replace("{dir}", &text(&scene.files()));
        serde_json::from_str(&plan).expect("a plan is JSON")
    }
}

fn node_server(package: &str, arguments: &[&str]) -> Option<Vec<String>> {
    let main = node()?.join("node_modules/@modelcontextprotocol").join(package).join("dist/index.js");
    let mut command = vec!["node".to_owned(), text(&main)];
    command.extend(arguments.iter().map(ToString::to_string));
    Some(command)
}

fn python_command(arguments: &[String]) -> Option<Vec<String>> {
    let mut command = vec![text(python()?)];
    command.extend_from_slice(arguments);
    Some(command)
}

pub(crate) fn text(path: &Path) -> String {
    path.to_str().expect("paths here are UTF-8").to_owned()
}

/// A server's process on HTTP; it ends with this.
pub(crate) struct HttpServer {
    child: Child,
    pub(crate) url: String,
}

impl HttpServer {
    /// Starts a server that has a form for HTTP; none where it cannot be had.
    pub(crate) fn start(server: &Server) -> Option<Self> {
        let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
        let port = port.expect("a port is free").port().to_string();
        let (words, says) = match server.name {
            "everything" => (node_server("server-everything", &["streamableHttp"])?, "listening on port"),
            "fast" => {
                let script = text(&sources().join("servers/fast.py"));
                (python_command(&[script, port.clone()])?, "running on")
            }
            other => panic!("{other} has no form for HTTP"),
        };
        let mut child = Command::new(&words[0])
            .args(&words[1..])
            .env("PORT", &port)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{words:?} cannot be started: {error}"));
        let stderr = child.stderr.take().expect("stderr is a pipe");
        let mut lines = BufReader::new(stderr).lines().map_while(Result::ok);
        let mut seen = Vec::new();
        while !seen.last().is_some_and(|line: &String| line.contains(says)) {
            seen.push(lines.next().unwrap_or_else(|| panic!("{words:?} ended: {seen:#?}")));
        }
        // Or else it would wait for somebody to read what it says.
        std::thread::spawn(move || lines.for_each(drop));
        Some(Self { child, url: format!("http://127.0.0.1:{port}/mcp") })
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
