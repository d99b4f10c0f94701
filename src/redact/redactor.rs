//! Replaces what is secret, in one session.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};

use super::clean::Clean;
use super::finder::{self, Secret};
use super::met::Met;
use super::placeholder::{self, Placeholder};
use super::places::{self, Place};
use super::rules::Rules;
use super::search::{self, Hit, search};
use super::secrets::Secrets;
use super::{address, assignment, names, shapes};
use crate::traffic::Direction;
use crate::wire::Span;

/// A value found in a message may stand in it elsewhere too; after so many passes that is left to the next message.
const PASSES: usize = 4;

/// Places that are counted one by one; what stands elsewhere is counted together.
const MOST_PLACES: usize = 1000;

/// What addresses are known by among headers.
const URL: &str = ":path";

/// Redacts the messages, headers and addresses of one session.
///
/// What is replaced is numbered within its kind by first appearance, and the same value has the same number all
/// through the session, wherever it stands. Bytes that are no secrets stay as they are.
#[derive(Debug)]
pub struct Redactor {
    rules: Rules,
    secrets: Secrets,
    /// Headers without a secret.
    clean: Clean,
    counts: Vec<Count>,
    /// It has seen a message.
    has_begun: AtomicBool,
    /// It met a value behind its first message: that may hold it.
    met_late: bool,
    foreign: Foreign,
    /// Who else is to know what it meets, and how much of that it has heard itself.
    shared: Option<(Met, u64)>,
}

/// What placeholders are that come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Foreign {
    /// Its own, from a look before.
    None,
    /// Secrets of somebody else, with numbers of their own.
    Secrets,
    /// Texts that read so, which must not be taken for secrets of its own.
    Texts,
}

/// How often a kind of secret was replaced at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// The kind of secret.
    pub kind: Box<str>,
    /// Method and JSON Pointer, such as `tools/call /params/arguments/apiKey`; elements of arrays are `*`.
    pub place: String,
    /// How often.
    pub times: u64,
}

impl Redactor {
    /// A recorded session's redactor. Messages that are given again stay as they are, but for values that were met
    /// only after them.
    pub fn new(rules: &Rules) -> Self {
        Self {
            rules: rules.clone(),
            secrets: Secrets::new(rules.values()),
            clean: Clean::default(),
            counts: Vec::new(),
            has_begun: AtomicBool::new(false),
            met_late: false,
            foreign: Foreign::None,
            shared: None,
        }
    }

    /// A live session's redactor in replay. What the cassette's answers said in a secret's place comes back from the
    /// client, and is numbered like any other secret, so that its numbers and the session's are not mixed up.
    pub fn for_replay(rules: &Rules) -> Self {
        let secrets = Secrets::new(rules.values()).telling();
        Self { foreign: Foreign::Secrets, secrets, ..Self::new(rules) }
    }

    /// The redactor of a session that is recorded. What itself reads as a placeholder keeps its number where no secret
    /// has it, and gets another one else.
    pub fn for_recording(rules: &Rules) -> Self {
        Self { foreign: Foreign::Texts, ..Self::new(rules) }
    }

    /// It is given from now on what it has seen: placeholders in it are its own.
    pub fn again(&mut self) {
        self.foreign = Foreign::None;
    }

    /// The same, which tells there what it meets, if anybody is to know.
    pub fn telling(self, met: Option<Met>) -> Self {
        Self { shared: met.map(|met| (met, 0)), ..self }
    }

    /// The same, which looks for what was met elsewhere, if anything was.
    pub fn knowing(mut self, met: Option<&Met>) -> Self {
        if let Some(met) = met {
            met.behind(0, |kind, value| self.secrets.learn(kind, value));
        }
        self
    }

    /// The same, whose numbers go on behind those of the placeholders in this text: such as these may come in too.
    pub fn behind(mut self, text: &[u8]) -> Self {
        placeholder::spelled(text).for_each(|(_, placeholder)| self.secrets.count_behind(placeholder));
        self
    }

    /// Looks from now on for what others have told where it [tells](Self::telling) what it meets.
    pub fn listen(&mut self) {
        let Some((met, heard)) = &mut self.shared else { return };
        let (secrets, mut is_new) = (&mut self.secrets, false);
        *heard = met.behind(*heard, |kind, value| {
            let before = secrets.met();
            secrets.learn(kind, value);
            is_new |= secrets.met() > before;
        });
        self.met_late |= is_new && *self.has_begun.get_mut();
    }

