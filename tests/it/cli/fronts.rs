//! `record`, `replay` and `auto`: sessions, and what is said where none can start.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    os::unix::process::ExitStatusExt,
    process::{Child, ChildStdin},
};

use mcp_tapedeck::exit_code::ExitCode;

use super::{
    deck::{Deck, Ran},
    files::CASSETTE,
};

const INITIALIZE: &str =
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;

pub(super) const SESSION: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    "\n",
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"measure","arguments":{"city":"Oslo"},"_meta":{"progressToken":1}}}"#,
    "\n",
);

/// The command of the demo's server, as words.
pub(super) fn server() -> String {
    format!("{} demo-server", env!("CARGO_BIN_EXE_tapedeck"))
}

/// Runs with a request on stdin, which must be answered with an error that says `part`, as must stderr.
#[track_caller]
fn refused(deck: &Deck, words: &str, status: ExitCode, part: &str) -> Ran {
    deck.run(words).status(status).stderr(part);
    let ran = deck.talk(words, &format!("{INITIALIZE}\n")).status(status).stderr(part);
    let answer: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:#?}"));
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&0.into(), &(-33001).into()), "{ran:#?}");
    assert!(answer["error"]["message"].as_str().is_some_and(|text| text.contains(part)), "{ran:#?}");
    ran
}

#[test]
fn a_wrong_command_line_is_told_to_the_client_too() {
    let deck = Deck::new();
    refused(&deck, "record", ExitCode::Usage, "required");
    refused(&deck, "record c.json", ExitCode::Usage, "required");
    refused(&deck, "record --bogus c.json -- x", ExitCode::Usage, "--bogus");
    refused(&deck, "record a.json --cassette b.json -- x", ExitCode::Usage, "--cassette");
    refused(&deck, "record c.json --max-message 0 -- x", ExitCode::Usage, "64MiB");
    refused(&deck, "replay c.json --timing fast", ExitCode::Usage, "instant, recorded");
    refused(&deck, "replay c.json --var NAME", ExitCode::Usage, "NAME=VALUE");
    refused(&deck, "record c.json --var NAME= -- x", ExitCode::Usage, "has no value");
    refused(&deck, "record c.json --redact ( -- x", ExitCode::Usage, "regular expression");
    refused(&deck, "record c.json --redact-env NO_SUCH_VARIABLE -- x", ExitCode::Usage, "NO_SUCH_VARIABLE");
}

#[test]
fn a_server_that_cannot_be_started_is_named() {
    let deck = Deck::new();
    refused(&deck, "record c.json -- no-such-server", ExitCode::Peer, "no-such-server");
    refused(&deck, "record c.json no-such-server --with options", ExitCode::Peer, "no-such-server");
    refused(&deck, "auto c.json -- ./no-such-server", ExitCode::Peer, "./no-such-server");
    assert_eq!(deck.names(), [""; 0], "nothing was recorded");
}

#[test]
fn a_server_that_is_never_reached_is_the_end_s_status() {
    let deck = Deck::new();
    // Somebody had this port a moment ago, and nobody has it now.
    let address = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let words = format!("record c.json --url http://{address}/mcp");
    let sentence = format!("tapedeck cannot reach the server at http://{address}: ");
    deck.talk(&words, &format!("{INITIALIZE}\n")).status(ExitCode::Peer).stdout(&sentence).stderr(&sentence);
    for is_asked in [true, false] {
        let mut front = deck.spawn(&format!("{words} --listen 127.0.0.1:0 -v"));
        let mut said = BufReader::new(front.stderr.take().expect("a pipe")).lines();
        let told =
            said.by_ref().map(|line| line.expect("text")).find(|line| line.contains("clients use http://"));
        let told = told.expect("it listens");
        let ours = told.split("http://").last().and_then(|url| url.split('/').next()).expect("an address");
        if is_asked {
            let mut client = TcpStream::connect(ours).expect("it listens");
            let request = format!("GET / HTTP/1.1\r\nHost: {ours}\r\nConnection: close\r\n\r\n");
            client.write_all(request.as_bytes()).expect("it reads");
            let mut heard = String::new();
            client.read_to_string(&mut heard).expect("text");
            assert!(heard.starts_with("HTTP/1.1 502 ") && heard.contains(&sentence), "{heard}");
        }
        let pid = rustix::process::Pid::from_child(&front);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it is running");
        let status = front.wait().expect("it ends").code();
        let expected = if is_asked { ExitCode::Peer } else { ExitCode::Good };
        assert_eq!(status, Some(expected.code().into()));
        let rest: Vec<_> = said.map(|line| line.expect("text")).collect();
        assert_eq!(rest.concat().contains(&format!("error: {sentence}")), is_asked, "{rest:?}");
    }
}

