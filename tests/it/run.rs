//! A run: a test command beside a replay, and processes that join it.

use std::{
    collections::HashMap,
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::support::{front::Front, http::Peer, program::TAPEDECK, run::Run, server::text};

/// Two sessions with equal calls and other answers; the second server died in the end.
const SESSIONS: &str = r#"{"cassette": 1,
  "sessions": [
    {"session": 1, "recording": 1, "transport": "stdio", "protocol": "2025-06-18"},
    {"session": 2, "recording": 1, "transport": "stdio", "protocol": "2025-06-18", "end": {"exit": 3, "partial": "half"}}
  ],
  "exchanges": [
    {"key": "initialize @1", "client": {"request": {"method": "initialize", "params": {}}}, "server": [{"result": {"capabilities": {}}}]},
    {"key": "a @1", "client": {"request": {"method": "a"}}, "server": [{"result": "one"}]},
    {"key": "initialize @2", "session": 2, "client": {"request": {"method": "initialize", "params": {}}}, "server": [{"result": {"capabilities": {}}}]},
    {"key": "a @2", "session": 2, "client": {"request": {"method": "a"}}, "server": [{"result": "two"}]},
    {"key": "die @1", "session": 2, "client": {"request": {"method": "die"}}, "server": []}
  ]}"#;

struct Stage {
    folder: TempDir,
    cassette: String,
}

impl Stage {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("deck.json");
        fs::write(&path, SESSIONS).expect("it is written");
        Self { folder, cassette: text(&path) }
    }

    /// Runs a test command to its end.
    fn run(&self, options: &[&str], shell: &str) -> Output {
        let mut command = Command::new(TAPEDECK);
        command.arg("run").args(options).args(["--", "sh", "-c", shell]).env("TAPEDECK", TAPEDECK);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it can be started");
        child.stdin.take().expect("a pipe").write_all(b"a line\n").expect("it is taken");
        child.wait_with_output().expect("it ends")
    }

    fn start(&self) -> Run {
        Run::start(&[&self.cassette, "--report", &text(&self.report())])
    }

    fn report(&self) -> PathBuf {
        self.folder.path().join("report.json")
    }

    fn read_report(&self) -> Value {
        serde_json::from_slice(&fs::read(self.report()).expect("it is there")).expect("JSON")
    }
}

/// A process that a client has started.
struct Joined {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Joined {
    fn start(run: &str, words: &[&str]) -> Self {
        Self::process(&[&["join", run], words].concat())
    }

    /// Any process of ours that speaks on stdio.
    fn process(words: &[&str]) -> Self {
        let mut child = Command::new(TAPEDECK)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it can be started");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { input: child.stdin.take(), child, output }
    }

    fn says(&mut self, id: u32, method: &str) {
        let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{{}}}}\n");
        self.input.as_mut().expect("it is open").write_all(line.as_bytes()).expect("it is taken");
    }

    fn hears(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("text");
        line
    }

    fn asks(&mut self, id: u32, method: &str) -> String {
        self.says(id, method);
        self.hears()
    }

    /// Begins a session, and asks what tells which one it plays.
    fn begins(&mut self) -> String {
        assert!(self.asks(0, "initialize").contains("capabilities"));
        self.asks(1, "a")
    }

    /// Closes its side; what came behind, the status, and what was said on stderr.
    fn ends(mut self) -> (String, Option<i32>, String) {
        drop(self.input.take());
        let (mut rest, mut said) = (String::new(), String::new());
        self.output.read_to_string(&mut rest).expect("text");
        self.child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
        (rest, self.child.wait().expect("it ends").code(), said)
    }
}

/// A client that waits for a server's first words hears them, and what the server has left to say once it closes its side.
#[test]
fn a_server_speaks_first_and_last_where_it_did() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("c.json");
    let cassette = r#"{"cassette": 1, "sessions": [{"session": 1, "transport": "stdio"}], "exchanges": [
        {"key": "first", "server": [{"raw": "first"}]},
        {"key": "a", "client": {"request": {"method": "a", "params": {}}}, "server": [{"result": "one"}]},
        {"key": "last", "server": [{"after_ms": 60000, "raw": "last"}]}]}"#;
    fs::write(&path, cassette).expect("it is written");
    let path = text(&path);
    let arguments = [&path, "--timing", "recorded"];
    let run = Run::start(&arguments);
    for mut process in
        [Joined::process(&[&["replay"], &arguments[..]].concat()), Joined::start(&run.joins(), &[])]
    {
        assert_eq!(process.hears(), "first\n");
        assert_eq!(process.asks(1, "a"), ONE);
        assert_eq!(process.ends(), ("last\n".to_owned(), Some(0), String::new()));
    }
    assert!(run.end().status.success());
}

