//! Which session a request over HTTP belongs to.

use std::collections::HashMap;

use super::{Lane, Role, heads::all};
use crate::{
    record::{
        Fold, Session,
        state::{Lookup, Open},
    },
    traffic::{Micros, ResponseHead},
    wire::{
        http::resolve,
        jsonrpc::{Kind, Message},
    },
};

/// Where requests that belong to a session without a name go: there is one from the start.
pub(super) const COMMON: usize = 0;

/// What leads to sessions.
#[derive(Debug, Default)]
pub(in super::super) struct Addresses {
    /// By `mcp-session-id`.
    ids: HashMap<Box<[u8]>, usize>,
    /// By path and query of an endpoint of HTTP+SSE.
    endpoints: HashMap<Box<str>, usize>,
    /// The last one that has no id.
    stateless: Option<usize>,
}

impl Fold {
    /// The session that a request names.
    pub(super) fn session_of_header(&self, lane: &Lane) -> Option<usize> {
        let id = lane.session_id.as_deref()?;
        self.lanes.addresses.ids.get(id).copied()
    }

    /// The session of a message that was posted.
    pub(super) fn session_of(&mut self, lane: &mut Lane, message: &Message<'_>) -> usize {
        if let Some(session) = self.lanes.addresses.endpoints.get(&*lane.target) {
            return *session;
        }
        let named = self.session_of_header(lane);
        if message.kind == Kind::Request && message.method() == "initialize" && !message.is_modern() {
            let session = self.begin_over_http(lane.head.at);
            self.sessions[session].instead = Some(named.unwrap_or(COMMON));
            lane.begins = Some(session);
            return session;
        }
        match named {
            Some(session) => session,
            None if lane.session_id.is_some() || message.is_modern() => COMMON,
            None => self.lanes.addresses.stateless.unwrap_or(COMMON),
        }
    }

    /// The session of a request that is no message.
    pub(super) fn session_of_plain(&self, lane: &Lane) -> usize {
        let is_of_endpoint = |session: &usize| {
            let path = self.sessions[*session].session.path.as_deref();
            lane.session_id.is_none() && path == Some(&lane.target)
        };
        let posted = self.lanes.addresses.endpoints.get(&*lane.target).copied();
        let named = posted.or_else(|| self.session_of_header(lane));
        let is_ours = matches!(&*lane.method, "GET" | "DELETE" | "POST");
        named
            .or_else(|| self.lanes.addresses.stateless.filter(is_of_endpoint).filter(|_| is_ours))
            .unwrap_or(COMMON)
    }

    /// A session that begins over HTTP, with requests of its own.
    fn begin_over_http(&mut self, at: Micros) -> usize {
        let session = Session { at_ms: self.at_ms(at), ..Session::default() };
        self.lookups.push(Lookup::default());
        let lookup = self.lookups.len() - 1;
        self.sessions.push(Open { session, lookup, ..Open::default() });
        self.sessions.len() - 1
    }

    /// Notes what the response to an `initialize` calls its session.
    pub(super) fn note_session_id(&mut self, lane: &Lane, head: &ResponseHead<'_>) {
        let Some(session) = lane.begins.filter(|_| (200..300).contains(&head.status)) else { return };
        if let Some(id) = all(&head.headers, "mcp-session-id").next() {
            self.lanes.addresses.ids.insert(id.into(), session);
            self.sessions[session].session.live_id = Some(id.into());
        }
    }

    /// An `initialize` was answered by a result.
    pub(super) fn has_begun(&mut self, session: usize) {
        let open = &mut self.sessions[session];
        open.instead = None;
        if open.session.live_id.is_none() {
            self.lanes.addresses.stateless = Some(session);
        }
    }

    /// Begins a session of HTTP+SSE with the event that says where its messages are posted.
    pub(super) fn begin_sse(&mut self, lane: &mut Lane, address: &[u8], at: Micros) {
        let session = self.begin_over_http(at);
        let endpoint = resolve(&lane.target, address);
        let open = &mut self.sessions[session];
        open.session.is_sse = true;
        open.session.path = Some(lane.target.as_str().into());
        let id = Some(id_in(&endpoint).as_bytes()).filter(|id| !id.is_empty());
        open.session.live_id = id.map(Into::into);
        self.lanes.addresses.endpoints.insert(endpoint.into(), session);
        let owner = self.plain_in(lane, session);
        lane.role = Some(Role::Stream(owner));
    }

    /// Puts the exchanges of sessions that did not begin where they belong, and all in the order of their beginning.
    pub(in super::super) fn settle_sessions(&mut self) {
        for session in 1..self.sessions.len() {
            let Some(mut instead) = self.sessions[session].instead else { continue };
            if self.sessions[session].session.live_id.is_some() {
                // Its answer came another way, or never: requests that name it show that it was one.
                continue;
            }
            while let Some(next) = self.sessions[instead].instead.filter(|next| *next < instead) {
                instead = next;
            }
            let failed = std::mem::take(&mut self.sessions[session].session);
            let into = &mut self.sessions[instead].session;
            into.path = into.path.take().or(failed.path);
            into.facts.client = into.facts.client.take().or(failed.facts.client);
            into.gap = into.gap.saturating_add(failed.gap);
            into.exchanges.extend(failed.exchanges);
        }
        if self.lookups.len() == 1
            && self.sessions.iter().all(|open| open.states.iter().all(|state| state.http.is_none()))
        {
            return;
        }
        let started = self.at_ms(0);
        let first = |session: &Session| {
            session.exchanges.iter().map(super::super::Exchange::first).min().unwrap_or((u32::MAX, 0))
        };
        for open in &mut self.sessions {
            open.session.exchanges.sort_by_cached_key(|exchange| exchange.first().0);
            let (order, at) = first(&open.session);
            if order < u32::MAX {
                open.session.at_ms = started.saturating_add(at / 1000);
            }
        }
        self.sessions.sort_by_cached_key(|open| first(&open.session).0);
    }
}

impl super::super::Exchange {
    /// Order and time of its first moment.
    fn first(&self) -> (u32, Micros) {
        let item = self.server.first().map(|item| item.moment);
        self.client.or(item).map_or((u32::MAX, 0), |moment| (moment.order, moment.at))
    }
}

/// The part of an endpoint's address that tells its session from others.
fn id_in(endpoint: &str) -> &str {
    let query = endpoint.split_once('?').map_or("", |(_, query)| query);
    let named = query.split('&').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        Some(value).filter(|value| name.to_ascii_lowercase().contains("session") && !value.is_empty())
    });
    named.unwrap_or(endpoint)
}
