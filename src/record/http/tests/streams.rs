//! GET streams, and those that go on with others.

use super::*;

#[test]
fn a_get_stream_is_filed_as_stdio_is() {
    check_in_session(
        &[
            "1 > GET /mcp @S accept=text/event-stream",
            "1 < 200 content-type=text/event-stream",
            "1 < event unnamed id=0|",
            r#"1 < event |{"jsonrpc":"2.0","method":"notifications/early"}"#,
            "2 > POST /mcp @S",
            r#"2 > {"jsonrpc":"2.0","id":1,"method":"a","params":{"_meta":{"progressToken":"t"}}}"#,
            "3 > POST /mcp @S",
            r#"3 > {"jsonrpc":"2.0","id":2,"method":"b"}"#,
            r#"1 < event |{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t"}}"#,
            r#"1 < event |{"jsonrpc":"2.0","method":"notifications/guess"}"#,
            "2 < 202",
            "2 < .",
            // The answer comes here (F10.5).
            r#"1 < event |{"jsonrpc":"2.0","id":1,"result":{}}"#,
            "3 < 200 content-type=application/json",
            r#"3 < {"jsonrpc":"2.0","id":2,"result":{}}"#,
            "3 < .",
            r#"1 < event |{"jsonrpc":"2.0","method":"notifications/late"}"#,
            "4 > DELETE /mcp @S",
            "1 < .",
            "4 < 204",
            "4 < .",
        ],
        &[
            r#"1 http GET /mcp @1 {"status": 200, "stream": true, "until_delete": true} | body """#,
            "1 push notifications/early @1 | get notification",
            r#"1 a @1 {"status": 202} | get notification | get result"#,
            "1 b @1 | get notification | result",
            "1 push notifications/late @1 | get notification",
            r#"1 http DELETE /mcp @1 {"status": 204}"#,
        ],
    );
}

