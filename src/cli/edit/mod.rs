//! `tapedeck edit`: scripted edits of a cassette.

mod fail;

use std::{
    fs,
    io::{self, Read},
    path::{Path, PathBuf},
};

use clap::{Args, Subcommand};
use mcp_tapedeck::{
    cassette::check_json,
    edit::{self, Edit, EditError, Pointer, Position, Response, Value},
    exit_code::ExitCode,
    store::{self, Loaded, StoreError, shell},
    wire::{Span, scan},
};

use super::{
    args::CassetteArgs,
    failure::Failure,
    files,
    output::{self, visible},
};

/// Change a cassette by command: add failure cases, set values, remove exchanges
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  tapedeck edit session.json set 'tools/call search @1' /server/0/result/content/0/text 'nothing found'
  tapedeck edit session.json fail 'tools/call search @2' --error -32603 'database is locked' --out failing.json
  tapedeck edit session.json remove 'tools/call search @3'

Only what is addressed changes; every other line stays as it is, and what other exchanges say too: those that have an
edited answer as well, by `same_as`, keep the one they had. An edit after which the file would be no cassette is refused.
`tapedeck show C` lists the keys.")]
pub(super) struct EditArgs {
    #[command(flatten)]
    cassette: CassetteArgs,

    /// Write the edited cassette to this file, which must not be there yet, and leave C as it is
    #[arg(long, value_name = "FILE", global = true)]
    out: Option<PathBuf>,

    #[command(subcommand)]
    change: Change,
}

