//! From drafts to the file's text.
//!
//! Each message is written in its readable form, the line is rebuilt from that, and where one byte differs the raw
//! text is written instead (base64 where it is not UTF-8): what is recorded comes back.

mod http;
mod members;
mod message;

use std::{collections::HashMap, io};

use sha2::{Digest, Sha256};

use self::{
    http::{push_body, push_http, push_stream},
    members::Members,
    message::{Around, Asked, Printed},
};
use super::{
    blob::BlobSink,
    draft::{AnswerDraft, ExchangeDraft, Extra, ItemDraft, MessageDraft, Part, SessionDraft},
    layout,
    load::{Counter, Counters},
    model::{self, Cassette, End, Exchange, Form, Place, Session},
    shape::{EXCHANGE, SESSION, Shape},
    spelling::{Envelope, Side, Spelling},
};
use crate::wire::{Span, jsonrpc::Message, scan};

/// Answers longer than this that were written before are written as `same_as`.
const SAME_FROM: usize = 1024;

/// Writes sessions and exchanges, in the order in which they will stand in the file.
#[derive(Debug, Default)]
pub struct Printer {
    counters: HashMap<u32, Counters>,
    /// The key of the exchange with this answer, by its hash.
    answers: HashMap<[u8; 32], String>,
    scratch: Vec<u8>,
}

impl Printer {
    /// For a cassette's first exchange, or the first one that is added to it.
    pub fn new() -> Self {
        Self::default()
    }

    /// What comes goes behind the exchanges of a session that the cassette has already, by its index there.
    pub fn go_on(&mut self, cassette: &Cassette, session: usize) {
        self.counters.entry(cassette.sessions[session].number).or_insert_with(|| {
            let mut next = Counters::default();
            for exchange in cassette.exchanges.iter().filter(|exchange| exchange.session as usize == session)
            {
                let asks = |message: &&model::Message| message.form == Form::Request;
                if let Some(client) = exchange.client.as_ref().filter(asks) {
                    next.client = Counter(client.id.next());
                }
                if let Some(item) = exchange.server.iter().map(|item| &item.message).rfind(asks) {
                    next.server = Counter(item.id.next());
                }
            }
            next
        });
    }

    /// Appends an element of `sessions`: indentation and text, without a comma or line end.
    pub fn session(&mut self, draft: &SessionDraft<'_>, out: &mut Vec<u8>) {
        let mut members = Members::new(&SESSION, &draft.extra, &mut self.scratch);
        members.number("session", draft.number);
        members.number("recording", draft.recording);
        members.text("journal", draft.journal.as_deref());
        members.text("parent", draft.parent.as_deref());
        members.text("at", draft.at.as_deref());
        if draft.lasted_s > 0 {
            members.number("lasted_s", draft.lasted_s);
        }
        members.text("by", draft.by.as_deref());
        members.text("transport", draft.transport.as_deref());
        members.text("path", draft.path.as_deref());
        members.text("protocol", draft.protocol.as_deref());
        members.text("client", draft.client.as_deref());
        members.text("server", draft.server.as_deref());
        if draft.spelling != Spelling::default() {
            push_spelling(&draft.spelling, members.name("spelling"));
        }
        if let Some(end) = &draft.end {
            push_end(end, members.name("end"));
        }
        if draft.gap > 0 {
            members.number("gap", draft.gap);
        }
        members.finish();
        self.lay_out(out);
    }