#[test]
fn a_cassette_that_is_missing_or_broken_is_named() {
    let deck = Deck::new().with("broken.json", "{\"cassette\": 1,\n  oops}");
    let missing = deck.path("none.json").display().to_string();
    refused(&deck, "replay none.json", ExitCode::File, &missing).stderr("hint: ");
    refused(&deck, "auto none.json --record none -- x", ExitCode::File, &missing);
    refused(&deck, "replay broken.json", ExitCode::File, "broken.json:2:3: ");
    refused(&deck, "record broken.json -- x", ExitCode::File, "broken.json:2:3: ");
    refused(&deck, "auto broken.json -- x", ExitCode::File, "broken.json:2:3: ");
    assert_eq!(deck.read("broken.json"), "{\"cassette\": 1,\n  oops}");
}

#[test]
fn what_is_recorded_is_replayed() {
    let deck = Deck::new();
    let live = deck.talk(&format!("record c.json -- {}", server()), SESSION).status(ExitCode::Good).silent();
    assert_eq!(live.stdout.lines().count(), 4, "{live:#?}");
    assert_eq!(deck.names(), ["c.json"]);
    // This client does not wait for answers.
    deck.run("lint c.json --allow handshake-early").status(ExitCode::Good);
    deck.run("fmt c.json --check").status(ExitCode::Good);
    let faults = crate::schema::faults("cassette", deck.read("c.json").as_bytes());
    assert_eq!(faults, [""; 0]);
    let played = deck.talk("replay c.json --report r/", SESSION).status(ExitCode::Good).silent();
    assert_eq!(played.stdout, live.stdout);
    deck.run("verdict r").status(ExitCode::Good);
    let report =
        std::fs::read_dir(deck.path("r")).expect("a folder").next().expect("a report").expect("an entry");
    let faults = crate::schema::faults("report", &std::fs::read(report.path()).expect("it is readable"));
    assert_eq!(faults, [""; 0]);
}

#[test]
fn a_miss_ends_with_status_1_and_is_said() {
    let deck = Deck::new().with("c.json", CASSETTE);
    let call =
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"report","arguments":{"days":8}}}"#;
    let ran =
        deck.talk("replay c.json --report r.json", &format!("{INITIALIZE}\n{call}\n")).status(ExitCode::Bad);
    ran.stdout("-33000").stderr("tools/call report");
    deck.run("verdict r.json").status(ExitCode::Bad).stdout("/params/arguments/days");
    let faults = crate::schema::faults("report", deck.read("r.json").as_bytes());
    assert_eq!(faults, [""; 0]);
}

#[test]
fn the_separator_may_be_missing_and_a_folder_gets_a_cassette_for_each_start() {
    let deck = Deck::new();
    deck.talk(&format!("record c.json {}", server()), SESSION).status(ExitCode::Good).silent();
    deck.talk(&format!("record --cassette many/ {}", server()), SESSION).status(ExitCode::Good);
    deck.talk(&format!("record --cassette many/ {}", server()), SESSION).status(ExitCode::Good);
    assert_eq!(deck.names(), ["c.json", "many"]);
    let many = std::fs::read_dir(deck.path("many")).expect("a folder").count();
    assert_eq!(many, 2);
}

#[test]
fn auto_records_once_and_then_replays() {
    let deck = Deck::new();
    let words = format!("auto c.json -- {}", server());
    let live = deck.talk_apart(&words, SESSION).status(ExitCode::Good);
    let recorded = deck.read("c.json");
    let played = deck.talk_apart(&words, SESSION).status(ExitCode::Good);
    assert_eq!(played.stdout, live.stdout);
    assert_eq!(deck.read("c.json"), recorded);
    let faulty = format!("auto d.json --fault '*: latency ms=1' -- {}", server());
    deck.talk_apart(&faulty, SESSION).status(ExitCode::Good).stderr("so no fault acts in it");
    deck.talk_apart(&format!("auto c.json --record new -- {}", server()), SESSION).status(ExitCode::Good);
    deck.run("show c.json").stdout("session 2");
    deck.talk_apart(&format!("auto c.json --record replace -- {}", server()), SESSION).status(ExitCode::Good);
    assert!(!deck.run("show c.json").stdout.contains("session 2"));
}

