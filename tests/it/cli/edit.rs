//! `edit`: what a person types, what stands in the file then, what is said.

use mcp_tapedeck::exit_code::ExitCode;

use super::{
    deck::{Deck, Ran},
    files::CASSETTE,
};

const KEY: &str = "tools/call report @1";

fn deck() -> Deck {
    Deck::new().with("c.json", CASSETTE)
}

fn edit(deck: &Deck, words: &[&str]) -> Ran {
    deck.run_words(["edit", "c.json"].iter().chain(words), "")
}

/// The file after an edit that says nothing.
#[track_caller]
fn edited(words: &[&str]) -> String {
    let deck = deck();
    let ran = edit(&deck, words).status(ExitCode::Good).silent();
    assert_eq!(ran.stdout, "", "{words:?}");
    assert_eq!(deck.names(), ["c.json"], "{words:?}");
    deck.read("c.json")
}

/// The canonical cassette with one text in the place of another.
#[track_caller]
fn with(old: &str, new: &str) -> String {
    assert_eq!(CASSETTE.matches(old).count(), 1, "{old}");
    CASSETTE.replacen(old, new, 1)
}

#[test]
fn a_value_is_json_or_a_text() {
    let message = |value: &str| with("\"no such day\"", value);
    for (value, written) in [
        ("nothing", "\"nothing\""),
        ("7", "7"),
        ("-7", "-7"),
        ("\"7\"", "\"7\""),
        ("1e400", "1e400"),
        (" {\"a\":\"\\u0041\"} ", "{\"a\": \"\\u0041\"}"),
        ("one\ntwo", "{\"$lines\": [\"one\", \"two\"]}"),
        ("--force", "\"--force\""),
    ] {
        assert_eq!(edited(&["set", KEY, "/server/1/error/message", value]), message(written));
    }
    let ran = edit(&deck(), &["set", KEY, "/note", "{\"a\": }"]).status(ExitCode::Usage);
    ran.stderr("VALUE begins like JSON, and is none: ").stderr("hint: ");
}

#[test]
fn each_kind_of_failure_has_its_option() {
    let answer = "\"error\": {\"code\": -32602, \"message\": \"no such day\"}";
    let error = "\"error\": {\"code\": -32603, \"message\": \"-busy\"}";
    assert_eq!(edited(&["fail", KEY, "--error", "-32603", "-busy"]), with(answer, error));
    let tool = "\"result\": {\"content\": [{\"type\": \"text\", \"text\": \"no\"}], \"isError\": true}";
    assert_eq!(edited(&["fail", KEY, "--tool-error", "no"]), with(answer, tool));
    let key = "\"key\": \"tools/call report @1\",\n";
    for (words, fault) in [
        (&["--timeout"][..], "\"timeout\""),
        (&["--drop"], "\"drop\""),
        (&["--status", "503"], "{\"do\": \"status\", \"status\": 503}"),
        (&["--cut-after", "1"], "{\"do\": \"cut_after\", \"events\": 1}"),
        (&["--exit", "3"], "{\"do\": \"exit\", \"status\": 3}"),
    ] {
        let words: Vec<_> = ["fail", KEY].iter().chain(words).copied().collect();
        assert_eq!(edited(&words), with(key, &format!("{key}      \"fault\": {fault},\n")));
    }
    let deck = deck();
    edit(&deck, &["fail", KEY]).status(ExitCode::Usage).stderr("--timeout");
    edit(&deck, &["fail", KEY, "--drop", "--timeout"]).status(ExitCode::Usage).stderr("--drop");
    edit(&deck, &["fail", KEY, "--error", "x", "y"]).status(ExitCode::Usage).stderr("found `x`");
    edit(&deck, &["fail", KEY, "--status", "99"]).status(ExitCode::Usage).stderr("99");
    edit(&deck, &["fail", "initialize @1", "--tool-error", "x"])
        .status(ExitCode::File)
        .stderr("calls no tool");
    assert_eq!(deck.read("c.json"), CASSETTE);
}

