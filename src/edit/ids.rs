//! Ids of requests, which are counted: taking a request away, or adding one, would give all behind it other ids.
//!
//! Nobody sees that in a replay, but for messages that name a request by its id. Where a session has some, the
//! request behind the edit has its id written, and loses it again where it is the ordinary one once more.

use std::collections::{HashMap, HashSet};

use super::{parts::parts, sheet::Sheet};
use crate::{
    cassette::model::{Cassette, Exchange, Form, Id, Message},
    wire::Span,
};

/// The members that name a request.
const NAMING: [&[u8]; 2] = [b"requestId", b"subscriptionId"];

/// Whether some message of this text may name a request.
pub(super) fn are_named(text: &[u8]) -> bool {
    NAMING.iter().any(|name| memchr::memmem::find(text, name).is_some())
}

/// The ids that a text names, as far as they are numbers: others are always written.
fn named(text: &[u8]) -> impl Iterator<Item = u64> {
    NAMING.into_iter().flat_map(move |name| {
        memchr::memmem::find_iter(text, name).filter_map(move |at| {
            let behind = &text[at + name.len()..];
            let skipped = behind.iter().take_while(|byte| matches!(byte, b'"' | b'\\' | b':' | b' ')).count();
            let digits = behind[skipped..].iter().take_while(|byte| byte.is_ascii_digit());
            std::str::from_utf8(&behind[skipped..][..digits.count()]).ok()?.parse().ok()
        })
    })
}

/// An id that no request of a session's client has and that nobody names, for one that is added; none where it can be
/// counted as the others are, since none is written and none named.
pub(super) fn free(cassette: &Cassette, session: u32) -> Option<u64> {
    let exchanges = || cassette.exchanges.iter().filter(move |exchange| exchange.session == session);
    let requests = || {
        let clients = exchanges().filter_map(|exchange| exchange.client.as_ref());
        clients.filter(|client| client.form == Form::Request)
    };
    let is_written = |message: &Message| {
        parts(&cassette.text, message.place.span())
            .is_some_and(|request| request.find(&cassette.text, "id").is_some())
    };
    let is_named = || exchanges().any(|exchange| are_named(cassette.at(exchange.place)));
    if !requests().any(is_written) && !is_named() {
        return None;
    }
    let used = requests().filter_map(|client| match client.id {
        Id::Number(number) => Some(number),
        _ => None,
    });
    let names = exchanges().flat_map(|exchange| named(cassette.at(exchange.place)));
    used.chain(names).max().map_or(Some(0), |highest| highest.checked_add(1))
}

/// The text with ids written, where an edit would have changed one that is named. None where there are none.
pub(super) fn keep(before: &Cassette, after: &Cassette, told: &mut Vec<String>) -> Option<Vec<u8>> {
    let old: HashMap<&str, &Exchange> =
        before.exchanges.iter().map(|exchange| (&*exchange.key, exchange)).collect();
    let mut sheet = Sheet::new(after);
    let (mut settled, mut has_changed) = (HashSet::new(), false);
    for (index, exchange) in after.exchanges.iter().enumerate() {
        let Some(old) = old.get(&*exchange.key) else { continue };
        for (side, was, is) in requests(old, exchange) {
            let (Id::Number(number), Id::Number(counted)) = (&was.id, &is.id) else { continue };
            let is_written = |cassette: &Cassette, message: &Message| {
                let request = parts(&cassette.text, message.place.span());
                request.is_some_and(|request| request.find(&cassette.text, "id").is_some())
            };
            if was.id == is.id || is_written(after, is) || !settled.insert((exchange.session, side)) {
                continue;
            }
            let of_session = after.exchanges.iter().filter(|other| other.session == exchange.session);
            if of_session
                .flat_map(|other| named(after.at(other.place)))
                .any(|name| name >= *number.min(counted))
            {
                let request = sheet.object(is.place.span());
                sheet.change(index, request.add_member(&after.text, 0, "id", number.to_string().as_bytes()));
                told.push(format!(
                    "`{}` has its id written: the edit would have changed it, and it is named",
                    exchange.key
                ));
                has_changed = true;
            }
        }
    }
    if after.exchanges.len() < before.exchanges.len() {
        has_changed |= forget(before, &mut sheet);
    }
    has_changed.then(|| sheet.finish().0)
}

/// Takes away ids that were no ordinary ones until an exchange was removed.
fn forget(before: &Cassette, sheet: &mut Sheet<'_>) -> bool {
    let (after, text) = (sheet.cassette, sheet.text());
    let known: HashSet<&str> = before.exchanges.iter().map(|exchange| &*exchange.key).collect();
    let name = |cassette: &Cassette, (at, item): (usize, Option<usize>)| {
        (cassette.exchanges[at].key.to_string(), item)
    };
    let were: HashSet<_> = ordinary(before).map(|place| name(before, place)).collect();
    let mut has_changed = false;
    for (at, item) in ordinary(after) {
        if were.contains(&name(after, (at, item))) || !known.contains(&*after.exchanges[at].key) {
            continue;
        }
        let (exchange, items) = (&after.exchanges[at], sheet.items(at));
        let items = || items.iter().flat_map(|items| items.list.iter().map(|item| item.value));
        let (message, responses) = match item {
            None => (exchange.client.as_ref(), items().collect::<Vec<_>>()),
            Some(n) => {
                let answer = items().nth(n).and_then(|item| sheet.object(item).value(text, "answer"));
                (exchange.server.get(n).map(|item| &item.message), answer.into_iter().collect())
            }
        };
        // A response with an id of its own says more beside the id of its request.
        let deviates = |response: &Span| {
            parts(text, *response)
                .is_some_and(|parts| ["id", "no_id"].iter().any(|name| parts.find(text, name).is_some()))
        };
        let Some(request) = message.map(|message| sheet.object(message.place.span())) else { continue };
        if let Some(found) = request.find(text, "id").filter(|_| !responses.iter().any(deviates)) {
            sheet.change(at, request.take(found));
            has_changed = true;
        }
    }
    has_changed
}

/// The requests that have their ordinary id, written or not: of which exchange, and of the server's in which item.
fn ordinary(cassette: &Cassette) -> impl Iterator<Item = (usize, Option<usize>)> {
    let mut next: HashMap<(u32, bool), Id> = HashMap::new();
    let exchanges = cassette.exchanges.iter().enumerate();
    let messages = exchanges.flat_map(|(at, exchange)| {
        let client = exchange.client.iter().map(move |client| (at, None, client));
        let items = exchange.server.iter().enumerate().map(move |(n, item)| (at, Some(n), &item.message));
        client.chain(items)
    });
    messages.filter_map(move |(at, item, message)| {
        let counter = (cassette.exchanges[at].session, item.is_none());
        let is_request = message.form == Form::Request;
        let due = is_request.then(|| next.insert(counter, message.id.next()).unwrap_or(Id::Number(0)));
        (due.as_ref() == Some(&message.id)).then_some((at, item))
    })
}

/// The requests of both sides of an exchange, as they were and as they are: true for the client's.
fn requests<'a>(
    old: &'a Exchange,
    new: &'a Exchange,
) -> impl Iterator<Item = (bool, &'a Message, &'a Message)> {
    let client = old.client.iter().zip(&new.client).map(|(was, is)| (true, was, is));
    let are_paired = old.server.len() == new.server.len();
    let items = old.server.iter().zip(&new.server).filter(move |_| are_paired);
    client
        .chain(items.map(|(was, is)| (false, &was.message, &is.message)))
        .filter(|(_, was, is)| was.form == Form::Request && is.form == Form::Request)
}
