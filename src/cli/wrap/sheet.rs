//! A configuration as a text in which the servers' places are known, and changes to it at those places alone.

use std::ops::Range;

use super::{entry::Entry, json, toml};

/// A place in the text, and what is to stand there.
pub(super) type Edit = (Range<usize>, String);

/// The form of a configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Syntax {
    /// With or without comments and trailing commas.
    Json,
    Toml,
}

impl Syntax {
    /// The member that holds headers with their values.
    pub(super) const fn headers(self) -> &'static str {
        match self {
            Self::Json => "headers",
            Self::Toml => "http_headers",
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Sheet {
    pub text: String,
    pub syntax: Syntax,
    pub servers: Vec<Server>,
}

/// A server's entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Server {
    /// Which of the maps of servers that a configuration can have it stands in: the names that lead there.
    pub map: String,
    pub name: String,
    /// It is for the working folder, or for all.
    pub is_here: bool,
    /// None where it is no object.
    pub members: Option<Vec<Member>>,
    /// Each member has a line of its own, with no comma between them.
    pub in_lines: bool,
}

/// A name with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub name: String,
    pub key: Range<usize>,
    /// Of a TOML table of dotted keys: where its name stands before each of its members.
    pub dotted: Vec<Range<usize>>,
    pub value: Range<usize>,
    pub holds: Holds,
    /// Its value stands in one piece. That of a TOML table with a header of its own, or of dotted keys, does not.
    pub is_whole: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    Text(String),
    /// Elements; none for one that is no text.
    List(Vec<(Range<usize>, Option<String>)>),
    Members(Vec<Member>),
    Other,
}

impl Server {
    /// Whether it is the same one, in another text.
    pub(super) fn is(&self, other: &Self) -> bool {
        (&self.map, &self.name) == (&other.map, &other.name)
    }

    pub(super) fn member(&self, name: &str) -> Option<&Member> {
        self.members.iter().flatten().find(|member| member.name == name)
    }
}

