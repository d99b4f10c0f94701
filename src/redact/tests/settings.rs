//! Lines of settings, forms of one field, and lists in YAML's short form.

use super::{plain, redact};

/// Each text with `<>` for its secret: alone, in a message, and in JSON in a message, where it is hidden too.
pub(super) fn hidden(kind: &str, secret: &str, texts: &[&str]) {
    for text in texts {
        let spell = |secret: &str| text.replace("<>", secret);
        check(&spell(secret), &spell(&format!("<redacted:{kind}-1>")));
    }
}

pub(super) fn stays(texts: &[&str]) {
    texts.iter().for_each(|text| check(text, text));
}

fn check(text: &str, expected: &str) {
    assert_eq!(plain().text(text), expected);
    let json = |text: &str| format!(r#"{{"v":{}}}"#, serde_json::to_string(text).unwrap());
    let (mut text, mut expected) = (text.to_owned(), expected.to_owned());
    for _ in 0..2 {
        (text, expected) = (json(&text), json(&expected));
        assert_eq!(redact(&mut plain(), &text), expected);
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
