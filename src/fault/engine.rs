//! Which rules act on a request.
//!
//! In this order, all of it in order of arrival:
//!
//! 1. Each rule that fits counts the request.
//! 2. The first script that fits and is not used up says what happens; `ok` is that nothing does.
//! 3. Else the other rules are asked in order. Those that only delay or add all act; of those that end the matter,
//!    the first.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use sha2::{Digest, Sha256};

use super::{
    Effect, Fault, Plan, Target, Work,
    catalogue::Acts,
    chance,
    freeze::{Drawn, Drew},
    rule::{Act, Does, Rule},
    step::Step,
};
use crate::{
    report::{
        FaultReport,
        live::{PlanState, RuleState, ScenarioState},
    },
    traffic::{Direction, Micros},
    wire::jsonrpc::Message,
};

/// So many keys a report names for each rule.
const MOST_KEYS: usize = 1_000;

/// A request that has come.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The server it came for, where there are several.
    pub server: Option<&'a str>,
    /// The message, after redaction.
    pub message: &'a Message<'a>,
    /// Its method.
    pub method: &'a str,
    /// The recorded exchange it asks for; in live traffic the one that a recording would make of it.
    pub key: Option<&'a str>,
    /// Which number all requests have that selectors tell apart by their values alone, from 0; none where that is not
    /// known.
    pub kind: Option<u32>,
    /// The number of the session: of the recorded one, or of the live one in live traffic.
    pub session: Option<u32>,
    /// Whether it is of 2026-07-28 or later, where that decides which faults can act; none where that is settled.
    pub is_modern: Option<bool>,
}

/// What happens to a request.
#[derive(Debug, Default)]
pub struct Decision {
    /// What delays or adds, in the order in which it acts.
    pub beside: Vec<Chosen>,
    /// What ends the matter.
    pub terminal: Option<Chosen>,
    /// Whether a recorded answer is used up.
    pub consumes: bool,
}

impl Decision {
    /// The name of the fault that ends the matter, else of the first.
    pub fn name(&self) -> Option<&'static str> {
        self.terminal.iter().chain(&self.beside).next().map(|chosen| chosen.name)
    }

    /// How long from now on a server on stdio stays although it is told to end.
    pub fn lingers(&self) -> Micros {
        self.beside.iter().filter_map(|chosen| chosen.fault.lingers()).max().unwrap_or_default()
    }

    /// Whether the client's session is gone after it.
    pub fn ends_session(&self) -> bool {
        self.terminal.as_ref().is_some_and(|chosen| chosen.is_instead && chosen.fault.ends_session())
    }
}

impl Chosen {
    /// What it says in the server's place; `of` counts and rolls nothing yet.
    pub fn instead(&self, of: &Target<'_>) -> Option<Vec<Step>> {
        self.fault.instead(&self.target(of))
    }

    /// What it does to all that is said because of the request; `of` as above.
    pub fn effect(&self, of: &Target<'_>) -> Option<Box<dyn Effect>> {
        self.fault.effect(&self.target(of))
    }

    /// It at work on a request. `holds` is how long it holds the request back, where that is what it does: whatever is
    /// said because of that.
    pub fn work(&self, of: &Target<'_>, holds: Option<Micros>) -> Work {
        let (name, fired) = ((self.name, self.ends), self.fired.clone());
        if holds.or_else(|| self.fault.lingers()) == Some(0) {
            return Work::idle(name, of.lane, fired);
        }
        Work::new(name, of.lane, self.effect(of).filter(|_| holds.is_none()), fired)
    }

    const fn target<'a>(&self, of: &Target<'a>) -> Target<'a> {
        Target { count: self.count, roll: self.roll, ..*of }
    }
}

/// A fault that acts.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// Its name.
    pub name: &'static str,
    /// The fault.
    pub fault: Arc<dyn Fault>,
    /// How often its rule has fired, this time included.
    pub count: u64,
    /// From 0 to 1 without 1.
    pub roll: f64,
    /// It speaks in the server's place.
    pub is_instead: bool,
    /// It ends the matter.
    pub ends: bool,
    /// Those of a higher layer act later.
    pub layer: u8,
    /// It acts on what goes to the server.
    pub to_server: bool,
    /// That its rule has fired.
    pub fired: Fired,
}

/// That a rule has fired, until it turns out that it could change nothing.
#[derive(Clone, Debug, Default)]
pub struct Fired {
    rule: usize,
    key: Option<Box<str>>,
    drew: Option<Drew>,
}

/// The state of a plan in one take.
#[derive(Debug)]
pub struct Engine {
    plan: Arc<Plan>,
    /// The rules that name a tool, a prompt or a resource, by that, and all others.
    by_subject: HashMap<Box<str>, Vec<usize>>,
    without_subject: Vec<usize>,
    /// By requests' kinds, the rules that name them.
    by_kind: Vec<Option<Box<[usize]>>>,
    states: Vec<State>,
    /// Which scenarios are on, of those that can be switched, and which ever were.
    on: Vec<bool>,
    was_on: Vec<bool>,
    /// How often each request has come, by a hash of its canonical form.
    equal: HashMap<[u8; 16], u64>,
    /// Whether any rule asks for chance.
    by_chance: bool,
}