    /// Appends an element of `exchanges`: indentation and text, without a comma or line end. Those of one session
    /// come in the order in which they will stand in the file, as ordinary ids count on from one to the next.
    ///
    /// # Errors
    /// Those of `blobs`.
    pub fn exchange(
        &mut self,
        draft: &ExchangeDraft<'_>,
        blobs: &mut dyn BlobSink,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut members = Members::new(&EXCHANGE, &draft.extra, &mut scratch);
        members.text("key", Some(&draft.key));
        if draft.session != 1 {
            members.number("session", draft.session);
        }
        members.text("journal", draft.journal.as_deref());
        members.text("after", draft.after.as_deref());
        let mut asked = Asked::default();
        // Each is read once.
        let said: Vec<Message<'_>> = draft.server.iter().map(|item| read(&item.message)).collect();
        if let Some(client) = &draft.client {
            let message = read(client);
            let around = Around {
                side: &draft.spelling.client,
                forms: &[Form::Request, Form::Notification, Form::Batch],
                counter: &mut self.counters.entry(draft.session).or_default().client,
                must_write: said.iter().any(|said| answers_otherwise(said, &message)),
                asked: &Asked::default(),
            };
            let out = members.name("client");
            out.push(b'{');
            asked = around.print(client, &message, blobs, out)?.asked(&message);
            if let Some(body) = &draft.body {
                out.push(b',');
                push_body(&body.bytes, blobs, out)?;
                if body.part == Part::Partial {
                    out.extend_from_slice(b",\"partial\":true");
                }
            }
            out.push(b'}');
        }
        if let Some(http) = &draft.http {
            push_http(http, members.name("http"));
        }
        if !draft.server.is_empty() {
            self.items(draft, &said, &asked, blobs, members.name("server"))?;
        }
        members.text("unanswered", draft.unanswered.map(|reason| reason.word()));
        members.finish();
        self.scratch = scratch;
        self.lay_out(out);
        Ok(())
    }

    fn items(
        &mut self,
        draft: &ExchangeDraft<'_>,
        said: &[Message<'_>],
        asked: &Asked,
        blobs: &mut dyn BlobSink,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        let mut is_answered = false;
        for (n, (item, message)) in draft.server.iter().zip(said).enumerate() {
            out.push(if n == 0 { b'[' } else { b',' });
            let printed = self.item(draft, (item, message), asked, blobs, out)?;
            if matches!(printed.form, Form::Result | Form::Error) && !is_answered {
                is_answered = true;
                self.note_answer(draft, (item, message), &printed, out);
            }
            out.push(b'}');
        }
        out.push(b']');
        Ok(())
    }

    /// Appends an item but for its closing brace.
    fn item(
        &mut self,
        draft: &ExchangeDraft<'_>,
        (item, message): (&ItemDraft<'_>, &Message<'_>),
        asked: &Asked,
        blobs: &mut dyn BlobSink,
        out: &mut Vec<u8>,
    ) -> io::Result<Printed> {
        out.push(b'{');
        push_moment(item.after_ms, item.after.as_deref(), out);
        if item.guess {
            out.extend_from_slice(b"\"guess\":true,");
        }
        push_stream(item.on, item.sse.as_ref(), out);
        let answer = item.answer.as_ref().map(|answer| (answer, read(&answer.message)));
        let around = Around {
            side: &draft.spelling.server,
            forms: &[Form::Request, Form::Notification, Form::Batch, Form::Result, Form::Error],
            counter: &mut self.counters.entry(draft.session).or_default().server,
            must_write: answer.as_ref().is_some_and(|(_, answer)| answers_otherwise(answer, message)),
            asked,
        };
        let printed = around.print(&item.message, message, blobs, out)?;
        if let Some((answer, answered)) = answer {
            out.extend_from_slice(b",\"answer\":{");
            let answer = (answer, &answered);
            push_answer(answer, &draft.spelling.client, &printed.asked(message), blobs, out)?;
            out.push(b'}');
        }
        Ok(printed)
    }

    /// An exchange's first answer: written as `same_as` if it is long and was written before.
    fn note_answer(
        &mut self,
        draft: &ExchangeDraft<'_>,
        (item, message): (&ItemDraft<'_>, &Message<'_>),
        printed: &Printed,
        out: &mut Vec<u8>,
    ) {
        let outcome = message.outcome().unwrap_or_default();
        if outcome.len() <= SAME_FROM || item.answer.is_some() {
            return;
        }
        let hash = Sha256::new().chain_update(printed.form.word()).chain_update(outcome).finalize().into();
        match self.answers.get(&hash) {
            Some(key) => {
                out.truncate(printed.start);
                out.extend_from_slice(b"\"same_as\":");
                scan::push_string(key, out);
            }
            None => {
                self.answers.insert(hash, draft.key.clone().into_owned());
            }
        }
    }

    /// Lays out what is in the scratch as an element of one of the document's arrays.
    fn lay_out(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"    ");
        layout::push(&self.scratch, Span::new(0, self.scratch.len()), 2, 4, out);
        self.scratch.clear();
    }
}

