//! Gaps, kills, and recordings that take the place of others.

use super::*;

#[test]
fn what_was_not_recorded_is_not_made_up() {
    check(
        &[
            "1 > POST /mcp",
            r#"1 > {"jsonrpc":"2.0","id":1,"method":"a"}"#,
            "0 > gap",
            "1 < .",
            // Their heads are lost.
            r#"2 > {"jsonrpc":"2.0","id":5,"method":"b"}"#,
            r#"2 < event |{"jsonrpc":"2.0","id":5,"result":{}}"#,
            "3 < body <p>",
            "3 < .",
            // That of its request alone, with a response of the usual status, or of another.
            r#"4 > {"jsonrpc":"2.0","id":6,"method":"c"}"#,
            "4 < 200 content-type=application/json",
            r#"4 < {"jsonrpc":"2.0","id":6,"result":{}}"#,
            r#"5 > {"jsonrpc":"2.0","id":7,"method":"d"}"#,
            "5 < 400 content-type=application/json",
            r#"5 < {"jsonrpc":"2.0","id":7,"error":{}}"#,
        ],
        &[
            "1 a @1 ! lost",
            "1 b @1 | get result ! lost",
            r#"1 push raw @1 | get body "<p>""#,
            "1 c @1 | get result",
            "1 d @1 | get error ! lost",
        ],
    );
}

#[test]
fn a_response_whose_head_is_lost_answers_nothing() {
    // The status of none of these is known.
    check_in_session(
        &[
            "1 > POST /mcp @S",
            r#"1 > {"jsonrpc":"2.0","id":1,"method":"a"}"#,
            "0 > gap",
            r#"1 < {"jsonrpc":"2.0","id":1,"result":{}}"#,
            "1 < .",
            "2 > POST /mcp @S",
            r#"2 > {"jsonrpc":"2.0","id":2,"method":"b"}"#,
            r#"2 < event |{"jsonrpc":"2.0","id":2,"result":{}}"#,
            "3 > GET /page @S",
            "3 < body <p>",
            "3 < .",
            "4 > GET /other @S",
            "4 < .",
            // What is sent without an answer is taken in all the same, and what broke before its head did just that.
            "5 > POST /mcp @S",
            r#"5 > {"jsonrpc":"2.0","method":"n"}"#,
            "5 < .",
            "6 > GET /broken @S",
            "6 < cut",
        ],
        &[
            "1 a @1 | result ! lost",
            "1 b @1 | result ! lost",
            r#"1 http GET /page @1 | body "<p>" ! lost"#,
            "1 http GET /other @1 ! lost",
            "1 n @1",
            r#"1 http GET /broken @1 {"end": "cut"} ! lost"#,
        ],
    );
}

#[test]
fn a_body_that_may_be_lost_is_no_empty_one() {
    let page = |behind: &str, head: &str, body: &str| {
        let lines = ["1 > GET /page".to_owned(), format!("1 < {head}"), behind.to_owned(), body.to_owned()];
        lines.into_iter().filter(|line| !line.is_empty()).chain(["1 < .".to_owned()]).collect::<Vec<_>>()
    };
    for (behind, head, body, is_lost) in [
        ("0 > gap", "200", "", true),
        ("0 > gap", "404 content-length=12", "", true),
        ("", "200", "", false),
        ("0 > gap", "200", "1 < body <p>", false),
        ("0 > gap", "204", "", false),
        ("0 > gap", "200 content-length=0", "", false),
    ] {
        let (shown, cassette, _) = record(&page(behind, head, body));
        assert_eq!(
            cassette.exchanges[0].unanswered.is_some(),
            is_lost,
            "{behind:?} {head} {body:?}: {shown}"
        );
    }
}

