//! One exchange of a script.

use super::Rank;
use crate::{
    cassette::model::{Cassette, Exchange},
    replay::methods::Methods,
    wire::jsonrpc::{Kind, Message},
};

/// One exchange of a script. A big cassette has many: they are kept small.
#[derive(Debug)]
pub(in crate::replay) struct Step {
    /// Index into [`Cassette::exchanges`].
    pub exchange: u32,
    pub kind: StepKind,
    /// The server ended while this was unanswered.
    pub dies: bool,
    /// Only a client of HTTP makes this request: it opens or ends something, or is sent on, or asked for credentials.
    /// Whether and when it comes is up to the client; nothing waits for it.
    pub only_http: bool,
    /// Rank of the client message; for a push, of its first item.
    pub rank: Rank,
    /// Its method, by its place among the script's.
    pub(super) method: u32,
    /// How many server items it has, and where they stand among all where that is not one.
    pub(super) items: (u32, u32),
    /// That one item.
    pub(super) item: StepItem,
    pub(super) anchor: Maybe,
    pub(super) group: Maybe,
    pub(super) cancelled_at: Maybe,
}

/// A number that may be missing, in half the room of an option.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::replay) struct Maybe(pub(in crate::replay) u32);

impl Maybe {
    pub(in crate::replay) const NONE: Self = Self(u32::MAX);

    pub(in crate::replay) const fn get(self) -> Option<u32> {
        if self.0 == Self::NONE.0 { None } else { Some(self.0) }
    }
}

impl std::fmt::Debug for Maybe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.get().fmt(f)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::replay) enum StepKind {
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
pub(in crate::replay) struct StepItem {
    pub rank: Rank,
    pub(super) answer: Maybe,
}

impl StepItem {
    pub(super) const BLANK: Self = Self { rank: 0, answer: Maybe::NONE };

    /// Rank of the client's answer to it.
    pub(in crate::replay) const fn answer(&self) -> Option<Rank> {
        self.answer.get()
    }
}

impl Step {
    /// Whether the client waits for an answer to it.
    pub(in crate::replay) const fn is_asked(&self) -> bool {
        matches!(self.kind, StepKind::Request | StepKind::Batch)
    }

    /// For a push: rank of the last client message before it.
    pub(in crate::replay) const fn anchor(&self) -> Option<Rank> {
        self.anchor.get()
    }

    /// The group of overlapping exchanges it came in; none for what overlapped with nothing.
    pub(in crate::replay) const fn group(&self) -> Option<u32> {
        self.group.get()
    }

    /// Rank of the notification that cancelled it.
    pub(in crate::replay) const fn cancelled_at(&self) -> Option<Rank> {
        self.cancelled_at.get()
    }
}

impl Step {
    pub(super) fn blank(exchange: u32, entry: &Exchange, first_item: usize) -> Self {
        let kind = if entry.client.is_some() { StepKind::Noise } else { StepKind::Push };
        Self {
            exchange,
            kind,
            dies: false,
            only_http: false,
            rank: 0,
            method: Methods::NONE,
            items: (entry.server.len() as u32, first_item as u32),
            item: StepItem::BLANK,
            anchor: Maybe::NONE,
            group: Maybe::NONE,
            cancelled_at: Maybe::NONE,
        }
    }

    pub(super) fn read(&mut self, message: &Message<'_>, methods: &mut Methods) {
        self.kind = match message.kind {
            Kind::Request => StepKind::Request,
            Kind::Notification => StepKind::Notification,
            Kind::Batch if message.members().any(|member| member.kind == Kind::Request) => StepKind::Batch,
            Kind::Batch => StepKind::Notification,
            Kind::Result | Kind::Error | Kind::Noise => StepKind::Noise,
        };
        self.method = methods.number(&message.method());
    }

    pub(super) fn moments(&self, cassette: &Cassette) -> u32 {
        let entry = &cassette.exchanges[self.exchange as usize];
        let answers = entry.server.iter().filter(|item| item.answer.is_some()).count();
        (usize::from(entry.client.is_some()) + entry.server.len() + answers) as u32
    }
}
