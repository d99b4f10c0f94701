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
fn lists_that_describe_secrets_stay_but_for_what_says_that_it_is_one() {
    for message in [
        r#"{"secrets":[{"name":"DB_PASSWORD","created_at":"2024-01-01","visibility":"selected","url":"https://h/DB_PASSWORD"}]}"#,
        r#"{"credentials":[{"type":"usernamePassword","scope":"GLOBAL","id":"cred-prod-1"}]}"#,
        r#"{"api_keys":[{"id":"key_1a2b3c4d","name":"ci runner 2"},{"id":"key_1a2b3c4e","status":"active"}]}"#,
        r#"{"apiKeys":[{"\u0069d":"key_1a2b3c4e","meta":{"owner":"ann lee 1","tags":["a1b2c3d4"]}}]}"#,
        r#"{"access_tokens":[{"description":"ci","scopes":["read_user1"]}],"passwords":[{"label":"mail","user":"ann22222"}]}"#,
        r#"{"text":"secrets:\n  db_password1:\n    file: ./x1.txt\n"}"#,
        r#"{"text":"services:\n  app:\n    secrets:\n      - db_password1\n"}"#,
    ] {
        assert_eq!(redact(&mut plain(), message), message);
    }
    session(
        &mut plain(),
        &[
            (
                r#"{"secrets":[{"name":"a","value":"v1","version":"2"},{"value":"v2","id":"b"}]}"#,
                r#"{"secrets":[{"name":"a","value":"<redacted:secret-1>","version":"2"},{"value":"<redacted:secret-2>","id":"b"}]}"#,
            ),
            (
                r#"{"api_keys":[{"key":"k1","id":"a"},{"id":"a","apiKey":"k2","secret":"k3"}]}"#,
                r#"{"api_keys":[{"key":"<redacted:api-key-1>","id":"a"},{"id":"a","apiKey":"<redacted:api-key-2>","secret":"<redacted:secret-3>"}]}"#,
            ),
            (
                r#"{"credentials":[{"id":"a","auth":{"user":"ann","pass":"p1","data":{"x":"p2"}},"values":["y"]}]}"#,
                r#"{"credentials":[{"id":"a","auth":{"user":"ann","pass":"<redacted:credential-1>","data":{"x":"<redacted:credential-2>"}},"values":["y"]}]}"#,
            ),
            // Nothing describes these.
            (
                r#"{"credentials":[{"user":"u1","with":"w1"},["z1"],"s1"],"secrets":{"id":"s2"}}"#,
                r#"{"credentials":[{"user":"<redacted:credential-3>","with":"<redacted:credential-4>"},["<redacted:credential-5>"],"<redacted:credential-6>"],"secrets":{"id":"<redacted:secret-4>"}}"#,
            ),
            (r#"{"text":"password:\n  hunter22x\n"}"#, r#"{"text":"password:\n  <redacted:password-1>\n"}"#),
        ],
    );
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
fn sentences_and_names_under_secret_names_are_looked_for_nowhere_else() {
    for (name, value, is_found) in [
        ("password", "can't be blank", false),
        ("secret", "This field is required", false),
        ("credentials", "must not be empty", false),
        ("token", "user_name", false),
        ("cookie", "dark_theme", false),
        ("password", "user_name", true),
        ("password", "correct horse battery", true),
        ("password", "it is hunter2", true),
        ("token", "user_name1", true),
        ("token", "abcdefgh_ijklmnop", true),
    ] {
        let mut redactor = plain();
        let said = redact(&mut redactor, &format!(r#"{{"{name}":"{value}"}}"#));
        let placeholder = said[said.find('<').unwrap()..].trim_end_matches("\"}");
        assert_eq!(said, format!(r#"{{"{name}":"{placeholder}"}}"#));
        let elsewhere = |value: &str| format!(r#"{{"text":"Note: {value}, says it"}}"#);
        let expected = elsewhere(if is_found { placeholder } else { value });
        assert_eq!(redact(&mut redactor, &elsewhere(value)), expected, "{name} {value}");
    }
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

#[test]
fn code_that_joins_a_scheme_and_a_variable_stays() {
    super::settings::stays(&[
        "headers = {'Authorization': 'Bearer ' + token1}",
        "\"Authorization\": \"Bearer \" + access_token2,",
        "headers[\"Authorization\"] = \"Bearer \" + token12345",
        "Authorization: \"Token \" + token12345",
        "x.setHeader('Authorization', 'Basic ' + credentials12)",
        "authorization = \"Bearer \" . $token12345",
    ]);
    for message in [
        r#"{"Authorization":"\"Bearer \" + token1"}"#,
        r#"{"headers":{"Authorization":"Bearer "}}"#,
        r#"{"Authorization":"'Bearer ' . $config['token1']"}"#,
    ] {
        assert_eq!(redact(&mut plain(), message), message);
    }
}

#[test]
fn texts_about_logins_and_their_code_stay() {
    super::settings::stays(&[
        "machine HOSTNAME login USERID password \"PASSWORD\"",
        "#   {key: 'Authorization', value: '...'},",
        "# reloads the credentials\nSECRET_KEY = 'aws_secret_access_key'",
        "# to create user accounts\nself.password = 'letters'",
        "create user x, then\n>>> client_secret = 'secret'",
        "passwd = ' '  # none",
        "password: '   '",
        "echo \"GRANT ALL ON *.* TO 'a'@'h' IDENTIFIED BY '%s' WITH GRANT OPTION\"",
    ]);
}
