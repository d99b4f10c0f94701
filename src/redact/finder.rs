//! All that is secret in one text, found in one pass.

use super::address::{self, URL_PASSWORD};
use super::assignment::{self, Assigned, in_sentence};
use super::clues::{Clue, Clues};
use super::filter::Window;
use super::secrets::{Known, LONG, Secrets, Spelling};
use super::{login, names, placeholder, shapes};
use crate::wire::Span;

/// A secret and its place in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Find {
    /// Where it stands.
    pub(super) span: Span,
    /// What it is.
    pub(super) secret: Secret,
}

/// A secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Secret {
    /// This value, of this kind.
    New(&'static str, Box<[u8]>),
    /// The value with this index, in whatever form.
    Known(usize),
}

/// What a pass over a text found.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// The secrets, in no certain order; they may overlap.
    pub(super) finds: Vec<Find>,
    /// Places, in order, where something is, or may be behind escapes or in the structure.
    pub(super) marks: Vec<usize>,
    /// Whether an object may speak OAuth.
    pub(super) may_grant: bool,
    /// Whether a list of words may be a call of a program that is given passwords.
    pub(super) calls_program: bool,
}

/// What stands in the names of members that hold values.
const VALUES: [&[u8]; 3] = [b"val", b"Val", b"VAL"];

/// So often each byte is looked at in calls of programs, at the most; a text that asks for more was made for it.
const CALLS: usize = 16;

/// Finds what is secret in a text.
pub(super) fn find(secrets: &Secrets, text: &[u8]) -> Findings {
    let clues = Clues::get();
    let mut pass = Pass {
        text,
        findings: Findings::default(),
        shape_to: 0,
        known: Span::default(),
        long_to: 0,
        assigned_to: 0,
        query_to: 0,
        escaped_to: 0,
        form_to: 0,
        code_to: 0,
        in_calls: 0,
        has_values: None,
        has_states: None,
    };
    let mut from = 0;
    while let Some(at) = secrets.filter.next(text, from) {
        from = at + 2;
        for clue in clues.at(Window::at(text, at)) {
            pass.follow(*clue, at);
        }
        if at < pass.long_to {
            continue;
        }
        match secrets.at(text, at, pass.long_to, |span| pass.may_be_known(span)) {
            Some(Known::Found { value, span }) => {
                pass.known = span;
                // Passwords may be called so.
                if !placeholder::is_within(text, span) {
                    pass.add(at, span, Secret::Known(value));
                }
                if span.len() >= LONG {
                    pass.long_to = span.end;
                }
            }
            Some(Known::Hint) => pass.findings.marks.push(at),
            None => {}
        }
    }
    pass.findings
}

struct Pass<'a> {
    text: &'a [u8],
    findings: Findings,
    /// Where the last look ended: no other begins inside it. (Else a text made for it could cost its square.)
    shape_to: usize,
    /// Where the last known value stands.
    known: Span,
    /// Where the last long one ended: no other begins inside it. (Shorter ones cost no more than their length, however
    /// often they are looked for inside each other.)
    long_to: usize,
    /// Where the last value that stands in no quotes ended: names inside it are part of it.
    assigned_to: usize,
    /// Whether some member may be called `value`, once that was asked for.
    has_values: Option<bool>,
    /// Whether some member may be a state, once that was asked for.
    has_states: Option<bool>,
    /// Where the last address ended: its parameters are read.
    query_to: usize,
    /// Where the last address whose slashes are escaped ended, or has a sign that may be of a secret.
    escaped_to: usize,
    /// Where the last form that speaks OAuth ended: it is read.
    form_to: usize,
    /// Where the last form that may grant a code ended.
    code_to: usize,
    /// How many bytes were looked at in calls of programs, which may be arguments of each other.
    in_calls: usize,
}

