//! One server of a configuration, and what becomes of it.

use std::path::Path;

/// Which entry of a configuration: its map of servers, by number, and its name in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub map: usize,
    pub name: String,
}

/// A server as a configuration tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    pub name: String,
    pub command: Option<String>,
    pub args: Vec<String>,
    pub url: Option<String>,
    /// Headers with a value that stands in the file.
    pub headers: Vec<(String, String)>,
    /// Headers with the name of a variable that holds the value; a part may stand before it.
    pub variables: Vec<(String, String, String)>,
    /// It has variables of its own.
    pub has_env: bool,
}

/// How servers are wrapped.
#[derive(Debug)]
pub(super) struct Mode {
    /// This program.
    pub program: String,
    /// Where the cassettes are.
    pub folder: String,
    pub replays: bool,
}

/// What becomes of an entry.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// The program and these words stand before its command.
    Before { program: String, words: Vec<String> },
    /// The program and these words stand in place of its command or URL.
    Instead {
        program: String,
        words: Vec<String>,
        /// Variables that it gets.
        env: Vec<(String, String)>,
        /// Variables of the client's that it needs.
        pass: Vec<String>,
    },
}

impl Entry {
    /// Whether tapedeck stands before it already.
    pub(super) fn is_wrapped(&self) -> bool {
        let program = self.command.as_deref().map(Path::new).and_then(Path::file_stem);
        let word = self.args.first().map(String::as_str);
        program.is_some_and(|name| name == "tapedeck") && matches!(word, Some("record" | "replay"))
    }

    /// What wraps an entry that `was` this as this one is wrapped; none where no cassette is named.
    pub(super) fn wrapped_from(&self, was: &Self) -> Option<Change> {
        let words: Vec<&str> = self.args.iter().map(String::as_str).collect();
        let (cassette, replays) = match words[..] {
            ["record", "--cassette", cassette, ..] => (cassette, false),
            ["replay", cassette, ..] => (cassette, true),
            _ => return None,
        };
        let mode = Mode { program: self.command.clone()?, folder: String::new(), replays };
        mode.decide(was, cassette, true).ok()
    }

    /// Whether its arguments are those, and no more, that replay it in place of a server.
    pub(super) fn has_our_words(&self) -> bool {
        matches!(&self.args[..], [replay, _, log, _] if replay == "replay" && log == "--log")
    }

    /// The command that stands behind the `--` of a wrapped entry, and how many words stand before it.
    pub(super) fn wrapped_command(&self) -> Option<(&str, usize)> {
        let dashes = self.args.iter().position(|word| word == "--")?;
        Some((self.args.get(dashes + 1)?, dashes + 1))
    }
}

impl Mode {
    /// The cassette of a server. Two names that become one file name do not share it.
    pub(super) fn cassette(&self, name: &str, taken: &mut Vec<String>) -> String {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
        let stem: String = name.chars().map(|letter| if plain(letter) { letter } else { '-' }).collect();
        let stem = if stem.starts_with('.') { format!("-{stem}") } else { stem };
        let mut names = std::iter::once(stem.clone()).chain((2..).map(|n| format!("{stem}-{n}")));
        let name = names.find(|name| !taken.contains(name)).unwrap_or(stem);
        let path = format!("{}/{name}.json", self.folder);
        taken.push(name);
        path
    }

    /// What becomes of an entry; why it stays as it is.
    pub(super) fn decide(&self, entry: &Entry, cassette: &str, exists: bool) -> Result<Change, String> {
        let program = self.program.clone();
        let log = format!("{}.log", cassette.strip_suffix(".json").unwrap_or(cassette));
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        if entry.is_wrapped() {
            return Err("tapedeck stands before it, and what it was is not known any more".to_owned());
        }
        if self.replays {
            if entry.command.is_none() && entry.url.is_none() {
                return Err("it has neither a `command` nor a `url`".to_owned());
            }
            if !exists {
                return Err(format!("there is no {cassette}; record it first"));
            }
            let words = words(&["replay", cassette, "--log", &log]);
            return Ok(Change::Instead { program, words, env: Vec::new(), pass: Vec::new() });
        }
        if entry.command.is_some() {
            let words = words(&["record", "--cassette", cassette, "--log", &log, "--"]);
            return Ok(Change::Before { program, words });
        }
        let Some(url) = &entry.url else {
            return Err("it has neither a `command` nor a `url`".to_owned());
        };
        if entry.headers.is_empty() && entry.variables.is_empty() {
            return Err(format!(
                "clients log in to {url} themselves, which nothing between can do for them; to record it, run \
                 `tapedeck record --url {url} --listen 127.0.0.1:8123 --cassette {cassette}` \
                 and give the client http://127.0.0.1:8123 with the same path"
            ));
        }
        if entry.has_env {
            return Err("it has a `url` and an `env`; move one of them away".to_owned());
        }
        let mut words = words(&["record", "--cassette", cassette, "--log", &log, "--url", url]);
        let mut env = Vec::new();
        for (n, (name, value)) in (1..).zip(&entry.headers) {
            let variable = format!("TAPEDECK_HEADER_{n}");
            words.extend(["--header".to_owned(), format!("{name}: env:{variable}")]);
            env.push((variable, value.clone()));
        }
        let mut pass = Vec::new();
        for (name, before, variable) in &entry.variables {
            words.extend(["--header".to_owned(), format!("{name}: {before}env:{variable}")]);
            pass.push(variable.clone());
        }
        Ok(Change::Instead { program, words, env, pass })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(replays: bool) -> Mode {
        Mode { program: "/bin/tapedeck".into(), folder: "/c".into(), replays }
    }

    #[test]
    fn names_that_are_alike_get_files_of_their_own() {
        let mut taken = Vec::new();
        let names = ["a/b", "a b", "../x", "a-b"].map(|name| mode(false).cassette(name, &mut taken));
        assert_eq!(names, ["/c/a-b.json", "/c/a-b-2.json", "/c/-..-x.json", "/c/a-b-3.json"]);
    }

    #[test]
    fn a_server_that_clients_log_in_to_stays() {
        let entry = Entry { url: Some("https://h/mcp".into()), ..Entry::default() };
        let why = mode(false).decide(&entry, "/c/a.json", false).unwrap_err();
        assert!(why.contains("--url https://h/mcp --listen"), "{why}");
    }

    #[test]
    fn a_header_travels_in_a_variable() {
        let headers = vec![("Authorization".to_owned(), "Bearer ${TOKEN}".to_owned())];
        let entry = Entry { url: Some("https://h/mcp".into()), headers, ..Entry::default() };
        let Ok(Change::Instead { words, env, .. }) = mode(false).decide(&entry, "/c/a.json", false) else {
            panic!("it is wrapped");
        };
        assert!(
            words.join(" ").ends_with("--url https://h/mcp --header Authorization: env:TAPEDECK_HEADER_1")
        );
        assert!(!words.join(" ").contains("TOKEN"));
        assert_eq!(env, [("TAPEDECK_HEADER_1".to_owned(), "Bearer ${TOKEN}".to_owned())]);
    }

    #[test]
    fn what_was_not_recorded_is_not_replayed() {
        let entry = Entry { command: Some("npx".into()), ..Entry::default() };
        assert!(mode(true).decide(&entry, "/c/a.json", false).unwrap_err().contains("record it first"));
        assert!(mode(true).decide(&entry, "/c/a.json", true).is_ok());
    }
}
