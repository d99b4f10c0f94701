//! What goes next, and what holds it back.

use super::{Action, END, Gate, Play, Run, Scene};
use crate::replay::{clock::Due, options::Order, own, script::Rank};

/// Why a run's next item does not go.
pub(super) enum Blocked {
    /// It goes.
    No,
    Until(Due),
    Gate(Gate),
    Order(u32),
}

/// What the later items of a group wait for because an earlier one does.
#[derive(Clone, Copy)]
enum Held {
    /// The client has to do something for this step first.
    ByClient(u32),
    /// The earlier item goes at this time.
    UntilDue(Due),
}

impl Play {
    /// Decides what goes next, and counts it as gone.
    pub(in crate::replay) fn step(&mut self, scene: Scene<'_>) -> Action {
        let mut until = Due::NEVER;
        let mut wait_for = |due: Due| until = until.or(due);
        let push = self.due_push(scene);
        let mut held_back = false;
        // Groups in which an item recorded earlier waits, and what the items recorded after it wait for.
        let mut held: Vec<(u32, Held)> = Vec::new();
        let mut found = None;
        for &(rank, at) in &self.ready {
            let run = self.runs[at as usize].as_ref().expect("ready runs live");
            let dying = rank == END && scene.script.steps[run.step as usize].dies;
            let push = push.filter(|(step, _)| scene.script.steps[*step as usize].rank < rank);
            if let Some((_, due)) = push
                && (!run.free || dying)
                && !held_back
                && due.has_come(scene.now)
            {
                break;
            }
            let mut blocked = self.blocked(scene, run, rank, held_back);
            if let (Blocked::No, Some((_, due)), true) = (&blocked, push, dying) {
                blocked = Blocked::Until(due);
            }
            let group = self.bound_to(scene, run);
            if matches!(blocked, Blocked::No)
                && let Some((_, held)) = held.iter().find(|(held, _)| Some(*held) == group)
                && rank != END
            {
                blocked = match *held {
                    Held::ByClient(step) => Blocked::Order(step),
                    Held::UntilDue(due) => Blocked::Until(due),
                };
            }
            match blocked {
                Blocked::No => {
                    found = Some(Action::Item { run: at, item: run.item });
                    break;
                }
                Blocked::Until(due) => {
                    wait_for(due);
                    held.extend(group.map(|group| (group, Held::UntilDue(due))));
                }
                Blocked::Gate(gate) => {
                    let is_closed = scene.pipes.is_closed(run.lane);
                    let why = is_closed.then_some("the client closed its side");
                    let since = run.blocked_since.unwrap_or(scene.now.real);
                    let over = since + scene.options.answer_timeout;
                    let late = match gate {
                        Gate::Request(_) => "it did not come in time",
                        Gate::Answer(_) | Gate::Cancel => "the answer did not come in time",
                    };
                    let why = why.or((over <= scene.now.real).then_some(late));
                    if let Some(why) = why {
                        found = Some(Action::GateOpened { run: at, gate, why });
                        break;
                    }
                    wait_for(Due::real(over));
                    held.extend(group.map(|group| (group, Held::ByClient(run.step))));
                }
                Blocked::Order(missing) => {
                    let since = run.blocked_since.unwrap_or(scene.now.real);
                    let over = since + scene.options.order_grace;
                    if over <= scene.now.real || scene.pipes.is_closed(run.lane) {
                        found = Some(Action::GraceOver { run: at, missing });
                        break;
                    }
                    wait_for(Due::real(over));
                }
            }
            held_back |= !run.free;
        }
        if let Some(action) = found {
            return self.perform(scene, action);
        }
        self.note_blocked(scene);
        match push {
            Some((step, due)) if due.has_come(scene.now) && !self.lower_run(scene, step) => {
                self.next_push += 1;
                self.push_due = None;
                Action::Push { step }
            }
            Some((_, due)) if !due.has_come(scene.now) => Action::Idle { until: until.or(due) },
            _ => self.end_of_script(scene).unwrap_or(Action::Idle { until }),
        }
    }

    /// Remembers since when runs are blocked, so that waits have an end.
    fn note_blocked(&mut self, scene: Scene<'_>) {
        for &(_, at) in &self.ready {
            let run = self.runs[at as usize].as_mut().expect("ready runs live");
            run.blocked_since.get_or_insert(scene.now.real);
        }
    }

    /// Whether a bound run has an item recorded before this push.
    fn lower_run(&self, scene: Scene<'_>, push: u32) -> bool {
        let rank = scene.script.steps[push as usize].rank;
        self.ready
            .iter()
            .take_while(|(at, _)| *at < rank)
            .any(|&(_, at)| self.runs[at as usize].as_ref().is_some_and(|run| !run.free))
    }

