//! What stands under names of secrets and is none.

use super::{plain, redact, session};

#[test]
fn versions_types_and_descriptions_stay() {
    for message in [
        r#"{"dependencies":{"cookie":"0.7.2","client-secret":"^1.2.3","token":"latest","my-cookie":">=1.0.0 <2.0.0"}}"#,
        r#"{"columns":{"password":"varchar(255)","token":"TEXT NOT NULL","api_key":"uuid","secret":"string | null"}}"#,
        r#"{"text":"cookie: 0.7.2\npassword: varchar(255)\n{\"cookie\": \"0.7.2\", 'token': 'varchar(255)'}"}"#,
        r#"{"text":"COOKIE=0.7.2 --token=1.2.3 <token>1.2.3</token> ?token=1.2.3"}"#,
        r#"["--token","1.2.3"]"#,
        r#"{"credentials":{"required":["user"],"description":"What to log in with"}}"#,
        r#"{"secrets":{"additionalProperties":{"type":"string","description":"Names and values"}}}"#,
        r#"{"tools":[{"input_schema":{"x":{"credentials":{"user":"The user","pin":"The pin"}}}}]}"#,
    ] {
        assert_eq!(redact(&mut plain(), message), message);
    }
}

#[test]
fn what_only_resembles_them_is_a_secret() {
    session(
        &mut plain(),
        &[
            (
                r#"{"password":"1.2.3-Kd93mZq71Lp","token":"1234.5678","secret":"varchar2me"}"#,
                r#"{"password":"<redacted:password-1>","token":"<redacted:token-1>","secret":"<redacted:secret-1>"}"#,
            ),
            (r#"{"credentials":{"user":"type"}}"#, r#"{"credentials":{"user":"<redacted:credential-1>"}}"#),
        ],
    );
}

#[test]
fn a_word_that_was_a_token_is_a_word_elsewhere() {
    session(
        &mut plain(),
        &[
            (r#"{"token":"document"}"#, r#"{"token":"<redacted:token-1>"}"#),
            (r#"{"text":"the document says document"}"#, r#"{"text":"the document says document"}"#),
            (r#"{"token":"document"}"#, r#"{"token":"<redacted:token-1>"}"#),
            (r#"{"token":"xkqzvbnm"}"#, r#"{"token":"<redacted:token-2>"}"#),
            (r#"{"text":"had xkqzvbnm"}"#, r#"{"text":"had <redacted:token-2>"}"#),
            (r#"{"password":"letmeinnow"}"#, r#"{"password":"<redacted:password-1>"}"#),
            (r#"{"text":"had letmeinnow"}"#, r#"{"text":"had <redacted:password-1>"}"#),
        ],
    );
}

#[test]
fn a_method_is_a_secret_where_it_reads_as_one() {
    session(
        &mut plain(),
        &[
            (
                r#"{"passwords":["Kd93mZq71Lp","tools/list"]}"#,
                r#"{"passwords":["<redacted:password-1>","<redacted:password-2>"]}"#,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"Kd93mZq71Lp"}"#,
                r#"{"jsonrpc":"2.0","id":1,"method":"<redacted:password-1>"}"#,
            ),
            (
                r#"[{"jsonrpc":"2.0","method":"x/\u004bd93mZq71Lp","params":{"a":"tools/list"}}]"#,
                r#"[{"jsonrpc":"2.0","method":"<redacted:password-1>","params":{"a":"<redacted:password-2>"}}]"#,
            ),
            (
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
                r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#,
            ),
        ],
    );
}
