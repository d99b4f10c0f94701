//! What one live session can play: the exchanges of a recorded session, indexed and put in order.

use std::{borrow::Cow, collections::HashMap};

use super::matcher::{Matcher, RuleError};
use crate::{
    cassette::{
        blob::BlobSource,
        model::{Cassette, Exchange, Form, Id, Moment, Unanswered},
        order::timeline,
    },
    wire::jsonrpc::{Kind, Message},
};

/// A position in a script's total order.
pub(super) type Rank = u32;

/// The exchanges of a recorded session, or of the pool that all sessions draw from.
#[derive(Debug)]
pub(super) struct Script {
    /// Index of the recorded session; none for the pool.
    pub session: Option<u32>,
    pub steps: Vec<Step>,
    /// Steps with equal client messages, in file order; found by digest.
    pub queues: Vec<Vec<u32>>,
    by_digest: HashMap<u128, u32>,
    /// Steps with match rules of their own, with their tables and digests.
    own_rules: Vec<(u32, usize, u128)>,
    /// Client messages of each group of overlapping exchanges, in order of rank.
    pub groups: Vec<Vec<u32>>,
    /// Pushes in order of rank.
    pub pushes: Vec<u32>,
    /// Steps that have an answer, in order of its rank.
    pub answered: Vec<(Rank, u32)>,
    /// How many steps are requests.
    pub requests: usize,
}

/// One exchange of a script.
#[derive(Debug)]
pub(super) struct Step {
    /// Index into [`Cassette::exchanges`].
    pub exchange: u32,
    pub kind: StepKind,
    /// The method, for the report's exceptions and for `cancelled`.
    pub method: Box<str>,
    /// Rank of the client message; for a push, of its first item.
    pub rank: Rank,
    pub items: Box<[StepItem]>,
    /// For a push: rank of the last client message before it.
    pub anchor: Option<Rank>,
    /// The group of overlapping exchanges it came in; none for what came while nothing was open.
    pub group: Option<u32>,
    /// The progress token it was recorded with, raw.
    pub token: Option<Box<[u8]>>,
    /// Whether the recorded request asked for log messages (2026-07-28).
    pub log_level: bool,
    /// Rank of the notification that cancelled it.
    pub cancelled_at: Option<Rank>,
    /// The server ended while this was unanswered.
    pub dies: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepKind {
    Request,
    Notification,
    Batch,
    Noise,
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
            queues: Vec::new(),
            by_digest: HashMap::with_capacity(exchanges.len()),
            own_rules: Vec::new(),
            groups: Vec::new(),
            pushes: Vec::new(),
            answered: Vec::new(),
            requests: 0,
        };
        let mut ids: HashMap<Box<[u8]>, u32> = HashMap::new();
        let mut cancels = Vec::new();
        let mut bytes = Vec::new();
        for &exchange in exchanges {
            let entry = &cassette.exchanges[exchange as usize];
            let at = script.steps.len() as u32;
            let mut step = Step::blank(exchange, entry);
            if client_message(cassette, blobs, entry, &mut bytes) {
                let message = Message::read(&bytes);
                step.read(&message);
                if let Some(id) = message.cancelled_id() {
                    cancels.push((at, Box::<[u8]>::from(id)));
                }
                if step.kind == StepKind::Request {
                    let mut id = Vec::new();
                    entry.client.as_ref().map_or(&Id::Absent, |client| &client.id).push(&mut id);
                    ids.insert(id.into(), at);
                }
                script.enter(matcher, entry, &message, at)?;
            }
            let answered = has_answer(cassette, blobs, entry, &step);
            let session = &cassette.sessions[entry.session as usize];
            step.dies = step.is_asked() && !answered && entry.unanswered.is_none() && session.end.is_some();
            script.requests += usize::from(step.is_asked());
            script.steps.push(step);
        }
        script.rank(cassette, exchanges);
        for (cancel, id) in cancels {
            if let Some(&step) = ids.get(&id) {
                script.steps[step as usize].cancelled_at = Some(script.steps[cancel as usize].rank);
            }
        }
        Ok(script)
    }

    fn enter(
        &mut self,
        matcher: &mut Matcher,
        entry: &Exchange,
        message: &Message<'_>,
        at: u32,
    ) -> Result<(), RuleError> {
        if let Some(table) = matcher.own_table(entry, message)? {
            let digest = matcher.digest_with(message, table);
            self.own_rules.push((at, table, digest));
            return Ok(());
        }
        let queues = &mut self.queues;
        let queue = *self.by_digest.entry(matcher.digest(message)).or_insert_with(|| {
            queues.push(Vec::new());
            queues.len() as u32 - 1
        });
        queues[queue as usize].push(at);
        Ok(())
    }

    /// Gives every moment its rank, and finds groups, pushes and answers by it.
    fn rank(&mut self, cassette: &Cassette, exchanges: &[u32]) {
        let step_of: HashMap<u32, u32> = exchanges.iter().copied().zip(0..).collect();
        let order = timeline(cassette, exchanges);
        let mut left: Vec<usize> = self.steps.iter().map(|step| step.moments(cassette)).collect();
        let (mut open, mut last_client) = (0usize, None);
        for (rank, moment) in (0..).zip(&order) {
            let at = step_of[&moment.exchange];
            let step = &mut self.steps[at as usize];
            match moment.moment {
                Moment::Client => {
                    step.rank = rank;
                    last_client = Some(rank);
                    if step.is_asked() && open == 0 {
                        self.groups.push(Vec::new());
                    }
                    open += usize::from(step.is_asked());
                    if open > 0 {
                        step.group = Some(self.groups.len() as u32 - 1);
                        self.groups.last_mut().expect("one is open").push(at);
                    }
                }
                Moment::Item(item) => {
                    step.items[item as usize].rank = rank;
                    if step.kind == StepKind::Push && item == 0 {
                        (step.rank, step.anchor) = (rank, last_client);
                        self.pushes.push(at);
                    }
                }
                Moment::Answer(item) => step.items[item as usize].answer = Some(rank),
            }
            left[at as usize] -= 1;
            if left[at as usize] == 0 && step.is_asked() {
                open -= 1;
                if let Some(item) = step.items.last() {
                    self.answered.push((item.rank, at));
                }
            }
        }
        self.answered.sort_unstable();
    }

    /// Which queue a live message draws from, and the steps with rules of their own that equal it.
    pub(super) fn find(&self, matcher: &mut Matcher, message: &Message<'_>) -> (Option<u32>, Vec<u32>) {
        let queue = self.by_digest.get(&matcher.digest(message)).copied();
        let mut own = Vec::new();
        for &(step, table, digest) in &self.own_rules {
            if matcher.digest_with(message, table) == digest {
                own.push(step);
            }
        }
        (queue, own)
    }
}

