//! Commands on files: show, lint, fmt, convert, recover.

use mcp_tapedeck::exit_code::ExitCode;

use super::deck::Deck;

/// A small cassette in canonical form.
pub(super) const CASSETTE: &str = include_str!("session.json");

fn deck() -> Deck {
    Deck::new().with("c.json", CASSETTE)
}

#[test]
fn a_request_without_an_answer_says_why_and_values_are_checked() {
    let cassette = r#"{"cassette": 1, "sessions": [{"session": 1, "transport": "stdoi", "end": {"exit": 300, "partial": "half"}}],
      "exchanges": [{"key": "ping @1", "client": {"request": {"method": "ping"}}}]}"#;
    let deck = Deck::new().with("c.json", cassette);
    let ran = deck.run("show c.json").status(ExitCode::Good);
    ran.stdout("status 300, the server's last line has no end: half\n")
        .stdout("ping @1  no answer: the server ended\n");
    deck.run_words(["show", "c.json", "ping @1"], "").stdout("\nno answer: the server ended\n");
    let ran = deck.run("lint c.json").status(ExitCode::Bad);
    ran.stdout("c.json:1:58: [unknown-value] `transport` is unknown: `stdoi`; did you mean `stdio`?")
        .stdout("c.json:1:83: [unknown-value] `exit` must be 255 at most, found 300");
}

#[test]
fn show_lists_exchanges() {
    let ran = deck().run("show c.json").status(ExitCode::Good).silent();
    ran.stdout("session 1: stdio, 2025-11-25, a\n")
        .stdout("  initialize @1         result\n")
        .stdout("  tools/call report @1  1 notification, error -32602: no such day\n");
}

#[test]
fn show_filters_and_times() {
    let ran = deck().run("show c.json --method tools/* --time").status(ExitCode::Good).stdout(" 25 ms\n");
    assert!(!ran.stdout.contains("initialize"), "{ran:#?}");
    let ran = deck().run("show c.json --session 1 --method ping").status(ExitCode::Good);
    assert_eq!(ran.stdout, "");
}

#[test]
fn show_writes_json_lines() {
    let ran = deck().run("show c.json --json --method tools/call").status(ExitCode::Good);
    let line: serde_json::Value = serde_json::from_str(&ran.stdout).expect("one object");
    assert_eq!(line["key"], "tools/call report @1");
    assert_eq!(line["ms"], 25);
}

#[test]
fn show_writes_one_exchange_in_full() {
    let ran = deck().run_words(["show", "c.json", "tools/call report @1"], "").status(ExitCode::Good);
    ran.stdout("c.json:14\n").stdout("client: request\n").stdout("server, 20 ms later: notification\n");
    let ran =
        deck().run_words(["show", "c.json", "tools/call report @1", "--json"], "").status(ExitCode::Good);
    let lines: Vec<serde_json::Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    assert_eq!(lines.len(), 3, "{ran:#?}");
    assert_eq!(lines[0]["message"]["id"], 1);
    assert_eq!(lines[2]["message"]["error"]["code"], -32602);
}

#[test]
fn an_unknown_key_is_answered_with_keys_like_it() {
    let ran = deck().run_words(["show", "c.json", "report"], "").status(ExitCode::File);
    ran.stderr("no exchange has the key `report`").stderr("hint: did you mean `tools/call report @1`?");
}

#[test]
fn a_missing_file_is_named() {
    for command in ["show", "lint", "fmt"] {
        Deck::new().run(&format!("{command} none.json")).status(ExitCode::File).stderr("none.json");
    }
}

#[test]
fn a_broken_file_is_named_with_line_and_column() {
    let comma = CASSETTE.replacen("1,\n", "1,,\n", 1);
    let cut = &CASSETTE[..CASSETTE.len() - 30];
    let other = "{\"some\": \"json\"}";
    let taken = CASSETTE.replacen("tools/call report @1", "initialize @1", 1);
    for (text, place) in
        [(&comma[..], "c.json:2:17: "), (cut, "c.json:"), (other, "c.json:1:1: "), (&taken, "c.json:14:5: ")]
    {
        for command in ["show", "fmt"] {
            Deck::new()
                .with("c.json", text)
                .run(&format!("{command} c.json"))
                .status(ExitCode::File)
                .stderr(place);
        }
        Deck::new().with("c.json", text).run("lint c.json").status(ExitCode::File).stdout(place).silent();
    }
}

