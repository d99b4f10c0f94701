//! What goes wrong on purpose: options that several commands share.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use clap::Args;
use mcp_tapedeck::{
    fault::{Plan, PlanError, Plans, Scope, of_cassette},
    store::Loaded,
};

use super::{deck::Serving, failure::Failure, files};

/// What goes wrong on purpose.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Faults")]
pub(super) struct FaultArgs {
    /// Let a plan's rules act
    #[arg(long, value_name = "PLAN")]
    faults: Option<PathBuf>,

    /// Which scenario of the plan, or of the cassette's own `faults`; where a run is tended, which is on at the beginning
    #[arg(long, value_name = "NAME")]
    scenario: Option<String>,

    /// Let one fault act, such as 'tools/call search @2: timeout'; may be repeated
    #[arg(long, value_name = "KEY: FAULT")]
    fault: Vec<String>,

    /// Decide by this number what happens by chance
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// What the plan's file says: each of several cassettes is asked about it, and a pipe can be read once.
    #[arg(skip)]
    text: OnceLock<Vec<u8>>,
}

impl FaultArgs {
    /// Whether any is to act.
    pub(super) fn is_given(&self) -> bool {
        self.faults.is_some() || self.scenario.is_some() || !self.fault.is_empty()
    }

    /// The plan that acts on a cassette, which may be one of several.
    pub(super) fn plan(
        &self,
        loaded: &Loaded,
        serving: Serving,
        is_one_of: bool,
    ) -> Result<Option<Arc<Plan>>, Failure> {
        let (cassette, path) = (&loaded.cassette, loaded.path.display());
        let in_cassette = |error: PlanError| {
            Failure::file(format_args!("{path}:{}: {}", files::place(cassette, error.at), error.text))
        };
        let (mut plan, own) = of_cassette(cassette).map_err(in_cassette)?;
        let is_key = |key: &str| cassette.exchanges.iter().any(|entry| *entry.key == *key);
        self.add_short_forms(&mut plan, &is_key, is_one_of)?;
        if let Some(place) = cassette.assert {
            plan.add_assert(&cassette.text, place.span()).map_err(in_cassette)?;
        }
        let mut known = Vec::new();
        let mut named = self.add_file(&mut plan, &mut known, serving.is_tended)?;
        if let Some(plans) = own {
            known.extend(plans.scenarios().map(str::to_owned));
            let is_found = match serving.is_tended {
                true => plan.add_switched(plans, named, false),
                false => plan
                    .add(plans, named, false)
                    .map_err(|text| Failure::usage(format_args!("{path}: {text}")))?,
            };
            named = named.filter(|_| !is_found);
        }
        must_be_there(named, &known)?;
        plan.seed = self.seed.unwrap_or(plan.seed);
        plan.check(Scope::of(cassette, serving.is_http)).map_err(Failure::plan)?;
        Ok((!plan.is_empty()).then(|| Arc::new(plan)))
    }

    /// That they can be read, where nothing of them acts yet; `is_all` where no cassette has scenarios of its own.
    pub(super) fn check(&self, is_all: bool) -> Result<(), Failure> {
        let mut plan = Plan::default();
        self.add_short_forms(&mut plan, &|_| false, !is_all)?;
        let mut known = Vec::new();
        let named = self.add_file(&mut plan, &mut known, false)?;
        must_be_there(named.filter(|_| is_all), &known)?;
        // Whatever will be recorded, it is served on stdio.
        plan.check(Scope::live(false)).map_err(Failure::plan)
    }

    /// The plan that acts on live traffic.
    pub(super) fn live_plan(&self, is_http: bool) -> Result<Plan, Failure> {
        let mut plan = Plan::default();
        self.add_short_forms(&mut plan, &|_| false, false)?;
        let mut known = Vec::new();
        let named = self.add_file(&mut plan, &mut known, false)?;
        must_be_there(named, &known)?;
        plan.seed = self.seed.unwrap_or(plan.seed);
        plan.check_live(is_http).map_err(Failure::plan)?;
        Ok(plan)
    }

    fn add_short_forms(
        &self,
        plan: &mut Plan,
        is_key: &dyn Fn(&str) -> bool,
        is_one_of: bool,
    ) -> Result<(), Failure> {
        for fault in &self.fault {
            plan.add_short_for(fault, is_key)
                // What is nothing else may be a key of another of several cassettes.
                .or_else(|error| match is_one_of {
                    true => plan.add_short_for(fault, &|_| true).map_err(|_| error),
                    false => Err(error),
                })
                .map_err(|error| Failure::usage(format_args!("--fault '{fault}': {}", error.text)))?;
        }
        Ok(())
    }

    /// Adds what the plan's file says; the scenario that is still looked for, and those that are `known`.
    fn add_file(
        &self,
        plan: &mut Plan,
        known: &mut Vec<String>,
        is_tended: bool,
    ) -> Result<Option<&str>, Failure> {
        let named = self.scenario.as_deref();
        let Some(path) = &self.faults else { return Ok(named) };
        let text = self.text_of(path)?;
        let shown = path.display();
        let mut plans = Plans::read(text).map_err(|error| Failure::file(format_args!("{shown}:{error}")))?;
        plans.stand_in(&shown.to_string(), text);
        known.extend(plans.scenarios().map(str::to_owned));
        let is_found = match is_tended {
            true => plan.add_switched(plans, named, true),
            false => plan
                .add(plans, named, true)
                .map_err(|text| Failure::usage(format_args!("{shown}: {text}")))?,
        };
        Ok(named.filter(|_| !is_found))
    }

    fn text_of(&self, path: &Path) -> Result<&[u8], Failure> {
        if let Some(text) = self.text.get() {
            return Ok(text);
        }
        let next =
            "`--faults` names a plan of fault rules; `tapedeck schema faults` tells what stands in one";
        let text = fs::read(path).map_err(|error| Failure::unread(path, &error, next))?;
        Ok(self.text.get_or_init(|| text))
    }
}

fn must_be_there(named: Option<&str>, known: &[String]) -> Result<(), Failure> {
    let Some(named) = named else { return Ok(()) };
    let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
    Err(Failure::usage(format_args!("there is no scenario `{named}`; there is {known}")))
}
