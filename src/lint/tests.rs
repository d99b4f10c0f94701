//! Each rule: a session that breaks it and no other, and sessions that look like it and break none.

use std::collections::BTreeSet;

use super::{Finding, RULES, lint};
use crate::cassette::{blob::NoBlobs, model::Cassette};

/// A session that agreed on 2025-11-25, with tools and nothing else.
const BEGIN: &str = r#"
  {"key": "initialize @1", "client": {"request": {"method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {"roots": {}}}}},
   "server": [{"result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}}]},
  {"key": "initialized", "client": {"notification": {"method": "notifications/initialized"}}}"#;

/// The same over HTTP, with an id for the session.
const BEGIN_HTTP: &str = r#"
  {"key": "initialize @1", "client": {"request": {"method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}}}},
   "http": {"headers": {"mcp-session-id": "<session-1>"}},
   "server": [{"result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}}]},
  {"key": "initialized", "client": {"notification": {"method": "notifications/initialized"}}}"#;

const STDIO: &str = r#"{"session": 1, "transport": "stdio"}"#;
/// Over HTTP what names no session stands in one of its own.
const HTTP: &str = r#"{"session": 1, "transport": "http", "path": "/mcp", "protocol": "2025-11-25"},
  {"session": 2, "transport": "http", "path": "/mcp"}"#;

const TOOLS: &str = r#"{"key": "tools/list @1", "client": {"request": {"method": "tools/list"}},
  "server": [{"result": {"tools": [{"name": "search"}, {"name": "sum",
    "outputSchema": {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}}]}}]}"#;

fn text(sessions: &str, exchanges: &[&str]) -> String {
    let exchanges = exchanges.join(",\n");
    format!("{{\"cassette\": 1, \"sessions\": [{sessions}], \"exchanges\": [{exchanges}]}}")
}

fn findings(text: &str) -> Vec<Finding> {
    let cassette =
        Cassette::load(text.as_bytes().to_vec(), &NoBlobs).unwrap_or_else(|error| panic!("{error}\n{text}"));
    lint(&cassette, &NoBlobs)
}

/// A request for a tool that asks for progress, and these items.
fn call(name: &str, items: &str) -> String {
    format!(
        r#"{{"key": "call", "client": {{"request": {{"method": "tools/call",
          "params": {{"name": "{name}", "_meta": {{"progressToken": 1}}}}}}}}, "server": [{items}]}}"#
    )
}

/// A request of 2026-07-28, and these items.
fn modern(method: &str, more: &str, items: &str) -> String {
    format!(
        r#"{{"key": "modern {method}", {more} "client": {{"request": {{"method": "{method}", "params": {{
          "_meta": {{"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}}}}}}}, "server": [{items}]}}"#
    )
}

fn progress(token: &str, progress: &str, more: &str) -> String {
    format!(
        r#"{{{more} "notification": {{"method": "notifications/progress",
          "params": {{"progressToken": {token}, "progress": {progress}}}}}}}"#
    )
}

const DONE: &str = r#"{"result": {"content": []}}"#;
const PING: &str =
    r#"{"key": "ping", "client": {"request": {"method": "ping"}}, "server": [{"result": {}}]}"#;
const LIST: &str = r#"{"key": "list", "client": {"request": {"method": "tools/list"}}, "server": [{"result": {"tools": []}}]}"#;

/// A request with this method and these items.
fn request(method: &str, items: &str) -> String {
    format!(r#"{{"key": "it", "client": {{"request": {{"method": "{method}"}}}}, "server": [{items}]}}"#)
}

const REFUSED: &str = r#"{"error": {"code": -32601, "message": "no such method"}}"#;

/// Sessions that break one rule once: the rule, the session, and the text at the finding's place.
fn broken() -> Vec<(&'static str, String, &'static str)> {
    let stdio = |exchanges: &[&str]| text(STDIO, exchanges);
    let begun = |exchange: &str| text(STDIO, &[BEGIN, exchange]);
    let http = |exchanges: &[&str]| text(HTTP, &[&[BEGIN_HTTP], exchanges].concat());
    let second = BEGIN.replace("\"initialize @1\"", "\"again\"").replace("\"initialized\"", "\"b\"");
    let second = second.split("\n  {\"key\": \"b\"").next().unwrap().trim_end_matches(',');
    let early = r#"
      {"key": "initialize @1", "client": {"request": {"method": "initialize", "params": {"protocolVersion": "2025-11-25"}}},
       "server": [{"after": "list", "result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}}]},
      {"key": "list", "after": "initialize @1", "client": {"request": {"method": "tools/list"}}, "server": [{"result": {}}]},
      {"key": "initialized", "client": {"notification": {"method": "notifications/initialized"}}}"#;
    let one_of = |session: &str, exchange: &str| {
        exchange.replacen("\"key\"", &format!("\"session\": {session}, \"key\""), 1)
    };
    let with_http = |http: &str| LIST.replacen("\"server\"", &format!("\"http\": {http}, \"server\""), 1);
    let raw_batch = r#"{"key": "batch", "client": {"batch": [{"request": {"id": 7, "method": "tools/list"}}]},
      "server": [{"batch": [{"to": 1, "id": 7, "result": {}}]}]}"#;
    vec![
        ("handshake-first", stdio(&[LIST]), "\"tools/list\""),
        ("handshake-first", stdio(&[PING, LIST, BEGIN]), "\"tools/list\""),
        ("handshake-early", stdio(&[early]), "\"tools/list\""),
        ("handshake-early", stdio(&[&early.split(",\n      {\"key\": \"list\"").next().unwrap().replace("\"list\"", "\"initialized\""),
            r#"{"key": "initialized", "after": "initialize @1", "client": {"notification": {"method": "notifications/initialized"}}}"#]), "\"notifications/initialized\""),
        ("handshake-initialized", stdio(&[BEGIN.split(",\n  {\"key\": \"initialized\"").next().unwrap(), PING, LIST]), "\"tools/list\""),
        ("handshake-initialized", stdio(&[
            r#"{"key": "initialized", "client": {"notification": {"method": "notifications/initialized"}}}"#,
            BEGIN.split(",\n  {\"key\": \"initialized\"").next().unwrap(), LIST]), "\"notifications/initialized\""),
        ("handshake-twice", begun(second), "\"initialize\""),
        ("version", stdio(&[&BEGIN.replace(r#"[{"result": {"protocolVersion": "2025-11-25""#, r#"[{"result": {"protocolVersion": "2025-11-24""#)]), "\"2025-11-24\""),
        ("version", stdio(&[&BEGIN.replace("2025-11-25", "1999-01-01")]), "\"1999-01-01\", \"capabilities\": {\"tools"),
        ("version", stdio(&[&BEGIN.replace(r#"[{"result": {"protocolVersion": "2025-11-25""#, r#"[{"result": {"protocolVersion": "2026-07-28""#)]), "\"2026-07-28\""),
        ("version", stdio(&[&BEGIN.replace(r#"[{"result": {"protocolVersion": "2025-11-25", "#, r#"[{"result": {"#)]), "{\"capabilities\""),
        ("version", text(&STDIO.replace('}', ", \"protocol\": \"2025-06-18\"}"), &[BEGIN]), "{\"session\""),
        ("version-header", http(&[&with_http(r#"{"request": {"mcp-protocol-version": []}}"#)]), "{\"request\": {\"mcp-"),
        ("version-header", http(&[&with_http(r#"{"request": {"mcp-protocol-version": "2025-03-26"}}"#)]), "{\"request\": {\"mcp-"),
        ("version-header", http(&[r#"{"key": "get", "client": {"http": "GET /mcp"}, "http": {"request": {"mcp-protocol-version": "2025-03-26"}}}"#]), "{\"request\": {\"mcp-"),
        ("session-header", http(&[&one_of("2", LIST)]), "\"tools/list\""),
        ("session-header", http(&[r#"{"key": "get", "session": 2, "client": {"http": "GET /mcp"}, "http": {"status": 400}}"#]), "\"GET /mcp\""),
        ("method-header", http(&[&modern("tools/list", r#""session": 2, "http": {"request": {"mcp-method": "tools/call"}},"#, r#"{"result": {"resultType": "complete"}}"#)]), "{\"request\": {\"mcp-"),
        ("method-header", http(&[&modern("tools/list", r#""session": 2, "http": {"request": {"mcp-method": []}},"#, r#"{"result": {"resultType": "complete"}}"#)]), "{\"request\": {\"mcp-"),
        ("tool-as-method", text(STDIO, &[BEGIN, TOOLS, &request("search", REFUSED)]), "\"search\""),
        ("unknown-method", begun(&request("tool/list", REFUSED)), "\"tool/list\""),
        ("unknown-method", begun(r#"{"key": "n", "client": {"notification": {"method": "notification/cancelled"}}}"#), "\"notification/cancelled\""),
        ("foreign-method", begun(&request("notifications/initialized", REFUSED)), "\"notifications/initialized\""),
        ("foreign-method", begun(&request("roots/list", REFUSED)), "\"roots/list\""),
        ("foreign-method", begun(r#"{"key": "n", "client": {"notification": {"method": "tools/list"}}}"#), "\"tools/list\""),
        ("foreign-method", stdio(&[&BEGIN.replace("2025-11-25", "2025-06-18").replace("\"tools\"", "\"tasks\""), &request("tasks/list", DONE)]), "\"tasks/list\""),
        ("foreign-method", stdio(&[&modern("ping", "", r#"{"result": {"resultType": "complete"}}"#)]), "\"ping\""),
        ("era", begun(&modern("tools/list", "", r#"{"result": {"resultType": "complete"}}"#)), "\"tools/list\""),
        ("era", stdio(&[&modern("tools/list", "", r#"{"result": {"resultType": "complete"}}"#), LIST]), "\"tools/list\"}"),
        ("era", stdio(&[&modern("tools/call", "", r#"{"request": {"method": "ping"}}, {"result": {"resultType": "complete"}}"#)]), "\"ping\""),
        ("era", stdio(&[&modern("tools/list", "", r#"{"result": {"resultType": "complete"}}"#), BEGIN]), "\"initialize\""),
        ("batch", begun(&raw_batch.replace("\"batch\": [{\"to\": 1, \"id\": 7, \"result\": {}}]", "\"id\": 7, \"result\": {}")), "[{\"request\""),
        ("batch", stdio(&[r#"{"key": "b", "client": {"batch": [{"request": {"id": 7, "method": "initialize"}}]}, "unanswered": "open"}"#]), "[{\"request\""),
        ("reused-id", begun(&LIST.replace("{\"method\"", "{\"id\": 0, \"method\"")), "0, \"method\""),
        ("response-id", begun(&LIST.replace("[{\"result\"", "[{\"id\": \"1\", \"result\"")), "{\"tools\": []}"),
        ("response-id", begun(&LIST.replace("[{\"result\"", "[{\"id\": 1.0, \"result\"")), "{\"tools\": []}"),
        ("progress-token", begun(&call("search", &[&progress("2", "1", ""), DONE].join(","))), "2, \"progress\""),
        ("progress-token", begun(&call("search", &[&progress("\"1\"", "1", ""), DONE].join(","))), "\"1\", \"progress\""),
        ("progress-order", begun(&call("search", &[&progress("1", "1", ""), &progress("1", "1.0", ""), DONE].join(","))), "1.0}"),
        ("progress-late", begun(&call("search", &[DONE, &progress("1", "1", "")].join(","))), "{\"method\": \"notifications/progress\""),
        ("response-form", begun(&LIST.replace("{\"tools\": []}", "[]")), "[]"),
        ("response-form", begun(&LIST.replace(r#"{"result": {"tools": []}}"#, r#"{"raw": "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{},\"error\":{\"code\":1,\"message\":\"\"}}"}"#)), "\"{\\\"jsonrpc"),
        ("response-form", begun(&call("search", &[r#"{"raw": "{\"jsonrpc\":\"2.0\",\"id\":1}"}"#, DONE].join(","))), "\"{\\\"jsonrpc"),
        ("response-once", begun(&call("search", &[DONE, r#"{"result": {"content": [1]}}"#].join(","))), "{\"content\": [1]"),
        ("error-form", begun(&call("search", r#"{"error": {"code": "1", "message": "m"}}"#)), "\"1\", \"message\""),
        ("error-form", begun(&call("search", r#"{"error": {"code": 1.5, "message": "m"}}"#)), "1.5"),
        ("error-form", begun(&call("search", r#"{"error": {"code": 1}}"#)), "{\"code\": 1}"),
        ("is-error", begun(&call("search", r#"{"result": {"content": [], "isError": "true"}}"#)), "\"true\""),
        ("result-type", stdio(&[&modern("tools/list", "", r#"{"result": {"tools": []}}"#)]), "{\"tools\""),
        ("output-schema", stdio(&[BEGIN, TOOLS, &call("sum", r#"{"result": {"structuredContent": {"n": "7"}}}"#)]), "\"7\""),
        ("output-schema", stdio(&[BEGIN, TOOLS, &call("sum", DONE)]), "{\"content\""),
        ("client-capability", begun(&call("search", &[r#"{"request": {"method": "sampling/createMessage"}, "answer": {"result": {}}}"#, DONE].join(","))), "\"sampling/createMessage\""),
        ("server-capability", begun(&request("prompts/list", DONE)), "\"prompts/list\""),
        ("server-capability", stdio(&[&BEGIN.replace("\"tools\"", "\"resources\""), &request("resources/subscribe", DONE)]), "\"resources/subscribe\""),
    ]
}

#[test]
fn each_rule_finds_what_breaks_it_and_where() {
    let mut rules = BTreeSet::new();
    for (rule, text, at) in broken() {
        let found = findings(&text);
        let names: Vec<&str> = found.iter().map(|finding| finding.rule).collect();
        assert_eq!(names, [rule], "{found:#?}\n{text}");
        let here = &text[found[0].at..];
        assert!(here.starts_with(at), "{rule}: {}\n{text}", here.chars().take(60).collect::<String>());
        rules.insert(rule);
    }
    let all: BTreeSet<&str> = RULES.iter().map(|rule| rule.id).collect();
    assert_eq!(rules, all);
}

#[test]
fn what_a_gap_may_have_taken_is_no_fault_of_what_is_left() {
    for (rule, text, _) in broken() {
        let gap = text.replace(r#"{"session": 1, "transport""#, r#"{"session": 1, "gap": 1, "transport""#);
        assert_ne!(gap, text);
        let is_across = RULES.iter().any(|known| known.id == rule && known.is_across);
        let found = findings(&gap);
        let all = || found.iter().map(|finding| finding.rule).collect::<Vec<_>>();
        // Of which revision the session is, is known by its handshake alone.
        match rule {
            "foreign-method" => {}
            _ => assert_eq!(all().contains(&rule), !is_across, "{rule}: {:?}", all()),
        }
        assert!(found.iter().all(|finding| finding.rule == rule), "{rule}: {:?}", all());
    }
}

/// What looks like a fault and is none.
#[test]
fn what_may_be_is_no_finding() {
    let stdio = |exchanges: &[&str]| text(STDIO, exchanges);
    let begun = |exchange: &str| text(STDIO, &[BEGIN, exchange]);
    let http = |exchanges: &[&str]| text(HTTP, &[&[BEGIN_HTTP], exchanges].concat());
    let probe = modern("server/discover", "", REFUSED);
    let complete = r#"{"result": {"resultType": "complete"}}"#;
    for (what, text) in [
        ("a probe and pings before the handshake", stdio(&[&probe, PING, BEGIN, LIST])),
        (
            "a session of 2026-07-28",
            stdio(&[&modern("server/discover", "", complete), &modern("tools/call", "", complete)]),
        ),
        ("a session that lacks its beginning", text(&STDIO.replace('}', ", \"gap\": 1}"), &[LIST])),
        (
            "an initialize that was refused, and another",
            stdio(&[
                r#"{"key": "refused", "client": {"request": {"method": "initialize", "params": {"protocolVersion": "1"}}},
               "server": [{"error": {"code": -32602, "message": "m"}}]}"#,
                BEGIN,
                LIST,
            ]),
        ),
        (
            "a client that leaves after the handshake",
            stdio(&[BEGIN.split(",\n  {\"key\": \"initialized\"").next().unwrap(), PING]),
        ),
        ("a revision that came later", stdio(&[&BEGIN.replace("2025-11-25", "2099-01-01"), LIST])),
        ("a revision that both want", stdio(&[&BEGIN.replace("2025-11-25", "DRAFT-1")])),
        ("an extension that both know", begun(&request("x/own", DONE))),
        (
            "a method to which the recorder had no answer",
            begun(&request(
                "x/own",
                r#"{"error": {"code": -33001, "message": "m", "data": {"source": "tapedeck", "status": 502}}}"#,
            )),
        ),
        (
            "a notification of nobody else's",
            begun(r#"{"key": "n", "client": {"notification": {"method": "x/own"}}}"#),
        ),
        (
            "challenges",
            http(&[r#"{"key": "a", "session": 2, "client": {"request": {"method": "tools/list"}},
           "http": {"status": 401}, "unanswered": "ended"}"#]),
        ),
        (
            "messages of 2026-07-28 beside a session over HTTP",
            http(&[&modern("tools/list", "\"session\": 2,", complete)]),
        ),
        (
            "headers that say what the message says",
            http(&[&modern(
                "tools/list",
                r#""session": 2, "http": {"request":
           {"mcp-method": "=?base64?dG9vbHMvbGlzdA==?=", "mcp-protocol-version": "2026-07-28"}},"#,
                complete,
            )]),
        ),
        (
            "a second session over HTTP",
            text(
                &HTTP.replace("{\"session\": 2", "{\"session\": 2, \"protocol\": \"2025-11-25\""),
                &[
                    BEGIN_HTTP,
                    &BEGIN_HTTP
                        .replace("\"key\": \"init", "\"session\": 2, \"key\": \"b init")
                        .replace("<session-1>", "<session-2>"),
                    &LIST.replace("\"key\"", "\"session\": 2, \"key\""),
                ],
            ),
        ),
        (
            "batches of 2025-03-26",
            stdio(&[
                &BEGIN.replace("2025-11-25", "2025-03-26"),
                r#"{"key": "b", "client": {"batch": [{"request": {"id": 7, "method": "tools/list"}}]},
               "server": [{"batch": [{"to": 1, "id": 7, "result": {}}]}]}"#,
            ]),
        ),
        (
            "an id of each side",
            begun(&call(
                "search",
                &[r#"{"request": {"id": 0, "method": "roots/list"}, "answer": {"result": {}}}"#, DONE]
                    .join(","),
            )),
        ),
        (
            "what a server says to an answer",
            http(&[&call(
                "search",
                &[
                    r#"{"request": {"id": 0, "method": "ping"}, "answer": {"http": {"status": 400}, "result": {}}}"#,
                    r#"{"on": "post", "id": null, "error": {"code": 1, "message": "m"}}"#,
                    DONE,
                ]
                .join(","),
            )]),
        ),
        (
            "an id that is free again",
            stdio(&[
                &modern("tools/list", "", complete),
                &modern("tools/call", "", complete).replace("{\"method\"", "{\"id\": 0, \"method\""),
            ]),
        ),
        (
            "an error before the id was read",
            begun(&LIST.replace(
                "{\"result\": {\"tools\": []}}",
                r#"{"no_id": true, "error": {"code": -32600, "message": "m"}}"#,
            )),
        ),
        (
            "progress that grows",
            begun(&call("search", &[&progress("1", "0", ""), &progress("1", "0.5", ""), DONE].join(","))),
        ),
        (
            "progress that is told again elsewhere",
            http(&[&call(
                "search",
                &[&progress("1", "2", ""), DONE, &progress("1", "1", "\"on\": \"get\",")].join(","),
            )]),
        ),
        (
            "progress of a task",
            begun(&call(
                "search",
                &[r#"{"result": {"task": {"taskId": "t"}}}"#, &progress("1", "1", "")].join(","),
            )),
        ),
        (
            "content that fits",
            stdio(&[BEGIN, TOOLS, &call("sum", r#"{"result": {"structuredContent": {"n": 7}}}"#)]),
        ),
        (
            "a tool that failed",
            stdio(&[BEGIN, TOOLS, &call("sum", r#"{"result": {"content": [], "isError": true}}"#)]),
        ),
        (
            "a line that is no message",
            begun(r#"{"key": "raw", "server": [{"raw": "starting"}, {"raw": "{\"id\":1}"}]}"#),
        ),
        (
            "what the client declared",
            begun(
                r#"{"key": "push", "server": [{"request": {"method": "roots/list"}, "answer": {"result": {}}}]}"#,
            ),
        ),
        (
            "what completion was at first",
            stdio(&[&BEGIN.replace("2025-11-25", "2024-11-05"), &request("completion/complete", DONE)]),
        ),
    ] {
        assert_eq!(findings(&text), [], "{what}\n{text}");
    }
}

/// It is told once for each tool, and is no finding.
#[test]
fn what_a_schema_asks_and_nobody_looks_at_is_noted() {
    let tools = TOOLS.replace("\"required\"", "\"if\": {}, \"required\"");
    let sum = call("sum", r#"{"result": {"structuredContent": {"n": 7}}}"#);
    let found = findings(&text(STDIO, &[BEGIN, &tools, &sum, &sum.replace("\"call\"", "\"b\"")]));
    assert_eq!(found.len(), 1);
    assert!(found[0].is_note);
    assert_eq!(found[0].text, "the `outputSchema` of `sum` has `if`, by which nothing is judged here");
}

#[test]
fn an_answer_that_stands_elsewhere_is_found_at_its_own_place() {
    let wrong = r#"{"result": {"content": [], "isError": 1}}"#;
    let again = request("tools/call", r#"{"same_as": "call"}"#);
    let text = text(STDIO, &[BEGIN, &call("search", wrong), &again]);
    let found = findings(&text);
    assert_eq!(found.len(), 2);
    assert!(text[found[0].at..].starts_with("1}"));
    assert!(text[found[1].at..].starts_with("{\"same_as\""));
    assert_eq!(&*found[1].key, "it");
}

/// The page of the format lists the rules.
#[test]
fn the_rules_stand_in_the_page_of_the_format() {
    let page = include_str!("../../cassettes/README.md");
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |"));
    let rows: Vec<String> = rows.map(|row| row.replacen('`', "", 1)).collect();
    for rule in RULES {
        let (revision, path) = rule.source.split_once('/').unwrap();
        let row = format!("{} | {} | {revision} {path}", rule.id, rule.says);
        assert!(
            rows.contains(&row),
            "cassettes/README.md lacks: | `{}` | {} | {revision} {path} |",
            rule.id,
            rule.says
        );
    }
}

/// A number that got a fraction is a finding.
#[test]
fn an_id_that_is_a_text_may_be_spelled_in_any_way() {
    let asked = LIST.replace("{\"method\"", r#"{"id": "a/\u00e9", "method""#);
    let cassette = text(STDIO, &[BEGIN, &asked.replace("[{\"result\"", r#"[{"id": "a\/é", "result""#)]);
    assert!(findings(&cassette).is_empty(), "{:?}", findings(&cassette));
}
