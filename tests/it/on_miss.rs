//! `--on-miss`: what nobody recorded is answered by the real server.

mod secrets;

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{front::Front, http::Peer, program::TAPEDECK, server::text};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

fn measure(id: &str, city: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"measure","arguments":{{"city":"{city}"}},"_meta":{{"progressToken":{id}}}}}}}"#
    )
}

/// A server's command, and a cassette of a session with it in which Oslo was measured, and Lisbon.
struct Stage {
    folder: TempDir,
    server: Vec<String>,
}

impl Stage {
    fn new() -> Self {
        let server = [TAPEDECK, "demo-server"].map(String::from).to_vec();
        let stage = Self { folder: tempfile::tempdir().expect("a folder"), server };
        let input = [INITIALIZE, INITIALIZED, &measure("1", "Oslo"), &measure("2", "Lisbon"), ""].join("\n");
        let recorded = stage.run(&["record", "c.json"], &stage.server, &input);
        assert!(recorded.status.success(), "{recorded:?}");
        stage
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("it is there")
    }

    fn report(&self) -> Value {
        serde_json::from_str(&self.read("r.json")).expect("JSON")
    }

    fn program(&self, program: &str, words: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(words).current_dir(self.folder.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn command(&self, words: &[&str], server: &[String]) -> Command {
        let mut command = self.program(TAPEDECK, words);
        if !server.is_empty() {
            command.arg("--").args(server);
        }
        command
    }

    /// Runs it to its end with this input.
    fn run(&self, words: &[&str], server: &[String], input: &str) -> Output {
        let mut child = self.command(words, server).spawn().expect("it starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        // One that refuses its command line reads nothing.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        child.wait_with_output().expect("it ends")
    }

    /// A talk of a client that has begun its session.
    fn begin(&self, words: &[&str], server: &[String]) -> Talk {
        let mut talk = Talk::of(self.command(words, server));
        talk.begin();
        talk
    }
}

/// A client on stdio.
struct Talk {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Talk {
    fn of(mut command: Command) -> Self {
        let mut child = command.spawn().expect("it starts");
        let input = child.stdin.take().expect("a pipe");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { child, input: Some(input), output }
    }

    /// Begins a session.
    fn begin(&mut self) {
        self.say(INITIALIZE);
        assert_eq!(self.hear()["id"], 0);
        self.say(INITIALIZED);
    }

    fn say(&mut self, line: &str) {
        writeln!(self.input.as_mut().expect("it is open"), "{line}").expect("it is read");
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("text");
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("no message: {line:?}"))
    }

    /// The answer to a measurement, behind its progress.
    fn measured(&mut self, id: &Value) -> String {
        for step in 1..=2 {
            let progress = self.hear();
            let params = json!([progress["params"]["progressToken"], progress["params"]["progress"]]);
            assert_eq!(params, json!([id, step]), "{progress}");
        }
        let answer = self.hear();
        assert_eq!(&answer["id"], id, "{answer}");
        answer["result"]["content"][0]["text"].as_str().expect("a text").to_owned()
    }

    /// Closes its side; how the replay ends.
    fn end(mut self) -> (Option<i32>, String) {
        drop(self.input.take());
        let output = self.child.wait_with_output().expect("it ends");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

const UPSTREAM: [&str; 6] = ["replay", "c.json", "--report", "r.json", "--on-miss", "upstream"];

#[test]
fn on_stdio_the_real_server_answers_what_was_not_recorded_and_the_cassette_the_rest() {
    let stage = Stage::new();
    let before = stage.read("c.json");
    let mut talk = stage.begin(&UPSTREAM, &stage.server);
    talk.say(&measure("1", "Oslo"));
    let recorded = talk.measured(&json!(1));
    assert!(before.contains(recorded.lines().next().expect("a line")), "{recorded}");
    talk.say(&measure("\"b\"", "Bergen"));
    assert!(talk.measured(&json!("b")).starts_with("Bergen at "));
    talk.say(&measure("2", "Lisbon"));
    assert!(talk.measured(&json!(2)).starts_with("Lisbon at "));
    talk.say(&measure("0.5", "Bergen"));
    talk.measured(&json!(0.5));
    let (status, stderr) = talk.end();
    assert_eq!((status, &*stderr), (Some(0), ""));
    let report = stage.report();
    assert_eq!(report["verdict"], "good");
    assert_eq!(
        report["passed_on"],
        json!([{"request": "tools/call measure", "reason": "params_differ", "nearest": "tools/call measure @1", "count": 2}])
    );
    assert_eq!(report["misses"], json!([]));
    assert_eq!(stage.read("c.json"), before);
    assert_eq!(stage.names(), ["c.json", "r.json"]);
}

#[test]
fn the_last_answer_of_a_server_needs_no_line_end() {
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"bye"}]}}"#;
    let says = format!(
        "read a; echo '{{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{{}}}}'; read b; read c; printf %s '{answer}'"
    );
    let server = ["sh", "-c", &says].map(String::from);
    for way in ["upstream", "record"] {
        let stage = Stage::new();
        let words = ["replay", "c.json", "--report", "r.json", "--on-miss", way];
        let mut talk = stage.begin(&words, &server);
        talk.say(&measure("7", "Bergen"));
        let heard = talk.hear();
        assert_eq!(
            (&heard["id"], &heard["result"]["content"][0]["text"]),
            (&json!(7), &json!("bye")),
            "{heard}"
        );
        assert_eq!(talk.end(), (Some(0), String::new()), "{way}");
        assert_eq!(stage.read("c.json").contains("\"bye\""), way == "record", "{way}");
    }
}

#[test]
fn the_real_server_starts_with_the_first_miss() {
    let stage = Stage::new();
    let server = ["sh", "-c", "touch started; exec \"$0\" demo-server", TAPEDECK].map(String::from);
    let mut talk = stage.begin(&UPSTREAM, &server);
    talk.say(&measure("1", "Oslo"));
    talk.measured(&json!(1));
    assert!(!stage.path("started").exists());
    talk.say(&measure("2", "Bergen"));
    talk.measured(&json!(2));
    assert!(stage.path("started").exists());
    assert_eq!(talk.end().0, Some(0));
}

#[test]
fn a_server_that_is_not_there_or_dies_is_told_to_the_client_and_bad() {
    let dies = "read a; echo '{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}'; read b; read c; exit 7";
    let stage = Stage::new();
    for (server, why) in [
        (&["no-such-program"][..], "no-such-program"),
        (&["sh", "-c", "exit 3"], "the real server has ended, with status 3"),
        (&["sh", "-c", dies], "the real server has ended, with status 7"),
    ] {
        let server: Vec<String> = server.iter().map(ToString::to_string).collect();
        let mut talk = stage.begin(&UPSTREAM, &server);
        talk.say(&measure("7", "Bergen"));
        let answer = talk.hear();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(7), &json!(-33001)), "{answer}");
        assert!(answer["error"]["message"].as_str().expect("a text").contains(why), "{answer}");
        // The cassette goes on.
        talk.say(&measure("1", "Oslo"));
        talk.measured(&json!(1));
        let (status, stderr) = talk.end();
        assert_eq!(status, Some(1), "{stderr}");
        assert!(stderr.contains("1 request passed on and not answered"), "{stderr}");
        let report = stage.report();
        assert_eq!((&report["verdict"], &report["passed_on"][0]["failed"]), (&json!("bad"), &json!(1)));
    }
    let words = [&UPSTREAM[..], &["--url", "http://127.0.0.1:9/mcp"]].concat();
    let mut talk = stage.begin(&words, &[]);
    talk.say(&measure("7", "Bergen"));
    let answer = talk.hear();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!(7), &json!(-33001)), "{answer}");
    assert!(answer["error"]["message"].as_str().expect("a text").contains("127.0.0.1:9"), "{answer}");
    assert_eq!(talk.end().0, Some(1));
}

