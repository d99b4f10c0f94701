//! How a recorded server's end is told: behind all that had been asked before it, with its last line.

use mcp_tapedeck::{
    replay::{Options, Order},
    report::Verdict,
};

use super::stage::*;

const NOTHING: [&str; 0] = [];

/// A session whose server ended like this.
fn ended(end: &str) -> String {
    STDIO.replace('}', &format!(r#", "end": {end}}}"#))
}

/// What answers a request that had this id when it was recorded, in a JSON string.
fn last(id: u32) -> String {
    format!(r#"{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"last\":true}}}}"#)
}

fn said(id: u32) -> String {
    result(id, r#"{"last":true}"#)
}

/// A call that was asked under this id, and stayed without an answer.
fn unanswered(name: &str, id: u32, rest: &str) -> String {
    let asked = r#""client": {"request": {"#;
    tool(name, name, &format!(r#""server": []{rest}"#)).replace(asked, &format!(r#"{asked}"id": {id}, "#))
}

/// `slow` is answered by the last line; `fast` and `die` had come before that.
fn overlapped() -> String {
    [
        begun(1, ""),
        unanswered("slow", 1, ""),
        tool("fast", "fast", r#""server": [{"result": 2}]"#),
        unanswered("die", 3, ""),
    ]
    .concat()
}

fn dying() -> String {
    ended(&format!(r#"{{"exit": 3, "partial": "{}"}}"#, last(1)))
}

#[test]
fn a_server_ends_only_when_all_has_come_that_came_before_its_end() {
    let mut stage = Stage::new(&dying(), &overlapped());
    stage.line(7, &initialize());
    assert_eq!(stage.line(7, &call(11, "slow")), NOTHING);
    assert_eq!(stage.wait(9_999), NOTHING);
    assert_eq!(stage.line(7, &call(12, "fast")), [format!("7 line {}", result(12, "2"))]);
    assert_eq!(stage.wait(9_999), NOTHING, "the wait begins anew");
    let end = format!("7 END exit=Some(3) {}", said(11));
    assert_eq!(stage.line(7, &call(13, "die")), [end]);
    assert!(stage.is_done(7));
    stage.good();
    assert!(stage.report().waits.is_empty());
}

#[test]
fn over_http_the_end_waits_as_well() {
    let mut stage = Stage::new(&dying(), &overlapped());
    let id = stage.begin();
    assert_eq!(stage.post(&[&id], &call(11, "slow")), ["2 200 stream"]);
    assert_eq!(stage.wait(9_999), NOTHING);
    let fast = stage.post(&[&id], &call(12, "fast"));
    assert_eq!(fast, ["3 200".to_owned(), format!("3 body {}", result(12, "2")), "3 end".to_owned()]);
    let end = format!("2 end cut data: {}", said(11));
    assert_eq!(stage.post(&[&id], &call(13, "die")), ["4 200 stream", &end, "4 end cut"]);
    stage.good();
    let mut stage = Stage::new(&dying(), &overlapped());
    let events = stage.get("/sse", &[]);
    let endpoint = events[1].strip_prefix("1 event ").expect("an endpoint").to_owned();
    let mut heard = Vec::new();
    for message in [initialize(), call(11, "slow"), call(12, "fast"), call(13, "die")] {
        heard = stage.ask("POST", &endpoint, &["content-type: application/json"], &message);
        heard.retain(|output| output.starts_with("1 "));
    }
    assert_eq!(heard, [format!("1 end cut data: {}", said(11))], "{events:?}");
    stage.good();
}

#[test]
fn an_end_that_came_too_early_makes_the_run_bad() {
    let waited = |stage: &Stage| {
        let report = stage.report();
        assert_eq!(report.verdict, Verdict::Bad);
        report.waits.into_iter().map(|wait| (wait.key, wait.waited_for)).collect::<Vec<_>>()
    };
    let fast = |why: &str| ("slow".to_owned(), format!("`fast` to come before the server ends: {why}"));
    let mut stage = Stage::new(&dying(), &overlapped());
    stage.line(7, &initialize());
    stage.line(7, &call(11, "slow"));
    assert_eq!(stage.close(7), [format!("7 END exit=Some(3) {}", said(11))]);
    assert_eq!(waited(&stage), [fast("the client closed its side")]);
    let mut stage = Stage::new(&dying(), &overlapped());
    let id = stage.begin();
    stage.post(&[&id], &call(11, "slow"));
    assert_eq!(stage.wait(10_000), [format!("2 end cut data: {}", said(11))]);
    assert_eq!(waited(&stage), [fast("it did not come in time")]);
}

#[test]
fn where_order_does_not_count_a_server_ends_at_once() {
    let options = Options { order: Order::Free, ..Options::default() };
    let mut stage = Stage::with(&dying(), &overlapped(), options);
    stage.line(7, &initialize());
    assert_eq!(stage.line(7, &call(11, "slow")), [format!("7 END exit=Some(3) {}", said(11))]);
}

#[test]
fn what_clients_ask_by_themselves_is_not_waited_for_long() {
    let ping = r#", {"key": "p", "client": {"request": {"method": "ping"}}, "server": [{"result": {}}]}"#;
    let exchanges = [begun(1, ""), unanswered("slow", 1, ""), ping.to_owned()].concat();
    let mut stage = Stage::new(&dying(), &exchanges);
    stage.line(7, &initialize());
    assert_eq!(stage.line(7, &call(11, "slow")), NOTHING);
    assert_eq!(stage.wait(100), [format!("7 END exit=Some(3) {}", said(11))]);
    stage.good();
}

#[test]
fn a_push_that_waits_for_its_time_comes_before_the_end() {
    let push = r#", {"key": "push", "after": "slow", "server": [{"after_ms": 50, "notification": {"method": "x"}}]}"#;
    let exchanges = [begun(1, ""), unanswered("slow", 1, ""), push.to_owned()].concat();
    let mut stage = Stage::with(&dying(), &exchanges, recorded());
    stage.line(7, &initialize());
    assert_eq!(stage.line(7, &call(11, "slow")), NOTHING);
    assert_eq!(stage.wait(50), [format!("7 line {}", note("x")), format!("7 END exit=Some(3) {}", said(11))]);
}

#[test]
fn half_a_last_line_has_the_live_id() {
    for (partial, seen) in [
        (r#"{\"jsonrpc\":\"2.0\",\"id\":1,\"resu"#, r#"{"jsonrpc":"2.0","id":11,"resu"#),
        (r#"{\"id\": 1, \"error\": {\"code\""#, r#"{"id": 11, "error": {"code""#),
        // A server's own request, an id that may go on, and what is whole but no message.
        (r#"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi"#, r#"{"jsonrpc":"2.0","id":1,"method":"pi"#),
        (r#"{\"jsonrpc\":\"2.0\",\"id\":1"#, r#"{"jsonrpc":"2.0","id":1"#),
        (r#"{\"id\":1}"#, r#"{"id":1}"#),
        ("Killed", "Killed"),
    ] {
        let session = ended(&format!(r#"{{"exit": 3, "partial": "{partial}"}}"#));
        let exchanges = [begun(1, ""), unanswered("slow", 1, "")].concat();
        let mut stage = Stage::new(&session, &exchanges);
        stage.line(7, &initialize());
        assert_eq!(stage.line(7, &call(11, "slow")), [format!("7 END exit=Some(3) {seen}")]);
        let id = stage.begin();
        let heard = stage.post(&[&id], &call(11, "slow"));
        assert_eq!(heard[1], format!("2 end cut data: {seen}"));
    }
}

#[test]
fn a_last_line_for_a_request_that_nobody_sent_is_not_said() {
    let session = ended(&format!(r#"{{"exit": 3, "partial": "{}"}}"#, last(1)));
    let exchanges = [begun(1, ""), unanswered("slow", 1, ""), unanswered("die", 3, "")].concat();
    let mut stage = Stage::new(&session, &exchanges);
    stage.line(7, &initialize());
    // It has the other one's recorded id.
    assert_eq!(stage.line(7, &call(1, "die")), NOTHING);
    assert_eq!(stage.wait(10_000), ["7 END exit=Some(3)"]);
    assert_eq!(stage.report().verdict, Verdict::Bad);
}

#[test]
fn progress_on_a_last_line_has_the_live_token() {
    let progress = |token: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":1}}}}"#
        )
    };
    let session = ended(&format!(r#"{{"exit": 3, "partial": "{}"}}"#, progress("5").replace('"', "\\\"")));
    let asked = r#"{"name": "slow", "_meta": {"progressToken": 5}}"#;
    let exchanges = [begun(1, ""), unanswered("slow", 1, "").replace(r#"{"name": "slow"}"#, asked)].concat();
    let mut stage = Stage::new(&session, &exchanges);
    stage.line(7, &initialize());
    let message = ask(11, "tools/call", r#"{"name":"slow","_meta":{"progressToken":"t"}}"#);
    assert_eq!(stage.line(7, &message), [format!("7 END exit=Some(3) {}", progress("\"t\""))]);
}

#[test]
fn a_session_without_a_handshake_ends_as_it_ended() {
    let first = tool("a", "a", r#""server": [{"result": 1}]"#)[2..].to_owned();
    let open = unanswered("slow", 1, r#", "unanswered": "open""#);
    // Once all has been asked.
    let mut stage = Stage::new(&ended(r#"{"exit": 3, "partial": "bye"}"#), &(first.clone() + &open));
    assert_eq!(stage.line(7, &call(11, "slow")), NOTHING);
    assert_eq!(
        stage.line(7, &call(12, "a")),
        [format!("7 line {}", result(12, "1")), "7 END exit=Some(3) bye".to_owned()]
    );
    // In its middle.
    let mut stage = Stage::new(&dying(), &(first.clone() + &unanswered("slow", 1, "")));
    assert_eq!(stage.line(7, &call(11, "slow")), [format!("7 END exit=Some(3) {}", said(11))]);
    let mut stage = Stage::new(&dying(), &unanswered("slow", 1, "")[2..]);
    assert_eq!(stage.post(&[], &call(11, "slow"))[1], format!("1 end cut data: {}", said(11)));
    // Once its input was closed.
    for (partial, seen) in [(last(1), said(11)), ("bye".to_owned(), "bye".to_owned())] {
        let session = ended(&format!(r#"{{"partial": "{partial}"}}"#));
        let mut stage = Stage::new(&session, &(first.clone() + &open));
        assert_eq!(stage.line(7, &call(11, "slow")), NOTHING);
        assert_eq!(stage.close(7), [format!("7 END exit=None {seen}")]);
        assert!(stage.is_done(7));
        stage.good();
    }
}
