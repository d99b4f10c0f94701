//! What each edit writes.

use super::{
    super::{Edit, EditError, Fault, Pointer, Position, Response, Value, apply},
    again, load,
};

/// Two calls with one answer, a message that came while another waited, and a rule that names a key.
const CASSETTE: &str = r#"{
  "cassette": 1,
  "match": [{"when": {"key": "call @1"}, "ignore": ["/params"]}],
  "sessions": [{"session": 1, "recording": 1}, {"session": 4, "recording": 1}],
  "exchanges": [
    {
      "key": "call @1",
      "note": "mine",
      "client": {"request": {"method": "tools/call", "params": {"name": "call"}}},
      "server": [
        {"after_ms": 3, "notification": {"method": "n"}},
        {"after_ms": 5, "result": {"content": [{"type": "text", "text": {"$lines": ["a", "b"]}}]}}
      ]
    },
    {
      "key": "call @2",
      "client": {"request": {"method": "tools/call", "params": {"name": "call"}}},
      "server": [{"after_ms": 7, "same_as": "call @1"}]
    },
    {
      "key": "call @3",
      "after": "call @1 #1",
      "client": {"request": {"method": "ping"}},
      "server": [{"same_as": "call @1"}]
    },
    {"key": "told", "session": 4, "server": [{"notification": {"method": "n"}}]}
  ]
}
"#;

fn key(key: &str) -> String {
    key.to_owned()
}

fn at(pointer: &str) -> Pointer {
    Pointer::parse(pointer).unwrap()
}

fn set(of: &str, pointer: &str, value: &str) -> Edit {
    Edit::Set { key: key(of), pointer: at(pointer), value: Value::Json(value.into()) }
}

/// Which lines an edit takes away (`-`) and which it adds (`+`), and what it tells.
#[track_caller]
fn check(edit: &Edit, lines: &[&str], told: &[&str]) {
    let (cassette, blobs) = load(CASSETTE);
    let edited = apply(&cassette, &blobs, edit).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(again(&edited, &blobs).warnings, []);
    let text = String::from_utf8(edited.text).unwrap();
    let (old, new): (Vec<_>, Vec<_>) = (CASSETTE.lines().collect(), text.lines().collect());
    let before = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let room = old.len().min(new.len()) - before;
    let behind = old.iter().rev().zip(new.iter().rev()).take(room).take_while(|(a, b)| a == b).count();
    let gone = old[before..old.len() - behind].iter().map(|line| format!("-{}", line.trim_start()));
    let added = new[before..new.len() - behind].iter().map(|line| format!("+{}", line.trim_start()));
    let changed: Vec<_> = gone.chain(added).collect();
    assert_eq!(changed, lines, "{text}");
    assert_eq!(edited.told, told);
}

