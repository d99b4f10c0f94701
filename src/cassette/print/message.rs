//! One message: the readable form if its line can be rebuilt from it, raw text or base64 if not.

use std::{collections::HashSet, io};

use super::{
    super::{
        blob::{self, BlobSink},
        draft::{MessageDraft, Part},
        load::Counter,
        mark::{PendingBlobs, push_payload},
        model::{Form, Id},
        rebuild::Line,
        spacing,
        spelling::Side,
    },
    http::{push_base64, push_body, push_text},
};
use crate::wire::{
    Span,
    jsonrpc::{Kind, Message, id_key},
    scan::{self, Member},
};

/// What a message stands in.
pub(super) struct Around<'a> {
    pub(super) side: &'a Side,
    /// The readable forms it may have there.
    pub(super) forms: &'a [Form],
    /// The ids that requests of this side ordinarily have.
    pub(super) counter: &'a mut Counter,
    /// Whether a request's id is written although it is ordinary.
    pub(super) must_write: bool,
    /// What a response answers.
    pub(super) asked: &'a Asked,
}

/// What responses to a message answer.
#[derive(Debug, Default)]
pub(super) struct Asked {
    id: Option<Id>,
    /// The ids in a batch, as they are compared.
    batch: Vec<Option<Vec<u8>>>,
}

/// How a message was written.
pub(super) struct Printed {
    pub(super) form: Form,
    /// Where the form's member begins in the text.
    pub(super) start: usize,
}

impl Printed {
    /// What responses to the message will answer when it is read again.
    pub(super) fn asked(&self, message: &Message<'_>) -> Asked {
        let key = |member: Message<'_>| member.id_key().map(|key| key.into_owned());
        match self.form {
            Form::Base64 | Form::Http | Form::Body => Asked::default(),
            Form::Batch => Asked { id: None, batch: message.members().map(key).collect() },
            _ => Asked { id: message.id().map(|id| Id::of(Some(id))), batch: Vec::new() },
        }
    }
}

impl Around<'_> {
    /// Appends the members that hold a draft's message, as it was read: its form and, where it is not an ordinary one, its
    /// id.
    pub(super) fn print(
        mut self,
        draft: &MessageDraft<'_>,
        message: &Message<'_>,
        blobs: &mut dyn BlobSink,
        out: &mut Vec<u8>,
    ) -> io::Result<Printed> {
        if let Some((size, hash)) = draft.omitted {
            return Ok(self.omitted(message, size, &hash, out));
        }
        let start = out.len();
        match draft.part {
            Part::Message => {}
            Part::Body | Part::Partial => {
                return Ok(Printed { form: push_body(&draft.bytes, blobs, out)?, start });
            }
            Part::Request => {
                push_name(Form::Http, out);
                scan::push_string(&String::from_utf8_lossy(&draft.bytes), out);
                return Ok(Printed { form: Form::Http, start });
            }
        }
        let mut pending = PendingBlobs::default();
        if let Some(printed) = self.readable(message, &mut pending, out) {
            for (name, bytes) in pending.0 {
                blobs.put(&name, &bytes)?;
            }
            return Ok(printed);
        }
        out.truncate(start);
        let text = std::str::from_utf8(&draft.bytes);
        if let Ok(line) = text
            && !line.contains('\n')
        {
            push_name(Form::Raw, out);
            scan::push_string(line, out);
            return Ok(Printed { form: Form::Raw, start });
        }
        // An HTTP body or the data of an event may have several lines.
        let mut pending = PendingBlobs::default();
        push_name(Form::Raw, out);
        if text.is_ok_and(|text| push_text(text, Form::Raw, &mut pending, out)) {
            pending.0.into_iter().try_for_each(|(name, bytes)| blobs.put(&name, &bytes))?;
            return Ok(Printed { form: Form::Raw, start });
        }
        out.truncate(start);
        push_base64(&draft.bytes, out);
        Ok(Printed { form: Form::Base64, start })
    }

    /// The readable form, if the line can be rebuilt from it.
    fn readable(
        &mut self,
        message: &Message<'_>,
        blobs: &mut PendingBlobs,
        out: &mut Vec<u8>,
    ) -> Option<Printed> {
        let line = message.bytes;
        let form = form_of(message.kind).filter(|form| self.forms.contains(form))?;
        if line.contains(&b'\n') || !scan::is_json(line) {
            return None;
        }
        let id = Id::of(message.id());
        if matches!(form, Form::Result | Form::Error) && self.asked.id.as_ref() != Some(&id) {
            push_response_id(message.id(), out);
        }
        let start = out.len();
        push_name(form, out);
        let value = out.len();
        match form {
            Form::Request => {
                let id = message.id().filter(|_| self.must_write || id != self.counter.0);
                push_request(message, id, blobs, out)?;
            }
            Form::Notification => push_request(message, None, blobs, out)?,
            Form::Batch => push_batch(message, self.asked, blobs, out),
            _ => push_payload(message.outcome()?, blobs, out),
        }
        let mut rebuilt = Vec::with_capacity(line.len());
        let source = Line { text: out, side: self.side, blobs };
        let given = message.id().map(spacing::id);
        source.rebuild(form, Span::new(value, out.len()), given.as_deref(), &mut rebuilt).ok()?;
        if rebuilt != line {
            return None;
        }
        if form == Form::Request {
            self.counter.0 = id.next();
        }
        Some(Printed { form, start })
    }

    fn omitted(&self, message: &Message<'_>, size: u64, hash: &[u8; 32], out: &mut Vec<u8>) -> Printed {
        let id = Id::of(message.id());
        let has_method = matches!(message.kind, Kind::Request | Kind::Notification);
        let may_answer = self.forms.contains(&Form::Result);
        if !has_method && may_answer && self.asked.id.as_ref() != Some(&id) {
            push_response_id(message.id(), out);
        }
        let start = out.len();
        let mut digits = String::new();
        blob::push_hex(hash, &mut digits);
        out.extend_from_slice(format!("\"omitted\":{{\"bytes\":{size},\"sha256\":\"{digits}\"").as_bytes());
        if has_method {
            if let Some(id) = message.id() {
                out.extend_from_slice(b",\"id\":");
                out.extend_from_slice(id);
            }
            out.extend_from_slice(b",\"method\":");
            scan::push_string(&message.method(), out);
        }
        out.push(b'}');
        Printed { form: Form::Omitted, start }
    }
}

