//! Whole exchanges: taken away, added, copied.

use super::{
    error::{EditError, Result},
    find, ids,
    order::{self, Gone},
    parts::{Parts, parts},
    same,
    sheet::Sheet,
};
use crate::{
    cassette::{
        blob::BlobSource,
        format_exchange,
        key::{self, Keys},
        model::{Cassette, Form},
    },
    wire::{Span, jsonrpc, scan},
};

/// Where an exchange is added.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Position {
    /// Behind all others.
    #[default]
    End,
    /// Before the one with this key.
    Before(String),
    /// Behind the one with this key.
    After(String),
}

pub(super) fn remove(sheet: &mut Sheet<'_>, exchange: usize) {
    if let Some(entries) = entries(sheet) {
        sheet.change_around(entries.take_lines(sheet.text(), exchange));
    }
    same::keep_others(sheet, exchange, true);
    order::keep(sheet, exchange, Gone::Exchange);
}

pub(super) fn insert(
    sheet: &mut Sheet<'_>,
    blobs: &dyn BlobSource,
    entry: &[u8],
    position: &Position,
) -> Result<()> {
    let cassette = sheet.cassette;
    let count = cassette.exchanges.len();
    let (at, neighbour) = match position {
        Position::End => (count, count.checked_sub(1)),
        Position::Before(key) => find(cassette, key).map(|at| (at, Some(at)))?,
        Position::After(key) => find(cassette, key).map(|at| (at + 1, Some(at)))?,
    };
    let mut entry = scan::trim(entry).of(entry).to_vec();
    if object(&entry)?.find(&entry, "session").is_none()
        && let Some(number) = neighbour.map(|neighbour| session(cassette, neighbour)).filter(|n| *n != 1)
    {
        let change = object(&entry)?.add_member(&entry, 0, "session", number.to_string().as_bytes());
        entry = super::parts::splice(&entry, &[change]);
    }
    if object(&entry)?.find(&entry, "key").is_none() {
        let key = new_key(cassette, blobs, &entry, at)?;
        entry = with_key(&entry, &key)?;
        sheet.told.push(format!("added `{key}`"));
    }
    if let Some(id) = session_of(cassette, &entry)?.and_then(|session| ids::free(cassette, session)) {
        entry = with_id(&entry, id);
    }
    add(sheet, at, &format_exchange(&entry));
    Ok(())
}

pub(super) fn duplicate(sheet: &mut Sheet<'_>, exchange: usize, name: Option<&str>) {
    let (cassette, text) = (sheet.cassette, sheet.text());
    let original = sheet.exchange(exchange);
    let key = name.map_or_else(|| next_key(cassette, &original.key), str::to_owned);
    let mut copy = Sheet::new(cassette);
    let members = sheet.members(exchange);
    let mut raw = Vec::new();
    scan::push_string(&key, &mut raw);
    copy.change(exchange, members.put(text, 0, "key", &raw));
    // The copy follows its original; when each of its messages came among those of others is not true of it.
    for object in order::objects(sheet, exchange) {
        let parts = sheet.object(object);
        if let Some(at) = parts.find(text, "after") {
            copy.change(exchange, parts.take(at));
        }
    }
    let asks = original.client.as_ref().filter(|client| client.form == Form::Request);
    // A subscription's messages name its request.
    if let Some(client) = original.client.as_ref().filter(|client| client.form == Form::Request)
        && ids::are_named(sheet.entry(exchange).of(text))
    {
        let (mut id, parts) = (Vec::new(), sheet.object(client.place.span()));
        client.id.push(&mut id);
        copy.change(exchange, parts.put(text, 0, "id", &id));
    } else if let Some((client, id)) = asks.zip(ids::free(cassette, original.session)) {
        let parts = sheet.object(client.place.span());
        copy.change(exchange, parts.put(text, 0, "id", id.to_string().as_bytes()));
    }
    let mut entry = copy.draft(exchange);
    if sheet.is_canonical(exchange) {
        entry = format_exchange(&entry);
    }
    add(sheet, exchange + 1, &entry);
    sheet.told.push(format!("added `{key}`"));
}

/// Puts an entry before the one with this index.
fn add(sheet: &mut Sheet<'_>, at: usize, entry: &[u8]) {
    let text = sheet.text();
    let alone = [b"\n    ", entry, b"\n  "].concat();
    let change = match entries(sheet) {
        Some(entries) if !entries.list.is_empty() => entries.add(text, at, entry),
        Some(entries) => entries.add(text, 0, &alone),
        None => {
            let document = sheet.object(scan::trim(text));
            let list = [b"[", &alone[..], b"]"].concat();
            document.add_member(text, document.list.len(), "exchanges", &list)
        }
    };
    sheet.change_around(change);
}

