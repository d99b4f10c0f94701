//! What a take tells, and is told, while it runs.

use super::{super::super::lock, Take};
use crate::{
    fault::{PlanError, Stranger},
    report::{
        Report,
        live::{PlanState, TakeState, Waiting},
    },
    traffic::Micros,
};

impl Take {
    /// When the next of what is played is due.
    pub(in super::super) fn played_due(&self) -> Option<Micros> {
        lock(&self.state).replayer.due().played
    }

    /// Does what is due by now.
    pub(in super::super) fn catch_up(&self) {
        self.pump(&mut lock(&self.state));
    }

    /// What waits, the first that is due first.
    pub(in super::super) fn waiting(&self) -> Vec<Waiting> {
        let waiting = lock(&self.state).replayer.waiting(self.now());
        waiting.into_iter().map(|waiting| Waiting { take: self.name(), ..waiting }).collect()
    }

    /// Its sessions, and what was played to them.
    pub(in super::super) fn state(&self) -> TakeState {
        TakeState { take: self.name(), ..lock(&self.state).replayer.state() }
    }

    /// Its fault rules, and which of them act.
    pub(in super::super) fn plan(&self) -> PlanState {
        PlanState { take: self.name(), ..lock(&self.state).replayer.plan() }
    }

    fn name(&self) -> String {
        self.name.clone().unwrap_or_default()
    }

    /// Whether its plan has a scenario of this name, or why that cannot act here.
    pub(in super::super) fn has_scenario(&self, name: &str) -> Result<bool, String> {
        lock(&self.state).replayer.has_scenario(name)
    }

    /// The rules of a scenario that may be for any of several servers, and fit nothing of this one.
    pub(in super::super) fn strangers(&self, scenario: &str) -> Vec<Stranger> {
        lock(&self.state).replayer.strangers_here(Some(scenario))
    }

    /// Why a rule of a scenario is for none of these servers.
    pub(in super::super) fn for_nobody(&self, scenario: &str, servers: &[&str]) -> Option<PlanError> {
        lock(&self.state).replayer.for_nobody(Some(scenario), servers)
    }

    pub(in super::super) fn switch(&self, scenario: &str, on: bool) {
        lock(&self.state).replayer.switch(scenario, on);
    }

    /// Fault rules, or what was played, begins anew.
    pub(in super::super) fn reset(&self, faults: bool, played: bool) {
        let mut state = lock(&self.state);
        if faults {
            state.replayer.reset_faults();
        }
        if played {
            state.replayer.reset_played();
        }
        self.pump(&mut state);
    }

    /// Sessions of a take before this one.
    pub(in super::super) fn have_ended(&self, ids: &[Box<str>]) {
        lock(&self.state).replayer.have_ended(ids.iter().cloned());
    }

    /// It ends, and with it all that is under way; its report, without a verdict, and the ids of its sessions.
    pub(in super::super) fn end(&self) -> (Report, Vec<Box<str>>) {
        self.close();
        self.tell_last();
        let mut state = lock(&self.state);
        state.has_ended = true;
        self.changed.notify_one();
        let ids = state.replayer.session_ids().map(Box::from).collect();
        (state.replayer.last_report(), ids)
    }
}
