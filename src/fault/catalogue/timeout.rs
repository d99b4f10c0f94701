//! Nothing is ever said of a request that was taken in.

use std::sync::Arc;

use super::speak;
use crate::fault::{Fault, PlanError, Target, step::Step, value::Object};

#[derive(Debug)]
struct Timeout;

pub(super) fn read(_: &mut Object<'_>) -> Result<Arc<dyn Fault>, PlanError> {
    Ok(Arc::new(Timeout))
}

impl Fault for Timeout {
    fn instead(&self, of: &Target<'_>) -> Option<Vec<Step>> {
        Some(speak::accepted(of))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Stand;

    #[test]
    fn nothing_is_said() {
        assert_eq!(Stand::stdio(r#""timeout""#).instead(), "");
        assert_eq!(Stand::http(r#""timeout""#).instead(), "");
        assert_eq!(Stand::sse(r#""timeout""#).instead(), "202\nAccepted\nend\n");
    }
}
