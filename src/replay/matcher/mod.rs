//! Which recorded exchange a live message asks for.
//!
//! Two messages are equal when their [`canonical()`] forms are. What the form leaves out is decided here, and only
//! here, in this order:
//!
//! 1. `initialize` and `server/discover` match by method alone.
//! 2. What varies from run to run by the protocol's own design ([`VOLATILE`]) never counts.
//! 3. The cassette's `match` rules whose `when` fits the live message exempt further places.
//! 4. A rule that names a key, or stands on an exchange, exempts places for that exchange only.
//!
//! Of the exchanges that are equal, the first one not yet played in file order is taken.
//!
//! To add a way of exempting: a variant of [`canonical::Exemption`], its name in [`model::MatchRule`], one line in
//! [`Matcher::add`].

pub(super) mod beginning;
pub(super) mod blanks;
pub(super) mod bodies;
pub mod canonical;
mod spelled;

use std::collections::HashMap;

use regex::bytes::Regex;

use self::canonical::{Digest, Exemption, Places, Room, canonical, digest, push_text, without_numbers};
use crate::{
    cassette::model::{self, Cassette, MatchRule},
    wire::{
        jsonrpc::{Kind, Message},
        scan,
    },
};

/// Places that differ from run to run whatever the client asks (specification 2026-07-28, basic/index, `_meta`;
/// basic/patterns/mrtr; 2025-11-25, basic/utilities/cancellation and progress).
const VOLATILE: &[(&str, Volatile)] = &[
    ("/params/_meta/progressToken", Volatile::Value),
    ("/params/_meta/io.modelcontextprotocol~1protocolVersion", Volatile::Value),
    ("/params/_meta/io.modelcontextprotocol~1clientInfo", Volatile::Value),
    ("/params/_meta/io.modelcontextprotocol~1clientCapabilities", Volatile::Value),
    ("/params/_meta/traceparent", Volatile::Value),
    ("/params/_meta/tracestate", Volatile::Value),
    ("/params/_meta/baggage", Volatile::Value),
    ("/params/inputResponses", Volatile::Values),
];

/// Places that differ in these notifications only.
const VOLATILE_NOTIFICATIONS: &[(&str, &str)] =
    &[("notifications/cancelled", "/params/requestId"), ("notifications/progress", "/params/progressToken")];

#[derive(Clone, Copy)]
enum Volatile {
    /// The value does not count.
    Value,
    /// The values of its members do not count, their names do.
    Values,
}

/// Whether what stands at a place, or around it, does not count in any message.
pub(super) fn is_volatile(at: &str) -> bool {
    VOLATILE.iter().any(|(place, volatile)| {
        let below = at.strip_prefix(place);
        matches!(volatile, Volatile::Value)
            && below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
    })
}

/// A match rule that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct RuleError {
    /// Offset of the rule in the cassette's text.
    pub at: usize,
    /// One sentence.
    pub text: String,
}

/// The compiled rules of a cassette.
#[derive(Debug)]
pub(crate) struct Matcher {
    rules: Vec<MatchRule>,
    /// Tables of exempt places, one for each set of rules that has fitted a message.
    tables: Vec<Places>,
    by_rules: HashMap<Vec<usize>, usize>,
    by_notification: HashMap<&'static str, usize>,
    /// How many live messages each rule was applied to.
    pub(crate) used: Vec<u64>,
    scratch: Vec<u8>,
    room: Room,
}

impl Matcher {
    /// Compiles the rules of a cassette.
    ///
    /// # Errors
    /// When a pattern is no regular expression or a type none of JSON's.
    pub(crate) fn new(cassette: &Cassette) -> Result<Self, RuleError> {
        let matcher =
            Self { rules: cassette.rules.clone(), used: vec![0; cassette.rules.len()], ..Self::plain() };
        for rule in &cassette.rules {
            matcher.add(rule, &mut volatile())?;
        }
        Ok(matcher)
    }

    /// Of no cassette: nothing is exempt but what varies by itself.
    pub(crate) fn plain() -> Self {
        let mut matcher = Self {
            rules: Vec::new(),
            tables: vec![volatile()],
            by_rules: HashMap::from([(Vec::new(), 0)]),
            by_notification: HashMap::new(),
            used: Vec::new(),
            scratch: Vec::new(),
            room: Room::default(),
        };
        for &(method, pointer) in VOLATILE_NOTIFICATIONS {
            let mut places = volatile();
            places.exempt(pointer, Exemption::Ignore);
            matcher.by_notification.insert(method, matcher.tables.len());
            matcher.tables.push(places);
        }
        matcher
    }

