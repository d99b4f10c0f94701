//! The connection is reset before any byte of a response: as by a server that takes nobody in.

use std::sync::Arc;

use crate::{
    cassette::model::StreamEnd,
    fault::{
        Fault, PlanError, Target,
        step::{Output, Step},
        value::Object,
    },
};

#[derive(Debug)]
struct Refuse;

pub(super) fn read(_: &mut Object<'_>) -> Result<Arc<dyn Fault>, PlanError> {
    Ok(Arc::new(Refuse))
}

impl Fault for Refuse {
    fn instead(&self, of: &Target<'_>) -> Option<Vec<Step>> {
        let lane = of.post.unwrap_or(of.lane);
        Some(vec![Step::Do(Output::EndLane { lane, partial: Vec::new(), end: Some(StreamEnd::Reset) })])
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Stand;

    #[test]
    fn a_reset_is_all_there_is() {
        assert_eq!(Stand::http(r#""refuse""#).instead(), "reset\n");
        assert_eq!(Stand::sse(r#""refuse""#).instead(), "reset\n");
    }
}
