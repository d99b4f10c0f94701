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
fn a_word_that_fills_its_quotes_is_a_secret_with_all_its_signs() {
    session(
        &mut plain(),
        &[
            (
                r#"["--token=ab12cd;ef34","--password=ab&c=d,(e)","--cookie=a=b1;c=d2","API_TOKEN=x;y&z"]"#,
                r#"["--token=<redacted:token-1>","--password=<redacted:password-1>","--cookie=a=<redacted:cookie-1>;c=<redacted:cookie-2>","API_TOKEN=<redacted:token-2>"]"#,
            ),
            (
                r#"{"text":"x '--token=ab12cd;ef34' \"--password=g&h\" --otp=a;b"}"#,
                r#"{"text":"x '--token=<redacted:token-1>' \"--password=<redacted:password-2>\" --otp=<redacted:otp-1>;b"}"#,
            ),
            // These are several.
            (r#"["API_KEY=ab&USER=me"]"#, r#"["API_KEY=<redacted:api-key-1>&USER=me"]"#),
            (r#"["--token=gh is it"]"#, r#"["--token=<redacted:token-3> is it"]"#),
        ],
    );
}

#[test]
fn blanks_of_every_sort_part_a_flag_and_its_word() {
    let hidden =
        |text: &str| text.replace("hunter2", "<redacted:password-1>").replace("4711ab", "<redacted:otp-1>");
    for text in [
        "mysql --password\thunter2 -u root",
        "mysql --password \thunter2",
        "x --otp\t4711ab",
        "xy --otp\t4711ab",
        "x --otp\u{a0}4711ab",
        "mysql --password \\\n  hunter2",
        "mysql --password \\\r\n\thunter2",
        "mysql \\\n --password \\\n 'hunter2'",
        "mysql --password ^\nhunter2",
        "mysql --password `\nhunter2",
        "mysql --password\u{a0}hunter2\u{a0}-u",
        "mysql\u{a0}--password\u{202f}hunter2",
        "mysql\u{3000}--password\u{2003}\"hunter2\"",
        "sh;--password hunter2;y",
        "sh&&--password hunter2|y",
        "mysql \"--password\" \"hunter2\"",
        "mysql '--password'\t'hunter2'",
        "mysql \"--password\" \\\n hunter2",
        "args:\n  - --password\n  - hunter2\n",
        "- --password\r\n- \"hunter2\" \r\n- x",
        "- '--password'\n- 'hunter2'",
        "- \"--otp\"\n- 4711ab",
    ] {
        let hidden = hidden(text);
        assert_eq!(plain().text(text), hidden);
        for ascii in [false, true] {
            let json = |text: &str| {
                let json = format!(r#"{{"c":{}}}"#, serde_json::to_string(text).unwrap());
                let escape = |sign: char| match sign {
                    '\0'..='~' => sign.to_string(),
                    _ => format!("\\u{:04x}", u32::from(sign)),
                };
                if ascii { json.chars().map(escape).collect() } else { json }
            };
            let (message, hidden) = (json(text), json(&hidden));
            assert_eq!(redact(&mut plain(), &message), hidden);
            let inside = |message: &str| json(message);
            assert_eq!(redact(&mut plain(), &inside(&message)), inside(&hidden));
        }
    }
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
        r#"{"text":"Options:\n  --token\tOAuth token\n  --password\n\tPassw0rd of the user\n--api-key \n  Key64 of it"}"#,
        r#"{"text":"`--password`\nHunter22 goes on. \"--token\" \"The token of 2024\" '--token'\t'--user1'"}"#,
        r#"{"text":"- --password\n- the user has2name\n- --token\n  - nested22\n- --token\nthen222"}"#,
        r#"{"text":"- `--password`\n- `hunter22` \n x--password\n- hunter22\n- --user\n- hunter22\n- --token"}"#,
        r#"{"text":"/--password hunter22, \"x --password\" \"y\", ('--token')\n'x' \u00e9"}"#,
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
