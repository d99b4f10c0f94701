//! Requests that are no messages: which of them are misses, and which clients make by themselves.

use mcp_tapedeck::{
    replay::{Options, Repeat},
    report::{Reason, Verdict},
};

use super::stage::{HTTP, MODERN, STDIO, Stage, begun, call, initialize, tool, with_id};

/// A recorded request that is no message.
pub(super) fn line(line: &str, http: &str) -> String {
    let (method, target) = line.split_once(' ').expect("method and target");
    let path = target.split('?').next().expect("a path");
    format!(
        r#", {{"key": "http {method} {path} @1", "client": {{"http": "{line}"}}, "http": {{{http}}}, "server": []}}"#
    )
}

const NO_STREAM: &str = "405 allow=POST, DELETE";

#[test]
fn what_clients_ask_by_themselves_is_no_miss() {
    let others = line("PUT /config", r#""status": 204"#) + &line("GET /health", r#""status": 204"#);
    // Whether it is asked in a session; what it is; how its response begins.
    for (in_session, method, target, begins) in [
        // Clients of 2025-03-26 on look for an event stream, with and without a session.
        (true, "GET", "/mcp", NO_STREAM),
        (false, "GET", "/mcp", NO_STREAM),
        (false, "GET", "/mcp?x=1", NO_STREAM),
        // Those of 2024-11-05 find theirs.
        (false, "GET", "/sse", "200 stream cache-control=no-cache"),
        // They end their sessions, those too that a server before us gave them.
        (true, "DELETE", "/mcp", "200"),
        (false, "DELETE", "/mcp", NO_STREAM),
        // They look for metadata, and browsers for an icon.
        (false, "GET", "/.well-known/oauth-protected-resource/mcp", "404"),
        (false, "GET", "/.well-known/oauth-protected-resource", "404"),
        (false, "GET", "/.well-known/oauth-authorization-server", "404"),
        (true, "GET", "/mcp/.well-known/openid-configuration", "404"),
        (false, "HEAD", "/.well-known/openid-configuration", "404"),
        (false, "GET", "/favicon.ico", "404"),
        // Scripts look whether anybody is there.
        (false, "HEAD", "/", NO_STREAM),
        (false, "HEAD", "/mcp", NO_STREAM),
        // What was recorded is played.
        (false, "PUT", "/config", "204"),
        (false, "GET", "/health", "204"),
    ] {
        let mut stage = Stage::new(HTTP, &(with_id(1) + &others));
        let id = stage.begin();
        let headers: &[&str] = if in_session { &[&id] } else { &["mcp-session-id: gone"] };
        let heard = stage.ask(method, target, headers, "");
        assert_eq!(heard[0], format!("2 {begins}"), "{method} {target}");
        stage.good();
    }
}

#[test]
fn one_whose_response_is_not_recorded_is_a_miss_unless_clients_make_it_by_themselves() {
    let body = r#""server": [{"body": "<p>"}], "unanswered": "lost""#;
    for (method, target, left, begins, is_good) in [
        ("POST", "/other", r#""unanswered": "lost""#, "400", false),
        ("PUT", "/config", r#""unanswered": "lost""#, "405 allow=POST, DELETE", false),
        ("GET", "/slow", r#""unanswered": "lost""#, "404", false),
        ("GET", "/.well-known/oauth-protected-resource", r#""unanswered": "lost""#, "404", true),
        // The head alone, or all but the head, is lost.
        ("GET", "/page", body, "404", false),
        ("POST", "/page", r#""http": {"status": 200}, "unanswered": "lost""#, "400", false),
        // What is there of a stream is played, and a body that is whole.
        ("GET", "/page", &format!(r#""http": {{"status": 200}}, {body}"#), "200", true),
    ] {
        let lost = line(&format!("{method} {target}"), "").replace(r#""http": {}, "server": []"#, left);
        let mut stage = Stage::new(HTTP, &(with_id(1) + &lost));
        let id = stage.begin();
        let heard = stage.ask(method, target, &[&id], "");
        assert_eq!(heard[0], format!("2 {begins}"), "{method} {target}");
        let report = stage.report();
        assert_eq!(report.misses.is_empty(), is_good, "{method} {target}");
        if let [miss] = &report.misses[..] {
            assert_eq!(miss.reason, Reason::Incomplete);
            assert!(miss.message.contains("record it again"), "{}", miss.message);
        }
    }
}

#[test]
fn any_other_request_that_nobody_recorded_is_a_miss_that_says_what_is_nearest() {
    let others = line("PUT /config?a=1", r#""status": 204"#) + &line("GET /healthz", r#""status": 204"#);
    let (config, health) = ("`http PUT /config @1`", "`http GET /healthz @1`");
    for (in_session, method, target, status, nearest) in [
        (false, "GET", "/", "404", health),
        (true, "GET", "/health", "404", health),
        (false, "GET", "/config", "404", config),
        (false, "PUT", "/config", NO_STREAM, config),
        (false, "PUT", "/other", NO_STREAM, config),
        (true, "PATCH", "/mcp", NO_STREAM, config),
        (false, "OPTIONS", "/mcp", NO_STREAM, config),
        (false, "OPTIONS", "/.well-known/oauth-protected-resource", NO_STREAM, config),
        (false, "DELETE", "/other", NO_STREAM, config),
        (true, "POST", "/mcp", "400", config),
        (false, "POST", "/register", "400", config),
    ] {
        let mut stage = Stage::new(HTTP, &(with_id(1) + &others));
        let id = stage.begin();
        let headers: &[&str] = if in_session { &[&id] } else { &[] };
        let unknown = format!("`{method} {target}` was never recorded in this cassette");
        let says = match (method, target) {
            ("POST", "/mcp") => "`POST /mcp` came with a body that is no JSON-RPC message, and none such was recorded; send a message, or record it so".to_owned(),
            ("OPTIONS", _) => format!("{unknown}; record it, or replay with --cors, which answers what browsers ask"),
            _ => format!("{unknown} (nearest: {nearest}); record it, or add it by hand"),
        };
        let sentence = format!("tapedeck: {says}");
        let heard = stage.ask(method, target, headers, "x");
        assert_eq!(heard, [format!("2 {status}"), format!("2 body {sentence}\n"), "2 end".into()]);
        stage.ask(method, target, headers, "x");
        let report = stage.report();
        assert_eq!((report.verdict, report.misses.len()), (Verdict::Bad, 1), "{report:#?}");
        let miss = &report.misses[0];
        assert_eq!(
            (&*miss.method, miss.count, miss.reason),
            (&*format!("{method} {target}"), 2, Reason::NeverRecorded)
        );
        assert_eq!(miss.nearest.as_ref().map(|key| format!("`{key}`")).as_deref(), Some(nearest));
    }
}

#[test]
fn where_only_messages_were_recorded_a_miss_says_where_they_go() {
    for (session, exchanges, target, endpoint) in [
        (MODERN, String::new(), "/sse", "/mcp"),
        (HTTP, with_id(1), "/", "/mcp"),
        (STDIO, begun(1, ""), "/messages", "/mcp"),
        (&HTTP.replace("/mcp", "/a"), with_id(1), "/mcp", "/a"),
    ] {
        let mut stage = Stage::new(session, &exchanges);
        stage.get(target, &[]);
        let report = stage.report();
        let says = format!(
            "`GET {target}` was never recorded in this cassette, which has messages at `{endpoint}` alone;"
        );
        assert!(report.misses[0].message.contains(&says), "{report:#?}");
        assert_eq!(report.verdict, Verdict::Bad);
    }
}

/// A recorded request with a body, and the one line that answers it.
fn posted(method_and_target: &str, body: &str, answer: &str) -> String {
    format!(
        r#", {{"key": "{answer}", "client": {{"http": "{method_and_target}", {body}}}, "http": {{"status": 200}}, "server": [{{"body": "{answer}"}}]}}"#
    )
}

#[test]
fn of_requests_that_differ_in_their_bodies_the_one_that_is_asked_is_played() {
    let lines = [
        posted("POST /x", r#""body": "user=joe&act=read""#, "joe"),
        posted("POST /x", r#""body": "user=eve&act=write""#, "eve"),
        posted("POST /x", r#""body": "user=ann&password=<redacted:password-1>""#, "ann"),
        posted("PUT /x", r#""body": "one""#, "one"),
        posted("PUT /x", r#""body": "two""#, "two"),
        posted("POST /j", r#""body": "{\"a\": 1, \"b\": 2}""#, "json"),
        posted(
            "POST /token",
            r#""body": "grant_type=refresh_token&refresh_token=<redacted:token-1>&client_id=a""#,
            "first",
        ),
        posted(
            "POST /token",
            r#""body": "grant_type=refresh_token&refresh_token=<redacted:token-1>&client_id=b""#,
            "second",
        ),
    ];
    let mut stage = Stage::new(HTTP, &(with_id(1) + &lines.concat()));
    let id = stage.begin();
    for (method, target, body, answer) in [
        ("POST", "/x", "act=write&user=eve", Ok("eve")),
        ("POST", "/x", "user=%6Aoe&act=read", Ok("joe")),
        ("POST", "/x", "user=ann&password=Zk39dLw2x", Ok("ann")),
        (
            "POST",
            "/x",
            "user=root&act=kill",
            Err(("joe", r#"at /body/act (recorded "read", live "kill") and 1 more"#)),
        ),
        ("POST", "/x", "", Err(("joe", "from byte 1 on"))),
        ("PUT", "/x", "two", Ok("two")),
        ("PUT", "/x", "one", Ok("one")),
        ("PUT", "/x", "onetwo", Err(("one", "from byte 4 on"))),
        ("POST", "/j", r#"{"b":2,"a":1.0}"#, Ok("json")),
        ("POST", "/j", r#"{"b":2,"a":3}"#, Err(("json", "at /body/a (recorded 1, live 3)"))),
        ("POST", "/token", "grant_type=refresh_token&refresh_token=Zk39dLw2xQ&client_id=c", Ok("first")),
        ("POST", "/token", "grant_type=refresh_token&refresh_token=Zk39dLw2xQ&client_id=a", Ok("second")),
        (
            "POST",
            "/token",
            "grant_type=password&username=me&client_id=a",
            Err(("first", r#"at /body/grant_type (recorded "refresh_token", live "password") and 2 more"#)),
        ),
    ] {
        let heard = stage.ask(method, target, &[&id], body);
        let wanted = match answer {
            Ok(answer) => format!("body {answer}"),
            Err((nearest, differs)) => format!(
                "body tapedeck: `{method} {target}` was recorded, but with another body (nearest: `{nearest}`, which \
                 differs {differs}); send it as it was recorded, or record it so\n"
            ),
        };
        assert!(heard[1].ends_with(&wanted), "{method} {target} {body}: {heard:?}");
    }
    let report = stage.report();
    assert!(report.misses.iter().all(|miss| miss.reason == Reason::ParamsDiffer), "{report:#?}");
}

/// A recording of one endpoint serves messages at any path, and so all that belongs to them.
#[test]
fn streams_and_ends_of_sessions_are_those_of_the_endpoint_wherever_messages_go() {
    let stream = r#", {"key": "http GET /mcp @1", "client": {"http": "GET /mcp"}, "http": {"status": 200, "stream": true}, "server": [], "unanswered": "open"}"#;
    let deleted = line("DELETE /mcp", r#""status": 204"#);
    for (lines, stream, deleted) in [
        (stream.to_owned() + &deleted, "200 stream", "204"),
        (line("GET /mcp", r#""status": 409"#), "409", "200"),
        (String::new(), NO_STREAM, "200"),
    ] {
        let mut stage =
            Stage::with(HTTP, &(with_id(1) + &lines), Options { strict: true, ..Options::default() });
        let post = ["accept: application/json, text/event-stream", "content-type: application/json"];
        let heard = stage.ask("POST", "/a/mcp", &post, &initialize());
        let id = heard[0].split("mcp-session-id=").nth(1).expect("an id").split(' ').next().expect("an id");
        let id = format!("mcp-session-id: {id}");
        assert!(stage.get("/a/mcp", &[&id])[0].starts_with(&format!("2 {stream}")));
        let heard = stage.ask("DELETE", "/a/mcp", &[&id], "");
        assert!(heard.contains(&format!("3 {deleted}")), "{heard:?}");
        stage.good();
        assert!(stage.get("/b/mcp", &[&id])[0].starts_with("4 404"));
    }
}

#[test]
fn what_is_asked_again_is_a_repeat_unless_clients_repeat_it_by_themselves() {
    let lines = [
        line("PUT /config", r#""status": 204"#),
        line("GET /health", r#""status": 204"#),
        line("GET /.well-known/x", r#""status": 204"#),
        line("GET /mcp", r#""status": 405"#),
        line("HEAD /mcp", r#""status": 200"#),
    ];
    let lines = with_id(1) + &lines.concat();
    for (method, target, is_repeat) in [
        ("PUT", "/config", true),
        ("GET", "/health", true),
        ("GET", "/.well-known/x", false),
        ("GET", "/mcp", false),
        ("HEAD", "/mcp", false),
    ] {
        let mut stage = Stage::new(HTTP, &lines);
        let id = stage.begin();
        let first = stage.ask(method, target, &[&id], "");
        let again = stage.ask(method, target, &[&id], "");
        assert_eq!(first[0].strip_prefix("2"), again[0].strip_prefix("3"), "{method} {target}");
        assert_eq!(stage.report().repeats.len(), usize::from(is_repeat), "{method} {target}");
        stage.good();

        let mut stage = Stage::with(HTTP, &lines, Options { repeat: Repeat::Error, ..Options::default() });
        let id = stage.begin();
        stage.ask(method, target, &[&id], "");
        stage.ask(method, target, &[&id], "");
        let reasons: Vec<_> = stage.report().misses.iter().map(|miss| miss.reason).collect();
        assert_eq!(reasons, [Reason::Consumed; 1][..usize::from(is_repeat)], "{method} {target}");
    }
}

#[test]
fn after_its_delete_a_session_is_gone_for_requests_without_a_message_too() {
    let mut stage = Stage::new(HTTP, &(with_id(1) + &tool("a", "a", r#""server": [{"result": 1}]"#)));
    let id = stage.begin();
    stage.post(&[&id], &call(1, "a"));
    assert_eq!(stage.ask("DELETE", "/mcp", &[&id], "")[0], "3 200");
    assert_eq!(stage.ask("DELETE", "/mcp", &[&id], "")[0], "4 404");
    assert_eq!(stage.get("/mcp", &[&id])[0], "5 404");
    stage.good();
}

#[test]
fn a_miss_says_where_the_same_was_recorded_for_another_client() {
    let put = with_id(1) + &line("PUT /config", r#""status": 204"#);
    let doc = with_id(1) + &line("GET /doc", r#""status": 401"#);
    let (session, bearer) = (
        "tapedeck: this session has no answer to `PUT /config`, but another recorded session has: `http PUT /config @1`;",
        "tapedeck: `GET /doc` was recorded with other credentials, or behind another event or the session's end (`http GET /doc @1`);",
    );
    for (exchanges, headers, method, target, reason, says) in [
        (&put, "x: y", "PUT", "/config", Reason::OtherSession, session),
        (&doc, "authorization: Bearer x", "GET", "/doc", Reason::ParamsDiffer, bearer),
    ] {
        let mut stage = Stage::new(HTTP, exchanges);
        let id = if method == "GET" { stage.begin() } else { "a: b".to_owned() };
        stage.ask(method, target, &[headers, &id], "");
        let misses = stage.report().misses;
        assert!(
            misses.len() == 1 && misses[0].reason == reason && misses[0].message.starts_with(says),
            "{misses:?}"
        );
    }
}
