//! Faults in a take: what they do to a request, and to what is said because of it.

use std::collections::{BTreeMap, VecDeque};

use super::{AtHand, Found, Now, Replayer};
use crate::{
    cassette::model::Exchange,
    fault::{
        Acting, Engine, Origin, Plan, PlanError, Request, Stage, Stranger, Target,
        step::{Output, are_silent},
    },
    replay::{
        replayer::ReplayError,
        script::{Script, StepKind, client_message, client_name},
    },
    report::ledger::Ledger,
    traffic::{Lane, Micros},
    wire::jsonrpc::{Message, id_key},
};

/// A plan and what is under its hand.
#[derive(Debug)]
pub(super) struct Faults {
    engine: Engine,
    stage: Stage,
    /// A fault has acted: before that, nothing is or was under its hand.
    has_acted: bool,
    /// The affected request that something is being said because of.
    acting: Option<Acting>,
    /// Ends of pipes that stand behind what is held back.
    ending: Vec<Output>,
    /// Plays whose sessions a fault has ended: their clients go on with them.
    lost: Vec<usize>,
    /// How long the server stays although it is told to end.
    lingers: Micros,
    /// Where somebody may ask: what waits because of which request.
    labels: BTreeMap<Acting, Label>,
}

/// A request that faults act on, for whoever asks what waits.
#[derive(Debug)]
pub(super) struct Label {
    pub(super) fault: &'static str,
    pub(super) method: String,
    pub(super) name: Option<String>,
    pub(super) id: Vec<u8>,
    pub(super) key: Option<String>,
}

impl Faults {
    pub(super) fn new(plan: std::sync::Arc<Plan>) -> Self {
        Self {
            engine: Engine::new(plan),
            stage: Stage::default(),
            has_acted: false,
            acting: None,
            ending: Vec::new(),
            lost: Vec::new(),
            lingers: 0,
            labels: BTreeMap::new(),
        }
    }

    pub(super) fn deadline(&self) -> Option<Micros> {
        self.stage.deadline()
    }

    pub(super) const fn lingers(&self) -> Micros {
        self.lingers
    }

    /// Whether a session that a fault has ended waits for its client.
    pub(super) const fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    pub(super) fn owes(&self, lane: Lane) -> bool {
        self.stage.owes(lane) || self.ending.iter().any(|end| end.lane() == lane)
    }

    /// See [`Stage::pass_last`].
    pub(super) fn pass_last(
        &mut self,
        now: Now,
        acting: Acting,
        last: (Output, Option<Output>),
        out: &mut VecDeque<Output>,
    ) -> bool {
        self.stage.pass_last(now.played, acting, last, out)
    }

    /// What faults hold back: when the next of it is due, and of which request it is.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (Micros, Option<&Label>)> {
        self.stage.waiting().map(|(due, acting)| (due, self.labels.get(&acting)))
    }

    pub(super) fn switch(&mut self, scenario: usize, on: bool) {
        self.engine.switch(scenario, on);
    }

    /// Counts and scripts begin anew; who had lost a session is forgotten.
    pub(super) fn reset(&mut self) {
        self.engine.reset();
        self.lost.clear();
    }

    pub(super) fn state(&self) -> crate::report::live::PlanState {
        self.engine.state(self.stage.not_acted())
    }

    pub(super) fn report(&self) -> Vec<crate::report::FaultReport> {
        self.engine.report(self.stage.not_acted())
    }

    /// Faults that could change nothing have not acted.
    fn take_back_idle(&mut self, events: Option<&mut Ledger>) {
        self.stage.take_back_idle(&mut self.engine, events);
    }

    /// Nothing more is said to anybody.
    pub(super) fn are_over(&mut self, events: Option<&mut Ledger>) {
        self.stage.is_over();
        self.take_back_idle(events);
    }
}

impl Replayer {
    /// That each rule of the plan that names something names something that was recorded; of those that act at the
    /// beginning, or of a scenario.
    pub(super) fn check_plan(&self, scenario: Option<usize>) -> Result<(), ReplayError> {
        match self.strangers(scenario, false).into_iter().next() {
            Some(stranger) => Err(ReplayError::Fault(stranger)),
            None => Ok(()),
        }
    }

