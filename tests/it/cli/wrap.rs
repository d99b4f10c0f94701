//! `wrap`: a configuration is wrapped, its command records and replays, and what was comes back.

use mcp_tapedeck::exit_code::ExitCode;

use super::deck::Deck;

const PROGRAM: &str = env!("CARGO_BIN_EXE_tapedeck");

fn configuration() -> String {
    let local = format!("\"local\": {{\"command\": \"{PROGRAM}\", \"args\": [\"demo-server\"]}}, // mine");
    let far = "\"far\": {\"type\": \"http\", \"url\": \"https://h.example/mcp\"}";
    format!("{{\n  \"mcpServers\": {{\n    {local}\n    {far}\n  }}\n}}\n")
}

/// Starts the local server as the configuration says, and talks to it.
#[track_caller]
fn start(deck: &Deck, name: &str) -> String {
    // The only comment in it, so that it can be read.
    let text = deck.read(name).replace("// mine", "");
    let read: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let entry = &read["mcpServers"]["local"];
    let args = entry["args"].as_array().expect("arguments");
    let words = args.iter().map(|word| word.as_str().expect("a word"));
    assert_eq!(entry["command"], PROGRAM);
    let input = concat!(
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}"#,
        "\n"
    );
    deck.run_words(words, input).status(ExitCode::Good).stdout
}

#[test]
fn a_byte_order_mark_is_no_mistake_and_stays() {
    let text = format!("\u{feff}{}", configuration());
    let deck = Deck::new().with("mcp.json", &text);
    deck.run("wrap mcp.json --record tapes").status(ExitCode::Good).stdout("local: recorded into ");
    assert!(deck.read("mcp.json").starts_with("\u{feff}{"));
    deck.run("wrap mcp.json --undo").status(ExitCode::Good);
    assert_eq!(deck.read("mcp.json"), text);
}

#[test]
fn a_wrapped_client_records_replays_and_is_left_again() {
    let deck = Deck::new().with("mcp.json", configuration());
    let ran = deck.run("wrap mcp.json --record tapes").status(ExitCode::Good).silent();
    ran.stdout("local: recorded into ").stdout("/tapes/local.json\n").stdout("far: left as it is: ");
    assert_eq!(deck.read("mcp.json.before-tapedeck"), configuration());
    assert!(deck.read("mcp.json").contains("// mine"));
    let recorded = start(&deck, "mcp.json");
    assert!(recorded.contains("serverInfo"), "{recorded}");

    // From recording to replaying, over the first.
    let ran = deck.run("wrap mcp.json --replay tapes").status(ExitCode::Good).silent();
    ran.stdout("local: replayed from ");
    assert!(!deck.read("mcp.json").contains("demo-server"));
    assert_eq!(start(&deck, "mcp.json"), recorded);

    let ran = deck.run("wrap mcp.json --undo").status(ExitCode::Good).silent();
    assert_eq!(ran.stdout, "local: as it was\n");
    assert_eq!(deck.read("mcp.json"), configuration());
    assert_eq!(deck.names(), ["mcp.json", "tapes"]);
    deck.run("wrap mcp.json --undo").status(ExitCode::Good).stdout("no server was wrapped");
}

#[test]
fn a_dry_run_shows_and_changes_nothing() {
    let deck = Deck::new().with("mcp.json", configuration());
    let ran = deck.run("wrap mcp.json --dry-run").status(ExitCode::Good).silent();
    ran.stdout("-    \"local\"").stdout("+    \"local\"").stdout("\"record\", \"--cassette\"");
    assert_eq!(deck.names(), ["mcp.json"]);
    deck.run("wrap mcp.json --out new/mcp.json").status(ExitCode::Good);
    assert_eq!(deck.read("mcp.json"), configuration());
    assert!(deck.read("new/mcp.json").contains("\"record\", \"--cassette\""));
}

#[test]
fn what_cannot_be_wrapped_is_named() {
    let deck = Deck::new().with("a.json", "{\"a\": [}").with("b.json", "{}");
    deck.run("wrap a.json").status(ExitCode::File).stderr("a.json:1:");
    deck.run("wrap b.json").status(ExitCode::File).stderr("names no servers").stderr("mcpServers");
    deck.run("wrap none").status(ExitCode::File).stderr("`none`").stderr("claude-code");
    deck.run("wrap b.json --replay tapes").status(ExitCode::File);
    let deck = Deck::new().with("mcp.json", configuration());
    let ran = deck.run("wrap mcp.json --replay tapes").status(ExitCode::Good);
    ran.stdout("local: left as it is: there is no ");
    assert_eq!(deck.read("mcp.json"), configuration());
    assert_eq!(deck.names(), ["mcp.json"]);
    // What is recorded goes on being recorded.
    deck.run("wrap mcp.json --record tapes").status(ExitCode::Good);
    let recorded = deck.read("mcp.json");
    deck.run("wrap mcp.json --replay tapes").status(ExitCode::Good).stdout("local: left as it is: ");
    assert_eq!(deck.read("mcp.json"), recorded);
}

