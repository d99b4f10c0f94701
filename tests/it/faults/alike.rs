//! Live traffic and a replay: the same plan, seed and requests meet the same faults.

use std::sync::Arc;

use mcp_tapedeck::{
    fault::live::{Came, Live, Options, Passing},
    redact::{Rules, Vars},
    replay::Lens,
    traffic::Lane,
};

use super::stage::{INITIALIZE, Stage, plan};

const RULES: &str = r#"[{"when": {"tool": "search"}, "do": "error", "message": "busy", "probability": 0.5}]"#;

#[test]
fn a_seed_means_the_same_on_live_traffic_as_in_a_replay() {
    let look = Box::new(Lens::new(&Rules::default(), Vars::default()));
    let options = Options { name: "live".to_owned(), look, events: None };
    let mut live = Live::new(Arc::new(plan(RULES)), options);
    let mut stage = Stage::new(RULES);
    stage.send(INITIALIZE);
    let mut met = [0, 0];
    for at in 0..40 {
        // Their ids and tokens, spaces and the order of members mean nothing, and a secret is none to anybody.
        let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
        let replayed = format!(
            r#"{{"jsonrpc":"2.0","id":{at},"method":"tools/call","params":{{"name":"search","arguments":{{"q":{at},"token":"{secret}"}}}}}}"#
        );
        let lived = format!(
            r#"{{"jsonrpc":"2.0", "id":"x{at}", "params":{{"arguments":{{"token":"{secret}", "q":{at}}},"name":"search","_meta":{{"progressToken":{at}}}}},"method":"tools/call"}}"#
        );
        let is_met = stage.send(&replayed).contains("busy");
        let passing = live.client(0, &Came { lane: Lane(0), bytes: lived.as_bytes(), http: None });
        assert_eq!(passing == Passing::Never, is_met, "{replayed}");
        met[usize::from(is_met)] += 1;
    }
    assert!(met[0] > 8 && met[1] > 8, "{met:?}");
}
