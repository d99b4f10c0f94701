//! `tapedeck lint`: what is wrong with a cassette's file, and with the sessions in it.

use std::{
    io::Write,
    path::{Path, PathBuf},
};

use clap::Args;
use mcp_tapedeck::{
    cassette::model::{Cassette, Id},
    exit_code::ExitCode,
    fault::of_cassette,
    lint::{RULES, lint},
    redact::{Redactor, Rules},
    store::{self, Loaded, StoreError},
    wire::{jsonrpc::Kind, scan},
};
use serde::Serialize;

use super::{args::CassettesOption, failure::Failure, output};

/// Check a cassette: its file, and what its client and server did
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, after_long_help = help())]
pub(super) struct LintArgs {
    /// The cassettes, or journals
    #[arg(id = "cassettes", value_name = "C", required_unless_present = "cassette_option")]
    paths: Vec<PathBuf>,

    #[command(flatten)]
    named: CassettesOption,

    /// Write one JSON object a line: file, line, column, rule, key, text, source
    #[arg(long)]
    json: bool,

    /// Say nothing of this rule, such as where a server breaks it and will go on doing so; can be repeated
    #[arg(long, value_name = "RULE", value_parser = rule_names())]
    allow: Vec<String>,
}

/// What a file can have wrong beside its sessions.
const OF_THE_FILE: [(&str, &str); 6] = [
    (UNREADABLE, "the file is a cassette that can be read"),
    (UNKNOWN_MEMBER, "members are those of the format, or begin with `x-`"),
    (UNKNOWN_VALUE, "values are those that the format has"),
    (FAULT, "faults can be read, and name exchanges that are there"),
    (UNREDACTED, "secrets were replaced when it was recorded, and no id is one"),
    (GAP, "all messages of a session were recorded"),
];
const UNREADABLE: &str = "unreadable";
const UNKNOWN_MEMBER: &str = "unknown-member";
const UNKNOWN_VALUE: &str = "unknown-value";
const FAULT: &str = "fault";
const UNREDACTED: &str = "unredacted";
const GAP: &str = "gap";

/// Where the format is described.
const FORMAT: &str = "cassettes/README.md";
const SPECIFICATION: &str = "https://modelcontextprotocol.io/specification/";

fn rule_names() -> Vec<&'static str> {
    let of_the_file = OF_THE_FILE.iter().map(|(name, _)| *name).filter(|name| *name != UNREADABLE);
    of_the_file.chain(RULES.iter().map(|rule| rule.id)).collect()
}