impl Pass<'_> {
    /// Whether a known value counts that stands here: of two that share a place, only the one that holds all of the
    /// other.
    fn may_be_known(&self, span: Span) -> bool {
        let Span { start, end } = self.known;
        let holds = span.start <= start && span.end >= end && span.len() > self.known.len();
        span.start >= end || holds || span.len() >= LONG
    }

    fn add(&mut self, mark: usize, span: Span, secret: Secret) {
        self.findings.marks.push(mark);
        self.findings.finds.push(Find { span, secret });
    }

    fn add_new(&mut self, mark: usize, kind: &'static str, span: Span) {
        let bytes = span.of(self.text);
        if placeholder::is_placeholder(bytes) {
            return;
        }
        let said = assignment::said_by_shell(bytes);
        let value = match self.text[..span.start].last() {
            _ if kind == URL_PASSWORD => address::decoded(bytes),
            Some(b'"' | b'\'') if assignment::is_in_tag(self.text, span.start) => {
                Spelling::Entities.said(bytes)
            }
            // A word of a shell.
            Some(b'=' | b':' | b' ' | b'\t' | b'p') if said.len() < bytes.len() => said,
            Some(b'=') => address::decoded(bytes),
            // In an element.
            Some(b'>') => Spelling::Entities.said(bytes),
            Some(quote @ (b'"' | b'\'')) => {
                assignment::said_in_quotes(&self.text[..span.start - 1], *quote, bytes)
            }
            _ => bytes.into(),
        };
        self.add(mark, span, Secret::New(kind, value.into()));
    }

    fn follow(&mut self, clue: Clue, at: usize) {
        match clue {
            Clue::Name { from, to } => self.name(at, Span::new(at + usize::from(from), at + usize::from(to))),
            Clue::Oauth => self.sign(at, Span::new(at, at + Window::LENGTH)),
            Clue::Code { to } => self.code(at, Span::new(at, at + usize::from(to))),
            Clue::Shape { index, at: prefix } => {
                self.shape(usize::from(index), at, at.checked_add_signed(prefix.into()))
            }
            Clue::Program { from } => {
                if let Some(name) = at.checked_add_signed(from.into()) {
                    self.program(at, name);
                }
            }
            Clue::Address { colon } => self.address(at, at + usize::from(colon)),
            // It may be that of others: see who has it.
            Clue::Placeholder => self.findings.marks.push(at),
            Clue::Escape { digit } => self.escape(at, at + usize::from(digit)),
        }
    }

    /// An escape of a letter, digit or rare sign may hide something; those of others are an encoder's habit.
    fn escape(&mut self, at: usize, digit: usize) {
        let is_escape = digit >= 4 && self.text[digit - 4] == b'\\';
        let hides = |digits: &[u8]| matches!(digits[0], b'2'..=b'7') && !is_harmless(digits);
        if is_escape && self.text.get(digit..digit + 2).is_some_and(hides) {
            self.findings.marks.push(at);
            self.findings.may_grant = true;
        }
    }

    /// A name that may tell that what it stands in speaks OAuth: a form is read, an object is walked.
    fn sign(&mut self, at: usize, part: Span) {
        let Some(name) = assignment::name_around(self.text, part) else { return };
        match self.text.get(name.end) {
            Some(b'=') if names::speaks_oauth(name.of(self.text)) => self.form(at, name),
            Some(b'"' | b'\\') if names::grants(name.of(self.text)) => {
                self.findings.may_grant = true;
                self.findings.marks.push(at);
            }
            _ => {}
        }
    }

    /// The form around a name of one of its fields.
    fn form(&mut self, at: usize, name: Span) {
        if name.start < self.form_to {
            return;
        }
        let form = form_around(self.text, name, self.form_to);
        self.form_to = form.end;
        self.fields(at, form);
    }

    fn fields(&mut self, at: usize, form: Span) {
        let mut finds = Vec::new();
        address::parameters(&self.text[..form.end], form.start, false, |kind, span| {
            finds.push((kind, if span.end == form.end { in_sentence(self.text, span) } else { span }));
        });
        finds.into_iter().for_each(|(kind, span)| self.add_new(at, kind, span));
        // Behind an escaped `&` there may be more.
        self.findings.marks.push(at);
    }

    /// A name that may be `code`: that of a form may be a grant, and that of an object, if its value looks like one.
    fn code(&mut self, at: usize, part: Span) {
        let text = self.text;
        let Some(name) = assignment::name_around(text, part).filter(|name| names::is_code(name.of(text)))
        else {
            return;
        };
        if text.get(name.end) != Some(&b'=') {
            let value = assignment::string_behind(text, name);
            let has_states = |has: &mut Option<bool>| {
                *has.get_or_insert_with(|| memchr::memmem::find(text, b"state").is_some())
            };
            if value.is_some_and(|value| {
                address::may_be_granted(value.of(text))
                    || !value.is_empty() && has_states(&mut self.has_states)
            }) {
                self.findings.may_grant = true;
                self.findings.marks.push(at);
            }
        } else if name.start >= self.code_to {
            let form = form_around(text, name, self.code_to);
            self.code_to = form.end;
            let is_whole = form.len() == text.len();
            if assignment::is_form(form.of(text)) && (is_whole || form.of(text).contains(&b'&')) {
                self.fields(at, form);
            } else {
                // It may be all of a string.
                self.findings.marks.push(at);
            }
        }
    }

    fn name(&mut self, at: usize, part: Span) {
        if part.start < self.assigned_to {
            return;
        }
        match assignment::at(self.text, part) {
            Some(Assigned::Secret(row, span)) => {
                if !matches!(self.text[span.start - 1], b'"' | b'\'') {
                    self.assigned_to = span.end;
                }
                for part in parts(row.kind, span.of(self.text)) {
                    self.add_new(at, row.kind, part.shift(span.start));
                }
                match row.kind {
                    "oauth" => self.sign(at, part),
                    "password" => {
                        let account = assignment::account(self.text, span);
                        account.into_iter().for_each(|span| self.add_new(at, row.kind, span));
                    }
                    _ => {}
                }
            }
            Some(Assigned::Look) => self.findings.marks.push(at),
            Some(Assigned::NameOfValue) => {
                let text = self.text;
                let has_values = || VALUES.iter().any(|part| memchr::memmem::find(text, part).is_some());
                if *self.has_values.get_or_insert_with(has_values) {
                    self.findings.marks.push(at);
                }
            }
            None => {}
        }
    }

    /// A call of a program, which may have a login: the words of a list are looked at one by one.
    fn program(&mut self, at: usize, name: usize) {
        let Some(call) = login::call(self.text, name) else { return };
        self.findings.calls_program |= call.is_list;
        self.findings.marks.push(at);
        if self.in_calls > CALLS * self.text.len() {
            return;
        }
        let mut found = Vec::new();
        self.in_calls += login::secrets(self.text, call, |span| found.push(span));
        found.into_iter().for_each(|span| self.add_new(at, "password", span));
    }

    fn shape(&mut self, index: usize, at: usize, prefix: Option<usize>) {
        let start = prefix.and_then(|prefix| prefix.checked_sub(shapes::SHAPES[index].lead));
        let Some(start) = start.filter(|start| *start >= self.shape_to) else { return };
        // A short prefix may be seen first where a longer one says more.
        let longer = shapes::longer(index).iter().find_map(|&longer| {
            let look = shapes::find(longer, self.text, start)?;
            look.secret.map(|_| (longer, look))
        });
        let found = longer.or_else(|| shapes::find(index, self.text, start).map(|look| (index, look)));
        let Some((index, look)) = found else { return };
        self.shape_to = look.end;
        if let Some(secret) = look.secret {
            self.add_new(at, shapes::SHAPES[index].kind, secret);
        }
    }

    fn address(&mut self, at: usize, colon: usize) {
        let text = self.text;
        if text[colon..].starts_with(b"://") {
            let mut finds = Vec::new();
            self.query_to =
                address::secrets(text, colon, self.query_to, |kind, span| finds.push((kind, span)));
            finds.into_iter().for_each(|(kind, span)| self.add_new(at, kind, span));
            // Behind an escaped `&` there may be more.
            if text.get(self.query_to) == Some(&b'\\') && text[colon..self.query_to].contains(&b'?') {
                self.findings.marks.push(at);
            }
        } else if text[colon..].starts_with(b":\\/\\/") {
            // What ends it, or may be of a secret in it, is the same for those that begin before that.
            if colon >= self.escaped_to {
                let ends = |byte: &u8| matches!(byte, b'"' | b' ' | b'@' | b'?' | b'#');
                self.escaped_to = colon + text[colon..].iter().take_while(|byte| !ends(byte)).count();
            }
            if matches!(text.get(self.escaped_to), Some(b'@' | b'?' | b'#')) {
                self.findings.marks.push(at);
            }
        }
    }
}

