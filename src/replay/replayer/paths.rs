//! At which paths messages were taken when recorded: where that were several, none answers for another.

use std::borrow::Cow;

use super::{Replayer, streams::is_line};
use crate::{
    cassette::model::{Cassette, Exchange},
    replay::{matcher::canonical::without_numbers, script::Script},
    wire::{http::path_of, jsonrpc::Message},
};

/// The targets at which messages were taken, path and query; none where that was one.
#[derive(Debug, Default)]
pub(super) struct Paths(Vec<Box<str>>);

/// At which of them an exchange was recorded that may answer a request.
#[derive(Clone, Debug, Default)]
pub(super) enum Scope {
    /// At whichever.
    #[default]
    All,
    /// At this target.
    Target(Box<str>),
    /// At this path, with whatever query.
    Path(Box<str>),
}

impl Paths {
    pub(super) fn of(cassette: &Cassette, scripts: &[Script]) -> Self {
        let steps = scripts.iter().flat_map(|script| &script.steps);
        let targets = steps.filter_map(|step| target(cassette, &cassette.exchanges[step.exchange as usize]));
        let mut targets: Vec<&str> = targets.collect();
        targets.sort_unstable();
        targets.dedup();
        let mut known: Vec<Box<str>> = targets.into_iter().map(|target| comparable(target).into()).collect();
        known.sort_unstable();
        known.dedup();
        Self(if known.len() > 1 { known } else { Vec::new() })
    }

    pub(super) const fn are_several(&self) -> bool {
        !self.0.is_empty()
    }

    /// What may answer a request for this target, from which what is secret is removed.
    pub(super) fn scope(&self, target: &str) -> Scope {
        if self.0.is_empty() {
            return Scope::All;
        }
        let target = comparable(target);
        if self.0.iter().any(|known| **known == *target) {
            return Scope::Target(target.into());
        }
        let mut paths = self.0.iter().map(|known| path_of(known));
        match paths.next().is_some_and(|first| paths.any(|other| other != first)) {
            true => Scope::Path(path_of(&target).into()),
            false => Scope::All,
        }
    }
}

impl Scope {
    /// Whether it has what was recorded at this target; what was recorded at none is for all.
    pub(super) fn has(&self, recorded: Option<&str>) -> bool {
        match (self, recorded) {
            (Self::All, _) | (_, None) => true,
            (Self::Target(target), Some(recorded)) => **target == *comparable(recorded),
            (Self::Path(only), Some(recorded)) => **only == *path_of(recorded),
        }
    }
}

/// The target to which the client's message of an exchange was posted.
pub(super) fn target<'a>(cassette: &'a Cassette, entry: &'a Exchange) -> Option<&'a str> {
    let session = &cassette.sessions[entry.session as usize];
    if entry.client.is_none() || is_line(entry) || !session.is_http() || session.is_sse() {
        return None;
    }
    entry.http.as_deref().and_then(|http| http.path.as_deref()).or(session.path.as_deref())
}

/// A target as others are compared with: which number a secret got says nothing.
pub(super) fn comparable(target: &str) -> Cow<'_, str> {
    match without_numbers(target.as_bytes()) {
        Cow::Borrowed(_) => Cow::Borrowed(target),
        Cow::Owned(plain) => Cow::Owned(String::from_utf8_lossy(&plain).into_owned()),
    }
}

impl Replayer {
    /// The scope of the message that has just come; none where any path may answer it.
    fn scope_at_hand(&self) -> Option<&Scope> {
        let scope = self.at_hand.facts.as_ref()?.scope();
        (!matches!(scope, Scope::All)).then_some(scope)
    }

    /// Whether a script's session was begun where the message that has just come was sent.
    pub(super) fn begins_here(&self, script: usize) -> bool {
        let Some(scope) = self.scope_at_hand() else { return true };
        let begins = self.scripts[script].handshake();
        begins.is_none_or(|step| {
            scope.has(target(&self.cassette, &self.cassette.exchanges[step.exchange as usize]))
        })
    }

    /// An exchange that equals the message and is left out because it was recorded at another path.
    pub(super) fn at_another_path(&mut self, message: &Message<'_>) -> Option<u32> {
        self.scope_at_hand()?;
        for script in 0..self.scripts.len() {
            let script = &mut self.scripts[script];
            let first = script.first(&self.cassette, &*self.blobs, &mut self.matcher, message);
            let scope = self.at_hand.facts.as_ref().map(|facts| facts.scope());
            let is_elsewhere = |exchange: &u32| {
                let recorded = target(&self.cassette, &self.cassette.exchanges[*exchange as usize]);
                scope.is_some_and(|scope| !scope.has(recorded))
            };
            if let Some(exchange) = first.filter(is_elsewhere) {
                return Some(exchange);
            }
        }
        None
    }
}
