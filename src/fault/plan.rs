//! A plan's text: scenarios of rules.

use super::{
    assert::Assert,
    engine::Request,
    error::{PlanError, list},
    rule::Rule,
    short,
    stranger::Stranger,
    value::Value,
};
use crate::{
    cassette::{
        self, LoadErrorKind,
        model::{Cassette, line_column},
        nearest,
    },
    report::{AssertReport, Report},
    wire::{Span, jsonrpc::Kind, revision::revision, scan},
};

/// The rules that act on what one process serves.
///
/// Their order is their order of precedence: the faults of exchanges, those of the command line, those of the chosen
/// scenario of a plan, those that stand in the cassette.
#[derive(Debug, Default)]
pub struct Plan {
    /// What `probability` is decided by.
    pub seed: u64,
    pub(super) rules: Vec<Rule>,
    /// Those that can be switched while it acts.
    pub(super) scenarios: Vec<Scenario>,
    /// What a cassette asserts of its server.
    asserts: Vec<Assert>,
    /// What a plan in a file asserts of all that a process serves.
    of_all: Vec<Assert>,
    /// What it acts on.
    scope: Option<Scope>,
}

/// A scenario that can be switched.
#[derive(Debug)]
pub(super) struct Scenario {
    pub(super) name: String,
    /// It is on when a take begins.
    pub(super) is_on: bool,
}

/// A plan as it stands in a file or a cassette: several scenarios to choose from.
#[derive(Debug)]
pub struct Plans {
    /// What `probability` is decided by, where the plan says so.
    pub seed: Option<u64>,
    pub(super) asserts: Vec<Assert>,
    /// Rules that always act.
    always: Vec<Rule>,
    scenarios: Vec<(String, Vec<Rule>)>,
}

/// What a process serves, for faults that cannot exist there.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    /// Clients come over HTTP; else on stdio.
    pub is_http: bool,
    /// The recording is of a revision before 2026-07-28.
    pub is_legacy: bool,
    /// It is of 2026-07-28 or later.
    pub is_modern: bool,
}

impl Plans {
    /// Reads a plan's file: `{"faults": 1, "seed": 7, "scenarios": {NAME: [RULE, …]}}`.
    ///
    /// # Errors
    /// With the place of the first thing that is wrong, and the valid choices.
    pub fn read(text: &[u8]) -> Result<Self, PlanError> {
        let read = || {
            cassette::check_json(text).map_err(|error| {
                let told = match &error.kind {
                    LoadErrorKind::Syntax { expected, found } => {
                        format!("expected {expected}, found {found}; a plan is JSON")
                    }
                    other => other.to_string(),
                };
                PlanError::new(error.at, told)
            })?;
            let whole = scan::trim(text);
            let mut object = Value::new(text, whole).object("a plan")?;
            let version = object.need("faults", "the version of the plan's form, 1")?;
            if version.raw() != b"1" {
                return Err(version.wrong("faults", "1, the version of the plan's form"));
            }
            Self::of(object)
        };
        read().map_err(|error| error.locate(text))
    }

    /// Reads the `faults` member of a cassette: a list of rules, or a plan without its version.
    ///
    /// # Errors
    /// As [`Plans::read`].
    pub fn in_cassette(text: &[u8], place: Span) -> Result<Self, PlanError> {
        let value = Value::new(text, place);
        let read = || {
            if value.is_array() {
                let always = rules("faults", value)?;
                return Ok(Self { seed: None, asserts: Vec::new(), always, scenarios: Vec::new() });
            }
            Self::of(value.object("`faults`")?)
        };
        let mut plans = read().map_err(|error| error.locate(text))?;
        let rules = plans.scenarios.iter_mut().flat_map(|(_, rules)| rules).chain(&mut plans.always);
        rules.for_each(|rule| rule.in_cassette = true);
        Ok(plans)
    }

