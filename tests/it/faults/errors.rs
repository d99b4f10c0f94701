//! Plans that cannot be used: which sentence, and where.

use std::sync::Arc;

use mcp_tapedeck::{
    cassette::{blob::NoBlobs, model::Cassette},
    fault::{Plan, Plans, Scope},
    replay::{Options, Replayer},
};

use super::stage::{CASSETTE, plan};

fn refused(text: &str) -> String {
    Plans::read(text.as_bytes()).expect_err("refused").to_string()
}

fn rule_refused(rule: &str) -> String {
    refused(&format!("{{\"faults\": 1, \"rules\": [\n{rule}]}}"))
}

#[test]
fn what_is_wrong_with_a_plan_is_told_with_its_place() {
    for (text, told) in [
        ("{\"faults\": 2}", "1:12: `faults` must be 1, the version of the plan's form, found `2`"),
        ("{}", "1:1: a plan needs `faults`, the version of the plan's form, 1"),
        ("{\"faults\": 1,}", "1:14: expected a member's name in quotes, found `}`; a plan is JSON"),
        (
            "{\"faults\": 1, \"scenaros\": {}}",
            "1:15: a plan has an unknown member `scenaros`; did you mean `scenarios`?",
        ),
        ("{\"faults\": 1, \"rules\": {}}", "1:24: `rules` must be an array, found `{}`"),
    ] {
        assert_eq!(refused(text), told, "{text}");
    }
}

