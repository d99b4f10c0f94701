//! The text of a cassette with the sessions of folded journals in it.

use std::{
    borrow::Cow,
    collections::HashMap,
    io::{self, Write},
};

use super::{
    Plan,
    behind::{Free, Shift},
    carry::Changes,
    drafts::{Drafts, Frames, Held},
    plan::Added,
    splice::{self, Array},
};
use crate::{
    cassette::{
        Printer,
        blob::{BlobSink, BlobSource},
        draft::SessionDraft,
    },
    traffic::{Direction, Event, Payload},
};

impl Plan<'_> {
    /// Writes the cassette: what stays of the base as it stands, then what is added. `old` has the blobs of the
    /// base, `new` takes those of what is added. One exchange is in memory at a time.
    ///
    /// # Errors
    /// When a journal cannot be read as it was before, a blob is missing, or `new` or `out` fail.
    pub fn write(
        &mut self,
        frames: &mut dyn Frames,
        old: &dyn BlobSource,
        new: &mut dyn BlobSink,
        out: &mut dyn Write,
    ) -> io::Result<Changes> {
        if self.drops() {
            self.pair(frames, old)?;
        }
        let (mut printer, mut added) =
            (Printer::new(), self.added.iter().filter(|added| added.behind.is_none()));
        let mut session = |out: &mut Vec<u8>| {
            let session = added.next().map(|added| self.draft(added));
            Ok(session.inspect(|session| printer.session(session, out)).is_some())
        };
        let live_ids = self.live_ids();
        let mut exchanges = Exchanges {
            plan: self,
            frames,
            old,
            new,
            held: Held::default(),
            printers: HashMap::new(),
            live_ids: &live_ids,
            next: (0, 0),
            drafts: None,
            shift: None,
            free: HashMap::new(),
            changes: Changes::default(),
        };
        let (base, stays) = (self.base, &self.stays);
        let sessions =
            base.sessions.iter().zip(stays).filter_map(|(session, stays)| stays.then_some(session.place));
        let stay = |session: u32| stays[session as usize];
        let messages =
            base.exchanges.iter().filter_map(|exchange| stay(exchange.session).then_some(exchange.place));
        let arrays = [
            Array {
                name: "sessions",
                place: base.layout.sessions,
                stay: sessions.collect(),
                all_stay: !self.drops(),
                next: &mut session,
            },
            Array {
                name: "exchanges",
                place: base.layout.exchanges,
                stay: messages.collect(),
                all_stay: !self.drops(),
                next: &mut |out| exchanges.next(out),
            },
        ];
        splice::write(&base.text, arrays, out)?;
        let dropped = base.exchanges.iter().filter(|exchange| !stay(exchange.session)).count();
        let mut changes = exchanges.changes;
        changes.gone = dropped - changes.kept - changes.changed;
        Ok(changes)
    }

    /// For each tape, what the servers called its sessions, with their numbers.
    fn live_ids(&self) -> Vec<Vec<(&[u8], u32)>> {
        let mut ids = vec![Vec::new(); self.tapes.len()];
        for added in &self.added {
            let id = self.session(added).live_id.as_deref();
            ids[added.tape].extend(id.map(|id| (id, added.number)));
        }
        ids
    }

    fn draft(&self, added: &Added) -> SessionDraft<'_> {
        let header = &self.tapes[added.tape].header;
        let session = self.session(added);
        let began =
            i64::try_from(session.at_ms / 1000).ok().and_then(|at| jiff::Timestamp::from_second(at).ok());
        let lasted_ms = self.tapes[added.tape].ended_ms.saturating_sub(session.at_ms);
        SessionDraft {
            number: added.number,
            recording: added.recording,
            journal: Some(Cow::Borrowed(&header.id)),
            parent: header.parent_key().map(Cow::Owned),
            at: began.map(|began| Cow::Owned(began.to_string())),
            lasted_s: lasted_ms / 1000,
            by: Some(Cow::Borrowed(&*header.by)).filter(|by| !by.is_empty()),
            transport: Some(Cow::Borrowed(if session.is_sse { "sse" } else { &*header.transport }))
                .filter(|transport| !transport.is_empty()),
            path: session.path.as_deref().map(Cow::Borrowed),
            protocol: session.facts.protocol.as_deref().map(Cow::Borrowed),
            client: session.facts.client.as_deref().map(Cow::Borrowed),
            server: session.facts.server.as_deref().map(Cow::Borrowed),
            spelling: session.spelling.clone(),
            end: session.end.clone(),
            gap: session.gap,
            extra: Vec::new(),
        }
    }
}

