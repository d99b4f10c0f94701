//! Rules that name what nobody has recorded.

use std::{cell::RefCell, collections::BTreeSet, fmt};

use super::{engine::Request, error::list, plan::Scope, rule::Rule};
use crate::cassette::{model, nearest};

/// So many choices are listed.
const MOST_LISTED: usize = 12;

/// A rule that fits nothing that was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stranger {
    name: Box<str>,
    place: Option<Box<str>>,
    by_option: bool,
    /// What of its `when` says most, and which values of it were recorded.
    member: &'static str,
    wanted: Box<str>,
    known: BTreeSet<String>,
    /// What it is about all the same, and why it does nothing there.
    passes_by: Option<Box<str>>,
}

impl Stranger {
    /// `recorded` shows each recorded request until it is told that this is the one.
    pub(super) fn of<F>(rule: &Rule, scope: Option<Scope>, recorded: &mut F) -> Self
    where
        F: FnMut(&dyn Fn(&Request<'_>) -> bool) -> bool,
    {
        let model::When { method, tool, prompt, uri, key } = &rule.when.request;
        let members = [("key", key), ("tool", tool), ("prompt", prompt), ("uri", uri), ("method", method)];
        let named = members.into_iter().find_map(|(member, wanted)| Some((member, wanted.clone()?)));
        let session = || Some(("session", rule.when.session?.to_string()));
        let (member, wanted) = named.or_else(session).unwrap_or_default();
        let known = RefCell::new(BTreeSet::new());
        recorded(&|request| {
            let name = || request.message.name().map(std::borrow::Cow::into_owned);
            known.borrow_mut().extend(match (member, request.method) {
                ("key", _) => request.key.map(str::to_owned),
                ("session", _) => request.session.map(|session| session.to_string()),
                ("method", method) => Some(method.to_owned()),
                ("tool", "tools/call") | ("prompt", "prompts/get") => name(),
                ("uri", method) if method.starts_with("resources/") => name(),
                _ => None,
            });
            false
        });
        let passes_by = RefCell::new(None);
        recorded(&|request| {
            let is_it = rule.when.names(request);
            if is_it {
                *passes_by.borrow_mut() = rule.passes_by(request, scope).map(Into::into);
            }
            is_it
        });
        let (name, place, by_option) = (rule.short_name().into(), rule.place.clone(), rule.by_option);
        let (known, passes_by, wanted) = (known.into_inner(), passes_by.into_inner(), wanted.into());
        Self { name, place, by_option, member, wanted, known, passes_by }
    }

    /// Whether it stands in an option of the command line.
    pub const fn by_option(&self) -> bool {
        self.by_option
    }

    /// Of the rules that are strange to each of several servers, those that are so to all of them.
    pub fn to_all(of_servers: impl IntoIterator<Item = Vec<Self>>) -> Vec<Self> {
        let both = |one: Vec<Self>, other: Vec<Self>| {
            let other = |known: &Self| other.iter().find(|other| other.is_same(known)).cloned();
            one.into_iter().filter_map(|known| other(&known).map(|other| known.or(other))).collect()
        };
        of_servers.into_iter().reduce(both).unwrap_or_default()
    }

    /// Whether both are of one rule.
    fn is_same(&self, other: &Self) -> bool {
        (&self.name, &self.place, &self.wanted) == (&other.name, &other.place, &other.wanted)
    }

    /// The same where what another server has can be meant too.
    fn or(mut self, other: Self) -> Self {
        self.known.extend(other.known);
        self
    }
}

impl fmt::Display for Stranger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, place, member, wanted, known, passes_by, .. } = self;
        write!(f, "the fault rule {name}")?;
        if let Some(place) = place {
            write!(f, " ({place})")?;
        }
        if let Some(why) = passes_by {
            return write!(f, " can never act: {why}");
        }
        f.write_str(" fits nothing that was recorded; ")?;
        if known.contains(&**wanted) {
            return f.write_str("correct its `when`");
        }
        // Of numbers none is meant rather than another.
        let names = known.iter().filter(|_| *member != "session");
        if let Some(meant) = nearest(wanted, names.map(String::as_str)) {
            return write!(f, "did you mean the {member} `{meant}`?");
        }
        let listed = list(known.iter().map(String::as_str).take(MOST_LISTED));
        match known.len() {
            0 => write!(f, "there is nothing that its {member} could be"),
            count if count > MOST_LISTED => write!(f, "its {member} can be {listed} and others"),
            _ => write!(f, "its {member} can be {listed}"),
        }
    }
}
