//! All that is secret in one message: by its names, its looks, its places, and the values already known.

mod walk;

use super::assignment;
use super::finder::{self, Findings, Secret};
use super::layers::Layers;
use super::placeholder;
use super::rules::Rules;
use super::secrets::Secrets;
use crate::wire::Span;
use crate::wire::scan::{self, Lexer};

use self::walk::Walk;

/// Something that has to be replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hit {
    /// What it is.
    pub(super) secret: Secret,
    /// For what stood in no quotes, such as a number: how many strings it stands in.
    pub(super) bare: Option<u8>,
}

/// Finds what is secret in a message, in order; nothing where nothing is.
pub(super) fn search(rules: &Rules, secrets: &Secrets, message: &[u8]) -> Vec<(Span, Hit)> {
    let findings = finder::find(secrets, message);
    if is_over(rules, secrets, message, &findings) {
        return Vec::new();
    }
    closely(rules, secrets, message, findings)
}

/// Whether nothing in a message is secret, and nothing in it reads as a placeholder.
pub(super) fn is_clean(rules: &Rules, secrets: &Secrets, message: &[u8]) -> bool {
    let findings = finder::find(secrets, message);
    is_over(rules, secrets, message, &findings)
        || placeholder::spelled(message).next().is_none()
            && closely(rules, secrets, message, findings).is_empty()
}

/// Whether the first look has seen that there is nothing.
fn is_over(rules: &Rules, secrets: &Secrets, message: &[u8], findings: &Findings) -> bool {
    let slow = !rules.expressions().is_empty() || !rules.places().is_empty();
    findings.marks.is_empty() && !slow && !(secrets.is_brittle() && message.contains(&b'\\'))
}

/// What is secret in a message, where the first look has seen something.
fn closely(rules: &Rules, secrets: &Secrets, message: &[u8], findings: Findings) -> Vec<(Span, Hit)> {
    let mut search = Search { rules, secrets, layers: Layers::new(message) };
    search.layer(0, findings);
    let mut next = 1;
    while next < search.layers.len() {
        let findings = finder::find(secrets, search.layers.text(next));
        search.layer(next, findings);
        next += 1;
    }
    let mut hits = search.layers.flatten(|hit| hit.bare = hit.bare.map(|strings| strings + 1));
    spare_placeholders(message, &mut hits);
    hits
}

/// Keeps hits, in order, from cutting placeholders, which would be none any more: what a look before has replaced is
/// no part of a secret, and no secret is a part of it.
fn spare_placeholders(text: &[u8], hits: &mut Vec<(Span, Hit)>) {
    if hits.is_empty() {
        return;
    }
    let mut placeholders = placeholder::placeholders(text).map(|(span, _)| span).peekable();
    hits.retain_mut(|(span, hit)| {
        let whole = *span;
        while placeholders.next_if(|other| other.end <= span.start).is_some() {}
        if let Some(before) = placeholders.peek().filter(|other| other.start < span.start) {
            span.start = before.end.min(span.end);
        }
        while placeholders.next_if(|other| other.end <= span.end).is_some() {}
        if let Some(behind) = placeholders.peek().filter(|other| other.start < span.end) {
            span.end = behind.start.max(span.start);
        }
        if let Secret::New(_, value) = &mut hit.secret
            && *span != whole
        {
            *value = span.of(text).into();
        }
        *span == whole || !span.is_empty() && assignment::is_secret(span.of(text))
    });
}

struct Search<'a> {
    rules: &'a Rules,
    secrets: &'a Secrets,
    layers: Layers<'a, Hit>,
}

