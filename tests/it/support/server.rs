//! The real servers.

use std::path::Path;

use serde_json::Value;

use super::client::refresh;
use super::install::{node, python, sources};
use super::scene::Scene;

/// A real server.
#[derive(Clone, Copy)]
pub(crate) struct Server {
    /// Its name here, and that of its plan.
    pub(crate) name: &'static str,
    /// How it is started, empty where that is no command; none where it cannot be had.
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
server!(handler, |_| {
    // Imports are looked up from the folder a script lies in.
    let script = node()?.join("handler.mjs");
    refresh(&sources().join("servers/handler.mjs"), &script);
    Some(vec!["node".to_owned(), text(&script)])
});
// It runs in this process.
server!(rust_server, |_| Some(Vec::new()));
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
