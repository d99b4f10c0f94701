//! What became of each message: the events of a replayer.

use mcp_tapedeck::{replay::Input, report::events::Event, traffic::Lane};

use super::stage::{INITIALIZE, REPORT, SEARCH, Stage};

/// Events in short: number, session, what was asked, key, id, correlation id, outcome, fault, milliseconds.
fn short(events: &[Event]) -> Vec<String> {
    let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let number = |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
    let line = |event: &Event| {
        [
            event.seq.to_string(),
            number(event.session),
            format!("{} {}", event.method, or_dash(&event.name)),
            or_dash(&event.key),
            event.request_id.as_ref().map_or("-", |id| id.get()).to_owned(),
            or_dash(&event.correlation_id),
            event.outcome.name().to_owned(),
            or_dash(&event.fault),
            number(event.duration_ms),
        ]
        .join(" | ")
    };
    events.iter().map(line).collect()
}

impl Stage {
    fn events(&mut self) -> Vec<String> {
        short(&self.replayer.take_events(false))
    }

    fn last_events(&mut self) -> Vec<String> {
        short(&self.replayer.take_events(true))
    }
}

const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

#[test]
fn each_message_has_an_event_once_its_outcome_is_known() {
    let mut stage = Stage::new("[]");
    stage.send(INITIALIZE);
    stage.send(INITIALIZED);
    stage.send(SEARCH);
    stage.send(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#);
    stage.send(r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"nobody"}}"#);
    stage.send(r#"{"jsonrpc":"2.0","id":10,"result":{}}"#);
    assert_eq!(
        stage.events(),
        [
            "1 | 1 | initialize - | initialize @1 | 1 | - | answered | - | 0",
            "2 | 1 | notifications/initialized - | notifications/initialized @1 | - | - | accepted | - | -",
            "3 | 1 | tools/call search | tools/call search @1 | 7 | - | answered | - | 0",
            r#"4 | 1 | ping - | - | "p" | - | self_answered | - | 0"#,
            "5 | 1 | tools/call nobody | - | 9 | - | miss | - | 0",
        ]
    );
    assert_eq!(stage.last_events(), [""; 0]);
}

#[test]
fn an_event_names_the_fault_and_tells_whether_it_ended_the_matter() {
    let mut stage = Stage::new(
        r#"[{"when": {"tool": "search"}, "script": ["ok", "timeout", {"do": "error", "code": -32603}, {"do": "latency", "ms": 30}, "drop"]}]"#,
    );
    stage.send(INITIALIZE);
    for id in 1..=5 {
        stage.send(&SEARCH.replace("\"id\":7", &format!("\"id\":{id}")));
        stage.wait(30);
    }
    let call = |rest: &str| format!("1 | tools/call search | {rest}");
    assert_eq!(
        stage.events()[1..],
        [
            format!("2 | {}", call("tools/call search @1 | 1 | - | answered | - | 0")),
            format!("3 | {}", call("tools/call search @2 | 2 | - | fault | timeout | -")),
            format!("4 | {}", call("tools/call search @2 | 3 | - | fault | error | 0")),
            format!("5 | {}", call("tools/call search @2 | 4 | - | answered | latency | 30")),
        ]
    );
    stage.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}"#);
    let mut last = stage.last_events();
    last.sort();
    assert_eq!(
        last,
        [
            format!("6 | {}", call("tools/call search @2 | 5 | - | fault | drop | -")),
            "7 | 1 | notifications/cancelled - | - | - | - | accepted | - | -".to_owned(),
        ]
    );
}

