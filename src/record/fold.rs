//! The first pass: each event of a journal to its exchange.

use std::{borrow::Cow, collections::HashMap, io};

use super::{
    Exchange, Moment, Session, Tape,
    ends::envelope,
    filing::Way,
    http::Lanes,
    requests::Owner,
    state::{Lookup, Open, State},
};
use crate::{
    cassette::{
        journal::{Damage, Entry, FramePlace, JournalError, JournalHeader, JournalReader},
        model::{End, Unanswered},
    },
    traffic::{Direction, Event, Lane, Micros, Payload, STDIO_TO_HTTP},
    wire::jsonrpc::{Kind, Message},
};

/// Files the events of one journal; see the [module](super) for the rules.
#[derive(Debug)]
pub struct Fold {
    header: JournalHeader,
    /// The first is there from the start: on stdio the process's, over HTTP the one of requests without a session.
    pub(super) sessions: Vec<Open>,
    /// On stdio one for all sessions: a late answer finds its request. Over HTTP one for each.
    pub(super) lookups: Vec<Lookup>,
    /// What is under way over HTTP.
    pub(super) lanes: Lanes,
    /// The client is on stdio and the server on HTTP.
    is_bridged: bool,
    /// There: the exchange that each lane's line began, or that it answers in.
    posts: HashMap<Lane, Owner>,
    /// How many moments there were.
    moments: u32,
    /// When the last event was.
    last_at: Micros,
    /// How many messages the gaps so far tell of.
    missed: u64,
    /// The server's unfinished last line.
    partial: Option<Vec<u8>>,
    is_whole: bool,
    exited_by_itself: bool,
}

impl Fold {
    /// For the journal with this header.
    pub fn new(header: JournalHeader) -> Self {
        let first = Session { at_ms: header.started_ms, ..Session::default() };
        let is_bridged = header.transport == STDIO_TO_HTTP;
        Self {
            header,
            is_bridged,
            posts: HashMap::new(),
            sessions: vec![Open { session: first, ..Open::default() }],
            lookups: vec![Lookup::default()],
            lanes: Lanes::default(),
            moments: 0,
            last_at: 0,
            missed: 0,
            partial: None,
            is_whole: false,
            exited_by_itself: false,
        }
    }

    /// Files one event, whose frame stands at `place`.
    pub fn event(&mut self, event: &Event<'_>, place: FramePlace) {
        self.last_at = self.last_at.max(event.at);
        match &event.payload {
            Payload::Gap { messages } => self.gap(*messages),
            Payload::Exit(exit) => {
                self.is_whole = true;
                self.exited_by_itself = exit.by_itself;
                if exit.by_itself {
                    let end = End { exit: exit.status, signal: exit.signal, partial: None };
                    self.last().session.end = Some(end);
                }
            }
            _ if event.lane != Lane(0) && !self.is_bridged => {
                // Of a journal whose header is lost, this tells it.
                if self.header.transport.is_empty() {
                    "http".clone_into(&mut self.header.transport);
                }
                self.http_event(event, place);
            }
            Payload::Partial(bytes)
                if event.direction == Direction::ToClient && !self.is_heard_without_end(bytes) =>
            {
                self.partial = Some(bytes.to_vec());
            }
            // Stdio has no heads, events and bodies, and its streams are never cut off but by an exit.
            Payload::Request(_)
            | Payload::Response(_)
            | Payload::SseEvent(_)
            | Payload::Body(_)
            | Payload::Broken { .. }
            | Payload::Closed => {}
            payload @ (Payload::Message(_) | Payload::Partial(_) | Payload::Oversize(_)) => {
                let line = match payload {
                    Payload::Message(line) | Payload::Partial(line) => Cow::Borrowed(&**line),
                    Payload::Oversize(line) => Cow::Owned(envelope(line)),
                    _ => return,
                };
                let message = Message::read(&line);
                let moment = self.moment(event.at, place);
                match event.direction {
                    Direction::ToServer => {
                        self.begin_session(&message, event.at);
                        let session = self.sessions.len() - 1;
                        let filed = self.client_message(session, &message, moment);
                        if event.lane != Lane(0) {
                            self.posts.insert(event.lane, filed.owner(session));
                        }
                    }
                    Direction::ToClient => {
                        let (session, way) = match self.posts.get(&event.lane) {
                            Some(owner) => (owner.session, Way::Post(owner.exchange)),
                            None if event.lane == Lane(0) => (self.sessions.len() - 1, Way::Shared(None)),
                            None => (self.sessions.len() - 1, Way::Stray(None)),
                        };
                        self.server_message(session, &message, moment, way);
                    }
                }
                // What is made up for a long line tells nothing of how its side spells, and neither does what the recorder
                // said where the server gave no answer.
                if let Cow::Borrowed(_) = line
                    && !message.is_no_answer()
                {
                    self.last().spelling.observe(event.direction, &message);
                }
            }
        }
    }

