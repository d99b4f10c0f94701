//! Words that a flag says are secret.

use super::{plain, redact, session};
use crate::redact::{Redactor, Rules};

#[test]
fn the_word_behind_a_flag_is_hidden_and_found_again() {
    session(
        &mut plain(),
        &[
            (
                r#"{"params":{"arguments":{"args":["--user","me","--password","hunter2-secret","--verbose"]}}}"#,
                r#"{"params":{"arguments":{"args":["--user","me","--password","<redacted:password-1>","--verbose"]}}}"#,
            ),
            (r#"["was hunter2-secret"]"#, r#"["was <redacted:password-1>"]"#),
            (
                r#"["--token=abcdefabcdef","-api-key","a b\"c","--API_KEY", "\u0061bcd"]"#,
                r#"["--token=<redacted:token-1>","-api-key","<redacted:api-key-1>","--API_KEY", "<redacted:api-key-2>"]"#,
            ),
            (r#"["\u002d-pass\u0077ord","p\u0031"]"#, r#"["\u002d-pass\u0077ord","<redacted:password-2>"]"#),
            (
                r#"{"text":"{\"args\":[\"--password\", \"hunter3\"]}"}"#,
                r#"{"text":"{\"args\":[\"--password\", \"<redacted:password-3>\"]}"}"#,
            ),
            (
                r#"{"text":"ran ['--password', 'hunter4'] and [\"--password\", \"hunter5\"]"}"#,
                r#"{"text":"ran ['--password', '<redacted:password-4>'] and [\"--password\", \"<redacted:password-5>\"]"}"#,
            ),
            (
                r#"{"command":"mysql --password hunter6 -u root; x --token \"t\" 'y'\nz --otp 12ab34"}"#,
                r#"{"command":"mysql --password <redacted:password-6> -u root; x --token \"<redacted:token-2>\" 'y'\nz --otp <redacted:otp-1>"}"#,
            ),
            (
                r#"["--authorization","Bearer abc","--cookie","sid=s1; theme=t1"]"#,
                r#"["--authorization","Bearer <redacted:authorization-1>","--cookie","sid=<redacted:cookie-1>; theme=<redacted:cookie-2>"]"#,
            ),
        ],
    );
}

#[test]
fn words_of_lists_that_no_flag_says_anything_of_stay() {
    for message in [
        r#"["--password","--user","me"]"#,
        r#"["--password",7,"me"]"#,
        r#"["--password",["me"],{"a":"b"},"c"]"#,
        r#"["--password"]"#,
        r#"[["--password"],"me"]"#,
        r#"["password","me","--password-file","f","--no-password","db"]"#,
        r#"["--private-key","~/.ssh/id.pem","--cookie","jar.txt"]"#,
        r#"["--token","${TOKEN}","--password","********","--token","<var:T>"]"#,
        r#"{"a":"--password","b":"me"}"#,
        r#"{"result":{"tools":[{"name":"t","inputSchema":{"enum":["--password","me"]}}]}}"#,
        r#"{"text":"Give --password or --token with a value; --token option is none, --api-key <key12345>"}"#,
    ] {
        assert_eq!(redact(&mut plain(), message), message);
    }
}

#[test]
fn a_replay_hides_the_same_words() {
    let recorded = r#"["--password","<redacted:password-1>"]"#;
    for live in ["hunter2-secret", "another"] {
        let mut redactor = Redactor::for_replay(&Rules::default());
        assert_eq!(redact(&mut redactor, &recorded.replace("<redacted:password-1>", live)), recorded);
    }
}
