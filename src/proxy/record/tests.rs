//! Sessions with real processes: small shell and Python scripts on the other side of real pipes.

mod process;
mod ways;

use std::{
    borrow::Cow,
    ffi::OsString,
    io::{self, BufRead, BufReader, PipeReader, PipeWriter, Read, Write},
    os::unix::process::ExitStatusExt,
    sync::{Arc, Mutex},
    thread::{self, JoinHandle},
    time::Duration,
};

use signal_hook::consts::signal::{SIGHUP, SIGINT, SIGUSR1};

use super::*;
use crate::{
    store::{Journal, new_header},
    traffic::Event,
    transport::stdio::StartError,
};

/// Long enough that a rule which waits for it makes a test fail by its outcome, not by its time.
const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(1);
/// Long enough that a thread which was told of output has noticed it.
const SILENCE: Duration = Duration::from_millis(100);

/// No rule of an ending comes into play.
const PATIENT: Grace = Grace { input: LONG, term: LONG, silence: LONG, signal: LONG, limit: LONG };

/// A sink that keeps events as short text; its writes fail while told so.
#[derive(Clone, Debug, Default)]
struct Log {
    lines: Arc<Mutex<Vec<String>>>,
    is_full: Arc<Mutex<bool>>,
    /// How many messages it was told that it lacks.
    lacks: Arc<Mutex<Vec<u64>>>,
}

