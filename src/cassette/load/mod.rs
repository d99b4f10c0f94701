//! From a file's bytes to a [`Cassette`]: one pass, no tree, nothing that recurses on what it reads.
//!
//! This file walks the document and offers what its parts share; each kind of object has a file of its own. What an
//! exchange names elsewhere (`session`, `after`, `same_as`) is looked up in [`resolve`] when all are read.

mod exchange;
mod http;
mod keys;
mod message;
mod resolve;
mod rule;
mod session;

use std::{borrow::Cow, collections::BTreeMap};

use super::{
    blob::BlobSource,
    error::{LoadError, LoadErrorKind, Result},
    expand::check_markers,
    format,
    model::{Cassette, Id, Layout, MatchRule, Place, Session, Warning},
    reader::Reader,
    shape::{self, DOCUMENT, Shape},
};
use crate::wire::{Span, jsonrpc, scan};

impl Cassette {
    /// Reads a cassette's text and checks all of it: members, references, markers, and that each blob is there.
    ///
    /// # Errors
    /// With the place of the first thing that is wrong, and what to do about it. Unknown members are no error: see
    /// [`Cassette::warnings`].
    pub fn load(text: Vec<u8>, blobs: &dyn BlobSource) -> Result<Self> {
        let mut errors = Errors { limit: 1, ..Errors::default() };
        Self::read(text, blobs, &mut errors)
    }

    /// Reads a cassette's text as [`Cassette::load`] does, and goes on behind what is wrong where that can be told.
    ///
    /// # Errors
    /// With the place of everything that is wrong, in the order of the file. What an exchange names elsewhere is looked
    /// at once all else is in order.
    pub fn check(text: Vec<u8>, blobs: &dyn BlobSource) -> std::result::Result<Self, Vec<LoadError>> {
        let mut errors = Errors { limit: MOST_ERRORS, ..Errors::default() };
        Self::read(text, blobs, &mut errors).map_err(|last| {
            let mut found = errors.found;
            found.push(last);
            found.sort_by_cached_key(|error| error.at);
            found
        })
    }

    /// The last error is returned, those before it stay in `errors`.
    fn read(text: Vec<u8>, blobs: &dyn BlobSource, errors: &mut Errors) -> Result<Self> {
        if u32::try_from(text.len()).is_err() {
            return Err(LoadError::new(0, LoadErrorKind::TooLarge));
        }
        if let Err(error) = std::str::from_utf8(&text) {
            return Err(LoadError::new(error.valid_up_to(), LoadErrorKind::NotUtf8).locate(&text));
        }
        let version = version(&text).map_err(|error| error.locate(&text))?;
        let text = format::upgrade(text, version.unwrap_or(format::VERSION))?;
        let parts = Loader::read(&text, blobs, errors).map_err(|error| error.locate(&text));
        let found = std::mem::take(&mut errors.found);
        errors.found = found.into_iter().map(|error| error.locate(&text)).collect();
        let mut parts = parts?;
        if version.is_none() {
            return Err(LoadError::no_cassette(&text, scan::trim(&text).start).locate(&text));
        }
        parts.text = text;
        Ok(parts)
    }
}

/// So many errors of one file are told at most.
const MOST_ERRORS: usize = 100;

/// What was found wrong so far.
#[derive(Debug, Default)]
struct Errors {
    found: Vec<LoadError>,
    /// How many are looked for.
    limit: usize,
}

impl Errors {
    /// Keeps an error and lets the walk go on; the last one ends it.
    fn keep(&mut self, error: LoadError) -> Result<()> {
        if self.found.len() + 1 >= self.limit {
            return Err(error);
        }
        self.found.push(error);
        Ok(())
    }

    /// Ends a walk that found something.
    fn end(&mut self) -> Result<()> {
        self.found.pop().map_or(Ok(()), Err)
    }
}

