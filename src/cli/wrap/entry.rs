//! What a server's entry says, and what becomes of it.

use std::{collections::HashSet, env, path::Path};

use mcp_tapedeck::{store::shell, transport::http::origin::Origin};

use super::{
    super::connect,
    sheet::{Member, Server, Syntax},
};

/// A server as a configuration tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    pub command: Option<String>,
    pub args: Vec<String>,
    pub url: Option<String>,
    /// Headers with a value that stands in the file.
    pub headers: Vec<(String, String)>,
    /// Headers with the name of a variable that holds the value; a part may stand before it.
    pub variables: Vec<Sent>,
    /// It has variables of its own.
    pub has_env: bool,
    /// It has headers, of none perhaps, which would become variables.
    pub has_headers: bool,
    /// Why it can be neither wrapped nor left.
    pub wrong: Option<String>,
}

/// A header as `--header` names it: `NAME: BEFORE env:VARIABLE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub name: String,
    pub before: String,
    pub variable: String,
}

/// What stands before a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Front {
    None,
    Tapedeck,
    /// A program of another name with the words that `wrap` writes. It is tapedeck if a copy tells what it wraps.
    Alike,
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
    /// These words stand before its command.
    Before(Vec<String>),
    /// These words stand in place of its command or URL.
    Instead(Vec<String>),
}

impl Entry {
    pub(super) fn of(server: &Server, syntax: Syntax) -> Self {
        let texts = |name: &str| -> Vec<(String, String)> {
            let members = server.member(name).map(Member::members).unwrap_or_default();
            members.iter().filter_map(|one| Some((one.name.clone(), one.text()?.to_owned()))).collect()
        };
        let text = |name: &str| server.member(name).and_then(Member::text).map(str::to_owned);
        let args = server.member("args").map(Member::elements).unwrap_or_default();
        let variables = match syntax {
            Syntax::Json => Vec::new(),
            Syntax::Toml => {
                let bearer = text("bearer_token_env_var").map(|variable| Sent {
                    name: "Authorization".to_owned(),
                    before: "Bearer ".to_owned(),
                    variable,
                });
                let named = texts("env_http_headers").into_iter();
                let named = named.map(|(name, variable)| Sent { name, before: String::new(), variable });
                bearer.into_iter().chain(named).collect()
            }
        };
        Self {
            command: text("command"),
            args: args.iter().filter_map(|(_, text)| text.clone()).collect(),
            url: text("url"),
            headers: texts(syntax.headers()),
            variables,
            has_headers: ["headers", "http_headers", "env_http_headers", "bearer_token_env_var"]
                .iter()
                .any(|name| server.member(name).is_some()),
            has_env: server.member("env").or(server.member("env_vars")).is_some(),
            wrong: wrong(server),
        }
    }

    /// What stands before it. Programs are renamed and moved, so what `wrap` writes is known by its words too: the log
    /// beside the cassette, under its name.
    pub(super) fn front(&self) -> Front {
        let Some(program) = self.command.as_deref().map(Path::new) else { return Front::None };
        if !matches!(self.args.first().map(String::as_str), Some("record" | "replay")) {
            return Front::None;
        }
        let is_named_so = program.file_stem().is_some_and(|name| name == "tapedeck");
        if is_named_so || env::current_exe().is_ok_and(|ours| ours == program) {
            return Front::Tapedeck;
        }
        let log = self.given("--log").next();
        match self.cassette_path().map(log_beside) {
            Some(beside) if log == Some(&beside) => Front::Alike,
            _ => Front::None,
        }
    }

    /// The words of tapedeck's own that stand before what it wraps.
    fn words(&self) -> &[String] {
        let end = self.args.iter().position(|word| word == "--").unwrap_or(self.args.len());
        &self.args[..end]
    }

    /// What stands behind an option in those words, each time it is given.
    pub(super) fn given<'a>(&'a self, option: &'a str) -> impl Iterator<Item = &'a str> {
        let words = self.words();
        words.iter().enumerate().filter_map(move |(n, word)| match word.strip_prefix(option)? {
            "" => words.get(n + 1).map(String::as_str),
            value => value.strip_prefix('='),
        })
    }

    /// The name of the file in which a wrapped entry's cassette stands.
    pub(super) fn cassette(&self) -> Option<&str> {
        Path::new(self.cassette_path()?).file_name()?.to_str()
    }

    fn cassette_path(&self) -> Option<&str> {
        let bare = self.words().get(1).map(String::as_str).filter(|word| !word.starts_with('-'));
        self.given("--cassette").next().or(bare)
    }

    /// The headers that it sends, with the variables that hold their values once it is wrapped.
    pub(super) fn sent(&self) -> Vec<Sent> {
        let headers = self.headers.iter().enumerate().filter(|(_, (name, _))| !connect::is_refused(name));
        let headers = headers.map(|(n, (name, _))| Sent {
            name: name.clone(),
            before: String::new(),
            variable: variable(n),
        });
        let variables = self.variables.iter().filter(|sent| !connect::is_refused(&sent.name)).cloned();
        headers.chain(variables).collect()
    }

