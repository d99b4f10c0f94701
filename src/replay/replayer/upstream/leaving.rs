//! Clients that leave: their real servers end, and what those have not answered is told.

use super::{Output, Replayer, Stage, Upstream};
use crate::{
    report::{PassedOn, Report},
    traffic::Lane,
};

impl Replayer {
    /// A client that speaks in lines begins a further session: its real server goes on where it was not greeted.
    pub(in crate::replay::replayer) fn follow_upstream(&mut self, before: usize, live: usize) {
        let Some(number) = self.upstreams.of(before) else { return };
        let upstream = &mut self.upstreams.0[number];
        if upstream.is_greeted {
            return self.end_upstream(number);
        }
        upstream.live = live;
        if upstream.stage == Stage::Open {
            upstream.stage = Stage::Fresh;
        }
    }

    /// A live session is over, and the real server that it has with it.
    pub(in crate::replay::replayer) fn end_upstream_of(&mut self, live: usize) {
        if let Some(number) = self.upstreams.of(live) {
            self.end_upstream(number);
        }
    }

    /// The same of all sessions of a client that speaks in lines.
    pub(in crate::replay::replayer) fn end_upstreams_on(&mut self, lane: Lane) {
        for number in 0..self.upstreams.0.len() {
            let Upstream { live, is_closed, .. } = self.upstreams.0[number];
            if !is_closed && self.lives[live].pipe == Some(lane) {
                self.end_upstream(number);
            }
        }
    }

    /// Whether it has answered the handshake or not: that one waits for it would keep it for ever.
    pub(super) fn end_upstream(&mut self, number: usize) {
        if self.upstreams.0[number].is_closed {
            return;
        }
        if self.upstreams.0[number].stage == Stage::Greeting {
            self.say_what_waits(number);
        }
        let upstream = &mut self.upstreams.0[number];
        upstream.is_closed = true;
        let lane = self.lives[upstream.live].pipe.unwrap_or_default();
        self.outputs.push_back(Output::EndUpstream { lane, upstream: number as u32 });
    }

    /// A request has no answer: why.
    pub(super) fn failed(&mut self, told: usize, why: &str) {
        failed(&mut self.report.passed_on[told], why);
    }

    /// Tells of requests that are unanswered at the end, as their clients left.
    pub(in crate::replay::replayer) fn tell_unheard(&self, report: &mut Report) {
        let asked = self.upstreams.0.iter().flat_map(|upstream| upstream.asked.values());
        for passed in asked.filter(|passed| !passed.is_cancelled && !passed.is_endless) {
            failed(&mut report.passed_on[passed.told], "the client left before the real server answered");
        }
    }
}

fn failed(told: &mut PassedOn, why: &str) {
    told.failed += 1;
    told.why.get_or_insert_with(|| why.to_owned());
}
