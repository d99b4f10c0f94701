//! What a front that could do nothing leaves behind.

use mcp_tapedeck::exit_code::ExitCode;

use super::deck::Deck;

const CASSETTE: &str = r#"{
  "cassette": 1,
  "sessions": [{"session": 1, "recording": 1, "transport": "stdio"}],
  "exchanges": [{"key": "ping @1", "client": {"request": {"method": "ping"}}, "server": [{"result": {}}]}]
}
"#;

#[test]
fn a_replay_that_cannot_start_leaves_a_bad_report() {
    let deck = Deck::new().with("c.json", CASSETTE).with("r.json", "{}");
    deck.run("replay c.json --report r.json --scenario none").status(ExitCode::Usage);
    let ran = deck.run("verdict r.json").status(ExitCode::Bad);
    assert!(ran.stdout.contains("there is no scenario `none`"), "{ran:#?}");
}

#[test]
fn a_server_that_was_never_reached_costs_no_recording_and_makes_none() {
    let deck = Deck::new().with("c.json", CASSETTE);
    let line = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
    deck.talk("record c.json --replace --url http://127.0.0.1:1/mcp", line).status(ExitCode::Peer);
    assert_eq!(deck.read("c.json"), CASSETTE);
    deck.talk("auto new.json --url http://127.0.0.1:1/mcp", line).status(ExitCode::Peer);
    assert!(!deck.path("new.json").exists(), "nothing was recorded");
    deck.run("recover").status(ExitCode::Good);
}

#[test]
fn a_server_that_was_never_reached_makes_the_report_bad() {
    let line = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
    for command in ["proxy", "record n.json"] {
        let deck = Deck::new();
        let url = "--url http://127.0.0.1:1/mcp --report r.json";
        deck.talk(&format!("{command} {url}"), line).status(ExitCode::Peer);
        let report = deck.read("r.json");
        assert!(report.contains("\"verdict\": \"bad\"") && report.contains("\"ping\": 1"), "{report}");
        let ran = deck.run("verdict r.json").status(ExitCode::Bad);
        assert!(ran.stdout.contains("127.0.0.1:1"), "{ran:#?}");
    }
}

#[test]
fn faults_that_cannot_act_are_told_by_lint_and_by_edits() {
    let deck = Deck::new().with("c.json", CASSETTE);
    deck.run_words(["edit", "c.json", "set", "ping @1", "/fault", "tiemout"], "").status(ExitCode::File);
    assert_eq!(deck.read("c.json"), CASSETTE);
    let lost = CASSETTE.replacen(
        "\"sessions\"",
        "\"faults\": [{\"when\": {\"key\": \"ping @9\"}, \"do\": \"timeout\"}],\n  \"sessions\"",
        1,
    );
    let deck = Deck::new().with("c.json", lost);
    let ran = deck.run("lint c.json").status(ExitCode::Bad);
    assert!(ran.stdout.contains("c.json:3:14: [fault] a fault rule names the key `ping @9`"), "{ran:#?}");
}

#[test]
fn a_file_that_is_missing_or_a_folder_is_named_with_the_next_step() {
    let deck = Deck::new().with("c.json", CASSETTE).with("folder/x.txt", "");
    let cassette = "there is no such cassette, and no journal of one\nhint: `tapedeck record` makes one";
    let missing = "there is no such file\nhint: ";
    for (words, says) in [
        ("show none", cassette),
        ("lint none", cassette),
        ("fmt none", cassette),
        ("edit none remove k", cassette),
        ("convert none out.journal", cassette),
        ("recover none", cassette),
        ("replay none", cassette),
        ("replay --server a=none --listen 127.0.0.1:0", cassette),
        ("run none -- true", cassette),
        ("auto none --record none -- true", cassette),
        ("events none", missing),
        ("freeze none", missing),
        ("edit c.json answer k --from none", missing),
        ("replay c.json --faults none", missing),
        ("proxy --faults none -- true", missing),
        ("record new.json --faults none -- true", missing),
        ("replay c.json --listen 127.0.0.1:0 --cert none --key none", missing),
        ("record new.json --url https://127.0.0.1:1/ --ca none", missing),
        ("wrap none --undo", "`none` is neither a file nor a client that is known\nhint: "),
        ("events folder", "expected a file, found a folder\nhint: "),
        ("freeze folder", "expected a file, found a folder\nhint: "),
        ("edit c.json answer k --from folder", "expected a file, found a folder\nhint: "),
        ("replay c.json --faults folder", "expected a file, found a folder\nhint: "),
    ] {
        let ran = deck.run(words).status(ExitCode::File).stderr(says);
        assert!(!ran.stderr.contains("os error") && ran.stderr.starts_with("error: "), "{words}: {ran:#?}");
    }
    // That no replay was started is what it is there to find.
    deck.run("verdict none").status(ExitCode::Bad).stderr("no report was found in `none`\nhint: ");
}

