//! Which rules act, in which order, and on what.

use mcp_tapedeck::{
    fault::Plan,
    replay::Options,
    report::{Verdict, events::Outcome},
};

use super::stage::{CASSETTE, INITIALIZE, REPORT, SEARCH, Stage, plan};

fn answer(text: &str) -> String {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}}}\n"
    )
}

const BUSY: &str = "{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":-32000,\"message\":\"busy\"}}\n";

#[test]
fn an_error_in_the_servers_place_uses_up_no_recorded_answer() {
    let mut stage = Stage::new(
        r#"[{"when": {"tool": "search"}, "nth": 1, "do": "error", "code": -32000, "message": "busy"}]"#,
    );
    stage.send(INITIALIZE);
    assert_eq!(stage.send(SEARCH), BUSY);
    assert_eq!(stage.send(SEARCH), answer("first"));
    assert_eq!(stage.send(SEARCH), answer("second"));
    let report = stage.finish();
    assert_eq!((report.verdict, report.faults[0].fired), (Verdict::Good, 1));
    assert_eq!(report.faults[0].keys, ["tools/call search @1"]);
}

#[test]
fn what_loses_the_answer_uses_it_up_unless_told_otherwise() {
    let mut stage = Stage::new(r#"[{"when": {"tool": "search"}, "nth": 1, "do": "drop"}]"#);
    stage.send(INITIALIZE);
    assert_eq!(stage.send(SEARCH), "");
    assert_eq!(stage.send(SEARCH), answer("second"));
    let mut stage = Stage::new(
        r#"[{"when": {"tool": "search"}, "nth": 1, "do": "error", "code": -32000, "message": "busy", "consumes": true}]"#,
    );
    stage.send(INITIALIZE);
    assert_eq!(stage.send(SEARCH), BUSY);
    assert_eq!(stage.send(SEARCH), answer("second"));
}

#[test]
fn a_script_wins_over_rules_and_falls_through_when_it_is_used_up() {
    let mut stage = Stage::new(
        r#"[{"when": {"tool": "search"}, "do": "error", "code": -32000, "message": "busy"},
            {"when": {"method": "tools/call", "tool": "search"}, "script": ["ok", "timeout", "ok"]}]"#,
    );
    stage.send(INITIALIZE);
    let seen: Vec<String> = (0..4).map(|_| stage.send(SEARCH)).collect();
    assert_eq!(seen, [&answer("first"), "", &answer("second"), BUSY]);
}

#[test]
fn waits_add_up_and_the_first_that_ends_the_matter_wins() {
    let mut stage = Stage::new(
        r#"[{"do": "latency", "ms": 100, "when": {"tool": "search"}},
            {"do": "error", "code": -32000, "message": "busy", "when": {"tool": "search"}},
            {"do": "latency", "ms": 50, "when": {"tool": "search"}},
            {"do": "timeout", "when": {"tool": "search"}, "optional": true}]"#,
    );
    stage.send(INITIALIZE);
    assert_eq!(stage.send(SEARCH), "");
    assert_eq!(stage.wait(149), "");
    assert_eq!(stage.wait(1), BUSY);
    let report = stage.finish();
    assert_eq!(report.faults.iter().map(|fault| fault.fired).collect::<Vec<_>>(), [1, 1, 1, 0]);
    assert_eq!(report.verdict, Verdict::Good);
}

#[test]
fn rules_for_a_tool_and_rules_for_all_act_in_the_order_of_the_plan() {
    let busy = r#"{"when": {"method": "tools/call"}, "do": "error", "code": -32000, "message": "busy", "optional": true}"#;
    let silent = r#"{"when": {"tool": "search"}, "do": "timeout", "optional": true}"#;
    let other = r#"{"when": {"tool": "report"}, "do": "timeout", "optional": true}"#;
    for (rules, seen) in [([busy, silent, other], BUSY), ([other, silent, busy], "")] {
        let mut stage = Stage::new(&format!("[{}]", rules.join(",")));
        stage.send(INITIALIZE);
        assert_eq!([stage.send(SEARCH), stage.send(SEARCH)], [seen; 2], "{rules:?}");
    }
}

