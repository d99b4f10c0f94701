//! `tapedeck verdict`.

use mcp_tapedeck::{
    exit_code::ExitCode,
    report::{Report, Verdict},
};

use super::deck::Deck;

fn report(verdict: Verdict) -> Vec<u8> {
    let mut report = Report::open("c.json");
    report.verdict = verdict;
    report.calls.insert("tools/call".to_owned(), 2);
    serde_json::to_vec(&report).expect("a report is JSON")
}

#[test]
fn good_reports_make_a_good_verdict() {
    let deck = Deck::new().with("r/1.json", report(Verdict::Good)).with("r/note.txt", "no report");
    deck.run("verdict r")
        .status(ExitCode::Good)
        .stdout("r/1.json: good, 2 messages")
        .stdout("1 report, 1 good");
}

#[test]
fn a_bad_or_open_report_makes_it_bad() {
    let deck = Deck::new().with("r/1.json", report(Verdict::Good)).with("r/2.json", report(Verdict::Open));
    deck.run("verdict r").status(ExitCode::Bad).stdout("r/2.json: still open").stdout("2 reports, 1 good");
    let deck = Deck::new().with("1.json", report(Verdict::Bad));
    deck.run("verdict 1.json").status(ExitCode::Bad).stdout("1.json: bad");
}

#[test]
fn no_report_makes_it_bad() {
    Deck::new().run("verdict r").status(ExitCode::Bad).stderr("no report was found in `r`").stderr("hint: ");
}

#[test]
fn each_path_needs_a_report_of_its_own() {
    let deck = Deck::new().with("a/1.json", report(Verdict::Good)).with("empty/note.txt", "no report");
    deck.run("verdict a empty typo.json --junit r.xml")
        .status(ExitCode::Bad)
        .stdout("1 report, 1 good")
        .stderr("no report was found in `empty` and `typo.json`\nhint: ");
    assert!(deck.read("r.xml").contains("tests=\"3\" failures=\"2\""));
    deck.run("verdict a a/1.json").status(ExitCode::Good).silent();
}

#[test]
fn a_cassette_is_told_from_a_report() {
    let deck = Deck::new().with("c.json", "{\n  \"cassette\": 1\n}\n");
    for words in ["verdict c.json", "freeze c.json"] {
        deck.run(words).status(ExitCode::File).stderr("c.json: expected a report, found a cassette\nhint: ");
    }
}

#[test]
fn what_is_no_report_is_an_invalid_file() {
    for text in ["{}", "", "[1]", "{\"report\": 2}"] {
        let deck = Deck::new().with("r/1.json", text);
        deck.run("verdict r").status(ExitCode::File).stderr("r/1.json:1:").stderr("hint: ");
    }
}

#[test]
fn junit_fails_where_the_verdict_does() {
    let deck = Deck::new().with("r/1.json", report(Verdict::Open));
    deck.run("verdict r --junit out/r.xml").status(ExitCode::Bad);
    assert!(deck.read("out/r.xml").contains("failures=\"1\""));
    deck.run("verdict nothing --junit none.xml").status(ExitCode::Bad);
    assert!(deck.read("none.xml").contains("failures=\"1\""));
}
