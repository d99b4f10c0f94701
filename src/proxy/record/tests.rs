//! Sessions with real processes: small shell and Python scripts on the other side of real pipes.

use std::{
    ffi::OsString,
    io::{self, BufRead, BufReader, PipeReader, PipeWriter, Read, Write},
    sync::{Arc, Mutex},
    thread::{self, JoinHandle},
    time::Duration,
};

use super::*;
use crate::traffic::Event;

/// Long enough that a rule which waits for it makes a test fail by its outcome, not by its time.
const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(1);

/// No rule of an ending comes into play.
const PATIENT: Grace = Grace { input: LONG, term: LONG, silence: LONG, signal: LONG, limit: LONG };

/// A sink that keeps events as short text; its writes fail while told so.
#[derive(Clone, Default)]
struct Log {
    lines: Arc<Mutex<Vec<String>>>,
    is_full: Arc<Mutex<bool>>,
}

impl Sink for Log {
    fn write(&mut self, events: &[Event<'_>]) -> io::Result<()> {
        if *self.is_full.lock().unwrap() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.lines.lock().unwrap().extend(events.iter().map(told));
        Ok(())
    }
}

fn told(event: &Event<'_>) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let way = if event.direction == Direction::ToServer { ">" } else { "<" };
    match &event.payload {
        Payload::Message(bytes) => format!("{way} {}", text(bytes)),
        Payload::Partial(bytes) => format!("{way} partial {}", text(bytes)),
        Payload::Oversize(line) => format!("{way} oversize {}", line.size),
        Payload::Closed => format!("{way} closed"),
        Payload::Exit(exit) => format!(
            "exit {:?} {:?}{}",
            exit.status,
            exit.signal,
            if exit.by_itself { " by itself" } else { "" }
        ),
        Payload::Gap { messages } => format!("gap {messages}"),
    }
}

/// A session under test, seen from the client.
struct Talk {
    input: Option<PipeWriter>,
    output: BufReader<PipeReader>,
    log: Log,
    session: JoinHandle<Result<Ended<Log>, RecordError>>,
}

impl Talk {
    fn with(command: &[&str], tweak: impl FnOnce(&mut RecordOptions) + Send + 'static) -> Self {
        let command: Vec<_> = command.iter().map(OsString::from).collect();
        let (their_input, input) = io::pipe().unwrap();
        let (output, their_output) = io::pipe().unwrap();
        let client = Client { input: their_input.into(), output: their_output.into() };
        let log = Log::default();
        let sink = log.clone();
        let session = thread::spawn(move || {
            let mut options = RecordOptions { grace: PATIENT, ..RecordOptions::default() };
            tweak(&mut options);
            let server = Server::start(&command).unwrap();
            record(server, client, sink, options)
        });
        Self { input: Some(input), output: BufReader::new(output), log, session }
    }

    fn new(script: &str) -> Self {
        Self::with(&["sh", "-c", script], |_| ())
    }

    fn send(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line
    }

    /// Closes the client's side.
    fn close(&mut self) {
        self.input = None;
    }

    /// What is still to come from the server, how the session ended, and what was recorded.
    fn end(mut self) -> (Vec<u8>, Ended<Log>, Vec<String>) {
        let mut rest = Vec::new();
        self.output.read_to_end(&mut rest).unwrap();
        let ended = self.session.join().unwrap().unwrap();
        let lines = self.log.lines.lock().unwrap().clone();
        (rest, ended, lines)
    }
}

fn call(id: u32) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\"}}\n")
}

#[test]
fn bytes_pass_both_ways_as_they_are_and_every_line_is_recorded() {
    let mut talk = Talk::new("cat");
    talk.send(b"one\r\n\xff \n\n{\"a\":1");
    talk.close();
    let (rest, ended, log) = talk.end();
    assert_eq!(rest, b"one\r\n\xff \n\n{\"a\":1");
    assert_eq!(ended.exit, Exit { status: Some(0), signal: None, by_itself: false });
    let (there, back): (Vec<_>, Vec<_>) = log.into_iter().partition(|line| line.starts_with('>'));
    assert_eq!(there, ["> one\r", "> \u{fffd} ", "> ", "> partial {\"a\":1", "> closed"]);
    assert_eq!(back, ["< one\r", "< \u{fffd} ", "< ", "< partial {\"a\":1", "< closed", "exit Some(0) None"]);
}

#[test]
fn a_server_that_dies_in_mid_answer_ends_the_session_by_itself() {
    let mut talk = Talk::new("read line; printf '{\"half'; exit 3");
    talk.send(call(1).as_bytes());
    let (rest, ended, log) = talk.end();
    assert_eq!(rest, b"{\"half");
    assert_eq!(ended.exit, Exit { status: Some(3), signal: None, by_itself: true });
    assert_eq!(log[1..], ["< partial {\"half", "< closed", "exit Some(3) None by itself"]);
}

#[test]
fn a_line_is_recorded_before_the_client_has_it() {
    let mut talk = Talk::new("printf 'ready\\n'; cat");
    assert_eq!(talk.line(), "ready\n");
    assert_eq!(*talk.log.lines.lock().unwrap(), ["< ready"]);
    talk.close();
    talk.end();
}

#[test]
fn a_server_that_stays_after_its_input_ended_gets_sigterm_and_then_sigkill() {
    let command = ["sh", "-c", "echo up; sleep 60"];
    let mut talk = Talk::with(&command, |options| options.grace.input = SHORT);
    assert_eq!(talk.line(), "up\n");
    talk.close();
    assert_eq!(talk.end().1.exit, Exit { status: None, signal: Some(15), by_itself: false });

    let command = ["sh", "-c", "trap '' TERM; echo up; sleep 60"];
    let mut talk = Talk::with(&command, |options| {
        options.grace = Grace { input: SHORT, term: SHORT, ..PATIENT };
    });
    assert_eq!(talk.line(), "up\n");
    talk.close();
    assert_eq!(talk.end().1.exit, Exit { status: None, signal: Some(9), by_itself: false });
}
