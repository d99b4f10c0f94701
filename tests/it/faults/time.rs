//! What comes late, in pieces or in another order: the clock is the test's.

use mcp_tapedeck::{
    replay::{Input, Options, Timing},
    traffic::Lane,
};

use super::stage::{CASSETTE, INITIALIZE, REPORT, SEARCH, Stage, plan};

const ANSWER: &str = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"first"}]}}"#;

fn other(line: &str) -> String {
    line.replace("\"id\":7", "\"id\":8").replace("first", "second")
}

fn begun(rules: &str) -> Stage {
    let mut stage = Stage::new(rules);
    stage.send(INITIALIZE);
    stage
}

#[test]
fn a_server_warms_up_with_each_request() {
    let mut stage = begun(r#"[{"when": {"tool": "search"}, "do": "slow_start", "ms": 100}]"#);
    for wait in [100, 50, 25] {
        assert_eq!(stage.send(SEARCH), "");
        assert_eq!(stage.wait(wait - 1), "");
        assert!(stage.wait(1).contains("result"), "{wait}");
    }
}

#[test]
fn nothing_waits_for_a_client_that_has_left() {
    let mut stage = begun(r#"[{"do": "latency", "ms": 100, "when": {"tool": "search"}}]"#);
    stage.send(SEARCH);
    assert_eq!(stage.replayer.waiting(0).len(), 1);
    stage.replayer.handle(0, Input::Left { lane: Lane(0) });
    assert_eq!(stage.replayer.waiting(0).len(), 0);
    assert_eq!(stage.wait(100), "");
    // An older client over HTTP may come back for the rest, but until then nobody waits for it.
    let slow = CASSETTE.replace(
        "\"server\": [{\"result\": {\"content\": [{\"type\": \"text\", \"text\": \"first",
        "\"server\": [{\"after_ms\": 100, \"result\": {\"content\": [{\"type\": \"text\", \"text\": \"first",
    );
    let options = Options { timing: Timing::Recorded { speed: 1.0 }, ..Options::default() };
    let mut stage = Stage::played(plan("[]"), &slow, options);
    stage.initialize();
    assert_eq!(stage.post(SEARCH), "");
    assert_eq!(stage.replayer.waiting(0).len(), 1);
    stage.replayer.handle(0, Input::Left { lane: Lane(2) });
    assert_eq!(stage.replayer.waiting(0).len(), 0);
}

#[test]
fn an_answer_comes_no_faster_than_its_bandwidth() {
    let mut stage = begun(r#"[{"when": {"tool": "search"}, "do": "bandwidth", "bytes_per_second": 400}]"#);
    assert_eq!(stage.send(SEARCH), "");
    assert_eq!(stage.wait(99), "");
    assert_eq!(stage.wait(1), format!("raw {:?}\n", &ANSWER[..40]));
    assert_eq!(stage.wait(97), "");
    assert_eq!(stage.wait(3), format!("raw {:?}\n", format!("{}\n", &ANSWER[40..])));
}

#[test]
fn nothing_comes_between_the_pieces_of_a_line() {
    let mut stage =
        begun(r#"[{"when": {"tool": "search"}, "nth": [1, 3], "do": "dribble", "chunks": 2, "ms": 20}]"#);
    assert_eq!(stage.send(SEARCH), "");
    let (one, two) = ANSWER.split_at(ANSWER.len().div_ceil(2));
    assert_eq!(stage.wait(10), format!("raw {one:?}\n"));
    assert_eq!(stage.send(&other(SEARCH)), "");
    assert_eq!(stage.wait(9), "");
    assert_eq!(stage.wait(1), format!("raw {:?}\n{}\n", format!("{two}\n"), other(ANSWER)));
    assert!(stage.replayer.deadline().is_none());
}

#[test]
fn over_http_a_response_in_pieces_holds_up_no_other() {
    let mut stage =
        Stage::new(r#"[{"when": {"tool": "search"}, "nth": 1, "do": "dribble", "chunks": 2, "ms": 20}]"#);
    stage.initialize();
    let (one, two) = ANSWER.split_at(ANSWER.len() / 2);
    assert_eq!(stage.post(SEARCH), "200\n");
    assert_eq!(stage.wait(10), format!("raw {one:?}\n"));
    assert_eq!(stage.post(&other(SEARCH)), format!("200\n{}\nend None\n", other(ANSWER)));
    assert_eq!(stage.wait(10), format!("(2) raw {two:?}\n(2) end None\n"));
}

#[test]
fn what_splits_a_message_acts_behind_what_needs_it_whole() {
    let mut stage = begun(
        r#"[{"when": {"tool": "search"}, "do": "bandwidth", "bytes_per_second": 1000000},
            {"when": {"tool": "search"}, "do": "dribble", "chunks": 1, "ms": 10},
            {"when": {"tool": "search"}, "do": "noise_line", "text": "INFO"}]"#,
    );
    assert_eq!(stage.send(SEARCH), "");
    assert_eq!(stage.wait(11), format!("raw \"INFO\\n\"\nraw {:?}\n", format!("{ANSWER}\n")));
}

#[test]
fn an_answer_comes_after_the_next_other_one() {
    let rules = r#"[{"when": {"tool": "search"}, "nth": 1, "do": "reorder"}]"#;
    let mut stage = begun(rules);
    assert_eq!(stage.send(SEARCH), "");
    assert_eq!(stage.send(&other(SEARCH)), format!("{}\n{ANSWER}\n", other(ANSWER)));
    let mut stage = begun(rules);
    assert_eq!(stage.send(SEARCH), "");
    let seen = stage.send(REPORT) + &stage.wait(5);
    assert!(
        seen.ends_with(&format!("\"result\":{{\"content\":[]}}}}\n{ANSWER}\n")),
        "progress is no answer: {seen}"
    );
    let mut stage = begun(rules);
    assert_eq!(stage.send(SEARCH), "");
    assert_eq!(stage.wait(999), "");
    assert_eq!(stage.wait(1), format!("{ANSWER}\n"));
    let mut stage = Stage::new(rules);
    stage.initialize();
    assert_eq!(stage.post(SEARCH), "");
    let seen = stage.post(&other(SEARCH));
    let at = |text: &str| seen.find(text).unwrap_or_else(|| panic!("no {text} in {seen}"));
    assert!(at("second") < at("first") && seen.contains("(2) end None\n"), "{seen}");
}

#[test]
fn an_answer_that_lets_another_go_first_is_still_late() {
    let mut stage = begun(
        r#"[{"when": {"tool": "search"}, "nth": 1, "do": "latency", "ms": 100},
            {"when": {"tool": "search"}, "nth": 1, "do": "reorder"}]"#,
    );
    assert_eq!(stage.send(SEARCH), "");
    assert_eq!(stage.send(&other(SEARCH)), format!("{}\n", other(ANSWER)));
    assert_eq!(stage.wait(99), "");
    assert_eq!(stage.wait(1), format!("{ANSWER}\n"));
}

#[test]
fn of_two_that_let_each_other_go_first_the_later_one_does() {
    let mut stage = begun(r#"[{"when": {"tool": "search"}, "do": "reorder"}]"#);
    assert_eq!(stage.send(SEARCH), "");
    assert_eq!(stage.send(&other(SEARCH)), format!("{}\n{ANSWER}\n", other(ANSWER)));
}
