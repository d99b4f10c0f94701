//! Under `--strict`: whether a request comes before an answer that it came behind, and what is known at the end of the
//! order in which requests came (see [`moved`](crate::replay::moved)).
//!
//! A request that never comes is left over, and one that differs is a miss of its own; what follows either of them is in
//! order.

use super::Play;
use crate::{
    cassette::model::Cassette,
    replay::{
        moved::{Came, Moved, Recorded, moved},
        own,
        script::{Rank, Script},
    },
};

/// A step that came in another place than recorded.
#[derive(Clone, Copy, Debug)]
pub(in crate::replay) struct MovedStep {
    pub step: u32,
    /// The one that it was recorded behind; none for the first.
    pub behind: Option<u32>,
    /// The one that was recorded where it came; none behind the last.
    pub expected: Option<u32>,
}

/// What came, in its order.
#[derive(Debug, Default)]
pub(super) struct Asked {
    steps: Vec<(u32, bool)>,
    /// One of them came behind another that was asked after its answer.
    is_disordered: bool,
}

impl Play {
    /// A step that has been asked for, whose answer has not gone although it had come before this one was asked: what runs
    /// ahead is told of at once. Where there is none, this one has come.
    pub(in crate::replay) fn comes(&mut self, script: &Script, step: u32) -> Option<u32> {
        let early = self.under_way_before(script, step);
        // A fault may have answered in its place before: when it is asked for again is the client's affair.
        if early.is_none() && counts(script, step) && !self.steps[step as usize].sent {
            let answered = script.items(&script.steps[step as usize]).last();
            let latest = self.latest.map_or(0, |latest| script.steps[latest as usize].rank);
            let is_late = answered.is_some_and(|answered| answered.rank < latest);
            self.asked.steps.push((step, false));
            self.asked.is_disordered |= is_late;
            let rank = |step: u32| script.steps[step as usize].rank;
            // What follows the late one is in order where it is behind that.
            if is_late || self.latest.is_none_or(|latest| rank(latest) < rank(step)) {
                self.latest = Some(step);
            }
        }
        early
    }

    /// A request has come once more than recorded, and was told so; the last of those that it equals is this.
    pub(in crate::replay) fn comes_again(&mut self, script: &Script, step: u32) {
        // More of them than of all else tell nothing of its order.
        if counts(script, step) && self.asked.steps.len() < 2 * self.steps.len() {
            self.asked.steps.push((step, true));
        }
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

    /// What came in another place than recorded.
    pub(in crate::replay) fn moved(&self, script: &Script, cassette: &Cassette) -> Vec<MovedStep> {
        if !self.asked.is_disordered {
            return Vec::new();
        }
        // What was added later was recorded in another run: it has no place among these.
        let is_placed =
            |&step: &u32| counts(script, step) && !cassette.is_added(script.steps[step as usize].exchange);
        let mut steps: Vec<u32> = (0..script.steps.len() as u32).filter(is_placed).collect();
        steps.sort_unstable_by_key(|&step| script.steps[step as usize].rank);
        let mut places = vec![None; script.steps.len()];
        (0..).zip(&steps).for_each(|(place, &step)| places[step as usize] = Some(place));
        let classes = script.index.classes(script.steps.len());
        let recorded: Vec<Recorded> = steps
            .iter()
            .map(|&at| {
                let step = &script.steps[at as usize];
                let answered = script.items(step).last().map_or(Rank::MAX, |last| last.rank);
                Recorded { class: classes[at as usize], group: step.group(), asked: step.rank, answered }
            })
            .collect();
        let came = self.asked.steps.iter();
        let came = came.filter_map(|&(step, is_told)| Some(Came { place: places[step as usize]?, is_told }));
        let told = |Moved { place, expected }: Moved| MovedStep {
            step: steps[place],
            behind: place.checked_sub(1).map(|before| steps[before]),
            expected: expected.map(|expected| steps[expected]),
        };
        moved(&recorded, &came.collect::<Vec<_>>()).into_iter().map(told).collect()
    }
}

/// Whether clients send it when the recorded one did, and not as their caches and clocks have it.
fn counts(script: &Script, step: u32) -> bool {
    let plan = &script.steps[step as usize];
    plan.is_asked() && !plan.only_http && !own::may_be_left_over(script.method(plan))
}