#[test]
fn delay_and_note_are_written_into_the_exchange() {
    assert_eq!(
        edited(&["delay", KEY, "3000"]),
        with("{\"after_ms\": 5, \"error\"", "{\"after_ms\": 3000, \"error\"")
    );
    let key = "\"key\": \"tools/call report @1\",\n";
    assert_eq!(edited(&["note", KEY, "-why-"]), with(key, &format!("{key}      \"note\": \"-why-\",\n")));
}

#[test]
fn an_answer_comes_from_a_file_or_from_standard_input() {
    let answer = "\"error\": {\"code\": -32602, \"message\": \"no such day\"}";
    for (given, written) in [
        ("{\"content\":[]}\n", "\"result\": {\"content\": []}"),
        ("{\"jsonrpc\": \"2.0\", \"id\": 9, \"result\": {\"a\": 1}}", "\"result\": {\"a\": 1}"),
        ("{\"error\": {\"code\": 1, \"message\": \"\"}}", "\"error\": {\"code\": 1, \"message\": \"\"}"),
        ("{\"result\": 1, \"more\": 2}", "\"result\": {\"result\": 1, \"more\": 2}"),
    ] {
        let deck = deck().with("r.json", given);
        edit(&deck, &["answer", KEY, "--from", "r.json"]).status(ExitCode::Good).silent();
        assert_eq!(deck.read("c.json"), with(answer, written));
        let piped = self::deck();
        piped
            .run_words(["edit", "c.json", "answer", KEY, "--from", "-"], given)
            .status(ExitCode::Good)
            .silent();
        assert_eq!(piped.read("c.json"), with(answer, written));
    }
    let deck = deck().with("r.json", "{\"a\": 1,\n}");
    edit(&deck, &["answer", KEY, "--from", "r.json"]).status(ExitCode::File).stderr("r.json:2:1: expected");
    edit(&deck, &["answer", KEY, "--from", "none.json"]).status(ExitCode::File).stderr("none.json");
    assert_eq!(deck.read("c.json"), CASSETTE);
}

#[test]
fn exchanges_are_inserted_copied_and_removed() {
    let deck = deck();
    let ping = "{\"server\": [{\"result\": {}}], \"client\": {\"request\": {\"method\": \"ping\"}}}";
    let ran = deck.run_words(["edit", "c.json", "insert", "--after", "initialize @1"], ping);
    assert_eq!(ran.status(ExitCode::Good).silent().stdout, "added `ping @1`\n");
    let line = "    {\"key\": \"ping @1\", \"client\": {\"request\": {\"method\": \"ping\"}}, \"server\": [{\"result\": {}}]},\n";
    let call = "    {\n      \"key\": \"tools/call report @1\"";
    assert_eq!(deck.read("c.json"), with(call, &format!("{line}{call}")));
    let ran = edit(&deck, &["duplicate", KEY, "--as", "again"]).status(ExitCode::Good);
    assert_eq!(ran.stdout, "added `again`\n");
    deck.run("show c.json").status(ExitCode::Good).stdout("again");
    deck.run("fmt c.json --check").status(ExitCode::Good).silent();
    edit(&deck, &["remove", "again"]).status(ExitCode::Good).silent();
    edit(&deck, &["remove", "ping @1"]).status(ExitCode::Good).silent();
    assert_eq!(deck.read("c.json"), CASSETTE);
    edit(&deck, &["remove", KEY, "/client/request/params/arguments"]).status(ExitCode::Good).silent();
    assert_eq!(deck.read("c.json").matches("arguments").count(), 0);
}

#[test]
fn a_variant_leaves_the_cassette_and_is_written_once() {
    let deck = deck();
    let words = ["fail", KEY, "--error", "1", "busy", "--out", "variants/busy.json"];
    edit(&deck, &words).status(ExitCode::Good).silent();
    assert_eq!(deck.read("c.json"), CASSETTE);
    assert!(deck.read("variants/busy.json").contains("{\"code\": 1, \"message\": \"busy\"}"));
    edit(&deck, &words).status(ExitCode::File).stderr("busy.json: this file exists");
    edit(&deck, &["note", KEY, "x", "--out", "c.json"])
        .status(ExitCode::File)
        .stderr("c.json: this file exists");
    assert_eq!(deck.names(), ["c.json", "variants"]);
}

