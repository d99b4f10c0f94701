//! Numbers under the names of secrets.

use super::{Redactor, Rules, plain, redact, session};

#[test]
fn a_number_that_is_typed_or_long_is_a_secret_and_found_again() {
    session(
        &mut plain(),
        &[
            (
                r#"{"password":123456,"pin" : 4711,"a":123456,"otp":[123457,"x"]}"#,
                r#"{"password":"<redacted:password-1>","pin" : "<redacted:otp-1>","a":123456,"otp":["<redacted:otp-2>","<redacted:otp-3>"]}"#,
            ),
            (
                r#"{"token":12345678,"api_key":9876543210123456789012345678901234567890,"x":12345678}"#,
                r#"{"token":"<redacted:token-1>","api_key":"<redacted:api-key-1>","x":"<redacted:token-1>"}"#,
            ),
            (
                r#"{"text":"{\"password\": 20242025}","b":"had 20242025"}"#,
                r#"{"text":"{\"password\": \"<redacted:password-2>\"}","b":"had <redacted:password-2>"}"#,
            ),
            (
                r#"{"text":"got {\"secret\": 77777, 'pin': 1234} so"}"#,
                r#"{"text":"got {\"secret\": <redacted:secret-1>, 'pin': <redacted:otp-4>} so"}"#,
            ),
            (
                r#"[{"name":"PIN","value":4712},{"value":33334444,"key":"API_KEY"}]"#,
                r#"[{"name":"PIN","value":"<redacted:otp-5>"},{"value":"<redacted:api-key-2>","key":"API_KEY"}]"#,
            ),
            (
                r#"{"pin":"0815","u":"/x?pin=0816"}"#,
                r#"{"pin":"<redacted:otp-6>","u":"/x?pin=<redacted:otp-7>"}"#,
            ),
        ],
    );
}

#[test]
fn numbers_that_count_or_measure_stay() {
    for message in [
        r#"{"max_tokens":4096000,"maxTokens":100000000,"token_count":12345678,"tokens":12345678,"total_tokens":12345678}"#,
        r#"{"password":3,"token":151655,"secret":42,"apiKey":7654321,"pin":13,"pin2":1234567890123}"#,
        r#"{"password":-123456,"token":1.23456789,"secret":1e10,"password2":12345.5,"otp":123e4}"#,
        r#"{"password":true,"token":false,"secret":null}"#,
        r#"{"progressToken":123456789,"_meta":{"progressToken":123456789},"nextPageToken":123456789,"cost_per_token":12345678}"#,
        r#"{"credentials":{"user_id":123456789,"expires_at":1699999999}}"#,
        r#"{"result":{"tools":[{"inputSchema":{"password":123456,"properties":{"token":{"default":12345678}}}}]}}"#,
        r#"{"pin":"D13","pins":[1234],"spin":123456,"pinned":"1234","u":"/x?pin=abcd&pinned=1234"}"#,
        r#"{"text":"\"password\": 12345abc, \"password\": 12345.5, password 123456"}"#,
        r#"{"name":"PORT","value":8080}"#,
        r#"["--pin",13,"--token",42]"#,
    ] {
        assert_eq!(redact(&mut plain(), message), message);
    }
}

#[test]
fn a_known_number_is_no_part_of_a_longer_one() {
    session(
        &mut plain(),
        &[
            (r#"{"token":12345678}"#, r#"{"token":"<redacted:token-1>"}"#),
            (
                r#"{"text":"{\"order\": 123456789, \"sum\": 4123456780, \"b\": [12345678]}"}"#,
                r#"{"text":"{\"order\": 123456789, \"sum\": 4123456780, \"b\": [\"<redacted:token-1>\"]}"}"#,
            ),
            (
                r#"{"a":"123456789 912345678 12345678.","b":"a12345678b 12345678"}"#,
                r#"{"a":"123456789 912345678 <redacted:token-1>.","b":"a<redacted:token-1>b <redacted:token-1>"}"#,
            ),
            (
                r#"{"u":"?q=a%2012345678&n=112345678","h":"93132333435363738 31323334353637389"}"#,
                r#"{"u":"?q=a%20<redacted:token-1>&n=112345678","h":"9<redacted:token-1> <redacted:token-1>9"}"#,
            ),
            ("912345678 12345678", "912345678 <redacted:token-1>"),
        ],
    );
}

#[test]
fn a_replay_hides_the_same_numbers() {
    let recorded = r#"{"password":"<redacted:password-1>"}"#;
    for live in ["4711", "20242025", r#""hunter2""#] {
        let mut redactor = Redactor::for_replay(&Rules::default());
        assert_eq!(redact(&mut redactor, &recorded.replace(r#""<redacted:password-1>""#, live)), recorded);
    }
}
