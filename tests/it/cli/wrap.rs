//! `wrap`: a configuration is wrapped, its command records and replays, and what was comes back.

use std::process::Command;

use mcp_tapedeck::exit_code::ExitCode;

use super::deck::{Deck, Ran};

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

/// Changes a file as a person would.
#[track_caller]
fn edit(deck: &Deck, name: &str, changes: &[(&str, &str)]) {
    let mut text = deck.read(name);
    for (old, new) in changes {
        assert_eq!(text.matches(old).count(), 1, "{old} in {text}");
        text = text.replace(old, new);
    }
    std::fs::write(deck.path(name), text).expect("it is written");
}

#[test]
fn a_server_that_was_added_in_between_comes_back_too() {
    let deck = Deck::new().with("mcp.json", configuration());
    deck.run("wrap mcp.json --record tapes").status(ExitCode::Good);
    let added = |text: &str| {
        text.replace(
            "// mine",
            "// mine\n    \"new\": {\"url\": \"https://n/\", \"headers\": {\"A\": \"b\", \"Host\": \"n\"}},",
        )
    };
    std::fs::write(deck.path("mcp.json"), added(&deck.read("mcp.json"))).expect("it is written");
    let ran = deck.run("wrap mcp.json --record tapes").status(ExitCode::Good);
    ran.stdout("new: recorded into ").stdout("; without its header `Host`");
    assert!(!deck.read("mcp.json").contains("Host: "));
    assert_eq!(deck.read("mcp.json.before-tapedeck"), added(&configuration()));
    deck.run("wrap mcp.json --undo").status(ExitCode::Good).stdout("local: as it was\nnew: as it was\n");
    assert_eq!(deck.read("mcp.json"), added(&configuration()));
    assert_eq!(deck.names(), ["mcp.json"]);
}

#[test]
fn without_the_copy_a_recorded_server_is_left_all_the_same() {
    let far = r#""far": {"url": "https://h/mcp", "headers": {"X-Key": "k"}}"#;
    let config = configuration().replace("\"far\"", &format!("{far},\n    \"farther\""));
    let deck = Deck::new().with("mcp.json", &*config);
    deck.run("wrap mcp.json --record tapes").status(ExitCode::Good).stdout("far: recorded into ");
    std::fs::remove_file(deck.path("mcp.json.before-tapedeck")).expect("it is there");
    edit(&deck, "mcp.json", &[("/tapes/far.json", "/elsewhere/far.json"), ("\"far\"", "\"near\"")]);
    deck.run("wrap mcp.json --undo").status(ExitCode::Good).stdout("local: as it was\nnear: as it was\n");
    assert_eq!(deck.read("mcp.json"), config.replace("\"far\"", "\"near\""));
}

#[test]
fn what_cannot_come_back_is_left_and_its_copy_stays() {
    let deck = Deck::new().with("mcp.json", configuration()).with("tapes/local.json", "{}");
    deck.run("wrap mcp.json --replay tapes").status(ExitCode::Good).stdout("local: replayed from");
    edit(&deck, "mcp.json", &[("\"local\"", "\"mine\""), ("/local.json", "/mine.json")]);
    let edited = deck.read("mcp.json");
    let ran = deck.run("wrap mcp.json --undo").status(ExitCode::Bad);
    ran.stdout("mine: left as it is: what it was is not known any more");
    assert_eq!(deck.read("mcp.json"), edited);
    assert_eq!(deck.read("mcp.json.before-tapedeck"), configuration());

    // Wrapped again with another server beside it, which needs a copy too.
    edit(&deck, "mcp.json", &[("// mine", "// mine\n    \"b\": {\"command\": \"b\"},")]);
    let ran = deck.run("wrap mcp.json --record tapes").status(ExitCode::Good);
    ran.stdout("mine: left as it is: tapedeck stands before it already").stdout("b: recorded into");
    assert_eq!(deck.read("mcp.json.before-tapedeck"), configuration());
    edit(&deck, "mcp.json", &[("\"mine\"", "\"local\"")]);
    let ran = deck.run("wrap mcp.json --undo").status(ExitCode::Good);
    ran.stdout("local: as it was\nb: as it was\n");
    let expected = configuration().replace("// mine", "// mine\n    \"b\": {\"command\": \"b\"},");
    assert_eq!(deck.read("mcp.json"), expected);
}

