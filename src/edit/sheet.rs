//! The changes of one edit, collected and written at once.

use super::parts::{self, Change, Parts, parts};
use crate::{
    cassette::{
        format_exchange, lay_out,
        model::{Cassette, Exchange},
    },
    wire::{Span, jsonrpc},
};

/// The changes that were asked for so far.
#[derive(Debug)]
pub(super) struct Sheet<'a> {
    pub(super) cassette: &'a Cassette,
    /// In entries, and which.
    changes: Vec<(usize, Change)>,
    /// Outside of entries.
    around: Vec<Change>,
    pub(super) told: Vec<String>,
}

impl<'a> Sheet<'a> {
    pub(super) const fn new(cassette: &'a Cassette) -> Self {
        Self { cassette, changes: Vec::new(), around: Vec::new(), told: Vec::new() }
    }

    pub(super) fn text(&self) -> &'a [u8] {
        &self.cassette.text
    }

    pub(super) fn exchange(&self, exchange: usize) -> &'a Exchange {
        &self.cassette.exchanges[exchange]
    }

    /// Where an exchange's entry stands.
    pub(super) fn entry(&self, exchange: usize) -> Span {
        self.exchange(exchange).place.span()
    }

    /// The members of an exchange's entry.
    pub(super) fn members(&self, exchange: usize) -> Parts {
        self.object(self.entry(exchange))
    }

    /// The members of an object that the loader has read as one.
    pub(super) fn object(&self, place: Span) -> Parts {
        parts(self.text(), place).expect("the loader has seen an object here")
    }

    /// The items of an exchange's `server`.
    pub(super) fn items(&self, exchange: usize) -> Option<Parts> {
        parts(self.text(), self.members(exchange).value(self.text(), "server")?)
    }

    /// Changes an entry, unless this place is changed already.
    pub(super) fn change(&mut self, exchange: usize, change: Change) {
        let overlaps = |other: &Span| change.0.start < other.end && other.start < change.0.end;
        if !self.changes.iter().any(|(_, (span, _))| overlaps(span)) {
            self.changes.push((exchange, change));
        }
    }

    /// Changes what stands around the entries.
    pub(super) fn change_around(&mut self, change: Change) {
        self.around.push(change);
    }

    /// An entry as it will be, not yet laid out.
    pub(super) fn draft(&self, exchange: usize) -> Vec<u8> {
        let entry = self.entry(exchange);
        let own = self.changes.iter().filter(|(of, _)| *of == exchange);
        let inside =
            |(span, new): &Change| (Span::new(span.start - entry.start, span.end - entry.start), new.clone());
        let mut changes: Vec<_> = own.map(|(_, change)| inside(change)).collect();
        changes.sort_by_cached_key(|(span, _)| span.start);
        parts::splice(entry.of(self.text()), &changes)
    }

    /// Whether an entry stands in its canonical form.
    pub(super) fn is_canonical(&self, exchange: usize) -> bool {
        let entry = self.entry(exchange);
        parts::indentation(self.text(), entry.start) == Some(b"    ")
            && format_exchange(entry.of(self.text())) == entry.of(self.text())
    }

    /// A value as it will stand at an offset of an entry that was laid out by hand.
    pub(super) fn laid_out(&self, value: &[u8], at: usize) -> Vec<u8> {
        let text = self.text();
        let line = memchr::memrchr(b'\n', &text[..at]).map_or(0, |newline| newline + 1);
        let indent = text[line..at].iter().take_while(|byte| **byte == b' ').count();
        lay_out(value, indent / 2, String::from_utf8_lossy(&text[line..at]).chars().count())
    }

    /// Whether a string of the file says this.
    pub(super) fn says(&self, place: Span, text: &str) -> bool {
        self.text()[place.start] == b'"' && *jsonrpc::text(place.of(self.text())) == *text
    }

    /// The cassette's new text, and what was told.
    pub(super) fn finish(mut self) -> (Vec<u8>, Vec<String>) {
        self.told.dedup();
        let mut touched: Vec<_> = self.changes.iter().map(|(exchange, _)| *exchange).collect();
        touched.sort_unstable();
        touched.dedup();
        let entry = |exchange: usize| {
            let draft = self.draft(exchange);
            let text = if self.is_canonical(exchange) { format_exchange(&draft) } else { draft };
            (self.entry(exchange), text)
        };
        let mut all: Vec<_> = touched.into_iter().map(entry).chain(self.around.iter().cloned()).collect();
        all.sort_by_cached_key(|(span, _)| (span.start, span.end));
        (parts::splice(self.text(), &all), self.told)
    }
}
