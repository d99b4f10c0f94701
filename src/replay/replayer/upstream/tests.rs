//! Real servers as a script of events: what goes to them, and who gets what they say.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use proptest::prelude::*;

use crate::{
    cassette::{blob::NoBlobs, journal::Continues, model::Cassette},
    replay::{HttpRequest, Input, Options, Output, Replayer},
    report::{Report, Verdict},
    traffic::Lane,
    wire::jsonrpc::Message,
};

const CASSETTE: &str = r#"{"cassette": 1,
  "sessions": [{"session": 4, "recording": 2, "journal": "00112233aabb", "transport": "stdio", "protocol": "2025-11-25"}],
  "exchanges": [
    {"key": "initialize @1", "session": 4, "client": {"request": {"method": "initialize", "params": {"protocolVersion": "2025-11-25"}}},
      "server": [{"result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}}]},
    {"key": "notifications/initialized @1", "session": 4, "client": {"notification": {"method": "notifications/initialized"}}},
    {"key": "tools/call known @1", "session": 4, "client": {"request": {"method": "tools/call", "params": {"name": "known"}}},
      "server": [{"result": {"from": "cassette"}}]},
    {"key": "tools/call lost @1", "session": 4, "client": {"request": {"method": "tools/call", "params": {"name": "lost"}}},
      "unanswered": "lost"}
  ]}"#;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}}}}"#;
const GREETING: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

struct Stage(Replayer);

impl Stage {
    fn new() -> Self {
        Self::with(Options { passes_on: true, ..Options::default() })
    }

    fn with(options: Options) -> Self {
        let cassette = Arc::new(Cassette::load(CASSETTE.into(), &NoBlobs).unwrap());
        Self(Replayer::new(cassette, Arc::new(NoBlobs), "c", options).unwrap())
    }

    /// A stage on which a client has begun its session.
    fn begun() -> Self {
        let mut stage = Self::new();
        stage.client(INITIALIZE);
        stage.client(INITIALIZED);
        stage
    }

    /// The same with a real server that has answered the handshake, after a first call of the client's.
    fn open() -> Self {
        let mut stage = Self::begun();
        assert_eq!(stage.client(&call("1", "first", "")), [format!("server 0: {GREETING}")]);
        let said = stage.server(r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25"}}"#);
        assert_eq!(
            said,
            [format!("server 0: {INITIALIZED}"), format!("server 0: {}", call("1", "first", ""))]
        );
        stage
    }

    fn client(&mut self, line: &str) -> Vec<String> {
        self.0.handle(0, Input::Message { lane: Lane(0), bytes: line.as_bytes() });
        self.outputs()
    }

    fn server(&mut self, line: &str) -> Vec<String> {
        self.0.handle(0, Input::Upstream { upstream: 0, line: line.as_bytes() });
        self.outputs()
    }

    fn ends(&mut self, why: &str) -> Vec<String> {
        self.0.handle(0, Input::UpstreamEnded { upstream: 0, why });
        self.outputs()
    }

    fn post(&mut self, lane: u32, body: &str, session: Option<&[u8]>) -> Vec<Output> {
        let mut headers: Vec<(&str, &[u8])> = vec![("content-type", b"application/json")];
        headers.extend(session.map(|id| ("mcp-session-id", id)));
        let request = HttpRequest {
            method: "POST",
            target: "/mcp",
            origin: "http://h",
            headers: &headers,
            body: body.as_bytes(),
            is_whole: true,
            opens_connection: true,
        };
        self.0.handle(0, Input::Request { lane: Lane(lane), request: &request });
        std::iter::from_fn(|| self.0.poll(0)).collect()
    }

    fn outputs(&mut self) -> Vec<String> {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        std::iter::from_fn(|| self.0.poll(0))
            .map(|output| match output {
                Output::Send { bytes, .. } => text(bytes),
                Output::Upstream { upstream, line, .. } => format!("server {upstream}: {}", text(line)),
                Output::EndUpstream { upstream, .. } => format!("server {upstream} ends"),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    fn report(&self) -> Report {
        self.0.finish()
    }
}

fn call(id: &str, name: &str, meta: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{name}"{meta}}}}}"#)
}

fn result(id: &str, text: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"from":"{text}"}}}}"#)
}

#[test]
fn a_miss_is_passed_on_behind_the_client_s_own_handshake_and_what_was_recorded_is_not() {
    let mut stage = Stage::begun();
    assert_eq!(stage.client(&call("7", "known", "")), [result("7", "cassette")]);
    assert_eq!(stage.client(&call("\"a\"", "new", "")), [format!("server 0: {GREETING}")]);
    // What comes meanwhile waits too, and what was recorded does not.
    assert!(stage.client(&call("8", "other", "")).is_empty());
    assert_eq!(stage.client(&call("9", "known", "")), [result("9", "cassette")]);
    let said = stage.server(r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25"}}"#);
    let (first, second) = (call("1", "new", ""), call("2", "other", ""));
    assert_eq!(said, [INITIALIZED, &first, &second].map(|line| format!("server 0: {line}")));
    assert_eq!(stage.server(&result("2", "b")), [result("8", "b")]);
    assert_eq!(stage.server(&result("1", "a")), [result("\"a\"", "a")]);
    // An answer comes once.
    assert!(stage.server(&result("1", "again")).is_empty());
    let report = stage.report();
    assert_eq!((report.verdict, report.misses.len()), (Verdict::Good, 0));
    let told: Vec<_> =
        report.passed_on.iter().map(|told| (&*told.request, told.count, told.failed)).collect();
    assert_eq!(told, [("tools/call new", 1, 0), ("tools/call other", 1, 0)]);
    let continues = Continues { recording: 2, session: Some(4), journal: Some("00112233aabb".into()) };
    assert_eq!(stage.0.continues(0), continues);
}

#[test]
fn under_strict_nothing_may_be_passed_on() {
    let mut stage = Stage::with(Options { passes_on: true, strict: true, ..Options::default() });
    stage.client(INITIALIZE);
    stage.client(&call("1", "new", ""));
    assert_eq!(stage.report().verdict, Verdict::Bad);
}

#[test]
fn an_answer_that_was_lost_when_recorded_is_asked_for_again() {
    let mut stage = Stage::open();
    let line = call("2", "lost", "");
    assert_eq!(stage.client(&call("5", "lost", "")), [format!("server 0: {line}")]);
    assert_eq!(stage.server(&result("2", "x")), [result("5", "x")]);
    assert!(!stage.report().unused.contains(&"tools/call lost @1".to_owned()));
}

#[test]
fn progress_carries_the_client_s_token_whatever_it_is() {
    let mut stage = Stage::open();
    let token = |token: &str| format!(r#","_meta":{{"progressToken":{token},"x":1}}"#);
    let said = stage.client(&call("5", "slow", &token("\"t\"")));
    assert_eq!(said, [format!("server 0: {}", call("2", "slow", &token("2")))]);
    let progress = |token: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":1}}}}"#
        )
    };
    assert_eq!(stage.server(&progress("2")), [progress("\"t\"")]);
    assert_eq!(stage.server(&result("2", "x")), [result("5", "x")]);
    assert_eq!(stage.server(&progress("2")), [progress("\"t\"")], "late, as some servers are");
    // A notification that names nothing is the session's.
    let log = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":2}}"#;
    assert_eq!(stage.server(log), [log]);
}

#[test]
fn a_server_s_request_is_answered_by_the_client_and_by_nobody_else() {
    let mut stage = Stage::open();
    let ask =
        |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"elicitation/create","params":{{}}}}"#);
    assert_eq!(stage.server(&ask("\"e\"")), [ask("\"e\"")]);
    // The same id again, before the first is answered: the client sees another.
    assert_eq!(stage.server(&ask("\"e\"")), [ask("1000000")]);
    assert_eq!(
        stage.client(&result("1000000", "second")),
        [format!("server 0: {}", result("\"e\"", "second"))]
    );
    let take_back = |id: &str| {
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#)
    };
    assert_eq!(stage.server(&take_back("\"e\"")), [take_back("\"e\"")]);
    assert_eq!(stage.client(&result("\"e\"", "first")), [format!("server 0: {}", result("\"e\"", "first"))]);
    assert!(stage.client(&result("\"e\"", "late")).is_empty());
}