/// The handshake with the server is never over.
#[test]
fn a_client_that_leaves_has_a_server_end_that_it_was_not_greeted_by() {
    let stage = Stage::new();
    for server in [&["sh", "-c", "cat > heard"][..], &["cat"]] {
        let server: Vec<String> = server.iter().map(ToString::to_string).collect();
        let mut talk = stage.begin(&UPSTREAM, &server);
        talk.say(&measure("7", "Bergen"));
        assert_eq!(talk.end().0, Some(1));
        assert_eq!(stage.report()["passed_on"][0]["failed"], 1);
    }
    let heard = stage.read("heard");
    let methods: Vec<Value> = heard
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("a message")["method"].clone())
        .collect();
    assert_eq!(methods, ["initialize", "notifications/initialized", "tools/call"]);
}

#[test]
fn faults_act_on_what_the_real_server_says_too() {
    let stage = Stage::new();
    let words = [&UPSTREAM[..], &["--fault", "tools/call measure: duplicate"]].concat();
    let mut talk = stage.begin(&words, &stage.server);
    talk.say(&measure("7", "Nowhere"));
    let answer = talk.hear();
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert_eq!(talk.hear(), answer);
    assert_eq!(talk.end().0, Some(0));
    assert_eq!(stage.report()["faults"][0]["fired"], 1);
}