#[test]
fn what_is_wrong_with_a_rule_is_told_with_the_valid_choices() {
    for (rule, told) in [
        (r#"{"do": "timeuot"}"#, "2:8: no fault is called `timeuot`; did you mean `timeout`?"),
        (r#"{"do": "timeout", "ms": 5}"#, "2:19: a fault rule has an unknown member `ms`; it knows"),
        (
            r#"{"when": {"tol": "x"}, "do": "timeout"}"#,
            "2:11: `when` has an unknown member `tol`; did you mean `tool`?",
        ),
        (
            r#"{"do": "timeout", "probability": 1.5}"#,
            "2:34: `probability` must be a number from 0 to 1, found `1.5`",
        ),
        (r#"{"do": "timeout", "nth": 0}"#, "2:26: `nth` must be a whole number from 1, found `0`"),
        (r#"{"do": "timeout", "nth": 1, "every": 2}"#, "2:1: `nth` says on which requests; remove `every`"),
        (
            r#"{"do": "duplicate", "times": 1}"#,
            "2:30: `times` must be how often the answer comes where no `copies` says it, a whole number from 2 to 1000, \
             found `1`",
        ),
        (
            r#"{"do": "timeout", "first": 2, "from": 3}"#,
            "2:1: `first` ends with number 2, before `from` begins with number 3; correct one of them",
        ),
        (
            r#"{"do": "timeout", "script": ["ok"]}"#,
            "2:1: a fault rule has `do` and `script`; keep one of them",
        ),
        (
            r#"{"script": ["ok"], "nth": 1}"#,
            "2:1: a rule with `script` cannot have `nth`: the script says which",
        ),
        (r#"{"script": []}"#, "2:12: `script` must be a list with at least one action, found `[]`"),
        (
            r#"{"when": {}}"#,
            "2:1: a fault rule needs `do`, the fault, or `script`, a list of them; there are latency,",
        ),
        (
            r#"{"when": {"tool": "a", "uri": "b"}, "do": "timeout"}"#,
            "2:10: `when` names `tool` and `uri`, and no request has both",
        ),
        (
            r#"{"when": {"where": {"/params/~2": 1}}, "do": "timeout"}"#,
            "2:35: `/params/~2` is no JSON Pointer into the request, such as /params/arguments/limit",
        ),
        (
            r#"{"when": {"where": {"params": 1}}, "do": "timeout"}"#,
            "2:31: `params` is no JSON Pointer into the request, such as /params/arguments/limit",
        ),
        (
            r#"{"when": {"where": {"/params": {"matches": "("}}}, "do": "timeout"}"#,
            "2:44: `(` is no regular expression: ",
        ),
        (
            r#"{"when": {"direction": "up"}, "do": "timeout"}"#,
            "2:24: `direction` must be `to_client` or `to_server`, found `\"up\"`",
        ),
        (
            r#"{"when": {"method": "tools/list"}, "do": "tool_error", "text": "x"}"#,
            "2:1: `tool_error` acts on tools/call only, and `when` is about tools/list",
        ),
        (
            r#"{"when": {"prompt": "p"}, "do": "wrong_version"}"#,
            "2:1: `wrong_version` acts on initialize and server/discover only, and `when` is about prompts/get",
        ),
        (
            r#"{"script": ["ok", "schema_violation"]}"#,
            "2:1: `schema_violation` acts on tools/call only; a script with it names the method in its `when`",
        ),
        (
            r#"{"when": {"direction": "to_server"}, "do": "timeout"}"#,
            "2:1: only latency and slow_start can act on what goes `to_server`",
        ),
        (
            r#"{"do": "latency", "ms": 1, "consumes": true}"#,
            "2:1: `latency` cannot have `consumes`: the server answers all the same",
        ),
    ] {
        let found = rule_refused(rule);
        assert!(found.starts_with(told), "{rule}\n{found}");
    }
}

#[test]
fn what_cannot_exist_where_it_would_act_is_refused() {
    let check = |fault: &str, scope: Scope| {
        let mut plan = Plan::default();
        plan.add_short(fault).expect("a fault");
        plan.check(scope).map_err(|error| error.to_string())
    };
    let stdio = Scope { is_http: false, is_legacy: true, is_modern: false };
    assert_eq!(
        check("ping: status status=500", stdio),
        Err("rule `ping: status status=500`: `status` cannot exist here: it needs HTTP, and clients are on stdio \
             here; `--listen` serves HTTP (live traffic: with `--url`)"
            .to_owned())
    );
    assert!(check("ping: status status=500", Scope { is_http: true, ..stdio }).is_ok());
    assert!(check("tools/call: input_required_loop", stdio).is_err());
    let modern = Scope { is_http: true, is_legacy: false, is_modern: true };
    assert!(check("tools/call: input_required_loop", modern).is_ok());
    assert!(check("tools/call: session_expired", modern).is_err());
}

#[test]
fn a_scenario_has_to_be_chosen_and_to_be_there() {
    let text = r#"{"faults": 1, "scenarios": {"a": [{"do": "timeout"}], "b": []}}"#;
    let add = |scenario| Plan::default().add(Plans::read(text.as_bytes()).expect("a plan"), scenario, true);
    assert_eq!(
        add(None),
        Err("the plan has several scenarios; choose one by `--scenario`: a and b".to_owned())
    );
    assert_eq!(add(Some("c")), Ok(false));
    assert_eq!(add(Some("a")), Ok(true));
}

#[test]
fn a_rule_for_what_was_not_recorded_is_refused() {
    let refused = |when: &str| {
        let cassette = Cassette::load(CASSETTE.into(), &NoBlobs).expect("the cassette loads");
        let rules = format!(r#"[{{"name": "r", "when": {{{when}}}, "do": "error"}}]"#);
        let options = Options { faults: Some(Arc::new(plan(&rules))), ..Options::default() };
        Replayer::new(Arc::new(cassette), Arc::new(NoBlobs), "c", options)
            .map(|_| ())
            .map_err(|e| e.to_string())
    };
    assert_eq!(refused(r#""session": 1"#), Ok(()));
    let told = refused(r#""session": 9"#).expect_err("there is one session");
    assert!(told.contains("`r` fits nothing that was recorded; its session can be 1"), "{told}");
    let told = refused(r#""session": 9, "tool": "search""#).expect_err("there is one session");
    assert!(told.contains("`r` fits nothing that was recorded; correct its `when`"), "{told}");
}

#[test]
fn a_fault_that_does_nothing_to_the_request_of_a_key_names_those_that_do() {
    let refused = |fault: &str| {
        let cassette = Cassette::load(CASSETTE.into(), &NoBlobs).expect("the cassette loads");
        let mut plan = Plan::default();
        plan.add_short(fault).expect("a fault");
        plan.check(Scope::of(&cassette, false)).expect("it can exist");
        let options = Options { faults: Some(Arc::new(plan)), ..Options::default() };
        let replayer = Replayer::new(Arc::new(cassette), Arc::new(NoBlobs), "c", options);
        replayer.map(|_| ()).map_err(|error| error.to_string())
    };
    let told = refused("initialize @1: tool_error").expect_err("that is no call");
    let why = "the fault rule `initialize @1: tool_error` can never act: `tool_error` acts on tools/call only, and \
               `initialize @1` is a initialize; there can act latency, ";
    assert!(told.starts_with(&why.replace(" is a ", " asks for ")), "{told}");
    // What needs HTTP, or tools, cannot.
    assert!(
        told.contains("wrong_version") && !told.contains("status") && !told.contains("schema_violation"),
        "{told}"
    );
    assert_eq!(refused("tools/call search @1: tool_error"), Ok(()));
}
