//! Batches of 2025-03-26 that come in other company than they were recorded in.

use mcp_tapedeck::{
    replay::Options,
    report::{Reason, Verdict},
};

use super::stage::*;

/// A recorded batch of calls of `a` and `b`.
fn batch(key: &str, a: &str, b: &str) -> String {
    let call = |id: u32, name: &str| {
        format!(r#"{{"request": {{"id": {id}, "method": "tools/call", "params": {{"name": "{name}"}}}}}}"#)
    };
    format!(
        r#", {{"key": "{key}", "client": {{"batch": [{}, {{"notification": {{"method": "n"}}}}, {}]}},
          "server": [{{"batch": [{{"to": 2, "id": 3, "result": "{b}"}}, {{"to": 0, "id": 2, "result": "{a}"}}]}}]}}"#,
        call(2, "a"),
        call(3, "b")
    )
}

fn asks(stage: &mut Stage, session: &str, members: &[String]) -> String {
    let heard = stage.post(&[session], &format!("[{}]", members.join(",")));
    let body = heard.into_iter().find(|heard| heard.contains(" body ")).expect("an answer");
    body.split_once(" body ").expect("a body").1.to_owned()
}

fn joined(answers: &[(u32, &str)]) -> String {
    let answers: Vec<String> = answers.iter().map(|(id, text)| result(*id, &format!("\"{text}\""))).collect();
    format!("[{}]", answers.join(","))
}

#[test]
fn a_batch_in_another_order_or_a_part_of_one_gets_the_recorded_answers() {
    let exchanges = with_id(1) + &batch("first", "a1", "b1") + &batch("second", "a2", "b2");
    let mut stage = Stage::new(HTTP, &exchanges);
    let id = stage.begin();
    let heard = asks(&mut stage, &id, &[call(8, "b"), call(9, "a")]);
    assert_eq!(heard, joined(&[(8, "b1"), (9, "a1")]));
    let heard = asks(&mut stage, &id, &[note("n"), call(1, "b")]);
    assert_eq!(heard, joined(&[(1, "b2")]));
    let heard = asks(&mut stage, &id, &[call(2, "a"), note("n")]);
    assert_eq!(heard, joined(&[(2, "a2")]));
    let report = stage.report();
    assert_eq!((report.misses.len(), report.repeats.len(), report.unused.len()), (0, 0, 0), "{report:#?}");
    let heard = asks(&mut stage, &id, &[call(3, "a"), call(4, "a")]);
    assert_eq!(heard, joined(&[(3, "a2"), (4, "a2")]));
    assert_eq!(stage.report().repeats[0].count, 2);
    stage.good();
}

