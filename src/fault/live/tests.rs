//! Live traffic as its two ends see it.

use super::*;
use crate::{
    fault::{Plans, step::ResponseHead},
    report::events::Outcome,
    traffic::SseEvent,
    wire::jsonrpc::Message,
};

/// Nothing is hidden, and what is spelled alike is equal.
struct Plain;

impl Look for Plain {
    fn message<'a>(&mut self, bytes: &'a [u8]) -> std::borrow::Cow<'a, [u8]> {
        bytes.into()
    }

    fn headers(&mut self, _: &[(&str, &[u8])]) {}

    fn header(&mut self, _: &str, value: &[u8]) -> String {
        String::from_utf8_lossy(value).into_owned()
    }

    fn form(&mut self, message: &Message<'_>) -> Vec<u8> {
        message.params().unwrap_or_default().to_vec()
    }
}

fn plan(rules: &str) -> Plan {
    let text = format!(r#"{{"faults": 1, "rules": [{rules}]}}"#);
    let mut plan = Plan::default();
    plan.add(Plans::read(text.as_bytes()).expect("a plan"), None, true).expect("one scenario");
    plan
}

pub(super) fn live(rules: &str) -> Live {
    let options = Options { name: "live".to_owned(), look: Box::new(Plain), events: Some(Arc::default()) };
    Live::new(Arc::new(plan(rules)), options)
}

pub(super) fn call(id: u32, tool: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","_meta":{{"progressToken":"t{id}"}}}}}}"#
    )
}

fn answer(id: u32) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
}

fn progress(id: u32) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":"t{id}","progress":1}}}}"#
    )
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#;

/// What is to be done, in short.
fn done(live: &mut Live, now: Micros) -> Vec<String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    std::iter::from_fn(|| live.poll(now))
        .map(|what| match what {
            Do::Pass { lane, bytes } => format!("{}< {}", lane.0, text(&bytes)),
            Do::Say(output) => {
                let lane = output.lane().0;
                let said = match &output {
                    Output::Head { head, .. } => format!("{}", head.status),
                    Output::EndLane { end, .. } => format!("end {end:?}"),
                    Output::End { end, .. } => format!("exit {:?}", end.exit),
                    Output::Raw { bytes, .. } => text(bytes),
                    other => text(other.text().unwrap_or_default()),
                };
                format!("{lane}> {said}")
            }
        })
        .collect()
}

fn says(live: &mut Live, now: Micros, line: &str) -> Passing {
    live.client(now, &Came { lane: Lane(0), bytes: line.as_bytes(), http: None })
}

fn hears(live: &mut Live, now: Micros, line: &str) -> Vec<String> {
    live.server(now, Output::Send { lane: Lane(0), bytes: line.into(), apart: false });
    done(live, now)
}