/// The form that a name stands in, which begins behind `from`.
fn form_around(text: &[u8], name: Span, from: usize) -> Span {
    let ends = |byte: &u8| *byte <= b' ' || matches!(byte, b'"' | b'\'' | b'\\' | b'`');
    let start = text[from..name.start].iter().rposition(ends).map_or(from, |found| from + found + 1);
    Span::new(start, name.end + address::length(&text[name.end..]))
}

/// Escapes of signs that encoders for HTML write by habit: quotes, `&`, `+`, `<`, `>`, backquotes.
fn is_harmless(digits: &[u8]) -> bool {
    [&b"22"[..], b"26", b"27", b"2b", b"3c", b"3d", b"3e", b"60", b"7f"]
        .iter()
        .any(|sign| digits.eq_ignore_ascii_case(sign))
}

/// The secret parts of what stands under a secret's name: of credentials what follows the scheme's name, of cookies
/// their values.
pub(super) fn parts(kind: &str, value: &[u8]) -> Vec<Span> {
    let all = Span::new(0, value.len());
    match kind {
        "authorization" => vec![credentials(value).unwrap_or(all)],
        "cookie" if value.contains(&b'=') => cookies(value),
        _ => vec![all],
    }
}

/// What follows a scheme's name and a blank.
fn credentials(value: &[u8]) -> Option<Span> {
    let blank = value.iter().position(|byte| *byte == b' ')?;
    let scheme = value[..blank].iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-');
    let gap = value[blank..].iter().take_while(|byte| **byte == b' ').count();
    (scheme && blank > 0 && blank + gap < value.len()).then(|| Span::new(blank + gap, value.len()))
}

