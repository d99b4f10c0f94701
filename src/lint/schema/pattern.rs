//! `pattern`: as much of ECMAScript's expressions as means the same here.

use regex::{Regex, RegexBuilder};

/// How large an expression may become.
const MOST: usize = 1 << 20;

/// The expression; none where it may mean something else in the two languages.
pub(super) fn read(pattern: &str) -> Option<Regex> {
    let mut rest = pattern.chars().peekable();
    let mut in_class = false;
    while let Some(next) = rest.next() {
        match next {
            '\\' if !rest.next().is_some_and(|escaped| "dDwWsSnrtfv\\./-^$*+?()[]{}|".contains(escaped)) => {
                return None;
            }
            '\\' => {}
            // Classes within classes, and what joins them, are of this language only.
            '[' if in_class => return None,
            '[' => {
                in_class = true;
                let _ = rest.next_if_eq(&'^');
                // The one language has empty classes here, the other has the bracket itself.
                rest.peek().filter(|first| **first != ']')?;
            }
            ']' if in_class => in_class = false,
            '&' | '~' | '-' if in_class && rest.peek() == Some(&next) => return None,
            // Of groups, those that only hold together.
            '(' if !in_class && rest.next_if_eq(&'?').is_some() => {
                rest.next_if_eq(&':')?;
            }
            '{' if !in_class => {
                rest.peek().filter(|first| first.is_ascii_digit())?;
            }
            _ => {}
        }
    }
    RegexBuilder::new(pattern).size_limit(MOST).build().ok()
}

/// Whether a text has it; none where the two languages may count its characters, or its lines, in other ways.
pub(super) fn is_in(pattern: &Regex, text: &str) -> Option<bool> {
    text.bytes().all(|byte| matches!(byte, b' '..=b'~')).then(|| pattern.is_match(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_that_mean_the_same_are_read() {
        for (pattern, text, is) in [
            (r"^[a-z]+\.[0-9]{2,}$", "a.07", true),
            (r"^[a-z]+\.[0-9]{2,}$", "a.7", false),
            (r"^(?:a|b)\d?$", "b", true),
            (r"^[^/\]]*$", "a/b", false),
            ("b", "abc", true),
        ] {
            assert_eq!(is_in(&read(pattern).unwrap(), text), Some(is), "{pattern} {text}");
        }
        assert_eq!(is_in(&read("^.$").unwrap(), "é"), None);
    }

    #[test]
    fn expressions_that_may_mean_something_else_are_not() {
        for pattern in
            ["^(?=a)", "(?i)a", r"\Aa\z", "[a&&b]", "[[a]]", "[]a]", "a{,3}", "(", r"\p{L}", r"a\", "[^]"]
        {
            assert!(read(pattern).is_none(), "{pattern}");
        }
        assert!(read("((a{1000}){1000}){1000}").is_none());
    }
}