/// The version a text says it has, before anything else in it is believed; none where it says none.
fn version(text: &[u8]) -> Result<Option<u32>> {
    let start = scan::trim(text).start;
    let mut members = scan::members(text, start).map_while(std::result::Result::ok);
    let Some(member) = members.find(|member| scan::string_is(member.name.of(text), "cassette")) else {
        return Ok(None);
    };
    let at = member.value.start;
    let Some(found) = std::str::from_utf8(member.value.of(text)).ok().and_then(|text| text.parse().ok())
    else {
        return Err(LoadError::member(text, at, "cassette", "the format's version, a number"));
    };
    format::check(found).map_err(|error| LoadError::new(at, error.into()))?;
    Ok(u32::try_from(found).ok())
}

/// The state of a walk over one document.
struct Loader<'a> {
    reader: Reader<'a>,
    blobs: &'a dyn BlobSource,
    cassette: Cassette,
    /// Exchanges that give a number for their session, which one and where; that of all others is 1.
    numbers: Vec<(u32, u32, usize)>,
    /// The next ordinary ids of each session, by its number.
    counters: BTreeMap<u32, Counters>,
    references: Vec<resolve::Reference>,
    /// Exchanges with a raw message of several lines, and where that stands.
    several_lines: Vec<(usize, usize)>,
    /// Those of the exchange at hand; the room serves for one after the other.
    item_ids: Vec<exchange::ItemIds>,
    errors: &'a mut Errors,
}

/// The next ordinary ids of both sides of a session.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) client: Counter,
    pub(super) server: Counter,
}

/// The ids that one side's requests ordinarily have: each one more than the one before it.
#[derive(Debug)]
pub(super) struct Counter(pub(super) Id);

impl Default for Counter {
    fn default() -> Self {
        Self(Id::Number(0))
    }
}

/// A walk over the members of one object of ours.
struct Walk {
    shape: &'static Shape,
    start: usize,
    first: bool,
    /// One bit for each known member.
    seen: u32,
    /// The known member that comes next in the order in which they are written.
    due: usize,
    unknown: Vec<Span>,
}

/// What a member is.
enum Name {
    Known(&'static str),
    Unknown(Span),
}

impl<'a> Loader<'a> {
    fn read(text: &'a [u8], blobs: &'a dyn BlobSource, errors: &'a mut Errors) -> Result<Cassette> {
        let cassette = Cassette {
            text: Vec::new(),
            rules: Vec::new(),
            vars: Vec::new(),
            redacted: true,
            sessions: Vec::new(),
            exchanges: Vec::new(),
            warnings: Vec::new(),
            faults: None,
            assert: None,
            exchange_faults: Vec::new(),
            exchange_journals: Vec::new(),
            gaps: BTreeMap::new(),
            layout: Layout::default(),
        };
        let reader = Reader::new(text, scan::trim(text).start);
        let (numbers, references, counters) = (Vec::new(), Vec::new(), BTreeMap::new());
        let (several_lines, item_ids) = (Vec::new(), Vec::new());
        let mut loader =
            Self { reader, blobs, cassette, numbers, counters, references, several_lines, item_ids, errors };
        loader.document()?;
        loader.reader.skip_space();
        if loader.reader.at < text.len() {
            return Err(LoadError::syntax(text, loader.reader.at, "the end of the text"));
        }
        // What names an exchange that could not be read is right perhaps.
        loader.errors.end()?;
        loader.resolve()?;
        loader.errors.end()?;
        Ok(loader.cassette)
    }

    fn document(&mut self) -> Result<()> {
        let mut walk = self.begin(&DOCUMENT)?;
        while let Some(member) = self.known(&mut walk)? {
            match member {
                "redacted" => self.cassette.redacted = self.boolean("redacted")?,
                "vars" => self.cassette.vars = self.texts("vars", "an array of names")?,
                "match" => self.cassette.rules = self.rules()?,
                "faults" => self.cassette.faults = Some(self.reader.value()?.into()),
                "assert" => self.cassette.assert = Some(self.reader.value()?.into()),
                "sessions" => {
                    let place = self.list("sessions", |loader| {
                        let session = loader.session()?;
                        if session.gap > 0 {
                            let all = loader.cassette.gaps.entry(session.recording).or_default();
                            *all = all.saturating_add(session.gap);
                        }
                        loader.cassette.sessions.push(session);
                        Ok(())
                    })?;
                    self.cassette.layout.sessions = Some(place);
                }
                "exchanges" => {
                    let place = self.list("exchanges", Self::exchange)?;
                    self.cassette.layout.exchanges = Some(place);
                }
                _ => self.any()?,
            }
        }
        Ok(())
    }

