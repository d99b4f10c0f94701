//! The end of a recorded server, and its last line where that has no end.

use std::sync::Arc;

use super::{Now, Output, Replayer};
use crate::{
    fault::Acting,
    replay::rewrite::{self, Correlators},
    traffic::Lane,
    wire::jsonrpc::{Message, id_key},
};

impl Replayer {
    /// Ends the pipe of a client as its recorded server ended. A last line that answers a request goes as that answer
    /// does; where faults act on it, as a line, for what they make of it is one.
    pub(super) fn end_pipe(&mut self, now: Now, play: usize, session: u32, lane: Lane) {
        let mut end = self.cassette.sessions[session as usize].end.clone().unwrap_or_default();
        let answered = end.partial.as_deref().and_then(|last| self.answered_by(play, lane, last));
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
        self.server_of_stage_ended(&acting);
        self.ended_on(now, lane);
    }

    /// The request of a client that a recorded server's last line answers, and what acts on it.
    fn answered_by(
        &self,
        play: usize,
        lane: Lane,
        last: &[u8],
    ) -> Option<(Arc<Correlators>, Option<Acting>)> {
        let message = Message::read(last);
        let id = message.id_key().filter(|_| message.kind.is_response())?;
        let is_its = |to: &Correlators| id_key(&to.recorded_id()) == id;
        let mut runs = self.plays[play].live_runs();
        runs.find(|run| run.lane == lane && is_its(&run.to)).map(|run| (Arc::clone(&run.to), run.acting))
    }
}
