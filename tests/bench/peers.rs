//! The two ends of every benchmark: a bare line server, which is this program started with a hidden word, and a
//! client that keeps some requests in flight.
//!
//! Both write each message by itself unless told otherwise, as SDKs do.

use std::{
    io::{self, Read, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::{Duration, Instant},
};

use mcp_tapedeck::wire::{
    jsonrpc::{Kind, Message},
    lines::{Line, LineSplitter},
};
use memchr::{memchr_iter, memmem};

/// The hidden word that makes this program a server: `--line-server SIZE each|joined`.
pub(crate) const LINE_SERVER: &str = "--line-server";

/// Whether messages that could go together do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writes {
    /// One write a message.
    Each,
    /// One write for all that one read gave cause for.
    Joined,
}

impl Writes {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Each => "each",
            Self::Joined => "joined",
        }
    }
}

/// The words that start a server whose answers carry `size` bytes of text, unless a request asks for a `"size":`.
pub(crate) fn line_server(size: usize, writes: Writes) -> [String; 3] {
    [LINE_SERVER.to_owned(), size.to_string(), writes.word().to_owned()]
}

/// The server: reads each line's envelope, as every server has to, and answers with the number of the call and some
/// text.
pub(crate) fn serve(size: usize, writes: Writes) -> io::Result<()> {
    let (mut input, mut output) = (raw_stdin()?, raw_stdout()?);
    let (mut room, mut lines, mut answers) = (vec![0; 128 << 10], LineSplitter::new(64 << 20), Vec::new());
    loop {
        let length = input.read(&mut room)?;
        if length == 0 {
            return Ok(());
        }
        let mut written = Ok(());
        lines.feed(&room[..length], |line| {
            if let Line::Whole(line) = line {
                answer(&Message::read(line), size, &mut answers);
            }
            if writes == Writes::Each && written.is_ok() {
                written = output.write_all(&answers);
                answers.clear();
            }
        });
        written?;
        output.write_all(&answers)?;
        answers.clear();
    }
}

fn answer(request: &Message<'_>, size: usize, out: &mut Vec<u8>) {
    let Some(id) = request.id().filter(|_| request.kind == Kind::Request) else { return };
    let number = |pointer| std::str::from_utf8(request.param(pointer)?).ok()?.parse().ok();
    let (call, size) =
        (number("/arguments/call").unwrap_or_default(), number("/arguments/size").unwrap_or(size));
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id);
    out.extend_from_slice(b",\"result\":");
    push_result(call, size, out);
    out.extend_from_slice(b"}\n");
}

/// The result of the call of this number: the number and some text.
pub(crate) fn push_result(call: usize, size: usize, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("{{\"content\":[{{\"type\":\"text\",\"text\":\"{call}: ").as_bytes());
    push_text(size, out);
    out.extend_from_slice(b"\"}]}");
}

/// Text as tools give it: sentences and line ends.
pub(crate) fn push_text(size: usize, out: &mut Vec<u8>) {
    const TEXT: &[u8] = b"The quick brown fox jumps over the lazy dog, and again.\\n";
    for _ in 0..size / TEXT.len() {
        out.extend_from_slice(TEXT);
    }
    out.resize(out.len() + size % TEXT.len(), b'x');
}

/// The number that stands behind a name.
pub(crate) fn number_behind(line: &[u8], name: &[u8]) -> Option<usize> {
    let digits = &line[memmem::find(line, name)? + name.len()..];
    let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&digits[..length]).ok()?.parse().ok()
}

fn raw_stdin() -> io::Result<std::fs::File> {
    Ok(rustix::io::dup(io::stdin())?.into())
}

/// Without the line buffer of the standard one.
fn raw_stdout() -> io::Result<std::fs::File> {
    Ok(rustix::io::dup(io::stdout())?.into())
}

/// Requests in the order they are sent; the id of each is its place in the session.
#[derive(Default)]
pub(crate) struct Requests {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    calls: Vec<usize>,
}

impl Requests {
    /// `tools/call` of these numbers, with ids from `first_id` on; `push_more` adds arguments behind the number.
    pub(crate) fn calls(
        first_id: usize,
        calls: impl IntoIterator<Item = usize>,
        push_more: impl Fn(usize, &mut Vec<u8>),
    ) -> Self {
        let mut requests = Self::default();
        for (place, call) in calls.into_iter().enumerate() {
            let head = format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"tools/call\",\"params\":",
                first_id + place
            );
            requests.bytes.extend_from_slice(head.as_bytes());
            push_params(call, &push_more, &mut requests.bytes);
            requests.bytes.extend_from_slice(b"}\n");
            requests.ends.push(requests.bytes.len());
            requests.calls.push(call);
        }
        requests
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    fn range(&self, from: usize, to: usize) -> &[u8] {
        let start = if from == 0 { 0 } else { self.ends[from - 1] };
        if to == 0 { &[] } else { &self.bytes[start..self.ends[to - 1]] }
    }
}

/// The params of the call of this number.
pub(crate) fn push_params(call: usize, push_more: impl Fn(usize, &mut Vec<u8>), out: &mut Vec<u8>) {
    let params = format!(
        "{{\"name\":\"search\",\"arguments\":{{\"call\":{call},\"query\":\"the {call}th thing to look for\""
    );
    out.extend_from_slice(params.as_bytes());
    push_more(call, out);
    out.extend_from_slice(b"}}");
}

/// The first two messages of a session; the request has id 0.
pub(crate) const INITIALIZE: &str =
    r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}"#;

