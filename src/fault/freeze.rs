//! A run in which chance decided becomes a plan that says on which requests what happens.

use std::collections::{BTreeMap, HashMap};

use super::{engine::Request, error::PlanError, rule::Rule, value::Value};
use crate::{
    report::{Firing, Report},
    wire::{
        Span, jsonrpc,
        scan::{self, push_string},
    },
};

/// Of a rule, so many requests are told apart, and so many firings told.
const MOST: usize = 10_000;

/// On which requests a rule has acted where chance decides that.
#[derive(Clone, Debug, Default)]
pub(super) struct Drawn {
    seen: HashMap<Subject, u64>,
    fired: BTreeMap<Subject, Vec<u64>>,
    told: usize,
    /// What the request at hand is about, and its number among those that are about the same.
    at_hand: Option<(Subject, u64)>,
}

/// A request on which a rule has acted by chance.
#[derive(Clone, Debug)]
pub(super) struct Drew(Subject, u64);

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Subject {
    /// A recorded exchange.
    Key(Box<str>),
    /// A method, and what is named by the request.
    Named(Box<str>, Option<Box<str>>),
}

impl Drawn {
    /// A request has come that the rule is for.
    pub(super) fn see(&mut self, request: &Request<'_>) {
        let name = request.message.name().map(|name| Box::from(&*name));
        let named = self.count(Subject::Named(request.method.into(), name));
        self.at_hand = match request.key {
            Some(key) => self.count(Subject::Key(key.into())),
            None => named,
        };
    }

    fn count(&mut self, subject: Subject) -> Option<(Subject, u64)> {
        if self.seen.len() >= MOST && !self.seen.contains_key(&subject) {
            return None;
        }
        let count = self.seen.entry(subject.clone()).or_default();
        *count += 1;
        Some((subject, *count))
    }

    /// The rule acts on it: which that is, where it is told.
    pub(super) fn fire(&mut self) -> Option<Drew> {
        let (subject, number) = self.at_hand.take().filter(|_| self.told < MOST)?;
        self.told += 1;
        self.fired.entry(subject.clone()).or_default().push(number);
        Some(Drew(subject, number))
    }

    /// It did not after all.
    pub(super) fn take_back(&mut self, Drew(subject, number): &Drew) {
        if let Some(numbers) = self.fired.get_mut(subject) {
            numbers.retain(|told| told != number);
            if numbers.is_empty() {
                self.fired.remove(subject);
            }
            self.told -= 1;
        }
    }

    pub(super) fn firings(&self) -> Vec<Firing> {
        let of = |(subject, nth): (&Subject, &Vec<u64>)| {
            let (key, method, name) = match subject {
                Subject::Key(key) => (Some(key), None, None),
                Subject::Named(method, name) => (None, Some(method), name.as_ref()),
            };
            let text = |text: Option<&Box<str>>| text.map(|text| text.to_string());
            Firing { server: None, key: text(key), method: text(method), name: text(name), nth: nth.clone() }
        };
        self.fired.iter().map(of).collect()
    }
}

/// A plan without chance.
#[derive(Debug)]
pub struct Frozen {
    /// The plan, as it stands in a file.
    pub text: String,
    /// How many rules stand in it for firings that chance had decided.
    pub drawn: usize,
    /// What a reader should know of it.
    pub notes: Vec<String>,
}

/// Makes a plan of a run's report. Against the same client and cassette, the same faults act on the same requests.
///
/// Rules without `probability` stay as they are, but for those that stand in the cassette: they act anyway.
///
/// # Errors
/// Where a rule in the report is none.
pub fn freeze(report: &Report) -> Result<Frozen, PlanError> {
    let mut rules: Vec<Vec<u8>> = Vec::new();
    let (mut notes, mut drawn) = (Vec::new(), 0);
    for fault in &report.faults {
        let text = fault.text.as_deref().unwrap_or(&fault.rule).as_bytes();
        let rule = match Rule::read(Value::new(text, scan::trim(text))) {
            Ok(rule) => rule,
            Err(_) if fault.in_cassette => continue,
            Err(error) => {
                let text = format!("the report's rule `{}` is none: {}", fault.rule, error.text);
                return Err(PlanError { text, ..error });
            }
        };
        let source = Source { text, name: &fault.rule, is_named: fault.text.is_some(), rule: &rule };
        if rule.probability.is_none() {
            if !fault.in_cassette {
                rules.push(source.as_it_is());
            }
            continue;
        }
        if fault.in_cassette {
            notes.push(format!(
                "the rule `{}` stands in the cassette, where chance still decides; take it out of it",
                fault.rule
            ));
        }
        notes.extend(fault.untold());
        drawn += fault.firings.len();
        rules.extend(fault.firings.iter().map(|firing| source.of(firing)));
    }
    let mut text = b"{\n  \"faults\": 1,\n  \"note\": ".to_vec();
    push_string(&format!("Frozen from a run of {}.", report.cassette), &mut text);
    if let Some(seed) = report.seed {
        text.extend_from_slice(format!(",\n  \"seed\": {seed}").as_bytes());
    }
    text.extend_from_slice(b",\n  \"rules\": [\n    ");
    text.extend_from_slice(&rules.join(&b",\n    "[..]));
    text.extend_from_slice(b"\n  ]\n}\n");
    Ok(Frozen { text: String::from_utf8_lossy(&text).into_owned(), drawn, notes })
}