const ONE: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"one\"}\n";
const TWO: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":\"two\"}\n";

#[test]
fn a_fault_that_closes_stdout_is_no_end_of_a_joined_process() {
    // As of a replay that is a process of its own.
    for joins in [false, true] {
        for dies in [true, false] {
            let stage = Stage::new();
            let fault = [&stage.cassette, "--session", "2", "--fault", "a: half_close"];
            let run = joins.then(|| Run::start(&fault));
            let mut process = match &run {
                Some(run) => Joined::start(&run.joins(), &[]),
                None => Joined::process(&[&["replay"], &fault[..]].concat()),
            };
            assert_eq!(process.begins(), TWO);
            assert_eq!(process.hears(), "", "nothing more is said");
            // It is still there, and hears.
            process.says(2, "ping");
            if dies {
                process.says(3, "die");
                let code = process.child.wait().expect("it ends").code();
                assert_eq!(code, Some(3), "joins: {joins}");
            }
            let status = if dies { 3 } else { 0 };
            assert_eq!(process.ends(), (String::new(), Some(status), String::new()), "joins: {joins}");
            assert!(run.is_none_or(|run| run.end().status.success()));
        }
    }
}

#[test]
fn what_a_test_command_says_and_hears_and_how_it_ends_is_passed_on() {
    let stage = Stage::new();
    let output = stage.run(&[&stage.cassette], "read line; echo \"out $line\"; echo err >&2; exit 7");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "out a line\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "err\n");
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(stage.run(&[&stage.cassette], "kill -9 $$").status.signal(), Some(9));
    let ping =
        r#"echo '{"jsonrpc":"2.0","id":1,"method":"ping"}' | "$TAPEDECK" join "$TAPEDECK_RUN" >/dev/null"#;
    let good = stage.run(&[&stage.cassette], ping);
    assert_eq!((good.status.code(), good.stdout.len() + good.stderr.len()), (Some(0), 0));
}

#[test]
fn a_test_command_that_passes_without_a_request_is_warned_of() {
    let stage = Stage::new();
    let said =
        |output: Output| (output.status.code(), String::from_utf8_lossy(&output.stderr).lines().count());
    assert_eq!(said(stage.run(&[&stage.cassette], "true")), (Some(0), 1));
    assert_eq!(said(stage.run(&[&stage.cassette], "exit 3")), (Some(3), 0));
}

#[test]
fn a_plan_asserts_of_all_servers_and_a_cassette_of_its_own() {
    let stage = Stage::new();
    let folder = stage.folder.path();
    let plan = text(&folder.join("plan.json"));
    fs::write(&plan, r#"{"faults": 1, "assert": {"calls": {"initialize": 3}, "sessions": 2}}"#)
        .expect("written");
    let asserting = SESSIONS.replacen("\"sessions\":", "\"assert\": {\"sessions\": 2},\n\"sessions\":", 1);
    let other = text(&folder.join("other.json"));
    fs::write(&other, asserting).expect("it is written");
    let (a, b) = (format!("a={}", stage.cassette), format!("b={other}"));
    let report = text(&stage.report());
    let run = Run::start(&["--server", &a, "--server", &b, "--faults", &plan, "--report", &report]);
    for server in ["a", "a", "b"] {
        let mut joined = Joined::start(&run.joins(), &[server]);
        joined.begins();
        joined.ends();
    }
    let output = run.end();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        (output.status.code(), said.contains("b: asserted sessions: 2, found 1")),
        (Some(1), true),
        "{said}"
    );
    let asserts = stage.read_report()["asserts"].as_array().expect("a list").clone();
    let short = |assert: &Value| {
        let holds = assert["holds"].as_bool().expect("a truth");
        format!(
            "{}{} {holds}",
            assert["server"].as_str().unwrap_or_default(),
            assert["assert"].as_str().expect("text")
        )
    };
    let short: Vec<String> = asserts.iter().map(short).collect();
    assert_eq!(short, ["bsessions: 2 false", "calls of initialize: 3 true", "sessions: 2 false"]);
}