    fn of(mut object: super::value::Object<'_>) -> Result<Self, PlanError> {
        let seed =
            object.get("seed").map(|value| value.integer("seed", "a whole number from 0")).transpose()?;
        let asserts = object.get("assert").map(Assert::read).transpose()?.unwrap_or_default();
        let always = object.get("rules").map(|value| rules("rules", value)).transpose()?.unwrap_or_default();
        let mut scenarios = Vec::new();
        if let Some(value) = object.get("scenarios") {
            for (name, value) in value.object("`scenarios`")?.all() {
                scenarios.push((name.to_owned(), rules(name, value)?));
            }
        }
        object.finish()?;
        Ok(Self { seed, asserts, always, scenarios })
    }

    /// The names of the scenarios.
    pub fn scenarios(&self) -> impl Iterator<Item = &str> {
        self.scenarios.iter().map(|(name, _)| name.as_str())
    }

    /// Where its rules stand in the text.
    pub fn places(&self) -> impl Iterator<Item = usize> {
        let rules = self.scenarios.iter().flat_map(|(_, rules)| rules).chain(&self.always);
        rules.map(|rule| rule.at)
    }

    /// Notes for errors in which file they stand: in this one, whose text they were read from.
    pub fn stand_in(&mut self, file: &str, text: &[u8]) {
        let rules = self.scenarios.iter_mut().flat_map(|(_, rules)| rules).chain(&mut self.always);
        for rule in rules {
            let (line, column) = line_column(text, rule.at);
            rule.place = Some(format!("{file}:{line}:{column}").into());
        }
    }

    fn take(&mut self, name: &str) -> Option<Vec<Rule>> {
        let at = self.scenarios.iter().position(|(known, _)| known == name)?;
        Some(self.scenarios.swap_remove(at).1)
    }
}

fn rules(member: &str, value: Value<'_>) -> Result<Vec<Rule>, PlanError> {
    value.elements(member)?.into_iter().map(Rule::read).collect()
}

/// The faults of a cassette's exchanges, and its own plan.
///
/// # Errors
/// With the place of the first one that cannot be read, or names an exchange that is not there.
pub fn of_cassette(cassette: &Cassette) -> Result<(Plan, Option<Plans>), PlanError> {
    let mut plan = Plan::default();
    for (exchange, place) in &cassette.exchange_faults {
        let entry = &cassette.exchanges[*exchange as usize];
        if entry.client.as_ref().is_none_or(|client| client.kind != Kind::Request) {
            let text = format!("faults act on requests, and `{}` is none; remove its `fault`", entry.key);
            return Err(PlanError::new(place.start as usize, text).locate(&cassette.text));
        }
        plan.add_exchange(&entry.key, &cassette.text, place.span())?;
    }
    let Some(place) = cassette.faults else { return Ok((plan, None)) };
    let plans = Plans::in_cassette(&cassette.text, place.span())?;
    let rules = plans.scenarios.iter().flat_map(|(_, rules)| rules).chain(&plans.always);
    for rule in rules {
        let is_there = |key: &str| cassette.exchanges.iter().any(|entry| *entry.key == *key);
        if let Some(key) = rule.when.request.key.as_deref().filter(|key| !is_there(key)) {
            let text =
                format!("a fault rule names the key `{key}`, which no exchange has; correct its `when`");
            return Err(PlanError::new(rule.at, text).locate(&cassette.text));
        }
    }
    Ok((plan, Some(plans)))
}

impl Plan {
    /// Adds the rule of a short form: `tools/call search @2: timeout`.
    ///
    /// # Errors
    /// Where it is none.
    pub fn add_short(&mut self, text: &str) -> Result<(), PlanError> {
        self.add_short_for(text, &|_| false)
    }

    /// The same for what has such keys: of one that `is_key` it is, whatever else that could be.
    ///
    /// # Errors
    /// As [`Plan::add_short`].
    pub fn add_short_for(&mut self, text: &str, is_key: &dyn Fn(&str) -> bool) -> Result<(), PlanError> {
        let json = short::expand(text, is_key)?;
        let span = scan::trim(json.as_bytes());
        let rule = Rule::read(Value::new(json.as_bytes(), span));
        let rule = rule.map_err(|error| short::in_quotes(error, &json))?;
        self.rules.push(Rule { name: text.to_owned(), by_option: true, ..rule });
        Ok(())
    }