    fn rules(&mut self) -> Result<Vec<MatchRule>> {
        let mut rules = Vec::new();
        self.list("match", |loader| {
            rules.push(loader.rule()?);
            Ok(())
        })?;
        Ok(rules)
    }

    /// Steps into an object of ours.
    fn begin(&mut self, shape: &'static Shape) -> Result<Walk> {
        self.reader.skip_space();
        let start = self.reader.at;
        if self.reader.peek() != b'{' {
            if std::ptr::eq(shape, &DOCUMENT) {
                return Err(LoadError::no_cassette(self.reader.text, start));
            }
            let kind = LoadErrorKind::Missing { place: shape.name, expected: "to be an object in braces" };
            return Err(LoadError::new(start, kind));
        }
        self.reader.at += 1;
        Ok(Walk { shape, start, first: true, seen: 0, due: 0, unknown: Vec::new() })
    }

    /// Steps to the next member of an object of ours.
    fn next(&mut self, walk: &mut Walk) -> Result<Option<Name>> {
        if !self.reader.begins_member(&mut walk.first)? {
            self.check_unknown(walk)?;
            return Ok(None);
        }
        let due = walk.shape.guess(self.reader.text, self.reader.at, walk.due);
        let name = match due {
            Some(index) => self.reader.name_of(walk.shape.members[index].0.len())?,
            None => self.reader.name()?,
        };
        self.reader.skip_space();
        let Some(index) = due.or_else(|| walk.shape.find(name.of(self.reader.text))) else {
            walk.unknown.push(name);
            return Ok(Some(Name::Unknown(name)));
        };
        if walk.seen & 1 << index != 0 {
            return Err(self.twice(walk, name));
        }
        walk.seen |= 1 << index;
        walk.due = index + 1;
        Ok(Some(Name::Known(walk.shape.members[index].0)))
    }

    /// Steps to the next known member; those that are not known are skipped with a warning.
    fn known(&mut self, walk: &mut Walk) -> Result<Option<&'static str>> {
        loop {
            match self.next(walk)? {
                None => return Ok(None),
                Some(Name::Known(name)) => return Ok(Some(name)),
                Some(Name::Unknown(name)) => {
                    self.warn_unknown(walk.shape, name);
                    self.any()?;
                }
            }
        }
    }

    fn warn_unknown(&mut self, shape: &Shape, name: Span) {
        let raw = name.of(self.reader.text);
        let shown = jsonrpc::text(raw);
        if shown.starts_with("x-") || shown == "$schema" {
            return;
        }
        let place = shape.name;
        let text = match shape.nearest(raw) {
            Some(known) => {
                format!("{place} has an unknown member `{}`; did you mean `{known}`?", short(&shown))
            }
            None => format!(
                "{place} has an unknown member `{}`; names of your own begin with `x-`",
                short(&shown)
            ),
        };
        self.cassette.warnings.push(Warning { at: name.start, text, is_value: false });
    }

    /// A word that one of a few is expected for.
    fn warn_unless_one_of(&mut self, member: &str, value: Span, words: &[&str]) {
        let shown = jsonrpc::text(value.of(self.reader.text));
        if words.contains(&&*shown) {
            return;
        }
        let meant = match shape::nearest(&shown, words.iter().copied()) {
            Some(word) => format!("did you mean `{word}`?"),
            None => format!("it is one of `{}`", words.join("`, `")),
        };
        let text = format!("`{member}` is unknown: `{}`; {meant}", short(&shown));
        self.cassette.warnings.push(Warning { at: value.start, text, is_value: true });
    }

    fn check_unknown(&self, walk: &mut Walk) -> Result<()> {
        let text = self.reader.text;
        let name = |span: &Span| shape::plain(span.of(text));
        walk.unknown.sort_unstable_by(|a, b| name(a).cmp(&name(b)).then(a.start.cmp(&b.start)));
        match walk.unknown.windows(2).find(|pair| name(&pair[0]) == name(&pair[1])) {
            Some(pair) => Err(self.twice(walk, pair[1])),
            None => Ok(()),
        }
    }

