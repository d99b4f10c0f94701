//! JSON Pointers (RFC 6901): what is one, its steps, and their escapes: `~0` for `~`, `~1` for `/`.

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

/// The element that a step leads to: digits without zeros before them.
pub fn index(step: &str) -> Option<usize> {
    let is_index = step == "0" || !step.starts_with(['0', '+']);
    step.parse().ok().filter(|_| is_index)
}

/// The steps of a pointer to what stands inside a value, escaped as they are.
///
/// # Errors
/// Why it is none.
pub fn steps(text: &str) -> Result<impl Iterator<Item = &str>, &'static str> {
    let Some(steps) = text.strip_prefix('/') else { return Err("it does not begin with `/`") };
    if !text.split('~').skip(1).all(|after| after.starts_with(['0', '1'])) {
        return Err("`~` stands only in `~0` and `~1`");
    }
    Ok(steps.split('/'))
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
            assert_eq!(steps(&format!("/{step}")).map(Iterator::collect), Ok(vec![step]));
        }
        for wrong in ["~", "a~", "~2", "~~01", "~0~"] {
            assert!(
                steps(&format!("/{wrong}/a")).is_err() && steps(&format!("/a/{wrong}")).is_err(),
                "{wrong}"
            );
        }
        assert!(steps("").is_err() && steps("a").is_err() && steps("#/a").is_err());
    }

    #[test]
    fn an_element_has_one_name() {
        assert_eq!(["0", "1", "10"].map(index), [Some(0), Some(1), Some(10)]);
        for wrong in ["", "00", "01", "+1", "+0", "-0", "-1", "-", " 1", "1 ", "1e0", "99999999999999999999"]
        {
            assert_eq!(index(wrong), None, "{wrong}");
        }
    }
}