#[test]
fn requests_that_stood_alone_and_those_that_we_answer_ourselves_come_in_one_batch() {
    let single = tool("s", "s", r#""server": [{"result": "alone"}]"#);
    let mut stage = Stage::new(HTTP, &(with_id(1) + &single + &batch("batch", "a1", "b1")));
    let id = stage.begin();
    let ping = |id: u32| ask(id, "ping", "{}");
    assert_eq!(asks(&mut stage, &id, &[ping(1)]), format!("[{}]", result(1, "{}")));
    let heard = asks(&mut stage, &id, &[call(2, "s"), ping(3), call(4, "a"), ask(5, "prompts/list", "{}")]);
    let answers = [result(2, "\"alone\""), result(3, "{}"), result(4, "\"a1\"")].join(",");
    assert!(heard.starts_with(&format!("[{answers},")) && heard.contains("-32601"), "{heard}");
    let report = stage.report();
    assert_eq!((report.misses.len(), report.self_answered["ping"]), (0, 2), "{report:#?}");
    stage.good();
}

#[test]
fn what_came_with_more_than_an_answer_is_not_taken_apart() {
    let told = r#""server": [{"notification": {"method": "n"}}, {"result": "told"}]"#;
    let mut stage = Stage::new(HTTP, &(with_id(1) + &tool("t", "t", told)));
    let id = stage.begin();
    let heard = asks(&mut stage, &id, &[call(1, "t"), call(2, "u")]);
    assert!(heard.contains("was recorded alone, and comes in a batch (`t`)"), "{heard}");
    assert_eq!(stage.report().misses.len(), 2);
}

#[test]
fn what_nobody_asked_for_of_a_batch_is_left_over() {
    let exchanges = with_id(1) + &batch("batch @1", "a1", "b1");
    for (members, unused) in [
        (&[&["b"][..]][..], &["batch @1 tools/call a", "batch @1 n"][..]),
        (&[&["b"], &["a"]], &["batch @1 n"]),
        (&[&["n", "b"]], &["batch @1 tools/call a"]),
        (&[&["b"], &["n", "a"]], &[]),
        (&[&["b", "n"], &["a", "b"]], &[]),
        (&[], &["batch @1"]),
    ] {
        let options = Options { strict: true, ..Options::default() };
        let mut stage = Stage::with(HTTP, &exchanges, options);
        let id = stage.begin();
        for members in members {
            let member = |(id, name): (u32, &&str)| if *name == "n" { note(name) } else { call(id, name) };
            let calls: Vec<String> = (1..).zip(*members).map(member).collect();
            asks(&mut stage, &id, &calls);
        }
        let report = stage.report();
        let is_repeated = members.get(1).is_some_and(|members| members.contains(&"b"));
        assert_eq!(report.unused, unused, "{members:?}");
        let expected = unused.is_empty() && !is_repeated;
        assert_eq!(report.verdict == Verdict::Good, expected, "{members:?} {report:#?}");
    }
}

#[test]
fn a_member_of_a_batch_that_differs_is_told_how() {
    let single = tool("s", "s", r#""server": [{"result": 1}]"#)
        .replace(r#"{"name": "s"}"#, r#"{"name": "s", "arguments": {"n": 1}}"#);
    let mut stage = Stage::new(HTTP, &(with_id(1) + &single + &batch("batch", "a1", "b1")));
    let id = stage.begin();
    let other =
        |id: u32, name: &str| ask(id, "tools/call", &format!(r#"{{"name":"{name}","arguments":{{"n":2}}}}"#));
    let heard = asks(&mut stage, &id, &[other(1, "s"), other(2, "a")]);
    assert!(heard.contains("`tools/call s` differs from the recorded `s` at /params/arguments/n"), "{heard}");
    assert!(!heard.contains("in other company") && !heard.contains("comes in a batch"), "{heard}");
    let reasons: Vec<Reason> = stage.report().misses.iter().map(|miss| miss.reason).collect();
    assert_eq!(reasons[0], Reason::ParamsDiffer);
}

#[test]
fn an_answer_whose_response_lost_its_head_is_a_miss_alone_and_in_a_batch() {
    let lost = |exchange: String| {
        let (before, behind) = exchange.rsplit_once('}').expect("it ends");
        format!("{before}, \"unanswered\": \"lost\"}}{behind}")
    };
    let single = lost(tool("s", "s", r#""server": [{"result": "alone"}]"#));
    let mut stage = Stage::new(HTTP, &(with_id(1) + &single + &lost(batch("batch", "a1", "b1"))));
    let id = stage.begin();
    let heard = stage.post(&[&id], &call(2, "s"));
    assert!(
        heard.iter().any(|heard| heard.contains("-33000") && heard.contains("no whole answer")),
        "{heard:?}"
    );
    for members in [&[call(3, "a"), note("n"), call(4, "b")][..], &[call(5, "a")], &[call(6, "s")]] {
        let heard = asks(&mut stage, &id, members);
        assert!(heard.contains("-33000") && !heard.contains("\"result\""), "{heard}");
    }
    let report = stage.report();
    assert!(report.misses.iter().all(|miss| miss.reason == Reason::Incomplete), "{report:#?}");
    assert_eq!(report.verdict, Verdict::Bad);
    // Over stdio too: what else came with it nobody knows.
    let mut stage = Stage::new(HTTP, &(with_id(1) + &single));
    stage.line(7, &initialize());
    let heard = stage.line(7, &call(2, "s"));
    assert!(heard.iter().any(|heard| heard.contains("-33000")), "{heard:?}");
}