#[derive(Debug, Subcommand)]
enum Change {
    /// Set a place in an exchange to a value
    #[command(after_help = "Examples:
  tapedeck edit session.json set 'tools/call search @1' /server/0/result/content/0/text 'nothing found'
  tapedeck edit session.json set 'tools/call search @1' /client/request/params/arguments/limit 20
  tapedeck edit session.json set 'tools/call search @1' /match '{\"ignore\": [\"/params/arguments/limit\"]}'
  tapedeck edit session.json set 'tools/call search @1' /key 'the search that fails'

The pointer goes through the entry as `tapedeck show C KEY` and the file have it, markers included:
/server/0/result/content/0/text/$lines/2 is the third line of a text. A last member that is missing is added, and `-`
adds to an array. Where the answer is written as `same_as`, the exchange first gets a copy of its own; where others
have this exchange's answer by `same_as`, they keep the old one. A new /key is changed in `after`, `same_as` and `when`
too.")]
    Set {
        /// The exchange
        key: String,
        /// The place in its entry, a JSON Pointer (RFC 6901)
        pointer: String,
        /// JSON; what is no JSON is taken as a text
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// Remove an exchange, or a place in one
    #[command(after_help = "Examples:
  tapedeck edit session.json remove 'tools/call search @3'
  tapedeck edit session.json remove 'tools/call search @1' /server/0

What refers to it is mended, and said: who had the same answer by `same_as` gets it written out, and what came after one
of its messages (`after`) comes after the one before that.")]
    Remove {
        /// The exchange
        key: String,
        /// The place in its entry; all of it where this is missing
        pointer: Option<String>,
    },
    /// Add an exchange from a file
    #[command(after_help = "Examples:
  tapedeck edit session.json insert ping.json --after 'initialize @1'
  echo '{\"client\": {\"request\": {\"method\": \"ping\"}}, \"server\": [{\"result\": {}}]}' |
    tapedeck edit session.json insert

The entry is as in a cassette. Without `key` it gets the next one of its kind, which is printed; without `session` it
joins that of its neighbour.")]
    Insert {
        /// The file with the entry; `-` or none for standard input
        file: Option<PathBuf>,
        /// Put it before this exchange
        #[arg(long, value_name = "KEY")]
        before: Option<String>,
        /// Put it behind this exchange; behind all where neither is given
        #[arg(long, value_name = "KEY", conflicts_with = "before")]
        after: Option<String>,
    },
    /// Add a copy of an exchange behind it
    #[command(after_help = "Examples:
  tapedeck edit session.json duplicate 'tools/call search @1'
  tapedeck edit session.json duplicate 'tools/call search @1' --as 'the search that fails'

Equal requests are answered in the order of the file: the copy answers the second one.")]
    Duplicate {
        /// The exchange
        key: String,
        /// The copy's key; else the next number
        #[arg(long = "as", value_name = "NEWKEY")]
        name: Option<String>,
    },
    Fail(fail::FailArgs),
    /// Set how long an answer takes
    #[command(after_help = "Example:
  tapedeck edit session.json delay 'tools/call search @1' 3000

It counts from the message before it, and passes in a replay with `--timing recorded`.")]
    Delay {
        /// The exchange
        key: String,
        /// Milliseconds
        ms: u32,
    },
    /// Set an exchange's note
    #[command(after_help = "Example:
  tapedeck edit session.json note 'tools/call search @1' 'the index was being rebuilt'")]
    Note {
        /// The exchange
        key: String,
        /// The note
        #[arg(allow_hyphen_values = true)]
        text: String,
    },
    /// Give an exchange another answer, from a file
    #[command(after_help = "Examples:
  tapedeck edit session.json answer 'tools/call search @1' --from result.json
  echo '{\"error\": {\"code\": -32602, \"message\": \"no such tool\"}}' |
    tapedeck edit session.json answer 'tools/call search @1' --from -

The file's JSON becomes the result; an object that has `result` or `error`, and beside it at most `id` and `jsonrpc`, is
a whole response. What the server sent before its answer stays.")]
    Answer {
        /// The exchange
        key: String,
        /// The file; `-` for standard input
        #[arg(long, value_name = "FILE")]
        from: PathBuf,
    },
}

pub(super) fn run(args: EditArgs) -> Result<ExitCode, Failure> {
    let path = args.cassette.given()?.clone();
    let edit = args.change.edit()?;
    files::say_unread(&path)?;
    let mut told = Vec::new();
    let change = |loaded: &Loaded| {
        let edited = edit::apply(&loaded.cassette, &loaded.blobs, &edit)
            .map_err(|error| Refused::Edit(loaded.path.clone(), Box::new(error)))?;
        told = edited.told;
        Ok(edited.text)
    };
    let written = match &args.out {
        Some(out) => store::write_variant(&path, out, change),
        None => store::rewrite(&path, change),
    };
    written.map_err(Refused::failure)?;
    for sentence in told {
        output::print(format_args!("{}\n", visible(&sentence)))?;
    }
    Ok(ExitCode::Good)
}

impl Change {
    fn edit(self) -> Result<Edit, Failure> {
        Ok(match self {
            Self::Set { key, pointer, value } => {
                Edit::Set { key, pointer: place(&pointer)?, value: self::value(value)? }
            }
            Self::Remove { key, pointer } => {
                Edit::Remove { key, pointer: pointer.as_deref().map(place).transpose()? }
            }
            Self::Insert { file, before, after } => {
                let position = match (before, after) {
                    (Some(key), _) => Position::Before(key),
                    (_, Some(key)) => Position::After(key),
                    _ => Position::End,
                };
                Edit::Insert { entry: json(file.as_deref().unwrap_or(Path::new("-")))?, position }
            }
            Self::Duplicate { key, name } => Edit::Duplicate { key, name },
            Self::Fail(args) => args.edit()?,
            Self::Delay { key, ms } => Edit::Delay { key, ms },
            Self::Note { key, text } => Edit::Note { key, text },
            Self::Answer { key, from } => Edit::Answer { key, response: response(json(&from)?) },
        })
    }
}

fn place(pointer: &str) -> Result<Pointer, Failure> {
    Pointer::parse(pointer).map_err(Failure::usage)
}

/// JSON, or a text. What begins like JSON and is none was meant to be some.
fn value(given: String) -> Result<Value, Failure> {
    if scan::is_json(given.as_bytes()) {
        return Ok(Value::Json(given.into_bytes()));
    }
    match check_json(given.as_bytes()) {
        Err(error) if given.trim_start().starts_with(['{', '[', '"']) => {
            Err(Failure::usage(format_args!("VALUE begins like JSON, and is none: {}", error.kind))
                .hint("a text that begins so is written as a JSON string, in double quotes"))
        }
        _ => Ok(Value::Text(given)),
    }
}

/// A file's JSON.
fn json(path: &Path) -> Result<Vec<u8>, Failure> {
    let text = match path == Path::new("-") {
        true => {
            let mut text = Vec::new();
            io::stdin().lock().read_to_end(&mut text).map(|_| text)
        }
        false => fs::read(path),
    };
    let next = "`--from` names a file of JSON, or `-` for standard input";
    let text = text.map_err(|error| Failure::unread(path, &error, next))?;
    let shown = if path == Path::new("-") { "standard input".into() } else { path.display().to_string() };
    if std::str::from_utf8(&text).is_err() {
        return Err(Failure::file(format_args!("{shown}: expected JSON, found bytes that are not UTF-8")));
    }
    check_json(&text).map_err(|error| Failure::file(format_args!("{shown}:{error}")))?;
    Ok(scan::trim(&text).of(&text).to_vec())
}

/// A result, or a whole response.
fn response(json: Vec<u8>) -> Response {
    let members: Vec<_> = match json.first() {
        Some(b'{') => scan::members(&json, 0).map_while(Result::ok).collect(),
        _ => Vec::new(),
    };
    let named = |span: Span, names: &[&str]| names.iter().any(|name| scan::string_is(span.of(&json), name));
    let outcomes: Vec<_> = members.iter().filter(|member| named(member.name, &["result", "error"])).collect();
    let is_whole = members.iter().all(|member| named(member.name, &["result", "error", "id", "jsonrpc"]));
    match outcomes[..] {
        [outcome] if is_whole => {
            let value = outcome.value.of(&json).to_vec();
            if named(outcome.name, &["result"]) { Response::Result(value) } else { Response::Error(value) }
        }
        _ => Response::Result(json),
    }
}

/// Why nothing was written.
enum Refused {
    Store(StoreError),
    Edit(PathBuf, Box<EditError>),
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Refused {
    fn failure(self) -> Failure {
        let (path, error) = match self {
            Self::Store(error) => return error.into(),
            Self::Edit(path, error) => (path, error),
        };
        let shown = path.display();
        match &*error {
            EditError::Invalid(_) => Failure::file(format_args!("{shown}:{error}")),
            EditError::NoKey { key, alike } => {
                let failure = Failure::file(format_args!("{shown}: {}", visible(&error.to_string())));
                let alike: Vec<_> = alike.iter().map(|key| format!("`{}`", visible(key))).collect();
                let in_journal = files::load(&path).ok().and_then(|loaded| {
                    loaded.cassette.find(key).map(|found| loaded.is_alive(found.session as usize))
                });
                if in_journal == Some(true) {
                    failure.hint("its recorder still runs: it can be edited once that has ended")
                } else if in_journal == Some(false) {
                    failure.hint(format_args!(
                        "it stands in a journal; `tapedeck recover {}` puts it into the cassette",
                        shell::word(&path)
                    ))
                } else if alike.is_empty() {
                    failure.hint(format_args!("`tapedeck show {}` lists the keys", shell::word(&path)))
                } else {
                    failure.hint(format_args!("did you mean {}?", alike.join(" or ")))
                }
            }
            _ => Failure::file(format_args!("{shown}: {}", visible(&error.to_string()))),
        }
    }
}
