//! Which session a request belongs to.

use super::*;

#[test]
fn sessions_are_told_apart_by_what_their_server_calls_them() {
    let (a, b) = (begun(1, "A"), begun(2, "B"));
    let ping = request(1, "ping");
    let mut lines: Vec<String> = [a, b].concat();
    for (lane, id) in [(3, "B"), (4, "A"), (5, "C")] {
        lines.push(format!("{lane} > POST /mcp mcp-session-id={id} mcp-protocol-version=2025-06-18"));
        lines.push(format!("{lane} > {ping}"));
    }
    // Equal ids, answered the other way round: each finds its own.
    for lane in [4, 3, 5] {
        let status = if lane == 5 { 404 } else { 200 };
        lines.push(format!("{lane} < {status} content-type=application/json"));
        lines.push(format!(r#"{lane} < {{"jsonrpc":"2.0","id":1,"result":{{"lane":{lane}}}}}"#));
        lines.push(format!("{lane} < ."));
    }
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    check(
        &lines,
        &[
            r#"1 initialize @1 {"headers": {"mcp-session-id": "<session-1>"}} | result"#,
            "1 ping @1 | result",
            r#"2 initialize @2 {"headers": {"mcp-session-id": "<session-2>"}} | result"#,
            "2 ping @2 | result",
            r#"3 ping @3 {"request": {"mcp-protocol-version": "2025-06-18"}, "status": 404} | result"#,
        ],
    );
    let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
    let (text, cassette, _) = record(&lines);
    assert!(!text.contains("\"A\"") && !text.contains("\"B\""), "{text}");
    let facts: Vec<_> = cassette
        .sessions
        .iter()
        .map(|session| {
            [&session.transport, &session.path, &session.protocol, &session.client, &session.server]
                .map(|fact| fact.clone().unwrap_or_default())
        })
        .collect();
    assert_eq!(facts[0], ["http", "/mcp", "2025-06-18", "c", "s 1"]);
    assert_eq!(facts[1], facts[0]);
    assert_eq!(facts[2], ["http", "/mcp", "", "", ""]);
}

#[test]
fn without_ids_requests_join_the_last_session_that_has_none() {
    let mut lines = begun(1, "");
    for line in [
        "2 > POST /mcp mcp-protocol-version=2025-06-18",
        r#"2 > {"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        "2 < 202",
        "2 < .",
        "3 > GET /mcp",
        "3 < 405",
        "3 < .",
        "4 > GET /.well-known/oauth-protected-resource",
        "4 < 404",
        "4 < .",
    ] {
        lines.push(line.to_owned());
    }
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    check(
        &lines,
        &[
            "1 initialize @1 | result",
            "1 notifications/initialized @1",
            r#"1 http GET /mcp @1 {"status": 405}"#,
            r#"2 http GET /.well-known/oauth-protected-resource @1 {"status": 404}"#,
        ],
    );
}

#[test]
fn what_fails_to_begin_a_session_stays_with_what_has_none() {
    let initialize = format!("1 > {INITIALIZE}");
    let second = initialize.replace("1 >", "3 >");
    let mut lines = vec![
        "1 > POST /mcp",
        &initialize,
        "1 < 401 www-authenticate=Bearer content-type=text/plain",
        "1 < body no",
        "1 < .",
        "2 > GET /.well-known/x",
        "2 < 200 content-type=text/plain",
        "2 < body y",
        "2 < .",
        "3 > POST /mcp authorization=x",
        &second,
        "3 < 200 content-type=application/json",
        r#"3 < {"jsonrpc":"2.0","id":0,"error":{"code":-32602,"message":"no"}}"#,
        "3 < .",
    ];
    let begun = begun(4, "A");
    lines.extend(begun.iter().map(String::as_str));
    check(
        &lines,
        &[
            r#"1 initialize @1 {"status": 401, "headers": {"www-authenticate": "Bearer", "content-type": "text/plain"}} | body "no" ! ended"#,
            r#"1 http GET /.well-known/x @1 {"status": 200, "headers": {"content-type": "text/plain"}} | body "y""#,
            r#"1 initialize @2 {"auth": true} | error"#,
            r#"2 initialize @3 {"headers": {"mcp-session-id": "<session-2>"}} | result"#,
        ],
    );
}

#[test]
fn modern_requests_share_the_session_without_a_beginning() {
    let modern = |id: u32| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/list","params":{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{{"name":"m"}}}}}}}}"#
        )
    };
    let lines = [
        "1 > POST /mcp mcp-protocol-version=2026-07-28 mcp-method=tools/list".to_owned(),
        format!("1 > {}", modern(1)),
        "2 > POST /mcp mcp-protocol-version=2026-07-28 mcp-method=tools/list".to_owned(),
        format!("2 > {}", modern(1)),
        // One client leaves, and thereby cancels (F10.10).
        "1 > .".to_owned(),
        "2 < 200 content-type=text/event-stream".to_owned(),
        r#"2 < event |{"jsonrpc":"2.0","id":1,"result":{}}"#.to_owned(),
        "2 > .".to_owned(),
    ];
    let (_, cassette, _) = record(&lines);
    assert_eq!(cassette.sessions[0].protocol.as_deref(), Some("2026-07-28"));
    assert_eq!(cassette.sessions[0].client.as_deref(), Some("m"));
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    check(&lines, &["1 tools/list @1 ! cancelled", r#"1 tools/list @2 {"stream": true} | result"#]);
}

#[test]
fn an_endpoint_event_begins_a_session() {
    let initialize = format!("2 > {INITIALIZE}");
    let initialized = format!("1 < event |{INITIALIZED}");
    let lines = [
        "1 > GET /sse?k=1 accept=text/event-stream",
        "1 < 200 content-type=text/event-stream",
        "1 < event event=endpoint|<origin>/base/messages/?session_id=ab%2F1&x=1",
        "2 > POST /base/messages/?session_id=ab%2F1&x=1",
        &initialize,
        &initialized,
        "2 < 202 content-type=text/plain",
        "2 < body Accepted",
        "2 < .",
        "3 > POST /base/messages/?session_id=ab%2F1&x=1",
        r#"3 > {"jsonrpc":"2.0","id":1,"method":"a"}"#,
        "3 < 200 content-type=application/json",
        r#"3 < {"jsonrpc":"2.0","id":1,"result":{}}"#,
        "3 < .",
        r#"1 < event |{"jsonrpc":"2.0","method":"n"}"#,
        "4 > POST /base/messages/?session_id=other&x=1",
        r#"4 > {"jsonrpc":"2.0","id":1,"method":"a"}"#,
        "4 < 404",
        "4 < .",
        "5 > POST /base/messages/?session_id=ab%2F1&x=1",
        r#"5 > {"jsonrpc":"2.0","id":2,"method":"a"}"#,
        "1 < .",
    ];
    check(
        &lines,
        &[
            r#"1 http GET /sse @1 {"status": 200, "stream": true} | body "<origin>/base/messages/?session_id=<session-1>&x=1""#,
            r#"1 initialize @1 {"status": 202, "headers": {"content-type": "text/plain"}} | result | post body "Accepted""#,
            "1 a @1 | post result",
            "1 push n @1 | notification",
            "1 a @2 ! ended",
            r#"2 a @3 {"status": 404} ! ended"#,
        ],
    );
    let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
    let (_, cassette, _) = record(&lines);
    let session = &cassette.sessions[0];
    let facts = [&session.transport, &session.path, &session.protocol, &session.server];
    assert_eq!(facts.map(|fact| fact.as_deref().unwrap_or("")), ["sse", "/sse?k=1", "2025-06-18", "s 1"]);
}
