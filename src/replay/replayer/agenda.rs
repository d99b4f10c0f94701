//! Which plays have something to do: those that something happened to, and those whose time has come.
//!
//! Over HTTP there is a play for each session that ever was, and nearly all of them wait.

use std::collections::BTreeSet;

use crate::{
    replay::clock::{Due, Now},
    traffic::Micros,
};

/// When each play is to be asked what goes next.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    /// At once; one may stand there more than once.
    now: Vec<usize>,
    /// Room for that.
    room: Vec<usize>,
    /// Later, on the real clock.
    real: BTreeSet<(Micros, usize)>,
    /// Later, on that of what is played.
    played: BTreeSet<(Micros, usize)>,
    /// For each play, when it stands there.
    of: Vec<Due>,
}

impl Agenda {
    /// Something has happened to a play.
    pub(super) fn wake(&mut self, play: usize) {
        self.now.push(play);
    }

    /// The plays that are to be asked now, in order; the list comes [back](Self::have_been_asked).
    pub(super) fn take(&mut self, now: Now) -> Vec<usize> {
        for (later, now) in [(&mut self.real, now.real), (&mut self.played, now.played)] {
            while let Some(&(at, play)) = later.first().filter(|(at, _)| *at <= now) {
                later.remove(&(at, play));
                self.now.push(play);
            }
        }
        self.now.sort_unstable();
        self.now.dedup();
        std::mem::replace(&mut self.now, std::mem::take(&mut self.room))
    }

    /// All plays of a list have been asked.
    pub(super) fn have_been_asked(&mut self, mut plays: Vec<usize>) {
        plays.clear();
        self.room = plays;
    }

    /// Nothing goes from a play before this time, unless something happens to it.
    pub(super) fn set(&mut self, play: usize, until: Due) {
        if self.of.len() <= play {
            self.of.resize(play + 1, Due::NEVER);
        }
        let before = std::mem::replace(&mut self.of[play], until);
        for (later, before, until) in
            [(&mut self.real, before.real, until.real), (&mut self.played, before.played, until.played)]
        {
            if before != until {
                before.map(|at| later.remove(&(at, play)));
            }
            later.extend(until.map(|at| (at, play)));
        }
    }

    /// When the next one is due.
    pub(super) fn due(&self) -> Due {
        let first = |later: &BTreeSet<(Micros, usize)>| later.first().map(|(at, _)| *at);
        Due { real: first(&self.real), played: first(&self.played) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plays_are_asked_when_something_happens_or_their_time_has_come() {
        let mut agenda = Agenda::default();
        let at = |real, played| Now { real, played };
        agenda.wake(3);
        agenda.wake(1);
        assert_eq!((agenda.take(at(0, 0)), agenda.due()), (vec![1, 3], Due::NEVER));
        agenda.set(1, Due::real(20));
        agenda.set(3, Due::played(10));
        let due = Due { real: Some(20), played: Some(10) };
        assert_eq!((agenda.take(at(19, 9)), agenda.due()), (vec![], due));
        agenda.set(3, Due::played(30));
        agenda.wake(7);
        assert_eq!(agenda.take(at(20, 29)), vec![1, 7]);
        agenda.set(1, Due::real(20));
        agenda.set(3, Due::NEVER);
        assert_eq!((agenda.due(), agenda.take(at(20, 99))), (Due::real(20), vec![1]));
    }
}
