//! `tapedeck demo`: a recording, its replay and a miss, with nothing but this program.
//!
//! Nothing here is staged: client and server are real processes on stdio, and what stands between them is started
//! as everybody starts it.

mod client;
pub(super) mod server;

use std::{
    ffi::OsString,
    fmt::Write as _,
    path::{Path, PathBuf},
};

use clap::Args;
use mcp_tapedeck::{
    exit_code::ExitCode,
    wire::{
        Span,
        jsonrpc::{self, Message},
        scan,
    },
};

use super::{args, failure::Failure, files, output, show, verdict};
use client::Client;

/// Record, replay and check a built-in server, in a few seconds
#[derive(Args, Debug)]
#[command(after_help = "Example:
  tapedeck demo")]
pub(super) struct DemoArgs {
    /// Put the files into this folder instead of a temporary one
    folder: Option<PathBuf>,
}

/// A client's message and how it is shown.
#[derive(Clone, Copy)]
struct Line {
    shown: &'static str,
    json: &'static str,
}

/// What the demo's client sends, in order.
const SESSION: [Line; 6] = [
    Line {
        shown: "initialize",
        json: r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"demo-client","version":"1.0.0"}}}"#,
    },
    Line {
        shown: "notifications/initialized",
        json: r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    },
    Line { shown: "tools/list", json: r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"# },
    Line {
        shown: "tools/call measure Oslo",
        json: r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"measure","arguments":{"city":"Oslo"},"_meta":{"progressToken":2}}}"#,
    },
    Line {
        shown: "resources/read demo://cities",
        json: r#"{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"demo://cities"}}"#,
    },
    Line {
        shown: "resources/read demo://moon",
        json: r#"{"jsonrpc":"2.0","id":4,"method":"resources/read","params":{"uri":"demo://moon"}}"#,
    },
];

/// What was never recorded.
const UNRECORDED: Line = Line {
    shown: "tools/call measure Lisbon",
    json: r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"measure","arguments":{"city":"Lisbon"}}}"#,
};

/// What goes wrong.
const FAULT: &str = "tools/call: error code=-32603 message=\"the thermometer fell off\"";

pub(super) fn run(args: &DemoArgs) -> Result<ExitCode, Failure> {
    let folder = folder(args.folder.as_deref())?;
    let (cassette, reports) = (folder.join("demo.json"), folder.join("reports"));
    if cassette.exists() {
        return Err(Failure::usage(format_args!("`{}` holds a demo already", folder.display()))
            .hint("give another folder, or none for a temporary one"));
    }
    let tapedeck =
        std::env::current_exe().map_err(|error| Failure::io("find", Path::new("tapedeck"), &error))?;
    let (file, report) = (cassette.display(), reports.display());

    say(format_args!(
        "1. Record: a client talks to a small weather server through\n     tapedeck record {file} -- SERVER\n"
    ))?;
    let mut record = words(&tapedeck, ["record".into(), cassette.clone().into(), "--".into()]);
    record.extend(words(&tapedeck, ["demo-server".into()]));
    let recorded = play(&record, &SESSION, true)?;

    say(format_args!("\n2. Look at it\n     tapedeck show {file}\n"))?;
    let loaded = files::load(&cassette)?;
    show::print(&loaded)?;

    say(format_args!(
        "\n3. Replay it: the same client, no server\n     tapedeck replay {file} --report {report}/\n"
    ))?;
    let mut folder_of_reports = reports.clone().into_os_string();
    folder_of_reports.push("/");
    let replay =
        words(&tapedeck, ["replay".into(), cassette.clone().into(), "--report".into(), folder_of_reports]);
    let replayed = play(&replay, &SESSION, false)?;
    let equal = recorded.iter().zip(&replayed).filter(|(recorded, replayed)| recorded == replayed).count();
    say(format_args!(
        "   {equal} of {} messages from the server are byte for byte the recorded ones: the thermometer stands still",
        recorded.len()
    ))?;

    say(format_args!("\n4. A miss: now the client asks for something that was never recorded"))?;
    play(&replay, &[&SESSION[..2], std::slice::from_ref(&UNRECORDED)].concat(), true)?;

    say(format_args!(
        "\n5. A fault: now the call fails, although it was recorded\n     tapedeck replay {file} --fault '{FAULT}'\n"
    ))?;
    let mut faulty = replay.clone();
    faulty.extend(["--fault".into(), FAULT.into()]);
    let broken = play(&faulty, &SESSION[..4], true)?;
    let is_broken = broken.last().is_some_and(|answer| answer.contains("thermometer"));

    say(format_args!("\n6. The verdict, as CI asks for it\n     tapedeck verdict {report}/\n"))?;
    let found = verdict::reports_at(&reports)?;
    say(format_args!("{}(exit status 1, for the miss)", verdict::Summary(&found)))?;

    say(format_args!(
        "\nThe files are in {}\nTry next:\n  tapedeck show {file} 'tools/call measure @1'\n  \
         edit an answer in {file}, then: tapedeck lint {file}\n  \
         tapedeck record everything.json -- npx -y @modelcontextprotocol/server-everything",
        folder.display()
    ))?;
    let as_it_should_be = recorded == replayed && is_broken && found.len() == 3;
    Ok(if as_it_should_be { ExitCode::Good } else { ExitCode::Bad })
}

