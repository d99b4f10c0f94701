//! Nothing is ever said.

use std::sync::Arc;

use crate::fault::{Fault, PlanError, Target, step::Step, value::Object};

#[derive(Debug)]
struct Timeout;

pub(super) fn read(_: &mut Object<'_>) -> Result<Arc<dyn Fault>, PlanError> {
    Ok(Arc::new(Timeout))
}

impl Fault for Timeout {
    fn instead(&self, _: &Target<'_>) -> Option<Vec<Step>> {
        Some(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Stand;

    #[test]
    fn nothing_is_said() {
        assert_eq!(Stand::stdio(r#""timeout""#).instead(), "");
        assert_eq!(Stand::http(r#""timeout""#).instead(), "");
    }
}
