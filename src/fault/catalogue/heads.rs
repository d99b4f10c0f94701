//! What the faults share that change the heads of HTTP responses.

use crate::fault::{
    Effect, Fault, PlanError, Target, Value,
    step::{Output, ResponseHead, Step},
};

/// A fault that changes the response's head, and that at work.
pub(super) struct Heads<F> {
    change: F,
    /// The head has passed as it was.
    is_idle: bool,
}

impl<F> Heads<F> {
    pub(super) const fn new(change: F) -> Self {
        Self { change, is_idle: false }
    }
}

impl<F> std::fmt::Debug for Heads<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Heads")
    }
}

impl<F: Fn(&mut ResponseHead) + Clone + Send + Sync + 'static> Fault for Heads<F> {
    fn effect(&self, _: &Target<'_>) -> Option<Box<dyn Effect>> {
        Some(Box::new(Self::new(self.change.clone())))
    }
}

impl<F: Fn(&mut ResponseHead) + Send> Effect for Heads<F> {
    fn pass(&mut self, mut output: Output, out: &mut Vec<Step>) {
        if let Output::Head { head, .. } = &mut output {
            let before = head.clone();
            (self.change)(head);
            self.is_idle |= *head == before;
        }
        out.push(Step::Do(output));
    }

    fn is_idle(&self) -> bool {
        self.is_idle
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