#[test]
fn lint_finds_unknown_members_that_show_only_warns_of() {
    let text = CASSETTE.replacen("\"after_ms\": 20", "\"after_sm\": 20", 1);
    let deck = Deck::new().with("c.json", text);
    deck.run("lint c.json").status(ExitCode::Bad).stdout("c.json:21:11: ").stdout("after_ms");
    deck.run("fmt c.json --check").status(ExitCode::Bad).stdout("c.json:21:11: ");
    deck.run("show c.json").status(ExitCode::Good).stderr("c.json:21:11: ");
}

/// A cassette without faults, as it is recorded from a real server.
const TIME: &str = include_str!("../../../cassettes/time.json");

#[test]
fn lint_is_silent_about_a_good_cassette_and_tells_of_one_without_redaction() {
    let ran = Deck::new().with("c.json", TIME).run("lint c.json").status(ExitCode::Good).silent();
    assert_eq!(ran.stdout, "");
    let open = TIME.replacen("1,\n", "1,\n  \"redacted\": false,\n", 1);
    let ran = Deck::new().with("c.json", open).run("lint c.json").status(ExitCode::Bad);
    assert!(ran.stdout.starts_with("c.json:3:15: [unredacted] "), "{ran:#?}");
    let key = "ghp_012345678901234567890123456789012345";
    let id =
        TIME.replacen(r#""method": "tools/list""#, &format!(r#""id": "{key}", "method": "tools/list""#), 1);
    let ran = Deck::new().with("c.json", id).run("lint c.json").status(ExitCode::Bad);
    assert!(ran.stdout.contains("[unredacted] an id of `tools/list @1` looks like a secret"), "{ran:#?}");
    assert!(!ran.stdout.contains(key), "{ran:#?}");
}

#[test]
fn lint_tells_of_faults_in_the_protocol_with_rule_place_key_and_source() {
    let ran = deck().run("lint c.json").status(ExitCode::Bad).silent();
    ran.stdout("c.json:17:31: [handshake-initialized] tools/call report @1: `tools/call` was sent")
        .stdout("(specification 2025-11-25, basic/lifecycle)\n")
        .stdout("c.json:22:74: [progress-token] ");
    let ran = deck().run("lint c.json --json --allow progress-token").status(ExitCode::Bad).silent();
    let line: serde_json::Value = serde_json::from_str(&ran.stdout).expect("one object");
    assert_eq!((&line["file"], &line["line"], &line["column"]), (&"c.json".into(), &17.into(), &31.into()));
    assert_eq!(
        (&line["rule"], &line["key"]),
        (&"handshake-initialized".into(), &"tools/call report @1".into())
    );
    assert_eq!(line["source"], "https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle");
    assert!(line["text"].as_str().is_some_and(|text| text.contains("send it once")), "{line}");
}

#[test]
fn lint_tells_of_all_that_is_wrong_in_all_files() {
    let broken = CASSETTE
        .replacen("\"recording\": 1", "\"recording\": true", 1)
        .replacen("\"after_ms\": 3", "\"after_ms\": \"3\"", 1)
        .replacen("\"params\": {\"progress\": 1}", "\"params\": {\"$lines\": 7}", 1);
    let deck = deck().with("broken.json", &broken).with("good.json", TIME);
    let mut ran = deck.run("lint broken.json none.json c.json good.json").status(ExitCode::File);
    for place in
        ["broken.json:4:33: [unreadable]", "broken.json:11:22: ", "broken.json:22:", "c.json:17:31: "]
    {
        ran = ran.stdout(place);
    }
    assert_eq!(ran.stdout.lines().count(), 5, "{ran:#?}");
    ran.stderr("none.json");
    deck.run("lint broken.json --json").status(ExitCode::File).stdout("\"rule\":\"unreadable\"").silent();
    deck.run("lint c.json --allow no-such-rule").status(ExitCode::Usage).stderr("handshake-first");
}

#[test]
fn fmt_writes_the_canonical_form_once() {
    let loose = CASSETTE.replace("\n      ", "\n");
    let deck = Deck::new().with("c.json", &loose);
    deck.run("fmt c.json --check").status(ExitCode::Bad).stdout("c.json:");
    assert_eq!(deck.read("c.json"), loose, "a check writes nothing");
    deck.run("fmt c.json").status(ExitCode::Good).silent();
    assert_eq!(deck.read("c.json"), CASSETTE);
    deck.run("fmt c.json --check").status(ExitCode::Good).silent();
    assert_eq!(deck.names(), ["c.json"]);
}

#[test]
fn a_cassette_becomes_a_journal_and_comes_back() {
    let deck = deck();
    deck.run("convert c.json c.journal").status(ExitCode::Good).silent();
    deck.run("show c.journal").status(ExitCode::Good).stdout("tools/call report @1");
    deck.run("convert c.journal d.json").status(ExitCode::Good).silent();
    assert_eq!(deck.read("d.json"), CASSETTE);
}
