//! Faults on stdio, as a client sees them at its pipes: those of a replay, and those on live traffic with a server that
//! is a replay without any.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    os::unix::process::ExitStatusExt as _,
    process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::{
    deck::{self, FIRST, PROGRESS, SECOND, no_text, on_first},
    stage::{INITIALIZE, REPORT, SEARCH},
};
use crate::support::program::TAPEDECK;

/// Which faults are seen at a pipe by which test.
pub(super) const TESTED: &[(&str, fn())] = &[
    ("close_early", stdout_is_closed_in_the_answers_place),
    ("cut_after", stdout_is_closed_behind_so_much),
    ("half_close", stdout_is_closed_behind_the_answer_and_the_client_is_heard),
    ("exit", a_server_ends_in_the_answers_place),
    ("ignore_shutdown", a_server_stays_although_it_is_told_to_end),
    ("garbage", bytes_are_what_they_are_said_to_be),
    ("truncate", bytes_are_what_they_are_said_to_be),
    ("malformed_json", bytes_are_what_they_are_said_to_be),
    ("invalid_utf8", bytes_are_what_they_are_said_to_be),
    ("noise_line", bytes_are_what_they_are_said_to_be),
    ("oversize", bytes_are_what_they_are_said_to_be),
];

/// Who lets a fault act.
#[derive(Clone, Copy, Debug)]
enum By {
    Replay,
    Proxy,
    Record,
}

const ALL: [By; 3] = [By::Replay, By::Proxy, By::Record];

/// A client and its server.
struct Pipes {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    folder: TempDir,
}

impl Pipes {
    /// After the handshake.
    fn new(by: By, fault: &str) -> Self {
        let (folder, arguments) = match by {
            By::Replay => deck::deck(fault),
            By::Proxy => deck::live("proxy", fault),
            By::Record => deck::live("record", fault),
        };
        let mut child = Command::new(TAPEDECK)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program can be started");
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut pipes = Self { child, input, output, folder };
        pipes.say(INITIALIZE);
        assert!(pipes.line().starts_with(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\""));
        pipes
    }

    fn say(&mut self, line: &str) {
        let input = self.input.as_mut().expect("it is open");
        input.write_all(format!("{line}\n").as_bytes()).expect("it is heard");
    }

    /// The next bytes up to the end of a line, or of all.
    fn line(&mut self) -> Vec<u8> {
        let mut line = Vec::new();
        self.output.read_until(b'\n', &mut line).expect("a pipe");
        line
    }

    /// All bytes up to the end.
    fn rest(&mut self) -> String {
        let mut rest = Vec::new();
        self.output.read_to_end(&mut rest).expect("a pipe");
        String::from_utf8(rest).expect("text")
    }

    /// Told to end it does not, but has heard it: it writes the report of its end, which this returns.
    fn terminate(&mut self) -> String {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a process");
        kill_process(pid, Signal::TERM).expect("it is there");
        let report = self.folder.path().join(deck::REPORT);
        let start = Instant::now();
        loop {
            let report = fs::read_to_string(&report).expect("it has begun");
            if !report.contains("\"verdict\": \"open\"") {
                return report;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "it has heard nothing: {report}");
            std::thread::yield_now();
        }
    }

    /// The client closes its side, and the server ends.
    fn ends(mut self) -> ExitStatus {
        self.input = None;
        self.child.wait().expect("it ends")
    }
}

