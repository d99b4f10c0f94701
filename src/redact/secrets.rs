//! The secrets a session has met: their numbers, and how they are found again in whatever form.

mod alike;
mod encodings;
mod spellings;
mod value;

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::clues::Clues;
use super::filter::{Filter, Window, WindowHash};
use super::names;
use super::ordinary::{is_ordinary, is_sentence, is_spoken, is_spoken_name};
use super::placeholder::{Placeholder, is_placeholder};
use super::references::is_example;
use super::rules::{Named, SHORTEST};
use crate::wire::Span;

pub(crate) use self::alike::alike;
pub(super) use self::alike::{from_hex, sextets, without_padding};
pub(crate) use self::encodings::entity;
use self::encodings::{base64, forward, hex, is_base64_digit, plain, sturdy_five};
pub(super) use self::spellings::Spelling;
use self::spellings::beginnings;
use self::value::{Form, Value};

/// Values that are looked for at once; past it the older half is forgotten (it keeps its numbers).
pub(super) const MOST: usize = 4096;

/// Numbers are counted on from here at most.
const MOST_COUNTED: u32 = u32::MAX / 2;

/// What is found of a value that is so long is looked at once.
pub(super) const LONG: usize = encodings::LONG_PART;

/// Bytes that have a window at an even and one at an odd place, wherever they stand.
const FIVE: usize = Window::LENGTH + 1;

/// Longer values are replaced where they stand and not looked for elsewhere.
const LONGEST: usize = 16 << 10;

/// The secrets of one session.
#[derive(Clone, Debug)]
pub(super) struct Secrets {
    /// Windows of the tables and of the values.
    pub(super) filter: Arc<Filter>,
    anchors: HashMap<Window, Vec<Anchor>, WindowHash>,
    values: Vec<Value>,
    /// How many values were ever looked for.
    met: u64,
    /// Numbers by the hash of the value: what is forgotten keeps its number, at little cost.
    numbers: HashMap<[u8; 16], Placeholder>,
    next: HashMap<Box<str>, u32>,
    /// Values, by hash, that have a number without ever having been met as secrets.
    unmet: HashSet<[u8; 16]>,
    /// What placeholders stand for, where that is asked for.
    said: Option<HashMap<Placeholder, Box<[u8]>>>,
    /// Some value has no window that no encoder touches, so every escape deserves a look.
    brittle: bool,
}

/// Where a form of a value may stand: this window is at this offset of it.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    value: u32,
    form: Form,
    offset: u32,
}

/// A value found in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// Here it stands.
    Found {
        /// Which one.
        value: usize,
        /// Where.
        span: Span,
    },
    /// Part of it stands here; escapes may hide the rest.
    Hint,
}

impl Secrets {
    /// No secrets but the values that options name.
    pub(super) fn new(named: &[Named]) -> Self {
        let mut secrets = Self {
            filter: Arc::clone(&Clues::get().filter),
            anchors: HashMap::default(),
            values: Vec::new(),
            met: 0,
            numbers: HashMap::new(),
            next: HashMap::new(),
            unmet: HashSet::new(),
            said: None,
            brittle: false,
        };
        for Named { kind, bytes, is_sent } in named {
            secrets.add(Value { is_sent: *is_sent, ..Value::new(bytes, kind, true) });
        }
        secrets
    }

    /// The same, which can tell what its placeholders stand for.
    pub(super) fn telling(self) -> Self {
        Self { said: Some(HashMap::new()), ..self }
    }

    /// What a placeholder stands for, as far as that is kept.
    pub(super) fn said(&self, placeholder: &Placeholder) -> Option<&[u8]> {
        self.said.as_ref()?.get(placeholder).map(|value| &**value)
    }

    /// Whether every escape deserves a look.
    pub(super) const fn is_brittle(&self) -> bool {
        self.brittle
    }

    /// The value with this index.
    pub(super) fn value(&self, index: usize) -> &Value {
        &self.values[index]
    }

