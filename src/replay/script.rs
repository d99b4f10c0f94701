//! What one live session can play: the exchanges of a recorded session, indexed and put in order.

mod step;

use std::{
    borrow::Cow,
    collections::HashMap,
    slice,
    sync::{Arc, OnceLock},
};

use super::{
    index::{Index, Lists, Queue, Recorded},
    matcher::{
        Matcher, RuleError,
        blanks::BlankIndex,
        canonical::{Digest, holds_placeholder},
    },
    methods::Methods,
};
use crate::{
    ahead,
    cassette::{
        blob::BlobSource,
        model::{Cassette, End, Exchange, Form, Id, Item, Moment, Place, Unanswered},
        order::each_moment,
    },
    wire::jsonrpc::Message,
};

pub(super) use step::{Maybe, Step, StepItem, StepKind};

/// A position in a script's total order.
pub(super) type Rank = u32;

/// The method that names a request of the client's.
const CANCELLED: &str = "notifications/cancelled";

/// The exchanges of a recorded session, or of the pool that all sessions draw from.
#[derive(Debug)]
pub(super) struct Script {
    /// Index of the recorded session; none for the pool.
    pub session: Option<u32>,
    pub steps: Vec<Step>,
    /// The server items of steps that have several.
    items: Vec<StepItem>,
    methods: Methods,
    pub index: Index,
    /// Client messages of each group of overlapping exchanges, in order of rank.
    pub groups: Lists,
    /// Pushes in order of rank.
    pub pushes: Vec<u32>,
    /// Requests without an end to which the server said or did something.
    pub parts: Vec<u32>,
    blank: OnceLock<Vec<BlankSteps>>,
    /// What its `initialize` says.
    begins: OnceLock<Option<(Digest, Option<usize>)>>,
    /// Of each step.
    ahead: Vec<Ahead>,
    /// How many steps are requests.
    pub requests: usize,
    /// Where the session was said to be unknown, and nothing but that from then on.
    pub dead_from: Option<Rank>,
}

/// Where that stands of a step which is fetched ahead, in one place: to find it in the step and its exchange is to wait
/// for those.
#[derive(Clone, Copy, Debug)]
struct Ahead {
    exchange: u32,
    /// The text of the first server item.
    answer: Place,
    /// Whether there is more, which the exchange tells.
    has_more: bool,
}

/// Steps whose client messages hold placeholders.
#[derive(Debug)]
pub(super) struct BlankSteps {
    /// Their own table, if they have one.
    pub own: Option<usize>,
    pub index: BlankIndex,
}

impl Ahead {
    fn of(exchange: u32, entry: &Exchange) -> Self {
        let first = entry.server.first();
        let answer = first.map_or(Place { start: 0, end: 0 }, |item| item.message.place);
        let has_more =
            entry.http.is_some() || entry.server.len() > 1 || first.is_some_and(|item| item.sse.is_some());
        Self { exchange, answer, has_more }
    }
}

