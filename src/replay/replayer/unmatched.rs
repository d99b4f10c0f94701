//! A request without a recorded answer: one of those we answer ourselves, or a miss.

use super::{Found, Repeats, Replayer};
use crate::{
    cassette::{
        key,
        model::{Exchange, Form},
    },
    replay::{
        miss::{self, Candidate, Company},
        own::{self, OwnAnswer},
        play::MovedStep,
        script::{StepKind, client_message},
    },
    report::{Miss, Reason, Repeat, events::Outcome},
    traffic::Lane,
    wire::{
        jsonrpc::{self, Kind, Message},
        results, scan,
    },
};

/// How many distinct misses are explained in full; equal ones are counted, further ones too.
const MOST_MISSES: usize = 1_000;
/// By how many bytes ids and tokens may make equal requests differ in length.
pub(super) const MOST_IDS: u64 = 64;

/// Adds a miss to others.
fn add(misses: &mut Vec<Miss>, miss: Miss) {
    let full = misses.len() >= MOST_MISSES;
    match misses.iter_mut().rev().find(|known| full || known.message == miss.message) {
        Some(known) => known.count += 1,
        None => misses.push(miss),
    }
}

impl Replayer {
    /// A request nothing recorded equals: one of those we answer ourselves, or a miss.
    pub(super) fn unmatched(&mut self, lane: Lane, message: &Message<'_>, method: &str) {
        self.observe_unmatched(method);
        if let Some(exchange) = self.at_hand.unpaired.take() {
            return self.miss(lane, message, Reason::RedactionDiffers, Some(exchange));
        }
        let modern = message.is_modern();
        match self.own_answer(message, method) {
            Some((answer, bytes)) => {
                if modern && answer == OwnAnswer::MethodNotFound && method != "server/discover" {
                    // Specification 2026-07-28, basic/transports/streamable-http.
                    self.set_status(lane, 404);
                }
                self.say(lane, bytes, false);
            }
            None => {
                let (reason, nearest) = self.explain(message, modern);
                self.miss(lane, message, reason, nearest);
            }
        }
    }

    /// The answer to a request that we give ourselves, if it is one of those; counted as given.
    pub(super) fn own_answer(&mut self, message: &Message<'_>, method: &str) -> Option<(OwnAnswer, Vec<u8>)> {
        let declared = &self.lives[self.at_hand.live].declared;
        let declared = match self.playing(self.at_hand.live).and_then(|play| self.live_with(play)) {
            Some(live) => &self.lives[live].declared,
            None => declared,
        };
        let modern = message.is_modern();
        let answer = own::answer(method, modern, declared, self.legacy_recording)?;
        self.count_own(method);
        let id = message.id().unwrap_or(b"null");
        let bytes = match answer {
            OwnAnswer::Empty => {
                let result = results::empty(modern).as_bytes();
                [b"{\"jsonrpc\":\"2.0\",\"id\":", id, b",\"result\":", result, b"}"].concat()
            }
            OwnAnswer::MethodNotFound => {
                jsonrpc::error(id, -32601, &format!("Method not found: {method}"), None)
            }
        };
        Some((answer, bytes))
    }

    /// Why nothing equals this request, and what comes nearest.
    pub(super) fn explain(&mut self, message: &Message<'_>, modern: bool) -> (Reason, Option<u32>) {
        let current = self.playing(self.at_hand.live).map_or(0, |play| self.plays[play].script);
        for script in (0..self.scripts.len()).filter(|&script| script != current) {
            let script = &mut self.scripts[script];
            let first = script.first(&self.cassette, &*self.blobs, &mut self.matcher, message);
            if first.is_some() {
                return (Reason::OtherSession, first);
            }
        }
        if modern && self.legacy_recording && self.scripts[0].steps.is_empty() {
            return (Reason::OtherEra, None);
        }
        if let Some(exchange) = self.too_long(message) {
            return (Reason::Incomplete, Some(exchange));
        }
        let nearest = self.nearest(message, current);
        match nearest {
            Some((exchange, true)) => (Reason::ParamsDiffer, Some(exchange)),
            Some((exchange, false)) => (Reason::NeverRecorded, Some(exchange)),
            None => (Reason::NeverRecorded, self.nearest_part(message.bytes)),
        }
    }

    /// The exchange whose request was too long to be kept, if it may have been this one: equal in method and name, and
    /// in length but for the id and tokens.
    fn too_long(&self, message: &Message<'_>) -> Option<u32> {
        let (about, length) = (key::of_client(message), message.bytes.len() as u64);
        let cassette = &self.cassette;
        let is_it = |entry: &Exchange| {
            let client = entry.client.as_ref().filter(|client| client.form == Form::Omitted)?;
            let bytes =
                scan::member(&cassette.text, client.place.start as usize, "bytes")?.of(&cassette.text);
            let bytes: u64 = std::str::from_utf8(bytes).ok()?.parse().ok()?;
            let is_played = cassette.sessions[entry.session as usize].recording == self.recording;
            let is_named = entry.key.rsplit_once(" @").is_none_or(|(prefix, _)| prefix == about);
            (is_played && is_named && bytes.abs_diff(length) <= MOST_IDS).then_some(())
        };
        cassette.exchanges.iter().position(|entry| is_it(entry).is_some()).map(|at| at as u32)
    }