    #[cold]
    fn twice(&self, walk: &Walk, name: Span) -> LoadError {
        let shown = short(&jsonrpc::text(name.of(self.reader.text)));
        LoadError::new(name.start, LoadErrorKind::Twice { name: shown, place: walk.shape.name })
    }

    fn missing<T>(&self, walk: &Walk, expected: &'static str) -> Result<T> {
        Err(LoadError::new(walk.start, LoadErrorKind::Missing { place: walk.shape.name, expected }))
    }

    fn wrong<T>(&self, at: usize, member: &'static str, expected: &'static str) -> Result<T> {
        Err(LoadError::member(self.reader.text, at, member, expected))
    }

    /// Reads an array of ours; `each` reads one element.
    fn list(&mut self, member: &'static str, mut each: impl FnMut(&mut Self) -> Result<()>) -> Result<Place> {
        let start = self.reader.at;
        if self.reader.peek() != b'[' {
            return self.wrong(start, member, "an array");
        }
        self.reader.at += 1;
        let mut first = true;
        while self.reader.element(&mut first)? {
            let element = self.reader.at;
            if let Err(error) = each(self) {
                self.go_on_behind(element, error)?;
            }
        }
        Ok(Span::new(start, self.reader.at).into())
    }

    /// Goes on behind an element with something wrong in it, if more is looked for and its end can be told.
    #[cold]
    fn go_on_behind(&mut self, element: usize, error: LoadError) -> Result<()> {
        match scan::skip_value(self.reader.text, element) {
            Ok(end) if self.errors.limit > 1 => {
                self.errors.keep(error)?;
                self.reader = Reader::new(self.reader.text, end);
                Ok(())
            }
            _ => Err(error),
        }
    }

    /// Skips a value that is none of our business.
    fn any(&mut self) -> Result<()> {
        self.reader.value().map(|_| ())
    }

    /// Reads a value that went over the wire, with the markers in it.
    fn payload(&mut self) -> Result<Place> {
        let span = self.reader.value()?;
        if !self.reader.markers.is_empty() {
            check_markers(self.reader.text, &self.reader.markers, self.blobs)?;
        }
        Ok(span.into())
    }

    fn string(&mut self, member: &'static str, expected: &'static str) -> Result<Span> {
        if self.reader.peek() != b'"' {
            return self.wrong(self.reader.at, member, expected);
        }
        self.reader.string()
    }

    fn text(&mut self, member: &'static str) -> Result<Cow<'a, str>> {
        let span = self.string(member, "a string")?;
        Ok(jsonrpc::text(span.of(self.reader.text)))
    }

    fn texts(&mut self, member: &'static str, expected: &'static str) -> Result<Vec<String>> {
        let mut texts = Vec::new();
        self.list(member, |loader| {
            let span = loader.string(member, expected)?;
            texts.push(jsonrpc::text(span.of(loader.reader.text)).into_owned());
            Ok(())
        })?;
        Ok(texts)
    }

    fn boolean(&mut self, member: &'static str) -> Result<bool> {
        match self.scalar()? {
            b"true" => Ok(true),
            b"false" => Ok(false),
            word => self.wrong(self.reader.at - word.len(), member, "true or false"),
        }
    }

    fn number<T: std::str::FromStr>(&mut self, member: &'static str, expected: &'static str) -> Result<T> {
        let word = self.scalar()?;
        match std::str::from_utf8(word).ok().and_then(|word| word.parse().ok()) {
            Some(number) => Ok(number),
            None => self.wrong(self.reader.at - word.len(), member, expected),
        }
    }

    /// Reads any value and gives its text; for members that hold a single word.
    fn scalar(&mut self) -> Result<&'a [u8]> {
        let text = self.reader.text;
        self.reader.value().map(|span| span.of(text))
    }
}

/// A text cut to be shown.
fn short(text: &str) -> String {
    text.chars().take(60).collect()
}

/// A session for cassettes written by hand that list none.
fn implied_session() -> Session {
    Session { number: 1, recording: 1, ..Session::default() }
}