impl Script {
    /// Reads the given exchanges, in file order.
    ///
    /// # Errors
    /// When a rule cannot be used.
    pub(super) fn new(
        cassette: &Cassette,
        blobs: &dyn BlobSource,
        matcher: &mut Matcher,
        session: Option<u32>,
        exchanges: &[u32],
    ) -> Result<Self, RuleError> {
        let mut script = Self {
            session,
            steps: Vec::with_capacity(exchanges.len()),
            items: Vec::new(),
            methods: Methods::default(),
            index: Index::default(),
            groups: Lists::default(),
            pushes: Vec::new(),
            parts: Vec::new(),
            blank: OnceLock::new(),
            begins: OnceLock::new(),
            requests: 0,
            dead_from: None,
            ahead: Vec::with_capacity(exchanges.len()),
        };
        let mut cancels = Vec::new();
        let mut bytes = Vec::new();
        for &exchange in exchanges {
            let entry = &cassette.exchanges[exchange as usize];
            let mut step = Step::blank(exchange, entry, script.items.len());
            if entry.server.len() != 1 {
                script.items.resize(script.items.len() + entry.server.len(), StepItem::BLANK);
            }
            if let Some(client) = &entry.client {
                let method = cassette.method(client);
                let is_looked_at = match &method {
                    Some(method) => method == CANCELLED || matcher.has_rules_for(entry),
                    None => true,
                };
                let message = if is_looked_at { look(cassette, blobs, entry, &mut bytes) } else { None };
                if let Some(method) = method {
                    step.kind = match client.form {
                        Form::Request => StepKind::Request,
                        _ => StepKind::Notification,
                    };
                    step.method = script.methods.number(&method);
                } else if let Some(message) = &message {
                    step.read(message, &mut script.methods);
                }
                if client.form == Form::Http && message.is_some() {
                    step.kind = StepKind::Line;
                }
                let at = script.steps.len() as u32;
                if let Some(id) = message.and_then(|message| message.cancelled_id()) {
                    cancels.push((at, Id::of(Some(id))));
                }
                if entry.is_partial {
                    // What a client left has no answer.
                    script.parts.extend((entry.unanswered != Some(Unanswered::Open)).then_some(at));
                } else if step.kind != StepKind::Noise || message.is_some() {
                    script.index.enter(matcher, entry, message.as_ref(), at, step.method)?;
                }
            }
            let answered = entry.server.iter().any(|item| answers(cassette, blobs, entry, item));
            step.only_http = session.is_none() && script.is_handshake(&step) && is_http(cassette, entry)
                || is_only_http(cassette, entry, &step, answered);
            let session = &cassette.sessions[entry.session as usize];
            let ended_itself = session.end.as_ref().is_some_and(End::is_by_itself);
            step.dies = step.is_asked() && !answered && entry.unanswered.is_none() && ended_itself;
            script.requests += usize::from(step.is_asked());
            script.steps.push(step);
            script.ahead.push(Ahead::of(exchange, entry));
        }
        script.rank(cassette, exchanges);
        // The request of such a response was not recorded, and a live one may have its id.
        let is_stray = |entry: &Exchange| {
            cassette.has_gap(entry.session)
                && entry.server.iter().any(|item| answers(cassette, blobs, entry, item))
        };
        let steps = &script.steps;
        script.pushes.retain(|&at| !is_stray(&cassette.exchanges[steps[at as usize].exchange as usize]));
        script.cancel(cassette, cancels);
        script.dead_from = script.death(cassette);
        Ok(script)
    }

    /// From where on all requests were answered by 404 (specification 2025-11-25, basic/transports, sessions).
    fn death(&self, cassette: &Cassette) -> Option<Rank> {
        self.session?;
        let status = |step: &Step| {
            let http = cassette.exchanges[step.exchange as usize].http.as_ref();
            http.and_then(|http| http.status).unwrap_or(200)
        };
        let asked = || self.steps.iter().filter(|step| step.is_asked());
        let is_refusal = |step: &&Step| status(step) == 404;
        asked().find(is_refusal)?;
        let last_good = asked().filter(|step| !is_refusal(step)).map(|step| step.rank).max();
        asked().filter(is_refusal).map(|step| step.rank).filter(|rank| Some(*rank) > last_good).min()
    }

