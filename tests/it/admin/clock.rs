//! A clock that is wound: what waits, and what comes when.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{Stand, call, each, initialize, said};
use crate::support::program::TAPEDECK;

/// What was released, or waits: on whose behalf, and when.
fn told(list: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let one = |one: &Value| format!("{} {} {}", text(&one["server"]), one["request_id"], one["due_ms"]);
    list.as_array().expect("a list").iter().map(one).collect()
}

#[test]
fn what_waits_stands_still_until_the_clock_is_wound() {
    let stand =
        Stand::new(&["c.json", "--clock", "manual", "--fault", "tools/call search: latency ms=30000"]);
    let session = stand.begin("/mcp");
    let asked = stand.call("/mcp", &session, 1, "search");
    let advanced = stand.tend.advance(29_999, 1);
    assert_eq!((&advanced["now_ms"], &advanced["released"]), (&json!(29_999), &json!([])));
    let waiting = json!([{
        "take": "", "waits_for": "fault", "method": "tools/call", "name": "search", "key": "tools/call search @1",
        "request_id": 1, "fault": "latency", "due_ms": 30_000,
    }]);
    assert_eq!(advanced["waiting"], waiting);
    assert_eq!(stand.tend.get("/waiting"), json!({"clock": "manual", "now_ms": 29_999, "waiting": waiting}));
    let advanced = stand.tend.advance(1, 1);
    assert_eq!((&advanced["released"], &advanced["waiting"]), (&waiting, &json!([])));
    assert_eq!(said(asked), "found");
    let events = stand.tend.get("/events?method=tools/call")["events"].clone();
    assert_eq!(
        (each(&events, "at_ms"), each(&events, "duration_ms")),
        (vec![&json!(0)], vec![&json!(30_000)])
    );
}

