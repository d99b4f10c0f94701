//! From a message in the file back to the bytes of its line.

use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::STANDARD};

use super::{
    blob::BlobSource,
    error::{LoadError, LoadErrorKind, Result},
    expand::{expand, may_hold_markers},
    model::{Cassette, Form, Message},
    spacing::{self, Spacing},
    spelling::{Envelope, Side},
};
use crate::wire::{Span, jsonrpc, scan};

impl Cassette {
    /// Appends a message's bytes as they stood on the wire, without `\n` (with `\r` where that was recorded), in the
    /// spelling of the session with this index. Where `id` is given it stands in place of the recorded id; batches
    /// keep theirs.
    ///
    /// # Errors
    /// When a blob cannot be read, or when the message was over `--max-message` and is not in the file.
    ///
    /// # Panics
    /// Panics when `session` or `message` is not of this cassette.
    pub fn wire(
        &self,
        session: u32,
        from_client: bool,
        message: &Message,
        id: Option<&[u8]>,
        blobs: &dyn BlobSource,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let side = self.sessions[session as usize].spelling.side(from_client);
        let mut recorded = Vec::new();
        let id = match id {
            Some(id) => Some(id),
            None => {
                message.id.push(&mut recorded);
                Some(&recorded[..]).filter(|id| !id.is_empty())
            }
        };
        let line = Line { text: &self.text, side, blobs };
        line.rebuild(message.form, message.place.span(), id, out).map_err(|error| error.locate(&self.text))
    }
}

impl Cassette {
    /// A client request or notification as it stands in the file, for looking at its method and params without
    /// rebuilding it: spaced as the file is, and without an id. None for other forms, and where markers stand in it.
    pub fn peek(&self, message: &Message) -> Option<jsonrpc::Message<'_>> {
        let is_request = match message.form {
            Form::Request => true,
            Form::Notification => false,
            _ => return None,
        };
        let text = self.at(message.place);
        (!may_hold_markers(text)).then(|| jsonrpc::Message::without_envelope(text, is_request))
    }

    /// The method of a client request or notification, read no further than that. None for other forms.
    pub fn method(&self, message: &Message) -> Option<Cow<'_, str>> {
        let text = self.at(message.place);
        let is_named = matches!(message.form, Form::Request | Form::Notification);
        // As it is written; of a big cassette it is asked for every message before the first answer.
        if let Some(rest) = text.strip_prefix(b"{\"method\": \"").filter(|_| is_named) {
            let ends = rest.iter().position(|byte| matches!(byte, b'"' | b'\\'));
            let plain =
                ends.filter(|&end| rest[end] == b'"').and_then(|end| std::str::from_utf8(&rest[..end]).ok());
            if let Some(method) = plain {
                return Some(Cow::Borrowed(method));
            }
        }
        let mut members = scan::members(text, 0).map_while(std::result::Result::ok).filter(|_| is_named);
        let method = members.find(|member| scan::string_is(member.name.of(text), "method"))?;
        Some(jsonrpc::text(method.value.of(text)))
    }
}

/// What a line is rebuilt from.
pub(super) struct Line<'a> {
    /// The text that the message's place counts in.
    pub(super) text: &'a [u8],
    pub(super) side: &'a Side,
    pub(super) blobs: &'a dyn BlobSource,
}

