//! Requests under the hand of faults: what is said because of them, and when it goes.

use std::collections::{BTreeSet, HashMap, VecDeque};

use super::{
    Engine, Fired, Work,
    pieces::Pieces,
    step::{Output, Step},
};
use crate::{
    report::ledger::Ledger,
    traffic::{Lane, Micros},
};

/// An affected request, until all that is said because of it has gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Acting(u32);

/// All affected requests of a take.
#[derive(Debug, Default)]
pub struct Stage {
    under: Vec<Option<Under>>,
    vacant: Vec<u32>,
    /// Those that have a lane of their own, by it.
    by_lane: HashMap<u32, Acting>,
    /// When the first thing that waits goes, of each that has one.
    due: BTreeSet<(Micros, Acting)>,
    /// Those that let another answer go first.
    yielding: BTreeSet<Acting>,
    pieces: Pieces,
    /// Faults that could change nothing of what they were to act on.
    idle: Vec<Idle>,
}

/// A fault that could change nothing.
#[derive(Debug)]
struct Idle {
    fired: Fired,
    /// The events of its request.
    events: Vec<u64>,
    /// The fault that is told there now, and whether that ends the matter.
    left: Option<(&'static str, bool)>,
}

/// What is told of an affected request elsewhere.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    /// Its events.
    pub events: Vec<u64>,
    /// The live session that asks, by its keeper's number, and the request's id, as it is compared.
    pub asked: (usize, Vec<u8>),
    /// Over HTTP+SSE, the lane of what carried the request: that it was taken in is no part of what is said because of
    /// it.
    pub post: Option<Lane>,
}

#[derive(Debug)]
struct Under {
    works: Vec<Work>,
    origin: Origin,
    /// The lane that is its own, over HTTP.
    lane: Option<Lane>,
    waiting: VecDeque<(Micros, Output)>,
    /// Nothing more goes before this time.
    free_at: Micros,
    /// So much of the wait ends as soon as another answer has gone.
    yields: Option<Micros>,
    /// Nothing more comes.
    is_closed: bool,
    /// Its lane has ended.
    has_ended: bool,
}

impl Stage {
    /// Takes in an affected request; `lane` is that of its response where it has one of its own.
    pub fn begin(&mut self, works: Vec<Work>, origin: Origin, lane: Option<Lane>) -> Acting {
        let under = Under {
            works,
            origin,
            lane,
            waiting: VecDeque::new(),
            free_at: 0,
            yields: None,
            is_closed: false,
            has_ended: false,
        };
        let acting = match self.vacant.pop() {
            Some(at) => {
                self.under[at as usize] = Some(under);
                Acting(at)
            }
            None => {
                self.under.push(Some(under));
                Acting(self.under.len() as u32 - 1)
            }
        };
        self.by_lane.extend(lane.map(|lane| (lane.0, acting)));
        acting
    }

    /// The affected request whose lane an output goes on.
    pub fn on_lane(&self, output: &Output) -> Option<Acting> {
        if self.by_lane.is_empty() {
            return None;
        }
        self.by_lane.get(&output.lane().0).copied()
    }

    /// Whether a lane is that of an affected request.
    pub fn acts_on(&self, lane: Lane) -> bool {
        self.by_lane.contains_key(&lane.0)
    }

    /// Something is said because of an affected request: what goes now is put to `out`.
    pub fn pass(&mut self, now: Micros, acting: Acting, output: Output, out: &mut VecDeque<Output>) {
        let under = self.under[acting.0 as usize].as_ref();
        match under.and_then(|under| under.origin.post) {
            Some(post) if post == output.lane() => self.go(now, None, output, out),
            _ => self.perform(now, acting, vec![Step::Do(output)], out),
        }
    }

    /// As [`Stage::pass`], of a message without an end that is put as a whole one. Where that would go as it was, and
    /// nothing behind it, it goes as it stands (`cut`); if that is not given it does not go, which is told.
    pub fn pass_last(
        &mut self,
        now: Micros,
        acting: Acting,
        (whole, cut): (Output, Option<Output>),
        out: &mut VecDeque<Output>,
    ) -> bool {
        let mut steps = self.worked(acting, vec![Step::Do(whole.clone())]);
        let whole = Step::Do(whole);
        // One that comes twice is whole both times.
        let is_once = steps.iter().filter(|step| **step == whole).count() == 1;
        let is_as_it_was = steps.pop_if(|last| is_once && *last == whole).is_some();
        let is_left = is_as_it_was && cut.is_none();
        steps.extend(cut.filter(|_| is_as_it_was).map(Step::Do));
        self.schedule(now, acting, steps, out);
        is_left
    }