    /// Whether a client behind a replay has heard what a real server said last, without a line end: it is no end of
    /// the recorded server's.
    fn is_heard_without_end(&self, bytes: &[u8]) -> bool {
        self.is_strict() && Message::read(bytes).kind != Kind::Noise
    }

    /// On stdio a second `initialize` begins a new session.
    fn begin_session(&mut self, message: &Message<'_>, at: Micros) {
        if message.kind != Kind::Request || message.method() != "initialize" {
            return;
        }
        if self.last().initialize.is_some() {
            let at_ms = self.at_ms(at);
            let session = Session { at_ms, ..Session::default() };
            self.sessions.push(Open { session, ..Open::default() });
            self.lookups[0].in_flight.clear();
        }
        let next = self.last().states.len();
        self.last().initialize = Some(next);
    }

    /// So many messages passed unrecorded. What comes behind them may refer to one of them, and is then no other's: an id
    /// may have been used again there.
    fn gap(&mut self, messages: u64) {
        self.missed = self.missed.saturating_add(messages);
        self.lost(messages);
    }

    /// The same of at least so many that the journal had, and of which it may have counted no gap.
    fn lost(&mut self, messages: u64) {
        let moments = self.moments;
        let last = self.last();
        last.session.gap = last.session.gap.saturating_add(messages);
        for open in &mut self.sessions {
            (open.gap_at, open.last_client) = (Some(moments), None);
        }
        self.lookups.iter_mut().for_each(Lookup::forget);
    }

    /// Notes that the recorder ended in good order.
    pub const fn end(&mut self) {
        self.is_whole = true;
    }

    /// Says of each exchange without an answer why, and gives the whole.
    pub fn finish(mut self) -> Tape {
        let untold = self.header.missed.saturating_sub(self.missed);
        if untold > 0 {
            self.gap(untold);
        }
        self.end_lanes();
        let ended_ms = self.at_ms(self.last_at);
        if let Some(partial) = self.partial.take() {
            self.last().session.end.get_or_insert_default().partial = Some(partial);
        }
        let last = self.sessions.len() - 1;
        for (number, open) in self.sessions.iter_mut().enumerate() {
            let ended_itself = number == last && self.exited_by_itself;
            open.say_why(self.is_whole, ended_itself);
        }
        self.settle_sessions();
        match &self.header.continues {
            Some(continues) if continues.session.is_some() => {
                self.sessions.iter_mut().for_each(Open::keep_what_is_new);
            }
            Some(_) => self.sessions.iter_mut().for_each(Open::leave_out_what_failed),
            None => {}
        }
        let sessions = self
            .sessions
            .into_iter()
            .map(|open| Session { spelling: open.spelling.finish(), ..open.session });
        let happened =
            |session: &Session| !session.exchanges.is_empty() || session.end.is_some() || session.gap > 0;
        let mut sessions: Vec<_> = sessions.filter(happened).collect();
        sessions.iter_mut().for_each(Session::renumber);
        Tape { header: self.header, sessions, is_whole: self.is_whole, is_alive: false, ended_ms }
    }

    /// Whether only what answers a request is its answer: the client was behind a replay that passed requests on.
    pub(super) const fn is_strict(&self) -> bool {
        self.header.continues.is_some()
    }

    pub(super) fn last(&mut self) -> &mut Open {
        self.sessions.last_mut().expect("there is a first session from the start")
    }

    /// When something passed, in milliseconds since 1970.
    pub(super) const fn at_ms(&self, at: Micros) -> u64 {
        self.header.started_ms.saturating_add(at / 1000)
    }

    /// The next moment, in the order of all sessions.
    pub(super) fn moment(&mut self, at: Micros, place: FramePlace) -> Moment {
        self.moments += 1;
        Moment { order: self.moments - 1, at, place }
    }
}

impl Open {
    /// Says of each exchange without an answer why.
    fn say_why(&mut self, is_whole: bool, ended_itself: bool) {
        for (exchange, state) in self.session.exchanges.iter_mut().zip(&self.states) {
            let asked = exchange.client.map_or(0, |client| client.order);
            // The answer may be among what was not recorded.
            let is_gone = self.gap_at.is_some_and(|gap| gap > asked);
            exchange.unanswered = match state.over_http(self.stream_is_over) {
                Some(Some(Unanswered::Ended)) if is_gone => Some(Unanswered::Lost),
                Some(why) => why,
                None if !state.is_plain && (!state.is_request || state.is_answered) => None,
                None if state.is_cancelled => Some(Unanswered::Cancelled),
                _ if is_gone => Some(Unanswered::Lost),
                _ if ended_itself => None,
                _ if is_whole => Some(Unanswered::Open),
                _ => Some(Unanswered::Lost),
            };
        }
    }
}

