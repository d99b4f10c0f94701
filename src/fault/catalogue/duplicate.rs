//! The answer comes more than once.

use std::sync::Arc;

use crate::fault::{
    Effect, Fault, PlanError, Target,
    step::{Output, Step},
    value::Object,
};

#[derive(Clone, Copy, Debug)]
struct Duplicate {
    copies: u64,
}

pub(super) fn read(object: &mut Object<'_>) -> Result<Arc<dyn Fault>, PlanError> {
    // Without `copies` `times` is no member of the rule: so plans had it at first.
    let (member, expected) = match object.has("copies") || !object.has("times") {
        true => ("copies", "how often the answer comes, a whole number from 2 to 1000"),
        false => {
            ("times", "how often the answer comes where no `copies` says it, a whole number from 2 to 1000")
        }
    };
    let copies = match object.get(member) {
        None => 2,
        Some(copies) => match copies.integer(member, expected)? {
            copies @ 2..=1000 => copies,
            _ => return Err(copies.wrong(member, expected)),
        },
    };
    Ok(Arc::new(Duplicate { copies }))
}

impl Fault for Duplicate {
    fn effect(&self, _: &Target<'_>) -> Option<Box<dyn Effect>> {
        Some(Box::new(*self))
    }
}

impl Effect for Duplicate {
    fn pass(&mut self, output: Output, out: &mut Vec<Step>) {
        // A body holds one message, so a second one stands right behind the first.
        let copies = if output.is_response() { self.copies } else { 1 };
        out.extend((1..copies).map(|_| Step::Do(output.clone())));
        out.push(Step::Do(output));
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Stand, refused};

    #[test]
    fn the_answer_comes_so_often_and_nothing_else_does() {
        let mut stand = Stand::stdio(r#"{"do": "duplicate", "copies": 3}"#);
        let (progress, answer) = (
            r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        );
        stand.says(progress);
        stand.answers(answer);
        assert_eq!(stand.seen(), format!("{progress}\n{answer}\n{answer}\n{answer}\n"));
        let once = refused(r#"{"do": "duplicate", "copies": 1}"#);
        assert_eq!(
            once,
            "`copies` must be how often the answer comes, a whole number from 2 to 1000, found `1`"
        );
    }
}