    /// So many that are looked for since last, but for what holds placeholders of this session.
    pub(super) fn last(&self, count: u64) -> impl Iterator<Item = &Value> {
        let count = usize::try_from(count).unwrap_or(usize::MAX).min(self.values.len());
        self.values[self.values.len() - count..].iter().filter(|value| !value.is_cut)
    }

    /// The placeholder of a secret; a new secret gets the next number of its kind, and is looked for from now on.
    pub(super) fn placeholder(&mut self, kind: &'static str, bytes: &[u8]) -> Placeholder {
        let named = self.values.iter().take_while(|value| value.named);
        let sent = named.filter(|value| value.is_sent).find(|value| *value.bytes == *bytes);
        let kind = sent.map_or(kind, |value| value.kind);
        if let Some(known) = self.spelled(bytes) {
            return known;
        }
        let (is_new, placeholder) = match self.number(kind, bytes) {
            Ok(known) => (!self.unmet.is_empty() && self.unmet.remove(&hash(bytes)), known),
            Err(new) => (true, new),
        };
        if is_new {
            let cut = self.cut(bytes);
            let met = self.met;
            self.learn(kind, bytes);
            if let Some(cut) = cut.filter(|_| self.met > met) {
                self.numbers.insert(hash(&cut), placeholder.clone());
                self.add(Value { is_cut: true, ..Value::new(&cut, kind, false) });
            }
        }
        placeholder
    }

    /// The placeholder of the value that is looked for and of which all of this is another spelling.
    ///
    /// None where it is told what placeholders stand for: there spellings are known to be [`alike()`] by that, and what was
    /// recorded may have a number for each, for its server can have said one that is not heard here.
    fn spelled(&self, bytes: &[u8]) -> Option<Placeholder> {
        if self.said.is_some() || bytes.len() > LONGEST || self.known(bytes).is_some() {
            return None;
        }
        let ends = [bytes.len(), without_padding(bytes).len()];
        let is_all = |span: Span| span.start == 0 && ends.contains(&span.end);
        let mut from = 0;
        while let Some(at) = self.filter.next(bytes, from) {
            from = at + 2;
            if let Some(Known::Found { value, .. }) = self.at(bytes, at, 0, is_all) {
                return self.known(&self.values[value].bytes);
            }
        }
        None
    }

    /// The placeholder of a value that has one by now.
    pub(super) fn known(&self, bytes: &[u8]) -> Option<Placeholder> {
        self.numbers.get(&hash(bytes)).cloned()
    }

    /// The placeholder of a value, which is not looked for because of this.
    pub(super) fn stands(&mut self, kind: &str, bytes: &[u8]) -> Placeholder {
        self.number(kind, bytes).unwrap_or_else(|new| {
            self.unmet.insert(hash(bytes));
            new
        })
    }

    /// The placeholder of a secret that was met before; for another, the error is its new one.
    pub(super) fn number(&mut self, kind: &str, bytes: &[u8]) -> Result<Placeholder, Placeholder> {
        match self.numbers.entry(hash(bytes)) {
            Entry::Occupied(entry) => Ok(entry.get().clone()),
            Entry::Vacant(entry) => {
                let number = self.next.entry(kind.into()).or_default();
                *number += 1;
                let new = entry.insert(Placeholder { kind: kind.into(), number: *number }).clone();
                if let Some(said) = self.said.as_mut().filter(|_| bytes.len() <= LONGEST) {
                    if said.len() == MOST {
                        said.clear();
                    }
                    said.insert(new.clone(), bytes.into());
                }
                Err(new)
            }
        }
    }

    /// The placeholder of a text that reads as this one and is none: itself, unless that is a secret's or may have been.
    pub(super) fn foreign(&mut self, read: Placeholder) -> Placeholder {
        let last = self.next.entry(read.kind.clone()).or_default();
        match self.numbers.entry(hash(read.to_string().as_bytes())) {
            Entry::Occupied(entry) => entry.get().clone(),
            Entry::Vacant(entry) => {
                let is_free = read.number > *last;
                // Nobody counts so far: a text says what it likes.
                *last = if is_free { read.number.min(MOST_COUNTED) } else { *last + 1 };
                let number = if is_free { read.number } else { *last };
                entry.insert(Placeholder { number, ..read }).clone()
            }
        }
    }

