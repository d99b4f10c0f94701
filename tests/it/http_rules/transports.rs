//! Recordings over one transport, clients of another.

use super::stage::*;
use mcp_tapedeck::replay::Options;

#[test]
fn other_transports_are_served_over_streams() {
    let exchanges = [
        begun(1, ""),
        tool("a", "a", r#""server": [{"result": 1}]"#),
        tool(
            "b",
            "b",
            r#""server": [{"notification": {"method": "before"}}, {"raw": "no message"}, {"result": 2}, {"notification": {"method": "behind"}}]"#,
        ),
        r#", {"key": "p", "server": [{"notification": {"method": "pushed"}}]}"#.to_owned(),
    ];
    let mut stage = Stage::new(STDIO, &exchanges.concat());
    let id = stage.begin();
    assert_eq!(stage.post(&[&id], &note("notifications/initialized")), ["2 202", "2 end"]);
    assert_eq!(
        stage.post(&[&id], &call(1, "a")),
        ["3 200".to_owned(), format!("3 body {}", result(1, "1")), "3 end".to_owned()]
    );
    // A response ends with the answer (F10.29); the rest is for the session's stream.
    assert_eq!(
        stage.post(&[&id], &call(2, "b")),
        [
            "4 200 stream".to_owned(),
            format!("4 event {}", note("before")),
            format!("4 event {}", result(2, "2")),
            "4 end".to_owned()
        ]
    );
    assert_eq!(
        stage.get("/mcp", &[&id]),
        [
            OPENED.replace('N', "5"),
            format!("5 event {}", note("behind")),
            format!("5 event {}", note("pushed"))
        ]
    );
    stage.good();
}

#[test]
fn old_clients_hear_everything_on_one_stream() {
    for (sessions, beginning) in [(STDIO, begun(1, "")), (HTTP, with_id(1))] {
        let exchanges =
            [beginning, tool("a", "a", r#""server": [{"notification": {"method": "n"}}, {"result": 1}]"#)];
        let mut stage = Stage::new(sessions, &exchanges.concat());
        stage.origin = "http://h/take/x";
        let heard = stage.get("/sse", &[]);
        // Its address leads back to the take.
        let address = heard[1].strip_prefix("1 event /take/x").expect("an endpoint").to_owned();
        assert!(address.starts_with("/messages?sessionId="), "{heard:?}");
        let heard = stage.ask("POST", &address, &[], &initialize());
        assert_eq!(heard[..3], ["2 202", "2 body Accepted", "2 end"]);
        assert!(heard[3].starts_with("1 event {"), "{heard:?}");
        let heard = stage.ask("POST", &address, &[], &call(1, "a"));
        let answer = result(1, "1");
        assert_eq!(heard[3..], [format!("1 event {}", note("n")), format!("1 event {answer}")]);
        let heard = stage.ask("POST", &address, &[], &call(2, "unknown"));
        assert!(heard[0] == "4 202" && heard[3].contains("-33000"), "{heard:?}");
    }
}

#[test]
fn http_and_sse_comes_back_in_its_order() {
    let exchanges = format!(
        r#"{{"key": "g", "client": {{"http": "GET /sse"}}, "http": {{"status": 200, "stream": true}}, "server": [{{"sse": {{"event": "endpoint"}}, "body": "<origin>/m?session=<session-1>&x=1"}}], "unanswered": "open"}}, {}{}{}"#,
        begun(1, r#""http": {"status": 202},"#),
        tool(
            "a",
            "a",
            r#""http": {"status": 202}, "server": [{"result": 1}, {"on": "post", "body": "Accepted"}]"#
        ),
        tool("b", "b", r#""server": [{"on": "post", "result": 2}]"#),
    );
    let mut stage = Stage::new(SSE, &exchanges);
    let heard = stage.get("/sse", &[]);
    let address = heard[1].strip_prefix("1 event http://h").expect("an endpoint").to_owned();
    assert!(address.starts_with("/m?session=") && address.ends_with("&x=1"), "{address}");
    let heard = stage.ask("POST", &address, &[], &initialize());
    assert_eq!(heard[..2], ["2 202", "2 end"]);
    assert!(heard[2].starts_with("1 event {"), "{heard:?}");
    assert_eq!(
        stage.ask("POST", &address, &[], &call(1, "a")),
        [
            format!("1 event {}", result(1, "1")),
            "3 202".to_owned(),
            "3 body Accepted".to_owned(),
            "3 end".to_owned()
        ]
    );
    assert_eq!(
        stage.ask("POST", &address, &[], &call(2, "b")),
        ["4 200".to_owned(), format!("4 body {}", result(2, "2")), "4 end".to_owned()]
    );
    stage.good();
    // A client of Streamable HTTP gets the answers on its responses.
    let mut stage = Stage::new(SSE, &exchanges);
    let id = stage.begin();
    for (lane, tool, value) in [(2, "a", "1"), (3, "b", "2")] {
        assert_eq!(
            stage.post(&[&id], &call(7, tool)),
            [format!("{lane} 200"), format!("{lane} body {}", result(7, value)), format!("{lane} end")]
        );
    }
    stage.good();
}

#[test]
fn what_the_answer_to_a_question_out_of_the_blue_was_told_is_told_to_that() {
    let question = r#", {"key": "push elicitation/create @1", "server": [
        {"request": {"id": 9, "method": "elicitation/create"}, "answer": {"http": {"status": 202}, "result": {}}},
        {"on": "post", "body": "Accepted"}]}"#;
    let asked = r#"{"jsonrpc":"2.0","id":9,"method":"elicitation/create"}"#;
    let exchanges = format!(
        r#"{{"key": "g", "client": {{"http": "GET /sse"}}, "http": {{"status": 200, "stream": true}}, "server": [{{"sse": {{"event": "endpoint"}}, "body": "<origin>/m?session=<session-1>"}}], "unanswered": "open"}}, {}{question}"#,
        begun(1, r#""http": {"status": 202},"#),
    );
    let mut stage = Stage::new(SSE, &exchanges);
    let heard = stage.get("/sse", &[]);
    let address = heard[1].strip_prefix("1 event http://h").expect("an endpoint").to_owned();
    let heard = stage.ask("POST", &address, &[], &initialize());
    assert_eq!(heard[3..], [format!("1 event {asked}")], "{heard:?}");
    assert_eq!(stage.ask("POST", &address, &[], &result(9, "{}")), ["3 202", "3 body Accepted", "3 end"]);
    stage.good();
    // On the `GET` stream of Streamable HTTP nothing else is said either.
    let mut stage = Stage::new(HTTP, &(with_id(1) + question));
    let id = stage.begin();
    assert_eq!(stage.get("/mcp", &[&id])[1..], [format!("2 event {asked}")]);
    assert_eq!(stage.post(&[&id], &result(9, "{}")), ["3 202", "3 body Accepted", "3 end"]);
}

#[test]
fn modern_messages_over_http_and_sse_are_answered_on_its_stream() {
    let params = r#"{"name":"t","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#;
    let exchanges = format!(
        r#"{{"key": "g", "client": {{"http": "GET /sse"}}, "http": {{"status": 200, "stream": true}}, "server": [{{"sse": {{"event": "endpoint"}}, "body": "/m?session=<session-1>"}}], "unanswered": "open"}},
        {{"key": "t", "client": {{"request": {{"method": "tools/call", "params": {params}}}}}, "http": {{"status": 202}}, "server": [{{"on": "post", "body": "Accepted"}}, {{"result": 1}}]}}"#
    );
    let mut stage = Stage::new(&SSE.replace("2024-11-05", "2026-07-28"), &exchanges);
    let heard = stage.get("/sse", &[]);
    let address = heard[1].strip_prefix("1 event ").expect("an endpoint").to_owned();
    let heard = stage.ask("POST", &address, &[], &ask(3, "tools/call", params));
    assert_eq!(
        heard,
        [
            "2 202".to_owned(),
            "2 body Accepted".to_owned(),
            "2 end".to_owned(),
            format!("1 event {}", result(3, "1"))
        ]
    );
    stage.good();
}

const CUT: &str = r#""http": {"stream": true, "end": "cut", "partial": "{"}, "server": [{"notification": {"method": "n"}}], "unanswered": "ended""#;

#[test]
fn who_leaves_has_said_what_cancels_on_stdio() {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
    let params = |name: &str| format!(r#"{{"name":"{name}",{meta}}}"#);
    let recorded = |name: &str, rest: &str| {
        let params = params(name);
        format!(
            r#"{{"key": "{name}", "client": {{"request": {{"method": "tools/call", "params": {params}}}}}, {rest}}}"#
        )
    };
    let cancel = r#"{"key": "cancel", "after": "b", "client": {"notification": {"method": "notifications/cancelled", "params": {"requestId": 0}}}}"#;
    let exchanges = [
        recorded("a", r#""unanswered": "cancelled""#),
        recorded("b", r#""after": "a", "server": [{"after": "cancel", "result": 1}]"#),
        cancel.to_owned(),
    ];
    let mut stage = Stage::new(&STDIO.replace("2025-06-18", "2026-07-28"), &exchanges.join(", "));
    let headers = |name: &str| {
        ["mcp-protocol-version: 2026-07-28", "mcp-method: tools/call"]
            .map(str::to_owned)
            .into_iter()
            .chain([format!("mcp-name: {name}")])
            .collect::<Vec<_>>()
    };
    let post = |stage: &mut Stage, id: u32, name: &str| {
        let headers = headers(name);
        let headers: Vec<&str> = headers.iter().map(String::as_str).collect();
        stage.post(&headers, &ask(id, "tools/call", &params(name)))
    };
    assert_eq!(post(&mut stage, 7, "a"), ["1 200 stream"]);
    assert_eq!(post(&mut stage, 8, "b"), [""; 0]);
    assert_eq!(
        stage.leave(1),
        ["2 200".to_owned(), format!("2 body {}", result(8, "1")), "2 end".to_owned()]
    );
    assert_eq!(stage.report().waits, []);
    stage.good();
}

/// The error that tells how a response of HTTP ended.
fn told(id: u32, text: &str, status: &str, body: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-33001,"message":"{text}","data":{{"source":"tapedeck","status":{status},"body":"{body}"}}}}}}"#
    )
}

#[test]
fn how_a_response_ended_is_told_where_none_can_end_so() {
    let calls = [
        tool("cut", "cut", CUT),
        tool("reset", "reset", &CUT.replace("cut", "reset")),
        tool("end", "end", r#""http": {"stream": true}, "unanswered": "ended""#),
        tool("empty", "empty", r#""unanswered": "ended""#),
        tool("gone", "gone", r#""http": {"end": "cut"}, "unanswered": "lost""#),
        tool("html", "html", r#""server": [{"body": "<p>"}], "unanswered": "ended""#),
        tool("e", "e", r#""http": {"status": 500}, "server": [{"body": "<p>"}], "unanswered": "ended""#),
    ];
    let expected = [
        ("cut", told(7, "the recorded stream was cut before the answer", "200", "")),
        ("reset", told(7, "the recorded stream was reset before the answer", "200", "")),
        ("end", told(7, "the recorded server ended its response without an answer", "200", "")),
        ("empty", told(7, "the recorded server ended its response without an answer", "200", "")),
        ("gone", told(7, "the recorded stream was cut before the answer", "null", "")),
        ("html", told(7, "the recorded server ended its response without an answer", "200", "<p>")),
        ("e", told(7, "the recorded server answered with HTTP status 500 and no message", "500", "<p>")),
    ];
    let exchanges = with_id(1) + &calls.concat();
    let mut stage = Stage::new(HTTP, &exchanges);
    stage.line(0, &initialize());
    for (name, error) in &expected {
        assert_eq!(stage.line(0, &call(7, name)).last(), Some(&format!("0 line {error}")));
    }
    let warnings = stage.report().warnings;
    assert!(warnings[0].starts_with("`cut`: the recorded stream was cut before the answer;"), "{warnings:?}");
    assert_eq!(warnings.len(), 7);
    stage.good();
    // Over HTTP+SSE one stream carries all answers.
    let mut stage = Stage::new(HTTP, &exchanges);
    let address = stage.get("/sse", &[])[1].trim_start_matches("1 event ").to_owned();
    stage.ask("POST", &address, &[], &initialize());
    for (name, error) in &expected {
        let heard = stage.ask("POST", &address, &[], &call(7, name));
        assert!(heard[0].ends_with(" 202") && heard.last() == Some(&format!("1 event {error}")), "{heard:?}");
    }
    stage.good();
}

#[test]
fn what_was_left_open_or_cancelled_is_not_told_of() {
    let calls = [
        tool("open", "open", r#""http": {"stream": true}, "unanswered": "open""#),
        tool("gone", "gone", r#""http": {"stream": true}, "unanswered": "cancelled""#),
    ];
    let mut stage = Stage::new(HTTP, &(with_id(1) + &calls.concat()));
    stage.line(0, &initialize());
    assert_eq!((stage.line(0, &call(1, "open")), stage.line(0, &call(2, "gone"))), (Vec::new(), Vec::new()));
    assert_eq!(stage.close(0), [""; 0]);
    stage.good();
}

#[test]
fn requests_of_a_batch_that_were_left_without_an_answer_are_told_of() {
    let batch = r#"[{"request": {"id": 1, "method": "a"}}, {"notification": {"method": "n"}}, {"request": {"id": 2, "method": "b"}}]"#;
    let exchange = format!(
        r#", {{"key": "batch", "client": {{"batch": {batch}}}, "http": {{"stream": true, "end": "cut"}}, "server": [{{"id": 1, "result": 1}}], "unanswered": "ended"}}"#
    );
    let mut stage = Stage::new(HTTP, &(with_id(1) + &exchange));
    stage.line(0, &initialize());
    let asked = r#"[{"jsonrpc":"2.0","id":7,"method":"a"},{"jsonrpc":"2.0","method":"n"},{"jsonrpc":"2.0","id":8,"method":"b"}]"#;
    let heard = stage.line(0, asked);
    assert_eq!(
        heard.last(),
        Some(&format!("0 line {}", told(8, "the recorded stream was cut before the answer", "200", ""))),
        "{heard:?}"
    );
}

#[test]
fn requests_that_only_clients_of_http_make_are_neither_waited_for_nor_missed() {
    let common = HTTP.replace("\"session\": 1", "\"session\": 2").replace(", \"client\": \"c\"", "");
    let line = |after: &str, what: &str, rest: &str| {
        format!(r#", {{"key": "{what}", {after} "client": {{"http": "{what} /mcp"}}, "http": {{{rest}}}}}"#)
    };
    let challenge = r#", {"key": "c", "session": 2, "client": {"request": {"method": "initialize", "params": {}}}, "http": {"status": 401}, "unanswered": "ended"}"#;
    let exchanges = [
        with_id(1),
        challenge.to_owned(),
        // All of these are under way while the call is.
        tool(
            "slow",
            "slow",
            r#""http": {"stream": true}, "server": [{"notification": {"method": "n"}}, {"after": "fast", "result": 1}]"#,
        ),
        line(r#""after": "slow #1","#, "GET", r#""status": 200, "stream": true"#),
        line(r#""after": "GET","#, "OPTIONS", r#""status": 204"#),
        tool(
            "sent on",
            "fast",
            r#""after": "OPTIONS", "http": {"status": 307, "headers": {"location": "/mcp/"}}, "unanswered": "ended""#,
        ),
        tool("refused", "fast", r#""after": "sent on", "http": {"status": 401}, "unanswered": "ended""#),
        tool(
            "fast",
            "fast",
            r#""after": "refused", "http": {"path": "/mcp/"}, "server": [{"after": "slow #2", "result": 2}]"#,
        ),
        line("", "DELETE", r#""status": 200"#),
    ];
    let options = Options { strict: true, ..Options::default() };
    let mut stage = Stage::with(&format!("{HTTP}, {common}"), &exchanges.concat(), options);
    stage.line(0, &initialize());
    assert_eq!(stage.line(0, &call(1, "slow")), [format!("0 line {}", note("n"))]);
    assert_eq!(
        stage.line(0, &call(2, "fast")),
        [format!("0 line {}", result(1, "1")), format!("0 line {}", result(2, "2"))]
    );
    let report = stage.report();
    assert_eq!((report.unused.len(), report.waits.len()), (0, 0), "{report:#?}");
    stage.good();
    // Where a challenge is all there is, it is told.
    let exchanges = [with_id(1), tool("r", "r", r#""http": {"status": 401}, "unanswered": "ended""#)];
    let mut stage = Stage::new(HTTP, &exchanges.concat());
    stage.line(0, &initialize());
    assert!(stage.line(0, &call(1, "r"))[0].contains("HTTP status 401"));
}

#[test]
fn what_refuses_a_request_has_its_id_where_answers_share_a_stream() {
    let refused = |name: &str, id: &str, form: &str| {
        tool(name, name, &format!(r#""http": {{"status": 400}}, "server": [{{{id} {form}}}]"#))
    };
    let error = r#""error": {"code": -32000, "message": "no"}"#;
    let calls = [
        refused("null", r#""id": null,"#, error),
        refused("none", r#""no_id": true,"#, error),
        refused("named", r#""id": "server-error","#, error),
        refused(
            "raw",
            "",
            r#""raw": "{\"jsonrpc\":\"2.0\", \"error\": {\"code\":-32000,\"message\":\"no\"}, \"id\": null}""#,
        ),
    ];
    let exchanges = with_id(1) + &calls.concat();
    let is_own = |heard: &[String]| {
        let last = heard.last().expect("an answer");
        assert!(
            last.contains("-32000") && (last.contains(r#""id":7"#) || last.contains(r#""id": 7"#)),
            "{heard:?}"
        );
    };
    let mut stage = Stage::new(HTTP, &exchanges);
    stage.line(0, &initialize());
    for name in ["null", "none", "named", "raw"] {
        is_own(&stage.line(0, &call(7, name)));
    }
    let mut stage = Stage::new(HTTP, &exchanges);
    let address = stage.get("/sse", &[])[1].trim_start_matches("1 event ").to_owned();
    stage.ask("POST", &address, &[], &initialize());
    for name in ["null", "none", "named", "raw"] {
        is_own(&stage.ask("POST", &address, &[], &call(7, name)));
    }
    // A response of its own is what it was.
    let mut stage = Stage::new(HTTP, &exchanges);
    let id = stage.begin();
    assert!(stage.post(&[&id], &call(7, "null"))[1].contains(r#""id":null"#));
}
