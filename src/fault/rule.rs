//! One rule: on which requests, on which of them, and what it does.

use std::sync::Arc;

use super::{
    Fault, Request,
    catalogue::{self, Acts, Kind, On, Where},
    error::{PlanError, list},
    plan::Scope,
    value::{Object, Value},
    when::When,
};
use crate::{cassette::model, traffic::Direction};

/// One rule of a plan.
#[derive(Debug)]
pub(super) struct Rule {
    /// Its name, else its text: what reports and the hash of `probability` know it by.
    pub(super) name: String,
    /// Its text.
    pub(super) text: String,
    /// It stands in the cassette.
    pub(super) in_cassette: bool,
    /// Where it stands.
    pub(super) at: usize,
    /// The same for a person, `FILE:LINE:COLUMN`, where it stands in a plan's file.
    pub(super) place: Option<Box<str>>,
    /// It stands in an option of the command line.
    pub(super) by_option: bool,
    pub(super) when: When,
    pub(super) trigger: Trigger,
    pub(super) probability: Option<f64>,
    pub(super) does: Does,
    /// Nobody minds that it never fires.
    pub(super) optional: bool,
    /// The scenario that switches it, of its plan.
    pub(super) scenario: Option<usize>,
}

/// What a rule does.
#[derive(Debug)]
pub(super) enum Does {
    /// The same each time.
    Always(Act),
    /// One after the other; none passes a request on.
    Script(Vec<Option<Act>>),
}

/// A fault with its parameters.
#[derive(Clone, Debug)]
pub(super) struct Act {
    pub(super) kind: &'static Kind,
    pub(super) fault: Arc<dyn Fault>,
    /// Whether it uses up a recorded answer.
    pub(super) consumes: bool,
}

/// On which of the requests that fit.
#[derive(Debug, Default)]
pub(super) struct Trigger {
    nth: Vec<u64>,
    first: Option<u64>,
    every: Option<u64>,
    from: Option<u64>,
    times: Option<u64>,
}

impl Rule {
    pub(super) fn read(value: Value<'_>) -> Result<Self, PlanError> {
        let mut object = value.object("a fault rule")?;
        let name = object.get("name").map(|value| value.string("name")).transpose()?;
        let when = object.get("when").map(When::read).transpose()?.unwrap_or_default();
        let trigger = Trigger::read(&mut object)?;
        let probability = object
            .get("probability")
            .map(|value| value.number("probability", "a number from 0 to 1", |p| (0.0..=1.0).contains(&p)))
            .transpose()?;
        let optional =
            object.get("optional").map(|value| value.boolean("optional")).transpose()?.unwrap_or_default();
        let does = match (object.get("script"), object.get("do")) {
            (Some(script), None) => {
                if let Some(member) = trigger.member().or(probability.map(|_| "probability")) {
                    let text = format!("a rule with `script` cannot have `{member}`: the script says which");
                    return Err(PlanError::new(value.at(), text));
                }
                Does::Script(script_of(script)?)
            }
            (None, Some(_)) => Does::Always(act_in(&mut object, value)?),
            (Some(_), Some(_)) => {
                let text = "a fault rule has `do` and `script`; keep one of them";
                return Err(PlanError::new(value.at(), text));
            }
            (None, None) => {
                let text = format!(
                    "a fault rule needs `do`, the fault, or `script`, a list of them; there are {}",
                    catalogue::names()
                );
                return Err(PlanError::new(value.at(), text));
            }
        };
        object.finish()?;
        let (method, in_order) =
            (when.method(), matches!(does, Does::Script(_)) && when.request.key.is_none());
        if let Some(text) = does.acts().find_map(|act| act.kind.passes_by(method, in_order)) {
            return Err(PlanError::new(value.at(), text));
        }
        if when.direction == Some(Direction::ToServer) && !does.acts().all(|act| act.kind.to_server) {
            let able = catalogue::TABLE.iter().filter(|kind| kind.to_server).map(|kind| kind.name);
            let text = format!("only {} can act on what goes `to_server`", list(able));
            return Err(PlanError::new(value.at(), text));
        }
        let text = String::from_utf8_lossy(value.raw()).into_owned();
        let name = name.map_or_else(|| text.clone(), std::borrow::Cow::into_owned);
        let at = value.at();
        Ok(Self {
            name,
            text,
            in_cassette: false,
            at,
            place: None,
            by_option: false,
            when,
            trigger,
            probability,
            does,
            optional,
            scenario: None,
        })
    }

