//! What the faults share that change the heads of HTTP responses.

use crate::fault::{
    Effect, Fault, PlanError, Target, Value,
    step::{Output, ResponseHead, Step},
};

/// A fault that changes the response's head, and that at work.
pub(super) struct Heads<F>(pub F);

impl<F> std::fmt::Debug for Heads<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Heads")
    }
}

impl<F: Fn(&mut ResponseHead) + Clone + Send + Sync + 'static> Fault for Heads<F> {
    fn effect(&self, _: &Target<'_>) -> Option<Box<dyn Effect>> {
        Some(Box::new(Self(self.0.clone())))
    }
}

impl<F: Fn(&mut ResponseHead) + Send> Effect for Heads<F> {
    fn pass(&mut self, mut output: Output, out: &mut Vec<Step>) {
        if let Output::Head { head, .. } = &mut output {
            (self.0)(head);
        }
        out.push(Step::Do(output));
    }
}

/// A header's value.
pub(super) fn header_value(value: Value<'_>, member: &str) -> Result<Vec<u8>, PlanError> {
    let text = value.string(member)?;
    let is_good = |byte: u8| byte == b'\t' || (byte >= b' ' && byte != 0x7f);
    if text.bytes().all(is_good) {
        return Ok(text.as_bytes().to_vec());
    }
    Err(value.wrong(member, "a header's value, without control characters"))
}
