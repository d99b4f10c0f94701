//! Requests of whose bodies the recording has only the beginning, or nothing: the server cut them off, or answered
//! without the rest. They are answered as soon as so much has come, whether or not more does; where that does not tell
//! what is asked, or a request that was recorded whole may be meant, once no more comes.

use std::sync::Arc;

use super::{Found, Replayer, facts::Facts, http::Placed, unmatched::MOST_IDS};
use crate::{
    cassette::model::Exchange,
    replay::{
        exchange::{HttpRequest, Pace, Wants},
        matcher::{
            beginning::Beginning,
            canonical::{holds_placeholder, without_numbers},
        },
        miss,
        script::{Step, StepKind, client_message},
    },
    traffic::{Direction, Lane},
    wire::jsonrpc::Message,
};

/// The header that says how long a body is, all of it.
const CONTENT_LENGTH: &str = "content-length";

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
    /// How long its request said that all of it is, where what is equal is about as long.
    length: Option<u64>,
}

/// Of a request whose message is at hand, what parts are known by.
#[derive(Debug)]
pub(super) struct Announced {
    /// Method and target.
    line: Vec<u8>,
    /// How long it said that its body is.
    length: u64,
}

/// A live request, as far as it has come.
struct Live<'a> {
    request: &'a HttpRequest<'a>,
    facts: Facts,
    line: Vec<u8>,
    pace: Pace,
    /// How long it says that all of its body is.
    length: Option<u64>,
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
    pub(crate) fn wants(&mut self, request: &HttpRequest<'_>, pace: Pace) -> Wants {
        match self.part(request, pace) {
            Ok(_) => Wants::Nothing,
            Err(wants) => wants,
        }
    }

    /// The exchange whose request this one is, or begins like.
    pub(super) fn find_part(&mut self, request: &HttpRequest<'_>) -> Option<Found> {
        let paces = [Pace::Comes, Pace::Pauses, Pace::Stops];
        let paces = if request.is_whole { &paces[..1] } else { &paces };
        paces.iter().find_map(|pace| self.part(request, *pace).ok())
    }

    /// What parts are known by, of a request that is whole.
    pub(super) fn announced(&self, request: &HttpRequest<'_>, target: &str) -> Option<Announced> {
        let length = announced(request).filter(|_| self.answers_early())?;
        let line = format!("{} {target}", request.method);
        Some(Announced { line: without_numbers(line.as_bytes()).into_owned(), length })
    }

    /// The exchange of a request that was refused before much of it had come, and was as long as the one whose message is
    /// at hand: whether a body comes whole before the answer is chance. It comes before what was `found` for the message
    /// where it is left, and that was recorded behind it or would be repeated.
    pub(super) fn find_refused(&mut self, message: &Message<'_>, found: Option<Found>) -> Option<Found> {
        let announced = self.at_hand.announced.take()?;
        let refused = self.refused(&announced, message, found);
        self.at_hand.announced = Some(announced);
        refused
    }

    fn refused(
        &mut self,
        announced: &Announced,
        message: &Message<'_>,
        found: Option<Found>,
    ) -> Option<Found> {
        let live = self.at_hand.live;
        if self.lives[live].is_over {
            return None;
        }
        let mut repeat = None;
        for play in self.plays_of_parts(live) {
            let script = self.plays[play].script;
            for at in 0..self.scripts[script].parts.len() {
                let step = self.scripts[script].parts[at];
                let is_taken = self.plays[play].is_taken(step);
                let rank = |step: u32| self.scripts[script].steps[step as usize].rank;
                let comes_first = match found {
                    Some(found) if found.repeat => !is_taken,
                    Some(found) => !is_taken && found.play == play && rank(step) < rank(found.step),
                    None => !is_taken || repeat.is_none(),
                };
                if !comes_first || !self.is_refused(play, step, announced, message) {
                    continue;
                }
                if !is_taken {
                    return Some(Found { play, step, repeat: false });
                }
                repeat = Some(Found { play, step, repeat: true });
            }
        }
        repeat
    }

    /// Whether a step's request was refused before it told what it asks, and may be the one whose message is at hand.
    fn is_refused(&mut self, play: usize, step: u32, announced: &Announced, message: &Message<'_>) -> bool {
        let exchange = self.scripts[self.plays[play].script].steps[step as usize].exchange;
        let part = self.part_of(exchange);
        if part.tells || part.length != Some(announced.length) || part.line != announced.line {
            return false;
        }
        let facts = self.at_hand.facts.as_ref();
        let bytes =
            if part.hides || self.at_hand.plain.is_empty() { message.bytes } else { &self.at_hand.plain };
        facts.is_some_and(|facts| facts.fit(&self.cassette, exchange).is_some())
            && without_numbers(&Beginning::of(bytes).form).starts_with(&part.form)
    }

    /// The plays whose parts a client of this session asks for: what was recorded outside of sessions is for clients that
    /// have none.
    fn plays_of_parts(&self, live: usize) -> impl Iterator<Item = usize> + use<> {
        let pool = (live == 0).then_some(0);
        pool.into_iter().chain(self.playing(live).filter(|play| *play > 0))
    }

    /// A request whose rest does not come, and that was not recorded so: a miss.
    pub(super) fn stopped(&mut self, lane: Lane, request: &HttpRequest<'_>, line: &str) {
        let nearest = self.nearest_part(request.body).map(|exchange| self.key(exchange));
        let miss = miss::of_stopped(line, request.body.len(), announced(request), nearest);
        self.plain(lane, 408, &format!("{}\n", miss.message));
        self.remember(miss);
    }

    fn part(&mut self, request: &HttpRequest<'_>, pace: Pace) -> Result<Found, Wants> {
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
        let mut live = Live { request, facts, line, pace, length: announced(request), form, hidden: None };
        let mut wants = Wants::All;
        for play in self.plays_of_parts(session) {
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
            if is_as_long(part.length, live.length) == Some(false) {
                // Whatever it begins with, it goes on to ask for something else.
                continue;
            }
            let comes = live.pace == Pace::Comes;
            let form = match part.hides {
                true => self.hidden_form(live),
                false => &live.form,
            };
            let is_it = match part.tells {
                true => form.starts_with(&part.form),
                // What is said to one of which so little came is for one that stops there.
                false => !comes && *form == part.form,
            };
            if is_it {
                let is_taken = self.plays[play].is_taken(step);
                if self.has_rival(play, step, &part, live) || self.has_longer(play, step, live) {
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
    /// any, where the part itself would be repeated. Of what has come in part, its length may tell which of the two it
    /// is, and else whether more comes.
    fn has_rival(&self, play: usize, step: u32, part: &Part, live: &Live<'_>) -> bool {
        let script = &self.scripts[self.plays[play].script];
        let (is_taken, rank) = (self.plays[play].is_taken(step), script.steps[step as usize].rank);
        let is_ours = is_as_long(part.length, live.length) == Some(true);
        let mut bytes = Vec::new();
        (0..).zip(&script.steps).any(|(at, other)| {
            let comes_first = is_taken || other.rank < rank && !self.plays[play].is_taken(at);
            if !comes_first || !self.whole_body(other, part, &mut bytes) {
                return false;
            }
            let form = without_numbers(&Beginning::of(&bytes).form).into_owned();
            if live.request.is_whole {
                return form == *live.hidden.as_ref().filter(|_| part.hides).unwrap_or(&live.form);
            }
            let length = self.has_its_length(other, &bytes).then_some(bytes.len() as u64);
            form.starts_with(&part.form)
                && live.pace < Pace::Stops
                && !(is_ours && is_as_long(length, live.length) == Some(false))
        })
    }

    /// Whether another part that begins alike and goes on comes first: one that is left and was recorded before, or where
    /// the part itself would be repeated. Whether more comes tells which of the two it is.
    fn has_longer(&mut self, play: usize, step: u32, live: &mut Live<'_>) -> bool {
        if live.request.is_whole || live.pace == Pace::Stops {
            return false;
        }
        let script = self.plays[play].script;
        let is_taken = self.plays[play].is_taken(step);
        for at in 0..self.scripts[script].parts.len() {
            let other = self.scripts[script].parts[at];
            let of = |step: u32| &self.scripts[script].steps[step as usize];
            let (exchange, is_before) = (of(other).exchange, of(other).rank < of(step).rank);
            if self.plays[play].is_taken(other) || !(is_before || is_taken) {
                continue;
            }
            let other = self.part_of(exchange);
            let may_be_it = other.line == live.line
                && is_as_long(other.length, live.length) != Some(false)
                && live.facts.fit(&self.cassette, exchange).is_some();
            let form = if other.hides { self.hidden_form(live) } else { &live.form };
            if may_be_it && other.form.len() > form.len() && other.form.starts_with(form) {
                return true;
            }
        }
        false
    }

    /// The body of a step's request, where that was recorded whole and may be the one that begins like a part.
    fn whole_body(&self, step: &Step, part: &Part, body: &mut Vec<u8>) -> bool {
        let entry = &self.cassette.exchanges[step.exchange as usize];
        if entry.is_partial || step.kind == StepKind::Push {
            return false;
        }
        let is_kept = client_message(&self.cassette, &*self.blobs, entry, body);
        if step.kind != StepKind::Line {
            return is_kept;
        }
        let is_alike = is_kept && *without_numbers(body) == *part.line;
        body.clear();
        is_alike
            && entry.body.as_ref().is_none_or(|message| {
                self.cassette.wire(entry.session, true, message, None, &*self.blobs, body).is_ok()
            })
    }

    /// Whether what equals a recorded body is about as long: nothing in it is hidden, and no rule leaves out any of it.
    fn has_its_length(&self, step: &Step, body: &[u8]) -> bool {
        let entry = &self.cassette.exchanges[step.exchange as usize];
        self.cassette.rules.is_empty() && entry.rule.is_none() && !hides(body)
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
            let hides = hides(&body);
            let request = entry.http.as_deref().map_or(&[][..], |http| &http.request);
            let length = request.iter().find(|header| *header.name == *CONTENT_LENGTH && !hides);
            let length = length.and_then(|header| number(header.values.first()?));
            let Beginning { form, tells } = Beginning::of(&body);
            let (line, form) = (without_numbers(&line).into_owned(), without_numbers(&form).into_owned());
            Arc::new(Part { line, form, tells, hides, length })
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

/// How long a request says that its body is.
fn announced(request: &HttpRequest<'_>) -> Option<u64> {
    request.header(CONTENT_LENGTH).and_then(number)
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Whether a body may be as long as a recorded one, but for ids and tokens; none where that is not known.
fn is_as_long(recorded: Option<u64>, live: Option<u64>) -> Option<bool> {
    Some(recorded?.abs_diff(live?) <= MOST_IDS)
}

/// Whether something in a recorded body stands for what is live.
fn hides(body: &[u8]) -> bool {
    holds_placeholder(body) || memchr::memmem::find(body, b"<var:").is_some()
}

#[cfg(test)]
mod tests;
