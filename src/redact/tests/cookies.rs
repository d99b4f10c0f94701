//! Cookies, of which one line may hold any number.

use super::{Options, plain, redact, redactor, session};
use crate::redact::placeholder::placeholders;

/// What the placeholders of a redacted text stand around.
fn around(text: &str) -> String {
    let (mut rest, mut from) = (String::new(), 0);
    for (span, _) in placeholders(text.as_bytes()) {
        rest.push_str(&text[from..span.start]);
        rest.push('@');
        from = span.end;
    }
    rest + &text[from..]
}

fn value(number: usize) -> String {
    // Long ones are looked for by their ends, so that these differ.
    format!("Kd93mZq7s{number:05}")
}

#[test]
fn every_cookie_of_a_line_is_replaced_whole() {
    // How lines begin, and what each value stands in.
    let lines = [
        ("", "Set-Cookie: c=<>; Path=/; "),
        ("", "Set-Cookie: c=<>; Path=/; HttpOnly; Secure; SameSite=Lax; Max-Age=3; "),
        ("", "Cookie: c=<>; "),
        ("", "cookie: c=<>; d=<>; "),
        ("Cookie: ", "c=<>; "),
        ("Cookie: ", "c=<>;"),
        ("Cookie: ", "a_longer_name_of_a_cookie=<>; "),
        ("got Set-Cookie: ", "c=<>; "),
        ("--header=Cookie: ", "c=<>; "),
    ];
    for (begin, unit) in lines {
        for count in [10, 64, 100, 200, 1000] {
            for is_same in [false, true] {
                let number = |at: usize| if is_same { 0 } else { at };
                let values = |at: usize| unit.replace("<>", &value(number(at)));
                let line = format!("{begin}{}", (0..count).map(values).collect::<String>());
                let expected = format!("{begin}{}", unit.replace("<>", "@").repeat(count));
                for (before, after) in [("", ""), (r#"{"text":""#, r#""}"#)] {
                    let mut redactor = plain();
                    let message = format!("{before}{line}{after}");
                    let redacted = redact(&mut redactor, &message);
                    assert_eq!(around(&redacted), format!("{before}{expected}{after}"), "{unit} {count}");
                    assert_eq!(redact(&mut redactor, &redacted), redacted, "{unit} {count}");
                    assert_eq!(redact(&mut redactor, &message), redacted, "{unit} {count}");
                }
            }
        }
    }
}

#[test]
fn short_values_of_many_cookies_are_replaced_too() {
    for unit in ["Cookie: a=b; ", "Set-Cookie: a=b; ", "cookie: a=b; c=d; ", "Cookie: a=b\n"] {
        let expected = unit.replace("=b", "=<redacted:cookie-1>").replace("=d", "=<redacted:cookie-2>");
        assert_eq!(redact(&mut plain(), &unit.repeat(1000)), expected.repeat(1000), "{unit}");
    }
}

#[test]
fn a_text_that_is_made_of_headers_costs_no_more_than_its_length() {
    // Each of these could be read to the end of its line for every name in it.
    for name in [
        "Cookie: ",
        "Set-Cookie: ",
        "=Cookie:",
        ";cookie: =",
        ",Cookie: a ",
        "Cookie: a=; ",
        "Cookie: a==",
        "Cookie: a=b; ",
        "Set-Cookie: a=b; Path=/; ",
        "Cookie: Path=/; ",
        "Cookie: a=*; ",
        "=Cookie:a=b",
    ] {
        let text = name.repeat(20_000) + "\npassword: horse138";
        assert!(redact(&mut plain(), &text).ends_with("password: <redacted:password-1>"), "{name}");
    }
}

#[test]
fn placeholders_are_never_cut() {
    let expressions = |redact: &str| redactor(Options { redact: vec![redact.into()], ..Options::default() });
    for (expression, text, expected) in [
        (":.{4}", "a:bcde f", "a<redacted:pattern-1> f"),
        ("pattern-.", "a pattern-7", "a <redacted:pattern-1>"),
        ("key .{6}", "key t=<redacted:token-1>", "<redacted:pattern-1><redacted:token-1>"),
        (".{5} end", "<redacted:token-1> the end", "<redacted:token-1><redacted:pattern-1>"),
        (
            ".{4} 7and7 .{4}",
            "<redacted:a-1> 7and7 <redacted:a-2>",
            "<redacted:a-1><redacted:pattern-1><redacted:a-2>",
        ),
        ("d:a.{6}", "<redacted:a-1> is", "<redacted:a-1><redacted:pattern-1>"),
        ("x.*y", "x <redacted:a-1> y", "<redacted:pattern-1>"),
    ] {
        session(&mut expressions(expression), &[(text, expected), (expected, expected)]);
    }
}