    /// The names of headers that nobody can have sent by `record`.
    pub(super) fn left_out(&self) -> Vec<&str> {
        let variables = self.variables.iter().map(|sent| &sent.name);
        let names = self.headers.iter().map(|(name, _)| name).chain(variables);
        names.map(String::as_str).filter(|name| connect::is_refused(name)).collect()
    }
}

/// The variable for the value of the header of this number, from 0.
pub(super) fn variable(n: usize) -> String {
    format!("TAPEDECK_HEADER_{}", n + 1)
}

/// The log of a cassette.
fn log_beside(cassette: &str) -> String {
    format!("{}.log", cassette.strip_suffix(".json").unwrap_or(cassette))
}

/// What about an entry is such that nobody can say what it means.
fn wrong(server: &Server) -> Option<String> {
    let Some(members) = &server.members else { return Some("it is no object".to_owned()) };
    let mut names = HashSet::new();
    if let Some(twice) = members.iter().find(|member| !names.insert(&member.name)) {
        return Some(format!("it has `{}` twice", twice.name));
    }
    for name in ["command", "url"] {
        if server.member(name).is_some_and(|member| member.text().is_none()) {
            return Some(format!("its `{name}` is no text"));
        }
    }
    let is_list = |member: &Member| matches!(&member.holds, super::sheet::Holds::List(_));
    if server.member("args").is_some_and(|member| !is_list(member)) {
        return Some("its `args` is no list".to_owned());
    }
    let others = |name| server.member(name).into_iter().flat_map(Member::members);
    let mut headers = others("headers").chain(others("http_headers")).chain(others("env_http_headers"));
    headers
        .find(|header| header.text().is_none())
        .map(|header| format!("its header `{}` is no text", header.name))
}

impl Mode {
    /// The cassette of a server. Two names that become one file name do not share it.
    pub(super) fn cassette(&self, name: &str, taken: &mut Vec<String>) -> String {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
        let stem: String = name.chars().map(|letter| if plain(letter) { letter } else { '-' }).collect();
        // A file of no name, one that is hidden and one that looks like an option are hard to find and to name.
        let stem = match stem.trim_start_matches(['.', '-']) {
            "" => "server".to_owned(),
            stem => stem.to_owned(),
        };
        let mut names = std::iter::once(stem.clone()).chain((2..).map(|n| format!("{stem}-{n}")));
        let name = names.find(|name| !taken.contains(name)).unwrap_or(stem);
        let path = format!("{}/{name}.json", self.folder);
        taken.push(name);
        path
    }

    /// What becomes of an entry; why it stays as it is.
    pub(super) fn decide(&self, entry: &Entry, cassette: &str, exists: bool) -> Result<Change, String> {
        let log = log_beside(cassette);
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        if let Some(wrong) = &entry.wrong {
            return Err(wrong.clone());
        }
        if entry.command.is_none() && entry.url.is_none() {
            return Err("it has neither a `command` nor a `url`".to_owned());
        }
        if entry.command.is_none() && entry.has_env && entry.has_headers {
            return Err("it has a `url` and an `env`; move one of them away".to_owned());
        }
        if self.replays {
            if !exists {
                return Err(format!("there is no {cassette}; record it first"));
            }
            return Ok(Change::Instead(words(&["replay", cassette, "--log", &log])));
        }
        let Some(url) = entry.url.as_deref().filter(|_| entry.command.is_none()) else {
            return Ok(Change::Before(words(&["record", "--cassette", cassette, "--log", &log, "--"])));
        };
        let sent = entry.sent();
        // What clients fill in, only they know.
        let address = (!url.contains("${")).then(|| Origin::of_url(url)).transpose();
        let address = address.map_err(|error| format!("`tapedeck record` does not reach {url}: {error}"))?;
        if sent.is_empty() {
            let path = address.map_or_else(String::new, |(_, path)| path);
            let (at, into) = (shell::word(Path::new(url)), shell::word(Path::new(cassette)));
            return Err(format!(
                "no header of it stands here, so clients may have to log in to {url} themselves, which nothing on stdio \
                 can do for them; to record it, run \
                 `tapedeck record --url {at} --listen 127.0.0.1:8123 --cassette {into}` \
                 and give the client http://127.0.0.1:8123{path}"
            ));
        }
        let mut words = words(&["record", "--cassette", cassette, "--log", &log, "--url", url]);
        for Sent { name, before, variable } in sent {
            words.extend(["--header".to_owned(), format!("{name}: {before}env:{variable}")]);
        }
        Ok(Change::Instead(words))
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
        assert_eq!(names, ["/c/a-b.json", "/c/a-b-2.json", "/c/x.json", "/c/a-b-3.json"]);
    }

    #[test]
    fn no_name_of_a_cassette_is_empty_or_hidden() {
        let mut taken = Vec::new();
        let names = ["", "..", "ü", "server", ".env"].map(|name| mode(false).cassette(name, &mut taken));
        let files =
            ["server", "server-2", "server-3", "server-4", "env"].map(|name| format!("/c/{name}.json"));
        assert_eq!(names, files);
    }

