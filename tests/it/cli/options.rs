//! Options that make no sense without others, and addresses that nobody can listen on.

use std::net::TcpListener;

use mcp_tapedeck::exit_code::ExitCode;

use super::{deck::Deck, files::CASSETTE};

#[test]
fn an_option_that_makes_no_sense_alone_says_what_it_needs() {
    let deck = Deck::new().with("c.json", CASSETTE);
    let url = "--url http://127.0.0.1:9/mcp";
    // Behind the option stands what its refusal has to name.
    for (words, needed) in [
        ("record n.json --listen 127.0.0.1:0 -- cat", "--url"),
        ("record n.json --listen 127.0.0.1:0", "--url"),
        ("record n.json --connect 127.0.0.1:1 -- cat", "--url"),
        ("record n.json --connect-timeout 1s -- cat", "--url"),
        ("record n.json --ca roots.pem -- cat", "--url"),
        ("record n.json --insecure-skip-verify -- cat", "--url"),
        ("record n.json --http2 -- cat", "--url"),
        ("record n.json --header a:b -- cat", "--url"),
        ("record n.json --header a:b", "--url"),
        ("auto n.json --header a:b -- cat", "--url"),
        ("auto n.json --http2 -- cat", "--url"),
        ("auto n.json --connect-timeout 1s -- cat", "--url"),
        ("record n.json --cert c.pem -- cat", "--listen"),
        ("record n.json --ready-file r -- cat", "--listen"),
        ("record n.json --allow-host h -- cat", "--listen"),
        ("record n.json --allow-origin h -- cat", "--listen"),
        ("record n.json URL --cert c.pem --key k.pem", "--listen"),
        ("record n.json URL --cert c.pem --listen 127.0.0.1:0", "--key"),
        ("record n.json URL --key k.pem --listen 127.0.0.1:0", "--cert"),
        ("record n.json URL --ready-file r", "--listen"),
        ("record n.json URL --allow-host h", "--listen"),
        ("record n.json URL --allow-origin h", "--listen"),
        ("record n.json URL --ca r.pem --insecure-skip-verify", "--insecure-skip-verify"),
        ("record n.json URL -- cat", "--url"),
        ("record n.json --url elsewhere", "--url"),
        ("record n.json --url elsewhere --listen 127.0.0.1:0", "--url"),
        ("replay c.json --ready-file r", "--listen"),
        ("replay c.json --allow-host h", "--listen"),
        ("replay c.json --allow-origin h", "--listen"),
        ("replay c.json --cors", "--listen"),
        ("replay c.json --max-message 1MB", "--listen"),
    ] {
        deck.run(&words.replace("URL", url)).status(ExitCode::Usage).stderr(needed);
    }
    assert_eq!(deck.names(), ["c.json"], "nothing was begun");
}

#[test]
fn a_cassette_is_named_by_a_word_or_by_an_option() {
    let deck = Deck::new().with("c.json", CASSETTE);
    for words in ["show", "lint", "fmt --check", "replay"] {
        let by = |cassette: &str| {
            let ran = deck.run(&format!("{words} {cassette}"));
            (ran.code, ran.stdout, ran.stderr)
        };
        assert_eq!(by("--cassette c.json"), by("c.json"), "{words}");
    }
    deck.run_words(["show", "--cassette", "c.json", "initialize @1"], "")
        .status(ExitCode::Good)
        .stdout("client: request");
    let by = |words: &[&str]| {
        let out = ["--out", "edited.json"];
        deck.run_words([words, &["note", "initialize @1", "text"], &out].concat(), "").status(ExitCode::Good);
        let edited = deck.read("edited.json");
        std::fs::remove_file(deck.path("edited.json")).expect("it is there");
        edited
    };
    assert_eq!(by(&["edit", "--cassette", "c.json"]), by(&["edit", "c.json"]));
    let usages = [
        ("show", "show [OPTIONS] <C> [KEY]"),
        ("edit", "edit [OPTIONS] <C> <COMMAND>"),
        ("lint", "lint [OPTIONS] <C>..."),
        ("record", "record [OPTIONS] <C> [-- <CMD>...]"),
        ("edit set", "edit <C> set [OPTIONS] <KEY> <POINTER> <VALUE>"),
    ];
    for (command, usage) in usages {
        let usage = format!("Usage: tapedeck {usage}\n");
        deck.run(&format!("{command} --help")).status(ExitCode::Good).stdout(&usage);
    }
    deck.run("show --cassette c.json c.json")
        .status(ExitCode::File)
        .stderr("one cassette is shown at a time");
    deck.run("run --cassette c.json -- true").status(ExitCode::Good);
    for words in ["show c.json KEY", "lint c.json", "fmt c.json", "replay c.json", "record c.json"] {
        deck.run(&format!("{words} --cassette c.json")).status(ExitCode::Usage).stderr("cannot be used with");
    }
    deck.run("edit c.json --cassette c.json note KEY text")
        .status(ExitCode::Usage)
        .stderr("cannot be used with");
}

