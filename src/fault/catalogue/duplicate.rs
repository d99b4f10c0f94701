//! The answer comes more than once.

use std::sync::Arc;

use crate::fault::{
    Effect, Fault, PlanError, Target,
    step::{Output, Step},
    value::Object,
};

#[derive(Clone, Copy, Debug)]
struct Duplicate {
    times: u64,
}

pub(super) fn read(object: &mut Object<'_>) -> Result<Arc<dyn Fault>, PlanError> {
    let expected = "how often the answer comes, a whole number from 2 to 1000";
    let times = match object.get("times") {
        None => 2,
        Some(times) => match times.integer("times", expected)? {
            times @ 2..=1000 => times,
            _ => return Err(times.wrong("times", expected)),
        },
    };
    Ok(Arc::new(Duplicate { times }))
}

impl Fault for Duplicate {
    fn effect(&self, _: &Target<'_>) -> Option<Box<dyn Effect>> {
        Some(Box::new(*self))
    }
}

impl Effect for Duplicate {
    fn pass(&mut self, output: Output, out: &mut Vec<Step>) {
        // A body holds one message, so a second one stands right behind the first.
        let times = if output.is_response() { self.times } else { 1 };
        out.extend((1..times).map(|_| Step::Do(output.clone())));
        out.push(Step::Do(output));
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Stand, refused};

    #[test]
    fn the_answer_comes_so_often_and_nothing_else_does() {
        let mut stand = Stand::stdio(r#"{"do": "duplicate", "times": 3}"#);
        let (progress, answer) = (
            r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
        );
        stand.says(progress);
        stand.answers(answer);
        assert_eq!(stand.seen(), format!("{progress}\n{answer}\n{answer}\n{answer}\n"));
        let once = refused(r#"{"do": "duplicate", "times": 1}"#);
        assert_eq!(
            once,
            "`times` must be how often the answer comes, a whole number from 2 to 1000, found `1`"
        );
    }
}
