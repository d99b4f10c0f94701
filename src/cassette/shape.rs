//! The members of our own objects: one table that says what is known, and in which order it is written.

use std::borrow::Cow;

use crate::wire::scan;

/// What a member holds, as far as the order of members inside it goes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Holds {
    /// A value without members of ours.
    Value,
    /// An object of ours.
    Object(&'static Shape),
    /// An array of such objects.
    List(&'static Shape),
}

/// One kind of object.
#[derive(Debug)]
pub(super) struct Shape {
    /// What messages call it.
    pub(super) name: &'static str,
    /// Its members in the order in which they are written.
    pub(super) members: &'static [(&'static str, Holds)],
    /// Before which member unknown ones are written; `members.len()` for behind the last.
    pub(super) unknown_at: usize,
}

use Holds::{List, Object, Value};

pub(super) static DOCUMENT: Shape = Shape {
    name: "a cassette",
    members: &[
        ("$schema", Value),
        ("cassette", Value),
        ("note", Value),
        ("redacted", Value),
        ("vars", Value),
        ("match", List(&RULE)),
        ("faults", Value),
        ("assert", Value),
        ("sessions", List(&SESSION)),
        ("exchanges", List(&EXCHANGE)),
    ],
    unknown_at: 8,
};

pub(super) static SESSION: Shape = Shape {
    name: "a session",
    members: &[
        ("session", Value),
        ("note", Value),
        ("recording", Value),
        ("journal", Value),
        ("parent", Value),
        ("at", Value),
        ("lasted_s", Value),
        ("by", Value),
        ("transport", Value),
        ("path", Value),
        ("protocol", Value),
        ("client", Value),
        ("server", Value),
        ("spelling", Object(&SPELLING)),
        ("end", Object(&END)),
        ("gap", Value),
    ],
    unknown_at: 16,
};

pub(super) static SPELLING: Shape = Shape {
    name: "a spelling",
    members: &[("client", Object(&SIDE)), ("server", Object(&SIDE))],
    unknown_at: 2,
};

pub(super) static SIDE: Shape = Shape {
    name: "one side's spelling",
    members: &[("order", Value), ("spaced", Value), ("crlf", Value)],
    unknown_at: 3,
};

pub(super) static END: Shape = Shape {
    name: "a session's end",
    members: &[("exit", Value), ("signal", Value), ("partial", Value), ("partial_base64", Value)],
    unknown_at: 4,
};

pub(super) static RULE: Shape = Shape {
    name: "a match rule",
    members: &[
        ("note", Value),
        ("when", Object(&WHEN)),
        ("ignore", Value),
        ("pattern", Value),
        ("type", Value),
    ],
    unknown_at: 5,
};

pub(super) static WHEN: Shape = Shape {
    name: "`when`",
    members: &[("method", Value), ("tool", Value), ("prompt", Value), ("uri", Value), ("key", Value)],
    unknown_at: 5,
};

pub(super) static EXCHANGE: Shape = Shape {
    name: "an exchange",
    members: &[
        ("key", Value),
        ("note", Value),
        ("session", Value),
        ("journal", Value),
        ("match", Object(&RULE)),
        ("fault", Value),
        ("after", Value),
        ("client", Object(&CLIENT)),
        ("http", Object(&HTTP)),
        ("server", List(&ITEM)),
        ("unanswered", Value),
    ],
    unknown_at: 11,
};

pub(super) static CLIENT: Shape = Shape {
    name: "`client`",
    members: &[
        ("note", Value),
        ("request", Object(&REQUEST)),
        ("notification", Object(&NOTIFICATION)),
        ("batch", List(&MEMBER)),
        ("raw", Value),
        ("http", Value),
        ("base64", Value),
        ("omitted", Object(&OMITTED)),
        ("body", Value),
        ("partial", Value),
    ],
    unknown_at: 10,
};

pub(super) static HTTP: Shape = Shape {
    name: "`http`",
    members: &[
        ("note", Value),
        ("path", Value),
        ("request", Object(&HEADERS)),
        ("auth", Value),
        ("status", Value),
        ("stream", Value),
        ("headers", Object(&HEADERS)),
        ("again", Value),
        ("until_delete", Value),
        ("end", Value),
        ("partial", Value),
        ("partial_base64", Value),
    ],
    unknown_at: 12,
};

/// Every member is a header.
pub(super) static HEADERS: Shape = Shape { name: "headers", members: &[], unknown_at: 0 };

pub(super) static SSE: Shape = Shape {
    name: "`sse`",
    members: &[("id", Value), ("event", Value), ("retry", Value), ("data", Value)],
    unknown_at: 4,
};

pub(super) static ITEM: Shape = Shape {
    name: "an item of `server`",
    members: &[
        ("note", Value),
        ("after_ms", Value),
        ("after", Value),
        ("guess", Value),
        ("on", Value),
        ("sse", Object(&SSE)),
        ("id", Value),
        ("no_id", Value),
        ("notification", Object(&NOTIFICATION)),
        ("request", Object(&REQUEST)),
        ("result", Value),
        ("error", Value),
        ("batch", List(&MEMBER)),
        ("raw", Value),
        ("base64", Value),
        ("omitted", Object(&OMITTED)),
        ("body", Value),
        ("same_as", Value),
        ("answer", Object(&ANSWER)),
    ],
    unknown_at: 19,
};

