//! The replayer on two clocks: whoever winds one of them, in whatever steps, gets the same bytes in the same order.

use std::sync::Arc;

use mcp_tapedeck::{
    cassette::{blob::NoBlobs, model::Cassette},
    fault::Plan,
    replay::{Due, Input, Now, Options, Output, Repeat, Replayer, Timing},
    traffic::Lane,
};
use proptest::{collection::vec, prelude::*};

fn replayer(cassette: &str, faults: &[String], options: Options) -> Replayer {
    let cassette = Cassette::load(cassette.as_bytes().to_vec(), &NoBlobs).expect("the cassette loads");
    let mut plan = Plan::default();
    faults.iter().for_each(|fault| plan.add_short(fault).expect("a fault"));
    let options = Options { faults: Some(Arc::new(plan)), tended: true, ..options };
    Replayer::new(Arc::new(cassette), Arc::new(NoBlobs), "test.json", options).expect("a replayer")
}

fn call(id: usize, tool: usize) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t{tool}","_meta":{{"progressToken":{id}}}}}}}"#
    )
}

/// Each tool tells of its progress and answers, after these times.
fn cassette(tools: &[(u8, u8)]) -> String {
    let exchange = |(at, (progress, result)): (usize, &(u8, u8))| {
        format!(
            r#"{{"key": "tools/call t{at} @1",
                "client": {{"request": {{"method": "tools/call", "params": {{"name": "t{at}", "_meta": {{"progressToken": {at}}}}}}}}},
                "server": [
                  {{"after_ms": {progress}, "notification": {{"method": "notifications/progress", "params": {{"progressToken": {at}, "progress": 1}}}}}},
                  {{"after_ms": {result}, "result": {{"content": [{{"type": "text", "text": "t{at}"}}]}}}}]}}"#
        )
    };
    let exchanges: Vec<String> = tools.iter().enumerate().map(exchange).collect();
    format!(
        r#"{{"cassette": 1, "sessions": [{{"session": 1, "recording": 1, "transport": "stdio"}}], "exchanges": [{}]}}"#,
        exchanges.join(",\n")
    )
}

/// Performs what is due at one time after the other up to `until`, and tells what went when.
fn wind(replayer: &mut Replayer, until: u64, real: Option<u64>, told: &mut Vec<(u64, String)>) {
    let now = |played| real.map_or(Now::from(played), |real| Now { real, played });
    let mut at = told.last().map_or(0, |(at, _)| *at);
    loop {
        while let Some(output) = replayer.poll(now(at)) {
            told.push((
                at,
                match output {
                    Output::Send { bytes, .. } => String::from_utf8(bytes).expect("text"),
                    other => format!("{other:?}"),
                },
            ));
        }
        let Due { real: other, played } = replayer.due();
        let next = if real.is_some() { played } else { played.into_iter().chain(other).min() };
        match next.filter(|next| *next <= until) {
            Some(next) => at = next,
            None => return,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_clock_that_is_wound_in_any_steps_brings_what_the_real_one_brings(
        tools in vec((0u8..40, 0u8..40), 1..6),
        latencies in vec((0usize..6, 0u16..90), 0..4),
        dribbles in vec((0usize..6, 1u16..60), 0..2),
        steps in vec(0u64..50_000, 0..30),
    ) {
        let faults = latencies.iter().map(|(tool, ms)| format!("tools/call t{}: latency ms={ms}", tool % tools.len()));
        let dribble = |(tool, ms): &(usize, u16)| format!("tools/call t{}: dribble chunks=3 ms={ms}", tool % tools.len());
        let faults: Vec<String> = faults.chain(dribbles.iter().map(dribble)).collect();
        let options = || Options { timing: Timing::Recorded { speed: 1.0 }, ..Options::default() };
        let mut plays = [replayer(&cassette(&tools), &faults, options()), replayer(&cassette(&tools), &faults, options())];
        for play in &mut plays {
            for tool in 0..tools.len() {
                play.handle(0, Input::Message { lane: Lane(0), bytes: call(tool, tool).as_bytes() });
            }
        }
        let [mut real, mut wound] = plays;
        let (mut expected, mut told) = (Vec::new(), Vec::new());
        wind(&mut real, u64::MAX, None, &mut expected);
        let mut until = 0;
        for (at, step) in steps.into_iter().chain([10_000_000]).enumerate() {
            until += step;
            wind(&mut wound, until, Some(at as u64 * 777), &mut told);
            let waiting = wound.waiting(Now { real: 0, played: until });
            prop_assert!(waiting.iter().all(|waiting| waiting.due > until));
        }
        prop_assert_eq!(told, expected);
        prop_assert_eq!(wound.due(), Due::NEVER);
    }
}

#[test]
fn a_recorded_wait_does_not_end_with_real_time() {
    let text = cassette(&[(0, 0), (30, 0)]);
    let options = Options { timing: Timing::Recorded { speed: 1.0 }, ..Options::default() };
    let mut replayer = replayer(&text, &[], options);
    replayer.handle(
        Now { real: 5_000_000, played: 7 },
        Input::Message { lane: Lane(0), bytes: call(1, 1).as_bytes() },
    );
    assert_eq!(replayer.due(), Due::played(30_007));
    assert_eq!(replayer.poll(Now { real: u64::MAX / 2, played: 30_006 }).map(drop), None);
    assert!(replayer.poll(Now { real: 5_000_000, played: 30_007 }).is_some());
}

#[test]
fn what_belongs_to_no_session_can_be_played_again() {
    let text = cassette(&[(0, 0)]);
    let twice = text.replacen(
        r#""exchanges": ["#,
        r#""exchanges": [{"key": "ping @1", "client": {"request": {"method": "ping"}}, "server": [{"result": {"n": 1}}]},
           {"key": "ping @2", "client": {"request": {"method": "ping"}}, "server": [{"result": {"n": 2}}]},"#,
        1,
    );
    let mut replayer = replayer(&twice, &[], Options { repeat: Repeat::Error, ..Options::default() });
    let mut ping = || {
        replayer.handle(
            0,
            Input::Message { lane: Lane(0), bytes: br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"# },
        );
        let Some(Output::Send { bytes, .. }) = replayer.poll(0) else { panic!("no answer") };
        let is_last = bytes.ends_with(br#"{"n":2}}"#);
        if is_last {
            assert_eq!(replayer.report().unused, ["tools/call t0 @1"]);
            replayer.reset_played();
            assert_eq!(replayer.report().unused, ["tools/call t0 @1"]);
        }
        String::from_utf8(bytes).expect("text")
    };
    for n in [1, 2, 1, 2] {
        let answer = ping();
        assert!(answer.contains(&format!(r#"{{"n":{n}}}"#)), "{answer}");
    }
}
