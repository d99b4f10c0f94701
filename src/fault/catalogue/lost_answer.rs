//! The server did what it was asked, and its answer never comes: over HTTP the response is cut off before it.

use std::sync::Arc;

use crate::{
    cassette::model::StreamEnd,
    fault::{
        Effect, Fault, PlanError, Target,
        step::{Output, Step},
        value::Object,
    },
    traffic::Lane,
};

#[derive(Debug)]
struct LostAnswer;

pub(super) fn read(_: &mut Object<'_>) -> Result<Arc<dyn Fault>, PlanError> {
    Ok(Arc::new(LostAnswer))
}

impl Fault for LostAnswer {
    fn effect(&self, of: &Target<'_>) -> Option<Box<dyn Effect>> {
        Some(Box::new(Losing { lane: of.lane }))
    }
}

#[derive(Debug)]
struct Losing {
    lane: Lane,
}

impl Effect for Losing {
    fn pass(&mut self, output: Output, out: &mut Vec<Step>) {
        match output {
            Output::EndLane { lane, partial, .. } if lane == self.lane => {
                out.push(Step::Do(Output::EndLane { lane, partial, end: Some(StreamEnd::Cut) }));
            }
            output if !output.is_response() => out.push(Step::Do(output)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Stand;

    const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

    #[test]
    fn the_answer_never_comes() {
        let mut stand = Stand::stdio(r#""lost_answer""#);
        stand.answers(ANSWER);
        assert_eq!(stand.seen(), "");
        let mut stand = Stand::http(r#""lost_answer""#);
        stand.answers(ANSWER);
        assert_eq!(stand.seen(), "200 content-type: application/json\ncut\n");
    }
}
