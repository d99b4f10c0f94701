//! Whatever a person does in between, what comes back is the file with that and nothing else.

mod configs;

use std::fs;

use self::configs::{CONFIGS, LEFT};
use super::{entry::Mode, plan::Plan};

/// What a person does: a name, and texts with what stands in their place then.
const EDITS: &[(&str, &[(&str, &str)])] = &[
    ("nothing", &[]),
    (
        "a server is added",
        &[
            ("\"mcpServers\": {\n", "\"mcpServers\": {\n    \"new\": {\"command\": \"n\" /* n */},\n"),
            ("\"mcpServers\":{\"", "\"mcpServers\":{\"new\":{\"command\":\"n\"},\""),
            ("\"servers\": {\"a\"", "\"servers\": {\"new\": {\"command\": \"n\", \"args\": []}, \"a\""),
            ("# what I use", "[mcp_servers.new]\ncommand = 'n' # n"),
            ("[mcp_servers]\n", "[mcp_servers]\nnew = { command = 'n' }\n"),
        ],
    ),
    (
        "a member is added",
        &[
            ("\"timeout\": 5,", "\"timeout\": 6, \"more\": {\"a\": [1]},"),
            ("// the first", "\"disabled\": false,"),
            ("\"k\"}", "\"k\"}, \"more\": 1"),
            ("\"x\": 1", "\"x\": 2"),
            ("startup_timeout_sec = 5", "startup_timeout_sec = 6 # longer"),
            ("enabled = true", "enabled = false\nrequired = true"),
        ],
    ),
    (
        "arguments are changed",
        &[("\"-y\"", "\"-y\", \"--more\""), ("'C:\\x'", "'D:\\x', \"y\""), ("\"first\"", "\"second\"")],
    ),
    ("arguments are removed", &[("\"-y\"]", "]"), ("\"first\"]", "]")]),
    (
        "a header is changed",
        &[
            ("\"Bearer ${TOKEN}\"", "\"Basic ${TOKEN}\""),
            ("\"k\"", "\"other\" "),
            ("\"${input:key}\"", "\"fixed\""),
        ],
    ),
    ("an address is changed", &[("https://h/", "https://other/"), ("https:\\/\\/h/", "https://other/")]),
    (
        "an entry is renamed",
        &[
            ("\"a\":", "\"alpha\":"),
            ("\"r\":", "\"rho\":"),
            ("[mcp_servers.a", "[mcp_servers.alpha"),
            ("[mcp_servers.r", "[mcp_servers.rho"),
            ("a = { command", "alpha = { command"),
        ],
    ),
    ("comments are changed", &[("// ", "//"), ("#", "# #"), ("/* none */", ""), (" /* , */", "")]),
];

/// What a person does with the words that are ours.
const MOVES: &[(&str, &[(&str, &str)])] = &[
    ("the cassette is moved", &[("/tapes/", "/elsewhere/")]),
    (
        "the words are laid out anew",
        &[("\"record\", \"--cassette\", ", "\"record\",\n  \"--cassette\"  ,\n ")],
    ),
    (
        "an option is added",
        &[("\"--log\"", "\"--verbose\", \"--log\""), ("\"record\", ", "\"record\", \"--keep-journal\",")],
    ),
    ("the program is moved", &[("/bin/tapedeck", "/usr/local/bin/tapedeck")]),
    ("the program is renamed", &[("/bin/tapedeck", "/opt/td-1.2")]),
];

/// Without the entry `a`, where marks say which that is.
fn removed(text: &str) -> String {
    for (begin, end) in [("/*<*/", "/*>*/"), ("[mcp_servers.a] #<", "#>")] {
        if let Some((before, rest)) = text.split_once(begin) {
            return format!("{before}{}", rest.split_once(end).expect("an end").1);
        }
    }
    text.to_owned()
}

/// How a file is written: line ends, byte order mark, an end without a line end.
fn spelled(text: &str) -> [String; 4] {
    let crlf = text.replace('\n', "\r\n");
    [text.to_owned(), format!("\u{feff}{crlf}"), text.trim_end().to_owned(), crlf]
}

struct Story {
    folder: tempfile::TempDir,
    file: std::path::PathBuf,
}

impl Story {
    fn new(name: &str, text: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join(name);
        let story = Self { folder, file };
        story.write(text);
        fs::create_dir(story.folder.path().join("tapes")).expect("a folder");
        for name in [
            "a",
            "b",
            "c",
            "d",
            "e",
            "f",
            "r",
            "s",
            "t",
            "u",
            "h",
            "h2",
            "h3",
            "h4",
            "h5",
            "dots",
            "alpha",
            "my-server",
        ] {
            fs::write(story.folder.path().join(format!("tapes/{name}.json")), "{}").expect("a cassette");
        }
        story
    }