#[test]
fn what_is_missing_or_too_much_is_said_with_the_next_step() {
    let stage = Stage::new();
    let server = &stage.server[..];
    for (words, server, why) in [
        (&["replay", "c.json", "--on-miss", "upstream"][..], &[][..], "its command behind `--`"),
        (&["replay", "c.json"], server, "`--on-miss upstream`"),
        (&["replay", "c.json", "--url", "http://127.0.0.1:9/mcp"], &[], "`--on-miss upstream`"),
        (&["replay", "c.json", "--on-miss", "upstream", "--url", "http://127.0.0.1:9/"], server, "--url"),
        (&["replay", "c.json", "--on-miss", "upstream", "--url", "not a url"], &[], "--url"),
        (&["replay", "c.json", "--on-miss", "perhaps"], server, "upstream"),
        (&["run", "c.json", "--on-miss", "upstream"], server, "`--url URL`"),
        (
            &["run", "c.json", "c.json", "--on-miss", "upstream", "--url", "http://127.0.0.1:9/"],
            server,
            "two servers",
        ),
        (
            &[
                "run",
                "--server",
                "a=c.json",
                "--server",
                "b=c.json",
                "--on-miss",
                "upstream",
                "--url",
                "http://127.0.0.1:9/",
            ],
            server,
            "one cassette",
        ),
    ] {
        let refused = stage.run(words, server, &format!("{INITIALIZE}\n"));
        let stderr = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{words:?}: {stderr}");
        assert!(stderr.contains(why), "{words:?}: {stderr}");
    }
}

/// What is posted to a front, and what it says to that; session id and body.
fn post(front: &Front, session: Option<&str>, body: &str) -> (String, String) {
    let host = &front.origin["http://".len()..];
    let mut peer = Peer::new(TcpStream::connect(host).expect("it listens"));
    let session = session.map(|id| format!("Mcp-Session-Id: {id}\r\n")).unwrap_or_default();
    peer.say(format!(
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nAccept: application/json, text/event-stream\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n{session}\r\n{body}",
        body.len()
    ));
    let head = peer.head();
    let id =
        head.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap_or_default().to_owned();
    (id, peer.rest().0)
}

#[test]
fn over_http_each_session_has_a_real_server_of_its_own() {
    let stage = Stage::new();
    let cassette = text(&stage.path("c.json"));
    let started = text(&stage.path("started"));
    // The real server is over HTTP: another replay that passes on, so that both ways are in it.
    let real = ["replay", &cassette, "--on-miss", "upstream", "--", "sh", "-c"];
    let real = [&real[..], &["echo x >> \"$1\"; exec \"$0\" demo-server", TAPEDECK, &started]].concat();
    let real = Front::start(&real, &stage.path(""));
    let folder = tempfile::tempdir().expect("a folder");
    let front =
        Front::start(&["replay", &cassette, "--on-miss", "upstream", "--url", &real.url], folder.path());
    let sessions: Vec<String> = (0..2).map(|_| post(&front, None, INITIALIZE).0).collect();
    assert_ne!(sessions[0], sessions[1]);
    for (session, id) in [(0, "5"), (1, "5"), (0, "\"5\""), (1, "6")] {
        let (_, body) = post(&front, Some(&sessions[session]), &measure(id, "Bergen"));
        assert!(body.contains(&format!("\"id\":{id},\"result\"")) && body.contains("Bergen at"), "{body}");
        assert!(body.contains(&format!("\"progressToken\":{id}")), "{body}");
        let (_, body) = post(&front, Some(&sessions[session]), &measure(id, "Oslo"));
        assert!(body.contains("Oslo at"), "{body}");
    }
    assert_eq!(stage.read("started").lines().count(), 2);
    front.end();
    real.end();
}