    /// Counts on behind this placeholder.
    pub(super) fn count_behind(&mut self, placeholder: Placeholder) {
        let last = self.next.entry(placeholder.kind).or_default();
        // Nobody counts so far: a file says what it likes.
        *last = placeholder.number.min(MOST_COUNTED).max(*last);
    }

    /// Looks for a value from now on, unless it is too short, too long, or an ordinary word.
    pub(super) fn learn(&mut self, kind: &'static str, bytes: &[u8]) {
        let characters = bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count();
        let known = self.values.iter().any(|value| *value.bytes == *bytes);
        // A client sends back what it was answered in a secret's place.
        let is_none =
            is_ordinary(bytes) || is_placeholder(bytes) || is_example(bytes) || may_be_prose(kind, bytes);
        if characters < SHORTEST || bytes.len() > LONGEST || is_none || known {
            return;
        }
        if self.values.len() >= MOST {
            self.forget_half();
        }
        self.add(Value::new(bytes, kind, false));
    }

    /// How a value stands where it passed before it was known and others that are parts of it were.
    fn cut(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let (mut from, mut to, mut cut) = (0, 0, Vec::new());
        while let Some(at) = self.filter.next(bytes, from).filter(|_| bytes.len() <= LONGEST) {
            from = (at + 2).max(to);
            let Some(Known::Found { value, span }) = self.at(bytes, at, to, |_| true) else { continue };
            if let Some(placeholder) = self.known(&self.values[value].bytes).filter(|_| span.start >= to) {
                cut.extend_from_slice(&bytes[to..span.start]);
                cut.extend_from_slice(placeholder.to_string().as_bytes());
                (from, to) = (span.end, span.end);
            }
        }
        cut.extend_from_slice(&bytes[to..]);
        (to > 0).then_some(cut)
    }

    fn forget_half(&mut self) {
        let mut keep = self.values.len() / 2;
        let mut values = std::mem::take(&mut self.values);
        values.retain(|value| value.named || keep.checked_sub(1).map(|rest| keep = rest).is_none());
        self.filter = Arc::clone(&Clues::get().filter);
        self.anchors.clear();
        values.into_iter().for_each(|value| self.add(value));
    }

    fn add(&mut self, value: Value) {
        let index = u32::try_from(self.values.len()).expect("few values are kept");
        let bytes = &value.bytes;
        let mut windows: Vec<(Form, usize, Window)> = Vec::new();
        let mut look = |form: Form, from: usize, text: &[u8]| {
            for at in [from, from + 1] {
                let window = (form, at, Window::at(text, at));
                if !windows.contains(&window) {
                    windows.push(window);
                }
            }
        };
        let sturdy = sturdy_five(bytes);
        look(Form::Plain, sturdy.unwrap_or(0), bytes);
        if sturdy.is_none() {
            beginnings(bytes, FIVE).iter().for_each(|text| look(Form::Begin, 0, text));
        }
        let every: String = bytes.iter().take(2).map(|byte| format!("%{byte:02X}")).collect();
        look(Form::Begin, 0, every.as_bytes());
        let mut encoded = |form: Form, text: &[u8]| look(form, sturdy_five(text).unwrap_or(0), text);
        encoded(Form::Hex, &hex(bytes).collect::<Vec<_>>());
        for bit in [0, 4, 2] {
            encoded(Form::Base64 { bit }, &base64(bytes, bit, 0).collect::<Vec<_>>());
        }
        self.brittle |= sturdy.is_none();
        let filter = Arc::make_mut(&mut self.filter);
        for (form, offset, window) in windows {
            let offset = u32::try_from(offset).expect("values are short");
            filter.add(window);
            self.anchors.entry(window).or_default().push(Anchor { value: index, form, offset });
        }
        self.values.push(value);
        self.met += 1;
    }

