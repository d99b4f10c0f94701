//! Under `--strict`: whether a request comes in the recorded order.
//!
//! Only what has come is compared. A request that never comes is left over, and one that differs is a miss of its own;
//! what follows either of them is in order.

use super::Play;
use crate::replay::{
    own,
    script::{Rank, Script},
};

/// How a request and another one come in another order than recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::replay) enum Disorder {
    /// It comes before the answer of this step, which had come before it.
    Early(u32),
    /// It comes after this step, which had come after its answer.
    Late(u32),
}

/// The rank of the last request that came in its order.
#[derive(Clone, Copy, Debug)]
pub(in crate::replay) struct Order(Rank);

impl Order {
    /// Whether a step's answer had come before that request.
    pub(in crate::replay) fn is_late(self, script: &Script, step: u32) -> bool {
        self.0 > 0 && script.items(&script.steps[step as usize]).last().is_some_and(|last| last.rank < self.0)
    }
}

impl Play {
    /// Whether a step is asked for in another order than recorded, and than which other step.
    pub(in crate::replay) fn disorder(&mut self, script: &Script, step: u32) -> Option<Disorder> {
        let early = self.under_way_before(script, step).or_else(|| self.left_out_before(script, step));
        let disorder =
            early.map(Disorder::Early).or_else(|| self.come_behind(script, step).map(Disorder::Late));
        match disorder {
            None => self.keeps_order(script, step),
            // What follows the late one is in order where it is behind that.
            Some(Disorder::Late(_)) => self.latest = Some(step),
            Some(Disorder::Early(_)) => {}
        }
        disorder
    }

    /// A step that has been asked for, whose answer has not gone although it had come before this one was asked.
    fn under_way_before(&self, script: &Script, step: u32) -> Option<u32> {
        let rank = script.steps[step as usize].rank;
        let under_way = self.live_runs().map(|run| run.step).filter(|&other| {
            let last = script.items(&script.steps[other as usize]).last();
            !self.steps[other as usize].sent && last.is_some_and(|last| last.rank < rank)
        });
        under_way.filter(|&other| counts(script, other)).min()
    }

    /// A step that has not been asked for, and whose answer had come before this one, where this one equals one before
    /// that: rather than that all between was left out, that one is asked for once more than recorded. What was asked
    /// otherwise than recorded meanwhile stands for as many.
    fn left_out_before(&self, script: &Script, step: u32) -> Option<u32> {
        if !counts(script, step) {
            return None;
        }
        let rank = script.steps[step as usize].rank;
        let Order(from) = self.order(script);
        let answers = script.answered();
        let from = answers.partition_point(|(answer, _)| *answer <= from);
        let between =
            answers[from..].iter().take_while(|(answer, _)| *answer < rank).map(|&(_, other)| other);
        let mut left_out = between.filter(|&other| {
            let fate = self.steps[other as usize];
            !fate.taken && !fate.sent && self.latest != Some(other) && counts(script, other)
        });
        // Asked last: that takes the longest.
        let is_again = |_: &u32| {
            let equal = script.index.before(step);
            equal.is_some_and(|equal| self.steps[equal as usize].taken)
        };
        left_out.nth(self.missed_since).filter(is_again)
    }

    /// The last step that has been asked for, where this one's answer had come before that was.
    fn come_behind(&self, script: &Script, step: u32) -> Option<u32> {
        // A fault may have answered in its place before.
        let is_late = self.order(script).is_late(script, step) && !self.steps[step as usize].sent;
        self.latest.filter(|_| is_late && counts(script, step))
    }

    /// How far requests have come in the recorded order.
    pub(in crate::replay) fn order(&self, script: &Script) -> Order {
        Order(self.latest.map_or(0, |latest| script.steps[latest as usize].rank))
    }

    fn keeps_order(&mut self, script: &Script, step: u32) {
        let rank = |step: u32| script.steps[step as usize].rank;
        if counts(script, step) && self.latest.is_none_or(|latest| rank(latest) < rank(step)) {
            self.latest = Some(step);
            self.missed_since = 0;
        }
    }

    /// A request has come for which no step is.
    pub(in crate::replay) const fn missed(&mut self) {
        self.missed_since += 1;
    }
}

/// Whether clients send it when the recorded one did, and not as their caches and clocks have it.
fn counts(script: &Script, step: u32) -> bool {
    let plan = &script.steps[step as usize];
    plan.is_asked() && !plan.only_http && !own::may_be_left_over(script.method(plan))
}