impl Sink for Log {
    fn write(&mut self, events: &[Event<'_>]) -> io::Result<()> {
        if *self.is_full.lock().unwrap() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.lines.lock().unwrap().extend(events.iter().map(told));
        Ok(())
    }

    fn missed(&mut self, messages: u64) {
        self.lacks.lock().unwrap().push(messages);
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
        other => format!("{way} {other:?}"),
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
        let command: Vec<_> = command.iter().map(|&word| word.to_owned()).collect();
        let (their_input, input) = io::pipe().unwrap();
        let (output, their_output) = io::pipe().unwrap();
        let client = Client { input: their_input.into(), output: their_output.into() };
        let log = Log::default();
        let sink = log.clone();
        let session = thread::spawn(move || {
            let mut options = RecordOptions { grace: PATIENT, ..RecordOptions::default() };
            tweak(&mut options);
            record(server(&command).unwrap(), client, sink, options)
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

fn server(command: &[impl AsRef<str>]) -> Result<Server, StartError> {
    Server::start(&command.iter().map(|word| OsString::from(word.as_ref())).collect::<Vec<_>>())
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

/// A client that sees the end of the output closes its side at once: the server ended first all the same.
#[test]
fn a_server_ends_by_itself_however_fast_the_client_answers_its_end() {
    for _ in 0..50 {
        let mut talk = Talk::new("read line; exit 3");
        talk.send(call(1).as_bytes());
        talk.output.read_to_end(&mut Vec::new()).unwrap();
        talk.close();
        let (_, ended, _) = talk.end();
        assert_eq!(ended.exit, Exit { status: Some(3), signal: None, by_itself: true });
    }
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
    let mut talk = Talk::with(&["sh", "-c", "echo up; sleep 60"], |options| options.grace.input = SHORT);
    assert_eq!(talk.line(), "up\n");
    talk.close();
    assert_eq!(talk.end().1.exit, Exit { status: None, signal: Some(15), by_itself: false });

    let mut talk = Talk::with(&["sh", "-c", "trap '' TERM; echo up; sleep 60"], |options| {
        options.grace = Grace { input: SHORT, term: SHORT, ..PATIENT };
    });
    assert_eq!(talk.line(), "up\n");
    talk.close();
    assert_eq!(talk.end().1.exit, Exit { status: None, signal: Some(9), by_itself: false });
}

#[test]
fn the_whole_group_of_a_server_that_stays_is_killed() {
    // The server heeds SIGTERM, its child does not; who holds the first pipe is alive.
    let script = "(trap '' TERM; echo child >&2; exec sleep 60) >&2 & read line; sleep 60";
    // A pipe with a name: a descriptor that can be inherited would go to the children of other tests, too.
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, rustix::fs::Mode::RWXU).unwrap();
    let command = ["sh", "-c", &format!("exec 2>{}; {script}", pipe.display())];
    let mut talk = Talk::with(&command, |options| {
        options.grace = Grace { input: SHORT, term: SHORT, ..PATIENT };
    });
    let mut alive = BufReader::new(std::fs::File::open(&pipe).unwrap());
    let mut line = String::new();
    alive.read_line(&mut line).unwrap();
    talk.close();
    talk.end();
    assert_eq!(alive.read_line(&mut line).unwrap(), 0);
}

#[test]
fn children_of_a_server_that_ended_are_left_alone_and_silence_ends_the_session() {
    let command = ["sh", "-c", "sleep 60 & echo $!; exit 7"];
    let mut talk = Talk::with(&command, |options| options.grace.silence = SILENCE);
    let child: i32 = talk.line().trim().parse().unwrap();
    let (rest, ended, log) = talk.end();
    assert_eq!((rest.len(), ended.exit.status, ended.exit.by_itself), (0, Some(7), true));
    // Its output did not end: only the process did.
    assert_eq!(log[1..], ["exit Some(7) None by itself"]);
    let child = rustix::process::Pid::from_raw(child).unwrap();
    rustix::process::kill_process(child, rustix::process::Signal::KILL).unwrap();
}

#[test]
fn what_a_server_wrote_before_it_ended_reaches_a_slow_client_whole() {
    let command = ["sh", "-c", "head -c 200000 /dev/zero; exit 5"];
    let mut talk = Talk::with(&command, |options| options.grace.silence = SILENCE);
    // Longer than pipes and buffers hold together: it cannot have ended before the client reads.
    let mut first = [1; 1000];
    talk.output.read_exact(&mut first).unwrap();
    let (rest, ended, log) = talk.end();
    assert_eq!((rest.len() + first.len(), ended.exit.status), (200_000, Some(5)));
    assert!(log[0].len() > 200_000 && log[0].starts_with("< partial"), "{} bytes", log[0].len());
}

#[test]
fn long_lines_pass_both_ways_and_one_over_the_limit_is_measured() {
    let mut talk = Talk::with(&["cat"], |options| options.max_message = 100_000);
    let line = [vec![b'x'; 700_000], b"\nshort\n".to_vec()].concat();
    let mut input = talk.input.take().unwrap();
    let sent = line.clone();
    let sender = thread::spawn(move || input.write_all(&sent).unwrap());
    let (rest, _, log) = talk.end();
    sender.join().unwrap();
    assert!(rest == line);
    for way in ["<", ">"] {
        let seen: Vec<_> = log.iter().filter(|line| line.starts_with(way)).collect();
        assert_eq!(
            seen,
            [&format!("{way} oversize {}", 700_000), &format!("{way} short"), &format!("{way} closed")]
        );
    }
}

#[test]
fn no_answer_is_recorded_before_its_request() {
    let mut talk = Talk::new("cat");
    for id in 0..200 {
        talk.send(call(id).as_bytes());
        assert_eq!(talk.line(), call(id));
    }
    talk.close();
    let log = talk.end().2;
    for (id, pair) in log.chunks(2).take(200).enumerate() {
        let line = call(id as u32);
        assert_eq!(pair, [format!("> {}", line.trim()), format!("< {}", line.trim())]);
    }
}

#[test]
fn inherited_descriptors_stay_as_they_are_even_where_they_do_not_block() {
    use rustix::{fs::OFlags, io::fcntl_dupfd_cloexec};
    // Others would go to the children of other tests, too.
    let dup = |fd: &dyn std::os::fd::AsFd| fcntl_dupfd_cloexec(fd, 0);
    for mode in [OFlags::NONBLOCK, OFlags::empty()] {
        let (their_input, mut input) = io::pipe().unwrap();
        let (mut output, their_output) = io::pipe().unwrap();
        rustix::fs::fcntl_setfl(&their_input, mode).unwrap();
        rustix::fs::fcntl_setfl(&their_output, mode).unwrap();
        let seen = [dup(&their_input).unwrap(), dup(&their_output).unwrap()];
        let client = Client { input: dup(&their_input).unwrap(), output: dup(&their_output).unwrap() };
        // Twice what a pipe holds: the writer must wait.
        let text = vec![b'y'; 128 << 10];
        let session = thread::spawn(move || {
            let options = RecordOptions { grace: PATIENT, ..RecordOptions::default() };
            record(server(&["sh", "-c", "head -c 131072"]).unwrap(), client, Log::default(), options)
        });
        input.write_all(&text).unwrap();
        let mut back = vec![0; text.len()];
        output.read_exact(&mut back).unwrap();
        assert!(back == text);
        assert_eq!(session.join().unwrap().unwrap().exit.status, Some(0));
        for fd in &seen {
            let flags = rustix::fs::fcntl_getfl(fd).unwrap();
            assert_eq!(flags.contains(OFlags::NONBLOCK), mode.contains(OFlags::NONBLOCK));
        }
    }
}

#[test]
fn a_sink_that_fails_leaves_the_session_whole_and_a_gap() {
    let warnings = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&warnings);
    let mut talk = Talk::with(&["cat"], move |options| {
        options.warn = Box::new(move |text| told.lock().unwrap().push(text.to_owned()));
    });
    let ask = |talk: &mut Talk, text: &str| {
        talk.send(text.as_bytes());
        assert_eq!(talk.line(), text);
    };
    ask(&mut talk, "first\n");
    *talk.log.is_full.lock().unwrap() = true;
    ask(&mut talk, "second\n");
    ask(&mut talk, "third\n");
    *talk.log.is_full.lock().unwrap() = false;
    ask(&mut talk, "fourth\n");
    *talk.log.is_full.lock().unwrap() = true;
    ask(&mut talk, "fifth\n");
    talk.close();
    let (_, ended, log) = talk.end();
    // The last ones are told in no other way.
    assert_eq!(log, ["> first", "< first", "gap 4", "> fourth", "< fourth"]);
    assert_eq!(ended.missed, 6);
    assert_eq!(*ended.sink.unwrap().lacks.lock().unwrap(), [1, 2, 3, 4, 5, 6]);
    let warnings = warnings.lock().unwrap();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].starts_with("the recording has a gap"), "{warnings:?}");
}

#[test]
fn a_sink_that_fails_ends_the_session_where_recording_is_required() {
    let mut talk = Talk::with(&["cat"], |options| options.require_recording = true);
    talk.send(b"first\n");
    assert_eq!(talk.line(), "first\n");
    *talk.log.is_full.lock().unwrap() = true;
    talk.send(b"second\n");
    // Nothing of it passes.
    assert_eq!(talk.line(), "");
    let error = talk.session.join().unwrap().unwrap_err();
    assert!(matches!(error, RecordError::Sink(_)), "{error}");
}

#[test]
fn a_fault_in_the_recorder_costs_the_recording_of_what_it_was_at_and_not_the_session() {
    struct Faulty;
    impl Hide for Faulty {
        fn message<'a>(&mut self, _: Direction, bytes: &'a [u8]) -> Cow<'a, [u8]> {
            assert!(bytes != b"second", "a test's own panic");
            Cow::Borrowed(bytes)
        }
    }
    let mut talk = Talk::with(&["cat"], |options| options.hide = Box::new(Faulty));
    for text in ["first\n", "second\n", "third\n"] {
        talk.send(text.as_bytes());
        assert_eq!(talk.line(), text);
    }
    talk.close();
    let (_, ended, log) = talk.end();
    assert_eq!(ended.missed, 2);
    assert_eq!(log[..5], ["> first", "< first", "gap 2", "> third", "< third"]);
    assert_eq!(ended.sink.unwrap().lacks.lock().unwrap().last(), Some(&2));
}

