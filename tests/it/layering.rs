//! Which module may use which: the table that the crate's architecture page describes, held by a test.
//!
//! The source is read as tokens, not compiled, so it is the written path that counts: `crate::store::fold` and
//! `use crate::{store::fold, wire}` are both seen, a re-export that hides where something comes from is not.

mod tokens;

use std::fs;
use std::path::{Path, PathBuf};

use tokens::{Used, used_paths};

/// One row of the table.
struct Row {
    /// The module under `src/`.
    module: &'static str,
    /// The modules of ours that it may use, besides itself.
    may_use: &'static [&'static str],
    /// The paths outside the crate that it must not touch, by prefix.
    never: &'static [&'static [&'static str]],
}

/// No clock, no file, no socket, no thread, no process, no environment, no randomness: the core is a function of what
/// it is given.
const WORLD: &[&str] = &[
    "std::env",
    "std::fs",
    "std::net",
    "std::os",
    "std::process",
    "std::thread",
    "std::time::Instant",
    "std::time::SystemTime",
    "std::io::stderr",
    "std::io::stdin",
    "std::io::stdout",
    "fs_err",
    "getrandom",
    "jiff::Timestamp::now",
    "jiff::Zoned",
    "rustix",
    "signal_hook",
    "tempfile",
    "tokio",
];
/// Payloads are text between the wire and the file; a tree of values loses how numbers and strings were spelled.
const TREE: &[&str] = &["serde_json::Value", "serde_json::Map", "serde_json::json", "serde_json::to_value"];
/// Arguments are the command line's affair.
const ARGUMENTS: &[&str] = &["clap", "clap_complete"];
/// Sockets belong to the transports.
const SOCKETS: &[&str] = &["std::net", "std::os::unix::net", "tokio::net", "hyper", "rustls"];

/// The whole table. What a module may not use is as important as what it may: no arrow turns back.
const TABLE: &[Row] = &[
    Row { module: "ahead", may_use: &[], never: &[WORLD, TREE, ARGUMENTS] },
    Row { module: "exit_code", may_use: &[], never: &[WORLD, TREE, ARGUMENTS] },
    Row { module: "wire", may_use: &[], never: &[WORLD, TREE, ARGUMENTS] },
    Row { module: "traffic", may_use: &["wire"], never: &[WORLD, TREE, ARGUMENTS] },
    Row { module: "cassette", may_use: &["ahead", "traffic", "wire"], never: &[WORLD, TREE, ARGUMENTS] },
    Row {
        module: "edit",
        may_use: &["cassette", "fault", "traffic", "wire"],
        never: &[WORLD, TREE, ARGUMENTS],
    },
    Row { module: "redact", may_use: &["cassette", "traffic", "wire"], never: &[WORLD, TREE, ARGUMENTS] },
    Row {
        module: "record",
        may_use: &["cassette", "redact", "traffic", "wire"],
        never: &[WORLD, TREE, ARGUMENTS],
    },
    Row { module: "report", may_use: &["cassette", "traffic", "wire"], never: &[WORLD, TREE, ARGUMENTS] },
    Row {
        module: "fault",
        may_use: &["cassette", "report", "traffic", "wire"],
        never: &[WORLD, TREE, ARGUMENTS],
    },
    Row {
        module: "replay",
        may_use: &["ahead", "cassette", "fault", "lint", "redact", "report", "traffic", "wire"],
        never: &[WORLD, TREE, ARGUMENTS],
    },
    Row { module: "lint", may_use: &["cassette", "traffic", "wire"], never: &[WORLD, TREE, ARGUMENTS] },
    Row { module: "transport", may_use: &["traffic", "wire"], never: &[TREE, ARGUMENTS] },
    Row {
        module: "store",
        may_use: &["cassette", "record", "redact", "report", "traffic", "wire"],
        never: &[TREE, ARGUMENTS, SOCKETS],
    },
    Row {
        module: "proxy",
        may_use: &[
            "cassette",
            "fault",
            "record",
            "redact",
            "replay",
            "report",
            "store",
            "traffic",
            "transport",
            "wire",
        ],
        never: &[TREE, ARGUMENTS],
    },
];

/// The binary target: it sees the library as any other user does, so the compiler already checks it; and the crate's
/// root, which only lists modules.
const OUTSIDE: &[&str] = &["cli", "lib", "main"];

#[test]
fn no_module_uses_what_the_table_forbids() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let files = rust_files(&source);
    assert!(files.len() > 10, "src/ was not found whole: {} files in {}", files.len(), source.display());
    let mut faults = Vec::new();
    for file in &files {
        let text = fs::read_to_string(file).expect("a source file is readable");
        let module = module_path(file.strip_prefix(&source).expect("it lies below src/"));
        for fault in faults_in(&module, &text) {
            faults.push(format!("src/{}:{fault}", file.strip_prefix(&source).expect("below").display()));
        }
    }
    assert!(faults.is_empty(), "{} uses that the layering forbids:\n{}", faults.len(), faults.join("\n"));
}

