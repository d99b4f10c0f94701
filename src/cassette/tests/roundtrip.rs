//! What is recorded comes back.

use super::{super::*, *};

#[track_caller]
fn check(exchanges: &[Lines]) -> String {
    check_spelled(&Spelling::default(), exchanges)
}

#[track_caller]
fn check_spelled(spelling: &Spelling, exchanges: &[Lines]) -> String {
    let (text, blobs) = print(spelling, exchanges);
    let cassette =
        Cassette::load(text.clone().into_bytes(), &blobs).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let show = |line: &[u8]| String::from_utf8_lossy(line).into_owned();
    for (found, expected) in lines(&cassette, &blobs).iter().zip(exchanges) {
        assert_eq!(found.client.as_deref().map(show), expected.client.as_deref().map(show), "{text}");
        for (found, expected) in found.server.iter().zip(&expected.server) {
            assert_eq!(show(&found.0), show(&expected.0), "{text}");
            assert_eq!(found.1.as_deref().map(show), expected.1.as_deref().map(show), "{text}");
        }
    }
    assert_eq!(String::from_utf8(format(&cassette)).unwrap(), text, "a recording is formatted already");
    text
}

#[test]
fn an_ordinary_call() {
    let text = check(&[
        Lines::new(
            r#"{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"name":"report","arguments":{"days":7}}}"#,
            &[
                r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}"#,
                r##"{"jsonrpc":"2.0","id":0,"result":{"content":[{"type":"text","text":"# Report\n\nall well"}]}}"##,
            ],
        ),
        Lines::new(
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            &[r#"{"jsonrpc":"2.0","id":1,"result":{}}"#],
        ),
    ]);
    let expected = r##"{
  "cassette": 1,
  "sessions": [
    {"session": 1, "recording": 1}
  ],
  "exchanges": [
    {
      "key": "x @1",
      "client": {
        "request": {"method": "tools/call", "params": {"name": "report", "arguments": {"days": 7}}}
      },
      "server": [
        {"notification": {"method": "notifications/progress", "params": {"progress": 1}}},
        {
          "result": {
            "content": [{"type": "text", "text": {"$lines": ["# Report", "", "all well"]}}]
          }
        }
      ]
    },
    {"key": "x @2", "client": {"request": {"method": "ping"}}, "server": [{"result": {}}]}
  ]
}
"##;
    assert_eq!(text, expected);
}