    /// Redacts one message or line as it stood on the wire.
    pub fn message<'a>(&mut self, direction: Direction, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let sender = match direction {
            Direction::ToServer => "client",
            Direction::ToClient => "server",
        };
        let renumbered = self.renumbered(bytes);
        let redacted =
            redact_of(renumbered, |bytes| self.redact(bytes, |text, at| places::places(text, at, sender)));
        *self.has_begun.get_mut() = true;
        redacted
    }

    /// Whether a message stays as it is, by all that is known now, and without asking for any number. If so, it has been
    /// seen. Several may ask at once.
    pub fn is_clean_message(&self, bytes: &[u8]) -> bool {
        let is_clean = match self.foreign {
            Foreign::Secrets => false,
            _ if !self.rules.is_on() => true,
            Foreign::Texts => search::is_clean(&self.rules, &self.secrets, bytes),
            Foreign::None => search(&self.rules, &self.secrets, bytes).is_empty(),
        };
        if is_clean {
            self.has_begun.store(true, Ordering::Relaxed);
        }
        is_clean
    }

    /// Redacts any other text: a log line, an error, a name.
    pub fn text<'a>(&mut self, text: &'a str) -> Cow<'a, str> {
        self.after_renumbering(text, Self::text_anew)
    }

    fn text_anew<'a>(&mut self, text: &'a str) -> Cow<'a, str> {
        let redacted = self.redact(text.as_bytes(), |_, at| vec![Place::named("text"); at.len()]);
        to_text(text, redacted)
    }

    /// What replaces in texts of ours the values that are known by now, and nothing else.
    pub(crate) fn of_known(&self) -> impl FnMut(&mut String) + '_ {
        let mut secrets = self.secrets.clone();
        move |text| {
            if !self.rules.is_on() {
                return;
            }
            let (mut hidden, mut from) = (Vec::new(), 0);
            for (span, hit) in search(&self.rules, &self.secrets, text.as_bytes()) {
                let Secret::Known(value) = hit.secret else { continue };
                let value = self.secrets.value(value);
                hidden.extend_from_slice(&text.as_bytes()[from..span.start]);
                hidden
                    .extend_from_slice(secrets.placeholder(value.kind, &value.bytes).to_string().as_bytes());
                from = span.end;
            }
            if from > 0 {
                hidden.extend_from_slice(&text.as_bytes()[from..]);
                *text = String::from_utf8_lossy(&hidden).into_owned();
            }
        }
    }

    /// Redacts a header's value. Credentials keep their scheme and cookies their names.
    pub fn header_value<'a>(&mut self, name: &str, value: &'a str) -> Cow<'a, str> {
        self.after_renumbering(value, |redactor, value| redactor.unless_clean(name, value, Self::header_anew))
    }

    /// Whether a header's value, in ASCII, has been found clean by all that is known now; the name is in lower case.
    pub fn is_clean_header(&self, name: &[u8], value: &[u8]) -> bool {
        value.is_ascii() && self.clean.has(name, value, self.secrets.met())
    }

    /// The same of an address.
    pub fn is_clean_url(&self, url: &[u8]) -> bool {
        self.is_clean_header(URL.as_bytes(), url)
    }

    /// Looks at a value of this name, unless it has been found clean by all that is known now.
    fn unless_clean<'a>(
        &mut self,
        name: &str,
        value: &'a str,
        look: impl FnOnce(&mut Self, &str, &'a str) -> Cow<'a, str>,
    ) -> Cow<'a, str> {
        if self.clean.has(name.as_bytes(), value.as_bytes(), self.secrets.met()) {
            return Cow::Borrowed(value);
        }
        let redacted = look(self, name, value);
        if matches!(redacted, Cow::Borrowed(_)) {
            self.clean.add(name, value, self.secrets.met());
        }
        redacted
    }

    fn header_anew<'a>(&mut self, name: &str, value: &'a str) -> Cow<'a, str> {
        if name.eq_ignore_ascii_case("location") {
            return self.address(value, true);
        }
        let Some(row) = names::secret(name.as_bytes()).filter(|_| self.rules.is_on()) else {
            return self.text_anew(value);
        };
        let bytes = value.as_bytes();
        let hits = finder::parts(row.kind, bytes)
            .into_iter()
            .filter(|part| !part.is_empty() && assignment::is_secret(part.of(bytes)))
            .map(|part| (part, Secret::New(row.kind, part.of(bytes).into())));
        let place = format!("header {}", name.to_ascii_lowercase());
        self.whole(value, hits.collect(), &place)
    }

    /// Redacts an address, or the target of a request: `/path?query`.
    pub fn url<'a>(&mut self, url: &'a str) -> Cow<'a, str> {
        self.after_renumbering(url, |redactor, url| {
            redactor.unless_clean(URL, url, |redactor, _, url| redactor.address(url, false))
        })
    }

    fn address<'a>(&mut self, url: &'a str, is_redirect: bool) -> Cow<'a, str> {
        let bytes = url.as_bytes();
        let mut hits = Vec::new();
        if let Some(first) = address::first_parameter(bytes).filter(|_| self.rules.is_on()) {
            address::parameters(bytes, first, is_redirect, |kind, span| {
                hits.push((span, Secret::New(kind, address::decoded(span.of(bytes)).into())));
            });
        }
        match self.whole(url, hits, "url") {
            Cow::Borrowed(url) => self.text_anew(url),
            Cow::Owned(url) => Cow::Owned(self.text_anew(&url).into_owned()),
        }
    }

    /// Whether what it was given may hold values that it met only afterwards: given again, they are replaced.
    pub const fn met_late(&self) -> bool {
        self.met_late
    }

    /// The placeholder of a value that has one by now.
    pub(crate) fn known(&self, value: &[u8]) -> Option<Placeholder> {
        self.secrets.known(value)
    }

    /// What a placeholder of this live session stands for; none where too much was met since.
    pub(crate) fn said(&self, placeholder: &Placeholder) -> Option<&[u8]> {
        self.secrets.said(placeholder)
    }

    /// The placeholder of a value that stands where a recording has a secret of this kind. It is one of this session
    /// from now on, but is looked for only when it is met as a secret: it may be a word that says nothing elsewhere.
    ///
    /// Who records it looks for it all the same where it is no word.
    pub(crate) fn stands(&mut self, kind: &str, value: &[u8]) -> Placeholder {
        if let Some((met, _)) = &self.shared
            && address::may_be_granted(value)
            && self.secrets.known(value).is_none()
        {
            met.tell(names::kind(kind), value);
        }
        self.secrets.stands(kind, value)
    }

    /// What was replaced, by kind and place, in order of first appearance.
    pub fn counts(&self) -> &[Count] {
        &self.counts
    }

    /// Replaces the places of a text that are secret for certain.
    fn whole<'a>(&mut self, text: &'a str, hits: Vec<(Span, Secret)>, place: &str) -> Cow<'a, str> {
        if hits.is_empty() {
            return Cow::Borrowed(text);
        }
        let hits = hits.into_iter().map(|(span, secret)| (span, Hit { secret, bare: None })).collect();
        let (redacted, replaced) = self.replace(text.as_bytes(), hits);
        for placeholder in replaced {
            self.count(&placeholder.1.kind, place.to_owned());
        }
        to_text(text, Cow::Owned(redacted))
    }

    fn redact<'a>(
        &mut self,
        bytes: &'a [u8],
        places: impl Fn(&[u8], &[usize]) -> Vec<Place>,
    ) -> Cow<'a, [u8]> {
        let mut redacted = Cow::Borrowed(bytes);
        for _ in 0..if self.rules.is_on() { PASSES } else { 0 } {
            let mut hits = search(&self.rules, &self.secrets, &redacted);
            if !hits.is_empty() && !self.rules.keep().is_empty() {
                self.keep(&redacted, &mut hits, &places);
            }
            if hits.is_empty() {
                break;
            }
            let (text, replaced) = self.replace(&redacted, hits);
            let offsets: Vec<_> = replaced.iter().map(|(at, _)| *at).collect();
            for (place, (_, placeholder)) in places(&text, &offsets).into_iter().zip(&replaced) {
                self.count(&placeholder.kind, place.to_string());
            }
            redacted = Cow::Owned(text);
        }
        redacted
    }

    /// Looks at a text in which placeholders that came in have numbers of this session.
    fn after_renumbering<'a>(
        &mut self,
        text: &'a str,
        look: impl for<'b> FnOnce(&mut Self, &'b str) -> Cow<'b, str>,
    ) -> Cow<'a, str> {
        match to_text(text, self.renumbered(text.as_bytes())) {
            Cow::Borrowed(text) => look(self, text),
            Cow::Owned(text) => Cow::Owned(look(self, &text).into_owned()),
        }
    }

    /// Gives placeholders that come in, in whatever spelling, numbers of this session.
    fn renumbered<'a>(&mut self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let is_recorded = self.foreign == Foreign::Texts;
        if self.foreign == Foreign::None || is_recorded && !self.rules.is_on() {
            return Cow::Borrowed(bytes);
        }
        let mut renumbered = Vec::new();
        let mut from = 0;
        for (span, placeholder) in placeholder::spelled(bytes) {
            let number = match is_recorded {
                true => self.secrets.foreign(placeholder.clone()),
                false => {
                    let text = placeholder.to_string();
                    self.secrets.number(&placeholder.kind, text.as_bytes()).unwrap_or_else(|new| new)
                }
            };
            if is_recorded && number == placeholder {
                continue;
            }
            renumbered.extend_from_slice(&bytes[from..span.start]);
            renumbered.extend_from_slice(number.to_string().as_bytes());
            from = span.end;
        }
        if from == 0 {
            return Cow::Borrowed(bytes);
        }
        renumbered.extend_from_slice(&bytes[from..]);
        Cow::Owned(renumbered)
    }

    /// Drops the hits at places that options say are no secrets, but for values that options name.
    fn keep(&self, text: &[u8], hits: &mut Vec<(Span, Hit)>, places: impl Fn(&[u8], &[usize]) -> Vec<Place>) {
        let offsets: Vec<_> = hits.iter().map(|(span, _)| span.start).collect();
        let mut places = places(text, &offsets).into_iter();
        hits.retain(|(_, hit)| {
            let known = match &hit.secret {
                Secret::Known(value) => Some(*value),
                Secret::New(_, value) => self.secrets.exactly(value),
            };
            let named = known.is_some_and(|value| self.secrets.value(value).named);
            let kept = |place: Place| self.rules.keep().iter().any(|keep| keep.holds(&place.steps));
            !places.next().is_some_and(kept) || named
        });
    }

    /// The text with its secrets replaced, and where which placeholder now stands.
    fn replace(&mut self, text: &[u8], hits: Vec<(Span, Hit)>) -> (Vec<u8>, Vec<(usize, Placeholder)>) {
        let mut redacted = Vec::with_capacity(text.len());
        let mut replaced = Vec::with_capacity(hits.len());
        let mut from = 0;
        for (span, hit) in hits {
            let placeholder = self.placeholder(&hit.secret);
            redacted.extend_from_slice(&text[from..span.start]);
            let quote =
                hit.bare.map(|strings| format!("{}\"", "\\".repeat((1 << strings) - 1))).unwrap_or_default();
            replaced.push((redacted.len(), placeholder.clone()));
            redacted.extend_from_slice(format!("{quote}{placeholder}{quote}").as_bytes());
            from = span.end;
        }
        redacted.extend_from_slice(&text[from..]);
        (redacted, replaced)
    }

    fn placeholder(&mut self, secret: &Secret) -> Placeholder {
        match secret {
            Secret::Known(value) => {
                let value = self.secrets.value(*value).clone();
                self.secrets.placeholder(value.kind, &value.bytes)
            }
            Secret::New(kind, value) => {
                let met = self.secrets.met();
                self.met_late |= *self.has_begun.get_mut() && self.secrets.exactly(value).is_none();
                if let Some(password) =
                    shapes::password_of_basic(value).filter(|_| matches!(*kind, "basic" | "authorization"))
                {
                    self.secrets.learn("password", &password);
                }
                let placeholder = self.secrets.placeholder(kind, value);
                self.tell(self.secrets.met() - met);
                placeholder
            }
        }
    }

    /// Tells so many values that it has met last.
    fn tell(&self, count: u64) {
        let Some((met, _)) = &self.shared else { return };
        self.secrets.last(count).for_each(|value| met.tell(value.kind, &value.bytes));
    }

    fn count(&mut self, kind: &str, place: String) {
        if let Some(count) = self.counts.iter_mut().find(|count| *count.kind == *kind && count.place == place)
        {
            count.times += 1;
        } else if self.counts.len() < MOST_PLACES || place == "elsewhere" {
            self.counts.push(Count { kind: kind.into(), place, times: 1 });
        } else {
            self.count(kind, "elsewhere".to_owned());
        }
    }
}

/// Looks at bytes that may be changed already.
fn redact_of<'a>(
    bytes: Cow<'a, [u8]>,
    look: impl for<'b> FnOnce(&'b [u8]) -> Cow<'b, [u8]>,
) -> Cow<'a, [u8]> {
    match bytes {
        Cow::Borrowed(bytes) => look(bytes),
        Cow::Owned(bytes) => Cow::Owned(look(&bytes).into_owned()),
    }
}

/// The redacted form of a text: what is replaced ends at characters, so it is text too.
fn to_text<'a>(text: &'a str, redacted: Cow<'_, [u8]>) -> Cow<'a, str> {
    match redacted {
        Cow::Borrowed(_) => Cow::Borrowed(text),
        Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
    }
}
