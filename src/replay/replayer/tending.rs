//! What is told and done while it runs, for whoever tends it.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::{Now, Replayer, faulty::Faults, lives::Live};
use crate::{
    replay::play::Run,
    report::live::{PlanState, SessionState, TakeState, Waiting, WaitsFor},
    traffic::Micros,
};

impl Replayer {
    /// What waits for its time on the clock of what is played, the first that is due first.
    pub fn waiting(&self, now: impl Into<Now>) -> Vec<Waiting> {
        let now = now.into();
        let mut waiting = Vec::new();
        for (due, label) in self.faults.iter().flat_map(Faults::waiting) {
            let empty = self.waits(due, WaitsFor::Fault);
            waiting.push(match label {
                None => empty,
                Some(label) => Waiting {
                    method: Some(label.method.clone()),
                    name: label.name.clone(),
                    key: label.key.clone(),
                    request_id: raw(&label.id),
                    fault: Some(label.fault),
                    ..empty
                },
            });
        }
        for (at, play) in self.plays.iter().enumerate() {
            let script = &self.scripts[play.script];
            for (due, run) in play.waiting(scene!(self, at, now)) {
                if run.and_then(|run| play.run(run)).is_some_and(|run| !self.is_heard(run)) {
                    continue;
                }
                let empty = self.waits(due, WaitsFor::Timing);
                waiting.push(match run.and_then(|run| play.run(run)) {
                    None => empty,
                    Some(run) => Waiting {
                        method: Some(script.method(&script.steps[run.step as usize]).to_string()),
                        key: Some(self.key(script.steps[run.step as usize].exchange)),
                        request_id: raw(&run.to.live_id),
                        ..empty
                    },
                });
            }
        }
        waiting.sort_by_cached_key(|waiting| waiting.due);
        waiting
    }

    /// Whether anybody hears what a run says: a client of an older revision may have left, and may come back.
    fn is_heard(&self, run: &Run) -> bool {
        let resumed = &self.lives[run.live].resumed;
        self.pipes.has(run.lane)
            || self.streams.contains_key(&run.lane.0)
            || resumed.iter().any(|(to, _)| Arc::ptr_eq(to, &run.to))
    }

    fn waits(&self, due: Micros, waits_for: WaitsFor) -> Waiting {
        Waiting {
            server: self.options.server.as_deref().map(str::to_owned),
            take: String::new(),
            waits_for,
            method: None,
            name: None,
            key: None,
            request_id: None,
            fault: None,
            due,
            due_ms: due.div_ceil(1000),
        }
    }

    /// Its sessions, and what was played to them.
    pub fn state(&self) -> TakeState {
        let mut sessions: Vec<SessionState> = Vec::new();
        for (live, play) in self.lives.iter().filter_map(|live| Some((live, live.play?))) {
            sessions.push(SessionState {
                session: live.ordinal,
                transport: match (live.pipe, &live.sse) {
                    (Some(_), _) => "stdio",
                    (None, Some(_)) => "sse",
                    (None, None) => "http",
                },
                plays: self.scripts[self.plays[play].script]
                    .session
                    .map(|at| self.cassette.sessions[at as usize].number),
                is_over: live.is_over || live.pipe.is_some_and(|pipe| !self.pipes.is_open(pipe)),
            });
        }
        sessions.sort_unstable_by_key(|session| session.session);
        let mut played = Vec::new();
        for (at, script) in self.scripts.iter().enumerate() {
            let plays = || self.plays.iter().filter(|play| play.script == at);
            let steps = (0..).zip(&script.steps).filter(|(_, step)| step.is_asked());
            let steps = steps.filter(|(at, _)| plays().any(|play| !play.is_unused(*at)));
            played.extend(steps.map(|(_, step)| step.exchange));
        }
        played.sort_unstable();
        TakeState {
            server: self.options.server.as_deref().map(str::to_owned),
            connections: self.report.connections,
            calls: self.report.calls.clone(),
            misses: self.misses(),
            sessions,
            played: played.into_iter().map(|exchange| self.key(exchange)).collect(),
            ..TakeState::default()
        }
    }

    /// Its fault rules, and which of them act.
    pub fn plan(&self) -> PlanState {
        let state = self.faults.as_ref().map(Faults::state).unwrap_or_default();
        PlanState { server: self.options.server.as_deref().map(str::to_owned), ..state }
    }

    /// Whether its plan has a scenario of this name that can be switched.
    ///
    /// # Errors
    /// When it has one that could not act here.
    pub fn has_scenario(&self, name: &str) -> Result<bool, String> {
        let Some(plan) = &self.options.faults else { return Ok(false) };
        let Some(at) = plan.scenario(name) else { return Ok(false) };
        plan.check_rules(Some(at)).map_err(|error| error.text)?;
        self.check_plan(Some(at)).map_err(|error| error.to_string())?;
        Ok(true)
    }

    /// Switches a scenario; nothing changes where there is none of this name. Its rules go on counting where they were.
    pub fn switch(&mut self, name: &str, on: bool) {
        let at = self.options.faults.as_ref().and_then(|plan| plan.scenario(name));
        if let (Some(faults), Some(at)) = (&mut self.faults, at) {
            faults.switch(at, on);
        }
    }

    /// The ids by which clients over HTTP name its sessions.
    pub fn session_ids(&self) -> impl Iterator<Item = &str> {
        self.by_id.keys().map(|id| &**id)
    }

    /// Sessions of a take before this one: whoever names one is told that it is over.
    pub fn have_ended(&mut self, ids: impl IntoIterator<Item = Box<str>>) {
        for id in ids {
            self.begin_live(Live { id: Some(id), is_over: true, ..Live::default() });
        }
    }

    /// Counts and scripts of fault rules begin anew. What waits goes on waiting, and the report tells of all.
    pub fn reset_faults(&mut self) {
        if let Some(faults) = &mut self.faults {
            faults.reset();
        }
    }

    /// What was played can be played again: the next session is the first recorded one, and what belongs to no session
    /// is answered from its beginning. Sessions that have begun go on.
    pub fn reset_played(&mut self) {
        self.played.fill(false);
        // Its order is that of before.
        self.moved(0).into_iter().for_each(|miss| self.remember(miss));
        self.plays[0].rewind(&self.scripts[0]);
        self.lives.iter_mut().for_each(|live| live.drawn_from = live.drawn_from.map(|(of, _)| (of, 0)));
        self.agenda.wake(0);
    }
}

fn raw(id: &[u8]) -> Option<Box<RawValue>> {
    RawValue::from_string(std::str::from_utf8(id).ok().filter(|id| !id.is_empty())?.to_owned()).ok()
}