#[test]
fn a_cancel_follows_its_request_and_no_other() {
    let mut stage = Stage::open();
    stage.client(&call("\"x\"", "slow", ""));
    let cancel = |id: &str| {
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#)
    };
    assert_eq!(stage.client(&cancel("\"x\"")), [format!("server 0: {}", cancel("2"))]);
    for unknown in ["2", "\"x\"", "\"y\""] {
        assert!(stage.client(&cancel(unknown)).is_empty(), "{unknown}");
    }
    // It is owed nothing any more; the other one is.
    stage.0.handle(0, Input::Closed { lane: Lane(0) });
    assert_eq!(stage.outputs(), ["server 0 ends"]);
    assert!(!stage.0.is_done(Lane(0)));
    assert_eq!(stage.server(&result("1", "x")), [result("1", "x")]);
    assert!(stage.0.is_done(Lane(0)));
    assert!(stage.ends("over").is_empty());
    assert_eq!(stage.report().verdict, Verdict::Good);
}

#[test]
fn what_a_server_that_ended_did_not_answer_is_an_error_and_bad() {
    let mut stage = Stage::open();
    let error =
        |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-33001,"message":"it died"}}}}"#);
    assert_eq!(stage.ends("it died"), [error("1")]);
    assert_eq!(stage.client(&call("2", "new", "")), [error("2")], "it is not begun anew");
    let report = stage.report();
    assert_eq!(report.verdict, Verdict::Bad);
    assert_eq!(report.passed_on[0].why.as_deref(), Some("it died"));
    assert_eq!(stage.client(&call("3", "known", "")), [result("3", "cassette")], "the recording goes on");
}

