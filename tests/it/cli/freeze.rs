//! `tapedeck freeze`.

use std::fmt::Write as _;

use mcp_tapedeck::exit_code::ExitCode;

use super::{deck::Deck, files::CASSETTE};

const PLAN: &str = r#"{"faults": 1, "seed": 3, "rules": [{"name": "flaky", "when": {"method": "ping"}, "do": "error", "code": -32000, "message": "busy", "probability": 0.5}]}"#;

fn pings() -> String {
    let mut pings = String::new();
    for id in 1..=20 {
        let _ = writeln!(pings, r#"{{"jsonrpc":"2.0","id":{id},"method":"ping","params":{{"n":{id}}}}}"#);
    }
    pings
}

/// A cassette in which a `ping` is recorded.
fn cassette() -> String {
    let ping = r#"{"key": "ping @1", "client": {"request": {"method": "ping"}}, "server": [{"result": {}}]}"#;
    CASSETTE.replacen("\"exchanges\": [", &format!("\"exchanges\": [\n    {ping},"), 1)
}

#[test]
fn a_run_by_chance_becomes_a_plan_that_repeats_it() {
    let deck = Deck::new().with("c.json", cassette()).with("p.json", PLAN);
    let first = deck.talk("replay c.json --faults p.json --report r.json -v", &pings());
    let first = first.stderr("--seed 3 decides what happens by chance");
    assert!((5..=15).contains(&first.stdout.matches("busy").count()), "{first:#?}");
    let faults = crate::schema::faults("report", deck.read("r.json").as_bytes());
    assert_eq!(faults, [""; 0]);
    deck.run("freeze r.json --out frozen/p.json").status(ExitCode::Good).silent();
    assert_eq!(deck.run("freeze r.json").status(ExitCode::Good).stdout, deck.read("frozen/p.json"));
    let again = deck.talk("replay c.json --faults frozen/p.json --report r2.json", &pings());
    assert_eq!(again.stdout, first.stdout);
    deck.run("freeze r2.json").status(ExitCode::Good).stderr("no fault acted by chance");
}

#[test]
fn what_cannot_be_frozen_is_said() {
    let deck = Deck::new().with("c.json", CASSETTE).with("no.json", "{}");
    deck.run("freeze none.json").status(ExitCode::File).stderr("none.json");
    deck.run("freeze no.json")
        .status(ExitCode::File)
        .stderr("no.json:1:1: a report needs the member `report`, found `{}`\nhint: ");
    let open = mcp_tapedeck::Report::open("c.json");
    let deck = deck.with("open.json", serde_json::to_vec(&open).expect("JSON"));
    deck.run("freeze open.json").status(ExitCode::File).stderr("still open").stderr("hint: ");
}
