//! What one live session can play: the exchanges of a recorded session, indexed and put in order.

use std::{borrow::Cow, collections::HashMap, sync::Arc};

use super::{
    index::{Index, Lists, Recorded},
    matcher::{Matcher, RuleError},
};
use crate::{
    cassette::{
        blob::BlobSource,
        model::{Cassette, End, Exchange, Form, Id, Item, Moment, Unanswered},
        order::timeline,
    },
    wire::jsonrpc::{Kind, Message},
};

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
    /// The server items of all steps.
    items: Vec<StepItem>,
    pub index: Index,
    /// Client messages of each group of overlapping exchanges, in order of rank.
    pub groups: Lists,
    /// Pushes in order of rank.
    pub pushes: Vec<u32>,
    /// Steps that have an answer, in order of its rank.
    pub answered: Vec<(Rank, u32)>,
    /// How many steps are requests.
    pub requests: usize,
    /// Where the session was said to be unknown, and nothing but that from then on.
    pub dead_from: Option<Rank>,
}

/// One exchange of a script.
#[derive(Debug)]
pub(super) struct Step {
    /// Index into [`Cassette::exchanges`].
    pub exchange: u32,
    pub kind: StepKind,
    /// The method, for the report's exceptions and for `cancelled`.
    pub method: Arc<str>,
    /// Rank of the client message; for a push, of its first item.
    pub rank: Rank,
    /// Where its server items stand among all, and how many there are.
    items: (u32, u32),
    /// For a push: rank of the last client message before it.
    pub anchor: Option<Rank>,
    /// The group of overlapping exchanges it came in; none for what overlapped with nothing.
    pub group: Option<u32>,
    /// Rank of the notification that cancelled it.
    pub cancelled_at: Option<Rank>,
    /// The server ended while this was unanswered.
    pub dies: bool,
    /// Only a client of HTTP makes this request: it opens or ends something, or is sent on, or asked for credentials.
    /// Whether and when it comes is up to the client; nothing waits for it.
    pub only_http: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepKind {
    Request,
    Notification,
    Batch,
    Noise,
    /// An HTTP request that is no message.
    Line,
    Push,
}

/// One server item of a step.
#[derive(Clone, Copy, Debug)]
pub(super) struct StepItem {
    pub rank: Rank,
    /// Rank of the client's answer to it.
    pub answer: Option<Rank>,
}

impl Step {
    /// Whether the client waits for an answer to it.
    pub(super) const fn is_asked(&self) -> bool {
        matches!(self.kind, StepKind::Request | StepKind::Batch)
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
            items: Vec::with_capacity(exchanges.len()),
            index: Index::default(),
            groups: Lists::default(),
            pushes: Vec::new(),
            answered: Vec::with_capacity(exchanges.len()),
            requests: 0,
            dead_from: None,
        };
        let mut methods = Methods::default();
        let mut cancels = Vec::new();
        let mut bytes = Vec::new();
        for &exchange in exchanges {
            let entry = &cassette.exchanges[exchange as usize];
            let mut step = Step::blank(exchange, entry, script.items.len());
            script.items.resize(script.items.len() + entry.server.len(), StepItem { rank: 0, answer: None });
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
                    step.method = methods.get(&method);
                } else if let Some(message) = &message {
                    step.read(message, &mut methods);
                }
                if client.form == Form::Http && message.is_some() {
                    step.kind = StepKind::Line;
                }
                let at = script.steps.len() as u32;
                if let Some(id) = message.and_then(|message| message.cancelled_id()) {
                    cancels.push((at, Id::of(Some(id))));
                }
                if step.kind != StepKind::Noise || message.is_some() {
                    script.index.enter(matcher, entry, message.as_ref(), at, &step.method)?;
                }
            }
            let answered = entry.server.iter().any(|item| answers(cassette, blobs, entry.session, item));
            step.only_http = session.is_none() && is_refused_handshake(cassette, entry, &step)
                || is_only_http(cassette, entry, &step, answered);
            let session = &cassette.sessions[entry.session as usize];
            let ended_itself = session.end.as_ref().is_some_and(End::is_by_itself);
            step.dies = step.is_asked() && !answered && entry.unanswered.is_none() && ended_itself;
            script.requests += usize::from(step.is_asked());
            script.steps.push(step);
        }
        script.rank(cassette, exchanges);
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
                self.steps[request].cancelled_at = Some(rank);
            }
        }
    }

    /// Which queue of the index a live message draws from, and the steps with rules of their own that equal it.
    pub(super) fn find(
        &mut self,
        cassette: &Cassette,
        blobs: &dyn BlobSource,
        matcher: &mut Matcher,
        message: &Message<'_>,
    ) -> (Option<u32>, Vec<u32>) {
        self.index.find(Recorded { cassette, blobs, steps: &self.steps }, matcher, message)
    }

    /// The server items of a step.
    pub(super) fn items(&self, step: &Step) -> &[StepItem] {
        let (first, count) = step.items;
        &self.items[first as usize..][..count as usize]
    }

    /// Gives every moment its rank, and finds groups, pushes and answers by it.
    fn rank(&mut self, cassette: &Cassette, exchanges: &[u32]) {
        let mut step_of = vec![0; cassette.exchanges.len()];
        for (at, &exchange) in (0_u32..).zip(exchanges) {
            step_of[exchange as usize] = at;
        }
        let order = timeline(cassette, exchanges);
        let mut left: Vec<usize> = self.steps.iter().map(|step| step.moments(cassette)).collect();
        let (mut open, mut last_client, mut alone) = (0usize, None, Vec::new());
        for (rank, moment) in (0..).zip(&order) {
            let at = step_of[moment.exchange as usize];
            let step = &mut self.steps[at as usize];
            match moment.moment {
                Moment::Client => {
                    step.rank = rank;
                    if step.only_http {
                        left[at as usize] -= 1;
                        continue;
                    }
                    last_client = Some(rank);
                    if step.is_asked() && open == 0 {
                        alone.extend(self.groups.take_back_single());
                        self.groups.begin();
                    }
                    open += usize::from(step.is_asked());
                    if open > 0 {
                        step.group = Some(self.groups.len() as u32 - 1);
                        self.groups.push(at);
                    }
                }
                Moment::Item(item) => {
                    self.items[(step.items.0 + item) as usize].rank = rank;
                    if step.kind == StepKind::Push && item == 0 {
                        (step.rank, step.anchor) = (rank, last_client);
                        self.pushes.push(at);
                    }
                }
                Moment::Answer(item) => self.items[(step.items.0 + item) as usize].answer = Some(rank),
            }
            left[at as usize] -= 1;
            if left[at as usize] == 0 && step.is_asked() && !step.only_http {
                open -= 1;
                let (first, count) = step.items;
                if count > 0 {
                    self.answered.push((self.items[(first + count - 1) as usize].rank, at));
                }
            }
        }
        alone.extend(self.groups.take_back_single());
        for at in alone {
            self.steps[at as usize].group = None;
        }
        self.answered.sort_unstable();
    }
}

