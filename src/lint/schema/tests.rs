use super::*;

const SCHEMA: &str = r##"{"type": "object", "required": ["a"], "properties": {
    "a": {"type": ["integer", "null"]}, "b": {"type": "array", "items": {"$ref": "#/$defs/b~1"}},
    "c": {"enum": ["x", "y"]}, "d": {"contains": {"type": "string"}}, "e": true},
    "additionalProperties": false, "$defs": {"b/": {"type": "object", "properties": {"n": {"type": "string"}}}}}"##;

fn fault_of(schema: &str, value: &str) -> Option<(String, String)> {
    let found = first_fault(schema.as_bytes(), value.as_bytes(), &mut BTreeSet::new());
    found.map(|misfit| (misfit.pointer, misfit.text))
}

#[test]
fn what_fits_or_is_not_understood_is_no_fault() {
    for value in [
        r#"{"a": 1}"#,
        r#"{"a": 1.0, "c": "x"}"#,
        r#"{"a": null, "b": [{"n": "s"}, {}], "d": 7, "e": []}"#,
        r#"{"a": 1, "c": "<redacted:jwt-1>"}"#,
    ] {
        assert_eq!(fault_of(SCHEMA, value), None, "{value}");
    }
    assert_eq!(fault_of(r##"{"$ref": "#"}"##, "{}"), None);
    assert_eq!(fault_of(r#"{"$ref": "http://x/y"}"#, "{}"), None);
    assert_eq!(fault_of(r##"{"$ref": "#name", "type": "object"}"##, "{}"), None);
    let old = r##"{"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"a": {"$ref": "#/d", "type": "null"}}, "d": {}}"##;
    assert_eq!(fault_of(old, r#"{"a": 1}"#), None);
    assert_eq!(fault_of("true", "[1]"), None);
}

#[test]
fn what_does_not_fit_is_named_with_its_place() {
    for (value, pointer, text) in [
        ("[]", "", "expected object, found `[]`"),
        (r#"{"b": []}"#, "", "`a` is missing"),
        (r#"{"a": 1, "f": 2}"#, "", "`f` is not in the schema"),
        (r#"{"a": 1.5}"#, "/a", "expected integer or null, found `1.5`"),
        (r#"{"a": 1, "b": [{}, {"n": 7}]}"#, "/b/1/n", "expected string, found `7`"),
        (r#"{"a": 1, "c": "z"}"#, "/c", "expected one of x, y, found `\"z\"`"),
    ] {
        assert_eq!(fault_of(SCHEMA, value), Some((pointer.to_owned(), text.to_owned())), "{value}");
    }
}

/// A schema, values that fit it, and values that do not with what is said.
type Case = (&'static str, &'static [&'static str], &'static [(&'static str, &'static str)]);

#[test]
fn each_word_is_judged_by() {
    let cases: &[Case] = &[
        (r#"{"minimum": 1}"#, &["1", "1.0", "\"a\""], &[("0.99", "expected at least 1, found `0.99`")]),
        (r#"{"maximum": 1e2}"#, &["100", "-5"], &[("100.1", "expected at most 1e2, found `100.1`")]),
        (r#"{"exclusiveMinimum": 0}"#, &["1e-400"], &[("0", "expected more than 0, found `0`")]),
        (r#"{"exclusiveMaximum": 1}"#, &["0.9"], &[("1.0", "expected less than 1, found `1.0`")]),
        (r#"{"multipleOf": 0.1}"#, &["0.3", "1"], &[("0.35", "expected a multiple of 0.1, found `0.35`")]),
        (
            r#"{"minLength": 2, "maxLength": 3}"#,
            &[r#""ab""#, r#""é\ud83d\ude00""#, r#""<redacted:jwt-1>""#, "7"],
            &[
                (r#""a""#, "expected at least 2 characters, found 1"),
                (r#""abcd""#, "expected at most 3 characters, found 4"),
            ],
        ),
        (
            r#"{"pattern": "^[a-z]+$"}"#,
            &[r#""ab""#, "7"],
            &[(r#""a1""#, "expected text that matches `^[a-z]+$`, found `\"a1\"`")],
        ),
        (
            r#"{"minItems": 1, "maxItems": 2, "uniqueItems": true}"#,
            &["[1]", r#"[1, "1"]"#, "{}", "[{}, []]"],
            &[
                ("[]", "expected at least 1 elements, found 0"),
                ("[1, 2, 3]", "expected at most 2 elements, found 3"),
                ("[1, 1.0]", "two elements are equal"),
                (r#"[{"a": 1}, {"a": 1}]"#, "two elements are equal"),
            ],
        ),
        (
            r#"{"maxProperties": 1}"#,
            &[r#"{"a": 1}"#],
            &[(r#"{"a": 1, "b": 2}"#, "expected at most 1 members, found 2")],
        ),
        (
            r#"{"enum": [1, null, {"a": 1}]}"#,
            &["1.0", "null", r#"{"a": 1}"#, r#"{"a":1}"#],
            &[("2", r#"expected one of 1, null, {"a": 1}, found `2`"#)],
        ),
        (r#"{"const": "x"}"#, &[r#""\u0078""#], &[("null", "expected one of x, found `null`")]),
        (
            r#"{"anyOf": [{"type": "integer"}, {"type": "null"}]}"#,
            &["1", "null"],
            &[(
                r#""1""#,
                "fits none of the choices of `anyOf` (expected integer, found `\"1\"`; expected null, found `\"1\"`)",
            )],
        ),
        (
            r#"{"oneOf": [{"minimum": 5}, {"multipleOf": 2}]}"#,
            &["7", "2"],
            &[
                ("6", "fits more than one of the choices of `oneOf`, and may fit one only"),
                (
                    "3",
                    "fits none of the choices of `oneOf` (expected at least 5, found `3`; expected a multiple of 2, found `3`)",
                ),
            ],
        ),
        (
            r#"{"allOf": [{"type": "string"}, {"maxLength": 1}]}"#,
            &[r#""a""#],
            &[("7", "expected string, found `7`")],
        ),
        (r#"{"not": {"type": "null"}}"#, &["1"], &[("null", "fits what stands in `not`")]),
        // What cannot be decided makes nothing wrong.
        (r#"{"type": "integer"}"#, &[r#""<redacted:pin-1>""#], &[]),
        (r#"{"not": {"contains": {}}}"#, &["[]"], &[]),
        (r#"{"anyOf": [{"type": "null"}, {"if": true}]}"#, &["1"], &[]),
        (r#"{"oneOf": [{"format": "date"}, {"type": "string"}]}"#, &[r#""a""#], &[]),
        (r#"{"minimum": true, "pattern": 7, "$dynamicRef": "x"}"#, &["1", r#""a""#], &[]),
    ];
    for (schema, fit, misfit) in cases {
        fit.iter().for_each(|value| assert_eq!(fault_of(schema, value), None, "{schema} {value}"));
        for (value, text) in *misfit {
            assert_eq!(
                fault_of(schema, value),
                Some((String::new(), (*text).to_owned())),
                "{schema} {value}"
            );
        }
    }
}

#[test]
fn members_and_elements_without_a_place_of_their_own_are_judged_too() {
    let map = r#"{"properties": {"a": {}}, "additionalProperties": {"type": "integer"}}"#;
    assert_eq!(fault_of(map, r#"{"a": "x", "b": 1}"#), None);
    assert_eq!(fault_of(map, r#"{"b/c": "x"}"#).unwrap().0, "/b~1c");
    let list = r#"{"prefixItems": [{"type": "string"}], "items": {"type": "integer"}}"#;
    assert_eq!(fault_of(list, r#"["x", 1]"#), None);
    assert_eq!(fault_of(list, "[1]").unwrap().0, "/0");
    assert_eq!(fault_of(list, r#"["x", 1, "y"]"#).unwrap().0, "/2");
    let deep =
        r##"{"properties": {"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}, "n": {"minimum": 0}}}"##;
    assert_eq!(fault_of(deep, r#"{"n": 1, "next": {"n": 2, "next": null}}"#), None);
    assert_eq!(fault_of(deep, r#"{"n": 1, "next": {"n": -2}}"#).unwrap().0, "/next");
}

#[test]
fn words_that_nobody_looks_at_are_told() {
    let mut passed_over = BTreeSet::new();
    let schema = br#"{"type": "object", "title": "x", "if": {}, "properties": {"a": {"contains": {}}}}"#;
    assert_eq!(first_fault(schema, br#"{"a": []}"#, &mut passed_over), None);
    assert_eq!(Vec::from_iter(passed_over), ["contains", "if"]);
}

#[test]
fn depth_is_only_data() {
    let deep = format!("{}{}", r#"{"n":"#.repeat(20_000), "}".repeat(20_000).replacen('}', "1}", 1));
    assert_eq!(fault_of(r##"{"properties": {"n": {"$ref": "#"}}}"##, &deep), None);
    assert_eq!(fault_of(r##"{"anyOf": [{"$ref": "#"}, {"not": {"$ref": "#"}}]}"##, "{}"), None);
}