#[test]
fn a_clock_that_waits_in_vain_for_something_to_wait_stays_where_it_is() {
    let stand = Stand::new(&["c.json", "--clock", "manual"]);
    let body = json!({"ms": 5, "when_pending": 1, "timeout_ms": 1});
    let (status, answer) = stand.tend.ask("POST", "/clock/advance", &body.to_string());
    let expected = "0 things waited after 1 ms, and not 1; the clock stands where it stood";
    assert_eq!((status, &answer["error"]), (409, &json!(expected)));
    assert_eq!(stand.tend.get("/waiting")["now_ms"], 0);
    let (status, answer) = stand.tend.ask("POST", "/clock/advance", r#"{"ms": 86400001}"#);
    assert_eq!((status, &answer["error"]), (400, &json!("`ms` is 86400000 at most, a day; found 86400001")));
    // Without that it does not mind that nothing waits.
    assert_eq!(stand.tend.post("/clock/advance", &json!({"ms": 5}))["now_ms"], 5);
}

#[test]
fn recorded_waits_end_when_the_clock_is_wound_too() {
    let stand = Stand::new(&["c.json", "--clock", "manual", "--timing", "recorded"]);
    let session = stand.begin("/mcp");
    let asked = stand.call("/mcp", &session, 1, "report");
    let advanced = stand.tend.advance(250, 1);
    assert_eq!(
        advanced["released"],
        json!([{
            "take": "", "waits_for": "timing", "method": "tools/call", "key": "tools/call report @1", "request_id": 1,
            "due_ms": 250,
        }])
    );
    assert_eq!(said(asked), "done");
}

#[test]
fn what_is_due_is_done_in_its_order_whatever_was_asked_first() {
    let stand = Stand::new(&[
        "--server",
        "primary=c.json",
        "--server",
        "backup=c.json",
        "--clock",
        "manual",
        "--timing",
        "recorded",
        "--fault",
        r#"tools/call search: {"do": "latency", "ms": 100, "nth": 1}"#,
        "--fault",
        r#"tools/call search: {"do": "latency", "ms": 400, "nth": 2}"#,
    ]);
    // Without a fault's waits there is nothing to be told apart by.
    let (primary, backup) = (stand.begin("/primary/mcp"), stand.begin("/backup/mcp"));
    let other = stand.begin("/take/t/primary/mcp");
    let mut asked = Vec::new();
    for (path, session, id, tool) in [
        ("/backup/mcp", &backup, 1, "search"),
        ("/backup/mcp", &backup, 2, "report"),
        ("/primary/mcp", &primary, 3, "search"),
        ("/take/t/primary/mcp", &other, 4, "search"),
        ("/primary/mcp", &primary, 5, "search"),
    ] {
        asked.push(stand.call(path, session, id, tool));
        stand.tend.advance(0, asked.len());
    }
    let advanced = stand.tend.advance(399, 5);
    assert_eq!(
        told(&advanced["released"]),
        ["primary 3 100", "primary 4 100", "backup 1 100", "backup 2 250"]
    );
    assert_eq!(
        (told(&advanced["waiting"]), &advanced["released_count"]),
        (vec!["primary 5 400".to_owned()], &json!(4))
    );
    assert_eq!(told(&stand.tend.advance(1, 0)["released"]), ["primary 5 400"]);
    let said: Vec<String> = asked.into_iter().map(said).collect();
    assert_eq!(said, ["found", "done", "found", "found", "found again"]);
    // Events say when each came, on the run's clock.
    let events = stand.tend.get("/events?request_id=2")["events"].clone();
    assert_eq!(each(&events, "duration_ms"), [&json!(250)]);
}

/// An answer that waits for another one goes behind it, however long it might have waited.
#[test]
fn what_goes_because_of_what_was_due_is_told_too() {
    let stand = Stand::new(&[
        "c.json",
        "--clock",
        "manual",
        "--timing",
        "recorded",
        "--fault",
        "tools/call search: reorder ms=60000",
    ]);
    let session = stand.begin("/mcp");
    let search = stand.call("/mcp", &session, 1, "search");
    stand.tend.advance(0, 1);
    let report = stand.call("/mcp", &session, 2, "report");
    let advanced = stand.tend.advance(1_000, 2);
    assert_eq!(told(&advanced["released"]), ["null 2 250", "null 1 250"]);
    assert_eq!((said(report), said(search)), ("done".to_owned(), "found".to_owned()));
}

#[test]
fn a_client_that_leaves_is_waited_for_no_longer() {
    let stand = Stand::new(&["c.json", "--clock", "manual", "--fault", "tools/call search: latency ms=1000"]);
    let session = stand.begin("/mcp");
    let asked = stand.call("/mcp", &session, 1, "search");
    assert_eq!(stand.tend.advance(0, 1)["released_count"], 0);
    drop(asked);
    // Nobody tells a test when a server has noticed.
    let begun = Instant::now();
    while stand.tend.get("/waiting")["waiting"] != json!([]) {
        assert!(begun.elapsed() < Duration::from_secs(20), "it still waits");
    }
}

#[test]
fn a_client_that_has_joined_lives_by_the_runs_clock() {
    let stand =
        Stand::new(&["c.json", "--clock", "manual", "--fault", "tools/call search: latency ms=30000"]);
    let mut joined = Command::new(TAPEDECK)
        .args(["join", &stand.run.joins()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    let mut input = joined.stdin.take().expect("a pipe");
    let mut lines = BufReader::new(joined.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    let mut next = || -> Value { serde_json::from_str(&lines.next().expect("a line")).expect("JSON") };
    writeln!(input, "{}", initialize()).expect("it is read");
    assert_eq!(next()["id"], 0);
    writeln!(input, "{}", call(7, "search")).expect("it is read");
    let released = stand.tend.advance(30_000, 1)["released"].clone();
    assert_eq!(each(&released, "request_id"), [&json!(7)]);
    assert_eq!(next()["id"], 7);
    let takes = stand.tend.get("/takes")["takes"].clone();
    assert_eq!(takes[0]["sessions"][0]["transport"], "stdio");
    drop(input);
    assert!(joined.wait().expect("it ends").success());
}