#[test]
fn auto_tells_of_wrong_faults_when_it_records_too() {
    let deck = Deck::new().with("plan.json", r#"{"faults": 1, "scenarios": {"a": [{"do": "explode"}]}}"#);
    let two = r#"{"faults": 1, "scenarios": {"a": [{"do": "drop"}], "b": [{"do": "drop"}]}}"#;
    let deck = deck.with("two.json", two);
    for (options, status, part) in [
        ("--fault ping", ExitCode::Usage, "--fault 'ping': "),
        ("--faults plan.json", ExitCode::File, "plan.json:1:"),
        ("--faults two.json", ExitCode::Usage, "two.json: "),
        ("--faults two.json --scenario c", ExitCode::Usage, "there is no scenario `c`"),
        ("--faults none.json", ExitCode::File, "none.json"),
    ] {
        let words = format!("auto c.json {options} -- {}", server());
        refused(&deck, &words, status, part);
    }
    assert!(!deck.names().contains(&"c.json".to_owned()), "{:?}", deck.names());
}

#[test]
fn a_server_s_own_end_is_passed_on() {
    let deck = Deck::new();
    assert_eq!(deck.run_words(["record", "c.json", "--", "sh", "-c", "exit 7"], "").code, Some(7));
    assert_eq!(deck.run_words(["record", "d.json", "--", "sh", "-c", "kill -9 $$"], "").signal, Some(9));
}

#[test]
fn the_log_has_what_stderr_keeps_silent_about() {
    let deck = Deck::new();
    deck.talk(&format!("record c.json --log logs/l.txt -- {}", server()), SESSION)
        .status(ExitCode::Good)
        .silent();
    assert!(deck.read("logs/l.txt").contains(&deck.path("c.json").display().to_string()));
    deck.talk("replay c.json -v", SESSION).status(ExitCode::Good).stderr("replaying");
}

#[test]
fn a_log_that_cannot_be_written_is_said_once_and_the_recording_goes_on() {
    let deck = Deck::new();
    let ran =
        deck.talk(&format!("record c.json --log /dev/full -- {}", server()), SESSION).status(ExitCode::Good);
    assert_eq!(ran.stderr.matches("cannot write the log `/dev/full`").count(), 1, "{ran:#?}");
    deck.talk("replay c.json --log /dev/full", SESSION).status(ExitCode::Good);
}

#[test]
fn a_variable_stands_for_its_value_in_the_cassette_and_has_to_be_given_again() {
    let deck = Deck::new();
    let words = |city| format!("--var TOWN={city}");
    let live = deck
        .talk(&format!("record c.json {} -- {}", words("Oslo"), server()), SESSION)
        .status(ExitCode::Good);
    let cassette = deck.read("c.json");
    assert!(cassette.contains("<var:TOWN>") && !cassette.contains("Oslo"), "{cassette}");
    refused(&deck, "replay c.json", ExitCode::Usage, "`TOWN`").stderr("hint: add `--var TOWN=VALUE`");
    let played = deck.talk(&format!("replay c.json {}", words("Oslo")), SESSION).status(ExitCode::Good);
    assert_eq!(played.stdout, live.stdout);
    let moved = SESSION.replace("Oslo", "Bergen");
    let played = deck.talk(&format!("replay c.json {}", words("Bergen")), &moved).status(ExitCode::Good);
    assert_eq!(played.stdout, live.stdout.replace("Oslo", "Bergen"));
}

#[test]
fn redaction_is_on_and_can_be_told_more() {
    let deck = Deck::new();
    let key = "a1B2c3D4e5F6g7H8";
    let secret =
        SESSION.replace("\"progressToken\":1", &format!("\"progressToken\":1,\"password\":\"{key}\""));
    deck.talk(&format!("record c.json -v -- {}", server()), &secret)
        .status(ExitCode::Good)
        .stderr("redacted 1 ");
    assert!(!deck.read("c.json").contains(key));
    deck.talk(&format!("record d.json --redact O[a-z]lo -- {}", server()), SESSION).status(ExitCode::Good);
    assert!(!deck.read("d.json").contains("Oslo"));
    deck.talk(&format!("record e.json --redact off -- {}", server()), &secret).status(ExitCode::Good);
    assert!(deck.read("e.json").contains(key));
    deck.run("lint e.json").status(ExitCode::Bad).stdout("--redact off");
}

#[test]
fn a_client_that_starts_its_server_twice_makes_one_recording() {
    let deck = Deck::new();
    let words = format!("auto c.json -- {}", server());
    let probe = format!("{INITIALIZE}\n");
    deck.talk(&words, &probe).status(ExitCode::Good);
    deck.talk(&words, SESSION).status(ExitCode::Good);
    deck.run("show c.json").stdout("session 2 of recording 1").stdout("tools/call measure @1");
}

#[test]
fn a_session_can_be_watched_while_it_is_recorded() {
    let deck = Deck::new();
    let mut recorder = deck.spawn(&format!("record c.json -- {}", server()));
    let mut to_server = recorder.stdin.take().expect("a pipe");
    let mut answers = BufReader::new(recorder.stdout.take().expect("a pipe")).lines();
    let mut ask = |lines: &str, count| {
        to_server.write_all(lines.as_bytes()).expect("the recorder reads");
        answers.by_ref().take(count).for_each(|line| drop(line.expect("an answer")));
    };
    let (first, rest) = SESSION.split_at(SESSION.find('\n').expect("several lines") + 1);
    ask(first, 1);
    let mut watcher = deck.spawn("show c.json --follow");
    let mut seen = BufReader::new(watcher.stdout.take().expect("a pipe")).lines();
    let mut sees = |part: &str| seen.by_ref().any(|line| line.expect("a line").contains(part));
    assert!(sees("session 1 (journal "));
    assert!(sees("initialize @1"));
    ask(rest, 3);
    assert!(sees("2 notifications, result"));
    // Its journal is left by nobody: what has no answer yet may get one.
    let open = r#"{"jsonrpc":"2.0","id":9,"method":"resources/subscribe"}"#;
    std::fs::write(deck.path("held.sh"), "cat > /dev/null").expect("it is written");
    let mut holder = deck.spawn("record held.json -- sh held.sh");
    writeln!(holder.stdin.as_mut().expect("a pipe"), "{open}").expect("the recorder reads");
    while !deck.run("show held.json").stdout.contains("resources/subscribe") {}
    let held = |words: &str| deck.run(&format!("show held.json {words}"));
    held("").stdout("waiting for the answer");
    held("--json").stdout(r#""outcome":"waiting for the answer""#);
    deck.run_words(["show", "held.json", "resources/subscribe @1"], "").stdout("\nwaiting for the answer\n");
    let mut held_watcher = deck.spawn("show held.json --follow");
    let mut held_seen = BufReader::new(held_watcher.stdout.take().expect("a pipe")).lines();
    let mut held_sees = |part: &str| held_seen.by_ref().any(|line| line.expect("a line").contains(part));
    assert!(held_sees("waiting for the answer"));
    holder.kill().expect("it is running");
    holder.wait().expect("it ends");
    held("").stdout("no answer: lost");
    // No file has changed, and yet it is told.
    assert!(held_sees("no answer: lost"));
    drop(held_seen);
    let said = held_watcher.wait_with_output().expect("it ends");
    assert!(String::from_utf8_lossy(&said.stderr).contains("a recorder of "), "{said:?}");
    // Without a reader it ends by itself.
    drop(seen);
    assert!(watcher.wait().expect("it ends").success());
    drop(to_server);
    assert!(recorder.wait().expect("it ends").success());
}

#[test]
fn what_is_watched_is_shown_once_although_keys_shift() {
    let deck = Deck::new();
    let script = r#"while read -r l; do echo '{"jsonrpc":"2.0","id":1,"result":{}}'; done"#;
    std::fs::write(deck.path("s.sh"), script).expect("it is written");
    let mut watcher = None;
    let mut recorders = [(); 2].map(|()| deck.spawn("record c.json -- sh s.sh"));
    let mut shown = Vec::new();
    for (at, method) in [(0, "a"), (1, "a"), (0, "a"), (1, "a"), (0, "a"), (1, "a"), (0, "b"), (1, "b")] {
        let recorder = &mut recorders[at];
        let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{method}\"}}\n");
        recorder.stdin.as_mut().expect("a pipe").write_all(line.as_bytes()).expect("the recorder reads");
        let (_, seen) = watcher.get_or_insert_with(|| {
            while !deck.run("show c.json").stdout.contains("a @1") {}
            let mut watcher = deck.spawn("show c.json --follow");
            let seen = BufReader::new(watcher.stdout.take().expect("a pipe")).lines();
            (watcher, seen)
        });
        for line in seen.by_ref() {
            let line = line.expect("a line");
            if line.starts_with("  ") && !line.contains("waiting") {
                shown.push(line.split_whitespace().next().expect("a key").to_owned());
                break;
            }
        }
    }
    assert_eq!(shown.join(" "), "a a a a a a b b");
    for mut recorder in recorders {
        drop(recorder.stdin.take());
        recorder.wait().expect("it ends");
    }
    let (mut watcher, seen) = watcher.expect("it was begun");
    drop(seen);
    watcher.wait().expect("it ends");
}

#[test]
fn what_is_watched_tells_which_recorder_it_is_from_whatever_its_number() {
    let deck = Deck::new();
    let script = r#"while read -r l; do echo '{"jsonrpc":"2.0","id":1,"result":{}}'; done"#;
    std::fs::write(deck.path("s.sh"), script).expect("it is written");
    let ask = |recorder: &mut Child, method: &str| {
        let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{method}\"}}\n");
        recorder.stdin.as_mut().expect("a pipe").write_all(line.as_bytes()).expect("the recorder reads");
    };
    let begin = |method: &str| {
        let mut recorder = deck.spawn("record c.json -- sh s.sh");
        ask(&mut recorder, method);
        while !deck.run("show c.json").stdout.contains(&format!("{method} @1")) {}
        recorder
    };
    let mut first = begin("a");
    let mut watcher = deck.spawn("show c.json --follow");
    let mut seen = BufReader::new(watcher.stdout.take().expect("a pipe")).lines();
    let mut journal = String::new();
    // The line that tells of a method's answer, and the journal in the heading before it.
    let mut sees = |method: &str| {
        for line in seen.by_ref() {
            let line = line.expect("a line");
            if let Some((_, named)) = line.split_once("(journal ") {
                journal = named.split([',', ')']).next().expect("a name").to_owned();
            } else if line.trim_start().starts_with(method) && line.ends_with("result") {
                return (
                    line.split_whitespace().next().map(str::to_owned),
                    line.contains('@'),
                    journal.clone(),
                );
            }
        }
        panic!("the watcher ended")
    };
    let (_, is_numbered, of_first) = sees("a");
    assert!(is_numbered, "one recorder alone numbers its own");
    let mut second = begin("b");
    let (_, is_numbered, of_second) = sees("b");
    assert!(!is_numbered && of_second != of_first);
    drop(second.stdin.take());
    second.wait().expect("it ends");
    // Now the first one's session is the second.
    ask(&mut first, "c");
    assert_eq!(sees("c").2, of_first);
    drop(first.stdin.take());
    first.wait().expect("it ends");
    let text = deck.read("c.json");
    let place =
        |journal: &str| text.find(&format!("\"journal\": \"{journal}\"")).expect("it is in the cassette");
    assert!(place(&of_second) < place(&of_first));
    drop(seen);
    watcher.wait().expect("it ends");
}

