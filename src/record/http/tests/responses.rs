//! What comes on the response to a message.

use super::*;

#[test]
fn what_comes_on_a_response_belongs_to_its_request() {
    // What comes behind the end of all that can come belongs to nothing.
    check_in_session(
        &["1 > PUT /x @S", "1 < 200", "1 < partial a", "1 > .", "1 < partial b"],
        &[r#"1 http PUT /x @1 {"status": 200, "partial": "a"} ! open"#],
    );
    check_in_session(
        &[
            "1 > POST /mcp @S",
            r#"1 > {"jsonrpc":"2.0","id":1,"method":"a"}"#,
            "2 > POST /mcp @S",
            r#"2 > {"jsonrpc":"2.0","id":2,"method":"b"}"#,
            "1 < 200 content-type=text/event-stream",
            "1 < event id=p retry=5 unnamed|",
            "1 < event event=ping|now",
            r#"1 < event event=odd|{"jsonrpc":"2.0","method":"not/for/us"}"#,
            // The token of the other request, and an id that is neither's.
            r#"1 < event |{"jsonrpc":"2.0","method":"notifications/message"}"#,
            r#"1 < event id=q|{"jsonrpc":"2.0","id":77,"result":{"of":"a"}}"#,
            "1 < .",
            "2 < 400 content-type=application/json",
            r#"2 < {"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}"#,
            "2 < .",
        ],
        &[
            r#"1 a @1 {"stream": true} | body "" | body "now" | body {"$json": {"jsonrpc": "2.0", "method": "not/for/us"}} | notification | result"#,
            r#"1 b @1 {"status": 400} | error"#,
        ],
    );
}

#[test]
fn a_server_request_is_answered_by_another_post() {
    check_in_session(
        &[
            "1 > POST /mcp @S",
            r#"1 > {"jsonrpc":"2.0","id":1,"method":"a"}"#,
            "1 < 200 content-type=text/event-stream",
            r#"1 < event |{"jsonrpc":"2.0","id":"x","method":"ask"}"#,
            r#"1 < event |{"jsonrpc":"2.0","id":"y","method":"ask"}"#,
            "2 > POST /mcp @S",
            r#"2 > {"jsonrpc":"2.0","id":"y","result":{}}"#,
            "2 < 202",
            "2 < .",
            "3 > POST /mcp @S",
            r#"3 > {"jsonrpc":"2.0","id":"x","result":{}}"#,
            "3 < 400 content-type=text/plain",
            "3 < body no",
            "3 < .",
            r#"1 < event |{"jsonrpc":"2.0","id":1,"result":{}}"#,
            "1 < .",
            "4 > POST /mcp @S",
            r#"4 > {"jsonrpc":"2.0","id":"z","result":{}}"#,
            "4 < 202",
            "4 < .",
        ],
        &[
            r#"1 a @1 {"stream": true} | request answered by result oddly | request answered by result | post body "no" | result"#,
            "1 raw @1",
        ],
    );
    // What a server says to an answer is none to the call, whatever its id.
    for id in ["1", "\"x\"", "null"] {
        check_in_session(
            &[
                "1 > POST /mcp @S",
                r#"1 > {"jsonrpc":"2.0","id":1,"method":"a"}"#,
                "1 < 200 content-type=text/event-stream",
                r#"1 < event |{"jsonrpc":"2.0","id":"x","method":"ask"}"#,
                "2 > POST /mcp @S",
                r#"2 > {"jsonrpc":"2.0","id":"x","result":{}}"#,
                "2 < 400 content-type=application/json",
                &format!(r#"2 < {{"jsonrpc":"2.0","id":{id},"error":{{}}}}"#),
                "2 < .",
                "1 < cut",
            ],
            &[
                r#"1 a @1 {"stream": true, "end": "cut"} | request answered by result oddly | post error ! ended"#,
            ],
        );
    }
}

#[test]
fn a_request_that_has_no_end_is_its_beginning() {
    let head = "1 > POST /mcp @S content-length=99";
    let part = "1 > partial {\"half\"";
    let body = |http: &str, rest: &str| {
        format!(r#"1 http POST /mcp @1 in part {{"request": {{"content-length": "99"}}{http}}}{rest}"#)
    };
    // Also where nothing of it had come.
    for part in [part, "1 > partial "] {
        check_in_session(&[head, part, "1 < cut"], &[&body(r#", "end": "cut""#, " ! lost")]);
        check_in_session(&[head, part, "1 < reset"], &[&body(r#", "end": "reset""#, " ! lost")]);
        check_in_session(&[head, part, "1 > ."], &[&body("", " ! open")]);
        check_in_session(&[head, "1 < 413", "1 < .", part], &[&body(r#", "status": 413"#, "")]);
        check_in_session(
            &[head, "1 < 413", part, "1 < cut"],
            &[&body(r#", "status": 413, "end": "cut""#, "")],
        );
        check_in_session(
            &["1 > POST /mcp @S transfer-encoding=chunked", part, "1 < 413", "1 < ."],
            &[r#"1 http POST /mcp @1 in part {"status": 413}"#],
        );
    }
}

#[test]
fn a_change_of_protocols_is_recorded_with_its_status() {
    check_in_session(
        &["1 > GET /ws @S", "1 < 101 a=b", "1 > .", "2 > GET /ws @S", "2 < 426 upgrade=websocket", "2 < ."],
        &[
            r#"1 http GET /ws @1 {"status": 101, "headers": {"a": "b"}} ! open"#,
            r#"1 http GET /ws @2 {"status": 426, "headers": {"upgrade": "websocket"}}"#,
        ],
    );
}

#[test]
fn a_request_says_why_it_has_no_answer() {
    let stream = "1 < 200 content-type=text/event-stream";
    for (lines, http, why) in [
        (&["1 < 202", "1 < ."][..], r#" {"status": 202}"#, "ended"),
        (&[stream, "1 < ."], r#" {"stream": true}"#, "ended"),
        (&[stream, "1 < cut"], r#" {"stream": true, "end": "cut"}"#, "ended"),
        (
            &[stream, "1 < partial {\"jso", "1 < reset"],
            r#" {"stream": true, "end": "reset", "partial": "{\"jso"}"#,
            "ended",
        ),
        (&["1 < cut"], r#" {"end": "cut"}"#, "lost"),
        (&[stream], r#" {"stream": true}"#, "open"),
        (&["1 > ."], "", "open"),
        // The recorder ended, or the client left and nobody heard more.
        (&[stream, "1 < partial {\"jso"], r#" {"stream": true, "partial": "{\"jso"}"#, "open"),
        (&[stream, "1 > .", "1 < partial {\"jso"], r#" {"stream": true, "partial": "{\"jso"}"#, "open"),
        (&["1 > .", "1 < 500", "1 < ."], r#" {"status": 500}"#, "ended"),
    ] {
        let mut all = vec!["1 > POST /mcp @S", r#"1 > {"jsonrpc":"2.0","id":1,"method":"a"}"#];
        all.extend(lines);
        check_in_session(&all, &[&format!("1 a @1{http} ! {why}")]);
    }
    check_in_session(
        &[
            "1 > POST /mcp @S",
            r#"1 > {"jsonrpc":"2.0","id":1,"method":"a"}"#,
            "2 > POST /mcp @S",
            r#"2 > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
            "2 < 202",
            "2 < .",
        ],
        &["1 a @1 ! cancelled", "1 notifications/cancelled @1"],
    );
}

#[test]
fn a_response_that_comes_before_its_request_s_body_answers_that() {
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let call = request(2, "ping");
    let call = call.as_str();
    let json = "1 < 200 content-type=application/json";
    let says = format!("1 < {answer}");
    let asks = format!("1 > {list}");
    for framing in ["content-length=47", "transfer-encoding=chunked"] {
        let head = format!("1 > POST /mcp @S {framing}");
        // Refused, whole before the body, and then with another call behind it.
        check_in_session(
            &[
                &head,
                "1 < 401",
                "1 < .",
                &asks,
                "2 > POST /mcp @S",
                &format!("2 > {call}"),
                "2 < 202",
                "2 < .",
            ],
            &[r#"1 tools/list @1 {"status": 401} ! ended"#, r#"1 ping @1 {"status": 202} ! ended"#],
        );
        // The body comes in the middle of it.
        check_in_session(&[&head, json, &asks, &says, "1 < ."], &["1 tools/list @1 | result"]);
        check_in_session(&[&head, json, &says, &asks, "1 < ."], &["1 tools/list @1 | result"]);
        // It never comes: the client leaves, the server breaks the connection, or the recording ends.
        let never = [r#"1 http POST /mcp @1 {"status": 401}"#];
        check_in_session(&[&head, "1 < 401", "1 < ."], &never);
        check_in_session(
            &[&head, "1 < 401", "1 < cut"],
            &[r#"1 http POST /mcp @1 {"status": 401, "end": "cut"}"#],
        );
    }
    // There is none.
    for framing in ["content-length=0", ""] {
        check_in_session(
            &[&format!("1 > POST /mcp @S {framing}"), "1 < 400", "1 < ."],
            &[r#"1 http POST /mcp @1 {"status": 400}"#],
        );
    }
}
