//! What counts as having acted in a replay, of each fault that changes what is answered.

use mcp_tapedeck::{
    fault::catalogue::{Acts, TABLE, Where, find},
    replay::{Options, Order},
};

use super::{
    parameters,
    stage::{CASSETTE, INITIALIZE, REPORT, Stage, plan},
};

/// The cassette with this in the place of what the first search is answered with.
fn answered(rest: &str) -> String {
    let item = r#""server": [{"result": {"content": [{"type": "text", "text": "first"}]}}]"#;
    assert!(CASSETTE.contains(item));
    CASSETTE.replace(item, rest)
}

const SEARCH: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"search","arguments":{"q":"a"},"_meta":{"progressToken":"t"}}}"#;

fn rule(name: &str) -> String {
    with(name, parameters::acting(name))
}

fn with(name: &str, parameters: &str) -> String {
    format!(r#"[{{"when": {{"tool": "search"}}, "do": "{name}"{parameters}}}]"#)
}

/// What the client sees, how often the rule has fired, and which faults the events tell.
fn played(rules: &str, cassette: &str, is_http: bool) -> (String, u64, usize) {
    // A server that ends does not wait for what is not asked here.
    let options = Options { order: Order::Free, ..Options::default() };
    let mut stage = Stage::played(plan(rules), cassette, options);
    let seen = if is_http {
        stage.initialize();
        stage.post(SEARCH)
    } else {
        stage.send(INITIALIZE);
        stage.send(SEARCH)
    };
    let report = stage.finish();
    let told = stage.replayer.take_events(true).into_iter().filter(|event| event.fault.is_some()).count();
    assert_eq!(stage.finish(), report);
    (seen, report.faults.first().map_or(0, |fault| fault.fired), told)
}

fn acts(rest: &str, is_http: bool) -> Vec<&'static str> {
    acts_in(&answered(rest), is_http)
}

fn acts_in(cassette: &str, is_http: bool) -> Vec<&'static str> {
    let never = if is_http { Where::Stdio } else { Where::Http };
    let (plain, ..) = played("[]", cassette, is_http);
    let mut acts = Vec::new();
    for kind in TABLE {
        if [never, Where::Modern].contains(&kind.exists) || kind.name == "wrong_version" {
            continue;
        }
        let (seen, fired, told) = played(&rule(kind.name), cassette, is_http);
        // What is spoken in the place of nothing is seen by nobody, a head is not shown here, and where a response is cut
        // off already a server that ends shows in its sessions.
        let acts_unseen = ["timeout", "ignore_shutdown", "missing_header", "wrong_content_type", "exit"];
        if !acts_unseen.contains(&kind.name) {
            assert_eq!(fired == 1, seen != plain, "{} on {cassette}: {seen}", kind.name);
        }
        assert_eq!(told as u64, fired, "{} on {cassette}", kind.name);
        if fired > 0 && kind.acts == Acts::Answer {
            acts.push(kind.name);
        }
    }
    acts
}

#[test]
fn a_fault_finds_nothing_to_change_where_nothing_was_answered() {
    let nothing = r#""server": [], "unanswered": "open""#;
    assert_eq!(acts(nothing, false), [""; 0]);
    assert_eq!(acts(nothing, true), [""; 0]);
    let stream = r#""http": {"stream": true}, "server": [], "unanswered": "ended""#;
    let breaking = ["reset_peer", "close_early", "half_close", "exit"];
    let heads = ["wrong_content_type", "missing_header"];
    assert_eq!(acts(stream, true), [&breaking[..], &heads, &["lost_answer"]].concat());
    let cut = r#""http": {"stream": true, "end": "cut"}, "server": [], "unanswered": "ended""#;
    assert_eq!(acts(cut, true), ["reset_peer", "exit", "wrong_content_type", "missing_header"]);
}

#[test]
fn a_body_that_is_no_message_has_no_answer_to_change() {
    let page =
        r#""http": {"status": 500, "headers": {"content-type": "text/plain"}}, "server": [{"body": "oops"}]"#;
    let breaking = ["reset_peer", "close_early", "cut_after", "half_close", "exit"];
    let heads = ["wrong_content_type", "missing_header"];
    assert_eq!(acts(page, true), [&breaking[..], &heads, &["lost_answer"]].concat());
}

#[test]
fn each_fault_acts_on_an_answer() {
    let answer = r#""server": [{"result": {"content": [], "structuredContent": {"n": 1}}}]"#;
    for (is_http, never) in [(false, Where::Http), (true, Where::Stdio)] {
        let able = TABLE.iter().filter(|kind| kind.acts == Acts::Answer && kind.exists != never);
        let able: Vec<&str> = able.map(|kind| kind.name).filter(|name| *name != "wrong_version").collect();
        assert_eq!(acts(answer, is_http), able);
    }
}