#[test]
fn a_rule_that_never_acts_makes_the_run_bad_unless_it_is_optional() {
    let mut stage = Stage::new(r#"[{"when": {"tool": "search"}, "nth": 9, "do": "timeout"}]"#);
    stage.send(INITIALIZE);
    stage.send(SEARCH);
    assert_eq!(stage.finish().verdict, Verdict::Bad);
}

/// What a fault can do nothing to is neither counted nor named as its work.
#[test]
fn a_rule_passes_requests_by_that_its_fault_can_do_nothing_to() {
    let mut stage = Stage::new(
        r#"[{"do": "tool_error", "text": "no", "nth": 1, "optional": true},
            {"do": "wrong_version", "nth": 1, "optional": true},
            {"do": "progress", "how": "after_result", "nth": 1, "optional": true}]"#,
    );
    assert!(stage.send(INITIALIZE).contains("1999-01-01"));
    assert!(stage.send(SEARCH).contains("\"isError\":true"));
    stage.send(REPORT);
    let keys: Vec<Vec<String>> = stage.finish().faults.into_iter().map(|fault| fault.keys).collect();
    assert_eq!(keys, [["tools/call search @1"], ["initialize @1"], ["tools/call report @1"]]);
}

/// What was to be changed has passed as it was: nothing has happened, whatever the plan says.
#[test]
fn a_fault_that_could_change_nothing_has_not_acted() {
    let rule = |does: &str| format!(r#"[{{"when": {{"tool": "search"}}, "times": 1, {does}}}]"#);
    let mut stage = Stage::new(&rule(r#""do": "truncate", "bytes": 9999"#));
    stage.send(INITIALIZE);
    assert_eq!([stage.send(SEARCH), stage.send(SEARCH)], [answer("first"), answer("second")]);
    let events = stage.replayer.take_events(true);
    assert!(
        events.iter().all(|event| event.outcome == Outcome::Answered && event.fault.is_none()),
        "{events:?}"
    );
    let report = stage.finish();
    assert_eq!((report.verdict, report.faults[0].fired), (Verdict::Bad, 0));
    assert_eq!(report.faults[0].keys, [""; 0]);
    let mut stage = Stage::new(&rule(r#""do": "missing_header", "name": "mcp-session-id""#));
    stage.initialize();
    stage.post(SEARCH);
    assert_eq!(stage.finish().faults[0].fired, 0);
    // The next one that can be changed is the first.
    let mut stage =
        Stage::new(r#"[{"when": {"method": "tools/call"}, "do": "truncate", "bytes": 60, "times": 1}]"#);
    for line in [INITIALIZE, REPORT, SEARCH, SEARCH] {
        stage.send(line);
    }
    let fault = stage.finish().faults.remove(0);
    assert_eq!((fault.fired, fault.keys), (1, vec!["tools/call search @1".to_owned()]));
}

#[test]
fn requests_are_chosen_by_number_and_by_value() {
    let numbers = |trigger: &str| -> Vec<usize> {
        let rules = format!(r#"[{{"when": {{"tool": "search"}}, {trigger}, "do": "timeout"}}]"#);
        let mut stage = Stage::new(&rules);
        stage.send(INITIALIZE);
        (1..=9).filter(|_| stage.send(SEARCH).is_empty()).collect()
    };
    assert_eq!(numbers(r#""nth": [2, 5]"#), [2, 5]);
    assert_eq!(numbers(r#""first": 2"#), [1, 2]);
    assert_eq!(numbers(r#""every": 4"#), [4, 8]);
    assert_eq!(numbers(r#""from": 7"#), [7, 8, 9]);
    assert_eq!(numbers(r#""from": 2, "every": 3"#), [2, 5, 8]);
    assert_eq!(numbers(r#""from": 2, "times": 2"#), [2, 3]);
    let acts = |test: &str| {
        let rules = format!(r#"[{{"when": {{"tool": "search", "where": {{{test}}}}}, "do": "timeout"}}]"#);
        let mut stage = Stage::new(&rules);
        stage.send(INITIALIZE);
        stage.send(SEARCH).is_empty()
    };
    assert!(acts(r#""/params/arguments/q": "a""#) && acts(r#""/id": 7.0"#));
    assert!(acts(r#""/params/arguments/q": {"matches": "^[a-c]$"}, "/params/_meta": {"exists": false}"#));
    assert!(!acts(r#""/params/arguments/q": "b""#) && !acts(r#""/params/arguments/n": {"exists": true}"#));
}

#[test]
fn a_lost_session_goes_on_where_it_stood_under_another_id() {
    let mut stage = Stage::new(r#"[{"when": {"method": "tools/call"}, "nth": 2, "do": "session_expired"}]"#);
    stage.initialize();
    assert!(stage.post(SEARCH).contains("first"));
    assert!(stage.post(SEARCH).starts_with("404\n"));
    assert!(stage.post(SEARCH).starts_with("404\n"), "it stays lost");
    assert!(stage.initialize().contains("2025-11-25"));
    assert!(stage.post(SEARCH).contains("second"));
    let report = stage.finish();
    assert_eq!((report.verdict, report.sessions), (Verdict::Good, 2), "{report:?}");
    assert_eq!(report.repeats, []);
}

#[test]
fn a_lost_session_is_not_taken_for_that_of_an_equal_initialize() {
    let other = r#"
      {"key": "other", "session": 2, "client": {"request": {"method": "initialize", "params": {"protocolVersion": "2025-11-25", "clientInfo": {"name": "c", "version": "2"}}}},
        "http": {"headers": {"mcp-session-id": "<session-1>"}}, "server": [{"result": {"other": true}}]}]
}"#;
    let session = r#"{"session": 2, "recording": 1, "transport": "http", "path": "/mcp", "protocol": "2025-11-25", "client": "c"}"#;
    let cassette = CASSETTE.replacen(r#""client": "c"}]"#, &format!(r#""client": "c"}}, {session}]"#), 1);
    let cassette = format!("{},{other}", cassette.trim_end().strip_suffix("]\n}").unwrap().trim_end());
    let rules = r#"[{"when": {"method": "tools/call"}, "nth": 1, "do": "session_expired"}]"#;
    let mut stage = Stage::with(plan(rules), &cassette);
    stage.initialize();
    assert!(stage.post(SEARCH).starts_with("404\n"));
    stage.forget();
    let second = INITIALIZE.replace(r#""name":"c""#, r#""name":"c","version":"2""#);
    assert!(stage.post(&second).contains("other"));
    stage.initialize();
    assert!(stage.post(SEARCH).contains("first"));
}

#[test]
fn forgetting_the_id_of_a_lost_session_does_not_bring_it_back() {
    let mut stage = Stage::new(r#"[{"when": {"method": "tools/call"}, "nth": 1, "do": "session_expired"}]"#);
    stage.initialize();
    assert!(stage.post(SEARCH).starts_with("404\n"));
    stage.forget();
    assert!(stage.post(SEARCH).starts_with("404\n"));
    stage.initialize();
    assert!(stage.post(SEARCH).contains("first"));
}

#[test]
fn an_answer_in_the_servers_place_is_an_answer_where_order_is_strict() {
    let rules = r#"[{"when": {"key": "tools/call search @2"}, "nth": 1, "do": "error", "code": -32000, "message": "busy"}]"#;
    let options = Options { strict: true, ..Options::default() };
    let mut stage = Stage::played(plan(rules), CASSETTE, options);
    stage.send(INITIALIZE);
    assert_eq!(stage.send(SEARCH), answer("first"));
    assert_eq!(stage.send(SEARCH), BUSY);
    assert!(stage.send(REPORT).contains("result"), "it waits for no answer that was given");
}

#[test]
fn a_stream_is_cut_behind_its_first_event() {
    let mut stage = Stage::new(r#"[{"when": {"tool": "report"}, "nth": 1, "do": "cut_after", "events": 1}]"#);
    stage.initialize();
    let progress =
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1}}"#;
    assert_eq!(stage.post(REPORT), format!("200\nevent {progress}\nend Some(Cut)\n"));
    assert_eq!(stage.wait(1_000), "");
    assert!(stage.post(REPORT).contains("result"), "a client that asks again is answered");
}

#[test]
fn a_server_that_ends_over_http_cuts_all_off_and_forgets_its_sessions() {
    let mut stage = Stage::new(r#"[{"when": {"tool": "search"}, "nth": 1, "do": "exit"}]"#);
    stage.initialize();
    assert_eq!(stage.post(SEARCH), "end Some(Cut)\n");
    assert!(stage.post(SEARCH).starts_with("404\n"));
    stage.initialize();
    assert!(stage.post(SEARCH).contains("second"));
}

#[test]
fn a_server_ends_on_stdio_with_its_status() {
    let mut stage = Stage::new(r#"[{"when": {"tool": "search"}, "do": "exit", "status": 3}]"#);
    stage.send(INITIALIZE);
    assert_eq!(stage.send(SEARCH), "server ends Some(3)\n");
    assert!(stage.replayer.is_done(mcp_tapedeck::traffic::Lane(0)));
}

#[test]
fn a_handshake_can_fail_and_works_when_it_is_tried_again() {
    let mut stage = Stage::new(r#"[{"when": {"method": "initialize"}, "nth": 1, "do": "timeout"}]"#);
    assert_eq!(stage.initialize(), "");
    assert!(stage.initialize().starts_with("200\n"));
    assert!(stage.post(SEARCH).contains("first"));
    assert_eq!(stage.finish().faults[0].keys, ["initialize @1"]);
}

#[test]
fn a_fault_of_an_exchange_acts_whenever_that_is_played() {
    let cassette = CASSETTE.replacen(
        r#"{"key": "tools/call search @2","#,
        r#"{"key": "tools/call search @2", "fault": "timeout","#,
        1,
    );
    let mut plan = Plan::default();
    let at = cassette.find("\"timeout\"").expect("it is there");
    let span = mcp_tapedeck::wire::Span::new(at, at + 9);
    plan.add_exchange("tools/call search @2", cassette.as_bytes(), span).expect("a fault");
    let mut stage = Stage::with(plan, &cassette);
    stage.send(INITIALIZE);
    assert_eq!(stage.send(SEARCH), answer("first"));
    assert_eq!(stage.send(SEARCH), "");
}

/// The same faults on the same requests, whatever the order in which different ones come.
#[test]
fn chance_decides_by_the_request_alone() {
    let faulted = |order: &dyn Fn(usize) -> usize| {
        let mut stage = Stage::with(
            plan(r#"[{"name": "flaky", "when": {"tool": "search"}, "do": "timeout", "probability": 0.4}]"#),
            CASSETTE,
        );
        stage.send(INITIALIZE);
        let mut faulted: Vec<usize> = (0..200)
            .map(order)
            .filter(|at| stage.send(&SEARCH.replace("\"a\"", &format!("\"{at}\""))).is_empty())
            .collect();
        faulted.sort_unstable();
        faulted
    };
    let (forth, back) = (faulted(&|at| at), faulted(&|at| 199 - at));
    assert_eq!(forth, back);
    assert!((50..110).contains(&forth.len()), "{}", forth.len());
}

#[test]
fn an_element_is_named_as_json_pointers_name_it() {
    let list = r#""arguments":{"q":["a","b"]}"#;
    for (step, acts) in [("1", true), ("01", false), ("+1", false), ("001", false)] {
        let mut stage = Stage::with(
            plan(&format!(
                r#"[{{"when": {{"where": {{"/params/arguments/q/{step}": "b"}}}}, "do": "timeout"}}]"#
            )),
            &CASSETTE.replace(r#""arguments": {"q": "a"}"#, list),
        );
        stage.send(INITIALIZE);
        let seen = stage.send(&SEARCH.replace(r#""arguments":{"q":"a"}"#, list));
        assert_eq!(seen.is_empty(), acts, "{step}: {seen}");
    }
}

#[test]
fn copies_of_an_answer_are_no_count_of_requests() {
    for (rule, copies) in [
        (r#""nth": 1, "copies": 3"#, [3, 1, 1]),
        (r#""times": 1, "copies": 2"#, [2, 1, 1]),
        (r#""copies": 4"#, [4, 4, 4]),
        // As plans had it before there were `copies`.
        (r#""times": 3"#, [3, 3, 3]),
        (r#""nth": [2], "times": 3"#, [1, 3, 1]),
        (r#""first": 2, "times": 3"#, [3, 3, 1]),
    ] {
        let mut stage =
            Stage::new(&format!(r#"[{{"when": {{"tool": "search"}}, "do": "duplicate", {rule}}}]"#));
        stage.send(INITIALIZE);
        let seen = [(); 3].map(|()| stage.send(SEARCH).lines().count());
        assert_eq!(seen, copies, "{rule}");
    }
    let script = r#"[{"when": {"tool": "search"}, "script": [{"do": "duplicate", "times": 3}, "ok"]}]"#;
    let mut stage = Stage::new(script);
    stage.send(INITIALIZE);
    assert_eq!([(); 2].map(|()| stage.send(SEARCH).lines().count()), [3, 1]);
}
