//! The members of an object and the elements of an array as pieces of text: found, added, taken out.

use std::borrow::Cow;

use crate::wire::{Span, jsonrpc, pointer, scan};

/// A replacement of a place in the text.
pub(super) type Change = (Span, Vec<u8>);

/// One member or element.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// A member's name, quotes included.
    name: Option<Span>,
    pub(super) value: Span,
}

impl Part {
    /// All of it.
    pub(super) fn whole(self) -> Span {
        Span::new(self.name.unwrap_or(self.value).start, self.value.end)
    }

    /// A member's name.
    pub(super) fn name(self, text: &[u8]) -> Option<Cow<'_, str>> {
        self.name.map(|name| jsonrpc::text(name.of(text)))
    }
}

/// What an object or array holds.
#[derive(Debug)]
pub(super) struct Parts {
    container: Span,
    pub(super) is_object: bool,
    pub(super) list: Vec<Part>,
}

/// What stands in the value at this place; none where it is neither an object nor an array.
pub(super) fn parts(text: &[u8], container: Span) -> Option<Parts> {
    let start = container.start;
    let (is_object, list) = match text.get(start)? {
        b'{' => {
            let members = scan::members(text, start).map_while(Result::ok);
            (true, members.map(|member| Part { name: Some(member.name), value: member.value }).collect())
        }
        b'[' => {
            let elements = scan::elements(text, start).map_while(Result::ok);
            (false, elements.map(|value| Part { name: None, value }).collect())
        }
        _ => return None,
    };
    Some(Parts { container, is_object, list })
}

impl Parts {
    /// Which part a pointer's step leads to. Where a name stands twice the last one counts.
    pub(super) fn find(&self, text: &[u8], step: &str) -> Option<usize> {
        if self.is_object {
            let is_it = |part: &Part| part.name.is_some_and(|name| scan::string_is(name.of(text), step));
            return self.list.iter().rposition(is_it);
        }
        pointer::index(step).filter(|index| *index < self.list.len())
    }

    /// Takes a part out, with the comma that goes with it.
    pub(super) fn take(&self, at: usize) -> Change {
        let whole = self.list[at].whole();
        let span = match (at.checked_sub(1), self.list.get(at + 1)) {
            (Some(before), _) => Span::new(self.list[before].value.end, whole.end),
            (None, Some(next)) => Span::new(whole.start, next.whole().start),
            (None, None) => Span::new(self.container.start + 1, self.container.end - 1),
        };
        (span, Vec::new())
    }

    /// The same; where it and the next one begin lines, its own go and no others change.
    pub(super) fn take_lines(&self, text: &[u8], at: usize) -> Change {
        let line = |part: &Part| {
            let start = part.whole().start;
            indentation(text, start).map(|indent| start - indent.len())
        };
        match line(&self.list[at]).zip(self.list.get(at + 1).and_then(line)) {
            Some((start, end)) => (Span::new(start, end), Vec::new()),
            None => self.take(at),
        }
    }

    /// Adds a part, parted from its neighbours as they are from each other; behind or before all, on a line of its own
    /// where its neighbour stands so.
    pub(super) fn add(&self, text: &[u8], at: usize, part: &[u8]) -> Change {
        let neighbour = at.saturating_sub(1);
        let Some(beside) = self.list.get(neighbour).map(|part| part.whole()) else {
            return (Span::new(self.container.start + 1, self.container.end - 1), part.to_vec());
        };
        if let Some(next) = self.list.get(at).filter(|_| at > 0) {
            let between = Span::new(beside.end, next.whole().start).of(text);
            return (Span::new(beside.end, beside.end), [between, part].concat());
        }
        let separator = match indentation(text, beside.start) {
            Some(indent) => [b",\n", indent].concat(),
            None => b", ".to_vec(),
        };
        if at == 0 {
            return (Span::new(beside.start, beside.start), [part, &separator].concat());
        }
        (Span::new(beside.end, beside.end), [&separator, part].concat())
    }