#[test]
fn an_answer_in_pieces_has_come_with_the_last_of_them() {
    for (fault, ms) in [
        (r#""do": "dribble", "chunks": 4, "ms": 40"#, 40),
        (r#""do": "bandwidth", "bytes_per_second": 1000"#, 0),
    ] {
        let name = fault.split('"').nth(3).expect("a name");
        let rules = format!(r#"[{{"when": {{"method": "tools/call"}}, {fault}}}]"#);
        for is_http in [false, true] {
            let mut stage = Stage::new(&rules);
            let asked = |stage: &mut Stage, text: &str| match is_http {
                true => stage.post(text),
                false => stage.send(text),
            };
            asked(&mut stage, INITIALIZE);
            for ask in [SEARCH, REPORT] {
                asked(&mut stage, ask);
                stage.events();
                let mut waited = 0;
                let event = loop {
                    waited += 1;
                    stage.wait(1);
                    match stage.events().pop() {
                        Some(event) => break event,
                        None => assert!(waited < 1_000, "{fault} {ask}"),
                    }
                };
                assert!(
                    event.ends_with(&format!("| answered | {name} | {waited}")) && (ms == 0 || waited == ms),
                    "{event} after {waited} ms"
                );
                assert!(stage.replayer.deadline().is_none());
            }
        }
    }
}

#[test]
fn what_a_fault_holds_back_is_not_sent_once_it_is_cancelled() {
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#;
    for is_http in [false, true] {
        let mut stage = Stage::new(r#"[{"when": {"tool": "search"}, "do": "latency", "ms": 50}]"#);
        let asked = |stage: &mut Stage, text: &str| match is_http {
            true => stage.post(text),
            false => stage.send(text),
        };
        asked(&mut stage, INITIALIZE);
        asked(&mut stage, SEARCH);
        stage.wait(10);
        stage.events();
        let said = asked(&mut stage, cancel);
        assert!(!said.contains("first"), "{said}");
        assert_eq!(stage.wait(1_000), "");
        assert!(stage.replayer.deadline().is_none());
        let events = stage.events().concat();
        assert!(events.contains("| 7 | - | cancelled | latency | -"), "{events}");
    }
}

#[test]
fn an_answer_of_which_a_part_has_gone_cannot_be_cancelled() {
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#;
    let mut stage = Stage::new(r#"[{"when": {"tool": "search"}, "do": "dribble", "chunks": 2, "ms": 20}]"#);
    stage.send(INITIALIZE);
    stage.send(SEARCH);
    assert!(stage.wait(10).starts_with("raw"));
    assert_eq!(stage.send(cancel), "");
    assert!(stage.wait(10).ends_with("}\\n\"\n"));
    let events = stage.events();
    assert!(events.iter().any(|event| event.ends_with("| 7 | - | answered | dribble | 20")), "{events:?}");
}

#[test]
fn nobody_hears_anything_behind_a_closed_stdout() {
    let mut stage = Stage::new(r#"[{"when": {"tool": "search"}, "nth": 1, "do": "close_early"}]"#);
    stage.send(INITIALIZE);
    assert_eq!(stage.send(SEARCH), "end Some(Cut)\n");
    assert_eq!(stage.send(&SEARCH.replace("\"id\":7", "\"id\":8")), "");
    stage.events();
    assert_eq!(
        stage.last_events(),
        ["3 | 1 | tools/call search | tools/call search @2 | 8 | - | unanswered | - | -"]
    );
}

#[test]
fn what_is_never_answered_is_told_at_the_end_or_when_it_is_cancelled() {
    let mut stage = Stage::new(r#"[{"when": {"tool": "search"}, "do": "latency", "ms": 1000}]"#);
    stage.send(INITIALIZE);
    stage.events();
    stage.send(&SEARCH.replace("\"id\":7", "\"id\":\"a\""));
    stage.send(&SEARCH.replace("\"id\":7", "\"id\":\"b\""));
    stage.send(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}"#);
    let key = |number: u32| format!("tools/call search | tools/call search @{number}");
    let line = |seq, number, id, outcome| {
        format!("{seq} | 1 | {} | \"{id}\" | - | {outcome} | latency | -", key(number))
    };
    assert!(stage.events().contains(&line(2, 1, "a", "cancelled")));
    assert_eq!(stage.last_events(), [line(3, 2, "b", "unanswered")]);
}

#[test]
fn over_http_requests_are_known_by_their_headers_and_lanes() {
    let mut stage = Stage::new(
        r#"[{"when": {"tool": "search"}, "nth": 2, "do": "session_expired"},
            {"when": {"tool": "report"}, "do": "cut_after", "events": 1}]"#,
    );
    stage.initialize();
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    stage.headers = vec![("traceparent", trace.to_owned()), ("x-request-id", "r-1".to_owned())];
    stage.post(SEARCH);
    stage.headers.truncate(1);
    stage.post(SEARCH);
    stage.post(SEARCH);
    stage.headers = vec![("x-request-id", "r-2".to_owned()), ("x-correlation-id", "c-2".to_owned())];
    stage.initialize();
    stage.headers.clear();
    stage.post(
        &SEARCH.replace("\"arguments\"", &format!("\"_meta\":{{\"traceparent\":\"{trace}\"}},\"arguments\"")),
    );
    stage.post(REPORT);
    let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
    assert_eq!(
        stage.events(),
        [
            "1 | 1 | initialize - | initialize @1 | 1 | - | answered | - | 0".to_owned(),
            "2 | 1 | tools/call search | tools/call search @1 | 7 | r-1 | answered | - | 0".to_owned(),
            format!(
                "3 | 1 | tools/call search | tools/call search @2 | 7 | {trace} | fault | session_expired | 0"
            ),
            format!("4 | 1 | tools/call search | - | 7 | {trace} | self_answered | - | 0"),
            "5 | 2 | initialize - | initialize @1 | 1 | c-2 | answered | - | 0".to_owned(),
            format!("6 | 2 | tools/call search | tools/call search @2 | 7 | {trace} | answered | - | 0"),
            "7 | 2 | tools/call report | tools/call report @1 | 8 | - | fault | cut_after | -".to_owned(),
        ]
    );
}

#[test]
fn secrets_do_not_reach_events() {
    let mut stage = Stage::new("[]");
    stage.initialize();
    let secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB";
    stage.headers = vec![("x-correlation-id", format!("of {secret}"))];
    stage.post(&SEARCH.replace("search", secret));
    let events = stage.events();
    assert!(events[1].contains("| tools/call <") && events[1].contains("| miss |"), "{events:?}");
    assert!(!events.concat().contains("ghp_"), "{events:?}");
}

#[test]
fn a_batch_has_an_event_for_each_of_its_messages() {
    let mut stage = Stage::new("[]");
    stage.send(INITIALIZE);
    stage.events();
    stage.send(&format!(
        r#"[{INITIALIZED},{{"jsonrpc":"2.0","id":2,"method":"a"}},{{"jsonrpc":"2.0","id":3,"method":"b"}}]"#
    ));
    assert_eq!(
        stage.last_events(),
        [
            "2 | 1 | notifications/initialized - | - | - | - | accepted | - | -",
            "3 | 1 | a - | - | 2 | - | miss | - | 0",
            "4 | 1 | b - | - | 3 | - | miss | - | 0",
        ]
    );
}

#[test]
fn an_answer_on_a_stream_of_its_own_is_found_by_session_and_id() {
    let mut stage = Stage::new(r#"[{"when": {"tool": "search"}, "nth": 2, "do": "drop"}]"#);
    let endpoint = |seen: String| {
        let at = seen.find("event /").unwrap_or_else(|| panic!("{seen}"));
        seen[at + "event ".len()..].lines().next().expect("an address").to_owned()
    };
    let (first, second) = (endpoint(stage.ask("GET", "/sse", "")), endpoint(stage.ask("GET", "/sse", "")));
    stage.ask("POST", &first, INITIALIZE);
    stage.ask("POST", &second, INITIALIZE);
    stage.ask("POST", &second, SEARCH);
    stage.ask("POST", &first, SEARCH);
    let events = stage.replayer.take_events(false);
    let lanes: Vec<u32> = events.iter().map(|event| event.lane).collect();
    assert_eq!(lanes, [3, 4, 5], "{events:#?}");
    assert!(short(&events).iter().all(|event| event.contains(" answered ")), "{events:#?}");
    let last = stage.replayer.take_events(true);
    assert_eq!((last.len(), last[0].lane, last[0].outcome.name()), (1, 6, "fault"), "{last:#?}");
}

#[test]
fn a_client_of_2026_cancels_by_leaving_and_an_older_one_may_come_back() {
    let mut stage = Stage::new(r#"[{"do": "latency", "ms": 1000, "when": {"tool": "search"}}]"#);
    stage.initialize();
    stage.events();
    stage.post(SEARCH);
    let modern = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"arguments""#;
    stage.post(&SEARCH.replace("\"arguments\"", modern));
    for lane in [2, 3] {
        stage.replayer.handle(0, Input::Left { lane: Lane(lane) });
    }
    let left: Vec<u32> = stage.replayer.take_events(false).iter().map(|event| event.lane).collect();
    assert_eq!(left, [3]);
    assert!(stage.last_events()[0].contains(" unanswered "));
}
