//! Files of programs that keep logins, and lists of names with their values.

use super::settings::{hidden, json, stays};
use super::{plain, redact, session};

#[test]
fn an_entry_of_netrc_has_a_password() {
    hidden(
        "password",
        "pw1",
        &[
            "machine h login u password <>",
            "machine h.example\n  login u\n  password <>\n",
            "machine a login b\nmachine h\nlogin u\npassword <>\nmachine c login d",
            "default login anonymous password <>",
            "echo \"machine h login u password <>\" >> ~/.netrc",
            "machine h password <>",
            "default\n  login anonymous\n  password <>\n",
            "machine h login u password $OTHER default login anonymous password <>",
        ],
    );
    hidden(
        "password",
        "Zk7qPx92mWvR",
        &[
            "$ cat ~/.netrc\ndefault login x password <>\n",
            "$ cat ~/.netrc\ndefault\n  login x\n  password <>\n",
            "echo \"default login x password <>\" >> ~/.netrc",
            "machine github.com login a password <>",
            "machine github.com\n  login the\n  password <>\n",
            "in C:\\netrc machine h login u password <>",
        ],
    );
    hidden("password", "it's\\1&x", &["machine h login u password <>"]);
    stays(&[
        "machine h login u password",
        "machine h login u password $PASSWORD",
        "machine and login and password words",
        "by default login is on and password set",
        "the default login admin password changes",
        "login u password pw1",
        "it says\ndefault login admin password changes\n",
        "see default login admin password change1234",
        "account a password pw1",
    ]);
}

#[test]
fn a_password_of_netrc_ends_where_the_text_does_that_quotes_close() {
    hidden(
        "password",
        "S",
        &[
            "machine h login x password <>",
            "echo \"machine h login x password <>\"",
            "echo 'machine h login x password <>'>>f",
            "[\"machine h login x password <>\",\"y\"]",
            "echo 'default login x password <>' >> ~/.netrc",
            "machine h login x password \"<>\"",
        ],
    );
    hidden("password", "hunter", &["echo 'machine myhost login root password <>' >> ~/.netrc"]);
    hidden("password", "hunter", &["machine myhost\nlogin root\npassword <>\n"]);
    for value in ["Sab\"c9", "Sab\\c9"] {
        hidden(
            "password",
            value,
            &["machine h login x password <>", "machine h login x password <>\nmachine i"],
        );
    }
    hidden("password", "S b", &["machine h login x password \"<>\""]);
    hidden("password", "S\\\"b c", &["machine h login x password \"<>\""]);
    stays(&[
        "default login page password field",
        "see 'default login page password field'",
        "machine learning login form password strength",
        "machine learning password hashing",
        "printf 'machine %s login %s password %s\\n' h u p",
    ]);
}

#[test]
fn the_account_of_netrc_is_a_second_password() {
    let said = |account: &str, password: &str| {
        [
            format!("machine h login x account {account} password {password}"),
            format!("machine h account {account} login x password {password} "),
            format!("machine h\n\tlogin x\n\taccount \"{account}\"\n\tpassword \"{password}\"\n"),
            format!("machine h login x password {password} account {account}"),
            format!("printf 'default login x account {account} password {password}'"),
        ]
    };
    let hidden = said("<redacted:password-1>", "<redacted:password-2>");
    for (text, expected) in said("acc99t", "y9").iter().zip(hidden) {
        let numbers = |text: &str| text.replace("password-2>", "password-1>");
        assert_eq!(numbers(&plain().text(text)), numbers(&expected));
        assert_eq!(numbers(&redact(&mut plain(), &json(text))), numbers(&json(&expected)));
    }
    stays(&["machine h login x account $A password $B"]);
}

#[test]
fn settings_of_npm_are_behind_the_registry() {
    hidden(
        "token",
        "abc-d",
        &[
            "//registry.npmjs.org/:_authToken=<>\n",
            "a=b\n//r.x:8080/p/:_authToken = <>",
            "_authToken=<>",
            "npm config set //registry.npmjs.org/:_authToken <>",
            "npm config set '//registry.npmjs.org/:_authToken' '<>'",
        ],
    );
    hidden("password", "YWJj", &["//r.x/:_password=<>\n//r.x/:username=ann"]);
    hidden("authorization", "YTpwdzEyMw==", &["_auth=<>\nalways-auth=true", "//r.x/:_auth=\"<>\""]);
    stays(&[
        "//r.x/:_authToken=${NPM_TOKEN}",
        "//r.x/:_authToken=",
        "//r.x/:username=ann",
        "always-auth=true",
        "is_authenticated=yes oauth_auth=1\n_authority=abc",
        "self._auth = auth",
        "see //r.x/:_authToken for it",
    ]);
}

#[test]
fn a_pair_of_a_name_and_its_value_is_known_in_json_and_yaml() {
    session(
        &mut plain(),
        &[
            (
                r#"{"env":[{"Name":"DB_PASSWORD","Value":"p1"},{"ParameterKey":"ApiToken","ParameterValue":"t1"},{"key":"pin","val":"p2"}]}"#,
                r#"{"env":[{"Name":"DB_PASSWORD","Value":"<redacted:password-1>"},{"ParameterKey":"ApiToken","ParameterValue":"<redacted:token-1>"},{"key":"pin","val":"p2"}]}"#,
            ),
            (
                r#"{"t":"see [{\"name\": \"DB_PASSWORD\", \"type\": \"x\", \"value\": \"p3\"}] ok"}"#,
                r#"{"t":"see [{\"name\": \"DB_PASSWORD\", \"type\": \"x\", \"value\": \"<redacted:password-2>\"}] ok"}"#,
            ),
        ],
    );
    hidden(
        "password",
        "pw1",
        &[
            "env:\n  - name: DB_PASSWORD\n    value: <>\n  - name: X\n    value: y\n",
            "env:\n  - name: \"DB_PASSWORD\"\n    value: \"<>\"\n",
            "env:\n  - name: DB_PASSWORD\n    sensitive: true\n    value: '<>' # here\n",
            "- {name: DB_PASSWORD, value: <>}",
            "- key: DB_PASSWORD\r\n  value: <>\r\n",
            "name: DB_PASSWORD\nvalue: <> # here\n",
            "name: DB_PASSWORD\nvalue: |-\n  <>\n",
        ],
    );
    stays(&[
        "- name: DB_PASSWORD\n  valueFrom:\n    secretKeyRef:\n      name: db\n      key: password\n",
        "- name: token\n  description: the token\n  value: string\n",
        "- name: password\n  value: $PW\n",
        "- name: password\n  value: {{ pw }}\n",
        "- name: password\n  value: *anchor1\n",
        "- name: password\n  value:\n",
        "- name: password\n- value: pw1\n",
        "- name: password\n    value: pw1\n",
        "{\"name\": \"password\", \"value\": \"${PW}\"} x",
        "my name: password\nvalue: pw1",
    ]);
}
