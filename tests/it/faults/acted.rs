//! What counts as having acted in a replay, of each fault that changes what is answered.

use mcp_tapedeck::{
    fault::catalogue::{Acts, TABLE, Where},
    replay::Options,
};

use super::stage::{CASSETTE, Stage, plan};

/// The cassette with this in the place of what the first search is answered with.
fn answered(rest: &str) -> String {
    let item = r#""server": [{"result": {"content": [{"type": "text", "text": "first"}]}}]"#;
    assert!(CASSETTE.contains(item));
    CASSETTE.replace(item, rest)
}

const SEARCH: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"search","arguments":{"q":"a"},"_meta":{"progressToken":"t"}}}"#;

fn rule(name: &str) -> String {
    let parameters = match name {
        "latency" | "slow_start" | "ignore_shutdown" => r#", "ms": 5"#,
        "bandwidth" => r#", "bytes_per_second": 100"#,
        "dribble" => r#", "chunks": 2, "ms": 5"#,
        "cut_after" | "truncate" => r#", "bytes": 3"#,
        "oversize" => r#", "bytes": 500"#,
        "status" => r#", "status": 503"#,
        "missing_header" => r#", "name": "content-type""#,
        _ => "",
    };
    format!(r#"[{{"when": {{"tool": "search"}}, "do": "{name}"{parameters}}}]"#)
}

/// What the client sees, how often the rule has fired, and which faults the events tell.
fn played(rules: &str, cassette: &str, is_http: bool) -> (String, u64, usize) {
    let mut stage = Stage::played(plan(rules), cassette, Options::default());
    let seen = if is_http {
        stage.initialize();
        stage.post(SEARCH)
    } else {
        stage.send(super::stage::INITIALIZE);
        stage.send(SEARCH)
    };
    let report = stage.finish();
    let told = stage.replayer.take_events(true).into_iter().filter(|event| event.fault.is_some()).count();
    assert_eq!(stage.finish(), report);
    (seen, report.faults.first().map_or(0, |fault| fault.fired), told)
}

fn acts(rest: &str, is_http: bool) -> Vec<&'static str> {
    let cassette = answered(rest);
    let never = if is_http { Where::Stdio } else { Where::Http };
    let (plain, ..) = played("[]", &cassette, is_http);
    let mut acts = Vec::new();
    for kind in TABLE {
        if [never, Where::Modern].contains(&kind.exists) || kind.name == "wrong_version" {
            continue;
        }
        let (seen, fired, told) = played(&rule(kind.name), &cassette, is_http);
        // What is spoken in the place of nothing is seen by nobody, a head is not shown here, and where a response is cut
        // off already a server that ends shows in its sessions.
        let acts_unseen = ["timeout", "ignore_shutdown", "missing_header", "wrong_content_type", "exit"];
        if !acts_unseen.contains(&kind.name) {
            assert_eq!(fired == 1, seen != plain, "{} on {rest}: {seen}", kind.name);
        }
        assert_eq!(told as u64, fired, "{} on {rest}", kind.name);
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