impl Drop for Pipes {
    /// Leaves nothing behind where a test failed.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Far more than any pipe holds goes through: somebody reads.
fn is_heard(pipes: &mut Pipes) {
    pipes.say(&" ".repeat(4 << 20));
}

#[test]
fn stdout_is_closed_in_the_answers_place() {
    for by in ALL {
        for (fault, seen) in [("close_early", ""), ("close_early bytes=9", "{\"jsonrpc")] {
            let mut pipes = Pipes::new(by, &on_first(fault));
            pipes.say(SEARCH);
            assert_eq!(pipes.rest(), seen, "{by:?} {fault}");
            is_heard(&mut pipes);
            assert_eq!(pipes.ends().code(), Some(0), "{by:?} {fault}");
        }
    }
}

#[test]
fn stdout_is_closed_behind_so_much() {
    for by in ALL {
        let progress = format!("{PROGRESS}\n");
        for (fault, seen) in
            [("cut_after events=1", &*progress), ("cut_after bytes=3", "{\"j"), ("cut_after events=0", "")]
        {
            let mut pipes = Pipes::new(by, &format!("tools/call report: {fault}"));
            pipes.say(REPORT);
            assert_eq!(pipes.rest(), seen, "{by:?} {fault}");
            is_heard(&mut pipes);
            assert_eq!(pipes.ends().code(), Some(0), "{by:?} {fault}");
        }
    }
}

#[test]
fn stdout_is_closed_behind_the_answer_and_the_client_is_heard() {
    for by in ALL {
        let mut pipes = Pipes::new(by, &on_first("half_close"));
        pipes.say(SEARCH);
        assert_eq!(pipes.rest(), format!("{FIRST}\n"));
        is_heard(&mut pipes);
        assert_eq!(pipes.ends().code(), Some(0));
    }
}

#[test]
fn a_server_ends_in_the_answers_place() {
    for by in ALL {
        let ended = |fault: &str| {
            let mut pipes = Pipes::new(by, &on_first(fault));
            pipes.say(SEARCH);
            let rest = pipes.rest();
            let status = pipes.child.wait().expect("it ends");
            (rest, status.code(), status.signal())
        };
        assert_eq!(ended("exit"), (String::new(), Some(1), None));
        assert_eq!(ended("exit status=3 partial=Fatal:"), ("Fatal:".to_owned(), Some(3), None));
        assert_eq!(ended("exit signal=9"), (String::new(), None, Some(9)));
    }
}

#[test]
fn a_server_stays_although_it_is_told_to_end() {
    for by in ALL {
        // It serves as if nothing had happened, until its client is out of patience.
        let mut pipes = Pipes::new(by, "initialize @1: ignore_shutdown ms=86400000");
        // Nothing is missing in what it tells of itself.
        let report = pipes.terminate();
        assert!(report.contains("\"verdict\": \"good\""), "{report}");
        for answer in [FIRST, SECOND] {
            pipes.say(SEARCH);
            assert_eq!(pipes.line(), format!("{answer}\n").into_bytes());
        }
        pipes.child.kill().expect("it is there");
        assert_eq!((pipes.rest(), pipes.ends().signal()), (String::new(), Some(9)));
        // No sooner than it says: later than that any machine may be.
        for is_terminated in [false, true] {
            let mut pipes = Pipes::new(by, "initialize @1: ignore_shutdown ms=500");
            let start = Instant::now();
            if is_terminated {
                pipes.terminate();
            }
            pipes.input = None;
            assert_eq!(pipes.rest(), "");
            let status = pipes.ends();
            assert!(start.elapsed() >= Duration::from_millis(500));
            // A signal ends it where that was told first.
            match is_terminated {
                true => assert_eq!(status.signal(), Some(15)),
                false => assert_eq!(status.code(), Some(0)),
            }
        }
    }
}

/// One byte fault, the bytes up to the next answer, and that the next answer is what it was.
#[track_caller]
fn said(by: By, fault: &str) -> Vec<u8> {
    let mut pipes = Pipes::new(by, &on_first(fault));
    pipes.say(SEARCH);
    let mut said = pipes.line();
    pipes.say(SEARCH);
    let end = format!("{SECOND}\n").into_bytes();
    while !said.ends_with(&end) {
        let line = pipes.line();
        assert!(!line.is_empty(), "{by:?} {fault}: {}", String::from_utf8_lossy(&said));
        said.extend(line);
    }
    said.truncate(said.len() - end.len());
    assert_eq!(pipes.ends().code(), Some(0), "{by:?} {fault}");
    said
}

#[test]
fn bytes_are_what_they_are_said_to_be() {
    for by in ALL {
        let line = |text: &str| format!("{text}\n").into_bytes();
        assert_eq!(said(by, "garbage text=\"Segmentation fault\""), line("Segmentation fault"));
        let noise = said(by, "garbage bytes=100");
        assert_eq!(
            (noise.len(), noise[0], noise.iter().position(|byte| *byte == b'\n')),
            (101, 0xfe, Some(100))
        );
        assert_eq!(said(by, "truncate bytes=20"), line(&FIRST[..20]));
        assert_eq!(said(by, "malformed_json"), line(&format!("{}]", &FIRST[..FIRST.len() - 1])));
        assert_eq!(said(by, "invalid_utf8"), [&no_text()[..], b"\n"].concat());
        assert_eq!(
            said(by, r#"{"do": "noise_line", "text": "INFO: found"}"#),
            line(&format!("INFO: found\n{FIRST}"))
        );
        let white = " ".repeat((1 << 20) - FIRST.len());
        assert_eq!(
            said(by, "oversize bytes=1048576"),
            line(&format!("{}{white}}}", &FIRST[..FIRST.len() - 1]))
        );
        assert_eq!(said(by, "dribble chunks=50 ms=5"), line(FIRST));
        assert_eq!(said(by, "bandwidth bytes_per_second=100000"), line(FIRST));
    }
}

#[test]
fn what_others_are_told_does_not_come_between_the_pieces_of_a_line() {
    for by in ALL {
        let mut pipes = Pipes::new(by, &on_first("dribble chunks=40 ms=20"));
        pipes.say(SEARCH);
        let mut begun = [0; 2];
        pipes.output.read_exact(&mut begun).expect("a pipe");
        pipes.say(REPORT);
        let rest = String::from_utf8(pipes.line()).expect("text");
        assert_eq!(format!("{{\"{rest}"), format!("{FIRST}\n"));
        assert_eq!(pipes.line(), format!("{PROGRESS}\n").into_bytes());
        assert_eq!(pipes.ends().code(), Some(0));
    }
}
