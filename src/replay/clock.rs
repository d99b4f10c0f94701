//! The two clocks of a replay: that of the world, and that of what is played, which somebody may wind.
//!
//! Recorded waits and those of faults run on the clock of what is played; graces and time limits, which are about what
//! a client really does, on the real one. Where nobody winds it, both are one.

use crate::traffic::Micros;

/// A moment, on both clocks. Neither goes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// On the real one.
    pub real: Micros,
    /// On that of what is played.
    pub played: Micros,
}

impl From<Micros> for Now {
    /// Both clocks are one.
    fn from(now: Micros) -> Self {
        Self { real: now, played: now }
    }
}

/// When something is due: at the first of these times, each on its clock; never where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// On the real one.
    pub real: Option<Micros>,
    /// On that of what is played.
    pub played: Option<Micros>,
}

impl Due {
    /// Never.
    pub const NEVER: Self = Self { real: None, played: None };

    /// At this time on the real clock.
    pub const fn real(at: Micros) -> Self {
        Self { real: Some(at), played: None }
    }

    /// At this time on the clock of what is played.
    pub const fn played(at: Micros) -> Self {
        Self { real: None, played: Some(at) }
    }

    /// At the first of the times of both.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let first = |one: Option<Micros>, other: Option<Micros>| one.into_iter().chain(other).min();
        Self { real: first(self.real, other.real), played: first(self.played, other.played) }
    }

    /// Whether it is time.
    pub fn has_come(self, now: Now) -> bool {
        self.real.is_some_and(|at| at <= now.real) || self.played.is_some_and(|at| at <= now.played)
    }

    /// The first of its times, where both clocks are one.
    pub fn first(self) -> Option<Micros> {
        self.real.into_iter().chain(self.played).min()
    }
}