    #[test]
    fn a_server_that_clients_log_in_to_stays() {
        let mut entry = Entry { url: Some("https://h/mcp".into()), ..Entry::default() };
        for headers in [vec![], vec![("Host".to_owned(), "h".to_owned())]] {
            entry.headers = headers;
            let why = mode(false).decide(&entry, "/c/a.json", false).unwrap_err();
            assert!(why.contains("--url https://h/mcp --listen"), "{why}");
            assert!(why.ends_with("give the client http://127.0.0.1:8123/mcp"), "{why}");
        }
        let entry = Entry { url: Some("https://h/mcp?a=1&b=2".into()), ..Entry::default() };
        let why = mode(false).decide(&entry, "/my tapes/a.json", false).unwrap_err();
        assert!(why.contains("--url 'https://h/mcp?a=1&b=2' --listen"), "{why}");
        assert!(why.contains("--cassette '/my tapes/a.json'`") && why.ends_with("8123/mcp?a=1&b=2"), "{why}");
    }

    #[test]
    fn a_server_that_no_recorder_reaches_stays_with_the_reason() {
        let entry = |url: &str, headers| Entry { url: Some(url.into()), headers, ..Entry::default() };
        let header = vec![("X-Key".to_owned(), "k".to_owned())];
        for (url, why) in [
            ("ws://h/mcp", "neither with http:// nor with https://"),
            ("unix:///s.sock", "no address of a server"),
            ("http://a:b@h/mcp", "a name or a password"),
        ] {
            for headers in [vec![], header.clone()] {
                let told = mode(false).decide(&entry(url, headers), "/c/a.json", false).unwrap_err();
                assert!(told.contains(why) && !told.contains("--url"), "{told}");
            }
        }
        assert!(mode(false).decide(&entry("https://${HOST}/mcp", header), "/c/a.json", false).is_ok());
    }

    #[test]
    fn a_header_travels_in_a_variable() {
        let header = |name: &str| (name.to_owned(), "Bearer ${TOKEN}".to_owned());
        let headers = vec![header("content-length"), header("Authorization")];
        let entry = Entry { url: Some("https://h/mcp".into()), headers, ..Entry::default() };
        let Ok(Change::Instead(words)) = mode(false).decide(&entry, "/c/a.json", false) else {
            panic!("it is wrapped");
        };
        let words = words.join(" ");
        assert!(
            words.ends_with("--url https://h/mcp --header Authorization: env:TAPEDECK_HEADER_2"),
            "{words}"
        );
        assert_eq!(entry.left_out(), ["content-length"]);
    }

    #[test]
    fn what_was_not_recorded_is_not_replayed() {
        let entry = Entry { command: Some("npx".into()), ..Entry::default() };
        assert!(mode(true).decide(&entry, "/c/a.json", false).unwrap_err().contains("record it first"));
        assert!(mode(true).decide(&entry, "/c/a.json", true).is_ok());
    }

    #[test]
    fn words_of_wrap_are_known_behind_every_program() {
        let front = |command: &str, args: &str| {
            let args = args.split(' ').map(str::to_owned).collect();
            Entry { command: Some(command.into()), args, ..Entry::default() }.front()
        };
        for (command, args, expected) in [
            ("/bin/vcr", "record --cassette /c/a.json --log /c/a.log -- npx", Front::Alike),
            ("vcr.exe", "record --verbose --log=/c/a.log --cassette=/c/a.json --url u", Front::Alike),
            ("vcr", "replay /c/a.json --strict --log /c/a.log", Front::Alike),
            ("C:/tapedeck.exe", "replay a.json", Front::Tapedeck),
            ("vcr", "record --cassette /c/a.json -- npx", Front::None),
            ("vcr", "record --cassette /c/a.json --log /c/b.log -- npx", Front::None),
            ("vcr", "record --cassette /c/a.json -- npx --log /c/a.log", Front::None),
            ("vcr", "replay --log .log", Front::None),
            ("vcr", "run /c/a.json --log /c/a.log", Front::None),
            ("tapedeck", "run a.json", Front::None),
        ] {
            assert_eq!(front(command, args), expected, "{command} {args}");
        }
        assert_eq!(Entry::default().front(), Front::None);
    }

    #[test]
    fn what_tapedeck_was_given_is_read_in_both_spellings() {
        let words = |words: &str| words.split(' ').map(str::to_owned).collect();
        let entry = |args: &str| Entry { args: words(args), ..Entry::default() };
        assert_eq!(entry("record --cassette=/c/a.json -- x --cassette b").cassette(), Some("a.json"));
        assert_eq!(entry("record --log l --cassette /c/a.json").cassette(), Some("a.json"));
        assert_eq!(entry("replay /c/a.json --strict").cassette(), Some("a.json"));
        assert_eq!(entry("replay --strict -- a").cassette(), None);
    }
}
