//! Which live secrets stand for which recorded ones.

use std::collections::HashMap;

use super::{Found, Replayer, blanks::Filled};
use crate::{
    cassette::{blob::BlobSource, model::Cassette},
    redact::{Pairing, Pairs, Placeholder, Redactor, alike},
    replay::{
        matcher::{Matcher, canonical::holds_placeholder},
        script::{Script, client_message},
    },
    wire::jsonrpc::Message,
};

/// Whose numbers the secrets of an exchange have.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Numbered {
    /// Those of its session.
    Session(u32),
    /// Those of whoever added it later, known by the journal that it came from: secrets were counted anew.
    Journal(Box<str>),
}

/// What a message that was found pairs, until it is played.
#[derive(Debug)]
pub(super) struct Paired {
    pub play: usize,
    pub exchange: u32,
    pub pairs: Pairs,
    /// Values that are not known yet: in pairs they are placeholders of no kind, numbered as they stand here.
    pub unknown: Vec<Box<[u8]>>,
}

/// What tells whether the secrets of a live message are those that the recorded ones stood for so far.
pub(super) struct Secrets<'a> {
    pub cassette: &'a Cassette,
    pub blobs: &'a dyn BlobSource,
    pub matcher: &'a Matcher,
    pub pairings: &'a HashMap<(usize, Numbered), Pairing>,
    pub redactor: &'a Redactor,
    pub play: usize,
    pub script: &'a Script,
}

/// A step, whether that is a repeat, and what it pairs.
type Chosen = (u32, bool, Option<Paired>);

impl Secrets<'_> {
    /// Of steps that equal a message, the one that `choose` takes of those it is told to: of all, or, where that would
    /// break a pair, of those that break none. If all do, the error is the exchange of one.
    pub(super) fn choose(
        &self,
        message: &Message<'_>,
        mut choose: impl FnMut(&dyn Fn(u32) -> bool) -> Option<(u32, bool)>,
    ) -> Option<Result<Chosen, u32>> {
        let (first, repeat) = choose(&|_| true)?;
        if !holds_placeholder(message.bytes) {
            return Some(Ok((first, repeat, None)));
        }
        let pair = |step: u32| self.pair(message, step, None);
        let chosen = match pair(first) {
            Some(paired) => Some((first, repeat, Some(paired))),
            None => choose(&|step| pair(step).is_some()).map(|(step, repeat)| (step, repeat, pair(step))),
        };
        Some(chosen.ok_or_else(|| self.script.steps[first as usize].exchange))
    }

    /// Of steps that equal a message but for their blanks, the one that `choose` takes, if it breaks no pair.
    pub(super) fn choose_filled(
        &self,
        filled: Vec<Filled>,
        choose: impl FnOnce(&dyn Fn(u32) -> bool) -> Option<(u32, bool)>,
    ) -> Option<Result<Chosen, u32>> {
        let (step, repeat) = choose(&|_| true)?;
        let paired = filled.into_iter().find(|(of, _)| *of == step).and_then(|(_, paired)| paired);
        let exchange = self.script.steps[step as usize].exchange;
        Some(paired.map(|paired| (step, repeat, Some(paired))).ok_or(exchange))
    }

    /// What a message pairs if it is taken for what was recorded of a step, which is all of that if not given; none
    /// where that would break a pair.
    fn pair(&self, message: &Message<'_>, step: u32, recorded: Option<&[u8]>) -> Option<Paired> {
        let exchange = self.script.steps[step as usize].exchange;
        let mut room = Vec::new();
        let recorded = recorded.unwrap_or_else(|| {
            let entry = &self.cassette.exchanges[exchange as usize];
            client_message(self.cassette, self.blobs, entry, &mut room);
            &room
        });
        let exempt = self.matcher.places(message, self.script.index.own_table(step));
        let pairs = Pairs::of(message.bytes, recorded, exempt);
        let fresh = Pairing::new();
        let pairing = self.pairings.get(&(self.play, numbered(self.cassette, exchange))).unwrap_or(&fresh);
        pairing.check(&pairs, are_alike(self.redactor, &[])).is_ok().then(|| Paired {
            play: self.play,
            exchange,
            pairs,
            unknown: Vec::new(),
        })
    }
}

pub(super) fn numbered(cassette: &Cassette, exchange: u32) -> Numbered {
    match cassette.added_by(exchange) {
        None => Numbered::Session(cassette.exchanges[exchange as usize].session),
        Some(journal) => Numbered::Journal(journal.into()),
    }
}

/// Tells whether two live placeholders stand for spellings of one value; those of no kind are of values not known yet.
pub(super) fn are_alike<'a>(
    redactor: &'a Redactor,
    unknown: &'a [Box<[u8]>],
) -> impl Fn(&Placeholder, &Placeholder) -> bool + 'a {
    let said = |placeholder: &Placeholder| match placeholder.kind.is_empty() {
        true => unknown.get(placeholder.number as usize).map(|text| &**text),
        false => redactor.said(placeholder),
    };
    move |one, other| said(one).zip(said(other)).is_some_and(|(one, other)| alike(one, other))
}

impl Replayer {
    /// What is played for the message at hand pairs secrets from now on.
    pub(super) fn keep_pairs(&mut self, play: usize, exchange: u32) {
        let paired = self.at_hand.paired.take();
        if let Some(mut paired) = paired.filter(|paired| (paired.play, paired.exchange) == (play, exchange)) {
            for (live, recorded) in paired.pairs.live_mut().filter(|(live, _)| live.kind.is_empty()) {
                *live = self.redactor.stands(&recorded.kind, &paired.unknown[live.number as usize]);
            }
            let key = (play, numbered(&self.cassette, exchange));
            self.pairings.entry(key).or_default().keep(paired.pairs);
        }
    }

    /// Whether a request of a batch pairs what one recorded in a batch, or alone, says; it does from now on.
    pub(super) fn pairs_member(&mut self, request: &Message<'_>, found: Found, recorded: &[u8]) -> bool {
        let exchange = self.exchange_of(found);
        let is_it = |paired: &Paired| (paired.play, paired.exchange) == (found.play, exchange);
        if self.at_hand.paired.as_ref().is_some_and(is_it) {
            // It was found with what it pairs.
            self.keep_pairs(found.play, exchange);
            return true;
        }
        if !holds_placeholder(request.bytes) {
            return true;
        }
        let Found { play, step, .. } = found;
        let secrets = Secrets {
            cassette: &self.cassette,
            blobs: &*self.blobs,
            matcher: &self.matcher,
            pairings: &self.pairings,
            redactor: &self.redactor,
            play,
            script: &self.scripts[self.plays[play].script],
        };
        self.at_hand.paired = secrets.pair(request, step, Some(recorded));
        let pairs = self.at_hand.paired.is_some();
        self.keep_pairs(play, exchange);
        pairs
    }
}
