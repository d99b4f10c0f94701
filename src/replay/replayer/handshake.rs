//! `initialize`: which recorded session a live one plays, and what both sides said they can do.

use super::{Found, Now, Replayer, lives::Live};
use crate::{
    replay::{
        own::{self, Declared},
        script::{Script, client_message, client_name},
    },
    report::Reason,
    traffic::Lane,
    wire::{
        jsonrpc::{Kind, Message, text},
        scan,
    },
};

impl Replayer {
    /// Begins a session, or goes on with one that a fault has ended.
    pub(super) fn initialize(&mut self, now: Now, lane: Lane, message: &Message<'_>) {
        if self.at_hand.facts.is_some() && self.at_hand.post.is_none() {
            // A client may name the session that it had before (F10.3).
            (self.at_hand.live, self.at_hand.is_known) = (0, false);
            if let Some(stream) = self.streams.get_mut(&lane.0) {
                stream.live = 0;
            }
        }
        // Over HTTP, one that was sent elsewhere or refused comes first if it was recorded so.
        if self.at_hand.facts.is_some() {
            let found = self.find_in(0, message, None).filter(|found| self.is_for(*found));
            if let Some(refused) = self.find_refused(message, found).filter(|refused| !refused.repeat) {
                return self.refuse(now, lane, refused);
            }
            if let Some(found) = found {
                return self.play(now, lane, message, found);
            }
        }
        let chosen = self.choose_session(message);
        let asks_for =
            chosen.and_then(|(script, _)| self.scripts[script].handshake().map(|step| step.exchange));
        if self.faulted(lane, message, "initialize", asks_for, None) {
            return;
        }
        self.report.sessions += 1;
        if let Some(play) = self.lives[self.at_hand.live].play.filter(|_| self.at_hand.post.is_some()) {
            // The session began with its event stream.
            let script = self.plays[play].script;
            self.lives[self.at_hand.live].ordinal = self.report.sessions;
            self.lives[self.at_hand.live].capabilities = message.param("/capabilities").map(<[u8]>::to_vec);
            self.learn(script, message);
            self.note_id(message);
            return match self.find(message) {
                Some(found) => self.play(now, lane, message, found),
                None => self.unmatched(lane, message, "initialize"),
            };
        }
        let goes_on = self.lost_play(message, chosen.is_some_and(|(_, is_equal)| is_equal));
        let chosen = goes_on.map(|play| self.plays[play].script).or(chosen.map(|(script, _)| script));
        let Some(chosen) = chosen else {
            if let Some(found) = self.find(message) {
                return self.play(now, lane, message, found);
            }
            if let Some(refused) = self.find_refused(message, None) {
                return self.refuse(now, lane, refused);
            }
            let reason = if self.legacy_recording { Reason::NeverRecorded } else { Reason::OtherEra };
            return self.miss(lane, message, reason, None);
        };
        self.played[chosen] = true;
        let capabilities = message.param("/capabilities").map(<[u8]>::to_vec);
        let mut live = Live { capabilities, ordinal: self.report.sessions, ..Live::default() };
        if self.at_hand.post.is_some() {
            live = Live {
                sse: self.lives[self.at_hand.live].sse.take(),
                id: self.lives[self.at_hand.live].id.take(),
                ..live
            };
            self.lives[self.at_hand.live] = live;
        } else {
            if self.at_hand.facts.is_none() {
                // It is one client that talks to one process.
                let before = &mut self.lives[self.at_hand.live];
                live.pipe = before.pipe;
                live.pending = std::mem::take(&mut before.pending);
            }
            let before = self.at_hand.live;
            self.at_hand.live = self.begin_live(live);
            self.pipes.is_in(lane, self.at_hand.live);
            if self.pipes.has(lane) {
                self.follow_upstream(before, self.at_hand.live);
            }
        }
        self.at_hand.goes_on = goes_on.is_some();
        let play = match goes_on {
            Some(play) => {
                self.owners[play] = Some(self.at_hand.live);
                play
            }
            None => self.begin_opened(chosen, lane),
        };
        self.lives[self.at_hand.live].play = Some(play);
        if let Some(stream) = self.streams.get_mut(&lane.0) {
            stream.live = self.at_hand.live;
        }
        self.learn(chosen, message);
        self.note_id(message);
        match self.find(message) {
            Some(found) => self.play(now, lane, message, found),
            None => self.unmatched(lane, message, "initialize"),
        }
    }

    /// The recorded session that a new one plays: of those that may begin the first whose `initialize` equals this one,
    /// else the first of a client of this name, else the first; when all have been played, the last that equals it, else
    /// the last.
    fn choose_session(&mut self, message: &Message<'_>) -> Option<(usize, bool)> {
        let may_begin = self.may_begin();
        if let Some(equal) = self.equal_begin(message, &may_begin) {
            return Some((may_begin[equal], true));
        }
        let name = client_name(message);
        let same_client = |script: &&usize| {
            let session = self.scripts[**script].session.map(|at| &self.cassette.sessions[at as usize]);
            !self.played[**script]
                && session.is_some_and(|session| {
                    session.client.is_some() && session.client.as_deref() == name.as_deref()
                })
        };
        may_begin.iter().find(same_client).or(may_begin.first()).map(|&script| (script, false))
    }