/// A call whose result has this text, and that is written as expected.
#[track_caller]
fn check_result(result: &str, expected: &str) -> String {
    let answer = format!(r#"{{"jsonrpc":"2.0","id":0,"result":{result}}}"#);
    let text = check(&[Lines::new(r#"{"jsonrpc":"2.0","id":0,"method":"m"}"#, &[&answer])]);
    assert!(text.contains(expected), "{text}");
    text
}

#[test]
fn texts_of_several_lines() {
    check_result(r#""a\nb""#, r#"{"$lines": ["a", "b"]}"#);
    check_result(r#""\n\n""#, r#"{"$lines": ["", "", ""]}"#);
    check_result(r#""one line\n""#, r#""one line\n""#);
    check_result(r#""a\\nb""#, r#""a\\nb""#);
    check_result(r#""\\\n\u000a\"\n""#, r#"{"$lines": ["\\", "\u000a\"", ""]}"#);
    check_result(r#"{"a\nb":1}"#, r#"{"a\nb": 1}"#);
}

#[test]
fn json_in_strings() {
    check_result(r#""{\"a\":[1.0,\"\\u00e9\\n\"]}""#, r#"{"$json": {"a": [1.0, "\u00e9\n"]}}"#);
    check_result(r#""{\"a\": [1, {}]}""#, r#"{"$json": {"a": [1, {}]}, "$indent": "spaced"}"#);
    check_result(r#""{\n  \"a\": [\n    1,\n    {}\n  ]\n}""#, r#"{"$json": {"a": [1, {}]}, "$indent": 2}"#);
    check_result(r#""[\n1\n]""#, r#"{"$json": [1], "$indent": 0}"#);
    check_result(r#""[]""#, r#"{"$json": []}"#);
    // Where writing it back would give other bytes it stays a string.
    for string in
        [r#""[1, 2,3]""#, r#""[1]\n""#, r#""{\"a\":\"\u00e9\"}""#, r#""[ ]""#, r#""[NaN]""#, r#""[\/]""#]
    {
        check_result(string, string);
    }
    check_result(r#""[\n  1,\n 2\n]""#, r#"{"$lines": ["[", "  1,", " 2", "]"]}"#);
}

#[test]
fn json_in_strings_in_strings() {
    let nested = r#""{\"a\":\"{\\\"b\\\":\\\"x\\\\ny\\\"}\"}""#;
    check_result(nested, r#"{"$json": {"a": {"$json": {"b": {"$lines": ["x", "y"]}}}}}"#);
    let mut deep = String::from("[1]");
    for _ in 0..12 {
        let mut string = Vec::new();
        crate::wire::scan::push_string(&deep, &mut string);
        deep = format!("[{}]", String::from_utf8(string).unwrap());
    }
    let text = check_result(&deep, "$json");
    assert_eq!(text.matches("$json").count(), 8);
}

#[test]
fn objects_that_look_like_markers() {
    check_result(r#"{"$lines":["a","b"]}"#, r#"{"$literal": {"$lines": ["a", "b"]}}"#);
    check_result(r#"[{"$json":1,"$indent":2}]"#, r#"[{"$literal": {"$json": 1, "$indent": 2}}]"#);
    check_result(
        r#"{"$literal":{"$literal":"a\nb"}}"#,
        r#"{"$literal": {"$literal": {"$literal": "a\nb"}}}"#,
    );
    check_result(r#"{"\u0024blob":"../x"}"#, r#"{"$literal": {"\u0024blob": "../x"}}"#);
    check_result(r#""[{\"$lines\":0}]""#, r#"{"$json": [{"$literal": {"$lines": 0}}]}"#);
    for plain in
        [r#"{"$ref": "a"}"#, r#"{"$json": 1, "a": 2}"#, r#"{"$indent": 2}"#, r#"{"a": 1, "$blob": ""}"#]
    {
        check_result(&plain.replace(": ", ":").replace(", ", ","), plain);
    }
}

#[test]
fn long_strings_stand_in_blobs() {
    let base64 = format!("\"{}\"", "QUJD".repeat(1100));
    check_result(&base64, ".bin\"");
    check_result(&format!("\"{}\"", "QUJD".repeat(1000)), "QUJDQUJD");
    check_result(&format!("\"{}\"", "é\\n ".repeat(20_000)), ".txt\"");
    check_result(&format!("\"{}\"", "\\u00e9\\n ".repeat(20_000)), "$lines");
    check_result(&format!("\"{}\"", "\\ud800 ".repeat(20_000)), "\\ud800");
}

#[test]
fn long_answers_that_were_given_before() {
    let answer = |id: &str, text: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":["{text}"]}}"#);
    let call = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#);
    let long = "x y ".repeat(300);
    let text = check(&[
        Lines::new(&call("0"), &[&answer("0", &long)]),
        Lines::new(&call("1"), &[&answer("1", "short")]),
        Lines::new(&call("2"), &[&answer("7", &long), &answer("2", &long)]),
        Lines::new(&call("3"), &[&answer("3", &long)]),
        Lines::new(&call("4"), &[&answer("4", "short")]),
    ]);
    assert_eq!(text.matches(r#""same_as": "x @1""#).count(), 2, "{text}");
    assert!(text.contains(r#"{"id": 7, "same_as": "x @1"}"#), "{text}");
}

#[test]
fn ids_that_are_not_ordinary() {
    let text = check(&[
        // The first is ordinarily 0; what comes after counts on.
        Lines::new(
            r#"{"jsonrpc":"2.0","id":41,"method":"a"}"#,
            &[r#"{"jsonrpc":"2.0","id":41,"result":{}}"#],
        ),
        Lines::new(
            r#"{"jsonrpc":"2.0","id":42,"method":"b"}"#,
            &[r#"{"jsonrpc":"2.0","id":42.0,"result":{}}"#],
        ),
        Lines::new(r#"{"jsonrpc":"2.0","id":"x","method":"c"}"#, &[r#"{"jsonrpc":"2.0","error":{}}"#]),
        Lines::new(r#"{"jsonrpc":"2.0","id":0,"method":"d"}"#, &[r#"{"jsonrpc":"2.0","id":0,"error":{}}"#]),
        Lines::new(
            r#"{"jsonrpc":"2.0","id":null,"method":"e"}"#,
            &[r#"{"jsonrpc":"2.0","id":null,"error":{}}"#],
        ),
    ]);
    assert!(text.contains(r#"{"id": 41, "method": "a"}"#), "{text}");
    assert!(text.contains(r#"{"id": 42.0, "result": {}}"#), "{text}");
    assert!(text.contains(r#"{"no_id": true, "error": {}}"#), "{text}");
    assert!(text.contains(r#"{"id": 42, "method": "b"}"#) && text.contains(r#"{"method": "d"}"#), "{text}");
}

#[test]
fn requests_of_the_server() {
    let mut lines = Lines::new(r#"{"jsonrpc":"2.0","id":0,"method":"a"}"#, &[]);
    let asks = [
        (r#"{"jsonrpc":"2.0","id":0,"method":"ping"}"#, r#"{"jsonrpc":"2.0","id":0,"result":{}}"#),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, r#"{"jsonrpc":"2.0","id":"1","result":{}}"#),
        (r#"{"jsonrpc":"2.0","id":"s","method":"ping"}"#, r#"{"id":"s","jsonrpc":"2.0","error":{}}"#),
        (r#"{"id":5,"jsonrpc":"2.0","method":"ping"}"#, r#"{"jsonrpc":"2.0","id":5,"result":{}}"#),
    ];
    for (request, answer) in asks {
        lines.server.push((request.as_bytes().to_vec(), Some(answer.as_bytes().to_vec())));
    }
    let text = check(&[lines]);
    assert!(text.contains(r#"{"request": {"method": "ping"}, "answer": {"result": {}}}"#), "{text}");
    assert!(
        text.contains(r#"{"request": {"id": 1, "method": "ping"}, "answer": {"id": "1", "result": {}}}"#),
        "{text}"
    );
}

#[test]
fn what_cannot_be_rebuilt_is_raw() {
    let lines = [
        r#"{"jsonrpc":"2.0","id":0,"method":"m","method":"n"}"#,
        r#"{"jsonrpc":"2.0","id":0,"method":"m","x":1,"x":2}"#,
        r#"{"jsonrpc":"2.0", "id":0,"method":"m"}"#,
        r#"{"jsonrpc":"2.0","id":0,"method":"m","params":NaN}"#,
        r#"{"json\u0072pc":"2.0","id":0,"method":"m"}"#,
        "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"m\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"m\"}\r",
        r#" {"jsonrpc":"2.0","id":0,"method":"m"}"#,
        r#"{"jsonrpc":"2.0","id":0,"result":{}}"#,
        "starting \u{1b}[1mserver\t…",
        "",
        "[]",
    ];
    for line in lines {
        let text = check(&[Lines::new(line, &[])]);
        assert!(text.contains("\"raw\": \""), "{text}");
    }
    for line in [
        r#"{"jsonrpc":"2.0","id":0,"result":{},"x":1}"#,
        r#"{"jsonrpc":"2.0","id":0,"result":{},"error":{}}"#,
    ] {
        let text = check(&[Lines::new(r#"{"jsonrpc":"2.0","id":0,"method":"m"}"#, &[line])]);
        assert!(text.contains("\"raw\": \""), "{text}");
    }
    let (client, server) =
        (Some(b"\xff\xfe".to_vec()), vec![(b"{\"jsonrpc\":\"2.0\",\"id\":0,\"\xff\":0}".to_vec(), None)]);
    let text = check(&[Lines { client, server }]);
    assert_eq!(text.matches("\"base64\": \"").count(), 2, "{text}");
}

#[test]
fn members_that_nobody_knows_stay_in_their_message() {
    let line = r#"{"jsonrpc":"2.0","id":0,"method":"m","params":{},"trace":{"$lines":[]},"result":1}"#;
    let text = check(&[Lines::new(line, &[])]);
    assert!(
        text.contains(r#""trace": {"$literal": {"$lines": []}}"#) && text.contains(r#""result": 1"#),
        "{text}"
    );
}

#[test]
fn batches() {
    let text = check(&[Lines::new(
        r#"[{"jsonrpc":"2.0","id":7,"method":"a"},{"jsonrpc":"2.0","method":"b"},{"jsonrpc":"2.0","id":"8","method":"c"},1]"#,
        &[
            r#"[{"jsonrpc":"2.0","id":"8","result":"x\ny"},{"jsonrpc":"2.0","error":{}},{"jsonrpc":"2.0","id":7,"result":{}}]"#,
        ],
    )]);
    assert!(text.contains(r#"{"request": {"id": 7, "method": "a"}}"#), "{text}");
    assert!(text.contains(r#"{"raw": "1"}"#), "{text}");
    assert!(text.contains(r#"{"to": 3, "id": "8", "result": {"$lines": ["x", "y"]}}"#), "{text}");
    assert!(text.contains(r#"{"no_id": true, "error": {}}"#), "{text}");
}

#[test]
fn a_spelling_is_said_once() {
    let mut guess = spelling::SpellingGuess::new();
    let exchanges = [
        Lines::new(
            "{\"method\": \"m\", \"params\": {\"a\": [1, \"x,y: \\n z\"]}, \"jsonrpc\": \"2.0\", \"id\": 0}\r",
            &[r#"{"result":{},"jsonrpc":"2.0","id":0}"#],
        ),
        Lines::new("{\"method\": \"n\", \"jsonrpc\": \"2.0\"}\r", &[]),
        Lines::new("{\"error\": {}, \"jsonrpc\": \"2.0\"}\r", &[]),
    ];
    for lines in &exchanges {
        let read = crate::wire::jsonrpc::Message::read;
        guess.observe(crate::traffic::Direction::ToServer, &read(lines.client.as_ref().unwrap()));
        for (line, _) in &lines.server {
            guess.observe(crate::traffic::Direction::ToClient, &read(line));
        }
    }
    let text = check_spelled(&guess.finish(), &exchanges);
    let order = "method params result error jsonrpc id";
    assert!(
        text.contains(&format!(r#""client": {{"order": "{order}", "spaced": true, "crlf": true}}"#)),
        "{text}"
    );
    assert_eq!(text.matches("\"raw\"").count(), 1, "only the response to nothing: {text}");
}

#[test]
fn an_id_can_be_replaced_on_the_way_out() {
    let spelling = Spelling::default();
    let (text, blobs) = print(
        &spelling,
        &[
            Lines::new(
                r#"{"jsonrpc":"2.0","id":3,"method":"m"}"#,
                &[r#"{"jsonrpc":"2.0","id":3,"result":NaN}"#],
            ),
            Lines::new(
                r#"{"jsonrpc":"2.0","id":4,"method":"m"}"#,
                &[r#"{"jsonrpc":"2.0","error":{}}"#, "noise"],
            ),
        ],
    );
    let cassette = Cassette::load(text.into_bytes(), &blobs).unwrap();
    let wire = |exchange: usize, item: usize| {
        let mut line = Vec::new();
        let message = &cassette.exchanges[exchange].server[item].message;
        cassette.wire(0, false, message, Some(b"\"live\""), &blobs, &mut line).unwrap();
        String::from_utf8(line).unwrap()
    };
    assert_eq!(wire(0, 0), r#"{"jsonrpc":"2.0","id":"live","result":NaN}"#);
    assert_eq!(wire(1, 0), r#"{"jsonrpc":"2.0","id":"live","error":{}}"#);
    assert_eq!(wire(1, 1), "noise");
}

#[test]
fn a_message_over_the_limit_is_size_and_hash() {
    let spelling = Spelling::default();
    let lines = Lines::new(
        r#"{"jsonrpc":"2.0","id":9,"method":"big"}"#,
        &[r#"{"jsonrpc":"2.0","id":9,"result":{}}"#, r#"{"jsonrpc":"2.0","method":"n"}"#],
    );
    let mut draft = draft(0, &spelling, &lines);
    let omitted = Some((1 << 40, [0xab; 32]));
    draft.client.as_mut().unwrap().omitted = omitted;
    draft.server.iter_mut().for_each(|item| item.message.omitted = omitted);
    let mut text = b"{\"cassette\": 1, \"exchanges\": [".to_vec();
    Printer::new().exchange(&draft, &mut Blobs::default(), &mut text).unwrap();
    text.extend_from_slice(b"]}");
    let cassette = Cassette::load(text, &blob::NoBlobs).unwrap();
    let exchange = &cassette.exchanges[0];
    let client = exchange.client.as_ref().unwrap();
    assert_eq!((client.form, &client.id), (model::Form::Omitted, &model::Id::Number(9)));
    assert_eq!(exchange.server[0].message.id, model::Id::Number(9));
    assert_eq!(exchange.server[1].message.id, model::Id::Absent);
    let error = cassette.wire(0, true, client, None, &blob::NoBlobs, &mut Vec::new()).unwrap_err();
    assert!(matches!(error.kind, LoadErrorKind::Omitted), "{error}");
}

#[test]
fn ids_that_are_objects_or_arrays() {
    for id in [
        "{\"a\":1}",
        "{\"a\": 1}",
        "[1,2]",
        "[1, 2]",
        "{ }",
        "[[],{}]",
        "{\"$lines\":[\"a\"]}",
        "{\"a\":1,\"a\":2.0}",
    ] {
        let request = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#);
        let result = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
        let error = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{}}}}"#);
        let next = r#"{"jsonrpc":"2.0","id":0,"method":"m"}"#;
        let asked = (request.clone().into_bytes(), Some(result.clone().into_bytes()));
        check(&[
            Lines::new(&request, &[&result, &error]),
            Lines::new(next, &[&result]),
            Lines { client: None, server: vec![asked] },
            Lines::new(&format!("[{request}]"), &[&format!("[{result}]")]),
            Lines::new(&format!("[{request},{next}]"), &[&format!("[{error},{result}]")]),
        ]);
        let spaced = |line: &str| line.replace("\":", "\": ").replace(",\"", ", \"");
        let spelling = spelling::Side { spaced: true, ..spelling::Side::default() };
        let spelling = Spelling { client: spelling.clone(), server: spelling };
        check_spelled(&spelling, &[Lines::new(&spaced(&request), &[&spaced(&result), &result])]);
    }
}
