//! A fault at work on one request, and whether it has acted.

use super::{
    Effect, Fired,
    step::{Output, Step},
};
use crate::traffic::Lane;

/// A fault at work on one request.
///
/// One that acts by itself has acted. One that acts on what is said has done so once it has made something else of it;
/// where that cannot happen any more, for the answer has passed or nothing more comes, it is idle.
#[derive(Debug)]
pub struct Work {
    /// Its name.
    pub name: &'static str,
    /// It ends the matter.
    pub ends: bool,
    /// None: it acts by itself, or is idle.
    effect: Option<Box<dyn Effect>>,
    /// The lane that the answer goes on.
    lane: Lane,
    /// That its rule has fired, as long as it has not acted.
    fired: Option<Fired>,
    /// A head that it holds back.
    held: Option<Output>,
    is_idle: bool,
}

impl Work {
    /// One that acts by itself (no effect), or on all that is said because of a request whose answer goes on a lane.
    pub fn new(
        (name, ends): (&'static str, bool),
        lane: Lane,
        effect: Option<Box<dyn Effect>>,
        fired: Fired,
    ) -> Self {
        let fired = effect.is_some().then_some(fired);
        Self { name, ends, effect, lane, fired, held: None, is_idle: false }
    }

    /// What becomes of what is said.
    pub(super) fn pass(&mut self, steps: Vec<Step>) -> Vec<Step> {
        if self.effect.is_none() {
            return steps;
        }
        let mut next = Vec::with_capacity(steps.len());
        for step in steps {
            match step {
                Step::Do(output) => self.pass_one(output, &mut next),
                wait => next.push(wait),
            }
        }
        next
    }

    fn pass_one(&mut self, output: Output, out: &mut Vec<Step>) {
        let Some(effect) = &mut self.effect else { return out.push(Step::Do(output)) };
        if self.fired.is_none() {
            return effect.pass(output, out);
        }
        let (before, from) = (output.clone(), out.len());
        effect.pass(output, out);
        let passed = &out[from..];
        if passed.is_empty() && matches!(before, Output::Head { .. }) {
            self.held = Some(before);
            return;
        }
        let held = self.held.take();
        let as_it_was = held.iter().chain([&before]).map(Some);
        let is_same = as_it_was.eq(passed.iter().map(|step| match step {
            Step::Do(output) => Some(output),
            _ => None,
        }));
        let is_end = matches!(before, Output::EndLane { .. } | Output::End { .. });
        if !is_same {
            self.fired = None;
        } else if before.lane() == self.lane && (is_end || !effect.acts_behind() && before.is_response()) {
            self.is_over();
        }
    }

    /// Nothing more comes that it could act on.
    pub(super) fn is_over(&mut self) {
        if self.fired.is_some() {
            (self.is_idle, self.effect) = (true, None);
        }
    }

    /// Where it is idle, that its rule has fired; told once.
    pub(super) fn take_idle(&mut self) -> Option<Fired> {
        self.fired.take_if(|_| self.is_idle)
    }

    /// That its rule has fired, where it has not acted so far.
    pub(super) const fn not_acted(&self) -> Option<&Fired> {
        self.fired.as_ref()
    }

    /// Whether it has acted, or may yet.
    pub(super) const fn is_at_work(&self) -> bool {
        !self.is_idle
    }
}