impl Cassette {
    /// The members of an exchange that a [draft](ExchangeDraft) has no field for, as a person wrote them.
    pub fn exchange_extra(&self, exchange: &Exchange) -> Vec<Extra<'_>> {
        self.extra(exchange.place, &EXCHANGE)
    }

    /// The members of a session that a [draft](SessionDraft) has no field for, as a person wrote them.
    pub fn session_extra(&self, session: &Session) -> Vec<Extra<'_>> {
        self.extra(session.place, &SESSION)
    }

    fn extra(&self, place: Place, shape: &Shape) -> Vec<Extra<'_>> {
        let members = scan::members(&self.text, place.span().start).map_while(Result::ok);
        let extra = members.map(|member| (member.name.of(&self.text), member.value.of(&self.text)));
        let extra = extra.filter(|(name, _)| members::is_extra(shape, name));
        extra.map(|(name, value)| Extra { name: name.into(), value: value.into() }).collect()
    }
}

/// The message that a draft holds; noise where it is none.
fn read<'d>(draft: &'d MessageDraft<'_>) -> Message<'d> {
    match draft.part {
        Part::Message => Message::read(&draft.bytes),
        Part::Request | Part::Body | Part::Partial => Message::noise(&draft.bytes),
    }
}

/// Whether a message is a response with another id than its request's.
fn answers_otherwise(message: &Message<'_>, asked: &Message<'_>) -> bool {
    message.kind.is_response() && message.id() != asked.id()
}

fn push_answer(
    (answer, message): (&AnswerDraft<'_>, &Message<'_>),
    side: &Side,
    asked: &Asked,
    blobs: &mut dyn BlobSink,
    out: &mut Vec<u8>,
) -> io::Result<()> {
    push_moment(answer.after_ms, answer.after.as_deref(), out);
    if let Some(http) = &answer.http {
        out.extend_from_slice(b"\"http\":");
        push_http(http, out);
        out.push(b',');
    }
    let forms = &[Form::Result, Form::Error];
    let around = Around { side, forms, counter: &mut Default::default(), must_write: false, asked };
    around.print(&answer.message, message, blobs, out).map(|_| ())
}

/// `after_ms` and `after`, each with a comma behind it.
fn push_moment(after_ms: u32, after: Option<&str>, out: &mut Vec<u8>) {
    if after_ms > 0 {
        out.extend_from_slice(format!("\"after_ms\":{after_ms},").as_bytes());
    }
    if let Some(after) = after {
        out.extend_from_slice(b"\"after\":");
        scan::push_string(after, out);
        out.push(b',');
    }
}

fn push_spelling(spelling: &Spelling, out: &mut Vec<u8>) {
    let mut sides = Members::begin(out);
    for (name, side) in [("client", &spelling.client), ("server", &spelling.server)] {
        if *side == Side::default() {
            continue;
        }
        let mut members = Members::begin(sides.name(name));
        if side.order != Side::default().order {
            members.text("order", Some(&side.order.map(Envelope::word).join(" ")));
        }
        for (name, is_so) in [("spaced", side.spaced), ("crlf", side.crlf)] {
            if is_so {
                members.name(name).extend_from_slice(b"true");
            }
        }
        members.finish();
    }
    sides.finish();
}

fn push_end(end: &End, out: &mut Vec<u8>) {
    let mut members = Members::begin(out);
    if let Some(exit) = end.exit {
        members.number("exit", exit);
    }
    if let Some(signal) = end.signal {
        members.number("signal", signal);
    }
    if let Some(partial) = &end.partial {
        members.bytes("partial", "partial_base64", partial);
    }
    members.finish();
}