    /// Where this is one of several servers: the rules that may be for any of them and fit nothing that was recorded of
    /// this one; those of a scenario, or that act at the beginning.
    pub fn strangers_here(&self, scenario: Option<&str>) -> Vec<Stranger> {
        let Some(plan) = &self.options.faults else { return Vec::new() };
        match scenario.map(|name| plan.scenario(name)) {
            None => self.strangers(None, true),
            Some(None) => Vec::new(),
            Some(scenario) => self.strangers(scenario, true),
        }
    }

    /// Why a rule that acts at the beginning, or one of a scenario, is for none of these servers.
    pub fn for_nobody(&self, scenario: Option<&str>, servers: &[&str]) -> Option<PlanError> {
        let plan = self.options.faults.as_ref()?;
        let at = match scenario {
            None => None,
            Some(name) => Some(plan.scenario(name)?),
        };
        plan.for_nobody(at, servers)
    }

    fn strangers(&self, scenario: Option<usize>, for_all: bool) -> Vec<Stranger> {
        let Some(plan) = &self.options.faults else { return Vec::new() };
        let mut bytes = Vec::new();
        let recorded = |fits: &dyn Fn(&Request<'_>) -> bool| {
            let steps = self
                .scripts
                .iter()
                .flat_map(|script: &Script| script.steps.iter().map(move |step| (script, step)));
            steps.filter(|(_, step)| step.kind == StepKind::Request).any(|(script, step)| {
                let entry = &self.cassette.exchanges[step.exchange as usize];
                client_message(&self.cassette, &*self.blobs, entry, &mut bytes);
                let message = Message::read(&bytes);
                fits(&Request {
                    kind: None,
                    server: self.options.called(),
                    message: &message,
                    method: script.method(step),
                    key: Some(&entry.key),
                    session: Some(self.cassette.sessions[entry.session as usize].number),
                    is_modern: None,
                })
            })
        };
        let server = (self.options.called(), self.options.server.is_some());
        plan.strangers(scenario, server, for_all, recorded)
    }

    /// The plan, once a fault has acted.
    fn acting_faults(&mut self) -> Option<&mut Faults> {
        self.faults.as_mut().filter(|faults| faults.has_acted)
    }

    /// Whether faults may act on a request that asks for this exchange.
    pub(super) fn may_be_faulted(&self, asks_for: Option<u32>) -> bool {
        let passes_by = |faults: &Faults| asks_for.is_some_and(|exchange| faults.engine.passes_by(exchange));
        self.faults.as_ref().is_some_and(|faults| !passes_by(faults))
    }

