//! Clients that speak in lines, several of one take, and others over HTTP beside them.

use super::stage::*;
use mcp_tapedeck::report::Verdict;

const SECOND: &str = r#"{"session": 2, "recording": 1, "transport": "stdio", "protocol": "2025-06-18"}"#;

/// Two sessions with equal calls and other answers.
fn two(rest: &str) -> Stage {
    let of = |n: u32, answer: &str| {
        tool(&format!("t{n}"), "t", &format!(r#""session": {n}, "server": [{{"result": {answer}}}]"#))
    };
    let exchanges =
        [begun(1, ""), of(1, "\"one\""), rest.to_owned(), ",".to_owned(), begun(2, ""), of(2, "\"two\"")];
    Stage::new(&format!("{STDIO}, {SECOND}"), &exchanges.concat())
}

#[test]
fn clients_with_equal_ids_do_not_get_each_others_answers() {
    let mut stage = two("");
    for pipe in [7, 8] {
        assert!(stage.line(pipe, &initialize())[0].starts_with(&format!("{pipe} line ")));
    }
    assert_eq!(stage.line(8, &call(1, "t")), [format!("8 line {}", result(1, "\"two\""))]);
    assert_eq!(stage.line(7, &call(1, "t")), [format!("7 line {}", result(1, "\"one\""))]);
    assert_eq!((stage.report().connections, stage.report().sessions), (2, 2));
    stage.good();
}

#[test]
fn a_client_that_leaves_is_no_other_clients_end() {
    let mut stage = two("");
    stage.line(7, &initialize());
    stage.line(8, &initialize());
    assert!(stage.close(7).is_empty());
    assert!(stage.is_done(7) && !stage.is_done(8));
    assert_eq!(stage.line(8, &call(1, "t")), [format!("8 line {}", result(1, "\"two\""))]);
    assert!(!stage.is_done(8));
    // It is started again: a new session, which plays the last one from its start.
    stage.leave(7);
    stage.line(9, &initialize());
    assert_eq!(stage.line(9, &call(1, "t")), [format!("9 line {}", result(1, "\"two\""))]);
    assert_eq!(stage.report().sessions, 3);
    stage.good();
}

#[test]
fn what_a_client_had_left_open_is_sent_to_nobody() {
    let slow = tool("s", "s", r#""server": [{"after_ms": 50, "result": "slow"}]"#);
    let mut stage =
        Stage::with(&format!("{STDIO}, {SECOND}"), &(begun(1, "") + &slow + "," + &begun(2, "")), recorded());
    for pipe in [7, 8] {
        stage.line(pipe, &initialize());
    }
    assert!(stage.line(7, &call(1, "s")).is_empty());
    // What is owed to a client that has only closed its side is still sent.
    assert!(stage.close(7).is_empty() && !stage.is_done(7));
    assert_eq!(stage.wait(50), [format!("7 line {}", result(1, "\"slow\""))]);
    assert!(stage.is_done(7));
    assert!(stage.line(7, &call(2, "s")).is_empty());
    assert!(stage.leave(7).is_empty());
    assert!(stage.wait(50).is_empty());
}

#[test]
fn a_server_that_ends_ends_for_its_own_client() {
    let first = STDIO.replace('}', r#", "end": {"exit": 3}}"#);
    let dies = tool("d", "d", r#""server": []"#);
    let exchanges = [begun(1, ""), dies, ",".to_owned(), begun(2, "")];
    let exchanges = exchanges.concat() + &tool("t2", "t", r#""session": 2, "server": [{"result": "two"}]"#);
    let mut stage = Stage::new(&format!("{first}, {SECOND}"), &exchanges);
    stage.line(7, &initialize());
    stage.line(8, &initialize());
    assert_eq!(stage.line(7, &call(1, "d")), ["7 END exit=Some(3)"]);
    assert!(stage.is_done(7));
    assert!(stage.line(7, &call(2, "d")).is_empty(), "nobody is there any more");
    assert_eq!(stage.line(8, &call(1, "t")), [format!("8 line {}", result(1, "\"two\""))]);
}

#[test]
fn clients_of_what_has_no_session_do_not_get_each_others_answers() {
    let modern = MODERN.replace("\"http\"", "\"stdio\"").replace(r#""path": "/mcp", "#, "");
    let asks =
        tool("a", "a", r#""server": [{"after_ms": 20, "notification": {"method": "x"}}, {"result": 1}]"#);
    let dies = tool("d", "d", r#""session": 1, "server": []"#);
    let session = modern.replace('}', r#", "end": {"signal": 9}}"#);
    let mut stage = Stage::with(&session, &(asks + &dies)[1..], recorded());
    let modern = |name: &str| {
        let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
        ask(1, "tools/call", &format!(r#"{{"name":"{name}",{meta}}}"#))
    };
    for pipe in [7, 8] {
        assert!(stage.line(pipe, &modern("a")).is_empty());
    }
    assert_eq!(stage.line(8, &modern("d")), Vec::<String>::new(), "it waits for what came before");
    let heard = stage.wait(20);
    let to = |pipe: &str| heard.iter().filter(|line| line.starts_with(pipe)).cloned().collect::<Vec<_>>();
    let answers =
        |pipe: u32| [format!("{pipe} line {}", note("x")), format!("{pipe} line {}", result(1, "1"))];
    assert_eq!(to("7"), answers(7));
    assert_eq!(to("8")[..2], answers(8));
    assert_eq!(to("8")[2..], ["8 END exit=None"]);
    assert!(stage.line(7, &modern("a")).is_empty(), "it is served on");
    assert_eq!(stage.wait(20), answers(7));
}

#[test]
fn requests_of_a_server_are_answered_by_the_client_they_went_to() {
    let elicits = r#""server": [{"request": {"id": 5, "method": "elicitation/create", "params": {}}, "answer": {"result": {"action": "accept"}}}, {"result": "done"}]"#;
    let of = |n: u32| tool(&format!("e{n}"), "e", &format!(r#""session": {n}, {elicits}"#));
    let exchanges = [begun(1, ""), of(1), ",".to_owned(), begun(2, ""), of(2)].concat();
    let mut stage = Stage::new(&format!("{STDIO}, {SECOND}"), &exchanges);
    for pipe in [7, 8] {
        stage.line(pipe, &initialize());
        assert_eq!(stage.line(pipe, &call(3, "e")).len(), 1);
    }
    let answer = result(5, r#"{"action":"accept"}"#);
    assert_eq!(stage.line(8, &answer), [format!("8 line {}", result(3, "\"done\""))]);
    // The other one leaves without an answer: that is told, and is of the other one alone.
    assert_eq!(stage.close(7), [format!("7 line {}", result(3, "\"done\""))]);
    let report = stage.report();
    assert_eq!((report.verdict, report.waits.len(), report.answers.len()), (Verdict::Bad, 1, 1));
}

#[test]
fn one_take_is_reached_in_lines_and_over_http() {
    let push = r#", {"key": "push x @1", "after": "t1", "server": [{"notification": {"method": "x"}}]}"#;
    let mut stage = two(push);
    let pipe = 70;
    stage.line(pipe, &initialize());
    let id = stage.begin();
    // Without an id it is the last session over HTTP, and none of a client that speaks in lines.
    assert_eq!(stage.post(&[], &call(1, "t"))[1], format!("2 body {}", result(1, "\"two\"")));
    let lines = [note("x"), result(1, "\"one\"")].map(|line| format!("{pipe} line {line}"));
    assert_eq!(stage.line(pipe, &call(1, "t")), lines);
    assert_eq!(stage.close(pipe), Vec::<String>::new());
    assert_eq!(stage.post(&[&id], &call(2, "t"))[1], format!("3 body {}", result(2, "\"two\"")));
}
