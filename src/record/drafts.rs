//! The second pass: one exchange's messages, read again from their journal, as a draft.

use std::{borrow::Cow, io, ops::Range};

use super::{Carrier, Exchange, Moment, Session, http::Heads};
use crate::{
    cassette::{
        draft::{AnswerDraft, ExchangeDraft, ItemDraft, round_after_ms},
        journal::{Entry, FramePlace, decode},
        key, model,
        spelling::Spelling,
    },
    traffic::{Event, Micros},
};

/// Where the frames of journals are read from again.
pub trait Frames {
    /// Appends the frame at this place of the journal that the tape with this number was folded from.
    ///
    /// # Errors
    /// Whatever reading a file may bring.
    fn read(&mut self, tape: usize, place: FramePlace, out: &mut Vec<u8>) -> io::Result<()>;
}

/// Journals in memory.
impl Frames for &[Vec<u8>] {
    fn read(&mut self, tape: usize, place: FramePlace, out: &mut Vec<u8>) -> io::Result<()> {
        let start = usize::try_from(place.at).unwrap_or(usize::MAX);
        let frame = self[tape].get(start..).and_then(|rest| rest.get(..place.len as usize));
        out.extend_from_slice(frame.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// The moments of an exchange as they stand in the file, each with what it is there.
fn moments(exchange: &Exchange) -> impl Iterator<Item = (Moment, model::Moment)> {
    let client = exchange.client.map(|client| (client, model::Moment::Client));
    let items = (0..).zip(&exchange.server).flat_map(|(number, item)| {
        let answer = item.answer.map(|answer| (answer, model::Moment::Answer(number)));
        [Some((item.moment, model::Moment::Item(number))), answer].into_iter().flatten()
    });
    client.into_iter().chain(items)
}

/// The HTTP requests and responses that carried an exchange and the answers in it.
fn carriers(exchange: &Exchange) -> impl Iterator<Item = &Carrier> {
    let answers = exchange.server.iter().filter_map(|item| item.answer_http.as_deref());
    exchange.http.as_deref().into_iter().chain(answers)
}

/// The frames of one exchange, its moments first; the room is used again for the next.
#[derive(Debug, Default)]
pub(super) struct Held {
    bytes: Vec<u8>,
    frames: Vec<Range<usize>>,
}

impl Held {
    pub(super) fn read(
        &mut self,
        tape: usize,
        exchange: &Exchange,
        frames: &mut dyn Frames,
    ) -> io::Result<()> {
        self.bytes.clear();
        self.frames.clear();
        let heads = carriers(exchange).flat_map(Carrier::places);
        for place in moments(exchange).map(|(moment, _)| moment.place).chain(heads) {
            let start = self.bytes.len();
            frames.read(tape, place, &mut self.bytes)?;
            self.frames.push(start..self.bytes.len());
        }
        Ok(())
    }

    /// The events in these frames.
    ///
    /// # Errors
    /// When they are not those that were read before: somebody changed the journal.
    pub(super) fn events(&self) -> io::Result<Vec<Event<'_>>> {
        let event = |range: &Range<usize>| match decode(&self.bytes[range.clone()]) {
            Some(Entry::Event(event)) => Ok(event),
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "the journal was changed while it was read")),
        };
        self.frames.iter().map(event).collect()
    }
}

/// Makes the drafts of one session's exchanges, which must be asked for in order.
pub(super) struct Drafts<'a> {
    session: &'a Session,
    number: u32,
    spelling: &'a Spelling,
    /// What the servers called the sessions of this recording, each with its number.
    live_ids: &'a [(&'a [u8], u32)],
    /// The key of each exchange.
    keys: &'a [String],
    /// The session's moments in the order in which they passed, each with its exchange.
    passed: Vec<(usize, Moment, model::Moment)>,
    /// Which of them stands in the file before the next one.
    before: Option<u32>,
}

