//! When a report is told again that changes with each miss.
//!
//! It is told as a whole, so the more misses there are the longer that takes; told at each of them, most of the time
//! of a replay with many would go into it. The first one is told at once.

use crate::traffic::Micros;

/// So many times as long as a telling took, the next one is put off: that is a bound to its share of the time.
const REST: Micros = 10;

/// The times at which a report is told.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// Something has come that is not told yet.
    is_behind: bool,
    /// Before that, nothing is told.
    rests_until: Micros,
}

impl Pace {
    /// Something has come that is to be told.
    pub(super) const fn note(&mut self) {
        self.is_behind = true;
    }

    /// When it is to be told; none while all is.
    pub(super) fn due(&self) -> Option<Micros> {
        self.is_behind.then_some(self.rests_until)
    }

    /// Tells it, if it is due; `now` is the time whenever it is asked.
    pub(super) fn tell(&mut self, now: impl Fn() -> Micros, tell: impl FnOnce()) {
        let Some(due) = self.due() else { return };
        let begins = now();
        if begins < due {
            return;
        }
        tell();
        let ends = now();
        self.is_behind = false;
        self.rests_until = ends.saturating_add(ends.saturating_sub(begins).saturating_mul(REST));
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Misses that come every `every` microseconds, and a report that takes as long as there are misses: when each was
    /// told, and how many it told of.
    fn told(misses: u64, every: Micros) -> Vec<(Micros, u64)> {
        let clock = Cell::new(0);
        let (mut pace, mut told) = (Pace::default(), Vec::new());
        for miss in 1..=misses {
            clock.set(clock.get().max(miss * every));
            pace.note();
            pace.tell(
                || clock.get(),
                || {
                    told.push((clock.get(), miss));
                    clock.set(clock.get() + miss);
                },
            );
        }
        told
    }

    #[test]
    fn the_first_miss_is_told_at_once_and_so_is_each_where_they_are_rare() {
        assert_eq!(told(1, 0), [(0, 1)]);
        let rare = told(100, 2_000);
        assert_eq!(rare.len(), 100);
        assert!(rare.iter().all(|(at, miss)| *at == miss * 2_000));
    }

    #[test]
    fn however_many_misses_come_telling_takes_a_bounded_share_of_the_time() {
        for every in [1, 10, 100, 1_000] {
            let told = told(5_000, every);
            let last = told.last().expect("the first one is told").1;
            let spent: Micros = told.iter().map(|(_, cost)| cost).sum();
            assert!((spent - last) * (REST + 1) <= 5_000 * every, "{every}: {spent}");
            // It is not put off for longer than that either.
            for pair in told.windows(2) {
                let [(before, cost), (at, _)] = pair else { unreachable!() };
                assert!(at - before <= cost * (REST + 1) + every, "{every}: {pair:?}");
            }
        }
    }

    #[test]
    fn what_is_put_off_has_a_time_of_its_own_and_nothing_is_told_twice() {
        let clock = Cell::new(7);
        let mut pace = Pace::default();
        let tell = |pace: &mut Pace| {
            let mut is_told = false;
            pace.tell(
                || clock.get(),
                || {
                    is_told = true;
                    clock.set(clock.get() + 3);
                },
            );
            is_told
        };
        assert_eq!((pace.due(), tell(&mut pace)), (None, false));
        pace.note();
        assert!(tell(&mut pace));
        assert_eq!((pace.due(), tell(&mut pace)), (None, false));
        pace.note();
        assert_eq!(pace.due(), Some(10 + 3 * REST));
        clock.set(10 + 3 * REST - 1);
        assert!(!tell(&mut pace));
        clock.set(10 + 3 * REST);
        assert!(tell(&mut pace));
        assert_eq!(pace.due(), None);
    }
}