#[test]
fn a_folder_and_what_is_none_of_our_files_are_told_with_what_was_found() {
    let deck = Deck::new()
        .with("folder/x.txt", "")
        .with("empty", "")
        .with("other", "[1, 2]")
        .with("noise.journal", b"\x80\x81\x82".as_slice())
        .with("c.json", CASSETTE);
    let no_cassette = "expected a cassette, an object with `\"cassette\": 1` as its first member, found ";
    for words in
        ["show X", "fmt X", "fmt X --check", "convert X out", "replay X", "run X -- true", "edit X note k v"]
    {
        for (file, says) in [
            ("folder", "folder: expected a file, found a folder".to_owned()),
            ("empty", format!("empty:1:1: {no_cassette}the end of the text")),
            ("other", format!("other:1:1: {no_cassette}`[1, 2]`")),
            ("noise.journal", "noise.journal: this is no journal of tapedeck".to_owned()),
        ] {
            let ran =
                deck.run(&words.replace('X', file)).status(ExitCode::File).stderr(&says).stderr("\nhint: ");
            assert!(
                ran.stderr.starts_with("error: ") && !ran.stderr.contains("os error"),
                "{words}: {ran:#?}"
            );
        }
    }
    deck.run("recover folder").status(ExitCode::File).stderr("expected a file, found a folder\nhint: ");
    deck.run("lint folder").status(ExitCode::File).stderr("expected a file, found a folder\nhint: ");
    deck.run("lint noise.journal").status(ExitCode::File).stderr("this is no journal of tapedeck");
    for (words, what) in [("verdict X", "a report"), ("freeze X", "a report"), ("events X", "an event")] {
        let says = format!("other:1:1: expected {what}, an object in braces, found `[1, 2]`");
        let ran = deck.run(&words.replace('X', "other")).status(ExitCode::File).stderr(&says);
        assert!(ran.stderr.contains("error: ") && ran.stderr.contains("\nhint: "), "{words}: {ran:#?}");
        let ran = deck.run(&words.replace('X', "c.json")).status(ExitCode::File);
        assert!(!ran.stderr.contains("struct") && ran.stderr.lines().count() < 9, "{words}: {ran:#?}");
    }
}

#[test]
fn an_empty_file_is_recorded_into_as_if_it_were_not_there() {
    let line = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
    for command in ["record", "record --replace", "auto"] {
        let deck = Deck::new().with("c.json", "");
        deck.talk(&format!("{command} c.json -- cat"), line).status(ExitCode::Good).silent();
        assert!(deck.read("c.json").contains("\"ping @1\""), "{command}: {}", deck.read("c.json"));
        assert_eq!(deck.names(), ["c.json"]);
    }
}

#[test]
fn a_cassette_that_cannot_be_read_has_nothing_to_recover() {
    let deck = Deck::new().with("c.json", CASSETTE).with("broken.json", "x{");
    std::fs::create_dir(deck.path("folder")).expect("a folder");
    deck.run("recover broken.json").status(ExitCode::File).stderr("broken.json:1:1: ");
    deck.run("recover folder").status(ExitCode::File).stderr("folder");
    let ran = deck.run("recover c.json").status(ExitCode::Good);
    assert!(ran.stdout.contains("nothing to add"), "{ran:#?}");
}