    /// Performs what a fault says in the server's place: later effects act on it too.
    pub fn perform(&mut self, now: Micros, acting: Acting, steps: Vec<Step>, out: &mut VecDeque<Output>) {
        let steps = self.worked(acting, steps);
        self.schedule(now, acting, steps, out);
    }

    /// What faults make of steps.
    fn worked(&mut self, acting: Acting, mut steps: Vec<Step>) -> Vec<Step> {
        let Some(under) = self.under[acting.0 as usize].as_mut() else { return steps };
        for work in &mut under.works {
            steps = work.pass(steps);
        }
        self.idle.extend(under.take_idle());
        steps
    }

    fn schedule(&mut self, now: Micros, acting: Acting, steps: Vec<Step>, out: &mut VecDeque<Output>) {
        let has_others = self.yields(Some(acting));
        let Some(under) = self.under[acting.0 as usize].as_mut() else { return };
        let was_due = under.due();
        let mut going = Vec::new();
        for step in steps {
            match step {
                Step::Wait(time) => under.free_at = under.free_at.max(now).saturating_add(time),
                // Of two that yield, one has to go.
                Step::Yield(_) if has_others => {}
                Step::Yield(time) => {
                    under.free_at = under.free_at.max(now).saturating_add(time);
                    under.yields = Some(time);
                    self.yielding.insert(acting);
                }
                Step::Do(output) => {
                    let is_end = matches!(output, Output::End { .. });
                    let is_own = under.lane == Some(output.lane()) && !is_end;
                    if under.has_ended && is_own {
                        continue;
                    }
                    under.has_ended |= is_own && matches!(output, Output::EndLane { .. });
                    if under.waiting.is_empty() && under.free_at <= now {
                        going.push(output);
                    } else {
                        under.waiting.push_back((under.free_at, output));
                    }
                }
            }
        }
        self.reschedule(acting, was_due);
        going.into_iter().for_each(|output| self.go(now, Some(acting), output, out));
    }

    /// Moves what is due now to `out`.
    pub fn release(&mut self, now: Micros, out: &mut VecDeque<Output>) {
        while let Some(&(_, acting)) = self.due.first().filter(|(due, _)| *due <= now) {
            let Some(under) = self.under[acting.0 as usize].as_mut() else { return };
            let was_due = under.due();
            let mut going = Vec::new();
            while under.due().is_some_and(|due| due <= now) {
                going.extend(under.waiting.pop_front().map(|(_, output)| output));
            }
            if under.waiting.is_empty() && under.yields.take().is_some() {
                self.yielding.remove(&acting);
            }
            self.reschedule(acting, was_due);
            going.into_iter().for_each(|output| self.go(now, Some(acting), output, out));
        }
    }

    /// Something goes; `by` is the affected request that it goes because of.
    pub fn go(&mut self, now: Micros, by: Option<Acting>, output: Output, out: &mut VecDeque<Output>) {
        let is_answer = || output.is_response() || matches!(output, Output::Raw { goes_on: false, .. });
        let is_awaited = self.yields(by) && is_answer();
        self.pieces.go(by, output, out);
        if is_awaited {
            self.follow(now, by, out);
        }
    }

    /// Whether any other request waits for an answer to go.
    fn yields(&self, except: Option<Acting>) -> bool {
        self.yielding.iter().any(|acting| Some(*acting) != except)
    }

    /// An answer has gone: what yielded to it follows.
    fn follow(&mut self, now: Micros, except: Option<Acting>, out: &mut VecDeque<Output>) {
        let follow: Vec<Acting> =
            self.yielding.iter().copied().filter(|acting| Some(*acting) != except).collect();
        for acting in follow {
            self.yielding.remove(&acting);
            let Some(under) = self.under[acting.0 as usize].as_mut() else { continue };
            let was_due = under.due();
            let (Some(yields), Some(due)) = (under.yields.take(), was_due) else { continue };
            let early = due.saturating_sub(now).min(yields);
            under.waiting.iter_mut().for_each(|(due, _)| *due -= early);
            under.free_at -= early.min(under.free_at);
            self.reschedule(acting, was_due);
        }
        self.release(now, out);
    }

    fn reschedule(&mut self, acting: Acting, was_due: Option<Micros>) {
        let Some(under) = self.under[acting.0 as usize].as_ref() else { return };
        let is_due = under.due();
        if was_due != is_due {
            was_due.map(|due| self.due.remove(&(due, acting)));
            self.due.extend(is_due.map(|due| (due, acting)));
        }
        if is_due.is_none() && (under.is_closed || under.has_ended) {
            self.forget(acting);
        }
    }

