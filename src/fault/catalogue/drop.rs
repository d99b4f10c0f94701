//! The answer is lost; what else the server says comes.

use std::sync::Arc;

use crate::fault::{
    Effect, Fault, PlanError, Target,
    step::{Output, Step},
    value::Object,
};

#[derive(Debug)]
struct Drop;

pub(super) fn read(_: &mut Object<'_>) -> Result<Arc<dyn Fault>, PlanError> {
    Ok(Arc::new(Drop))
}

impl Fault for Drop {
    fn effect(&self, _: &Target<'_>) -> Option<Box<dyn Effect>> {
        Some(Box::new(Self))
    }
}

impl Effect for Drop {
    fn pass(&mut self, output: Output, out: &mut Vec<Step>) {
        if !output.is_response() {
            out.push(Step::Do(output));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Stand;

    const PROGRESS: &str = r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#;

    #[test]
    fn the_answer_is_lost_and_its_response_ends_without_it() {
        let mut stand = Stand::stdio(r#""drop""#);
        stand.says(PROGRESS);
        stand.answers(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        assert_eq!(stand.seen(), format!("{PROGRESS}\n"));
        let mut stand = Stand::http(r#""drop""#);
        stand.streams();
        stand.says(PROGRESS);
        stand.answers(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        stand.ends();
        assert_eq!(stand.seen(), format!("200 content-type: text/event-stream\nevent {PROGRESS}\nend\n"));
    }
}