#[test]
fn what_is_not_there_is_answered_with_what_is() {
    let deck = deck();
    let ran = edit(&deck, &["remove", "tools/call reprot @1"]).status(ExitCode::File);
    ran.stderr("no exchange has the key `tools/call reprot @1`")
        .stderr("hint: did you mean `tools/call report @1`?");
    let ran = edit(&deck, &["remove", "x"]).status(ExitCode::File);
    ran.stderr("lists the keys");
    let ran = edit(&deck, &["set", KEY, "/server/1/eror/code", "1"]).status(ExitCode::File);
    ran.stderr("`/server/1` has `after_ms`, `error`; did you mean `error`?");
    edit(&deck, &["set", KEY, "server", "1"]).status(ExitCode::Usage).stderr("is no JSON Pointer");
    edit(&deck, &["set", KEY, "/server/0/after_ms", "soon"])
        .status(ExitCode::File)
        .stderr("c.json:21:23: `after_ms` must be milliseconds");
    assert_eq!((deck.read("c.json"), deck.names()), (CASSETTE.to_owned(), vec!["c.json".to_owned()]));
    Deck::new().run("edit none.json note a b").status(ExitCode::File).stderr("none.json");
}

#[test]
fn what_was_done_to_others_is_said() {
    let same = with(
        "      ]\n    }\n  ]\n}\n",
        "      ]\n    },\n    {\n      \"key\": \"b\",\n      \"after\": \"tools/call report @1 #1\",\n      \"client\": {\"request\": {\"method\": \"m\"}},\n      \"server\": [{\"same_as\": \"tools/call report @1\"}]\n    }\n  ]\n}\n",
    );
    let deck = Deck::new().with("c.json", same);
    let ran = edit(&deck, &["remove", KEY]).status(ExitCode::Good).silent();
    ran.stdout("`b` had the same answer as `tools/call report @1` and keeps it\n")
        .stdout("`b` came after a message");
    let text = deck.read("c.json");
    assert!(
        text.contains("\"server\": [{\"error\": {\"code\": -32602, \"message\": \"no such day\"}}]"),
        "{text}"
    );
    assert!(!text.contains("after\""), "{text}");
    deck.run("fmt --check c.json").status(ExitCode::Good);
}

#[test]
fn each_edit_has_a_page_with_an_example() {
    let help = deck().run("edit --help").status(ExitCode::Good);
    let edits = ["set", "remove", "insert", "duplicate", "fail", "delay", "note", "answer"];
    for name in edits {
        assert!(help.stdout.contains(&format!("  {name}")), "{name}");
        deck().run(&format!("help edit {name}")).status(ExitCode::Good).stdout("Example").silent();
    }
}

/// An id is used once in a session, also where some are written and some are named.
#[test]
fn a_copy_and_an_addition_get_ids_that_nobody_has() {
    let ping = |key: &str, id: &str| {
        format!(
            r#"    {{"key": "{key}", "client": {{"request": {{{id}"method": "ping"}}}}, "server": [{{"result": {{}}}}]}}"#
        )
    };
    let cancel = r#"    {"key": "c", "client": {"notification": {"method": "notifications/cancelled", "params": {"requestId": 3}}}, "server": []}"#;
    let exchanges = [
        ping("ping @1", ""),
        ping("ping @2", r#""id": 1, "#),
        ping("ping @3", r#""id": 3, "#),
        cancel.to_owned(),
    ];
    let text = format!("{{\n  \"cassette\": 1,\n  \"exchanges\": [\n{}\n  ]\n}}\n", exchanges.join(",\n"));
    for words in [&["duplicate", "ping @1"][..], &["duplicate", "ping @3"], &["insert", "new.json"]] {
        let new = r#"{"client": {"request": {"method": "ping"}}, "server": [{"result": {}}]}"#;
        let deck = Deck::new().with("c.json", &text).with("new.json", new);
        let ran = deck.run("lint c.json");
        assert!(!ran.stdout.contains("reused-id"), "{ran:#?}");
        deck.run_words(["edit", "c.json"].iter().chain(words), "").status(ExitCode::Good);
        let ran = deck.run("lint c.json");
        assert!(!ran.stdout.contains("reused-id"), "{words:?} {ran:#?} {}", deck.read("c.json"));
        let edited = deck.read("c.json");
        assert!(edited.contains("\"id\": 4"), "{edited}");
    }
}