    fn add(&self, rule: &MatchRule, places: &mut Places) -> Result<(), RuleError> {
        let error = |text| RuleError { at: rule.place.start as usize, text };
        for pointer in &rule.ignore {
            places.exempt(pointer, Exemption::Ignore);
        }
        for (pointer, pattern) in &rule.pattern {
            let pattern = Regex::new(pattern).map_err(|cause| {
                error(format!("the pattern for `{pointer}` is no regular expression: {cause}"))
            })?;
            places.exempt(pointer, Exemption::Pattern(pattern));
        }
        for (pointer, name) in &rule.types {
            if !["string", "number", "boolean", "object", "array", "null"].contains(&&**name) {
                return Err(error(format!(
                    "a match rule wants type `{name}` at `{pointer}`; \
                     expected string, number, boolean, object, array or null"
                )));
            }
            places.exempt(pointer, Exemption::Type(name.as_str().into()));
        }
        Ok(())
    }

    /// The table for a message, by the rules whose `when` fits it; rules that name a key are not among them.
    fn table(&mut self, message: &Message<'_>) -> usize {
        let rules = match self.known_table(message) {
            Ok(table) => return table,
            Err(rules) => rules,
        };
        let mut places = volatile();
        for &at in &rules {
            self.add(&self.rules[at], &mut places).expect("checked when the rules were compiled");
        }
        self.tables.push(places);
        self.by_rules.insert(rules, self.tables.len() - 1);
        self.tables.len() - 1
    }

    /// The same, if there is one already; else the rules that it will be of.
    fn known_table(&self, message: &Message<'_>) -> Result<usize, Vec<usize>> {
        if message.kind == Kind::Notification
            && let Some(&table) = self.by_notification.get(&*message.method())
        {
            return Ok(table);
        }
        if self.rules.is_empty() {
            return Ok(0);
        }
        let rules = self.fitting(message);
        self.by_rules.get(&rules).copied().ok_or(rules)
    }

    fn fitting(&self, message: &Message<'_>) -> Vec<usize> {
        let method = message.method();
        let fitting = |rule: &MatchRule| rule.when.key.is_none() && rule.when.fits(&method, message);
        (0..self.rules.len()).filter(|&at| fitting(&self.rules[at])).collect()
    }

    /// Counts the rules that are applied to a live message.
    pub(crate) fn note_use(&mut self, message: &Message<'_>) {
        if self.rules.is_empty() {
            return;
        }
        for at in self.fitting(message) {
            self.used[at] += 1;
        }
    }

    /// The digest under which a recorded or live message is known.
    pub(crate) fn digest(&mut self, message: &Message<'_>) -> Digest {
        let table = self.table(message);
        self.digest_with(message, table)
    }

    /// The digest of a request or notification as it is spelled; none of other messages. Where two are the same, so
    /// are those of [`Matcher::digest`].
    pub(crate) fn spelled(&mut self, message: &Message<'_>) -> Option<Digest> {
        let kind = match message.kind {
            Kind::Request => b'?',
            Kind::Notification => b'!',
            _ => return None,
        };
        let (form, method) = (&mut self.scratch, message.method());
        form.clear();
        form.push(kind);
        form.extend_from_slice(&method.len().to_le_bytes());
        form.extend_from_slice(method.as_bytes());
        let is_told = message.params().is_none_or(|params| spelled::push_params(params, form));
        let digest = is_told.then(|| digest(form));
        form.shrink_to(1 << 16);
        digest
    }

    /// The canonical form of a live message.
    pub(crate) fn form(&mut self, message: &Message<'_>) -> Vec<u8> {
        let table = self.table(message);
        let mut form = Vec::new();
        push_form(message, &self.tables[table], &mut self.room, &mut form);
        form
    }

    /// The form of a message in which placeholders keep their numbers (and members their order, if told so), under the
    /// table of a recorded one that has its own; none of batches, responses and what cannot be read.
    pub(super) fn numbered_form(
        &mut self,
        message: &Message<'_>,
        own: Option<usize>,
        keeps_order: bool,
    ) -> Option<Vec<u8>> {
        if message.kind == Kind::Noise {
            let mut form = Vec::new();
            push_text(message.bytes, true, &mut form);
            return Some(form);
        }
        self.full_form(message, own, Room::keeping_numbers(keeps_order))
    }

