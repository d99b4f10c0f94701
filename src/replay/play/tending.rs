//! What whoever tends a replay asks of a live session, and does to it.

use super::{END, Play, Scene, order::Blocked};
use crate::{replay::script::Script, traffic::Micros};

impl Play {
    /// All can be asked for again; what is under way goes on, and no longer by the order of before.
    pub(in crate::replay) fn rewind(&mut self, of: &Script) {
        let (steps, taken_before) = (std::mem::take(&mut self.steps), std::mem::take(&mut self.taken_before));
        let before = taken_before.into_iter().chain(std::iter::repeat(false));
        let taken_before = steps.into_iter().zip(before).map(|(step, before)| step.taken || before).collect();
        self.runs.iter_mut().flatten().for_each(|run| run.free = true);
        *self = Self {
            runs: std::mem::take(&mut self.runs),
            vacant: std::mem::take(&mut self.vacant),
            ready: std::mem::take(&mut self.ready),
            taken_before,
            ..Self::new(self.script, of)
        };
    }

    /// What waits for its recorded time: when it is due, and of which run it is, or that it is a push.
    pub(in crate::replay) fn waiting(&self, scene: Scene<'_>) -> Vec<(Micros, Option<u32>)> {
        let mut waiting = Vec::new();
        let mut held: Vec<(u32, Micros)> = Vec::new();
        for &(rank, at) in self.ready.iter().filter(|(rank, _)| *rank != END) {
            let run = self.runs[at as usize].as_ref().expect("ready runs live");
            let group = self.bound_to(scene, run);
            let own = match self.blocked(scene, run, rank, false) {
                Blocked::Until(due) => due.played,
                Blocked::No => None,
                Blocked::Gate(_) | Blocked::Order(_) => continue,
            };
            let held_until = held.iter().find(|(of, _)| Some(*of) == group).map(|(_, due)| *due);
            let Some(due) = own.max(held_until) else { continue };
            held.extend(group.map(|group| (group, due)));
            waiting.push((due, Some(at)));
        }
        let push = self.push_due.and_then(|due| due.played).filter(|due| *due > scene.now.played);
        waiting.extend(push.map(|due| (due, None)));
        waiting
    }
}
