//! What is wrong with a text is said where it stands, with the next step.

use super::{super::*, *};

/// The golden file of this version: a cassette with every member there is.
const WHOLE: &str = include_str!("../../../cassettes/format/v1.json");

fn load(text: &str) -> Result<Cassette, LoadError> {
    Cassette::load(text.as_bytes().to_vec(), &blob::NoBlobs)
}

#[track_caller]
fn check(text: &str, expected: &str) {
    match load(text) {
        Ok(_) => panic!("loads: {text}"),
        Err(error) => assert_eq!(error.to_string(), expected, "{text}"),
    }
}

/// An exchange with these members.
#[track_caller]
fn check_exchange(members: &str, expected: &str) {
    check(&format!("{{\"cassette\": 1, \"exchanges\": [\n{{\"key\": \"a\", {members}}}\n]}}"), expected);
}

/// A result in which a marker stands.
#[track_caller]
fn check_result(result: &str, expected: &str) {
    check_exchange(&format!("\"server\": [{{\"no_id\": true, \"result\":\n{result}}}]"), expected);
}

#[test]
fn a_cassette_with_every_member_loads_without_a_warning_and_is_formatted() {
    let cassette = load(WHOLE).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(cassette.warnings, []);
    assert_eq!(String::from_utf8(format(&cassette)).unwrap(), WHOLE);
    assert_eq!((cassette.sessions.len(), cassette.exchanges.len()), (3, 6));
    assert_eq!(cassette.exchanges[2].server[0].message.place, cassette.exchanges[0].server[2].message.place);
    let after = |exchange: u32, moment| Some(model::Ref { exchange, moment });
    assert_eq!(cassette.exchanges[0].after, after(2, model::Moment::Item(0)));
    assert_eq!(cassette.exchanges[3].after, after(0, model::Moment::Answer(1)));
}

/// All errors of a text.
fn errors(text: &str) -> Vec<String> {
    let errors = Cassette::check(text.as_bytes().to_vec(), &blob::NoBlobs).expect_err("it does not load");
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn a_check_goes_on_behind_what_is_wrong() {
    let text = r#"{"cassette": 1, "match": [{"ignore": ["x", "/params/y"]}],
"sessions": [{"session": "1"}, {"session": 2}], "exchanges": [
{"key": "a", "server": [{"result": {"$lines": 1}}, {"after": "nowhere", "raw": "x"}, {"after_ms": -1}]},
{"key": "a", "server": [{"notification": {}}]},
{"session": 2}, 7,
{"key": "b", "client": {"request": {"method": "m"}}}]}"#;
    let found = errors(text);
    let lines: Vec<&str> = found.iter().map(|error| &error[..2]).collect();
    assert_eq!(lines, ["1:", "2:", "3:", "3:", "4:", "5:", "5:"], "{found:#?}");
    assert_eq!(load(text).unwrap_err().to_string(), found[0]);
}

