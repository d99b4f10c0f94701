//! The demo's MCP client: sends requests to a command's stdin and waits for their answers.

use std::{
    ffi::OsStr,
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
    time::Duration,
};

use mcp_tapedeck::wire::jsonrpc::Message;

use crate::cli::failure::Failure;

/// How long an answer may take; the server answers at once, so more would be a fault of ours.
const PATIENCE: Duration = Duration::from_secs(10);

/// A running server command and its client half.
pub(super) struct Client {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<Vec<u8>>,
}

impl Client {
    /// Starts a command; its stderr is left out.
    pub(super) fn start<S: AsRef<OsStr>>(command: &[S]) -> Result<Self, Failure> {
        let (program, arguments) = command.split_first().expect("a demo's command is never empty");
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| {
                Failure::peer(format_args!("cannot start `{}`: {error}", program.as_ref().display()))
            })?;
        let stdin = child.stdin.take().expect("stdin was asked for");
        let stdout = child.stdout.take().expect("stdout was asked for");
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            let lines = BufReader::new(stdout).split(b'\n').map_while(Result::ok);
            let _ = lines.into_iter().try_for_each(|line| sender.send(line));
        });
        Ok(Self { child, stdin, lines })
    }

    /// Sends a message that is not answered.
    pub(super) fn send(&mut self, line: &str) -> Result<(), Failure> {
        writeln!(self.stdin, "{line}").map_err(|error| broken(&format!("its input is closed ({error})")))
    }

    /// Sends a request; returns what came until its answer, the answer last.
    pub(super) fn request(&mut self, line: &str) -> Result<Vec<String>, Failure> {
        self.send(line)?;
        let mut came = Vec::new();
        let asked = Message::read(line.as_bytes()).id_key();
        loop {
            let line = self.lines.recv_timeout(PATIENCE).map_err(|_| broken("an answer did not come"))?;
            let message = Message::read(&line);
            let is_answer = message.kind.is_response() && message.id_key() == asked;
            came.push(String::from_utf8_lossy(&line).into_owned());
            if is_answer {
                return Ok(came);
            }
        }
    }

    /// Closes the server's input and waits for its end; returns its exit status.
    pub(super) fn end(self) -> Result<Option<i32>, Failure> {
        let Self { mut child, stdin, lines } = self;
        drop(stdin);
        while lines.recv_timeout(PATIENCE).is_ok() {}
        let status = child.wait().map_err(|error| broken(&format!("its end is unknown ({error})")))?;
        Ok(status.code())
    }
}

fn broken(what: &str) -> Failure {
    Failure::peer(format_args!("the demo's session broke: {what}"))
}
