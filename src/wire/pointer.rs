//! The steps of JSON Pointers (RFC 6901) and their escapes: `~0` for `~`, `~1` for `/`.

use std::borrow::Cow;

/// A name as the step that leads to its member.
pub fn escaped(name: &str) -> Cow<'_, str> {
    match name.contains(['~', '/']) {
        true => Cow::Owned(name.replace('~', "~0").replace('/', "~1")),
        false => Cow::Borrowed(name),
    }
}

/// The name that a step leads to.
pub fn unescaped(step: &str) -> Cow<'_, str> {
    match step.contains('~') {
        true => Cow::Owned(step.replace("~1", "/").replace("~0", "~")),
        false => Cow::Borrowed(step),
    }
}

/// Whether each `~` begins an escape.
pub fn is_escaped(text: &str) -> bool {
    text.split('~').skip(1).all(|after| after.starts_with(['0', '1']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_steps_and_steps_names() {
        for (name, step) in
            [("a", "a"), ("", ""), ("a/b", "a~1b"), ("m~n", "m~0n"), ("~1", "~01"), ("/~/", "~1~0~1")]
        {
            assert_eq!((&*escaped(name), &*unescaped(step)), (step, name));
            assert!(is_escaped(step));
        }
        for wrong in ["~", "a~", "~2", "~~01", "~0~"] {
            assert!(!is_escaped(wrong), "{wrong}");
        }
    }
}
