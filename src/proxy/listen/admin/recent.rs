//! The last events of a run.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
};

use super::super::{super::lock, Happened};
use crate::report::events::Event;

/// So many are kept.
const MOST: usize = 10_000;

#[derive(Debug, Default)]
pub(in super::super) struct Recent(Mutex<VecDeque<Event>>);

impl Recent {
    /// Keeps what happens, and passes it on.
    pub(in super::super) fn listening(self: &Arc<Self>, further: Option<Happened>) -> Happened {
        let recent = Arc::clone(self);
        Arc::new(move |events| {
            {
                let mut kept = lock(&recent.0);
                kept.extend(events.iter().cloned());
                let too_many = kept.len().saturating_sub(MOST);
                kept.drain(..too_many);
            }
            if let Some(further) = &further {
                further(events);
            }
        })
    }

    /// All that are kept, in the order of their outcomes.
    pub(super) fn all(&self) -> Vec<Event> {
        lock(&self.0).iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_ones_are_kept_and_all_are_passed_on() {
        let event = |seq: usize| -> Event {
            let line = format!(r#"{{"seq":{seq},"at_ms":0,"lane":0,"method":"ping","outcome":"answered"}}"#);
            serde_json::from_str(&line).expect("an event")
        };
        let passed = Arc::new(Mutex::new(0));
        let further = {
            let passed = Arc::clone(&passed);
            Arc::new(move |events: Vec<Event>| *lock(&passed) += events.len()) as Happened
        };
        let recent = Arc::new(Recent::default());
        let listening = recent.listening(Some(further));
        (1..=MOST / 2).for_each(|seq| listening(vec![event(seq)]));
        listening((1..=MOST).map(event).collect());
        let kept = recent.all();
        assert_eq!((kept.len(), kept[0].seq, *lock(&passed)), (MOST, 1, MOST / 2 + MOST));
    }
}