#[test]
fn a_server_that_is_gone_stays_in_the_copy() {
    let text = r#"{"servers": {"a": {"command": "a"}, "b": {"command": "b"}}}"#;
    let deck = Deck::new().with("mcp.json", text);
    deck.run("wrap mcp.json").status(ExitCode::Good);
    let wrapped = deck.read("mcp.json");
    let without = format!("{{\"servers\": {{\"b\"{}", wrapped.split_once("\"b\"").expect("b").1);
    std::fs::write(deck.path("mcp.json"), without).expect("it is written");
    let ran = deck.run("wrap mcp.json --undo").status(ExitCode::Good);
    ran.stdout("b: as it was\n").stdout("mcp.json.before-tapedeck is kept: `a` is otherwise in it");
    assert_eq!(deck.read("mcp.json"), r#"{"servers": {"b": {"command": "b"}}}"#);
    assert_eq!(deck.read("mcp.json.before-tapedeck"), text);
}

#[test]
fn a_front_that_a_person_put_there_is_no_business_of_ours() {
    let mine = r#""mine": {"command": "tapedeck", "args": ["record", "--cassette", "/c/m.json", "--", "m"]}"#;
    let text = format!("{{\"mcpServers\": {{{mine}, \"b\": {{\"command\": \"b\"}}}}}}\n");
    let deck = Deck::new().with("mcp.json", &*text);
    deck.run("wrap mcp.json").status(ExitCode::Good).stdout("mine: left as it is: tapedeck stands before it");
    deck.run("wrap mcp.json").status(ExitCode::Good).stdout("mine: left as it is: tapedeck stood before it");
    deck.run("wrap mcp.json --undo")
        .status(ExitCode::Good)
        .stdout("mine: left as it is: ")
        .stdout("b: as it was");
    assert_eq!(deck.read("mcp.json"), text);
    // Unless it is asked for.
    deck.run("wrap mcp.json --undo").status(ExitCode::Good).stdout("mine: as it was");
    assert_eq!(deck.read("mcp.json"), text.replace(mine, r#""mine": {"command": "m"}"#));
}

#[test]
fn servers_of_other_projects_stay_as_they_are_and_so_does_their_copy() {
    let deck = Deck::new().with("a/tapes/q.json", "{}").with("b/none", "");
    let here = |name: &str| deck.path(name).canonicalize().expect("a folder").display().to_string();
    let text = format!(
        r#"{{"projects": {{"{}": {{"mcpServers": {{"q": {{"command": "q"}}}}}}, "{}": {{"mcpServers": {{"r": {{"command": "r"}}}}}}}}}}"#,
        here("a"),
        here("b")
    );
    let deck = deck.with("c.json", &*text);
    let wrap = |folder: &str, words: &str| {
        let mut command = Command::new(PROGRAM);
        command.arg("wrap").arg(deck.path("c.json")).args(words.split_whitespace());
        let ended = command.current_dir(deck.path(folder)).output().expect("it starts");
        Ran::of(&ended).status(ExitCode::Good).stdout
    };
    assert!(wrap("a", "--replay tapes").starts_with("q: replayed from "));
    assert!(wrap("b", "").starts_with("r: recorded into "));
    assert_eq!(deck.read("c.json.before-tapedeck"), text);
    let said = wrap("b", "--undo");
    assert!(said.starts_with("r: as it was\n") && said.contains("is kept: `q` is otherwise in it"), "{said}");
    assert_eq!(wrap("a", "--undo"), "q: as it was\n");
    assert_eq!(deck.read("c.json"), text);
    assert!(!deck.names().contains(&"c.json.before-tapedeck".to_owned()));
}

#[test]
fn a_configuration_to_which_two_places_lead_is_wrapped_once() {
    let deck = Deck::new().with(".codex/config.toml", "[mcp_servers.a]\r\ncommand = 'a' # mine\r\n");
    let home = deck.path(".");
    let mut command = Command::new(PROGRAM);
    command.args(["wrap", "codex"]).env("HOME", &home).env_remove("CODEX_HOME").current_dir(&home);
    let ran = Ran::of(&command.output().expect("it starts")).status(ExitCode::Good);
    assert_eq!(ran.stdout.matches("a: recorded into").count(), 1, "{ran:#?}");
    assert_eq!(
        deck.read(".codex/config.toml").matches('\n').count(),
        deck.read(".codex/config.toml").matches("\r\n").count()
    );
}

#[test]
fn in_the_home_folder_a_place_is_named_once() {
    let deck = Deck::new();
    let home = std::fs::canonicalize(deck.path(".")).expect("it is there");
    let mut command = Command::new(PROGRAM);
    command.args(["wrap", "cursor"]).env("HOME", &home).current_dir(&home);
    let ran = Ran::of(&command.output().expect("it starts")).status(ExitCode::File);
    assert_eq!(ran.stderr.matches(".cursor/mcp.json").count(), 1, "{ran:#?}");
}

#[test]
fn odd_entries_are_named_and_stay() {
    let text = r#"{"mcpServers": {
  "a": {"command": "x", "command": "y"},
  "b": "x", "c": {"command": 1}, "d": {"command": "x", "args": "-y"},
  "e": {"command": "x"}, "e": {"command": "y"},
  "f": {"url": "http://h/u", "headers": {"A": 1}}, "g": {},
  "h": {"url": "http://h/u", "headers": {}, "env": {"A": "b"}}
}}"#;
    let deck = Deck::new().with("mcp.json", text);
    let ran = deck.run("wrap mcp.json").status(ExitCode::Good).silent();
    for line in [
        "a: left as it is: it has `command` twice\n",
        "b: left as it is: it is no object\n",
        "c: left as it is: its `command` is no text\n",
        "d: left as it is: its `args` is no list\n",
        "e: left as it is: its name stands there twice\n",
        "f: left as it is: its header `A` is no text\n",
        "g: left as it is: it has neither",
        "h: left as it is: it has a `url` and an `env`",
    ] {
        assert!(ran.stdout.contains(line), "{ran:#?}");
    }
    assert_eq!(deck.read("mcp.json"), text);
    let apart = "[mcp_servers.t]\nurl = 'http://h/u'\n[mcp_servers.t.env_http_headers]\nX = 'V'\n";
    let deck = Deck::new().with("config.toml", apart);
    deck.run("wrap config.toml")
        .status(ExitCode::Good)
        .stdout("t: left as it is: it cannot be changed in place");
    assert_eq!(deck.read("config.toml"), apart);
}

#[cfg(unix)]
#[test]
fn a_link_stays_one_and_a_read_only_file_is_not_written() {
    use std::os::unix::fs::PermissionsExt;

    let deck = Deck::new().with("real/mcp.json", configuration());
    std::os::unix::fs::symlink("real/mcp.json", deck.path("mcp.json")).expect("a link");
    deck.run("wrap mcp.json").status(ExitCode::Good);
    assert!(deck.read("real/mcp.json").contains("\"record\""));
    deck.run("wrap mcp.json --undo").status(ExitCode::Good);
    assert_eq!(deck.read("real/mcp.json"), configuration());
    assert!(std::fs::symlink_metadata(deck.path("mcp.json")).expect("a file").is_symlink());
    let only_read = std::fs::Permissions::from_mode(0o444);
    std::fs::set_permissions(deck.path("real/mcp.json"), only_read).expect("it is set");
    deck.run("wrap mcp.json").status(ExitCode::File).stderr("is read-only").stderr("--out");
    assert_eq!(deck.names(), ["mcp.json", "real"]);
}

/// A copy of the program under another name.
fn renamed(deck: &Deck, name: &str) -> impl Fn(&[&str]) -> Ran {
    let program = deck.path(name);
    std::fs::copy(PROGRAM, &program).expect("a copy of the program");
    let folder = deck.path(".");
    move |words| {
        let ended =
            Command::new(&program).arg("wrap").args(words).arg("mcp.json").current_dir(&folder).output();
        Ran::of(&ended.expect("it runs")).silent()
    }
}

#[test]
fn programs_of_any_name_know_what_was_wrapped() {
    let sse = r#""sse": {"type": "sse", "url": "https://h/sse", "headers": {"X-Key": "k"}}, "far""#;
    let stranger =
        r#""vcr": {"command": "vcr", "args": ["record", "--cassette", "a.json", "--", "x"]}, "far""#;
    let config = configuration().replace("\"far\"", sse).replace("\"far\"", stranger);
    let deck =
        Deck::new().with("mcp.json", &*config).with("tapes/sse.json", "{}").with("tapes/vcr.json", "{}");
    let (first, second) = (renamed(&deck, "td-a"), renamed(&deck, "td-b"));
    for words in [&["--record", "tapes"][..], &["--replay", "tapes"]] {
        first(words).status(ExitCode::Good).stdout("sse: re").stdout("vcr: re");
        let once = deck.read("mcp.json");
        assert!(once.contains("/td-a\""), "{once}");
        first(words).status(ExitCode::Good);
        assert_eq!(deck.read("mcp.json"), once);
        second(words).status(ExitCode::Good);
        assert_eq!(deck.read("mcp.json"), once.replace("/td-a\"", "/td-b\""));
        assert_eq!(deck.read("mcp.json.before-tapedeck"), config);
        let ran = if words[0] == "--record" { first(&["--undo"]) } else { second(&["--undo"]) };
        ran.status(ExitCode::Good).stdout("sse: as it was\nvcr: as it was\n");
        assert_eq!(deck.read("mcp.json"), config);
        assert!(!deck.path("mcp.json.before-tapedeck").exists());
    }
}

#[test]
fn a_program_that_may_be_anybodys_is_neither_wrapped_nor_taken_away() {
    let deck = Deck::new().with("mcp.json", configuration());
    let (first, second) = (renamed(&deck, "td-a"), renamed(&deck, "td-b"));
    first(&[]).status(ExitCode::Good);
    std::fs::remove_file(deck.path("mcp.json.before-tapedeck")).expect("it is there");
    let once = deck.read("mcp.json");
    second(&[])
        .status(ExitCode::Good)
        .stdout("local: left as it is: ")
        .stdout("nothing tells that it is tapedeck");
    second(&["--undo"]).status(ExitCode::Bad).stdout("put `tapedeck` in its place and run");
    assert_eq!(deck.read("mcp.json"), once);
    // As it says.
    let program = deck.path("td-a").canonicalize().expect("it is there").display().to_string();
    edit(&deck, "mcp.json", &[(&program, "tapedeck")]);
    second(&["--undo"]).status(ExitCode::Good).stdout("local: as it was\n");
    assert_eq!(deck.read("mcp.json"), configuration());
}

#[test]
fn a_configuration_that_cannot_be_read_says_where() {
    for (name, text, says) in [
        ("c.toml", "[mcp_servers.a]\ncommand = = 'x'\n", "c.toml:2:11: extra `=`"),
        ("c.toml", "[mcp_servers.\"ü\"]\n\"ü\" = 1\n\"ü\" = 2\n", "c.toml:3:1: duplicate key"),
        ("c.toml", "[mcp_servers.a]\nargs = ['ü', x]\n", "c.toml:2:14: "),
        ("c.toml", "[mcp_servers", "c.toml:1:13: unclosed table"),
        ("c.json", "{\"mcpServers\": {\n  \"ü\": {\"command\": x}}}", "c.json:2:20: "),
    ] {
        let deck = Deck::new().with(name, text);
        for mode in ["--record tapes", "--undo"] {
            deck.run(&format!("wrap {name} {mode}")).status(ExitCode::File).stderr(says);
        }
    }
}

#[test]
fn a_type_that_only_the_copy_knew_is_told_where_that_is_gone() {
    let text = |kind: &str| {
        format!(
            "{{\"mcpServers\": {{\"a\": {{{kind}\"url\": \"https://h/sse\", \"headers\": {{\"A\": \"b\"}}}}}}}}\n"
        )
    };
    for (kind, without) in [("\"type\": \"sse\", ", "\"type\": \"http\", "), ("", "")] {
        for is_kept in [true, false] {
            let deck = Deck::new().with("mcp.json", text(kind));
            deck.run("wrap mcp.json --record tapes").status(ExitCode::Good).stdout("a: recorded into");
            if !is_kept {
                std::fs::remove_file(deck.path("mcp.json.before-tapedeck")).expect("it is there");
            }
            let ran = deck.run("wrap mcp.json --undo").status(ExitCode::Good);
            let is_told = !is_kept && !kind.is_empty();
            let says = if is_told {
                "a: as it was, but for its `type`, which is `http` now: "
            } else {
                "a: as it was\n"
            };
            ran.stdout(says);
            assert_eq!(deck.read("mcp.json"), text(if is_kept { kind } else { without }));
        }
    }
}
