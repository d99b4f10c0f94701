//! The answer comes after the next other one.

use std::sync::Arc;

use crate::{
    fault::{
        Effect, Fault, PlanError, Target,
        step::{Output, Step},
        value::Object,
    },
    traffic::{Lane, Micros},
};

/// How long it waits for another answer.
const USUAL: Micros = 1_000_000;

#[derive(Debug)]
struct Reorder(Micros);

pub(super) fn read(object: &mut Object<'_>) -> Result<Arc<dyn Fault>, PlanError> {
    let ms = object.get("ms").map(|ms| ms.millis("ms")).transpose()?;
    Ok(Arc::new(Reorder(ms.unwrap_or(USUAL))))
}

impl Fault for Reorder {
    fn effect(&self, of: &Target<'_>) -> Option<Box<dyn Effect>> {
        Some(Box::new(Yielding { longest: Some(self.0), lane: of.lane }))
    }
}

#[derive(Debug)]
struct Yielding {
    /// None once it has yielded.
    longest: Option<Micros>,
    lane: Lane,
}

impl Effect for Yielding {
    fn pass(&mut self, output: Output, out: &mut Vec<Step>) {
        let is_own = output.lane() == self.lane;
        let begins = || matches!(&output, Output::Head { head, .. } if !head.stream);
        let is_answer = is_own && (begins() || output.is_response());
        out.extend(self.longest.take_if(|_| is_answer).map(Step::Yield));
        out.push(Step::Do(output));
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Stand;

    const PROGRESS: &str = r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#;
    const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

    #[test]
    fn the_answer_waits_for_another_but_not_for_ever() {
        let mut stand = Stand::stdio(r#""reorder""#);
        stand.says(PROGRESS);
        stand.answers(ANSWER);
        assert_eq!(stand.seen(), format!("{PROGRESS}\nwait 1000 ms\n{ANSWER}\n"));
        let mut stand = Stand::http(r#"{"do": "reorder", "ms": 5}"#);
        stand.answers(ANSWER);
        assert_eq!(stand.seen(), format!("wait 5 ms\n200 content-type: application/json\n{ANSWER}\nend\n"));
    }
}