#[test]
fn a_fault_that_answers_keeps_the_request_from_the_server() {
    let mut live = live(r#"{"when": {"tool": "a"}, "nth": 2, "do": "error", "code": -1, "message": "busy"}"#);
    assert_eq!(says(&mut live, 0, &call(1, "a")), Passing::Now);
    assert_eq!(says(&mut live, 0, &call(2, "a")), Passing::Never);
    assert_eq!(done(&mut live, 0), [r#"0> {"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"busy"}}"#]);
    assert_eq!(says(&mut live, 0, &call(3, "b")), Passing::Now);
    assert_eq!(hears(&mut live, 0, &answer(3)), [format!("0> {}", answer(3))]);
    assert_eq!(hears(&mut live, 0, &answer(1)), [format!("0> {}", answer(1))]);
    let report = live.finish();
    assert_eq!((report.verdict, report.calls["tools/call"], report.connections), (Verdict::Good, 3, 1));
    assert_eq!(report.faults[0].keys, ["tools/call a @2"]);
}

#[test]
fn one_that_uses_the_answer_up_lets_the_server_do_it_unheard() {
    let mut live = live(r#"{"do": "error", "message": "m", "consumes": true, "times": 1}"#);
    assert_eq!(says(&mut live, 0, &call(1, "a")), Passing::Now);
    assert_eq!(done(&mut live, 0).len(), 1);
    assert!(hears(&mut live, 0, &progress(1)).is_empty() && hears(&mut live, 0, &answer(1)).is_empty());
    // The same id again is another request.
    assert_eq!(says(&mut live, 0, &call(1, "a")), Passing::Now);
    assert_eq!(hears(&mut live, 0, &answer(1)).len(), 1);
}

#[test]
fn what_the_server_says_because_of_a_request_is_late_and_all_else_is_not() {
    let mut live = live(r#"{"when": {"key": "tools/call a @1"}, "do": "latency", "ms": 5}"#);
    assert_eq!(says(&mut live, 0, &call(1, "a")), Passing::Now);
    assert_eq!(says(&mut live, 0, &call(2, "a")), Passing::Now);
    assert!(hears(&mut live, 1000, &progress(1)).is_empty() && hears(&mut live, 1000, &answer(1)).is_empty());
    assert_eq!(hears(&mut live, 2000, &progress(2)), [format!("0> {}", progress(2))]);
    assert_eq!(hears(&mut live, 2000, &answer(2)), [format!("0> {}", answer(2))]);
    assert!(live.owes(Lane(0)));
    assert_eq!(live.deadline(), Some(6000));
    assert_eq!(done(&mut live, 6000), [format!("0> {}", progress(1)), format!("0> {}", answer(1))]);
    assert!(!live.owes(Lane(0)) && live.deadline().is_none());
}

#[test]
fn what_waits_for_the_client_is_dropped_once_that_cancels_it() {
    let mut live = live(r#"{"do": "latency", "ms": 5}"#);
    says(&mut live, 0, &call(1, "a"));
    says(&mut live, 0, &call(2, "a"));
    assert!(hears(&mut live, 1000, &answer(1)).is_empty() && hears(&mut live, 1000, &answer(2)).is_empty());
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    assert_eq!(says(&mut live, 2000, cancel), Passing::Now);
    assert_eq!(done(&mut live, 9000), [format!("0> {}", answer(2))]);
    assert!(!live.owes(Lane(0)) && live.deadline().is_none());
    let outcomes: Vec<Outcome> = live.take_events(true).into_iter().map(|event| event.outcome).collect();
    assert_eq!(outcomes, [Outcome::Cancelled, Outcome::Accepted, Outcome::Answered]);
}

#[test]
fn what_goes_to_the_server_waits_and_its_cancel_does_not_overtake_it() {
    let mut live = live(r#"{"when": {"direction": "to_server", "tool": "a"}, "do": "latency", "ms": 5}"#);
    assert_eq!(says(&mut live, 0, &call(1, "a")), Passing::Later);
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    let other = cancel.replace(":1}", ":2}");
    assert_eq!(says(&mut live, 1000, &other), Passing::Now);
    assert_eq!(says(&mut live, 1000, cancel), Passing::Later);
    assert_eq!(says(&mut live, 1000, &call(2, "b")), Passing::Now);
    assert!(done(&mut live, 4999).is_empty() && live.holds());
    assert_eq!(live.deadline(), Some(5000));
    assert_eq!(done(&mut live, 5000), [format!("0< {}", call(1, "a")), format!("0< {cancel}")]);
    assert_eq!(hears(&mut live, 5000, &answer(1)), [format!("0> {}", answer(1))]);
}

#[test]
fn what_a_fault_has_asked_is_not_answered_to_the_server() {
    let mut live = live(r#"{"do": "server_request", "times": 1}"#);
    says(&mut live, 0, &call(1, "a"));
    let said = hears(&mut live, 0, &answer(1));
    assert!(said.len() == 2 && said[0].contains(r#""id":"fault-request-1","method":"ping""#), "{said:?}");
    let to = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
    assert_eq!(says(&mut live, 0, &to(r#""fault-request-1""#)), Passing::Never);
    assert_eq!(says(&mut live, 0, &to(r#""request-1""#)), Passing::Now);
}

#[test]
fn a_fault_does_not_act_in_a_revision_in_which_it_cannot_exist() {
    let mut live = live(r#"{"do": "session_expired"}, {"do": "input_required_loop"}"#);
    let modern = r#"{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"p","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
    for (id, line) in [("1", modern), ("2", &call(2, "a"))] {
        assert_eq!(says(&mut live, 0, line), Passing::Never, "{id}");
    }
    let said = done(&mut live, 0);
    assert!(said[0].contains("inputRequests") && said[1].contains("Session not found"), "{said:?}");
}

#[test]
fn a_server_ends_in_the_answers_place() {
    let mut live = live(r#"{"do": "exit", "status": 3}"#);
    says(&mut live, 0, &call(1, "a"));
    assert_eq!(hears(&mut live, 0, &progress(1)), [format!("0> {}", progress(1))]);
    assert_eq!(hears(&mut live, 0, &answer(1)), ["0> exit Some(3)"]);
}

/// A request over HTTP, in this session.
fn posts(live: &mut Live, lane: u32, session: &str, body: &str) -> Passing {
    let headers = [("mcp-session-id", session.as_bytes())];
    let headers = if session.is_empty() { &[][..] } else { &headers[..] };
    let http = Http { headers, stream: None, opens_connection: lane == 1 };
    live.client(0, &Came { lane: Lane(lane), bytes: body.as_bytes(), http: Some(http) })
}

/// A response's head.
fn head(live: &mut Live, lane: u32, session: &str, stream: bool) {
    let headers = vec![("mcp-session-id".into(), session.as_bytes().to_vec().into())];
    live.server(0, Output::Head { lane: Lane(lane), head: ResponseHead { status: 200, headers, stream } });
}

fn event(live: &mut Live, lane: u32, text: &str) {
    let event = SseEvent { data: text.as_bytes().to_vec().into(), ..SseEvent::default() };
    live.server(0, Output::Event { lane: Lane(lane), event });
}

fn ends(live: &mut Live, lane: u32) {
    live.server(0, Output::EndLane { lane: Lane(lane), partial: Vec::new(), end: None });
}

#[test]
fn a_session_that_has_expired_is_not_found_until_there_is_another() {
    let mut live =
        live(r#"{"when": {"method": "tools/call", "session": 1}, "nth": 1, "do": "session_expired"}"#);
    assert_eq!(posts(&mut live, 1, "", INITIALIZE), Passing::Now);
    head(&mut live, 1, "s1", false);
    ends(&mut live, 1);
    done(&mut live, 0);
    assert_eq!(posts(&mut live, 2, "s1", &call(1, "a")), Passing::Never);
    let gone = |lane: u32, id: &str| {
        let error = r#""error":{"code":-32001,"message":"Session not found"}"#;
        [
            format!("{lane}> 404"),
            format!(r#"{lane}> {{"jsonrpc":"2.0","id":{id},{error}}}"#),
            format!("{lane}> end None"),
        ]
    };
    assert_eq!(done(&mut live, 0), gone(2, "null"));
    // What the server would say to it is not waited for; the session stays away.
    assert_eq!(posts(&mut live, 3, "s1", &call(2, "a")), Passing::Never);
    assert_eq!(done(&mut live, 0), gone(3, "2"));
    assert_eq!(posts(&mut live, 4, "s1", ""), Passing::Never);
    assert_eq!(done(&mut live, 0), gone(4, "null"));
    assert_eq!(posts(&mut live, 5, "s1", INITIALIZE), Passing::Now);
    head(&mut live, 5, "s2", false);
    ends(&mut live, 5);
    done(&mut live, 0);
    assert_eq!(posts(&mut live, 6, "s2", &call(3, "a")), Passing::Now);
    let report = live.finish();
    assert_eq!((report.verdict, report.sessions, report.connections), (Verdict::Good, 2, 1));
    assert_eq!(report.self_answered["session not found"], 2);
    let events = live.take_events(true);
    let sessions: Vec<_> =
        events.iter().map(|event| (event.seq, event.session, event.outcome.name())).collect();
    let expected = [
        (2, Some(1), "fault"),
        (3, Some(1), "self_answered"),
        (1, Some(1), "unanswered"),
        (4, Some(2), "unanswered"),
        (5, Some(2), "unanswered"),
    ];
    let mut sorted = sessions.clone();
    sorted.sort_unstable();
    let mut wanted = expected.to_vec();
    wanted.sort_unstable();
    assert_eq!(sorted, wanted);
}

#[test]
fn over_http_a_fault_acts_on_the_whole_lane_and_on_no_other() {
    let mut live = live(r#"{"when": {"tool": "a"}, "do": "cut_after", "events": 1}"#);
    posts(&mut live, 1, "", &call(1, "a"));
    posts(&mut live, 2, "", &call(1, "b"));
    for lane in [1, 2] {
        head(&mut live, lane, "s", true);
        event(&mut live, lane, &progress(1));
        event(&mut live, lane, &answer(1));
        ends(&mut live, lane);
    }
    assert_eq!(
        done(&mut live, 0),
        [
            "1> 200".to_owned(),
            format!("1> {}", progress(1)),
            "1> end Some(Cut)".to_owned(),
            "2> 200".to_owned(),
            format!("2> {}", progress(1)),
            format!("2> {}", answer(1)),
            "2> end None".to_owned(),
        ]
    );
    // What still comes for a lane that has ended is heard by nobody.
    event(&mut live, 1, &answer(1));
    assert!(done(&mut live, 0).is_empty());
}

#[test]
fn a_server_that_ends_cuts_all_off_and_knows_no_session_any_more() {
    let mut live = live(r#"{"when": {"tool": "a"}, "do": "exit"}"#);
    posts(&mut live, 1, "", INITIALIZE);
    head(&mut live, 1, "s1", false);
    ends(&mut live, 1);
    done(&mut live, 0);
    posts(&mut live, 2, "s1", "");
    posts(&mut live, 3, "s1", &call(1, "a"));
    head(&mut live, 3, "s1", true);
    event(&mut live, 3, &answer(1));
    assert_eq!(done(&mut live, 0), ["3> 200", "3> end Some(Cut)", "2> end Some(Cut)"]);
    assert_eq!(posts(&mut live, 4, "s1", &call(2, "b")), Passing::Never);
    assert_eq!(posts(&mut live, 5, "", INITIALIZE), Passing::Now);
}

#[test]
fn over_http_and_sse_an_answer_is_an_event_of_the_stream() {
    let mut live = live(
        r#"{"when": {"key": "tools/call a @1"}, "do": "error", "message": "m"}, {"when": {"tool": "b"}, "do": "drop"}"#,
    );
    let get = Http { headers: &[], stream: None, opens_connection: true };
    live.client(0, &Came { lane: Lane(1), bytes: b"", http: Some(get) });
    let mut post = |lane: u32, body: &str| {
        let http = Http { headers: &[], stream: Some((Lane(1), "/messages?id=1")), opens_connection: false };
        live.client(0, &Came { lane: Lane(lane), bytes: body.as_bytes(), http: Some(http) })
    };
    assert_eq!([post(2, &call(1, "a")), post(3, &call(2, "b"))], [Passing::Never, Passing::Now]);
    event(&mut live, 1, &progress(2));
    event(&mut live, 1, &answer(2));
    ends(&mut live, 3);
    let said = done(&mut live, 0);
    assert_eq!(said[..3], ["2> 202", "2> Accepted", "2> end None"]);
    assert!(said[3].starts_with(r#"1> {"jsonrpc":"2.0","id":1,"error""#), "{said:?}");
    assert_eq!(said[4..], [format!("1> {}", progress(2)), "3> end None".to_owned()]);
}

#[test]
fn a_key_names_a_request_by_its_occurrence_or_is_an_error() {
    let refused = |key: &str| {
        let rule = format!(r#"{{"name": "r", "when": {{"key": {key:?}}}, "do": "timeout"}}"#);
        plan(&rule).check_live(false).map_err(|error| error.text)
    };
    for key in ["tools/call a @1", "ping @12", r#"resources/read "a b" @1"#, "initialize @1"] {
        assert_eq!(refused(key), Ok(()), "{key}");
    }
    for (key, why) in [
        ("my own", "there it is METHOD NAME @N"),
        ("ping @0", "there it is METHOD NAME @N"),
        ("ping x @1", "requests `ping` have no name; write `ping @1`"),
        ("tools/call @2", "requests `tools/call` have a name"),
        ("resources/read a b @1", r#"is written `resources/read "a b" @1`"#),
    ] {
        let told = refused(key).expect_err(key);
        assert!(told.starts_with(&format!("rule `r`: `{key}` is no key of live traffic: ")), "{told}");
        assert!(told.contains(why), "{told}");
    }
    let told = plan(r#"{"do": "refuse"}"#).check_live(false).expect_err("it needs HTTP").text;
    assert!(told.contains("`refuse` cannot exist here"), "{told}");
}

/// It is told, and the rule has not acted.
#[test]
fn a_batch_passes_as_it_is_both_ways() {
    let rule = r#"{"when": {"tool": "a"}, "do": "error", "message": "m"}"#;
    let batch = format!("[{},{}]", call(1, "a"), call(2, "a"));
    let answers = format!("[{},{}]", answer(2), answer(1));
    let told = |live: &mut Live| {
        let events: Vec<_> =
            live.take_events(true).into_iter().map(|event| (event.outcome, event.fault)).collect();
        assert_eq!(events, [(Outcome::Answered, None), (Outcome::Answered, None)]);
        let report = live.finish();
        assert_eq!((report.faults[0].fired, report.calls["tools/call"]), (0, 2));
        assert_eq!(report.warnings, [crate::fault::BATCH]);
    };
    let mut on_stdio = live(rule);
    assert_eq!(says(&mut on_stdio, 0, &batch), Passing::Now);
    assert_eq!(hears(&mut on_stdio, 0, &answers), [format!("0> {answers}")]);
    told(&mut on_stdio);
    let mut over_http = live(rule);
    assert_eq!(posts(&mut over_http, 1, "s", &batch), Passing::Now);
    head(&mut over_http, 1, "s", false);
    over_http.server(0, Output::Body { lane: Lane(1), bytes: answers.clone().into() });
    ends(&mut over_http, 1);
    assert_eq!(
        done(&mut over_http, 0),
        ["1> 200".to_owned(), format!("1> {answers}"), "1> end None".to_owned()]
    );
    told(&mut over_http);
}

#[test]
fn a_rule_that_never_acts_makes_it_bad() {
    assert_eq!(live(r#"{"do": "timeout"}"#).finish().verdict, Verdict::Bad);
    assert_eq!(live(r#"{"do": "timeout", "optional": true}"#).finish().verdict, Verdict::Good);
}