fn entries(sheet: &Sheet<'_>) -> Option<Parts> {
    parts(sheet.text(), sheet.cassette.layout.exchanges?.span())
}

fn object(entry: &[u8]) -> Result<Parts> {
    let parts = parts(entry, Span::new(0, entry.len())).filter(|parts| parts.is_object);
    let expected = "an exchange, a JSON object such as {\"client\": {\"request\": …}, \"server\": […]}";
    parts.ok_or(EditError::Json { expected, found: "other JSON" })
}

fn with_key(entry: &[u8], key: &str) -> Result<Vec<u8>> {
    let mut raw = Vec::new();
    scan::push_string(key, &mut raw);
    let change = object(entry)?.add_member(entry, 0, "key", &raw);
    Ok(super::parts::splice(entry, &[change]))
}

/// The place of the session that an entry belongs to.
fn session_of(cassette: &Cassette, entry: &[u8]) -> Result<Option<u32>> {
    let number = object(entry)?.value(entry, "session").map(|span| span.of(entry));
    let number = number.map_or(Some(1), |number| std::str::from_utf8(number).ok()?.parse().ok());
    let place = cassette.sessions.iter().position(|session| Some(session.number) == number);
    Ok(place.map(|place| place as u32))
}

/// An entry whose client's request has an id; the same where it has one, or is another message.
fn with_id(entry: &[u8], id: u64) -> Vec<u8> {
    let inside = |span: Span, name: &str| parts(entry, span)?.value(entry, name);
    let request = inside(Span::new(0, entry.len()), "client").and_then(|client| inside(client, "request"));
    let request = request.and_then(|request| parts(entry, request)).filter(|request| request.is_object);
    match request.filter(|request| request.find(entry, "id").is_none()) {
        Some(request) => {
            let change = request.add_member(entry, 0, "id", id.to_string().as_bytes());
            super::parts::splice(entry, &[change])
        }
        None => entry.to_vec(),
    }
}

fn session(cassette: &Cassette, exchange: usize) -> u32 {
    cassette.sessions[cassette.exchanges[exchange].session as usize].number
}

/// The key that a recorder would give an entry: the loader finds out what it is about.
fn new_key(cassette: &Cassette, blobs: &dyn BlobSource, entry: &[u8], at: usize) -> Result<String> {
    let mut keys = Keys::of(cassette);
    let for_now = keys.next("added");
    let mut trial = Sheet::new(cassette);
    add(&mut trial, at, &with_key(entry, &for_now)?);
    let loaded = Cassette::load(trial.finish().0, blobs)?;
    let exchange = loaded.find(&for_now).expect("it was just added");
    let first = exchange.client.as_ref().or_else(|| exchange.server.first().map(|item| &item.message));
    let mut line = Vec::new();
    if let Some(first) = first.filter(|first| first.form != Form::Omitted) {
        loaded.wire(exchange.session, exchange.client.is_some(), first, None, blobs, &mut line)?;
    }
    Ok(keys.next(&key::of_exchange(exchange, &line)))
}

/// The next key after one, by its number; a key without number is the first of its kind.
fn next_key(cassette: &Cassette, key: &str) -> String {
    let mut keys = Keys::of(cassette);
    let numbered = key.rsplit_once(" @").filter(|(prefix, n)| !prefix.is_empty() && n.parse::<u32>().is_ok());
    match numbered {
        Some((prefix, _)) => keys.next(prefix),
        None => {
            keys.take(&format!("{key} @1"));
            keys.next(key)
        }
    }
}

/// Whether an exchange is a request of the client, by its line.
pub(super) fn asks(
    cassette: &Cassette,
    blobs: &dyn BlobSource,
    exchange: usize,
    line: &mut Vec<u8>,
) -> Result<bool> {
    let exchange = &cassette.exchanges[exchange];
    let Some(client) = &exchange.client else { return Ok(false) };
    if matches!(client.form, Form::Omitted | Form::Http) {
        return Ok(false);
    }
    cassette.wire(exchange.session, true, client, None, blobs, line)?;
    Ok(jsonrpc::Message::read(line).kind == jsonrpc::Kind::Request)
}