    /// Adds a member at a place in the order.
    pub(super) fn add_member(&self, text: &[u8], at: usize, name: &str, value: &[u8]) -> Change {
        let mut member = Vec::new();
        scan::push_string(name, &mut member);
        member.extend_from_slice(b": ");
        member.extend_from_slice(value);
        self.add(text, at, &member)
    }

    /// Gives a member a value; one that is missing is added at a place in the order.
    pub(super) fn put(&self, text: &[u8], at: usize, name: &str, value: &[u8]) -> Change {
        match self.find(text, name) {
            Some(found) => (self.list[found].value, value.to_vec()),
            None => self.add_member(text, at, name, value),
        }
    }

    /// The value of a member.
    pub(super) fn value(&self, text: &[u8], name: &str) -> Option<Span> {
        self.find(text, name).map(|at| self.list[at].value)
    }
}

/// The indentation of what begins a line at this offset; none where something stands before it.
pub(super) fn indentation(text: &[u8], at: usize) -> Option<&[u8]> {
    let line = memchr::memrchr(b'\n', &text[..at])? + 1;
    let indent = &text[line..at];
    indent.iter().all(|byte| matches!(byte, b' ' | b'\t')).then_some(indent)
}

/// A text with replacements made; they are in order and do not overlap.
pub(super) fn splice(text: &[u8], changes: &[Change]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + changes.iter().map(|(_, new)| new.len()).sum::<usize>());
    let mut at = 0;
    for (span, new) in changes {
        out.extend_from_slice(&text[at..span.start]);
        out.extend_from_slice(new);
        at = span.end;
    }
    out.extend_from_slice(&text[at..]);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, change: impl Fn(&Parts) -> Change, expected: &str) {
        let bytes = text.as_bytes();
        let found = parts(bytes, Span::new(0, bytes.len())).unwrap();
        assert_eq!(String::from_utf8(splice(bytes, &[change(&found)])).unwrap(), expected);
    }

    #[test]
    fn what_is_taken_out_takes_its_comma_along() {
        check("[1, 2,3]", |parts| parts.take(0), "[2,3]");
        check("[1, 2,3]", |parts| parts.take(1), "[1,3]");
        check("{\"a\": 1,\n \"b\": 2\n}", |parts| parts.take(1), "{\"a\": 1\n}");
        check("[ 1 ]", |parts| parts.take(0), "[]");
        let take = |at, text: &'static str| move |parts: &Parts| parts.take_lines(text.as_bytes(), at);
        let lines = "[\n 1 ,\n  2  ,\n   3\n]";
        check(lines, take(0, lines), "[\n  2  ,\n   3\n]");
        check(lines, take(1, lines), "[\n 1 ,\n   3\n]");
        check(lines, take(2, lines), "[\n 1 ,\n  2\n]");
        let first = "[\n  1\n, 2\n, 3\n]";
        check(first, take(1, first), "[\n  1\n, 3\n]");
        check("[1 , 2 , 3]", take(1, "[1 , 2 , 3]"), "[1 , 3]");
    }

    #[test]
    fn what_is_added_stands_as_its_neighbour_does() {
        let add = |at, text: &'static str| move |parts: &Parts| parts.add(text.as_bytes(), at, b"9");
        check("[1, 2]", add(0, "[1, 2]"), "[9, 1, 2]");
        check("[1, 2]", add(2, "[1, 2]"), "[1, 2, 9]");
        check("[ ]", add(0, "[ ]"), "[9]");
        check("[\n  1,\n  2\n]", add(1, "[\n  1,\n  2\n]"), "[\n  1,\n  9,\n  2\n]");
        check("[\n  1\n]", add(0, "[\n  1\n]"), "[\n  9,\n  1\n]");
        check("[\n  1 ,\n  2]", add(1, "[\n  1 ,\n  2]"), "[\n  1 ,\n  9 ,\n  2]");
        check("[\n  1\n, 2\n]", add(1, "[\n  1\n, 2\n]"), "[\n  1\n, 9\n, 2\n]");
    }
}
