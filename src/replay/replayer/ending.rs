//! The end of a recorded server, and its last line where that has no end.

use std::{borrow::Cow, sync::Arc};

use super::{Now, Output, Replayer};
use crate::{
    fault::Acting,
    replay::{
        play::Run,
        rewrite::{self, Correlators},
    },
    traffic::Lane,
    wire::jsonrpc::{Message, id_key},
};

impl Replayer {
    /// Ends the pipe of a client as its recorded server ended. A last line that answers a request goes as that answer
    /// does; where faults act on it, as a line, for what they make of it is one.
    pub(super) fn end_pipe(&mut self, now: Now, play: usize, session: u32, lane: Lane) {
        let mut end = self.cassette.sessions[session as usize].end.clone().unwrap_or_default();
        let answered = end.partial.as_deref().and_then(|last| {
            let run = self.answered_by(play, last).find(|run| run.lane == lane)?;
            Some((Arc::clone(&run.to), run.acting))
        });
        if let (Some(last), Some((to, acting))) = (&mut end.partial, &answered) {
            rewrite::rewrite(last, to);
            *last = self.options.vars.show(last).into_owned();
            if acting.is_some() {
                let bytes = std::mem::take(last);
                end.partial = None;
                self.speak_for(*acting);
                self.emit(Output::Send { lane, bytes, apart: false });
            }
        }
        self.emit(Output::End { lane, end });
        self.speak_for(None);
        let runs = self.plays[play].live_runs().chain(self.plays[0].live_runs());
        let acting: Vec<Acting> = runs.filter(|run| run.lane == lane).filter_map(|run| run.acting).collect();
        acting.into_iter().for_each(|acting| self.close_acting(Some(acting)));
        self.ended_on(now, lane);
    }

    /// Over HTTP, what a recorded server that ended by itself said on its last line, and the response that it goes on:
    /// that to the request which it answers, else to the one in whose middle the server ended.
    pub(super) fn last_words(&self, play: usize, run: Option<u32>) -> Option<(Lane, Vec<u8>)> {
        let session = self.scripts[self.plays[play].script].session?;
        let end = self.cassette.sessions[session as usize].end.as_ref()?;
        let mut last = end.partial.clone()?;
        let dying = run.and_then(|run| self.plays[play].run(run));
        let is_answer = Message::read(&last).kind.is_response();
        let of = if is_answer { self.answered_by(play, &last).next() } else { dying }?;
        if is_answer {
            rewrite::rewrite(&mut last, &of.to);
            last = self.options.vars.show(&last).into_owned();
        }
        let is_stream = self.streams.get(&of.lane.0)?.is_stream;
        let line = if is_stream { [b"data: ", &last[..]].concat() } else { last };
        Some((of.lane, line))
    }

    /// Over HTTP a client does not close its side, so what the server said once that had happened is not said.
    pub(super) fn tell_of_last_line(&mut self, exchange: u32) {
        let session = &self.cassette.sessions[self.cassette.exchanges[exchange as usize].session as usize];
        let is_said = session.end.as_ref().is_none_or(|end| end.partial.is_none() || end.is_by_itself());
        if is_said || session.is_http() {
            return;
        }
        self.warn(format!(
            "`{}` stays open: the recorded server's last line, which has no end, came once its input was closed, and a \
             client over HTTP closes none; a replay on stdio sends it",
            self.key(exchange)
        ));
    }

    /// The runs of requests that a recorded server's last line answers.
    fn answered_by(&self, play: usize, last: &[u8]) -> impl Iterator<Item = &Run> {
        let message = Message::read(last);
        let id = message.id_key().filter(|_| message.kind.is_response()).map(Cow::into_owned);
        let is_its = move |to: &Correlators| id.as_deref() == Some(&*id_key(&to.recorded_id()));
        self.plays[play].live_runs().filter(move |run| is_its(&run.to))
    }
}
