//! Whose request it is, and which recorded one it asks for.

use super::stage::*;
use mcp_tapedeck::{
    replay::{Options, Timing},
    report::Reason,
};

#[test]
fn sessions_are_told_apart_by_their_ids() {
    let second = HTTP.replace("\"session\": 1", "\"session\": 2").replace("\"c\"", "\"other\"");
    let of = |n: u32, answer: &str| {
        tool(&format!("t{n}"), "t", &format!(r#""session": {n}, "server": [{{"result": {answer}}}]"#))
    };
    let exchanges = [with_id(1), of(1, "\"one\""), ",".to_owned(), with_id(2), of(2, "\"two\"")].concat();
    let mut stage = Stage::new(&format!("{HTTP}, {second}"), &exchanges);
    let (a, b) = (stage.begin(), stage.begin());
    assert_ne!(a, b);
    // Equal ids, the later session first.
    assert_eq!(stage.post(&[&b], &call(1, "t"))[1], format!("3 body {}", result(1, "\"two\"")));
    assert_eq!(stage.post(&[&a], &call(1, "t"))[1], format!("4 body {}", result(1, "\"one\"")));
    // One that nobody gave out leads to the last one.
    assert!(stage.post(&["mcp-session-id: x"], &call(2, "t"))[1].contains("two"));
}

#[test]
fn a_session_that_was_ended_stays_ended() {
    let rest = tool("t", "t", r#""server": [{"result": 1}]"#);
    let mut stage = Stage::new(HTTP, &(with_id(1) + &rest));
    let id = stage.begin();
    assert_eq!(stage.ask("DELETE", "/mcp", &[&id], ""), ["2 200", "2 end"]);
    let lost = r#"3 body {"jsonrpc":"2.0","id":5,"error":{"code":-32001,"message":"Session not found"}}"#;
    assert_eq!(stage.post(&[&id], &call(5, "t")), ["3 404", lost, "3 end"]);
    for heard in
        [stage.post(&[&id], &note("x")), stage.get("/mcp", &[&id]), stage.ask("DELETE", "/mcp", &[&id], "")]
    {
        assert!(heard[0].ends_with(" 404"), "{heard:?}");
    }
    // A client that comes back has another, though it may still name the old one.
    let heard = stage.post(&[&id], &initialize());
    assert!(heard[0].starts_with("7 200 mcp-session-id="), "{heard:?}");
    let new = format!("mcp-session-id: {}", heard[0].split('=').nth(1).unwrap());
    assert_eq!(stage.post(&[&new], &call(6, "t"))[0], "8 200");
}

/// As clients do: one that lost its connection asks again.
#[test]
fn equal_requests_break_off_in_their_turn() {
    for (end, heard) in [("reset", "2 end reset"), ("cut", "2 end cut")] {
        let lost = format!(r#""http": {{"end": "{end}"}}, "server": [], "unanswered": "lost""#);
        let again = tool("a2", "a", r#""server": [{"result": 1}]"#);
        let mut stage = Stage::new(HTTP, &[with_id(1), tool("a", "a", &lost), again].concat());
        let id = stage.begin();
        assert_eq!(stage.post(&[&id], &call(1, "a")), [heard]);
        assert_eq!(stage.post(&[&id], &call(2, "a"))[1], format!("3 body {}", result(2, "1")));
        stage.good();
    }
}

/// Nobody has said how they would have been answered.
#[test]
fn requests_without_a_message_that_were_left_open_are_silent() {
    let open = |line: &str| {
        format!(
            r#", {{"key": "http {line} @1", "client": {{"http": "{line}"}}, "server": [], "unanswered": "open"}}"#
        )
    };
    let lines = ["PUT /x", "DELETE /mcp", "OPTIONS /q", "GET /status", "GET /mcp"];
    let exchanges = with_id(1) + &lines.map(open).concat();
    let mut stage = Stage::new(HTTP, &exchanges);
    let id = stage.begin();
    for line in &lines[..4] {
        let (method, target) = line.split_once(' ').expect("two words");
        assert_eq!(stage.ask(method, target, &[&id], ""), [""; 0], "{line}");
    }
    assert_eq!(stage.get("/mcp", &[&id])[0], "6 200 stream");
}

#[test]
fn what_a_server_answered_behind_a_delete_is_answered_behind_it() {
    let deleted = r#", {"key": "http DELETE /mcp @1", "client": {"http": "DELETE /mcp"}, "http": {"status": 200}, "server": []}"#;
    let before = tool("a", "a", r#""server": [{"result": 1}]"#);
    let behind =
        tool("b", "b", r#""server": [{"result": 2}]"#) + &tool("a2", "a", r#""server": [{"result": 3}]"#);
    for strict in [false, true] {
        let options = Options { strict, ..Options::default() };
        let mut stage = Stage::with(HTTP, &[&with_id(1), &*before, deleted, &behind].concat(), options);
        let id = stage.begin();
        assert_eq!(stage.post(&[&id], &call(1, "a"))[1], format!("2 body {}", result(1, "1")));
        assert_eq!(stage.ask("DELETE", "/mcp", &[&id], "")[0], "3 200");
        assert_eq!(stage.post(&[&id], &call(2, "b"))[1], format!("4 body {}", result(2, "2")));
        assert_eq!(stage.post(&[&id], &call(3, "a"))[1], format!("5 body {}", result(3, "3")));
        stage.good();
        // What it was not asked then, an ended session does not know.
        assert_eq!(stage.post(&[&id], &call(4, "c"))[0], "6 404");
    }
}

#[test]
fn a_session_that_its_server_forgot_is_not_remembered() {
    let rest = [
        tool("a", "a", r#""server": [{"result": 1}]"#),
        tool(
            "a2",
            "a",
            r#""http": {"status": 404}, "server": [{"error": {"code": -32001, "message": "gone"}}]"#,
        ),
    ];
    let mut stage = Stage::new(HTTP, &(with_id(1) + &rest.concat()));
    let id = stage.begin();
    assert_eq!(stage.post(&[&id], &call(1, "a"))[0], "2 200");
    assert_eq!(stage.post(&[&id], &call(2, "a"))[0], "3 404");
    // Not the first answer again.
    assert_eq!(stage.post(&[&id], &call(3, "a"))[0], "4 404");
}

#[test]
fn what_was_refused_without_a_session_is_no_answer_to_one() {
    let common = HTTP.replace("\"session\": 1", "\"session\": 2").replace(", \"client\": \"c\"", "");
    let refused = tool(
        "r",
        "r",
        r#""session": 2, "http": {"status": 400}, "server": [{"error": {"code": 1, "message": "no session"}}]"#,
    );
    let mut stage = Stage::new(&format!("{HTTP}, {common}"), &(with_id(1) + &refused));
    let id = stage.begin();
    assert_eq!(stage.post(&[], &call(1, "r"))[0], "2 400");
    assert_eq!(stage.post(&[&id], &call(1, "r"))[0], "3 200");
    assert_eq!(stage.report().misses.len(), 1);
}

#[test]
fn challenges_are_for_those_without_credentials_and_may_be_skipped() {
    let common = HTTP.replace("\"session\": 1", "\"session\": 2").replace(", \"client\": \"c\"", "");
    let refused = |n: u32, http: &str| {
        format!(
            r#", {{"key": "r{n}", "session": 2, "client": {{"request": {{"method": "initialize"}}}}, "http": {{{http}}}, "unanswered": "ended"}}"#
        )
    };
    let exchanges = [
        begun(1, r#""http": {"auth": true, "headers": {"mcp-session-id": "<session-1>"}},"#),
        refused(1, r#""status": 401, "headers": {"www-authenticate": "Bearer resource_metadata=\"<origin>/.well-known/x\""}"#),
        refused(2, r#""auth": true, "status": 403"#),
        r#", {"key": "doc", "session": 2, "client": {"http": "GET /.well-known/x"}, "http": {"status": 200, "headers": {"content-type": "application/json"}}, "server": [{"body": "{\"resource\":\"<origin>/mcp\"}"}]}"#.to_owned(),
    ];
    let sessions = format!("{HTTP}, {common}");
    let mut stage = Stage::new(&sessions, &exchanges.concat());
    let challenge = r#" 401 www-authenticate=Bearer resource_metadata="http://h/.well-known/x""#;
    // Whoever comes without credentials hears it, however often.
    for lane in 1..=2 {
        assert_eq!(stage.post(&[], &initialize()), [format!("{lane}{challenge}"), format!("{lane} end")]);
    }
    assert_eq!(
        stage.ask("GET", "/.well-known/x", &["accept: */*"], ""),
        ["3 200", r#"3 body {"resource":"http://h/mcp"}"#, "3 end"]
    );
    assert_eq!(stage.post(&["authorization: Bearer x"], &initialize()), ["4 403", "4 end"]);
    assert!(stage.post(&["authorization: Bearer y"], &initialize())[0].starts_with("5 200 mcp-session-id="));
    let warnings = stage.report().warnings;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].contains("at http://h/.well-known/x; `--auth skip`"), "{warnings:?}");
    stage.good();

    let options = Options { skip_auth: true, strict: true, ..Options::default() };
    let mut stage = Stage::with(&sessions, &exchanges.concat(), options);
    assert_eq!(stage.ask("GET", "/.well-known/x", &["accept: */*"], ""), ["1 404", "1 end"]);
    assert!(stage.post(&[], &initialize())[0].starts_with("2 200 mcp-session-id="));
    stage.good();
}

/// Nothing differs that a match rule could ignore: it is the credentials, and what was asked for.
#[test]
fn a_call_that_was_refused_when_recorded_says_what_its_credentials_have_to_do_with_it() {
    let said = |refused: &str, skip_auth: bool, headers: &[&str]| {
        let options = Options { skip_auth, ..Options::default() };
        let refused = tool("r @1", "r", &format!(r#""http": {{{refused}}}, "unanswered": "ended""#));
        let mut stage = Stage::with(HTTP, &(with_id(1) + &refused), options);
        let id = stage.begin();
        let headers: Vec<&str> = headers.iter().copied().chain([&*id]).collect();
        stage.post(&headers, &call(1, "r"));
        let report = stage.report();
        let [miss] = &*report.misses else { panic!("one: {:?}", report.misses) };
        assert_eq!((miss.reason, miss.nearest.as_deref()), (Reason::ParamsDiffer, Some("r @1")));
        miss.message.clone()
    };
    let skipped = said(r#""status": 401"#, true, &[]);
    assert!(skipped.contains("(`r @1`, status 401), which --auth skip leaves out"), "{skipped}");
    let with_some = said(r#""status": 401"#, false, &["authorization: Bearer x"]);
    assert!(with_some.contains("recorded without credentials") && with_some.contains("comes with some"));
    let without = said(r#""auth": true, "status": 403"#, false, &[]);
    assert!(without.contains("recorded with credentials") && without.contains("comes without"), "{without}");
}

#[test]
fn a_legacy_client_that_leaves_may_come_back_and_a_modern_one_has_cancelled() {
    let answer = r#""http": {"stream": true}, "server": [{"sse": {"id": "a"}, "notification": {"method": "n"}}, {"after_ms": 20, "sse": {"id": "b"}, "result": 1}]"#;
    let options = || Options { timing: Timing::Recorded { speed: 1.0 }, ..Options::default() };
    let mut stage = Stage::with(HTTP, &(with_id(1) + &tool("t", "t", answer)), options());
    let id = stage.begin();
    stage.post(&[&id], &call(5, "t"));
    assert_eq!(stage.leave(2), [""; 0]);
    assert_eq!(stage.get("/mcp", &[&id, "last-event-id: a"]), [OPENED.replace('N', "3")]);
    assert_eq!(stage.wait(20), [format!("3 event id=b {}", result(5, "1")), "3 end".to_owned()]);

    let params = r#"{"name":"t","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#;
    let recorded = format!(
        r#"{{"key": "t", "client": {{"request": {{"method": "tools/call", "params": {params}}}}}, {answer}}}"#
    );
    let mut stage = Stage::with(MODERN, &recorded, options());
    let headers = ["mcp-protocol-version: 2026-07-28", "mcp-method: tools/call", "mcp-name: t"];
    stage.post(&headers, &ask(5, "tools/call", params));
    assert_eq!(stage.leave(1), [""; 0]);
    assert_eq!((stage.wait(20), stage.replayer.deadline()), (Vec::new(), None));
    stage.good();
}

#[test]
fn modern_headers_are_compared_with_the_message() {
    let params = r#"{"name":"é","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#;
    let recorded = format!(
        r#"{{"key": "t", "client": {{"request": {{"method": "tools/call", "params": {params}}}}}, "server": [{{"result": 1}}]}}"#
    );
    let mut stage = Stage::new(MODERN, &recorded);
    let message = ask(5, "tools/call", params);
    let headers = ["mcp-protocol-version: 2026-07-28", "mcp-method: tools/call", "mcp-name: =?base64?w6k=?="];
    stage.post(&headers, &message);
    assert_eq!(stage.report().warnings, [""; 0]);
    // It is said, and answered all the same.
    assert_eq!(stage.post(&headers[..2], &message)[0], "2 200");
    let warnings = stage.report().warnings;
    assert!(warnings.len() == 1 && warnings[0].contains("its header mcp-name is missing"), "{warnings:?}");
}

#[test]
fn eras_are_not_translated() {
    let modern =
        ask(0, "server/discover", r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#);
    let mut stage = Stage::new(HTTP, &with_id(1));
    let heard = stage.post(&[], &modern);
    assert!(heard[0] == "1 200" && heard[1].contains("-32601"), "{heard:?}");
    let mut stage = Stage::new(MODERN, "");
    let heard = stage.post(&[], &initialize());
    assert!(heard[0] == "1 200" && heard[1].contains("-33000"), "{heard:?}");
    assert_eq!(stage.report().misses[0].reason, Reason::OtherEra);
}

#[test]
fn a_server_that_died_takes_its_own_session_with_it() {
    let second = STDIO.replace("\"session\": 1", "\"session\": 2");
    let first = STDIO.replace('}', r#", "end": {"exit": 3}}"#);
    let exchanges = [
        begun(1, ""),
        tool("a", "a", r#""server": [{"notification": {"method": "n"}}]"#),
        ",".to_owned(),
        begun(2, ""),
    ];
    let mut stage = Stage::new(&format!("{first}, {second}"), &exchanges.concat());
    let (a, b) = (stage.begin(), stage.begin());
    assert_eq!(
        stage.post(&[&a], &call(1, "a")),
        ["3 200 stream".to_owned(), format!("3 event {}", note("n")), "3 end cut".to_owned()]
    );
    assert_eq!(stage.post(&[&a], &call(2, "a"))[0], "4 404");
    assert_eq!(stage.post(&[&b], &ask(1, "ping", "{}"))[0], "5 200");
    stage.good();
}

#[test]
fn a_last_line_without_an_end_goes_before_the_cut() {
    let answer = r#"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":9}"#;
    for (last, seen) in [(answer, &*result(7, "9")), (&answer[..13], "{\"jsonrpc\":")] {
        let first = STDIO.replace('}', &format!(r#", "end": {{"exit": 3, "partial": "{last}"}}}}"#));
        let mut stage = Stage::new(&first, &[begun(1, ""), tool("a", "a", r#""server": []"#)].concat());
        let id = stage.begin();
        assert_eq!(
            stage.post(&[&id], &call(7, "a")),
            ["2 200 stream".to_owned(), format!("2 end cut data: {seen}")]
        );
        assert_eq!(stage.post(&[&id], &call(8, "a"))[0], "3 404");
        stage.good();
    }
    // A client over HTTP closes nothing, so what came once that had happened does not come; the report says so.
    let first = STDIO.replace('}', &format!(r#", "end": {{"partial": "{answer}"}}}}"#));
    let mut stage = Stage::new(&first, &[begun(1, ""), tool("a", "a", r#""unanswered": "open""#)].concat());
    let id = stage.begin();
    assert_eq!(stage.post(&[&id], &call(7, "a")), ["2 200 stream"]);
    let warnings = stage.report().warnings;
    assert!(warnings.iter().any(|text| text.contains("which has no end")), "{warnings:?}");
}

#[test]
fn redirects_and_paths_are_those_of_the_recording() {
    let exchanges = [
        with_id(1),
        tool(
            "a",
            "a",
            r#""http": {"status": 307, "headers": {"location": "<origin>/mcp/"}}, "unanswered": "ended""#,
        ),
        tool("b", "a", r#""http": {"path": "/mcp/"}, "server": [{"result": 1}]"#),
    ];
    let mut stage = Stage::new(HTTP, &exchanges.concat());
    let id = stage.begin();
    assert_eq!(stage.post(&[&id], &call(1, "a")), ["2 307 location=http://h/mcp/", "2 end"]);
    let accept = "accept: application/json, text/event-stream";
    assert_eq!(stage.ask("POST", "/mcp/", &[&id, accept], &call(1, "a"))[0], "3 200");
    stage.good();
}