    /// Adds the fault of one exchange.
    ///
    /// # Errors
    /// Where it is none.
    pub fn add_exchange(&mut self, key: &str, text: &[u8], place: Span) -> Result<(), PlanError> {
        let rules = Rule::of_exchange(key, Value::new(text, place)).map_err(|error| error.locate(text))?;
        self.rules.extend(rules);
        Ok(())
    }

    /// Adds a plan: what of it always acts, and one scenario. Of a plan in a file (`must_choose`), one of several has
    /// to be named, and what it asserts is asserted of all servers; of one in a cassette, those that are not named do
    /// not act.
    ///
    /// # Errors
    /// Where the scenario is not named, or not there: with the names there are.
    pub fn add(
        &mut self,
        mut plans: Plans,
        scenario: Option<&str>,
        must_choose: bool,
    ) -> Result<bool, String> {
        let names = list(plans.scenarios());
        self.seed = plans.seed.unwrap_or(self.seed);
        let asserts = if must_choose { &mut self.of_all } else { &mut self.asserts };
        asserts.append(&mut plans.asserts);
        let found = match (scenario, &plans.scenarios[..]) {
            (Some(name), _) => plans.take(name),
            (None, []) => Some(Vec::new()),
            (None, [_]) if must_choose => plans.scenarios.pop().map(|(_, rules)| rules),
            (None, _) if must_choose => {
                return Err(format!("the plan has several scenarios; choose one by `--scenario`: {names}"));
            }
            (None, _) => Some(Vec::new()),
        };
        let is_found = found.is_some();
        self.rules.extend(found.into_iter().flatten());
        self.rules.extend(plans.always);
        Ok(is_found)
    }

    /// Adds a plan whose scenarios can be switched: at the beginning the named one is on, or the only one of a plan in a
    /// file. Whether that name is there.
    pub fn add_switched(&mut self, mut plans: Plans, scenario: Option<&str>, is_file: bool) -> bool {
        self.seed = plans.seed.unwrap_or(self.seed);
        self.asserts.append(&mut plans.asserts);
        let mut is_found = scenario.is_none();
        let is_only = is_file && plans.scenarios.len() == 1;
        for (name, rules) in plans.scenarios {
            let is_on = scenario.map_or(is_only, |wanted| wanted == name);
            is_found |= is_on;
            let at = self.scenario(&name).unwrap_or_else(|| {
                self.scenarios.push(Scenario { name, is_on: false });
                self.scenarios.len() - 1
            });
            self.scenarios[at].is_on |= is_on;
            self.rules.extend(rules.into_iter().map(|rule| Rule { scenario: Some(at), ..rule }));
        }
        self.rules.extend(plans.always);
        is_found
    }

    /// The scenario of this name, of those that can be switched.
    pub fn scenario(&self, name: &str) -> Option<usize> {
        self.scenarios.iter().position(|scenario| scenario.name == name)
    }

    /// The rules that act at the beginning, or those of a scenario.
    fn rules_of(&self, scenario: Option<usize>) -> impl Iterator<Item = &Rule> {
        self.rules.iter().filter(move |rule| match scenario {
            None => rule.scenario.is_none_or(|at| self.scenarios[at].is_on),
            wanted => rule.scenario == wanted,
        })
    }

    /// Adds what a cassette asserts: its `assert` member.
    ///
    /// # Errors
    /// With the place of the first thing that is wrong, and the valid choices.
    pub fn add_assert(&mut self, text: &[u8], place: Span) -> Result<(), PlanError> {
        let asserts = Assert::read(Value::new(text, place)).map_err(|error| error.locate(text))?;
        self.asserts.extend(asserts);
        Ok(())
    }

    /// What is so of that which it asserts of one server, in that one's report.
    pub fn judge(&self, report: &Report) -> Vec<AssertReport> {
        self.asserts.iter().map(|assert| assert.judge(report)).collect()
    }

