//! The order of a session's messages, where one of them goes: the others keep theirs.
//!
//! A message follows the one that its `after` names, else the one before it in the file. Where that one goes, it
//! follows whatever came just before it, which it names if that is not the one before it in the file now.

use std::collections::HashMap;

use super::{parts::parts, sheet::Sheet};
use crate::{
    cassette::{
        key,
        model::{Cassette, Exchange, Moment, Ref},
        order::timeline,
    },
    wire::{Span, scan},
};

/// What of an exchange goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gone {
    /// Nothing, but for what its changed entry no longer has.
    Nothing,
    /// This item; those behind it move up.
    Item(usize),
    /// All of it.
    Exchange,
}

/// What of an entry's moments is there.
#[derive(Debug, Default)]
struct Present {
    client: bool,
    /// For each item, whether it is answered.
    items: Vec<bool>,
}

impl Present {
    fn of(entry: &[u8]) -> Self {
        let Some(members) = parts(entry, Span::new(0, entry.len())) else { return Self::default() };
        let items = members.value(entry, "server").and_then(|server| parts(entry, server));
        let is_answered =
            |item: Span| parts(entry, item).is_some_and(|item| item.find(entry, "answer").is_some());
        Self {
            client: members.find(entry, "client").is_some(),
            items: items.map_or_else(Vec::new, |items| {
                items.list.iter().map(|item| is_answered(item.value)).collect()
            }),
        }
    }

    /// What becomes of a moment.
    fn fate(&self, gone: Gone, moment: Moment) -> Option<Moment> {
        let moved = |item: u32| match gone {
            Gone::Item(at) if item as usize == at => None,
            Gone::Item(at) if item as usize > at => Some(item - 1),
            _ => Some(item),
        };
        match moment {
            Moment::Client => self.client.then_some(moment),
            Moment::Item(item) => {
                moved(item).filter(|item| self.items.len() > *item as usize).map(Moment::Item)
            }
            Moment::Answer(item) => moved(item)
                .filter(|item| self.items.get(*item as usize).copied().unwrap_or_default())
                .map(Moment::Answer),
        }
    }
}

/// After the changes of an exchange: whatever followed a message of it that is gone has a new predecessor.
pub(super) fn keep(sheet: &mut Sheet<'_>, exchange: usize, gone: Gone) {
    let cassette = sheet.cassette;
    let present = match gone {
        Gone::Exchange => Present::default(),
        _ => Present::of(&sheet.draft(exchange)),
    };
    let is_its = |at: &Ref| at.exchange as usize == exchange;
    let fate = |at: Ref| match is_its(&at) {
        true => present.fate(gone, at.moment).map(|moment| Ref { moment, ..at }),
        false => Some(at),
    };
    if moments(exchange, &cassette.exchanges[exchange]).all(|(at, _)| fate(at) == Some(at)) {
        return;
    }
    let session = cassette.exchanges[exchange].session;
    let of_session: Vec<u32> = (0u32..)
        .zip(&cassette.exchanges)
        .filter(|(_, exchange)| exchange.session == session)
        .map(|(at, _)| at)
        .collect();
    let staying = timeline(cassette, &of_session).into_iter().filter(|at| fate(*at).is_some());
    let mut before = HashMap::new();
    let mut last = None;
    for at in staying {
        before.insert(at, last.replace(at));
    }
    let (mut in_file, mut staying_in_file) = (None, None);
    for other in of_session {
        for (at, named) in moments(other as usize, &cassette.exchanges[other as usize]) {
            let followed = named.or(in_file);
            let is_gone = followed.is_some_and(|followed| fate(followed).is_none());
            let is_moved = named.is_some_and(|named| fate(named) != Some(named));
            if fate(at).is_some() && (is_gone || is_moved) {
                let follows = match is_gone {
                    true => before.get(&at).copied().flatten().filter(|now| Some(*now) != staying_in_file),
                    false => named,
                };
                name_predecessor(sheet, at, follows.and_then(fate));
            }
            in_file = Some(at);
            staying_in_file = fate(at).map(|_| at).or(staying_in_file);
        }
    }
    // Nothing in another session can follow it, but a reference that leads nowhere would not load.
    for (other, moment, named) in references(cassette) {
        if cassette.exchanges[other].session != session && fate(named) != Some(named) {
            name_predecessor(sheet, Ref { exchange: other as u32, moment }, fate(named));
        }
    }
}

