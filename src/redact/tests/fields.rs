//! Fields of forms: parts of multipart bodies, and names in brackets.

use super::settings::{hidden, stays};
use super::{plain, redact, session};

#[test]
fn the_part_of_a_multipart_body_that_is_named_so_is_hidden() {
    let body = |header: &str, value: &str, end: &str| {
        [
            "--Xy12",
            "Content-Disposition: form-data; name=\"user\"",
            "",
            "ann",
            "--Xy12",
            header,
            "",
            value,
            "--Xy12--",
            "",
        ]
        .join(end)
    };
    for header in [
        "Content-Disposition: form-data; name=\"password\"",
        "content-disposition: form-data; name=\"user[password]\"",
        "Content-Disposition: form-data; name=password",
        "Content-Type: text/plain\nContent-Disposition: form-data; name=\"password\"",
        "Content-Disposition: form-data; name=\"password\"; filename=\"a.txt\"\nContent-Type: text/plain",
    ] {
        for end in ["\r\n", "\n"] {
            let header = header.replace('\n', end);
            let of = |value: &str| body(&header, value, end);
            hidden("password", "PW", &[&of("<>")]);
            hidden("password", "correct horse; a=b&c\n--not the end", &[&of("<>")]);
            stays(&[&of(""), &of("${PASSWORD}"), &of("<redacted:password-7>")]);
        }
    }
    for header in [
        "Content-Disposition: form-data; name=\"passwords_allowed\"",
        "Content-Disposition: form-data; name=\"note\"; filename=\"password\"",
        "X-Name: name=\"password\"",
    ] {
        stays(&[&body(header, "what1234 stays", "\r\n")]);
    }
    // It was cut off.
    hidden("token", "abc", &["--X\r\nContent-Disposition: form-data; name=\"token\"\r\n\r\n<>"]);
    let key = "-----BEGIN PRIVATE KEY-----\r\nMIIEpAIBAAKCAQEA1234\r\n-----END PRIVATE KEY-----";
    let part = "--X\r\nContent-Disposition: form-data; name=\"ssh_key\"; filename=\"id\"\r\n\r\n<>\r\n--X--";
    hidden("private-key", key, &[part]);
}

#[test]
fn names_in_brackets_are_names() {
    hidden(
        "password",
        "pw1",
        &[
            "user[name]=ann&user[password]=<>",
            "user[password]=<>&user[name]=ann",
            "user%5Bname%5D=ann&user%5Bpassword%5D=<>",
            "user%5bpassword%5d=<>&x=1",
            "a[b][password]=<>",
            "passwd[]=<>&x=1",
            "?user[password]=<>",
            "https://h/x?user[password]=<>&v=1",
            "curl -d 'user[password]=<>' https://h",
            "curl -d \"user[password]=<>&x=1\" https://h",
        ],
    );
    session(
        &mut plain(),
        &[
            (
                r#"{"user[password]":"p1","a[token][]":"t1"}"#,
                r#"{"user[password]":"<redacted:password-1>","a[token][]":"<redacted:token-1>"}"#,
            ),
            (
                r#"{"t":"see {'user[password]': 'p2'}"}"#,
                r#"{"t":"see {'user[password]': '<redacted:password-2>'}"}"#,
            ),
        ],
    );
    stays(&[
        "user[password]=",
        "user[password]=${PW}&x=1",
        "see [password](http://h/x) and\n[token]: http://h",
        "if (data[token] == 'abc12345') x",
        "arr[token] = next[token]",
        "x[page_token]=abc&y=1",
        "user[password_hint]=abc&y=1",
        "a[[token]]",
        "the field user[password] is required",
    ]);
}

#[test]
fn a_body_made_of_parts_costs_no_more_than_its_length() {
    let part = "Content-Disposition: form-data; name=\"password\"\n\n";
    for text in [part.repeat(20_000), format!("--X\n{}", part.repeat(20_000)), "a[password]=".repeat(50_000)]
    {
        let _ = redact(&mut plain(), &text);
    }
}
