//! What a server says unasked, before its client has said anything and when that has closed its side.

use super::*;

impl Stage {
    /// A client is there, on this pipe.
    fn open(&mut self, lane: u32) -> Vec<String> {
        self.replayer.handle(self.now, Input::Opened { lane: Lane(lane) });
        self.outputs()
    }

    fn send_on(&mut self, lane: u32, line: &str) -> Vec<String> {
        self.replayer.handle(self.now, Input::Message { lane: Lane(lane), bytes: line.as_bytes() });
        self.outputs()
    }
}

fn recorded_timing() -> Options {
    Options { timing: Timing::Recorded { speed: 1.0 }, ..Options::default() }
}

/// Two sessions, whose servers say these before `initialize`.
fn two(first: &str, second: &str) -> String {
    let session = |number: u32, opening: &str| {
        let opening = match opening {
            "" => String::new(),
            _ => format!(r#"{{"key": "first {number}", "session": {number}, "server": [{opening}]}},"#),
        };
        format!(
            r#"{opening} {{"key": "begins {number}", "session": {number},
              "client": {{"request": {{"method": "initialize", "params": {{"clientInfo": {{"name": "c{number}"}}}}}}}},
              "server": [{{"result": {{"s": {number}}}}}]}}"#
        )
    };
    format!(
        r#"{{"cassette": 1, "sessions": [
          {{"session": 1, "recording": 1, "transport": "stdio", "protocol": "2025-11-25", "client": "c1"}},
          {{"session": 2, "recording": 1, "transport": "stdio", "protocol": "2025-11-25", "client": "c2"}}
        ], "exchanges": [{}, {}]}}"#,
        session(1, first),
        session(2, second)
    )
}

const READY: &str = r#"{"raw": "ready"}"#;

