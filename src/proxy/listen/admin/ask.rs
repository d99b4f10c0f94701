//! What is asked: which operation, of what.

use hyper::StatusCode;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use super::super::route::unescaped;
use crate::report::events::Filter;

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Takes,
    EndTake,
    Events,
    Misses,
    Plan,
    Scenario,
    Reset,
    Report,
    Waiting,
    Advance,
}

/// All operations.
const TABLE: &[(&str, &str, Operation)] = &[
    ("GET", "/takes", Operation::Takes),
    ("POST", "/takes/end", Operation::EndTake),
    ("GET", "/events", Operation::Events),
    ("GET", "/misses", Operation::Misses),
    ("GET", "/plan", Operation::Plan),
    ("POST", "/plan/scenario", Operation::Scenario),
    ("POST", "/reset", Operation::Reset),
    ("GET", "/report", Operation::Report),
    ("GET", "/waiting", Operation::Waiting),
    ("POST", "/clock/advance", Operation::Advance),
];

/// An operation, and of what.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) operation: Operation,
    pub(super) filter: Filter,
}

/// Why something is not done.
#[derive(Debug, Serialize)]
pub(super) struct Problem {
    #[serde(skip)]
    pub(super) status: StatusCode,
    #[serde(skip)]
    pub(super) allow: Option<&'static str>,
    /// In a sentence, with what can be asked instead.
    error: String,
}

impl Problem {
    pub(super) fn new(status: StatusCode, sentence: impl Into<String>) -> Self {
        Self { status, allow: None, error: sentence.into() }
    }

    /// What is asked cannot be understood.
    pub(super) fn bad(sentence: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, sentence)
    }

    /// What is asked for is not there.
    pub(super) fn nothing(sentence: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, sentence)
    }

    /// It cannot be done as things are.
    pub(super) fn conflict(sentence: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, sentence)
    }

    pub(super) fn json(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}

impl Ask {
    pub(super) fn of(method: &str, path: &str, query: Option<&str>) -> Result<Self, Problem> {
        let Some(&(takes, _, operation)) = TABLE.iter().find(|(_, known, _)| *known == path) else {
            let known: Vec<_> = TABLE.iter().map(|(method, path, _)| format!("{method} {path}")).collect();
            return Err(Problem::nothing(format!("there is no `{path}`; there are {}", known.join(", "))));
        };
        if method != takes {
            let sentence = format!("`{path}` takes {takes}, not {method}");
            let problem = Problem::new(StatusCode::METHOD_NOT_ALLOWED, sentence);
            return Err(Problem { allow: Some(takes), ..problem });
        }
        let mut filter = Filter::default();
        let mut given: Vec<String> = Vec::new();
        for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let [name, value] = [name, value].map(|text| unescaped(&text.replace('+', " ")));
            if operation != Operation::Events {
                return Err(Problem::bad(format!("`{path}` has no parameter `{name}`; it has none")));
            }
            if given.contains(&name) {
                return Err(Problem::bad(format!("the filter `{name}` is given twice; give it once")));
            }
            filter.set(&name, value).map_err(Problem::bad)?;
            given.push(name);
        }
        Ok(Self { operation, filter })
    }
}

/// Reads a body; an empty one has no members.
pub(super) fn body<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    let bytes = if bytes.trim_ascii().is_empty() { b"{}" } else { bytes };
    serde_json::from_slice(bytes).map_err(|error| {
        // The numbers' types are ours.
        let error = error.to_string().replace("expected usize", "expected a whole number from 0");
        Problem::bad(format!(
            "the body is wrong: {}",
            error.replace("expected u64", "expected a whole number from 0")
        ))
    })
}

/// Which take ends.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with `server` and `take`")]
pub(super) struct EndTake {
    /// None is enough where there is one server.
    pub(super) server: Option<String>,
    /// Empty for the default one.
    #[serde(default)]
    pub(super) take: String,
}

/// A scenario is switched.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with `name` and `on`")]
pub(super) struct Scenario {
    pub(super) name: String,
    pub(super) on: bool,
}

/// What begins anew.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with `what`, `server` and `take`")]
pub(super) struct Reset {
    #[serde(default)]
    pub(super) what: What,
    /// None: of all servers.
    pub(super) server: Option<String>,
    /// None: all takes.
    pub(super) take: Option<String>,
}

/// What of a take begins anew.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
pub(super) enum What {
    #[default]
    All,
    Faults,
    Played,
}

/// So many milliseconds the clock is wound at once, at most: a day, as a fault waits at most.
pub(super) const MOST_MS: u64 = 86_400_000;

