//! The replayer as a script of events: this goes in, exactly these messages come out. No socket, no clock.

mod unasked;

use std::sync::Arc;

use mcp_tapedeck::{
    cassette::{blob::NoBlobs, model::Cassette},
    redact::Vars,
    replay::{Input, Options, Order, Output, Repeat, Replayer, Timing},
    report::{Reason, Report, Verdict},
    traffic::Lane,
};

/// A replayer on a stage: time stands still unless the test moves it.
struct Stage {
    replayer: Replayer,
    now: u64,
}

impl Stage {
    fn new(cassette: &str) -> Self {
        Self::with(cassette, Options::default())
    }

    fn with(cassette: &str, options: Options) -> Self {
        let cassette = Cassette::load(cassette.as_bytes().to_vec(), &NoBlobs).expect("the cassette loads");
        let replayer =
            Replayer::new(Arc::new(cassette), Arc::new(NoBlobs), "test.json", options).expect("a replayer");
        Self { replayer, now: 0 }
    }

    /// The client sends one line; what comes back at once.
    fn send(&mut self, line: &str) -> Vec<String> {
        self.replayer.handle(self.now, Input::Message { lane: Lane(0), bytes: line.as_bytes() });
        self.outputs()
    }

    /// The client closes its side.
    fn close(&mut self) -> Vec<String> {
        self.replayer.handle(self.now, Input::Closed { lane: Lane(0) });
        self.outputs()
    }

    /// Time goes on by so many milliseconds.
    fn wait(&mut self, ms: u64) -> Vec<String> {
        self.now += ms * 1000;
        self.outputs()
    }

    fn outputs(&mut self) -> Vec<String> {
        let mut seen = Vec::new();
        while let Some(output) = self.replayer.poll(self.now) {
            seen.push(match output {
                Output::Send { bytes, .. } => String::from_utf8(bytes).expect("text"),
                Output::End { end, .. } => format!("END exit={:?} signal={:?}", end.exit, end.signal),
                other => panic!("lines are answered with lines: {other:?}"),
            });
        }
        seen
    }

    fn report(&self) -> Report {
        self.replayer.finish()
    }

    #[track_caller]
    fn good(&self) {
        assert_eq!(self.report().verdict, Verdict::Good, "{:#?}", self.report());
    }

    #[track_caller]
    fn missed(&self, reason: Reason) {
        let reasons: Vec<Reason> = self.report().misses.iter().map(|miss| miss.reason).collect();
        assert_eq!((self.report().verdict, reasons), (Verdict::Bad, vec![reason]));
    }
}

fn request(id: u64, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

fn call(id: u64, name: &str, arguments: &str) -> String {
    request(id, "tools/call", &format!(r#"{{"name":"{name}","arguments":{arguments}}}"#))
}

fn initialize(id: u64, client: &str) -> String {
    let params = format!(
        r#"{{"protocolVersion":"2025-11-25","capabilities":{{"roots":{{}}}},"clientInfo":{{"name":"{client}","version":"1"}}}}"#
    );
    request(id, "initialize", &params)
}

fn result(id: &str, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

fn note(method: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#)
}

/// A session that begins as all legacy ones do; `more` are further exchanges.
fn legacy(more: &str) -> String {
    sessions(
        r#"{"session": 1, "recording": 1, "transport": "stdio", "protocol": "2025-11-25", "client": "c"}"#,
        more,
    )
}

fn sessions(sessions: &str, more: &str) -> String {
    format!(
        r#"{{"cassette": 1, "sessions": [{sessions}], "exchanges": [
        {{"key": "initialize @1",
          "client": {{"request": {{"method": "initialize", "params": {{"protocolVersion": "2025-11-25", "capabilities": {{"roots": {{}}}}, "clientInfo": {{"name": "c", "version": "1"}}}}}}}},
          "server": [{{"result": {{"protocolVersion": "2025-11-25", "capabilities": {{"tools": {{}}}}}}}}]}}
        {more}]}}"#
    )
}

fn tool(key: &str, name: &str, arguments: &str, answer: &str) -> String {
    format!(
        r#", {{"key": "{key}", "client": {{"request": {{"method": "tools/call", "params": {{"name": "{name}", "arguments": {arguments}}}}}}}, "server": [{{"result": {answer}}}]}}"#
    )
}

const INITIALIZED: &str = r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}"#;

