//! A recorder or a replay that listens, and ends when it is told to.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _},
    path::Path,
    process::{Child, Command, Stdio},
    thread::JoinHandle,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::program::TAPEDECK;

/// A recorder or a replay.
pub(crate) struct Front {
    child: Child,
    /// The endpoint by which clients reach it.
    pub(crate) url: String,
    /// The origin of that.
    pub(crate) origin: String,
    stderr: Option<JoinHandle<String>>,
}

impl Front {
    /// Starts one, with its files in a folder.
    pub(crate) fn start(arguments: &[&str], folder: &Path) -> Self {
        let ready = folder.join(arguments[0]).with_extension("ready");
        let command = arguments.iter().position(|word| *word == "--").unwrap_or(arguments.len());
        let mut child = Command::new(TAPEDECK)
            .args(&arguments[..command])
            .args(["-v", "--listen", "127.0.0.1:0", "--ready-file"])
            .arg(&ready)
            .args(&arguments[command..])
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program can be started");
        let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let mut said = String::new();
        while !said.contains("clients use") {
            let length = stderr.read_line(&mut said).expect("lines of text");
            assert!(length > 0, "it does not listen:\n{said}");
        }
        let stderr = std::thread::spawn(move || {
            stderr.read_to_string(&mut said).expect("lines of text");
            said
        });
        let ready = fs::read(ready).expect("it is written before that is said");
        let ready: Value = serde_json::from_slice(&ready).expect("JSON");
        let text = |name: &str| ready[name].as_str().expect("a URL").to_owned();
        let (url, origin) = (text("url"), text("origin"));
        Self { child, url, origin, stderr: Some(stderr) }
    }

    /// Tells it to end, and asserts that all went well.
    pub(crate) fn end(self) {
        self.end_with(0);
    }

    /// Tells it to end, however that ends.
    pub(crate) fn stop(mut self) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a process");
        kill_process(pid, Signal::TERM).expect("it still runs");
        self.child.wait().expect("it ends");
    }

    /// Tells it to end, and asserts that it does so with this status; what it said.
    pub(crate) fn end_with(mut self, expected: i32) -> String {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a process");
        kill_process(pid, Signal::TERM).expect("it still runs");
        let status = self.child.wait().expect("it ends");
        let said = self.stderr.take().expect("it is read once").join().expect("text");
        assert_eq!(status.code(), Some(expected), "it ended with {status}:\n{said}");
        said
    }
}

impl Drop for Front {
    /// Leaves nothing behind where a test failed.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