#[derive(Clone, Debug, Default)]
struct State {
    seen: u64,
    fired: u64,
    /// How often it had fired when it was reset.
    fired_before: u64,
    /// How much of its script is used up.
    played: usize,
    /// On which requests it has fired, and how often.
    keys: BTreeMap<Box<str>, u64>,
    /// Where chance decides whether it acts: on which requests it did.
    drawn: Drawn,
}

impl Engine {
    /// The beginning of a take.
    pub fn new(plan: Arc<Plan>) -> Self {
        let states = plan.rules.iter().map(|_| State::default()).collect();
        let by_chance = plan.is_by_chance();
        let on: Vec<bool> = plan.scenarios.iter().map(|scenario| scenario.is_on).collect();
        let (mut by_subject, mut without_subject): (HashMap<Box<str>, Vec<usize>>, _) = Default::default();
        for (at, rule) in plan.rules.iter().enumerate() {
            let rules: &mut Vec<usize> = match rule.when.request.subject() {
                Some(subject) => by_subject.entry(subject.into()).or_default(),
                None => &mut without_subject,
            };
            rules.push(at);
        }
        let (by_kind, equal) = (Vec::new(), HashMap::new());
        let was_on = on.clone();
        Self { plan, by_subject, without_subject, by_kind, states, on, was_on, equal, by_chance }
    }

    /// Switches a scenario.
    pub fn switch(&mut self, scenario: usize, on: bool) {
        self.on[scenario] = on;
        self.was_on[scenario] |= on;
    }

    /// Counts begin anew, scripts too; what has fired stays told.
    pub fn reset(&mut self) {
        self.equal.clear();
        for state in &mut self.states {
            state.fired_before += state.fired;
            (state.seen, state.fired, state.played) = Default::default();
        }
    }

    /// Whether it is known that no rule names the requests of a kind: most plans are about a few.
    pub fn passes_by(&self, kind: u32) -> bool {
        self.by_kind.get(kind as usize).and_then(Option::as_deref).is_some_and(<[usize]>::is_empty)
    }

    /// The rules that fit a request, as far as they can act on it. Which of them name it is asked once for each kind.
    fn fitting(&mut self, request: &Request<'_>) -> Vec<usize> {
        let Self { plan, by_subject, without_subject, by_kind, on, .. } = self;
        let is_on = |rule: &Rule| rule.scenario.is_none_or(|at| on[at]);
        let can_act = |rule: &Rule| request.is_modern.is_none_or(|modern| rule.can_act(modern));
        let Some(kind) = request.kind.map(|kind| kind as usize) else {
            let fits = |rule: &Rule| is_on(rule) && rule.fits(request) && can_act(rule);
            return (0..plan.rules.len()).filter(|at| fits(&plan.rules[*at])).collect();
        };
        if by_kind.len() <= kind {
            by_kind.resize(kind + 1, None);
        }
        let names = || {
            let subject = if by_subject.is_empty() { None } else { request.message.name() };
            let about = subject.and_then(|subject| by_subject.get(&*subject)).into_iter().flatten();
            let may_name = about.chain(&*without_subject).copied();
            let mut names: Box<[usize]> = may_name.filter(|at| plan.rules[*at].names(request)).collect();
            names.sort_unstable();
            names
        };
        let named: &[usize] = by_kind[kind].get_or_insert_with(names);
        if named.is_empty() {
            return Vec::new();
        }
        let fits = |rule: &Rule| is_on(rule) && rule.holds(request) && can_act(rule);
        named.iter().copied().filter(|at| fits(&plan.rules[*at])).collect()
    }

    /// What happens to a request; `form` gives its canonical form.
    pub fn decide(&mut self, request: &Request<'_>, form: impl FnOnce() -> Vec<u8>) -> Option<Decision> {
        let fitting = self.fitting(request);
        if fitting.is_empty() {
            return None;
        }
        let plan = Arc::clone(&self.plan);
        for &at in &fitting {
            self.states[at].seen += 1;
            if plan.rules[at].probability.is_some() {
                self.states[at].drawn.see(request);
            }
        }
        let (form, before) = if self.by_chance { self.equals(form()) } else { Default::default() };
        let by_chance = self.by_chance;
        let rolls = |at: usize| match by_chance {
            true => chance::rolls(plan.seed, &plan.rules[at].name, &form, before),
            false => Default::default(),
        };
        let mut decision = Decision { consumes: true, ..Decision::default() };
        let script = fitting.iter().find_map(|&at| match &plan.rules[at].does {
            Does::Script(acts) => acts.get(self.states[at].played).map(|act| (at, act)),
            Does::Always(_) => None,
        });
        if let Some((at, act)) = script {
            let (_, roll) = rolls(at);
            self.states[at].played += 1;
            let act = act.as_ref()?;
            self.fire(at, act, roll, request.key, &mut decision);
            return Some(decision);
        }
        for at in fitting {
            let rule = &plan.rules[at];
            let (state, Does::Always(act)) = (&self.states[at], &rule.does) else { continue };
            let is_too_late = act.kind.acts != Acts::Beside && decision.terminal.is_some();
            if is_too_late || !rule.trigger.hits(state.seen, state.fired) {
                continue;
            }
            let (chance, roll) = rolls(at);
            if rule.probability.is_none_or(|probability| chance < probability) {
                self.fire(at, act, roll, request.key, &mut decision);
            }
        }
        decision.beside.sort_by_key(|chosen| chosen.layer);
        (decision.terminal.is_some() || !decision.beside.is_empty()).then_some(decision)
    }

