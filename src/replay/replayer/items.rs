//! Recorded messages on their way: each goes on the stream that it was recorded on.

use std::{collections::VecDeque, sync::Arc};

use super::{
    Replayer,
    lives::{GetEnd, Held},
    resume::Sent,
    sse::{is_endpoint_event, led_back},
    streams::is_line,
};
use crate::{
    cassette::model::{Exchange, Form, Item, On, Unanswered},
    replay::{
        rewrite::Correlators,
        script::{Rank, answers, stays_silent},
    },
    traffic::Lane,
    wire::{http, lines::into_line},
};

/// Of what waits for a stream, or was sent with an id, so much is kept.
const MOST_KEPT: usize = 10_000;

/// One recorded message on its way.
pub(super) struct Going<'a> {
    pub live: usize,
    pub lane: Lane,
    pub way: Way,
    pub exchange: u32,
    pub item: u32,
    pub to: &'a Arc<Correlators>,
}

/// The stream that an item goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// That of its exchange.
    Own,
    /// The session's `GET` stream.
    Get,
    /// A `GET` that goes on with its exchange's.
    Resume,
    /// Over HTTP+SSE, the response to the client's message.
    Post,
    /// None: it means nothing on the transport at hand.
    Nowhere,
}

impl Replayer {
    /// Which stream an item goes on: over HTTP+SSE (`is_sse`), or over Streamable HTTP.
    pub(super) fn way(&self, entry: &Exchange, item: &Item, is_sse: bool) -> Way {
        let session = &self.cassette.sessions[entry.session as usize];
        let form = item.message.form;
        let is_body = form == Form::Body || (form == Form::Base64 && session.is_http());
        let was_sse = session.is_sse();
        match item.on.filter(|_| session.is_http()) {
            _ if is_line(entry) => Way::Own,
            Some(On::Post) if is_sse && was_sse => Way::Post,
            _ if is_body && was_sse != is_sse => Way::Nowhere,
            Some(On::Post) if !was_sse && entry.is_aside(item) => Way::Nowhere,
            _ if is_sse => Way::Own,
            Some(On::Post) if is_body => Way::Nowhere,
            // Not all clients look for it there (F10.5).
            Some(On::Get) if entry.client.is_some() && self.answers(entry, item) => Way::Own,
            Some(On::Get) => Way::Get,
            Some(On::Resume) => Way::Resume,
            _ if entry.client.is_none() => Way::Get,
            _ => Way::Own,
        }
    }

    /// Whether an item answers its client's message.
    pub(super) fn answers(&self, entry: &Exchange, item: &Item) -> bool {
        answers(&self.cassette, &*self.blobs, entry, item)
    }

    /// Sends a recorded message where it was sent: on its own stream, or on one of the session's.
    pub(super) fn send_on(&mut self, going: Going<'_>, bytes: Vec<u8>, apart: bool) {
        let Going { live, lane, mut way, exchange, item, to } = going;
        let cassette = Arc::clone(&self.cassette);
        let entry = &cassette.exchanges[exchange as usize];
        let recorded = &entry.server[item as usize];
        let was_http = cassette.sessions[entry.session as usize].is_http();
        let form = match recorded.message.form {
            // What is not UTF-8 is no message.
            Form::Base64 if was_http => Form::Body,
            _ => recorded.message.as_form(),
        };
        let is_open = self.streams.contains_key(&lane.0);
        let is_elsewhere = way != Way::Own || !is_open || self.lives[live].sse.is_some();
        let was_streamable = was_http && !cassette.sessions[entry.session as usize].is_sse();
        if was_streamable && is_elsewhere && self.is_second_answer(entry, item) {
            return;
        }
        if way == Way::Nowhere {
            return;
        }
        if let Some(lane) = self.lives[live].pipe {
            // A line that was recorded as one is one, whatever stands in it.
            let line = if was_http { into_line(bytes) } else { bytes };
            return self.deliver(lane, line, apart, None, Some(form));
        }
        let is_noise = matches!(form, Form::Raw | Form::Base64);
        if !was_http && is_noise {
            return;
        }
        let bytes = if form == Form::Body { self.body(recorded, bytes, lane, live) } else { bytes };
        if way == Way::Get && form == Form::Request && self.lives[live].get.is_none() && is_open {
            // Nobody could answer it otherwise.
            way = Way::Own;
        }
        let resumed = || {
            let found = self.lives[live].resumed.iter().rev().find(|(resumed, _)| Arc::ptr_eq(resumed, to));
            found.map(|(_, lane)| *lane)
        };
        let lane = match way {
            Way::Own if is_open => Some(lane),
            // Its client has left, and may come back for it.
            Way::Own => resumed().or(Some(lane)),
            Way::Resume => resumed(),
            Way::Get => self.lives[live].get,
            Way::Post | Way::Nowhere => Some(lane),
        };
        let Some(lane) = lane else {
            let held = &mut self.lives[live].held;
            if held.len() == MOST_KEPT {
                held.pop_front();
            }
            return held.push_back(Held { way, exchange, item, bytes, to: Arc::clone(to) });
        };
        self.note_sent(live, exchange, item, to, self.lives[live].get == Some(lane));
        self.deliver(lane, bytes, apart, recorded.sse.as_deref(), Some(form));
        let is_get = self.lives[live].get == Some(lane);
        if is_get || self.lives[live].sse.is_some() {
            self.end_of_get(live, exchange, item);
        }
        if is_get && way == Way::Own {
            self.release_on_get(live, lane, item as usize + 1);
        }
    }