impl Step {
    fn blank(exchange: u32, entry: &Exchange) -> Self {
        let kind = if entry.client.is_some() { StepKind::Noise } else { StepKind::Push };
        Self {
            exchange,
            kind,
            method: Box::default(),
            rank: 0,
            items: vec![StepItem { rank: 0, answer: None }; entry.server.len()].into(),
            anchor: None,
            group: None,
            token: None,
            log_level: false,
            cancelled_at: None,
            dies: false,
        }
    }

    fn read(&mut self, message: &Message<'_>) {
        self.kind = match message.kind {
            Kind::Request => StepKind::Request,
            Kind::Notification => StepKind::Notification,
            Kind::Batch if message.members().any(|member| member.kind == Kind::Request) => StepKind::Batch,
            Kind::Batch => StepKind::Notification,
            Kind::Result | Kind::Error | Kind::Noise => StepKind::Noise,
        };
        self.method = message.method().into();
        if self.kind == StepKind::Request {
            self.token = message.progress_token().map(Box::from);
            self.log_level = message.meta("io.modelcontextprotocol/logLevel").is_some();
        }
    }

    fn moments(&self, cassette: &Cassette) -> usize {
        let entry = &cassette.exchanges[self.exchange as usize];
        let answers = entry.server.iter().filter(|item| item.answer.is_some()).count();
        usize::from(entry.client.is_some()) + entry.server.len() + answers
    }
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

/// Whether one of an exchange's items answers its client message.
fn has_answer(cassette: &Cassette, blobs: &dyn BlobSource, entry: &Exchange, step: &Step) -> bool {
    entry.server.iter().any(|item| match item.message.form {
        Form::Result | Form::Error | Form::Omitted => true,
        Form::Batch => step.kind == StepKind::Batch,
        Form::Request | Form::Notification => false,
        Form::Raw | Form::Base64 => {
            let mut bytes = Vec::new();
            let read = cassette.wire(entry.session, false, &item.message, None, blobs, &mut bytes).is_ok();
            read && Message::read(&bytes).kind.is_response()
        }
    })
}

/// Whether an exchange is recorded as one that stays silent.
pub(super) const fn stays_silent(entry: &Exchange) -> bool {
    matches!(entry.unanswered, Some(Unanswered::Cancelled | Unanswered::Open))
}

/// A recorded session's name for its client, for the choice of sessions.
pub(super) fn client_name<'a>(message: &Message<'a>) -> Option<Cow<'a, str>> {
    message.param("/clientInfo/name").map(crate::wire::jsonrpc::text)
}