#[test]
fn a_test_command_that_passes_with_a_bad_verdict_has_failed() {
    let stage = Stage::new();
    let miss =
        r#"echo '{"jsonrpc":"2.0","id":1,"method":"never"}' | "$TAPEDECK" join "$TAPEDECK_RUN" >/dev/null"#;
    let output = stage.run(&[&stage.cassette], miss);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.lines().count() == 1 && said.contains("never"), "{said}");
    // Its own status comes first.
    assert_eq!(stage.run(&[&stage.cassette], &format!("{miss}; exit 9")).status.code(), Some(9));
    assert_eq!(stage.run(&[&stage.cassette, "--strict"], "true").status.code(), Some(1));
}

#[test]
fn a_test_command_that_cannot_be_started_is_named() {
    let stage = Stage::new();
    let output = Command::new(TAPEDECK).args(["run", &stage.cassette, "--", "no-such-tests"]).output();
    let output = output.expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(4) && said.contains("`no-such-tests`"), "{said}");
    let output = Command::new(TAPEDECK).args(["run", "none.json", "--", "true"]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn signals_are_passed_on_to_the_test_command() {
    let stage = Stage::new();
    for (signal, name) in [(Signal::TERM, "TERM"), (Signal::INT, "INT"), (Signal::USR1, "USR1")] {
        let shell = format!("trap 'echo {name}; exit 5' {name}; echo ready; while :; do read line; done");
        let mut child = Command::new("setsid")
            .args(["--wait", TAPEDECK, "run", &stage.cassette, "--", "sh", "-c"])
            .arg(format!("echo $PPID; {shell}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it can be started");
        let mut output = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let pid = output.next().expect("a line").expect("text").parse().expect("a process");
        assert_eq!(output.next().expect("a line").expect("text"), "ready");
        kill_process(Pid::from_raw(pid).expect("a process"), signal).expect("it runs");
        assert_eq!(output.next().expect("a line").expect("text"), name);
        assert_eq!(child.wait().expect("it ends").code(), Some(5), "{name}");
    }
}

#[test]
fn a_process_that_joins_is_a_session_of_its_own() {
    let stage = Stage::new();
    let run = stage.start();
    let mut first = Joined::start(&run.joins(), &["deck"]);
    assert_eq!(first.begins(), ONE);
    // Two at once, with equal ids.
    let mut second = Joined::start(&run.joins(), &[]);
    assert_eq!(second.begins(), TWO);
    // The first one is killed and started again: a new session, which plays the last one once more.
    first.child.kill().expect("it runs");
    first.child.wait().expect("it was killed");
    let mut again = Joined::start(&run.joins(), &[]);
    assert_eq!(again.begins(), TWO);
    assert_eq!(second.asks(1, "a"), TWO, "the killed one has taken nobody with it");
    assert_eq!(second.ends(), (String::new(), Some(0), String::new()));
    // The recorded server died here, in the middle of a line.
    again.says(2, "die");
    assert_eq!(again.ends(), ("half".to_owned(), Some(3), String::new()));
    // Another take begins with the first recorded session.
    let mut other = Joined::start(&run.joins(), &["--take", "b"]);
    assert_eq!(other.begins(), ONE);
    assert_eq!(other.ends().1, Some(0));
    assert!(run.end().status.success());
    let report = stage.read_report();
    assert_eq!((&report["sessions"], &report["connections"]), (&4.into(), &4.into()));
    assert_eq!(report["verdict"], "good");
}

#[test]
fn what_is_owed_to_a_client_that_has_closed_its_side_is_still_sent() {
    let stage = Stage::new();
    let run = stage.start();
    let mut joined = Joined::start(&run.joins(), &[]);
    joined.says(0, "initialize");
    joined.says(1, "a");
    let (rest, status, _) = joined.ends();
    assert!(rest.ends_with(ONE) && status == Some(0), "{rest}");
    drop(run.end());
}

#[test]
fn a_process_that_cannot_join_says_so_in_the_protocol() {
    let stage = Stage::new();
    let run = stage.start();
    let mut joined = Joined::start(&run.joins(), &["other"]);
    let answer = joined.asks(7, "initialize");
    assert!(answer.contains("\"id\":7,\"error\":{\"code\":-33001"), "{answer}");
    assert!(answer.contains("no server `other`; it has deck"), "{answer}");
    assert_eq!(joined.ends().1, Some(2));
    let gone = run.joins();
    // Its client had no server, and that is no good run.
    let output = run.end();
    assert_eq!(output.status.code(), Some(1));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("1 process could not join: this run has no server `other`"), "{said}");
    let report = stage.read_report();
    let why = "this run has no server `other`; it has deck";
    assert_eq!(
        (&report["verdict"], &report["not_joined"]),
        (&"bad".into(), &serde_json::json!([{"why": why, "count": 1}]))
    );
    assert_eq!(crate::schema::faults("report", report.to_string().as_bytes()), [""; 0]);
    let verdict = Command::new(TAPEDECK).args(["verdict", &text(&stage.report())]).output().expect("it runs");
    assert!(String::from_utf8_lossy(&verdict.stdout).contains(&format!("could not join: {why}")));
    assert!(!Path::new(&gone).parent().expect("a folder").exists(), "nothing is left behind");
    let mut joined = Joined::start(&gone, &[]);
    let answer = joined.asks(7, "initialize");
    assert!(answer.contains("cannot reach a run") && answer.contains("TAPEDECK_RUN"), "{answer}");
    assert_eq!(joined.ends().1, Some(4));
}

#[test]
fn a_process_that_cannot_write_to_its_client_is_told_of_by_the_run() {
    let stage = Stage::new();
    let run = stage.start();
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("it is there");
    let mut command = Command::new(TAPEDECK);
    command.args(["join", &run.joins()]).stdin(Stdio::piped()).stdout(full).stderr(Stdio::null());
    let mut child = command.spawn().expect("it can be started");
    let mut input = child.stdin.take().expect("a pipe");
    writeln!(input, r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{}}}}"#)
        .expect("it is taken");
    assert_eq!(child.wait().expect("it ends").code(), Some(3));
    assert_eq!(run.end().status.code(), Some(1));
    let why = stage.read_report()["not_joined"][0]["why"].as_str().expect("a sentence").to_owned();
    assert!(why.starts_with("cannot write to the client: "), "{why}");
}

