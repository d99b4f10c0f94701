//! A live value stands for the recorded placeholder in its place also where it is not known as such a secret.

use mcp_tapedeck::report::Reason;

use super::stage::{MODERN, STDIO, Stage, ask, begun, initialize};

/// Calls of `m` with these params, answered by their places from 1 on.
fn calls(params: &[&str]) -> String {
    let call = |(at, params): (usize, &&str)| {
        format!(
            r#"{{"key": "m @{at}", "client": {{"request": {{"method": "m", "params": {params}}}}}, "server": [{{"result": "answer {at}"}}]}}"#
        )
    };
    (1..).zip(params).map(call).collect::<Vec<_>>().join(", ")
}

/// A session that has begun.
fn on_stdio(sessions: &str, recorded: &[&str]) -> Stage {
    let mut stage = Stage::new(sessions, &format!("{}, {}", begun(1, ""), calls(recorded)));
    stage.line(9, &initialize());
    stage
}

/// What a live message is to be answered: by which recorded call, or by which miss.
#[derive(Clone, Copy, Debug)]
enum Want {
    Call(usize),
    Miss(Reason),
}
use Want::{Call, Miss};

/// Plays the live params one after the other, over stdio and over HTTP.
#[track_caller]
fn plays(recorded: &[&str], live: &[(&str, Want)]) {
    plays_with("", recorded, live);
}

#[track_caller]
fn plays_with(rules: &str, recorded: &[&str], live: &[(&str, Want)]) {
    for (transport, is_http) in [(STDIO, false), (MODERN, true)] {
        let more = if rules.is_empty() { String::new() } else { format!("], \"match\": [{rules}") };
        let sessions = format!("{transport}{more}");
        let mut stage = match is_http {
            true => Stage::new(&sessions, &calls(recorded)),
            false => on_stdio(&sessions, recorded),
        };
        let mut missed = Vec::new();
        for (params, want) in live {
            let request = ask(7, "m", params);
            let heard = if is_http { stage.post(&[], &request) } else { stage.line(9, &request) };
            let told = match want {
                Call(at) => format!("answer {at}"),
                Miss(reason) => {
                    missed.push(*reason);
                    "\"error\"".to_owned()
                }
            };
            assert!(heard.iter().any(|heard| heard.contains(&told)), "{params} ({want:?}): {heard:?}");
        }
        let reasons: Vec<_> =
            stage.report().misses.iter().flat_map(|miss| vec![miss.reason; miss.count as usize]).collect();
        assert_eq!(reasons, missed, "is_http: {is_http}");
    }
}

const PATHS: [&str; 3] = [
    r#"{"path": "/srv/<redacted:password-1>/a"}"#,
    r#"{"cmd": "PASSWORD=<redacted:password-1> psql"}"#,
    r#"{"path": "/srv/<redacted:password-1>/b"}"#,
];

