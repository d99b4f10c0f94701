//! Recordings over one transport, clients of another.

use super::stage::*;

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