const EXAMPLES: &str = "Examples:
  tapedeck lint session.json
  tapedeck lint --json cassettes/*.json
  tapedeck lint --allow server-capability session.json

Each finding stands on a line of its own, FILE:LINE:COLUMN and its rule before it. The status is 1
where there is one, 3 where a file is no cassette.";

fn help() -> String {
    let mut help = format!("{EXAMPLES}\n\nRules of the file:\n");
    let of_the_file = OF_THE_FILE.iter().copied();
    let width = RULES.iter().map(|rule| rule.id.len()).max().unwrap_or_default();
    of_the_file.for_each(|(name, says)| help.push_str(&format!("  {name:width$}  {says}\n")));
    help.push_str("\nRules of the protocol:\n");
    RULES.iter().for_each(|rule| help.push_str(&format!("  {:width$}  {}\n", rule.id, rule.says)));
    help
}

/// One line of what is found.
#[derive(Serialize)]
struct Line<'a> {
    file: &'a str,
    line: usize,
    column: usize,
    rule: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    text: &'a str,
    source: &'a str,
}

pub(super) fn run(args: &LintArgs) -> Result<ExitCode, Failure> {
    let mut lines = Lines { args, out: output::stdout(), found: false };
    let mut code = ExitCode::Good;
    for path in args.paths.iter().chain(&args.named.cassettes) {
        match store::load(path) {
            Ok(loaded) => lines.of_cassette(path, &loaded)?,
            Err(error) => {
                code = ExitCode::File;
                lines.of_error(path, error)?;
            }
        }
    }
    lines.out.flush().map_err(Failure::output)?;
    Ok(if lines.found && code == ExitCode::Good { ExitCode::Bad } else { code })
}

struct Lines<'a, W> {
    args: &'a LintArgs,
    out: W,
    found: bool,
}

impl<W: Write> Lines<'_, W> {
    fn of_cassette(&mut self, path: &Path, loaded: &Loaded) -> Result<(), Failure> {
        let (cassette, file) = (&loaded.cassette, path.display().to_string());
        let mut found: Vec<_> = of_the_file(cassette)
            .into_iter()
            .map(|(at, rule, text)| (at, rule, None, text, FORMAT.to_owned()))
            .collect();
        let (notes, findings): (Vec<_>, Vec<_>) =
            lint(cassette, &loaded.blobs).into_iter().partition(|finding| finding.is_note);
        found.extend(findings.into_iter().map(|finding| {
            let source = format!("{SPECIFICATION}{}", finding.source);
            (finding.at, finding.rule, Some(finding.key), finding.text, source)
        }));
        found.retain(|(_, rule, ..)| !self.args.allow.iter().any(|allowed| allowed == rule));
        found.sort_by_cached_key(|(at, ..)| *at);
        for (at, rule, key, text, source) in &found {
            let (line, column) = cassette.line_column(*at);
            let (file, key) = (&*file, key.as_deref());
            self.write(&Line { file, line, column, rule, key, text, source })?;
        }
        for note in notes.iter().filter(|note| !self.args.allow.iter().any(|allowed| allowed == note.rule)) {
            let (line, column) = cassette.line_column(note.at);
            output::warning(format!("{file}:{line}:{column}: {}: {}", note.key, output::visible(&note.text)));
        }
        loaded.notes.iter().for_each(output::warning);
        Ok(())
    }

    /// A file that is no cassette does not keep the others from being looked at.
    fn of_error(&mut self, path: &Path, error: StoreError) -> Result<(), Failure> {
        let faults = match &error {
            StoreError::Cassette { .. } => store::faults(path).unwrap_or_default(),
            _ => Vec::new(),
        };
        if faults.is_empty() {
            output::failure(&error.into());
            return Ok(());
        }
        let file = path.display().to_string();
        faults.iter().try_for_each(|fault| {
            let (file, text, source) = (&*file, &*fault.kind.to_string(), FORMAT);
            let (line, column) = (fault.line, fault.column);
            self.write(&Line { file, line, column, rule: UNREADABLE, key: None, text, source })
        })
    }

    fn write(&mut self, line: &Line<'_>) -> Result<(), Failure> {
        self.found = true;
        let written = if self.args.json {
            serde_json::to_writer(&mut self.out, line).map_err(Into::into).and_then(|()| writeln!(self.out))
        } else {
            let key = line.key.map(|key| format!("{key}: ")).unwrap_or_default();
            let source = line.source.strip_prefix(SPECIFICATION).and_then(|page| page.split_once('/'));
            let source = source.map(|(revision, page)| format!(" (specification {revision}, {page})"));
            let text = format!("{key}{}{}", line.text, source.unwrap_or_default());
            let Line { file, line, column, rule, .. } = line;
            writeln!(self.out, "{file}:{line}:{column}: [{rule}] {}", output::visible(&text))
        };
        written.map_err(Failure::output)
    }
}

/// What is wrong with the file of a cassette that can be read: where, by which rule, and what.
fn of_the_file(cassette: &Cassette) -> Vec<(usize, &'static str, String)> {
    let redacted = scan::member(&cassette.text, scan::trim(&cassette.text).start, "redacted");
    let redacted = redacted.filter(|_| !cassette.redacted).map(|span| {
        let text = "recorded with `--redact off`: secrets of the session may stand in this file";
        (span.start, UNREDACTED, text.to_owned())
    });
    let unknown = cassette.warnings.iter().map(|warning| {
        let rule = if warning.is_value { UNKNOWN_VALUE } else { UNKNOWN_MEMBER };
        (warning.at, rule, warning.text.clone())
    });
    let fault = of_cassette(cassette).err().map(|error| (error.at, FAULT, error.text));
    let gaps = (0..).zip(&cassette.sessions).filter_map(|(at, session)| {
        let missed = cassette.missed(at)?;
        let were = output::counted(missed.messages, "message was", "messages were");
        let number = session.number;
        let text = match missed.is_shared {
            false => format!(
                "at least {were} not recorded: recording failed, or its journal was damaged; record session {number} \
                 again"
            ),
            true => format!(
                "at least {were} not recorded beside session {number}, or in it: nobody knows whose they were; record it again"
            ),
        };
        Some((session.place.start as usize, GAP, text))
    });
    redacted.into_iter().chain(secret_ids(cassette)).chain(unknown).chain(fault).chain(gaps).collect()
}

/// Ids that look like secrets. They are kept when it is recorded, as answers are known by them.
fn secret_ids(cassette: &Cassette) -> Vec<(usize, &'static str, String)> {
    let mut redactor = Redactor::new(&Rules::default());
    let mut found = Vec::new();
    for entry in &cassette.exchanges {
        let messages = entry.client.iter().chain(entry.server.iter().map(|item| &item.message));
        for message in messages.filter(|message| message.kind == Kind::Request) {
            let Id::Token(id) = &message.id else { continue };
            let id = String::from_utf8_lossy(id);
            if *redactor.text(&id) != *id {
                let text = format!(
                    "an id of `{}` looks like a secret, and ids are kept as they are: number requests instead",
                    entry.key
                );
                found.push((message.place.start as usize, UNREDACTED, text));
            }
        }
    }
    found
}

/// Members and values that nobody knows, and where.
pub(super) fn unknown(cassette: &Cassette) -> Vec<(usize, String)> {
    cassette.warnings.iter().map(|warning| (warning.at, warning.text.clone())).collect()
}
