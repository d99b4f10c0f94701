//! A disk that takes no more: the session is whole, and its recording tells what it lacks wherever somebody may look.

use std::{
    fmt::Write as _,
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command},
};

use mcp_tapedeck::exit_code::ExitCode;
use serde_json::Value;

use super::deck::{Deck, Ran};
use crate::support::program::TAPEDECK;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;

/// A client's lines: its handshake, and so many calls.
fn asked(calls: usize) -> String {
    let mut lines =
        format!("{INITIALIZE}\n{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}}\n");
    for id in 1..=calls {
        let name = format!("{id} {}", "x".repeat(200));
        let _ = writeln!(
            lines,
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"measure","arguments":{{"city":"{name}"}}}}}}"#
        );
    }
    lines
}

/// Runs `tapedeck` where no file may have more bytes than eight blocks, and asks one after another.
fn narrow(deck: &Deck, words: &str, calls: usize) -> Ran {
    let line = format!("ulimit -f 8; exec '{TAPEDECK}' {words} -- '{TAPEDECK}' demo-server");
    let mut talk = Talk::begin(deck, Command::new("sh").args(["-c", &line]));
    asked(calls).lines().for_each(|line| talk.say(line, line.contains("\"id\"")));
    talk.end()
}

/// A client.
struct Talk {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Talk {
    fn begin(deck: &Deck, command: &mut Command) -> Self {
        let mut child = deck.begin(command);
        let (input, output) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        Self { child, input, output: BufReader::new(output) }
    }

    /// Sends a line, and hears one where one is to come.
    fn say(&mut self, line: &str, is_answered: bool) {
        writeln!(self.input, "{line}").expect("it is read");
        let mut heard = String::new();
        if is_answered {
            self.output.read_line(&mut heard).expect("it is answered");
            assert!(heard.ends_with('\n'), "the session ended: {heard}");
        }
    }

