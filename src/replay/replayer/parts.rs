//! Requests of whose bodies the recording has only the beginning: the server cut them off, or answered without the rest.
//! They are answered as soon as so much has come, whether or not more does.

use std::sync::Arc;

use super::{Found, Replayer, facts::Facts, http::Placed};
use crate::{
    cassette::model::Exchange,
    replay::{
        exchange::{HttpRequest, Wants},
        matcher::{
            beginning::Beginning,
            canonical::{holds_placeholder, without_numbers},
        },
        script::{StepKind, client_message},
    },
    traffic::Direction,
};

/// The body of such a request.
#[derive(Debug)]
pub(super) struct Part {
    /// Method and target.
    line: Vec<u8>,
    /// What counts of it, and whether it counts for what goes on behind it.
    form: Vec<u8>,
    tells: bool,
    /// Something in it was hidden.
    hides: bool,
}

/// A live request, as far as it has come.
struct Live<'a> {
    request: &'a HttpRequest<'a>,
    facts: Facts,
    line: Vec<u8>,
    is_whole: bool,
    /// What counts of its body; the same once what is to be hidden in it is.
    form: Vec<u8>,
    hidden: Option<Vec<u8>>,
}

impl Replayer {
    /// Whether requests may be answered before they are whole.
    pub(crate) const fn answers_early(&self) -> bool {
        self.has_parts
    }

    /// What a request whose body has come so far waits for.
    pub(crate) fn wants(&mut self, request: &HttpRequest<'_>) -> Wants {
        match self.part(request, false) {
            Ok(_) => Wants::Nothing,
            Err(wants) => wants,
        }
    }

    /// The exchange whose request a whole one begins like.
    pub(super) fn find_part(&mut self, request: &HttpRequest<'_>) -> Option<Found> {
        self.part(request, true).ok()
    }

    fn part(&mut self, request: &HttpRequest<'_>, is_whole: bool) -> Result<Found, Wants> {
        if !self.answers_early() {
            return Err(Wants::All);
        }
        let Placed { live: session, target, facts, .. } = self.place(request, Facts::default());
        if self.lives[session].is_over {
            return Err(Wants::All);
        }
        let line = format!("{} {target}", request.method);
        let line = without_numbers(line.as_bytes()).into_owned();
        let form = Beginning::of(request.body).form;
        let mut live = Live { request, facts, line, is_whole, form, hidden: None };
        // What was recorded outside of sessions is for clients that have none.
        let pool = (session == 0).then_some(0);
        let mut wants = Wants::All;
        for play in pool.into_iter().chain(self.playing(session).filter(|play| *play > 0)) {
            match self.part_in(play, &mut live) {
                Ok(found) => return Ok(found),
                Err(more) => wants = wants.min(more),
            }
        }
        Err(wants)
    }

    fn part_in(&mut self, play: usize, live: &mut Live<'_>) -> Result<Found, Wants> {
        let script = self.plays[play].script;
        let (mut wants, mut repeat) = (Wants::All, None);
        for at in 0..self.scripts[script].parts.len() {
            let step = self.scripts[script].parts[at];
            let part = self.part_of(self.scripts[script].steps[step as usize].exchange);
            let fits = live.facts.fit(&self.cassette, self.scripts[script].steps[step as usize].exchange);
            if part.line != live.line || fits.is_none() {
                continue;
            }
            let form = match part.hides {
                true => self.hidden_form(live),
                false => &live.form,
            };
            if *form == part.form || part.tells && form.starts_with(&part.form) {
                let is_taken = self.plays[play].is_taken(step);
                if self.has_rival(play, step, &part, live) {
                    continue;
                }
                if !is_taken {
                    return Ok(Found { play, step, repeat: false });
                }
                repeat = Some(Found { play, step, repeat: true });
            } else if part.form.starts_with(form) {
                // What is hidden may be shorter than what stands for it.
                let more = if part.hides { 1 } else { part.form.len() - form.len() };
                wants = wants.min(Wants::More(more));
            }
        }
        repeat.ok_or(wants)
    }

    /// Whether a request that was recorded whole begins alike, and comes first: one that is left and was recorded before;
    /// any, where the part itself would be repeated.
    fn has_rival(&self, play: usize, step: u32, part: &Part, live: &Live<'_>) -> bool {
        let script = &self.scripts[self.plays[play].script];
        let (is_taken, rank) = (self.plays[play].is_taken(step), script.steps[step as usize].rank);
        let mut bytes = Vec::new();
        (0..).zip(&script.steps).any(|(at, other)| {
            let comes_first = is_taken || other.rank < rank && !self.plays[play].is_taken(at);
            let is_message = !matches!(other.kind, StepKind::Line | StepKind::Push);
            let entry = &self.cassette.exchanges[other.exchange as usize];
            if !comes_first || !is_message || !client_message(&self.cassette, &*self.blobs, entry, &mut bytes)
            {
                return false;
            }
            let form = without_numbers(&Beginning::of(&bytes).form).into_owned();
            let own = live.hidden.as_ref().filter(|_| part.hides).unwrap_or(&live.form);
            form.starts_with(&part.form) && (!live.is_whole || form == *own)
        })
    }

    fn part_of(&mut self, exchange: u32) -> Arc<Part> {
        let (cassette, blobs) = (&self.cassette, &self.blobs);
        let part = self.parts.entry(exchange).or_insert_with(|| {
            let entry = &cassette.exchanges[exchange as usize];
            let (mut line, mut body) = (Vec::new(), Vec::new());
            client_message(cassette, &**blobs, entry, &mut line);
            if let Some(part) = &entry.body {
                // A part whose blob has gone is the beginning of nothing: the line says so.
                let is_there = cassette.wire(entry.session, true, part, None, &**blobs, &mut body).is_ok();
                line.truncate(if is_there { line.len() } else { 0 });
            }
            let hides = holds_placeholder(&body) || memchr::memmem::find(&body, b"<var:").is_some();
            let Beginning { form, tells } = Beginning::of(&body);
            let (line, form) = (without_numbers(&line).into_owned(), without_numbers(&form).into_owned());
            Arc::new(Part { line, form, tells, hides })
        });
        Arc::clone(part)
    }

    fn hidden_form<'a>(&mut self, live: &'a mut Live<'_>) -> &'a Vec<u8> {
        live.hidden.get_or_insert_with(|| {
            let named = self.options.vars.hide(live.request.body);
            let redacted = self.redactor.message(Direction::ToServer, &named);
            without_numbers(&Beginning::of(&redacted).form).into_owned()
        })
    }

    /// The part that shares most with a request for which nothing was recorded, for its miss.
    pub(super) fn nearest_part(&mut self, body: &[u8]) -> Option<u32> {
        let form = Beginning::of(body).form;
        let shared =
            |part: &Part| form.iter().zip(&part.form).take_while(|(one, other)| one == other).count();
        let cassette = Arc::clone(&self.cassette);
        let is_part = |entry: &Exchange| {
            let session = &cassette.sessions[entry.session as usize];
            entry.is_partial && session.recording == self.recording
        };
        let parts: Vec<u32> =
            (0..).zip(&cassette.exchanges).filter(|(_, entry)| is_part(entry)).map(|(at, _)| at).collect();
        parts
            .into_iter()
            .map(|at| (shared(&self.part_of(at)), at))
            .max_by_key(|(shared, _)| *shared)
            .map(|(_, at)| at)
    }
}
