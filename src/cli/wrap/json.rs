//! Configurations in JSON, with or without comments and trailing commas.
//!
//! The parser tells where everything stands; the text is changed there and nowhere else.

use std::{env, ops::Range};

use jsonc_parser::{
    CollectOptions, ParseOptions,
    ast::{Array, Object, ObjectProp, Value},
    common::Ranged,
    parse_to_ast,
};
use mcp_tapedeck::cassette::model::line_column;

use super::{
    Config,
    entry::{Change, Entry, Place},
};

/// The objects that can hold the map of servers, from the outside to the inside.
const MAPS: [&[&str]; 3] = [&["mcpServers"], &["servers"], &["mcp", "servers"]];

#[derive(Clone)]
pub(super) struct JsonConfig {
    text: String,
    /// The working folder: one file of Claude Code has maps by project.
    project: String,
}

/// A place in the text, and what is to stand there.
type Edit = (Range<usize>, String);

impl JsonConfig {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let read = parse_to_ast(text, &CollectOptions::default(), &ParseOptions::default());
        let read = read.map_err(|error| {
            let (line, column) = line_column(text.as_bytes(), error.range().start);
            format!("{line}:{column}: {}", error.kind())
        })?;
        if read.value.as_ref().and_then(Value::as_object).is_none() {
            return Err("1:1: it is no JSON object".to_owned());
        }
        let project = env::current_dir().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { text: text.to_owned(), project })
    }

    /// Calls `look` with the maps of servers.
    fn maps<T>(&self, look: impl FnOnce(Vec<&Object<'_>>) -> T) -> Option<T> {
        let read = parse_to_ast(&self.text, &CollectOptions::default(), &ParseOptions::default()).ok()?;
        let root = read.value.as_ref()?.as_object()?;
        let project = ["projects", &self.project, "mcpServers"];
        let paths = MAPS.iter().copied().chain([&project[..]]);
        let inside = |path: &[&str]| path.iter().try_fold(root, |object, name| object.get_object(name));
        Some(look(paths.filter_map(inside).collect()))
    }

    /// Calls `look` with an entry's member.
    fn entry<T>(&self, place: &Place, look: impl FnOnce(&ObjectProp<'_>) -> Option<T>) -> Option<T> {
        self.maps(|maps| maps.get(place.map)?.get(&place.name).and_then(look))?
    }

    fn edit(&mut self, mut edits: Vec<Edit>) {
        edits.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
        for (range, text) in edits {
            self.text.replace_range(range, &text);
        }
    }
}

impl Config for JsonConfig {
    fn entries(&self) -> Vec<(Place, Entry)> {
        let entries = self.maps(|maps| {
            let mut entries = Vec::new();
            for (map, object) in maps.into_iter().enumerate() {
                for member in &object.properties {
                    let name = member.name.as_str().to_owned();
                    if let Some(object) = member.value.as_object() {
                        entries.push((Place { map, name: name.clone() }, read(name, object)));
                    }
                }
            }
            entries
        });
        entries.unwrap_or_default()
    }

    fn change(&mut self, place: &Place, change: &Change) {
        let edits = self.entry(place, |member| {
            let object = member.value.as_object()?;
            Some(match change {
                Change::Before { program, words } => before(object, program, words),
                Change::Instead { program, words, env, .. } => {
                    instead(&self.text, object, program, words, env)
                }
            })
        });
        self.edit(edits.unwrap_or_default());
    }

    fn restore(&mut self, place: &Place, before: &Self) -> bool {
        let old = before.entry(place, |member| Some(before.text[range(&member.value)].to_owned()));
        let here = self.entry(place, |member| Some(range(&member.value)));
        let Some(edit) = here.zip(old) else { return false };
        self.edit(vec![edit]);
        true
    }

    fn is_same(&self, place: &Place, other: &Self) -> bool {
        let text =
            |config: &Self| config.entry(place, |member| Some(config.text[range(&member.value)].to_owned()));
        text(self).is_some_and(|here| text(other) == Some(here))
    }

    fn put_back(&mut self, place: &Place, before: &Self) -> bool {
        let member = |config: &Self, name: &str| {
            config.entry(place, |entry| Some(range(&entry.value.as_object()?.get(name)?.value)))
        };
        let text = |name| member(before, name).map(|place| before.text[place].to_owned());
        let (Some(program), Some(args)) = (member(self, "command"), member(self, "args")) else {
            return false;
        };
        let Some(command) = text("command") else { return false };
        let args = match text("args") {
            Some(old) => (args, old),
            // It was put there right behind the command.
            None => match self.text.get(program.end..args.start) {
                Some(", \"args\": ") => (program.end..args.end, String::new()),
                _ => return false,
            },
        };
        self.edit(vec![(program, command), args]);
        true
    }

    fn unwrap(&mut self, place: &Place, command: &str, words: usize) {
        let edits = self.entry(place, |member| {
            let object = member.value.as_object()?;
            let args = object.get_array("args")?;
            let first = args.elements.first().map(|first| range(first).start)?;
            // The command stands behind the words; what stands behind it stays.
            let end = match args.elements.get(words + 1) {
                Some(next) => range(next).start,
                None => range(args.elements.last()?).end,
            };
            let program = object.get("command").map(|command| range(&command.value))?;
            Some(vec![(program, quoted(command)), (first..end, String::new())])
        });
        self.edit(edits.unwrap_or_default());
    }

    fn text(&self) -> String {
        self.text.clone()
    }
}

fn read(name: String, object: &Object<'_>) -> Entry {
    let text = |name: &str| object.get_string(name).map(|text| text.value.clone().into_owned());
    let strings = |array: &Array<'_>| {
        let strings = array.elements.iter().filter_map(Value::as_string_lit);
        strings.map(|text| text.value.clone().into_owned()).collect()
    };
    let headers = object.get_object("headers").map(|headers| {
        let header = |member: &ObjectProp<'_>| {
            let value = member.value.as_string_lit()?.value.clone().into_owned();
            Some((member.name.as_str().to_owned(), value))
        };
        headers.properties.iter().filter_map(header).collect()
    });
    Entry {
        name,
        command: text("command"),
        args: object.get_array("args").map(strings).unwrap_or_default(),
        url: text("url"),
        headers: headers.unwrap_or_default(),
        variables: Vec::new(),
        has_env: object.get("env").is_some(),
    }
}