/// Prints the exchanges that are added, one after the other.
struct Exchanges<'p, 'w> {
    plan: &'w Plan<'p>,
    frames: &'w mut dyn Frames,
    old: &'w dyn BlobSource,
    new: &'w mut dyn BlobSink,
    held: Held,
    /// One for each recording: an answer is written as the same as one of its own recording only, so that dropping
    /// another recording breaks nothing.
    printers: HashMap<u32, Printer>,
    /// Of each tape, what its sessions were called and their numbers.
    live_ids: &'w [Vec<(&'p [u8], u32)>],
    /// The session, among those added, and the exchange that comes next.
    next: (usize, usize),
    drafts: Option<Drafts<'w>>,
    /// What becomes of the ids of a session that goes on with another.
    shift: Option<Shift>,
    /// Which ids are free in sessions that were gone on with, by their index.
    free: HashMap<usize, Free>,
    changes: Changes,
}

impl Exchanges<'_, '_> {
    fn next(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
        let (added, number, exchange) = loop {
            let Some(added) = self.plan.added.get(self.next.0) else { return Ok(false) };
            match self.plan.session(added).exchanges.get(self.next.1) {
                Some(exchange) => break (added, self.next.1, exchange),
                None => (self.next, self.drafts) = ((self.next.0 + 1, 0), None),
            }
        };
        self.next.1 += 1;
        self.held.read(added.tape, exchange, self.frames)?;
        let mut events = self.held.events()?;
        if self.plan.tapes[added.tape].header.continues.is_some() {
            events.iter_mut().for_each(end_line);
        }
        if let Some(behind) = added.behind {
            if self.drafts.is_none() {
                let free = || Free::of(self.plan.base, behind);
                self.shift = Some(Shift::to(*self.free.entry(behind).or_insert_with(free)));
                self.printers.entry(added.recording).or_default().go_on(self.plan.base, behind);
            }
            let shift = self.shift.as_mut().expect("it was just made");
            events.iter_mut().for_each(|event| shift.apply(event));
            self.free.insert(behind, shift.then);
        }
        let drafts = self.drafts.get_or_insert_with(|| {
            let session = self.plan.session(added);
            let spelling = added.behind.map_or(&session.spelling, |at| &self.plan.base.sessions[at].spelling);
            Drafts::new(session, spelling, added.number, &self.live_ids[added.tape], &added.keys)
        });
        let mut draft = drafts.next(number, &events);
        if let Some(behind) = added.behind {
            draft.journal = Some(Cow::Borrowed(&self.plan.tapes[added.tape].header.id));
            let recorded = &self.plan.base.sessions[behind];
            let is_streamed = recorded.is_http() && recorded.transport.as_deref() != Some("sse");
            if is_streamed && draft.client.is_some() && draft.server.len() > 1 {
                // More than an answer can only come as events.
                draft.http.get_or_insert_default().stream = true;
            }
        }
        match added.instead_of[number].map(|old| &self.plan.base.exchanges[old]) {
            Some(old) if self.plan.base.carry(old, &mut draft, self.old)? => self.changes.kept += 1,
            Some(_) => self.changes.changed += 1,
            None => self.changes.new += 1,
        }
        self.printers.entry(added.recording).or_default().exchange(&draft, self.new, out)?;
        Ok(true)
    }
}

/// What a real server said last behind a replay is a line like any other, since the client heard it.
fn end_line(event: &mut Event<'_>) {
    if let (Direction::ToClient, Payload::Partial(bytes)) = (event.direction, &mut event.payload) {
        event.payload = Payload::Message(std::mem::take(bytes));
    }
}

#[cfg(test)]
mod tests;
