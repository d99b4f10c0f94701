//! What a plan or a cassette asserts of a run: how many calls, sessions and connections, which methods in which order.

use std::fmt;

use super::{
    error::PlanError,
    value::{Object, Value},
};
use crate::report::{AssertReport, Report};

/// One thing that has to be so at the end of a run.
#[derive(Debug)]
pub(super) enum Assert {
    Calls(String, Range),
    /// All methods, in order.
    Sequence(Vec<String>),
    /// These in this order, whatever stands between.
    Contains(Vec<String>),
    Sessions(Range),
    Connections(Range),
}

/// How many.
#[derive(Clone, Copy, Debug)]
pub(super) struct Range {
    min: u64,
    max: Option<u64>,
}

impl Assert {
    pub(super) fn read(value: Value<'_>) -> Result<Vec<Self>, PlanError> {
        let mut object = value.object("`assert`")?;
        let mut asserts = Vec::new();
        if let Some(calls) = object.get("calls") {
            for (method, count) in calls.object("`calls`")?.all() {
                asserts.push(Self::Calls(method.to_owned(), Range::read(method, count)?));
            }
        }
        if let Some(value) = object.get("sequence") {
            asserts.push(sequence(value)?);
        }
        for (member, assert) in
            [("sessions", Self::Sessions as fn(Range) -> Self), ("connections", Self::Connections)]
        {
            if let Some(count) = object.get(member) {
                asserts.push(assert(Range::read(member, count)?));
            }
        }
        object.finish()?;
        Ok(asserts)
    }

    pub(super) fn judge(&self, report: &Report) -> AssertReport {
        let (holds, found) = match self {
            Self::Calls(method, range) => range.judge(report.calls.get(method).copied().unwrap_or_default()),
            Self::Sessions(range) => range.judge(report.sessions),
            Self::Connections(range) => range.judge(report.connections),
            Self::Sequence(wanted) => exact(wanted, report),
            Self::Contains(wanted) => contains(wanted, report),
        };
        AssertReport { server: None, assert: self.to_string(), holds, found }
    }
}

fn sequence(value: Value<'_>) -> Result<Assert, PlanError> {
    const EXPECTED: &str = "a list of methods, or {\"contains\": [METHOD, …]}";
    let methods = |member: &str, list: Value<'_>| {
        let methods = list.elements(member)?.into_iter();
        methods.map(|method| Ok(method.string(member)?.into_owned())).collect::<Result<Vec<_>, PlanError>>()
    };
    if value.is_array() {
        return methods("sequence", value).map(Assert::Sequence);
    }
    if !value.is_object() {
        return Err(value.wrong("sequence", EXPECTED));
    }
    let mut object: Object<'_> = value.object("`sequence`")?;
    let contains = object.need("contains", "a list of methods")?;
    object.finish()?;
    methods("contains", contains).map(Assert::Contains)
}

impl Range {
    fn read(member: &str, value: Value<'_>) -> Result<Self, PlanError> {
        const EXPECTED: &str = "a whole number from 0, or {\"min\": …, \"max\": …}";
        if !value.is_object() {
            let exactly = value.integer(member, EXPECTED)?;
            return Ok(Self { min: exactly, max: Some(exactly) });
        }
        let mut object = value.object(&format!("`{member}`"))?;
        let mut bound = |name: &'static str| {
            object.get(name).map(|value| value.integer::<u64>(name, "a whole number from 0")).transpose()
        };
        let (min, max) = (bound("min")?, bound("max")?);
        object.finish()?;
        if min.is_none() && max.is_none() {
            return Err(value.wrong(member, EXPECTED));
        }
        let min = min.unwrap_or_default();
        if max.is_some_and(|max| max < min) {
            let text = format!("the `min` of `{member}` is greater than its `max`; correct one of them");
            return Err(PlanError::new(value.at(), text));
        }
        Ok(Self { min, max })
    }

    fn judge(self, found: u64) -> (bool, String) {
        (found >= self.min && self.max.is_none_or(|max| found <= max), found.to_string())
    }
}

/// Messages that came when the report's sequence was full.
fn untold(report: &Report) -> u64 {
    report.calls.values().sum::<u64>().saturating_sub(report.sequence.len() as u64)
}

fn exact(wanted: &[String], report: &Report) -> (bool, String) {
    let found = &report.sequence;
    let differs = wanted.iter().zip(found).position(|(wanted, found)| wanted != found);
    let text = match differs {
        Some(at) => format!("`{}` as number {}, in place of `{}`", found[at], at + 1, wanted[at]),
        None if found.len() < wanted.len() => {
            let methods = if found.len() == 1 { "method" } else { "methods" };
            format!("{} {methods}; `{}` did not come", found.len(), wanted[found.len()])
        }
        None if found.len() > wanted.len() => {
            format!("`{}` as number {}, behind the last", found[wanted.len()], wanted.len() + 1)
        }
        None if untold(report) > 0 => format!("{} more", untold(report)),
        None => return (true, "all of them".to_owned()),
    };
    (false, text)
}