/// All faults of one file, as `LINE: sentence`.
fn faults_in(module: &[String], text: &str) -> Vec<String> {
    let Some(top) = module.first().filter(|top| !OUTSIDE.contains(&top.as_str())) else { return Vec::new() };
    let Some(row) = TABLE.iter().find(|row| row.module == top) else {
        return vec![format!(
            "1: module `{top}` has no row in the table of tests/it/layering.rs; give it one"
        )];
    };
    used_paths(module, text).into_iter().filter_map(|used| fault(row, &used)).collect()
}

fn fault(row: &Row, used: &Used) -> Option<String> {
    let line = used.line;
    if let ["crate", module, ..] = used.segments().as_slice() {
        let is_module = TABLE.iter().any(|row| row.module == *module) || OUTSIDE.contains(module);
        let allowed = *module == row.module || row.may_use.contains(module) || !is_module;
        return (!allowed).then(|| format!("{line}: `{}` must not use `{}`", row.module, used.path));
    }
    let touches = |prefix: &&str| {
        used.path.strip_prefix(*prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    let prefix = row.never.iter().copied().flatten().find(|prefix| touches(prefix))?;
    Some(format!("{line}: `{}` must not touch `{prefix}` (found `{}`)", row.module, used.path))
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a source folder is readable") {
            let path = entry.expect("an entry is readable").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// `cassette/model.rs` is `cassette::model`, `cassette/mod.rs` is `cassette`.
fn module_path(file: &Path) -> Vec<String> {
    let mut path: Vec<String> =
        file.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
    path.pop_if(|last| last == "mod");
    path
}

#[test]
fn a_forbidden_use_is_found_however_it_is_written() {
    let cases: &[(&str, &str, &str)] = &[
        ("wire::lines", "use crate::cassette::model::Id;", "must not use `crate::cassette::model::Id`"),
        ("wire::lines", "use crate::{wire::Span, store::{self}};", "must not use `crate::store`"),
        ("wire::lines", "use super::super::store::fold;", "must not use `crate::store::fold`"),
        ("cassette", "fn f() { super::record::fold() }", "must not use `crate::record::fold`"),
        ("replay::queue", "fn f() -> std::time::Instant { g() }", "must not touch `std::time::Instant`"),
        ("replay::queue", "use std::{io, time::{Duration, Instant}};", "must not touch `std::time::Instant`"),
        ("record", "use std::fs;", "must not touch `std::fs`"),
        ("redact", "fn f(v: serde_json::Value) {}", "must not touch `serde_json::Value`"),
        ("transport::stdio", "use crate::replay::Replayer;", "must not use `crate::replay::Replayer`"),
        ("store::fold", "use std::net::TcpStream;", "must not touch `std::net`"),
        ("proxy::record", "use clap::Parser;", "must not touch `clap`"),
        ("elsewhere", "", "has no row"),
    ];
    for (module, text, expected) in cases {
        let module: Vec<String> = module.split("::").map(String::from).collect();
        let faults = faults_in(&module, text);
        assert!(
            faults.len() == 1 && faults[0].contains(expected),
            "{text:?} in {module:?}: expected one fault that {expected}, found {faults:?}"
        );
    }
}

#[test]
fn an_allowed_use_is_no_fault() {
    let cases: &[(&str, &str)] = &[
        ("cassette::model", "use super::spelling::Spelling; use crate::wire::Span;"),
        (
            "cassette::model",
            "// use crate::store;\n/* use std::fs; */ const TEXT: &str = \"use std::fs::read;\";",
        ),
        ("cassette::model", "const RAW: &str = r#\"\"use std::fs;\"#; fn f<'a>(c: &'a char) { g('\"') }"),
        (
            "cassette::model",
            "#[cfg(test)]\nmod tests { use std::fs; fn f() { { std::env::args(); } } }\nfn g() {}",
        ),
        ("cassette::model", "struct S {\n #[cfg(test)]\n hook: Option<std::fs::File>,\n}\nfn g() {}"),
        ("cassette::model", "struct S {\n #[cfg(test)]\n hook: Option<std::fs::File>\n}\nfn g() {}"),
        ("cassette::model", "use std::time::Duration; use std::io::{Read, Write};"),
        ("proxy::record", "use crate::{replay::Replayer, store}; use std::time::Instant;"),
        ("main", "use clap::Parser; mod cli;"),
    ];
    for (module, text) in cases {
        let module: Vec<String> = module.split("::").map(String::from).collect();
        assert_eq!(faults_in(&module, text), [""; 0], "{text:?} in {module:?}");
    }
}
