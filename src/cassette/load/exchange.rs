//! Entries of `exchanges`.

use super::{
    super::{
        error::{LoadError, LoadErrorKind, Result},
        model::{Answer, Exchange, Form, Id, Item, Items, Message, Moment, Sse, Unanswered},
        shape::{ANSWER, CLIENT, EXCHANGE, ITEM, SSE},
    },
    Loader,
    message::{Holder, Written},
    resolve::Reference,
};
use crate::wire::Span;

/// What the file says of an item's ids; they are known once the whole exchange is read.
pub(super) struct ItemIds {
    at: usize,
    message: Written,
    answer: Option<(usize, Written)>,
}

impl Loader<'_> {
    pub(super) fn exchange(&mut self) -> Result<()> {
        let mut walk = self.begin(&EXCHANGE)?;
        let errors = self.errors.found.len();
        let index =
            u32::try_from(self.cassette.exchanges.len()).expect("each takes more than one byte of 4 GiB");
        let place = Span::new(walk.start, walk.start).into();
        let mut exchange = Exchange {
            key: Box::default(),
            session: 0,
            client: None,
            body: None,
            is_partial: false,
            http: None,
            after: None,
            server: Items::default(),
            unanswered: None,
            rule: None,
            place,
        };
        let (mut number, mut client) = (1, Written::Ordinary);
        let mut ids = std::mem::take(&mut self.item_ids);
        ids.clear();
        while let Some(member) = self.known(&mut walk)? {
            match member {
                "key" => exchange.key = self.text("key")?.into(),
                "session" => {
                    number = self.number("session", "the number of a session")?;
                    self.numbers.push((index, number, self.reader.at));
                }
                "journal" => {
                    let journal = self.text("journal")?.into();
                    self.cassette.exchange_journals.push((index, journal));
                }
                "match" => exchange.rule = Some(Box::new(self.rule()?)),
                "fault" => {
                    let place = self.reader.value()?.into();
                    self.cassette.exchange_faults.push((index, place));
                }
                "after" => self.after(index, Moment::Client)?,
                "client" => {
                    let message;
                    (message, exchange.body, exchange.is_partial, client) = self.client()?;
                    exchange.client = Some(message);
                }
                "http" => exchange.http = Some(Box::new(self.http()?)),
                "server" => exchange.server = self.server(index, &mut ids)?,
                "unanswered" => exchange.unanswered = Some(self.unanswered()?),
                _ => self.any()?,
            }
        }
        if exchange.key.is_empty() {
            return self.missing(&walk, "a `key`, which names it");
        }
        if exchange.client.is_none() && exchange.server.is_empty() && self.errors.found.len() == errors {
            return self.missing(&walk, "`client`, or for a push `server`");
        }
        exchange.place = Span::new(walk.start, self.reader.at).into();
        self.derive_ids(&mut exchange, number, client, &mut ids)?;
        self.item_ids = ids;
        self.cassette.exchanges.push(exchange);
        Ok(())
    }

    fn server(&mut self, exchange: u32, ids: &mut Vec<ItemIds>) -> Result<Items> {
        // One that is all there is goes into no list.
        let (mut one, mut several) = (None, Vec::new());
        self.list("server", |loader| {
            let n = u32::try_from(ids.len()).expect("each takes more than one byte of 4 GiB");
            let (item, written) = loader.item(exchange, n)?;
            ids.push(written);
            match one.take() {
                None if several.is_empty() => one = Some(item),
                first => several.extend(first.into_iter().chain([item])),
            }
            Ok(())
        })?;
        Ok(one.map_or_else(|| several.into(), Items::from))
    }

    fn after(&mut self, exchange: u32, moment: Moment) -> Result<()> {
        let name = self.string("after", "the key of what came just before")?;
        self.references.push(Reference { exchange, moment, member: "after", name });
        Ok(())
    }

    /// The client's message; of an HTTP request that is none, its request line and its body.
    fn client(&mut self) -> Result<(Message, Option<Box<Message>>, bool, Written)> {
        let mut walk = self.begin(&CLIENT)?;
        let (mut holder, mut body) = (Holder::default(), Holder::default());
        let (mut body_at, mut is_partial) = (None, false);
        while let Some(member) = self.known(&mut walk)? {
            let at = self.reader.at;
            if member == "partial" {
                if body.message.is_none() {
                    let instead = "it stands behind the `body` that it says has no end";
                    let kind = LoadErrorKind::Misplaced {
                        place: walk.shape.name,
                        member: "partial".into(),
                        instead,
                    };
                    return Err(LoadError::new(at, kind));
                }
                is_partial = self.boolean("partial")?;
                continue;
            }
            let is_http = holder.message.as_ref().is_some_and(|message| message.form == Form::Http);
            let is_body = member == "body" || (member == "base64" && is_http);
            let into = if is_body { &mut body } else { &mut holder };
            body_at = body_at.or(is_body.then_some(at));
            if !self.hold(into, &walk, member)? {
                self.any()?;
            }
        }
        let Some(message) = holder.message else {
            let expected = "one of `request`, `notification`, `batch`, `raw`, `base64`, `http`";
            return self.missing(&walk, expected);
        };
        if let Some(at) = body_at.filter(|_| message.form != Form::Http) {
            let instead = "it stands behind `http`, the line of a request that is no message";
            let kind = LoadErrorKind::Misplaced { place: walk.shape.name, member: "body".into(), instead };
            return Err(LoadError::new(at, kind));
        }
        Ok((message, body.message.map(Box::new), is_partial, holder.inside))
    }

    fn item(&mut self, exchange: u32, n: u32) -> Result<(Item, ItemIds)> {
        let mut walk = self.begin(&ITEM)?;
        let mut holder = Holder::default();
        let (mut after_ms, mut guess, mut answer, mut same_as) = (0, false, None, None);
        let (mut on, mut sse) = (None, None);
        while let Some(member) = self.known(&mut walk)? {
            match member {
                "after_ms" => after_ms = self.number("after_ms", "milliseconds, a whole number")?,
                "after" => self.after(exchange, Moment::Item(n))?,
                "guess" => guess = self.boolean("guess")?,
                "on" => on = Some(self.on()?),
                "sse" => sse = Some(Box::new(self.sse()?)),
                "answer" => answer = Some(self.answer(exchange, n)?),
                "same_as" => {
                    same_as = Some(self.string("same_as", "the key of an exchange before this one")?)
                }
                _ => {
                    if !self.hold(&mut holder, &walk, member)? {
                        self.any()?;
                    }
                }
            }
        }
        if let Some(name) = same_as {
            let message =
                Message { form: Form::Result, kind: Form::Result.kind(), place: name.into(), id: Id::Absent };
            holder.set(walk.shape, name.start, "same_as", message)?;
            self.references.push(Reference { exchange, moment: Moment::Item(n), member: "same_as", name });
        }
        holder.check_ids(walk.shape)?;
        let written = holder.written();
        let Some(message) = holder.message else {
            return self.missing(&walk, "a message, such as `result` or `notification`");
        };
        if answer.is_some()
            && !matches!(message.form, Form::Request | Form::Raw | Form::Base64 | Form::Omitted | Form::Batch)
        {
            let instead = "only requests are answered by the client";
            let kind = LoadErrorKind::Misplaced { place: walk.shape.name, member: "answer".into(), instead };
            return Err(LoadError::new(walk.start, kind));
        }
        let is_empty = message.form == Form::Body && message.place.span().of(self.reader.text) == b"\"\"";
        if sse.as_deref().is_some_and(|sse: &Sse| sse.no_data) && !is_empty {
            let instead = "an event without data is an item with `\"body\": \"\"`";
            let (place, member) = (SSE.name, "\"data\": false".into());
            let kind = LoadErrorKind::Misplaced { place, member, instead };
            return Err(LoadError::new(walk.start, kind));
        }
        let (answer, answer_ids) = match answer {
            Some((answer, at, written)) => (Some(Box::new(answer)), Some((at, written))),
            None => (None, None),
        };
        let ids = ItemIds { at: walk.start, message: written, answer: answer_ids };
        Ok((Item { after_ms, message, answer, after: None, guess, on, sse }, ids))
    }

    fn answer(&mut self, exchange: u32, n: u32) -> Result<(Answer, usize, Written)> {
        let mut walk = self.begin(&ANSWER)?;
        let mut holder = Holder::default();
        let (mut after_ms, mut http) = (0, None);
        while let Some(member) = self.known(&mut walk)? {
            match member {
                "after_ms" => after_ms = self.number("after_ms", "milliseconds, a whole number")?,
                "after" => self.after(exchange, Moment::Answer(n))?,
                "http" => http = Some(Box::new(self.http()?)),
                _ => {
                    if !self.hold(&mut holder, &walk, member)? {
                        self.any()?;
                    }
                }
            }
        }
        holder.check_ids(walk.shape)?;
        let written = holder.written();
        match holder.message {
            Some(message) => Ok((Answer { after_ms, message, after: None, http }, walk.start, written)),
            None => self.missing(&walk, "`result` or `error`"),
        }
    }

    fn unanswered(&mut self) -> Result<Unanswered> {
        let span = self.string("unanswered", "`cancelled`, `open`, `lost` or `ended`")?;
        let word = &self.reader.text[span.start + 1..span.end - 1];
        match Unanswered::ALL.into_iter().find(|known| known.word().as_bytes() == word) {
            Some(word) => Ok(word),
            None => self.wrong(span.start, "unanswered", "`cancelled`, `open`, `lost` or `ended`"),
        }
    }

    /// Gives every message of an exchange its id: the written one, or the ordinary one.
    fn derive_ids(
        &mut self,
        exchange: &mut Exchange,
        number: u32,
        client: Written,
        ids: &mut Vec<ItemIds>,
    ) -> Result<()> {
        let counters = self.counters.entry(number).or_default();
        let mut asked = None;
        if let Some(message) = &mut exchange.client {
            message.id = counters.client.derive(message.form, client);
            asked = Some(&message.id).filter(|id| **id != Id::Absent);
        }
        for (item, written) in exchange.server.iter_mut().zip(ids.drain(..)) {
            item.message.id = match item.message.form {
                Form::Result | Form::Error | Form::Omitted => respond(written.message, asked, written.at)?,
                form => counters.server.derive(form, written.message),
            };
            if let (Some(answer), Some((at, written))) = (&mut item.answer, written.answer) {
                let asked = Some(&item.message.id).filter(|id| **id != Id::Absent);
                answer.message.id = match answer.message.form {
                    Form::Result | Form::Error | Form::Omitted => respond(written, asked, at)?,
                    _ => written.given(),
                };
            }
        }
        Ok(())
    }
}

/// The id of a response.
fn respond(written: Written, asked: Option<&Id>, at: usize) -> Result<Id> {
    match (written, asked) {
        (Written::Ordinary, Some(asked)) => Ok(asked.clone()),
        (Written::Ordinary, None) => {
            let kind = LoadErrorKind::Missing {
                place: "a response to no request",
                expected: "its `id`, or `\"no_id\": true`",
            };
            Err(LoadError::new(at, kind))
        }
        (written, _) => Ok(written.given()),
    }
}