#[test]
fn what_is_hidden_from_the_recording_is_not_hidden_from_the_peer() {
    struct Secret;
    impl Hide for Secret {
        fn message<'a>(&mut self, direction: Direction, _: &'a [u8]) -> Cow<'a, [u8]> {
            format!("hidden {direction:?}").into_bytes().into()
        }
    }
    let mut talk = Talk::with(&["cat"], |options| options.hide = Box::new(Secret));
    talk.send(b"secret\nsecr");
    talk.close();
    let (rest, _, log) = talk.end();
    assert_eq!(rest, b"secret\nsecr");
    assert!(!log.concat().contains("secr"), "{log:?}");
    for seen in
        ["> hidden ToServer", "< hidden ToClient", "> partial hidden ToServer", "< partial hidden ToClient"]
    {
        assert!(log.iter().any(|line| line == seen), "{seen}: {log:?}");
    }
}

#[test]
fn a_client_that_takes_no_more_output_ends_the_session() {
    let command = ["sh", "-c", "yes; exec 1>&-; while read line; do :; done; exit 4"];
    let mut talk = Talk::with(&command, |_| ());
    assert_eq!(talk.line(), "y\n");
    drop(talk.output);
    // The server hears of it as it would without us, and then that its input ends.
    let ended = talk.session.join().unwrap().unwrap();
    assert_eq!(ended.exit, Exit { status: Some(4), signal: None, by_itself: false });
    assert!(!talk.log.lines.lock().unwrap().contains(&"> closed".to_owned()));
    drop(talk.input);
}

