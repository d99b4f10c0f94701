//! What is recorded of a request's body.

use std::sync::Arc;

use super::{
    item::Item,
    tape::{Lane, Odd},
};
use crate::{traffic::Direction, wire::lines::Unfinished};

/// A body as far as it has come.
pub(super) struct Said {
    lane: Arc<Lane>,
    /// Where it is recorded.
    body: Option<Unfinished>,
    /// It is compressed, so nothing in it could be hidden.
    is_coded: bool,
    /// There is one.
    is_due: bool,
    has_ended: bool,
}

impl Said {
    /// A body of which nothing has come; `is_due`: it has bytes, as far as its request's head says.
    pub(super) fn new(lane: Arc<Lane>, is_coded: bool, is_due: bool) -> Self {
        lane.begins_to_ask();
        let body = lane.records().then(|| Unfinished::new(if is_coded { 0 } else { lane.max_message() }));
        Self { lane, body, is_coded, is_due, has_ended: false }
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

    /// It is whole, and to be written before its end is passed on.
    pub(super) fn end(&mut self) {
        self.has_ended = true;
        if let Some(mut body) = self.body.take().filter(Unfinished::has_begun) {
            self.lane.note(|| match body.end() {
                Ok(body) => Item::RequestBody(body),
                Err(measured) if self.is_coded => Item::unreadable(Direction::ToServer, measured),
                Err(measured) => Item::Oversize(Direction::ToServer, measured),
            });
        }
        self.lane.has_asked();
    }

    /// It is whole, and is written. Whether its end may be passed on.
    #[must_use]
    pub(super) fn end_written(&mut self) -> bool {
        self.end();
        self.lane.write()
    }

    /// Its end does not come, or is not waited for.
    pub(super) fn break_off(&mut self) {
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        // Also where nothing of it has come: a request without a body is another one.
        let begun = self.body.take().filter(|body| body.has_begun() || self.is_due);
        let has_part = begun.is_some();
        if let Some(body) = begun {
            let known = if self.is_coded { &[] } else { body.so_far() };
            self.lane.note(|| Item::Partial(Direction::ToServer, known.to_vec()));
        }
        // What else was noted is written with what comes next.
        if self.lane.has_asked() || has_part {
            let _ = self.lane.write();
        }
    }

    /// Its client does not go on with it, or not with what is one.
    pub(super) fn is_given_up(&mut self, is_malformed: bool) {
        if is_malformed {
            self.lane.tell(Odd::Request);
        }
        if !self.has_ended {
            self.break_off();
            self.lane.asks_no_more();
        }
    }
}

impl Drop for Said {
    fn drop(&mut self) {
        self.break_off();
    }
}