const RECORD: [&str; 6] = ["replay", "c.json", "--report", "r.json", "--on-miss", "record"];

/// Asserts that nothing was changed in a cassette but that exchanges were added behind the last one; how many.
fn assert_only_added(before: &str, after: &str) -> usize {
    let kept = before.strip_suffix("\n  ]\n}\n").expect("a cassette ends so");
    let added = after.strip_prefix(kept).unwrap_or_else(|| panic!("{after}"));
    assert!(
        added.starts_with(",\n    {\n      \"key\": ") && added.ends_with("\n    }\n  ]\n}\n"),
        "{added}"
    );
    added.matches("\"journal\": ").count()
}

fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

impl Stage {
    /// Asserts that a program of ours has nothing against the cassette.
    fn assert_well_formed(&self) {
        for words in [&["fmt", "--check", "c.json"][..], &["lint", "c.json", "--allow", "handshake-early"]] {
            let output = self.run(words, &[], "");
            assert!(output.status.success(), "{words:?}: {}", said(&output));
        }
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.folder.path()).expect("a folder").flatten();
        let mut names: Vec<_> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

#[test]
fn what_was_passed_on_is_added_and_the_next_replay_needs_no_server() {
    let stage = Stage::new();
    let before = stage.read("c.json");
    let play = |words: &[&str], server: &[String]| {
        let mut talk = stage.begin(words, server);
        let mut heard = Vec::new();
        for (id, city) in [("1", "Oslo"), ("\"b\"", "Bergen"), ("2", "Lisbon"), ("3", "Bergen")] {
            talk.say(&measure(id, city));
            heard.push(talk.measured(&serde_json::from_str(id).expect("JSON")));
        }
        talk.say(&measure("4", "Nowhere"));
        heard.push(talk.hear().to_string());
        assert_eq!(talk.end(), (Some(0), String::new()));
        heard
    };
    let heard = play(&RECORD, &stage.server);
    // The server was asked twice for Bergen, as the second time no answer was recorded yet.
    assert_eq!(stage.report()["passed_on"][0]["count"], 3);
    assert_eq!(assert_only_added(&before, &stage.read("c.json")), 3);
    stage.assert_well_formed();
    let again = play(&["replay", "c.json", "--report", "r.json", "--strict"], &[]);
    assert_eq!(again, heard);
    assert_eq!(stage.report()["verdict"], "good");
    // With nothing to add it stays as it is.
    let after = stage.read("c.json");
    play(&RECORD, &["no-such-program".to_owned()]);
    assert_eq!(stage.read("c.json"), after);
    assert_eq!(stage.names(), ["c.json", "r.json"]);
}

#[test]
fn an_error_of_ours_is_no_answer_that_is_added() {
    let stage = Stage::new();
    let before = stage.read("c.json");
    let words = [&RECORD[..], &["--url", "http://127.0.0.1:9/mcp"]].concat();
    let mut talk = stage.begin(&words, &[]);
    talk.say(&measure("7", "Bergen"));
    assert_eq!(talk.hear()["error"]["code"], -33001);
    // A request of its own era needs no handshake, and fails by itself.
    let version = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    let list = json!({"jsonrpc": "2.0", "id": 8, "method": "prompts/list", "params": {"_meta": version}});
    talk.say(&list.to_string());
    assert_eq!(talk.hear()["error"]["code"], -33001);
    assert_eq!(talk.end().0, Some(1));
    assert_eq!(stage.read("c.json"), before);
    assert_eq!(stage.names(), ["c.json", "r.json"]);
}

#[test]
fn what_a_client_has_heard_outlives_a_replay_that_is_killed() {
    let stage = Stage::new();
    let before = stage.read("c.json");
    let mut talk = stage.begin(&RECORD, &stage.server);
    talk.say(&measure("5", "Bergen"));
    let heard = talk.measured(&json!(5));
    talk.child.kill().expect("it runs");
    talk.child.wait().expect("it was killed");
    assert_eq!(stage.read("c.json"), before);
    let play = |words: &[&str]| {
        let mut talk = stage.begin(words, &[]);
        talk.say(&measure("7", "Bergen"));
        assert_eq!(talk.measured(&json!(7)), heard);
        talk.say(&measure("8", "Oslo"));
        talk.measured(&json!(8));
        assert_eq!(talk.end().0, Some(0));
    };
    // Whoever reads the cassette reads its journal too.
    play(&["replay", "c.json"]);
    assert_eq!(stage.names().len(), 3);
    let recovered = stage.run(&["recover", "c.json"], &[], "");
    assert!(recovered.status.success(), "{}", said(&recovered));
    assert_eq!(stage.names(), ["c.json", "r.json"]);
    assert_eq!(assert_only_added(&before, &stage.read("c.json")), 1);
    play(&["replay", "c.json"]);
}

#[test]
fn what_is_secret_is_not_written_but_reaches_the_server() {
    let stage = Stage::new();
    let secret = format!("ghp_{}", "a1B2".repeat(9));
    let mut talk = stage.begin(&RECORD, &stage.server);
    talk.say(&measure("5", &secret));
    let answer = talk.hear().to_string();
    assert!(answer.contains(&secret), "{answer}");
    assert_eq!(talk.end().0, Some(0));
    let cassette = stage.read("c.json");
    assert!(
        !cassette.contains(&secret) && cassette.contains("There is no station in <redacted:"),
        "{cassette}"
    );
    let mut talk = stage.begin(&["replay", "c.json"], &[]);
    talk.say(&measure("5", &secret));
    assert!(talk.hear().to_string().contains("There is no station in <redacted:"));
    assert_eq!(talk.end().0, Some(0));
}

/// Secrets are numbered anew in what is added: each is told from the others by what it was added with.
#[test]
fn what_was_added_at_different_times_keeps_its_own_secrets() {
    let stage = Stage::new();
    let secrets = ["a1B2", "c3D4", "e5F6"].map(|part| format!("ghp_{}", part.repeat(9)));
    let play = |words: &[&str], server: &[String], secrets: &[String]| {
        let mut talk = stage.begin(words, server);
        for secret in secrets {
            talk.say(&measure("5", secret));
            assert!(talk.hear().to_string().contains("There is no station in"));
        }
        assert_eq!(talk.end().0, Some(0));
    };
    for count in 1..=secrets.len() {
        play(&RECORD, &stage.server, &secrets[..count]);
    }
    play(&["replay", "c.json", "--report", "r.json"], &[], &secrets);
    assert_eq!((&stage.report()["misses"], &stage.report()["repeats"]), (&json!([]), &json!([])));
}

#[test]
fn sessions_side_by_side_add_to_the_one_that_they_play() {
    let stage = Stage::new();
    let before = stage.read("c.json");
    let cassette = text(&stage.path("c.json"));
    let words = ["replay", &cassette, "--on-miss", "record", "--", TAPEDECK, "demo-server"];
    let front = Front::start(&words, &stage.path(""));
    let sessions: Vec<String> = (0..2).map(|_| post(&front, None, INITIALIZE).0).collect();
    let mut heard = Vec::new();
    for (session, id, city) in
        [(0, "5", "Bergen"), (1, "5", "Nowhere"), (0, "6", "Elsewhere"), (1, "7", "Bergen")]
    {
        heard.push(post(&front, Some(&sessions[session]), &measure(id, city)).1);
    }
    front.end();
    assert_eq!(assert_only_added(&before, &stage.read("c.json")), 4);
    stage.assert_well_formed();
    assert_eq!(stage.names().iter().filter(|name| name.contains("journal")).count(), 0);
    let front = Front::start(&["replay", &cassette], &stage.path(""));
    let session = post(&front, None, INITIALIZE).0;
    for (city, of) in [("Nowhere", 1), ("Elsewhere", 2)] {
        let body = post(&front, Some(&session), &measure("9", city)).1;
        assert!(body.contains(city) && heard[of].contains(city), "{body}");
    }
    front.end();
}

#[test]
fn a_run_passes_on_to_a_url_and_its_test_command_is_no_server() {
    let stage = Stage::new();
    let cassette = text(&stage.path("c.json"));
    let words = ["replay", &cassette, "--on-miss", "upstream", "--", TAPEDECK, "demo-server"];
    let real = Front::start(&words, &stage.path(""));
    let shell = format!("\"{TAPEDECK}\" join \"$TAPEDECK_RUN\" c < input");
    std::fs::write(stage.path("input"), [INITIALIZE, INITIALIZED, &measure("3", "Bergen"), ""].join("\n"))
        .expect("it is written");
    let ran = stage.run(
        &["run", "c.json", "--on-miss", "record", "--url", &real.url],
        &["sh", "-c", &shell].map(String::from),
        "",
    );
    assert!(ran.status.success() && said(&ran).contains("Bergen at"), "{}", said(&ran));
    assert!(stage.read("c.json").contains("Bergen at"));
    real.end();
}

/// A server over HTTP that takes a call and never answers it, and has no stream on which it could.
#[test]
fn a_call_that_the_real_server_only_takes_in_ends() {
    let stage = Stage::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let server = std::thread::spawn(move || {
        let welcome =
            r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}"#;
        let welcome = format!(
            "200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{welcome}",
            welcome.len()
        );
        let taken = "202 Accepted\r\nContent-Length: 0\r\n\r\n";
        let none = "405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n";
        for answer in [&welcome, taken, none, taken] {
            let mut peer = Peer::new(listener.accept().expect("a client").0);
            let head = peer.head();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
            let mut body = vec![0; length.parse().expect("a number")];
            peer.0.read_exact(&mut body).expect("a body");
            peer.say(format!("HTTP/1.1 {}", answer.replacen("\r\n", "\r\nConnection: close\r\n", 1)));
        }
    });
    let mut talk = stage.begin(&[&UPSTREAM[..], &["--url", &url]].concat(), &[]);
    talk.say(&measure("1", "Bergen"));
    let answer = talk.hear();
    assert_eq!(
        (&answer["id"], &answer["error"]["code"], &answer["error"]["data"]["status"]),
        (&json!(1), &json!(-33001), &json!(202))
    );
    server.join().expect("it was asked all that");
    assert_eq!(talk.end().0, Some(1));
    let passed = &stage.report()["passed_on"][0];
    assert_eq!((&passed["failed"], &passed["nearest"]), (&json!(1), &json!("tools/call measure @1")));
}

