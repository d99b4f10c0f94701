//! Values that are parts of others.

use super::{plain, redact};

/// A value, and one that it is a part of.
const PAIRS: [(&str, &str); 6] = [
    ("aB3xdkdk1", "aB3xdkdk1Zq8TtRrWw2"),
    ("aB3xdkdk1", "Zq8TtRrWw2aB3xdkdk1"),
    ("aB3xdkdk1", "Zq8TtRaB3xdkdk1TtRrWw2"),
    ("aB3xdkdk1", "aB3xdkdk1!"),
    ("aB3xdkdk1", "?aB3xdkdk1"),
    ("aB3xdkdk1aB3xdkdk1", "aB3xdkdk1aB3xdkdk11"),
];

fn login(value: &str) -> String {
    format!(r#"{{"password":"{value}"}}"#)
}

fn text(value: &str) -> String {
    format!(r#"{{"a":"x {value} y, {value}","b":"{value}"}}"#)
}

#[test]
fn of_two_known_values_at_one_place_the_longest_is_replaced() {
    for (short, long) in PAIRS {
        for (values, [of_short, of_long]) in [([short, long], [1, 2]), ([long, short], [2, 1])] {
            let mut redactor = plain();
            for value in values {
                redact(&mut redactor, &login(value));
            }
            let placeholder = |number: u8| format!("<redacted:password-{number}>");
            assert_eq!(redact(&mut redactor, &text(long)), text(&placeholder(of_long)), "{long}");
            assert_eq!(redact(&mut redactor, &text(short)), text(&placeholder(of_short)), "{short}");
            let both = [short, " ", long, " ", short].concat();
            let [short, long] = [of_short, of_long].map(placeholder);
            assert_eq!(
                redact(&mut redactor, &text(&both)),
                text(&[&short, " ", &long, " ", &short].concat())
            );
        }
    }
}

#[test]
fn a_value_is_found_again_of_which_a_part_was_replaced_before_it_was_known() {
    for (short, long) in PAIRS {
        let mut redactor = plain();
        redact(&mut redactor, &login(short));
        let before = redact(&mut redactor, &text(long));
        redact(&mut redactor, &login(long));
        assert_eq!(redact(&mut redactor, &before), text("<redacted:password-2>"), "{long}");
        let apart = text("<redacted:password-1>");
        assert_eq!(redact(&mut redactor, &apart), apart);
    }
}

#[test]
fn a_long_value_is_found_whatever_parts_of_it_are_known() {
    let long: String = (0..90).map(|part| format!("k{part}Xy")).collect();
    let mut redactor = plain();
    for part in [&long[..9], &long[40..52], &long[300..312], &long[long.len() - 9..], &long[..]] {
        redact(&mut redactor, &login(part));
    }
    assert_eq!(redact(&mut redactor, &text(&long)), text("<redacted:password-5>"));
}

#[test]
fn a_value_that_repeats_itself_stays_one_each_time() {
    let mut redactor = plain();
    redact(&mut redactor, &login("ab12ab12"));
    let twice = text("ab12ab12ab12ab12");
    assert_eq!(redact(&mut redactor, &twice), text("<redacted:password-1><redacted:password-1>"));
}
