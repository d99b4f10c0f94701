//! The clock of a run: all its takes live by it.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

use crate::{
    replay::{Due, Now},
    traffic::Micros,
};

/// Time since the run began. That of what is played stands still where somebody winds it.
#[derive(Debug)]
pub(super) struct Clock {
    start: Instant,
    wound: Option<AtomicU64>,
}

impl Clock {
    /// Begins now.
    pub(super) fn start(is_wound: bool) -> Self {
        Self { start: Instant::now(), wound: is_wound.then(AtomicU64::default) }
    }

    pub(super) fn now(&self) -> Now {
        let real = u64::try_from(self.start.elapsed().as_micros()).unwrap_or(Micros::MAX);
        let played = self.wound.as_ref().map_or(real, |wound| wound.load(Ordering::Relaxed));
        Now { real, played }
    }

    /// When something is due that comes by itself.
    pub(super) fn wakes(&self, due: Due) -> Option<Instant> {
        let at = if self.is_wound() { due.real } else { due.first() };
        self.start.checked_add(Duration::from_micros(at?))
    }

    /// Whether somebody winds it.
    pub(super) const fn is_wound(&self) -> bool {
        self.wound.is_some()
    }

    /// What is played has come to this time.
    pub(super) fn wind_to(&self, time: Micros) {
        if let Some(wound) = &self.wound {
            wound.fetch_max(time, Ordering::Relaxed);
        }
    }
}
