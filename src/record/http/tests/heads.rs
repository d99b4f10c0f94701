//! What is written of heads, and texts that are no messages.

use super::*;

#[test]
fn only_what_is_not_as_usual_is_told_of_heads() {
    check_in_session(
        &[
            "1 > POST /mcp @S",
            r#"1 > {"jsonrpc":"2.0","method":"a"}"#,
            "1 < 202 date=x content-length=0",
            "1 < .",
            "2 > POST /other @S accept=*/* x-api-key=1 last-event-id=7",
            r#"2 > {"jsonrpc":"2.0","method":"b"}"#,
            "2 < 204",
            "2 < .",
            "3 > POST /mcp mcp-session-id=S",
            r#"3 > {"jsonrpc":"2.0","id":1,"method":"c"}"#,
            "3 < 200 x-one=a x-one= x-id=S",
            r#"3 < {"jsonrpc":"2.0","id":1,"result":{}}"#,
            "3 < .",
            "4 > OPTIONS /mcp",
            "4 < 202",
            "4 < .",
            "5 > POST /mcp @S",
            "5 > body a=1",
            "5 < 200 content-type=text/html",
            "5 < body <p>\\n</p>",
            "5 < .",
        ],
        &[
            "1 a @1",
            r#"1 b @1 {"path": "/other", "request": {"last-event-id": "7", "accept": "*/*"}, "auth": true, "status": 204}"#,
            r#"1 c @1 {"request": {"mcp-protocol-version": []}, "headers": {"content-type": [], "x-one": ["a", ""], "x-id": "<session-1>"}} | result"#,
            r#"1 http POST /mcp @1 {"status": 200, "headers": {"content-type": "text/html"}} | body {"$lines": ["<p>", "</p>"]}"#,
            "2 http OPTIONS /mcp @1",
        ],
    );
}

#[test]
fn texts_of_several_lines_come_back() {
    let pretty = r#"{\n  "jsonrpc": "2.0",\n  "id": 1,\n  "result": {}\n}"#;
    for body in
        [pretty.to_owned(), format!("{pretty}\\n"), r#"{"jsonrpc":"2.0",\n"id":1,"result":{}}"#.to_owned()]
    {
        let answer = format!("1 < {body}");
        check_in_session(
            &[
                "1 > POST /mcp @S",
                r#"1 > {"jsonrpc":"2.0","id":1,"method":"a"}"#,
                "1 < 200 content-type=application/json",
                &answer,
                "1 < .",
            ],
            &["1 a @1 | raw"],
        );
    }
    let (text, cassette, blobs) = record(&[
        "1 > POST /mcp".to_owned(),
        r#"1 > {"jsonrpc":"2.0","id":1,"method":"a"}"#.to_owned(),
        "1 < 200 content-type=application/json".to_owned(),
        format!("1 < {pretty}"),
    ]);
    assert!(
        text.contains(r#""raw": {"$json": {"jsonrpc": "2.0", "id": 1, "result": {}}, "$indent": 2}"#),
        "{text}"
    );
    // The id can be another one.
    let mut wire = Vec::new();
    let message = &cassette.exchanges[0].server[0].message;
    cassette.wire(0, false, message, Some(b"\"x\""), &blobs, &mut wire).unwrap();
    assert_eq!(jsonrpc::Message::read(&wire).id(), Some(&b"\"x\""[..]));
}

#[test]
fn hostile_heads_are_written_as_what_loads() {
    let lines =
        ["1 > G\u{e9}T /a\u{7f}b\u{1}", "1 < 999 x\u{1}=a y=\u{1}\u{7f} z=a\rb", "1 < ."].map(str::to_owned);
    let (text, cassette, _) = record(&lines);
    assert_eq!(cassette.exchanges.len(), 1, "{text}");
    assert!(text.contains(r#""status": 999"#) && !text.contains("\"x"), "{text}");
}

#[test]
fn headers_of_2026_07_28_are_told_where_they_do_not_say_what_the_message_says() {
    let call = r#"1 > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\u00e9","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
    for (headers, told) in [
        ("mcp-method=tools/call mcp-name==?base64?w6k=?=", ""),
        ("mcp-method=tools/list mcp-name==?base64?w6k=?=", r#"{"request": {"mcp-method": "tools/list"}} "#),
        (
            "mcp-method=tools/call mcp-method=x",
            r#"{"request": {"mcp-method": ["tools/call", "x"], "mcp-name": []}} "#,
        ),
    ] {
        let post = format!("1 > POST /mcp mcp-protocol-version=2026-07-28 {headers}");
        let answer = r#"1 < {"jsonrpc":"2.0","id":1,"result":{}}"#;
        let lines = [&*post, call, "1 < 200 content-type=application/json", answer, "1 > ."];
        check(&lines, &[&format!(r#"1 tools/call "é" @1 {told}| result"#)]);
    }
}

#[test]
fn every_method_is_recorded_whole() {
    // All signs of a token (RFC 9110, 5.6.2).
    let signs = "X!#$%&'*+-.^_`|~9";
    let lines =
        ["bReW", signs, "X"].map(|method| [format!("1 > {method} /mcp"), "1 < 204".into(), "1 < .".into()]);
    let (shown, cassette, _) = record(&lines.concat());
    let keys: Vec<&str> = cassette.exchanges.iter().map(|exchange| &*exchange.key).collect();
    let expected =
        ["http bReW /mcp @1".to_owned(), format!("http \"{signs}\" /mcp @1"), "http X /mcp @1".to_owned()];
    assert_eq!(keys, expected, "{shown}");
    assert!(shown.contains(&format!(r#""client": {{"http": "{signs} /mcp"}}"#)), "{shown}");
    // A journal may be damaged.
    assert_eq!(["G T", "\n", ""].map(|text| super::super::heads::method(text.as_bytes())), ["GT", "-", "-"]);
}