#[test]
fn what_comes_on_a_lane_whose_request_is_lost_belongs_to_no_other() {
    let lost = |id: u32, response: &str| {
        let first = request(1, "a");
        let lines = [
            "1 > POST /mcp".to_owned(),
            format!("1 > {first}"),
            "0 > gap".to_owned(),
            "3 > POST /mcp".to_owned(),
            format!("3 > {}", request(id, "c")),
            format!("2 < {response}"),
            "2 < .".to_owned(),
            "3 < 200 content-type=application/json".to_owned(),
            format!(r#"3 < {{"jsonrpc":"2.0","id":{id},"result":{{"for":"c"}}}}"#),
            "3 < .".to_owned(),
        ];
        lines.to_vec()
    };
    let own = r#"{"jsonrpc":"2.0","id":1,"result":{"for":"b"}}"#;
    for (response, push) in [
        (own.to_owned(), "push response @1 | get result"),
        (format!("event |{own}"), "push response @1 | get result"),
        (r#"event |{"jsonrpc":"2.0","method":"x"}"#.to_owned(), "push x @1 | get notification"),
    ] {
        // The same id is open before the gap and behind it, or before it only.
        for id in [1, 2] {
            let lines = lost(id, &response);
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            check(&lines, &["1 a @1 ! lost", "1 c @1 | result", &format!("1 {push}")]);
        }
    }
}

#[test]
fn what_came_before_a_gap_is_answered_on_its_own_response_only() {
    let [a, b] = [request(1, "a"), request(2, "b")];
    let asked = [format!("1 > {a}"), format!("2 > {b}")];
    check_in_session(
        &[
            "1 > POST /mcp @S",
            &asked[0],
            "1 < 200 content-type=text/event-stream",
            "2 > POST /mcp @S",
            &asked[1],
            "2 < 200 content-type=text/event-stream",
            "3 > GET /mcp @S",
            "3 < 200 content-type=text/event-stream",
            "0 > gap",
            // Its id may be that of a lost one.
            r#"3 < event |{"jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"1 < event |{"jsonrpc":"2.0","id":2,"result":{}}"#,
            r#"2 < event |{"jsonrpc":"2.0","id":2,"result":{}}"#,
            "1 < .",
            "2 < .",
        ],
        &[
            r#"1 a @1 {"stream": true} ! lost"#,
            r#"1 b @1 {"stream": true} | result"#,
            r#"1 http GET /mcp @1 {"status": 200, "stream": true} ! lost"#,
            "1 push response @1 | get result",
            "1 push response @2 | get result",
        ],
    );
}

#[test]
fn a_new_recording_is_paired_with_the_old_one_by_what_it_asks() {
    let session = |text: &str| {
        let mut lines = begun(1, "S");
        for line in [
            "2 > GET /.well-known/x?a=1",
            "2 < 200 content-type=text/plain",
            "2 < body same",
            "2 < .",
            "3 > GET /.well-known/x?a=2",
            "3 < 200 content-type=text/plain",
            text,
            "3 < .",
        ] {
            lines.push(line.to_owned());
        }
        lines
    };
    let (text, _, blobs) = record(&session("3 < body old"));
    let noted = text.replacen(
        r#""key": "http GET /.well-known/x @2","#,
        "\"key\": \"mine\",\n      \"note\": \"why\",",
        1,
    );
    let base = Cassette::load(noted.into_bytes(), &blobs).unwrap();
    let header = JournalHeader {
        id: "new".to_owned(),
        transport: "http".to_owned(),
        replace: true,
        ..Default::default()
    };
    let mut recorder = Recorder::new(header);
    for (at, line) in (0..).zip(&session("3 < body new")) {
        recorder.event(&event(at * 9_000, line).0);
    }
    let text = recorder.finish(Some((&base, &blobs)), &mut MemoryBlobs::default()).unwrap();
    let cassette = Cassette::load(text, &blobs).unwrap();
    let keys: Vec<_> = cassette.exchanges.iter().map(|exchange| &*exchange.key).collect();
    assert_eq!(keys, ["initialize @1", "http GET /.well-known/x @1", "mine"]);
    let times = |cassette: &Cassette| cassette.exchanges[1].server[0].after_ms;
    assert_eq!(times(&cassette), times(&base), "what is the same keeps its time");
    assert_eq!(cassette.sessions.len(), base.sessions.len());
    assert!(String::from_utf8_lossy(&cassette.text).contains("\"note\": \"why\""));
}

#[test]
fn a_recorder_that_was_killed_loses_what_was_open() {
    let mut fold =
        crate::record::Fold::new(JournalHeader { transport: "http".to_owned(), ..Default::default() });
    let place = crate::cassette::journal::FramePlace { at: 0, len: 0 };
    for line in ["1 > POST /mcp", r#"1 > {"jsonrpc":"2.0","id":1,"method":"a"}"#, "2 > GET /mcp"] {
        fold.event(&event(0, line).0, place);
    }
    let tape = fold.finish();
    let why: Vec<_> = tape.sessions[0].exchanges.iter().map(|exchange| exchange.unanswered).collect();
    assert_eq!(why, [Some(crate::cassette::model::Unanswered::Lost); 2]);
}

#[test]
fn a_journal_whose_header_is_lost_is_known_as_http_by_its_lanes() {
    let mut recorder = Recorder::new(JournalHeader::default());
    for (at, line) in (0..).zip([r#"1 < {"id":1,\n"result":{}}"#, "1 < ."]) {
        recorder.event(&event(at, line).0);
    }
    let mut blobs = MemoryBlobs::default();
    let text = recorder.finish(None, &mut blobs).unwrap();
    let cassette = Cassette::load(text, &blobs).unwrap();
    assert_eq!(cassette.sessions[0].transport.as_deref(), Some("http"));
}