    /// The rule of an exchange's own `fault`.
    pub(super) fn of_exchange(key: &str, value: Value<'_>) -> Result<Vec<Self>, PlanError> {
        let values = if value.is_array() { value.elements("fault")? } else { vec![value] };
        let rule = |value: Value<'_>| {
            Ok(Self {
                name: format!("exchange {key}"),
                text: String::from_utf8_lossy(value.raw()).into_owned(),
                in_cassette: true,
                at: value.at(),
                place: None,
                by_option: false,
                when: When {
                    request: model::When { key: Some(key.to_owned()), ..Default::default() },
                    ..When::default()
                },
                trigger: Trigger::default(),
                probability: None,
                does: Does::Always(act(value)?),
                optional: false,
                scenario: None,
            })
        };
        values.into_iter().map(rule).collect()
    }
}

impl Rule {
    /// Whether it counts a request.
    pub(super) fn fits(&self, request: &Request<'_>) -> bool {
        self.when.names(request) && self.holds(request)
    }

    /// The same of a request that it names.
    pub(super) fn holds(&self, request: &Request<'_>) -> bool {
        let can_act = || match &self.does {
            Does::Always(act) => act.kind.on.fits(request),
            Does::Script(_) => true,
        };
        self.when.holds(request.message) && can_act()
    }

    /// Whether it is for a recorded request, whatever that one's values are.
    pub(super) fn names(&self, request: &Request<'_>) -> bool {
        let can_act = |act: &Act| match act.kind.on {
            // Tokens differ from client to client.
            On::Tokens => true,
            on => on.fits(request),
        };
        self.when.names(request) && self.does.acts().any(can_act)
    }

    /// Why it does nothing to a recorded request that its `when` names, and what can be done there.
    pub(super) fn passes_by(&self, request: &Request<'_>, scope: Option<Scope>) -> Option<String> {
        let method = request.method;
        let why = self.does.acts().find_map(|act| act.kind.not_on(method))?;
        let able = catalogue::TABLE.iter().filter(|kind| {
            scope.is_none_or(|scope| kind.cannot(scope).is_none()) && kind.not_on(method).is_none()
        });
        let it = request.key.unwrap_or(method);
        Some(format!(
            "{why}, and `{it}` asks for {method}; there can act {}",
            list(able.map(|kind| kind.name))
        ))
    }

    /// That something is wrong with it.
    pub(super) fn error(&self, text: &str) -> PlanError {
        let place = self.place.as_deref().map(|place| format!(" ({place})")).unwrap_or_default();
        let text = format!("rule {}{place}: {text}", self.short_name());
        PlanError { by_option: self.by_option, ..PlanError::new(self.at, text) }
    }

    /// Its name, or the beginning of its text, to be shown.
    pub(super) fn short_name(&self) -> String {
        match self.name.char_indices().nth(80) {
            Some((end, _)) => format!("`{}…`", &self.name[..end]),
            None => format!("`{}`", self.name),
        }
    }

    /// Whether what it does can be done to a request, by the revision of that.
    pub(super) fn can_act(&self, is_modern: bool) -> bool {
        let never = if is_modern { Where::Legacy } else { Where::Modern };
        self.does.acts().all(|act| act.kind.exists != never)
    }

    /// Whether it acts at most so many times.
    pub(super) const fn limits_times(&self) -> bool {
        self.trigger.times.is_some()
    }

    /// Whether chance decides when it acts, or what exactly it does.
    pub(super) fn is_by_chance(&self) -> bool {
        self.probability.is_some() || self.does.acts().any(|act| act.kind.by_chance)
    }
}

impl Does {
    pub(super) fn acts(&self) -> impl Iterator<Item = &Act> {
        let (one, many) = match self {
            Self::Always(act) => (Some(act), &[][..]),
            Self::Script(acts) => (None, &acts[..]),
        };
        one.into_iter().chain(many.iter().flatten())
    }
}

fn script_of(value: Value<'_>) -> Result<Vec<Option<Act>>, PlanError> {
    let actions = value.elements("script")?;
    if actions.is_empty() {
        return Err(value.wrong("script", "a list with at least one action"));
    }
    let is_ok = |value: &Value<'_>| value.raw() == b"\"ok\"";
    actions.into_iter().map(|value| if is_ok(&value) { Ok(None) } else { act(value).map(Some) }).collect()
}

