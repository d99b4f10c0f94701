//! What counts as having acted, of each fault there is.

use super::{
    tests::{call, live},
    *,
};
use crate::{
    fault::{
        catalogue::{Acts, Kind, TABLE, Where, find, parameters},
        step::ResponseHead,
    },
    traffic::SseEvent,
};

const ERROR: &str = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"busy"}}"#;
const RESULT: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":{"n":1}}}"#;

/// A fault that acts whenever it can, but for what is beyond every answer.
fn rule(name: &str) -> String {
    with(name, parameters::acting(name))
}

fn with(name: &str, parameters: &str) -> String {
    format!(r#"{{"do": "{name}"{parameters}}}"#)
}

/// What a server says to the request on this lane.
fn said(case: &str, lane: Lane) -> Vec<Output> {
    let is_stream = case == "stream";
    let head = |status| {
        let content_type = if is_stream { "text/event-stream" } else { "application/json" };
        let headers =
            vec![("content-type".into(), content_type.as_bytes().into()), ("x-one".into(), b"1".into())];
        Output::Head { lane, head: ResponseHead { status, headers, stream: is_stream } }
    };
    let ends = |end| Output::EndLane { lane, partial: Vec::new(), end };
    let body = |text: &str| Output::Body { lane, bytes: text.into() };
    match case {
        "nothing" => Vec::new(),
        "line" => vec![Output::Send { lane, bytes: RESULT.into(), apart: false }],
        "closed before its head" => vec![ends(Some(StreamEnd::Cut))],
        "no message" => vec![head(500), body("oops"), ends(None)],
        "page" => vec![head(200), body("<p>busy</p>"), ends(None)],
        "stream" => {
            let event = SseEvent { data: b"{\"method\":\"n\"}".to_vec().into(), ..SseEvent::default() };
            vec![head(200), Output::Event { lane, event }, ends(None)]
        }
        "error" => vec![head(200), body(ERROR), ends(None)],
        _ => vec![head(200), body(RESULT), ends(None)],
    }
}

/// All that is done towards both sides, and how often a rule has fired: at the end, and as events tell it.
fn played(rule: &str, case: &str, is_http: bool) -> (Vec<(Micros, Do)>, u64, usize) {
    let mut live = live(rule);
    let lane = Lane(u32::from(is_http));
    let http = Http { headers: &[], stream: None, opens_connection: true };
    let (mut seen, mut events, mut now) = (Vec::new(), Vec::new(), 0);
    let text = call(1, "a");
    let passing = live.client(0, &Came { lane, bytes: text.as_bytes(), http: is_http.then_some(http) });
    if passing == Passing::Now {
        seen.push((0, Do::Pass { lane, bytes: text.into() }));
        // As a proxy does: what is to be done is done as soon as something has been said.
        for output in said(case, lane) {
            live.server(0, output);
            seen.extend(std::iter::from_fn(|| live.poll(0)).map(|what| (0, what)));
        }
    }
    loop {
        seen.extend(std::iter::from_fn(|| live.poll(now)).map(|what| (now, what)));
        match live.deadline() {
            Some(due) => now = due,
            None => break,
        }
    }
    events.extend(live.take_events(true));
    let fired = live.finish().faults.first().map_or(0, |fault| fault.fired);
    (seen, fired, events.iter().filter(|event| event.fault.is_some()).count())
}

fn acts(case: &str, is_http: bool) -> Vec<&'static str> {
    let never = if is_http { Where::Stdio } else { Where::Http };
    let can = |kind: &&Kind| ![never, Where::Modern].contains(&kind.exists) && kind.name != "wrong_version";
    let (plain, ..) = played("", case, is_http);
    let mut acts = Vec::new();
    for kind in TABLE.iter().filter(can) {
        let (seen, fired, told) = played(&rule(kind.name), case, is_http);
        // These do more than the client sees on its lane: a server that ends has no sessions any more.
        let is_unseen = kind.name == "ignore_shutdown" || kind.name == "exit" && case != "nothing";
        let has_changed = seen != plain || is_unseen;
        assert_eq!((fired, told), (has_changed.into(), has_changed.into()), "{} on {case}", kind.name);
        if has_changed && kind.acts == Acts::Answer {
            acts.push(kind.name);
        }
    }
    acts
}

