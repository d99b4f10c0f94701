//! What a recording that takes the place of older ones keeps of them.
//!
//! Exchanges are paired by what they are about: first those that ask exactly the same, then the others in their
//! order. The new one gets the name, the notes and the rules that people gave the old one, and where the server
//! said the same as before, the old times, so that only what changed shows in a diff.

use std::{
    collections::{HashMap, VecDeque},
    hash::{DefaultHasher, Hash, Hasher},
    io,
};

use super::{
    Plan,
    drafts::{Frames, Held},
};
use crate::{
    cassette::{
        blob::BlobSource,
        draft::{ExchangeDraft, MessageDraft, Part},
        key,
        model::{self, Cassette, Exchange, Form},
    },
    traffic::{Event, Payload},
    wire::jsonrpc::{Kind, Message},
};

/// What became of the exchanges of the recordings that were replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Say the same as before.
    pub kept: usize,
    /// Say something else.
    pub changed: usize,
    /// Were not there before.
    pub new: usize,
    /// Are there no longer.
    pub gone: usize,
}

impl Plan<'_> {
    /// Finds for each new exchange the old one whose place it takes.
    pub(super) fn pair(&mut self, frames: &mut dyn Frames, blobs: &dyn BlobSource) -> io::Result<()> {
        let mut old = Unpaired::default();
        for (number, exchange) in self.base.exchanges.iter().enumerate() {
            if !self.stays[exchange.session as usize] {
                old.add(number, &self.base.subject(exchange, blobs)?);
            }
        }
        let mut news = Vec::new();
        let mut held = Held::default();
        for (number, added) in self.added.iter().enumerate() {
            for (exchange, skeleton) in self.session(added).exchanges.iter().enumerate() {
                held.read(added.tape, skeleton, frames)?;
                let events = held.events()?;
                let content = events.first().map_or(0, event_content);
                let prefix = skeleton.prefix.to_string();
                news.push((number, exchange, Subject { prefix, content }));
            }
        }
        for is_exact in [true, false] {
            news.retain(|(number, exchange, subject)| {
                let found = old.take(subject, is_exact);
                self.added[*number].instead_of[*exchange] = found;
                found.is_none()
            });
        }
        self.name();
        Ok(())
    }
}

/// What an exchange is about.
#[derive(Debug)]
struct Subject {
    prefix: String,
    content: u64,
}

/// What the first event of an exchange says.
fn event_content(event: &Event<'_>) -> u64 {
    match &event.payload {
        Payload::Request(head) => hash_of(&super::http::request_line(head)),
        Payload::SseEvent(event) => hash_of(&event.data),
        payload => hash_of(&super::fold::line(event.direction, payload).unwrap_or_default()),
    }
}

fn hash_of(line: &[u8]) -> u64 {
    let mut hash = DefaultHasher::new();
    content(&Message::read(line)).hash(&mut hash);
    hash.finish()
}

/// The old exchanges that no new one took the place of, in their order.
#[derive(Debug, Default)]
struct Unpaired {
    exact: HashMap<(String, u64), VecDeque<usize>>,
    alike: HashMap<String, VecDeque<usize>>,
    taken: std::collections::HashSet<usize>,
}

impl Unpaired {
    fn add(&mut self, exchange: usize, subject: &Subject) {
        self.exact.entry((subject.prefix.clone(), subject.content)).or_default().push_back(exchange);
        self.alike.entry(subject.prefix.clone()).or_default().push_back(exchange);
    }

    fn take(&mut self, subject: &Subject, is_exact: bool) -> Option<usize> {
        let queue = match is_exact {
            true => self.exact.get_mut(&(subject.prefix.clone(), subject.content)),
            false => self.alike.get_mut(&subject.prefix),
        }?;
        loop {
            let exchange = queue.pop_front()?;
            if self.taken.insert(exchange) {
                return Some(exchange);
            }
        }
    }
}

/// What a message says, its id and spelling of the envelope left out.
fn content<'a>(message: &Message<'a>) -> (u8, String, Option<&'a [u8]>) {
    let payload = match message.kind {
        Kind::Request | Kind::Notification => message.params(),
        Kind::Result | Kind::Error => message.outcome(),
        Kind::Batch | Kind::Noise => Some(message.bytes),
    };
    (message.kind as u8, message.method().into_owned(), payload)
}

impl Cassette {
    fn subject(&self, exchange: &Exchange, blobs: &dyn BlobSource) -> io::Result<Subject> {
        let first = exchange.client.as_ref().or_else(|| exchange.server.first().map(|item| &item.message));
        let from_client = exchange.client.is_some();
        let line = match first {
            Some(message) => self.line(exchange, from_client, message, blobs)?,
            None => Vec::new(),
        };
        let prefix = key::of_exchange(exchange, &line);
        Ok(Subject { prefix, content: hash_of(&line) })
    }

    /// A message's line; empty for one that is not in the file.
    fn line(
        &self,
        exchange: &Exchange,
        from_client: bool,
        message: &model::Message,
        blobs: &dyn BlobSource,
    ) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        if message.form != Form::Omitted {
            let wire = self.wire(exchange.session, from_client, message, None, blobs, &mut line);
            wire.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        }
        Ok(line)
    }

    /// Gives the draft of a new exchange what people wrote at the old one, and the old times where nothing changed.
    /// Whether nothing did.
    pub(super) fn carry<'a>(
        &'a self,
        old: &Exchange,
        draft: &mut ExchangeDraft<'a>,
        blobs: &dyn BlobSource,
    ) -> io::Result<bool> {
        draft.extra = self.exchange_extra(old);
        let is_same = |from_client, old_message: Option<&model::Message>, new: Option<&MessageDraft<'_>>| {
            let (Some(old_message), Some(new)) = (old_message, new) else {
                return Ok(old_message.is_none() && new.is_none());
            };
            let line = self.line(old, from_client, old_message, blobs)?;
            let is_kept = old_message.form != Form::Omitted && new.omitted.is_none();
            Ok::<_, io::Error>(
                is_kept && content(&Message::read(&line)) == content(&Message::read(&new.bytes)),
            )
        };
        let mut is_kept = is_same(true, old.client.as_ref(), draft.client.as_ref())?
            && is_same(true, old.body.as_deref(), draft.body.as_ref())?
            && old.is_partial == draft.body.as_ref().is_some_and(|body| body.part == Part::Partial)
            && old.http.as_deref() == draft.http.as_ref()
            && old.server.len() == draft.server.len()
            && old.unanswered == draft.unanswered;
        for (old, new) in old.server.iter().zip(&mut draft.server) {
            let answers = (old.answer.as_ref(), new.answer.as_mut());
            if is_same(false, Some(&old.message), Some(&new.message))? {
                new.after_ms = old.after_ms;
            } else {
                is_kept = false;
            }
            match answers {
                (None, None) => {}
                (Some(old), Some(new)) if is_same(true, Some(&old.message), Some(&new.message))? => {
                    new.after_ms = old.after_ms;
                }
                _ => is_kept = false,
            }
        }
        Ok(is_kept)
    }
}