const TWO: &str = r#"{
  "cassette": 1,
  "match": [{"when": {"method": "never"}, "ignore": ["/params/x"]}],
  "sessions": [{"session": 1, "recording": 1, "transport": "stdio"}, {"session": 2, "recording": 2, "transport": "stdio"}],
  "exchanges": [
    {"key": "a", "client": {"request": {"method": "a"}}, "server": [{"result": {"of": "one"}}]},
    {"key": "b", "session": 2, "client": {"request": {"method": "a"}}, "server": [{"after_ms": 900000000, "result": {"of": "two"}}]}
  ]
}
"#;

#[test]
fn options_of_playing_and_recording_reach_the_core() {
    let deck = Deck::new()
        .with("c.json", TWO)
        .with("s.sh", "read l; echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}'; cat > /dev/null");
    let asked = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\"}\n";
    deck.talk("replay c.json", asked).status(ExitCode::Good).stdout("two");
    deck.talk("replay c.json --recording 1", asked).status(ExitCode::Good).stdout("one");
    // Without it nobody would live to see the answer.
    deck.talk("replay c.json --timing recorded --max-delay 1ms", asked).status(ExitCode::Good).stdout("two");
    deck.run_words(
        ["replay", "c.json", "--seed", "7", "--fault", "b: latency ms=0", "--report", "s.json"],
        asked,
    );
    assert!(deck.read("s.json").contains("\"seed\": 7"), "{}", deck.read("s.json"));
    deck.talk("replay c.json --report r.json", asked).status(ExitCode::Good);
    deck.run("verdict r.json").stdout("unused match rule: ");
    deck.talk("replay c.json --log l.log", asked).status(ExitCode::Good);
    deck.run("run c.json --log l.log -- true").status(ExitCode::Good);
    assert_eq!(
        deck.read("l.log").matches("unused match rule: {\"when\": {\"method\": \"never\"}").count(),
        2
    );
    let secret =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\",\"params\":{\"password\":\"hunter2hunter2\"}}\n";
    for (options, is_kept) in [("", false), ("--keep /params/password", true)] {
        let name = format!("k{is_kept}.json");
        deck.talk(&format!("record {name} {options} -- sh s.sh"), secret).status(ExitCode::Good);
        assert_eq!(deck.read(&name).contains("hunter2"), is_kept, "{options}");
    }
    let long = deck.talk("record l.json --max-message 40 -- sh s.sh", secret).status(ExitCode::Good);
    long.stderr("longer than --max-message");
    let gap = TWO.replace(r#""recording": 2,"#, r#""recording": 2, "gap": 3,"#);
    let deck = deck.with("g.json", gap);
    deck.run("lint g.json").status(ExitCode::Bad).stdout("[gap] at least 3 messages were not recorded");
    assert!(!deck.run("lint g.json --allow gap").stdout.contains("[gap]"));
}

#[test]
fn an_address_nobody_can_listen_on_is_told_with_the_next_step() {
    let deck = Deck::new().with("c.json", CASSETTE);
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken.local_addr().expect("an address").to_string();
    for front in ["record n.json --url http://127.0.0.1:9/mcp", "replay c.json"] {
        for address in
            ["8123", "127.0.0.1", ":8123", "127.0.0.1:http", "127.0.0.1:70000", "::1:80", "http://h:80"]
        {
            deck.run(&format!("{front} --listen {address}"))
                .status(ExitCode::Usage)
                .stderr(address)
                .stderr("expected HOST:PORT, such as 127.0.0.1:8123");
        }
        for (address, what) in [
            (&*taken, "another program listens there"),
            ("192.0.2.1:0", "no such address"),
            ("no-such-host.invalid:0", "cannot listen there"),
        ] {
            deck.run(&format!("{front} --listen {address}"))
                .status(ExitCode::Peer)
                .stderr(&format!("--listen {address}: "))
                .stderr(what)
                .stderr("hint: ");
        }
    }
    assert_eq!(deck.names(), ["c.json"], "nothing was begun");
}

/// What was asked second was answered first.
const CROSSED: &str = r#"{"cassette": 1, "sessions": [{"session": 1, "recording": 1, "transport": "stdio"}], "exchanges": [
  {"key": "a", "client": {"request": {"method": "a"}}, "server": [{"after": "b #1", "result": "of a"}]},
  {"key": "b", "after": "a", "client": {"request": {"method": "b"}}, "server": [{"result": "of b"}]}]}"#;

