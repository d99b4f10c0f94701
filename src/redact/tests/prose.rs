//! The punctuation of a sentence that a secret stands in.

use super::settings::hidden;
use super::{plain, redact};

#[test]
fn what_ends_a_sentence_is_no_part_of_a_secret() {
    hidden(
        "password",
        "hunter2hunter2",
        &["password: <>.", "**password: <>**", "see password=<>. Then", "* password: <>"],
    );
    hidden(
        "api-key",
        "k3y-12345678",
        &["with api_key=<>.", "API_KEY=<>, ok", "say API_KEY=<>. ok", "use API_KEY=<>..."],
    );
    hidden(
        "token",
        "abc12345",
        &[
            "--token <>.",
            "use --token=<>: ok",
            "(see --token <>)",
            "see http://h/?token=<>. ok",
            "see http://h/?token=<>, ok",
            "see (http://h/?v=1&token=<>), ok",
            "token = <>.",
        ],
    );
    hidden("authorization", "abcdef123456", &["Authorization: Bearer <>."]);
    hidden("bearer", "abcdef123456", &["use Bearer <>. ok"]);
    hidden("password", "hunter2", &["call curl -u ann:<>, then", "call curl -u ann:<>. Then"]);
}

#[test]
fn a_sign_that_may_be_its_own_is_part_of_it() {
    hidden(
        "password",
        "hunter2.",
        &["password=<>&a=b", "password=<>", "a=b&password=<>", "curl -u ann:'<>' h"],
    );
    hidden("password", "hunter2(a)", &["curl -u ann:'<>'"]);
    hidden("password", "hunter2hunter2!", &["password: <>", "DB_PASSWORD=<> x"]);
    hidden("password", "hunter2.", &["/x?password=<>"]);
    assert_eq!(
        redact(&mut plain(), r#"{"password":"hunter2.,"}"#),
        r#"{"password":"<redacted:password-1>"}"#
    );
}
