//! Streams that a client comes back to, and when those of a session end.

use super::stage::*;
use mcp_tapedeck::{
    replay::{Options, Repeat},
    report::Verdict,
};

const GET: &str = r#", {"key": "g", "client": {"http": "GET /mcp"}, "http": {"status": 200, "stream": true"#;
const DELETE: &str = r#", {"key": "d", "client": {"http": "DELETE /mcp"}, "http": {"status": 200}}"#;

/// A call that is answered on its own stream, a question on the session's, and a `GET` that had both once more.
fn again(end: &str) -> String {
    [
        with_id(1),
        format!(r#"{GET}}}, "unanswered": "open"}}"#),
        r#", {"key": "q", "server": [{"on": "get", "sse": {"id": "g1"}, "notification": {"method": "asks"}}]}"#
            .to_owned(),
        tool(
            "t",
            "t",
            r#""http": {"stream": true}, "server": [{"sse": {"id": "p", "event": null}, "body": ""}, {"sse": {"id": "r1"}, "result": 1}]"#,
        ),
        format!(
            r#", {{"key": "r", "client": {{"http": "GET /mcp"}}, "http": {{"request": {{"last-event-id": "p"}}, "status": 200, "stream": true, "again": ["g1", "r1"]}}{end}}}"#
        ),
        r#", {"key": "l", "server": [{"on": "get", "notification": {"method": "later"}}]}"#.to_owned(),
    ]
    .concat()
}

#[test]
fn what_came_again_comes_again_to_who_asks_for_it() {
    let mut stage = Stage::new(HTTP, &again(r#", "unanswered": "open""#));
    let id = stage.begin();
    assert_eq!(
        stage.get("/mcp", &[&id]),
        ["2 200 stream".to_owned(), format!("2 event id=g1 {}", note("asks"))]
    );
    stage.leave(2);
    let answer = result(5, "1");
    assert_eq!(
        stage.post(&[&id], &call(5, "t")),
        ["3 200 stream", "3 event id=p ", &format!("3 event id=r1 {answer}"), "3 end"]
    );
    // In the order in which it was sent. The stream stays open, and is the session's from here on.
    assert_eq!(
        stage.get("/mcp", &[&id, "last-event-id: p"]),
        [
            "4 200 stream".to_owned(),
            format!("4 event id=g1 {}", note("asks")),
            format!("4 event id=r1 {answer}"),
            format!("4 event {}", note("later")),
        ]
    );
    stage.good();
}

#[test]
fn who_asks_for_nothing_hears_it_once() {
    let mut stage = Stage::new(HTTP, &again(""));
    let id = stage.begin();
    stage.get("/mcp", &[&id]);
    let heard = stage.post(&[&id], &call(5, "t"));
    assert_eq!(heard.iter().filter(|line| line.contains("result")).count(), 1, "{heard:?}");
    // On stdio too.
    let mut stage = Stage::new(HTTP, &again(""));
    let heard = [stage.line(0, &initialize()), stage.line(0, &call(5, "t"))].concat();
    for what in ["asks", r#""result":1"#] {
        assert_eq!(heard.iter().filter(|line| line.contains(what)).count(), 1, "{heard:?}");
    }
}

#[test]
fn the_order_of_a_streams_end_and_the_answer_to_delete_is_the_recorded_one() {
    for (how, ends) in [
        (r#", "until_delete": true}}"#, ["2 end", "3 200", "3 end"]),
        (
            r#", "until_delete": true, "end": "cut", "partial": "id: 7"}}"#,
            ["2 end cut id: 7", "3 200", "3 end"],
        ),
        (r#"}, "unanswered": "open"}"#, ["3 200", "3 end", "2 end"]),
    ] {
        let mut stage = Stage::new(HTTP, &[&with_id(1), GET, how, DELETE].concat());
        let id = stage.begin();
        assert_eq!(stage.get("/mcp", &[&id]), ["2 200 stream"], "{how}");
        assert_eq!(stage.ask("DELETE", "/mcp", &[&id], ""), ends, "{how}");
        stage.good();
        // One that nobody recorded is answered behind the end of all.
        let mut stage = Stage::new(HTTP, &[&with_id(1), GET, how].concat());
        let id = stage.begin();
        stage.get("/mcp", &[&id]);
        let heard = stage.ask("DELETE", "/mcp", &[&id], "");
        assert_eq!(heard[1..], ["3 200", "3 end"], "{how}");
    }
}

#[test]
fn all_streams_of_a_session_end_with_it() {
    for how in [r#", "until_delete": true}}"#, r#"}, "unanswered": "open"}"#] {
        let mut stage = Stage::new(HTTP, &[&with_id(1), GET, how, DELETE].concat());
        let id = stage.begin();
        for lane in 2..5 {
            assert_eq!(stage.get("/mcp", &[&id]), [format!("{lane} 200 stream")], "{how}");
        }
        // One whose client has left is nobody's.
        stage.leave(3);
        let mut heard = stage.ask("DELETE", "/mcp", &[&id], "");
        heard.sort();
        assert_eq!(heard, ["2 end", "4 end", "5 200", "5 end"], "{how}");
    }
}

#[test]
fn a_stream_that_was_refused_is_refused_behind_whatever_event_of_it() {
    let exchanges = [
        with_id(1),
        tool(
            "t",
            "t",
            r#""http": {"stream": true}, "server": [{"sse": {"id": "a1"}, "notification": {"method": "n"}}, {"sse": {"id": "a2"}, "result": 1}]"#,
        ),
        r#", {"key": "r", "client": {"http": "GET /mcp"}, "http": {"request": {"last-event-id": "a1"}, "status": 409}, "server": [{"no_id": true, "error": {"code": -32000, "message": "busy"}}]}"#.to_owned(),
    ];
    for event in ["a1", "a2"] {
        let options = Options { repeat: Repeat::Error, ..Options::default() };
        let mut stage = Stage::with(HTTP, &exchanges.concat(), options);
        let id = stage.begin();
        stage.post(&[&id], &call(5, "t"));
        let heard = stage.get("/mcp", &[&id, &format!("last-event-id: {event}")]);
        assert_eq!((&*heard[0], heard[1].contains("busy")), ("3 409", true), "{event}: {heard:?}");
        stage.good();
    }
}

#[test]
fn an_answer_to_a_question_that_came_again_may_be_left_over() {
    let answer = r#", {"key": "raw", "client": {"raw": "{\"jsonrpc\":\"2.0\",\"id\":0,\"result\":{}}"}}"#;
    for (exchanges, verdict) in
        [(again(""), Verdict::Good), (again("").replace("again", "x-a"), Verdict::Bad)]
    {
        let options = Options { strict: true, ..Options::default() };
        let mut stage = Stage::with(HTTP, &[&exchanges, answer].concat(), options);
        let id = stage.begin();
        stage.get("/mcp", &[&id]);
        stage.post(&[&id], &call(5, "t"));
        let report = stage.report();
        assert_eq!(report.verdict, verdict, "{report:?}");
    }
}