    /// A request's form, and how many equal ones came before it.
    fn equals(&mut self, form: Vec<u8>) -> (Vec<u8>, u64) {
        let hash = Sha256::digest(&form)[..16].try_into().expect("16 of 32 bytes");
        let count = self.equal.entry(hash).or_default();
        *count += 1;
        (form, *count - 1)
    }

    fn fire(&mut self, at: usize, act: &Act, roll: f64, key: Option<&str>, decision: &mut Decision) {
        let state = &mut self.states[at];
        state.fired += 1;
        let key =
            key.filter(|key| state.keys.len() < MOST_KEYS || state.keys.contains_key(*key)).map(Box::from);
        if let Some(key) = &key {
            *state.keys.entry(Box::clone(key)).or_default() += 1;
        }
        let drew = self.plan.rules[at].probability.and_then(|_| state.drawn.fire());
        let chosen = Chosen {
            name: act.kind.name,
            fault: Arc::clone(&act.fault),
            count: state.fired,
            roll,
            is_instead: act.kind.acts == Acts::Instead,
            ends: act.kind.acts != Acts::Beside,
            layer: act.kind.layer,
            to_server: self.plan.rules[at].when.direction == Some(Direction::ToServer),
            fired: Fired { rule: at, key, drew },
        };
        if act.kind.acts == Acts::Beside {
            decision.beside.push(chosen);
        } else {
            decision.terminal = Some(chosen);
            decision.consumes = act.consumes;
        }
    }

    /// A rule could change nothing of what it was to act on: it has not fired.
    pub(super) fn take_back(&mut self, fired: &Fired) {
        self.states[fired.rule].take_back(fired);
    }

    /// The rules' states, as if those had not fired.
    fn states<'a>(&self, but_for: impl Iterator<Item = &'a Fired>) -> Cow<'_, [State]> {
        let mut states = Cow::Borrowed(&self.states[..]);
        but_for.for_each(|fired| states.to_mut()[fired.rule].take_back(fired));
        states
    }

    /// What each rule did, but for those that have not acted yet.
    pub fn report<'a>(&self, not_acted: impl Iterator<Item = &'a Fired>) -> Vec<FaultReport> {
        let states = self.states(not_acted);
        let rules = self.plan.rules.iter().zip(&*states);
        let rules = rules.filter(|(rule, _)| rule.scenario.is_none_or(|at| self.was_on[at]));
        let report = rules.map(|(rule, state)| FaultReport {
            rule: rule.name.clone(),
            text: (rule.text != rule.name).then(|| rule.text.clone()),
            in_cassette: rule.in_cassette,
            fired: state.fired_before + state.fired,
            keys: state.keys.keys().map(ToString::to_string).collect(),
            optional: rule.optional,
            firings: state.drawn.firings(),
        });
        report.collect()
    }

    /// The plan as it stands; what has not acted yet has not fired.
    pub fn state<'a>(&self, not_acted: impl Iterator<Item = &'a Fired>) -> PlanState {
        let scenarios = self.plan.scenarios.iter().zip(&self.on);
        let states = self.states(not_acted);
        let rules = self.plan.rules.iter().zip(&*states);
        let rule = |(rule, state): (&Rule, &State)| RuleState {
            rule: rule.name.clone(),
            scenario: rule.scenario.map(|at| self.plan.scenarios[at].name.clone()),
            on: rule.scenario.is_none_or(|at| self.on[at]),
            in_cassette: rule.in_cassette,
            seen: state.seen,
            fired: state.fired,
            left: match &rule.does {
                Does::Script(acts) => Some(acts.len() - state.played),
                Does::Always(_) => None,
            },
        };
        PlanState {
            seed: self.plan.seed_in_use(),
            scenarios: scenarios
                .map(|(scenario, &on)| ScenarioState { name: scenario.name.clone(), on })
                .collect(),
            rules: rules.map(rule).collect(),
            ..PlanState::default()
        }
    }
}

impl State {
    fn take_back(&mut self, fired: &Fired) {
        match self.fired {
            0 => self.fired_before = self.fired_before.saturating_sub(1),
            _ => self.fired -= 1,
        }
        if let Some(key) = &fired.key
            && let Some(count) = self.keys.get_mut(key)
        {
            *count -= 1;
            if *count == 0 {
                self.keys.remove(key);
            }
        }
        fired.drew.iter().for_each(|drew| self.drawn.take_back(drew));
    }
}