    /// Tells requests when they were cancelled: each step that did, and the id it names.
    fn cancel(&mut self, cassette: &Cassette, cancels: Vec<(u32, Id)>) {
        if cancels.is_empty() {
            return;
        }
        let entry = |step: &Step| &cassette.exchanges[step.exchange as usize];
        let mut requests: HashMap<(u32, &Id), Vec<usize>> = HashMap::new();
        for (at, step) in self.steps.iter().enumerate().filter(|(_, step)| step.kind == StepKind::Request) {
            if let Some(client) = &entry(step).client {
                requests.entry((entry(step).session, &client.id)).or_default().push(at);
            }
        }
        for (cancel, id) in cancels {
            let cancel = &self.steps[cancel as usize];
            let (rank, session) = (cancel.rank, entry(cancel).session);
            let asked = requests.get(&(session, &id)).into_iter().flatten();
            // An id may be used again: the last request before it is meant.
            let asked = asked.copied().filter(|&at| self.steps[at].rank < rank);
            if let Some(request) = asked.max_by_key(|&at| self.steps[at].rank) {
                self.steps[request].cancelled_at = Maybe(rank);
            }
        }
    }

    /// Which queue of the index a live message draws from, and the steps with rules of their own that equal it; its
    /// spelling where that is known.
    pub(super) fn find(
        &mut self,
        cassette: &Cassette,
        blobs: &dyn BlobSource,
        matcher: &mut Matcher,
        message: &Message<'_>,
        spelling: Option<Digest>,
    ) -> (Option<Queue>, Vec<u32>) {
        let recorded = Recorded { cassette, blobs, steps: &self.steps, methods: &self.methods };
        let found = self.index.find(recorded, matcher, message, spelling);
        if let Some(step) = found.0.and_then(Queue::step) {
            self.fetch_ahead(cassette, step);
        }
        found
    }

    /// Begins to fetch what is looked at of the only step that equals a message.
    fn fetch_ahead(&self, cassette: &Cassette, step: u32) {
        let Ahead { exchange, answer, has_more } = self.ahead[step as usize];
        ahead::fetch(&self.steps[step as usize]);
        ahead::fetch(&cassette.exchanges[exchange as usize]);
        ahead::fetch(cassette.at(answer));
        if has_more {
            cassette.fetch_ahead(exchange);
        }
    }

    /// The exchange of the first step that equals a live message.
    pub(super) fn first(
        &mut self,
        cassette: &Cassette,
        blobs: &dyn BlobSource,
        matcher: &mut Matcher,
        message: &Message<'_>,
    ) -> Option<u32> {
        let (queue, own) = self.find(cassette, blobs, matcher, message, None);
        let mut only = 0;
        let queued = queue.and_then(|queue| self.index.steps(queue, &mut only).first());
        let &step = queued.or(own.first())?;
        Some(self.steps[step as usize].exchange)
    }

    /// The server items of a step.
    pub(super) fn items<'a>(&'a self, step: &'a Step) -> &'a [StepItem] {
        match step.items {
            (1, _) => slice::from_ref(&step.item),
            (count, first) => &self.items[first as usize..][..count as usize],
        }
    }

    fn item_mut(&mut self, step: usize, item: u32) -> &mut StepItem {
        let step = &mut self.steps[step];
        match step.items {
            (1, _) => &mut step.item,
            (_, first) => &mut self.items[(first + item) as usize],
        }
    }

    /// The method of a step's client message; empty where it has none.
    pub(super) fn method(&self, step: &Step) -> &Arc<str> {
        self.methods.get(step.method)
    }

    /// The first step that is an `initialize`.
    pub(super) fn handshake(&self) -> Option<&Step> {
        self.handshake_at().map(|at| &self.steps[at as usize])
    }

    fn handshake_at(&self) -> Option<u32> {
        let initialize = self.methods.find("initialize")?;
        (0..).zip(&self.steps).find(|(_, step)| step.method == initialize).map(|(at, _)| at)
    }

    /// The digest of its `initialize`, its params too, and the table for that if it has its own.
    pub(super) fn begins(
        &self,
        cassette: &Cassette,
        blobs: &dyn BlobSource,
        matcher: &mut Matcher,
    ) -> Option<(Digest, Option<usize>)> {
        *self.begins.get_or_init(|| {
            let at = self.handshake_at()?;
            let entry = &cassette.exchanges[self.steps[at as usize].exchange as usize];
            let (own, mut bytes) = (self.index.own_table(at), Vec::new());
            let begins = look(cassette, blobs, entry, &mut bytes)?;
            matcher.full_digest(&begins, own).map(|digest| (digest, own))
        })
    }

