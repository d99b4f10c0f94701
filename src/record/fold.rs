//! The first pass: each event of a journal to its exchange.

use std::{
    borrow::Cow,
    collections::{BTreeMap, HashMap},
    io,
};

use super::{
    Exchange, Item, Moment, Session, Tape,
    ends::envelope,
    requests::{Owner, Requests},
};
use crate::{
    cassette::{
        journal::{Entry, FramePlace, JournalError, JournalHeader, JournalReader},
        key,
        model::{End, Unanswered},
        spelling::SpellingGuess,
    },
    traffic::{Direction, Event, Micros, Payload},
    wire::jsonrpc::{Kind, Message, id_key},
};

const SUBSCRIPTION: &str = "/_meta/io.modelcontextprotocol~1subscriptionId";

/// Files the events of one journal; see the [module](super) for the rules.
#[derive(Debug)]
pub struct Fold {
    header: JournalHeader,
    sessions: Vec<Open>,
    from_client: Requests,
    from_server: Requests,
    /// The last client request with each progress token.
    tokens: HashMap<Box<[u8]>, Owner>,
    /// The last `subscriptions/listen` request with each id.
    listens: HashMap<Box<[u8]>, Owner>,
    /// How many requests of each exchange of the last session are in flight.
    in_flight: BTreeMap<usize, u32>,
    /// The server's unfinished last line.
    partial: Option<Vec<u8>>,
    is_whole: bool,
    exited_by_itself: bool,
}

/// A session and what only folding needs to know of it.
#[derive(Debug, Default)]
struct Open {
    session: Session,
    states: Vec<State>,
    initialize: Option<usize>,
    last_client: Option<usize>,
    spelling: SpellingGuess,
    /// How many moments there were when recording last failed.
    gap_at: Option<u32>,
}

/// What only folding needs to know of an exchange.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    is_request: bool,
    /// How many requests of it have no answer: a batch can have several.
    waits: u32,
    is_answered: bool,
    is_cancelled: bool,
}

/// Where a server message belongs: none for a push.
struct Target {
    owner: Option<Owner>,
    guess: bool,
}

impl From<Option<Owner>> for Target {
    fn from(owner: Option<Owner>) -> Self {
        Self { owner, guess: false }
    }
}

impl Fold {
    /// For the journal with this header.
    pub fn new(header: JournalHeader) -> Self {
        let first = Session { at_ms: header.started_ms, ..Session::default() };
        Self {
            header,
            sessions: vec![Open { session: first, ..Open::default() }],
            from_client: Requests::default(),
            from_server: Requests::default(),
            tokens: HashMap::new(),
            listens: HashMap::new(),
            in_flight: BTreeMap::new(),
            partial: None,
            is_whole: false,
            exited_by_itself: false,
        }
    }

    /// Files one event, whose frame stands at `place`.
    pub fn event(&mut self, event: &Event<'_>, place: FramePlace) {
        match &event.payload {
            Payload::Gap { messages } => {
                let last = self.last();
                last.session.gap = last.session.gap.saturating_add(*messages);
                last.gap_at = Some(last.session.moments);
            }
            Payload::Exit(exit) => {
                self.is_whole = true;
                self.exited_by_itself = exit.by_itself;
                let partial = self.partial.take();
                if exit.by_itself {
                    let end = End { exit: exit.status, signal: exit.signal, partial };
                    self.last().session.end = Some(end);
                }
            }
            Payload::Partial(bytes) if event.direction == Direction::ToClient => {
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
                let Some(line) = line(event.direction, payload) else { return };
                let message = Message::read(&line);
                match event.direction {
                    Direction::ToServer => self.client_line(&message, event.at, place),
                    Direction::ToClient => self.server_line(&message, event.at, place),
                }
                // What is made up for a long line tells nothing of how its side spells.
                if let Cow::Borrowed(line) = line {
                    self.last().spelling.observe(event.direction, line);
                }
            }
        }
    }

    /// Notes that the recorder ended in good order.
    pub const fn end(&mut self) {
        self.is_whole = true;
    }