    /// Whether an item answers what an earlier one has answered. A server says so on the response of a client that has
    /// left and went on elsewhere: nobody hears it twice.
    fn is_second_answer(&self, entry: &Exchange, item: u32) -> bool {
        let (earlier, rest) = entry.server.split_at(item as usize);
        let is_same = |known: &Item| known.message.id == rest[0].message.id && self.answers(entry, known);
        self.answers(entry, &rest[0]) && earlier.iter().any(is_same)
    }

    /// A text that is no message, with what is live in the place of what stands for it.
    fn body(&mut self, item: &Item, bytes: Vec<u8>, lane: Lane, live: usize) -> Vec<u8> {
        let origin = self.streams.get(&lane.0).map(|stream| stream.origin.clone()).unwrap_or_default();
        let is_endpoint = is_endpoint_event(item);
        let filled = http::fill(&bytes, &origin, || is_endpoint.then(|| self.id_of(live)));
        if is_endpoint { led_back(filled, &origin) } else { filled }
    }

    /// Ends the response to a run's message if nothing goes on it from the item `next` on.
    pub(super) fn end_if_whole(&mut self, play: usize, at: u32, next: usize, has_answered: bool) {
        let Some(run) = self.plays[play].run(at).filter(|run| !run.is_over) else { return };
        let (lane, is_sse) = (run.post.unwrap_or(run.lane), run.post.is_some());
        let Some(stream) = self.streams.get(&lane.0) else { return };
        let step = &self.scripts[self.plays[play].script].steps[run.step as usize];
        let entry = &self.cassette.exchanges[step.exchange as usize];
        if is_line(entry) {
            return;
        }
        let session = &self.cassette.sessions[entry.session as usize];
        let was_http = session.is_http();
        let way = if is_sse { Way::Post } else { Way::Own };
        // What an answer's response said behind it when it was recorded over another transport goes elsewhere.
        let is_whole = has_answered && !was_http
            || !entry.server[next..].iter().any(|item| self.way(entry, item, is_sse) == way);
        let is_unanswered = stays_silent(entry) || step.dies || entry.unanswered == Some(Unanswered::Lost);
        let is_awaited = step.is_asked() && is_unanswered;
        let has_body = !stream.is_stream && stream.head.is_none();
        // A body is all there is: what was said to a client that answered a server request stands behind it.
        if !(is_whole || has_body) || (is_awaited && !is_sse && !has_body) {
            return;
        }
        let http = entry.http.as_deref().filter(|_| was_http && session.is_sse() == is_sse);
        let (end, partial) = (http.and_then(|http| http.end), http.and_then(|http| http.partial.clone()));
        self.plays[play].over(at);
        self.end(lane, end, &partial.unwrap_or_default());
    }