#[test]
fn a_watcher_waits_for_a_recorder_that_has_not_started() {
    for deck in [Deck::new(), Deck::new().with("c.json", "")] {
        let mut watcher = deck.spawn("show c.json --follow");
        let mut said = BufReader::new(watcher.stderr.take().expect("a pipe")).lines();
        let waits = said.next().expect("it says that it waits").expect("a line");
        assert!(waits.starts_with("waiting for a recording into ") && waits.ends_with("c.json"), "{waits}");
        let mut recorder = deck.spawn("record c.json -- cat");
        let mut to_server = recorder.stdin.take().expect("a pipe");
        writeln!(to_server, r#"{{"jsonrpc":"2.0","id":1,"method":"ping"}}"#).expect("the recorder reads");
        let mut seen = BufReader::new(watcher.stdout.take().expect("a pipe")).lines();
        assert!(seen.any(|line| line.expect("a line").contains("ping @1")));
        drop((to_server, seen));
        assert!(recorder.wait().expect("it ends").success());
        assert!(watcher.wait().expect("it ends").success());
        assert_eq!(said.next().map(|line| line.expect("a line")), None, "it says so once");
    }
}

/// As if the last session had been recorded long ago.
fn make_old(deck: &Deck) {
    let text = deck.read("c.json");
    let at = text.rfind("\"at\": \"").expect("it says when") + 7;
    let old = format!("{}2020-01-01T00:00:00Z{}", &text[..at], &text[at + 20..]);
    std::fs::write(deck.path("c.json"), old).expect("it is written");
}

#[test]
fn a_shell_that_records_again_later_makes_a_new_recording_or_replaces_the_old_one() {
    let ask = r#"{"jsonrpc":"2.0","id":1,"method":"ask"}"#;
    let deck = Deck::new();
    let says = |word: &str| {
        let answer = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"is":"{word}"}}}}"#);
        std::fs::write(deck.path("s.sh"), format!("read l; echo '{answer}'; cat >/dev/null"))
            .expect("it is written");
    };
    let replayed = |word: &str| {
        deck.talk("replay c.json", &format!("{ask}\n"))
            .status(ExitCode::Good)
            .stdout(&format!("\"is\":\"{word}\""));
    };
    says("OLD");
    deck.talk("record c.json -- sh s.sh", &format!("{ask}\n")).status(ExitCode::Good);
    make_old(&deck);
    says("NEW");
    deck.talk("record c.json -- sh s.sh", &format!("{ask}\n")).status(ExitCode::Good);
    deck.run("show c.json").stdout("session 2: ").stdout("ask @2");
    replayed("NEW");
    make_old(&deck);
    let asks = format!("{ask}\n{}\n", ask.replace(":1,", ":2,").replace("ask", "more"));
    let both = "read l; echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"is\":\"NEWEST\"}}'; read l; \
                echo '{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}'; cat >/dev/null";
    std::fs::write(deck.path("s.sh"), both).expect("it is written");
    deck.talk("record c.json --replace -v -- sh s.sh", &asks)
        .status(ExitCode::Good)
        .stderr("0 kept, 1 changed, 1 new, 1 gone");
    replayed("NEWEST");
    assert!(!deck.read("c.json").contains("OLD") && !deck.read("c.json").contains("\"NEW\""));
}

