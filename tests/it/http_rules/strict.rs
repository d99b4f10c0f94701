//! What may be left over under `--strict`, on stdio and over HTTP.

use mcp_tapedeck::{replay::Options, report::Verdict};

use super::{
    lines::line,
    stage::{HTTP, SSE, STDIO, Stage, ask, begun, initialize, note, with_id},
};

fn strict() -> Options {
    Options { strict: true, ..Options::default() }
}

fn recorded(key: &str, client: &str, server: &str) -> String {
    format!(r#", {{"key": "{key}", "client": {{{client}}}, "server": [{server}]}}"#)
}

fn request(key: &str, method: &str) -> String {
    recorded(key, &format!(r#""request": {{"method": "{method}"}}"#), r#"{"result": {}}"#)
}

fn notification(method: &str) -> String {
    recorded(&format!("{method} @1"), &format!(r#""notification": {{"method": "{method}"}}"#), "")
}

/// A live session of which nothing is sent but what `sent` does, on stdio or over HTTP; what makes its verdict bad.
fn left_over(session: &str, exchanges: &str, sent: impl Fn(&mut Stage, &str)) -> Vec<String> {
    let begun = if session == STDIO { begun(1, "") } else { with_id(1) };
    let mut stage = Stage::with(session, &(begun + exchanges), strict());
    let id = match session == STDIO {
        true => {
            stage.line(0, &initialize());
            String::new()
        }
        false => stage.begin(),
    };
    sent(&mut stage, &id);
    let report = stage.report();
    assert!(report.misses.is_empty(), "{report:#?}");
    assert_eq!(report.verdict == Verdict::Bad, !report.left_over.is_empty(), "{report:#?}");
    report.left_over
}

/// A kind of message; what was recorded, what is said, and whether it may be left over.
type Kind = (&'static str, String, &'static str, bool);

/// What clients say on any transport.
fn messages() -> Vec<Kind> {
    let batch = |members: &str| recorded("batch @1", &format!(r#""batch": [{members}]"#), "");
    vec![
        ("a @1", request("a @1", "a"), r#"{"jsonrpc":"2.0","id":1,"method":"a"}"#, false),
        ("named by hand", request("named by hand", "a"), r#"{"jsonrpc":"2.0","id":1,"method":"a"}"#, false),
        (
            "ping is no ping",
            request("ping is no ping", "a"),
            r#"{"jsonrpc":"2.0","id":1,"method":"a"}"#,
            false,
        ),
        ("n/a @1", notification("n/a"), r#"{"jsonrpc":"2.0","method":"n/a"}"#, false),
        (
            "batch @1",
            batch(r#"{"notification": {"method": "n/a"}}"#),
            r#"[{"jsonrpc":"2.0","method":"n/a"}]"#,
            false,
        ),
        (
            "raw @1",
            recorded("raw @1", r#""raw": "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}""#, ""),
            r#"{"jsonrpc":"2.0","id":7,"result":{}}"#,
            false,
        ),
        ("ping @1", request("ping @1", "ping"), r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, true),
        ("by hand", request("by hand", "ping"), r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, true),
        ("t @1", request("t @1", "tools/list"), r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#, true),
        (
            "d @1",
            request("d @1", "server/discover"),
            r#"{"jsonrpc":"2.0","id":1,"method":"server/discover"}"#,
            true,
        ),
    ]
}

#[test]
fn what_a_client_sent_on_stdio_is_left_over_unless_caches_and_clocks_decide_on_it() {
    let lines: [Kind; 2] = [
        ("raw @1", recorded("raw @1", r#""raw": "hello""#, ""), "hello", false),
        ("raw @1", recorded("raw @1", r#""base64": "/w==""#, ""), "\u{ff}", false),
    ];
    for (key, exchange, said, may_be) in messages().into_iter().chain(lines) {
        let expected: &[&str] = if may_be { &[] } else { &[key] };
        assert_eq!(left_over(STDIO, &exchange, |_, _| ()), expected, "{exchange}");
        if said.is_ascii() {
            let sent = |stage: &mut Stage, _: &str| drop(stage.line(0, said));
            assert_eq!(left_over(STDIO, &exchange, sent), [""; 0], "{exchange}");
        }
    }
}

#[test]
fn a_response_behind_a_gap_may_answer_what_was_not_recorded() {
    let raw = recorded("raw @1", r#""raw": "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}""#, "");
    assert_eq!(left_over(STDIO, &raw, |_, _| ()), ["raw @1"]);
    let with_gap = STDIO.replacen('}', r#", "gap": 1}"#, 1);
    assert_eq!(left_over(&with_gap, &raw, |_, _| ()), [""; 0]);
}

#[test]
fn what_a_client_sent_over_http_is_left_over_unless_caches_and_clocks_decide_on_it() {
    for (key, exchange, said, may_be) in messages() {
        let expected: &[&str] = if may_be { &[] } else { &[key] };
        // However it was recorded.
        for session in [HTTP, &STDIO.replace("1, \"rec", "1,  \"rec")] {
            assert_eq!(left_over(session, &exchange, |_, _| ()), expected, "{exchange}");
            let sent = |stage: &mut Stage, id: &str| drop(stage.post(&[id], said));
            assert_eq!(left_over(session, &exchange, sent), [""; 0], "{exchange}");
        }
    }
    let stream = |target: &str| {
        line(&format!("GET {target}"), r#""status": 200, "stream": true"#)
            .replace(r#""server": []"#, r#""server": [], "unanswered": "open""#)
    };
    for (key, exchange, method, target, may_be) in [
        ("http GET /mcp @1", stream("/mcp"), "GET", "/mcp", false),
        ("http GET /mcp @1", line("GET /mcp", r#""status": 405"#), "GET", "/mcp", false),
        ("http GET /doc @1", line("GET /doc", r#""status": 204"#), "GET", "/doc", false),
        ("http DELETE /mcp @1", line("DELETE /mcp", r#""status": 204"#), "DELETE", "/mcp", false),
        ("http OPTIONS /mcp @1", line("OPTIONS /mcp", r#""status": 204"#), "OPTIONS", "/mcp", false),
        ("http PUT /x @1", line("PUT /x", r#""status": 204"#), "PUT", "/x", false),
        ("http HEAD /x @1", line("HEAD /x", r#""status": 204"#), "HEAD", "/x", false),
        ("http POST /token @1", line("POST /token", r#""status": 204"#), "POST", "/token", false),
        ("", line("GET /.well-known/x", r#""status": 204"#), "GET", "/.well-known/x", true),
        ("", line("GET /favicon.ico", r#""status": 204"#), "GET", "/favicon.ico", true),
    ] {
        let expected: &[&str] = if may_be { &[] } else { &[key] };
        assert_eq!(left_over(HTTP, &exchange, |_, _| ()), expected, "{exchange}");
        let sent = |stage: &mut Stage, id: &str| {
            stage.ask(method, target, &[id, "accept: text/event-stream"], "x");
        };
        assert_eq!(left_over(HTTP, &exchange, sent), [""; 0], "{exchange}");
    }
}

#[test]
fn a_get_that_comes_back_to_a_stream_may_be_left_over_and_the_first_may_not() {
    let get = |n: u32, request: &str| {
        format!(
            r#", {{"key": "get @{n}", "client": {{"http": "GET /mcp"}}, "http": {{{request} "status": 200, "stream": true}}, "server": []}}"#
        )
    };
    let gets = get(1, "") + &get(2, "") + &get(3, r#""request": {"last-event-id": "7"},"#);
    assert_eq!(left_over(HTTP, &gets, |_, _| ()), ["get @1"]);
    let sent = |stage: &mut Stage, id: &str| drop(stage.get("/mcp", &[id]));
    assert_eq!(left_over(HTTP, &gets, sent), [""; 0]);
}

#[test]
fn what_the_live_transport_cannot_say_is_not_left_over() {
    let lines = line("GET /mcp", r#""status": 405"#) + &line("DELETE /mcp", r#""status": 204"#);
    let mut stage = Stage::with(HTTP, &(with_id(1) + &lines), strict());
    stage.line(0, &initialize());
    assert_eq!(stage.report().unused, [""; 0]);
    stage.good();
    // A client of HTTP+SSE has another stream, and leaves it instead of deleting anything.
    let mut stage = Stage::with(HTTP, &(with_id(1) + &lines), strict());
    let heard = stage.get("/sse", &[]);
    let endpoint = heard[1].rsplit(' ').next().expect("an endpoint").to_owned();
    stage.ask("POST", &endpoint, &[], &initialize());
    stage.good();
    let sse = line("GET /sse", r#""status": 200, "stream": true"#);
    let mut stage =
        Stage::with(SSE, &(sse.trim_start_matches(", ").to_owned() + ", " + &begun(1, "")), strict());
    stage.post(&[], &initialize());
    stage.good();
    // A line that is no message is not said over HTTP: there it is the body of a request without a message.
    let raw = recorded("raw @1", r#""raw": "hello""#, "");
    for session in [STDIO, HTTP] {
        let mut stage = Stage::with(session, &(with_id(1) + &raw), strict());
        stage.begin();
        stage.good();
    }
}

#[test]
fn preflights_and_logins_may_be_left_over_where_nobody_makes_them() {
    let lines = [
        line("OPTIONS /mcp", r#""status": 204"#),
        line("POST /token", r#""status": 204"#),
        line("DELETE /mcp", r#""status": 204"#),
    ];
    let expected = ["http OPTIONS /mcp @1", "http POST /token @1", "http DELETE /mcp @1"];
    let strict = |cors: bool, skip_auth: bool| Options { cors, skip_auth, ..strict() };
    for (options, left) in [
        (strict(false, false), &[0, 1, 2][..]),
        (strict(true, false), &[1, 2]),
        (strict(false, true), &[0, 2]),
    ] {
        let mut stage = Stage::with(HTTP, &(with_id(1) + &lines.concat()), options);
        stage.begin();
        let expected: Vec<_> = left.iter().map(|&at: &usize| expected[at]).collect();
        assert_eq!(stage.report().left_over, expected);
    }
}

#[test]
fn pushes_and_what_came_while_the_server_ended_are_not_left_over() {
    let push = r#", {"key": "push n @1", "server": [{"on": "get", "notification": {"method": "n"}}]}"#;
    assert_eq!(left_over(HTTP, push, |_, _| ()), [""; 0]);
    let ends = STDIO.replace(r#""session": 1,"#, r#""session": 1, "end": {"exit": 0},"#);
    let exchanges = begun(1, "") + &notification("n/a") + &request("a @1", "a") + &notification("n/b");
    let mut stage = Stage::with(&ends, &exchanges, strict());
    stage.line(0, &initialize());
    stage.line(0, &ask(1, "a", "{}"));
    assert_eq!(stage.report().left_over, ["n/a @1"]);
    assert_eq!(stage.report().unused, ["n/a @1", "n/b @1"]);
}

/// A batch that comes otherwise than recorded is taken apart, and so are its notifications.
#[test]
fn what_comes_in_other_batches_than_recorded_has_come() {
    let batch = |key: &str, members: &[&str]| {
        let members: Vec<_> = members.iter().map(|member| format!("{{{member}}}")).collect();
        let answers = r#"{"batch": [{"to": 1, "id": 1, "result": {}}]}"#;
        recorded(key, &format!(r#""batch": [{}]"#, members.join(", ")), answers)
    };
    let calls = r#""request": {"id": 1, "method": "a"}"#;
    let tells = r#""notification": {"method": "n/a"}"#;
    let (a, n) = (ask(1, "a", "{}"), note("n/a"));
    for (exchanges, lines, left) in [
        (batch("batch @1", &[calls, tells]), vec![format!("[{a},{n}]")], vec![]),
        (batch("batch @1", &[calls, tells]), vec![format!("[{n},{a}]")], vec![]),
        (batch("batch @1", &[calls, tells]), vec![format!("[{a}]")], vec!["batch @1 n/a"]),
        (batch("batch @1", &[calls, tells]), vec![format!("[{n}]")], vec!["batch @1"]),
        (request("a @1", "a") + &notification("n/a"), vec![format!("[{n},{a}]")], vec![]),
        (request("a @1", "a") + &notification("n/a"), vec![a.clone(), format!("[{n}]")], vec![]),
        (request("a @1", "a") + &notification("n/a"), vec![format!("[{a}]")], vec!["n/a @1"]),
    ] {
        let sent = |stage: &mut Stage, id: &str| lines.iter().for_each(|line| drop(stage.post(&[id], line)));
        assert_eq!(left_over(HTTP, &exchanges, sent), left, "{lines:?}");
    }
}

#[test]
fn notifications_that_nobody_recorded_are_no_misses_and_one_that_differs_is_left_over() {
    let told = recorded("n/a @1", r#""notification": {"method": "n/a", "params": {"x": 1}}"#, "");
    let say = |x: u32| format!(r#"{{"jsonrpc":"2.0","method":"n/a","params":{{"x":{x}}}}}"#);
    for (numbers, left) in [(&[1, 1, 2][..], &[][..]), (&[2], &["n/a @1"])] {
        let sent = |stage: &mut Stage, id: &str| {
            numbers.iter().for_each(|x| drop(stage.post(&[id], &say(*x))));
        };
        assert_eq!(left_over(HTTP, &told, sent), left, "{numbers:?}");
    }
    // Nobody has come at all.
    let stage = Stage::with(HTTP, &(with_id(1) + &line("PUT /x", r#""status": 204"#)), strict());
    assert_eq!(stage.report().left_over, ["initialize @1", "http PUT /x @1"]);
}