    /// The exchange that differs least among those of the same method, and whether it has the same name.
    fn nearest(&self, message: &Message<'_>, script: usize) -> Option<(u32, bool)> {
        let method = message.method();
        let name = message.name();
        let mut bytes = Vec::new();
        let mut best: Option<(bool, usize, u32)> = None;
        let scripts = [script, 0];
        let scripts = if script == 0 { &scripts[..1] } else { &scripts };
        let steps = scripts.iter().flat_map(|&script| self.scripts[script].requests_of(&method));
        for step in steps.take(1_000) {
            let entry = &self.cassette.exchanges[step.exchange as usize];
            if !client_message(&self.cassette, &*self.blobs, entry, &mut bytes) {
                continue;
            }
            let other_name = Message::read(&bytes).name() != name;
            let rank = (other_name, miss::distance(&bytes, message.bytes), step.exchange);
            best = Some(best.map_or(rank, |best| best.min(rank)));
        }
        best.map(|(other_name, _, exchange)| (exchange, !other_name))
    }

    /// The exchange in which the same method and name were asked in other company than alone; of a message in a batch,
    /// that in which the same was asked, but has no answer that could be given there.
    pub(super) fn in_company(&mut self, message: &Message<'_>, in_batch: bool) -> Option<(u32, Company)> {
        let (method, name) = (message.method(), message.name());
        let current = self.playing(self.at_hand.live).map_or(0, |play| self.plays[play].script);
        let Self { matcher, scripts, cassette, blobs, .. } = self;
        let digest = in_batch.then(|| matcher.digest(message));
        let mut is_same = |other: &Message<'_>| {
            other.method() == method
                && other.name() == name
                && digest.as_ref().is_none_or(|digest| matcher.digest(other) == *digest)
        };
        let of_scripts = if current == 0 { &[0][..] } else { &[current, 0] };
        let steps = || of_scripts.iter().flat_map(|&script| &scripts[script].steps);
        let (mut bytes, batch) = (Vec::new(), if in_batch { Company::OtherBatch } else { Company::Batch });
        let mut find = |kind: StepKind, company: Company| {
            let found = steps().filter(|step| step.kind == kind).find(|step| {
                let entry = &cassette.exchanges[step.exchange as usize];
                let is_kept = client_message(cassette, &**blobs, entry, &mut bytes);
                let recorded = Message::read(&bytes);
                is_kept && (is_same(&recorded) || recorded.members().any(|member| is_same(&member)))
            });
            found.map(|step| (step.exchange, company))
        };
        let single = if in_batch { find(StepKind::Request, Company::Alone) } else { None };
        single.or_else(|| find(StepKind::Batch, batch))
    }

    pub(super) fn miss(&mut self, lane: Lane, message: &Message<'_>, reason: Reason, nearest: Option<u32>) {
        if self.passes_on() && message.kind == Kind::Request {
            return self.pass_on(lane, message, reason, nearest);
        }
        let may_be_elsewhere =
            matches!(reason, Reason::NeverRecorded | Reason::ParamsDiffer | Reason::OtherSession);
        if let Some(exchange) = may_be_elsewhere.then(|| self.at_another_path(message)).flatten() {
            let company = Some(Company::OtherPath);
            let bytes = self.missed(message, Reason::NeverRecorded, Some(exchange), company);
            return self.say(lane, bytes, false);
        }
        let is_unknown = reason == Reason::NeverRecorded;
        let bytes = match is_unknown.then(|| self.in_company(message, false)).flatten() {
            Some((exchange, company)) => self.missed(message, reason, Some(exchange), Some(company)),
            None => self.missed(message, reason, nearest, None),
        };
        self.say(lane, bytes, false);
    }

    /// Notes a miss; what the client is told.
    pub(super) fn missed(
        &mut self,
        message: &Message<'_>,
        reason: Reason,
        nearest: Option<u32>,
        company: Option<Company>,
    ) -> Vec<u8> {
        let miss = self.described(message, reason, nearest, company);
        let bytes = miss::response(message.id().unwrap_or(b"null"), &miss);
        self.note_outcome(Outcome::Miss);
        self.remember(miss);
        bytes
    }

    /// Notes a request that is answered although the answer of this exchange is under way, behind which it was recorded.
    pub(super) fn early(&mut self, message: &Message<'_>, under_way: u32) {
        let miss = self.described(message, Reason::OutOfOrder, Some(under_way), None);
        self.remember(miss);
    }

    fn described(
        &self,
        message: &Message<'_>,
        reason: Reason,
        nearest: Option<u32>,
        company: Option<Company>,
    ) -> Miss {
        let (mut bytes, mut is_too_long) = (Vec::new(), false);
        let key = nearest.map(|exchange| {
            let entry = &self.cassette.exchanges[exchange as usize];
            is_too_long = entry.client.as_ref().is_some_and(|client| client.form == Form::Omitted);
            client_message(&self.cassette, &*self.blobs, entry, &mut bytes);
            entry.key.to_string()
        });
        let key = key.or_else(|| (reason == Reason::OtherEra).then(|| self.era()));
        let candidate = key.as_deref().map(|key| Candidate { key, message: &bytes, company });
        let miss = miss::describe(message, reason, candidate.as_ref());
        let http = nearest.and_then(|exchange| self.cassette.exchanges[exchange as usize].http.as_deref());
        match (reason, http.and_then(|http| Some((http.status?, http.auth)))) {
            (Reason::Incomplete, _) if is_too_long => miss::of_too_long(miss, "request"),
            (Reason::ParamsDiffer, Some((status @ (401 | 403), had))) if miss.differences.is_empty() => {
                miss::of_challenge(miss, status, self.options.skip_auth, had)
            }
            _ => miss,
        }
    }

    /// A request from which on another protocol was spoken, of which nothing is recorded.
    pub(super) fn no_upgrade(&mut self, lane: Lane, found: Found) {
        let exchange = self.exchange_of(found);
        self.plays[found.play].take(found.step);
        let line = self.recorded_request(exchange);
        let miss = miss::of_upgrade(&String::from_utf8_lossy(&line), &self.key(exchange));
        self.plain(lane, 501, &format!("{}\n", miss.message));
        self.note_outcome(Outcome::Miss);
        self.remember(miss);
    }

    /// A notification, a response or a line that nothing was recorded for: it is taken in.
    pub(super) fn unheard(&mut self, lane: Lane, message: &Message<'_>) {
        if message.kind == Kind::Noise && self.streams.contains_key(&lane.0) {
            return self.plain(lane, 400, "");
        }
        self.accept(lane);
    }

    /// The revision of the recording, for a client of the other era.
    fn era(&self) -> String {
        let protocols = self.scripts.iter().flat_map(|script| &script.steps).filter_map(|step| {
            let session = self.cassette.exchanges[step.exchange as usize].session;
            self.cassette.sessions[session as usize].protocol.clone()
        });
        protocols
            .max()
            .map_or_else(|| "an unknown revision".to_owned(), |protocol| format!("revision {protocol}"))
    }

    pub(super) fn remember(&mut self, miss: Miss) {
        self.missed += 1;
        add(&mut self.report.misses, miss);
    }

    /// Adds to misses what came in another place than recorded, under `--strict`: it was answered all the same.
    pub(super) fn add_moved(&self, misses: &mut Vec<Miss>) {
        (0..self.plays.len()).flat_map(|play| self.moved(play)).for_each(|miss| add(misses, miss));
    }

    /// The same in one play.
    pub(super) fn moved(&self, play: usize) -> Vec<Miss> {
        let script = &self.scripts[self.plays[play].script];
        let key = |step: u32| self.key(script.steps[step as usize].exchange);
        let mut bytes = Vec::new();
        let moved = self.plays[play].moved(script, &self.cassette);
        let described = moved.into_iter().map(|MovedStep { step, behind, expected }| {
            let entry = &self.cassette.exchanges[script.steps[step as usize].exchange as usize];
            client_message(&self.cassette, &*self.blobs, entry, &mut bytes);
            miss::of_moved(&Message::read(&bytes), key(step), behind.map(key), expected.map(key))
        });
        described.collect()
    }

    pub(super) fn repeated(&mut self, exchange: u32) {
        let Repeats { exchanges, counts } = &mut self.repeats;
        counts.resize(self.cassette.exchanges.len(), 0);
        let count = &mut counts[exchange as usize];
        if *count == 0 {
            exchanges.push(exchange);
        }
        *count = count.saturating_add(1);
    }

    /// The exchanges that were repeated, for the report.
    pub(super) fn repeats(&self) -> Vec<Repeat> {
        let Repeats { exchanges, counts } = &self.repeats;
        let repeat = |&exchange: &u32| Repeat {
            server: None,
            key: self.key(exchange),
            count: u64::from(counts[exchange as usize]),
        };
        exchanges.iter().map(repeat).collect()
    }

    pub(super) fn warn(&mut self, text: String) {
        if !self.report.warnings.contains(&text) {
            self.report.warnings.push(text);
        }
    }

    /// The recording has no whole answer: a miss, told with the live id.
    pub(super) fn incomplete(&mut self, lane: Lane, live_id: &[u8], exchange: u32) {
        let entry = &self.cassette.exchanges[exchange as usize];
        let mut bytes = Vec::new();
        client_message(&self.cassette, &*self.blobs, entry, &mut bytes);
        let key = entry.key.to_string();
        let message = Message::read(&bytes);
        let candidate = Candidate { key: &key, message: &bytes, company: None };
        let mut miss = miss::describe(&message, Reason::Incomplete, Some(&candidate));
        if entry.server.iter().any(|item| item.message.form == Form::Omitted) {
            miss = miss::of_too_long(miss, "answer");
        }
        let bytes = miss::response(live_id, &miss);
        self.note_outcome_of(lane, live_id, Outcome::Miss);
        self.say(lane, bytes, false);
        self.remember(miss);
    }
}
