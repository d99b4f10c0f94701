//! Real clients meet servers that are slow, and wait for a clock that is wound: nobody sleeps.

use std::{cell::RefCell, thread};

use serde_json::{Value, json};

use super::{Stand, each};
use crate::support::{
    client::{self, Client},
    program::TAPEDECK,
    tend::Tend,
};

const CLIENTS: [fn() -> Client; 3] = [client::python_legacy, client::typescript_1, client::typescript_2];
const PLAN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/cassettes/plans/faults.json");

/// Lets each client do these steps while somebody tends the run.
fn tell(
    over_http: bool,
    arguments: &[&str],
    steps: &Value,
    tends: impl Fn(&Tend),
    check: impl Fn(&str, &Value, &Stand),
) {
    let plan = json!({"steps": steps});
    for client in CLIENTS.map(|client| client()) {
        // What it needs may have to be installed: the tending below does not wait for that.
        if !client.is_there() {
            continue;
        }
        let stand = Stand::new(&[&["c.json", "--clock", "manual"], arguments].concat());
        let run = thread::scope(|scope| {
            let running = scope.spawn(|| {
                if over_http {
                    client.run_at(&stand.run.environment["TAPEDECK_URL"], "http", &plan, &[])
                } else {
                    client.run(&[TAPEDECK, "join", &stand.run.joins()].map(str::to_owned), &plan, &[])
                }
            });
            tends(&stand.tend);
            running.join().expect("the client says what it saw")
        });
        let Some(run) = run else { continue };
        check(client.name, &run.transcript, &stand);
    }
}

/// A handshake that takes half a minute, and calls that time out after ten seconds each until the third works.
#[test]
fn a_client_that_tries_again_meets_each_window_at_its_time() {
    let steps = json!([
        {"do": "call", "tool": "report"}, {"do": "call", "tool": "report"}, {"do": "call", "tool": "report"},
    ]);
    for over_http in [true, false] {
        let tends = |tend: &Tend| {
            let released = tend.advance(30_000, 1)["released"].clone();
            assert_eq!(each(&released, "method"), ["initialize"]);
            let early = tend.advance(9_999, 1);
            assert_eq!(
                (&early["released"], each(&early["waiting"], "due_ms")),
                (&json!([]), vec![&json!(40_000)])
            );
            assert_eq!(each(&tend.advance(1, 1)["released"], "method"), ["tools/call"]);
            assert_eq!(each(&tend.advance(10_000, 1)["released"], "due_ms"), [&json!(50_000)]);
        };
        tell(
            over_http,
            &["--faults", PLAN, "--scenario", "retry-windows"],
            &steps,
            tends,
            |client, transcript, stand| {
                let calls =
                    transcript["calls"].as_array().unwrap_or_else(|| panic!("{client}: {transcript}"));
                for call in &calls[..2] {
                    let message =
                        call["error"]["message"].as_str().or(call["error"].as_str()).unwrap_or_default();
                    assert!(message.contains("Request timed out"), "{client}: {call}");
                }
                assert_eq!(calls[2]["result"]["content"][0]["text"], "done", "{client}: {transcript}");
                let events = stand.tend.get("/events?method=tools/call")["events"].clone();
                assert_eq!(each(&events, "outcome"), ["fault", "fault", "answered"], "{client}");
                assert_eq!(
                    each(&events, "at_ms"),
                    [30_000, 40_000, 50_000].map(|ms| json!(ms)).each_ref(),
                    "{client}"
                );
                assert_eq!(
                    each(&events, "duration_ms"),
                    [10_000, 10_000, 0].map(|ms| json!(ms)).each_ref(),
                    "{client}"
                );
                let handshake = stand.tend.get("/events?method=initialize")["events"].clone();
                assert_eq!(each(&handshake, "duration_ms"), [&json!(30_000)], "{client}");
            },
        );
    }
}

/// The client's own patience is real; the server's answer would come much later.
#[test]
fn a_client_that_gives_up_by_itself_tries_again_before_the_late_answer() {
    let steps = json!([{"do": "call", "tool": "search", "seconds": 0.2}, {"do": "call", "tool": "search"}]);
    let fault = ["--fault", r#"tools/call search: {"do": "latency", "ms": 60000, "nth": 1}"#];
    for over_http in [true, false] {
        tell(
            over_http,
            &fault,
            &steps,
            |_| {},
            |client, transcript, stand| {
                let calls =
                    transcript["calls"].as_array().unwrap_or_else(|| panic!("{client}: {transcript}"));
                assert_ne!(calls[0]["error"], Value::Null, "{client}: {transcript}");
                assert_eq!(calls[1]["result"]["content"][0]["text"], "found again", "{client}: {transcript}");
                let events = stand.tend.get("/events?method=tools/call")["events"].clone();
                assert_eq!(each(&events, "outcome"), ["cancelled", "answered"], "{client}");
                assert_eq!(each(&events, "duration_ms")[1], 0, "{client}");
                stand.tend.post("/clock/advance", &json!({"ms": 60_000}));
                assert_eq!(stand.tend.get("/report")["misses"], json!([]), "{client}");
            },
        );
    }
}

/// SDKs of TypeScript lose a notification that they read together with the response behind it. What keeps them apart
/// is time, and a client that gets no turn meanwhile loses it all the same: one that lost some does it again.
#[test]
fn what_comes_at_one_time_reaches_each_client_whole() {
    let steps = json!([{"do": "call", "tool": "watch", "progress": true}]);
    for over_http in [true, false] {
        let tends = |tend: &Tend| {
            let released = tend.advance(1_000, 1)["released"].clone();
            assert_eq!(each(&released, "due_ms"), [100, 200, 300].map(|ms| json!(ms)).each_ref());
        };
        let lost = RefCell::<Vec<String>>::default();
        for _ in 0..3 {
            lost.take();
            tell(over_http, &["--timing", "recorded"], &steps, tends, |client, transcript, _| {
                let call = &transcript["calls"][0];
                if call["progress"].as_array().map(Vec::len) != Some(2) {
                    lost.borrow_mut().push(format!("{client}: {transcript}"));
                }
                assert_eq!(call["result"]["content"][0]["text"], "seen", "{client}: {transcript}");
            });
            if lost.borrow().is_empty() {
                break;
            }
        }
        assert!(lost.borrow().is_empty(), "{lost:?}");
    }
}
