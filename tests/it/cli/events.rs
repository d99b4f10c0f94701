//! `replay --events` and `tapedeck events`.

use mcp_tapedeck::exit_code::ExitCode;

use super::{
    deck::{Deck, Ran},
    files::CASSETTE,
};

const CALLS: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    "\n",
    r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"nobody","_meta":{"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#,
    "\n",
);

fn replayed() -> Deck {
    let deck = Deck::new().with("c.json", CASSETTE);
    deck.talk("replay c.json --events log/e.jsonl", CALLS).status(ExitCode::Bad);
    deck
}

/// What is asked in each line that is shown.
fn shown(ran: &Ran) -> Vec<&str> {
    let methods = ["initialize", "notifications/initialized", "tools/call", "ping"];
    let of_line = |line: &str| methods.into_iter().find(|method| line.contains(&format!(" {method} ")));
    ran.stdout.lines().map(|line| of_line(line).unwrap_or_else(|| panic!("{line}"))).collect()
}

#[test]
fn a_replay_tells_what_became_of_each_message() {
    let deck = replayed();
    let log = deck.read("log/e.jsonl");
    for line in log.lines() {
        assert_eq!(crate::schema::faults("events", line.as_bytes()), [""; 0], "{line}");
    }
    let ran = deck.run("events log/e.jsonl").status(ExitCode::Good).silent();
    // The notification needs no answer, and may be done with before the request that came before it.
    let mut methods = shown(&ran);
    methods.sort_unstable();
    assert_eq!(methods, ["initialize", "notifications/initialized", "ping", "tools/call"]);
    let ran = ran.stdout("tools/call nobody").stdout(" miss ").stdout(" self_answered ");
    assert!(ran.stdout.lines().all(|line| line == line.trim_end()), "{ran:#?}");
    let json = deck.run("events log/e.jsonl --json").status(ExitCode::Good).silent();
    assert_eq!(json.stdout, log);
}

#[test]
fn a_second_replay_appends() {
    let deck = replayed();
    let first = deck.read("log/e.jsonl");
    deck.talk("replay c.json --events log/e.jsonl", CALLS).status(ExitCode::Bad);
    let both = deck.read("log/e.jsonl");
    assert!(both.starts_with(&first) && both.lines().count() == 2 * first.lines().count(), "{both}");
}

#[test]
fn events_are_found_by_what_they_say() {
    let deck = replayed();
    let finds = |filter: &str| {
        let ran = deck.run(&format!("events log/e.jsonl {filter}")).status(ExitCode::Good).silent();
        shown(&ran).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(finds("--method ping"), ["ping"]);
    assert_eq!(finds("--request-id a"), ["tools/call"]);
    assert_eq!(finds("--request-id 2"), ["ping"]);
    assert_eq!(finds("--correlation-id 4bf92f3577b34da6a3ce929d0e0e4736"), ["tools/call"]);
    assert_eq!(finds("--outcome accepted"), ["notifications/initialized"]);
    assert_eq!(finds("--limit 2"), ["tools/call", "ping"]);
    assert_eq!(finds("--outcome miss --method ping"), [""; 0]);
    assert_eq!(finds("--server nobody"), [""; 0]);
    // One that is served alone has the name of its cassette's file, as for the rules of a plan.
    assert_eq!(finds("--server c"), finds(""));
    assert_eq!(finds("--key nothing"), [""; 0]);
    deck.run("events log/e.jsonl --outcome lost")
        .status(ExitCode::Usage)
        .stderr("self_answered")
        .stderr("accepted");
}

#[test]
fn a_line_that_is_no_event_is_named() {
    let deck = replayed();
    let log = deck.read("log/e.jsonl");
    let deck = deck.with("e.jsonl", format!("{log}{{\"seq\":1,\"at_\n\n[]\n"));
    let ran = deck.run("events e.jsonl --method ping").status(ExitCode::File);
    let ran = ran.stderr("e.jsonl:5:14: ").stderr("e.jsonl:7:1: ").stderr("hint: ");
    assert_eq!(shown(&ran), ["ping"]);
    deck.run("events none.jsonl").status(ExitCode::File).stderr("none.jsonl");
}

#[test]
fn of_a_file_of_another_kind_the_first_lines_are_told_and_the_rest_counted() {
    let deck = replayed().with("d.json", "[\n1,\n2,\n3,\n4\n]\n");
    let ran = deck.run("events d.json").status(ExitCode::File);
    assert_eq!(ran.stderr.matches("warning: d.json:").count(), 3, "{}", ran.stderr);
    ran.stderr("d.json: 6 lines are no events and were left out")
        .stderr("hint: `--events` of a replay writes such files");
}

#[test]
fn a_log_that_cannot_be_written_is_an_error_as_a_report_is() {
    let deck = Deck::new().with("c.json", CASSETTE).with("e.json", "{}");
    for option in ["--events e.json", "--events c.json/e", "--report c.json/r"] {
        for words in ["replay c.json", "run c.json", "record d.json", "proxy"] {
            let command = if words.starts_with("replay") { "" } else { " -- cat" };
            let ran = deck.talk(&format!("{words} {option}{command}"), CALLS).status(ExitCode::File);
            let told = ran.stderr("error: cannot write ").stdout;
            let answers = if words == "run c.json" { 0 } else { CALLS.matches("\"id\"").count() };
            assert_eq!(told.matches("-33001").count(), answers, "{words} {option}: {told}");
        }
    }
    assert_eq!((deck.names(), &*deck.read("e.json")), (vec!["c.json".into(), "e.json".into()], "{}"));
}

/// What fails in the middle of a session does not end it.
#[cfg(unix)]
#[test]
fn a_log_that_can_no_longer_be_written_is_said_once_and_in_the_end_by_the_status() {
    let deck = Deck::new().with("c.json", CASSETTE);
    let pings = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n".repeat(20);
    for words in ["replay c.json --events e.jsonl", "proxy --events f.jsonl -- cat"] {
        let line = format!("ulimit -f 1; exec '{}' {words}", env!("CARGO_BIN_EXE_tapedeck"));
        let ran = deck.start(std::process::Command::new("sh").args(["-c", &line]), &pings);
        assert_eq!(ran.stdout.lines().count(), 20, "{words}: {ran:#?}");
        assert_eq!(ran.stderr.matches("cannot write events").count(), 1, "{words}: {ran:#?}");
        ran.status(ExitCode::File);
    }
}

/// What stands where a secret stood may be one, though replay does not know it.
#[test]
fn a_name_in_a_secrets_place_is_not_told() {
    let cassette = r#"{
      "cassette": 1,
      "sessions": [{"session": 1, "recording": 1, "transport": "stdio"}],
      "exchanges": [
        {"key": "resources/read @1", "server": [{"result": {}}],
          "client": {"request": {"method": "resources/read", "params": {"uri": "file:///<redacted:password-1>/a"}}}}
      ]
    }"#;
    let deck = Deck::new().with("c.json", cassette);
    let read = r#"{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///mine1234/a"}}"#;
    let ran = deck.talk("replay c.json --events e.jsonl", &format!("{read}\n")).status(ExitCode::Good);
    let told = deck.read("e.jsonl");
    assert!(
        told.contains("file:///<redacted:password-1>/a") && !told.contains("mine1234"),
        "{told}\n{ran:#?}"
    );
}
