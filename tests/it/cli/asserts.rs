//! `assert` in a plan and in a cassette.

use mcp_tapedeck::exit_code::ExitCode;

use super::{deck::Deck, files::CASSETTE};

const PINGS: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
    "\n",
    r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#,
    "\n"
);

fn asserting(assert: &str) -> String {
    CASSETTE.replacen("\"sessions\": [", &format!("\"assert\": {assert},\n  \"sessions\": ["), 1)
}

#[test]
fn what_is_not_as_asserted_makes_the_run_bad_and_is_told() {
    let plan = r#"{"faults": 1, "assert": {"calls": {"ping": 3}, "connections": 1}}"#;
    let deck = Deck::new().with("c.json", asserting("{\"sessions\": 1}")).with("p.json", plan);
    let ran = deck.talk("replay c.json --faults p.json --report r.json", PINGS).status(ExitCode::Bad);
    ran.stderr("asserted sessions: 1, found 0").stderr("1 more");
    let faults = crate::schema::faults("report", deck.read("r.json").as_bytes());
    assert_eq!(faults, [""; 0]);
    let ran = deck.run("verdict r.json --junit j.xml").status(ExitCode::Bad);
    ran.stdout("assert: asserted calls of ping: 3, found 2").stdout("sessions: 1, found 0");
    assert!(deck.read("j.xml").contains("asserted calls of ping: 3, found 2"), "{}", deck.read("j.xml"));
}

#[test]
fn what_is_as_asserted_is_good() {
    let deck = Deck::new().with("c.json", asserting("{\"sequence\": [\"ping\", \"ping\"], \"sessions\": 0}"));
    deck.talk("replay c.json --report r.json", PINGS).status(ExitCode::Good).silent();
    let ran = deck.run("verdict r.json").status(ExitCode::Good);
    assert!(!ran.stdout.contains("assert"), "{ran:#?}");
    deck.run("fmt c.json").status(ExitCode::Good);
    assert!(deck.read("c.json").contains("\"assert\": {\"sequence\""), "{}", deck.read("c.json"));
    assert_eq!(crate::schema::faults("cassette", deck.read("c.json").as_bytes()), [""; 0]);
}

#[test]
fn a_mistake_is_named_with_its_place_and_what_there_is() {
    let deck = Deck::new()
        .with("c.json", asserting("{\"cals\": {}}"))
        .with("d.json", CASSETTE)
        .with("p.json", "{\"faults\": 1,\n \"assert\": {\"sequence\": {\"contain\": []}}}");
    deck.run("replay c.json").status(ExitCode::File).stderr("c.json:").stderr("did you mean `calls`?");
    deck.run("replay d.json --faults p.json")
        .status(ExitCode::File)
        .stderr("p.json:2:25: ")
        .stderr("needs `contains`");
}
