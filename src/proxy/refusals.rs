//! Requests over HTTP that went no further than to a front of ours: each reason once, and no more than so many.

use std::sync::Mutex;

use super::lock;
use crate::report::Refused;

/// So many different refusals are told of, each in so many characters: strangers say what stands in them.
const MOST: usize = 100;
const MOST_OF_ONE: usize = 300;

#[derive(Debug, Default)]
pub(super) struct Refusals(Mutex<Vec<Refused>>);

impl Refusals {
    /// A request was refused for this reason, before anybody looked what it asks.
    pub(super) fn add(&self, why: &str) {
        let why: String = why.trim_end().chars().take(MOST_OF_ONE).collect();
        let mut refused = lock(&self.0);
        let is_full = refused.len() >= MOST;
        match refused.iter_mut().rev().find(|known| is_full || known.why == why) {
            Some(known) => known.count += 1,
            None => refused.push(Refused { why, count: 1 }),
        }
    }

    /// All of them.
    pub(super) fn told(&self) -> Vec<Refused> {
        lock(&self.0).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_fill_no_report() {
        let refusals = Refusals::default();
        for n in 0..MOST + 5 {
            refusals.add(&format!("{n} {}", "x".repeat(1_000)));
        }
        refusals.add("no host\n");
        let told = refusals.told();
        assert_eq!(told.len(), MOST);
        assert_eq!(told.iter().map(|refused| refused.count).sum::<u64>(), MOST as u64 + 6);
        assert!(told.iter().all(|refused| refused.why.chars().count() <= MOST_OF_ONE));
    }
}
