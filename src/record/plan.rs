//! Which numbers, recordings and keys the sessions of folded journals get in a cassette.

use std::collections::{HashMap, HashSet};

use super::{
    Session, Tape,
    together::{self, Group},
};
use crate::cassette::{
    journal::Continues,
    key::Keys,
    model::{self, Cassette},
};

/// What becomes of a cassette when tapes are added to it.
#[derive(Debug)]
pub struct Plan<'a> {
    pub(super) base: &'a Cassette,
    pub(super) tapes: &'a [Tape],
    /// For each tape the recording that it belongs to.
    groups: Vec<Group>,
    /// The sessions that are added, in order.
    pub(super) added: Vec<Added>,
    /// For each session of the base whether it stays.
    pub(super) stays: Vec<bool>,
    /// Tapes that go on with a session which is not there.
    strays: Vec<usize>,
}

/// A session that is added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addition {
    /// Its number.
    pub session: u32,
    /// The recording it belongs to.
    pub recording: u32,
    /// The id of the journal it comes from.
    pub journal: String,
    /// How many exchanges it has.
    pub exchanges: usize,
}

/// A recording that was to take the place of others and became a part of one instead: the same process had begun that
/// one shortly before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Joined {
    /// That recording.
    pub recording: u32,
    /// It had only asked what the server is: clients do that in a process of its own.
    pub was_probe: bool,
}

/// What clients ask to find out what a server is.
const PROBES: [&str; 4] = ["initialize", "notifications/initialized", "server/discover", "ping"];

/// A session that is added, with its exchanges.
#[derive(Debug)]
pub(super) struct Added {
    pub(super) tape: usize,
    pub(super) session: usize,
    pub(super) number: u32,
    pub(super) recording: u32,
    /// The key of each exchange.
    pub(super) keys: Vec<String>,
    /// For each exchange the one of the base whose place it takes.
    pub(super) instead_of: Vec<Option<usize>>,
    /// The session of the base that it goes on with.
    pub(super) behind: Option<usize>,
}

impl<'a> Plan<'a> {
    /// Adds tapes, in order of their start, to a cassette. Tapes that are in it already are left out. A
    /// tape that is to replace and ended well drops every other recording that came before it.
    pub fn new(base: &'a Cassette, tapes: &'a [Tape]) -> Self {
        let sessions = &base.sessions;
        let groups = together::groups(base, tapes);
        let (added, strays) = (Vec::new(), Vec::new());
        let mut plan = Self { base, tapes, groups, added, stays: vec![true; sessions.len()], strays };
        let mut known: HashSet<&str> =
            sessions.iter().filter_map(|session| session.journal.as_deref()).collect();
        known.extend(base.exchange_journals.iter().map(|(_, journal)| &**journal));
        for (number, tape) in tapes.iter().enumerate() {
            if !known.insert(&tape.header.id) {
                continue;
            }
            if tape.replaces() {
                let (own, groups) = (plan.groups[number], &plan.groups);
                for (stays, session) in plan.stays.iter_mut().zip(sessions) {
                    *stays &= Group::Recorded(session.recording) == own;
                }
                plan.added.retain(|added| groups[added.tape] == own);
            }
            let behind = match tape.header.continues.as_ref().map(|continues| find(base, continues)) {
                Some(None) => {
                    plan.strays.push(number);
                    continue;
                }
                Some(Some(behind)) => behind,
                None => None,
            };
            let added = |session| Added {
                behind,
                tape: number,
                session,
                number: 0,
                recording: 0,
                keys: Vec::new(),
                instead_of: vec![None; tape.sessions[session].exchanges.len()],
            };
            plan.added.extend((0..tape.sessions.len()).map(added));
        }
        plan.number();
        plan.name();
        plan
    }

    /// The sessions that are added.
    pub fn additions(&self) -> impl Iterator<Item = Addition> {
        self.added.iter().map(|added| Addition {
            session: added.number,
            recording: added.recording,
            journal: self.tapes[added.tape].header.id.clone(),
            exchanges: added.keys.len(),
        })
    }

    /// Tapes, by their numbers, that go on with a session which is not there: they must not be added as anything else.
    pub fn strays(&self) -> &[usize] {
        &self.strays
    }

    /// Whether what was to take the place of others became a part of one that was over when it began.
    pub fn joined(&self) -> Option<Joined> {
        self.added.iter().find_map(|added| {
            let (tape, group) = (&self.tapes[added.tape], self.groups[added.tape]);
            let Group::Recorded(recording) = group else { return None };
            let sessions = || self.base.sessions.iter().filter(|known| known.recording == recording);
            let was_over = sessions().all(|known| together::was_over(known, tape.header.started_ms));
            let asked = |exchange: &&model::Exchange| {
                self.base.sessions[exchange.session as usize].recording == recording
            };
            let is_probe =
                |exchange: &model::Exchange| PROBES.iter().any(|probe| is_numbered(&exchange.key, probe));
            let was_probe = self.base.exchanges.iter().filter(asked).all(is_probe);
            (tape.replaces() && was_over).then_some(Joined { recording, was_probe })
        })
    }

