//! Which exchange a message belongs to: the rules of the [module](super).

use super::{
    Exchange, Fold, Item, Moment,
    requests::Owner,
    state::{Lookup, State},
};
use crate::{
    cassette::{key, model::On},
    wire::jsonrpc::{Kind, Message, id_key},
};

const SUBSCRIPTION: &str = "/_meta/io.modelcontextprotocol~1subscriptionId";

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

/// On what a server message travelled.
#[derive(Clone, Copy, Debug)]
pub(super) enum Way {
    /// A stream that all exchanges share: the message says where it belongs.
    Shared(Option<On>),
    /// The response to one exchange's client message: whatever it says, it says to that.
    Own(usize, Option<On>),
    /// A stream of one exchange on which its client hears answers to its other calls too (F10.5).
    Heard(usize, Option<On>),
    /// The same of a client that hears everything on one stream.
    Post(usize),
    /// The response to what answers an item of this exchange: it says nothing to that itself.
    Aside(usize),
    /// The response to what was not recorded: it belongs to nothing that was.
    Stray(Option<On>),
}

/// Where a client message was filed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Filed {
    /// It began this exchange of its session.
    Exchange(usize),
    /// It answers this item of an exchange.
    Answer(Owner, usize),
}

impl Filed {
    /// The exchange of this session that it began, or that the item it answers is in.
    pub(super) const fn owner(self, session: usize) -> Owner {
        match self {
            Self::Exchange(exchange) => Owner { session, exchange },
            Self::Answer(owner, _) => owner,
        }
    }
}

impl Fold {
    /// Files a client message of a session.
    pub(super) fn client_message(&mut self, session: usize, message: &Message<'_>, moment: Moment) -> Filed {
        if let Some((owner, item)) = self.answer(session, message, moment) {
            return Filed::Answer(owner, item);
        }
        let exchange = self.begin(key::of_client(message), session);
        let open = &mut self.sessions[session];
        open.session.exchanges[exchange].client = Some(moment);
        open.last_client = Some(exchange);
        let owner = Owner { session, exchange };
        self.note_client(message, owner);
        message.members().for_each(|member| self.note_client(&member, owner));
        Filed::Exchange(exchange)
    }