#[test]
fn a_fault_has_acted_where_the_client_sees_something_else() {
    assert_eq!(acts("nothing", false), [""; 0]);
    assert_eq!(acts("nothing", true), [""; 0]);
    assert_eq!(acts("closed before its head", true), ["reset_peer", "exit"]);
    let breaking = ["reset_peer", "close_early", "cut_after", "half_close", "exit"];
    let heads = ["wrong_content_type", "missing_header"];
    assert_eq!(acts("no message", true), [&breaking[..], &heads, &["lost_answer"]].concat());
    assert_eq!(acts("page", true), [&breaking[..], &heads, &["lost_answer"]].concat());
    assert_eq!(acts("stream", true), [&breaking[..], &heads, &["lost_answer"]].concat());
    let on_answers = |which: &dyn Fn(&Kind) -> bool| -> Vec<&str> {
        let all = TABLE.iter().filter(|kind| kind.acts == Acts::Answer && kind.name != "wrong_version");
        all.filter(|kind| which(kind)).map(|kind| kind.name).collect()
    };
    assert_eq!(acts("answer", true), on_answers(&|_| true));
    assert_eq!(acts("line", false), on_answers(&|kind| kind.exists != Where::Http));
    let of_results = ["tool_error", "schema_violation"];
    assert_eq!(acts("error", true), on_answers(&|kind| !of_results.contains(&kind.name)));
}

#[test]
fn one_that_changes_nothing_has_not_acted() {
    for (name, parameters) in parameters::IDLE {
        let exists = find(name).expect("it is there").exists;
        let cases = ["closed before its head", "no message", "page", "answer", "error", "stream", "line"];
        for case in cases {
            let is_http = case != "line";
            if exists == if is_http { Where::Stdio } else { Where::Http } {
                continue;
            }
            let (seen, fired, told) = played(&with(name, parameters), case, is_http);
            let plain = played("", case, is_http).0;
            assert_eq!((seen, fired, told), (plain, 0, 0), "{name}{parameters} on {case}");
        }
    }
    // On what goes to the server.
    let held = with("latency", r#", "ms": 0, "when": {"direction": "to_server"}"#);
    assert_eq!(played(&held, "line", false), (played("", "line", false).0, 0, 0));
}

/// What acts all the same is told in its place.
#[test]
fn an_event_names_the_fault_that_is_left() {
    let told = |rules: &str, case: &str| {
        let mut live = live(rules);
        let http = Http { headers: &[], stream: None, opens_connection: true };
        live.client(0, &Came { lane: Lane(1), bytes: call(1, "a").as_bytes(), http: Some(http) });
        for output in said(case, Lane(1)) {
            live.server(0, output);
        }
        while live.poll(9_000_000).is_some() {}
        let report = live.finish();
        let events = live.take_events(true);
        let fired: Vec<u64> = report.faults.iter().map(|fault| fault.fired).collect();
        (fired, events.into_iter().filter_map(|event| event.fault).collect::<Vec<_>>())
    };
    let latency_and = |name: &str| format!("{}, {}", rule("latency"), rule(name));
    assert_eq!(told(&latency_and("tool_error"), "answer"), (vec![1, 1], vec!["tool_error".to_owned()]));
    assert_eq!(told(&latency_and("tool_error"), "page"), (vec![1, 0], vec!["latency".to_owned()]));
    assert_eq!(told(&latency_and("timeout"), "nothing"), (vec![0, 1], vec!["timeout".to_owned()]));
    let both = format!("{}, {}", rule("list_changed"), rule("drop"));
    assert_eq!(told(&both, "answer"), (vec![0, 1], vec!["drop".to_owned()]));
    assert_eq!(told(&both, "page"), (vec![0, 0], vec![]));
}
