//! Benchmarks of the program as it is used: started as a process, talked to over its pipes.
//!
//! `just bench` runs all of them, `just bench replay` those whose name has that word, `just bench memory --full` the
//! long form. Each compares with a baseline that runs in turn with it on the same machine; a figure by itself says
//! little. Nothing here fails because of a time: goals are printed beside the figures.
//!
//! Started without `--bench`, as `cargo test --benches` does, it only checks itself.
#![expect(clippy::print_stdout, reason = "the figures are what a person runs this for")]

mod http;
mod idle;
mod measure;
mod memory;
mod peers;
mod record;
mod replay;
mod start;
mod streams;
mod tape;

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use peers::Writes;

/// What was asked for.
pub(crate) struct Options {
    /// Whole sizes where the default is smaller.
    full: bool,
}

/// What words select it by, and what it does.
type Benchmark = (&'static str, fn(&Options));

const BENCHMARKS: &[Benchmark] = &[
    ("record latency", record::latency),
    ("record throughput", record::throughput),
    ("replay throughput", replay::throughput),
    ("replay lookup", replay::lookup),
    ("replay idle plan", idle::plan),
    ("start", start::first_answer),
    ("size", start::binary_size),
    ("memory record", memory::recording),
    ("memory replay", memory::loading),
    ("http record throughput", http::record_throughput),
    ("http record latency", http::record_latency),
    ("http event latency", streams::event_latency),
    ("http proxy throughput", http::proxy_throughput),
    ("http replay throughput", http::replay_throughput),
    ("http memory streams", streams::open_streams),
];

fn main() {
    let words: Vec<String> = env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [peers::LINE_SERVER, size, writes] => {
            let writes = if writes == Writes::Joined.word() { Writes::Joined } else { Writes::Each };
            let size = size.parse().expect("a number of bytes");
            peers::serve(size, writes).expect("the client reads and writes");
        }
        [http::HTTP_SERVER] => http::serve().expect("a port is free"),
        ref words if words.contains(&"--bench") => bench(words),
        _ => {
            measure::self_check();
            peers::self_check();
            http::self_check();
            tape::self_check();
            idle::self_check();
        }
    }
}

fn bench(words: &[&str]) {
    let options = Options { full: words.contains(&"--full") };
    let wanted: Vec<_> = words.iter().filter(|word| !word.starts_with("--")).collect();
    for (name, run) in BENCHMARKS {
        if wanted.iter().all(|word| name.contains(**word)) {
            println!("{name}");
            run(&options);
        }
    }
}

/// This program once more.
pub(crate) fn this_program() -> Command {
    Command::new(env::current_exe().expect("a running program has a path"))
}

/// The program that is measured; `TAPEDECK_PROGRAM` names another build of it.
pub(crate) fn tapedeck() -> Command {
    Command::new(env::var_os("TAPEDECK_PROGRAM").unwrap_or_else(|| env!("CARGO_BIN_EXE_tapedeck").into()))
}

/// A folder on the disk that the build is on; `/tmp` may be memory.
pub(crate) fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder")
}

/// `socat` between its stdin and stdout and a server, with the server's words; nothing where it is not installed.
pub(crate) fn socat(server: &[String]) -> Option<Command> {
    let found = env::split_paths(&env::var_os("PATH")?).any(|folder| folder.join("socat").is_file());
    if !found {
        println!("  SKIPPED: socat is not installed (apt-get install socat)");
        return None;
    }
    // Its addresses give `:`, `,` and quotes a meaning; a bare name in the working folder needs none of them.
    let program = env::current_exe().expect("a running program has a path");
    let (folder, name) = (program.parent(), program.file_name());
    let mut command = Command::new("socat");
    let exec = format!("EXEC:./{} {}", Path::new(name.unwrap_or_default()).display(), server.join(" "));
    command.current_dir(folder.unwrap_or(&PathBuf::new())).args(["-", &exec]);
    Some(command)
}