impl<'a> Drafts<'a> {
    pub(super) fn new(
        session: &'a Session,
        spelling: &'a Spelling,
        number: u32,
        live_ids: &'a [(&'a [u8], u32)],
        keys: &'a [String],
    ) -> Self {
        let numbered = session.exchanges.iter().enumerate();
        let mut passed: Vec<_> = numbered
            .flat_map(|(number, exchange)| {
                moments(exchange).map(move |(moment, which)| (number, moment, which))
            })
            .collect();
        passed.sort_unstable_by_key(|(_, moment, _)| moment.order);
        Self { session, number, spelling, live_ids, keys, passed, before: None }
    }

    /// The draft of an exchange from its events, which stand in the order of the file.
    pub(super) fn next<'e>(&mut self, exchange: usize, events: &'e [Event<'_>]) -> ExchangeDraft<'e>
    where
        'a: 'e,
    {
        let skeleton = &self.session.exchanges[exchange];
        let (events, heads) = events.split_at(moments(skeleton).count());
        let heads = &mut heads.iter();
        let around = Heads { session: self.session, number: self.number, live_ids: self.live_ids };
        let mut body = None;
        let mut http = None;
        if let Some(carrier) = &skeleton.http {
            let first = events.first().filter(|_| skeleton.client.is_some());
            http = around.http(carrier, heads, first, &mut body);
        }
        let mut events = events.iter();
        let mut event = || events.next().expect("there is an event for each moment");
        let mut client_after = None;
        let client = skeleton.client.map(|moment| {
            client_after = self.after(moment);
            around.client(event())
        });
        let mut server = Vec::with_capacity(skeleton.server.len());
        for (number, item) in skeleton.server.iter().enumerate() {
            let mut after = self.after(item.moment);
            let since = match number.checked_sub(1).map(|before| &skeleton.server[before]) {
                // An answer may come late, behind this item.
                Some(before) => {
                    before.answer.filter(|answer| answer.order < item.moment.order).or(Some(before.moment))
                }
                None if skeleton.client.is_some() => skeleton.client,
                None => {
                    client_after = after.take();
                    self.predecessor(item.moment)
                }
            };
            let (message, sse) = around.message(event());
            let mut draft = ItemDraft {
                after_ms: between(since, item.moment),
                after,
                guess: item.guess,
                on: item.on,
                sse,
                message,
                answer: None,
            };
            if let Some(answer) = item.answer {
                let (after, after_ms) = (self.after(answer), between(Some(item.moment), answer));
                let answered = item.answer_http.as_ref();
                let http = answered.and_then(|carrier| around.http(carrier, heads, None, &mut None));
                draft.answer = Some(AnswerDraft { after_ms, after, http, message: around.client(event()) });
            }
            server.push(draft);
        }
        ExchangeDraft {
            key: Cow::Borrowed(&self.keys[exchange]),
            session: self.number,
            journal: None,
            spelling: self.spelling,
            after: client_after,
            client,
            body,
            http,
            server,
            unanswered: skeleton.unanswered,
            extra: Vec::new(),
        }
    }

    /// What came just before this moment, where that is not what stands before it in the file.
    fn after(&mut self, moment: Moment) -> Option<Cow<'static, str>> {
        let before = self.before.replace(moment.order);
        let passed = moment.order.checked_sub(1)?;
        let (exchange, _, which) = self.passed[passed as usize];
        (before != Some(passed)).then(|| Cow::Owned(key::reference(&self.keys[exchange], which)))
    }

    fn predecessor(&self, moment: Moment) -> Option<Moment> {
        let passed = moment.order.checked_sub(1)?;
        Some(self.passed[passed as usize].1)
    }
}

/// How long after `since`, or after the journal began.
fn between(since: Option<Moment>, moment: Moment) -> u32 {
    let since: Micros = since.map_or(0, |since| since.at);
    round_after_ms(moment.at.saturating_sub(since) / 1000)
}
