//! Lines of settings, forms of one field, and lists in YAML's short form.

use super::{plain, redact};

/// Each text with `<>` for its secret: alone, in a message, and in JSON in a message, with texts around it or without,
/// where it is hidden too.
pub(super) fn hidden(kind: &str, secret: &str, texts: &[&str]) {
    for text in texts {
        let spell = |secret: &str| text.replace("<>", secret);
        check(&spell(secret), &spell(&format!("<redacted:{kind}-1>")));
    }
}

pub(super) fn stays(texts: &[&str]) {
    texts.iter().for_each(|text| check(text, text));
}

/// A message that says this.
pub(super) fn json(text: &str) -> String {
    format!(r#"{{"v":{}}}"#, serde_json::to_string(text).unwrap())
}

fn check(text: &str, expected: &str) {
    assert_eq!(plain().text(text), expected);
    for [before, behind] in [["", ""], ["ran ", " ok"]] {
        let (mut text, mut expected) = (text.to_owned(), expected.to_owned());
        for _ in 0..3 {
            let message = json(&text);
            assert_eq!(redact(&mut plain(), &message), json(&expected));
            (text, expected) =
                (format!("{before}{message}{behind}"), format!("{before}{}{behind}", json(&expected)));
        }
    }
}

#[test]
fn a_form_of_one_field_is_a_form() {
    hidden("secret", "onlyletters", &["client_secret=<>"]);
    hidden("token", "abcdef", &["token=<>", "refresh_token=<>", "a=b&token=<>", "token=<>&a=b"]);
    hidden("password", "hunter2", &["password=<>", "Password=<>"]);
    stays(&[
        "token=",
        "token=true",
        "token=get(a)",
        "token=$TOKEN",
        "token={token}",
        "page_token=abc",
        "a=b",
    ]);
    stays(&["token=abcdef is what it says", "the token=abcdef"]);
}

#[test]
fn quotes_and_blanks_hide_no_setting() {
    hidden(
        "password",
        "horse138",
        &[
            "password: <>",
            "password: \"<>\"",
            "password: '<>'",
            "  - password: \"<>\"\n    user: x",
            "a: b\npassword: \"<>\",\n",
            "{password: \"<>\"}",
            "f({user: \"x\", password: '<>'});",
            "password=\"<>\"",
            "password = \"<>\"",
            "password = <>",
            "[db]\n\tpassword\t=\t'<>'\n",
            "const password = '<>';",
            "db.password = \"<>\" # here",
        ],
    );
    hidden("secret", "wJalrXUt/K7MDENG", &["[x]\naws_secret_access_key = <>\nb = c", "secret_key = <> \n"]);
    stays(&[
        "password: \"At least 8 characters\"",
        "password: \"short1\"",
        "password: \"${PASSWORD12}\"",
        "password: \"Required\"",
        "password = \"letters-alone\"",
        "password = getpass2()",
        "token = oauth2_client",
        "token = oauth2.client",
        "token == abc12345",
        "token => \"abc12345\"",
        "the token = abc12345",
        "token = next2 or what follows",
        "if (token = \"",
        "a.get(token: \"abc12345\")",
    ]);
}

#[test]
fn fields_in_quotes_are_fields_in_a_line_of_such() {
    for secret in ["zqA094xy7", "zq1x2 y3z4"] {
        hidden(
            "password",
            secret,
            &[
                "Server=h;Password='<>';Db=x",
                "Server=h;Uid=al;Password=\"<>\";",
                "Data Source=h;Initial Catalog=d;Password='<>'",
                "Server=h; Password='<>'; Db=x",
                "host=h user=al password='<>' dbname=x",
                "host=h user=al password=\"<>\" dbname=x",
                "host=h user=al password='<>'",
                "password='<>' host=h",
                "user=a, password='<>'",
                "user=al,password='<>',db=x",
                "db_url=\"host=h password='<>'\"",
            ],
        );
    }
    stays(&[
        "a=1;password='';b=2",
        "a=1;password='password';b=2",
        "host=h password='${PASSWORD12}' dbname=x",
        "print('host=h user=a password=' + p12345678, a='b c')",
        "said password='it was not 1 of those' again",
    ]);
}

#[test]
fn a_text_that_begins_with_a_name_has_nothing_before_it() {
    for sign in [
        "", "\"", "'", "]", "\"]", "']", ")", "\")", "=", ":", "</", ">", ",", "\",", "%3d", "?", "\\\"]",
        "\\",
    ] {
        for assigns in [" = ", "=", ":", ", ", " "] {
            for value in ["\"Zk7qPx92mWvR\"", "'Zk7qPx92mWvR'", "Zk7qPx92mWvR", ""] {
                let text = ["password", sign, assigns, value].concat();
                let hidden = plain().text(&text).into_owned();
                assert!(text == hidden || hidden.contains("<redacted:password-1>"), "{text}: {hidden}");
            }
        }
    }
}

#[test]
fn what_chance_has_drawn_is_a_secret_in_the_midst_of_a_line_too() {
    hidden(
        "password",
        "Zk7qPx92mWvR",
        &[
            "{password: <>, user: a}",
            "db: {user: a, password: <>}",
            "user: a, password: <>",
            "Log in with user: a, password: <>.",
            "the password: <> (of staging)",
            "| password: <> |",
            "creds = { user: bob, passwd: <> };",
        ],
    );
    hidden("token", "Zk7qPx92mWvR", &["{user: a, token: <>}", "{ api_token: <>, a: b }"]);
    stays(&[
        "{password: password1, user: user1}",
        "{ password: sha256Hash, salt: salt16 }",
        "login(user: user12, password: oauth2Token)",
        "{password:Zk7qPx92mWvR}",
        "f(password: a1b2c3d4(x))",
        "{password: a1.b2.c3.d4, user: a}",
        "{password: ${A1B2C3D4}, user: a}",
        "the page token: a1b2c3d4e5",
        "the password: 8 signs or more",
    ]);
}

#[test]
fn a_flag_in_a_list_in_brackets_says_what_the_next_item_is() {
    hidden(
        "token",
        "horse106",
        &[
            "args: [--token, <>]",
            "args: [a, --token, <>, -v]",
            "args: [--token, \"<>\"]",
            "args: [ --token,  '<>' ]",
            "[--token, <>]",
            "[--token, \"<>\"]",
            "['--token', '<>']",
        ],
    );
    stays(&[
        "args: [--token, --other12]",
        "args: [--token, value]",
        "use --token, oauth2-proxy",
        "see [1] --token, oauth2-proxy]",
        "args: [--token, is abc12345 so]",
        "[--no-token, horse106]",
        "[--token, ${TOKEN12}]",
    ]);
}

#[test]
fn signs_in_a_value_are_part_of_it() {
    hidden(
        "password",
        "Kd93$mZq&71Lp;x",
        &["password: <>", "password: \"<>\"", "password = '<>'", "  - password: '<>'", "DB_PASSWORD=<>"],
    );
    hidden(
        "password",
        "Kd93(m)Z{q<7!",
        &["password: \"<>\"", "password = \"<>\"", "password='<>'", "{password: '<>'}"],
    );
    hidden("password", "Kd93!mZq?71L@p", &["password = <>", "password=<>", "x: 1\npassword: <>\n"]);
    stays(&[
        "password: \"pre1-${NAME}\"",
        "password: 'abc1-{name}'",
        "token = \"abc1-{0}\"",
        "token: \"<your-token1>\"",
        "token: \"abc12345-<name>\"",
        "secret = \"prefix12-$(pass x)\"",
        "password: getPass2(a,b)",
        "  token: token12345,",
        "  token: a1b2c3d4;",
        "token: (abc12345)",
    ]);
}

#[test]
fn variables_are_set_in_any_language() {
    hidden(
        "password",
        "horse138",
        &[
            "$password = '<>';",
            "$password='<>';",
            "<?php\n  $db_password = \"<>\";\n",
            "$this->password = '<>';",
            "$config->db->password = '<>';",
            "@password = \"<>\"",
            "define('DB_PASSWORD', '<>');",
            "define( 'DB_PASSWORD', '<>' );",
            "define(\"DB_PASSWORD\",\"<>\");",
        ],
    );
    hidden("token", "x", &["<code>API_TOKEN=<></code>", "API_TOKEN=<></code>", "API_TOKEN=<>&lt;/code&gt;"]);
    stays(&[
        "$password = $other12;",
        "a->token = $abc12345",
        "refine('DB_PASSWORD', 'horse138')",
        "$x->token == 'abc12345'",
    ]);
}

#[test]
fn lists_of_settings_have_secrets_anywhere() {
    hidden(
        "password",
        "horse138",
        &[
            "--set user=a,password=<>,x=y",
            "user=a,password=<>",
            "Server=a; User Id=b; Password=<>; x=y",
            "Server=a; User Id=b; Password=<>",
            "Server=a;User Id=b;Password=<>;x=y",
            "--env=USER=a,DB_PASSWORD=<>",
            "--env=DB_PASSWORD=<>",
        ],
    );
    stays(&[
        "f(user=a, password=horse138)",
        "f(a, token=next12345, b)",
        "a; token=get(a1b2c3)",
        "a,token=abc",
    ]);
}

#[test]
fn a_header_is_known_wherever_it_is_sent_from() {
    hidden(
        "api-key",
        "Kd93mZq71Lp",
        &[
            "X-Api-Key: <>",
            "X-Api-Key:<>",
            "--header=X-Api-Key: <>",
            "curl --header=X-Api-Key:<> http://h",
            "curl -H 'X-Api-Key:<>' http://h",
            "--header=a: b;X-Api-Key: <>",
            "--header=a: b,X-Api-Key: <>,c: d",
            "--header=X-Api-Key: <>; X-Other: a",
        ],
    );
    hidden("api-key", "Kd93;mZq,71Lp", &["X-Api-Key: <>", "--header=X-Api-Key: <>"]);
    hidden("cookie", "s93mZ", &["--header=Cookie: sid=<>", "--header=Cookie: sid=<>;Path=/"]);
    stays(&[
        "image: my/auth-token:v2.1.0-alpine3",
        "run auth-token:build12345",
        "X-Api-Key: required, 12 letters",
    ]);
}

#[test]
fn a_text_that_is_made_of_names_costs_no_more_than_its_length() {
    // Each of these could be read to its end for every name in it.
    for name in ["=x-token:", "=TOKEN", ",token=", "=authorization:", "$token=", "a->token=", ";TOKEN=${"] {
        let text = name.repeat(20_000) + "\npassword: horse138";
        assert!(redact(&mut plain(), &text).ends_with("password: <redacted:password-1>"), "{name}");
    }
}
