//! Behind the answer our side of the connection ends in good order; the client is still heard.

use std::sync::Arc;

use crate::{
    fault::{
        Effect, Fault, PlanError, Target,
        step::{Output, Step},
        value::Object,
    },
    traffic::Lane,
};

#[derive(Debug)]
struct HalfClose;

pub(super) fn read(_: &mut Object<'_>) -> Result<Arc<dyn Fault>, PlanError> {
    Ok(Arc::new(HalfClose))
}

impl Fault for HalfClose {
    fn effect(&self, of: &Target<'_>) -> Option<Box<dyn Effect>> {
        let ends_by_itself = of.is_http && of.post.is_none();
        Some(Box::new(Closing { lane: of.lane, ends_by_itself, is_closed: false }))
    }
}

#[derive(Debug)]
struct Closing {
    lane: Lane,
    /// The lane's end follows the answer anyway.
    ends_by_itself: bool,
    is_closed: bool,
}

impl Effect for Closing {
    fn pass(&mut self, output: Output, out: &mut Vec<Step>) {
        if output.lane() != self.lane {
            return out.push(Step::Do(output));
        }
        if self.is_closed {
            return;
        }
        let lane = self.lane;
        if matches!(output, Output::EndLane { end: None, .. }) {
            self.is_closed = true;
            return out.extend([Output::HalfClose { lane }, output].map(Step::Do));
        }
        let is_last = !self.ends_by_itself && output.is_response();
        out.push(Step::Do(output));
        if is_last {
            self.is_closed = true;
            let end = Output::EndLane { lane, partial: Vec::new(), end: None };
            out.extend([Output::HalfClose { lane }, end].map(Step::Do));
        }
    }

    fn acts_behind(&self) -> bool {
        self.ends_by_itself
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Stand;

    const PROGRESS: &str = r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#;
    const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;

    #[test]
    fn our_side_ends_behind_the_answer() {
        let mut stand = Stand::http(r#""half_close""#);
        stand.answers(ANSWER);
        assert_eq!(stand.seen(), format!("200 content-type: application/json\n{ANSWER}\nhalf close\nend\n"));
        let mut stand = Stand::stdio(r#""half_close""#);
        stand.says(PROGRESS);
        stand.answers(ANSWER);
        stand.says(PROGRESS);
        assert_eq!(stand.seen(), format!("{PROGRESS}\n{ANSWER}\nhalf close\nend\n"));
        let mut stand = Stand::sse(r#""half_close""#);
        stand.streams();
        stand.answers(ANSWER);
        let head = "200 content-type: text/event-stream\n";
        assert_eq!(stand.seen(), format!("{head}event {ANSWER}\nhalf close\nend\n"));
    }
}