/// A report for `/dev/stderr`, say, or for a pipe that somebody reads.
#[cfg(unix)]
#[test]
fn what_is_no_file_stays_what_it_is_and_is_written_to() {
    let deck = Deck::new().with("c.json", CASSETTE).with("far.json", "{}");
    std::os::unix::fs::symlink("far.json", deck.path("link.json")).expect("a link");
    deck.run("replay c.json --report link.json").status(ExitCode::Good);
    assert!(deck.path("link.json").is_symlink());
    assert!(deck.read("far.json").contains("\"verdict\": \"good\""), "{}", deck.read("far.json"));

    let pipe = deck.path("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|made| made.success()));
    // Opened for both, so that neither end waits for the other.
    let mut reader = std::fs::File::options().read(true).write(true).open(&pipe).expect("the pipe opens");
    deck.run("replay c.json --report pipe").status(ExitCode::Good);
    let mut first = [0; 1];
    std::io::Read::read_exact(&mut reader, &mut first).expect("something was written");
    let kind = std::fs::symlink_metadata(&pipe).expect("it is there").file_type();
    assert!(first == *b"{" && std::os::unix::fs::FileTypeExt::is_fifo(&kind));
    drop(reader);
    // Nobody is waited for.
    for option in ["--report", "--events", "--log"] {
        let ran = deck.run(&format!("replay c.json {option} pipe")).status(ExitCode::File);
        assert!(ran.stderr.contains("nobody reads there"), "{ran:#?}");
    }
    deck.run("replay c.json --report /dev/full").status(ExitCode::File);
    assert!(!std::path::Path::new("/dev/full").is_file());
}

#[cfg(target_os = "linux")]
#[test]
fn standard_output_on_a_full_disk_is_a_file_that_cannot_be_written() {
    let deck = Deck::new().with("c.json", CASSETTE);
    let ping = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
    let client = "cannot read from the client or write to it: ";
    for (words, says) in [
        ("show c.json", "cannot write the output: "),
        ("schema cassette", "cannot write the output: "),
        ("completions bash", "cannot write the output: "),
        ("help", "cannot write the output: "),
        ("--version", "cannot write the output: "),
        ("replay c.json", client),
        ("auto c.json -- cat", client),
        // One server runs into it, the other one is told first to end.
        ("record d.json -- yes", "cannot write to the client: "),
        ("record e.json -- cat", "cannot write to the client: "),
        ("proxy -- yes", "cannot write to the client: "),
        ("proxy -- cat", "cannot write to the client: "),
        ("proxy --events f.jsonl -- cat", "cannot write to the client: "),
    ] {
        let full = format!("{words} > /dev/full");
        deck.talk_apart(&full, ping).status(ExitCode::File).stderr("error: ").stderr(says);
    }
}

/// A server that runs into the closed pipe dies of it, another one is told first to end: neither is told by the status,
/// nor did it end by itself.
#[cfg(target_os = "linux")]
#[test]
fn a_client_that_has_left_is_no_failure_whatever_the_server_makes_of_it() {
    let deck = Deck::new();
    let ping = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
    for (at, words) in
        ["record 0.json -- yes", "record 1.json -- cat", "proxy -- yes", "proxy --events f -- yes"]
            .iter()
            .enumerate()
    {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tapedeck"));
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        command.args(words.split(' ')).current_dir(deck.path("")).stdout(writer);
        command.stdin(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        // It stays open: only what is said to the client tells that it has left.
        let mut stdin = child.stdin.take().expect("a pipe");
        // Or it has found that out by now.
        let _ = std::io::Write::write_all(&mut stdin, ping.as_bytes());
        let ran = super::deck::Ran::of(&child.wait_with_output().expect("it ends"));
        ran.status(ExitCode::Good).silent();
        if words.starts_with("record") {
            assert!(!deck.read(&format!("{at}.json")).contains("\"end\""), "{words}");
        }
    }
}

/// Whoever sets a limit on the size of files sets it for a session, not for this program alone.
#[cfg(target_os = "linux")]
#[test]
fn a_limit_on_the_size_of_files_is_the_error_of_one_write() {
    // Longer than one of the blocks that limits are counted in, and not in canonical form.
    let long = super::files::CASSETTE
        .replacen("no such day", &"no such day ".repeat(200), 1)
        .replacen("  ", "   ", 1);
    let deck = Deck::new().with("c.json", &long);
    let limited = |words: &str, input: &str| {
        let line = format!("ulimit -f 1; exec '{}' {words}", env!("CARGO_BIN_EXE_tapedeck"));
        deck.start(std::process::Command::new("sh").args(["-c", &line]), input)
    };
    for words in ["fmt c.json", "edit c.json note 'tools/call report @1' why", "convert c.json d.json"] {
        let ran = limited(words, "");
        assert!(ran.stderr.starts_with("error: failed to write to file "), "{words}: {ran:#?}");
        ran.status(ExitCode::File).stderr("File too large");
        assert_eq!((deck.names(), deck.read("c.json")), (vec!["c.json".to_owned()], long.clone()), "{words}");
    }
    let asked = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/list\"}\n".repeat(20);
    let ran = limited("replay c.json --events e.jsonl --log log", &asked);
    assert_eq!(ran.stdout.lines().count(), 20, "the session goes on: {ran:#?}");
    ran.stderr("cannot write events to").stderr("cannot write the log");
    // What is started by us has the limit as everybody else has it.
    let program = "sh -c 'head -c 9999 /dev/zero > big; echo \"head: $?\"'";
    for words in [format!("proxy -- {program}"), format!("run c.json -- {program}")] {
        limited(&words, "").stdout("head: 153\n");
    }
}

#[test]
fn what_may_be_a_secret_is_not_told_where_the_command_line_is_wrong() {
    let deck = Deck::new();
    for (words, says) in [
        (["--url", "ann:hunter2@h/x"], "--url: that is no address of a server"),
        (["--url", "https://ann:hunter2@/x"], "--url: that is no address of a server"),
        (["--url", "https://h:99999/x?token=hunter2"], "--url: that is no address of a server"),
        (
            ["--url", "htp://ann:hunter2@h"],
            "--url: the address begins neither with http:// nor with https://",
        ),
        (["--url", "http://ann:hunter2@h"], "--url: the address holds a name or a password"),
        (["--var", "hunter2"], "--var: there is no `=` behind the name"),
        (["--var", "9=hunter2"], "`9` is no name for a variable"),
        (["--header", "X-Api-Key hunter2"], "--header: there is no `:` behind the name"),
        (["--header", "X Api Key: hunter2"], "--header: that is no header's name"),
    ] {
        let rest: &[&str] = match words[0] {
            "--url" => &[],
            "--header" => &["--url", "http://127.0.0.1:1/mcp"],
            _ => &["--", "true"],
        };
        let line = [&["record", "c.json"], &words[..], rest].concat();
        let ran = deck.run_words(line, "").status(ExitCode::Usage);
        assert!(ran.stderr.contains(says), "{ran:#?}");
        let told = format!("{}{}", ran.stdout, ran.stderr);
        assert!(!told.contains("hunter2"), "{told}");
    }
}