#[test]
fn a_process_whose_run_is_killed_ends_and_one_whose_run_ends_ends_well() {
    let stage = Stage::new();
    for (kills, expected) in [(true, Some(4)), (false, Some(0))] {
        let run = stage.start();
        let mut joined = Joined::start(&run.joins(), &[]);
        joined.begins();
        if kills {
            run.kill();
        } else {
            drop(run.end());
        }
        let mut rest = String::new();
        joined.output.read_to_string(&mut rest).expect("text");
        assert_eq!((rest, joined.child.wait().expect("it ends").code()), (String::new(), expected));
    }
}

#[test]
fn only_its_owner_can_enter_where_processes_join() {
    use std::os::unix::fs::PermissionsExt as _;
    let run = Stage::new().start();
    let folder = PathBuf::from(run.joins()).parent().expect("a folder").to_owned();
    assert_eq!(fs::metadata(folder).expect("it is there").permissions().mode() & 0o777, 0o700);
    drop(run.end());
}

#[test]
fn several_servers_are_told_apart_by_path_and_name() {
    let stage = Stage::new();
    let of = |name: &str| format!("{name}={}", stage.cassette);
    let report = text(&stage.report());
    let run = Run::start(&["--server", &of("primary"), "--server", &of("back-up"), "--report", &report]);
    let origin = &run.environment["TAPEDECK_ORIGIN"];
    assert_eq!(run.environment["TAPEDECK_URL_PRIMARY"], format!("{origin}/primary/mcp"));
    assert_eq!(run.environment["TAPEDECK_URL_BACK_UP"], format!("{origin}/back-up/mcp"));
    assert_eq!(run.environment["TAPEDECK_URL"], format!("{origin}/primary/mcp"));
    let asks = |target: &str| ask(&origin["http://".len()..], target, "initialize");
    for target in ["/primary/mcp", "/back-up/mcp", "/take/t/back-up/mcp"] {
        assert!(asks(target).contains("\"capabilities\""), "{target}");
    }
    let stream = first_event(&origin["http://".len()..], "/take/t/back-up/sse");
    assert!(stream.starts_with("data: /take/t/back-up/messages?"), "{stream}");
    for target in ["/mcp", "/other/mcp", "/"] {
        let refused = asks(target);
        assert!(refused.starts_with("HTTP/1.1 404") && refused.contains("primary, back-up"), "{refused}");
    }
    let mut joined = Joined::start(&run.joins(), &["back-up"]);
    assert!(joined.asks(5, "never").contains("-33000"));
    assert_eq!(joined.ends().1, Some(0));
    let mut unnamed = Joined::start(&run.joins(), &[]);
    assert!(unnamed.asks(1, "a").contains("name a server: this run has primary, back-up"));
    assert_eq!(unnamed.ends().1, Some(2));
    let output = run.end();
    assert_eq!(output.status.code(), Some(1));
    let faults = crate::schema::faults("report", &fs::read(stage.report()).expect("it is there"));
    assert_eq!(faults, [""; 0]);
    let report = stage.read_report();
    assert_eq!(
        (&report["misses"][0]["server"], &report["calls"]["initialize"]),
        (&"back-up".into(), &3.into())
    );
    assert_eq!(
        report["unused"].as_array().expect("keys").iter().filter(|key| **key == "primary: a @1").count(),
        1
    );
    let verdict = Command::new(TAPEDECK).args(["verdict", &text(&stage.report())]).output().expect("it runs");
    assert!(String::from_utf8_lossy(&verdict.stdout).contains("miss: back-up: never"));
}

