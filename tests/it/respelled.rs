//! Servers read ids and tokens and spell them anew: PHP `"req\/1"` for `"req/1"`, Python `"\u00e9"` for `"é"`,
//! JavaScript `1` for `1.0`. What is equal by value names the same request, recorded and replayed.

use std::sync::Arc;

use mcp_tapedeck::{
    Cassette, Recorder, Replayer,
    cassette::blob::MemoryBlobs,
    replay::{Input, Options, Output},
    report::Verdict,
    traffic::{
        Direction::{ToClient, ToServer},
        Lane,
    },
};

/// Two ids, and how a server spells them.
const SPELLED: &[([&str; 2], [&str; 2])] = &[
    ([r#""req/1""#, r#""req/2""#], [r#""req\/1""#, r#""req\/2""#]),
    ([r#""é""#, r#""ü""#], [r#""\u00e9""#, r#""\u00FC""#]),
    ([r#""a\/b""#, r#""c\/d""#], [r#""a/b""#, r#""c/d""#]),
    ([r#""7""#, r#""8""#], [r#""\u0037""#, r#""\u0038""#]),
    (["1.0", "2.0"], ["1", "2"]),
    (["1e0", "20e-1"], ["1.0", "2.0"]),
    (["100", "1e3"], ["1E2", "1000"]),
    (["-0.5", "-1.0"], ["-5e-1", "-1"]),
    (["9007199254740993.0", "9007199254740992.0"], ["9007199254740993", "9007199254740992"]),
    ([r#"{"k":1,"l":"é"}"#, r#"{"k":[2.0]}"#], [r#"{"l": "\u00e9", "k": 1.0}"#, r#"{"k": [2]}"#]),
];

/// The ids of the live client, which has them the other way round where they are equal to recorded ones.
const LIVE: &[[&str; 2]] = &[["11", "12"], [r#""x/1""#, r#""x/2""#], ["2.5", "{\"k\": 9}"]];

fn call(id: &str, n: usize, token: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t","arguments":{{"n":{n}}},"_meta":{{"progressToken":{token}}}}}}}"#
    )
}

fn answer(id: &str, n: usize) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"n":{n}}}}}"#)
}

fn progress(token: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":1}}}}"#
    )
}

fn record(lines: &[(bool, String)]) -> Cassette {
    let mut recorder = Recorder::new(Default::default());
    for (from_client, line) in lines {
        recorder.message(0, if *from_client { ToServer } else { ToClient }, line.as_bytes());
    }
    let mut blobs = MemoryBlobs::default();
    let text = recorder.finish(None, &mut blobs).expect("memory does not fail");
    Cassette::load(text, &blobs).expect("a recording loads")
}

/// What comes for these lines, sorted: of two calls, each has its own time.
#[track_caller]
fn replayed(cassette: Cassette, lines: &[String]) -> Vec<String> {
    let blobs = Arc::new(MemoryBlobs::default());
    let mut replayer =
        Replayer::new(Arc::new(cassette), blobs, "c.json", Options::default()).expect("a recording plays");
    let (mut now, mut said) = (0, Vec::new());
    for line in lines {
        replayer.handle(now, Input::Message { lane: Lane(0), bytes: line.as_bytes() });
    }
    loop {
        while let Some(output) = replayer.poll(now) {
            if let Output::Send { bytes, .. } = output {
                said.push(String::from_utf8(bytes).expect("text"));
            }
        }
        match replayer.deadline() {
            Some(due) if said.len() < 2 * lines.len() => now = due.max(now + 1),
            _ => break,
        }
    }
    assert_eq!(replayer.finish().verdict, Verdict::Good);
    said.sort();
    said
}

#[test]
fn what_is_spelled_anew_is_filed_with_its_request_and_replayed_with_the_live_id() {
    for (asked, spelled) in SPELLED {
        let swapped = [asked[1], asked[0]];
        for live in LIVE.iter().chain([&swapped]) {
            let lines = [
                (true, call(asked[0], 1, asked[0])),
                (true, call(asked[1], 2, asked[1])),
                (false, progress(spelled[1])),
                (false, answer(spelled[1], 2)),
                (false, progress(spelled[0])),
                (false, answer(spelled[0], 1)),
            ];
            let cassette = record(&lines);
            let filed: Vec<_> = cassette.exchanges.iter().map(|entry| entry.server.len()).collect();
            assert_eq!(filed, [2, 2], "{asked:?} {spelled:?}");
            let said = replayed(cassette, &[call(live[0], 1, r#""t/1""#), call(live[1], 2, r#""t/2""#)]);
            let mut want =
                vec![answer(live[0], 1), answer(live[1], 2), progress(r#""t/1""#), progress(r#""t/2""#)];
            want.sort();
            assert_eq!(said, want, "{asked:?} {spelled:?} {live:?}");
        }
    }
}

#[test]
fn a_batch_that_is_spelled_anew_is_answered_with_the_live_ids() {
    for (asked, spelled) in SPELLED {
        let batch = |ids: [&str; 2]| format!("[{},{}]", call(ids[0], 1, "1"), call(ids[1], 2, "2"));
        let answers = |ids: [&str; 2]| format!("[{},{}]", answer(ids[1], 2), answer(ids[0], 1));
        let cassette = record(&[(true, batch(*asked)), (false, answers(*spelled))]);
        let live = [asked[1], asked[0]];
        assert_eq!(replayed(cassette, &[batch(live)]), [answers(live)], "{asked:?} {spelled:?}");
    }
}

#[test]
fn a_subscription_that_is_spelled_anew_is_named_and_cancelled_with_the_live_id() {
    let listen = |id: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"subscriptions/listen","params":{{"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}}}}"#
        )
    };
    let told = |id: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}}}}}"#
        )
    };
    let cancelled = |id: &str| {
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#)
    };
    for (asked, spelled) in SPELLED {
        let lines = [(true, listen(asked[0])), (false, told(spelled[0])), (false, cancelled(spelled[0]))];
        let cassette = record(&lines);
        assert_eq!(cassette.exchanges.len(), 1, "{asked:?} {spelled:?}");
        let mut want = [told("\"live/1\""), cancelled("\"live/1\"")];
        want.sort();
        assert_eq!(replayed(cassette, &[listen("\"live/1\"")]), want, "{asked:?} {spelled:?}");
    }
}

#[test]
fn what_differs_by_value_stays_as_it_was_recorded() {
    for (asked, other) in [
        ("9007199254740993", "9007199254740992"),
        ("1e400", "1e401"),
        (r#""a/b""#, r#""a\\/b""#),
        (r#""é""#, r#""e\u0301""#),
        (r#"{"k":1}"#, r#"{"k":2}"#),
        ("[1,2]", "[2,1]"),
    ] {
        let cassette = record(&[(true, call(asked, 1, "1")), (false, answer(other, 1))]);
        assert_eq!(replayed(cassette, &[call("5", 1, "1")]), [answer(other, 1)], "{asked} {other}");
    }
}