#[test]
fn a_get_stream_says_how_it_ended() {
    for (end, http, why) in [
        ("1 > .", "", " ! open"),
        ("1 < .", "", ""),
        ("1 < cut", r#", "end": "cut""#, ""),
        ("1 < reset", r#", "end": "reset""#, ""),
        ("2 > GET /mcp @S", "", " ! open"),
    ] {
        let stream = format!(r#"1 http GET /mcp @1 {{"status": 200, "stream": true{http}}}{why}"#);
        let mut expected = vec![&*stream];
        if end.starts_with('2') {
            expected.push("1 http GET /mcp @2 ! open");
        }
        check_in_session(&["1 > GET /mcp @S", "1 < 200 content-type=text/event-stream", end], &expected);
    }
}

#[test]
fn a_stream_that_is_gone_on_with_belongs_to_its_request() {
    check_in_session(
        &[
            "1 > POST /mcp @S",
            r#"1 > {"jsonrpc":"2.0","id":1,"method":"a"}"#,
            "1 < 200 content-type=text/event-stream",
            "1 < event id=1 unnamed|",
            r#"1 < event id=2|{"jsonrpc":"2.0","method":"n"}"#,
            "1 < .",
            "2 > GET /mcp @S last-event-id=2",
            "2 < 200 content-type=text/event-stream",
            "2 < event id=2b unnamed|",
            r#"2 < event id=3|{"jsonrpc":"2.0","method":"n"}"#,
            "2 < cut",
            "3 > GET /mcp @S last-event-id=3",
            "3 < 200 content-type=text/event-stream",
            r#"3 < event id=4|{"jsonrpc":"2.0","id":1,"result":{}}"#,
            "3 < .",
            // What is answered is not gone on with: that is the session's own stream.
            "4 > GET /mcp @S last-event-id=4",
            "4 < 200 content-type=text/event-stream",
            r#"4 < event |{"jsonrpc":"2.0","method":"n"}"#,
            "4 < .",
        ],
        &[
            r#"1 a @1 {"stream": true} | body "" | notification | resume notification | resume result"#,
            r#"1 http GET /mcp @1 {"request": {"last-event-id": "2"}, "status": 200, "stream": true, "end": "cut"} | body """#,
            r#"1 http GET /mcp @2 {"request": {"last-event-id": "3"}, "status": 200, "stream": true}"#,
            r#"1 http GET /mcp @3 {"request": {"last-event-id": "4"}, "status": 200, "stream": true}"#,
            "1 push n @1 | get notification",
        ],
    );
}

#[test]
fn ids_that_are_used_again_are_those_of_the_request_at_hand() {
    check_in_session(
        &[
            "1 > POST /mcp @S",
            r#"1 > {"jsonrpc":"2.0","id":5,"method":"a"}"#,
            "1 < 200 content-type=text/event-stream",
            r#"1 < event id=e1|{"jsonrpc":"2.0","method":"n"}"#,
            "1 < .",
            "2 > GET /mcp @S last-event-id=e1",
            "2 < 200 content-type=text/event-stream",
            r#"2 < event id=e2|{"jsonrpc":"2.0","id":5,"result":1}"#,
            "2 < .",
            // Both the request's id and the event's come again; this time the client has left.
            "3 > POST /mcp @S",
            r#"3 > {"jsonrpc":"2.0","id":5,"method":"b"}"#,
            "3 < 200 content-type=text/event-stream",
            r#"3 < event id=e1|{"jsonrpc":"2.0","method":"n"}"#,
            "3 > .",
            "4 > GET /mcp @S last-event-id=e1",
            "4 < 200 content-type=text/event-stream",
            r#"4 < event id=e2|{"jsonrpc":"2.0","id":5,"result":2}"#,
            "4 < .",
            // The server says it once more where the client has left, while a third one waits.
            "5 > POST /mcp @S",
            r#"5 > {"jsonrpc":"2.0","id":5,"method":"c"}"#,
            r#"3 < event again id=e2|{"jsonrpc":"2.0","id":5,"result":2}"#,
            "3 < .",
            "5 < 200 content-type=application/json",
            r#"5 < {"jsonrpc":"2.0","id":5,"result":3}"#,
            "5 < .",
        ],
        &[
            r#"1 a @1 {"stream": true} | notification | resume result"#,
            r#"1 http GET /mcp @1 {"request": {"last-event-id": "e1"}, "status": 200, "stream": true}"#,
            r#"1 b @1 {"stream": true} | notification | resume result"#,
            r#"1 http GET /mcp @2 {"request": {"last-event-id": "e1"}, "status": 200, "stream": true}"#,
            "1 c @1 | result",
        ],
    );
}

#[test]
fn an_event_that_comes_again_is_no_second_message() {
    check_in_session(
        &[
            "1 > GET /mcp @S",
            "1 < 200 content-type=text/event-stream",
            "2 > POST /mcp @S",
            r#"2 > {"jsonrpc":"2.0","id":1,"method":"a"}"#,
            "2 < 200 content-type=text/event-stream",
            "2 < event id=p unnamed|",
            r#"1 < event id=g1|{"jsonrpc":"2.0","id":0,"method":"roots/list"}"#,
            r#"2 < event id=r1|{"jsonrpc":"2.0","id":1,"result":{}}"#,
            "2 < .",
            // All that was sent behind it, on whatever stream.
            "3 > GET /mcp @S last-event-id=p",
            "3 < 200 content-type=text/event-stream",
            r#"3 < event again id=g1|{"jsonrpc":"2.0","id":0,"method":"roots/list"}"#,
            r#"3 < event again id=r1|{"jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"3 < event id=g2|{"jsonrpc":"2.0","method":"notifications/new"}"#,
            "3 > .",
            // Another message by an id that was used before is one.
            "4 > GET /mcp @S last-event-id=g2",
            "4 < 200 content-type=text/event-stream",
            r#"4 < event id=g1|{"jsonrpc":"2.0","method":"notifications/other"}"#,
            "4 > .",
            // And so is an equal one where nobody asked for what came before.
            "5 > GET /mcp @S",
            "5 < 200 content-type=text/event-stream",
            r#"5 < event id=g2|{"jsonrpc":"2.0","method":"notifications/new"}"#,
            "5 > .",
        ],
        &[
            r#"1 http GET /mcp @1 {"status": 200, "stream": true} ! open"#,
            r#"1 a @1 {"stream": true} | body "" | get request | result"#,
            r#"1 http GET /mcp @2 {"request": {"last-event-id": "p"}, "status": 200, "stream": true, "again": ["g1", "r1"]} ! open"#,
            "1 push notifications/new @1 | get notification",
            r#"1 http GET /mcp @3 {"request": {"last-event-id": "g2"}, "status": 200, "stream": true} ! open"#,
            "1 push notifications/other @1 | get notification",
            r#"1 http GET /mcp @4 {"status": 200, "stream": true} ! open"#,
            "1 push notifications/new @2 | get notification",
        ],
    );
}

#[test]
fn a_client_that_comes_back_hears_each_event_once() {
    let mut lines = vec![
        "1 > POST /mcp @S",
        r#"1 > {"jsonrpc":"2.0","id":1,"method":"a"}"#,
        "1 < 200 content-type=text/event-stream",
        r#"1 < event id=1|{"jsonrpc":"2.0","method":"n","params":1}"#,
        "1 > .",
        // Read on until it comes back.
        r#"1 < event id=2|{"jsonrpc":"2.0","method":"n","params":2}"#,
        "2 > GET /mcp @S last-event-id=1",
        "2 < 200 content-type=text/event-stream",
        r#"2 < event again id=2|{"jsonrpc":"2.0","method":"n","params":2}"#,
        r#"2 < event id=3|{"jsonrpc":"2.0","method":"n","params":3}"#,
        r#"2 < event id=4|{"jsonrpc":"2.0","id":1,"result":{}}"#,
        "2 < .",
    ];
    let expected = [
        r#"1 a @1 {"stream": true} | notification | notification | resume notification | resume result"#,
        r#"1 http GET /mcp @1 {"request": {"last-event-id": "1"}, "status": 200, "stream": true, "again": ["2"]}"#,
    ];
    check_in_session(&lines, &expected);
    // A server that says all to the one that has left as well.
    lines.splice(
        10..10,
        [
            r#"1 < event again id=3|{"jsonrpc":"2.0","method":"n","params":3}"#,
            r#"1 < event id=5|{"jsonrpc":"2.0","method":"n","params":5}"#,
        ],
    );
    let expected = [
        r#"1 a @1 {"stream": true} | notification | notification | resume notification | notification | resume result"#,
        expected[1],
    ];
    check_in_session(&lines, &expected);
}

#[test]
fn a_get_stream_ends_before_or_behind_the_answer_to_delete() {
    let head = ["1 > GET /mcp @S", "1 < 200 content-type=text/event-stream", "2 > DELETE /mcp @S"];
    let delete = |status: &str| format!(r#"1 http DELETE /mcp @1 {{"status": {status}}}"#);
    for (rest, how, status) in [
        (["1 < .", "2 < 200", "2 < ."], r#", "until_delete": true}"#, "200"),
        (["1 < cut", "2 < 204", "2 < ."], r#", "until_delete": true, "end": "cut"}"#, "204"),
        (["2 < 200", "1 < .", "2 < ."], "} ! open", "200"),
        (["2 < 200", "1 > .", "2 < ."], "} ! open", "200"),
        (["1 > .", "2 < 200", "2 < ."], "} ! open", "200"),
        (["2 < 405", "1 < .", "2 < ."], "}", "405"),
    ] {
        let lines: Vec<&str> = head.into_iter().chain(rest).collect();
        let get = format!(r#"1 http GET /mcp @1 {{"status": 200, "stream": true{how}"#);
        check_in_session(&lines, &[&get, &delete(status)]);
    }
}