#[test]
fn a_shell_that_replaces_what_it_has_just_recorded_is_told_that_it_does_not() {
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    let script = format!("read l; echo '{answer}'; cat >/dev/null");
    let talk = |deck: &Deck, words: &str, method: &str| {
        let ask = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{method}\"}}\n");
        deck.talk(&format!("record c.json {words} -- sh s.sh"), &ask).status(ExitCode::Good)
    };
    let deck = Deck::new().with("s.sh", &script);
    talk(&deck, "", "old").silent();
    talk(&deck, "--replace", "new")
        .stderr("recording 1 was not replaced: the same process had made it less than 10 s");
    deck.run("show c.json").stdout("old @1").stdout("session 2 of recording 1").stdout("new @1");
    make_old(&deck);
    let text = deck.read("c.json").replacen("\"at\": \"2", "\"at\": \"1", 1);
    std::fs::write(deck.path("c.json"), text).expect("it is written");
    talk(&deck, "--replace", "newest").silent();
    assert!(!deck.read("c.json").contains("\"old"), "{}", deck.read("c.json"));
    // A client that first asks what the server is, in a process of its own.
    let deck = Deck::new().with("s.sh", &script);
    talk(&deck, "--replace", "server/discover").silent();
    talk(&deck, "--replace", "call").silent();
    talk(&deck, "--replace -v", "more").stderr("recording 1 was not replaced");
}