    /// The digest of a request with its params, where it is matched by its method alone too; `own` as above.
    pub(super) fn full_digest(&mut self, message: &Message<'_>, own: Option<usize>) -> Option<Digest> {
        self.full_form(message, own, Room::default()).map(|form| digest(&form))
    }

    fn full_form(&mut self, message: &Message<'_>, own: Option<usize>, mut room: Room) -> Option<Vec<u8>> {
        let mut form = Vec::new();
        let table = own.unwrap_or_else(|| self.table(message));
        let is_asked = matches!(message.kind, Kind::Request | Kind::Notification);
        let params = is_asked.then(|| message.params())?;
        let read = canonical(message.method().as_bytes(), params, &self.tables[table], &mut room, &mut form);
        read.is_ok().then_some(form)
    }

    /// Whether an exchange has rules of its own.
    pub(crate) fn has_rules_for(&self, exchange: &model::Exchange) -> bool {
        self.rules_for(exchange).next().is_some()
    }

    fn rules_for<'a>(&'a self, exchange: &'a model::Exchange) -> impl Iterator<Item = &'a MatchRule> {
        let keyed = |rule: &&MatchRule| rule.when.key.as_deref() == Some(&*exchange.key);
        self.rules.iter().filter(keyed).chain(exchange.rule.as_deref())
    }

    /// A table for one exchange that has rules of its own, and the digest of its message under it.
    ///
    /// # Errors
    /// As [`Matcher::new`].
    pub(crate) fn own_digest(
        &mut self,
        exchange: &model::Exchange,
        message: &Message<'_>,
    ) -> Result<Option<(usize, Digest)>, RuleError> {
        if !self.has_rules_for(exchange) {
            return Ok(None);
        }
        let table = self.table(message);
        let mut places = self.tables[table].clone();
        for rule in self.rules_for(exchange) {
            self.add(rule, &mut places)?;
        }
        let table = self.tables.len();
        self.tables.push(places);
        Ok(Some((table, self.digest_with(message, table))))
    }

    /// What does not count of a live message that equals a recorded one; `own` is the table of that one, if it has its
    /// own.
    pub(crate) fn places(&self, message: &Message<'_>, own: Option<usize>) -> &Places {
        &self.tables[own.or_else(|| self.known_table(message).ok()).unwrap_or_default()]
    }

    /// The digest of a message under one table.
    pub(crate) fn digest_with(&mut self, message: &Message<'_>, table: usize) -> Digest {
        let mut form = std::mem::take(&mut self.scratch);
        form.clear();
        push_form(message, &self.tables[table], &mut self.room, &mut form);
        let digest = digest(&form);
        form.shrink_to(1 << 16);
        self.room.shrink();
        self.scratch = form;
        digest
    }
}

fn volatile() -> Places {
    let mut places = Places::default();
    for &(pointer, volatile) in VOLATILE {
        places.exempt(
            pointer,
            match volatile {
                Volatile::Value => Exemption::Ignore,
                Volatile::Values => Exemption::Names,
            },
        );
    }
    for pointer in ["/params", "/params/_meta", "/params/arguments"] {
        places.empty_is_none(pointer);
    }
    places
}

fn push_form(message: &Message<'_>, places: &Places, room: &mut Room, out: &mut Vec<u8>) {
    let start = out.len();
    match message.kind {
        Kind::Request | Kind::Notification => {
            let method = message.method();
            let by_method = matches!(&*method, "initialize" | "server/discover");
            let params = if by_method { None } else { message.params() };
            out.push(if message.kind == Kind::Request { b'?' } else { b'!' });
            if canonical(method.as_bytes(), params, places, room, out).is_err() {
                // Params that cannot be read are compared as they are spelled.
                out.truncate(start);
                out.extend_from_slice(&without_numbers(message.bytes));
            }
        }
        Kind::Batch => {
            out.push(b'[');
            for member in message.members() {
                push_form(&member, places, room, out);
            }
        }
        Kind::Result | Kind::Error | Kind::Noise => {
            out.push(b'#');
            out.extend_from_slice(&without_numbers(scan::trim(message.bytes).of(message.bytes)));
        }
    }
}