/// A rule without `server` is for all of them, and has to fit something that one of them has.
#[test]
fn a_rule_that_fits_nothing_of_any_server_is_refused() {
    let stage = Stage::new();
    let other = stage.folder.path().join("other.json");
    fs::write(
        &other,
        SESSIONS.replace("\"a @1\"", "\"b @1\"").replace("{\"method\": \"a\"}", "{\"method\": \"b\"}"),
    )
    .expect("it is written");
    let plan = stage.folder.path().join("plan.json");
    let servers = [format!("one={}", stage.cassette), format!("two={}", text(&other))];
    let run = |rule: &str| {
        fs::write(&plan, format!("{{\"faults\": 1,\n \"rules\": [{rule}]}}")).expect("it is written");
        let options = ["--server", &servers[0], "--server", &servers[1], "--faults", &text(&plan)];
        let output = stage.run(&options, "true");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (status, said) = run(r#"{"when": {"method": "q"}, "do": "timeout"}"#);
    assert_eq!(status, Some(3), "{said}");
    let told = format!(
        "({}:2:12) fits nothing that was recorded; its method can be a, b, die and initialize",
        plan.display()
    );
    assert!(said.contains(&told) && said.contains("any of the servers one, two"), "{said}");
    let (status, said) = run(r#"{"when": {"server": "three"}, "do": "timeout"}"#);
    assert!(
        status == Some(3) && said.contains("no server is called `three`; there is one and two"),
        "{said}"
    );
    let (status, said) = run(r#"{"when": {"key": "initialise @2"}, "do": "timeout"}"#);
    assert!(status == Some(3) && said.contains("did you mean the key `initialize @2`?"), "{said}");
    // What one of them has is enough.
    let (status, said) = run(r#"{"when": {"method": "b"}, "do": "timeout", "optional": true}"#);
    assert_eq!(status, Some(0), "{said}");
}

#[test]
fn servers_whose_names_cannot_stand_in_a_path_are_refused() {
    let stage = Stage::new();
    for (servers, why) in [
        (vec!["--server", "take=c.json"], "`take` cannot be the name"),
        (vec!["--server", "a b=c.json"], "`a b` cannot be the name"),
        (vec!["--server", "a-b=C", "--server", "a_b=C"], "two servers are called `a_b`"),
        (vec!["C", "C"], "two servers are called `deck`"),
    ] {
        let servers = servers.iter().map(|word| word.replace('C', &stage.cassette));
        let output = Command::new(TAPEDECK).arg("run").args(servers).args(["--", "true"]).output();
        let output = output.expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(why), "{said}");
    }
    let mut replay = Command::new(TAPEDECK);
    replay.args(["replay", "--server", &format!("a={}", stage.cassette)]).stdin(Stdio::null());
    let output = replay.output().expect("it runs");
    assert!(String::from_utf8_lossy(&output.stderr).contains("--listen"));
}

#[test]
fn a_replay_that_listens_can_be_joined_and_says_where() {
    let stage = Stage::new();
    let ready = stage.folder.path().join("replay.ready");
    let front = Front::start(&["replay", &stage.cassette], stage.folder.path());
    let told: HashMap<String, Value> =
        serde_json::from_slice(&fs::read(ready).expect("it is there")).expect("JSON");
    assert_eq!(told["servers"]["deck"], *front.url);
    let mut joined = Joined::start(told["run"].as_str().expect("text"), &[]);
    assert_eq!(joined.begins(), ONE);
    assert_eq!(joined.ends().1, Some(0));
    front.end();
}

#[test]
fn a_take_without_a_name_is_none() {
    let stage = Stage::new();
    let front = Front::start(&["replay", &stage.cassette], stage.folder.path());
    let host = &front.origin["http://".len()..];
    for target in ["/take//mcp", "/take/./mcp", "/take/../mcp", "/take/%2E%2e/mcp"] {
        let refused = ask(host, target, "initialize");
        assert!(refused.starts_with("HTTP/1.1 404") && refused.contains("name of a take"), "{refused}");
    }
    let said = front.end_with(1);
    assert!(said.contains("no recorded answer for 4 requests, first POST /take//mcp: "), "{said}");
}

/// The whole response to a request on a connection of its own.
fn ask(host: &str, target: &str, method: &str) -> String {
    let body = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{method}\",\"params\":{{}}}}");
    let mut peer = Peer::new(std::net::TcpStream::connect(host).expect("it listens"));
    let length = body.len();
    peer.say(format!(
        "POST {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    ));
    peer.rest().0
}

/// The data of the first event on a stream.
fn first_event(host: &str, target: &str) -> String {
    let mut stream = std::net::TcpStream::connect(host).expect("it listens");
    let request = format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nAccept: text/event-stream\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("it is taken");
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    lines.find(|line| line.starts_with("data: ")).expect("an event")
}

#[test]
fn a_request_for_none_of_the_servers_is_a_miss_unless_clients_look_there_by_themselves() {
    let stage = Stage::new();
    let of = |name: &str| format!("{name}={}", stage.cassette);
    for (asked, miss) in [
        ("POST /other/mcp?key=secret", "`POST /other/mcp` is for no server of this run"),
        ("GET /", "`GET /` is for no server of this run"),
        ("DELETE /take//a/mcp", "`DELETE /take//a/mcp` is for no server of this run"),
        ("GET /.well-known/oauth-protected-resource/a/mcp", ""),
        ("GET /favicon.ico", ""),
        ("HEAD /", ""),
    ] {
        let report = text(&stage.report());
        let run = Run::start(&["--server", &of("a"), "--server", &of("b"), "--report", &report]);
        let host = run.environment["TAPEDECK_ORIGIN"]["http://".len()..].to_owned();
        for _ in 0..2 {
            let mut peer = Peer::new(TcpStream::connect(&host).expect("it listens"));
            peer.say(format!(
                "{asked} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx"
            ));
            assert!(peer.rest().0.starts_with("HTTP/1.1 404 "), "{asked}");
        }
        let output = run.end();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(i32::from(!miss.is_empty())), "{asked}: {said}");
        let report = stage.read_report();
        let misses = report["misses"].as_array().expect("misses");
        assert_eq!(report["verdict"], if miss.is_empty() { "good" } else { "bad" }, "{asked}");
        assert_eq!(misses.len(), usize::from(!miss.is_empty()), "{report}");
        if !miss.is_empty() {
            assert!(
                said.contains(miss) && !said.contains("secret") && misses[0]["count"] == 2,
                "{said} {report}"
            );
            assert_eq!(crate::schema::faults("report", report.to_string().as_bytes()), [""; 0]);
        }
    }
}