impl Search<'_> {
    /// Looks at one text; what is inside its strings becomes texts of their own, and so is what is inside the strings of
    /// the objects that it holds.
    fn layer(&mut self, layer: usize, mut findings: Findings) {
        let text = self.layers.text(layer);
        let whole = scan::trim(text);
        let is_json = matches!(text.get(whole.start), Some(b'{' | b'['));
        findings.finds.sort_by_key(|find| find.span.start);
        if is_json && self.json(layer, whole, &findings, layer == 0) {
            return;
        }
        let hides = !findings.marks.is_empty() || self.always_looks();
        let mut objects = if hides { objects(self.layers.text(layer)) } else { Vec::new() };
        objects.retain(|object| self.json(layer, *object, &findings, false));
        findings.finds.retain_mut(|find| stands_outside(&mut find.span, &objects));
        let end = self.layers.text(layer).len();
        let is_name = self.layers.is_name(layer);
        self.plain(layer, Span::new(0, end), findings, is_name);
        let starts = std::iter::once(0).chain(objects.iter().map(|object| object.end));
        let ends = objects.iter().map(|object| object.start).chain([end]);
        for (start, end) in starts.zip(ends).filter(|_| hides) {
            self.layers.open(layer, Span::new(start, end), is_name);
        }
    }

    /// Looks at a value of JSON, if this is one.
    fn json(&mut self, layer: usize, whole: Span, findings: &Findings, is_message: bool) -> bool {
        let mut walk = Walk::new(self, layer, findings, is_message);
        if walk.run(whole).is_err() {
            return false;
        }
        let Walk { hits, inside, is_loose, .. } = walk;
        let names: Vec<Span> = inside.iter().filter(|(_, is_name)| *is_name).map(|(span, _)| *span).collect();
        for (span, hit) in hits {
            self.layers.add(layer, span, hit);
        }
        // In a string, a known value may itself look like JSON. What only resembles JSON is read as a text too.
        let from = findings.finds.partition_point(|find| find.span.start < whole.start);
        let within = findings.finds[from..].iter().take_while(|find| find.span.start < whole.end);
        for find in within.filter(|find| is_loose || layer > 0 && is_known(find)) {
            let before = names.partition_point(|name| name.end < find.span.end);
            let is_in_name = names.get(before).is_some_and(|name| name.start <= find.span.start);
            if !(is_in_name && self.is_a_name(find)) {
                self.layers.add(layer, find.span, Hit { secret: find.secret.clone(), bare: None });
            }
        }
        for (span, is_name) in inside {
            let is_name = is_name || self.layers.is_name(layer);
            self.inside(layer, span, is_name);
        }
        true
    }

    /// Whether something may be where the first look leaves no mark.
    fn always_looks(&self) -> bool {
        !self.rules.expressions().is_empty() || self.secrets.is_brittle()
    }

    /// Looks at the inside of a string.
    fn inside(&mut self, layer: usize, span: Span, is_name: bool) {
        if self.layers.open(layer, span, is_name).is_none() {
            let mut findings = finder::find(self.secrets, span.of(self.layers.text(layer)));
            if is_name {
                findings.finds.retain(|find| !self.is_a_name(find));
            }
            self.plain(layer, span, findings, is_name);
        }
    }

    /// Whether what was found in a member's name may be nothing but that: what a member is called is no secret because
    /// some value is the same word.
    fn is_a_name(&self, find: &finder::Find) -> bool {
        match find.secret {
            Secret::Known(value) => self.secrets.value(value).may_be_a_name(),
            Secret::New(..) => false,
        }
    }

    /// Takes what was found in a text that has no structure. What options look for are values: no member is called otherwise
    /// because of them.
    fn plain(&mut self, layer: usize, span: Span, findings: Findings, is_name: bool) {
        for find in findings.finds {
            self.layers.add(layer, find.span.shift(span.start), Hit { secret: find.secret, bare: None });
        }
        let expressions = if is_name { &[] } else { self.rules.expressions() };
        for expression in expressions {
            let text = span.of(self.layers.text(layer));
            let found: Vec<_> = expression
                .captures_iter(text)
                .filter_map(|captures| captures.get(1).or_else(|| captures.get(0)))
                .filter(|found| !found.is_empty() && assignment::is_secret(found.as_bytes()))
                .map(|found| (Span::new(found.start(), found.end()), found.as_bytes().into()))
                .collect();
            for (found, bytes) in found {
                let secret = Secret::New("pattern", bytes);
                self.layers.add(layer, found.shift(span.start), Hit { secret, bare: None });
            }
        }
    }
}

/// The objects of JSON that a text holds. In what only begins as one no other is looked for: a text made of such would
/// be read to its end for each of them.
fn objects(text: &[u8]) -> Vec<Span> {
    let (mut from, mut found) = (0, Vec::new());
    while let Some(start) = memchr::memchr(b'{', &text[from..]).map(|at| from + at) {
        from = start + 1;
        if text[from..].trim_ascii_start().first() != Some(&b'"') {
            continue;
        }
        let mut lexer = Lexer::new(text, start);
        from = loop {
            match lexer.next() {
                Ok(Some(_)) => {}
                Ok(None) => break lexer.at(),
                Err(error) => break error.at.max(from),
            }
        };
        if text[from - 1] == b'}' {
            found.push(Span::new(start, from));
        }
    }
    found
}

/// Whether what was found begins in none of these objects, which have it themselves; it ends where one begins, unless it
/// holds all of that.
fn stands_outside(found: &mut Span, objects: &[Span]) -> bool {
    let passed = objects.partition_point(|object| object.end <= found.start);
    let Some(next) = objects.get(passed) else { return true };
    let last = objects.iter().skip(passed).take_while(|object| object.start < found.end).last();
    if last.is_some_and(|last| last.end > found.end) {
        found.end = next.start.max(found.start);
    }
    found.start < next.start
}

fn is_known(find: &finder::Find) -> bool {
    matches!(find.secret, Secret::Known(_))
}