/// The cassette with a server that died in the first search, whose last line this is.
fn ending_with(last: &str) -> String {
    let last = last.replace('"', "\\\"");
    let session = format!(r#""transport": "stdio", "end": {{"exit": 3, "partial": "{last}"}}"#);
    let asked = r#""client": {"request": {"#;
    let key = r#"{"key": "tools/call search @1", "#;
    assert!(CASSETTE.contains(&format!("{key}{asked}")));
    answered(r#""server": []"#)
        .replace(r#""transport": "http", "path": "/mcp""#, &session)
        .replace(&format!("{key}{asked}"), &format!(r#"{key}{asked}"id": 70, "#))
}

#[test]
fn each_fault_acts_on_an_answer_without_an_end() {
    let answer = r#"{"jsonrpc":"2.0","id":70,"result":{"content":[],"structuredContent":{"n":1}}}"#;
    for (is_http, never) in [(false, Where::Http), (true, Where::Stdio)] {
        let able = TABLE.iter().filter(|kind| kind.acts == Acts::Answer && kind.exists != never);
        let able: Vec<&str> = able.map(|kind| kind.name).filter(|name| *name != "wrong_version").collect();
        // The response is cut off as it is.
        let able: Vec<&str> = able.into_iter().filter(|name| !is_http || *name != "half_close").collect();
        assert_eq!(acts_in(&ending_with(answer), is_http), able);
    }
}

#[test]
fn one_that_changes_nothing_has_not_acted() {
    let answer = answered(r#""server": [{"result": {"content": [], "structuredContent": {"n": 1}}}]"#);
    let stream = answered(r#""http": {"stream": true}, "server": [{"result": {"content": []}}]"#);
    let last = ending_with(r#"{"jsonrpc":"2.0","id":70,"result":{"content":[]}}"#);
    let half = ending_with(r#"{"jsonrpc":"2.0","id":70,"resu"#);
    for (name, parameters) in parameters::IDLE {
        let exists = find(name).expect("it is there").exists;
        for (cassette, is_http) in [&answer, &stream, &last, &half]
            .into_iter()
            .flat_map(|cassette| [(cassette, false), (cassette, true)])
        {
            if exists == if is_http { Where::Stdio } else { Where::Http } {
                continue;
            }
            let plain = played("[]", cassette, is_http).0;
            let seen = played(&with(name, parameters), cassette, is_http);
            assert_eq!(seen, (as_said(&plain, &seen.0), 0, 0), "{name}{parameters} on {cassette}");
        }
    }
}

/// A last line goes with the end, or where a fault has looked at it, before that.
fn as_said(plain: &str, seen: &str) -> String {
    let is_apart = seen.starts_with("raw ");
    match plain.strip_prefix("server ends Some(3) ") {
        Some(last) if is_apart => format!("raw {last}server ends Some(3)\n"),
        _ => plain.to_owned(),
    }
}

#[test]
fn what_a_fault_holds_back_comes_before_the_end_of_its_server() {
    let cassette = ending_with(r#"{"jsonrpc":"2.0","id":70,"result":{"content":[]}}"#);
    let rules = r#"[{"when": {"tool": "report"}, "do": "latency", "ms": 50}]"#;
    let begun = || {
        let options = Options { order: Order::Free, ..Options::default() };
        Stage::played(plan(rules), &cassette, options)
    };
    let answer = r#"{"jsonrpc":"2.0","id":8,"result":{"content":[]}}"#;
    let last = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[]}}"#;
    let mut stage = begun();
    stage.send(INITIALIZE);
    // Progress keeps a little distance to its result.
    let held = stage.send(REPORT) + &stage.wait(10) + &stage.send(SEARCH);
    assert_eq!(held, "");
    let seen = stage.wait(50);
    assert!(seen.ends_with(&format!("{answer}\nserver ends Some(3) {last:?}\n")), "{seen}");
    let mut stage = begun();
    let events = stage.ask("GET", "/sse", "");
    let endpoint = events.lines().last().and_then(|line| line.strip_prefix("event ")).expect("an endpoint");
    for message in [INITIALIZE, REPORT] {
        stage.ask("POST", endpoint, message);
    }
    assert!(!stage.wait(10).contains("result"));
    assert!(!stage.ask("POST", endpoint, SEARCH).contains("end Some"));
    let seen = stage.wait(50);
    let end = format!("(1) event {answer}\n(1) end Some(Cut) {:?}\n", format!("data: {last}"));
    assert!(seen.ends_with(&end), "{seen}");
}

#[test]
fn an_answer_without_an_end_that_comes_twice_is_whole_both_times() {
    let cassette = ending_with(r#"{"jsonrpc":"2.0","id":70,"result":{"content":[]}}"#);
    let rules = r#"[{"when": {"tool": "search"}, "do": "duplicate"}]"#;
    let answer = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[]}}"#;
    let (seen, ..) = played(rules, &cassette, false);
    assert!(seen.contains(&format!("{answer}\n{answer}\nserver ends Some(3)\n")), "{seen}");
    let (seen, ..) = played(rules, &cassette, true);
    assert!(seen.contains(&format!("event {answer}\nevent {answer}\nend Some(Cut)\n")), "{seen}");
}
