//! What chance decided in a run becomes rules: the same faults on the same requests.

use mcp_tapedeck::{
    fault::{Plan, Plans, freeze},
    report::Verdict,
};

use super::stage::{CASSETTE, INITIALIZE, REPORT, SEARCH, Stage};

/// All that a client of a fixed script sees, with what came in time.
fn script(stage: &mut Stage) -> Vec<String> {
    let mut seen = vec![stage.send(INITIALIZE)];
    for at in 0..40 {
        let search = SEARCH.replace("\"a\"", if at % 3 == 0 { "\"b\"" } else { "\"a\"" });
        seen.push(stage.send(&search));
        seen.push(stage.send(REPORT));
        seen.push(stage.send(&SEARCH.replace("search", if at % 2 == 0 { "nobody" } else { "somebody" })));
        seen.push(stage.send(r#"{"jsonrpc":"2.0","id":9,"method":"own/method"}"#));
        seen.extend((0..4).map(|_| stage.wait(1)));
    }
    seen
}

const RULES: &str = r#"[
  {"name": "flaky", "when": {"tool": "search", "where": {"/params/arguments/q": "a"}}, "do": "error", "code": -32000, "message": "busy", "probability": 0.4, "from": 3},
  {"when": {"method": "tools/call", "where": {"/params/name": {"matches": "body$"}}}, "do": "error", "code": 1, "probability": 0.5, "note": "kept"},
  {"do": "latency", "uniform": {"min_ms": 1, "max_ms": 4}, "probability": 0.3},
  {"name": "lost", "when": {"tool": "report"}, "do": "drop", "probability": 0.2, "optional": true},
  {"name": "third", "when": {"tool": "report"}, "nth": 3, "do": "timeout"},
  {"when": {"tool": "search"}, "script": ["ok", "timeout"]}
]"#;

fn plan(text: &str) -> Plan {
    let plans = Plans::read(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"));
    let mut plan = Plan::default();
    plan.add(plans, None, true).expect("no scenario");
    plan
}

#[test]
fn a_frozen_run_meets_the_same_faults_on_the_same_requests() {
    let mut first = Stage::new(RULES);
    let seen = script(&mut first);
    let report = first.finish();
    assert_eq!(report.seed, Some(7));
    let fired: Vec<u64> = report.faults.iter().map(|fault| fault.fired).collect();
    assert!(fired.iter().all(|fired| *fired > 0), "{fired:?}");

    let frozen = freeze(&report).expect("it can be frozen");
    assert!(
        !frozen.text.contains(" \"probability\"") && frozen.text.contains("\"note\": \"kept\""),
        "{}",
        frozen.text
    );
    assert_eq!(frozen.notes, [""; 0]);
    assert!(frozen.text.contains(r#""name": "flaky: tools/call search @2""#), "{}", frozen.text);
    let mut second = Stage::with(plan(&frozen.text), CASSETTE);
    let again = script(&mut second);
    for (at, (first, second)) in seen.iter().zip(&again).enumerate() {
        assert_eq!(first, second, "number {at} under {}", frozen.text);
    }
    let again = second.finish();
    assert_eq!(again.faults.iter().map(|fault| fault.fired).sum::<u64>(), fired.iter().sum::<u64>());
    assert!(again.faults.iter().all(|fault| !fault.is_missing()), "{:#?}", again.faults);

    let refrozen = freeze(&again).expect("it can be frozen");
    assert_eq!((refrozen.drawn, refrozen.text), (0, frozen.text), "a plan without chance stays as it is");
}

#[test]
fn what_a_run_has_to_be_is_judged_at_its_end() {
    let assert = r#"{"calls": {"tools/call": {"min": 2}}, "sequence": {"contains": ["initialize", "tools/call"]}, "sessions": 1}"#;
    let text = format!(r#"{{"faults": 1, "rules": [], "assert": {assert}}}"#);
    let mut stage = Stage::with(plan(&text), CASSETTE);
    stage.send(INITIALIZE);
    stage.send(SEARCH);
    let report = stage.finish();
    let failed: Vec<_> = report.asserts.iter().filter(|assert| !assert.holds).collect();
    assert_eq!((report.verdict, report.asserts.len(), failed.len()), (Verdict::Bad, 3, 1), "{report:#?}");
    assert_eq!((&*failed[0].assert, &*failed[0].found), ("calls of tools/call: at least 2", "1"));
    stage.send(SEARCH);
    assert_eq!(stage.finish().verdict, Verdict::Good);
    assert_eq!(stage.replayer.report().asserts, [], "an open report judges nothing");
}

#[test]
fn copies_stay_under_whatever_name() {
    for copies in ["copies", "times"] {
        let rule = format!(
            r#"[{{"do": "duplicate", "{copies}": 3, "probability": 0.5, "when": {{"tool": "search"}}}}]"#
        );
        let mut first = Stage::new(&rule);
        let seen = script(&mut first);
        let frozen = freeze(&first.finish()).expect("it can be frozen");
        assert!(
            frozen.text.contains("\"copies\": 3") && !frozen.text.contains("\"times\""),
            "{}",
            frozen.text
        );
        assert_eq!(script(&mut Stage::with(plan(&frozen.text), CASSETTE)), seen, "{}", frozen.text);
    }
}