    /// Takes back, in counts and events, that faults have acted that could change nothing.
    pub(crate) fn take_back_idle(&mut self, engine: &mut Engine, mut ledger: Option<&mut Ledger>) {
        for Idle { fired, events, left } in self.idle.drain(..) {
            engine.take_back(&fired);
            if let Some(ledger) = &mut ledger {
                ledger.was_no_fault(&events, left);
            }
        }
    }

    /// Of faults that were to act, and are not taken back, those that have not done so.
    pub fn not_acted(&self) -> impl Iterator<Item = &Fired> {
        let works = self.under.iter().flatten().flat_map(|under| &under.works);
        works.filter_map(Work::not_acted).chain(self.idle.iter().map(|idle| &idle.fired))
    }

    /// Nothing more is said to anybody.
    pub fn is_over(&mut self) {
        self.idle.extend(self.under.iter_mut().flatten().flat_map(Under::is_over));
    }

    /// Nothing more is said because of a request.
    pub fn close(&mut self, acting: Acting) {
        if let Some(under) = self.under[acting.0 as usize].as_mut() {
            under.is_closed = true;
            self.idle.extend(under.is_over());
            let due = under.due();
            self.reschedule(acting, due);
        }
    }

    /// The client cancels a request of a live session: what waits because of it is not sent any more, and over HTTP the
    /// response stays open, as servers leave it (F10.10). True where its answer goes all the same, for a part of it has
    /// gone already.
    pub fn cancel(&mut self, live: usize, id: &[u8], is_pipe: bool) -> bool {
        let is_its = |under: &Under| {
            let (of, asked) = &under.origin.asked;
            asked == id && (is_pipe && under.lane.is_none() || *of == live)
        };
        let mut goes_on = false;
        for acting in self.due.iter().map(|(_, acting)| *acting).collect::<Vec<_>>() {
            let Some(under) = self.under[acting.0 as usize].as_mut().filter(|under| is_its(under)) else {
                continue;
            };
            if self.pieces.is_of(acting) {
                goes_on = true;
                continue;
            }
            let was_due = under.due();
            under.waiting.clear();
            under.yields = None;
            self.yielding.remove(&acting);
            self.reschedule(acting, was_due);
        }
        goes_on
    }

    /// The client has left a lane: nothing goes on it any more.
    pub fn left(&mut self, lane: Lane) {
        self.pieces.left(lane);
        if let Some(acting) = self.by_lane.get(&lane.0).copied() {
            self.forget(acting);
        }
        // Others share the lane: a pipe, or the stream of HTTP+SSE.
        for acting in self.due.iter().map(|(_, acting)| *acting).collect::<Vec<_>>() {
            let Some(under) = self.under[acting.0 as usize].as_mut() else { continue };
            let was_due = under.due();
            under.waiting.retain(|(_, output)| output.lane() != lane);
            self.reschedule(acting, was_due);
        }
    }

    fn forget(&mut self, acting: Acting) {
        let Some(mut under) = self.under[acting.0 as usize].take() else { return };
        self.idle.extend(under.is_over());
        self.yielding.remove(&acting);
        under.due().map(|due| self.due.remove(&(due, acting)));
        under.lane.map(|lane| self.by_lane.remove(&lane.0));
        self.vacant.push(acting.0);
    }

    /// Whether nothing is under its hand.
    pub const fn is_idle(&self) -> bool {
        self.under.len() == self.vacant.len() && self.pieces.is_empty()
    }

    /// When the next thing is due.
    pub fn deadline(&self) -> Option<Micros> {
        self.due.first().map(|(due, _)| *due)
    }

    /// When the next thing is due, of each affected request of which something waits, in that order.
    pub fn waiting(&self) -> impl Iterator<Item = (Micros, Acting)> {
        self.due.iter().copied()
    }

    /// Whether something waits that is for a lane.
    pub fn owes(&self, lane: Lane) -> bool {
        let is_for = |under: &Under| under.waiting.iter().any(|(_, output)| output.lane() == lane);
        !self.due.is_empty() && self.under.iter().flatten().any(is_for)
    }
}

impl Under {
    fn due(&self) -> Option<Micros> {
        self.waiting.front().map(|(due, _)| *due)
    }

    /// Nothing more comes that its faults could act on: those that are idle by that.
    fn is_over(&mut self) -> Vec<Idle> {
        self.works.iter_mut().for_each(Work::is_over);
        self.take_idle()
    }

    fn take_idle(&mut self) -> Vec<Idle> {
        let fired: Vec<Fired> = self.works.iter_mut().filter_map(Work::take_idle).collect();
        let at_work = || self.works.iter().filter(|work| work.is_at_work());
        let left = at_work().find(|work| work.ends).or_else(|| at_work().next());
        let left = left.map(|work| (work.name, work.ends));
        let events = &self.origin.events;
        fired.into_iter().map(|fired| Idle { fired, events: events.clone(), left }).collect()
    }
}