    /// The requests of a method, in file order.
    pub(super) fn requests_of(&self, method: &str) -> impl Iterator<Item = &Step> {
        let method = self.methods.find(method);
        self.steps.iter().filter(move |step| step.kind == StepKind::Request && Some(step.method) == method)
    }

    /// The steps whose client messages hold placeholders, by the tables that they are compared with: found when they
    /// are first asked for.
    pub(super) fn blank(
        &self,
        cassette: &Cassette,
        blobs: &dyn BlobSource,
        matcher: &mut Matcher,
    ) -> &[BlankSteps] {
        self.blank.get_or_init(|| {
            let mut bytes = Vec::new();
            let mut blank: Vec<BlankSteps> = Vec::new();
            for (at, step) in (0..).zip(&self.steps) {
                let entry = &cassette.exchanges[step.exchange as usize];
                let message = if entry.is_partial { None } else { look(cassette, blobs, entry, &mut bytes) };
                let Some(message) = message.filter(|message| holds_placeholder(message.bytes)) else {
                    continue;
                };
                let own = self.index.own_table(at);
                let Some(form) = matcher.numbered_form(&message, own, false) else { continue };
                let known = blank.iter().position(|steps| steps.own == own).unwrap_or_else(|| {
                    blank.push(BlankSteps { own, index: BlankIndex::default() });
                    blank.len() - 1
                });
                blank[known].index.add(at, message.bytes, &form);
            }
            blank
        })
    }

    /// What the server said before any client message, in its order.
    pub(super) fn opening(&self) -> impl Iterator<Item = &Step> {
        let pushes = self.pushes.iter().map(|&step| &self.steps[step as usize]);
        pushes.take_while(|step| step.anchor().is_none())
    }

    /// Whether a step is an `initialize`.
    pub(super) fn is_handshake(&self, step: &Step) -> bool {
        &**self.method(step) == "initialize"
    }

    /// Sessions in whose end requests were open, and stayed so to their last moments: how many moments each has, and no
    /// such request yet.
    fn dying(&self, cassette: &Cassette) -> HashMap<u32, (u32, usize)> {
        let session = |step: &Step| cassette.exchanges[step.exchange as usize].session;
        let mut dying: HashMap<u32, (u32, usize)> =
            self.steps.iter().filter(|step| step.dies).map(|step| (session(step), (0, 0))).collect();
        if !dying.is_empty() {
            for step in &self.steps {
                dying.entry(session(step)).and_modify(|(moments, _)| *moments += step.moments(cassette));
            }
        }
        dying
    }

    /// Gives every moment its rank, and finds groups and pushes by it.
    fn rank(&mut self, cassette: &Cassette, exchanges: &[u32]) {
        let mut left: Vec<u32> = self.steps.iter().map(|step| step.moments(cassette)).collect();
        let mut dying = self.dying(cassette);
        let (mut open, mut last_client, mut alone) = (0usize, Maybe::NONE, Vec::new());
        let mut rank = 0;
        each_moment(cassette, exchanges, |at, moment| {
            let this = rank;
            rank += 1;
            left[at] -= 1;
            match moment {
                Moment::Client => {
                    let step = &mut self.steps[at];
                    step.rank = this;
                    if !step.only_http {
                        last_client = Maybe(this);
                        if step.is_asked() && open == 0 {
                            alone.extend(self.groups.take_back_single());
                            self.groups.begin();
                        }
                        open += usize::from(step.is_asked());
                        if open > 0 {
                            step.group = Maybe(self.groups.len() as u32 - 1);
                            self.groups.push(at as u32);
                        }
                    }
                }
                Moment::Item(item) => {
                    self.item_mut(at, item).rank = this;
                    let step = &mut self.steps[at];
                    if step.kind == StepKind::Push && item == 0 {
                        (step.rank, step.anchor) = (this, last_client);
                        self.pushes.push(at as u32);
                    }
                }
                Moment::Answer(item) => self.item_mut(at, item).answer = Maybe(this),
            }
            let step = &self.steps[at];
            let ends = left[at] == 0 && step.is_asked() && !step.only_http;
            open -= usize::from(ends && !step.dies);
            if let Some((moments, dying)) = dying.get_mut(&cassette.exchanges[step.exchange as usize].session)
            {
                *moments -= 1;
                *dying += usize::from(ends && step.dies);
                open -= if *moments == 0 { *dying } else { 0 };
            }
        });
        alone.extend(self.groups.take_back_single());
        for at in alone {
            self.steps[at as usize].group = Maybe::NONE;
        }
    }
}