pub(super) static ANSWER: Shape = Shape {
    name: "an answer",
    members: &[
        ("note", Value),
        ("after_ms", Value),
        ("after", Value),
        ("http", Object(&HTTP)),
        ("id", Value),
        ("no_id", Value),
        ("result", Value),
        ("error", Value),
        ("raw", Value),
        ("base64", Value),
        ("omitted", Object(&OMITTED)),
    ],
    unknown_at: 11,
};

pub(super) static MEMBER: Shape = Shape {
    name: "a member of a batch",
    members: &[
        ("to", Value),
        ("id", Value),
        ("no_id", Value),
        ("request", Object(&REQUEST)),
        ("notification", Object(&NOTIFICATION)),
        ("result", Value),
        ("error", Value),
        ("raw", Value),
    ],
    unknown_at: 8,
};

/// Members of a request that are not known belong to the message: they keep their order and are sent.
pub(super) static REQUEST: Shape = Shape {
    name: "a request",
    members: &[("id", Value), ("method", Value), ("params", Value)],
    unknown_at: 3,
};

pub(super) static NOTIFICATION: Shape =
    Shape { name: "a notification", members: &[("method", Value), ("params", Value)], unknown_at: 2 };

pub(super) static OMITTED: Shape = Shape {
    name: "an omitted message",
    members: &[("bytes", Value), ("sha256", Value), ("id", Value), ("method", Value)],
    unknown_at: 4,
};

impl Shape {
    /// The place of a member in [`Shape::members`], by its name with quotes.
    pub(super) fn find(&self, name: &[u8]) -> Option<usize> {
        let name = plain(name);
        self.members.iter().position(|(known, _)| known.as_bytes() == &*name)
    }

    /// The first member from `from` on whose name, in quotes, begins at `at`: files have members in their order.
    pub(super) fn guess(&self, text: &[u8], at: usize, from: usize) -> Option<usize> {
        let rest = text.get(at..)?.strip_prefix(b"\"")?;
        let begins = |(name, _): &(&str, Holds)| {
            rest.get(name.len()) == Some(&b'"') && rest[..name.len()] == *name.as_bytes()
        };
        Some(from + self.members.get(from..)?.iter().position(begins)?)
    }

    /// Where in the order a member is written.
    pub(super) fn rank(&self, name: &[u8]) -> usize {
        match self.find(name) {
            Some(at) if at < self.unknown_at => at,
            Some(at) => at + 1,
            None => self.unknown_at,
        }
    }

    /// The known member that an unknown one may have been meant to be.
    pub(super) fn nearest(&self, name: &[u8]) -> Option<&'static str> {
        let name = String::from_utf8_lossy(&plain(name)).into_owned();
        let names = self.members.iter().map(|(known, _)| *known);
        nearest(&name, names)
    }
}

/// A member's name without its quotes.
pub(super) fn plain(name: &[u8]) -> Cow<'_, [u8]> {
    scan::unescape(name)
}

/// Of several names the one that `name` was probably meant to be: at most two letters differ, and fewer than half.
pub(crate) fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    const LONGEST: usize = 200;
    if name.len() > LONGEST {
        return None;
    }
    let limit = 2.min(name.chars().count() / 2);
    let names = names.filter(|known| known.len() <= LONGEST);
    names
        .map(|known| (distance(name, known, limit), known))
        .filter(|(far, _)| *far <= limit)
        .min()
        .map(|found| found.1)
}

/// How many letters have to be changed, added, left out or swapped with their neighbour; over `limit` any larger number.
fn distance(a: &str, b: &str, limit: usize) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > limit {
        return limit + 1;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut next = vec![i];
        for j in 1..=b.len() {
            let change = row[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = change.min(row[j] + 1).min(next[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            next.push(best);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_recognised() {
        let meant = |name: &str| EXCHANGE.nearest(format!("\"{name}\"").as_bytes());
        assert_eq!(meant("sever"), Some("server"));
        assert_eq!(meant("clinet"), Some("client"));
        assert_eq!(meant("kye"), Some("key"));
        assert_eq!(meant("responses"), None);
        assert_eq!(meant("x"), None);
        assert_eq!(meant(&"k".repeat(100_000)), None);
    }

    #[test]
    fn unknown_members_have_a_place_in_the_order() {
        let mut names = ["\"sessions\"", "\"mine\"", "\"cassette\"", "\"exchanges\"", "\"match\""];
        names.sort_by_key(|name| DOCUMENT.rank(name.as_bytes()));
        assert_eq!(names, ["\"cassette\"", "\"match\"", "\"mine\"", "\"sessions\"", "\"exchanges\""]);
    }
}
