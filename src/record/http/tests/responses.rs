//! What comes on the response to a message.

use super::*;

#[test]
fn what_comes_on_a_response_belongs_to_its_request() {
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