#[test]
fn what_was_edited_since_stays_and_where_it_wraps_nothing_is_undone() {
    let far = r#""far": {"type": "http", "url": "https://h.example/mcp", "headers": {"X-Key": "k"}}"#;
    let local = format!("\"local\": {{\"command\": \"{PROGRAM}\", \"args\": [\"demo-server\"]}}");
    let bare = format!("\"bare\": {{\"command\": \"{PROGRAM}\"}}");
    let before = format!("{{\"mcpServers\": {{\n  {local},\n  {bare},\n  {far}\n}}}}\n");
    let deck =
        Deck::new().with("mcp.json", &*before).with("tapes/local.json", "").with("tapes/bare.json", "");
    let edit = |changes: &[(&str, &str)]| {
        let mut text = deck.read("mcp.json");
        for (old, new) in changes {
            assert_eq!(text.matches(old).count(), 1, "{old} in {text}");
            text = text.replace(old, new);
        }
        std::fs::write(deck.path("mcp.json"), text).expect("it is written");
    };
    let env = |config: &str| {
        let config = config.replace("[\"demo-server\"]}", "[\"demo-server\"], \"env\": {\"A\": \"b\"}}");
        config.replace(&bare, &bare.replace('}', ", \"timeout\": 5}"))
    };

    // Behind the recorder, and beside it.
    deck.run("wrap mcp.json --record tapes").status(ExitCode::Good).stdout("far: recorded into ");
    edit(&[
        ("\"demo-server\"]}", "\"demo-server\", \"--more\"], \"env\": {\"A\": \"b\"}}"),
        (&format!("\"--\", \"{PROGRAM}\"]}}"), &format!("\"--\", \"{PROGRAM}\"], \"timeout\": 5}}")),
    ]);
    deck.run("wrap mcp.json --undo")
        .status(ExitCode::Good)
        .stdout("local: as it was\nbare: as it was\nfar: as");
    let kept = env(&before).replace("[\"demo-server\"]", "[\"demo-server\", \"--more\"]");
    assert_eq!(deck.read("mcp.json"), kept.replace(", \"timeout\"", ", \"args\": [], \"timeout\""));

    // Beside the replay, of which nothing else is left in the file.
    std::fs::write(deck.path("mcp.json"), &before).expect("it is written");
    deck.run("wrap mcp.json --replay tapes").status(ExitCode::Good).stdout("far: left as it is");
    edit(&[
        ("local.log\"]}", "local.log\"], \"env\": {\"A\": \"b\"}}"),
        ("bare.log\"]}", "bare.log\"], \"timeout\": 5}"),
    ]);
    deck.run("wrap mcp.json --undo").status(ExitCode::Good).stdout("local: as it was\nbare: as it was\n");
    assert_eq!(deck.read("mcp.json"), env(&before));

    // In the words that stand in the place of a URL.
    std::fs::write(deck.path("mcp.json"), &before).expect("it is written");
    deck.run("wrap mcp.json --record tapes").status(ExitCode::Good);
    edit(&[("\"https://h.example/mcp\"", "\"https://h.example/other\"")]);
    let edited = deck.read("mcp.json");
    let ran = deck.run("wrap mcp.json --undo").status(ExitCode::Bad);
    ran.stdout("far: left as it is: ").stdout("mcp.json.before-tapedeck");
    let is_far = |text: &str| text.lines().find(|line| line.contains("\"far\"")).map(str::to_owned);
    assert_eq!(is_far(&deck.read("mcp.json")), is_far(&edited));
    assert!(deck.read("mcp.json").contains(&local));
    assert_eq!(deck.read("mcp.json.before-tapedeck"), before);

    // Under another name nobody knows what it was; the copy does.
    edit(&[("\"https://h.example/other\"", "\"https://h.example/mcp\""), ("\"far\"", "\"farther\"")]);
    deck.run("wrap mcp.json --undo")
        .status(ExitCode::Bad)
        .stdout("farther: what it was is not known any more");
    assert_eq!(deck.read("mcp.json.before-tapedeck"), before);
}
