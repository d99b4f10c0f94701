//! Which plays have something to do: those that something happened to, and those whose time has come.
//!
//! Over HTTP there is a play for each session that ever was, and nearly all of them wait.

use std::collections::BTreeSet;

use crate::traffic::Micros;

/// When each play is to be asked what goes next.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    /// At once; one may stand there more than once.
    now: Vec<usize>,
    /// Later.
    later: BTreeSet<(Micros, usize)>,
    /// For each play, when it stands there.
    of: Vec<Option<Micros>>,
}

impl Agenda {
    /// Something has happened to a play.
    pub(super) fn wake(&mut self, play: usize) {
        self.now.push(play);
    }

    /// The plays that are to be asked now, in order.
    pub(super) fn take(&mut self, now: Micros) -> Vec<usize> {
        while let Some(&(at, play)) = self.later.first().filter(|(at, _)| *at <= now) {
            self.later.remove(&(at, play));
            self.of[play] = None;
            self.now.push(play);
        }
        self.now.sort_unstable();
        self.now.dedup();
        std::mem::take(&mut self.now)
    }

    /// Nothing goes from a play before this time, unless something happens to it.
    pub(super) fn set(&mut self, play: usize, until: Option<Micros>) {
        if self.of.len() <= play {
            self.of.resize(play + 1, None);
        }
        let before = std::mem::replace(&mut self.of[play], until);
        if before != until {
            before.map(|at| self.later.remove(&(at, play)));
            self.later.extend(until.map(|at| (at, play)));
        }
    }

    /// When the next one is due.
    pub(super) fn deadline(&self) -> Option<Micros> {
        self.later.first().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plays_are_asked_when_something_happens_or_their_time_has_come() {
        let mut agenda = Agenda::default();
        agenda.wake(3);
        agenda.wake(1);
        assert_eq!((agenda.take(0), agenda.deadline()), (vec![1, 3], None));
        agenda.set(1, Some(20));
        agenda.set(3, Some(10));
        assert_eq!((agenda.take(9), agenda.deadline()), (vec![], Some(10)));
        agenda.set(3, Some(30));
        agenda.wake(7);
        assert_eq!(agenda.take(20), [1, 7]);
        agenda.set(3, None);
        assert_eq!(agenda.deadline(), None);
    }
}