    /// The place of the first of these scripts that begins with a request which equals this one.
    pub(super) fn equal_begin(&mut self, message: &Message<'_>, scripts: &[usize]) -> Option<usize> {
        let Self { scripts: all, cassette, blobs, matcher, .. } = self;
        // By the last table: nearly all have the same.
        let mut live = None;
        scripts.iter().position(|&script| {
            let Some((begins, own)) = all[script].begins(cassette, &**blobs, matcher) else { return false };
            let (digest, _) = live
                .filter(|(_, table)| *table == own)
                .unwrap_or_else(|| (matcher.full_digest(message, own), own));
            live = Some((digest, own));
            digest == Some(begins)
        })
    }

    /// The recorded sessions that a new one may play: those not yet played, else all, the last one first.
    pub(super) fn may_begin(&self) -> Vec<usize> {
        let mut all: Vec<usize> =
            (1..self.scripts.len()).filter(|&script| self.begins_here(script)).collect();
        let fresh: Vec<usize> = all.iter().copied().filter(|&script| !self.played[script]).collect();
        all.reverse();
        if fresh.is_empty() { all } else { fresh }
    }

    /// Whether an `initialize` that began no session was sent to the same place by a client that showed as much.
    fn is_for(&self, found: Found) -> bool {
        let exchange = self.exchange_of(found);
        let facts = self.at_hand.facts.as_ref();
        let is_alike = facts.is_some_and(|facts| facts.is_alike(&self.cassette, exchange));
        is_alike && (!found.repeat || self.is_challenge_for_all(exchange))
    }

    /// Whether nobody begins a session without the credentials that this `initialize` came without.
    fn is_challenge_for_all(&self, exchange: u32) -> bool {
        let http = |exchange: u32| self.cassette.exchanges[exchange as usize].http.as_deref();
        let is_challenge = http(exchange).is_some_and(|http| http.status == Some(401) && !http.auth);
        let shows = |script: &Script| {
            script.handshake().is_none_or(|step| http(step.exchange).is_some_and(|http| http.auth))
        };
        is_challenge && self.scripts[1..].iter().all(shows)
    }

    /// Reads what the recorded server declared, and tells where the live client offers less than the recorded one.
    fn learn(&mut self, script: usize, live: &Message<'_>) {
        if self.passes_on() {
            self.lives[self.at_hand.live].greeting = Some(self.at_hand.line.clone());
        }
        let (mut request, mut answer) = (Vec::new(), Vec::new());
        let Some(step) = self.scripts[script].handshake() else { return };
        let entry = &self.cassette.exchanges[step.exchange as usize];
        client_message(&self.cassette, &*self.blobs, entry, &mut request);
        let result = entry.server.iter().find(|item| item.message.kind == Kind::Result);
        let read = result.map(|item| {
            self.cassette.wire(entry.session, false, &item.message, None, &*self.blobs, &mut answer)
        });
        let message = Message::read(&answer);
        if let (Some(Ok(())), Some(outcome)) = (read, message.outcome_span()) {
            let at = |name| scan::member(&answer, outcome.start, name).map(|span| span.of(&answer));
            let declared = Declared {
                capabilities: at("capabilities").map(<[u8]>::to_vec),
                protocol: at("protocolVersion").map(|raw| text(raw).into_owned()).unwrap_or_default(),
            };
            let protocol = declared.protocol.clone();
            let at_hand = self.at_hand.live;
            self.lives[at_hand].declared = declared;
            let offered = live.param("/protocolVersion").map(text);
            if let Some(offered) = offered.filter(|offered| **offered != *protocol) {
                let named = if protocol.is_empty() { "names none" } else { &format!("answers {protocol}") };
                self.warn(format!("the client offered protocol {offered}; the recorded server {named}"));
            }
        }
        let recorded = Message::read(&request);
        let missing: Vec<String> = capability_names(&recorded)
            .filter(|name| !capability_names(live).any(|live| live == *name))
            .map(|name| format!("`{name}`"))
            .collect();
        if !missing.is_empty() {
            self.warn(format!(
                "the recorded client declared {}, the live one does not: server requests of that kind are left out",
                missing.join(", ")
            ));
        }
    }

    /// Whether the live client can answer this server request, as far as the recorded one could.
    pub(super) fn client_can(&self, live: usize, play: usize, method: &str) -> bool {
        let Some(capability) = own::client_capability(method) else { return true };
        // Requests without a session may be those of one that was given no id.
        let of_play = self.live_with(play).unwrap_or(live);
        let capabilities =
            [live, of_play].into_iter().find_map(|live| self.lives[live].capabilities.as_ref());
        let Some(live) = capabilities else { return true };
        let declared = |object: &[u8]| scan::member(object, 0, capability).is_some();
        declared(live) || !self.recorded_client_declared(play, capability)
    }

    fn recorded_client_declared(&self, play: usize, capability: &str) -> bool {
        let script = self.plays[play].script;
        let step = self.scripts[script].handshake();
        let mut bytes = Vec::new();
        step.is_some_and(|step| {
            let entry = &self.cassette.exchanges[step.exchange as usize];
            client_message(&self.cassette, &*self.blobs, entry, &mut bytes)
                && Message::read(&bytes)
                    .param("/capabilities")
                    .is_some_and(|object| scan::member(object, 0, capability).is_some())
        })
    }
}

/// The names of the capabilities an `initialize` request declares.
fn capability_names<'a>(initialize: &Message<'a>) -> impl Iterator<Item = String> + use<'a> {
    let capabilities = initialize.param("/capabilities").unwrap_or(b"{}");
    scan::members(capabilities, 0)
        .map_while(Result::ok)
        .map(|member| text(member.name.of(capabilities)).into_owned())
}
