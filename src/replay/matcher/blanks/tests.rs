use super::*;
use crate::{replay::matcher::Matcher, wire::jsonrpc::Message};

fn form(params: &str) -> Vec<u8> {
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{params}}}"#);
    Matcher::plain().numbered_form(&Message::read(text.as_bytes()), None, false).unwrap()
}

fn version(form: &[u8], is_redacted: bool) -> Live<'_> {
    Live { redacted: Some(form).filter(|_| is_redacted), plain: Some(form).filter(|_| !is_redacted) }
}

/// `placeholder=filling` of each blank; secrets are `!kind-n`.
#[track_caller]
fn filled(recorded: &str, live: &str, is_redacted: bool) -> Option<Vec<String>> {
    let (recorded, live) = (form(recorded), form(live));
    let told = |(blank, filling): (Placeholder, Filling<'_>)| match filling {
        Filling::Secret(secret) => {
            format!("{}-{}=!{}-{}", blank.kind, blank.number, secret.kind, secret.number)
        }
        Filling::Text(text) => {
            format!("{}-{}={}", blank.kind, blank.number, String::from_utf8_lossy(&text))
        }
        Filling::Part => format!("{}-{}~", blank.kind, blank.number),
    };
    Some(fillings(&recorded, version(&live, is_redacted), Known::NOTHING)?.into_iter().map(told).collect())
}

#[test]
fn any_text_fills_a_blank_in_whatever_order_members_stand() {
    let recorded = r#"{"a":"<redacted:token-2>","n":[1.0,true],"p":"/srv/<redacted:password-1>/a"}"#;
    let live = r#"{"n":[1,true],"p":"/srv/x1/a","a":"any \" thing, at all"}"#;
    let both = ["token-2=any \" thing, at all", "password-1=x1"].map(str::to_owned).to_vec();
    assert_eq!(filled(recorded, live, true), Some(both.clone()));
    assert_eq!(filled(recorded, live, false), Some(both));
    let live = r#"{"n":[1,true],"p":"/srv/<redacted:a-7>/a","a":"<redacted:password-1>"}"#;
    let both = ["token-2=!password-1", "password-1=!a-7"].map(str::to_owned).to_vec();
    assert_eq!(filled(recorded, live, true), Some(both));
    let both = ["token-2=<redacted:password-1>", "password-1=<redacted:a-7>"].map(str::to_owned).to_vec();
    assert_eq!(filled(recorded, live, false), Some(both));
}