impl Open {
    /// Leaves out what the session that this goes on with has already, and what nobody can be answered with.
    fn keep_what_is_new(&mut self) {
        let mut states = self.states.iter();
        let mut has_begun = false;
        self.session.exchanges.retain(|exchange| {
            let state = states.next().copied().unwrap_or_default();
            let is_handshake = matches!(&*exchange.prefix, "initialize" | "notifications/initialized");
            has_begun |= exchange.client.is_some() && !is_handshake;
            // The client hears what the server tells it by itself, and nothing of what it prints as it starts.
            let is_heard = has_begun || (exchange.client.is_none() && &*exchange.prefix != "push raw");
            is_heard && !is_handshake && state.is_worth(exchange)
        });
        if self.session.exchanges.iter().all(|exchange| exchange.client.is_none()) {
            self.session.exchanges.clear();
        }
        // The server that ended is not the recorded one.
        self.session.end = None;
        self.session.gap = 0;
    }

    /// Leaves out what the server gave no answer to, and all of the session where that is its handshake.
    fn leave_out_what_failed(&mut self) {
        let is_refused = self.initialize.is_some_and(|at| self.states[at].has_failed);
        let mut states = self.states.iter();
        self.session
            .exchanges
            .retain(|exchange| !is_refused && states.next().is_some_and(|state| state.is_worth(exchange)));
    }
}

impl State {
    /// Whether the next client can be answered with an exchange that began behind a replay.
    fn is_worth(&self, exchange: &Exchange) -> bool {
        let is_silent = match exchange.unanswered {
            Some(Unanswered::Cancelled) => true,
            // Only a stream that stays open by its nature says anything to the next client.
            Some(Unanswered::Open) => self.has_told && &*exchange.prefix == "subscriptions/listen",
            _ => false,
        };
        !self.has_failed && (!self.is_request || self.is_answered || is_silent)
    }
}

impl Session {
    /// Numbers the moments anew, from 0 and without gaps: until now they counted those of all sessions.
    fn renumber(&mut self) {
        let exchanges = &mut self.exchanges;
        let mut orders: Vec<u32> =
            exchanges.iter_mut().flat_map(Exchange::moments).map(|moment| moment.order).collect();
        orders.sort_unstable();
        let is_dense = orders.last().is_none_or(|last| *last as usize + 1 == orders.len());
        if !is_dense {
            for moment in exchanges.iter_mut().flat_map(Exchange::moments) {
                let place = orders.binary_search(&moment.order).expect("it is one of them");
                moment.order = place as u32;
            }
        }
        self.moments = orders.len() as u32;
    }
}

impl Exchange {
    fn moments(&mut self) -> impl Iterator<Item = &mut Moment> {
        let items = self.server.iter_mut().flat_map(|item| [Some(&mut item.moment), item.answer.as_mut()]);
        [self.client.as_mut()].into_iter().chain(items).flatten()
    }
}

/// Folds a journal up to its end, or to where `goes_on` says no.
///
/// # Errors
/// Those of the reader; [`io::ErrorKind::TimedOut`] where it was stopped.
pub fn fold<R: io::Read>(
    reader: &mut JournalReader<R>,
    goes_on: &dyn Fn() -> bool,
) -> Result<Tape, JournalError> {
    let mut fold = Fold::new(reader.header().clone());
    let mut count = 0_u32;
    while let Some((place, entry)) = reader.next()? {
        match entry {
            Entry::Event(event) => fold.event(&event, place),
            Entry::End => fold.end(),
            // What was there already, or comes too late, is not missing here, and in the header no message stands.
            Entry::Lost(Damage::Displaced(_) | Damage::Header(_)) => {}
            Entry::Lost(Damage::Bytes(_) | Damage::Missing { .. }) => fold.lost(1),
            Entry::Text(_) | Entry::Message(_) | Entry::Blob { .. } => return Err(JournalError::IsArchive),
        }
        count = count.wrapping_add(1);
        if count.is_multiple_of(1024) && !goes_on() {
            return Err(io::Error::from(io::ErrorKind::TimedOut).into());
        }
    }
    Ok(fold.finish())
}

/// The line that a payload is, or what is known of it; none where it is no message.
pub(super) fn line<'a>(direction: Direction, payload: &'a Payload<'_>) -> Option<Cow<'a, [u8]>> {
    match payload {
        Payload::Message(bytes) => Some(Cow::Borrowed(bytes)),
        Payload::Oversize(line) => Some(Cow::Owned(envelope(line))),
        // Servers read a last line without its end; clients do not, so the server's is part of how it ended.
        Payload::Partial(bytes) if direction == Direction::ToServer => Some(Cow::Borrowed(bytes)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