/// The client's message of an exchange: as it stands in the file where that says what it asks, else rebuilt.
pub(super) fn look<'a>(
    cassette: &'a Cassette,
    blobs: &dyn BlobSource,
    entry: &Exchange,
    bytes: &'a mut Vec<u8>,
) -> Option<Message<'a>> {
    let peeked = entry.client.as_ref().and_then(|client| cassette.peek(client));
    peeked.or_else(|| client_message(cassette, blobs, entry, bytes).then(|| Message::read(bytes)))
}

/// The client's message of an exchange as it stood on the wire; false for a push or where it is not kept.
pub(super) fn client_message(
    cassette: &Cassette,
    blobs: &dyn BlobSource,
    entry: &Exchange,
    bytes: &mut Vec<u8>,
) -> bool {
    bytes.clear();
    let Some(client) = &entry.client else { return false };
    client.form != Form::Omitted && cassette.wire(entry.session, true, client, None, blobs, bytes).is_ok()
}

/// Whether it is an HTTP request that is no message, or one that the client repeats elsewhere or with credentials.
fn is_only_http(cassette: &Cassette, entry: &Exchange, step: &Step, is_answered: bool) -> bool {
    let status = entry.http.as_ref().and_then(|http| http.status);
    let is_sent_on = || match status {
        Some(300..=399) => !is_answered,
        Some(401 | 403) => true,
        _ => false,
    };
    step.kind == StepKind::Line || (is_http(cassette, entry) && is_sent_on())
}

/// Whether it was recorded over HTTP: there a client sends an `initialize` that begins no session to find out which
/// transport is spoken.
fn is_http(cassette: &Cassette, entry: &Exchange) -> bool {
    cassette.sessions[entry.session as usize].is_http()
}

/// Whether a server item answers the client message of its exchange.
pub(super) fn answers(cassette: &Cassette, blobs: &dyn BlobSource, entry: &Exchange, item: &Item) -> bool {
    match item.message.form {
        _ if entry.is_aside(item) => false,
        Form::Result | Form::Error | Form::Omitted => true,
        Form::Batch | Form::Raw | Form::Base64 => {
            let mut bytes = Vec::new();
            let read = cassette.wire(entry.session, false, &item.message, None, blobs, &mut bytes).is_ok();
            let message = Message::read(&bytes);
            read && (message.kind.is_response() || message.members().any(|member| member.kind.is_response()))
        }
        Form::Request | Form::Notification | Form::Http | Form::Body => false,
    }
}

/// Whether an exchange is recorded as one that stays silent.
pub(super) const fn stays_silent(entry: &Exchange) -> bool {
    matches!(entry.unanswered, Some(Unanswered::Cancelled | Unanswered::Open))
}

/// A recorded session's name for its client, for the choice of sessions.
pub(super) fn client_name<'a>(message: &Message<'a>) -> Option<Cow<'a, str>> {
    message.param("/clientInfo/name").map(crate::wire::jsonrpc::text)
}
