//! A run whose test command waits until it is told to end, so that a test can do what that command would do.

use std::{
    collections::HashMap,
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, Command, Output, Stdio},
};

use super::program::TAPEDECK;

/// A run.
pub(crate) struct Run {
    child: Option<Child>,
    /// What its test command found in its environment.
    pub(crate) environment: HashMap<String, String>,
}

impl Run {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let shell = "env | grep ^TAPEDECK_; echo; read line";
        let mut child = Command::new(TAPEDECK)
            .arg("run")
            .args(arguments)
            .args(["--", "sh", "-c", shell])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program can be started");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
        let environment: HashMap<_, _> = lines
            .take_while(|line| !line.is_empty())
            .filter_map(|line| Some(line.split_once('=')?).map(|(name, value)| (name.into(), value.into())))
            .collect();
        let run = Self { child: Some(child), environment };
        assert!(run.environment.contains_key("TAPEDECK_RUN"), "it is no run");
        run
    }

    /// What a process that joins is given.
    pub(crate) fn joins(&self) -> String {
        self.environment["TAPEDECK_RUN"].clone()
    }

    /// Lets the test command end.
    pub(crate) fn end(mut self) -> Output {
        let mut child = self.child.take().expect("it runs");
        child.stdin.take().expect("a pipe").write_all(b"\n").expect("it is waited for");
        child.wait_with_output().expect("it ends")
    }

    /// Kills it, and leaves its test command alone.
    pub(crate) fn kill(mut self) {
        let mut child = self.child.take().expect("it runs");
        child.kill().expect("it runs");
        child.wait().expect("it was killed");
    }
}

impl Drop for Run {
    /// Leaves nothing behind where a test failed.
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
