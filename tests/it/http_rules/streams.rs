//! What goes on which response, and when that ends.

use super::stage::*;
use mcp_tapedeck::{
    replay::{Options, Timing},
    report::Verdict,
};

#[test]
fn a_stream_begins_at_once_and_ends_behind_its_last_message() {
    let calls = [
        tool(
            "a",
            "a",
            r#""http": {"stream": true}, "server": [{"notification": {"method": "n"}}, {"after_ms": 3, "result": 1}]"#,
        ),
        tool("b", "b", r#""server": [{"result": 2}]"#),
        tool(
            "c",
            "c",
            r#""http": {"stream": true, "end": "cut", "partial": "id: 7\ndata: {\"a"}, "server": [{"notification": {"method": "n"}}], "unanswered": "ended""#,
        ),
        tool("d", "d", r#""http": {"stream": true}, "server": [], "unanswered": "open""#),
        tool(
            "e",
            "e",
            r#""http": {"status": 500, "headers": {"content-type": "text/html"}}, "server": [{"body": "<p>"}], "unanswered": "ended""#,
        ),
    ];
    let mut stage = Stage::new(HTTP, &(with_id(1) + &calls.concat()));
    let id = stage.begin();
    assert_eq!(
        stage.post(&[&id], &call(7, "a")),
        ["2 200 stream".to_owned(), format!("2 event {}", note("n"))]
    );
    assert_eq!(stage.wait(3), [format!("2 event {}", result(7, "1")), "2 end".to_owned()]);
    assert_eq!(
        stage.post(&[&id], &call(8, "b")),
        ["3 200".to_owned(), format!("3 body {}", result(8, "2")), "3 end".to_owned()]
    );
    assert_eq!(
        stage.post(&[&id], &call(9, "c")),
        [
            "4 200 stream".to_owned(),
            format!("4 event {}", note("n")),
            "4 end cut id: 7\ndata: {\"a".to_owned()
        ]
    );
    assert_eq!(stage.post(&[&id], &call(10, "d")), ["5 200 stream"]);
    assert_eq!(stage.post(&[&id], &call(11, "e")), ["6 500", "6 body <p>", "6 end"]);
    stage.good();
}

#[test]
fn notifications_are_taken_in_as_recorded() {
    let notes = r#", {"key": "x", "client": {"notification": {"method": "x"}}},
        {"key": "y", "client": {"notification": {"method": "y"}}, "http": {"status": 204}},
        {"key": "z", "client": {"notification": {"method": "z"}}, "http": {"headers": {"content-type": "text/plain"}}, "server": [{"body": "Accepted"}]}"#;
    let mut stage = Stage::new(HTTP, &(with_id(1) + notes));
    let id = stage.begin();
    assert_eq!(stage.post(&[&id], &note("x")), ["2 202", "2 end"]);
    // A second time as the first, and so is what was not recorded at all.
    assert_eq!(stage.post(&[&id], &note("y")), ["3 204", "3 end"]);
    assert_eq!(stage.post(&[&id], &note("y")), ["4 204", "4 end"]);
    assert_eq!(stage.post(&[&id], &note("z")), ["5 202", "5 body Accepted", "5 end"]);
    assert_eq!(stage.post(&[&id], &note("unknown")), ["6 202", "6 end"]);
    stage.good();
}

const PUSHES: &str = r#", {"key": "g", "client": {"http": "GET /mcp"}, "http": {"status": 200, "stream": true}, "server": [{"sse": {"id": "p", "event": null}, "body": ""}]GONE},
    {"key": "push", "server": [{"on": "get", "sse": {"id": "1"}, "notification": {"method": "early"}}]},
    {"key": "t", "client": {"request": {"method": "tools/call", "params": {"name": "t"}}},
     "server": [{"on": "get", "sse": {"id": "2"}, "notification": {"method": "during"}}, {"result": 1}]}"#;

#[test]
fn what_was_on_the_get_stream_waits_for_it_and_holds_nothing_back() {
    let open = PUSHES.replace("GONE", r#", "unanswered": "open""#);
    let mut stage = Stage::new(HTTP, &(with_id(1) + &open));
    let id = stage.begin();
    assert_eq!(
        stage.post(&[&id], &call(1, "t")),
        ["2 200".to_owned(), format!("2 body {}", result(1, "1")), "2 end".to_owned()]
    );
    let sent = |lane: u32| {
        [("1", "early"), ("2", "during")].map(|(id, name)| format!("{lane} event id={id} {}", note(name)))
    };
    let [early, during] = sent(3);
    assert_eq!(stage.get("/mcp", &[&id]), ["3 200 stream", "3 event id=p ", &early, &during]);
    // What its client did not get it can fetch.
    assert_eq!(stage.leave(3), [""; 0]);
    assert_eq!(stage.get("/mcp", &[&id, "last-event-id: 1"]), [OPENED.replace('N', "4"), sent(4)[1].clone()]);
    // It stays open until its session ends.
    assert_eq!(stage.wait(60_000), [""; 0]);
    assert_eq!(stage.ask("DELETE", "/mcp", &[&id], ""), ["4 end", "5 200", "5 end"]);
}

#[test]
fn a_get_stream_that_its_server_ended_ends_behind_the_same_message() {
    let mut stage = Stage::new(HTTP, &(with_id(1) + &PUSHES.replace("GONE", "")));
    let id = stage.begin();
    assert_eq!(
        stage.get("/mcp", &[&id]),
        ["2 200 stream".to_owned(), "2 event id=p ".to_owned(), format!("2 event id=1 {}", note("early"))]
    );
    assert_eq!(
        stage.post(&[&id], &call(1, "t"))[..2],
        [format!("2 event id=2 {}", note("during")), "2 end".to_owned()]
    );
    // One on which nothing was sent ends at once.
    let nothing =
        r#", {"key": "g", "client": {"http": "GET /mcp"}, "http": {"status": 200, "stream": true}}"#;
    let mut stage = Stage::new(HTTP, &(with_id(1) + nothing));
    let id = stage.begin();
    assert_eq!(stage.get("/mcp", &[&id]), ["2 200 stream", "2 end"]);
}

#[test]
fn what_a_get_stream_carried_beside_messages_comes_where_it_stood() {
    let texts = r#", {"key": "g", "client": {"http": "GET /mcp"}, "http": {"status": 200, "stream": true},
     "server": [{"sse": {"event": "ping"}, "body": "x"},
      {"after": "push @1 #1", "sse": {"id": "2", "event": null}, "body": ""},
      {"after": "push @2 #1", "sse": {"event": null, "retry": 9, "data": false}, "body": ""}]},
    {"key": "push @1", "after": "g #1", "server": [{"on": "get", "sse": {"id": "1"}, "notification": {"method": "a"}}]},
    {"key": "push @2", "after": "g #2", "server": [{"on": "get", "sse": {"id": "3"}, "notification": {"method": "b"}}]},
    {"key": "rest", "client": {"http": "GET /mcp"}, "after": "g #3",
     "http": {"status": 200, "stream": true, "request": {"last-event-id": "3"}}},
    {"key": "push @3", "server": [{"on": "get", "sse": {"id": "4"}, "notification": {"method": "c"}}]}"#;
    let mut stage = Stage::new(HTTP, &(with_id(1) + texts));
    let id = stage.begin();
    let note = |lane: u32, id: u32, name: &str| format!("{lane} event id={id} {}", note(name));
    assert_eq!(
        stage.get("/mcp", &[&id]),
        [
            "2 200 stream",
            "2 event x",
            &note(2, 1, "a"),
            "2 event id=2 ",
            &note(2, 3, "b"),
            "2 event ",
            "2 end"
        ]
    );
    // What goes on with it ends as that did.
    let rest = stage.get("/mcp", &[&id, "last-event-id: 3"]);
    assert_eq!(rest, ["3 200 stream", &note(3, 4, "c"), "3 end"]);
    stage.good();
}

#[test]
fn nobody_is_given_a_stream_that_was_not_recorded() {
    let mut stage = Stage::new(HTTP, &with_id(1));
    let id = stage.begin();
    assert_eq!(stage.get("/mcp", &[&id]), ["2 405 allow=POST, DELETE", "2 end"]);
    stage.good();
    let mut stage = Stage::new(MODERN, "");
    assert_eq!(stage.get("/mcp", &[])[0], "1 405 allow=POST");
    stage.good();
}

const QUESTION: &str = r#", {"key": "q", "client": {"request": {"method": "tools/call", "params": {"name": "q"}}}, HTTP
    "server": [{ON "request": {"id": 9, "method": "elicitation/create", "params": {}}, "answer": {"result": {"action": "accept"}}}, {"result": 1}]}"#;

#[test]
fn a_question_waits_for_its_answer_wherever_it_can_be_heard() {
    let question = r#"{"jsonrpc":"2.0","id":9,"method":"elicitation/create","params":{}}"#;
    let answer = r#"{"jsonrpc":"2.0","id":9,"result":{"action":"accept"}}"#;
    for (on, http) in [("", r#""http": {"stream": true},"#), (r#""on": "get","#, "")] {
        let exchange = QUESTION.replace("HTTP", http).replace("ON", on);
        let mut stage = Stage::new(HTTP, &(with_id(1) + &exchange));
        let id = stage.begin();
        // Where it was on the GET stream and none is open, the call's response is one.
        assert_eq!(
            stage.post(&[&id], &call(3, "q")),
            ["2 200 stream".to_owned(), format!("2 event {question}")]
        );
        assert_eq!(stage.wait(9_000), [""; 0]);
        assert_eq!(
            stage.post(&[&id], answer),
            [
                "3 202".to_owned(),
                "3 end".to_owned(),
                format!("2 event {}", result(3, "1")),
                "2 end".to_owned()
            ]
        );
        assert_eq!(stage.report().answers[0].answer, "as_recorded");
        stage.good();
    }
    // With a GET stream it goes there, and the response stays what it was.
    let open = r#", {"key": "g", "client": {"http": "GET /mcp"}, "http": {"status": 200, "stream": true}, "unanswered": "open"}"#;
    let exchange = QUESTION.replace("HTTP", "").replace("ON", r#""on": "get","#);
    let mut stage = Stage::new(HTTP, &[&with_id(1), open, &exchange].concat());
    let id = stage.begin();
    assert_eq!(stage.get("/mcp", &[&id]), ["2 200 stream"]);
    assert_eq!(stage.post(&[&id], &call(3, "q")), [format!("2 event {question}")]);
    let heard = stage.post(&[&id], answer);
    assert_eq!(heard[2..], ["3 200".to_owned(), format!("3 body {}", result(3, "1")), "3 end".to_owned()]);
    // A client that never answers makes the run bad, but gets the rest.
    let mut stage = Stage::new(HTTP, &(with_id(1) + &QUESTION.replace("HTTP", "").replace("ON", "")));
    let id = stage.begin();
    stage.post(&[&id], &call(3, "q"));
    assert_eq!(stage.wait(10_000), [format!("2 event {}", result(3, "1")), "2 end".to_owned()]);
    assert_eq!(stage.report().verdict, Verdict::Bad);
}

#[test]
fn an_answer_to_a_question_is_taken_in_as_recorded() {
    let exchange = QUESTION.replace("HTTP", "").replace("ON", "").replace(
        r#""answer": {"result": {"action": "accept"}}},"#,
        r#""answer": {"http": {"status": 400, "headers": {"content-type": "text/plain"}}, "result": {}}}, {"on": "post", "body": "no"},"#,
    );
    let mut stage = Stage::new(HTTP, &(with_id(1) + &exchange));
    let id = stage.begin();
    stage.post(&[&id], &call(3, "q"));
    let heard = stage.post(&[&id], r#"{"jsonrpc":"2.0","id":9,"result":{}}"#);
    assert_eq!(heard[..3], ["3 400", "3 body no", "3 end"]);
    assert!(heard.contains(&"2 end".to_owned()), "{heard:?}");
}

/// A server that refuses the answer says so in the protocol's words: that is no answer to the call, whatever its id.
#[test]
fn what_an_answer_to_a_question_is_told_is_no_answer_to_the_call() {
    let asked = r#""answer": {"result": {"action": "accept"}}}, {"result": 1}]"#;
    for (id, said) in [("", "3"), (r#""id": 9,"#, "9"), (r#""id": null,"#, "null")] {
        for (rest, expected) in
            [(r#", {"result": 1}]"#, r#""result":1"#), (r#"], "unanswered": "ended""#, "")]
        {
            let refused = format!(
                r#""answer": {{"http": {{"status": 400}}, "result": {{}}}}}}, {{"on": "post", {id} "error": 5}}{rest}"#
            );
            let exchange = QUESTION.replace("HTTP", r#""http": {"stream": true},"#).replace("ON", "");
            let exchange = exchange
                .replace(asked, &refused)
                .replace(r#"{"method": "tools/call""#, r#"{"id": 3, "method": "tools/call""#);
            let mut stage = Stage::new(HTTP, &(with_id(1) + &exchange));
            let session = stage.begin();
            let called = stage.post(&[&session], &call(3, "q"));
            let heard = stage.post(&[&session], r#"{"jsonrpc":"2.0","id":9,"result":{}}"#);
            let refusal = format!(r#"3 body {{"jsonrpc":"2.0","id":{said},"error":5}}"#);
            assert_eq!(heard[..3], ["3 400".to_owned(), refusal, "3 end".to_owned()], "{heard:?}");
            let of_call: Vec<_> = called.iter().chain(&heard).filter(|said| said.starts_with("2 ")).collect();
            assert!(!of_call.iter().any(|said| said.contains("error")), "{of_call:?}");
            assert!(of_call.iter().any(|said| said.contains(expected)), "{of_call:?}");
            // A client on stdio hears only what was said to its call.
            let mut stage = Stage::new(HTTP, &(with_id(1) + &exchange));
            stage.line(1, &initialize());
            stage.line(1, &call(3, "q"));
            let heard = stage.line(1, r#"{"jsonrpc":"2.0","id":9,"result":{}}"#);
            let expected = if expected.is_empty() { "-33001" } else { expected };
            assert!(heard.len() == 1 && heard[0].contains(expected), "{heard:?}");
        }
    }
    // As an event.
    let exchange = QUESTION.replace("HTTP", r#""http": {"stream": true},"#).replace("ON", "").replace(
        r#""answer": {"result": {"action": "accept"}}},"#,
        r#""answer": {"http": {"status": 200, "stream": true}, "result": {}}}, {"on": "post", "sse": {"id": "e"}, "no_id": true, "error": 5},"#,
    );
    let mut stage = Stage::new(HTTP, &(with_id(1) + &exchange));
    let session = stage.begin();
    stage.post(&[&session], &call(3, "q"));
    let heard = stage.post(&[&session], r#"{"jsonrpc":"2.0","id":9,"result":{}}"#);
    assert_eq!(
        heard[..3],
        ["3 200 stream", r#"3 event id=e {"jsonrpc":"2.0","error":5}"#, "3 end"],
        "{heard:?}"
    );
    assert_eq!(heard[3], format!("2 event {}", result(3, "1")));
}

#[test]
fn an_answer_on_the_get_stream_comes_on_the_response() {
    let exchange = tool("t", "t", r#""http": {"status": 202}, "server": [{"on": "get", "result": 1}]"#);
    let mut stage = Stage::new(HTTP, &(with_id(1) + &exchange));
    let id = stage.begin();
    assert_eq!(
        stage.post(&[&id], &call(4, "t")),
        ["2 200".to_owned(), format!("2 body {}", result(4, "1")), "2 end".to_owned()]
    );
}

#[test]
fn the_rest_of_a_call_is_fetched_where_it_had_ids() {
    let exchange = tool(
        "t",
        "t",
        r#""http": {"stream": true}, "server": [
            {"sse": {"id": "a0", "event": null, "retry": 5}, "body": ""}, {"sse": {"id": "a1"}, "notification": {"method": "n"}},
            {"on": "resume", "after_ms": 50, "sse": {"id": "a2"}, "notification": {"method": "m"}},
            {"on": "resume", "after_ms": 50, "sse": {"id": "a3"}, "result": 1}]"#,
    );
    let options = Options { timing: Timing::Recorded { speed: 1.0 }, ..Options::default() };
    let mut stage = Stage::with(HTTP, &(with_id(1) + &exchange), options);
    let id = stage.begin();
    // The stream ends although the call goes on.
    assert_eq!(
        stage.post(&[&id], &call(5, "t")),
        [
            "2 200 stream".to_owned(),
            "2 event id=a0 ".to_owned(),
            format!("2 event id=a1 {}", note("n")),
            "2 end".to_owned()
        ]
    );
    assert_eq!(stage.wait(50), [""; 0]);
    // From the very beginning: what was sent, what waited, and what is still to come.
    let (n, m) = (note("n"), note("m"));
    assert_eq!(
        stage.get("/mcp", &[&id, "last-event-id: a0"]),
        [OPENED.replace('N', "3"), format!("3 event id=a1 {n}"), format!("3 event id=a2 {m}")]
    );
    assert_eq!(stage.wait(50), [format!("3 event id=a3 {}", result(5, "1")), "3 end".to_owned()]);
    // Once more, when all is over.
    assert_eq!(
        stage.get("/mcp", &[&id, "last-event-id: a2"]),
        [OPENED.replace('N', "4"), format!("4 event id=a3 {}", result(5, "1")), "4 end".to_owned()]
    );
    stage.good();
}

#[test]
fn an_answer_too_long_for_an_event_is_a_body() {
    let long = format!(r#""http": {{"stream": true}}, "server": [{{"result": "{}"}}]"#, "x".repeat(1 << 20));
    let mut stage = Stage::new(HTTP, &(with_id(1) + &tool("t", "t", &long)));
    let id = stage.begin();
    let heard = stage.post(&[&id], &call(1, "t"));
    assert_eq!((&*heard[0], &heard[1][..7], &*heard[2]), ("2 200", "2 body ", "2 end"));
    // Who takes nothing but events gets one.
    let heard = stage.ask("POST", "/mcp", &["accept: text/event-stream", &id], &call(1, "t"));
    assert_eq!((&*heard[0], &heard[1][..8]), ("3 200 stream", "3 event "));
}

#[test]
fn a_batch_is_answered_by_one_body() {
    let mut stage = Stage::new(HTTP, &with_id(1));
    let id = stage.begin();
    let heard = stage.post(&[&id], &format!("[{},{},{}]", call(1, "a"), note("n"), call(2, "b")));
    assert_eq!((heard.len(), &*heard[0], &*heard[2]), (3, "2 200", "2 end"));
    assert!(heard[1].starts_with("2 body [{") && heard[1].matches("-33000").count() == 2, "{heard:?}");
}

#[test]
fn nothing_goes_on_behind_an_event_that_was_never_sent() {
    let with_ids = tool(
        "t",
        "t",
        r#""http": {"stream": true}, "server": [{"sse": {"id": "a"}, "notification": {"method": "n"}}, {"result": 1}]"#,
    );
    let open = r#", {"key": "g", "client": {"http": "GET /mcp"}, "http": {"status": 200, "stream": true}, "unanswered": "open"}"#;
    let mut stage = Stage::new(HTTP, &[&with_id(1), open, &with_ids].concat());
    let id = stage.begin();
    let refused =
        r#"body {"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Invalid event ID format"}}"#;
    assert_eq!(
        stage.get("/mcp", &[&id, "last-event-id: x"]),
        ["2 400".to_owned(), format!("2 {refused}"), "2 end".to_owned()]
    );
    // It has not used up the session's own stream.
    assert_eq!(stage.get("/mcp", &[&id]), ["3 200 stream"]);
    stage.good();
    // A server that gives no ids looks at none.
    let mut stage = Stage::new(HTTP, &[&with_id(1), open].concat());
    let id = stage.begin();
    assert_eq!(stage.get("/mcp", &[&id, "last-event-id: x"]), ["2 200 stream"]);
    // What a server said to such a request it says again.
    let recorded = r#", {"key": "b", "client": {"http": "GET /mcp"}, "http": {"status": 404, "request": {"last-event-id": "x"}}}"#;
    let mut stage = Stage::new(HTTP, &[&with_id(1), recorded, &with_ids].concat());
    let id = stage.begin();
    assert_eq!(stage.get("/mcp", &[&id, "last-event-id: x"]), ["2 404", "2 end"]);
    stage.good();
}

#[test]
fn the_get_stream_is_gone_on_with_from_its_first_event() {
    let open = PUSHES.replace("GONE", r#", "unanswered": "open""#);
    let mut stage = Stage::new(HTTP, &(with_id(1) + &open));
    let id = stage.begin();
    stage.get("/mcp", &[&id]);
    stage.leave(2);
    assert_eq!(stage.get("/mcp", &[&id, "last-event-id: p"])[0], OPENED.replace('N', "3"));
    // What comes now comes there.
    assert_eq!(stage.post(&[&id], &call(1, "t"))[0], format!("3 event id=2 {}", note("during")));
}

#[test]
fn ids_that_are_used_again_lead_to_the_call_at_hand() {
    let resumed = |key: &str, result: &str| {
        tool(
            key,
            "t",
            &format!(
                r#""http": {{"stream": true}}, "server": [
                    {{"sse": {{"id": "e1"}}, "notification": {{"method": "n"}}}},
                    {{"on": "resume", "after_ms": 50, "sse": {{"id": "e2"}}, "result": {result}}}]"#
            ),
        )
    };
    let get = |key: &str| {
        format!(
            r#", {{"key": "{key}", "client": {{"http": "GET /mcp"}}, "http": {{"status": 200, "stream": true, "request": {{"last-event-id": "e1"}}}}}}"#
        )
    };
    let exchanges = [with_id(1), resumed("t1", "1"), get("g1"), resumed("t2", "2"), get("g2")];
    let options = || Options { timing: Timing::Recorded { speed: 1.0 }, ..Options::default() };
    let mut stage = Stage::with(HTTP, &exchanges.concat(), options());
    let id = stage.begin();
    // The third one repeats the second.
    for (lane, answer) in [(2, "1"), (4, "2"), (6, "2")] {
        assert_eq!(stage.post(&[&id], &call(5, "t")).last(), Some(&format!("{lane} end")));
        assert_eq!(stage.get("/mcp", &[&id, "last-event-id: e1"]).len(), 1);
        let get = lane + 1;
        assert_eq!(
            stage.wait(50),
            [format!("{get} event id=e2 {}", result(5, answer)), format!("{get} end")]
        );
    }
    // All of it has waited for the client.
    let mut stage = Stage::new(HTTP, &exchanges.concat());
    let id = stage.begin();
    for (lane, answer) in [(2, "1"), (4, "2")] {
        stage.post(&[&id], &call(5, "t"));
        stage.wait(5);
        let get = lane + 1;
        let rest = [
            format!("{get} 200 stream"),
            format!("{get} event id=e2 {}", result(5, answer)),
            format!("{get} end"),
        ];
        assert_eq!(stage.get("/mcp", &[&id, "last-event-id: e1"]), rest);
    }
    // Two at once: each has a stream of its own that goes on.
    let mut stage = Stage::with(HTTP, &(with_id(1) + &resumed("t", "1")), options());
    let id = stage.begin();
    stage.post(&[&id], &call(5, "t"));
    stage.get("/mcp", &[&id, "last-event-id: e1"]);
    stage.wait(20);
    stage.post(&[&id], &call(6, "t"));
    stage.get("/mcp", &[&id, "last-event-id: e1"]);
    assert_eq!(stage.wait(30), [format!("3 event id=e2 {}", result(5, "1")), "3 end".to_owned()]);
    assert_eq!(stage.wait(20), [format!("5 event id=e2 {}", result(6, "1")), "5 end".to_owned()]);
}

#[test]
fn what_is_answered_is_not_gone_on_with() {
    let exchanges = [
        with_id(1),
        tool("t", "t", r#""http": {"stream": true}, "server": [{"sse": {"id": "e1"}, "result": 1}]"#),
        r#", {"key": "g", "client": {"http": "GET /mcp"}, "http": {"request": {"last-event-id": "e1"}, "status": 200, "stream": true}, "unanswered": "open"}"#.to_owned(),
        r#", {"key": "p", "server": [{"on": "get", "notification": {"method": "pushed"}}]}"#.to_owned(),
    ];
    let mut stage = Stage::new(HTTP, &exchanges.concat());
    let id = stage.begin();
    assert_eq!(stage.post(&[&id], &call(1, "t")).last(), Some(&"2 end".to_owned()));
    let pushed = format!("3 event {}", note("pushed"));
    assert_eq!(stage.get("/mcp", &[&id, "last-event-id: e1"]), ["3 200 stream", &pushed]);
    stage.good();
}

#[test]
fn an_answer_that_came_twice_is_not_heard_twice_by_who_went_on() {
    // The server said it to the client that had left as well, before or after.
    let resumed = r#"{"on": "resume", "after_ms": 50, "sse": {"id": "e2"}, "result": 1}"#;
    let own = r#"{"after_ms": 50, "sse": {"id": "e2"}, "result": 1}"#;
    for answers in [[resumed, own], [own, resumed]] {
        let rest = format!(
            r#""http": {{"stream": true}}, "server": [{{"sse": {{"id": "e1"}}, "notification": {{"method": "n"}}}}, {}]"#,
            answers.join(", ")
        );
        let exchanges = with_id(1) + &tool("t", "t", &rest);
        let options = Options { timing: Timing::Recorded { speed: 1.0 }, ..Options::default() };
        let mut stage = Stage::with(HTTP, &exchanges, options);
        let id = stage.begin();
        stage.post(&[&id], &call(5, "t"));
        stage.leave(2);
        assert_eq!(stage.get("/mcp", &[&id, "last-event-id: e1"]), [OPENED.replace('N', "3")]);
        let heard = [stage.wait(50), stage.wait(50)].concat();
        assert_eq!(heard, [format!("3 event id=e2 {}", result(5, "1")), "3 end".to_owned()]);
        stage.good();
        // Nor on stdio.
        let mut stage = Stage::new(HTTP, &exchanges);
        stage.line(0, &initialize());
        let heard = [stage.line(0, &call(5, "t")), stage.wait(50)].concat();
        assert_eq!(heard, [format!("0 line {}", note("n")), format!("0 line {}", result(5, "1"))]);
        stage.good();
    }
}