    fn end(self) -> Ran {
        drop(self.input);
        Ran::of(&self.child.wait_with_output().expect("it ends"))
    }
}

fn warnings(deck: &Deck, report: &str) -> (Value, String) {
    let report: Value = serde_json::from_str(&deck.read(report)).expect("a report");
    (report["verdict"].clone(), report["warnings"].to_string())
}

/// Of `… N messages …`, the number.
fn count(text: &str, behind: &str) -> u64 {
    let before = text.split(behind).next().expect("there is a first part");
    let number = before.rsplit(|c: char| !c.is_ascii_digit()).next().expect("there is a last part");
    number.parse().unwrap_or_else(|_| panic!("no number before {behind:?} in {text}"))
}

#[test]
fn a_disk_that_stays_full_is_told_by_the_status_and_by_all_who_read_the_recording() {
    let deck = Deck::new();
    let ran = narrow(&deck, "record c.json --report r.json", 30).status(ExitCode::File);
    let missed = count(&ran.stderr, " messages of this session were not recorded");
    assert!((10..60).contains(&missed), "{missed}");
    let ran = ran.stderr("the recording has a gap").stderr("what was recorded is safe, but stays in");
    assert!(!ran.stderr.contains("the recording is whole"), "{ran:#?}");
    let (verdict, told) = warnings(&deck, "r.json");
    assert_eq!((verdict.as_str(), count(&told, " messages of this session were")), (Some("good"), missed));

    // From its journal, and from the cassette.
    for _ in 0..2 {
        let shown = deck.run("show c.json").status(ExitCode::Good).stdout;
        assert_eq!(count(&shown, " messages were not recorded"), missed, "{shown}");
        let found = deck.run("lint c.json").status(ExitCode::Bad).stdout("[gap]").stdout;
        assert_eq!(count(&found, " messages were not recorded"), missed, "{found}");
        deck.talk("replay c.json --report p.json", INITIALIZE).status(ExitCode::Good);
        assert_eq!(
            count(
                &warnings(&deck, "p.json").1,
                " messages are missing: recording failed, or its journal was damaged"
            ),
            missed
        );
        deck.run("verdict p.json").status(ExitCode::Good).stdout("messages are missing");
        deck.run("recover c.json").status(ExitCode::Good);
    }
    assert!(deck.read("c.json").contains(&format!("\"gap\": {missed}")), "{}", deck.read("c.json"));
    assert!(!deck.names().iter().any(|name| name.ends_with(".journal")), "{:?}", deck.names());
}

#[test]
fn a_damaged_place_of_a_journal_is_a_gap() {
    let deck = Deck::new();
    let line = format!("exec '{TAPEDECK}' record c.json --report r.json -- '{TAPEDECK}' demo-server");
    let mut talk = Talk::begin(&deck, Command::new("sh").args(["-c", &line]));
    let lines = asked(3);
    let mut lines = lines.lines();
    lines.by_ref().take(3).for_each(|line| talk.say(line, line.contains("\"id\"")));
    let name = deck.names().into_iter().find(|name| name.ends_with(".journal")).expect("it records");
    let journal = deck.path(&name);
    let mut bytes = std::fs::read(&journal).expect("it is there");
    let call = bytes.windows(7).position(|window| window == b"measure").expect("it was called");
    bytes[call] ^= 1;
    let file = std::fs::File::options().write(true).open(&journal).expect("it can be written");
    std::os::unix::fs::FileExt::write_all_at(&file, &bytes[call..=call], call as u64).expect("it is");
    lines.for_each(|line| talk.say(line, true));
    talk.end().status(ExitCode::File).stderr("was damaged from outside; `tapedeck recover");
    assert!(warnings(&deck, "r.json").1.contains("was damaged from outside"));

    deck.run("show c.json").status(ExitCode::File).stderr(" puts what can be read of it into its cassette");
    deck.run("recover c.json").status(ExitCode::Good);
    deck.run("show c.json")
        .status(ExitCode::Good)
        .stdout("(1 message was not recorded)")
        .stdout("push response @1");
    deck.run("lint c.json").status(ExitCode::Bad).stdout("[gap]");
    deck.talk("replay c.json --report p.json", INITIALIZE).status(ExitCode::Good);
    assert_eq!(
        count(
            &warnings(&deck, "p.json").1,
            " message is missing: recording failed, or its journal was damaged"
        ),
        1
    );
}

#[test]
fn a_recording_that_is_required_and_damaged_makes_the_report_bad() {
    let cut: fn(&std::fs::File) = |journal| journal.set_len(0).expect("it is cut");
    let cut_later: fn(&std::fs::File) = |journal| journal.set_len(8).expect("it is cut");
    let scribbled: fn(&std::fs::File) =
        |journal| std::os::unix::fs::FileExt::write_all_at(journal, b"ZZZZ", 200).expect("it is written");
    for (damage, option, verdict) in [
        (cut, "", ("good", ExitCode::Good)),
        (cut, "--require-recording", ("bad", ExitCode::Bad)),
        (cut_later, "", ("good", ExitCode::Good)),
        (scribbled, "--require-recording", ("bad", ExitCode::Bad)),
    ] {
        let deck = Deck::new();
        let line =
            format!("exec '{TAPEDECK}' record c.json {option} --report r.json -- '{TAPEDECK}' demo-server");
        let mut talk = Talk::begin(&deck, Command::new("sh").args(["-c", &line]));
        let lines = asked(3);
        let mut lines = lines.lines();
        lines.by_ref().take(3).for_each(|line| talk.say(line, line.contains("\"id\"")));
        let name = deck.names().into_iter().find(|name| name.ends_with(".journal")).expect("it records");
        let journal = std::fs::File::options().write(true).open(deck.path(&name));
        damage(&journal.expect("it can be written"));
        lines.for_each(|line| talk.say(line, true));
        let ran = talk.end().status(ExitCode::File).stderr("damaged from outside; `tapedeck recover");
        assert!(!ran.stderr.contains("take it away"), "{ran:#?}");
        let (found, told) = warnings(&deck, "r.json");
        assert!(found == verdict.0 && told.contains("was damaged from outside"), "{found}: {told}");
        deck.run("verdict r.json").status(verdict.1).stdout("was damaged from outside");
        // Whoever is asked says the same, and it is so.
        deck.run("show c.json").status(ExitCode::File).stderr("hint: `tapedeck recover ");
        deck.run("recover c.json").status(ExitCode::Good).stderr("damaged and are lost");
        deck.run("show c.json").status(ExitCode::Good).stdout("tools/call");
    }
}

#[test]
fn a_journal_that_cannot_become_a_cassette_in_its_place_becomes_one_elsewhere() {
    let deck = Deck::new();
    let record = format!("record c.json --keep-journal -- {TAPEDECK} demo-server");
    deck.talk(&record, &asked(3)).status(ExitCode::Good);
    let kept = deck.names().into_iter().find(|name| name.ends_with(".kept.journal")).expect("it is kept");
    let journal = kept.replace(".kept", "");
    std::fs::rename(deck.path(&kept), deck.path(&journal)).expect("it is there");
    std::fs::remove_file(deck.path("c.json")).expect("it is there");
    let line = format!("ulimit -f 0; trap '' XFSZ; exec '{TAPEDECK}' recover c.json");
    let ran = deck.start(Command::new("sh").args(["-c", &line]), "").status(ExitCode::File);
    ran.stderr("hint: the journals stay as they were").stderr("`tapedeck convert JOURNAL NEW.json`");
    assert_eq!(deck.names(), [&*journal]);
    deck.run(&format!("convert {journal} f/new.json")).status(ExitCode::Good);
    deck.run("show f/new.json").stdout("tools/call measure @3");
}

#[test]
fn a_session_of_which_only_a_gap_is_recorded_is_shown() {
    let cassette =
        r#"{"cassette": 1, "sessions": [{"session": 1, "recording": 1, "gap": 2}], "exchanges": []}"#;
    let deck = Deck::new().with("c.json", cassette);
    let ran = deck.run("show c.json").status(ExitCode::Good);
    assert_eq!(ran.stdout, "session 1:  (2 messages were not recorded)\n");
    assert_eq!(deck.run("show c.json --json").status(ExitCode::Good).stdout, "");
}

#[test]
fn a_gap_is_told_for_every_session_whose_messages_it_may_have_had() {
    let session = |number: u32, recording: u32, transport: &str, gap: &str| {
        format!(r#"{{"session": {number}, "recording": {recording}, "transport": "{transport}"{gap}}}"#)
    };
    let gap = r#", "gap": 3"#;
    let sessions = [
        session(1, 1, "http", ""),
        session(2, 1, "http", gap),
        session(3, 3, "http", ""),
        session(4, 4, "stdio", ""),
        session(5, 4, "stdio", gap),
    ];
    let call = |number: u32| {
        format!(r#"{{"key": "{number}", "session": {number}, "client": {{"request": {{"method": "m"}}}}}}"#)
    };
    let calls: Vec<_> = (1..=5).map(call).collect();
    let cassette = format!(
        r#"{{"cassette": 1, "sessions": [{}], "exchanges": [{}]}}"#,
        sessions.join(",\n"),
        calls.join(",\n")
    );
    let deck = Deck::new().with("c.json", cassette);
    let shown = deck.run("show c.json").status(ExitCode::Good).stdout;
    let heads: Vec<_> = shown.lines().filter(|line| line.starts_with("session ")).collect();
    let (own, shared) =
        ("(3 messages were not recorded)", "(3 messages were not recorded, here or beside it)");
    for (head, told) in heads.iter().zip([shared, own, "", "", own]) {
        assert!(head.ends_with(told) && head.contains("recorded") != told.is_empty(), "{head}");
    }
    assert_eq!(heads.len(), 5, "{shown}");
    let linted = deck.run("lint c.json").status(ExitCode::Bad).stdout;
    let lines: Vec<_> = linted.lines().filter(|line| line.contains("[gap]")).collect();
    assert_eq!(lines.len(), 3, "{linted}");
    assert!(lines[0].contains("beside session 1, or in it") && lines[2].contains("record session 5 again"));
    let warned = (1..=5).map(|number| {
        deck.talk(&format!("replay c.json --session {number} --report r.json"), INITIALIZE);
        warnings(&deck, "r.json").1.contains("at least 3 messages are missing")
    });
    assert_eq!(warned.collect::<Vec<_>>(), [true, true, false, false, true]);
}

#[test]
fn what_did_not_pass_is_missing_nowhere() {
    let deck = Deck::new();
    let line = format!(
        "ulimit -f 8; exec '{TAPEDECK}' record c.json --require-recording -- '{TAPEDECK}' demo-server"
    );
    let mut talk = Talk::begin(&deck, Command::new("sh").args(["-c", &line]));
    let lines = asked(30);
    let mut lines = lines.lines();
    talk.say(lines.next().expect("it begins"), true);
    // More than is read, with the beginning of a further line.
    let rest: Vec<_> = lines.collect();
    let _ = write!(talk.input, "{}\n{{", rest.join("\n"));
    let ran = talk.end().status(ExitCode::File).stderr("the session was ended because of it");
    assert!(!ran.stderr.contains("not recorded"), "{}", ran.stderr);
    let shown = deck.run("show c.json").stdout("initialize @1").stdout;
    assert!(!shown.contains("not recorded") && !shown.contains("raw"), "{shown}");
    deck.talk("replay c.json --report p.json", INITIALIZE).status(ExitCode::Good);
    assert!(!warnings(&deck, "p.json").1.contains("missing"));
}

#[test]
fn a_recording_that_is_taken_away_ends_the_session_where_it_is_required() {
    let moved = |deck: &Deck| std::fs::rename(deck.path("f"), deck.path("g")).expect("it is moved");
    let removed = |deck: &Deck| std::fs::remove_dir_all(deck.path("f")).expect("it is removed");
    for (option, take) in
        [("--require-recording", &removed as &dyn Fn(&Deck)), ("--require-recording", &moved), ("", &removed)]
    {
        let deck = Deck::new();
        let line = format!("exec '{TAPEDECK}' record {option} f/c.json -- '{TAPEDECK}' demo-server");
        let mut talk = Talk::begin(&deck, Command::new("sh").args(["-c", &line]));
        let lines = asked(1);
        let mut lines = lines.lines();
        talk.say(lines.next().expect("it begins"), true);
        take(&deck);
        let next = lines.next_back().expect("a call");
        if option.is_empty() {
            talk.say(next, true);
            talk.end().status(ExitCode::File).stderr("the recording is lost");
        } else {
            writeln!(talk.input, "{next}").expect("it is read");
            let mut heard = String::new();
            talk.output.read_line(&mut heard).expect("it ends");
            assert_eq!(heard, "");
            talk.end().status(ExitCode::File).stderr("was removed or moved while it was written");
        }
    }
}

#[test]
fn a_gap_tells_a_status_of_ours_only_where_the_server_ended_well() {
    for (status, expected) in [(0, ExitCode::File.code().into()), (7, 7)] {
        let deck = Deck::new();
        let line = format!("ulimit -f 2; exec '{TAPEDECK}' record c.json -- sh -c 'cat; exit {status}'");
        let ran = deck.start(Command::new("sh").args(["-c", &line]), &asked(30));
        assert_eq!((ran.code, &*ran.stdout), (Some(expected), &*asked(30)), "{}", ran.stderr);
    }
}

#[test]
fn what_a_replay_was_to_add_and_could_not_is_in_its_report() {
    let deck = Deck::new();
    let record = format!("record c.json -- {TAPEDECK} demo-server");
    deck.talk(&record, &asked(1)).status(ExitCode::Good);
    let ran = narrow(&deck, "replay c.json --on-miss record --report r.json", 20).status(ExitCode::File);
    let missed = count(&ran.stderr, " messages of the real server's session were not recorded");
    let (verdict, told) = warnings(&deck, "r.json");
    assert_eq!(count(&told, " messages of the real server's session"), missed);
    assert_eq!(verdict, "good", "all was answered");
}

#[test]
fn a_recording_begins_with_a_gap_where_its_folder_can_be_written_only_later() {
    // What stands in the folder's place keeps it from being made.
    let deck = Deck::new().with("folder", "").with("state", "");
    let mut command = Command::new(TAPEDECK);
    command.args(["record", "folder/c.json", "--", "cat"]).env("XDG_STATE_HOME", deck.path("state"));
    let mut talk = Talk::begin(&deck, &mut command);
    talk.say("before", true);
    std::fs::remove_file(deck.path("folder")).expect("it was there");
    talk.say("behind", true);
    let ended = talk.end().status(ExitCode::File);
    ended.stderr("2 messages of this session were not recorded");
    let text = deck.read("folder/c.json");
    assert!(text.contains("\"gap\": 2") && text.contains("behind") && !text.contains("before"), "{text}");
}

#[test]
fn a_session_that_a_full_disk_ends_says_so_in_its_report() {
    for report in ["r.json", "reports/"] {
        let deck = Deck::new();
        let words = format!("record --require-recording c.json --report {report}");
        let line = format!("ulimit -f 8; exec '{TAPEDECK}' {words} -- '{TAPEDECK}' demo-server");
        let ran = deck.start(Command::new("sh").args(["-c", &line]), &asked(60)).status(ExitCode::File);
        let why = "the recording cannot be written, and the session was ended because of it";
        ran.stderr(why);
        let ran = deck.run(&format!("verdict {report}")).status(ExitCode::Bad).stdout(why);
        assert!(!ran.stdout.contains("open"), "{ran:#?}");
    }
}

/// A response whose request is gone.
const STRAY: &str = r#"{"cassette": 1, "sessions": [{"session": 1, "recording": 1, "transport": "stdio", "gap": 1}], "exchanges": [
  {"key": "a", "client": {"request": {"method": "a"}}, "server": [{"result": "of a"}]},
  {"key": "push response @1", "server": [{"id": 7, "result": "of what is gone"}]},
  {"key": "push b @1", "server": [{"notification": {"method": "b"}}]}]}"#;

#[test]
fn a_response_whose_request_is_gone_answers_nobody() {
    let asked = r#"{"jsonrpc":"2.0","id":7,"method":"a"}"#;
    let deck = Deck::new().with("g.json", STRAY).with("w.json", STRAY.replace(", \"gap\": 1", ""));
    let ran = deck.talk("replay g.json", &format!("{asked}\n")).status(ExitCode::Good).stdout("\"b\"");
    assert!(ran.stdout.contains("of a") && !ran.stdout.contains("gone"), "{ran:#?}");
    // A server that answers what nobody asked did so.
    deck.talk("replay w.json", &format!("{asked}\n")).status(ExitCode::Good).stdout("gone");
}
