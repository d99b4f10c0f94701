//! A fault at work on one request, and whether it has acted.

use super::{
    Effect, Fired,
    catalogue::framing::framed,
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

    /// One that can change nothing of a request.
    pub fn idle((name, ends): (&'static str, bool), lane: Lane, fired: Fired) -> Self {
        Self { name, ends, effect: None, lane, fired: Some(fired), held: None, is_idle: true }
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
        let as_it_was: Vec<Step> =
            self.held.take().into_iter().chain([before.clone()]).map(Step::Do).collect();
        let is_end = matches!(before, Output::EndLane { .. } | Output::End { .. });
        if passed != as_it_was && !is_seen_as(passed, &as_it_was) {
            self.fired = None;
            return;
        }
        out.truncate(from);
        out.extend(as_it_was);
        if before.lane() == self.lane && (is_end || !effect.acts_behind() && before.is_response()) {
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

/// Whether a client sees nothing else in these steps than in those: no time passes, and the bytes are the same, in as
/// many pieces.
fn is_seen_as(steps: &[Step], others: &[Step]) -> bool {
    let waits = |step: &Step| matches!(step, Step::Wait(1..) | Step::Yield(1..));
    !steps.iter().any(waits) && at_once(steps) == at_once(others)
}

/// What is done without its waits, in the bytes that go.
fn at_once(steps: &[Step]) -> Vec<Output> {
    let mut seen: Vec<Output> = Vec::new();
    for step in steps {
        let Step::Do(output) = step else { continue };
        let output = match framed(output) {
            Some(bytes) => Output::Raw { lane: output.lane(), bytes, goes_on: false },
            None => output.clone(),
        };
        match (seen.last_mut(), output) {
            // What breaks off goes with the end.
            (
                Some(Output::Raw { lane, bytes, goes_on: true }),
                Output::EndLane { lane: on, partial, end },
            ) if *lane == on => {
                let partial = [std::mem::take(bytes), partial].concat();
                seen.pop();
                seen.push(Output::EndLane { lane: on, partial, end });
            }
            (_, output) => seen.push(output),
        }
    }
    seen
}
