//! What exchanges name elsewhere, looked up when everything is read.

use std::collections::{BTreeMap, HashMap};

use super::{
    super::{
        error::{LoadError, LoadErrorKind, Result},
        key,
        model::{Exchange, Form, Message, Moment, Ref},
        shape,
    },
    Errors, Loader, implied_session,
    keys::Keys,
    message::RAW,
    short,
};
use crate::wire::{Span, jsonrpc};

/// An `after` or `same_as`, and the moment it stands at.
pub(super) struct Reference {
    pub(super) exchange: u32,
    pub(super) moment: Moment,
    pub(super) member: &'static str,
    pub(super) name: Span,
}

/// What a reference leads to.
enum Found {
    After(Ref),
    Same(Form, super::Place),
}

impl Loader<'_> {
    pub(super) fn resolve(&mut self) -> Result<()> {
        self.resolve_sessions()?;
        let references = std::mem::take(&mut self.references);
        let mut found = Vec::with_capacity(references.len());
        let keys = keys(&self.cassette.exchanges, self.errors)?;
        let mut answers = HashMap::new();
        for reference in &references {
            let name = jsonrpc::text(reference.name.of(self.reader.text));
            let result = if reference.member == "same_as" {
                same(&self.cassette.exchanges, &keys, &mut answers, reference, &name)
            } else {
                after(&self.cassette.exchanges, &keys, &name)
            };
            match result {
                Ok(result) => found.push((reference, result)),
                Err(reason) => {
                    let (member, name) = (reference.member, short(&name));
                    let kind = LoadErrorKind::Reference { member, name, reason };
                    self.errors.keep(LoadError::new(reference.name.start, kind))?;
                }
            }
        }
        for (reference, found) in found {
            self.set(reference, found);
        }
        Ok(())
    }

    fn resolve_sessions(&mut self) -> Result<()> {
        if self.cassette.layout.sessions.is_none() && !self.cassette.exchanges.is_empty() {
            self.cassette.sessions.push(implied_session());
        }
        let mut sessions = BTreeMap::new();
        for (session, index) in self.cassette.sessions.iter().zip(0..) {
            if sessions.insert(session.number, index).is_some() {
                let kind = LoadErrorKind::SessionTaken { number: session.number };
                self.errors.keep(LoadError::new(session.place.start as usize, kind))?;
            }
        }
        let mut numbers = self.numbers.iter().peekable();
        for (exchange, at) in self.cassette.exchanges.iter_mut().zip(0..) {
            let given = numbers.next_if(|(of, ..)| *of == at);
            let (number, at) =
                given.map_or((1, exchange.place.start as usize), |&(_, number, at)| (number, at));
            let Some(index) = sessions.get(&number) else {
                self.errors.keep(LoadError::new(at, LoadErrorKind::NoSession { number }))?;
                continue;
            };
            exchange.session = *index;
        }
        for &(exchange, at) in &self.several_lines {
            let session = self.cassette.exchanges[exchange].session as usize;
            if !self.cassette.sessions[session].is_http() {
                self.errors.keep(LoadError::member(self.reader.text, at, "raw", RAW))?;
            }
        }
        Ok(())
    }

    fn set(&mut self, reference: &Reference, found: Found) {
        let exchange = &mut self.cassette.exchanges[reference.exchange as usize];
        match (found, reference.moment) {
            (Found::After(at), Moment::Client) => exchange.after = Some(at),
            (Found::After(at), Moment::Item(n)) => exchange.server[n as usize].after = Some(at),
            (Found::After(at), Moment::Answer(n)) => {
                if let Some(answer) = &mut exchange.server[n as usize].answer {
                    answer.after = Some(at);
                }
            }
            (Found::Same(form, place), Moment::Item(n)) => {
                let message = &mut exchange.server[n as usize].message;
                (message.form, message.kind, message.place) = (form, form.kind(), place);
            }
            (Found::Same(..), _) => {}
        }
    }
}

/// Looks every key up and takes it in; keys are unique.
fn keys<'e>(exchanges: &'e [Exchange], errors: &mut Errors) -> Result<Keys<'e>> {
    let mut keys = Keys::of(exchanges);
    for (exchange, index) in exchanges.iter().zip(0..) {
        if !keys.insert(index) {
            let kind = LoadErrorKind::KeyTaken { key: short(&exchange.key) };
            errors.keep(LoadError::new(exchange.place.start as usize, kind))?;
        }
    }
    Ok(keys)
}

fn after(exchanges: &[Exchange], keys: &Keys<'_>, name: &str) -> std::result::Result<Found, String> {
    let find = |key: &str| keys.find(key);
    let Some(mut found) = key::parse_reference(name, find) else { return Err(unknown(exchanges, name)) };
    let exchange = &exchanges[found.exchange as usize];
    let exists = match found.moment {
        Moment::Client => true,
        Moment::Item(n) => exchange.server.len() > n as usize,
        Moment::Answer(n) => exchange.server.get(n as usize).is_some_and(|item| item.answer.is_some()),
    };
    if !exists {
        return Err(match found.moment {
            Moment::Answer(_) => "that item has no answer".into(),
            _ if exchange.server.len() == 1 => "that exchange has one item".into(),
            _ => format!("that exchange has {} items", exchange.server.len()),
        });
    }
    // A push has no client message: its key alone means its first item.
    if found.moment == Moment::Client && exchange.client.is_none() {
        found.moment = Moment::Item(0);
    }
    Ok(Found::After(found))
}

/// `answers` holds what earlier `same_as` members were found to be: one may name another.
fn same(
    exchanges: &[Exchange],
    keys: &Keys<'_>,
    answers: &mut HashMap<(u32, Moment), (Form, super::Place)>,
    reference: &Reference,
    name: &str,
) -> std::result::Result<Found, String> {
    let Some(index) = keys.find(name) else { return Err(unknown(exchanges, name)) };
    if index >= reference.exchange {
        return Err("that exchange does not come before this one".into());
    }
    let is_answer = |message: &Message| matches!(message.form, Form::Result | Form::Error);
    let items = exchanges[index as usize].server.iter().zip(0..);
    let answer =
        items.filter(|(item, _)| is_answer(&item.message)).map(|(item, n)| (&item.message, n)).next();
    let Some((message, n)) = answer else {
        return Err("that exchange has no `result` and no `error`".into());
    };
    let (form, place) = *answers.get(&(index, Moment::Item(n))).unwrap_or(&(message.form, message.place));
    answers.insert((reference.exchange, reference.moment), (form, place));
    Ok(Found::Same(form, place))
}

fn unknown(exchanges: &[Exchange], name: &str) -> String {
    match shape::nearest(name, exchanges.iter().map(|exchange| &*exchange.key)) {
        Some(key) => format!("no exchange has that key; did you mean `{}`?", short(key)),
        None => "no exchange has that key; give the key of one, as its `key` member has it".into(),
    }
}
