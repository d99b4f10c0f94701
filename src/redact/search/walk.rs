//! One walk over the tokens of a JSON text.

mod words;

use super::{Hit, Search};
use crate::redact::finder::{self, Findings, Secret};
use crate::redact::names::{self, SecretName};
use crate::redact::{address, assignment, login};
use crate::wire::Span;
use crate::wire::scan::{self, Lexer, Token, unescape};

/// Members of a message's envelope: replacing them would change what the message is, or what answers it.
const ENVELOPE: [&str; 3] = ["jsonrpc", "id", METHOD];

/// The member that is replaced all the same where it looks like a secret.
const METHOD: &str = "method";

/// What names a request by its id, as a member of `params`, and the method that does.
const NAMES_ID: (&str, &[u8]) = ("requestId", b"notifications/cancelled");

/// Members below which names are those of what a tool takes, not of what it was given.
const SCHEMAS: [&str; 6] =
    ["inputSchema", "outputSchema", "requestedSchema", "input_schema", "output_schema", "json_schema"];

/// One walk over the tokens of a JSON text.
pub(super) struct Walk<'a> {
    search: &'a Search<'a>,
    text: &'a [u8],
    is_message: bool,
    marks: &'a [usize],
    /// Whether an object may speak OAuth.
    may_grant: bool,
    /// Whether a list of words may be a call of a program that is given passwords.
    calls_program: bool,
    open: Vec<Open>,
    /// The steps that lead to the value at hand; kept only where places are asked for.
    steps: Option<Vec<Vec<u8>>>,
    pub(super) hits: Vec<(Span, Hit)>,
    /// Insides of strings that have to be looked at, and whether that is a member's name.
    pub(super) inside: Vec<(Span, bool)>,
    /// It has words that JSON does not know: it may be a list of YAML's.
    pub(super) is_loose: bool,
}

/// One open container.
#[derive(Debug)]
struct Open {
    /// Elements so far, in an array.
    elements: Option<usize>,
    /// What the element at hand is by the flag before it, in an array of words.
    flag: Option<&'static SecretName>,
    /// What the element at hand is to a program, by the word before it.
    login: Option<login::Word>,
    /// What the program is given that one before it names.
    program: Option<login::Given>,
    /// The string before the element at hand, in an array.
    word: Option<Span>,
    /// The name of the member at hand, in an object.
    name: Span,
    /// What the member at hand is by its name.
    named: Option<&'static SecretName>,
    /// What strings below are by a name further up.
    above: Option<&'static SecretName>,
    /// What members are that say they are secret, in or below an object that describes a secret of a list; and whether
    /// one further up was asked for that.
    listed: Option<&'static SecretName>,
    is_told: bool,
    /// What the member `value` is, by the name that another member gives, or by that of the object.
    given: Option<&'static SecretName>,
    holds: Option<&'static SecretName>,
    /// The member `value`, where it is a string.
    value: Option<Span>,
    /// What is typed into the element of a page that a member `element` describes, and that.
    element: Option<&'static SecretName>,
    typed: Option<Span>,
    /// Below a schema, names say nothing.
    in_schema: bool,
    /// Whether it speaks OAuth, and its strings that are secret if it does.
    grants: bool,
    fields: Vec<(Span, &'static SecretName)>,
    /// The value of its `code`, and whether another member may tell, or all but tells, that it was granted.
    code: Option<Span>,
    is_beside: bool,
    is_near: bool,
}

impl Open {
    /// What the value at hand is by its name, or by one further up.
    fn named(&self) -> Option<&'static SecretName> {
        self.named.filter(|row| self.above.is_none() || !row.may_be_none()).or(self.above)
    }

    /// Whether it is an array that may be the words of a command.
    const fn is_of_words(&self) -> bool {
        self.elements.is_some() && !self.in_schema
    }

    /// Whether this is the name of the member at hand, in an object.
    fn is_called(&self, text: &[u8], name: &str) -> bool {
        self.name.len() == name.len() + 2 && self.name.of(text)[1..].starts_with(name.as_bytes())
    }

    /// Whether the member at hand holds the value of the one whose name another gives.
    fn holds_value(&self, text: &[u8]) -> bool {
        let name = self.name.of(text);
        name.len() > 2 && names::is_value(&name[1..name.len() - 1])
    }

