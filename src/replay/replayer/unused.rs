//! What was recorded and nobody asked for: which of it is told, and which is left over under `--strict`.

use std::collections::{HashMap, HashSet};

use super::Replayer;
use crate::{
    cassette::model::{End, Exchange, Form},
    replay::{
        own,
        script::{Rank, Script, Step, StepKind},
    },
    wire::http::path_of,
};

impl Replayer {
    /// The keys of what clients sent when recorded, and nobody has sent now although some client could.
    pub(super) fn unused(&self) -> Vec<String> {
        let mut keys = Vec::new();
        for (at, script) in self.scripts.iter().enumerate() {
            let plays: Vec<usize> =
                (0..self.plays.len()).filter(|play| self.plays[*play].script == at).collect();
            let unasked = |step: u32| plays.iter().all(|play| self.plays[*play].is_unused(step));
            // At once, as there may be very many: what is not needed of it is never touched.
            keys.reserve(script.steps.len());
            for (at, step) in (0..).zip(&script.steps) {
                if unasked(at) {
                    if self.can_be_sent(step) {
                        keys.push(self.key(step.exchange));
                    }
                } else if step.kind == StepKind::Batch {
                    keys.extend(self.unused_of_batch(&plays, at));
                }
            }
        }
        keys
    }

    /// Whether a client of those that came can send it. What was not kept could not be known again.
    fn can_be_sent(&self, step: &Step) -> bool {
        let entry = &self.cassette.exchanges[step.exchange as usize];
        let is_kept = entry.client.as_ref().is_some_and(|client| client.form != Form::Omitted);
        if !is_kept || self.is_left_out(entry) {
            return false;
        }
        let heard = self.heard;
        let is_sse = self.cassette.sessions[entry.session as usize].is_sse();
        match step.kind {
            _ if !heard.lines && !heard.http && !heard.sse => true,
            StepKind::Line => {
                if is_sse {
                    heard.sse
                } else {
                    heard.http
                }
            }
            _ if step.only_http => heard.http || heard.sse,
            StepKind::Noise => heard.lines || !self.is_only_a_line(step),
            _ => true,
        }
    }

    /// Whether it is a challenge, or what leads on from one, and none is given.
    fn is_left_out(&self, entry: &Exchange) -> bool {
        let status = entry.http.as_ref().and_then(|http| http.status);
        self.options.skip_auth && matches!(status, Some(401 | 403))
    }

    /// Of the keys of what is unused, those that make the verdict bad under `--strict`.
    pub(super) fn left_over(&self, unused: &[String]) -> Vec<String> {
        if unused.is_empty() {
            return Vec::new();
        }
        let mut excepted = HashSet::new();
        for script in &self.scripts {
            let last = self.last_before_ends(script);
            for step in &script.steps {
                let entry = &self.cassette.exchanges[step.exchange as usize];
                let is_behind = last.get(&entry.session).is_some_and(|last| step.rank > *last);
                if is_behind || self.may_be_left_over(script, step) {
                    excepted.insert(&*entry.key);
                }
            }
        }
        unused.iter().filter(|key| !excepted.contains(&***key)).cloned().collect()
    }

    /// Whether caches and clocks decide that it comes.
    fn may_be_left_over(&self, script: &Script, step: &Step) -> bool {
        let entry = &self.cassette.exchanges[step.exchange as usize];
        if entry.client.as_ref().is_some_and(|client| client.kind.is_response())
            && (self.cassette.has_gap(entry.session) || self.says_again(entry.session))
        {
            // What it answers may not be recorded, or have come again, so nobody is asked for it.
            return true;
        }
        if step.kind != StepKind::Line {
            return own::may_be_left_over(script.method(step));
        }
        let line = self.recorded_request(step.exchange);
        let line = String::from_utf8_lossy(&line);
        let Some((method, target)) = line.split_once(' ') else { return false };
        match method {
            "GET" if own::is_lookup(path_of(target)) || self.comes_back(script, step) => true,
            // Preflights are answered before they come here.
            "OPTIONS" if self.options.cors => true,
            // What a login asked for that nobody has to make.
            _ => self.options.skip_auth && !self.takes_at(path_of(target)),
        }
    }

    /// Whether the server of a session said something again to a client that came back.
    fn says_again(&self, session: u32) -> bool {
        let mut of_session = self.cassette.exchanges.iter().filter(|entry| entry.session == session);
        of_session.any(|entry| entry.http.as_ref().is_some_and(|http| !http.again.is_empty()))
    }

    /// Whether a `GET` goes on with a stream of its session: when that broke off was a matter of time.
    fn comes_back(&self, script: &Script, step: &Step) -> bool {
        let entry = |step: &Step| &self.cassette.exchanges[step.exchange as usize];
        let is_stream = |entry: &Exchange| entry.http.as_ref().is_some_and(|http| http.stream);
        let own = entry(step);
        let resumes = |entry: &Exchange| {
            let mut headers = entry.http.iter().flat_map(|http| &http.request);
            headers.any(|header| &*header.name == "last-event-id")
        };
        let is_before = |other: &&Step| {
            other.kind == StepKind::Line && other.rank < step.rank && entry(other).session == own.session
        };
        resumes(own)
            || is_stream(own) && script.steps.iter().filter(is_before).any(|step| is_stream(entry(step)))
    }

    /// For recorded sessions whose server ended by itself, the rank of the last request: whether what came behind that is
    /// heard before the end is a matter of time.
    fn last_before_ends(&self, script: &Script) -> HashMap<u32, Rank> {
        let mut last = HashMap::new();
        for step in script.steps.iter().filter(|step| step.is_asked()) {
            let session = self.cassette.exchanges[step.exchange as usize].session;
            let end = self.cassette.sessions[session as usize].end.as_ref();
            if end.is_some_and(End::is_by_itself) {
                last.entry(session).and_modify(|rank| *rank = step.rank.max(*rank)).or_insert(step.rank);
            }
        }
        last
    }
}