    /// Says of each exchange without an answer why, and gives the whole.
    pub fn finish(mut self) -> Tape {
        let last = self.sessions.len() - 1;
        for (number, open) in self.sessions.iter_mut().enumerate() {
            let ended_itself = number == last && self.exited_by_itself;
            for (exchange, state) in open.session.exchanges.iter_mut().zip(&open.states) {
                let asked = exchange.client.map_or(0, |client| client.order);
                exchange.unanswered = match state {
                    State { is_request: false, .. } | State { is_answered: true, .. } => None,
                    State { is_cancelled: true, .. } => Some(Unanswered::Cancelled),
                    // The answer may be among what was not recorded.
                    _ if open.gap_at.is_some_and(|gap| gap > asked) => Some(Unanswered::Lost),
                    _ if ended_itself => None,
                    _ if self.is_whole => Some(Unanswered::Open),
                    _ => Some(Unanswered::Lost),
                };
            }
        }
        let sessions = self
            .sessions
            .into_iter()
            .map(|open| Session { spelling: open.spelling.finish(), ..open.session });
        let happened =
            |session: &Session| !session.exchanges.is_empty() || session.end.is_some() || session.gap > 0;
        Tape { header: self.header, sessions: sessions.filter(happened).collect(), is_whole: self.is_whole }
    }

    fn last(&mut self) -> &mut Open {
        self.sessions.last_mut().expect("there is a first session from the start")
    }

    fn client_line(&mut self, message: &Message<'_>, at: Micros, place: FramePlace) {
        if message.kind == Kind::Request && message.method() == "initialize" {
            if self.last().initialize.is_some() {
                let at_ms = self.header.started_ms.saturating_add(at / 1000);
                let session = Session { at_ms, ..Session::default() };
                self.sessions.push(Open { session, ..Open::default() });
                self.in_flight.clear();
            }
            let next = self.last().states.len();
            self.last().initialize = Some(next);
        }
        if self.is_answer(message, at, place) {
            return;
        }
        let session = self.sessions.len() - 1;
        let exchange = self.begin(key::of_client(message), session);
        let moment = self.moment(session, at, place);
        let open = self.last();
        open.session.exchanges[exchange].client = Some(moment);
        open.last_client = Some(exchange);
        let owner = Owner { session, exchange };
        self.note_client(message, owner);
        message.members().for_each(|member| self.note_client(&member, owner));
    }