    /// What is so of that which it asserts of all servers of a process, in their report.
    pub fn judge_all(&self, report: &Report) -> Vec<AssertReport> {
        self.of_all.iter().map(|assert| assert.judge(report)).collect()
    }

    /// The number that decides what happens by chance, where it has rules.
    pub fn seed_in_use(&self) -> Option<u64> {
        self.has_rules().then_some(self.seed)
    }

    /// Whether anything is to act.
    pub fn has_rules(&self) -> bool {
        !self.rules.is_empty()
    }

    /// Whether chance decides anything in it.
    pub fn is_by_chance(&self) -> bool {
        self.rules.iter().any(Rule::is_by_chance)
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.asserts.is_empty() && self.of_all.is_empty()
    }

    /// That all of it that acts at the beginning can exist on what is served.
    ///
    /// # Errors
    /// With the fault that cannot.
    pub fn check(&mut self, scope: Scope) -> Result<(), PlanError> {
        self.scope = Some(scope);
        self.check_rules(None)
    }

    /// That a scenario can exist on what is served; without one, what acts at the beginning.
    ///
    /// # Errors
    /// With the fault that cannot.
    pub fn check_rules(&self, scenario: Option<usize>) -> Result<(), PlanError> {
        let Some(scope) = self.scope else { return Ok(()) };
        for rule in self.rules_of(scenario) {
            for act in rule.does.acts() {
                if let Some(why) = act.kind.cannot(scope) {
                    let text = format!("`{}` cannot exist here: {why}", act.kind.name);
                    return Err(rule.error(&text));
                }
            }
        }
        Ok(())
    }

    /// Why a rule that acts at the beginning, or one of a scenario, is for none of these servers.
    pub fn for_nobody(&self, scenario: Option<usize>, servers: &[&str]) -> Option<PlanError> {
        self.rules_of(scenario).find_map(|rule| {
            let named = rule.when.server.as_deref().filter(|named| !servers.contains(named))?;
            let text = match nearest(named, servers.iter().copied()) {
                Some(meant) => format!("no server is called `{named}`; did you mean `{meant}`?"),
                None => format!("no server is called `{named}`; there is {}", list(servers.iter().copied())),
            };
            Some(rule.error(&text))
        })
    }

    /// The rules that fit nothing that was recorded although they name a key, a method, a tool, a prompt or a URI; of a
    /// scenario, or of those that act at the beginning. `recorded` tells whether any recorded request is such.
    ///
    /// Of the server `server`. Where it is one of several, these are rules for it alone, or where `for_all`, those that
    /// may be meant for another one.
    pub fn strangers<F>(
        &self,
        scenario: Option<usize>,
        (server, is_one_of): (Option<&str>, bool),
        for_all: bool,
        mut recorded: F,
    ) -> Vec<Stranger>
    where
        F: FnMut(&dyn Fn(&Request<'_>) -> bool) -> bool,
    {
        let is_here = |rule: &&Rule| match rule.when.server.as_deref() {
            None if is_one_of && !rule.in_cassette => for_all,
            None => !for_all,
            named => !for_all && named == server,
        };
        let rules = self.rules_of(scenario).filter(is_here).filter(|rule| rule.when.names_something());
        let strange = rules.filter(|rule| !recorded(&|request| rule.names(request))).collect::<Vec<_>>();
        strange.into_iter().map(|rule| Stranger::of(rule, self.scope, &mut recorded)).collect()
    }
}

impl Scope {
    /// What a cassette's recordings are, and how they are served.
    pub fn of(cassette: &Cassette, is_http: bool) -> Self {
        let revisions = || cassette.sessions.iter().map(|session| session.protocol.as_deref());
        let is_modern = |name: &str| !revision(name).handshake;
        Self {
            is_http,
            is_legacy: revisions().any(|name| name.is_none_or(|name| !is_modern(name))),
            is_modern: revisions().any(|name| name.is_none_or(is_modern)),
        }
    }
}