#[test]
fn auto_passes_on_what_its_cassette_has_not() {
    let stage = Stage::new();
    // What this process recorded itself would be gone on with, so another one starts it.
    let line = format!("\"{TAPEDECK}\" auto c.json --on-miss record -- \"{TAPEDECK}\" demo-server; exit $?");
    let mut talk = Talk::of(stage.program("sh", &["-c", &line]));
    talk.begin();
    talk.say(&measure("1", "Oslo"));
    let measured = talk.measured(&json!(1));
    assert!(stage.read("c.json").contains(measured.lines().next().expect("a line")));
    talk.say(&measure("2", "Bergen"));
    talk.measured(&json!(2));
    assert_eq!(talk.end().0, Some(0));
}

/// The URL of a server over HTTP: it answers a call about Bergen, one about Elsewhere under another id, and holds one
/// about Nowhere open.
fn half_a_server() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        let mut held = Vec::new();
        while let Ok((stream, _)) = listener.accept() {
            let mut peer = Peer::new(stream);
            let head = peer.head();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
            let mut body = vec![0; length.parse().expect("a number")];
            peer.0.read_exact(&mut body).expect("a body");
            let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
            if asked["params"]["arguments"]["city"] == "Nowhere" {
                held.push(peer);
                continue;
            }
            let id =
                if asked["params"]["arguments"]["city"] == "Elsewhere" { &json!(999) } else { &asked["id"] };
            let result = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "said": "Bergen at last"});
            let (status, answer) = match (head.starts_with("POST"), id.is_null()) {
                (true, false) => {
                    ("200 OK", json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string())
                }
                (true, true) => ("202 Accepted", String::new()),
                (false, _) => ("405 Method Not Allowed", String::new()),
            };
            peer.say(format!(
                "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{answer}",
                answer.len()
            ));
        }
    });
    url
}