#[test]
fn a_server_that_was_never_there_is_told_to_a_client_that_has_closed_its_side_too() {
    let mut stage = Stage::begun();
    stage.client(&call("1", "new", ""));
    stage.0.handle(0, Input::Closed { lane: Lane(0) });
    stage.outputs();
    assert_eq!(stage.ends("no such program").len(), 1);
    assert_eq!((stage.report().verdict, stage.0.is_done(Lane(0))), (Verdict::Bad, true));
}

#[test]
fn a_client_that_leaves_in_the_middle_of_the_handshake_ends_the_server_s_input() {
    let mut stage = Stage::begun();
    stage.client(&call("\"a\"", "new", ""));
    stage.0.handle(0, Input::Closed { lane: Lane(0) });
    let call = call("1", "new", "");
    let said = stage.outputs();
    assert_eq!(said, [&*format!("server 0: {INITIALIZED}"), &*format!("server 0: {call}"), "server 0 ends"]);
    // It may still answer both.
    assert!(stage.server(r#"{"jsonrpc":"2.0","id":0,"result":{}}"#).is_empty());
    assert!(!stage.0.is_done(Lane(0)));
    assert_eq!(stage.server(&result("1", "x")), [result("\"a\"", "x")]);
    assert!(stage.0.is_done(Lane(0)));
}

#[test]
fn what_a_server_tells_by_itself_is_heard_from_the_end_of_the_handshake_on() {
    let mut stage = Stage::begun();
    stage.client(&call("1", "new", ""));
    let told = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    assert!(stage.server(told).is_empty());
    stage.server(r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25"}}"#);
    assert_eq!(stage.server(told), [told]);
}

#[test]
fn what_is_unanswered_when_the_client_has_left_is_bad_unless_it_waits_for_nothing() {
    let modern = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
    let listen =
        format!(r#"{{"jsonrpc":"2.0","id":5,"method":"subscriptions/listen","params":{{{modern}}}}}"#);
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":6}}"#;
    for (line, is_bad) in [(&*call("1", "slow", ""), true), (&listen, false), (cancel, false)] {
        for is_ended in [true, false] {
            let mut stage = Stage::open();
            stage.server(&result("1", "x"));
            if line == cancel {
                stage.client(&call("6", "slow", ""));
            }
            stage.client(line);
            assert_eq!(stage.0.report().passed_on.iter().map(|told| told.failed).sum::<u64>(), 0);
            stage.0.handle(0, Input::Closed { lane: Lane(0) });
            if is_ended {
                assert_eq!(stage.outputs(), ["server 0 ends"]);
                assert_eq!(stage.ends("it went").len(), usize::from(is_bad));
            } else {
                stage.0.handle(0, Input::Left { lane: Lane(0) });
            }
            let report = stage.report();
            let why = report.passed_on.iter().find_map(|told| told.why.as_deref());
            let expected =
                if is_ended { "it went" } else { "the client left before the real server answered" };
            assert_eq!(why, is_bad.then_some(expected), "{line}");
            assert_eq!(report.verdict == Verdict::Bad, is_bad);
        }
    }
}

#[test]
fn a_server_that_refuses_the_handshake_answers_nothing() {
    let mut stage = Stage::begun();
    stage.client(&call("1", "new", ""));
    let said = stage.server(r#"{"jsonrpc":"2.0","id":0,"error":{"code":-32602,"message":"too old"}}"#);
    assert_eq!(said.len(), 2);
    assert!(said[0].contains("the real server refuses the client's `initialize`: too old"), "{said:?}");
    assert_eq!(said[1], "server 0 ends");
    assert!(stage.server(&result("1", "late")).is_empty());
    assert_eq!(stage.report().warnings.len(), 0);
}

#[test]
fn a_second_session_of_a_pipe_has_a_server_of_its_own() {
    let mut stage = Stage::open();
    assert_eq!(stage.client(INITIALIZE)[0], "server 0 ends");
    assert_eq!(stage.client(&call("1", "new", "")), [format!("server 1: {GREETING}")]);
    // The first one may still answer.
    assert_eq!(stage.server(&result("1", "late")), [result("1", "late")]);
}

#[test]
fn what_has_no_handshake_needs_none() {
    let modern =
        |id: &str| call(id, "new", r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#);
    let mut stage = Stage::new();
    assert_eq!(stage.client(&modern("4")), [format!("server 0: {}", modern("1"))]);
    assert_eq!(stage.client(&call("5", "new", "")), [format!("server 0: {}", call("2", "new", ""))]);
}

#[test]
fn over_http_an_answer_is_a_body_or_where_more_was_said_before_it_a_stream() {
    let mut stage = Stage::new();
    let begun = stage.post(1, INITIALIZE, None);
    let Some(Output::Head { head, .. }) = begun.first() else { panic!("{begun:?}") };
    let session = head.headers.iter().find(|(name, _)| &**name == "mcp-session-id").unwrap().1.clone();
    let said = stage.post(2, &call("7", "new", ""), Some(&session));
    assert!(matches!(&said[..], [Output::Upstream { upstream: 0, .. }]), "{said:?}");
    stage.0.handle(0, Input::Upstream { upstream: 0, line: br#"{"jsonrpc":"2.0","id":0,"result":{}}"# });
    while stage.0.poll(0).is_some() {}
    let mut hear = |line: &str| {
        stage.0.handle(0, Input::Upstream { upstream: 0, line: line.as_bytes() });
        std::iter::from_fn(|| stage.0.poll(0)).collect::<Vec<_>>()
    };
    let heard = hear(&result("1", "x"));
    assert!(
        matches!(&heard[..], [Output::Head { .. }, Output::Body { .. }, Output::EndLane { .. }]),
        "{heard:?}"
    );
    assert_eq!(heard[1].text(), Some(result("7", "x").as_bytes()));
    stage.post(3, &call("8", "new", ""), Some(&session));
    let mut hear = |line: &str| {
        stage.0.handle(0, Input::Upstream { upstream: 0, line: line.as_bytes() });
        std::iter::from_fn(|| stage.0.poll(0)).collect::<Vec<_>>()
    };
    let log = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#;
    assert!(matches!(&hear(log)[..], [Output::Head { head, .. }, Output::Event { .. }] if head.stream));
    assert!(matches!(&hear(&result("2", "y"))[..], [Output::Event { .. }, Output::EndLane { .. }]));
    // The session's end is the server's.
    let headers: [(&str, &[u8]); 1] = [("mcp-session-id", &session)];
    let request = HttpRequest {
        method: "DELETE",
        target: "/mcp",
        origin: "http://h",
        headers: &headers,
        body: b"",
        is_whole: true,
        opens_connection: false,
    };
    stage.0.handle(0, Input::Request { lane: Lane(4), request: &request });
    let said: Vec<_> = std::iter::from_fn(|| stage.0.poll(0)).collect();
    assert!(said.iter().any(|output| matches!(output, Output::EndUpstream { upstream: 0, .. })), "{said:?}");
}

/// What a client may use for an id.
fn id() -> impl Strategy<Value = String> {
    prop_oneof![
        (0..3u32).prop_map(|id| id.to_string()),
        (0..3u32).prop_map(|id| format!("\"{id}\"")),
        Just("null".into())
    ]
}

/// The clients of a take, and their servers.
#[derive(Default)]
struct Crowd {
    /// What servers were asked and have not answered: which, under which id, and what for.
    waiting: Vec<(u32, String, String)>,
    /// What each client got: for which id, and what it was asked for.
    got: BTreeMap<u32, Vec<(String, String)>>,
    /// Whom each server is there for.
    servers: HashMap<u32, u32>,
}

impl Crowd {
    fn hear(&mut self, stage: &mut Stage) {
        let text = |bytes: Option<&[u8]>| String::from_utf8(bytes.unwrap().to_vec()).unwrap();
        while let Some(output) = stage.0.poll(0) {
            match output {
                Output::Upstream { lane, upstream, line } => {
                    assert_eq!(*self.servers.entry(upstream).or_insert(lane.0), lane.0);
                    let line = Message::read(&line);
                    self.waiting.push((upstream, text(line.id()), text(line.param("/name"))));
                }
                Output::Send { lane, bytes, .. } => {
                    let line = Message::read(&bytes);
                    let of = line.outcome().unwrap().strip_prefix(b"{\"of\":").unwrap().strip_suffix(b"}");
                    self.got.entry(lane.0).or_default().push((text(line.id()), text(of)));
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

proptest! {
    /// Several clients of one take, each with ids that others use too: whatever order their servers answer in, each
    /// gets the answers to its own requests, under its own ids.
    #[test]
    fn nobody_gets_anothers_answer(
        asked in prop::collection::vec((0..3u32, id()), 1..30),
        order in prop::collection::vec(any::<prop::sample::Index>(), 30),
    ) {
        let mut stage = Stage::new();
        let mut crowd = Crowd::default();
        let mut expected: BTreeMap<u32, Vec<(String, String)>> = BTreeMap::new();
        let mut order = order.into_iter();
        for (number, (lane, id)) in asked.iter().enumerate() {
            let name = format!("{number}");
            stage.0.handle(0, Input::Message { lane: Lane(*lane), bytes: call(id, &name, "").as_bytes() });
            expected.entry(*lane).or_default().push((id.clone(), format!("\"{name}\"")));
            crowd.hear(&mut stage);
            if let Some(index) = order.next().filter(|_| number % 2 == 0) && !crowd.waiting.is_empty() {
                let at = index.index(crowd.waiting.len());
                answer(&mut stage, crowd.waiting.remove(at));
                crowd.hear(&mut stage);
            }
        }
        while let Some(last) = crowd.waiting.pop() {
            answer(&mut stage, last);
            crowd.hear(&mut stage);
        }
        for answers in expected.values_mut().chain(crowd.got.values_mut()) {
            answers.sort();
        }
        prop_assert_eq!(crowd.got, expected);
    }
}

fn answer(stage: &mut Stage, (upstream, id, name): (u32, String, String)) {
    let line = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"of":{name}}}}}"#);
    stage.0.handle(0, Input::Upstream { upstream, line: line.as_bytes() });
}
