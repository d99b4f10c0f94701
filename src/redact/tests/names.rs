//! What stands under names of secrets, at any depth.

use super::{plain, redact, redactor, session};
use crate::redact::Options;

#[test]
fn values_under_secret_names_are_replaced_and_nothing_else_changes() {
    session(
        &mut plain(),
        &[
            (
                r#"{ "jsonrpc":"2.0","params" : {"b":1.0,"apiKey" :  "k1","a":"\u00e9"}}"#,
                r#"{ "jsonrpc":"2.0","params" : {"b":1.0,"apiKey" :  "<redacted:api-key-1>","a":"\u00e9"}}"#,
            ),
            (
                r#"{"password":"p1","token":"t1"}"#,
                r#"{"password":"<redacted:password-1>","token":"<redacted:token-1>"}"#,
            ),
            (
                r#"{"token":"t2","token":"t1"}"#,
                r#"{"token":"<redacted:token-2>","token":"<redacted:token-1>"}"#,
            ),
            (r#"{"pass\u0077ord":"p\"1"}"#, r#"{"pass\u0077ord":"<redacted:password-2>"}"#),
            (r#"{"token":"\u0074\u0031"}"#, r#"{"token":"<redacted:token-1>"}"#),
        ],
    );
}

#[test]
fn json_in_strings_is_read_at_any_level() {
    session(
        &mut plain(),
        &[
            (
                r#"{"text":"{\"password\":\"x\\\"y\",\"n\":1}"}"#,
                r#"{"text":"{\"password\":\"<redacted:password-1>\",\"n\":1}"}"#,
            ),
            (
                r#"{"text":"{\u0022password\u0022: \u0022x\\\u0022y\u0022}"}"#,
                r#"{"text":"{\u0022password\u0022: \u0022<redacted:password-1>\u0022}"}"#,
            ),
            (
                r#"{"text":"Result: {\"deep\": \"{\\\"token\\\":\\\"abc\\\"}\"}"}"#,
                r#"{"text":"Result: {\"deep\": \"{\\\"token\\\":\\\"<redacted:token-1>\\\"}\"}"}"#,
            ),
            (
                r#"{"text":"{\"deep\": \"{\\\"token\\\":\\\"abc\\\"}\"}"}"#,
                r#"{"text":"{\"deep\": \"{\\\"token\\\":\\\"<redacted:token-1>\\\"}\"}"}"#,
            ),
        ],
    );
}

#[test]
fn names_given_by_members_and_structures_below_names_count() {
    session(
        &mut plain(),
        &[
            (
                r#"[{"name":"API_KEY","value":"v1"},{"value":"v2","name":"plain"},{"value":"v3","name":"API_KEY"}]"#,
                r#"[{"name":"API_KEY","value":"<redacted:api-key-1>"},{"value":"v2","name":"plain"},{"value":"<redacted:api-key-2>","name":"API_KEY"}]"#,
            ),
            (
                r#"{"credentials":{"user":"bob","pin":[7,"x"]},"tokens":["a"],"secrets":["b"]}"#,
                r#"{"credentials":{"user":"<redacted:credential-1>","pin":[7,"<redacted:credential-2>"]},"tokens":["a"],"secrets":["<redacted:secret-1>"]}"#,
            ),
            (
                r#"{"headers":{"Authorization":"Bearer abc","Cookie":"sid=s1; theme=dark"}}"#,
                r#"{"headers":{"Authorization":"Bearer <redacted:authorization-1>","Cookie":"sid=<redacted:cookie-1>; theme=<redacted:cookie-2>"}}"#,
            ),
        ],
    );
}

#[test]
fn a_value_that_is_a_word_is_no_members_name() {
    let sent = vec![("X-Company".to_owned(), b"company".to_vec())];
    let mut redactor = redactor(Options { sent, ..Options::default() });
    session(
        &mut redactor,
        &[
            (
                r#"{"company":"company","company_id":1,"a":{"company":["my company"]}}"#,
                r#"{"company":"<redacted:env-1>","company_id":1,"a":{"company":["my <redacted:env-1>"]}}"#,
            ),
            (r#"{"text":"{\"company\": \"company\"}"}"#, r#"{"text":"{\"company\": \"<redacted:env-1>\"}"}"#),
        ],
    );
    // What looks like a secret is none of these words.
    let mut redactor = plain();
    let _ = redactor.header_value("x-api-key", "c53-apikey-22bb");
    assert_eq!(redact(&mut redactor, r#"{"c53-apikey-22bb":1}"#), r#"{"<redacted:api-key-1>":1}"#);
}

#[test]
fn an_assignment_in_the_middle_of_a_line_holds_a_secret_where_it_is_no_code() {
    session(
        &mut plain(),
        &[
            (r#"["got api_key=k3y-12345678 here"]"#, r#"["got api_key=<redacted:api-key-1> here"]"#),
            (r#"["with password=hunter2hunter2"]"#, r#"["with password=<redacted:password-1>"]"#),
            (r#"{"bearer":"b1"}"#, r#"{"bearer":"<redacted:token-1>"}"#),
        ],
    );
    for code in [
        r#"["connect(user, password=get_password2(x))"]"#,
        r#"["connect(user, password=settings2.password)"]"#,
        r#"["f(a, token=token2_value, b)"]"#,
        r#"["set password=secret and token=value"]"#,
        r#"["if token=="]"#,
    ] {
        assert_eq!(redact(&mut plain(), code), code);
    }
}