    /// Files a client message, or a batch of them, that answers a server request.
    fn answer(&mut self, session: usize, message: &Message<'_>, moment: Moment) -> Option<(Owner, usize)> {
        let from_server = &mut self.lookup(session).from_server;
        let mut answers = |response: &Message<'_>| {
            let id = response.id().filter(|_| response.kind.is_response())?;
            from_server.answer(id, session)
        };
        let answered: Vec<_> = match message.kind {
            // A batch that also asks or tells something is the client's own.
            Kind::Batch if !message.members().all(|member| member.kind.is_response()) => Vec::new(),
            Kind::Batch => message.members().filter_map(|member| answers(&member)).collect(),
            _ => answers(message).into_iter().collect(),
        };
        let free = answered.into_iter().find(|&(owner, item)| self.item(owner, item).answer.is_none());
        if let Some((owner, item)) = free {
            self.item(owner, item).answer = Some(moment);
        }
        free
    }

    pub(super) fn item(&mut self, owner: Owner, item: usize) -> &mut Item {
        &mut self.sessions[owner.session].session.exchanges[owner.exchange].server[item]
    }

    pub(super) fn lookup(&mut self, session: usize) -> &mut Lookup {
        let lookup = self.sessions[session].lookup;
        &mut self.lookups[lookup]
    }

    /// Notes what later messages can refer to.
    fn note_client(&mut self, message: &Message<'_>, owner: Owner) {
        match message.kind {
            Kind::Request => {
                let id = message.id().unwrap_or(b"null");
                let open = &mut self.sessions[owner.session];
                open.states[owner.exchange].is_request = true;
                open.states[owner.exchange].waits += 1;
                open.session.facts.request(message);
                let lookup = self.lookup(owner.session);
                lookup.from_client.open(id, owner, 0);
                if let Some(token) = message.progress_token() {
                    lookup.tokens.insert(id_key(token).into(), owner);
                }
                // What belongs to a subscription says so; it stays open and must not attract anything else.
                if message.method() == "subscriptions/listen" {
                    lookup.listens.insert(id_key(id).into(), owner);
                } else {
                    *lookup.in_flight.entry(owner.exchange).or_default() += 1;
                }
            }
            Kind::Notification => {
                let from_client = &mut self.lookup(owner.session).from_client;
                let cancelled = message.cancelled_id().and_then(|id| from_client.cancel(id, owner.session));
                if let Some(cancelled) = cancelled {
                    self.state(cancelled).is_cancelled = true;
                    self.has_landed(cancelled);
                }
            }
            Kind::Result | Kind::Error | Kind::Batch | Kind::Noise => {}
        }
    }

    /// Files a server message that came in a session; gives where.
    pub(super) fn server_message(
        &mut self,
        session: usize,
        message: &Message<'_>,
        moment: Moment,
        way: Way,
    ) -> Owner {
        let (target, on) = match way {
            Way::Shared(on) => (self.named(session, message), on),
            Way::Own(exchange, on) => (self.own(Owner { session, exchange }, message), on),
            Way::Heard(exchange, on) => self.heard(Owner { session, exchange }, message, on),
            Way::Aside(exchange) => (Some(Owner { session, exchange }).into(), Some(On::Post)),
            Way::Post(exchange) => (self.heard(Owner { session, exchange }, message, None).0, None),
            Way::Stray(on) => (None.into(), on),
        };
        let pushed =
            |fold: &mut Self| Owner { session, exchange: fold.begin(key::of_push(message), session) };
        let owner = target.owner.unwrap_or_else(|| {
            let owner = pushed(self);
            // Nobody is answered with it.
            self.state(owner).has_failed = self.is_strict() && message.kind.is_response();
            owner
        });
        self.state(owner).has_told |= matches!(message.kind, Kind::Request | Kind::Notification);
        let number = self.push_item(owner, moment, on, target.guess);
        for member in std::iter::once(*message).chain(message.members()) {
            if let Some(id) = member.id().filter(|_| member.kind == Kind::Request) {
                self.lookup(session).from_server.open(id, owner, number);
            }
        }
        owner
    }

    /// Appends an item to an exchange; its number there.
    pub(super) fn push_item(&mut self, owner: Owner, moment: Moment, on: Option<On>, guess: bool) -> usize {
        let items = &mut self.sessions[owner.session].session.exchanges[owner.exchange].server;
        items.push(Item { moment, guess, on, answer: None, answer_http: None });
        items.len() - 1
    }

    /// Where a message belongs that came on a stream which all exchanges share.
    fn named(&mut self, session: usize, message: &Message<'_>) -> Target {
        match message.kind {
            Kind::Result | Kind::Error => self.answered_by(session, message).into(),
            Kind::Batch => {
                let responses = message.members().filter(|member| member.kind.is_response());
                let owners: Vec<_> = responses.map(|response| self.answered_by(session, &response)).collect();
                let may_be_lost = !owners.is_empty() && self.has_gap(session);
                match owners.into_iter().flatten().next() {
                    None if !may_be_lost => self.latest(session),
                    owner => owner.into(),
                }
            }
            Kind::Notification => match self.named_by(session, message) {
                None if !(names_one(message) && self.has_gap(session)) => self.latest(session),
                owner => owner.into(),
            },
            Kind::Request | Kind::Noise => self.latest(session),
        }
    }

    /// Where a message belongs that came on a stream of an exchange's: there. Only a response that it does not wait for,
    /// and another one does, is the other's (F10.5).
    fn heard(&mut self, owner: Owner, message: &Message<'_>, on: Option<On>) -> (Target, Option<On>) {
        let has_gap = self.has_gap(owner.session);
        let is_own = |fold: &mut Self| {
            let from_client = &fold.lookup(owner.session).from_client;
            !has_gap || message.id().is_some_and(|id| from_client.is_of(id, owner))
        };
        let waits = self.state(owner).waits > 0;
        if message.kind.is_response() && !(waits && is_own(self)) {
            let from_client = &mut self.lookup(owner.session).from_client;
            // Its own may come twice, the second time when the client has used the id again.
            let id = message.id().filter(|id| from_client.answered(id) != Some(owner));
            let other = id.and_then(|id| from_client.answer_exactly(id));
            if let Some(other) = other {
                self.has_answer(other, message);
                return (Some(other).into(), on.or(Some(On::Post)));
            }
            // Its request may be missing.
            if !is_own(self) {
                let is_sse = self.sessions[owner.session].session.is_sse;
                return (None.into(), if is_sse { None } else { Some(On::Get) });
            }
        }
        (self.own(owner, message), on)
    }

    /// Where a message belongs that came on an exchange's own stream.
    fn own(&mut self, owner: Owner, message: &Message<'_>) -> Target {
        for response in std::iter::once(*message).chain(message.members()) {
            if response.kind.is_response() {
                self.answers_own(owner, &response);
            }
        }
        if let Some(id) = message.cancelled_id().filter(|_| message.kind == Kind::Notification) {
            let _ = self.lookup(owner.session).from_server.cancel(id, owner.session);
        }
        Some(owner).into()
    }

    /// A response answers the exchange on whose own stream it came: whatever its id, if that waits for one.
    fn answers_own(&mut self, owner: Owner, response: &Message<'_>) {
        if !self.is_stray(owner.session, response)
            && self.lookup(owner.session).from_client.answer_of(response.id(), owner)
        {
            self.has_answer(owner, response);
        }
    }

    /// Whether a response has the id of no request, where that is no answer: behind a replay the client was not given
    /// it.
    fn is_stray(&mut self, session: usize, response: &Message<'_>) -> bool {
        self.is_strict() && !response.id().is_some_and(|id| self.lookup(session).from_client.is_open(id))
    }

    /// The exchange that a server's response belongs to; its request is answered from now on.
    fn answered_by(&mut self, session: usize, response: &Message<'_>) -> Option<Owner> {
        let id = response.id();
        if self.is_stray(session, response) {
            return None;
        }
        let from_client = &mut self.lookup(session).from_client;
        if let Some((owner, _)) = id.and_then(|id| from_client.answer(id, session)) {
            self.has_answer(owner, response);
            return Some(owner);
        }
        if let Some(owner) = id.and_then(|id| from_client.answered(id)) {
            return Some(owner);
        }
        // With messages missing, it may be the answer to one of them.
        let exchange = self.sessions[session].last_client.filter(|_| !self.has_gap(session))?;
        let is_alone = self.lookup(session).in_flight.keys().all(|&other| other == exchange);
        let owner = Owner { session, exchange };
        if !is_alone || self.state(owner).is_answered {
            return None;
        }
        self.state(owner).is_answered = true;
        self.lookup(session).in_flight.remove(&exchange);
        Some(owner)
    }

    /// One request of an exchange is answered.
    fn has_answer(&mut self, owner: Owner, response: &Message<'_>) {
        self.has_landed(owner);
        let open = &mut self.sessions[owner.session];
        open.session.facts.response(response, open.initialize == Some(owner.exchange));
        let state = &mut open.states[owner.exchange];
        state.waits = state.waits.saturating_sub(1);
        state.is_answered = state.waits == 0;
        state.has_failed |= response.is_no_answer();
    }

    /// The exchange that a server's notification names.
    fn named_by(&mut self, session: usize, message: &Message<'_>) -> Option<Owner> {
        let lookup = self.lookup(session);
        if message.method() == "notifications/progress" {
            return lookup.tokens.get(&*id_key(message.param("/progressToken")?)).copied();
        }
        if let Some(id) = message.cancelled_id() {
            let own = lookup.from_server.cancel(id, session);
            return own.or_else(|| lookup.listens.get(&*id_key(id)).copied());
        }
        lookup.listens.get(&*id_key(message.param(SUBSCRIPTION)?)).copied()
    }

    /// Whether messages are missing that what comes in this session can refer to.
    fn has_gap(&self, session: usize) -> bool {
        self.sessions[session].gap_at.is_some()
    }

    /// The latest exchange in flight.
    fn latest(&mut self, session: usize) -> Target {
        let in_flight = &self.lookup(session).in_flight;
        let owner = in_flight.last_key_value().map(|(&exchange, _)| Owner { session, exchange });
        Target { owner, guess: in_flight.len() > 1 }
    }

    /// One request of this exchange is no longer in flight.
    fn has_landed(&mut self, owner: Owner) {
        // On stdio only the last session's are in flight.
        let is_current = self.lookups.len() > 1 || owner.session + 1 == self.sessions.len();
        let in_flight = &mut self.lookup(owner.session).in_flight;
        if is_current && let Some(count) = in_flight.get_mut(&owner.exchange) {
            *count -= 1;
            if *count == 0 {
                in_flight.remove(&owner.exchange);
            }
        }
    }

    /// No request of this exchange is in flight any more, or will be answered.
    pub(super) fn is_over(&mut self, owner: Owner) {
        let lookup = self.lookup(owner.session);
        lookup.in_flight.remove(&owner.exchange);
    }

    pub(super) fn state(&mut self, owner: Owner) -> &mut State {
        &mut self.sessions[owner.session].states[owner.exchange]
    }

    /// Begins an exchange; its number in the session.
    pub(super) fn begin(&mut self, prefix: String, session: usize) -> usize {
        let open = &mut self.sessions[session];
        let prefix = prefix.into_boxed_str();
        open.session.exchanges.push(Exchange {
            prefix,
            client: None,
            http: None,
            server: Vec::new(),
            unanswered: None,
        });
        open.states.push(State::default());
        open.states.len() - 1
    }
}

/// Whether a server's notification says which request it belongs to.
fn names_one(message: &Message<'_>) -> bool {
    message.method() == "notifications/progress"
        || message.cancelled_id().is_some()
        || message.param(SUBSCRIPTION).is_some()
}
