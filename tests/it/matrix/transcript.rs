//! What a client saw, compared.

use serde_json::Value;

/// What a client saw, without what its SDK makes up for each process.
pub(super) struct Transcript(Value);

impl Transcript {
    pub(super) fn new(value: &Value) -> Self {
        Self(value.clone())
    }

    pub(super) fn calls(&self) -> usize {
        self.0["calls"].as_array().map_or(0, Vec::len)
    }
}