/// A process that answers, and this client of it.
pub(crate) struct Session {
    child: Child,
    input: ChildStdin,
    output: ChildStdout,
    next_id: usize,
    room: Vec<u8>,
    answers: Vec<u8>,
}

impl Session {
    /// Starts a server and shakes hands with it.
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the command can be started");
        let input = child.stdin.take().expect("a pipe was asked for");
        let output = child.stdout.take().expect("a pipe was asked for");
        let mut session =
            Self { child, input, output, next_id: 1, room: vec![0; 128 << 10], answers: Vec::new() };
        let request =
            format!("{{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{INITIALIZE}}}\n");
        session.input.write_all(request.as_bytes()).expect("the server takes its first request");
        session.read_answers(1);
        assert!(memmem::find(&session.answers, b"\"result\"").is_some(), "{}", session.shown());
        let initialized = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";
        session.input.write_all(initialized).expect("the server takes a notification");
        session
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Requests for these calls that continue this session's ids.
    pub(crate) fn requests(
        &mut self,
        calls: impl IntoIterator<Item = usize>,
        push_more: impl Fn(usize, &mut Vec<u8>),
    ) -> Requests {
        let requests = Requests::calls(self.next_id, calls, push_more);
        self.next_id += requests.len();
        requests
    }

    /// How long each request took, one in flight.
    pub(crate) fn round_trips(&mut self, requests: &Requests) -> Vec<Duration> {
        self.answers.clear();
        let times = (0..requests.len()).map(|at| {
            let start = Instant::now();
            self.send(requests, at, at + 1, Writes::Each);
            self.read_answers(1);
            start.elapsed()
        });
        let times = times.collect();
        self.check(requests);
        times
    }

    /// How long all requests together took with so many in flight.
    pub(crate) fn pipeline(&mut self, requests: &Requests, in_flight: usize, writes: Writes) -> Duration {
        self.answers.clear();
        self.answers.reserve(2 * requests.bytes.len());
        let start = Instant::now();
        let mut sent = in_flight.min(requests.len());
        self.send(requests, 0, sent, writes);
        let mut answered = 0;
        while answered < requests.len() {
            answered += self.read_some();
            let to = (answered + in_flight).min(requests.len());
            self.send(requests, sent, to, writes);
            sent = to;
        }
        let time = start.elapsed();
        self.check(requests);
        time
    }

    fn send(&mut self, requests: &Requests, from: usize, to: usize, writes: Writes) {
        let mut send = |bytes: &[u8]| self.input.write_all(bytes).expect("the server takes requests");
        match writes {
            Writes::Each => (from..to).for_each(|at| send(requests.range(at, at + 1))),
            Writes::Joined if from < to => send(requests.range(from, to)),
            Writes::Joined => {}
        }
    }

    fn read_answers(&mut self, count: usize) {
        let mut seen = 0;
        while seen < count {
            seen += self.read_some();
        }
    }

    fn read_some(&mut self) -> usize {
        let length = self.output.read(&mut self.room).expect("the server's output can be read");
        assert!(length > 0, "the server left in mid-session; what it said last: {}", self.shown());
        self.answers.extend_from_slice(&self.room[..length]);
        memchr_iter(b'\n', &self.room[..length]).count()
    }

    /// Every request got its own answer: a wrong one is fast, too.
    fn check(&self, requests: &Requests) {
        let first_id = number_behind(&requests.bytes, b"\"id\":").expect("there is a request");
        let mut seen = vec![false; requests.len()];
        for line in self.answers.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let shown = || String::from_utf8_lossy(&line[..line.len().min(300)]);
            let place = number_behind(line, b"\"id\":").and_then(|id| id.checked_sub(first_id));
            let call = number_behind(line, b"\"text\":\"");
            let place = place.filter(|&place| call == requests.calls.get(place).copied());
            let place = place.unwrap_or_else(|| panic!("a wrong answer: {}", shown()));
            assert!(!std::mem::replace(&mut seen[place], true), "a second answer: {}", shown());
        }
        assert!(seen.iter().all(|&seen| seen), "an answer is missing");
    }

    fn shown(&self) -> std::borrow::Cow<'_, str> {
        let from = self.answers.len().saturating_sub(300);
        String::from_utf8_lossy(&self.answers[from..])
    }

    /// Closes the server's input; how long it then takes to end, while `each_moment` looks on.
    pub(crate) fn finish(mut self, mut each_moment: impl FnMut(u32)) -> Duration {
        let start = Instant::now();
        drop(self.input);
        let pid = rustix::process::Pid::from_child(&self.child);
        let ended =
            rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).expect("it is a child");
        let moment = rustix::event::Timespec { tv_sec: 0, tv_nsec: 2_000_000 };
        loop {
            each_moment(self.child.id());
            let mut polled = [rustix::event::PollFd::new(&ended, rustix::event::PollFlags::IN)];
            if rustix::event::poll(&mut polled, Some(&moment)).expect("a child can be waited for") > 0 {
                break;
            }
        }
        let time = start.elapsed();
        let status = self.child.wait().expect("a child can be waited for");
        assert!(status.success(), "{status}");
        time
    }
}

/// Client and server of this file fit together.
pub(crate) fn self_check() {
    for writes in [Writes::Each, Writes::Joined] {
        let mut session = Session::start(super::this_program().args(line_server(40, writes)));
        let one = session.requests(0..3, |_, _| ());
        assert_eq!(session.round_trips(&one).len(), 3);
        let many = session.requests((0..200).rev(), |call, out| {
            out.extend_from_slice(format!(",\"size\":{call}").as_bytes());
        });
        session.pipeline(&many, 64, writes);
        session.finish(|_| ());
    }
}