    fn write(&self, text: &str) {
        fs::write(&self.file, text).expect("it is written");
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.file).expect("it is read")
    }

    fn wrap(&self, replays: bool) -> Vec<String> {
        let folder = self.folder.path().join("tapes").to_str().expect("text").to_owned();
        self.carry_out(Some(&Mode { program: "/bin/tapedeck".to_owned(), folder, replays })).0
    }

    /// What is said, and whether a server was left.
    fn undo(&self) -> (Vec<String>, bool) {
        self.carry_out(None)
    }

    fn carry_out(&self, mode: Option<&Mode>) -> (Vec<String>, bool) {
        let plan = Plan::of(&self.file, mode).unwrap_or_else(|failure| panic!("{failure}"));
        let more = plan.carry_out(&self.file).unwrap_or_else(|failure| panic!("{failure}"));
        (plan.told.iter().cloned().chain(more).collect(), plan.has_left)
    }

    fn copies(&self) -> usize {
        let names = fs::read_dir(self.folder.path()).expect("a folder");
        let names = names.map(|entry| entry.expect("a name").file_name().to_string_lossy().into_owned());
        names.filter(|name| name.contains("before-tapedeck")).count()
    }
}

/// What differs after the file was wrapped, edited, wrapped again or not, and left.
fn differences(
    name: &str,
    text: &str,
    edit: impl Fn(&str) -> String,
    expected: &str,
    what: &str,
) -> Vec<String> {
    // A replay's words stand where arguments and addresses stood.
    let is_in_words = ["arguments", "address", "comments"].iter().any(|word| what.contains(word));
    let mut wrong = Vec::new();
    for (first, again) in [
        (false, None),
        (true, None),
        (false, Some(false)),
        (false, Some(true)),
        (true, Some(false)),
        (true, Some(true)),
    ] {
        if first && is_in_words {
            continue;
        }
        let story = Story::new(name, text);
        let told = story.wrap(first);
        let is_left = |line: &&String| line.contains("left as it is") && !LEFT.contains(&&line[..3]);
        assert_eq!(told.iter().find(is_left), None, "{name} is wrapped");
        let wrapped = story.text();
        story.write(&edit(&wrapped));
        if let Some(replays) = again {
            story.wrap(replays);
        }
        let before = story.text();
        let (told, has_left) = story.undo();
        let after = story.text();
        let keeps = story.copies() > 0 && after == text;
        if after != expected || has_left || keeps {
            let lines = diffy::create_patch(expected, &after);
            wrong.push(format!(
                "== {name}, {what}, replays {first}, again {again:?}, left {has_left}, keeps a copy {keeps}\n{before}\n--\n{lines}\n{told:#?}"
            ));
        }
    }
    wrong
}

#[test]
fn what_was_comes_back_with_what_a_person_did_in_between() {
    let (mut count, mut wrong) = (0, Vec::new());
    for (at, (name, text)) in CONFIGS.iter().enumerate() {
        let spellings = spelled(text);
        // Two of the spellings for each edit, so that all come to each configuration.
        let of = |n: usize| [&spellings[(at + n) % 4], &spellings[(at + n + 1) % 4]];
        for (n, (what, changes)) in EDITS.iter().enumerate() {
            for text in of(n) {
                let line_end = if text.contains('\r') { "\r\n" } else { "\n" };
                let edit = |text: &str| {
                    let text = text.replace("\r\n", "\n");
                    changes
                        .iter()
                        .fold(text, |text, (old, new)| text.replace(old, new))
                        .replace('\n', line_end)
                };
                let expected = edit(text);
                if *what == "nothing" || expected != *text {
                    wrong.extend(differences(name, text, edit, &expected, what));
                    count += 1;
                }
            }
        }
        for text in &spellings[..2] {
            let expected = removed(text);
            if expected != *text {
                wrong.extend(differences(name, text, removed, &expected, "an entry is removed"));
                count += 1;
            }
        }
        for (n, (what, changes)) in MOVES.iter().enumerate() {
            let edit =
                |text: &str| changes.iter().fold(text.to_owned(), |text, (old, new)| text.replace(old, new));
            for text in of(n) {
                wrong.extend(differences(name, text, edit, text, what));
            }
        }
    }
    assert!(wrong.is_empty(), "{} are otherwise:\n{}", wrong.len(), wrong[..wrong.len().min(5)].join("\n"));
    assert!(count > 60, "{count} edits acted");
}

#[test]
fn variables_beside_headers_in_dotted_keys_stay_variables() {
    let text = "[mcp_servers.dots]\nurl = \"u\"\nhttp_headers.A = \"a\"\nhttp_headers.B = \"b\"\n";
    let edit = |text: &str| {
        text.replace("env.TAPEDECK_HEADER_2", "env.MORE = \"m\" # mine\nenv.TAPEDECK_HEADER_2")
            .replace("http_headers.B", "env.MORE = \"m\" # mine\nhttp_headers.B")
    };
    for replays in [false, true] {
        let story = Story::new("config.toml", text);
        story.wrap(replays);
        let wrapped = story.text();
        story.write(&edit(&wrapped));
        let (told, has_left) = story.undo();
        assert!(!has_left, "{told:?}\n{wrapped}");
        assert_eq!(story.text(), edit(text));
    }
}

#[test]
fn a_client_that_lays_its_configuration_out_anew_loses_nothing() {
    let value = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("it is JSON");
    for name in ["plain.json", "vscode.json", "settings.json"] {
        let text = CONFIGS.iter().find(|(known, _)| *known == name).expect("it is there").1;
        for replays in [false, true] {
            let story = Story::new(name, text);
            story.wrap(replays);
            story.write(&serde_json::to_string_pretty(&value(&story.text())).expect("JSON"));
            let (told, has_left) = story.undo();
            assert!(!has_left && story.copies() == 0, "{name}: {told:?}");
            assert_eq!(value(&story.text()), value(text), "{name}");
        }
    }
}
