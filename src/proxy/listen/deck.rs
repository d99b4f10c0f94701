//! The servers that a front stands for, and their takes.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use tokio::sync::Notify;

use super::{
    super::{lock, upstream::Upstreams},
    Happened, Served,
    take::Take,
};
use crate::{replay::Replayer, report::Report};

/// So many takes of a server there may be: each plays the whole cassette, and anybody can name one.
const MOST_TAKES: usize = 1_000;

/// A server that the front stands for.
pub(super) struct Deck {
    pub(super) name: String,
    /// By name; the default one has none.
    takes: Mutex<HashMap<String, Arc<Take>>>,
    new: Box<dyn Fn() -> Replayer + Send + Sync>,
    /// Told when a take has a new miss.
    missing: Arc<Notify>,
    happened: Option<Happened>,
    upstreams: Option<Arc<Upstreams>>,
}

impl Deck {
    pub(super) fn new(served: Served, missing: &Arc<Notify>, happened: Option<&Happened>) -> Self {
        let Served { name, first, new, upstreams } = served;
        let first = Take::begin("", first, Arc::clone(missing), happened.cloned(), upstreams.clone());
        Self {
            name,
            takes: Mutex::new(HashMap::from([(String::new(), first)])),
            new,
            missing: Arc::clone(missing),
            happened: happened.cloned(),
            upstreams,
        }
    }

    /// The take of this name, which begins with the first request for it; none where there are too many.
    pub(super) fn take(&self, name: &str) -> Option<Arc<Take>> {
        let mut takes = lock(&self.takes);
        if let Some(take) = takes.get(name) {
            return Some(Arc::clone(take));
        }
        if takes.len() >= MOST_TAKES {
            return None;
        }
        let (missing, upstreams) = (Arc::clone(&self.missing), self.upstreams.clone());
        let take = Take::begin(name, (self.new)(), missing, self.happened.clone(), upstreams);
        takes.insert(name.to_owned(), Arc::clone(&take));
        Some(take)
    }

    /// Tells of what has not been told yet.
    pub(super) fn tell_last(&self) {
        lock(&self.takes).values().for_each(|take| take.tell_last());
    }

    pub(super) fn close(&self) {
        lock(&self.takes).values().for_each(|take| take.close());
    }

    /// The report of all takes. The default one counts only if it was asked for anything, or is the only one.
    pub(super) fn report(&self, is_last: bool) -> Report {
        let takes = lock(&self.takes);
        let mut names: Vec<&String> = takes.keys().collect();
        names.sort();
        let mut whole: Option<Report> = None;
        for name in names {
            let report = takes[name].report();
            if name.is_empty() && takes.len() > 1 && report.connections == 0 {
                continue;
            }
            match &mut whole {
                None => whole = Some(report),
                Some(whole) => whole.merge(report),
            }
        }
        let default = &takes[""];
        let whole = whole.unwrap_or_else(|| default.report());
        if is_last { default.judge(whole) } else { whole }
    }
}

/// What a client that named no take can be told when there are too many.
pub(super) const TOO_MANY_TAKES: &str = "there are too many takes; end this replay and start another";