/// A rule of a report.
struct Source<'a> {
    text: &'a [u8],
    name: &'a str,
    /// It is called by something else than its text.
    is_named: bool,
    rule: &'a Rule,
}

/// Members of an object that is being written.
struct Members(Vec<u8>);

impl Members {
    fn new() -> Self {
        Self(b"{".to_vec())
    }

    fn push(&mut self, name: &str, value: &[u8]) {
        if self.0.len() > 1 {
            self.0.extend_from_slice(b", ");
        }
        push_string(name, &mut self.0);
        self.0.extend_from_slice(b": ");
        self.0.extend_from_slice(value);
    }

    fn push_text(&mut self, name: &str, value: &str) {
        let mut text = Vec::new();
        push_string(value, &mut text);
        self.push(name, &text);
    }

    fn end(mut self) -> Vec<u8> {
        self.0.push(b'}');
        self.0
    }
}

/// Names and raw values of an object; none where it is not there.
fn members(text: &[u8], at: Option<Span>) -> impl Iterator<Item = (String, Span)> {
    let members = at.into_iter().flat_map(|at| scan::members(text, at.start).map_while(Result::ok));
    members.map(|member| (jsonrpc::text(member.name.of(text)).into_owned(), member.value))
}

impl Source<'_> {
    fn root(&self) -> Span {
        scan::trim(self.text)
    }

    fn member(&self, at: Option<Span>, name: &str) -> Option<Span> {
        at.and_then(|at| scan::member(self.text, at.start, name))
    }

    fn as_it_is(&self) -> Vec<u8> {
        let mut out = Members::new();
        if self.is_named {
            out.push_text("name", self.name);
        }
        for (name, value) in members(self.text, Some(self.root())).filter(|(name, _)| name != "name") {
            out.push(&name, value.of(self.text));
        }
        out.end()
    }

    /// The rule for one exchange's firings.
    fn of(&self, firing: &Firing) -> Vec<u8> {
        let mut out = Members::new();
        // What exactly happens depends on the name where chance decides that too.
        if self.rule.does.acts().any(|act| act.kind.by_chance) {
            out.push_text("name", self.name);
        } else if self.is_named {
            let subject = [&firing.key, &firing.method, &firing.name].into_iter().flatten();
            let subject: Vec<&str> = subject.map(String::as_str).collect();
            out.push_text("name", &format!("{}: {}", self.name, subject.join(" ")));
        }
        out.push("when", &self.when(firing));
        let nth: Vec<String> = firing.nth.iter().map(u64::to_string).collect();
        match &nth[..] {
            [one] => out.push("nth", one.as_bytes()),
            many => out.push("nth", format!("[{}]", many.join(", ")).as_bytes()),
        }
        const REPLACED: [&str; 8] = ["name", "when", "nth", "first", "every", "from", "times", "probability"];
        for (name, value) in members(self.text, Some(self.root())) {
            if name == "times" && !self.rule.limits_times() {
                out.push("copies", value.of(self.text));
            } else if !REPLACED.contains(&&*name) {
                out.push(&name, value.of(self.text));
            }
        }
        out.end()
    }

    fn when(&self, firing: &Firing) -> Vec<u8> {
        let when = self.member(Some(self.root()), "when");
        let mut out = Members::new();
        // A key that is not recorded cannot be named, nor a tool; what stands in the message can.
        let mut tests: Vec<(String, String)> = Vec::new();
        if let Some(method) = &firing.method {
            tests.push(("/method".to_owned(), method.clone()));
            let pointer = jsonrpc::subject(method).map(|(_, at)| at).zip(firing.name.clone());
            tests.extend(pointer.map(|(pointer, name)| (format!("/params{pointer}"), name)));
        }
        for (name, value) in members(self.text, when) {
            let is_replaced = name == "key"
                || (name == "server" && firing.server.is_some())
                || (name == "where" && !tests.is_empty());
            if !is_replaced {
                out.push(&name, value.of(self.text));
            }
        }
        if let Some(server) = &firing.server {
            out.push_text("server", server);
        }
        if let Some(key) = &firing.key {
            out.push_text("key", key);
        }
        if !tests.is_empty() {
            let mut all = Members::new();
            for (pointer, value) in members(self.text, self.member(when, "where")) {
                if !tests.iter().any(|(known, _)| *known == pointer) {
                    all.push(&pointer, value.of(self.text));
                }
            }
            tests.iter().for_each(|(pointer, value)| all.push_text(pointer, value));
            out.push("where", &all.end());
        }
        out.end()
    }
}