    /// How many values were ever looked for: as long as it stays, what held none of them holds none.
    pub(super) const fn met(&self) -> u64 {
        self.met
    }

    /// The longest known value of those whose window stands at `at`, if one does; it does not begin before `from`, and its
    /// place `fits`. Of a long one, a long part is enough.
    pub(super) fn at(
        &self,
        text: &[u8],
        at: usize,
        from: usize,
        fits: impl Fn(Span) -> bool,
    ) -> Option<Known> {
        if self.values.is_empty() {
            return None;
        }
        let anchors = self.anchors.get(&Window::at(text, at))?;
        let (mut hint, mut longest) = (None, None);
        for anchor in anchors {
            let (value, offset) = (anchor.value as usize, anchor.offset as usize);
            let Value { bytes, is_word, is_number, .. } = &self.values[value];
            let start = at.checked_sub(offset);
            let span = match anchor.form {
                Form::Plain => plain(bytes, text, at, offset, from),
                Form::Begin => start.and_then(|start| plain(bytes, text, start, 0, start)),
                Form::Hex => forward(text, start, hex(bytes), |a, b| a.eq_ignore_ascii_case(&b)),
                Form::Base64 { bit } => forward(text, start, base64(bytes, bit, 0), is_base64_digit),
            };
            match span {
                // Bytes of a number that are encoded stand beside digits of others.
                Some(span) if *is_number && anchor.form == Form::Plain && !is_whole_number(text, span) => {}
                Some(span) if !is_word || stands_alone(text, span) => {
                    let is_longer =
                        longest.as_ref().is_none_or(|(_, other): &(_, Span)| span.len() > other.len());
                    if is_longer && fits(span) {
                        longest = Some((value, span));
                    }
                }
                None if anchor.form.goes_on(&self.values[value], text, at, offset) => {
                    hint = Some(Known::Hint)
                }
                _ => {}
            }
        }
        longest.map(|(value, span)| Known::Found { value, span }).or(hint)
    }

    /// The known value that this text is.
    pub(super) fn exactly(&self, text: &[u8]) -> Option<usize> {
        self.values.iter().position(|value| *value.bytes == *text)
    }
}

/// Whether a value tells nothing elsewhere: tokens are made by chance, but those of a parser are words and names, and so
/// are the settings that cookies keep. Passwords are chosen, but no sentences such as forms show beside their fields.
fn may_be_prose(kind: &str, value: &[u8]) -> bool {
    matches!(kind, "token" | "cookie") && (is_spoken(value) || is_spoken_name(value))
        || names::gives(kind) && is_sentence(value)
}

fn hash(value: &[u8]) -> [u8; 16] {
    let hash: [u8; 32] = Sha256::digest(value).into();
    *hash.first_chunk::<16>().expect("half of it")
}

/// Whether no letter stands before or behind.
fn stands_alone(text: &[u8], span: Span) -> bool {
    let joins = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphabetic);
    !joins(text[..span.start].last()) && !joins(text.get(span.end))
}

