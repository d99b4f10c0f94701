//! What is recorded of a request's body.

use std::sync::Arc;

use super::{item::Item, tape::Lane};
use crate::{traffic::Direction, wire::lines::Unfinished};

/// A body as far as it has come.
pub(super) struct Said {
    lane: Arc<Lane>,
    /// Where it is recorded.
    body: Option<Unfinished>,
    /// It is compressed, so nothing in it could be hidden.
    is_coded: bool,
    has_ended: bool,
}

impl Said {
    pub(super) fn new(lane: Arc<Lane>, is_coded: bool) -> Self {
        let body = lane.records().then(|| Unfinished::new(if is_coded { 0 } else { lane.max_message() }));
        Self { lane, body, is_coded, has_ended: false }
    }

    pub(super) const fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// So much more of it has come.
    pub(super) fn keep(&mut self, data: &[u8]) {
        if let Some(body) = &mut self.body {
            body.keep(data);
        }
    }

    /// It is whole: written before its end is passed on. Whether that may be.
    #[must_use]
    pub(super) fn end(&mut self) -> bool {
        self.has_ended = true;
        if let Some(mut body) = self.body.take().filter(Unfinished::has_begun) {
            self.lane.note(|| match body.end() {
                Ok(body) => Item::RequestBody(body),
                Err(measured) if self.is_coded => Item::unreadable(Direction::ToServer, measured),
                Err(measured) => Item::Oversize(Direction::ToServer, measured),
            });
        }
        self.lane.write()
    }

    /// Its end does not come, or is not waited for.
    pub(super) fn break_off(&mut self) {
        let is_open = !std::mem::replace(&mut self.has_ended, true);
        let begun = self.body.as_ref().filter(|body| body.has_begun());
        if let Some(body) = begun.filter(|_| is_open && !self.is_coded) {
            self.lane.note(|| Item::Partial(Direction::ToServer, body.so_far().to_vec()));
            let _ = self.lane.write();
        }
    }
}

impl Drop for Said {
    fn drop(&mut self) {
        self.break_off();
    }
}
