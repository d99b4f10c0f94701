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
        ],
        &["1 a @1 ! lost", "1 b @1 | get result", r#"1 push raw @1 | get body "<p>""#],
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