/// A recorder that still runs, with a session in its journal, and the way to its server.
pub(super) fn recording(deck: &Deck) -> (Child, ChildStdin) {
    let mut recorder = deck.spawn(&format!("record c.json -- {}", server()));
    let mut to_server = recorder.stdin.take().expect("a pipe");
    to_server.write_all(SESSION.as_bytes()).expect("the recorder reads");
    let answers = BufReader::new(recorder.stdout.take().expect("a pipe")).lines();
    answers.take(4).for_each(|line| drop(line.expect("an answer")));
    (recorder, to_server)
}

#[test]
fn a_killed_recorder_leaves_a_journal_that_is_read_listed_and_recovered() {
    let deck = Deck::new();
    let (mut recorder, _to_server) = recording(&deck);
    deck.run("recover").status(ExitCode::Good).stdout("still being recorded");
    recorder.kill().expect("it is running");
    recorder.wait().expect("it ends");
    deck.run("show c.json").status(ExitCode::Good).stdout("tools/call measure @1");
    let [journal] = &deck.names()[..] else { panic!("{:?}", deck.names()) };
    deck.run("fmt c.json").status(ExitCode::File).stderr("only the journals").stderr("hint: ");
    deck.run("recover").status(ExitCode::Good).stdout(journal).stdout("tapedeck recover JOURNAL");
    deck.run(&format!("recover {journal}")).status(ExitCode::Good).stdout("3 exchanges recorded");
    assert_eq!(deck.names(), ["c.json"]);
    deck.run("fmt c.json --check").status(ExitCode::Good);
}