    /// Lets faults act on a request; true where one has spoken in the server's place.
    pub(super) fn faulted(
        &mut self,
        lane: Lane,
        message: &Message<'_>,
        method: &str,
        asks_for: Option<u32>,
        found: Option<Found>,
    ) -> bool {
        let Some(faults) = &mut self.faults else { return false };
        let entry = asks_for.map(|exchange| &self.cassette.exchanges[exchange as usize]);
        // What matches an exchange by equality is named as that is.
        let is_equal = |entry: &&Exchange| self.cassette.rules.is_empty() && entry.rule.is_none();
        let request = Request {
            kind: asks_for.filter(|_| entry.as_ref().is_some_and(is_equal)),
            server: self.options.called(),
            message,
            method,
            key: entry.map(|entry| &*entry.key),
            session: entry.map(|entry| self.cassette.sessions[entry.session as usize].number),
            is_modern: None,
        };
        let Some(decision) = faults.engine.decide(&request, || self.matcher.form(message)) else {
            return false;
        };
        faults.has_acted = true;
        let own_lane = self.own_stream(lane);
        let AtHand { id, token, post, facts, .. } = &self.at_hand;
        let is_http = facts.is_some();
        let target = Target {
            lane: own_lane,
            post: *post,
            is_http,
            method,
            id: if id.is_empty() { b"null" } else { id },
            is_modern: message.is_modern(),
            token: token.as_deref(),
            count: 0,
            roll: 0.0,
        };
        // The one that ends the matter is nearest to the server.
        let terminal = decision.terminal.as_ref();
        let chosen = terminal.into_iter().chain(&decision.beside);
        let works = chosen.map(|chosen| chosen.work(&target, None)).collect();
        let origin = Origin {
            events: self.at_hand.events.clone(),
            asked: (self.at_hand.live, id_key(id).into_owned()),
            post: self.at_hand.post,
        };
        let instead = terminal.and_then(|chosen| chosen.instead(&target));
        let own_response = (is_http && post.is_none()).then_some(lane);
        let is_silent = instead.as_deref().is_some_and(are_silent);
        self.note_fault(&decision, asks_for, is_silent);
        let Some(faults) = &mut self.faults else { return false };
        faults.lingers = faults.lingers.max(decision.lingers());
        let acting = faults.stage.begin(works, origin, own_response);
        if self.options.tended {
            let fault = decision.beside.iter().chain(&decision.terminal).next();
            let label = Label {
                fault: fault.map_or("", |chosen| chosen.name),
                method: method.to_owned(),
                name: message.name().map(std::borrow::Cow::into_owned),
                id: message.id().unwrap_or_default().to_vec(),
                key: asks_for.map(|exchange| self.cassette.exchanges[exchange as usize].key.to_string()),
            };
            faults.labels.insert(acting, label);
        }
        let Some(steps) = instead else {
            (faults.acting, self.at_hand.acting) = (Some(acting), Some(acting));
            return false;
        };
        faults.stage.perform(self.now.played, acting, steps, &mut self.outputs);
        faults.stage.close(acting);
        faults.take_back_idle(self.events.as_mut());
        match found.filter(|found| !found.repeat) {
            Some(found) if decision.consumes => self.plays[found.play].take(found.step),
            Some(found) => self.plays[found.play].is_answered(found.step),
            None => {}
        }
        if decision.ends_session() {
            self.lose(self.at_hand.live);
        }
        true
    }

    /// A request has been dealt with: what no exchange is played for has been said.
    pub(super) fn dealt_with(&mut self) {
        if self.acting_faults().is_some() {
            self.speak_for(None);
            let acting = self.at_hand.acting.take();
            self.close_acting(acting);
        }
    }

    /// What is said from now on is because of this affected request, or of none.
    pub(super) fn speak_for(&mut self, acting: Option<Acting>) {
        if let Some(faults) = self.acting_faults() {
            faults.acting = acting;
        }
    }

    /// All has been said because of an affected request.
    pub(super) fn close_acting(&mut self, acting: Option<Acting>) {
        if let (Some(faults), Some(acting)) = (&mut self.faults, acting) {
            faults.stage.close(acting);
            faults.take_back_idle(self.events.as_mut());
        }
    }

    /// The client of the message at hand cancels a request; true where the answer goes all the same.
    pub(super) fn cancel_stage(&mut self, id: &[u8]) -> bool {
        let Some(faults) = &mut self.faults else { return false };
        let live = self.at_hand.live;
        faults.stage.cancel(live, &id_key(id), self.lives[live].pipe.is_some())
    }

    /// The client has left a lane.
    pub(super) fn left_stage(&mut self, lane: Lane) {
        if let Some(faults) = &mut self.faults {
            faults.stage.left(lane);
            faults.ending.retain(|end| end.lane() != lane);
            faults.take_back_idle(self.events.as_mut());
        }
    }

    /// A pipe ends, behind what faults hold back for its client.
    pub(super) fn end_behind_held(&mut self, end: Output) {
        match &mut self.faults {
            Some(faults) if faults.stage.owes(end.lane()) => faults.ending.push(end),
            _ => self.outputs.push_back(end),
        }
    }

    /// Something is to be done towards the client.
    pub(super) fn emit(&mut self, output: Output) {
        let faults = self.faults.as_mut().filter(|faults| faults.acting.is_some() || !faults.stage.is_idle());
        let Some(faults) = faults else { return self.outputs.push_back(output) };
        match faults.acting.or_else(|| faults.stage.on_lane(&output)) {
            Some(acting) => faults.stage.pass(self.now.played, acting, output, &mut self.outputs),
            None => faults.stage.go(self.now.played, None, output, &mut self.outputs),
        }
        faults.take_back_idle(self.events.as_mut());
    }