#[test]
fn a_front_that_is_ended_in_mid_call_adds_what_was_answered_before() {
    let (stage, url) = (Stage::new(), half_a_server());
    let (cassette, before) = (text(&stage.path("c.json")), stage.read("c.json"));
    let words = ["replay", &cassette, "--on-miss", "record", "--url", &url];
    let front = Front::start(&words, &stage.path(""));
    let (session, _) = post(&front, None, INITIALIZE);
    post(&front, Some(&session), INITIALIZED);
    assert!(post(&front, Some(&session), &measure("5", "Bergen")).1.contains("Bergen at last"));
    let body = measure("6", "Nowhere");
    let host = &front.origin["http://".len()..];
    let mut peer = Peer::new(TcpStream::connect(host).expect("it listens"));
    peer.say(format!(
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nMcp-Session-Id: {session}\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    ));
    // What comes behind it shows that it was passed on.
    assert!(post(&front, Some(&session), &measure("7", "Bergen")).1.contains("Bergen at last"));
    front.stop();
    assert_eq!(assert_only_added(&before, &stage.read("c.json")), 2);
    let left = std::fs::read_dir(stage.path("")).expect("a folder");
    let left: Vec<_> = left.map(|file| file.expect("a file").path()).collect();
    assert!(left.iter().all(|path| path.extension().is_none_or(|kind| kind != "journal")), "{left:?}");
}