#[test]
fn a_server_that_reads_no_more_leaves_the_client_with_a_closed_pipe() {
    let mut talk = Talk::new("exec 0<&-; echo deaf; read line <&3");
    assert_eq!(talk.line(), "deaf\n");
    let mut input = talk.input.take().unwrap();
    let error = loop {
        if let Err(error) = input.write_all(b"more\n") {
            break error;
        }
    };
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    assert!(talk.end().1.exit.by_itself);
}

#[test]
fn a_signal_to_us_goes_to_the_group_and_what_survives_it_is_killed() {
    let command = ["sh", "-c", "trap 'echo bye; exit 6' HUP; echo up; while :; do sleep 1; done"];
    let mut talk = Talk::with(&command, |options| options.signals = Some(Signals::listen([SIGHUP]).unwrap()));
    assert_eq!(talk.line(), "up\n");
    signal_hook::low_level::raise(SIGHUP).unwrap();
    let (rest, ended, _) = talk.end();
    assert_eq!(rest, b"bye\n");
    assert_eq!(ended.exit, Exit { status: Some(6), signal: None, by_itself: false });
    assert_eq!(ended.asked.map(|(signal, _)| signal), Some(SIGHUP));

    // Another one: the default of the first may come back a moment after its session, and would end us.
    let command = ["sh", "-c", "trap '' USR1; echo up; while :; do sleep 1; done"];
    let mut talk = Talk::with(&command, |options| {
        options.signals = Some(Signals::listen([SIGUSR1]).unwrap());
        options.grace.signal = SHORT;
    });
    assert_eq!(talk.line(), "up\n");
    signal_hook::low_level::raise(SIGUSR1).unwrap();
    assert_eq!(talk.end().1.exit, Exit { status: None, signal: Some(9), by_itself: false });
}

#[test]
fn a_disk_that_stalls_does_not_hold_us_when_we_are_to_end() {
    struct Stalled(Sender<()>, Receiver<()>);
    impl Sink for Stalled {
        fn write(&mut self, _: &[Event<'_>]) -> io::Result<()> {
            self.0.send(()).map_err(io::Error::other)?;
            self.1.recv().map_err(io::Error::other)
        }
    }
    let (their_input, mut input) = io::pipe().unwrap();
    let (_output, their_output) = io::pipe().unwrap();
    let client = Client { input: their_input.into(), output: their_output.into() };
    let (begins, begun) = mpsc::channel();
    let (release, stalled) = mpsc::channel();
    let options = RecordOptions {
        grace: Grace { signal: SHORT, limit: SHORT, ..PATIENT },
        signals: Some(Signals::listen([SIGINT]).unwrap()),
        ..RecordOptions::default()
    };
    let session =
        thread::spawn(move || record(server(&["cat"]).unwrap(), client, Stalled(begins, stalled), options));
    input.write_all(b"first\n").unwrap();
    begun.recv().unwrap();
    signal_hook::low_level::raise(SIGINT).unwrap();
    let ended = session.join().unwrap().unwrap();
    assert!(ended.sink.is_none());
    drop(release);
}

#[test]
fn a_command_that_cannot_be_started_says_why_and_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let write = |name: &str, text: &str, mode| {
        fs_err::write(path(name), text).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
        fs_err::set_permissions(path(name), mode).unwrap();
    };
    write("plain", "#!/bin/sh\n", 0o644);
    write("script", "#!/no/such/interpreter\n", 0o755);
    let why = |command: &[&str]| server(command).unwrap_err().to_string();
    let told = why(&["no-such-command-anywhere"]);
    assert!(
        told.starts_with("cannot start `no-such-command-anywhere`: no folder of PATH has it ("),
        "{told}"
    );
    assert!(told.ends_with("; give its absolute path"), "{told}");
    let told = why(&["./no/such/file"]);
    assert!(told.starts_with("cannot start `./no/such/file`: no such file in /"), "{told}");
    assert!(
        why(&[&path("plain")]).ends_with("not executable; `chmod +x` it, or put its interpreter before it")
    );
    assert!(why(&[&path("script")]).contains("the interpreter or loader it names is not"));
    assert!(why(&[&path("")]).ends_with("that is a folder; give the program in it"));
    assert!(why(&[]).ends_with("no command is given; put it after `--`"));
}