#[test]
fn a_value_that_the_recorder_knew_only_later_as_a_secret_is_found_before_that() {
    let [a, cmd, b] = [
        r#"{"path":"/srv/projectx1/a"}"#,
        r#"{"cmd":"PASSWORD=projectx1 psql"}"#,
        r#"{"path":"/srv/projectx1/b"}"#,
    ];
    for order in [[1, 2, 3], [3, 2, 1], [2, 3, 1], [3, 1, 2], [1, 3, 2]] {
        plays(&PATHS, &order.map(|at| ([a, cmd, b][at - 1], Call(at))));
    }
    // Only the answer said that it is one.
    plays(
        &[r#"{"id": "<redacted:api-key-1>", "n": 1}"#, r#"{"id": "<redacted:api-key-1>", "n": 2}"#],
        &[
            (r#"{"n": 2, "id": "projectalpha7"}"#, Call(2)),
            (r#"{"id": "projectalpha7", "n": 1}"#, Call(1)),
            (r#"{"id": "projectbeta8", "n": 1}"#, Miss(Reason::RedactionDiffers)),
            (r#"{"id": "", "n": 1}"#, Miss(Reason::ParamsDiffer)),
            (r#"{"id": ["projectalpha7"], "n": 1}"#, Miss(Reason::ParamsDiffer)),
            (r#"{"id": "projectalpha7", "n": 3}"#, Miss(Reason::ParamsDiffer)),
        ],
    );
}

#[test]
fn a_value_stays_the_one_that_it_stood_for_first() {
    plays(
        &PATHS,
        &[
            (r#"{"path":"/srv/projectx1/a"}"#, Call(1)),
            (r#"{"path":"/srv/projecty2/b"}"#, Miss(Reason::RedactionDiffers)),
            (r#"{"cmd":"PASSWORD=projecty2 psql"}"#, Miss(Reason::RedactionDiffers)),
            (r#"{"path":"/srv/projectx1/c"}"#, Miss(Reason::ParamsDiffer)),
            (r#"{"path":"/srv/projectx1/x/b"}"#, Miss(Reason::ParamsDiffer)),
            (r#"{"cmd":"PASSWORD=projectx1 psql"}"#, Call(2)),
            (r#"{"path":"/srv/projectx1/b"}"#, Call(3)),
        ],
    );
    // Two values that have changed places, known as secrets or not.
    let two =
        [r#"{"a": "<redacted:password-1>", "b": "<redacted:token-1>"}"#, r#"{"c": "<redacted:token-1>"}"#];
    plays(
        &two,
        &[
            (r#"{"a":"value-one1","b":"value-two2"}"#, Call(1)),
            (r#"{"c":"value-one1"}"#, Miss(Reason::RedactionDiffers)),
            (r#"{"b":"value-one1","a":"value-two2"}"#, Miss(Reason::RedactionDiffers)),
            (r#"{"c":"value-two2"}"#, Call(2)),
        ],
    );
    plays(&two, &[(r#"{"a":"value-one1","b":"value-one1"}"#, Miss(Reason::RedactionDiffers))]);
}

#[test]
fn a_secret_of_another_kind_stands_for_the_recorded_one() {
    let names = [r#"{"api_key": "<redacted:api-key-1>"}"#, r#"{"password": "<redacted:api-key-1>"}"#];
    let [key, password] = [r#"{"api_key":"live1X1b2c3"}"#, r#"{"password":"live1X1b2c3"}"#];
    plays(&names, &[(key, Call(1)), (password, Call(2))]);
    plays(&names, &[(password, Call(2)), (key, Call(1)), (password, Call(2))]);
    plays(&names, &[(password, Call(2)), (r#"{"api_key":"live1Y1b2c3"}"#, Miss(Reason::RedactionDiffers))]);
    plays(&names, &[(key, Call(1)), (r#"{"password":"live1Y1b2c3"}"#, Miss(Reason::RedactionDiffers))]);

    let places = [
        r#"{"u": "postgres://bob:<redacted:password-1>@h/x"}"#,
        r#"{"v": "use <redacted:github-token-1> now"}"#,
        r#"{"h": "Authorization: Bearer <redacted:password-1>"}"#,
    ];
    let openai = format!(r#"{{"v":"use sk-proj-{} now"}}"#, "aB3".repeat(16));
    let bearer = r#"{"h":"Authorization: Bearer s3cr3tpw9876abc"}"#;
    plays(
        &places,
        &[
            (bearer, Call(3)),
            (&openai, Call(2)),
            (r#"{"u":"postgres://bob:s3cr3tpw9876abc@h/x"}"#, Call(1)),
            (r#"{"u":"postgres://bob:other3y9@h/x"}"#, Miss(Reason::RedactionDiffers)),
            (r#"{"u":"postgres://amy:s3cr3tpw9876abc@h/x"}"#, Miss(Reason::ParamsDiffer)),
            (&openai.replace("now", "now --all"), Miss(Reason::ParamsDiffer)),
        ],
    );
}

#[test]
fn the_first_look_and_the_second_pair_the_same_values() {
    let three = [
        r#"{"password": "<redacted:password-1>"}"#,
        r#"{"note": "my <redacted:password-1>!"}"#,
        r#"{"token": "<redacted:password-2>"}"#,
    ];
    plays(
        &three,
        &[
            (r#"{"note":"my live-x1!"}"#, Call(2)),
            (r#"{"password":"live-y2"}"#, Miss(Reason::RedactionDiffers)),
            (r#"{"token":"live-x1"}"#, Miss(Reason::RedactionDiffers)),
            (r#"{"token":"live-y2"}"#, Call(3)),
            (r#"{"password":"live-x1"}"#, Call(1)),
            (r#"{"note":"my live-y2!"}"#, Miss(Reason::RedactionDiffers)),
        ],
    );
}

#[test]
fn of_several_the_first_that_was_not_played_is_taken_if_it_breaks_no_pair() {
    let two = [r#"{"id": "<redacted:password-1>"}"#, r#"{"id": "<redacted:password-2>"}"#];
    plays(
        &two,
        &[
            (r#"{"id":"value-one1"}"#, Call(1)),
            (r#"{"id":"value-two2"}"#, Call(2)),
            (r#"{"id":"value-one1"}"#, Call(1)),
            (r#"{"id":"value-three3"}"#, Miss(Reason::RedactionDiffers)),
        ],
    );
}

#[test]
fn what_rules_exempt_counts_at_the_second_look_no_more_than_at_the_first() {
    let rules = r#"{"ignore": ["/params/at"]}, {"when": {"key": "m @2"}, "ignore": ["/params/id"]}"#;
    let three = [
        r#"{"id": "<redacted:password-1>", "at": 1}"#,
        r#"{"id": "<redacted:password-1>", "own": "<redacted:password-2>"}"#,
        r#"{"at": "<redacted:password-9>", "x": 1}"#,
    ];
    plays_with(
        rules,
        &three,
        &[
            (r#"{"at":{"any":"thing"},"id":"value-one1"}"#, Call(1)),
            (r#"{"id":7,"own":"value-two2","at":3}"#, Call(2)),
            (r#"{"id":"value-two2","at":3}"#, Miss(Reason::RedactionDiffers)),
            (r#"{"x":1}"#, Call(3)),
            (r#"{"x":2}"#, Miss(Reason::ParamsDiffer)),
        ],
    );
}

#[test]
fn requests_of_a_batch_are_looked_at_twice_too() {
    let mut stage = on_stdio(STDIO, &PATHS);
    let batch = |one: &str, two: &str| {
        let of = |id, value, last| ask(id, "m", &format!(r#"{{"path": "/srv/{value}/{last}"}}"#));
        format!("[{},{}]", of(4, one, "a"), of(5, two, "b"))
    };
    let heard = stage.line(9, &batch("projectx1", "projecty2")).concat();
    assert!(heard.contains("answer 1") && heard.contains("redaction_differs"), "{heard}");
    let heard = stage.line(9, &batch("projectx1", "projectx1")).concat();
    assert!(heard.contains("answer 1") && heard.contains("answer 3"), "{heard}");
}

#[test]
fn an_address_may_hold_a_secret_of_another_kind() {
    let line = |at: u32, target: &str| {
        format!(
            r#"{{"key": "x @{at}", "client": {{"http": "GET {target}"}}, "http": {{"status": 200}}, "server": [{{"body": {{"$json": "answer {at}"}}}}]}}"#
        )
    };
    let exchanges = [
        line(1, "/x?api_key=<redacted:password-1>"),
        line(2, "/y/<redacted:password-1>"),
        line(3, "/z?password=<redacted:password-1>"),
    ];
    let mut stage = Stage::new(MODERN, &exchanges.join(", "));
    let mut gets = |target: &str, answer: &str| {
        let heard = stage.get(target, &[]).concat();
        assert!(heard.contains(answer), "{target}: {heard}");
    };
    gets("/y/any", "404");
    gets("/x?api_key=mine%201234", "answer 1");
    gets("/z?password=other1234", "404");
    gets("/z?password=mine%201234", "answer 3");
}

#[test]
fn a_miss_tells_of_a_secret_what_it_told_before() {
    let mut stage = on_stdio(STDIO, &[r#"{"password": "<redacted:api-key-1>", "n": 1}"#]);
    for params in [r#"{"password":"live-x1-secret","n":1}"#, r#"{"password":"live-y2-secret","n":1}"#] {
        stage.line(9, &ask(7, "m", params));
    }
    let report = stage.report();
    assert_eq!(report.misses.len(), 1);
    assert!(!format!("{report:?}").contains("-secret"), "{report:?}");
}

#[test]
fn what_agrees_in_more_is_meant_before_what_takes_anything() {
    let whole = r#"{"q": "<redacted:token-1>"}"#;
    let say = r#"{"q": "say <redacted:token-2> now"}"#;
    let here = r#"{"q": "say <redacted:token-3> now, here"}"#;
    let [said, other] = [r#"{"q":"say projectx1 now"}"#, r#"{"q":"anything at all"}"#];
    for (recorded, at) in [([whole, say, here], 2), ([say, here, whole], 1), ([here, whole, say], 3)] {
        let of_whole = recorded.iter().position(|params| *params == whole).unwrap() + 1;
        plays(&recorded, &[(said, Call(at)), (other, Call(of_whole)), (said, Call(at))]);
        plays(&recorded, &[(other, Call(of_whole)), (said, Call(at)), (other, Call(of_whole))]);
    }
    // Equal ones are still played in their order, and the last of them is repeated.
    let twice = [whole, say, r#"{"q": "say <redacted:token-2> now"}"#];
    plays(&twice, &[(said, Call(2)), (said, Call(3)), (said, Call(3)), (other, Call(1))]);
}

#[test]
fn what_would_break_a_pair_is_no_other_call_that_takes_anything() {
    let recorded = [r#"{"q": "<redacted:token-1>"}"#, r#"{"q": "say <redacted:token-2> now"}"#];
    let [one, two] = [r#"{"q":"say projectx1 now"}"#, r#"{"q":"say projecty2 now"}"#];
    plays(&recorded, &[(one, Call(2)), (two, Miss(Reason::RedactionDiffers)), (one, Call(2))]);
}

#[test]
fn many_that_take_anything_hide_none_that_agrees_in_more() {
    let mut recorded = vec![r#"{"q": "<redacted:token-1>"}"#; 200];
    recorded.push(r#"{"q": "say <redacted:token-2> now"}"#);
    plays(
        &recorded,
        &[(r#"{"q":"say projectx1 now"}"#, Call(201)), (r#"{"q":"x"}"#, Call(1)), (r#"{"q":"x"}"#, Call(2))],
    );
}

#[test]
fn one_value_in_two_spellings_stands_for_one_secret() {
    let (plain, base64, hex) = ("hunter2/Kd9+3", "aHVudGVyMi9LZDkrM", "68756E746572322f4b64392b33");
    let percent = "hunter2%2FKd9%2b3";
    let recorded = [
        r#"{"v": "<redacted:password-1>"}"#,
        r#"{"w": "x <redacted:password-1>= y"}"#,
        r#"{"x": ["<redacted:password-1>"]}"#,
        r#"{"password": "<redacted:password-1>"}"#,
        r#"{"y": "/a/<redacted:password-1>"}"#,
    ];
    let live = |a: &str, b: &str, c: &str, d: &str, e: &str| {
        [
            format!(r#"{{"v":"{a}"}}"#),
            format!(r#"{{"w":"x {b}= y"}}"#),
            format!(r#"{{"x":["{c}"]}}"#),
            format!(r#"{{"password":"{d}"}}"#),
            format!(r#"{{"y":"/a/{e}"}}"#),
        ]
    };
    let same = live(plain, base64, hex, plain, percent);
    for order in
        [[1, 2, 3, 4, 5], [2, 3, 1, 4, 5], [3, 2, 5, 4, 1], [4, 1, 2, 3, 5], [5, 3, 2, 1, 4], [2, 5, 4, 3, 1]]
    {
        plays(&recorded, &order.map(|at| (&*same[at - 1], Call(at))));
    }
    let other = live(
        "hunter2/Kd9+4",
        "aHVudGVyMi9LZDkrN",
        "68756E746572322f4b64392b34",
        "hunter2/Kd9+4",
        "hunter2%2FKd9%2b4",
    );
    for (first, second) in [(1, 2), (2, 1), (2, 3), (3, 2), (2, 4), (4, 2), (5, 3), (3, 5), (4, 5)] {
        let differs = (&*other[second - 1], Miss(Reason::RedactionDiffers));
        plays(&recorded, &[(&same[first - 1], Call(first)), differs, (&same[second - 1], Call(second))]);
    }
}

#[test]
fn a_member_that_is_called_by_a_secret_is_found_wherever_its_name_stands() {
    let recorded = [r#"{"m": 1, "<redacted:token-1>": 2, "x": 3}"#, r#"{"token": "<redacted:token-1>"}"#];
    let [named, known] = [r#"{"m":1,"zd93mZq71Lp":2,"x":3}"#, r#"{"token":"zd93mZq71Lp"}"#];
    plays(&recorded, &[(named, Call(1)), (known, Call(2)), (named, Call(1))]);
    plays(&recorded, &[(known, Call(2)), (named, Call(1))]);
    plays(&recorded, &[(r#"{"m":1,"zd93mZq71Lp":4,"x":3}"#, Miss(Reason::ParamsDiffer))]);
}

#[test]
fn a_method_that_is_a_secret_is_found_before_it_is_known() {
    let call = |key: &str, method: &str, params: &str| {
        format!(
            r#"{{"key": "{key}", "client": {{"request": {{"method": "{method}", "params": {params}}}}}, "server": [{{"result": "answer {key}"}}]}}"#
        )
    };
    let exchanges =
        [call("a", "<redacted:token-1>", "{}"), call("b", "m", r#"{"token": "<redacted:token-1>"}"#)];
    let mut stage = Stage::new(STDIO, &format!("{}, {}", begun(1, ""), exchanges.join(", ")));
    stage.line(9, &initialize());
    for (method, params, answer) in [
        ("Kd93mZq71Lp", "{}", "answer a"),
        ("m", r#"{"token":"Kd93mZq71Lp"}"#, "answer b"),
        ("other", r#"{"x":1}"#, "error"),
    ] {
        let heard = stage.line(9, &ask(7, method, params)).concat();
        assert!(heard.contains(answer), "{method}: {heard}");
    }
}