    /// Notes an event with an id, for a client that will ask for what came behind it.
    pub(super) fn note_sent(
        &mut self,
        live: usize,
        exchange: u32,
        item: u32,
        to: &Arc<Correlators>,
        on_get: bool,
    ) {
        let recorded = &self.cassette.exchanges[exchange as usize].server[item as usize];
        if let Some(id) = recorded.sse.as_ref().and_then(|sse| sse.id.clone()) {
            let sent = &mut self.lives[live].sent;
            if sent.len() == MOST_KEPT {
                sent.pop_front();
            }
            sent.push_back(Sent { id, exchange, item, to: Arc::clone(to), on_get });
        }
    }

    /// Sends what waited for the `GET` by which an exchange goes on.
    pub(super) fn release_on_resumed(&mut self, live: usize, of: &Arc<Correlators>, lane: Lane) {
        self.release(live, lane, |_, held| held.way == Way::Resume && Arc::ptr_eq(of, &held.to));
    }

    /// Sends what waited for the session's `GET` stream, up to where the stream's own item of this number stood.
    fn release_on_get(&mut self, live: usize, lane: Lane, item: usize) {
        if self.lives[live].get == Some(lane) {
            let next = self.own_rank(lane, item);
            self.release(live, lane, |replayer, held| {
                let goes = |(script, next)| replayer.rank(script, held) < Some(next);
                held.way == Way::Get && next.is_none_or(goes)
            });
        }
    }

    /// In which script and where in it the item of this number stood of the exchange that a lane responds to.
    fn own_rank(&self, lane: Lane, item: usize) -> Option<(usize, Rank)> {
        let (play, at) = self.streams.get(&lane.0)?.run?;
        let (play, run) = (&self.plays[play], self.plays[play].run(at)?);
        let script = &self.scripts[play.script];
        let item = script.items(&script.steps[run.step as usize]).get(item)?;
        Some((play.script, item.rank))
    }

    /// Where in a script stood what waits; none where it is of another.
    fn rank(&self, script: usize, held: &Held) -> Option<Rank> {
        let script = &self.scripts[script];
        let step = script.steps.iter().find(|step| step.exchange == held.exchange)?;
        script.items(step).get(held.item as usize).map(|item| item.rank)
    }

    fn release(&mut self, live: usize, lane: Lane, goes: impl Fn(&Self, &Held) -> bool) {
        let held = std::mem::take(&mut self.lives[live].held);
        let (going, kept): (VecDeque<Held>, VecDeque<Held>) =
            held.into_iter().partition(|held| goes(self, held));
        self.lives[live].held = kept;
        let cassette = Arc::clone(&self.cassette);
        for held in going {
            let item = &cassette.exchanges[held.exchange as usize].server[held.item as usize];
            self.note_sent(live, held.exchange, held.item, &held.to, held.way == Way::Get);
            self.deliver(lane, held.bytes, false, item.sse.as_deref(), Some(item.message.as_form()));
            self.end_of_get(live, held.exchange, held.item);
        }
    }

    /// This lane is from now on its session's `GET` stream, until the item behind which the recorded one ended.
    pub(super) fn is_get(&mut self, lane: Lane, until: Option<GetEnd>) {
        let Some(stream) = self.streams.get(&lane.0) else { return };
        let live = stream.live;
        let (of, streams) = (&mut self.lives[live], &self.streams);
        of.older_gets.extend(of.get.replace(lane));
        of.older_gets.retain(|older| streams.contains_key(&older.0));
        of.get_until = until;
        self.release_on_get(live, lane, 0);
    }

    /// The recorded server did not end this stream before it answered a `DELETE`.
    pub(super) fn stays_open_on(&mut self, lane: Lane) {
        if let Some(live) = self.streams.get(&lane.0).map(|stream| stream.live) {
            self.lives[live].stay_open.push(lane);
        }
    }

    /// Ends a `GET` stream behind the last items that were sent on it, where the recorded server ended it there.
    pub(super) fn end_of_get(&mut self, live: usize, exchange: u32, item: u32) {
        let live = &mut self.lives[live];
        let is_over = |until: &mut GetEnd| {
            if until.is_delete() {
                return false;
            }
            for last in [&mut until.behind, &mut until.own] {
                last.take_if(|last| *last == (exchange, item));
            }
            until.behind.is_none() && until.own.is_none()
        };
        let Some(until) = live.get_until.take_if(is_over) else { return };
        let lane = live.get.take().or_else(|| live.sse.take().map(|(lane, _)| lane));
        if let Some(lane) = lane {
            self.end(lane, until.end, &until.partial);
        }
    }
}