    /// Whether nothing is added.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty()
    }

    /// Whether sessions of the base are dropped.
    pub fn drops(&self) -> bool {
        self.stays.contains(&false)
    }

    pub(super) fn session(&self, added: &Added) -> &'a Session {
        &self.tapes[added.tape].sessions[added.session]
    }

    fn number(&mut self) {
        let sessions = &self.base.sessions;
        let mut recordings: HashMap<Group, u32> = HashMap::new();
        let (mut session, mut recording) = (0, 0);
        for stays in sessions.iter().zip(&self.stays).filter_map(|(session, stays)| stays.then_some(session))
        {
            session = session.max(stays.number);
            recording = recording.max(stays.recording);
            recordings.insert(Group::Recorded(stays.recording), stays.recording);
        }
        for added in &mut self.added {
            let header = &self.tapes[added.tape].header;
            if let Some(behind) = added.behind {
                (added.number, added.recording) = (sessions[behind].number, sessions[behind].recording);
                continue;
            }
            if let Some(continues) = &header.continues {
                session += 1;
                (added.number, added.recording) = (session, continues.recording);
                continue;
            }
            session += 1;
            added.number = session;
            added.recording = *recordings.entry(self.groups[added.tape]).or_insert_with(|| {
                recording += 1;
                recording
            });
        }
    }

    /// Gives the exchanges their keys: new numbers, or what a person called the exchange whose place they take.
    pub(super) fn name(&mut self) {
        if self.added.is_empty() {
            return;
        }
        let exchanges = &self.base.exchanges;
        let mut keys = Keys::new();
        let stays = |exchange: &&crate::cassette::model::Exchange| self.stays[exchange.session as usize];
        exchanges.iter().filter(stays).for_each(|exchange| keys.take(&exchange.key));
        let given = |added: &Added, exchange: usize| {
            let old = &exchanges[added.instead_of[exchange]?].key;
            let prefix = &self.tapes[added.tape].sessions[added.session].exchanges[exchange].prefix;
            (!is_numbered(old, prefix)).then(|| old.to_string())
        };
        for added in &self.added {
            (0..added.instead_of.len())
                .filter_map(|exchange| given(added, exchange))
                .for_each(|key| keys.take(&key));
        }
        let names = self.added.iter().map(|added| {
            let exchanges = &self.tapes[added.tape].sessions[added.session].exchanges;
            let name = |(number, exchange): (usize, &super::Exchange)| {
                given(added, number).unwrap_or_else(|| keys.next(&exchange.prefix))
            };
            exchanges.iter().enumerate().map(name).collect()
        });
        let names: Vec<Vec<String>> = names.collect();
        for (added, names) in self.added.iter_mut().zip(names) {
            added.keys = names;
        }
    }
}

/// The session that a tape goes on with, none where it is a further one of its recording; none at all where either is
/// not there.
fn find(base: &Cassette, continues: &Continues) -> Option<Option<usize>> {
    let mut sessions =
        base.sessions.iter().enumerate().filter(|(_, session)| session.recording == continues.recording);
    match continues.session {
        None => sessions.next().map(|_| None),
        Some(number) => {
            let is_it =
                |session: &model::Session| session.number == number && session.journal == continues.journal;
            sessions.find(|(_, session)| is_it(session)).map(|(at, _)| Some(at))
        }
    }
}

/// Whether a key is one that a recorder gave: the prefix and a number.
pub(super) fn is_numbered(key: &str, prefix: &str) -> bool {
    let number = key.strip_prefix(prefix).and_then(|rest| rest.strip_prefix(" @"));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

impl Tape {
    /// Whether it takes the place of older recordings: it is to, is whole, holds an answer, and its server did not
    /// die. What failed must not cost a recording that did not.
    fn replaces(&self) -> bool {
        let is_well = |session: &Session| {
            let died = session.end.as_ref().is_some_and(|end| end.is_by_itself() && end.exit != Some(0));
            session.gap == 0 && !died
        };
        let is_answered = |session: &Session| {
            session.exchanges.iter().any(|exchange| exchange.client.is_some() && !exchange.server.is_empty())
        };
        self.header.replace
            && self.is_whole
            && self.sessions.iter().all(is_well)
            && self.sessions.iter().any(is_answered)
    }
}