const fn form_of(kind: Kind) -> Option<Form> {
    match kind {
        Kind::Request => Some(Form::Request),
        Kind::Notification => Some(Form::Notification),
        Kind::Result => Some(Form::Result),
        Kind::Error => Some(Form::Error),
        Kind::Batch => Some(Form::Batch),
        Kind::Noise => None,
    }
}

fn push_name(form: Form, out: &mut Vec<u8>) {
    scan::push_string(form.word(), out);
    out.push(b':');
}

/// A response's id, with a comma behind it.
fn push_response_id(id: Option<&[u8]>, out: &mut Vec<u8>) {
    match id {
        Some(id) => {
            out.extend_from_slice(b"\"id\":");
            out.extend_from_slice(id);
            out.push(b',');
        }
        None => out.extend_from_slice(b"\"no_id\":true,"),
    }
}

/// Appends the object that holds a request or notification. None where it would have a member twice.
fn push_request(
    message: &Message<'_>,
    id: Option<&[u8]>,
    blobs: &mut PendingBlobs,
    out: &mut Vec<u8>,
) -> Option<()> {
    let bytes = message.bytes;
    let (mut method, mut names, mut others) = (None, HashSet::new(), Vec::new());
    for Member { name, value } in scan::members(bytes, scan::trim(bytes).start).map_while(Result::ok) {
        let plain = scan::unescape(name.of(bytes));
        match plain.as_ref() {
            b"method" => method = Some(value),
            b"jsonrpc" | b"id" | b"params" => {}
            _ => others.push((name, value)),
        }
        if !names.insert(plain) {
            return None;
        }
    }
    out.push(b'{');
    if let Some(id) = id {
        out.extend_from_slice(b"\"id\":");
        out.extend_from_slice(id);
        out.push(b',');
    }
    out.extend_from_slice(b"\"method\":");
    out.extend_from_slice(method?.of(bytes));
    if let Some(params) = message.params() {
        out.extend_from_slice(b",\"params\":");
        push_payload(params, blobs, out);
    }
    for (name, value) in others {
        out.push(b',');
        out.extend_from_slice(name.of(bytes));
        out.push(b':');
        push_payload(value.of(bytes), blobs, out);
    }
    out.push(b'}');
    Some(())
}

fn push_batch(batch: &Message<'_>, asked: &Asked, blobs: &mut PendingBlobs, out: &mut Vec<u8>) {
    for (n, member) in batch.members().enumerate() {
        out.push(if n == 0 { b'[' } else { b',' });
        out.push(b'{');
        let start = out.len();
        if push_batch_member(&member, asked, blobs, out).is_none() {
            out.truncate(start);
            out.extend_from_slice(b"\"raw\":");
            scan::push_string(&String::from_utf8_lossy(member.bytes), out);
        }
        out.push(b'}');
    }
    out.push(b']');
}

fn push_batch_member(
    member: &Message<'_>,
    asked: &Asked,
    blobs: &mut PendingBlobs,
    out: &mut Vec<u8>,
) -> Option<()> {
    let form = form_of(member.kind).filter(|form| *form != Form::Batch)?;
    if matches!(form, Form::Request | Form::Notification) {
        push_name(form, out);
        return push_request(member, member.id(), blobs, out);
    }
    let key = member.id().map(|id| id_key(id).into_owned());
    if let Some(to) = asked.batch.iter().position(|asked| key.is_some() && *asked == key) {
        out.extend_from_slice(format!("\"to\":{},", to + 1).as_bytes());
    }
    push_response_id(member.id(), out);
    push_name(form, out);
    push_payload(member.outcome()?, blobs, out);
    Some(())
}
