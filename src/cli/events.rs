//! `tapedeck events`: what became of the messages of replays.

use std::{
    fmt::Write as _,
    fs::File,
    io::{BufRead as _, BufReader, Write as _},
    path::PathBuf,
};

use clap::{Args, ValueEnum, builder::PossibleValue};
use mcp_tapedeck::{
    exit_code::ExitCode,
    report::events::{Event, Filter, Outcome},
};

use super::{failure::Failure, output};

/// Show what became of the messages of replays
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tapedeck events events.jsonl
  tapedeck events events.jsonl --method tools/call --outcome fault
  tapedeck events events.jsonl --correlation-id 4bf92f3577b34da6a3ce929d0e0e4736 --json

A replay appends its events where `--events events.jsonl` says so, each when its outcome is known. The columns: number
in order of arrival, time, server and take and session, method and name, id, correlation id, outcome, fault, time until
the answer, recorded exchange.")]
pub(super) struct EventsArgs {
    /// The file
    #[arg(value_name = "F")]
    path: PathBuf,

    /// Only those of this server
    #[arg(long, value_name = "NAME")]
    server: Option<String>,

    /// Only those of this method
    #[arg(long, value_name = "METHOD")]
    method: Option<String>,

    /// Only those that this recorded exchange is for
    #[arg(long, value_name = "KEY")]
    key: Option<String>,

    /// Only those with this id
    #[arg(long, value_name = "ID")]
    request_id: Option<String>,

    /// Only those with this correlation id
    #[arg(long, value_name = "ID")]
    correlation_id: Option<String>,

    /// Only those of which this became
    #[arg(long)]
    outcome: Option<Became>,

    /// Only the last so many of them
    #[arg(long, value_name = "N")]
    limit: Option<usize>,

    /// As they stand in the file
    #[arg(long)]
    json: bool,
}

/// An outcome, as it is typed.
#[derive(Clone, Copy, Debug)]
struct Became(Outcome);

impl ValueEnum for Became {
    fn value_variants<'a>() -> &'a [Self] {
        const ALL: [Became; Outcome::ALL.len()] = {
            let mut all = [Became(Outcome::Answered); Outcome::ALL.len()];
            let mut at = 0;
            while at < all.len() {
                all[at] = Became(Outcome::ALL[at]);
                at += 1;
            }
            all
        };
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()))
    }
}

pub(super) fn run(args: &EventsArgs) -> Result<ExitCode, Failure> {
    let filter = Filter {
        server: args.server.clone(),
        method: args.method.clone(),
        key: args.key.clone(),
        request_id: args.request_id.clone(),
        correlation_id: args.correlation_id.clone(),
        outcome: args.outcome.map(|Became(outcome)| outcome),
        limit: args.limit,
    };
    let path = args.path.display();
    let unread = |error| {
        let next = "a replay writes its events to the file that its `--events` names";
        Failure::unread(&args.path, &error, next)
    };
    let file = File::open(&args.path).map_err(unread)?;
    let mut found: Vec<(Event, String)> = Vec::new();
    let (mut faults, mut has_events) = (Vec::new(), false);
    for (at, line) in BufReader::new(file).split(b'\n').enumerate() {
        let line = line.map_err(unread)?;
        if line.is_empty() {
            continue;
        }
        match serde_json::from_slice::<Event>(&line) {
            Ok(event) => {
                has_events = true;
                if filter.fits(&event) {
                    found.push((event, String::from_utf8_lossy(&line).into_owned()));
                }
            }
            Err(error) => {
                let text = error.to_string();
                let reason = text.split(" at line ").next().unwrap_or_default();
                faults.push(format!("{path}:{}: this is no event: {reason}", at + 1));
            }
        }
    }
    // A file of another kind is told once, and not by each of its lines.
    if let Some(first) = faults.first().filter(|_| !has_events) {
        return Err(Failure::file(format_args!("{first}, and neither is any other line")).hint(
            "give the file that the `--events` of a replay named; a cassette is shown by `tapedeck show`",
        ));
    }
    faults.iter().for_each(|fault| output::stderr(format_args!("{fault}; take the line out")));
    let shown = filter.last(&found);
    let mut out = output::stdout();
    if args.json {
        shown.iter().try_for_each(|(_, line)| writeln!(out, "{line}")).map_err(Failure::output)?;
    } else {
        let rows: Vec<_> = shown.iter().map(|(event, _)| row(event)).collect();
        write!(out, "{}", table(&rows)).map_err(Failure::output)?;
    }
    out.flush().map_err(Failure::output)?;
    if faults.is_empty() {
        return Ok(ExitCode::Good);
    }
    Err(Failure::file(format_args!("{path}: not every line is an event"))
        .hint("a replay that was killed may leave half a line; take out the lines that were named"))
}

const COLUMNS: usize = 10;

fn row(event: &Event) -> [String; COLUMNS] {
    let or_dash = |text: Option<&str>| text.unwrap_or("-").to_owned();
    let about = match &event.name {
        Some(name) => format!("{} {name}", event.method),
        None => event.method.clone(),
    };
    let session = event.session.map(|session| session.to_string()).unwrap_or_else(|| "-".to_owned());
    [
        event.seq.to_string(),
        format!("{} ms", event.at_ms),
        event.server.iter().chain(&event.take).fold(String::new(), |all, name| all + name + " ") + &session,
        about,
        or_dash(event.request_id.as_ref().map(|id| id.get())),
        or_dash(event.correlation_id.as_deref()),
        event.outcome.name().to_owned(),
        or_dash(event.fault.as_deref()),
        event.duration_ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms} ms")),
        or_dash(event.key.as_deref()),
    ]
}

fn table(rows: &[[String; COLUMNS]]) -> String {
    let mut widths = [0; COLUMNS];
    let rows: Vec<[_; COLUMNS]> =
        rows.iter().map(|row| row.each_ref().map(|cell| output::visible(cell))).collect();
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for row in &rows {
        let start = text.len();
        for (width, cell) in widths.iter().zip(row) {
            let _ = write!(text, "{cell:<width$}  ");
        }
        text.truncate(start + text[start..].trim_end().len());
        text.push('\n');
    }
    text
}
