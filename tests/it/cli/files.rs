//! Commands on files: show, lint.

use mcp_tapedeck::exit_code::ExitCode;

use super::deck::Deck;

/// A small cassette in canonical form.
pub(super) const CASSETTE: &str = r#"{
  "cassette": 1,
  "sessions": [{"session": 1, "recording": 1, "transport": "stdio", "protocol": "2025-11-25", "client": "a"}],
  "exchanges": [
    {
      "key": "initialize @1",
      "client": {"request": {"method": "initialize", "params": {"protocolVersion": "2025-11-25"}}},
      "server": [{"after_ms": 3, "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}}]
    },
    {
      "key": "tools/call report @1",
      "client": {"request": {"method": "tools/call", "params": {"name": "report", "arguments": {"days": 7}}}},
      "server": [
        {"after_ms": 20, "notification": {"method": "notifications/progress", "params": {"progress": 1}}},
        {"after_ms": 5, "error": {"code": -32602, "message": "no such day"}}
      ]
    }
  ]
}
"#;

fn deck() -> Deck {
    Deck::new().with("c.json", CASSETTE)
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
    let ran = deck().run("show c.json --session 2").status(ExitCode::Good);
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
    ran.stdout("c.json:10\n").stdout("client: request\n").stdout("server, 20 ms later: notification\n");
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
    for command in ["show", "lint"] {
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
        [(&comma[..], "c.json:2:17: "), (cut, "c.json:"), (other, "c.json:1:1: "), (&taken, "c.json:10:5: ")]
    {
        for command in ["show", "lint"] {
            Deck::new()
                .with("c.json", text)
                .run(&format!("{command} c.json"))
                .status(ExitCode::File)
                .stderr(place);
        }
    }
}

#[test]
fn lint_finds_unknown_members_that_show_only_warns_of() {
    let text = CASSETTE.replacen("\"after_ms\": 20", "\"after_sm\": 20", 1);
    let deck = Deck::new().with("c.json", text);
    deck.run("lint c.json").status(ExitCode::Bad).stdout("c.json:14:10: ").stdout("after_ms");
    deck.run("show c.json").status(ExitCode::Good).stderr("c.json:14:10: ");
}

#[test]
fn lint_is_silent_about_a_good_cassette_and_tells_of_one_without_redaction() {
    let ran = deck().run("lint c.json").status(ExitCode::Good).silent();
    assert_eq!(ran.stdout, "");
    let open = CASSETTE.replacen("1,\n", "1,\n  \"redacted\": false,\n", 1);
    Deck::new().with("c.json", open).run("lint c.json").status(ExitCode::Bad).stdout("c.json:3:15: ");
}