    /// Whether its `code` was granted, by what it looks like and what stands beside it.
    fn has_grant(&self, text: &[u8]) -> bool {
        self.code.is_some_and(|code| {
            let code = unescape(code.of(text));
            // A short code may be anything: a state that chance has drawn is one of OAuth.
            let has_drawn_state = || {
                let states = self.fields.iter().filter(|(span, _)| Some(*span) != self.code);
                states.map(|(span, _)| unescape(span.of(text))).any(|state| address::is_random(&state))
            };
            self.is_near && address::may_be_granted(&code)
                || self.is_beside && (address::is_random(&code) || has_drawn_state())
        })
    }
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        search: &'a Search<'a>,
        layer: usize,
        findings: &'a Findings,
        is_message: bool,
    ) -> Self {
        let wants_steps = is_message && !search.rules.places().is_empty();
        Self {
            search,
            text: search.layers.text(layer),
            is_message,
            marks: &findings.marks,
            may_grant: findings.may_grant,
            calls_program: findings.calls_program,
            open: Vec::new(),
            steps: wants_steps.then(Vec::new),
            hits: Vec::new(),
            inside: Vec::new(),
            is_loose: false,
        }
    }

    /// Walks the value that fills `whole`.
    pub(super) fn run(&mut self, whole: Span) -> Result<(), scan::ScanError> {
        let passed = self.marks.partition_point(|mark| *mark < whole.start);
        self.marks = &self.marks[passed..];
        let mut lexer = Lexer::new(self.text, whole.start);
        while let Some((token, span)) = lexer.next()? {
            match token {
                Token::Name => self.name(span),
                Token::ObjectEnd | Token::ArrayEnd => self.close(),
                Token::ObjectStart | Token::ArrayStart | Token::String | Token::Word => {
                    self.value(token, span)
                }
            }
        }
        match lexer.at() == whole.end {
            true => Ok(()),
            false => Err(scan::ScanError { at: lexer.at(), expected: "the end" }),
        }
    }

    /// Whether the first look left a mark in this token.
    fn is_marked(&mut self, span: Span) -> bool {
        let passed = self.marks.iter().take_while(|mark| **mark < span.start).count();
        self.marks = &self.marks[passed..];
        self.marks.first().is_some_and(|mark| *mark < span.end)
    }

    fn name(&mut self, span: Span) {
        let marked = self.is_marked(span);
        let text = self.text;
        if let Some(object) = self.open.last_mut() {
            object.name = span;
            object.named =
                if marked && !object.in_schema { names::secret(&unescape(span.of(text))) } else { None };
            if let Some(row) = object.listed.filter(|_| object.named.is_none()) {
                object.named = Some(row).filter(|_| names::says_secret(&unescape(span.of(text))));
            }
            if self.may_grant && !object.in_schema {
                let name = unescape(span.of(text));
                object.grants |= names::grants(&name);
                object.is_beside |= names::is_beside_code(&name);
                object.is_near |= names::is_near_code(&name);
            }
        }
        if let Some(step) = self.steps.as_mut().and_then(|steps| steps.last_mut()) {
            *step = unescape(span.of(text)).into_owned();
        }
        if marked || self.search.always_looks() {
            self.inside.push((Span::new(span.start + 1, span.end - 1), true));
        }
    }

    fn value(&mut self, token: Token, span: Span) {
        if let Some(count) = self.open.last_mut().and_then(|open| open.elements.as_mut()) {
            if let Some(step) = self.steps.as_mut().and_then(|steps| steps.last_mut()) {
                *step = count.to_string().into_bytes();
            }
            *count += 1;
        }
        let named = self.open.last().and_then(Open::named);
        let flag = self.open.last_mut().and_then(|open| open.flag.take());
        let before = self.open.last_mut().and_then(|open| open.word.take());
        match token {
            Token::ObjectStart | Token::ArrayStart => self.enter(token, span, named),
            Token::String => self.string(span, named, flag, before),
            _ => {
                // What else stands below a name counts and dates.
                let is_list = self.open.last().is_some_and(|open| open.elements.is_some());
                let named =
                    named.filter(|_| is_list || self.open.last().is_some_and(|open| open.named.is_some()));
                self.word(span, named);
            }
        }
    }

    fn enter(&mut self, token: Token, span: Span, named: Option<&'static SecretName>) {
        let is_object = token == Token::ObjectStart;
        let above = named
            .filter(|row| !is_object || row.deep && !assignment::begins_schema(self.text, span.start + 1));
        let in_schema = self.open.last().is_some_and(|open| {
            open.in_schema
                || SCHEMAS.iter().any(|name| {
                    open.name
                        .of(self.text)
                        .get(1..)
                        .is_some_and(|raw| raw.strip_suffix(b"\"").is_some_and(|raw| raw == name.as_bytes()))
                })
        });
        let above = above.filter(|_| !in_schema);
        let (mut listed, mut is_told) =
            self.open.last().map_or((None, false), |open| (open.listed, open.is_told));
        let in_list = self.open.last().is_some_and(|open| open.elements.is_some());
        let above = match above {
            Some(row) if is_object && in_list && !is_told => {
                is_told = true;
                listed = Some(row).filter(|_| self.describes(span));
                above.filter(|_| listed.is_none())
            }
            _ => above,
        };
        // `{"password": {"value": "x"}}`
        let holds = named.filter(|row| {
            let begins_schema = || assignment::begins_schema(self.text, span.start + 1);
            is_object && !row.deep && !in_schema && !begins_schema()
        });
        self.open.push(Open {
            elements: (!is_object).then_some(0),
            flag: None,
            login: None,
            program: None,
            word: None,
            name: Span::default(),
            named: None,
            above,
            listed,
            is_told,
            given: None,
            holds,
            value: None,
            element: None,
            typed: None,
            in_schema,
            grants: false,
            fields: Vec::new(),
            code: None,
            is_beside: false,
            is_near: false,
        });
        if let Some(steps) = &mut self.steps {
            steps.push(Vec::new());
        }
    }

    /// Whether an object describes a secret that it may have.
    fn describes(&self, object: Span) -> bool {
        let mut members = scan::members(self.text, object.start);
        members
            .any(|member| member.is_ok_and(|member| names::describes(&unescape(member.name.of(self.text)))))
    }

    fn close(&mut self) {
        if let Some(steps) = &mut self.steps {
            steps.pop();
        }
        let Some(object) = self.open.pop() else { return };
        let text = self.text;
        // Parsers have tokens that have values, too.
        let is_one = |row: &&SecretName| {
            row.words != "token" || object.value.is_some_and(|value| address::may_be_granted(value.of(text)))
        };
        match (object.given.or(object.holds.filter(is_one)), object.value) {
            (Some(row), Some(value)) if text[value.start] == b'"' => self.secret_string(value, row),
            (Some(row), Some(value)) if row.may_hold_number(value.of(text)) => {
                self.hit(value, row.kind, value.of(text), Some(0));
            }
            _ => {}
        }
        if let (Some(row), Some(typed)) = (object.element, object.typed) {
            self.secret_string(typed, row);
        }
        let grants = object.grants;
        // Where only the code itself tells, what stands beside it may be a state of something else.
        let looks_granted = |value: Span| address::may_be_granted(&unescape(value.of(text)));
        if grants || object.has_grant(text) {
            let fields = object.fields.into_iter().filter(|(value, _)| grants || looks_granted(*value));
            fields.for_each(|(value, row)| self.secret_string(value, row));
        }
    }

    /// A string; `named` says what it is by its name, `flag` by the word `before` it.
    fn string(
        &mut self,
        span: Span,
        named: Option<&'static SecretName>,
        flag: Option<&'static SecretName>,
        before: Option<Span>,
    ) {
        let marked = self.is_marked(span);
        if let Some(array) = self.open.last_mut().filter(|open| open.is_of_words()) {
            array.word = Some(span);
        }
        let flag = flag.filter(|row| assignment::is_flags_word(row, &unescape(span.of(self.text))));
        let inside = Span::new(span.start + 1, span.end - 1);
        let text = self.text;
        if let Some(object) = self.open.last_mut().filter(|object| object.holds_value(text)) {
            object.value = Some(span);
        }
        if let Some(object) = self.open.last_mut().filter(|object| object.is_called(text, "text")) {
            object.typed = Some(span);
        }
        if let Some(object) = self.open.last_mut().filter(|_| self.may_grant)
            && let Some(row) = names::oauth_field(&unescape(object.name.of(text)))
        {
            object.fields.push((span, row));
            if names::is_code(&unescape(object.name.of(text))) {
                object.code = Some(span);
            }
        }
        if self.is_place() {
            self.hit(inside, "place", &unescape(span.of(self.text)), None);
        } else if let Some(row) = named.or(flag) {
            self.secret_string(span, row);
        } else if let Some(found) = self.in_list(span, before, marked) {
            found.into_iter().for_each(|(place, kind, value)| self.hit(place, kind, &value, None));
        } else if marked || self.search.always_looks() {
            match self.of_envelope() {
                None => {
                    self.inside.push((inside, false));
                    self.gives_name(span);
                    self.gives_flag(span);
                }
                Some(METHOD) => self.method(span),
                Some(_) => {}
            }
        }
    }

    /// A method is a secret where it looks like one. That a value met elsewhere stands in it is chance, unless it has
    /// letters and digits: a client whose password is `tools/list` still has to be answered.
    fn method(&mut self, span: Span) {
        let inside = Span::new(span.start + 1, span.end - 1);
        let name = unescape(span.of(self.text));
        let secrets = self.search.secrets;
        let is_chance = |find: &finder::Find| match find.secret {
            Secret::Known(value) => !assignment::is_mixed(&secrets.value(value).bytes),
            Secret::New(..) => false,
        };
        for find in finder::find(secrets, &name).finds.into_iter().filter(|find| !is_chance(find)) {
            let place = if name.len() == inside.len() { find.span.shift(inside.start) } else { inside };
            self.hits.push((place, Hit { secret: find.secret, bare: None }));
        }
    }

    /// A string that is secret by its name: all of it, or the parts that its kind has.
    fn secret_string(&mut self, span: Span, row: &'static SecretName) {
        let value = unescape(span.of(self.text));
        let inside = Span::new(span.start + 1, span.end - 1);
        if !assignment::is_secret(&value) || value.is_empty() || !row.may_hold(&value) {
            return;
        }
        let parts = finder::parts(row.kind, &value);
        if value.len() == inside.len() {
            for part in parts {
                self.hit(part.shift(inside.start), row.kind, part.of(&value), None);
            }
        } else {
            self.hit(inside, row.kind, &value, None);
        }
    }

    fn hit(&mut self, span: Span, kind: &'static str, value: &[u8], bare: Option<u8>) {
        if assignment::is_secret(value) && !value.is_empty() {
            self.hits.push((span, Hit { secret: Secret::New(kind, value.into()), bare }));
        }
    }

    /// A word in no quotes; `named` says what it is by its name.
    fn word(&mut self, span: Span, named: Option<&'static SecretName>) {
        let marked = self.is_marked(span);
        let text = self.text;
        let word = span.of(text);
        if matches!(word, b"true" | b"false" | b"null") {
            return;
        }
        self.is_loose |= !scan::is_number(word);
        if self.of_envelope().is_some() {
            return;
        }
        if self.is_place() {
            self.hit(span, "place", word, Some(0));
        } else if let Some(row) = named.filter(|row| row.may_hold_number(word)) {
            self.hit(span, row.kind, word, Some(0));
        } else if !scan::is_number(word) && (marked || self.search.always_looks()) {
            // No JSON: a text in brackets, say.
            self.inside.push((span, false));
        } else if let Some(value) = self.search.secrets.exactly(word).filter(|_| marked) {
            self.hits.push((span, Hit { secret: Secret::Known(value), bare: Some(0) }));
        } else if let Some(object) = self.open.last_mut().filter(|object| object.holds_value(text)) {
            object.value = Some(span);
        }
    }

    /// A member `name` that names a secret says so of the member `value` beside it, and a member `element` whose words do
    /// of `text`.
    fn gives_name(&mut self, span: Span) {
        let text = self.text;
        let Some(object) =
            self.open.last_mut().filter(|object| object.elements.is_none() && !object.in_schema)
        else {
            return;
        };
        if assignment::gives_names(object.name.of(text).strip_suffix(b"\"").unwrap_or_default()) {
            object.given = object.given.or_else(|| names::secret(&unescape(span.of(text))));
        } else if object.is_called(text, "element") {
            object.element = names::in_words(&unescape(span.of(text)));
        }
    }

    /// A flag in an array of words says what the next one is.
    fn gives_flag(&mut self, span: Span) {
        let text = self.text;
        if let Some(array) = self.open.last_mut().filter(|open| open.is_of_words()) {
            array.flag = assignment::flag(&unescape(span.of(text)));
        }
    }

    /// Which member of the message's envelope the value at hand is, or which that names another message by its id.
    fn of_envelope(&self) -> Option<&'static str> {
        let depth = if self.text.first() == Some(&b'[') { 2 } else { 1 };
        let is_called = |object: &Open, member: &str| {
            !object.name.is_empty() && scan::string_is(object.name.of(self.text), member)
        };
        match self.open.get(depth - 1..).filter(|_| self.is_message)? {
            [message] => ENVELOPE.into_iter().find(|member| is_called(message, member)),
            [message, params] => {
                let (member, method) = NAMES_ID;
                let names_id = is_called(params, member)
                    && is_called(message, "params")
                    && memchr::memmem::find(self.text, method).is_some();
                names_id.then_some(member)
            }
            _ => None,
        }
    }

    /// Whether options say that the value at hand is secret.
    fn is_place(&self) -> bool {
        let Some(steps) = &self.steps else { return false };
        // In a batch, places count from its messages.
        let steps =
            if self.open.first().is_some_and(|open| open.elements.is_some()) { &steps[1..] } else { steps };
        self.search.rules.places().iter().any(|place| place.holds(steps))
    }
}