fn contains(wanted: &[String], report: &Report) -> (bool, String) {
    let mut found = report.sequence.iter();
    let missing = wanted.iter().position(|wanted| !found.any(|found| found == wanted));
    let Some(at) = missing else { return (true, "all of them".to_owned()) };
    let before = if at == 0 { String::new() } else { format!(" behind `{}`", wanted[at - 1]) };
    let kept = match untold(report) {
        0 => String::new(),
        _ => format!(" among the first {}", report.sequence.len()),
    };
    (false, format!("no `{}`{before}{kept}", wanted[at]))
}

impl fmt::Display for Assert {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Calls(method, range) => write!(f, "calls of {method}: {range}"),
            Self::Sessions(range) => write!(f, "sessions: {range}"),
            Self::Connections(range) => write!(f, "connections: {range}"),
            Self::Sequence(methods) => write!(f, "sequence: {}", methods.join(", ")),
            Self::Contains(methods) => write!(f, "sequence contains: {}", methods.join(", ")),
        }
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.min, self.max) {
            (min, Some(max)) if min == max => write!(f, "{min}"),
            (0, Some(max)) => write!(f, "at most {max}"),
            (min, Some(max)) => write!(f, "from {min} to {max}"),
            (min, None) => write!(f, "at least {min}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Plans;
    use super::*;

    fn read(assert: &str) -> Result<Vec<Assert>, String> {
        let text = format!("{{\"faults\": 1,\n\"assert\": {assert}}}");
        Plans::read(text.as_bytes()).map(|plans| plans.asserts).map_err(|error| error.to_string())
    }

    fn judged(assert: &str) -> Vec<(String, bool, String)> {
        let mut report = Report::open("c.json");
        report.sequence = ["initialize", "ping", "tools/call", "ping"].map(str::to_owned).to_vec();
        report.calls =
            [("initialize", 1), ("ping", 2), ("tools/call", 1)].map(|(m, n)| (m.to_owned(), n)).into();
        (report.sessions, report.connections) = (1, 3);
        let asserts = read(assert).unwrap_or_else(|error| panic!("{assert}: {error}"));
        let judged = asserts.iter().map(|assert| assert.judge(&report));
        judged.map(|report| (report.assert, report.holds, report.found)).collect()
    }

    fn holds(assert: &str) -> bool {
        judged(assert).iter().all(|(_, holds, _)| *holds)
    }

    #[test]
    fn numbers_are_exact_or_between_bounds() {
        let found = judged(r#"{"calls": {"ping": 2, "x": {"min": 1}}, "connections": {"min": 4, "max": 5}}"#);
        let expected = [
            ("calls of ping: 2", true, "2"),
            ("calls of x: at least 1", false, "0"),
            ("connections: from 4 to 5", false, "3"),
        ];
        assert_eq!(found, expected.map(|(a, holds, b)| (a.to_owned(), holds, b.to_owned())));
        assert!(holds(
            r#"{"sessions": {"max": 1}, "connections": {"min": 3, "max": 3}, "calls": {"no": 0}}"#
        ));
        assert!(!holds(r#"{"sessions": 2}"#));
    }

    #[test]
    fn methods_come_in_order_and_alone_or_among_others() {
        assert!(holds(r#"{"sequence": ["initialize", "ping", "tools/call", "ping"]}"#));
        assert!(holds(r#"{"sequence": {"contains": ["initialize", "tools/call", "ping"]}}"#));
        let found = |assert: &str| judged(assert).remove(0).2;
        assert_eq!(
            found(r#"{"sequence": ["initialize", "tools/call"]}"#),
            "`ping` as number 2, in place of `tools/call`"
        );
        assert_eq!(found(r#"{"sequence": ["initialize"]}"#), "`ping` as number 2, behind the last");
        assert_eq!(
            found(r#"{"sequence": ["initialize", "ping", "tools/call", "ping", "x"]}"#),
            "4 methods; `x` did not come"
        );
        assert_eq!(
            found(r#"{"sequence": {"contains": ["tools/call", "initialize"]}}"#),
            "no `initialize` behind `tools/call`"
        );
    }

    #[test]
    fn mistakes_are_named_with_their_place() {
        for (assert, told) in [
            (r#"[]"#, "2:11: "),
            (r#"{"cals": {}}"#, "did you mean `calls`?"),
            (r#"{"session": 1}"#, "did you mean `sessions`?"),
            (r#"{"calls": {"ping": -1}}"#, "2:30: `ping` must be a whole number from 0"),
            (r#"{"calls": {"ping": {}}}"#, "{\"min\": …"),
            (r#"{"sessions": {"mn": 1}}"#, "did you mean `min`?"),
            (r#"{"sessions": {"min": 2, "max": 1}}"#, "greater than its `max`"),
            (r#"{"sequence": "ping"}"#, "{\"contains\": "),
            (r#"{"sequence": {"contain": []}}"#, "needs `contains`"),
            (r#"{"sequence": [1]}"#, "2:25: `sequence` must be a string"),
        ] {
            let error = read(assert).expect_err(assert);
            assert!(error.starts_with("2:") && error.contains(told), "{assert}: {error}");
        }
    }
}
