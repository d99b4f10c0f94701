//! Which live secrets stand for which recorded ones.

use std::collections::HashMap;

use super::Replayer;
use crate::{
    cassette::{blob::BlobSource, model::Cassette},
    redact::{Pairing, Pairs},
    replay::{
        matcher::canonical::PLACEHOLDER,
        script::{Step, client_message},
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
    play: usize,
    exchange: u32,
    pairs: Pairs,
}

/// What tells whether the secrets of a live message are those that the recorded ones stood for so far.
pub(super) struct Secrets<'a> {
    pub cassette: &'a Cassette,
    pub blobs: &'a dyn BlobSource,
    pub pairings: &'a HashMap<(usize, Numbered), Pairing>,
    pub play: usize,
}

/// A step, whether that is a repeat, and what it pairs.
type Chosen = (u32, bool, Option<Paired>);

/// Whether a message holds a secret.
fn holds_any(message: &[u8]) -> bool {
    PLACEHOLDER.find(message).is_some()
}

impl Secrets<'_> {
    /// Of steps that equal a message, the one that `choose` takes of those it is told to: of all, or, where that would
    /// break a pair, of those that break none. If all do, the error is the exchange of one.
    pub(super) fn choose(
        &self,
        message: &Message<'_>,
        steps: &[Step],
        mut choose: impl FnMut(&dyn Fn(u32) -> bool) -> Option<(u32, bool)>,
    ) -> Option<Result<Chosen, u32>> {
        let (first, repeat) = choose(&|_| true)?;
        if !holds_any(message.bytes) {
            return Some(Ok((first, repeat, None)));
        }
        let exchange = |step: u32| steps[step as usize].exchange;
        let pair = |step: u32| self.pair(message, exchange(step));
        let chosen = match pair(first) {
            Some(paired) => Some((first, repeat, Some(paired))),
            None => choose(&|step| pair(step).is_some()).map(|(step, repeat)| (step, repeat, pair(step))),
        };
        Some(chosen.ok_or_else(|| exchange(first)))
    }

    /// What the message pairs if it is taken for that of an exchange; none where that would break a pair.
    fn pair(&self, message: &Message<'_>, exchange: u32) -> Option<Paired> {
        let mut recorded = Vec::new();
        let entry = &self.cassette.exchanges[exchange as usize];
        client_message(self.cassette, self.blobs, entry, &mut recorded);
        self.pair_with(message, exchange, &recorded)
    }

    /// The same of a part of that message.
    fn pair_with(&self, message: &Message<'_>, exchange: u32, recorded: &[u8]) -> Option<Paired> {
        let pairs = Pairs::of(message.bytes, recorded);
        let fresh = Pairing::new();
        let pairing = self.pairings.get(&(self.play, numbered(self.cassette, exchange))).unwrap_or(&fresh);
        pairing.check(&pairs).is_ok().then_some(Paired { play: self.play, exchange, pairs })
    }
}

fn numbered(cassette: &Cassette, exchange: u32) -> Numbered {
    match cassette.added_by(exchange) {
        None => Numbered::Session(cassette.exchanges[exchange as usize].session),
        Some(journal) => Numbered::Journal(journal.into()),
    }
}

impl Replayer {
    /// What is played for the message at hand pairs secrets from now on.
    pub(super) fn keep_pairs(&mut self, play: usize, exchange: u32) {
        let paired = self.at_hand.paired.take();
        if let Some(paired) = paired.filter(|paired| (paired.play, paired.exchange) == (play, exchange)) {
            let key = (play, numbered(&self.cassette, exchange));
            self.pairings.entry(key).or_default().keep(paired.pairs);
        }
    }

    /// Whether a request of a batch pairs what one recorded in a batch, or alone, says; it does from now on.
    pub(super) fn pairs_member(
        &mut self,
        request: &Message<'_>,
        play: usize,
        exchange: u32,
        recorded: &[u8],
    ) -> bool {
        if !holds_any(request.bytes) {
            return true;
        }
        let (cassette, pairings) = (&*self.cassette, &self.pairings);
        let secrets = Secrets { cassette, blobs: &*self.blobs, pairings, play };
        self.at_hand.paired = secrets.pair_with(request, exchange, recorded);
        let pairs = self.at_hand.paired.is_some();
        self.keep_pairs(play, exchange);
        pairs
    }
}