/// Whether no digit stands before or behind, but for one that ends an encoded byte: `%2012345678`.
fn is_whole_number(text: &[u8], span: Span) -> bool {
    let is_encoded = |before: &[u8]| {
        let digits = before.last_chunk::<3>();
        digits.is_some_and(|[sign, digits @ ..]| *sign == b'%' && digits.iter().all(u8::is_ascii_hexdigit))
    };
    let before = &text[..span.start];
    let joins = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
    (!joins(before.last()) || is_encoded(before)) && !joins(text.get(span.end))
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;

    use super::*;

    fn named(value: &str) -> Named {
        Named { kind: "env", bytes: value.into(), is_sent: false }
    }

    fn found(secrets: &Secrets, text: &str) -> Vec<String> {
        let text = text.as_bytes();
        let (mut from, mut spans) = (0, Vec::new());
        while let Some(at) = secrets.filter.next(text, from) {
            from = at + 2;
            if let Some(Known::Found { span, .. }) = secrets.at(text, at, 0, |_| true) {
                spans.push(String::from_utf8_lossy(span.of(text)).into_owned());
            }
        }
        spans.dedup();
        spans
    }

    #[test]
    fn a_value_is_found_in_every_form_at_every_offset() {
        for value in ["hunter2-hunter2", "Tr0ub4dor&3/+=?", "пароль-123", "zzzzzzzz"] {
            let secrets = Secrets::new(&[named(value)]);
            let engine = base64::engine::general_purpose::STANDARD_NO_PAD;
            let url_safe = base64::engine::general_purpose::URL_SAFE_NO_PAD;
            let hex: String = value.bytes().map(|byte| format!("{byte:02x}")).collect();
            let every: String = value.bytes().map(|byte| format!("%{byte:02X}")).collect();
            let some: String = value
                .bytes()
                .map(|byte| {
                    if byte.is_ascii_alphanumeric() {
                        (byte as char).to_string()
                    } else {
                        format!("%{byte:02X}")
                    }
                })
                .collect();
            for shift in 0..6 {
                let before = "~".repeat(shift);
                for form in [value, &hex, &hex.to_uppercase(), &every, &every.to_lowercase(), &some] {
                    assert_eq!(found(&secrets, &format!("{before}{form}~")), [form], "{value} {shift}");
                }
                let mut text = "-".repeat(shift).into_bytes();
                text.extend_from_slice(value.as_bytes());
                for encoded in [engine.encode(&text), url_safe.encode(&text)] {
                    let found = found(&secrets, &encoded);
                    assert_eq!(found.len(), 1, "{value} in {encoded}");
                    assert!(found[0].len() * 6 > value.len() * 8 - 12, "{value} in {encoded}: {}", found[0]);
                }
            }
        }
    }

    #[test]
    fn numbers_count_appearances_within_a_kind_and_stay() {
        let mut secrets = Secrets::new(&[]);
        assert_eq!(secrets.placeholder("token", b"first").to_string(), "<redacted:token-1>");
        assert_eq!(secrets.placeholder("jwt", b"other").to_string(), "<redacted:jwt-1>");
        assert_eq!(secrets.placeholder("token", b"second").to_string(), "<redacted:token-2>");
        assert_eq!(secrets.placeholder("jwt", b"first").to_string(), "<redacted:token-1>");
    }

    #[test]
    fn short_values_and_ordinary_words_are_not_looked_for() {
        let mut secrets = Secrets::new(&[]);
        for value in ["short", "required", "UNDEFINED", "üüüü"] {
            secrets.placeholder("token", value.as_bytes());
            assert_eq!(found(&secrets, value), [] as [&str; 0], "{value}");
        }
        for value in ["document", "Identifier"] {
            secrets.placeholder("token", value.as_bytes());
            assert_eq!(found(&secrets, value), [] as [&str; 0], "{value}");
        }
        secrets.placeholder("password", b"letmeinnow");
        assert_eq!(found(&secrets, "xletmeinnow letmeinnows letmeinnow."), ["letmeinnow"]);
        secrets.placeholder("token", b"xkqzvbnm");
        assert_eq!(found(&secrets, "xkqzvbnms xkqzvbnm."), ["xkqzvbnm"]);
    }

    #[test]
    fn the_number_of_values_is_bounded_and_the_newest_are_kept() {
        let mut secrets = Secrets::new(&[named("from-the-env")]);
        for number in 0..MOST + 10 {
            secrets.placeholder("token", format!("secret-{number:08}").as_bytes());
        }
        assert!(secrets.values.len() <= MOST);
        assert_eq!(found(&secrets, &format!("secret-{:08}", MOST + 9)).len(), 1);
        assert_eq!(found(&secrets, "from-the-env").len(), 1);
        assert_eq!(secrets.placeholder("token", b"secret-00000000").number, 1);
    }
}
