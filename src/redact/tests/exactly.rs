//! What is learned of a secret is exactly that: it is known where it stands in clear, too.

use serde::de::IgnoredAny;

use super::settings::{hidden, json, stays};
use super::{plain, redact};

/// What each text shows as a secret is exactly that: it is hidden where it stands in clear, too.
fn known(secret: &str, texts: &[&str]) {
    for text in texts {
        for text in [(*text).to_owned(), json(text), json(&json(text))] {
            let mut redactor = plain();
            let hidden = if text.starts_with('{') {
                redact(&mut redactor, &text)
            } else {
                redactor.text(&text).into_owned()
            };
            assert!(hidden.contains("<redacted:") && !hidden.contains(secret), "{text}: {hidden}");
            let back = serde_json::from_str::<IgnoredAny>(&hidden);
            assert!(back.is_ok() || !text.starts_with('{'), "{hidden}");
            let said = redact(&mut redactor, &json(&format!("say {secret}!")));
            assert!(
                said.starts_with(r#"{"v":"say <redacted:"#) && said.ends_with(r#">!"}"#),
                "{text}: {hidden} {said}"
            );
        }
    }
}

#[test]
fn a_quote_that_closes_ends_a_password_whatever_follows() {
    let texts = [
        "sh -c \"mysql -p'<>'\"",
        "ssh h \"mysql -p'<>'\" < d.sql",
        "ssh h \"mysql -uroot -p'<>'\" && ls",
        "run(\"mysql -p'<>'\")",
        "mysql -p'<>'.",
        "mysql -p'<>', then",
        "(mysql -p'<>')",
        "**mysql -p'<>'**",
        "MYSQL=\"mysql -p'<>'\"",
        "sh -c \"mysql -p\\\"<>\\\"\"",
        "sh -c 'mysql -p\"<>\"'",
        "sh -c \"docker login -u a -p '<>'\"",
        "docker login -u a r.io -p '<>'",
        "podman login r -u a -p'<>'",
        "sh -c \"sshpass -p '<>' ssh h\"",
        "sh -c \"sshpass -p'<>'\"",
        "sh -c \"curl -u 'bob:<>'\"",
        "sh -c \"curl -u\\\"bob:<>\\\"\"",
        "sh -c 'curl -u \"bob:<>\"'",
        "curl -u'bob:<>' h",
        "curl -u bob:'<>'.",
        "mysql '-p<>' db",
        "`mysql -p'<>'`",
    ];
    for secret in ["hunter2x9q", "two words 9x"] {
        for text in texts {
            known(secret, &[&text.replace("<>", secret)]);
            hidden("password", secret, &[text]);
        }
    }
}

#[test]
fn escapes_and_pieces_of_a_word_are_no_part_of_what_it_says() {
    known("hunter2x9q", &["curl -d password=hunter2x9q\\&user=bob h"]);
    known(
        "hunter2x9q",
        &[
            "mysql -phunter2x9q^\n  db",
            "sshpass -p hunter2x9q^\r\n  ssh h",
            "curl -d 'password=hunter2x9q'\\&user=bob h",
        ],
    );
    known(
        "it's9xhunter",
        &[
            r#"curl -d 'user=bob&password=it'"'"'s9xhunter' h"#,
            r"curl -d 'user=bob&password=it'\''s9xhunter' h",
            r"curl -u 'bob:it'\''s9xhunter' h",
            r#"curl -u 'bob:it'"'"'s9xhunter' h"#,
            r"mysql -p'it'\''s9xhunter' db",
            r"mysql -pit\'s9xhunter db",
        ],
    );
    known("a\"b9xhunter", &["<db password=\"a&quot;b9xhunter\"/>", "mysql -p\"a\\\"b9xhunter\" db"]);
}

#[test]
fn blanks_end_no_value_that_ends_elsewhere() {
    let texts = [
        r#"{"argv":["x","--password=<>"]}"#,
        r#"{"env":["A=b","DB_PASSWORD=<>"]}"#,
        "DB_PASSWORD=<>\nX=1\n",
        "X=1\nDB_PASSWORD=<>\n",
        "environment:\n  - DB_PASSWORD=<>\n",
        "environment:\n  - DB_PASSWORD=<> # prod\n",
        "set \"DB_PASSWORD=<>\"",
        "\"Server=a;User Id=b;Password=<>;\"",
        "c = \"Server=a;User Id=b;Password=<>\";",
        "password: \"<>\"",
        "password := \"<>\"",
        "password = '<>'",
        "db.connect(password='<>')",
        "db.connect(user='bob', password='<>')",
        "os.environ['DB_PASSWORD'] = '<>'",
    ];
    for text in texts {
        known("two words 9x", &[&text.replace("<>", "two words 9x")]);
    }
    stays(&[
        "password: \"At least 8 characters\"",
        "password: \"Enter your h4x0r name\"",
        "password: \"two words\"",
        "f(password=\"two words\")",
        "f(user; token = next words9)",
    ]);
    hidden("password", "hunter2x9q", &["PASSWORD=<> make test9x", "PASSWORD=<> ./run9 -x\nX=1"]);
}

#[test]
fn a_remark_or_blanks_may_follow_a_setting() {
    let secret = "hunter2x9q";
    for text in [
        "password: <> # prod",
        "a: b\ndb_password: <>  # prod\nc: d",
        "password: <>  \nuser: a",
        "password: <>\t",
        "password = <> # c",
        "password = <> ; c",
        "Use password=<>; then ls",
    ] {
        known(secret, &[&text.replace("<>", secret)]);
        hidden("password", secret, &[text]);
    }
    stays(&["password: what2do4me is asked", "token: next12345 // of it", "token = next12345 or # what"]);
}

#[test]
fn what_only_stands_for_a_secret_is_none() {
    stays(&[
        "password: process.env.DB_PASSWORD2!",
        "API_KEY=your-api-key-here",
        "API_KEY=YOUR_API_KEY",
        "API_KEY=changeme",
        "API_KEY=xxx",
        "{\"api_key\":\"your-api-key-here\"}",
    ]);
}

#[test]
fn lists_of_words_are_given_to_programs() {
    let secret = "hunter2x9q";
    for text in [
        r#"["mysql","-uroot","-p<>"]"#,
        r#"{"argv":["/usr/bin/mysqldump","-p<>","db"]}"#,
        r#"["sshpass","-p","<>","ssh","a@b"]"#,
        r#"["docker","login","-u","a","-p","<>"]"#,
        "subprocess.run(['mysql', '-u', 'root', '-p<>'])",
        "subprocess.run(['docker', 'login', '-p', '<>'])",
        "<property name=\"password\" value=\"<>\"/>",
        "<add key='db.password' value='<>' />",
    ] {
        known(secret, &[&text.replace("<>", secret)]);
    }
    let secret = "two words 9x";
    for text in [
        "docker run -e 'db_password=<>' i",
        r#"["ansible-playbook","-e","db_password=<>"]"#,
        r#"["mysql","-p<>"]"#,
        "<property name=\"password\" value=\"<>\"/>",
    ] {
        known(secret, &[&text.replace("<>", secret)]);
    }
    stays(&[
        r#"["docker","run","-p8080:80","mysql"]"#,
        r#"["docker","run","-p","8080:80","i"]"#,
        r#"["mkdir","-p","hunter2x9q"]"#,
        r#"["mysql","-p","db"]"#,
        "<property name=\"password\" value=\"${pw}\"/>",
        "<property name=\"size\" value=\"hunter2x9q\"/>",
    ]);
}
