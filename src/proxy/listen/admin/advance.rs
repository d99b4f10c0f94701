//! Winding the clock: what is due is done in its order.

use std::{sync::Arc, time::Duration};

use serde::Serialize;
use tokio::time::timeout;

use super::{
    super::{Front, take::Take},
    ask::{Advance, MOST_MS, Problem},
};
use crate::{report::live::Waiting, traffic::Micros};

/// So many things that were done are listed.
const MOST_LISTED: usize = 1_000;

/// What came of it.
#[derive(Debug, Serialize)]
pub(super) struct Advanced {
    now_ms: u64,
    released: Vec<Waiting>,
    released_count: u64,
    waiting: Vec<Waiting>,
}

/// Waits until there is enough to be done, and winds the clock.
pub(super) async fn advance(front: &Front, ask: Advance) -> Result<Advanced, Problem> {
    let clock = &front.shared.clock;
    if !clock.is_wound() {
        return Err(Problem::conflict(
            "this run's clock goes by itself; `--clock manual` makes one that is wound",
        ));
    }
    if ask.ms > MOST_MS {
        return Err(Problem::bad(format!("`ms` is {MOST_MS} at most, a day; found {}", ask.ms)));
    }
    if let Some(wanted) = ask.when_pending {
        let in_time = timeout(Duration::from_millis(ask.timeout_ms), until_pending(front, wanted)).await;
        if in_time.is_err() {
            let count = front.waiting().len();
            return Err(Problem::conflict(format!(
                "{count} things waited after {} ms, and not {wanted}; the clock stands where it stood",
                ask.timeout_ms
            )));
        }
    }
    let until = clock.now().played.saturating_add(ask.ms.saturating_mul(1000));
    let (mut released, mut released_count) = (Vec::new(), 0);
    let takes = |due: Micros| {
        let takes = front.takes().into_iter();
        takes.filter(move |take| take.played_due().is_some_and(|at| at <= due)).collect::<Vec<Arc<Take>>>()
    };
    while let Some(due) = takes(until).iter().filter_map(|take| take.played_due()).min() {
        let takes = takes(due);
        let waited: Vec<Waiting> = takes.iter().flat_map(|take| take.waiting()).collect();
        clock.wind_to(due);
        takes.iter().for_each(|take| take.catch_up());
        let wait_on = takes.iter().flat_map(|take| take.waiting()).collect();
        for waiting in gone(waited, wait_on, due) {
            released_count += 1;
            if released.len() < MOST_LISTED {
                released.push(waiting);
            }
        }
    }
    clock.wind_to(until);
    Ok(Advanced { now_ms: until / 1000, released, released_count, waiting: front.waiting() })
}

/// Of what waited, what has gone at this time: what was due, and what went because that did.
fn gone(waited: Vec<Waiting>, mut wait_on: Vec<Waiting>, now: Micros) -> Vec<Waiting> {
    let (due, later): (Vec<Waiting>, Vec<Waiting>) =
        waited.into_iter().partition(|waiting| waiting.due <= now);
    let id = |waiting: &Waiting| waiting.request_id.as_ref().map(|id| id.get().to_owned());
    let is_same = |one: &Waiting, other: &Waiting| {
        (&one.server, &one.take, one.waits_for, &one.key)
            == (&other.server, &other.take, other.waits_for, &other.key)
            && id(one) == id(other)
    };
    let mut gone = due;
    for waiting in later {
        match wait_on.iter().position(|other| is_same(&waiting, other)) {
            Some(at) => drop(wait_on.swap_remove(at)),
            None => gone.push(Waiting { due: now, due_ms: now.div_ceil(1000), ..waiting }),
        }
    }
    gone
}

/// Waits until so many things wait.
async fn until_pending(front: &Front, wanted: usize) {
    loop {
        let mut stirred = std::pin::pin!(front.shared.stirred.notified());
        stirred.as_mut().enable();
        if front.waiting().len() >= wanted {
            return;
        }
        stirred.await;
    }
}

impl Front {
    /// All takes: by their servers, and of each by their names.
    pub(super) fn takes(&self) -> Vec<Arc<Take>> {
        self.decks.iter().flat_map(|deck| deck.takes()).collect()
    }

    /// What waits in all takes, the first that is due first.
    pub(super) fn waiting(&self) -> Vec<Waiting> {
        let mut waiting: Vec<Waiting> = self.takes().iter().flat_map(|take| take.waiting()).collect();
        waiting.sort_by_cached_key(|waiting| waiting.due);
        waiting
    }
}