/// The values of cookies; attributes of `Set-Cookie` have none that is secret.
fn cookies(value: &[u8]) -> Vec<Span> {
    const ATTRIBUTES: [&[u8]; 7] =
        [b"path", b"domain", b"expires", b"max-age", b"samesite", b"priority", b"version"];
    let mut from = 0;
    let mut found = Vec::new();
    for pair in value.split(|byte| *byte == b';') {
        if let Some(equals) = pair.iter().position(|byte| *byte == b'=') {
            let (name, secret) =
                (pair[..equals].trim_ascii(), Span::new(from + equals + 1, from + pair.len()));
            if !ATTRIBUTES.iter().any(|attribute| name.eq_ignore_ascii_case(attribute))
                && assignment::is_secret(secret.of(value))
            {
                found.push(secret);
            }
        }
        from += pair.len() + 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(&'static str, &str)> {
        let mut finds: Vec<_> = find(&Secrets::new(&[]), text.as_bytes())
            .finds
            .into_iter()
            .filter_map(|find| match find.secret {
                Secret::New(kind, _) => Some((kind, &text[find.span.start..find.span.end])),
                Secret::Known(_) => None,
            })
            .collect();
        finds.dedup();
        finds
    }

    #[test]
    fn credentials_keep_their_scheme_and_cookies_their_names() {
        let parts = |kind, value: &'static str| -> Vec<&str> {
            parts(kind, value.as_bytes()).into_iter().map(|span| &value[span.start..span.end]).collect()
        };
        assert_eq!(parts("authorization", "Bearer  abc"), ["abc"]);
        assert_eq!(parts("authorization", "abc"), ["abc"]);
        assert_eq!(parts("cookie", "sid=a=b; theme=dark"), ["a=b", "dark"]);
        assert_eq!(parts("cookie", "sid=abc; Path=/; HttpOnly; Max-Age=3"), ["abc"]);
        assert_eq!(parts("token", "a b"), ["a b"]);
    }

    #[test]
    fn one_pass_finds_names_looks_and_addresses() {
        assert_eq!(
            found("at http://u:pw12345@h log AKIAIOSFODNN7EXAMPLE with DB_PASSWORD=x1 {\"token\": \"t\"}"),
            [
                ("url-password", "pw12345"),
                ("aws-access-key", "AKIAIOSFODNN7EXAMPLE"),
                ("password", "x1"),
                ("token", "t")
            ]
        );
    }

    #[test]
    fn escapes_that_hide_nothing_leave_no_mark() {
        let marks = |text: &str| find(&Secrets::new(&[]), text.as_bytes()).marks.len();
        assert_eq!(marks(r#"\u001b[0m \u00e9 \u003cb\u003E \u0026 \u000a"#), 0);
        assert!(marks(r"pass\u0077ord") > 0 && marks(r" \u0041") > 0);
    }
}
