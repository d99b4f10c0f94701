//! Two JSON values that should be equal, and where they are not.

use serde_json::Value;

/// Asserts that two values are equal.
///
/// # Panics
/// Panics with the first lines that differ and some around them.
pub(crate) fn assert_same(what: &str, expected: &Value, found: &Value) {
    if expected == found {
        return;
    }
    let (expected, found) = (format!("{expected:#}"), format!("{found:#}"));
    let (expected, found): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), found.lines().collect());
    let same = expected.iter().zip(&found).take_while(|(a, b)| a == b).count();
    let around = |lines: &[&str]| {
        let text: Vec<String> = lines
            .iter()
            .skip(same.saturating_sub(12))
            .take(30)
            .map(|line| line.chars().take(200).collect())
            .collect();
        text.join("\n")
    };
    panic!(
        "{what}: line {} differs\n--- expected\n{}\n--- found\n{}",
        same + 1,
        around(&expected),
        around(&found)
    );
}