    /// Moves on what faults have held back.
    pub(super) fn release_faults(&mut self, now: Now) {
        if let Some(faults) = self.faults.as_mut().filter(|faults| !faults.stage.is_idle()) {
            faults.stage.release(now.played, &mut self.outputs);
            let Faults { stage, ending, .. } = faults;
            self.outputs.extend(ending.extract_if(.., |end| !stage.owes(end.lane())));
        }
    }

    /// Whether an output goes out; one that ends more than the replayer knew of is taken in.
    pub(super) fn is_told(&mut self, now: Now, output: &Output) -> bool {
        match output {
            _ if self.acting_faults().is_none() => true,
            Output::Send { lane, .. } | Output::Raw { lane, .. } if self.pipes.is_shut(*lane) => false,
            Output::EndLane { lane, .. } if self.pipes.has(*lane) => !self.pipes.shut(*lane),
            Output::End { lane, .. } if self.pipes.has(*lane) => {
                self.ended_on(now, *lane);
                true
            }
            Output::End { .. } => {
                self.server_died(now);
                false
            }
            // A fault has ended it early.
            Output::EndLane { lane, .. } => {
                if self.streams.contains_key(&lane.0) {
                    self.broken_off(*lane);
                }
                true
            }
            _ => true,
        }
    }

    /// A fault has ended the server, and with it all that clients had open.
    fn server_died(&mut self, now: Now) {
        let mut lanes: Vec<u32> = self.streams.keys().copied().collect();
        lanes.sort_unstable();
        for lane in lanes.into_iter().map(Lane) {
            self.left_stage(lane);
            let end = Some(crate::cassette::model::StreamEnd::Cut);
            self.outputs.push_back(Output::EndLane { lane, partial: Vec::new(), end });
            self.broken_off(lane);
        }
        for play in 0..self.plays.len() {
            let scene = scene!(self, play, now);
            self.plays[play].abandon(scene);
        }
        (1..self.lives.len()).for_each(|live| self.lose(live));
    }

    /// A fault has ended a client's session.
    fn lose(&mut self, live: usize) {
        let play = self.playing(live);
        let Some(faults) = &mut self.faults else { return };
        if live > 0 && !self.lives[live].is_over {
            self.lives[live].is_over = self.lives[live].pipe.is_none();
            faults.lost.extend(play.filter(|play| !faults.lost.contains(play)));
        }
    }

    /// Whether a request names no session of ours while the last one was ended by a fault: forgetting its id does not
    /// bring it back.
    pub(super) fn is_lost_to(&self, message: &Message<'_>) -> bool {
        let Some(faults) = &self.faults else { return false };
        let is_nowhere = self.at_hand.live == 0 && self.at_hand.facts.is_some() && !message.is_modern();
        let last = || self.lives.iter().rev().find_map(|live| live.play.map(|play| (live, play)));
        is_nowhere && last().is_some_and(|(live, play)| live.is_over && faults.lost.contains(&play))
    }

    /// The play that a client goes on with whose session a fault has ended; none where another session that may begin
    /// `is_equal` and it is not.
    pub(super) fn lost_play(&mut self, message: &Message<'_>, is_equal: bool) -> Option<usize> {
        let lost = self.faults.as_ref()?.lost.clone();
        let scripts: Vec<usize> = lost.iter().map(|&play| self.plays[play].script).collect();
        let name = client_name(message);
        let is_its = |script: &usize| {
            let session = self.scripts[*script].session.map(|at| &self.cassette.sessions[at as usize]);
            session.is_some_and(|session| {
                session.client.is_none() || session.client.as_deref() == name.as_deref()
            })
        };
        let named = || scripts.iter().position(is_its).or_else(|| (lost.len() == 1).then_some(0));
        let named = if is_equal { None } else { named() };
        let at = self.equal_begin(message, &scripts).or(named)?;
        Some(self.faults.as_mut()?.lost.remove(at))
    }
}
