//! Messages: the one member of a client message, an item, an answer or a batch that holds one.

use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::STANDARD};

use super::{
    super::{
        blob,
        error::{LoadError, LoadErrorKind, Result},
        expand::expand,
        model::{Form, Id, Message, Place},
        shape::{MEMBER, NOTIFICATION, OMITTED, REQUEST, Shape},
        spacing::{self, Spacing},
    },
    Counter, Loader, Name, Walk,
    http::TEXT,
};
use crate::wire::{
    Span,
    jsonrpc::{self, Kind},
    scan,
};

/// Over HTTP a body or an event may have several lines, so that is looked at once the session is known.
pub(super) const RAW: &str = "the text of one line, without a line end and without half surrogates";

/// What the file says of a message's id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Written {
    /// Nothing, so it is the ordinary one.
    #[default]
    Ordinary,
    /// This one, or that there is none.
    Given(Id),
}

impl Written {
    pub(super) fn given(self) -> Id {
        match self {
            Self::Ordinary => Id::Absent,
            Self::Given(id) => id,
        }
    }
}

/// An object that holds a message in one of its members, as far as it has been read.
#[derive(Debug, Default)]
pub(super) struct Holder {
    pub(super) message: Option<Message>,
    member: &'static str,
    /// What stands inside the message's own member.
    pub(super) inside: Written,
    /// `id` or `no_id` beside it, and where.
    beside: Option<(usize, Id)>,
}

impl Holder {
    /// Takes a message; an object holds one.
    pub(super) fn set(
        &mut self,
        shape: &Shape,
        at: usize,
        member: &'static str,
        message: Message,
    ) -> Result<()> {
        if self.message.is_some() {
            let (first, second) = (self.member.into(), member.into());
            return Err(LoadError::new(at, LoadErrorKind::Both { place: shape.name, first, second }));
        }
        (self.message, self.member) = (Some(message), member);
        Ok(())
    }

    fn set_id(&mut self, shape: &Shape, at: usize, id: Id) -> Result<()> {
        if self.beside.is_some() {
            let kind = LoadErrorKind::Both { place: shape.name, first: "id".into(), second: "no_id".into() };
            return Err(LoadError::new(at, kind));
        }
        self.beside = Some((at, id));
        Ok(())
    }

    /// An id stands beside responses only.
    pub(super) fn check_ids(&self, shape: &Shape) -> Result<()> {
        let (Some((at, _)), Some(message)) = (&self.beside, &self.message) else { return Ok(()) };
        let is_response = match message.form {
            Form::Result | Form::Error => true,
            Form::Omitted => self.inside == Written::Ordinary,
            _ => false,
        };
        if is_response {
            return Ok(());
        }
        let instead = "a response has it there, a request inside `request`";
        Err(LoadError::new(*at, LoadErrorKind::Misplaced { place: shape.name, member: "id".into(), instead }))
    }

    /// What the file says of the id, wherever it says it.
    pub(super) fn written(&self) -> Written {
        match &self.beside {
            Some((_, id)) => Written::Given(id.clone()),
            None => self.inside.clone(),
        }
    }
}

impl Counter {
    /// The id of a message, and on to the next ordinary one.
    pub(super) fn derive(&mut self, form: Form, written: Written) -> Id {
        if form != Form::Request {
            return written.given();
        }
        let id = match written {
            Written::Ordinary => self.0.clone(),
            Written::Given(id) => id,
        };
        self.0 = id.next();
        id
    }
}

/// A message's value that has been read.
struct Read {
    place: Place,
    written: Written,
    /// What its text says that it is; none where its form says so.
    kind: Option<Kind>,
}

impl Read {
    const fn new(place: Place, written: Written) -> Self {
        Self { place, written, kind: None }
    }

    /// One that has no id in the file, or none that counts.
    const fn without_id(place: Place) -> Self {
        Self::new(place, Written::Given(Id::Absent))
    }
}

