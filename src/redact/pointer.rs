//! Places in a message, as people write and read them: JSON Pointers (RFC 6901) in which `*` stands for one step.

use crate::wire::pointer;

/// A JSON Pointer in which a step may be `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    /// The steps with their escapes undone; none stands for `*`.
    steps: Vec<Option<String>>,
}

impl Pattern {
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        let step = |step: &str| (step != "*").then(|| pointer::unescaped(step).into_owned());
        Ok(Self { steps: pointer::steps(text)?.map(step).collect() })
    }

    /// Whether the place with these steps is the pattern's, or below it.
    pub(super) fn holds(&self, steps: &[Vec<u8>]) -> bool {
        steps.len() >= self.steps.len()
            && self.steps.iter().zip(steps).all(|(pattern, step)| match pattern {
                Some(name) => *name.as_bytes() == **step,
                None => true,
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(pattern: &str, place: &[&str]) -> bool {
        let steps: Vec<_> = place.iter().map(|step| step.as_bytes().to_vec()).collect();
        Pattern::parse(pattern).unwrap().holds(&steps)
    }

    #[test]
    fn a_pattern_holds_its_place_and_all_below() {
        assert!(holds("/params/arguments/pin", &["params", "arguments", "pin"]));
        assert!(holds("/params/arguments", &["params", "arguments", "pin", "0"]));
        assert!(!holds("/params/arguments/pin", &["params", "arguments"]));
        assert!(!holds("/params/arguments/pin", &["params", "arguments", "pins"]));
    }

    #[test]
    fn a_star_is_exactly_one_step() {
        assert!(holds("/result/content/*/text", &["result", "content", "7", "text"]));
        assert!(!holds("/result/*/text", &["result", "content", "7", "text"]));
    }

    #[test]
    fn escapes_are_those_of_rfc_6901() {
        assert!(holds("/a~1b/m~0n/~01", &["a/b", "m~n", "~1"]));
        assert!(Pattern::parse("/a~").is_err());
        assert!(Pattern::parse("a/b").is_err());
    }
}