impl Line<'_> {
    /// Appends the line of a message in the member `form` whose value stands at `place`.
    pub(super) fn rebuild(
        &self,
        form: Form,
        place: Span,
        id: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        match form {
            Form::Raw => return self.raw(place, id, out),
            Form::Base64 => {
                let text = scan::unescape(place.of(self.text));
                let wrong = |_| LoadError::member(self.text, place.start, "base64", "base64");
                out.extend_from_slice(&STANDARD.decode(text).map_err(wrong)?);
                return Ok(());
            }
            Form::Omitted => return Err(LoadError::new(place.start, LoadErrorKind::Omitted)),
            Form::Http => {
                out.extend_from_slice(&scan::unescape(place.of(self.text)));
                return Ok(());
            }
            Form::Body => {
                out.extend_from_slice(&self.string(place)?);
                return Ok(());
            }
            Form::Batch => self.batch(place, out)?,
            _ => self.message(form, place, id, out)?,
        }
        if self.side.crlf {
            out.push(b'\r');
        }
        Ok(())
    }

    /// The text of a string, or of a marker that stands for one.
    fn string(&self, place: Span) -> Result<Cow<'_, [u8]>> {
        if self.text[place.start] == b'"' {
            return Ok(scan::unescape(place.of(self.text)));
        }
        let mut value = Vec::new();
        expand(self.text, place, Spacing::Compact, self.blobs, &mut value)?;
        Ok(Cow::Owned(scan::unescape(&value).into_owned()))
    }

    fn raw(&self, place: Span, id: Option<&[u8]>, out: &mut Vec<u8>) -> Result<()> {
        let line = self.string(place)?;
        match (id, jsonrpc::Message::read(&line).id_span()) {
            (Some(id), Some(span)) => {
                out.extend_from_slice(&line[..span.start]);
                out.extend_from_slice(id);
                out.extend_from_slice(&line[span.end..]);
            }
            _ => out.extend_from_slice(&line),
        }
        Ok(())
    }

    fn message(&self, form: Form, place: Span, id: Option<&[u8]>, out: &mut Vec<u8>) -> Result<()> {
        let (mut method, mut params, mut others) = (None, None, Vec::new());
        let is_response = matches!(form, Form::Result | Form::Error);
        if !is_response {
            for member in scan::members(self.text, place.start) {
                let member =
                    member.map_err(|error| LoadError::syntax(self.text, error.at, error.expected))?;
                match &*scan::unescape(member.name.of(self.text)) {
                    b"id" => {}
                    b"method" => method = Some(member.value),
                    b"params" => params = Some(member.value),
                    _ => others.push(member),
                }
            }
        }
        out.push(b'{');
        let mut first = true;
        for envelope in self.side.order {
            let value = match envelope {
                Envelope::Jsonrpc => Value::Raw(b"\"2.0\""),
                Envelope::Id => id.map_or(Value::None, Value::Raw),
                Envelope::Method => method.map_or(Value::None, |span| Value::Raw(span.of(self.text))),
                Envelope::Params => params.map_or(Value::None, Value::Payload),
                Envelope::Result if form == Form::Result => Value::Payload(place),
                Envelope::Error if form == Form::Error => Value::Payload(place),
                Envelope::Result | Envelope::Error => Value::None,
            };
            let name = match envelope {
                Envelope::Jsonrpc => "\"jsonrpc\"",
                Envelope::Id => "\"id\"",
                Envelope::Method => "\"method\"",
                Envelope::Params => "\"params\"",
                Envelope::Result => "\"result\"",
                Envelope::Error => "\"error\"",
            };
            self.member(&mut first, name.as_bytes(), value, out)?;
        }
        for other in others {
            self.member(&mut first, other.name.of(self.text), Value::Payload(other.value), out)?;
        }
        out.push(b'}');
        Ok(())
    }

    fn member(&self, first: &mut bool, name: &[u8], value: Value<'_>, out: &mut Vec<u8>) -> Result<()> {
        if matches!(value, Value::None) {
            return Ok(());
        }
        if !std::mem::take(first) {
            self.push(b',', out);
        }
        out.extend_from_slice(name);
        self.push(b':', out);
        match value {
            Value::Payload(span) => {
                let spacing = if self.side.spaced { Spacing::Spaced } else { Spacing::Compact };
                expand(self.text, span, spacing, self.blobs, out)?;
            }
            Value::Raw(bytes) => out.extend_from_slice(bytes),
            Value::None => {}
        }
        Ok(())
    }

    /// A comma or colon.
    fn push(&self, byte: u8, out: &mut Vec<u8>) {
        out.push(byte);
        if self.side.spaced {
            out.push(b' ');
        }
    }

    fn batch(&self, place: Span, out: &mut Vec<u8>) -> Result<()> {
        out.push(b'[');
        for (n, element) in
            scan::elements(self.text, place.start).map_while(std::result::Result::ok).enumerate()
        {
            if n > 0 {
                self.push(b',', out);
            }
            self.batch_member(element, out)?;
        }
        out.push(b']');
        Ok(())
    }

    fn batch_member(&self, element: Span, out: &mut Vec<u8>) -> Result<()> {
        let (mut id, mut message) = (None, None);
        for member in scan::members(self.text, element.start).map_while(std::result::Result::ok) {
            let name = scan::unescape(member.name.of(self.text));
            match name.as_ref() {
                b"id" => id = Some(member.value),
                name => {
                    let form = Form::ALL.into_iter().find(|form| form.word().as_bytes() == name);
                    message = form.map(|form| (form, member.value)).or(message);
                }
            }
        }
        let Some((form, value)) = message else { return Ok(()) };
        if form == Form::Raw {
            return self.raw(value, None, out);
        }
        if form == Form::Request {
            id = scan::member(self.text, value.start, "id");
        }
        let id = id.map(|span| spacing::id(span.of(self.text)));
        self.message(form, value, id.as_deref(), out)
    }
}

/// What a member of a rebuilt message holds.
enum Value<'a> {
    /// The message has no such member.
    None,
    /// Bytes as they stand.
    Raw(&'a [u8]),
    /// A payload of the file.
    Payload(Span),
}