/// The methods of a script's steps: few, so each is kept once.
#[derive(Debug, Default)]
struct Methods(Vec<Arc<str>>);

impl Methods {
    fn get(&mut self, method: &str) -> Arc<str> {
        if let Some(known) = self.0.iter().find(|known| ***known == *method) {
            return Arc::clone(known);
        }
        let method = Arc::from(method);
        if self.0.len() < 64 {
            self.0.push(Arc::clone(&method));
        }
        method
    }
}

impl Step {
    fn blank(exchange: u32, entry: &Exchange, first_item: usize) -> Self {
        let kind = if entry.client.is_some() { StepKind::Noise } else { StepKind::Push };
        Self {
            exchange,
            kind,
            method: Arc::default(),
            rank: 0,
            items: (first_item as u32, entry.server.len() as u32),
            anchor: None,
            group: None,
            cancelled_at: None,
            dies: false,
            only_http: false,
        }
    }

    fn read(&mut self, message: &Message<'_>, methods: &mut Methods) {
        self.kind = match message.kind {
            Kind::Request => StepKind::Request,
            Kind::Notification => StepKind::Notification,
            Kind::Batch if message.members().any(|member| member.kind == Kind::Request) => StepKind::Batch,
            Kind::Batch => StepKind::Notification,
            Kind::Result | Kind::Error | Kind::Noise => StepKind::Noise,
        };
        self.method = methods.get(&message.method());
    }

    fn moments(&self, cassette: &Cassette) -> usize {
        let entry = &cassette.exchanges[self.exchange as usize];
        let answers = entry.server.iter().filter(|item| item.answer.is_some()).count();
        usize::from(entry.client.is_some()) + entry.server.len() + answers
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
    step.kind == StepKind::Line || (cassette.sessions[entry.session as usize].is_http() && is_sent_on())
}

/// Whether it is an `initialize` that began no session, as a client sends it to find out which transport is spoken.
fn is_refused_handshake(cassette: &Cassette, entry: &Exchange, step: &Step) -> bool {
    &*step.method == "initialize" && cassette.sessions[entry.session as usize].is_http()
}

/// Whether a server item answers the client message of its exchange.
pub(super) fn answers(cassette: &Cassette, blobs: &dyn BlobSource, session: u32, item: &Item) -> bool {
    match item.message.form {
        Form::Result | Form::Error | Form::Omitted => true,
        Form::Batch | Form::Raw | Form::Base64 => {
            let mut bytes = Vec::new();
            let read = cassette.wire(session, false, &item.message, None, blobs, &mut bytes).is_ok();
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
