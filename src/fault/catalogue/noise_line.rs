//! A line on stdout before the answer that is no message: as of a server that logs there.

use std::sync::Arc;

use crate::fault::{
    Effect, Fault, PlanError, Target,
    step::{Output, Step},
    value::Object,
};

#[derive(Clone, Debug)]
struct NoiseLine(Arc<str>);

pub(super) fn read(object: &mut Object<'_>) -> Result<Arc<dyn Fault>, PlanError> {
    let text = object.get("text").map(|text| text.string("text")).transpose()?;
    Ok(Arc::new(NoiseLine(text.as_deref().unwrap_or("INFO: request handled").into())))
}

impl Fault for NoiseLine {
    fn effect(&self, _: &Target<'_>) -> Option<Box<dyn Effect>> {
        Some(Box::new(self.clone()))
    }
}

impl Effect for NoiseLine {
    fn pass(&mut self, output: Output, out: &mut Vec<Step>) {
        if output.is_response() {
            let lane = output.lane();
            out.push(Step::Do(Output::Send { lane, bytes: self.0.as_bytes().to_vec(), apart: false }));
        }
        out.push(Step::Do(output));
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Stand;

    #[test]
    fn a_line_comes_before_the_answer() {
        let seen = |fault: &str| {
            let mut stand = Stand::stdio(fault);
            stand.says(r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#);
            stand.answers(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
            stand.seen()
        };
        let around = |noise: &str| {
            format!(
                "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}}\n{noise}\n\
                 {{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{}}}}\n"
            )
        };
        assert_eq!(seen(r#""noise_line""#), around("INFO: request handled"));
        assert_eq!(
            seen(r#"{"do": "noise_line", "text": "{\"level\":\"debug\"}"}"#),
            around("{\"level\":\"debug\"}")
        );
    }
}