#[test]
fn a_recorded_request_gets_its_answer_with_the_live_id() {
    let mut stage =
        Stage::new(&legacy(&tool("tools/call a @1", "a", r#"{"x": 1, "y": [2]}"#, r#"{"n": 1e400}"#)));
    assert_eq!(stage.send(&initialize(7, "c")), [result("7", INITIALIZED)]);
    assert_eq!(
        stage.send(r#"{"id":"né","params":{"arguments":{"y":[2.0],"x":10e-1},"name":"\u0061"},"method":"tools\/call","jsonrpc":"2.0"}"#),
        [result("\"né\"", r#"{"n":1e400}"#)]
    );
    stage.good();
}

#[test]
fn equal_requests_get_successive_answers_and_then_the_last_again() {
    let three: String =
        (1..=3).map(|n| tool(&format!("tools/call s @{n}"), "s", "{}", &format!("{{\"n\": {n}}}"))).collect();
    let mut stage = Stage::new(&legacy(&three));
    stage.send(&initialize(0, "c"));
    let got: Vec<String> = (1..=5).flat_map(|id| stage.send(&call(id, "s", "{}"))).collect();
    let want: Vec<String> = [1, 2, 3, 3, 3]
        .iter()
        .zip(1..)
        .map(|(n, id)| result(&id.to_string(), &format!("{{\"n\":{n}}}")))
        .collect();
    assert_eq!(got, want);
    assert_eq!(
        (stage.report().repeats[0].key.as_str(), stage.report().repeats[0].count),
        ("tools/call s @3", 2)
    );
    stage.good();

    let mut stage = Stage::with(&legacy(&three), Options { repeat: Repeat::Error, ..Options::default() });
    stage.send(&initialize(0, "c"));
    (1..=3).for_each(|id| drop(stage.send(&call(id, "s", "{}"))));
    assert!(stage.send(&call(4, "s", "{}"))[0].contains(r#""reason":"consumed""#));
    stage.missed(Reason::Consumed);
}

#[test]
fn a_miss_is_an_error_with_the_live_id_and_later_calls_work() {
    let mut stage = Stage::new(&legacy(&tool("tools/call greet @1", "greet", r#"{"name": "ann"}"#, "{}")));
    stage.send(&initialize(0, "c"));
    let answer = stage.send(&call(2, "greet", r#"{"name":"bob"}"#)).remove(0);
    assert!(answer.starts_with(r#"{"jsonrpc":"2.0","id":2,"error":{"code":-33000,"#), "{answer}");
    for part in
        ["tools/call greet", "tools/call greet @1", "/params/arguments/name", "ann", "bob", "tapedeck"]
    {
        assert!(answer.contains(part), "{part} in {answer}");
    }
    assert_eq!(stage.send(&call(3, "greet", r#"{"name":"ann"}"#)), [result("3", "{}")]);
    stage.missed(Reason::ParamsDiffer);
}

#[test]
fn what_sdks_ask_by_themselves_is_no_miss() {
    let mut stage = Stage::new(&legacy(""));
    let discover = r#"{"jsonrpc":"2.0","id":"p","method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
    assert!(stage.send(discover)[0].starts_with(r#"{"jsonrpc":"2.0","id":"p","error":{"code":-32601"#));
    stage.send(&initialize(0, "c"));
    assert_eq!(stage.send(&request(1, "ping", "{}")), [result("1", "{}")]);
    assert!(stage.send(&request(2, "prompts/list", "{}"))[0].contains("-32601"));
    assert_eq!(stage.send(&note("notifications/never/heard")), [] as [&str; 0]);
    stage.good();
    assert_eq!(stage.report().self_answered.values().sum::<u64>(), 3);
}

const ASKING: &str = r#", {"key": "tools/call where @1",
    "client": {"request": {"id": 1, "method": "tools/call", "params": {"name": "where"}}},
    "server": [
      {"request": {"id": 1, "method": "roots/list"}, "answer": {"after_ms": 5, "result": {"roots": []}}},
      {"result": {"done": true}}]}"#;

#[test]
fn a_server_request_is_sent_and_the_result_waits_for_its_answer() {
    let mut stage = Stage::new(&legacy(ASKING));
    stage.send(&initialize(0, "c"));
    let asked = r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#;
    assert_eq!(stage.send(&request(9, "tools/call", r#"{"name":"where"}"#)), [asked]);
    assert_eq!(stage.wait(9_000), [] as [&str; 0]);
    assert_eq!(stage.send(&result("1", r#"{"roots":[]}"#)), [result("9", r#"{"done":true}"#)]);
    stage.good();
    assert_eq!(stage.report().answers[0].answer, "as_recorded");
}

#[test]
fn a_gate_opens_after_its_time_and_makes_the_run_bad() {
    let mut stage = Stage::new(&legacy(ASKING));
    stage.send(&initialize(0, "c"));
    stage.send(&request(9, "tools/call", r#"{"name":"where"}"#));
    assert_eq!(stage.replayer.deadline(), Some(10_000_000));
    assert_eq!(stage.wait(10_000), [result("9", r#"{"done":true}"#)]);
    assert_eq!(stage.report().verdict, Verdict::Bad);
}

#[test]
fn a_gate_opens_when_the_client_closes_its_side() {
    let mut stage = Stage::new(&legacy(ASKING));
    stage.send(&initialize(0, "c"));
    stage.send(&request(9, "tools/call", r#"{"name":"where"}"#));
    assert_eq!(stage.close(), [result("9", r#"{"done":true}"#)]);
    assert!(stage.replayer.is_done(Lane(0)));
    assert_eq!(stage.report().verdict, Verdict::Bad);
}

#[test]
fn a_client_that_cannot_answer_is_not_asked() {
    let mut stage = Stage::new(&legacy(ASKING));
    stage.send(&initialize(0, "c").replace(r#""roots":{}"#, ""));
    assert_eq!(
        stage.send(&request(9, "tools/call", r#"{"name":"where"}"#)),
        [result("9", r#"{"done":true}"#)]
    );
    assert_eq!(stage.report().verdict, Verdict::Bad);
    assert!(stage.report().warnings.iter().any(|warning| warning.contains("`roots`")));
}

/// Two calls that overlapped: `b` was asked second and answered first.
const CROSSED: &str = r#", {"key": "tools/call a @1", "client": {"request": {"method": "tools/call", "params": {"name": "a"}}},
      "server": [{"after": "tools/call b @1 #1", "result": {"of": "a"}}]},
    {"key": "tools/call b @1", "after": "tools/call a @1", "client": {"request": {"method": "tools/call", "params": {"name": "b"}}},
      "server": [{"result": {"of": "b"}}]}"#;

#[test]
fn overlapping_answers_keep_the_recorded_order() {
    let mut stage = Stage::new(&legacy(CROSSED));
    stage.send(&initialize(0, "c"));
    assert_eq!(stage.send(&request(1, "tools/call", r#"{"name":"a"}"#)), [] as [&str; 0]);
    let both = [result("2", r#"{"of":"b"}"#), result("1", r#"{"of":"a"}"#)];
    assert_eq!(stage.send(&request(2, "tools/call", r#"{"name":"b"}"#)), both);
    stage.good();
}

#[test]
fn under_strict_nothing_comes_earlier_than_recorded() {
    let options = Options { strict: true, order_grace: 7_000, ..Options::default() };
    let mut stage = Stage::with(&legacy(CROSSED), options);
    stage.send(&initialize(0, "c"));
    stage.send(&request(1, "tools/call", r#"{"name":"a"}"#));
    assert_eq!(stage.wait(6), [] as [&str; 0]);
    assert_eq!(stage.wait(1), [result("1", r#"{"of":"a"}"#)]);
    stage.send(&request(2, "tools/call", r#"{"name":"b"}"#));
    let report = stage.report();
    assert_eq!((report.verdict, report.waits[0].bad), (Verdict::Bad, true), "{report:#?}");
}

/// One that is too long to be kept is not what another exchange differs from.
#[test]
fn what_was_too_long_to_be_kept_is_named_by_the_option() {
    let long = format!(r#"{{"name":"a","arguments":{{"text":"{}"}}}}"#, "x".repeat(300));
    let asked = request(1, "tools/call", &long);
    let omitted =
        |bytes: usize| format!(r#"{{"omitted": {{"bytes": {bytes}, "sha256": "{}"}}}}"#, "0".repeat(64));
    let answered = r#", {"key": "tools/call b @1", "client": {"request": {"method": "tools/call", "params": {"name": "b"}}}, "server": [OMITTED]}"#;
    let more = [
        &format!(
            r#", {{"key": "tools/call a @1", "client": {}, "server": [{{"id": 1, "result": {{}}}}]}}"#,
            omitted(asked.len())
        ),
        &tool("tools/call a @2", "a", r#"{"text":"short"}"#, "{}")[..],
        &answered.replace("OMITTED", &omitted(9)),
    ];
    let mut stage = Stage::new(&legacy(&more.concat()));
    stage.send(&initialize(0, "c"));
    let request_was = stage.send(&asked);
    assert!(request_was[0].contains("`tools/call a @1`, whose request was longer"), "{request_was:?}");
    assert!(!request_was[0].contains(r#""rule""#), "{request_was:?}");
    let answer_was = stage.send(&call(2, "b", "{}"));
    assert!(answer_was[0].contains("`tools/call b @1`, whose answer was longer"), "{answer_was:?}");
    let other = stage.send(&call(3, "a", r#"{"text":"other"}"#));
    assert!(other[0].contains("params_differ"), "{other:?}");
}

#[test]
fn a_request_that_never_comes_is_waited_for_once_and_not_for_long() {
    let mut stage = Stage::new(&legacy(CROSSED));
    stage.send(&initialize(0, "c"));
    stage.send(&request(1, "tools/call", r#"{"name":"a"}"#));
    assert_eq!(stage.wait(99), [] as [&str; 0]);
    assert_eq!(stage.wait(1), [result("1", r#"{"of":"a"}"#)]);
    stage.good();
    assert_eq!(stage.report().waits[0].waited_for, "`tools/call b @1` to come first");

    let mut stage = Stage::with(&legacy(CROSSED), Options { order: Order::Free, ..Options::default() });
    stage.send(&initialize(0, "c"));
    assert_eq!(stage.send(&request(1, "tools/call", r#"{"name":"a"}"#)), [result("1", r#"{"of":"a"}"#)]);
}

#[test]
fn progress_comes_before_the_result_with_the_live_token_and_a_little_apart() {
    let more = r#", {"key": "tools/call p @1",
      "client": {"request": {"method": "tools/call", "params": {"name": "p", "_meta": {"progressToken": 1}}}},
      "server": [{"after_ms": 20, "notification": {"method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}}},
                 {"after_ms": 30, "result": {}}]}"#;
    let mut stage = Stage::new(&legacy(more));
    stage.send(&initialize(0, "c"));
    let progress =
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1}}"#;
    assert_eq!(
        stage.send(&request(5, "tools/call", r#"{"name":"p","_meta":{"progressToken":"t"}}"#)),
        [progress]
    );
    assert_eq!(stage.wait(5), [result("5", "{}")]);

    // Without a token there is no progress; with recorded timing all of it takes its time.
    let recorded = Options { timing: Timing::Recorded { speed: 2.0 }, ..Options::default() };
    let mut stage = Stage::with(&legacy(more), recorded);
    stage.send(&initialize(0, "c"));
    assert_eq!(stage.send(&request(5, "tools/call", r#"{"name":"p"}"#)), [] as [&str; 0]);
    assert_eq!(stage.wait(10), [] as [&str; 0]);
    assert_eq!(stage.wait(14), [] as [&str; 0]);
    assert_eq!(stage.wait(1), [result("5", "{}")]);
}

#[test]
fn progress_that_is_all_that_was_said_carries_the_live_token() {
    let mut stage = Stage::new(&legacy(
        r#", {"key": "p @1", "unanswered": "cancelled",
      "client": {"request": {"method": "tools/call", "params": {"name": "p", "_meta": {"progressToken": 1}}}},
      "server": [{"notification": {"method": "notifications/progress", "params": {"progressToken": 1, "progress": 1}}}]}"#,
    ));
    stage.send(&initialize(0, "c"));
    assert_eq!(
        stage.send(&request(5, "tools/call", r#"{"name":"p","_meta":{"progressToken":"t"}}"#)),
        [
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1}}"#
        ]
    );
}

#[test]
fn the_last_wait_before_the_result_is_kept_where_progress_was_written_with_it() {
    let progress = |after_ms: u32, n: u32| {
        format!(
            r#"{{"after_ms": {after_ms}, "notification": {{"method": "notifications/progress", "params": {{"progressToken": 1, "progress": {n}}}}}}}"#
        )
    };
    let more = format!(
        r#", {{"key": "tools/call p @1",
      "client": {{"request": {{"method": "tools/call", "params": {{"name": "p", "_meta": {{"progressToken": 1}}}}}}}},
      "server": [{}, {}, {}, {{"result": {{}}}}]}}"#,
        progress(20, 1),
        progress(30, 2),
        progress(40, 3)
    );
    let mut stage = Stage::new(&legacy(&more));
    stage.send(&initialize(0, "c"));
    let sent = |n: u32| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":"t","progress":{n}}}}}"#
        )
    };
    assert_eq!(
        stage.send(&request(5, "tools/call", r#"{"name":"p","_meta":{"progressToken":"t"}}"#)),
        [sent(1), sent(2)]
    );
    assert_eq!(stage.wait(4), [] as [&str; 0]);
    assert_eq!(stage.wait(1), [sent(3), result("5", "{}")]);
}

#[test]
fn a_push_follows_the_client_message_before_it_and_the_answer_to_it() {
    let more = format!(
        r#"{}, {{"key": "push notifications/tools/list_changed @1", "server": [{{"notification": {{"method": "notifications/tools/list_changed"}}}}]}}"#,
        tool("tools/call a @1", "a", "{}", "{}")
    );
    let mut stage = Stage::new(&legacy(&more));
    assert_eq!(stage.send(&initialize(0, "c")).len(), 1);
    assert_eq!(
        stage.send(&call(1, "a", "{}")),
        [result("1", "{}"), note("notifications/tools/list_changed")]
    );
}

#[test]
fn what_a_server_says_before_anything_is_asked_comes_first() {
    let text = legacy("").replacen(
        r#""exchanges": ["#,
        r#""exchanges": [{"key": "push raw @1", "server": [{"raw": "[INFO] ready"}]},"#,
        1,
    );
    let mut stage = Stage::new(&text);
    assert_eq!(stage.send(&initialize(0, "c")), ["[INFO] ready".to_owned(), result("0", INITIALIZED)]);
}

#[test]
fn a_cancelled_exchange_stays_silent_and_an_open_one_stays_open() {
    let more = r#", {"key": "tools/call slow @1", "client": {"request": {"method": "tools/call", "params": {"name": "slow"}}}, "server": [], "unanswered": "cancelled"},
      {"key": "notifications/cancelled @1", "client": {"notification": {"method": "notifications/cancelled", "params": {"requestId": 1, "reason": "x"}}}, "server": []}"#;
    let mut stage = Stage::new(&legacy(more));
    stage.send(&initialize(0, "c"));
    assert_eq!(stage.send(&request(1, "tools/call", r#"{"name":"slow"}"#)), [] as [&str; 0]);
    assert_eq!(stage.replayer.deadline(), None);
    let cancel =
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"y"}}"#;
    assert_eq!(stage.send(cancel), [] as [&str; 0]);
    stage.close();
    assert!(stage.replayer.is_done(Lane(0)));
    stage.good();
}

#[test]
fn a_cancel_means_the_request_that_had_its_id_then() {
    let slow = r#"{"key": "KEY", "client": {"request": {"id": 1, "method": "tools/call", "params": {"name": "KEY"}}}, REST}"#;
    let slow = |key: &str, rest: &str| slow.replace("KEY", key).replace("REST", rest);
    let more = format!(
        r#", {}, {{"key": "cancel", "client": {{"notification": {{"method": "notifications/cancelled", "params": {{"requestId": 1}}}}}}}}, {}"#,
        slow("a", r#""unanswered": "cancelled""#),
        slow("b", r#""server": [{"result": 2}]"#)
    );
    let mut stage = Stage::new(&legacy(&more));
    stage.send(&initialize(0, "c"));
    assert_eq!(stage.send(&request(1, "tools/call", r#"{"name":"a"}"#)), [] as [&str; 0]);
    stage.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#);
    // The client has used the id again, and this call was never cancelled.
    assert_eq!(stage.send(&request(1, "tools/call", r#"{"name":"b"}"#)), [result("1", "2")]);
    stage.good();
}

#[test]
fn a_late_answer_after_a_cancel_waits_for_the_cancel() {
    let more = r#", {"key": "tools/call slow @1", "client": {"request": {"method": "tools/call", "params": {"name": "slow"}}},
        "server": [{"after": "notifications/cancelled @1", "result": {"late": true}}]},
      {"key": "notifications/cancelled @1", "after": "tools/call slow @1", "client": {"notification": {"method": "notifications/cancelled", "params": {"requestId": 1}}}, "server": []}"#;
    let mut stage = Stage::new(&legacy(more));
    stage.send(&initialize(0, "c"));
    assert_eq!(stage.send(&request(4, "tools/call", r#"{"name":"slow"}"#)), [] as [&str; 0]);
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":4}}"#;
    assert_eq!(stage.send(cancel), [result("4", r#"{"late":true}"#)]);
    stage.good();
}

#[test]
fn a_lost_answer_is_a_miss_and_its_notifications_come() {
    let more = r#", {"key": "tools/call q @1", "client": {"request": {"method": "tools/call", "params": {"name": "q"}}},
        "server": [{"notification": {"method": "notifications/message", "params": {"level": "info", "data": "started"}}}], "unanswered": "lost"}"#;
    let mut stage = Stage::new(&legacy(more));
    stage.send(&initialize(0, "c"));
    let got = stage.send(&request(4, "tools/call", r#"{"name":"q"}"#));
    assert!(got[0].contains("started") && got[1].contains(r#""reason":"incomplete""#), "{got:?}");
    stage.missed(Reason::Incomplete);
}

#[test]
fn a_server_that_died_in_mid_call_dies_there_again() {
    let session = r#"{"session": 1, "recording": 1, "transport": "stdio", "protocol": "2025-11-25", "end": {"exit": 3}}"#;
    let more = r#", {"key": "tools/call q @1", "client": {"request": {"method": "tools/call", "params": {"name": "q"}}}, "server": []}"#;
    let mut stage = Stage::new(&sessions(session, more));
    assert_eq!(stage.send(&initialize(0, "c")), [result("0", INITIALIZED)]);
    assert_eq!(stage.send(&request(4, "tools/call", r#"{"name":"q"}"#)), ["END exit=Some(3) signal=None"]);
}

#[test]
fn a_probe_that_ended_its_server_ends_it_again() {
    let text = r#"{"cassette": 1, "sessions": [{"session": 1, "recording": 1, "transport": "stdio", "end": {"exit": 1}}], "exchanges": [
      {"key": "server/discover @1", "client": {"request": {"id": 1, "method": "server/discover", "params": {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}}}, "server": []}]}"#;
    let mut stage = Stage::new(text);
    let discover = request(
        1,
        "server/discover",
        r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#,
    );
    assert_eq!(stage.send(&discover), ["END exit=Some(1) signal=None"]);
}

const TWO_SESSIONS: &str = r#"{"cassette": 1, "sessions": [
    {"session": 1, "recording": 1, "transport": "stdio", "protocol": "2025-11-25", "client": "one"},
    {"session": 2, "recording": 1, "transport": "stdio", "protocol": "2025-11-25", "client": "two"}], "exchanges": [
    {"key": "initialize @1", "client": {"request": {"method": "initialize", "params": {}}}, "server": [{"result": {"s": 1}}]},
    {"key": "tools/call a @1", "client": {"request": {"method": "tools/call", "params": {"name": "a"}}}, "server": [{"result": {"s": 1}}]},
    {"key": "initialize @2", "session": 2, "client": {"request": {"method": "initialize", "params": {}}}, "server": [{"result": {"s": 2}}]},
    {"key": "tools/call b @1", "session": 2, "client": {"request": {"method": "tools/call", "params": {"name": "b"}}}, "server": [{"result": {"s": 2}}]}]}"#;

#[test]
fn a_session_is_chosen_by_client_and_never_answers_for_another() {
    let mut stage = Stage::new(TWO_SESSIONS);
    assert_eq!(stage.send(&initialize(0, "two")), [result("0", r#"{"s":2}"#)]);
    assert_eq!(stage.send(&request(1, "tools/call", r#"{"name":"b"}"#)), [result("1", r#"{"s":2}"#)]);
    let other = stage.send(&request(2, "tools/call", r#"{"name":"a"}"#)).remove(0);
    assert!(other.contains(r#""reason":"other_session""#) && other.contains("tools/call a @1"), "{other}");
    // The next one is the first not yet played, then the last again.
    assert_eq!(stage.send(&initialize(3, "stranger")), [result("3", r#"{"s":1}"#)]);
    assert_eq!(stage.send(&initialize(4, "stranger")), [result("4", r#"{"s":2}"#)]);
    assert_eq!(stage.send(&request(5, "tools/call", r#"{"name":"b"}"#)), [result("5", r#"{"s":2}"#)]);
    assert_eq!(stage.report().sessions, 3);
}

/// `initialize` with these params, beside a name.
fn initialize_with(id: u64, params: &str) -> String {
    request(id, "initialize", &format!(r#"{{"clientInfo":{{"name":"c","version":"1"}},{params}}}"#))
}

#[test]
fn an_equal_initialize_chooses_the_session_before_the_name_does() {
    let session = |number: usize, client: &str, params: &str| {
        let begun = format!(
            r#"{{"key": "initialize @{number}", "session": {number}, "client": {{"request": {{"method": "initialize", "params": {params}}}}}, "server": [{{"result": {{"s": {number}}}}}]}}"#
        );
        let named = format!(
            r#"{{"session": {number}, "recording": 1, "transport": "stdio", "protocol": "2025-11-25", "client": "{client}"}}"#
        );
        (named, begun)
    };
    let cassette = |rules: &str| {
        let params =
            [r#""k": 1"#, r#""k": 2, "token": "<redacted:token-7>""#, r#""capabilities": {"e": {}}"#];
        let (named, begun): (Vec<_>, Vec<_>) = (1..)
            .zip(params)
            .map(|(at, params)| {
                let params = format!(r#"{{"clientInfo": {{"version": "1", "name": "c"}}, {params}}}"#);
                session(at, "c", &params)
            })
            .unzip();
        let (named, begun) = (named.join(", "), begun.join(", "));
        format!(r#"{{"cassette": 1, {rules} "sessions": [{named}], "exchanges": [{begun}]}}"#)
    };
    let asked = |rules: &str, params: &[&str]| {
        let mut stage = Stage::new(&cassette(rules));
        let said = |params: &&str| stage.send(&initialize_with(1, params)).remove(0);
        let said: Vec<String> = params.iter().map(said).collect();
        let number = |said: &String| said.trim_end_matches('}').rsplit(':').next().unwrap().to_owned();
        said.iter().map(number).collect::<Vec<_>>().join(" ")
    };
    let third = r#""capabilities":{"e":{}},"_meta":{"progressToken":7}"#;
    assert_eq!(asked("", &[third, r#""k":1.0"#, r#""k":3"#]), "3 1 2");
    // A secret is what it was called.
    let second = r#""token":"ghp_0123456789abcdefghijklmnopqrstuvwxyz","k":2"#;
    assert_eq!(asked("", &[second, r#""k":3"#, r#""k":3"#]), "2 1 3");
    // Once all have been played, the last that is equal is played again, else the last.
    assert_eq!(asked("", &[third, third, third, r#""k":1"#, third, r#""k":3"#]), "3 1 2 1 3 3");
    // A rule says what is equal.
    let rule =
        r#""match": [{"when": {"key": "initialize @3"}, "ignore": ["/params/k", "/params/capabilities"]}],"#;
    assert_eq!(asked(rule, &[r#""k":3"#, r#""k":2"#, r#""k":1"#]), "3 1 2");
    assert_eq!(asked(rule, &[r#""k":1"#, r#""k":2"#]), "1 3");
}

fn told(stage: &Stage) -> Vec<String> {
    stage
        .report()
        .protocol
        .iter()
        .map(|told| format!("{} {} {}", told.rule, told.method, told.count))
        .collect()
}

#[test]
fn what_a_client_does_against_the_protocol_is_told() {
    let list = r#", {"key": "tools/list @1", "client": {"request": {"method": "tools/list"}}, "server": [{"result": {"tools": [{"name": "search"}]}}]}"#;
    let cassette = legacy(&format!("{list}{}", tool("tools/call a @1", "a", "{}", "{}")));
    let mut stage = Stage::new(&cassette);
    stage.send(&call(1, "a", "{}"));
    stage.send(&initialize(1, "c"));
    stage.send(&request(1, "tools/list", "{}"));
    stage.send(&call(2, "a", "{}"));
    stage.send(&call(2, "a", "{}"));
    stage.send(&request(3, "search", "{}"));
    stage.send(&request(4, "tools/lst", "{}"));
    stage.send(&initialize(5, "c"));
    assert_eq!(
        told(&stage),
        [
            "handshake-first tools/call 1",
            "reused-id tools/list 1",
            "reused-id tools/call 1",
            "tool-as-method search 1",
            "unknown-method tools/lst 1",
            "handshake-twice initialize 1",
            "handshake-initialized tools/list 1",
        ]
    );
    let tool_as_method = &stage.report().protocol[3];
    assert!(tool_as_method.text.contains(r#"call it by `tools/call` with the params {"name": "search""#));
    assert_eq!(tool_as_method.source, "2025-11-25/server/tools");
    let mut stage = Stage::new(&cassette);
    stage.send(&request(0, "ping", "{}"));
    stage.send(&initialize(1, "c"));
    stage.send(&note("notifications/initialized"));
    stage.send(&call(2, "a", "{}"));
    stage.send(&request(3, "tools/list", "{}"));
    assert_eq!(told(&stage), [""; 0]);
}

/// A recorder that did not reach its server leaves a recording too.
#[test]
fn a_recording_without_a_word_of_a_server_hides_none_before_it() {
    let silent = r#"{"session": 3, "recording": 2, "transport": "http", "protocol": "2025-11-25"}], "exchanges": [
    {"key": "initialize @3", "session": 3, "client": {"request": {"method": "initialize", "params": {}}}, "server": [], "unanswered": "lost"},"#;
    let text = TWO_SESSIONS.replacen("], \"exchanges\": [", &format!(",\n    {silent}"), 1);
    let mut stage = Stage::new(&text);
    assert_eq!(stage.send(&initialize(0, "two")), [result("0", r#"{"s":2}"#)]);
    let warnings = &stage.report().warnings;
    assert!(warnings[0].starts_with("recording 2 has nothing that a server said"), "{warnings:?}");
    let mut stage = Stage::with(&text, Options { recording: Some(2), ..Options::default() });
    assert!(stage.send(&initialize(0, "two"))[0].contains("incomplete"));
    assert_eq!(stage.report().warnings, [""; 0]);
}

#[test]
fn one_session_can_be_chosen_and_a_missing_one_is_named() {
    let mut stage = Stage::with(TWO_SESSIONS, Options { session: Some(1), ..Options::default() });
    assert_eq!(stage.send(&initialize(0, "two")), [result("0", r#"{"s":1}"#)]);
    let cassette = Arc::new(Cassette::load(TWO_SESSIONS.as_bytes().to_vec(), &NoBlobs).expect("loads"));
    let options = Options { session: Some(7), ..Options::default() };
    let error = Replayer::new(cassette, Arc::new(NoBlobs), "", options).expect_err("no session 7");
    assert_eq!(error.to_string(), "the recording has no session 7; it has 1, 2");
}

#[test]
fn a_modern_recording_tells_a_legacy_client_so() {
    let text = r#"{"cassette": 1, "sessions": [{"session": 1, "recording": 1, "transport": "stdio", "protocol": "2026-07-28"}], "exchanges": [
      {"key": "tools/list @1", "client": {"request": {"method": "tools/list", "params": {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}}}}, "server": [{"result": {"tools": []}}]}]}"#;
    let mut stage = Stage::new(text);
    let answer = stage.send(&initialize(0, "c")).remove(0);
    assert!(answer.contains("2026-07-28") && answer.contains("other_era"), "{answer}");
    let list = request(
        1,
        "tools/list",
        r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","traceparent":"x"}}"#,
    );
    assert_eq!(stage.send(&list), [result("1", r#"{"tools":[]}"#)]);
}

#[test]
fn strict_wants_each_exchange_once_in_its_order_and_none_left_over() {
    let strict = || Options { strict: true, ..Options::default() };
    let two = tool("tools/call a @1", "a", "{}", "{}") + &tool("tools/call b @1", "b", "{}", "{}");
    let mut stage = Stage::with(&legacy(&two), strict());
    stage.send(&initialize(0, "c"));
    stage.send(&call(1, "a", "{}"));
    assert_eq!(stage.report().verdict, Verdict::Bad, "b is left over");
    assert_eq!(stage.report().unused, ["tools/call b @1"]);
    stage.send(&call(2, "b", "{}"));
    stage.good();
    stage.send(&call(3, "b", "{}"));
    stage.missed(Reason::Consumed);

    let mut stage = Stage::with(&legacy(&two), strict());
    stage.send(&initialize(0, "c"));
    stage.send(&call(1, "b", "{}"));
    assert_eq!((stage.report().misses.len(), stage.report().left_over), (0, vec!["tools/call a @1".into()]));
    // It is answered, for what was moved is only known at the end.
    assert_eq!(stage.send(&call(2, "a", "{}")), [result("2", "{}")]);
    stage.missed(Reason::OutOfOrder);
    let report = stage.report();
    assert_eq!(report.left_over, [""; 0]);
    let both = "`tools/call b @1` came where `tools/call a @1` was expected, and was recorded behind `tools/call a @1`";
    assert!(report.misses[0].message.contains(both), "{report:#?}");
    assert_eq!(report.misses[0].nearest.as_deref(), Some("tools/call b @1"));
}

/// What is wrong under `--strict` is the verdict's affair: the same comes as without, but for what was not recorded so
/// often.
#[test]
fn equal_requests_get_the_same_answers_under_strict() {
    let answers = |recorded: &str, asked: &str, strict: bool| {
        let one = |(n, name): (usize, char)| {
            let key = format!("tools/call {name} @{n}");
            tool(&key, &name.to_string(), "{}", &format!(r#"{{"of":"{name}{n}"}}"#))
        };
        let more: String = (1..).zip(recorded.chars()).map(one).collect();
        let mut stage = Stage::with(&legacy(&more), Options { strict, ..Options::default() });
        stage.send(&initialize(0, "c"));
        let said = |name: char| stage.send(&call(7, &name.to_string(), "{}")).remove(0);
        let said: Vec<String> = asked.chars().map(said).collect();
        assert_eq!(stage.report().verdict == Verdict::Bad, strict, "{recorded} as {asked}");
        said
    };
    for (recorded, asked) in
        [("abcabcabc", "abcbacabc"), ("abab", "aabb"), ("aabb", "bbaa"), ("abac", "caab")]
    {
        let plain = answers(recorded, asked, false);
        assert_eq!(answers(recorded, asked, true), plain, "{recorded} as {asked}");
    }
}

/// Each difference in what is asked is one finding, and what follows it is in order.
#[test]
fn what_is_missing_changed_surplus_or_moved_under_strict_is_told_once() {
    use Reason::{Consumed, NeverRecorded, OutOfOrder, ParamsDiffer};
    let calls = ["a1", "b1", "c1", "a1", "d1", "e1", "f1", "g1"];
    let more: String = (1..).zip(calls).map(|(n, call)| recorded_call(n, call)).collect();
    let found = |asked: &str| {
        let mut stage = Stage::with(&legacy(&more), Options { strict: true, ..Options::default() });
        stage.send(&initialize(0, "c"));
        for (id, asked) in (1..).zip(asked.split(' ')) {
            stage.send(&call(id, &asked[..1], &format!(r#"{{"n":{}}}"#, &asked[1..])));
        }
        let report = stage.report();
        let misses: Vec<_> = report.misses.iter().map(|miss| (miss.reason, miss.count)).collect();
        let left: Vec<_> = report.left_over.iter().map(|key| key[11..12].to_owned()).collect();
        assert_eq!(report.verdict == Verdict::Good, misses.is_empty() && left.is_empty());
        (misses, left.concat())
    };
    let whole = "a1 b1 c1 a1 d1 e1 f1 g1";
    assert_eq!(found(whole), (vec![], String::new()));
    // Missing: at the beginning, within, before an equal one, and several.
    for (missing, left) in [("a1 ", "a"), ("e1 ", "e"), ("d1 e1 ", "de"), (" g1", "g"), ("b1 c1 a1 ", "bca")]
    {
        let (misses, left_over) = found(&whole.replacen(missing, "", 1));
        assert_eq!((misses, &*left_over), (vec![], left), "{missing}");
    }
    assert_eq!(found("a1 b1 a1 d1 e1 f1 g1"), (vec![], "c".into()));
    // Changed: it is a miss, and what was recorded in its place is left over.
    assert_eq!(found(&whole.replace("c1", "c2")), (vec![(ParamsDiffer, 1)], "c".into()));
    // Surplus: of what comes later again, of what does not, and of what was never recorded.
    assert_eq!(found(&format!("a1 {whole}")), (vec![(Consumed, 1)], String::new()));
    assert_eq!(found(&whole.replace("e1", "e1 e1")), (vec![(Consumed, 1)], String::new()));
    assert_eq!(found(&whole.replace("e1", "x1 e1")), (vec![(NeverRecorded, 1)], String::new()));
    // Moved, forwards and back.
    assert_eq!(found("a1 c1 b1 a1 d1 e1 f1 g1"), (vec![(OutOfOrder, 1)], String::new()));
    assert_eq!(found("a1 g1 b1 c1 a1 d1 e1 f1"), (vec![(OutOfOrder, 1)], String::new()));
    assert_eq!(found("a1 b1 c1 a1 e1 f1 g1 d1"), (vec![(OutOfOrder, 1)], String::new()));
}

/// All short recordings up to renaming, with each call left out, once more, or changed for the next one.
#[test]
fn one_difference_is_one_finding_however_equal_calls_are() {
    let mut recordings = vec![String::new()];
    for _ in 0..5 {
        let longer = |text: &String| {
            let letters = text.bytes().max().map_or(1, |last| last - b'a' + 2);
            let longer = (0..letters).map(|at| format!("{text}{}", char::from(b'a' + at)));
            longer.collect::<Vec<_>>()
        };
        recordings = recordings.iter().flat_map(longer).collect();
    }
    for recorded in recordings {
        let call_of = |letter: char| format!("{letter}1");
        let more: String =
            (1..).zip(recorded.chars()).map(|(n, letter)| recorded_call(n, &call_of(letter))).collect();
        let found = |asked: &str| {
            let mut stage = Stage::with(&legacy(&more), Options { strict: true, ..Options::default() });
            stage.send(&initialize(0, "c"));
            for (id, letter) in (1..).zip(asked.chars()) {
                stage.send(&call(id, &letter.to_string(), r#"{"n":1}"#));
            }
            let report = stage.report();
            let misses: u64 = report.misses.iter().map(|miss| miss.count).sum();
            (misses, report.left_over.len(), report.verdict)
        };
        assert_eq!(found(&recorded), (0, 0, Verdict::Good), "{recorded}");
        for at in 0..recorded.len() {
            let (head, tail) = recorded.split_at(at);
            let (one, rest) = tail.split_at(1);
            let without = format!("{head}{rest}");
            assert_eq!(found(&without), (0, 1, Verdict::Bad), "{recorded} as {without}");
            let again = format!("{head}{one}{tail}");
            assert_eq!(found(&again), (1, 0, Verdict::Bad), "{recorded} as {again}");
            if let Some(next) = rest.get(..1).filter(|next| *next != one) {
                let swapped = format!("{head}{next}{one}{}", &rest[1..]);
                assert_eq!(found(&swapped), (1, 0, Verdict::Bad), "{recorded} as {swapped}");
            }
        }
    }
}

fn recorded_call(number: usize, call: &str) -> String {
    tool(
        &format!("tools/call {} @{number}", &call[..1]),
        &call[..1],
        &format!(r#"{{"n": {}}}"#, &call[1..]),
        "{}",
    )
}

/// One that runs ahead of an answer is early, and what it does then is in order.
#[test]
fn a_request_before_an_answer_that_is_under_way_is_early_once() {
    let more: String = (1..).zip(["a1", "b1", "c1"]).map(|(n, call)| recorded_call(n, call)).collect();
    let timed = more.replacen(r#"[{"result""#, r#"[{"after_ms": 10, "result""#, 1);
    let options = Options { strict: true, timing: Timing::Recorded { speed: 1.0 }, ..Options::default() };
    let mut stage = Stage::with(&legacy(&timed), options);
    stage.send(&initialize(0, "c"));
    assert_eq!(stage.send(&call(1, "a", r#"{"n":1}"#)), [""; 0]);
    assert_eq!(stage.send(&call(2, "b", r#"{"n":1}"#)), [result("2", "{}")]);
    let told = &stage.report().misses[0].message;
    assert!(told.contains("`tools/call b` came before the answer of `tools/call a @1`"), "{told}");
    assert_eq!(stage.wait(10), [result("1", "{}")]);
    assert_eq!(stage.send(&call(3, "c", r#"{"n":1}"#)), [result("3", "{}")]);
    stage.missed(Reason::OutOfOrder);
    assert_eq!(stage.report().left_over, [""; 0]);
}

#[test]
fn match_rules_decide_what_counts() {
    let rules = r#""match": [{"when": {"tool": "a"}, "ignore": ["/params/arguments/limit"], "pattern": {"/params/arguments/day": "^[0-9-]+$"}}], "sessions""#;
    let text = legacy(&tool("tools/call a @1", "a", r#"{"limit": 1, "day": "2026-01-01", "q": "x"}"#, "{}"))
        .replacen(r#""sessions""#, rules, 1);
    let mut stage = Stage::new(&text);
    stage.send(&initialize(0, "c"));
    assert_eq!(stage.send(&call(1, "a", r#"{"q":"x","day":"2027-02-02"}"#)), [result("1", "{}")]);
    assert!(stage.send(&call(2, "a", r#"{"q":"x","day":"today"}"#))[0].contains("params_differ"));
    assert_eq!(stage.report().rules[0].used, 2);
}

#[test]
fn a_server_that_changes_the_ids_type_does_so_again() {
    let more = r#", {"key": "tools/list @1", "client": {"request": {"id": 7, "method": "tools/list"}}, "server": [{"id": "7", "result": {"ok": true}}]}"#;
    let mut stage = Stage::new(&legacy(more));
    stage.send(&initialize(0, "c"));
    assert_eq!(
        stage.send(r#"{"jsonrpc":"2.0","id":9,"method":"tools/list"}"#),
        [result("\"9\"", r#"{"ok":true}"#)]
    );
}

#[test]
fn a_batch_is_answered_as_a_batch() {
    let more = r#", {"key": "batch @1",
        "client": {"batch": [{"request": {"id": 2, "method": "tools/list"}}, {"notification": {"method": "notifications/x"}}, {"request": {"id": 3, "method": "ping"}}]},
        "server": [{"batch": [{"to": 2, "id": 3, "result": {"for": "ping"}}, {"to": 0, "id": 2, "result": {"for": "list"}}]}]}"#;
    let mut stage = Stage::new(&legacy(more));
    stage.send(&initialize(0, "c"));
    let batch = r#"[{"jsonrpc":"2.0","id":"a","method":"tools/list"},{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":5,"method":"ping"}]"#;
    let want = format!("[{},{}]", result("5", r#"{"for":"ping"}"#), result("\"a\"", r#"{"for":"list"}"#));
    assert_eq!(stage.send(batch), [want]);
}

/// It was recorded, and a miss says where and what is different.
#[test]
fn what_was_recorded_in_other_company_is_told_as_that() {
    let more = r#", {"key": "batch @1",
        "client": {"batch": [{"request": {"id": 2, "method": "tools/list"}}, {"request": {"id": 3, "method": "x/a"}}]},
        "server": [{"notification": {"method": "n"}}, {"batch": [{"to": 0, "id": 2, "result": {}}, {"to": 1, "id": 3, "result": {}}]}]},
      {"key": "x/b @1", "client": {"request": {"method": "x/b"}}, "server": [{"notification": {"method": "n"}}, {"result": {}}]}"#;
    let mut stage = Stage::new(&legacy(more));
    stage.send(&initialize(0, "c"));
    let ask = |id: u32, method: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}"#);
    let batch = format!("[{},{},{}]", ask(5, "x/a"), ask(6, "x/b"), ask(7, "x/c"));
    let said = [stage.send(&ask(4, "x/a")), stage.send(&batch)].concat().concat();
    for told in [
        "`x/a` was recorded in a batch, and comes alone (`batch @1`); send",
        "`x/a` was recorded in a batch of other messages (`batch @1`); send",
        "`x/b` was recorded alone, and comes in a batch (`x/b @1`); send",
        "`x/c` was never recorded",
    ] {
        assert!(said.contains(told), "{told}: {said}");
    }
}

#[test]
fn an_unpaired_error_comes_back_at_its_place() {
    let more = r#", {"key": "raw @1", "client": {"raw": "{broken"}, "server": [{"id": null, "error": {"code": -32700, "message": "Parse error"}}]}"#;
    let mut stage = Stage::new(&legacy(more));
    stage.send(&initialize(0, "c"));
    let want = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"#;
    assert_eq!(stage.send("{broken"), [want]);
    assert_eq!(stage.send("{broken"), [] as [&str; 0]);
}

/// Two calls with the same secret, of which the cassette holds a placeholder.
fn secretive() -> String {
    let first = tool("tools/call a @1", "a", r#"{"password": "<redacted:password-1>"}"#, "{}");
    first + &tool("tools/call b @1", "b", r#"{"password": "<redacted:password-1>"}"#, "{}")
}

#[test]
fn any_secret_fits_a_placeholder_but_it_must_stay_the_same() {
    let mut stage = Stage::new(&legacy(&secretive()));
    stage.send(&initialize(0, "c"));
    assert_eq!(stage.send(&call(1, "a", r#"{"password":"correct horse"}"#)), [result("1", "{}")]);
    assert_eq!(stage.send(&call(2, "b", r#"{"password":"correct horse"}"#)), [result("2", "{}")]);
    stage.good();

    let mut stage = Stage::new(&legacy(&secretive()));
    stage.send(&initialize(0, "c"));
    stage.send(&call(1, "a", r#"{"password":"correct horse"}"#));
    let other = stage.send(&call(2, "b", r#"{"password":"battery staple"}"#)).remove(0);
    assert!(other.contains("redaction_differs"), "{other}");
    stage.missed(Reason::RedactionDiffers);
}

#[test]
fn a_secret_in_a_place_that_does_not_count_pairs_nothing() {
    let ignores = r#""ignore": ["/params/arguments/password"]"#;
    let of_all = secretive_and(&format!(r#""match": [{{{ignores}}}], "sessions""#), r#""sessions""#);
    let of_one = secretive_and(
        &format!(r#""key": "tools/call b @1", "match": {{{ignores}}}"#),
        r#""key": "tools/call b @1""#,
    );
    for cassette in [of_all, of_one] {
        let mut stage = Stage::new(&cassette);
        stage.send(&initialize(0, "c"));
        assert_eq!(stage.send(&call(1, "a", r#"{"password":"correct horse"}"#)), [result("1", "{}")]);
        assert_eq!(stage.send(&call(2, "b", r#"{"password":"battery staple"}"#)), [result("2", "{}")]);
        stage.good();
    }
}

/// [`secretive`], with something in another's place.
fn secretive_and(instead: &str, of: &str) -> String {
    legacy(&secretive()).replacen(of, instead, 1)
}

#[test]
fn a_miss_tells_no_secret() {
    let mut stage = Stage::new(&legacy(&secretive()));
    stage.send(&initialize(0, "c"));
    let miss = stage.send(&call(1, "a", r#"{"password":"correct horse","more":1}"#)).remove(0);
    let told = format!("{miss} {:?}", stage.report());
    assert!(miss.contains("params_differ") && !told.contains("correct horse"), "{told}");
}

#[test]
fn variables_match_by_name_and_their_values_are_put_back() {
    let vars = Vars::new(vec![("ROOT".into(), "/home/me".into())]).expect("a variable");
    let options = Options { vars, ..Options::default() };
    let answer = r#"{"uri": "file://<var:ROOT>/b", "text": "in <var:ROOT>"}"#;
    let mut stage =
        Stage::with(&legacy(&tool("tools/call a @1", "a", r#"{"path": "<var:ROOT>/a"}"#, answer)), options);
    stage.send(&initialize(0, "c"));
    let want = result("1", r#"{"uri":"file:///home/me/b","text":"in /home/me"}"#);
    assert_eq!(stage.send(&call(1, "a", r#"{"path":"/home/me/a"}"#)), [want]);
}