#[test]
fn several_blanks_of_a_text_are_told_apart_by_what_stands_between() {
    let recorded = r#"["-u <redacted:a-1>:<redacted:b-1> -x <redacted:a-1>!"]"#;
    let three = ["a-1=me", "b-1=se=cret==", "a-1=me"].map(str::to_owned).to_vec();
    assert_eq!(filled(recorded, r#"["-u me:se=cret== -x me!"]"#, true), Some(three));
    // What is another value breaks a pair.
    let other = form(r#"["-u me:se=cret== -x you!"]"#);
    let told = |broken| {
        let known = Known { broken, ..Known::NOTHING };
        fillings(&form(recorded), version(&other, true), known).map(|filled| filled.len())
    };
    assert_eq!([Broken::Nowhere, Broken::Single, Broken::Any].map(told), [None, None, Some(3)]);
    let adjacent = r#"["<redacted:a-1><redacted:b-1>"]"#;
    let parts = ["a-1~", "b-1~"].map(str::to_owned).to_vec();
    assert_eq!(filled(adjacent, r#"["xy"]"#, true), Some(parts));
    let both = ["a-1=x", "b-1=!b-4"].map(str::to_owned).to_vec();
    assert_eq!(filled(adjacent, r#"["x<redacted:b-4>"]"#, true), Some(both));
    let both = ["a-1=!b-4", "b-1=!a-2"].map(str::to_owned).to_vec();
    assert_eq!(filled(adjacent, r#"["<redacted:b-4><redacted:a-2>"]"#, true), Some(both));
}

#[test]
fn a_value_that_stands_elsewhere_in_a_message_tells_where_a_blank_ends() {
    let phrase = r#"["say <redacted:a-1>!","<redacted:a-1>"]"#;
    let told = |value: &str| vec![format!("a-1={value}"); 2];
    assert_eq!(filled(phrase, r#"["say a b, c!","a b, c"]"#, true), Some(told("a b, c")));
    assert_eq!(filled(phrase, r#"["say a b, d!","a b, c"]"#, true), None);
    // That a text stands twice where a secret did is no chance, unless it is short.
    let twice = r#"["say <redacted:a-1>, and <redacted:a-1>"]"#;
    assert_eq!(
        filled(twice, r#"["say correct horse, and correct horse"]"#, true),
        Some(told("correct horse"))
    );
    assert_eq!(filled(twice, r#"["say correct horse, and corrupt horse"]"#, true), None);
    assert_eq!(filled(twice, r#"["say a horse, and a horse"]"#, true), None);
    // Equal ones that touch are equally long.
    let touching = r#"["<redacted:a-1><redacted:a-1>: <redacted:b-1>"]"#;
    let three = ["a-1=x, y", "a-1=x, y", "b-1=z"].map(str::to_owned).to_vec();
    assert_eq!(filled(touching, r#"["x, yx, y: z"]"#, true), None);
    assert_eq!(
        filled(touching, r#"["xyzxyz: z"]"#, true).map(|told| told.join(" ")),
        Some("a-1=xyz a-1=xyz b-1=z".into())
    );
    assert_eq!(
        filled(r#"["<redacted:a-1><redacted:a-1>"]"#, r#"["x, yx, y"]"#, true),
        Some(three[..2].to_vec())
    );
}

#[test]
fn what_can_end_in_two_places_is_told_by_none() {
    let recorded = r#"["<redacted:a-1>-<redacted:b-1>"]"#;
    let parts = ["a-1~", "b-1~"].map(str::to_owned).to_vec();
    assert_eq!(filled(recorded, r#"["x-y-z"]"#, true), Some(parts));
    let both = ["a-1=x", "b-1=y"].map(str::to_owned).to_vec();
    assert_eq!(filled(recorded, r#"["x-y"]"#, true), Some(both));
    let recorded = r#"["<redacted:a-1>-<redacted:b-1>","<redacted:b-1>"]"#;
    let known = ["a-1=x", "b-1=y-z", "b-1=y-z"].map(str::to_owned).to_vec();
    assert_eq!(filled(recorded, r#"["x-y-z","y-z"]"#, true), Some(known));
}

#[test]
fn what_is_all_of_a_line_or_of_what_a_header_says_is_a_value() {
    let json = |text: &str| format!("[{}]", serde_json::to_string(text).unwrap());
    for (recorded, value, fills) in [
        ("a\n<redacted:a-1>\nb", "correct horse, battery", true),
        ("GET / HTTP/1.1\r\nX-Key: <redacted:a-1>\r\n\r\n", "Some (long) value", true),
        ("a\nkey: <redacted:a-1>", "two words", true),
        ("a\n<redacted:a-1>\nb", "one\ntwo", false),
        ("key: <redacted:a-1>", "x1y2z3w4, other: 1", false),
        ("to do: say <redacted:a-1>", "two words", false),
    ] {
        let live = recorded.replace("<redacted:a-1>", value);
        assert_eq!(filled(&json(recorded), &json(&live), true).is_some(), fills, "{recorded} {value}");
    }
}

#[test]
fn what_is_redacted_and_what_is_not_are_told_for_each_text() {
    let recorded = form(r#"["<redacted:a-1> x","say <redacted:b-1>"]"#);
    let redacted = form(r#"["<redacted:t-1> x","say <redacted:t-2>34"]"#);
    let plain = form(r#"["a, b x","say abcd1234"]"#);
    let live = Live { redacted: Some(&redacted), plain: Some(&plain) };
    let told = fillings(&recorded, live, Known::NOTHING).unwrap();
    assert!(matches!(&told[0].1, Filling::Secret(secret) if &*secret.kind == "t"), "{told:?}");
    assert_eq!(told[1].1, Filling::Text(b"abcd1234".into()));
    // Each alone is none of it.
    for version in [Live { plain: None, ..live }, Live { redacted: None, ..live }] {
        assert_eq!(fillings(&recorded, version, Known::NOTHING), None);
    }
    // What stands between is one of theirs as a whole.
    let other = form(r#"["a, b x","say abcd1234",1]"#);
    let live = Live { redacted: Some(&redacted), plain: Some(&other) };
    assert_eq!(fillings(&recorded, live, Known::NOTHING), None);
}

#[test]
fn numbers_fill_blanks_that_are_all_of_a_string() {
    for number in ["12345678901", "12345678900", "1234.0e3", "4321"] {
        let digits = format!("{}", number.parse::<f64>().unwrap());
        for (recorded, live, blanks) in [
            (r#"{"n":"<redacted:a-1>"}"#, r#"{"n":NUMBER}"#, &["a-1"][..]),
            (r#"[1,"<redacted:a-1>",{"x":"<redacted:a-2>"}]"#, r#"[1,NUMBER,{"x":NUMBER}]"#, &["a-1", "a-2"]),
        ] {
            let wanted: Vec<_> = blanks.iter().map(|blank| format!("{blank}={digits}")).collect();
            assert_eq!(filled(recorded, &live.replace("NUMBER", number), true), Some(wanted), "{number}");
        }
    }
    for (recorded, live) in [
        (r#"["<redacted:a-1>"]"#, "[123]"),
        (r#"["<redacted:a-1>"]"#, "[-12345]"),
        (r#"["<redacted:a-1>"]"#, "[1234.5]"),
        (r#"["<redacted:a-1>"]"#, "[1e300]"),
        (r#"["<redacted:a-1>"]"#, "[true]"),
        (r#"["<redacted:a-1>"]"#, "[null]"),
        (r#"["no. <redacted:a-1>"]"#, "[12345]"),
        (r#"["<redacted:a-1><redacted:a-2>"]"#, "[12345]"),
    ] {
        assert_eq!(filled(recorded, live, true), None, "{recorded} {live}");
    }
}

#[test]
fn numbers_of_json_in_a_text_stand_in_no_quotes() {
    let recorded = r#"["{\"a\": 123456789, \"b\": \"<redacted:t-1>\", \"c\": \"<redacted:t-2>\"}"]"#;
    let live = |b: &str, c: &str| format!(r#"["{{\"a\": 123456789, \"b\": {b}, \"c\": {c}}}"]"#);
    for (b, c) in [("12345678", "4321"), (r#"\"12345678\""#, "4321"), ("12345678", r#"\"4321\""#)] {
        let wanted = ["t-1=12345678", "t-2=4321"].map(str::to_owned).to_vec();
        assert_eq!(filled(recorded, &live(b, c), true), Some(wanted), "{b} {c}");
    }
    for (b, c) in
        [("123", "4321"), ("1234.5", "4321"), ("-1234", "4321"), ("12345678", "true"), ("1234, 5", "4321")]
    {
        assert_eq!(filled(recorded, &live(b, c), true), None, "{b} {c}");
    }
    // Deeper, each quote stands behind backslashes.
    let recorded = r#"["{\"a\":\"{\\\"b\\\":\\\"<redacted:t-1>\\\"}\"}"]"#;
    let live = r#"["{\"a\":\"{\\\"b\\\":12345678}\"}"]"#;
    assert_eq!(filled(recorded, live, true), Some(vec!["t-1=12345678".into()]));
}

#[test]
fn within_a_text_a_blank_takes_a_value_however_it_is_spelled() {
    for (recorded, values) in [
        (
            "say <redacted:password-1> now",
            &["a&amp;b&quot;12345", "x\\&y\\'z", "p@ss,w0rd?x#1(9)$", "it''s", "a%26b+c"][..],
        ),
        (
            "p='<redacted:password-1>' x",
            &["a b c", "a;b&c|d", "it''s", "a\\'b", "(x) {y} [z] $w, #1?", "line\nline"],
        ),
        ("{\"k\":\"<redacted:token-1>\"}", &["a\\\"b", "a b, c: d", "a\\\\"]),
        ("{\\\"k\\\":\\\"<redacted:token-1>\\\"}", &["a\\\\\\\"b", "a b"]),
    ] {
        for value in values {
            let live = recorded.replace("<redacted:password-1>", value).replace("<redacted:token-1>", value);
            let json = |text: &str| format!("[{}]", serde_json::to_string(text).unwrap());
            let told = filled(&json(recorded), &json(&live), true);
            assert!(told.is_some_and(|told| told[0].ends_with(&format!("-1={value}"))), "{recorded} {value}");
        }
    }
    for (recorded, value) in [
        ("say <redacted:password-1> now", "correct horse battery"),
        ("say <redacted:password-1> now", "correct --horse"),
        ("run <redacted:password-1>", "a1b2c3d4 | sh"),
        ("run <redacted:password-1>", "a1b2c3d4|sh"),
        ("run <redacted:password-1>", "a1b2c3d4;ls"),
        ("run <redacted:password-1>", "a1b2c3d4&ls"),
        ("run <redacted:password-1>", "a1b2c3d4>/x"),
        ("run <redacted:password-1>", "C:\\dir\\x"),
        ("?k=<redacted:password-1>", "a1b2c3d4&all=1"),
        ("k: <redacted:password-1>", "a1b2c3d4,all:1"),
        ("[<redacted:password-1>]", "a1b2c3d4]"),
        ("p='<redacted:password-1>' x", "a' 'b"),
        ("{\"k\":\"<redacted:token-1>\"}", "a\",\"l\":\"b"),
        ("{\\\"k\\\":\\\"<redacted:token-1>\\\"}", "a\\\",\\\"l\\\":\\\"b"),
    ] {
        let live = recorded.replace("<redacted:password-1>", value).replace("<redacted:token-1>", value);
        let json = |text: &str| format!("[{}]", serde_json::to_string(text).unwrap());
        assert_eq!(filled(&json(recorded), &json(&live), true), None, "{recorded} {value}");
    }
}

#[test]
fn a_bare_blank_takes_no_command_and_no_line_end() {
    for value in
        ["$(reboot)", "$(reboot1)", "a${IFS}b12345", "x%0Aname:y", "x1%0d%0a", "%00a1b2c3d4", "a1b2c3d4%7f"]
    {
        for around in ["run <>", "?k=<>", "a:<> b", "https://h/<>/x"] {
            let [recorded, live] =
                ["<redacted:password-1>", value].map(|text| format!(r#"["{}"]"#, around.replace("<>", text)));
            assert_eq!(filled(&recorded, &live, true), None, "{around} {value}");
        }
        let [recorded, live] = ["<redacted:password-1>", value].map(|text| format!(r#"["p='{text}' x"]"#));
        assert!(filled(&recorded, &live, true).is_some(), "{value}");
    }
}

#[test]
fn the_blank_of_a_key_takes_a_key() {
    let key =
        |name: &str| format!("-----BEGIN {name}-----\\nMIIEpAIBAAKCAQEA1234abcd5678\\n-----END {name}-----");
    let (key, two) = (key("PRIVATE KEY"), key("PRIVATE KEY") + "\\n" + &key("PRIVATE KEY"));
    for (around, value, fills) in [
        ("see\\n<>\\n", &*key, true),
        ("it is: <>.", &key, true),
        ("see\\n<>\\n", "list1234", false),
        ("see\\n<>\\n", "Hunter2-Hunter2", false),
        ("see <> now", "-----BEGIN PRIVATE KEY-----\\nand remove all1 of it now", false),
        ("see <> now", "-----BEGIN it all", false),
        ("see <> now", &two, false),
        ("see <> now", &format!("{key} then list1234"), false),
        ("key=<>", "list1234", true),
        ("--key <> x", "list1234", true),
        ("{'key': '<>'}", "any text", true),
    ] {
        let [recorded, live] =
            ["<redacted:private-key-1>", value].map(|text| format!(r#"["{}"]"#, around.replace("<>", text)));
        assert_eq!(filled(&recorded, &live, true).is_some(), fills, "{around} {value}");
    }
}

#[test]
fn a_blank_of_a_kind_that_is_known_by_its_look_takes_nothing_without_one() {
    let token = format!("ghp_{}", "a1B2".repeat(9));
    let around = [("", ""), ("say ", " now"), ("{\"k\": \"", "\"}")];
    let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    let json = |text: &str, [before, behind]: [&str; 2]| {
        format!("[{}]", serde_json::to_string(&format!("{before}{text}{behind}")).unwrap())
    };
    for (kind, text, is_redacted, fills) in [
        ("github-token", "list1234", true, false),
        ("github-token", "remove all files", false, false),
        ("github-token", "12345678", true, false),
        ("jwt", "aB3dE5gH7jK9", false, false),
        ("github-token", "<redacted:token-3>", true, true),
        ("github-token", "<redacted:token-3>", false, true),
        ("github-token", "%3Credacted:token-3%3E", false, true),
        ("github-token", &token.replace('_', "%5F"), false, true),
        ("github-token", &hex(&token), false, true),
        ("github-token", &hex("list1234"), false, false),
        ("github-token", "Z2hwX2ExQjJhMUIyYTFCMmExQjJhMUIyYTFCMmExQjJhMUIyYTFCMg==", false, true),
        ("github-token", "bGlzdDEyMzQ=", false, false),
        ("github-token", &token, false, true),
        ("jwt", &token, false, true),
        ("token", "list1234", true, true),
        ("password", "list1234", true, true),
        ("env", "list1234", true, true),
        ("bearer", "list1234", true, true),
    ] {
        for (before, behind) in around {
            let recorded = json(&format!("<redacted:{kind}-1>"), [before, behind]);
            let told = filled(&recorded, &json(text, [before, behind]), is_redacted);
            assert_eq!(told.is_some(), fills, "{recorded} {text}");
        }
    }
    assert_eq!(filled(r#"["<redacted:jwt-1>"]"#, "[12345678]", true), None);
    assert!(filled(r#"["<redacted:otp-1>"]"#, "[12345678]", true).is_some());
}

#[test]
fn what_differs_otherwise_fills_nothing() {
    for (recorded, live) in [
        (r#"["<redacted:a-1>"]"#, r#"[""]"#),
        (r#"["<redacted:a-1>"]"#, "[1]"),
        (r#"["<redacted:a-1>"]"#, r#"[["x"]]"#),
        (r#"["<redacted:a-1>"]"#, r#"["x","y"]"#),
        (r#"["<redacted:a-1>","y"]"#, r#"["x"]"#),
        (r#"["<redacted:a-1>"]"#, r#"["my <redacted:b-1>"]"#),
        (r#"["<redacted:a-1>","y"]"#, r#"["x","z"]"#),
        (r#"["x"]"#, r#"["<redacted:a-1>"]"#),
        (r#"["/a/<redacted:a-1>"]"#, r#"["/a/"]"#),
        (r#"["/a/<redacted:a-1>"]"#, r#"["/a/x/y"]"#),
        (r#"["/a/<redacted:a-1>/b"]"#, r#"["/a//b"]"#),
        (r#"["/a/<redacted:a-1>/b"]"#, r#"["/a/b"]"#),
        (r#"["run <redacted:a-1>"]"#, r#"["run x --force"]"#),
        (r#"["run <redacted:a-1>"]"#, r#"["run x;y"]"#),
        (r#"["?k=<redacted:a-1>"]"#, r#"["?k=x&all=1"]"#),
        (r#"["{\"k\":\"<redacted:a-1>\"}"]"#, r#"["{\"k\":\"x\",\"l\":\"y\"}"]"#),
        (r#"["k <redacted:a-1> <redacted:a-1>"]"#, r#"["k x"]"#),
    ] {
        assert_eq!(filled(recorded, live, true), None, "{recorded} {live}");
    }
}

#[test]
fn what_stands_around_blanks_is_what_agrees() {
    let agreed = |params: &str| agreed(&form(params), &[]).0;
    let whole = agreed(r#"["<redacted:a-1>"]"#);
    assert_eq!(agreed(r#"["<redacted:a-long-kind-1234>"]"#), whole);
    assert_eq!(agreed(r#"["say <redacted:a-1> now"]"#), whole + "say  now".len());
    assert_eq!(agreed(r#"["<redacted:a-1><redacted:b-1>","x"]"#), agreed(r#"["","x"]"#));
}

#[test]
fn the_rest_of_a_word_agrees_in_nothing_where_text_fills_the_blank() {
    let agreed = |recorded: &str, live: &str| {
        let (recorded, live) = (form(recorded), form(live));
        agreed(&recorded, &fillings(&recorded, version(&live, true), Known::NOTHING).unwrap())
    };
    let (whole, are_whole) = agreed(r#"["see <redacted:a-1>"]"#, r#"["see Hunter2xy!"]"#);
    assert!(are_whole);
    for (recorded, live, expected) in [
        ("see <redacted:a-1>!", "see Hunter2xy!", (whole, false)),
        ("see <redacted:a-1>11", "see backup11", (whole, false)),
        ("see QQ<redacted:a-1>", "see QQbackup", (whole, false)),
        ("see <redacted:a-1>x<redacted:a-2>", "see 1x2", (whole - 1, false)),
        ("see /<redacted:a-1>/", "see /backup11/", (whole + 2, true)),
        ("see <redacted:a-1>.", "see backup11.", (whole + 1, true)),
        ("see <redacted:a-1>!", "see <redacted:b-1>!", (whole + 1, true)),
    ] {
        let [recorded, live] = [recorded, live].map(|text| format!(r#"["{text}"]"#));
        assert_eq!(agreed(&recorded, &live), expected, "{recorded} {live}");
    }
}

#[test]
fn forms_that_are_none_are_read_to_their_ends() {
    for recorded in [&b"\""[..], b"\"9:a", b"\"99999999999999999999:", b"\"x:", b"\":", b"\"1:ab"] {
        let filled = fillings(recorded, version(recorded, true), Known::NOTHING);
        assert_eq!(filled.is_some(), recorded == b"\"1:ab", "{recorded:?}");
        assert!(agreed(recorded, &[]).0 <= recorded.len());
    }
    assert_eq!(fillings(b"{", version(b"", true), Known::NOTHING), None);
    assert_eq!(fillings(b"", version(b"{", true), Known::NOTHING), None);
}