/// Words before the command, which becomes the first of those that were behind it.
fn before(object: &Object<'_>, program: &str, words: &[String]) -> Vec<Edit> {
    let Some(command) = object.get_string("command") else { return Vec::new() };
    let all: Vec<String> = words.iter().map(String::as_str).chain([&*command.value]).map(quoted).collect();
    let all = all.join(", ");
    let place = range(command);
    let Some(args) = object.get_array("args") else {
        return vec![(place, format!("{}, \"args\": [{all}]", quoted(program)))];
    };
    let edit = match args.elements.first() {
        Some(first) => (range(first).start..range(first).start, format!("{all}, ")),
        None => (range(args), format!("[{all}]")),
    };
    vec![(place, quoted(program)), edit]
}

/// A command in place of another, or of a URL.
fn instead(
    text: &str,
    object: &Object<'_>,
    program: &str,
    words: &[String],
    env: &[(String, String)],
) -> Vec<Edit> {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    let words = format!("[{}]", words.join(", "));
    let mut edits = Vec::new();
    let args = object.get("args").map(|args| range(&args.value));
    let behind = if args.is_some() { String::new() } else { format!("\"args\": {words}") };
    edits.extend(args.map(|args| (args, words)));
    if let Some(command) = object.get("command") {
        let behind = if behind.is_empty() { behind } else { format!(", {behind}") };
        edits.push((range(&command.value), format!("{}{behind}", quoted(program))));
        return edits;
    }
    let Some(url) = object.get("url") else { return Vec::new() };
    let place = range(url);
    let indent = indentation(text, place.start);
    let behind = if behind.is_empty() { behind } else { format!(",{indent}{behind}") };
    edits.push((place, format!("\"command\": {}{behind}", quoted(program))));
    edits.extend(object.get("type").map(|kind| (range(&kind.value), quoted("stdio"))));
    if let Some(headers) = object.get("headers") {
        let env: Vec<String> =
            env.iter().map(|(name, value)| format!("{}: {}", quoted(name), quoted(value))).collect();
        edits.push((range(headers), format!("\"env\": {{{}}}", env.join(", "))));
    }
    edits
}

