//! Two things measured in turn, and the comparison printed beside its goal.
//!
//! Pairs go a b a b, so that whatever else the machine does falls on both. What is reported is the median of the
//! pairs' ratios with the smallest and the largest of them. A timing is never asserted: a missed goal is printed.

use std::fmt;

/// What a figure should be.
#[derive(Clone, Copy)]
pub(crate) enum Goal {
    AtMost(f64),
    AtLeast(f64),
    /// Only to be known.
    None,
}

impl Goal {
    fn is_met(self, figure: f64) -> bool {
        match self {
            Self::AtMost(limit) => figure <= limit,
            Self::AtLeast(limit) => figure >= limit,
            Self::None => true,
        }
    }
}

/// The middle of some figures, and how far they reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    pub(crate) min: f64,
    pub(crate) median: f64,
    pub(crate) max: f64,
}

impl Spread {
    pub(crate) fn of(figures: impl IntoIterator<Item = f64>) -> Self {
        let mut figures: Vec<f64> = figures.into_iter().collect();
        figures.sort_by(f64::total_cmp);
        let (lower, upper) = (figures[(figures.len() - 1) / 2], figures[figures.len() / 2]);
        Self { min: figures[0], median: f64::midpoint(lower, upper), max: figures[figures.len() - 1] }
    }
}

/// How often both sides are measured, after one pair that only warms up.
const PAIRS: usize = 15;

/// What one side gave and what the other one did, by pair.
pub(crate) struct Pairs(Vec<(f64, f64)>);

impl Pairs {
    pub(crate) fn take(mut ours: impl FnMut() -> f64, mut other: impl FnMut() -> f64) -> Self {
        ours();
        other();
        Self((0..PAIRS).map(|_| (ours(), other())).collect())
    }

    /// Prints what both gave in `unit`, and the ratio ours to other.
    pub(crate) fn report_ratio(&self, what: &str, [our_name, other_name]: [&str; 2], unit: Unit, goal: Goal) {
        let ratio = Spread::of(self.0.iter().map(|(ours, other)| ours / other));
        self.report_sides([our_name, other_name], unit);
        report(what, ratio, Unit::TIMES, goal);
    }

    /// Prints what both gave in `unit`, and how much more ours is than the other.
    pub(crate) fn report_difference(&self, what: &str, names: [&str; 2], unit: Unit, goal: Goal) {
        self.report_sides(names, unit);
        report(what, Spread::of(self.0.iter().map(|(ours, other)| ours - other)), unit, goal);
    }

    fn report_sides(&self, [our_name, other_name]: [&str; 2], unit: Unit) {
        report(our_name, Spread::of(self.0.iter().map(|pair| pair.0)), unit, Goal::None);
        report(other_name, Spread::of(self.0.iter().map(|pair| pair.1)), unit, Goal::None);
    }
}

/// Measures twice: with all that takes part on one core, and where the system puts it. There, whether what is woken
/// runs on another core, which may be asleep, makes more of a round trip than what passes it on, and stays so for
/// seconds.
#[cfg(target_os = "linux")]
pub(crate) fn on_one_core_and_free(mut measure: impl FnMut()) {
    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    let any = sched_getaffinity(None).expect("a process may know where it runs");
    let mut one = CpuSet::new();
    one.set((0..CpuSet::MAX_CPU).find(|&core| any.is_set(core)).expect("it runs somewhere"));
    for (name, cores) in [("all on one core", one), ("where the system puts them", any)] {
        println!("  {name}");
        // What is started from now on runs there as well.
        sched_setaffinity(None, &cores).expect("a process may choose among its cores");
        measure();
    }
}

/// Measures where the system puts what takes part: here it cannot be told to.
#[cfg(not(target_os = "linux"))]
pub(crate) fn on_one_core_and_free(mut measure: impl FnMut()) {
    measure();
}

/// How figures are written.
#[derive(Clone, Copy)]
pub(crate) struct Unit {
    name: &'static str,
    /// How many of the measured unit one written one is.
    factor: f64,
    digits: usize,
}

impl Unit {
    pub(crate) const TIMES: Self = Self { name: "times", factor: 1.0, digits: 3 };
    /// Of figures that count something.
    pub(crate) const PIECES: Self = Self { name: "", factor: 1.0, digits: 0 };
    /// Of figures in seconds.
    pub(crate) const MICROSECONDS: Self = Self { name: "µs", factor: 1e-6, digits: 1 };
    /// Of figures in seconds.
    pub(crate) const MILLISECONDS: Self = Self { name: "ms", factor: 1e-3, digits: 1 };
    /// Of figures in answers a second.
    pub(crate) const THOUSANDS: Self = Self { name: "thousand a second", factor: 1e3, digits: 1 };
    /// Of figures in bytes.
    pub(crate) const MEGABYTES: Self = Self { name: "MB", factor: 1e6, digits: 1 };

    fn show(self, figure: f64) -> String {
        format!("{:.*}", self.digits, figure / self.factor)
    }
}

/// Prints one line: a figure, how far it reached, its goal.
pub(crate) fn report(what: &str, spread: Spread, unit: Unit, goal: Goal) {
    let Spread { min, median, max } = spread;
    let range =
        if min < max { format!(" ({} to {})", unit.show(min), unit.show(max)) } else { String::new() };
    let goal = GoalIn { goal, unit, is_met: goal.is_met(median) };
    println!("  {what:<44} {:>9} {}{range}{goal}", unit.show(median), unit.name);
}

/// Prints one line for a figure that was taken once.
pub(crate) fn report_one(what: &str, figure: f64, unit: Unit, goal: Goal) {
    report(what, Spread::of([figure]), unit, goal);
}

struct GoalIn {
    goal: Goal,
    unit: Unit,
    is_met: bool,
}

impl fmt::Display for GoalIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (words, limit) = match self.goal {
            Goal::AtMost(limit) => ("at most", limit),
            Goal::AtLeast(limit) => ("at least", limit),
            Goal::None => return Ok(()),
        };
        let verdict = if self.is_met { "met" } else { "MISSED" };
        write!(f, "   goal: {words} {}: {verdict}", self.unit.show(limit))
    }
}

/// What the numbers above stand on.
pub(crate) fn self_check() {
    assert_eq!(Spread::of([3.0, 1.0, 2.0]), Spread { min: 1.0, median: 2.0, max: 3.0 });
    assert_eq!(Spread::of([4.0, 1.0]).median, 2.5);
    let mut turns = Vec::new();
    let turns_cell = std::cell::RefCell::new(&mut turns);
    let pairs = Pairs::take(
        || (turns_cell.borrow_mut().push('a'), 3.0).1,
        || (turns_cell.borrow_mut().push('b'), 2.0).1,
    );
    assert!(pairs.0.iter().all(|pair| pair.0 / pair.1 == 1.5));
    assert_eq!(turns.len(), 2 * (1 + PAIRS));
    assert!(turns.chunks(2).all(|pair| pair == ['a', 'b']));
    assert!(Goal::AtMost(1.1).is_met(1.1) && !Goal::AtLeast(0.9).is_met(0.89));
}