/// A fault by its name alone, or an object with `do` and its parameters.
fn act(value: Value<'_>) -> Result<Act, PlanError> {
    if value.is_string() {
        let kind = kind(value)?;
        let fault = (kind.read)(&mut Object::empty(kind.name))
            .map_err(|error| PlanError { at: value.at(), ..error })?;
        return Ok(Act { kind, fault, consumes: kind.acts != Acts::Instead });
    }
    let mut object = value.object("a fault")?;
    let act = act_in(&mut object, value)?;
    object.finish()?;
    Ok(act)
}

fn act_in(object: &mut Object<'_>, whole: Value<'_>) -> Result<Act, PlanError> {
    let kind = kind(object.need("do", "the fault's name")?)?;
    let consumes = object.get("consumes").map(|value| value.boolean("consumes")).transpose()?;
    if kind.acts == Acts::Beside && consumes.is_some() {
        let text = format!("`{}` cannot have `consumes`: the server answers all the same", kind.name);
        return Err(PlanError::new(whole.at(), text));
    }
    let fault = (kind.read)(object)?;
    Ok(Act { kind, fault, consumes: consumes.unwrap_or(kind.acts != Acts::Instead) })
}

fn kind(name: Value<'_>) -> Result<&'static Kind, PlanError> {
    let text = name.string("do")?;
    catalogue::find(&text).ok_or_else(|| {
        let hint = match crate::cassette::nearest(&text, catalogue::TABLE.iter().map(|kind| kind.name)) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("there are {}", catalogue::names()),
        };
        PlanError::new(name.at(), format!("no fault is called `{text}`; {hint}"))
    })
}

impl Trigger {
    fn read(object: &mut Object<'_>) -> Result<Self, PlanError> {
        let mut count = |name: &'static str| object.get(name).map(|value| value.count(name)).transpose();
        let (first, every, from) = (count("first")?, count("every")?, count("from")?);
        // Beside `duplicate` it is how often the answer comes, unless `copies` says that.
        let is_copies = !object.has("copies")
            && object.get("do").is_some_and(|name| name.string("do").is_ok_and(|name| name == "duplicate"));
        let times = match is_copies {
            true => None,
            false => object.get("times").map(|value| value.count("times")).transpose()?,
        };
        let nth = match object.get("nth") {
            Some(value) if value.is_array() => {
                let numbers = value.elements("nth")?;
                if numbers.is_empty() {
                    return Err(value.wrong("nth", "a number, or a list with at least one"));
                }
                numbers.into_iter().map(|number| number.count("nth")).collect::<Result<_, _>>()?
            }
            Some(value) => vec![value.count("nth")?],
            None => Vec::new(),
        };
        let trigger = Self { nth, first, every, from, times };
        let contradiction = match &trigger {
            Self { nth, .. } if !nth.is_empty() => {
                let other = trigger.member().filter(|member| *member != "nth");
                other.map(|other| format!("`nth` says on which requests; remove `{other}`"))
            }
            Self { first: Some(first), from: Some(from), .. } if from > first => Some(format!(
                "`first` ends with number {first}, before `from` begins with number {from}; correct one of them"
            )),
            _ => None,
        };
        contradiction.map_or(Ok(trigger), |text| Err(PlanError::new(object.at(), text)))
    }

    /// The last member of it that is given.
    fn member(&self) -> Option<&'static str> {
        let given = [
            ("nth", !self.nth.is_empty()),
            ("first", self.first.is_some()),
            ("every", self.every.is_some()),
            ("from", self.from.is_some()),
            ("times", self.times.is_some()),
        ];
        given.into_iter().rev().find(|(_, is_given)| *is_given).map(|(name, _)| name)
    }

    /// Whether it is the turn of the request of this number, when the rule has `fired` so often.
    pub(super) fn hits(&self, number: u64, fired: u64) -> bool {
        let from = self.from.unwrap_or(1);
        (self.nth.is_empty() || self.nth.contains(&number))
            && number >= from
            && self.first.is_none_or(|first| number <= first)
            && self.every.is_none_or(|every| match self.from {
                Some(from) => (number - from).is_multiple_of(every),
                None => number.is_multiple_of(every),
            })
            && self.times.is_none_or(|times| fired < times)
    }
}
