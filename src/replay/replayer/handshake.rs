//! `initialize`: which recorded session a live one plays, and what both sides said they can do.

use super::Replayer;
use crate::{
    cassette::model::Form,
    redact::Pairing,
    replay::{
        own::{self, Declared},
        play::Play,
        script::{client_message, client_name},
    },
    report::Reason,
    traffic::{Lane, Micros},
    wire::{
        jsonrpc::{Message, text},
        scan,
    },
};

impl Replayer {
    /// Begins a session: the first recorded one not yet played of a client of this name, else the first not yet
    /// played, else the last again.
    pub(super) fn initialize(&mut self, now: Micros, lane: Lane, message: &Message<'_>) {
        self.report.sessions += 1;
        let name = client_name(message);
        let fresh = |script: &usize| !self.played[*script];
        let same_client = |script: &usize| {
            let session = self.scripts[*script].session.map(|at| &self.cassette.sessions[at as usize]);
            session.is_some_and(|session| {
                session.client.is_some() && session.client.as_deref() == name.as_deref()
            })
        };
        let all = 1..self.scripts.len();
        let chosen =
            all.clone().filter(fresh).find(same_client).or_else(|| all.clone().find(fresh)).or(all.last());
        let Some(chosen) = chosen else {
            if let Some(found) = self.find(message) {
                return self.play(now, lane, message, found);
            }
            let reason = if self.legacy_recording { Reason::NeverRecorded } else { Reason::OtherEra };
            return self.miss(lane, message, reason, None);
        };
        self.played[chosen] = true;
        self.plays.push(Play::new(chosen, &self.scripts[chosen]));
        self.pairings.push(Pairing::new());
        self.live_capabilities = message.param("/capabilities").map(<[u8]>::to_vec);
        self.learn(chosen, message);
        match self.find(message) {
            Some(found) => self.play(now, lane, message, found),
            None => self.unmatched(lane, message, "initialize"),
        }
    }

    /// Reads what the recorded server declared, and tells where the live client offers less than the recorded one.
    fn learn(&mut self, script: usize, live: &Message<'_>) {
        let (mut request, mut answer) = (Vec::new(), Vec::new());
        let step = self.scripts[script].steps.iter().find(|step| &*step.method == "initialize");
        let Some(step) = step else { return };
        let entry = &self.cassette.exchanges[step.exchange as usize];
        client_message(&self.cassette, &*self.blobs, entry, &mut request);
        let result = entry.server.iter().find(|item| item.message.form == Form::Result);
        let read = result.map(|item| {
            self.cassette.wire(entry.session, false, &item.message, None, &*self.blobs, &mut answer)
        });
        let message = Message::read(&answer);
        if let (Some(Ok(())), Some(outcome)) = (read, message.outcome_span()) {
            let at = |name| scan::member(&answer, outcome.start, name).map(|span| span.of(&answer));
            self.declared = Declared {
                capabilities: at("capabilities").map(<[u8]>::to_vec),
                protocol: at("protocolVersion").map(|raw| text(raw).into_owned()).unwrap_or_default(),
            };
            let offered = live.param("/protocolVersion").map(text);
            if let Some(offered) = offered.filter(|offered| **offered != *self.declared.protocol) {
                self.warn(format!(
                    "the client offered protocol {offered}; the recorded server answers {}",
                    self.declared.protocol
                ));
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
    pub(super) fn client_can(&self, method: &str) -> bool {
        let Some(capability) = own::client_capability(method) else { return true };
        let Some(live) = &self.live_capabilities else { return true };
        let declared = |object: &[u8]| scan::member(object, 0, capability).is_some();
        declared(live) || !self.recorded_client_declared(capability)
    }

    fn recorded_client_declared(&self, capability: &str) -> bool {
        let script = self.plays.last().map_or(0, |play| play.script);
        let step = self.scripts[script].steps.iter().find(|step| &*step.method == "initialize");
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
