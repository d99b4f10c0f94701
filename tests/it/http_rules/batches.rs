//! Batches of 2025-03-26 that come in other company than they were recorded in.

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
    let heard = asks(&mut stage, &id, &[call(1, "b")]);
    assert_eq!(heard, joined(&[(1, "b2")]));
    let heard = asks(&mut stage, &id, &[call(2, "a")]);
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