/// How far the clock is wound.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with `ms`, `when_pending` and `timeout_ms`")]
pub(super) struct Advance {
    pub(super) ms: u64,
    /// Not before so many things wait.
    pub(super) when_pending: Option<usize>,
    /// No longer than so long, in real time.
    #[serde(default = "ten_seconds")]
    pub(super) timeout_ms: u64,
}

const fn ten_seconds() -> u64 {
    10_000
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::report::events::Outcome;

    /// The members that a body may have, as the sentence about one that it may not have lists them.
    fn members(operation: Operation) -> Vec<String> {
        let wrong = br#"{"-": 1}"#;
        let problem = match operation {
            Operation::EndTake => body::<EndTake>(wrong).unwrap_err(),
            Operation::Scenario => body::<Scenario>(wrong).unwrap_err(),
            Operation::Reset => body::<Reset>(wrong).unwrap_err(),
            Operation::Advance => body::<Advance>(wrong).unwrap_err(),
            _ => return Vec::new(),
        };
        let names = problem.error.split('`').skip(1).step_by(2).filter(|name| *name != "-");
        let mut names: Vec<String> = names.map(str::to_owned).collect();
        names.sort_unstable();
        names
    }

    #[test]
    fn the_document_tells_of_all_that_can_be_asked_and_of_no_more() {
        let document: Value =
            serde_json::from_str(include_str!("../../../cli/schema/admin.json")).expect("JSON");
        let paths = document["paths"].as_object().expect("paths");
        let told = paths.iter().flat_map(|(path, item)| {
            item.as_object().into_iter().flatten().map(move |(method, told)| (method, path, told))
        });
        let mut found = 0;
        for (method, path, told) in told {
            let known = TABLE.iter().find(|(known, at, _)| known.to_lowercase() == *method && at == path);
            let &(_, _, operation) = known.unwrap_or_else(|| panic!("nobody answers {method} {path}"));
            found += 1;
            let names = |list: &Value| -> Vec<String> {
                let list = list.as_array().into_iter().flatten();
                list.map(|one| one["name"].as_str().expect("a name").to_owned()).collect()
            };
            let filters: &[&str] = if operation == Operation::Events { &Filter::NAMES } else { &[] };
            assert_eq!(names(&told["parameters"]), filters, "{path}");
            let schema = &told["requestBody"]["content"]["application/json"]["schema"];
            let properties = schema["properties"].as_object().into_iter().flatten();
            let mut properties: Vec<&String> = properties.map(|(name, _)| name).collect();
            properties.sort_unstable();
            assert_eq!(properties, members(operation).iter().collect::<Vec<_>>(), "{path}");
        }
        assert_eq!(found, TABLE.len());
        let outcomes = Outcome::ALL.map(Outcome::name);
        let filter = document.pointer("/paths/~1events/get/parameters/5/schema/enum").expect("an outcome");
        assert_eq!(*filter, serde_json::json!(outcomes));
        let told = serde_json::to_string(filter).expect("JSON");
        assert_eq!(document.to_string().matches(&told).count(), 2, "{told}");
    }

    #[test]
    fn what_cannot_be_asked_is_refused_with_what_can() {
        let refused = |method: &str, path: &str, query: &str| {
            let problem = Ask::of(method, path, Some(query)).unwrap_err();
            (problem.status.as_u16(), problem.error)
        };
        let (status, sentence) = refused("GET", "/take", "");
        assert!(status == 404 && sentence.contains("GET /takes, POST /takes/end"), "{sentence}");
        assert_eq!(refused("POST", "/takes", ""), (405, "`/takes` takes GET, not POST".to_owned()));
        let (status, sentence) = refused("GET", "/events", "sever=a");
        assert!(status == 400 && sentence.contains("server, method, key"), "{sentence}");
        let (status, sentence) = refused("GET", "/events", "outcome=lost");
        assert!(status == 400 && sentence.contains("answered, error, miss"), "{sentence}");
        assert_eq!(refused("GET", "/events", "limit=x").0, 400);
        assert_eq!(refused("GET", "/events", "key=a&key=b").0, 400);
        assert_eq!(refused("GET", "/report", "a").0, 400);
        let asked =
            Ask::of("GET", "/events", Some("key=tools%2Fcall+a%20%401&limit=3")).expect("it is right");
        assert_eq!((asked.filter.key.as_deref(), asked.filter.limit), (Some("tools/call a @1"), Some(3)));
    }
}
