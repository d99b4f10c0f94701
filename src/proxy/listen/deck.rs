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
    /// By name; the default one has none.
    takes: Mutex<BTreeMap<String, Arc<Take>>>,
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

impl Deck {
    pub(super) fn new(served: Served, shared: &Arc<Shared>) -> Self {
        let Served { name, first, new, upstreams } = served;
        let first = Take::begin("", first, Arc::clone(shared), upstreams.clone());
        Self {
            name,
            takes: Mutex::new(BTreeMap::from([(String::new(), first)])),
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
        if let Some(take) = takes.get(name) {
            return Some(Arc::clone(take));
        }
        if takes.len() >= MOST_TAKES {
            return None;
        }
        let take = self.begin(name);
        takes.insert(name.to_owned(), Arc::clone(&take));
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
        lock(&self.takes).values().map(Arc::clone).collect()
    }

    /// Ends a take, the default one too, of which another one begins; its report with its verdict.
    pub(super) fn end(&self, name: &str) -> Option<Report> {
        let mut takes = lock(&self.takes);
        let take = takes.remove(name)?;
        let (report, ids) = take.end();
        lock(&self.over).entry(name.to_owned()).or_default().extend(ids);
        if name.is_empty() {
            takes.insert(String::new(), self.begin(""));
        }
        drop(takes);
        if !name.is_empty() || report.connections > 0 {
            lock(&self.ended).push(report.clone());
        }
        Some(take.judge(report))
    }

    /// Whether its plan has a scenario of this name, or why that cannot act here.
    pub(super) fn has_scenario(&self, name: &str) -> Result<bool, String> {
        let default = Arc::clone(&lock(&self.takes)[""]);
        default.has_scenario(name)
    }

    /// The rules of a scenario that may be for any of several servers, and fit nothing of this one.
    pub(super) fn strangers(&self, scenario: &str) -> Vec<Stranger> {
        let default = Arc::clone(&lock(&self.takes)[""]);
        default.strangers(scenario)
    }

    /// Why a rule of a scenario is for none of these servers.
    pub(super) fn for_nobody(&self, scenario: &str, servers: &[&str]) -> Option<PlanError> {
        let default = Arc::clone(&lock(&self.takes)[""]);
        default.for_nobody(scenario, servers)
    }

    /// Switches a scenario in all takes, those to come too.
    pub(super) fn switch(&self, scenario: &str, on: bool) {
        lock(&self.switched).insert(scenario.to_owned(), on);
        self.takes().iter().for_each(|take| take.switch(scenario, on));
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
        let ended = lock(&self.ended).clone();
        let is_alone = takes.len() == 1 && ended.is_empty();
        let running = takes.iter().map(|(name, take)| (name.is_empty() && !is_alone, take.report(is_last)));
        let counting = running.filter(|(may_be_idle, report)| !may_be_idle || report.connections > 0);
        let mut whole: Option<Report> = None;
        for report in ended.into_iter().chain(counting.map(|(_, report)| report)) {
            match &mut whole {
                None => whole = Some(report),
                Some(whole) => whole.merge(report),
            }
        }
        let default = &takes[""];
        let whole = whole.unwrap_or_else(|| default.report(is_last));
        if is_last { default.judge(whole) } else { whole }
    }

    /// The verdict on the report of all servers.
    pub(super) fn judge_all(&self, report: Report) -> Report {
        lock(&self.takes)[""].judge_all(report)
    }
}

/// What a client that named no take can be told when there are too many.
pub(super) const TOO_MANY_TAKES: &str = "there are too many takes; end this replay and start another";