/// Writes which moment a message follows; none where it follows the one before it in the file.
fn name_predecessor(sheet: &mut Sheet<'_>, at: Ref, follows: Option<Ref>) {
    let (text, exchange) = (sheet.text(), at.exchange as usize);
    let object = sheet.object(object(sheet, exchange, at.moment));
    let change = match (follows, object.find(text, "after")) {
        (None, None) => return,
        (None, Some(found)) => object.take(found),
        (Some(follows), _) => {
            let key = &sheet.exchange(follows.exchange as usize).key;
            let mut reference = Vec::new();
            scan::push_string(&key::reference(key, follows.moment), &mut reference);
            let behind_key = object.find(text, "key").map_or(0, |at| at + 1);
            object.put(text, behind_key, "after", &reference)
        }
    };
    sheet.change(exchange, change);
    let key = &sheet.exchange(exchange).key;
    sheet.told.push(format!(
        "`{key}` came after a message that is gone or has moved, and keeps its place in the order"
    ));
}

/// The moments of an exchange in the order of the file, each with the one that it names.
fn moments(index: usize, exchange: &Exchange) -> impl Iterator<Item = (Ref, Option<Ref>)> {
    let at = move |moment| Ref { exchange: index as u32, moment };
    let client = exchange.client.as_ref().map(|_| (at(Moment::Client), exchange.after));
    let of_push = exchange.after.filter(|_| exchange.client.is_none());
    let items = (0..).zip(&exchange.server).flat_map(move |(n, item)| {
        let answer = item.answer.as_ref().map(|answer| (at(Moment::Answer(n)), answer.after));
        let named = item.after.or(of_push.filter(|_| n == 0));
        [(at(Moment::Item(n)), named)].into_iter().chain(answer)
    });
    client.into_iter().chain(items)
}

/// Every `after`: whose it is, and what it names.
pub(super) fn references(cassette: &Cassette) -> impl Iterator<Item = (usize, Moment, Ref)> {
    let all = cassette.exchanges.iter().enumerate();
    all.flat_map(|(index, exchange)| moments(index, exchange))
        .filter_map(|(at, named)| named.map(|named| (at.exchange as usize, at.moment, named)))
}

/// The object in which a moment's `after` stands, or would.
pub(super) fn object(sheet: &Sheet<'_>, exchange: usize, moment: Moment) -> Span {
    let entry = sheet.entry(exchange);
    let item = |n: u32| {
        let items = sheet.items(exchange);
        items.and_then(|items| items.list.get(n as usize).map(|item| item.value)).unwrap_or(entry)
    };
    let is_push = sheet.exchange(exchange).client.is_none();
    match moment {
        Moment::Client => entry,
        Moment::Item(0) if is_push && sheet.exchange(exchange).server[0].after.is_none() => entry,
        Moment::Item(n) => item(n),
        Moment::Answer(n) => {
            let item = item(n);
            sheet.object(item).value(sheet.text(), "answer").unwrap_or(item)
        }
    }
}

/// The objects of an exchange that may have an `after`: its entry, its items, and their answers.
pub(super) fn objects(sheet: &Sheet<'_>, exchange: usize) -> Vec<Span> {
    let mut objects = vec![sheet.entry(exchange)];
    for item in sheet.items(exchange).iter().flat_map(|items| &items.list) {
        objects.push(item.value);
        objects.extend(sheet.object(item.value).value(sheet.text(), "answer"));
    }
    objects
}
