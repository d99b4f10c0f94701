//! The README is true: its examples are the files that other tests run, and each of its commands works.

use std::{fs, path::Path, process::Command};

const README: &str = include_str!("../../README.md");
const TAPEDECK: &str = env!("CARGO_BIN_EXE_tapedeck");

/// Commands that build or run all of this, which a test of this cannot do; what runs them instead.
const ELSEWHERE: &[(&str, &str)] = &[
    ("cargo run --release -- demo", "the_first_command_shows_everything, with the binary at hand"),
    ("cargo test", "whoever runs this"),
    ("tapedeck run sum.json -- pytest test_run.py", "snippets::pytest_in_a_run"),
    (
        "tapedeck run everything.json --on-miss record --url https://mcp.example/mcp -- pytest",
        "on_miss::a_run_passes_on_to_a_url_and_its_test_command_is_no_server",
    ),
    ("cargo install --locked --path .", "the gate"),
];

/// The lines of the README's blocks in one language.
fn blocks(language: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = README.lines();
    while let Some(line) = lines.next() {
        if line.strip_prefix("```") == Some(language) {
            blocks.push(
                lines
                    .by_ref()
                    .take_while(|line| *line != "```")
                    .fold(String::new(), |all, line| all + line + "\n"),
            );
        }
    }
    blocks
}

#[test]
fn its_examples_are_the_files_that_are_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/snippets");
    for (file, language) in
        [("test_sum.py", "python"), ("test_run.py", "python"), ("sum.test.mjs", "js"), ("sum.rs", "rust")]
    {
        let text = fs::read_to_string(folder.join(file)).expect("the example is there");
        let shown: String = text
            .lines()
            .filter(|line| !line.starts_with("#[ignore"))
            .map(|line| format!("{line}\n"))
            .collect();
        assert!(blocks(language).contains(&shown), "{file} is not in the README as it stands");
        assert!(shown.lines().count() <= 24, "{file} is too long for a README");
    }
}

#[test]
fn its_configurations_are_json() {
    let configurations = blocks("json");
    assert!(configurations.len() >= 3);
    for text in configurations {
        let whole = if text.starts_with('{') { text.clone() } else { format!("{{{text}}}") };
        assert!(mcp_tapedeck::wire::scan::is_json(whole.as_bytes()), "{text}");
    }
}

#[test]
fn the_first_command_shows_everything() {
    assert!(README.contains("cargo run --release -- demo"));
    let demo = Command::new(TAPEDECK).arg("demo").output().expect("it runs");
    let shown = String::from_utf8_lossy(&demo.stdout);
    assert!(demo.status.success(), "{shown}");
    for part in ["Record:", "Replay it:", "A miss:", "A fault:", "The verdict"] {
        assert!(shown.contains(part), "no `{part}` in {shown}");
    }
}

#[test]
fn each_command_works() {
    let folder = tempfile::tempdir().expect("a folder");
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    // The reader has recorded a session and replayed it by now.
    let cassette = folder.path().join("everything.json");
    fs::copy(home.join("cassettes/everything.json"), &cassette).expect("a copy");
    let blobs = folder.path().join("everything.json.blobs");
    fs::create_dir(&blobs).expect("a folder");
    for blob in fs::read_dir(home.join("cassettes/everything.json.blobs")).expect("blobs") {
        let blob = blob.expect("a blob").path();
        fs::copy(&blob, blobs.join(blob.file_name().expect("a name"))).expect("a copy");
    }
    // They use Claude Code here.
    let configuration =
        "{\"mcpServers\": {\"everything\": {\"command\": \"npx\", \"args\": [\"everything\"]}}}";
    fs::write(folder.path().join(".mcp.json"), configuration).expect("it is written");
    let report = ["replay", "everything.json", "--report", "reports/"];
    assert!(run(folder.path(), TAPEDECK, &report).0, "a replay that nobody asks anything is good");

    let mut ran = 0;
    for command in blocks("sh").iter().flat_map(|block| block.lines()) {
        if ELSEWHERE.iter().any(|(known, _)| *known == command) {
            continue;
        }
        let (good, shown) = run(folder.path(), "sh", &["-c", command]);
        assert!(good, "{command}\n{shown}");
        ran += 1;
    }
    let left = fs::read_to_string(folder.path().join(".mcp.json")).expect("it is there");
    assert_eq!(left, configuration, "what was wrapped is taken back");
    assert!(ran >= 10, "only {ran} commands were found");
    assert!(folder.path().join("junit.xml").exists() && folder.path().join("everything.journal").exists());
}

/// By hand and by command: what the client gets, and what comes out of the README's own text.
#[test]
fn a_failure_case_is_what_the_client_gets() {
    let folder = tempfile::tempdir().expect("a folder");
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let recorded = fs::read_to_string(home.join("cassettes/everything.json")).expect("it is there");
    // Its only blob is in an answer that nobody asks for here.
    let recorded = recorded.replace("\"$blob\": ", "\"blob\": ");
    let call = |name: &str, arguments: &str| {
        let begin = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}"#;
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"{name}","arguments":{arguments}}}}}"#
        );
        let again = call.replace("\"id\":2", "\"id\":3");
        let line = format!("printf '%s\\n' '{begin}' '{call}' '{again}' | tapedeck replay failing.json");
        run(folder.path(), "sh", &["-c", &line]).1
    };

    let by_hand =
        blocks("json").into_iter().find(|block| block.contains("get-sum is busy")).expect("it is shown");
    let end = "\n    }\n  ]\n}\n";
    assert!(recorded.ends_with(end));
    let pasted = format!("{}\n    }},\n{by_hand}  ]\n}}\n", recorded.trim_end_matches(end));
    fs::write(folder.path().join("failing.json"), pasted).expect("it is written");
    let shown = call("get-sum", r#"{"a":2,"b":2}"#);
    assert!(shown.contains(r#""error":{"code":-32603,"message":"database is locked"}"#), "{shown}");

    fs::write(folder.path().join("everything.json"), recorded).expect("it is written");
    let commands =
        blocks("sh").into_iter().find(|block| block.contains("edit everything.json fail")).expect("shown");
    assert!(run(folder.path(), "sh", &["-e", "-c", &commands]).0, "{commands}");
    fs::rename(folder.path().join("everything.json"), folder.path().join("failing.json"))
        .expect("it is renamed");
    let shown = call("echo", r#"{"message":"last"}"#);
    let (failed, works) = (shown.find("database is locked"), shown.find("Echo: last"));
    assert!(failed.is_some() && failed < works, "{shown}");
}

/// Runs a command in a folder with this program first in its path; whether it ended well, and what it printed.
fn run(folder: &Path, program: &str, arguments: &[&str]) -> (bool, String) {
    let bin = Path::new(TAPEDECK).parent().expect("it stands in a folder").display().to_string();
    let path = format!("{bin}:{}", std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(folder)
        .env("PATH", path)
        .env("XDG_STATE_HOME", folder)
        .env("HOME", folder);
    let output = command.stdin(std::process::Stdio::null()).output().expect("it runs");
    let shown =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.success(), shown)
}