#[track_caller]
fn refused(edit: &Edit, expected: &str) {
    let (cassette, blobs) = load(CASSETTE);
    let error = apply(&cassette, &blobs, edit).unwrap_err();
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_value_is_set_in_its_line() {
    check(
        &set("call @1", "/server/0/after_ms", "40"),
        &[
            r#"-{"after_ms": 3, "notification": {"method": "n"}},"#,
            r#"+{"after_ms": 40, "notification": {"method": "n"}},"#,
        ],
        &[],
    );
}

#[test]
fn a_member_that_is_missing_becomes_the_last_of_a_payload_and_stands_in_its_place_among_ours() {
    let client = r#"client": {"request": {"method": "ping""#;
    check(
        &set("call @3", "/client/request/params", "{\"b\":[ ]}"),
        &[&format!("-\"{client}}}}},"), &format!("+\"{client}, \"params\": {{\"b\": []}}}}}},")],
        &[],
    );
    check(&set("call @3", "/note", "\"why\""), &["+\"note\": \"why\","], &[]);
}

/// The entry of an exchange after an edit, on one line.
fn entry(edit: &Edit, of: &str) -> String {
    let (cassette, blobs) = load(CASSETTE);
    let edited = apply(&cassette, &blobs, edit).unwrap_or_else(|error| panic!("{error}"));
    let after = again(&edited, &blobs);
    let place = after.find(of).unwrap_or_else(|| panic!("no {of}")).place;
    let lines: Vec<_> = std::str::from_utf8(after.at(place)).unwrap().lines().map(str::trim).collect();
    lines.join("")
}

#[test]
fn others_with_the_same_answer_keep_it() {
    let edits = [
        set("call @1", "/server/1/result/content/0/text/$lines/1", "\"c\""),
        Edit::Answer { key: key("call @1"), response: Response::ToolError("no".into()) },
        Edit::Remove { key: key("call @1"), pointer: Some(at("/server/1")) },
        Edit::Remove { key: key("call @1"), pointer: None },
    ];
    for edit in edits {
        let second = entry(&edit, "call @2");
        assert!(
            second.contains(
                r#""after_ms": 7, "result": {"content": [{"type": "text", "text": {"$lines": ["a", "b"]}}]}"#
            ),
            "{second}"
        );
        assert!(entry(&edit, "call @3").contains(r#""server": [{"same_as": "call @2"}]"#), "{edit:?}");
    }
}

#[test]
fn an_exchange_gets_an_answer_of_its_own_before_a_place_in_it_is_set() {
    let edit = set("call @2", "/server/0/result/content/0/text", "\"other\"");
    assert!(entry(&edit, "call @2").contains(
        r#""server": [{"after_ms": 7, "result": {"content": [{"type": "text", "text": "other"}]}}]"#
    ));
    assert!(entry(&edit, "call @3").contains(r#""same_as": "call @1""#));
    assert!(entry(&edit, "call @1").contains(r#""$lines": ["a", "b"]"#));
}

#[test]
fn what_followed_a_message_that_goes_follows_the_one_before() {
    let notification = Edit::Remove { key: key("call @1"), pointer: Some(at("/server/0")) };
    assert!(entry(&notification, "call @3").contains(r#""after": "call @1","#));
    // The very first: there is nothing to follow.
    let all = Edit::Remove { key: key("call @1"), pointer: None };
    assert!(!entry(&all, "call @3").contains("\"after\""));
    // Items behind it move up.
    let moved = set("call @3", "/after", "\"call @1 #2\"");
    let (cassette, blobs) = load(CASSETTE);
    let cassette = again(&apply(&cassette, &blobs, &moved).unwrap(), &blobs);
    let removed = again(&apply(&cassette, &blobs, &notification).unwrap(), &blobs);
    let text = String::from_utf8(removed.text).unwrap();
    assert!(text.contains(r#""after": "call @1 #1""#), "{text}");
}

#[test]
fn a_key_is_changed_wherever_it_stands() {
    let edit = set("call @1", "/key", "\"the first\"");
    assert!(entry(&edit, "call @2").contains(r#""same_as": "the first""#));
    assert!(entry(&edit, "call @3").contains(r#""after": "the first #1""#));
    let (cassette, blobs) = load(CASSETTE);
    let after = again(&apply(&cassette, &blobs, &edit).unwrap(), &blobs);
    assert_eq!(after.rules[0].when.key.as_deref(), Some("the first"));
    let rule = r#"{"when": {"key": "call @1"}, "do": "drop"}"#;
    for faults in [format!("[{rule}]"), format!(r#"{{"rules": [{rule}], "scenarios": {{"s": [{rule}]}}}}"#)] {
        let text = CASSETTE.replacen("\"sessions\":", &format!("\"faults\": {faults},\n  \"sessions\":"), 1);
        let (cassette, blobs) = load(&text);
        let written = String::from_utf8(apply(&cassette, &blobs, &edit).unwrap().text).unwrap();
        let renamed = written.matches(r#""when": {"key": "the first"}"#).count();
        assert_eq!(renamed, faults.matches("call @1").count() + 1, "{written}");
    }
    refused(
        &set("call @1", "/key", "\"told\""),
        "26:5: the key `told` is taken by an exchange before this one; give this one another (line and column \
         count in the cassette as it would be after the edit; it was left as it is)",
    );
}

#[test]
fn a_failure_takes_the_answer_s_place_and_what_came_before_stays() {
    let error = Edit::Answer {
        key: key("call @2"),
        response: Response::Failed { code: -32603, message: "busy".into() },
    };
    check(
        &error,
        &[
            r#"-"server": [{"after_ms": 7, "same_as": "call @1"}]"#,
            r#"+"server": [{"after_ms": 7, "error": {"code": -32603, "message": "busy"}}]"#,
        ],
        &[],
    );
    let tool = Edit::Answer { key: key("call @1"), response: Response::ToolError("no\nway".into()) };
    let written = entry(&tool, "call @1");
    assert!(written.contains(r#"{"after_ms": 3, "notification": {"method": "n"}}"#), "{written}");
    assert!(
        written
            .contains(r#""content": [{"type": "text", "text": {"$lines": ["no", "way"]}}],"isError": true"#),
        "{written}"
    );
    let ping = Edit::Answer { key: key("call @3"), response: Response::ToolError("no".into()) };
    refused(&ping, "`call @3` calls no tool, so it has no tool error; `fail --error` gives it another one");
    let push = Edit::Answer { key: key("told"), response: Response::Result(b"{}".into()) };
    refused(
        &push,
        "`told` is no request of the client, so there is nothing to answer; `set` changes what it holds",
    );
}

#[test]
fn a_failure_is_an_answer_where_there_was_none() {
    let text = CASSETTE
        .replace(r#""server": [{"after_ms": 7, "same_as": "call @1"}]"#, r#""unanswered": "cancelled""#);
    let (cassette, blobs) = load(&text);
    let edit =
        Edit::Answer { key: key("call @2"), response: Response::Failed { code: 1, message: "no".into() } };
    let edited = String::from_utf8(apply(&cassette, &blobs, &edit).unwrap().text).unwrap();
    assert_eq!(
        edited,
        text.replace(
            r#""unanswered": "cancelled""#,
            r#""server": [{"error": {"code": 1, "message": "no"}}]"#
        )
    );
}

#[test]
fn what_was_said_to_a_client_s_answer_stays_where_the_answer_to_its_request_fails() {
    let cassette = r#"{"cassette": 1, "sessions": [{"session": 1, "recording": 1, "transport": "http"}], "exchanges": [
      {"key": "a", "client": {"request": {"method": "a"}}, "server": [
        {"request": {"method": "b"}, "answer": {"http": {"status": 400}, "result": {}}},
        {"on": "post", "error": {"code": 1}},
        {"result": {"of": "a"}}
      ]}]}"#;
    let (cassette, blobs) = load(cassette);
    let edit = Edit::Answer { key: key("a"), response: Response::Failed { code: -5, message: "no".into() } };
    let text = String::from_utf8(apply(&cassette, &blobs, &edit).unwrap().text).unwrap();
    assert!(text.contains(r#"{"on": "post", "error": {"code": 1}}"#), "{text}");
    assert!(text.contains("-5") && !text.contains(r#"{"of": "a"}"#), "{text}");
}

#[test]
fn an_exchange_that_http_alone_answered_gets_no_second_answer() {
    let text = r#"{"cassette": 1, "sessions": [{"session": 1, "transport": "http", "path": "/mcp"}], "exchanges": [
  {"key": "a", "client": {"request": {"method": "m"}}, "http": {"status": 404}, "server": [{"body": "gone"}], "unanswered": "ended"}]}"#;
    let (cassette, blobs) = load(text);
    let edit = Edit::Answer { key: key("a"), response: Response::Result(b"{}".into()) };
    assert!(matches!(apply(&cassette, &blobs, &edit), Err(EditError::Unfit { .. })));
}

#[test]
fn the_result_of_a_failed_tool_is_one_of_the_request_s_revision() {
    let (cassette, blobs) = load(super::RECORDINGS[3]);
    let call = cassette.exchanges.iter().find(|exchange| exchange.key.starts_with("tools/call")).unwrap();
    let edit = Edit::Answer { key: call.key.to_string(), response: Response::ToolError("no".into()) };
    let after = again(&apply(&cassette, &blobs, &edit).unwrap(), &blobs);
    let entry = String::from_utf8_lossy(after.at(after.find(&call.key).unwrap().place)).into_owned();
    assert!(entry.contains(r#""resultType": "complete""#), "{entry}");
}

#[test]
fn faults_are_written_as_plans_have_them() {
    for (fault, text) in [
        (Fault::Timeout, r#"+"fault": "timeout","#),
        (Fault::Drop, r#"+"fault": "drop","#),
        (Fault::Status(503), r#"+"fault": {"do": "status", "status": 503},"#),
        (Fault::CutAfter(1), r#"+"fault": {"do": "cut_after", "events": 1},"#),
        (Fault::Exit(3), r#"+"fault": {"do": "exit", "status": 3},"#),
    ] {
        check(&Edit::Fault { key: key("call @2"), fault }, &[text], &[]);
    }
}

#[test]
fn an_answer_is_late_and_no_longer() {
    let line = |ms: &str| format!(r#""server": [{{{ms}"same_as": "call @1"}}]"#);
    let delayed = |of: &str, ms| Edit::Delay { key: key(of), ms };
    check(
        &delayed("call @2", 3000),
        &[&format!("-{}", line("\"after_ms\": 7, ")), &format!("+{}", line("\"after_ms\": 3000, "))],
        &[],
    );
    check(
        &delayed("call @2", 0),
        &[&format!("-{}", line("\"after_ms\": 7, ")), &format!("+{}", line(""))],
        &[],
    );
    check(
        &delayed("call @3", 2),
        &[&format!("-{}", line("")), &format!("+{}", line("\"after_ms\": 2, "))],
        &[],
    );
    check(
        &Edit::Note { key: key("call @1"), text: "new".into() },
        &["-\"note\": \"mine\",", "+\"note\": \"new\","],
        &[],
    );
}

#[test]
fn what_is_inserted_gets_a_key_and_its_neighbour_s_session() {
    let added =
        r#"+{"key": "ping @1", "client": {"request": {"method": "ping"}}, "server": [{"result": {}}]},"#;
    let ping = br#"{"client": {"request": {"method": "ping"}}, "server": [{"result": {}}]}"#.to_vec();
    let insert = |position| Edit::Insert { entry: ping.clone(), position };
    check(&insert(Position::Before(key("call @1"))), &[added], &["added `ping @1`"]);
    let written = entry(&insert(Position::End), "ping @1");
    assert!(written.contains(r#""session": 4,"#), "{written}");
    let (empty, blobs) = load("{\"cassette\": 1}\n");
    let first = apply(&empty, &blobs, &insert(Position::End)).unwrap();
    assert_eq!(
        String::from_utf8(first.text).unwrap(),
        format!("{{\"cassette\": 1, \"exchanges\": [\n    {}\n  ]}}\n", &added[1..added.len() - 1])
    );
    let other = Edit::Insert { entry: b"[1]".to_vec(), position: Position::End };
    refused(
        &other,
        "expected an exchange, a JSON object such as {\"client\": {\"request\": …}, \"server\": […]}, found other JSON",
    );
}

#[test]
fn a_copy_has_the_next_key_and_comes_behind_its_original() {
    let copy = Edit::Duplicate { key: key("call @3"), name: None };
    let written = entry(&copy, "call @4");
    assert!(!written.contains("after"), "{written}");
    assert!(entry(&Edit::Duplicate { key: key("told"), name: None }, "told @2").contains("\"session\": 4"));
    let taken = Edit::Duplicate { key: key("call @3"), name: Some(key("told")) };
    let (cassette, blobs) = load(CASSETTE);
    assert!(matches!(apply(&cassette, &blobs, &taken), Err(EditError::Invalid(_))));
}

#[test]
fn a_place_that_is_not_there_is_answered_with_what_is() {
    refused(
        &set("call @1", "/server/1/result/contnt/0", "1"),
        "`call @1` has nothing at `/server/1/result/contnt/0`: `/server/1/result` has `content`; did you mean `content`?",
    );
    refused(
        &set("call @1", "/server/7", "1"),
        "`call @1` has nothing at `/server/7`: `/server` is an array with 2 elements, `0` to `1`",
    );
    refused(&set("call @1", "/note/0", "1"), "`call @1` has nothing at `/note/0`: `/note` is a string");
    let (cassette, blobs) = load(CASSETTE);
    let error = apply(&cassette, &blobs, &Edit::Remove { key: key("cal @1"), pointer: None }).unwrap_err();
    assert!(matches!(error, EditError::NoKey { alike, .. } if alike.contains(&key("call @1"))));
}

#[test]
fn an_edit_that_would_make_it_no_cassette_is_refused_with_the_loader_s_reason() {
    refused(
        &set("call @2", "/server/0/after_ms", "\"soon\""),
        "18:31: `after_ms` must be milliseconds, a whole number, found `\"soon\"` (line and column count in the cassette \
         as it would be after the edit; it was left as it is)",
    );
    let blob = r#"{"$blob": "../../etc/passwd"}"#;
    let (cassette, blobs) = load(CASSETTE);
    let edit = set("call @1", "/server/1/result/content/0/text", blob);
    assert!(matches!(apply(&cassette, &blobs, &edit), Err(EditError::Invalid(_))));
}

#[test]
fn what_a_person_laid_out_stays_as_it_is() {
    let text = "{ \"cassette\":1,\n\"exchanges\" : [ {\"key\":\"a\" , \"client\":{\"request\":\n{\"method\":\"m\"}},\n\
                \t\"server\":[ {\"result\":{ \"a\" : 1e400 , \"b\":\"\\u0041\"} } ]}\n ]}";
    let (cassette, blobs) = load(text);
    let edited = apply(&cassette, &blobs, &set("a", "/server/0/result/a", "2")).unwrap();
    assert_eq!(String::from_utf8(edited.text).unwrap(), text.replace("1e400", "2"));
    let noted = apply(&cassette, &blobs, &Edit::Note { key: key("a"), text: "n".into() }).unwrap();
    assert_eq!(String::from_utf8(noted.text).unwrap(), text.replace("\"a\" ,", "\"a\" , \"note\": \"n\" ,"));
}

#[test]
fn no_line_of_a_neighbour_changes_however_it_is_laid_out() {
    let entry =
        |key: &str| format!("{{ \"key\":\"{key}\",\"client\": {{\"request\":{{ \"method\": \"m\"}}}} }}");
    let (a, b, c) = (entry("a"), entry("b"), entry("c"));
    for list in [
        format!("[\n  {a} ,\n\t{b}  ,\n      {c}\n]"),
        format!("[\n  {a}\n, {b}\n, {c}\n]"),
        format!("[\n\n  {a},\n\n  {b},\n\n  {c}]"),
    ] {
        let text = format!("{{\"cassette\": 1, \"exchanges\": {list}}}\n");
        let (cassette, blobs) = load(&text);
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let after = |edit: &Edit| {
            let edited = apply(&cassette, &blobs, edit).unwrap();
            lines(std::str::from_utf8(&edited.text).unwrap())
        };
        let removed = after(&Edit::Remove { key: key("b"), pointer: None });
        let without: Vec<String> = lines(&text).into_iter().filter(|line| !line.contains("\"b\"")).collect();
        let blank =
            |lines: Vec<String>| lines.into_iter().filter(|line| !line.is_empty()).collect::<Vec<_>>();
        assert_eq!(blank(removed), blank(without));
        for edit in [
            Edit::Duplicate { key: key("a"), name: Some("d".to_owned()) },
            Edit::Insert { entry: entry("d").into(), position: Position::After(key("a")) },
            Edit::Insert { entry: entry("d").into(), position: Position::Before(key("b")) },
            Edit::Insert { entry: entry("d").into(), position: Position::Before(key("a")) },
        ] {
            let added = after(&edit);
            let kept: Vec<String> = added.into_iter().filter(|line| !line.contains("\"d\"")).collect();
            let is_first =
                matches!(&edit, Edit::Insert { position: Position::Before(before), .. } if before == "a");
            if !is_first || !list.contains("\n, ") {
                assert_eq!(blank(kept), blank(lines(&text)), "{edit:?}");
            }
        }
    }
}

#[test]
fn ids_that_are_named_stay() {
    let text = CASSETTE.replace(
        r#"{"key": "told", "session": 4, "server": [{"notification": {"method": "n"}}]}"#,
        r#"{"key": "c", "client": {"notification": {"method": "notifications/cancelled", "params": {"requestId": 2}}}}"#,
    );
    let (cassette, blobs) = load(&text);
    let edit = Edit::Remove { key: key("call @2"), pointer: None };
    let edited = apply(&cassette, &blobs, &edit).unwrap();
    let after = again(&edited, &blobs);
    assert_eq!(after.find("call @3").unwrap().client.as_ref().unwrap().id.to_string(), "2");
    assert!(
        edited.told.iter().any(|told| told.contains("`call @3` has its id written")),
        "{:?}",
        edited.told
    );
    // Where no id is named, none is written.
    assert!(!entry(&edit, "call @3").contains("\"id\""));
}