impl Member {
    pub(super) fn text(&self) -> Option<&str> {
        match &self.holds {
            Holds::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn elements(&self) -> &[(Range<usize>, Option<String>)] {
        match &self.holds {
            Holds::List(elements) => elements,
            _ => &[],
        }
    }

    pub(super) fn members(&self) -> &[Member] {
        match &self.holds {
            Holds::Members(members) => members,
            _ => &[],
        }
    }
}

impl Sheet {
    pub(super) fn parse(syntax: Syntax, text: &str) -> Result<Self, String> {
        let servers = match syntax {
            Syntax::Json => json::servers(text)?,
            Syntax::Toml => toml::servers(text)?,
        };
        Ok(Self { text: text.to_owned(), syntax, servers })
    }

    pub(super) fn raw(&self, range: &Range<usize>) -> &str {
        &self.text[range.clone()]
    }

    pub(super) fn entry(&self, index: usize) -> Entry {
        Entry::of(&self.servers[index], self.syntax)
    }

    /// Changes the text, if after it the servers are the same ones and `is_right` finds what it should in that one.
    pub(super) fn edit(
        &mut self,
        mut edits: Vec<Edit>,
        index: usize,
        is_right: impl FnOnce(&Entry) -> bool,
    ) -> bool {
        // What is put before a place comes before what takes that place.
        edits.sort_by_cached_key(|(range, _)| (range.start, range.end));
        let mut text = self.text.clone();
        for (range, new) in edits.into_iter().rev() {
            let Some(_) = text.get(range.clone()) else { return false };
            text.replace_range(range, &new);
        }
        let Ok(new) = Self::parse(self.syntax, &text) else { return false };
        let are_same = new.servers.len() == self.servers.len()
            && new.servers.iter().zip(&self.servers).all(|(new, old)| new.is(old));
        let is_right = are_same && is_right(&new.entry(index));
        if is_right {
            *self = new;
        }
        is_right
    }

    /// Another name for a member, in each place where it stands.
    pub(super) fn rename(&self, member: &Member, name: &str) -> Vec<Edit> {
        let places =
            if member.dotted.is_empty() { std::slice::from_ref(&member.key) } else { &member.dotted };
        places.iter().map(|place| (place.clone(), renamed(self.raw(place), name))).collect()
    }

    /// A list of raw texts, as the value of a name.
    pub(super) fn assigned(&self, name: &str, value: &str) -> String {
        match self.syntax {
            Syntax::Json => format!("{}: {value}", quoted(name)),
            Syntax::Toml => format!("{name} = {value}"),
        }
    }

    /// A member put behind another of the entry.
    pub(super) fn add(&self, server: &Server, behind: &Member, name: &str, value: &str) -> Edit {
        let member = self.assigned(name, value);
        let start = line_start(&self.text, behind.key.start);
        let before = &self.text[start..behind.key.start];
        let end = behind.value.end;
        if !server.in_lines {
            let is_first_of_line = start > 0 && before.trim().is_empty();
            let between = if is_first_of_line { format!("{}{before}", self.line_end()) } else { " ".into() };
            return (end..end, format!(",{between}{member}"));
        }
        match self.text[end..].find('\n') {
            Some(line) => (end + line + 1..end + line + 1, format!("{before}{member}{}", self.line_end())),
            None => (self.text.len()..self.text.len(), format!("{}{before}{member}", self.line_end())),
        }
    }

    /// Whether a member stands where it would be put behind the other.
    pub(super) fn is_put_behind(&self, server: &Server, behind: &Member, member: &Member) -> bool {
        let (place, text) = self.add(server, behind, &member.name, "");
        self.text[place.start..].starts_with(text.trim_end())
    }

    /// Takes a member away with what parts it from its neighbours; comments stay.
    pub(super) fn remove(&self, among: &[Member], in_lines: bool, member: &Member) -> Vec<Edit> {
        let (start, end) = (member.key.start, member.value.end);
        let nothing = |range| (range, String::new());
        if in_lines {
            let line = line_start(&self.text, start);
            let rest = &self.text[end..];
            let behind = rest.find('\n').map_or(self.text.len(), |at| end + at + 1);
            return match self.text[end..behind].trim() {
                "" if behind < self.text.len() || line == 0 || rest.ends_with('\n') => {
                    vec![nothing(line..behind)]
                }
                "" => vec![nothing(self.text[..line].trim_end_matches(['\r', '\n']).len()..behind)],
                _ => vec![nothing(start..end)],
            };
        }
        let before = among.iter().map(|other| other.value.end).filter(|end| *end <= start).max();
        let Some(before) = before else {
            let next = among.iter().map(|other| other.key.start).filter(|next| *next >= end).min();
            return vec![nothing(start..next.unwrap_or(end))];
        };
        match comma(&self.text[before..start]) {
            Some(at) if self.text[before..start].trim() == "," => {
                // A space before the comma was there before.
                vec![nothing(before + at..end)]
            }
            Some(at) => vec![nothing(before + at..before + at + 1), nothing(start..end)],
            None => vec![nothing(start..end)],
        }
    }

    /// Takes the first elements of a list away; comments stay.
    pub(super) fn drop_first(&self, list: &Member, count: usize) -> Vec<Edit> {
        let elements = list.elements();
        let mut edits = Vec::new();
        for (n, (range, _)) in elements.iter().enumerate().take(count) {
            let next = elements.get(n + 1).map_or(list.value.end - 1, |(next, _)| next.start);
            let gap = &self.text[range.end..next];
            let end = comma(gap).map_or(range.end, |at| {
                let rest = &gap[at + 1..];
                range.end + at + 1 + (rest.len() - rest.trim_start().len())
            });
            edits.push((range.start..end, String::new()));
        }
        edits
    }

    /// How lines end here.
    fn line_end(&self) -> &'static str {
        match self.text.find('\n') {
            Some(at) if self.text[..at].ends_with('\r') => "\r\n",
            _ => "\n",
        }
    }
}

/// A text as both forms write it.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

pub(super) fn list(raw: &[String]) -> String {
    format!("[{}]", raw.join(", "))
}

/// A name in the place of another, in its quotes.
pub(super) fn renamed(old: &str, new: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    match old.chars().next() {
        Some('\'') if !new.contains(['\'', '\\']) => format!("'{new}'"),
        Some('"' | '\'') => quoted(new),
        _ if new.chars().all(is_plain) => new.to_owned(),
        _ => quoted(new),
    }
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |end| end + 1)
}

/// The first comma of what stands between two values: spaces, comments and a comma.
fn comma(gap: &str) -> Option<usize> {
    let mut at = 0;
    while at < gap.len() {
        let rest = &gap[at..];
        let ends = |end: &str| rest.find(end).map_or(rest.len(), |found| found + end.len());
        at += match rest.as_bytes()[0] {
            b',' => return Some(at),
            b'#' => ends("\n"),
            b'/' if rest.starts_with("//") => ends("\n"),
            b'/' if rest.starts_with("/*") => ends("*/"),
            _ => rest.chars().next().map_or(1, char::len_utf8),
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comma_in_a_comment_parts_nothing() {
        assert_eq!(comma(" /* , */ , // ,\n"), Some(9));
        assert_eq!(comma(" # ä, b\n,"), Some(9));
        assert_eq!(comma(" // , \n "), None);
    }

    #[test]
    fn a_name_keeps_its_quotes() {
        let names = [("\"a\"", "b"), ("'a'", "b c"), ("a", "b-c"), ("a", "b c")];
        let names = names.map(|(old, new)| renamed(old, new));
        assert_eq!(names, ["\"b\"", "'b c'", "b-c", "\"b c\""]);
    }
}
