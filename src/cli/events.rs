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

use super::{failure::Failure, output, unfit};

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
    let failed = |error| {
        let next = "a replay writes its events to the file that its `--events` names";
        Failure::unread(&args.path, &error, next)
    };
    let file = File::open(&args.path).map_err(failed)?;
    let mut found: Vec<(Event, String)> = Vec::new();
    let mut unread = 0;
    for (at, line) in BufReader::new(file).split(b'\n').enumerate() {
        let line = line.map_err(failed)?;
        if line.trim_ascii().is_empty() {
            continue;
        }
        match serde_json::from_slice::<Event>(&line) {
            Ok(event) if filter.fits(&event) => {
                found.push((event, String::from_utf8_lossy(&line).into_owned()));
            }
            Ok(_) => {}
            Err(error) => {
                unread += 1;
                if unread <= MOST_TOLD {
                    output::warning(unfit::why(&args.path, (&line, at + 1), "an event", &error));
                }
            }
        }
    }
    let shown = filter.last(&found);
    let mut out = output::stdout();
    if args.json {
        shown.iter().try_for_each(|(_, line)| writeln!(out, "{line}")).map_err(Failure::output)?;
    } else {
        let rows: Vec<_> = shown.iter().map(|(event, _)| row(event)).collect();
        write!(out, "{}", table(&rows)).map_err(Failure::output)?;
    }
    out.flush().map_err(Failure::output)?;
    if unread == 0 {
        return Ok(ExitCode::Good);
    }
    let were = output::counted(unread, "line is no event and was", "lines are no events and were");
    Err(Failure::file(format_args!("{path}: {were} left out"))
        .hint("`--events` of a replay writes such files; a replay that was killed may leave half a line, which can be taken out"))
}

/// So many lines that are no events are told of.
const MOST_TOLD: u64 = 3;

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
