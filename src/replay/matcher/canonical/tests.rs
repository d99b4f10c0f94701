//! What is the same, and what is not.

use super::*;

fn places() -> Places {
    let mut places = Places::default();
    places.exempt("/params/_meta/progressToken", Exemption::Ignore);
    places.exempt("/params/inputResponses", Exemption::Names);
    places.exempt("/params/arguments/limit", Exemption::Ignore);
    places.exempt("/params/arguments/list/1", Exemption::Ignore);
    places.exempt("/params/arguments/date", Exemption::Pattern(Regex::new("^[0-9-]+$").unwrap()));
    places.exempt("/params/arguments/n", Exemption::Type("number".into()));
    for pointer in ["/params", "/params/arguments", "/params/_meta"] {
        places.empty_is_none(pointer);
    }
    places
}

fn form(params: &str) -> Vec<u8> {
    let mut out = Vec::new();
    canonical(b"m", Some(params.as_bytes()), &places(), &mut Room::default(), &mut out).unwrap();
    out
}

#[track_caller]
fn same(a: &str, b: &str) {
    assert_eq!(form(a), form(b), "{a} and {b}");
}

#[track_caller]
fn differ(a: &str, b: &str) {
    assert_ne!(form(a), form(b), "{a} and {b}");
}

#[test]
fn objects_are_unordered_and_arrays_are_ordered() {
    same(r#"{"a":{"x":1,"y":[2,{"p":1,"q":2}]},"b":2}"#, r#"{ "b":2, "a":{"y":[2,{"q":2,"p":1}],"x":1}}"#);
    differ(r#"{"a":[1,2]}"#, r#"{"a":[2,1]}"#);
    differ(r#"{"a":{"b":1},"c":2}"#, r#"{"a":{"b":1,"c":2}}"#);
    differ(r#"{"a":[[1],2]}"#, r#"{"a":[[1,2]]}"#);
}

#[test]
fn repeated_names_keep_the_order_of_their_values() {
    same(r#"{"a":1,"b":0,"a":2}"#, r#"{"b":0,"a":1,"a":2}"#);
    differ(r#"{"a":1,"a":2}"#, r#"{"a":2,"a":1}"#);
    differ(r#"{"a":1,"a":1}"#, r#"{"a":1}"#);
}

#[test]
fn numbers_are_equal_as_decimals_and_never_as_floats() {
    for equal in ["1.0", "1e0", "10e-1", "0.1E+1", "1.000"] {
        same(r#"{"a":1}"#, &format!(r#"{{"a":{equal}}}"#));
    }
    same(r#"{"a":-0.0}"#, r#"{"a":0}"#);
    same(r#"{"a":1e400}"#, r#"{"a":10e399}"#);
    differ(r#"{"a":9007199254740993}"#, r#"{"a":9007199254740992}"#);
    differ(r#"{"a":1}"#, r#"{"a":"1"}"#);
    differ(r#"{"a":1}"#, r#"{"a":-1}"#);
    differ(r#"{"a":1e99999999999999999999}"#, r#"{"a":1e99999999999999999998}"#);
}

#[test]
fn strings_are_equal_by_code_unit_after_unescaping() {
    same(r#"{"a":"\u0041\/"}"#, r#"{"a":"A/"}"#);
    same(r#"{"\u0061":1}"#, r#"{"a":1}"#);
    differ(r#"{"a":"\ud83d"}"#, r#"{"a":"\ud83e"}"#);
    differ(r#"{"a":"x","b":"y"}"#, r#"{"a":"x\"b\":\"y"}"#);
}

#[test]
fn none_is_the_same_as_empty_only_where_that_is_so() {
    let mut none = Vec::new();
    canonical(b"m", None, &places(), &mut Room::default(), &mut none).unwrap();
    assert_eq!(form("{}"), none);
    same(r#"{"name":"a"}"#, r#"{"name":"a","arguments":{}}"#);
    same(r#"{"name":"a"}"#, r#"{"_meta":{"progressToken":7},"name":"a"}"#);
    differ(r#"{"name":"a"}"#, r#"{"name":"a","arguments":null}"#);
    differ(r#"{"name":"a"}"#, r#"{"name":"a","other":{}}"#);
    differ(r#"{"name":"a"}"#, r#"{"name":"a","_meta":{"x":1}}"#);
}

#[test]
fn exempt_places_do_not_count() {
    same(r#"{"arguments":{"limit":{"x":[1]},"q":1}}"#, r#"{"arguments":{"q":1,"limit":7}}"#);
    same(r#"{"arguments":{"q":1}}"#, r#"{"arguments":{"q":1,"limit":7}}"#);
    same(r#"{"arguments":{"list":[1,2,3]}}"#, r#"{"arguments":{"list":[1,{},3]}}"#);
    same(r#"{"arguments":{"date":"2026-01-01"}}"#, r#"{"arguments":{"date":"1-1"}}"#);
    differ(r#"{"arguments":{"date":"2026-01-01"}}"#, r#"{"arguments":{"date":"today"}}"#);
    same(r#"{"arguments":{"n":1}}"#, r#"{"arguments":{"n":2.5}}"#);
    differ(r#"{"arguments":{"n":1}}"#, r#"{"arguments":{"n":"1"}}"#);
    same(r#"{"inputResponses":{"a":{"x":1}}}"#, r#"{"inputResponses":{"a":2}}"#);
    differ(r#"{"inputResponses":{"a":1}}"#, r#"{"inputResponses":{"b":1}}"#);
}

#[test]
fn placeholders_match_whatever_their_number() {
    same(
        r#"{"a":"x <redacted:key-1> y <redacted:jwt-2>"}"#,
        r#"{"a":"x <redacted:key-7> y <redacted:jwt-9>"}"#,
    );
    differ(r#"{"a":"<redacted:key-1>"}"#, r#"{"a":"<redacted:jwt-1>"}"#);
}

#[test]
fn what_cannot_be_read_is_an_error_at_every_cut() {
    let text = r#"{"a":[1,{"b":"c"}],"_meta":{"progressToken":1}}"#.as_bytes();
    for cut in 0..text.len() {
        let (mut room, mut form) = Default::default();
        assert!(canonical(b"m", Some(&text[..cut]), &places(), &mut room, &mut form).is_err(), "{cut}");
    }
}