#[test]
fn what_a_server_tells_right_after_the_handshake_is_heard_again() {
    let stage = Stage::new();
    // In one piece with its answer to `initialize`, so before it has read the call.
    let script = r#"read line; id=$(printf %s "$line" | grep -o '"id":[0-9]*')
        printf '{"jsonrpc":"2.0",%s,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}\n{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n' "$id"
        read line; read line; id=$(printf %s "$line" | grep -o '"id":[0-9]*' | head -n1)
        printf '{"jsonrpc":"2.0",%s,"result":{"content":[]}}\n' "$id"; cat > /dev/null"#;
    let play = |words: &[&str], server: &[String]| {
        let mut talk = stage.begin(words, server);
        talk.say(&measure("1", "Bergen"));
        let heard = [talk.hear(), talk.hear()];
        assert_eq!(talk.end().0, Some(0));
        heard
    };
    let heard = play(&RECORD, &["sh", "-c", script].map(String::from));
    assert_eq!(heard[0]["method"], "notifications/tools/list_changed", "{heard:?}");
    assert_eq!(heard[1]["result"], json!({"content": []}), "{heard:?}");
    assert_eq!(play(&["replay", "c.json"], &[]), heard);
}

#[test]
fn what_has_another_id_or_is_no_message_answers_nothing_and_is_not_added() {
    let (stage, url) = (Stage::new(), half_a_server());
    let before = stage.read("c.json");
    let talk = |words: &[&str], server: &[String]| {
        let input = [INITIALIZE, INITIALIZED, &measure("1", "Elsewhere"), ""].join("\n");
        let output = stage.run(&[&RECORD[..], words].concat(), server, &input);
        assert_eq!(stage.read("c.json"), before, "{words:?} {server:?}");
        output
    };
    let output = talk(&["--url", &url], &[]);
    // Over HTTP it is known that nothing more comes.
    let why = "nothing that answers this request (the id of what came is 999)";
    let error = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-33001,"#;
    assert!(said(&output).contains(error) && said(&output).contains(why), "{}", said(&output));
    assert_eq!((output.status.code(), &stage.report()["verdict"]), (Some(1), &json!("bad")));
    let cassette = text(&stage.path("c.json"));
    let front = Front::start(&["replay", &cassette, "--on-miss", "record", "--url", &url], &stage.path(""));
    let session = post(&front, None, INITIALIZE).0;
    let (_, body) = post(&front, Some(&session), &measure("1", "Elsewhere"));
    assert!(body.contains(error) && body.contains(why), "{body}");
    front.end_with(1);
    assert_eq!(stage.read("c.json"), before);
    let greets = r#"read line; printf '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}\n' | sed "s/\"id\":0/$(printf %s "$line" | grep -o '"id":[0-9]*')/"; read line; read line; "#;
    let log = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"wait"}}"#;
    for says in [r#"{"jsonrpc":"2.0","id":999,"result":{}}"#, "{not json", log] {
        let script = format!("{greets}printf '%s\\n' '{says}'; cat > /dev/null");
        talk(&[], &["sh", "-c", &script].map(String::from));
    }
}
