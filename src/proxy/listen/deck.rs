//! The servers that a front stands for, and their takes.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex},
};

use super::{
    super::{lock, upstream::Upstreams},
    Served, Shared,
    take::Take,
};
use crate::{
    fault::{PlanError, Stranger},
    replay::Replayer,
    report::Report,
};

/// So many takes of a server there may be: each plays the whole cassette, and anybody can name one.
const MOST_TAKES: usize = 1_000;

/// A server that the front stands for.
pub(super) struct Deck {
    pub(super) name: String,
    takes: Mutex<Takes>,
    /// The reports of takes that have ended before the run did.
    ended: Mutex<Vec<Report>>,
    /// The ids of their sessions, by their names.
    over: Mutex<HashMap<String, Vec<Box<str>>>>,
    /// Scenarios that were switched, for takes that begin after that.
    switched: Mutex<BTreeMap<String, bool>>,
    new: Box<dyn Fn() -> Replayer + Send + Sync>,
    shared: Arc<Shared>,
    upstreams: Option<Arc<Upstreams>>,
}

/// The takes of a server that have not ended.
struct Takes {
    /// That of whoever names none: it is kept apart, as nearly every request is for it.
    default: Arc<Take>,
    named: BTreeMap<String, Arc<Take>>,
}

impl Takes {
    fn all(&self) -> impl Iterator<Item = &Arc<Take>> {
        std::iter::once(&self.default).chain(self.named.values())
    }
}

impl Deck {
    pub(super) fn new(served: Served, shared: &Arc<Shared>) -> Self {
        let Served { name, first, new, upstreams } = served;
        let first = Take::begin("", first, Arc::clone(shared), upstreams.clone());
        Self {
            name,
            takes: Mutex::new(Takes { default: first, named: BTreeMap::new() }),
            ended: Mutex::default(),
            over: Mutex::default(),
            switched: Mutex::default(),
            new,
            shared: Arc::clone(shared),
            upstreams,
        }
    }

    /// The take of this name, which begins with the first request for it; none where there are too many.
    pub(super) fn take(&self, name: &str) -> Option<Arc<Take>> {
        let mut takes = lock(&self.takes);
        if name.is_empty() {
            return Some(Arc::clone(&takes.default));
        }
        if let Some(take) = takes.named.get(name) {
            return Some(Arc::clone(take));
        }
        if takes.named.len() + 1 >= MOST_TAKES {
            return None;
        }
        let take = self.begin(name);
        takes.named.insert(name.to_owned(), Arc::clone(&take));
        Some(take)
    }

    fn begin(&self, name: &str) -> Arc<Take> {
        let take = Take::begin(name, (self.new)(), Arc::clone(&self.shared), self.upstreams.clone());
        lock(&self.switched).iter().for_each(|(scenario, on)| take.switch(scenario, *on));
        lock(&self.over).get(name).into_iter().for_each(|ids| take.have_ended(ids));
        take
    }

    /// All takes by their names.
    pub(super) fn takes(&self) -> Vec<Arc<Take>> {
        lock(&self.takes).all().map(Arc::clone).collect()
    }

    fn default(&self) -> Arc<Take> {
        Arc::clone(&lock(&self.takes).default)
    }

    /// Ends a take, the default one too, of which another one begins; its report with its verdict.
    pub(super) fn end(&self, name: &str) -> Option<Report> {
        let mut takes = lock(&self.takes);
        let take = match name {
            "" => Arc::clone(&takes.default),
            name => takes.named.remove(name)?,
        };
        let (report, ids) = take.end();
        lock(&self.over).entry(name.to_owned()).or_default().extend(ids);
        if name.is_empty() {
            takes.default = self.begin("");
        }
        drop(takes);
        if !name.is_empty() || report.connections > 0 {
            lock(&self.ended).push(report.clone());
        }
        Some(take.judge(report))
    }

    /// Whether its plan has a scenario of this name, or why that cannot act here.
    pub(super) fn has_scenario(&self, name: &str) -> Result<bool, String> {
        self.default().has_scenario(name)
    }

    /// The rules of a scenario that may be for any of several servers, and fit nothing of this one.
    pub(super) fn strangers(&self, scenario: &str) -> Vec<Stranger> {
        self.default().strangers(scenario)
    }

    /// Why a rule of a scenario is for none of these servers.
    pub(super) fn for_nobody(&self, scenario: &str, servers: &[&str]) -> Option<PlanError> {
        self.default().for_nobody(scenario, servers)
    }

    /// Switches a scenario in all takes, those to come too.
    pub(super) fn switch(&self, scenario: &str, on: bool) {
        lock(&self.switched).insert(scenario.to_owned(), on);
        self.takes().iter().for_each(|take| take.switch(scenario, on));
    }

    /// Tells of what has not been told yet.
    pub(super) fn tell_last(&self) {
        lock(&self.takes).all().for_each(|take| take.tell_last());
    }

    pub(super) fn close(&self) {
        lock(&self.takes).all().for_each(|take| take.close());
    }

    /// The report of all takes. The default one counts only if it was asked for anything, or is the only one.
    pub(super) fn report(&self, is_last: bool) -> Report {
        let takes = lock(&self.takes);
        let ended = lock(&self.ended).clone();
        let is_alone = takes.named.is_empty() && ended.is_empty();
        let default = Some(takes.default.report(is_last)).filter(|report| is_alone || report.connections > 0);
        let named = takes.named.values().map(|take| take.report(is_last));
        let mut whole: Option<Report> = None;
        for report in ended.into_iter().chain(default).chain(named) {
            match &mut whole {
                None => whole = Some(report),
                Some(whole) => whole.merge(report),
            }
        }
        let whole = whole.unwrap_or_else(|| takes.default.report(is_last));
        if is_last { takes.default.judge(whole) } else { whole }
    }

    /// The verdict on the report of all servers.
    pub(super) fn judge_all(&self, report: Report) -> Report {
        self.default().judge_all(report)
    }
}

/// What a client that named no take can be told when there are too many.
pub(super) const TOO_MANY_TAKES: &str = "there are too many takes; end this replay and start another";
