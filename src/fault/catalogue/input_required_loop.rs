//! The server asks for input again and again (specification 2026-07-28, basic/patterns/mrtr).

use std::sync::Arc;

use super::speak;
use crate::fault::{Fault, PlanError, Target, step::Step, value::Object};

#[derive(Debug)]
struct InputRequiredLoop;

pub(super) fn read(_: &mut Object<'_>) -> Result<Arc<dyn Fault>, PlanError> {
    Ok(Arc::new(InputRequiredLoop))
}

impl Fault for InputRequiredLoop {
    fn instead(&self, of: &Target<'_>) -> Option<Vec<Step>> {
        let id = String::from_utf8_lossy(of.id);
        let round = of.count;
        let result = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"input_required","inputRequests":{{"again":{{"method":"elicitation/create","params":{{"mode":"form","message":"Once more, please","requestedSchema":{{"type":"object","properties":{{}}}}}}}}}},"requestState":"round-{round}"}}}}"#
        );
        Some(speak::message(of, 200, result.into_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Stand;
    use crate::wire::scan;

    #[test]
    fn input_is_asked_for_with_a_new_state_each_time() {
        let asked = Stand::stdio(r#""input_required_loop""#).counting(3).instead();
        assert!(scan::is_json(asked.trim().as_bytes()), "{asked}");
        assert!(
            asked.starts_with(r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required""#),
            "{asked}"
        );
        assert!(asked.contains(r#""requestState":"round-3""#), "{asked}");
    }
}