    fn perform(&mut self, scene: Scene<'_>, action: Action) -> Action {
        match action {
            Action::Item { run: at, item } => {
                let run = self.runs[at as usize].as_mut().expect("a live run");
                let step = &scene.script.steps[run.step as usize];
                let rank = scene.script.items(step).get(item as usize).map_or(END, |item| item.rank);
                if rank == END {
                    // Kept in place of an item so that cancelling still finds the run.
                    return if step.dies {
                        let exchange = &scene.cassette.exchanges[step.exchange as usize];
                        Action::End { session: exchange.session, run: Some(at) }
                    } else {
                        Action::Finished { run: at }
                    };
                }
                run.item += 1;
                // Whether that was its answer or not: nothing more was recorded before what came next.
                self.steps[run.step as usize].sent |= run.item as usize == scene.script.items(step).len();
                run.last = scene.now;
                run.blocked_since = None;
                self.dequeue(rank, at);
                self.enqueue(scene, at);
                action
            }
            Action::GateOpened { run: at, gate, .. } => {
                let run = self.runs[at as usize].as_mut().expect("a live run");
                match gate {
                    Gate::Answer(item) => run.gates.retain(|&open| open != item),
                    Gate::Cancel => run.cancelled = true,
                    Gate::Request(_) => run.ends_early = true,
                }
                run.blocked_since = None;
                action
            }
            Action::GraceOver { run: at, .. } => {
                let run = self.runs[at as usize].as_ref().expect("a live run");
                if let Some(group) = scene.script.steps[run.step as usize].group() {
                    self.groups[group as usize].gave_up = true;
                }
                action
            }
            other => other,
        }
    }

    pub(super) fn blocked(&self, scene: Scene<'_>, run: &Run, rank: Rank, held_back: bool) -> Blocked {
        let step = &scene.script.steps[run.step as usize];
        let gate = |&&item: &&u32| {
            scene.script.items(step)[item as usize].answer().is_some_and(|answer| answer < rank)
        };
        if let Some(&item) = run.gates.iter().find(gate) {
            return Blocked::Gate(Gate::Answer(item));
        }
        if rank != END && step.cancelled_at().is_some_and(|cancel| cancel < rank) && !run.cancelled {
            return Blocked::Gate(Gate::Cancel);
        }
        let dying = rank == END && step.dies;
        if dying && let Some(missing) = self.not_asked(scene, run) {
            return Blocked::Gate(Gate::Request(missing));
        }
        if rank != END || dying {
            let group = self.bound_to(scene, run).filter(|_| !run.ends_early);
            let missing = group.and_then(|group| {
                let missing = self.groups[group as usize].missing as usize;
                scene.script.groups.get(group)[missing..]
                    .iter()
                    .find(|&&step| !self.steps[step as usize].taken)
            });
            if let Some(&missing) = missing
                && scene.script.steps[missing as usize].rank < rank
            {
                return Blocked::Order(missing);
            }
        }
        if dying && held_back {
            return Blocked::Until(Due::NEVER);
        }
        if rank != END {
            let due = scene.due(run.last, run.step, run.item);
            if !due.has_come(scene.now) {
                return Blocked::Until(due);
            }
        }
        Blocked::No
    }

    /// The first request that had come while a run's was under way and has not come yet. What SDKs ask by themselves
    /// may never come.
    fn not_asked(&self, scene: Scene<'_>, run: &Run) -> Option<u32> {
        let group = scene.script.steps[run.step as usize].group()?;
        if run.ends_early || scene.options.order == Order::Free {
            return None;
        }
        let may_come = |step: u32| {
            let (plan, fate) = (&scene.script.steps[step as usize], self.steps[step as usize]);
            plan.is_asked()
                && !fate.taken
                // A fault may have answered in its place.
                && !fate.sent
                && !own::may_be_left_over(scene.script.method(plan))
        };
        let rest = &scene.script.groups.get(group)[self.groups[group as usize].missing as usize..];
        rest.iter().copied().find(|&step| may_come(step))
    }

    /// The group whose recorded order a run keeps to.
    pub(super) fn bound_to(&self, scene: Scene<'_>, run: &Run) -> Option<u32> {
        let group = scene.script.steps[run.step as usize].group().filter(|_| !run.free)?;
        (!self.groups[group as usize].gave_up).then_some(group)
    }

    /// The next push, once the client message before it has come, and when it is due.
    fn due_push(&mut self, scene: Scene<'_>) -> Option<(u32, Due)> {
        let &step = scene.script.pushes.get(self.next_push)?;
        let plan = &scene.script.steps[step as usize];
        let comes = match plan.anchor() {
            // What a server said before any client message waits for the first one where that picks the session.
            None => self.is_open || self.progress.is_some(),
            Some(anchor) => self.progress >= Some(anchor),
        };
        if !comes {
            return None;
        }
        let due = *self.push_due.get_or_insert_with(|| scene.due(scene.now, step, 0));
        // Nobody knows when the recorded server's input was closed: what is left is said before its end, at once.
        let is_closed = scene.hears.is_some_and(|pipe| scene.pipes.is_closed(pipe));
        Some((step, if is_closed { Due::real(scene.now.real) } else { due }))
    }

    /// A server that ended by itself, but not in mid-call, ends when all that was recorded has been played; one whose
    /// last line has no end sends that once its client has closed its side.
    fn end_of_script(&self, scene: Scene<'_>) -> Option<Action> {
        let session = scene.script.session?;
        let end = scene.cassette.sessions[session as usize].end.as_ref()?;
        let pipe = scene.pipe.filter(|pipe| !scene.pipes.has_ended(*pipe))?;
        if !end.is_by_itself() {
            let is_over = scene.pipes.is_closed(pipe) && self.ready.is_empty();
            return is_over.then_some(Action::End { session, run: None });
        }
        let played = self.arrived == scene.script.requests
            && self.arrived > 0
            && self.next_push == scene.script.pushes.len()
            && self.ready.is_empty();
        (played && scene.pipes.is_open(pipe)).then_some(Action::End { session, run: None })
    }
}