#[test]
fn a_match_rule_names_places_in_params_by_json_pointers() {
    let rule = |rule: &str| {
        let text =
            format!("{{\"cassette\": 1, \"match\": [{{{rule}}}], \"sessions\": [], \"exchanges\": []}}");
        Cassette::load(text.into_bytes(), &blob::NoBlobs).map(|_| ()).map_err(|error| error.to_string())
    };
    for good in ["/params", "/params/", "/params/a~1b/m~0n/0"] {
        assert_eq!(rule(&format!(r#""ignore": ["{good}"], "type": {{"{good}": "null"}}"#)), Ok(()), "{good}");
    }
    for wrong in ["", "/", "x", "/result", "/paramsx", "/params/a~2b", "/params/a~", "params/a"] {
        for text in [
            format!(r#""ignore": ["{wrong}"]"#),
            format!(r#""pattern": {{"{wrong}": "x"}}"#),
            format!(r#""type": {{"{wrong}": "null"}}"#),
        ] {
            let told = rule(&text).expect_err(&text);
            assert!(
                told.starts_with("1:") && told.contains("a JSON Pointer that begins with /params"),
                "{told}"
            );
        }
    }
}

#[test]
fn a_check_looks_up_names_once_all_else_is_in_order() {
    let text = r#"{"cassette": 1, "sessions": [{"session": 1}, {"session": 1}], "exchanges": [
{"key": "a", "after": "x", "session": 3, "server": [{"raw": "1"}]},
{"key": "a", "after": "y", "server": [{"raw": "2"}]}]}"#;
    let found = errors(text);
    assert_eq!(found.len(), 5, "{found:#?}");
    assert!(
        found[0].contains("session 1 is listed twice") && found[4].contains("`after` names `y`"),
        "{found:#?}"
    );
}

#[test]
fn a_check_ends_where_no_element_ends_and_tells_so_much() {
    let found = errors("{\"cassette\": 1, \"exchanges\": [{}, {\"key\": [}, {}");
    assert_eq!(found.len(), 2, "{found:#?}");
    let many = format!("{{\"cassette\": 1, \"exchanges\": [{}1]}}", "1,".repeat(1000));
    assert_eq!(errors(&many).len(), 100);
}

#[test]
fn what_is_no_json_is_shown_with_its_place() {
    let hint = "a cassette is JSON, without comments and trailing commas";
    check(
        "",
        "1:1: expected a cassette, an object with `\"cassette\": 1` as its first member, found the end of the text",
    );
    check("{\"cassette\": 1,\n}", &format!("2:1: expected a member's name in quotes, found `}}`; {hint}"));
    check(
        "{\"cassette\": 1",
        &format!("1:15: expected a comma or a closing brace, found the end of the text; {hint}"),
    );
    check("{\"cassette\": 1} {", &format!("1:17: expected the end of the text, found `{{`; {hint}"));
    check("{\"cassette\": 1, \"note\": tru}", &format!("1:25: expected a value, found `tru`; {hint}"));
    check(
        "{\"cassette\": 1, \"note\": \"\\x\"}",
        &format!("1:26: expected an escape that JSON knows, found `\\x`; {hint}"),
    );
    check(
        "{\"cassette\": 1, \"note\": \"é\t\"}",
        &format!("1:27: expected no control characters in a string, found `\\t\"}}`; {hint}"),
    );
    let error =
        Cassette::load(b"{\"cassette\": 1, \"note\": \"\xff\"}".to_vec(), &blob::NoBlobs).unwrap_err();
    assert_eq!(error.to_string(), "1:26: expected UTF-8, found a byte that is not; save the file as UTF-8");
}

#[test]
fn other_json_and_other_versions_are_refused() {
    check("[]", "1:1: expected a cassette, an object with `\"cassette\": 1` as its first member, found `[]`");
    check(
        "{\"a\": 1}",
        "1:1: expected a cassette, an object with `\"cassette\": 1` as its first member, found `{\"a\": 1}`",
    );
    check("{\"cassette\": \"1\"}", "1:14: `cassette` must be the format's version, a number, found `\"1\"`");
    let version = env!("CARGO_PKG_VERSION");
    check(
        "{\"cassette\": 2, what follows need not be understood",
        &format!(
            "1:14: this cassette has format 2, and mcp-tapedeck {version} reads formats 1 to 1; use one that reads format 2"
        ),
    );
}

#[test]
fn members_are_checked() {
    check_exchange("\"key\": \"b\"", "2:14: `key` stands twice in an exchange; remove one of them");
    check_exchange("\"server\": []", "2:1: an exchange needs `client`, or for a push `server`");
    check_exchange("\"server\": {}", "2:24: `server` must be an array, found `{}`");
    check_exchange(
        "\"session\": 2, \"server\": [{\"raw\": \"\"}]",
        "2:26: session 2 is not listed; add {\"session\": 2} to `sessions`, or correct the number",
    );
    check_exchange(
        "\"client\": {}",
        "2:24: `client` needs one of `request`, `notification`, `batch`, `raw`, `base64`, `http`",
    );
    check_exchange(
        "\"client\": {\"raw\": \"\", \"base64\": \"\"}",
        "2:46: `client` has `raw` and `base64`; keep one of them",
    );
    check_exchange("\"client\": {\"request\": {}}", "2:36: a request needs a `method`");
    check_exchange(
        "\"client\": {\"request\": {\"method\": \"m\", \"jsonrpc\": \"2.0\"}}",
        "2:52: a request cannot have `jsonrpc`; it is the same in every message, so leave it out",
    );
    check_exchange(
        "\"client\": {\"notification\": {\"method\": \"m\", \"id\": 1}}",
        "2:57: a notification cannot have `id`; a message with an id is a `request`",
    );
    check_exchange(
        "\"server\": [{\"id\": 1, \"notification\": {\"method\": \"m\"}}]",
        "2:32: an item of `server` cannot have `id`; a response has it there, a request inside `request`",
    );
    check_exchange(
        "\"server\": [{\"result\": {}}]",
        "2:25: a response to no request needs its `id`, or `\"no_id\": true`",
    );
    check_exchange(
        "\"server\": [{\"after_ms\": -1, \"raw\": \"\"}]",
        "2:38: `after_ms` must be milliseconds, a whole number, found `-1`",
    );
    check_exchange("\"server\": [{\"base64\": \"?\"}]", "2:36: `base64` must be base64, found `\"?\"`");
    check_exchange(
        "\"server\": [{\"raw\": \"a\\nb\"}]",
        "2:33: `raw` must be the text of one line, without a line end and without half surrogates, found `\"a\\nb\"`",
    );
    check_exchange(
        "\"unanswered\": \"no\", \"server\": [{\"raw\": \"\"}]",
        "2:28: `unanswered` must be `cancelled`, `open`, `lost` or `ended`, found `\"no\"`",
    );
    check(
        "{\"cassette\": 1, \"match\": [{\"when\": {\"server\": \"x\"}}]}",
        "1:37: `when` does not know `server`; it knows method, tool, prompt, uri and key",
    );
    check(
        "{\"cassette\": 1, \"match\": [{\"ignore\": [\"params\"]}]}",
        "1:39: `ignore` must be a JSON Pointer that begins with /params, such as /params/arguments/limit, found `\"params\"`",
    );
    check(
        "{\"cassette\": 1, \"match\": [{\"pattern\": {\"/params\": \"[\"}}]}",
        "1:51: `[` is no regular expression: error: unclosed character class",
    );
    check(
        "{\"cassette\": 1, \"sessions\": [{\"session\": 1},\n{\"session\": 1}]}",
        "2:1: session 1 is listed twice; give this one another number",
    );
}

#[test]
fn references_are_looked_up() {
    let push =
        |key: &str, more: &str| format!("{{\"key\": \"{key}\", {more}\"server\": [{{\"raw\": \"\"}}]}}");
    let two = |a: String, b: String| format!("{{\"cassette\": 1, \"exchanges\": [{a},\n{b}]}}");
    check(
        &two(push("a", ""), push("a", "")),
        "2:1: the key `a` is taken by an exchange before this one; give this one another",
    );
    check(
        &two(push("tools/call x @1", ""), push("b", "\"after\": \"tools/call y @1\", ")),
        "2:23: `after` names `tools/call y @1`, and no exchange has that key; did you mean `tools/call x @1`?",
    );
    check(
        &two(push("a", ""), push("b", "\"after\": \"a #2\", ")),
        "2:23: `after` names `a #2`, and that exchange has one item",
    );
    check(
        &two(push("a", ""), push("b", "\"after\": \"a #1 answer\", ")),
        "2:23: `after` names `a #1 answer`, and that item has no answer",
    );
    check(
        &two(push("a", ""), "{\"key\": \"b\", \"server\": [{\"no_id\": true, \"same_as\": \"a\"}]}".into()),
        "2:52: `same_as` names `a`, and that exchange has no `result` and no `error`",
    );
    check_exchange(
        "\"server\": [{\"no_id\": true, \"same_as\": \"a\"}]",
        "2:52: `same_as` names `a`, and that exchange does not come before this one",
    );
}

#[test]
fn markers_are_checked() {
    let literal = "to mean an object with this member, put it into {\"$literal\": …}";
    check_result(
        "{\"$lines\": \"a\"}",
        &format!("3:12: `$lines` takes an array of strings, one a line; {literal}"),
    );
    check_result(
        "{\"$lines\": [\"a\", 1]}",
        &format!("3:12: `$lines` takes an array of strings, one a line; {literal}"),
    );
    check_result(
        "{\"$lines\": [ ]}",
        &format!(
            "3:12: `$lines` takes an array of strings: expected at least one line, found none (an empty text is \"\"); {literal}"
        ),
    );
    check_result(
        "{\"$lines\": [\"\"], \"$indent\": 2}",
        &format!("3:29: `$lines` takes no `$indent`, which goes with `$json`; {literal}"),
    );
    check_result(
        "{\"$json\": 1, \"$indent\": 17}",
        &format!("3:25: `$json` takes an `$indent` of 0 to 16 spaces or \"spaced\"; {literal}"),
    );
    check_result("{\"$blob\": 1}", &format!("3:11: `$blob` takes a blob's name; {literal}"));
    for name in ["../../etc/passwd", "/etc/passwd", "a.txt"] {
        check_result(
            &format!("{{\"$blob\": \"{name}\"}}"),
            &format!(
                "3:11: `{name}` is no blob's name; it must be sha256-<64 hex digits>.bin or .txt, in the cassette's .blobs folder"
            ),
        );
    }
    let name = blob::name(blob::Kind::Text, b"x");
    check_result(
        &format!("{{\"$blob\": \"{name}\"}}"),
        &format!("3:11: cannot read the blob `{name}`; bring the cassette's .blobs folder along with it"),
    );
    let deep = format!("{}1{}", "{\"$json\": ".repeat(9), "}".repeat(9));
    check_result(&deep, "3:81: `$json` stands in `$json` more than 8 deep; write the inner ones as strings");
}

#[test]
fn a_blob_must_be_what_its_name_says() {
    let name = blob::name(blob::Kind::Base64, b"x");
    let text = format!(
        "{{\"cassette\": 1, \"exchanges\": [{{\"key\": \"a\", \"server\": [{{\"no_id\": true, \"result\": {{\"$blob\": \"{name}\"}}}}]}}]}}"
    );
    let with =
        |bytes: &[u8]| Cassette::load(text.clone().into(), &Blobs([(name.clone(), bytes.to_vec())].into()));
    assert!(with(b"x").is_ok());
    let error = with(b"y").unwrap_err();
    assert!(matches!(error.kind, LoadErrorKind::BlobHash { .. }), "{error}");
    assert_eq!(error.at, text.find("\"sha256").unwrap());
}

#[test]
fn unknown_members_are_a_warning() {
    let text = "{\"cassette\": 1, \"vasr\": [], \"x-mine\": 1, \"mine\": 1, \"faults\": {}, \"exchanges\": [{\"key\": \"a\", \"clinet\": 1,
        \"server\": [{\"afterms\": 1, \"notification\": {\"method\": \"m\", \"parms\": 1, \"mine\": 1}}]}]}";
    let cassette = load(text).unwrap();
    let warnings: Vec<_> = cassette.warnings.iter().map(|warning| (warning.at, &warning.text[..])).collect();
    let at = |name: &str| text.find(name).unwrap();
    let expected = [
        (at("\"vasr"), "a cassette has an unknown member `vasr`; did you mean `vars`?"),
        (at("\"mine"), "a cassette has an unknown member `mine`; names of your own begin with `x-`"),
        (at("\"clinet"), "an exchange has an unknown member `clinet`; did you mean `client`?"),
        (at("\"afterms"), "an item of `server` has an unknown member `afterms`; did you mean `after_ms`?"),
        (at("\"parms"), "a notification has an unknown member `parms`; did you mean `params`?"),
    ];
    assert_eq!(warnings, expected);
    let formatted = String::from_utf8(format(&cassette)).unwrap();
    for kept in ["vasr", "x-mine", "mine", "faults", "clinet", "afterms", "parms"] {
        assert!(formatted.contains(kept), "{formatted}");
    }
}

#[test]
fn values_that_the_format_does_not_have_are_a_warning() {
    let text = "{\"cassette\": 1, \"sessions\": [
        {\"session\": 1, \"transport\": \"stdoi\", \"end\": {\"exit\": 300}},
        {\"session\": 2, \"transport\": \"carrier pigeon\", \"end\": {\"exit\": 255}}], \"exchanges\": []}";
    let cassette = load(text).unwrap();
    assert!(cassette.warnings.iter().all(|warning| warning.is_value));
    let warnings: Vec<_> = cassette.warnings.iter().map(|warning| (warning.at, &warning.text[..])).collect();
    let at = |value: &str| text.find(value).unwrap();
    let expected = [
        (at("\"stdoi"), "`transport` is unknown: `stdoi`; did you mean `stdio`?"),
        (at("300"), "`exit` must be 255 at most, found 300; a replay ends with 44"),
        (
            at("\"carrier"),
            "`transport` is unknown: `carrier pigeon`; it is one of `stdio`, `http`, `sse`, `stdio-http`",
        ),
    ];
    assert_eq!(warnings, expected);
}

#[test]
fn a_text_that_ends_anywhere_is_an_error() {
    for end in 0..WHOLE.len() - 2 {
        let text = WHOLE.as_bytes()[..end].to_vec();
        assert!(Cassette::load(text, &blob::NoBlobs).is_err(), "{end}");
    }
}

#[test]
fn any_byte_may_be_another_and_nothing_panics() {
    let mut loaded = 0;
    for at in 0..WHOLE.len() {
        // Each place gets one other byte; over the whole text each byte comes to stand in places of every kind.
        let mut text = WHOLE.as_bytes().to_vec();
        text[at] = [b'"', b'\\', b']', b',', b'0', b' ', 0xff, b'}', b':'][at % 9];
        let Ok(cassette) = Cassette::load(text, &blob::NoBlobs) else { continue };
        loaded += 1;
        read_all(&cassette);
    }
    assert!(loaded > 200, "{loaded}");
}

/// Asks for everything, whatever comes of it; formatting is done once.
fn read_all(cassette: &Cassette) {
    for exchange in &cassette.exchanges {
        let items = exchange.server.iter().map(|item| (false, &item.message));
        let answers = exchange
            .server
            .iter()
            .filter_map(|item| item.answer.as_ref().map(|answer| (true, &answer.message)));
        for (from_client, message) in
            exchange.client.iter().map(|message| (true, message)).chain(items).chain(answers)
        {
            let mut out = Vec::new();
            let _ =
                cassette.wire(exchange.session, from_client, message, Some(b"1"), &blob::NoBlobs, &mut out);
            let _ = cassette.expand(message.place, &blob::NoBlobs, &mut out);
        }
    }
    let formatted = format(cassette);
    let again = Cassette::load(formatted.clone(), &blob::NoBlobs).unwrap();
    assert_eq!(format(&again), formatted);
}

#[test]
fn what_is_built_to_hurt_ends_in_an_error_or_not_at_all() {
    let result = |result: &str| {
        load(&format!(
            "{{\"cassette\": 1, \"exchanges\": [{{\"key\": \"a\", \"server\": [{{\"no_id\": true, \"result\": {result}}}]}}]}}"
        ))
    };
    // Deep nesting, of everything that a stack might be kept for.
    for (open, close) in [
        ("[", "]"),
        ("{\"a\":", "}"),
        ("{\"$literal\":", "}"),
        ("{\"$json\":1,\"x\":", "}"),
        ("{\"$indent\":", "}"),
    ] {
        let cassette = result(&format!("{}1{}", open.repeat(20_000), close.repeat(20_000))).unwrap();
        read_all(&cassette);
    }
    // Small texts that grow: backslashes that double at each level, indentation of depth times depth.
    let deep = format!("{{\"$indent\": 16, \"$json\": {}{}}}", "[".repeat(20_000), "]".repeat(20_000));
    let cassette = result(&deep).unwrap();
    let place = cassette.exchanges[0].server[0].message.place;
    let error = cassette.expand(place, &blob::NoBlobs, &mut Vec::new()).unwrap_err();
    assert!(matches!(error.kind, LoadErrorKind::TooLong { .. }), "{error}");
    // Many members, many of them wrong.
    let many: String = (0..5_000).map(|n| format!("\"m{n}\": 0, ")).collect();
    let cassette = load(&format!("{{{many}\"cassette\": 1}}")).unwrap();
    assert_eq!(cassette.warnings.len(), 5_000);
}