#[test]
fn a_server_speaks_first_where_it_did() {
    let push = r#""exchanges": [{"key": "push raw @1", "server": [{"raw": "ready"}, {"notification": {"method": "n"}}]},"#;
    let text = legacy("").replacen(r#""exchanges": ["#, push, 1);
    let mut stage = Stage::new(&text);
    assert_eq!(stage.open(0), ["ready".to_owned(), note("n")]);
    assert_eq!(stage.open(0), Vec::<String>::new());
    assert_eq!(stage.send(&initialize(0, "c")), [result("0", INITIALIZED)]);
    assert_eq!((stage.report().connections, stage.report().sessions), (1, 1));
    stage.good();
    // Without a handshake, and to a client that never says anything.
    let text = sessions(r#"{"session": 1, "recording": 1, "transport": "stdio"}"#, "");
    let (before, after) = text.split_once(r#"{"key": "initialize @1""#).unwrap();
    let go = r#"{"key": "go", "client": {"request": {"method": "go"}}, "server": [{"result": {}}]}]}"#;
    assert!(after.contains("]}"));
    let text = format!(r#"{before}{{"key": "push raw @1", "server": [{READY}]}}, {go}"#);
    let mut stage = Stage::new(&text);
    assert_eq!(stage.open(0), ["ready"]);
    assert_eq!(stage.open(1), Vec::<String>::new(), "there was one process");
    assert_eq!(stage.send(&request(1, "go", "{}")), [result("1", "{}")]);
    let mut stage = Stage::new(&text);
    assert_eq!(stage.open(0), ["ready"]);
    assert_eq!(stage.close(), Vec::<String>::new());
    assert!(stage.replayer.is_done(Lane(0)));
    assert_eq!(stage.report().connections, 0);
}

#[test]
fn where_sessions_begin_alike_that_is_said_before_one_is_chosen() {
    let mut stage = Stage::new(&two(READY, READY));
    assert_eq!((stage.open(0), stage.open(1)), (vec!["ready".to_owned()], vec!["ready".to_owned()]));
    // Both take the first one for theirs, which is that of one of them.
    assert_eq!(stage.send_on(1, &initialize(1, "c1")), [result("1", r#"{"s":1}"#)]);
    assert_eq!(stage.send_on(0, &initialize(2, "c2")), [result("2", r#"{"s":2}"#)]);
    assert_eq!(stage.open(2), ["ready"], "the last again");
    assert_eq!(stage.send_on(2, &initialize(3, "c1")), [result("3", r#"{"s":2}"#)]);
    assert_eq!(stage.report().sessions, 3);
    stage.good();
}

#[test]
fn what_tells_sessions_apart_waits_for_the_line_that_picks_one() {
    for (first, second) in [(READY, r#"{"raw": "other"}"#), ("", r#"{"raw": "other"}"#)] {
        let mut stage = Stage::new(&two(first, second));
        assert_eq!(stage.open(0), Vec::<String>::new());
        assert_eq!(stage.send(&initialize(1, "c2")), ["other".to_owned(), result("1", r#"{"s":2}"#)]);
        // One is left.
        let expected = if first.is_empty() { vec![] } else { vec!["ready".to_owned()] };
        assert_eq!(stage.open(1), expected);
        assert_eq!(stage.send_on(1, &initialize(2, "c1")), [result("2", r#"{"s":1}"#)]);
        stage.good();
    }
}

#[test]
fn nobody_is_asked_before_it_is_known_what_it_can_do() {
    let asks = r#"{"request": {"id": 5, "method": "roots/list"}}"#;
    let mut stage = Stage::new(&two(asks, asks));
    assert_eq!(stage.open(0), Vec::<String>::new());
    let asked = r#"{"jsonrpc":"2.0","id":5,"method":"roots/list"}"#.to_owned();
    assert_eq!(stage.send(&initialize(1, "c1")), [asked, result("1", r#"{"s":1}"#)]);
    stage.good();
}

#[test]
fn with_recorded_timing_a_server_says_at_its_time_what_it_said_unasked() {
    let late = r#"{"after_ms": 300, "raw": "ready"}"#;
    for client in ["c1", "c2"] {
        let mut stage = Stage::with(&two(late, late), recorded_timing());
        assert_eq!(stage.open(0), Vec::<String>::new());
        assert_eq!(stage.wait(299), Vec::<String>::new());
        assert_eq!(stage.wait(1), ["ready"]);
        assert_eq!(stage.send(&initialize(1, client)).len(), 1);
        // One that speaks before that.
        let mut stage = Stage::with(&two(late, late), recorded_timing());
        assert_eq!(stage.open(0), Vec::<String>::new());
        assert_eq!(stage.send(&initialize(1, client)).len(), 1);
        assert_eq!(stage.wait(300), ["ready"]);
        assert_eq!(stage.wait(9999), Vec::<String>::new());
        stage.good();
    }
}

#[test]
fn what_a_server_has_left_to_say_is_said_when_its_client_closes_its_side() {
    let push = |ms: u32, text: &str| {
        format!(r#", {{"key": "{text}", "server": [{{"after_ms": {ms}, "raw": "{text}"}}]}}"#)
    };
    let slow = r#", {"key": "slow", "client": {"request": {"method": "slow"}}, "server": [{"after_ms": 100, "result": {}}]}"#;
    let more = [slow, &push(200, "one"), &push(60_000, "two")].concat();
    let begins = |text: &str| {
        let mut stage = Stage::with(text, recorded_timing());
        assert_eq!(stage.send(&initialize(0, "c")).len(), 1);
        stage
    };
    let (text, answer) = (legacy(&more), result("1", "{}"));
    let mut stage = begins(&text);
    assert_eq!(stage.send(&request(1, "slow", "{}")), Vec::<String>::new());
    assert_eq!(stage.wait(100), [&*answer]);
    assert_eq!(stage.wait(200), ["one"]);
    assert!(!stage.replayer.is_done(Lane(0)));
    assert_eq!(stage.close(), ["two"]);
    assert!(stage.replayer.is_done(Lane(0)));
    // What came before it goes before it, at its time.
    let mut stage = begins(&text);
    assert_eq!(stage.send(&request(1, "slow", "{}")), Vec::<String>::new());
    assert_eq!(stage.close(), Vec::<String>::new());
    assert!(!stage.replayer.is_done(Lane(0)));
    assert_eq!(stage.wait(100), [&*answer, "one", "two"]);
    assert!(stage.replayer.is_done(Lane(0)));
    // It comes behind what was not asked.
    let mut stage = begins(&text);
    assert_eq!(stage.close(), Vec::<String>::new());
    // Without a handshake.
    let text = text.replace("initialize", "begin").replace(r#""client": "c""#, r#""x-client": "c""#);
    let mut stage = Stage::with(&text, recorded_timing());
    assert_eq!(stage.send(&initialize(0, "c").replace("initialize", "begin")).len(), 1);
    assert_eq!(stage.send(&request(1, "slow", "{}")), Vec::<String>::new());
    assert_eq!(stage.wait(100), [&*answer]);
    assert_eq!(stage.close(), ["one", "two"]);
}
