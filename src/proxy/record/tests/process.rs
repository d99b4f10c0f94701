//! What is a process's own: its signals, descriptors, limits and end.

use super::*;

/// Not a test by itself: records in the process that the next test starts, and lives on until its stderr is read.
#[test]
fn records_in_a_process_of_its_own() {
    let Ok(script) = std::env::var("TAPEDECK_TEST_RECORD") else { return };
    crate::proxy::shutdown::outlive_size_limit().unwrap();
    let signals = Some(Signals::install().unwrap());
    let options = RecordOptions { grace: PATIENT, signals, ..RecordOptions::default() };
    let server = server(&["sh", "-c", &script]).unwrap();
    let client = Client::take().unwrap();
    let exit = match std::env::var_os("TAPEDECK_TEST_CASSETTE") {
        None => record(server, client, Log::default(), options).unwrap().exit,
        Some(cassette) => {
            let journal = Journal::create(cassette.as_ref(), new_header("stdio").unwrap()).unwrap();
            let ended = record(server, client, journal, options).unwrap();
            assert_ne!(ended.missed, 0);
            ended.exit
        }
    };
    if std::env::var_os("TAPEDECK_TEST_STAY").is_some() {
        io::stderr().write_all(b"over\n").unwrap();
        thread::park();
    }
    crate::proxy::shutdown::end_like(exit);
}

/// That process, with what stood on its stdout before the session read. `before` is done by the shell that becomes it.
fn own_process(before: &str, script: &str) -> (std::process::Child, BufReader<std::process::ChildStdout>) {
    let name = "proxy::record::tests::process::records_in_a_process_of_its_own";
    let mut process = std::process::Command::new("sh");
    process.args(["-c", &format!("{before}; exec \"$@\"")]).arg("sh").arg(std::env::current_exe().unwrap());
    process.args(["--exact", name]).env("TAPEDECK_TEST_RECORD", format!("echo begin; {script}"));
    let pipe = std::process::Stdio::piped;
    let mut process = process.stdin(pipe()).stdout(pipe()).stderr(pipe()).spawn().unwrap();
    let mut output = BufReader::new(process.stdout.take().unwrap());
    let mut line = String::new();
    while line != "begin\n" {
        line.clear();
        assert_ne!(output.read_line(&mut line).unwrap(), 0);
    }
    (process, output)
}

#[cfg(target_os = "linux")]
#[test]
fn a_server_hears_of_our_death_whatever_kills_us() {
    let script = r#"exec python3 -c '
import os, signal
signal.signal(signal.SIGTERM, lambda *_: (os.write(2, b"told\n"), os._exit(0)))
print("up", flush=True)
while True: signal.pause()'"#;
    let (mut process, mut output) = own_process(":", script);
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    process.kill().unwrap();
    let mut told = String::new();
    process.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    // The system may tell it more than once: for each thread that had it as a child.
    assert!(line == "up\n" && told.starts_with("told\n"), "{line}{told}");
    process.wait().unwrap();
}

#[test]
fn the_protocol_has_stdin_and_stdout_and_the_server_has_stderr() {
    let script = "echo complaint >&2; read line; echo \"got $line\"; kill -KILL $$";
    let (mut process, mut output) = own_process(":", script);
    process.stdin.as_mut().unwrap().write_all(b"it\n").unwrap();
    let (mut line, mut complaint) = (String::new(), String::new());
    // The end of output is seen although the client's side stays open.
    output.read_to_string(&mut line).unwrap();
    process.stderr.take().unwrap().read_to_string(&mut complaint).unwrap();
    assert_eq!((line.as_str(), complaint.as_str()), ("got it\n", "complaint\n"));
    assert_eq!(process.wait().unwrap().signal(), Some(9));
}

#[cfg(target_os = "linux")]
#[test]
fn what_we_inherited_as_ignored_the_server_inherits_but_its_end_is_seen() {
    // Its own default would end the shell at once.
    let (mut process, _output) = own_process("trap '' HUP CHLD", "kill -HUP $$; exit 5");
    assert_eq!(process.wait().unwrap().code(), Some(5));
}

#[test]
fn a_limit_on_the_size_of_files_costs_the_recording_and_not_the_session() {
    let folder = tempfile::tempdir().unwrap();
    let before = format!("export TAPEDECK_TEST_CASSETTE='{}/c.json'; ulimit -f 2", folder.path().display());
    let script = r#"for n in 1 2 3 4 5; do read line; printf '%01000d\n' $n; done; exit 5"#;
    let (mut process, mut output) = own_process(&before, script);
    let mut line = String::new();
    for n in 1..=5 {
        process.stdin.as_mut().unwrap().write_all(b"next\n").unwrap();
        line.clear();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, format!("{n:01000}\n"));
    }
    assert_eq!(process.wait().unwrap().code(), Some(5));
}

#[test]
fn a_signal_after_the_session_ends_us() {
    let (mut process, _output) = own_process("export TAPEDECK_TEST_STAY=1", "exit 0");
    let mut said = String::new();
    BufReader::new(process.stderr.take().unwrap()).read_line(&mut said).unwrap();
    assert_eq!(said, "over\n");
    let pid = rustix::process::Pid::from_child(&process);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(process.wait().unwrap().signal(), Some(15));
}