fn folder(given: Option<&Path>) -> Result<PathBuf, Failure> {
    match given {
        Some(folder) => {
            let folder = args::absolute(folder)?;
            std::fs::create_dir_all(&folder).map_err(|error| Failure::io("create", &folder, &error))?;
            Ok(folder)
        }
        None => tempfile::Builder::new()
            .prefix("tapedeck-demo-")
            .tempdir()
            .map(tempfile::TempDir::keep)
            .map_err(|error| Failure::io("create a folder in", &std::env::temp_dir(), &error)),
    }
}

fn words<const N: usize>(program: &Path, arguments: [OsString; N]) -> Vec<OsString> {
    std::iter::once(program.as_os_str().to_owned()).chain(arguments).collect()
}

/// Sends the lines to a command; returns the server's messages in order.
fn play(command: &[OsString], lines: &[Line], shown: bool) -> Result<Vec<String>, Failure> {
    let mut client = Client::start(command)?;
    let mut received = Vec::new();
    for line in lines {
        if Message::read(line.json.as_bytes()).id().is_none() {
            client.send(line.json)?;
            continue;
        }
        let came = client.request(line.json)?;
        if shown {
            say(format_args!("   {:<30} {}", line.shown, in_short(&came)))?;
        }
        received.extend(came);
    }
    client.end()?;
    Ok(received)
}

/// What came for one request, on one line.
fn in_short(came: &[String]) -> String {
    let mut text = match came.len() {
        0 | 1 => String::new(),
        more => {
            let count = more as u64 - 1;
            format!("{}, then ", output::counted(count, "progress notification", "progress notifications"))
        }
    };
    let Some(answer) = came.last().map(|line| Message::read(line.as_bytes())) else { return text };
    let value = answer.outcome().unwrap_or_default();
    let at = |pointer| scan::pointer(value, Span::new(0, value.len()), pointer).map(|span| span.of(value));
    let _ = match (at("/code"), at("/message"), at("/content/0/text")) {
        (Some(code), Some(message), _) => {
            write!(text, "error {}: {}", String::from_utf8_lossy(code), jsonrpc::text(message))
        }
        (_, _, Some(content)) => {
            write!(text, "{}", jsonrpc::text(content).lines().collect::<Vec<_>>().join(", "))
        }
        _ => write!(text, "a result"),
    };
    text
}

fn say(text: std::fmt::Arguments<'_>) -> Result<(), Failure> {
    output::print(format_args!("{text}\n"))
}