impl Loader<'_> {
    /// Reads a member that holds a message or its id into `holder`; false where it is neither.
    pub(super) fn hold(&mut self, holder: &mut Holder, walk: &Walk, member: &'static str) -> Result<bool> {
        let at = self.reader.at;
        match member {
            "id" => holder.set_id(walk.shape, at, self.id()?)?,
            "no_id" => {
                if !self.boolean("no_id")? {
                    return self.wrong(at, "no_id", "true, or left out");
                }
                holder.set_id(walk.shape, at, Id::Absent)?;
            }
            _ => {
                let Some(form) = Form::ALL.into_iter().find(|form| form.word() == member) else {
                    return Ok(false);
                };
                let Read { place, written, kind } = self.form(form)?;
                holder.inside = written;
                let kind = kind.unwrap_or_else(|| form.kind());
                holder.set(walk.shape, at, member, Message { form, kind, place, id: Id::Absent })?;
            }
        }
        Ok(true)
    }

    fn form(&mut self, form: Form) -> Result<Read> {
        Ok(match form {
            Form::Request => self.request(&REQUEST)?,
            Form::Notification => self.request(&NOTIFICATION)?,
            Form::Result | Form::Error => Read::new(self.payload()?, Written::Ordinary),
            Form::Batch => Read::without_id(self.list("batch", Self::batch_member)?),
            Form::Raw => self.raw()?,
            Form::Base64 => self.base64()?,
            Form::Omitted => self.omitted()?,
            Form::Http => Read::without_id(self.request_line()?),
            Form::Body => Read::without_id(self.text_value("body", TEXT)?),
        })
    }

    fn base64(&mut self) -> Result<Read> {
        let span = self.string("base64", "base64")?;
        match STANDARD.decode(scan::unescape(span.of(self.reader.text))) {
            Ok(line) => {
                let kind = jsonrpc::Message::read(&line).kind;
                Ok(Read { kind: Some(kind), ..Read::without_id(span.into()) })
            }
            Err(_) => self.wrong(span.start, "base64", "base64"),
        }
    }

    fn id(&mut self) -> Result<Id> {
        let text = self.reader.text;
        self.reader.value().map(|span| Id::of(Some(&spacing::id(span.of(text)))))
    }

    fn request(&mut self, shape: &'static Shape) -> Result<Read> {
        let mut walk = self.begin(shape)?;
        let (mut written, mut has_method) = (Written::Ordinary, false);
        while let Some(name) = self.next(&mut walk)? {
            match name {
                Name::Known("id") => written = Written::Given(self.id()?),
                Name::Known("method") => {
                    has_method = true;
                    self.string("method", "a string")?;
                }
                Name::Known(_) => {
                    self.payload()?;
                }
                // Members that nobody knows belong to the message; those that were meant to be ours do not.
                Name::Unknown(name) => {
                    self.check_envelope(shape, name)?;
                    self.payload()?;
                }
            }
        }
        if !has_method {
            return self.missing(&walk, "a `method`");
        }
        Ok(Read::new(Span::new(walk.start, self.reader.at).into(), written))
    }

    fn check_envelope(&mut self, shape: &'static Shape, name: Span) -> Result<()> {
        let raw = name.of(self.reader.text);
        let instead = if scan::string_is(raw, "jsonrpc") {
            "it is the same in every message, so leave it out"
        } else if scan::string_is(raw, "id") {
            "a message with an id is a `request`"
        } else {
            if shape.nearest(raw).is_some() {
                self.warn_unknown(shape, name);
            }
            return Ok(());
        };
        let member = jsonrpc::text(raw).into_owned();
        Err(LoadError::new(name.start, LoadErrorKind::Misplaced { place: shape.name, member, instead }))
    }

    fn raw(&mut self) -> Result<Read> {
        let place = self.text_value("raw", RAW)?;
        let text = self.reader.text;
        let line = match text[place.span().start] {
            b'"' => scan::unescape(place.span().of(text)),
            _ => {
                let mut value = Vec::new();
                expand(text, place.span(), Spacing::Compact, self.blobs, &mut value)?;
                Cow::Owned(scan::unescape(&value).into_owned())
            }
        };
        if std::str::from_utf8(&line).is_err() {
            return self.wrong(place.span().start, "raw", RAW);
        }
        if line.contains(&b'\n') {
            let exchange = self.cassette.exchanges.len();
            self.several_lines.push((exchange, place.span().start));
        }
        let message = jsonrpc::Message::read(&line);
        let written = Written::Given(Id::of(message.id()));
        Ok(Read { place, written, kind: Some(message.kind) })
    }

    fn omitted(&mut self) -> Result<Read> {
        let mut walk = self.begin(&OMITTED)?;
        let (mut id, mut has_method, mut has_bytes, mut has_hash) = (None, false, false, false);
        while let Some(member) = self.known(&mut walk)? {
            match member {
                "bytes" => {
                    self.number::<u64>("bytes", "a number of bytes")?;
                    has_bytes = true;
                }
                "sha256" => {
                    let hash = self.string("sha256", "64 hex digits")?;
                    let digits = jsonrpc::text(hash.of(self.reader.text));
                    has_hash = blob::is_sha256(&digits);
                    if !has_hash {
                        return self.wrong(hash.start, "sha256", "64 hex digits");
                    }
                }
                "id" => id = Some(self.id()?),
                _ => {
                    self.string("method", "a string")?;
                    has_method = true;
                }
            }
        }
        if !(has_bytes && has_hash) {
            return self.missing(&walk, "`bytes` and `sha256`");
        }
        let written = match id {
            None if !has_method => Written::Ordinary,
            id => Written::Given(id.unwrap_or_default()),
        };
        Ok(Read::new(Span::new(walk.start, self.reader.at).into(), written))
    }

    fn batch_member(&mut self) -> Result<()> {
        let mut walk = self.begin(&MEMBER)?;
        let mut holder = Holder::default();
        while let Some(member) = self.known(&mut walk)? {
            if member == "to" {
                self.number::<u32>("to", "the place of its request in the client's batch, from 1 on")?;
            } else if !self.hold(&mut holder, &walk, member)? {
                self.any()?;
            }
        }
        holder.check_ids(walk.shape)?;
        let Some(message) = &holder.message else {
            return self.missing(&walk, "a message, such as `request`");
        };
        let needs_id = matches!(message.form, Form::Request | Form::Result | Form::Error);
        if needs_id && holder.written() == Written::Ordinary {
            return self.missing(&walk, "the `id` of its message: in a batch none is derived");
        }
        Ok(())
    }
}