#[test]
fn an_answer_waits_so_long_for_what_came_before_it() {
    let deck = Deck::new().with("c.json", CROSSED);
    let asked = [1, 2]
        .map(|id| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{}\"}}\n", ["a", "b"][id - 1]));
    for (grace, first) in [("1h", "of b"), ("0s", "of a")] {
        let ran = deck.talk(&format!("replay c.json --order-grace {grace}"), &asked.concat());
        let lines: Vec<&str> = ran.stdout.lines().collect();
        assert!(lines.len() == 2 && lines[0].contains(first), "{grace}: {ran:#?}");
        ran.status(ExitCode::Good);
    }
}

/// The server asks its client for something before it answers.
const ASKING: &str = r#"{"cassette": 1, "sessions": [{"session": 1, "recording": 1, "transport": "stdio", "protocol": "2025-11-25"}], "exchanges": [
  {"key": "initialize @1", "client": {"request": {"method": "initialize", "params": {"capabilities": {"roots": {}}}}}, "server": [{"result": {"capabilities": {}}}]},
  {"key": "a", "client": {"request": {"method": "a"}},
   "server": [{"request": {"id": 7, "method": "roots/list"}, "answer": {"result": {"roots": []}}}, {"result": "of a"}]}]}"#;

#[test]
fn a_server_waits_so_long_for_its_client_s_answer() {
    let deck = Deck::new().with("c.json", ASKING);
    let said = concat!(
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{"roots":{}}}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":2,"method":"a"}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":7,"result":{"roots":[]}}"#,
        "\n"
    );
    deck.talk("replay c.json --answer-timeout 1h", said).status(ExitCode::Good).stdout("of a");
    let ran = deck.talk("replay c.json --answer-timeout 0s", said).status(ExitCode::Bad).stdout("of a");
    ran.stderr("the answer did not come in time");
}

#[cfg(unix)]
#[test]
fn a_recording_that_is_required_is_worth_the_session() {
    let deck = Deck::new();
    let long = format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{}\"}}\n", "x".repeat(4_000));
    let program = env!("CARGO_BIN_EXE_tapedeck");
    for option in ["", "--require-recording"] {
        let line = format!("ulimit -f 2; exec '{program}' record c.json {option} -- cat");
        let ran = deck.start(std::process::Command::new("sh").args(["-c", &line]), &long);
        assert_eq!(ran.stdout == long, option.is_empty(), "{option}: {ran:#?}");
        let told = ["the session goes on", "the session was ended because of it"];
        ran.status(ExitCode::File).stderr(told[usize::from(!option.is_empty())]);
    }
}

#[cfg(unix)]
#[test]
fn a_plan_that_comes_through_a_pipe_is_that_of_each_server() {
    let deck = Deck::new().with("a.json", CASSETTE).with("b.json", CASSETTE);
    let plan = r#"{"faults": 1, "scenarios": {"s": [{"do": "timeout"}]}}"#;
    let run = "run --server a=a.json --server b=b.json --faults /dev/stdin --scenario";
    let ran = deck.talk(&format!("{run} s -- true"), plan).status(ExitCode::Bad);
    ran.stderr("a.json, b=").stderr("b.json: the fault `{\"do\": \"timeout\"}` never acted");
    let refused = deck.talk(&format!("{run} t -- true"), plan).status(ExitCode::Usage);
    refused.stderr("there is no scenario `t`; there is s");
}

#[test]
fn a_number_that_is_none_is_told_with_what_is_expected() {
    for (words, value) in [
        ("edit c.json delay k abc", "abc"),
        ("edit c.json fail k --status 4x", "4x"),
        ("show c.json --session one", "one"),
        ("replay c.json --session one", "one"),
    ] {
        let says = format!("invalid value '{value}' for ");
        let ran =
            Deck::new().run(words).status(ExitCode::Usage).stderr(&says).stderr(": expected a whole number");
        assert!(!ran.stderr.contains("digit"), "{ran:#?}");
    }
}
