//! A server that has to warm up: the first request waits, and each later one half as long as the one before it.

use std::sync::Arc;

use super::latency::First;
use crate::{
    fault::{Effect, Fault, PlanError, Target, value::Object},
    traffic::Micros,
};

#[derive(Debug)]
struct SlowStart(Micros);

pub(super) fn read(object: &mut Object<'_>) -> Result<Arc<dyn Fault>, PlanError> {
    let ms = object.need("ms", "how many milliseconds the first request waits")?;
    Ok(Arc::new(SlowStart(ms.millis("ms")?)))
}

impl Fault for SlowStart {
    fn effect(&self, of: &Target<'_>) -> Option<Box<dyn Effect>> {
        let halvings = u32::try_from(of.count.saturating_sub(1)).unwrap_or(u32::MAX);
        Some(Box::new(First::after(self.0.checked_shr(halvings).unwrap_or_default())))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Stand;

    #[test]
    fn each_request_waits_half_as_long_as_the_one_before_it() {
        let waits = |count| Stand::stdio(r#"{"do": "slow_start", "ms": 1000}"#).counting(count).wait_ms();
        assert_eq!([1, 2, 3, 4, 99, u64::MAX].map(waits), [1000, 500, 250, 125, 0, 0]);
    }
}