/// What stands between the member before and the one that begins here: a line end with its indentation, or a space.
fn indentation(text: &str, at: usize) -> String {
    let line = text[..at].rfind('\n').map(|end| &text[end..at]);
    match line {
        Some(line) if line.trim().is_empty() => line.to_owned(),
        _ => " ".to_owned(),
    }
}

fn range(node: &impl Ranged) -> Range<usize> {
    node.range().start..node.range().end
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{
  // servers of mine
  "mcpServers": {
    "a": {
      "command": "npx", /* yes */
      "args": [
        "-y", // no question
        "${workspaceFolder}/x",
      ],
      "env": {"K": "v"}
    },
    "b": {"command": "b"},
    "r": {
      "type": "http",
      "url": "https://h/mcp",
      "headers": {"Authorization": "Bearer x"}
    }
  },
  "other": 1
}
"#;

    fn place(name: &str) -> Place {
        Place { map: 0, name: name.to_owned() }
    }

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    fn wrapped() -> JsonConfig {
        let mut config = JsonConfig::parse(TEXT).unwrap();
        let before = Change::Before { program: "/t".into(), words: words("record --") };
        config.change(&place("a"), &before);
        config.change(&place("b"), &before);
        let env = vec![("H".to_owned(), "Bearer x".to_owned())];
        let instead =
            Change::Instead { program: "/t".into(), words: words("record --url u"), env, pass: Vec::new() };
        config.change(&place("r"), &instead);
        config
    }

    #[test]
    fn only_what_is_addressed_changes() {
        let expected = TEXT
            .replace(r#""command": "npx""#, r#""command": "/t""#)
            .replace(r#""-y", //"#, r#""record", "--", "npx", "-y", //"#)
            .replace(r#"{"command": "b"}"#, r#"{"command": "/t", "args": ["record", "--", "b"]}"#)
            .replace(r#""type": "http""#, r#""type": "stdio""#)
            .replace(
                r#""url": "https://h/mcp""#,
                "\"command\": \"/t\",\n      \"args\": [\"record\", \"--url\", \"u\"]",
            )
            .replace(r#""headers": {"Authorization": "Bearer x"}"#, r#""env": {"H": "Bearer x"}"#);
        assert_eq!(wrapped().text(), expected);
    }

    #[test]
    fn what_was_comes_back_and_edits_stay() {
        let before = JsonConfig::parse(TEXT).unwrap();
        let mut config = wrapped();
        config.text = config.text.replace("\"other\": 1", "\"other\": 2");
        for name in ["a", "b", "r"] {
            assert!(config.restore(&place(name), &before));
        }
        assert_eq!(config.text(), TEXT.replace("\"other\": 1", "\"other\": 2"));
        assert!(!config.restore(&place("none"), &before));
    }

    #[test]
    fn words_before_a_command_can_be_taken_away_without_a_copy() {
        let mut config = wrapped();
        config.unwrap(&place("a"), "npx", 2);
        config.unwrap(&place("b"), "b", 2);
        let entries = config.entries();
        let entry = |name: &str| &entries.iter().find(|(_, entry)| entry.name == name).unwrap().1;
        assert_eq!(entry("a").command.as_deref(), Some("npx"));
        assert_eq!(entry("a").args, ["-y", "${workspaceFolder}/x"]);
        assert_eq!((entry("b").command.as_deref(), entry("b").args.len()), (Some("b"), 0));
    }

    #[test]
    fn every_map_of_servers_is_found() {
        for text in [
            r#"{"mcpServers": {"a": {"command": "x"}}}"#,
            r#"{"servers": {"a": {"command": "x"}}}"#,
            r#"{"mcp": {"servers": {"a": {"command": "x"}}}}"#,
        ] {
            assert_eq!(JsonConfig::parse(text).unwrap().entries().len(), 1, "{text}");
        }
    }

    #[test]
    fn what_is_no_json_is_told_with_its_place() {
        let error = JsonConfig::parse("{\n  \"a\": [1,\n}").err().unwrap();
        assert!(error.starts_with("3:1: ") || error.starts_with("2:"), "{error}");
        assert!(JsonConfig::parse("[]").err().unwrap().contains("no JSON object"));
    }
}
