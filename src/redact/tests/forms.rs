//! Forms in which files, programs and commands give a secret, and what only refers to one.

use super::settings::{hidden, stays};
use super::{plain, redact, session};

#[test]
fn what_refers_to_a_secret_is_none_in_any_form() {
    stays(&[
        "secret: $SECRET_1",
        "password: $DB_PASSWORD2",
        "password = $DB_PASSWORD2",
        "token: process.env.API_TOKEN1",
        "token = \"process.env.API_TOKEN1\"",
        "API_TOKEN=$OTHER_TOKEN1",
        "API_TOKEN=%OTHER_TOKEN1%",
        "password: \"{{ .Values.password1 }}\"",
        "password: '<your-password1>'",
        "--password $DB_PASSWORD2",
        "https://u:$DB_PASSWORD2@h/d",
        "password = password1",
        "password: my_password12",
        "password: \"my_password12\"",
    ]);
    for value in
        ["$SECRET_1", "${SECRET_1}", "<your-token>", "%NAME%", "{{name}}", "process.env.X", "os.environ['X']"]
    {
        let message = format!(r#"{{"secret":"{value}","api_key":"{value}"}}"#);
        assert_eq!(redact(&mut plain(), &message), message);
    }
    session(
        &mut plain(),
        &[
            (r#"{"password":"password1"}"#, r#"{"password":"<redacted:password-1>"}"#),
            (r#"{"v":"see password1 and $ecret123"}"#, r#"{"v":"see password1 and $ecret123"}"#),
            (r#"{"password":"$ecret123"}"#, r#"{"password":"<redacted:password-2>"}"#),
        ],
    );
}

#[test]
fn an_object_of_a_secret_name_has_a_secret_value() {
    session(
        &mut plain(),
        &[
            (
                r#"{"password":{"value":"x y","type":"z"}}"#,
                r#"{"password":{"value":"<redacted:password-1>","type":"z"}}"#,
            ),
            (
                r#"{"github_token":{"scope":"a","value":"Kd93mZq71L"}}"#,
                r#"{"github_token":{"scope":"a","value":"<redacted:token-1>"}}"#,
            ),
            (r#"{"token":{"value":"Kd93mZq71Lp"}}"#, r#"{"token":{"value":"<redacted:token-2>"}}"#),
            (r#"{"password":{"value":12345678}}"#, r#"{"password":{"value":"<redacted:password-2>"}}"#),
            (
                r#"{"t":"{\"api_key\": {\"value\": \"k1\"}}"}"#,
                r#"{"t":"{\"api_key\": {\"value\": \"<redacted:api-key-1>\"}}"}"#,
            ),
        ],
    );
    for message in [
        r#"{"password":{"type":"string","value":"x"}}"#,
        r#"{"token":{"value":"+","at":3}}"#,
        r#"{"password":{"value":"${DB_PASSWORD}"}}"#,
        r#"{"password":{"value":"string"},"inputSchema":{"password":{"value":"x1"}}}"#,
        r#"{"password":{"inner":{"value":"x1"}}}"#,
        r#"{"password":{"value":{"value":"x1"}}}"#,
    ] {
        assert_eq!(redact(&mut plain(), message), message);
    }
}

#[test]
fn what_is_typed_into_an_element_that_is_described_as_a_secrets_is_one() {
    let typed = |element: &str, text: &str| {
        let arguments = format!(r#"{{"element":"{element}","ref":"e12","text":"{text}","submit":true}}"#);
        format!(r#"{{"method":"tools/call","params":{{"name":"browser_type","arguments":{arguments}}}}}"#)
    };
    for (element, kind) in [
        ("Password", "password"),
        ("Password field", "password"),
        ("The login form's password input", "password"),
        ("Enter your API key here", "api-key"),
        ("password \\\"box\\\"", "password"),
        ("the \\\"password\\\" box", "password"),
        ("Pass\\u0077ord field", "password"),
    ] {
        let hidden = typed(element, &format!("<redacted:{kind}-1>"));
        assert_eq!(redact(&mut plain(), &typed(element, "hunter2")), hidden);
    }
    session(
        &mut plain(),
        &[(
            r#"{"c":"{\"text\": \"two words\", \"element\": \"Password field\"}"}"#,
            r#"{"c":"{\"text\": \"<redacted:password-1>\", \"element\": \"Password field\"}"}"#,
        )],
    );
    for message in [
        typed("Search box for words", "hunter2"),
        typed("Password field", ""),
        typed("Password field", "${DB_PASSWORD}"),
        r#"{"element":"Password field","texts":"hunter2","label":"hunter2"}"#.to_owned(),
        r#"{"element":"a","b":"Password field","text":"hunter2"}"#.to_owned(),
        r#"["element","Password field","text","hunter2"]"#.to_owned(),
        r#"{"inputSchema":{"element":"Password field","text":"hunter2"}}"#.to_owned(),
    ] {
        assert_eq!(redact(&mut plain(), &message), message);
    }
}

#[test]
fn the_first_field_of_a_form_in_quotes_is_a_field_as_others_are() {
    hidden(
        "password",
        "Zk7qPx92mWvR",
        &[
            "curl -d 'password=<>' https://h",
            "curl -d \"password=<>\" https://h",
            "curl -d'password=<>&user=bob' https://h",
            "curl -F 'password=<>' -F 'user=bob' https://h",
            "curl --data-raw='password=<>' https://h",
            "http.post(url, \"password=<>\")",
            "sh -c \"curl -d \\\"password=<>\\\" https://h\"",
            "open 'password=<>;user=bob' now",
            "said \"password=<> it was\"",
        ],
    );
    hidden("secret", "letters", &["curl --data 'client_secret=<>&x=1' https://h"]);
    hidden("password", "letters", &["curl -d 'password=<>' https://h"]);
    hidden("password", "a;b)9(cdef,", &["curl -d 'password=<>' https://h", "curl -d 'password=<>&u=b' h"]);
    hidden("password", "a\\\"b9cdefg", &["curl -d \"password=<>\" https://h"]);
    stays(&[
        "curl -d 'password=' https://h",
        "curl -d \"password=$PASSWORD\" https://h",
        "curl -d \"password=${PASSWORD}&user=bob\" https://h",
        "curl -d 'password=<password>' https://h",
        "curl -d 'password=********' https://h",
        "x = \"token=\" + token1234",
        "printf(\"token=%s\\n\", token1234)",
        "re.search('token=([a-z0-9]{12})', line)",
        "re.search('token=[a-z0-9]{12}', line)",
        "grep 'token=' log12345",
        "log(\"token=abc is not one\")",
        "f\"token={token1234}\"",
    ]);
}

#[test]
fn long_names_are_read_by_their_ends() {
    let name = "a_long_prefix_".repeat(8);
    hidden(
        "password",
        "horse138",
        &[&format!("{name}password: <>"), &format!("{}PASSWORD=<>", name.to_uppercase())],
    );
    let message = |value: &str| format!(r#"{{"{name}password":"{value}"}}"#);
    assert_eq!(redact(&mut plain(), &message("x")), message("<redacted:password-1>"));
}

#[test]
fn settings_are_known_however_they_are_written() {
    hidden(
        "password",
        "horse138",
        &[
            "password:<>",
            "a: b\n  password:<>\n",
            "password:\"<>\"",
            "ENV[\"DB_PASSWORD\"] = \"<>\"",
            "os.environ['DB_PASSWORD'] = '<>'",
            "config[ 'password' ]='<>'",
            "password := \"<>\"",
            "password:= '<>'",
            "DB_PASSWORD := <>",
            "DB_PASSWORD ?= <>",
            "password ||= '<>'",
            "os.Setenv(\"DB_PASSWORD\", \"<>\")",
            "setenv(\"DB_PASSWORD\",\"<>\", 1)",
            "db:\n  password:\n    <>\n  user: x",
            "password: |\n  <>\n",
            "password: >-\r\n  <>\r\nuser: x",
            "- password:\n    \"<>\"",
            "password: !!str <>",
            "password = \"\"\"<>\"\"\"",
            "PASSWORD='''<>'''",
        ],
    );
    hidden(
        "password",
        "letters",
        &[
            "CREATE USER ann IDENTIFIED BY '<>'",
            "create user 'ann'@'%' identified by '<>';",
            "ALTER USER ann IDENTIFIED WITH caching_sha2_password BY '<>'",
            "ALTER USER ann IDENTIFIED WITH 'my_plugin' AS '<>' ",
            "IDENTIFIED BY PASSWORD '<>'",
            "IDENTIFIED BY \"<>\"",
            "CREATE ROLE ann LOGIN PASSWORD '<>'",
            "alter user ann with encrypted password '<>';",
        ],
    );
    stays(&[
        "my password:horse138",
        "a[\"password\"] == \"horse138\"",
        "ENV[\"DB_PASSWORD\"] = other12(\"x\")",
        "f(\"password\"] = \"horse138\"",
        "password:\nhorse138",
        "password:\n  user: horse138",
        "password:\n- horse138",
        "identified by 'its name",
        "identified as such",
        "IDENTIFIED BY '$PASSWORD'",
        "the password 'letters' is wrong",
        "CREATE USER ann; the password 'letters'",
        "password := other()",
        "password ? = horse138",
    ]);
}

#[test]
fn quotes_within_a_value_are_part_of_it() {
    for (value, secret) in [("it'\\''s1", "it's1"), ("it'\"'\"'s1", "it's1"), ("it''s1", "it's1")] {
        let texts = ["DB_PASSWORD='<>' psql", "x --password '<>' -v", "$env:DB_PASSWORD = '<>'"];
        hidden("password", value, &texts);
        let mut redactor = plain();
        assert_eq!(
            redactor.text(&format!("DB_PASSWORD='{value}-a1b2'")),
            "DB_PASSWORD='<redacted:password-1>'"
        );
        assert_eq!(redactor.text(&format!("say {secret}-a1b2!")), "say <redacted:password-1>!");
    }
    hidden("password", "it''s-a1b2c3", &["IDENTIFIED BY '<>'", "password = '<>'", "password: '<>'"]);
    stays(
        &["password = 'a1b2c3d4' 'b'' c'"]
            .map(|text| text.replace("a1b2c3d4", "two words"))
            .each_ref()
            .map(|text| &**text),
    );
}

#[test]
fn a_text_that_is_made_of_forms_costs_no_more_than_its_length() {
    for name in [
        "password:=",
        "[\"token\"]=",
        "password='a''",
        "password=''",
        "'password=;x",
        "PASSWORD='\"'\"'$",
        "PASSWORD=$\\ ",
        "--password $\\ ",
        "identified by ",
        "password:\n ",
        "curl -u a",
        "://u:",
        "{\"a\":",
        ":\\/\\/",
    ] {
        let text = name.repeat(20_000) + "\npassword: horse138";
        assert!(plain().text(&text).ends_with("password: <redacted:password-1>"), "{name}");
    }
    // These have secrets of their own.
    for name in [
        "PASSWORD=a\"b\"",
        "PASSWORD='a'b",
        "machine h password \"",
        "machine h account a password b",
        "-d 'password=;x",
        "-F \"password=;",
        "sshpass -p ",
        "mysql -p",
        "<a password=\"",
        "setx TOKEN \"",
        "{\"password\":\"x\"}",
        "-d 'a=b&password=",
    ] {
        let text = name.repeat(4_000) + "\n{\"password\":\"horse138\"}";
        assert!(!plain().text(&text).ends_with("\"horse138\"}"), "{name}");
    }
}

#[test]
fn forms_have_any_signs_in_their_values() {
    hidden(
        "password",
        "a+b%21(c)!{d}*~",
        &["password=<>&user=a", "user=a&password=<>", "q=it's(x)&password=<>&a[b]=c", "password=<>&q='x'"],
    );
    session(
        &mut plain(),
        &[
            (r#"{"v":"password=my+pass+phrase1&x=y"}"#, r#"{"v":"password=<redacted:password-1>&x=y"}"#),
            (r#"{"v":"said my pass phrase1!"}"#, r#"{"v":"said <redacted:password-1>!"}"#),
        ],
    );
    stays(&["password=get(a)&&b", "password=(a&b", "token=f({a}&&b(c))"]);
}

#[test]
fn what_is_long_is_read_to_its_end() {
    let long = "x".repeat(9_000);
    hidden("password", "hunter2", &[&format!("curl -d '{long}' -u ann:<> https://h")]);
    let value = "a1b2".repeat(2_000);
    hidden("url-password", &value, &["see postgres://ann:<>@h/d now"]);
    let message = |value: &str| format!(r#"{{"v":"http:\/\/{long}:{value}@h"}}"#);
    assert_eq!(redact(&mut plain(), &message("hunter2")), message("<redacted:url-password-1>"));
}