#[test]
fn what_is_no_journal_is_listed_and_nobody_is_told_to_recover_it() {
    let deck = Deck::new().with("c.json.20261127T224001-6f1c2a7b9d0e.journal", "hello hello hello\n");
    let listed = deck.run("recover").status(ExitCode::Good).stdout("no journal of tapedeck");
    assert!(!listed.stdout.contains("tapedeck recover"), "{listed:#?}");
}

#[test]
fn a_front_that_is_told_to_end_ends_by_that_signal_with_everything_written() {
    let deck = Deck::new().with("c.json", CASSETTE);
    for words in [format!("record d.json -- {}", server()), "replay c.json --report r.json".to_owned()] {
        let mut front = deck.spawn(&words);
        let mut to_server = front.stdin.take().expect("a pipe");
        writeln!(to_server, "{INITIALIZE}").expect("the front reads");
        let mut answers = BufReader::new(front.stdout.take().expect("a pipe")).lines();
        answers.next().expect("an answer").expect("a line");
        let pid = rustix::process::Pid::from_child(&front);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it is running");
        assert_eq!(front.wait().expect("it ends").signal(), Some(15), "{words}");
    }
    deck.run("show d.json").status(ExitCode::Good).stdout("initialize @1  result");
    deck.run("verdict r.json").status(ExitCode::Good);
    assert_eq!(deck.names(), ["c.json", "d.json", "r.json"]);
}

#[test]
fn a_recording_that_cannot_be_folded_in_time_says_where_it_stays() {
    let deck = Deck::new();
    // Another fold is under way.
    let lock = std::fs::File::create(deck.path("c.json.lock")).expect("it is made");
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).expect("nobody has it");
    let ran = deck.talk(&format!("record c.json -- {}", server()), SESSION).status(ExitCode::Good);
    let journal = deck.names().into_iter().find(|name| name.ends_with(".journal")).expect("it stays");
    let ran = ran.stderr("the recording is whole").stderr(&journal).stderr("tapedeck recover");
    assert_eq!(ran.stderr.lines().count(), 1, "{ran:#?}");
    drop(lock);
    deck.run("show c.json").status(ExitCode::Good).stdout("measure");
}

#[test]
fn a_signal_behind_the_session_ends_the_folding_and_not_the_recorder() {
    let deck = Deck::new();
    let lock = std::fs::File::create(deck.path("c.json.lock")).expect("it is made");
    rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive).expect("nobody has it");
    let mut front = deck.spawn(&format!("record c.json -- {}", server()));
    front.stdin.take().expect("a pipe").write_all(SESSION.as_bytes()).expect("the front reads");
    // The session is over where its output ends.
    std::io::read_to_string(front.stdout.take().expect("a pipe")).expect("it is read");
    let pid = rustix::process::Pid::from_child(&front);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it is running");
    let ended = Ran::of(&front.wait_with_output().expect("it ends")).status(ExitCode::Good);
    ended.stderr("no time to put it into the cassette");
    drop(lock);
    deck.run("show c.json").status(ExitCode::Good).stdout("measure");
}