    /// Files a client message, or a batch of them, that answers a server request.
    fn is_answer(&mut self, message: &Message<'_>, at: Micros, place: FramePlace) -> bool {
        let session = self.sessions.len() - 1;
        let mut answers = |response: &Message<'_>| {
            let id = response.id().filter(|_| response.kind.is_response())?;
            self.from_server.answer(id, session)
        };
        let answered: Vec<_> = match message.kind {
            // A batch that also asks or tells something is the client's own.
            Kind::Batch if !message.members().all(|member| member.kind.is_response()) => Vec::new(),
            Kind::Batch => message.members().filter_map(|member| answers(&member)).collect(),
            _ => answers(message).into_iter().collect(),
        };
        let free = answered.into_iter().find(|&(owner, item)| self.item(owner, item).answer.is_none());
        if let Some((owner, item)) = free {
            let moment = self.moment(owner.session, at, place);
            self.item(owner, item).answer = Some(moment);
        }
        free.is_some()
    }

    fn item(&mut self, owner: Owner, item: usize) -> &mut Item {
        &mut self.sessions[owner.session].session.exchanges[owner.exchange].server[item]
    }

    /// Notes what later messages can refer to.
    fn note_client(&mut self, message: &Message<'_>, owner: Owner) {
        match message.kind {
            Kind::Request => {
                let id = message.id().unwrap_or(b"null");
                self.from_client.open(id, owner, 0);
                if let Some(token) = message.progress_token() {
                    self.tokens.insert(id_key(token).into(), owner);
                }
                let open = &mut self.sessions[owner.session];
                open.states[owner.exchange].is_request = true;
                open.states[owner.exchange].waits += 1;
                open.session.facts.request(message);
                // What belongs to a subscription says so; it stays open and must not attract anything else.
                if message.method() == "subscriptions/listen" {
                    self.listens.insert(id_key(id).into(), owner);
                } else {
                    *self.in_flight.entry(owner.exchange).or_default() += 1;
                }
            }
            Kind::Notification => {
                let cancelled =
                    message.cancelled_id().and_then(|id| self.from_client.cancel(id, owner.session));
                if let Some(cancelled) = cancelled {
                    self.state(cancelled).is_cancelled = true;
                    self.has_landed(cancelled);
                }
            }
            Kind::Result | Kind::Error | Kind::Batch | Kind::Noise => {}
        }
    }

    fn server_line(&mut self, message: &Message<'_>, at: Micros, place: FramePlace) {
        let target = match message.kind {
            Kind::Result | Kind::Error => self.answered_by(message).into(),
            Kind::Batch => {
                let responses = message.members().filter(|member| member.kind.is_response());
                let owners: Vec<_> = responses.map(|response| self.answered_by(&response)).collect();
                match owners.into_iter().flatten().next() {
                    None => self.latest(),
                    owner => owner.into(),
                }
            }
            Kind::Notification => match self.named_by(message) {
                None => self.latest(),
                owner => owner.into(),
            },
            Kind::Request | Kind::Noise => self.latest(),
        };
        let owner = target.owner.unwrap_or_else(|| {
            let session = self.sessions.len() - 1;
            Owner { session, exchange: self.begin(key::of_push(message), session) }
        });
        let moment = self.moment(owner.session, at, place);
        let items = &mut self.sessions[owner.session].session.exchanges[owner.exchange].server;
        let number = items.len();
        items.push(Item { moment, guess: target.guess, answer: None });
        for member in std::iter::once(*message).chain(message.members()) {
            if let Some(id) = member.id().filter(|_| member.kind == Kind::Request) {
                self.from_server.open(id, owner, number);
            }
        }
    }

    /// The exchange that a server's response belongs to; its request is answered from now on.
    fn answered_by(&mut self, response: &Message<'_>) -> Option<Owner> {
        let session = self.sessions.len() - 1;
        let id = response.id();
        if let Some((owner, _)) = id.and_then(|id| self.from_client.answer(id, session)) {
            self.has_landed(owner);
            let open = &mut self.sessions[owner.session];
            open.session.facts.response(response, open.initialize == Some(owner.exchange));
            let state = &mut open.states[owner.exchange];
            state.waits = state.waits.saturating_sub(1);
            state.is_answered = state.waits == 0;
            return Some(owner);
        }
        if let Some(owner) = id.and_then(|id| self.from_client.answered(id)) {
            return Some(owner);
        }
        let exchange = self.last().last_client?;
        let is_alone = self.in_flight.keys().all(|&other| other == exchange);
        let owner = Owner { session, exchange };
        if !is_alone || self.state(owner).is_answered {
            return None;
        }
        self.state(owner).is_answered = true;
        self.in_flight.remove(&exchange);
        Some(owner)
    }

    /// The exchange that a server's notification names.
    fn named_by(&mut self, message: &Message<'_>) -> Option<Owner> {
        let session = self.sessions.len() - 1;
        if message.method() == "notifications/progress" {
            return self.tokens.get(&*id_key(message.param("/progressToken")?)).copied();
        }
        if let Some(id) = message.cancelled_id() {
            let own = self.from_server.cancel(id, session);
            return own.or_else(|| self.listens.get(&*id_key(id)).copied());
        }
        self.listens.get(&*id_key(message.param(SUBSCRIPTION)?)).copied()
    }

    /// The latest exchange in flight.
    fn latest(&mut self) -> Target {
        let session = self.sessions.len() - 1;
        let owner = self.in_flight.last_key_value().map(|(&exchange, _)| Owner { session, exchange });
        Target { owner, guess: self.in_flight.len() > 1 }
    }

    /// One request of this exchange is no longer in flight.
    fn has_landed(&mut self, owner: Owner) {
        if owner.session + 1 == self.sessions.len()
            && let Some(count) = self.in_flight.get_mut(&owner.exchange)
        {
            *count -= 1;
            if *count == 0 {
                self.in_flight.remove(&owner.exchange);
            }
        }
    }

    fn state(&mut self, owner: Owner) -> &mut State {
        &mut self.sessions[owner.session].states[owner.exchange]
    }

    /// Begins an exchange; its number in the session.
    fn begin(&mut self, prefix: String, session: usize) -> usize {
        let open = &mut self.sessions[session];
        let prefix = prefix.into_boxed_str();
        open.session.exchanges.push(Exchange { prefix, client: None, server: Vec::new(), unanswered: None });
        open.states.push(State::default());
        open.states.len() - 1
    }

    fn moment(&mut self, session: usize, at: Micros, place: FramePlace) -> Moment {
        let moments = &mut self.sessions[session].session.moments;
        *moments += 1;
        Moment { order: *moments - 1, at, place }
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
        Payload::Partial(bytes)
            if direction == Direction::ToServer && Message::read(bytes).kind != Kind::Noise =>
        {
            Some(Cow::Borrowed(bytes))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
